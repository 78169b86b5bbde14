// Opening and querying a device.
#include "hal/device/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "hal/device/callback_scope.h"
#include "halyard/wildcards.hpp"

namespace halyard::hal {

const ObjectType Device::kType = {"hal.device", &Device::destroy};
const ObjectType Allocator::kType = {"hal.allocator", &Allocator::destroy, true};

namespace {

halyard_text_t text_of(std::string_view text) { return {text.data(), text.size()}; }

constexpr uint64_t operation_bit(uint32_t kind) { return uint64_t{1} << kind; }

Result<> check_properties(const halyard_device_properties_t& properties) {
  constexpr uint64_t kNeeded =
      operation_bit(HALYARD_OPERATION_BARRIER) | operation_bit(HALYARD_OPERATION_EXECUTE);
  if (properties.queue_count < 1 || properties.queue_count > 64)
    return fail(Code::INTERNAL, "the driver reports {} queues; expected 1 to 64", properties.queue_count);
  if (!std::has_single_bit(properties.memory_alignment))
    return fail(Code::INTERNAL, "the driver reports a memory alignment of {}; expected a power of two",
                properties.memory_alignment);
  if (properties.import_alignment != 0 && !std::has_single_bit(properties.import_alignment))
    return fail(Code::INTERNAL, "the driver reports an import alignment of {}; expected 0 or a power of two",
                properties.import_alignment);
  if ((properties.operations & kNeeded) != kNeeded)
    return fail(Code::INTERNAL,
                "the driver reports the operations 0x{:X}; expected barrier and execute among them",
                properties.operations);
  return {};
}

}  // namespace

void Allocator::destroy(Object* object) { static_cast<Allocator*>(object)->device_.release(); }

Device::Device(Ref<DriverLibrary> library, std::string kind, std::string path, Ref<Loop> loop)
    : loop_(loop ? std::move(loop) : Loop::create()),
      library_(std::move(library)),
      kind_(std::move(kind)),
      path_(std::move(path)) {
  run = [](Step& self) noexcept { delete static_cast<Device*>(&self); };
}

void Device::destroy(Object* object) {
  auto* device = static_cast<Device*>(object);
  const Ref<Loop> loop = device->loop_;  // outlives the device
  outside_of_callbacks(*loop, *device);
}

Device::~Device() {
  if (handle_) table().device_close(handle_);
}

Result<Ref<Device>> Device::open(Ref<DriverLibrary> library, std::string kind, std::string path,
                                 const std::vector<std::pair<std::string, std::string>>& options,
                                 bool counts_objects, Ref<Loop> loop, std::shared_ptr<void> while_open) {
  Ref<Device> device = make<Device>(std::move(library), std::move(kind), std::move(path), std::move(loop));
  device->while_open_ = std::move(while_open);
  const halyard_driver_table_t& table = device->table();
  std::vector<halyard_option_t> given;
  for (const auto& [key, value] : options) given.push_back({text_of(key), text_of(value)});
  const halyard_device_open_args_t args = {sizeof args,
                                           static_cast<uint32_t>(given.size()),
                                           text_of(device->kind_),
                                           text_of(device->path_),
                                           given.data(),
                                           nullptr};
  const std::string note = fmt::format("while opening device '{}'", device->uri());
  if (Status status =
          Status::adopt(table.device_open(device->library_->instance(), &args, &device->handle_))) {
    device->handle_ = nullptr;
    return std::unexpected(std::move(status).note(note));
  }
  if (!device->handle_)
    return fail(Code::INTERNAL, "the driver opened device '{}' but gave no handle", device->uri());
  device->properties_.struct_size = sizeof device->properties_;
  if (Status status = Status::adopt(table.device_properties(device->handle_, &device->properties_)))
    return std::unexpected(std::move(status).note(note));
  HALYARD_TRY(with_note(check_properties(device->properties_), note));
  if (counts_objects) device->live_ = std::make_unique<LiveObjects>();
  Tracer* const tracer = device->library_->tracer();
  if (counts_objects || tracer) device->log_ = std::make_unique<MemoryLog>();
  if (tracer)
    device->trace_ = std::make_unique<DeviceTrace>(Ref<Tracer>::share(tracer), device->uri(),
                                                   device->library_->traced_work(), *device->log_);
  if (device->trace_)
    device->log_->observe(
        [trace = device->trace_.get()](const MemoryLog::Change& change) { trace->memory_changed(change); });
  return device;
}

void Device::add_user() {
  const std::lock_guard lock(users_mutex_);
  ++users_;
  had_users_ = true;
}

void Device::remove_user() {
  std::vector<Ref<WorkScope>> stopped;
  {
    const std::lock_guard lock(users_mutex_);
    // A program may drop references that were never counted.
    if (users_ == 0) return;
    --users_;
    if (users_ != 0) return;
    stopped.swap(left_behind_);
  }
  for (const Ref<WorkScope>& scope : stopped) scope->stop(Code::CANCELLED);
}

void Device::stop_without_users(Ref<WorkScope> scope) {
  const std::lock_guard lock(users_mutex_);
  if (!had_users_) return;
  if (users_ == 0) return scope->stop(Code::CANCELLED);
  std::erase_if(left_behind_, [](const Ref<WorkScope>& known) { return known->unique(); });
  left_behind_.push_back(std::move(scope));
}

Ref<Allocator> Device::allocator() {
  if (allocator_.retain_first()) retain();
  return Ref<Allocator>::adopt(&allocator_);
}

uint64_t Device::queues(uint64_t affinity) const {
  const uint64_t all = UINT64_MAX >> (64 - properties_.queue_count);
  const uint64_t named = affinity & all;
  return named != 0 ? named : all;
}

Result<> Device::check_given(const void* given, const char* function) const {
  if (given) return {};
  return fail(Code::INTERNAL,
              "the driver of device '{}' says that {} has succeeded, but gave null; expected a handle", uri_,
              function);
}

Result<> Device::check_memory(const halyard_memory_request_t& request, halyard_driver_memory_t memory,
                              const halyard_memory_info_t& info, const char* function) const {
  HALYARD_TRY(check_given(memory, function));
  if (info.size < request.size)
    return fail(Code::INTERNAL, "the driver of device '{}' gave {} bytes; asked for {} ({})", uri_, info.size,
                request.size, function);
  const bool are_wishes = request.memory_type & HALYARD_MEMORY_OPTIMAL;
  if (!are_wishes && (info.memory_type & request.memory_type) != request.memory_type)
    return fail(Code::INTERNAL, "the driver of device '{}' gave memory of type {}; asked for {} ({})", uri_,
                memory_type_text(info.memory_type), memory_type_text(request.memory_type), function);
  if ((info.usage & request.usage) != request.usage)
    return fail(Code::INTERNAL, "the driver of device '{}' gave memory for {}; asked for {} ({})", uri_,
                usage_text(info.usage), usage_text(request.usage), function);
  return {};
}

Device::Answer Device::query_i64(std::string_view category, std::string_view key) const {
  const bool asks_id = category == "hal.device.id";
  if (asks_id && matches_device_id(key, kind_)) return {true, 1};
  if (category == "hal.executable.format")
    return {true, grade_executable(key, nullptr, 0).grade >= HALYARD_GRADE_LOADABLE ? 1 : 0};
  int32_t known = 0;
  int64_t value = 0;
  const Status status =
      Status::adopt(table().device_query_i64(handle_, text_of(category), text_of(key), &known, &value));
  // A driver whose device stands for one of another kind knows the ids of that one.
  if (asks_id) return {true, status.ok() && known != 0 && value == 1 ? 1 : 0};
  if (status || known == 0) return {};
  return {true, value};
}

Device::Grade Device::grade_executable(std::string_view format, const void* data, uint64_t size) const {
  halyard_executable_grade_t grade = {};
  grade.struct_size = sizeof grade;
  table().executable_grade(handle_, text_of(format), data, size, &grade);
  return {grade.grade, std::string(grade.reason, ::strnlen(grade.reason, sizeof grade.reason))};
}

Result<> Device::trim() {
  nodes_.trim();
  if (!table().device_trim) return {};
  return to_result(Status::adopt(table().device_trim(handle_)));
}

Result<halyard_memory_statistics_t> Device::statistics() const {
  halyard_memory_statistics_t statistics = {};
  statistics.struct_size = sizeof statistics;
  if (!table().device_memory_statistics) return statistics;
  if (Status status = Status::adopt(table().device_memory_statistics(handle_, &statistics)))
    return std::unexpected(std::move(status));
  return statistics;
}

halyard_memory_request_t Device::memory_request(uint64_t affinity, uint32_t memory_type, uint32_t usage,
                                                uint64_t size) const {
  halyard_memory_request_t request = {};
  request.struct_size = sizeof request;
  request.memory_type = memory_type != 0 ? memory_type : static_cast<uint32_t>(HALYARD_MEMORY_OPTIMAL);
  request.usage = usage != 0 ? usage : static_cast<uint32_t>(HALYARD_USAGE_DEFAULT);
  request.affinity = queues(affinity);
  request.size = size;
  return request;
}

}  // namespace halyard::hal
