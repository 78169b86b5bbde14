// Runs queue work, and holds it until its waits are over.
#include "work.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include "base/thread_local.h"
#include "bytes.h"
#include "command_cost.h"
#include "command_list.h"
#include "dispatch.h"
#include "estimate.h"
#include "halyard/driver/operation_name.hpp"
#include "halyard/driver/trace.hpp"
#include "kernel_runner.h"

namespace halyard::local {

namespace {

using kit::Timepoints;

// The work that remains after the waits. All members are borrowed.
struct Work {
  Device& device;
  const halyard_operation_t& operation;
  BindingTable table;  // for an operation that executes a list
  Memory* transient;   // for an alloca
  Timepoints signals;
  halyard_completed_fn completed;
  void* completed_user;
  const uint32_t* stop;

  Execution execution() const {
    return {table,
            device.thread_pool(),
            &device.instance.nodes,
            &device.services(),
            nullptr,
            nullptr,
            stop,
            device.compile_queue() != nullptr,
            completed_user};
  }
};

bool moves_bytes(uint32_t operation) {
  return operation >= HALYARD_OPERATION_FILL && operation <= HALYARD_OPERATION_WRITE;
}

Result<> run_operation(const Work& work) {
  const halyard_operation_t& operation = work.operation;
  std::optional<kit::TraceSpan> span;  // lists and dispatches have slices of their own
  if (moves_bytes(operation.kind)) {
    span.emplace(work.device.services(), kit::operation_name(operation.kind));
    span->set_command(work.completed_user, nullptr);
  }
  switch (operation.kind) {
    case HALYARD_OPERATION_BARRIER:
      return {};
    case HALYARD_OPERATION_ALLOCA:
      return work.transient->commit();
    case HALYARD_OPERATION_DEALLOCA:
      return operation.dealloca.memory->dealloca();
    case HALYARD_OPERATION_FILL:
      return fill(operation.fill.target, operation.fill.pattern, operation.fill.pattern_size, {});
    case HALYARD_OPERATION_UPDATE:
      return update(operation.update.source, operation.update.target, {});
    case HALYARD_OPERATION_COPY:
      return copy(operation.copy.source, operation.copy.target, {});
    case HALYARD_OPERATION_READ:
      return read_file(operation.read);
    case HALYARD_OPERATION_WRITE:
      return write_file(operation.write);
    case HALYARD_OPERATION_DISPATCH:
      HALYARD_TRY(go_on_unless_stopped(work.stop));
      return dispatch(*operation.dispatch.dispatch, work.execution());
    default:  // HALYARD_OPERATION_EXECUTE: submit() accepts no other kinds
      return operation.execute.list->execute(work.execution());
  }
}

HALYARD_SMALL_THREAD_LOCAL thread_local int work_depth = 0;

// Marks that this thread is running work, or calling the host about it. A device with workers posts work that
// is submitted meanwhile to the workers, so a chain of work does not recurse.
class AtWork {
 public:
  AtWork() { ++work_depth; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  ~AtWork() { --work_depth; }
  static bool is_nested() { return work_depth != 0; }
};

// Runs the operation, unless a wait has failed; then signals the semaphores; then notifies the host.
void finish(const Work& work, HostStatus failure, TaskList& ready) {
  const AtWork at_work;
  if (!failure) {
    kit::trace_began(work.device.services(), work.completed_user);
    failure = kit::guarded(work.device.services(), [&] { return run_operation(work); });
  }
  for (const halyard_timepoint_t& point : work.signals) {
    if (failure) {
      point.semaphore->fail(failure, ready);
    } else {
      point.semaphore->advance(point.value, ready);
    }
  }
  ready.post_to_pools();
  work.completed(work.completed_user, std::move(failure).release());
}

const uint32_t* stop_of(const halyard_submission_t& submission) {
  return HALYARD_HAS_FIELD(&submission, halyard_submission_t, stop) ? submission.stop : nullptr;
}

uint64_t cost_of(const halyard_operation_t& operation) {
  switch (operation.kind) {
    case HALYARD_OPERATION_BARRIER:
    case HALYARD_OPERATION_ALLOCA:
    case HALYARD_OPERATION_DEALLOCA:
      return 0;
    case HALYARD_OPERATION_FILL:
      return bytes_cost(operation.fill.target.length);
    case HALYARD_OPERATION_UPDATE:
      return bytes_cost(operation.update.target.length);
    case HALYARD_OPERATION_COPY:
      return bytes_cost(operation.copy.target.length);
    case HALYARD_OPERATION_DISPATCH:
      return dispatch_cost(*operation.dispatch.dispatch);
    case HALYARD_OPERATION_EXECUTE:
      return operation.execute.list->expected_cost();
    default:  // file transfers
      return kMaxCost;
  }
}

// Held work: waits for its semaphores or for a worker, and lives until it has run and no semaphore refers to
// it. One block of memory contains the object, then its arrays.
class HeldWork final : public Task, public kit::Held<HeldWork, Semaphore, TaskList> {
 public:
  static HeldWork* create(Device& device, const halyard_submission_t& submission, Memory* transient) {
    const halyard_operation_t& operation = *submission.operation;
    const size_t bindings = operation.kind == HALYARD_OPERATION_EXECUTE
                                ? static_cast<size_t>(operation.execute.binding_count)
                                : 0;
    const size_t size = sizeof(HeldWork) + submission.wait_count * sizeof(Wait) +
                        submission.signal_count * sizeof(halyard_timepoint_t) +
                        bindings * sizeof(halyard_binding_t);
    return new (device.instance.nodes.take(size)) HeldWork(device, submission, transient, bindings, size);
  }

  // Starts to wait. Then any thread may make the work ready and run it, so the caller must not use it any
  // more.
  void begin(TaskList& ready) { hold(waits_, ready); }
  void on_ready(TaskList& ready) { ready.push_work(*this); }
  void dispose() {
    NodeCache& nodes = nodes_;  // the device may be closed already
    const size_t size = size_;
    this->~HeldWork();
    nodes.give(this, size);
  }

 private:
  HeldWork(Device& device, const halyard_submission_t& submission, Memory* transient, size_t bindings,
           size_t size)
      : device_(device),
        nodes_(device.instance.nodes),
        size_(size),
        operation_(kit::copy_sized(*submission.operation)),
        transient_(transient),
        completed_(submission.completed),
        completed_user_(submission.completed_user),
        stop_(stop_of(submission)) {
    run = [](Task& self, TaskList& ready) { static_cast<HeldWork&>(self).finish_work(ready); };
    thread_pool = device.thread_pool();
    auto* end = reinterpret_cast<uint8_t*>(this + 1);
    waits_ = array<Wait>(end, submission.wait_count);
    prepare(waits_, {submission.waits, submission.wait_count});
    const auto signals = array<halyard_timepoint_t>(end, submission.signal_count);
    std::copy_n(submission.signals, signals.size(), signals.begin());
    signals_ = signals;
    const auto table = array<halyard_binding_t>(end, bindings);
    std::copy_n(operation_.execute.bindings, bindings, table.begin());
    table_ = table;
  }

  // Allocates the next array in the block.
  template <typename T>
  static std::span<T> array(uint8_t*& end, size_t count) {
    static_assert(alignof(T) <= alignof(HeldWork) && sizeof(T) % alignof(HeldWork) == 0 &&
                  std::is_trivially_destructible_v<T>);
    auto* first = reinterpret_cast<T*>(end);
    std::uninitialized_value_construct_n(first, count);
    end += count * sizeof(T);
    return {first, count};
  }

  void finish_work(TaskList& ready) {
    size_t unwatched = 0;
    HostStatus failed_wait = take_failure(waits_, unwatched);
    finish({device_, operation_, table_, transient_, signals_, completed_, completed_user_, stop_},
           std::move(failed_wait), ready);
    leave(unwatched + 1);
  }

  Device& device_;
  NodeCache& nodes_;
  const size_t size_;  // of the block of memory
  const halyard_operation_t operation_;
  Memory* const transient_;
  const halyard_completed_fn completed_;
  void* const completed_user_;
  const uint32_t* const stop_;
  std::span<Wait> waits_;
  Timepoints signals_;
  BindingTable table_;
};

}  // namespace

Result<> submit(Device& device, const halyard_submission_t& submission, TaskList& ready) {
  const halyard_operation_t& operation = *submission.operation;
  if (operation.kind > HALYARD_OPERATION_EXECUTE)
    return fail(Code::UNIMPLEMENTED, "this device has no queue operation of kind {}", operation.kind);
  NodeCache::Owned<halyard_driver_memory> transient;
  if (operation.kind == HALYARD_OPERATION_ALLOCA) {
    HALYARD_TRY(check_type(*operation.alloca_.request));
    transient =
        device.instance.nodes.make<halyard_driver_memory>(device.heap, *operation.alloca_.request, true);
  }
  Memory* const alloca_memory = transient.get();
  kit::WaitState state = kit::look_at<Semaphore>({submission.waits, submission.wait_count});
  HeldWork* held = nullptr;
  const uint64_t cost = device.thread_pool() ? cost_of(operation) : 0;
  const bool needs_worker = device.thread_pool() && (AtWork::is_nested() || cost >= kWorthWaking);
  if (state.pending || needs_worker) {
    held = HeldWork::create(device, submission, alloca_memory);
    held->is_brief = cost < kBrief;
  }

  // Nothing fails from here on.
  if (transient) {
    transient->describe(*operation.alloca_.info);
    *operation.alloca_.memory = transient.release();
  }
  if (held) {
    held->begin(ready);
    return {};
  }
  BindingTable table;
  if (operation.kind == HALYARD_OPERATION_EXECUTE)
    table = {operation.execute.bindings, static_cast<size_t>(operation.execute.binding_count)};
  finish({device,
          operation,
          table,
          alloca_memory,
          {submission.signals, submission.signal_count},
          submission.completed,
          submission.completed_user,
          stop_of(submission)},
         std::move(state.failure), ready);
  return {};
}

// A thread that is running work returns at once to that work.
void run_pending(Device& device, Timepoints timepoints, bool any) {
  if (device.thread_pool() && !AtWork::is_nested())
    device.thread_pool()->run_pending([&] { return kit::is_over<Semaphore>(timepoints, any); });
}

}  // namespace halyard::local
