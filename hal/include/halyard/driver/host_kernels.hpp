// Of the kit (halyard/driver.hpp): executables whose kernels are functions of the processor, and their
// dispatches, workgroup by workgroup.
#ifndef HALYARD_DRIVER_HOST_KERNELS_HPP_
#define HALYARD_DRIVER_HOST_KERNELS_HPP_

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "halyard/driver/host_commands.hpp"

namespace halyard::kit {

using Workgroup = std::array<uint32_t, 3>;  // x, y, z

// A dispatch that runs: everything that a kernel can see, except the number of its workgroup.
struct Dispatch {
  uint32_t function = 0;
  Workgroup workgroups = {};  // the counts of the grid
  std::span<const uint32_t> constants;
  std::span<const std::span<uint8_t>> bindings;
  Stop stop;  // a workgroup that takes long checks it, and returns its failure
};

// The description of a kernel. Bit n of `read_only`: the kernel does not write to binding n. Constants of a
// program are copied when they are bound to any other binding, unless the host lets kernels write to them.
struct HostFunction {
  std::string name;
  uint32_t bindings = 0;   // or HALYARD_COUNT_UNDECLARED
  uint32_t constants = 0;  // 32-bit dispatch constants; or HALYARD_COUNT_UNDECLARED
  uint64_t read_only = 0;
};

class HostExecutable : public Executable {
 public:
  HostExecutable(const Services& services, std::vector<HostFunction> functions)
      : Executable(services), functions_(std::move(functions)) {}

  // Runs one workgroup of dispatch.function. Several threads may call it, for different dispatches.
  virtual Result<> run(const Dispatch& dispatch, const Workgroup& workgroup) const = 0;

  const HostFunction& function(uint32_t number) const { return functions_[number]; }
  uint32_t function_count() const final { return static_cast<uint32_t>(functions_.size()); }
  Result<halyard_function_info_t> function_info(uint32_t number) const final {
    if (number >= functions_.size())
      return Failure{HALYARD_OUT_OF_RANGE, "function " + std::to_string(number) +
                                               " does not exist; there are " +
                                               std::to_string(functions_.size())};
    halyard_function_info_t info = {};
    info.binding_count = functions_[number].bindings;
    info.constant_count = functions_[number].constants;
    info.name = {functions_[number].name.data(), functions_[number].name.size()};
    return info;
  }

 private:
  const std::vector<HostFunction> functions_;
};

// Runs all workgroups of a dispatch of a HostExecutable on this thread, x first. Ends at the first failure,
// and between two workgroups if a stop is requested [R69].
inline Result<> run_dispatch(const halyard_command_dispatch_t& command, const Table& table) {
  const auto& executable =
      static_cast<const HostExecutable&>(*reinterpret_cast<const Executable*>(command.executable));
  const HostFunction& function = executable.function(command.function);
  Dispatch dispatch = {.function = command.function,
                       .workgroups = {command.workgroups[0], command.workgroups[1], command.workgroups[2]},
                       .constants = {command.constants, command.constant_count},
                       .bindings = {},
                       .stop = table.stop};
  if (command.flags & HALYARD_DISPATCH_INDIRECT)
    std::memcpy(dispatch.workgroups.data(), HALYARD_KIT_TRY(bytes_of(command.indirect, table)).data(),
                sizeof dispatch.workgroups);
  const auto [count_x, count_y, count_z] = dispatch.workgroups;
  if (count_x == 0 || count_y == 0 || count_z == 0) return {};
  std::vector<std::span<uint8_t>> bindings(command.binding_count);
  // First those that are written: their memory may be bound a second time, and may get other bytes here.
  for (const bool is_written : {true, false})
    for (uint32_t i = 0; i < bindings.size(); ++i)
      if ((i >= 64 || !(function.read_only >> i & 1)) == is_written)
        bindings[i] = HALYARD_KIT_TRY(is_written ? bytes_to_write(command.bindings[i], table)
                                                 : bytes_of(command.bindings[i], table));
  dispatch.bindings = bindings;
  TraceSpan span(executable.services(), function.name);
  for (uint32_t z = 0; z < count_z; ++z)
    for (uint32_t y = 0; y < count_y; ++y)
      for (uint32_t x = 0; x < count_x; ++x) {
        HALYARD_KIT_TRY(dispatch.stop.check());
        HALYARD_KIT_TRY(executable.run(dispatch, {x, y, z}));
      }
  return {};
}

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_HOST_KERNELS_HPP_
