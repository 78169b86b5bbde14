// Of the kit (halyard/driver.hpp): a device that computes in host memory. It moves bytes; a driver adds its
// kernels, and overrides what differs.
#ifndef HALYARD_DRIVER_HOST_DEVICE_HPP_
#define HALYARD_DRIVER_HOST_DEVICE_HPP_

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "halyard/driver/host_block.hpp"
#include "halyard/driver/host_kernels.hpp"
#include "halyard/driver/host_memory.hpp"

namespace halyard::kit {

// `Base`: QueuedDevice, or Device for work on the caller's thread. A driver with kernels overrides grade()
// and load_kernels().
template <typename Base>
class HostMemoryDevice : public Base {
 public:
  using Base::Base;

  halyard_device_properties_t properties() const override {
    halyard_device_properties_t properties = {};
    properties.capabilities = HALYARD_DEVICE_UNIFIED_MEMORY | HALYARD_DEVICE_HOST_COHERENT |
                              HALYARD_DEVICE_QUEUE_ALLOCA | HALYARD_DEVICE_WRITES_CONSTANTS |
                              HALYARD_DEVICE_STOPS_WORK;
    if constexpr (!std::derived_from<Base, QueuedDevice>)
      properties.capabilities |= HALYARD_DEVICE_RUNS_IN_CALLER;
    properties.queue_count = 1;
    properties.operations = 1u << HALYARD_OPERATION_BARRIER | 1u << HALYARD_OPERATION_ALLOCA |
                            1u << HALYARD_OPERATION_DEALLOCA | 1u << HALYARD_OPERATION_EXECUTE;
    properties.memory_alignment = HostBlock::kAlignment;
    properties.maximum_allocation = uint64_t{1} << 38;
    properties.import_alignment = HostBlock::kAlignment;  // kernels may rely on it; other bytes are copied
    return properties;
  }
  std::optional<int64_t> query(std::string_view category, std::string_view key) const override {
    if ((category == "hal.device" || category == "hal.dispatch") && key == "concurrency") return 1;
    return std::nullopt;
  }
  halyard_memory_statistics_t statistics() const override { return tally_.now(); }

  Result<std::unique_ptr<Memory>> allocate(const halyard_memory_request_t& request, bool later,
                                           halyard_memory_info_t& info) override {
    HALYARD_KIT_TRY(grant(request, info));
    std::unique_ptr<Memory> block = std::make_unique<HostBlock>(tally_, request);
    if (!later) HALYARD_KIT_TRY(block->commit());
    return block;
  }
  Result<std::unique_ptr<Memory>> import_memory(const halyard_memory_request_t& request,
                                                const halyard_external_memory_t& external,
                                                halyard_memory_info_t& info) override {
    uint8_t* const bytes = HALYARD_KIT_TRY(host_bytes(request, external, properties().import_alignment));
    HALYARD_KIT_TRY(grant(request, info));
    return std::make_unique<HostBlock>(tally_, request, bytes, external.access);
  }

  Result<std::unique_ptr<Executable>> load(const halyard_executable_args_t& args) final {
    return HALYARD_KIT_TRY(load_kernels(args));
  }
  Result<> check(const halyard_command_t& command) const override {
    switch (command.kind) {
      case HALYARD_COMMAND_BARRIER:
      case HALYARD_COMMAND_FILL:
      case HALYARD_COMMAND_UPDATE:
      case HALYARD_COMMAND_COPY:
      case HALYARD_COMMAND_DISPATCH:
      case HALYARD_COMMAND_BEGIN_GROUP:
      case HALYARD_COMMAND_END_GROUP:
        return {};
      default:
        return Failure{HALYARD_UNIMPLEMENTED,
                       "command of kind " + std::to_string(command.kind) +
                           " is unknown; expected barrier, fill, update, copy, dispatch or group"};
    }
  }
  Result<> run(const halyard_command_t& command, Table table) override {
    if (command.kind != HALYARD_COMMAND_DISPATCH) return run_transfer(command, table);
    return run_dispatch(reinterpret_cast<const halyard_command_dispatch_t&>(command), table);
  }

 protected:
  // Loads an executable: see executable_create in halyard/driver.h. Stop(args) tells whether to give up
  // [R97].
  virtual Result<std::unique_ptr<HostExecutable>> load_kernels(const halyard_executable_args_t& args) {
    return Failure{HALYARD_NOT_FOUND, "format '" + std::string(view(args.format)) +
                                          "' is unknown; this device runs no executables"};
  }

 private:
  // Fills `info`: the memory has every type and usage. INVALID_ARGUMENT: a required type bit is unknown
  // [R70].
  static Result<> grant(const halyard_memory_request_t& request, halyard_memory_info_t& info) {
    constexpr uint32_t kType =
        HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_HOST_CACHED | HALYARD_MEMORY_DEVICE_LOCAL;
    const uint32_t missing = request.memory_type & ~(kType | HALYARD_MEMORY_OPTIMAL);
    if (missing && !(request.memory_type & HALYARD_MEMORY_OPTIMAL)) {
      char text[96];
      std::snprintf(text, sizeof text,
                    "no heap has memory type bits 0x%x; ask without, or with OPTIMAL (0x1)", missing);
      return Failure{HALYARD_INVALID_ARGUMENT, text};
    }
    info.memory_type = kType;
    info.usage = request.usage | HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED |
                 HALYARD_USAGE_MAPPING_PERSISTENT | HALYARD_USAGE_MAPPING_RANDOM;
    info.size = request.size;
    return {};
  }

  MemoryTally tally_;
};

// Work runs on a thread of the device; or on the thread that made it ready.
using HostDevice = HostMemoryDevice<QueuedDevice>;
using InlineHostDevice = HostMemoryDevice<Device>;

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_HOST_DEVICE_HPP_
