// A kit for drivers in C++20: code over halyard/driver.h that every driver would otherwise write itself.
// halyard/driver.h remains the contract. Header only; needs only halyard/driver.h and the standard library. A
// driver derives from four classes,
//
//   Instance     finds devices and opens them
//   Device       describes itself, allocates, runs commands; QueuedDevice uses its own threads for this.
//                HostDevice has memory of the host, transfers and the loops of dispatches
//   Memory       allocated or imported bytes
//   Executable   loaded kernels
//
// and uses the macro once: HALYARD_KIT_DRIVER(MyInstance, "mine", "1.0", "mine", {"mine", "description"}).
// The kit provides the function table, the note, negotiation, timelines with waiters and subscribers, and
// held submissions. It converts failures and exceptions to statuses. share/halyard/examples/driver-template
// of an installed Halyard is an example.
//
// A function that fails returns a Failure or throws std::bad_alloc; no exception leaves the driver. [Rn]
// cites a rule of docs/driver-abi.md.
//
// The kit is not an ABI: each driver compiles its own copy into its shared library, and copies of different
// releases never meet. Use the macro in one translation unit; any translation unit may include the rest.
#ifndef HALYARD_DRIVER_HPP_
#define HALYARD_DRIVER_HPP_

#if __cplusplus < 202002L
#error "halyard/driver.hpp needs C++20; compile with -std=c++20"
#else

#include "halyard/driver/device.hpp"
#include "halyard/driver/failure.hpp"
#include "halyard/driver/host_block.hpp"
#include "halyard/driver/host_commands.hpp"
#include "halyard/driver/host_device.hpp"
#include "halyard/driver/host_kernels.hpp"
#include "halyard/driver/host_memory.hpp"
#include "halyard/driver/operation_name.hpp"
#include "halyard/driver/options.hpp"
#include "halyard/driver/pool.hpp"
#include "halyard/driver/stop.hpp"
#include "halyard/driver/table.hpp"
#include "halyard/driver/task.hpp"
#include "halyard/driver/timeline.hpp"
#include "halyard/driver/trace.hpp"
#include "halyard/driver/waiting.hpp"

// Use once in a driver, at file scope. Arguments: the class of its instances; NAME of halyard-driver-NAME.so;
// its version; its kinds as in the note, separated by commas; then the name and a description of each kind:
// {"mine", "description"}, ...
#define HALYARD_KIT_DRIVER(instance_, name_, version_, kinds_, ...) \
  HALYARD_KIT_DRIVER_OF(halyard::kit::Kit<instance_>, name_, version_, kinds_, __VA_ARGS__)
// The same for a driver with its own classes; see Entries in halyard/driver/table.hpp.
#define HALYARD_KIT_DRIVER_OF(driver_, name_, version_, kinds_, ...)                                         \
  HALYARD_DRIVER_NOTE(name_, version_, kinds_);                                                              \
  int32_t halyard_driver_negotiate(const halyard_driver_request_t* request, halyard_driver_reply_t* reply) { \
    static constexpr halyard_driver_table_t kTable = halyard::kit::Entries<driver_>::table();                \
    static constexpr halyard_driver_kind_t kKinds[] = {__VA_ARGS__};                                         \
    return halyard::kit::negotiate(*request, *reply, name_, kTable, kKinds);                                 \
  }

#endif  // C++20

#endif  // HALYARD_DRIVER_HPP_
