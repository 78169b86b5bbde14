// One submission without waits and signals, on memory that is imported for it.
#include "hal/command/direct_dispatch.h"

#include <algorithm>
#include <atomic>

#include "base/atomics.h"
#include "base/wait.h"
#include "hal/command/command_buffer.h"
#include "hal/device/callback_scope.h"
#include "hal/trace/device_trace.h"

namespace halyard::hal {

namespace {

// The imported handles of the bindings.
class Imports {
 public:
  explicit Imports(Device& device) : device_(device) {}
  Imports(const Imports&) = delete;
  Imports& operator=(const Imports&) = delete;
  ~Imports() {
    for (size_t i = 0; i < count_; ++i) device_.table().memory_free(device_.handle(), handles_[i]);
  }

  // Imports must begin at a multiple of the device's alignment, so the import begins at the multiple before
  // the binding, and the range has an offset.
  Result<halyard_range_t> add(const HostBinding& binding) {
    alignas(kNothing) static constexpr uint8_t nothing[kNothing] = {};
    const uint64_t alignment = device_.properties().import_alignment;
    uintptr_t address = reinterpret_cast<uintptr_t>(binding.bytes.data());
    if (binding.bytes.empty() && address < alignment) address = reinterpret_cast<uintptr_t>(nothing);
    const uint64_t offset = address & (alignment - 1);
    halyard_memory_request_t request = {};
    request.struct_size = sizeof request;
    request.memory_type = HALYARD_MEMORY_OPTIMAL;
    request.usage = HALYARD_USAGE_STORAGE;
    request.affinity = device_.queues(kAnyQueue);
    request.size = offset + binding.bytes.size();
    halyard_external_memory_t external = {};
    external.struct_size = sizeof external;
    external.kind = HALYARD_EXTERNAL_HOST_ALLOCATION;
    external.pointer = reinterpret_cast<void*>(address - offset);
    external.fd = -1;
    external.access = HALYARD_MAP_READ;
    if (binding.is_mutable) external.access |= HALYARD_MAP_WRITE;
    if (binding.is_private) external.access |= HALYARD_MAP_PRIVATE;
    external.size = request.size;
    halyard_memory_info_t info = {};
    info.struct_size = sizeof info;
    halyard_driver_memory_t& memory = handles_[count_];
    memory = nullptr;
    if (halyard_status_t status =
            device_.table().memory_import(device_.handle(), &request, &external, &memory, &info))
      return std::unexpected(Status::adopt(status));
    HALYARD_TRY(device_.check_given(memory, "memory_import"));
    ++count_;
    return halyard_range_t{memory, 0, 0, offset, binding.bytes.size()};
  }

 private:
  static constexpr size_t kNothing = 4096;  // an address for empty bindings, aligned for any device

  Device& device_;
  size_t count_ = 0;
  halyard_driver_memory_t handles_[kMaxBindings];
};

// The end of the work. Most devices that use this function complete the work within queue_submit; then no
// lock is taken.
class Completion : public WorkTrace {
 public:
  void* user() { return static_cast<WorkTrace*>(this); }  // every submission has one, for the tracer
  static void complete(void* user, halyard_status_t handle) noexcept {
    const CallbackScope scope;
    auto& self = *static_cast<Completion*>(static_cast<WorkTrace*>(user));
    self.trace_done();
    self.status_ = Status::adopt(handle);
    // If no thread is blocked, `self` may be destroyed already, so it must not be accessed any more.
    if (exchange(self.state_, State::over, std::memory_order_acq_rel) == State::awaited) self.wait_.arrive();
  }
  Status wait() {
    if (state_.load(std::memory_order_acquire) == State::under_way) {
      wait_.begin();
      auto known = State::under_way;
      if (state_.compare_exchange_strong(known, State::awaited, std::memory_order_acq_rel)) wait_.block({});
    }
    return std::move(status_);
  }

 private:
  enum class State : uint8_t { under_way, awaited, over };

  Status status_;
  std::atomic<State> state_ = State::under_way;
  Wait wait_;  // begun only if needed
};

}  // namespace

Result<> dispatch_now(Executable& executable, uint64_t function, const std::array<uint32_t, 3>& workgroups,
                      std::span<const uint32_t> constants, std::span<const HostBinding> bindings,
                      const WorkScope* scope) {
  Device& device = executable.device();
  const halyard_driver_table_t& table = device.table();
  if (!table.memory_import || device.properties().import_alignment == 0 ||
      !device.has_operation(HALYARD_OPERATION_DISPATCH))
    return fail(Code::UNIMPLEMENTED,
                "device '{}' cannot dispatch over memory of the host: it lacks memory_import or the "
                "operation dispatch",
                device.uri());
  HALYARD_TRY(executable.check_dispatch(function, constants.size(), bindings.size()));
  if (std::ranges::find(workgroups, 0u) != workgroups.end()) return {};

  Imports imports(device);
  halyard_range_t ranges[kMaxBindings];
  for (size_t i = 0; i < bindings.size(); ++i) {
    Result<halyard_range_t> range = imports.add(bindings[i]);
    if (!range) return std::unexpected(std::move(range.error()).note(fmt::format("binding[{}]", i)));
    ranges[i] = *range;
  }
  halyard_command_dispatch_t command = {};
  command.header = {sizeof command, HALYARD_COMMAND_DISPATCH};
  command.executable = executable.handle();
  command.function = static_cast<uint32_t>(function);
  std::ranges::copy(workgroups, command.workgroups);
  command.constant_count = static_cast<uint32_t>(constants.size());
  command.binding_count = static_cast<uint32_t>(bindings.size());
  command.constants = constants.data();
  command.bindings = ranges;
  halyard_operation_t operation = {};
  operation.struct_size = sizeof operation;
  operation.kind = HALYARD_OPERATION_DISPATCH;
  operation.dispatch.dispatch = &command;
  Completion completion;
  halyard_submission_t submission = {};
  submission.struct_size = sizeof submission;
  submission.affinity = device.queues(kAnyQueue);
  submission.operation = &operation;
  submission.stop = scope ? scope->stop_word() : nullptr;
  submission.completed = Completion::complete;
  submission.completed_user = completion.user();
  completion.trace_submit(device.trace(), operation.kind);
  if (halyard_status_t status = table.queue_submit(device.handle(), &submission))
    return std::unexpected(Status::adopt(status));
  return to_result(completion.wait());
}

}  // namespace halyard::hal
