// Executable: device code loaded by a driver. Specified by hal-module.md, "hal.executable.create". Immutable,
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"
#include "hal/device/device.h"

namespace halyard::hal {

struct ExecutableFunction {
  std::string name;
  std::string source;  // where it is in the source: "model.mlir:12:5"; may be empty
  uint32_t binding_count = 0;
  uint32_t constant_count = 0;
  uint32_t flags = 0;  // HALYARD_FUNCTION_*
  uint32_t workgroup_size[3] = {};
  uint64_t local_memory = 0;  // bytes
};

struct ExecutableOptions {
  Budget* memory = nullptr;  // charged for the executable and for the host allocations of its kernels
  std::span<const uint32_t> subgroup_sizes = {};  // that the program was compiled for; empty: unknown
  const uint32_t* stop = nullptr;                 // a stop word (base/work_scope.h) that ends loading
};

class Executable final : public ObjectOf<Executable> {
 public:
  static const ObjectType kType;  // "hal.executable"

  // The executable retains `keep`, the owner of `data`. `data` must not change while the executable lives.
  // NOT_FOUND: unknown format. INCOMPATIBLE: made for another device. INVALID_ARGUMENT. RESOURCE_EXHAUSTED.
  // Otherwise the code in the stop word.
  static Result<Ref<Executable>> create(const Ref<Device>& device, uint64_t affinity, std::string_view format,
                                        std::span<const uint8_t> data, Ref<Object> keep,
                                        std::span<const uint32_t> constants,
                                        const ExecutableOptions& options = {});

  Device& device() const { return *device_; }
  halyard_driver_executable_t handle() const { return handle_; }
  // The source of the executable.
  const std::string& format() const { return format_; }
  std::span<const uint8_t> data() const { return data_; }
  std::span<const uint32_t> constants() const { return constants_; }
  std::span<const uint32_t> subgroup_sizes() const { return subgroup_sizes_; }
  const std::vector<ExecutableFunction>& functions() const { return functions_; }
  // Checks a dispatch of the function with these counts of constants and bindings. OUT_OF_RANGE: no such
  // function. INVALID_ARGUMENT: the function declares other counts.
  Result<> check_dispatch(uint64_t function, size_t constant_count, size_t binding_count) const;
  // NOT_FOUND, with similar names; UNAVAILABLE if no function has a name.
  Result<uint64_t> lookup(std::string_view name) const;

  Executable(Ref<Device> device, Ref<Object> keep, Ref<Budget> memory);
  ~Executable();

 private:
  Ref<Device> device_;
  halyard_driver_executable_t handle_ = nullptr;
  Ref<Object> keep_;
  const Ref<Budget> memory_;  // may be null
  const halyard_memory_budget_t budget_;
  std::string format_;
  std::span<const uint8_t> data_;
  std::vector<uint32_t> constants_;
  std::vector<ExecutableFunction> functions_;
  Charge charge_;
  std::vector<uint32_t> subgroup_sizes_;
};

}  // namespace halyard::hal
