// Loading executables and looking up their functions.
#include "hal/device/executable.h"

#include <fmt/format.h>

#include <algorithm>

#include "hal/driver/driver_memory.h"
#include "text/suggest.h"

namespace halyard::hal {

const ObjectType Executable::kType = object_type<Executable>("hal.executable");

namespace {

constexpr size_t kMaxShownName = 128;
// More than any compiler emits. Larger numbers are an error of the driver and must not exhaust memory.
constexpr uint32_t kMaxFunctions = 1u << 20;
constexpr size_t kMaxText = 1u << 20;  // bytes

// A suggestion for `name`, or the names of the executable's functions.
std::string hint(const std::vector<ExecutableFunction>& functions, std::string_view name) {
  if (functions.empty()) return "; it has no functions";
  std::vector<std::string_view> names;
  for (const ExecutableFunction& function : functions) names.push_back(function.name);
  std::string near = did_you_mean(name, names);
  if (!near.empty()) return near;
  return fmt::format("; it has {} functions, the first is '{}'", names.size(), names[0]);
}

// The budget as drivers see it; all zero for none.
halyard_memory_budget_t budget_of(Budget* budget) {
  if (!budget) return {};
  return {.struct_size = sizeof(halyard_memory_budget_t),
          .reserved = 0,
          .user = budget,
          .limit = budget->limit(),
          .take = [](void* user, uint64_t bytes) { return static_cast<Budget*>(user)->take(bytes) ? 1 : 0; },
          .give_back = [](void* user, uint64_t bytes) { static_cast<Budget*>(user)->give_back(bytes); },
          .used = [](void* user) { return static_cast<Budget*>(user)->used(); }};
}

}  // namespace

Result<Ref<Executable>> Executable::create(const Ref<Device>& device, uint64_t affinity,
                                           std::string_view format, std::span<const uint8_t> data,
                                           Ref<Object> keep, std::span<const uint32_t> constants,
                                           const ExecutableOptions& options) {
  const auto [memory, subgroup_sizes, stop] = options;
  // Asks only about the format here, because executable_create checks the data.
  const Device::Grade grade = device->grade_executable(format, nullptr, 0);
  if (grade.grade == HALYARD_GRADE_NO)
    return fail(Code::NOT_FOUND, "device '{}' cannot load executables of format '{}'{}{}", device->uri(),
                format, grade.reason.empty() ? "" : ": ", grade.reason);

  const halyard_driver_table_t& table = device->table();
  halyard_executable_args_t args = {};
  args.struct_size = sizeof(args);
  args.constant_count = static_cast<uint32_t>(constants.size());
  args.format = {format.data(), format.size()};
  args.data = data.data();
  args.data_size = data.size();
  args.constants = constants.data();
  args.affinity = device->queues(affinity);
  args.subgroup_sizes = subgroup_sizes.data();
  args.subgroup_size_count = static_cast<uint32_t>(subgroup_sizes.size());
  args.stop = stop;
  // Created before the handle, which it then owns.
  Ref<Executable> executable = make<Executable>(device, std::move(keep), Ref<Budget>::share(memory));
  HALYARD_TRY(executable->charge_.start(
      memory, saturating_add(block_bytes(sizeof(Executable)), driver_memory::executable(data.size())),
      "an executable"));
  if (memory) args.memory = &executable->budget_;
  halyard_driver_executable_t handle = nullptr;
  if (halyard_status_t status = table.executable_create(device->handle(), &args, &handle))
    return std::unexpected(
        Status::adopt(status).note(fmt::format("loading an executable of format '{}'", format)));
  HALYARD_TRY(device->check_given(handle, "executable_create"));
  executable->handle_ = handle;

  executable->format_ = format;
  executable->data_ = data;
  executable->constants_.assign(constants.begin(), constants.end());
  executable->subgroup_sizes_.assign(subgroup_sizes.begin(), subgroup_sizes.end());

  const uint32_t count = table.executable_function_count(handle);
  if (count > kMaxFunctions)
    return fail(Code::INTERNAL,
                "the driver of device '{}' says that an executable of format '{}' has {} functions "
                "(executable_function_count); expected at most {}",
                device->uri(), format, count, kMaxFunctions);
  executable->functions_.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    halyard_function_info_t info = {};
    info.struct_size = sizeof(info);
    if (halyard_status_t status = table.executable_function_info(handle, i, &info))
      return std::unexpected(
          Status::adopt(status).note(fmt::format("describing function {} of an executable", i)));
    for (const auto& [text, kind] : {std::pair(info.name, "name"), std::pair(info.source, "source")})
      if (text.size > kMaxText || (!text.data && text.size != 0))
        return fail(Code::INTERNAL,
                    "the driver of device '{}' gave function {} of an executable a {} of {} bytes at {} "
                    "(executable_function_info); expected at most {}",
                    device->uri(), i, kind, text.size, fmt::ptr(text.data), kMaxText);
    ExecutableFunction& function = executable->functions_.emplace_back();
    if (info.name.data) function.name.assign(info.name.data, info.name.size);
    if (info.source.data) function.source.assign(info.source.data, info.source.size);
    function.binding_count = info.binding_count;
    function.constant_count = info.constant_count;
    function.flags = info.flags;
    std::ranges::copy(info.workgroup_size, function.workgroup_size);
    function.local_memory = info.local_memory;
  }
  return executable;
}

Executable::Executable(Ref<Device> device, Ref<Object> keep, Ref<Budget> memory)
    : device_(std::move(device)),
      keep_(std::move(keep)),
      memory_(std::move(memory)),
      budget_(budget_of(memory_.get())) {
  if (LiveObjects* live = device_->live()) live->add(kType, 1);
}

Executable::~Executable() {
  if (handle_) device_->table().executable_destroy(device_->handle(), handle_);
  if (LiveObjects* live = device_->live()) live->add(kType, -1);
}

Result<> Executable::check_dispatch(uint64_t number, size_t constant_count, size_t binding_count) const {
  if (number >= functions_.size())
    return fail(Code::OUT_OF_RANGE, "expected a function number below {}, found {}", functions_.size(),
                number);
  const ExecutableFunction& function = functions_[number];
  const bool counts_constants = function.constant_count != HALYARD_COUNT_UNDECLARED;
  const bool fewer = constant_count < function.constant_count;
  const bool is_range = function.flags & HALYARD_FUNCTION_CONSTANT_RANGE;
  if (counts_constants && (fewer ? !(function.flags & HALYARD_FUNCTION_FEWER_CONSTANTS)
                                 : constant_count > function.constant_count))
    return fail(!fewer && is_range ? Code::OUT_OF_RANGE : Code::INVALID_ARGUMENT,
                "function '{}' takes {} constants, but {} were given", function.name, function.constant_count,
                constant_count);
  if (function.binding_count != HALYARD_COUNT_UNDECLARED && binding_count != function.binding_count)
    return fail(Code::INVALID_ARGUMENT, "function '{}' takes {} bindings, but {} were given", function.name,
                function.binding_count, binding_count);
  return {};
}

Result<uint64_t> Executable::lookup(std::string_view name) const {
  const auto found = std::ranges::find(functions_, name, &ExecutableFunction::name);
  if (found == functions_.end() && !functions_.empty() &&
      std::ranges::all_of(functions_, &std::string::empty, &ExecutableFunction::name))
    return fail(
        Code::UNAVAILABLE,
        "cannot find function '{}': the {} functions of the executable have no names; compile it with "
        "debug information, or use their numbers",
        name.substr(0, kMaxShownName), functions_.size());
  if (found == functions_.end())
    return fail(Code::NOT_FOUND, "the executable has no function '{}'{}", name.substr(0, kMaxShownName),
                hint(functions_, name));
  return static_cast<uint64_t>(found - functions_.begin());
}

}  // namespace halyard::hal
