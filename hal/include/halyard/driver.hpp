// A kit for drivers in C++20: what every driver would otherwise write again over halyard/driver.h, which
// stays the contract. Header only; needs halyard/driver.h, the standard library and nothing else of Halyard.
// A driver derives from four classes,
//
//   Instance     finds devices and opens them
//   Device       describes itself, allocates, runs commands; QueuedDevice: on threads of its own
//   Memory       bytes
//   Executable   functions
//
// says HALYARD_KIT_DRIVER(MyInstance, "mine", "1.0", "mine", {"mine", "what it is"}) once, and is complete:
// the kit makes the table of functions, the note and the negotiation, timelines with their waiters and
// subscribers, held submissions, and turns failures and exceptions into statuses. drivers/template is such a
// driver.
//
// A function that fails returns a Failure, or throws std::bad_alloc; nothing thrown leaves the driver. Rules
// of docs/driver-abi.md are cited as [Rn].
//
// It is a header, not an ABI: every driver has its own copy, in its own shared library, and copies of
// different releases meet nowhere. In a driver it belongs into one translation unit for the macro, and into
// any for the rest.
#ifndef HALYARD_DRIVER_HPP_
#define HALYARD_DRIVER_HPP_

#include "halyard/driver/device.hpp"
#include "halyard/driver/due.hpp"
#include "halyard/driver/failure.hpp"
#include "halyard/driver/host_memory.hpp"
#include "halyard/driver/options.hpp"
#include "halyard/driver/pool.hpp"
#include "halyard/driver/table.hpp"
#include "halyard/driver/timeline.hpp"
#include "halyard/driver/trace.hpp"
#include "halyard/driver/waiting.hpp"

// Once in a driver, at file scope: the class of its instances; NAME of halyard-driver-NAME.so; its version;
// its kinds as in the note, separated by commas; and each kind with one line about it, as {"mine", "what it
// is"}, ...
#define HALYARD_KIT_DRIVER(instance_, name_, version_, kinds_, ...) \
  HALYARD_KIT_DRIVER_OF(halyard::kit::Kit<instance_>, name_, version_, kinds_, __VA_ARGS__)
// The same for a driver with classes of its own: see Entries in halyard/driver/table.hpp.
#define HALYARD_KIT_DRIVER_OF(driver_, name_, version_, kinds_, ...)                                         \
  HALYARD_DRIVER_NOTE(name_, version_, kinds_);                                                              \
  int32_t halyard_driver_negotiate(const halyard_driver_request_t* request, halyard_driver_reply_t* reply) { \
    static constexpr halyard_driver_table_t kTable = halyard::kit::Entries<driver_>::table();                \
    static constexpr halyard_driver_kind_t kKinds[] = {__VA_ARGS__};                                         \
    return halyard::kit::negotiate(*request, *reply, name_, kTable, kKinds);                                 \
  }

#endif  // HALYARD_DRIVER_HPP_
