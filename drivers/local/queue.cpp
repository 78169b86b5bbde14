// Doing work, and holding work until it is due.
#include "queue.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>

#include "base/thread_local.h"
#include "dispatch.h"
#include "estimate.h"
#include "trace.h"

namespace halyard::local {

namespace {

using Timepoints = std::span<const halyard_timepoint_t>;

// What there is to do after the waits. Borrows everything.
struct Work {
  Device& device;
  const halyard_operation_t& operation;
  BindingTable table;  // the operation's, if it executes a list
  Memory* transient;   // the operation's, if it is an alloca
  Timepoints signals;
  halyard_completed_fn completed;
  void* completed_user;
  const uint32_t* stop;

  Execution execution() const {
    return {table, device.workers(), &device.instance.nodes, &device.services(), false, stop};
  }
};

Result<> run_operation(const Work& work) {
  const halyard_operation_t& operation = work.operation;
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
    default:  // HALYARD_OPERATION_EXECUTE: submit() takes no others
      return operation.execute.list->execute(work.execution());
  }
}

HALYARD_SMALL_THREAD_LOCAL thread_local int work_depth = 0;

// This thread is doing a piece of work, or telling the host about it. What is submitted meanwhile goes to the
// workers, where there are some: a chain of work is no recursion.
class AtWork {
 public:
  AtWork() { ++work_depth; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  ~AtWork() { --work_depth; }
  static bool is_nested() { return work_depth != 0; }
};

// The operation, unless a wait has failed; then the signals; then the host is told.
void finish(const Work& work, HostStatus failure, DueList& due) {
  const AtWork at_work;
  if (!failure) {
    trace_began(work.device.services(), work.completed_user);
    failure = guarded(work.device.services(), [&] { return run_operation(work); });
  }
  for (const halyard_timepoint_t& point : work.signals) {
    if (failure) {
      point.semaphore->fail(failure, due);
    } else {
      point.semaphore->advance(point.value, due);
    }
  }
  due.hand_over();
  work.completed(work.completed_user, std::move(failure).release());
}

const uint32_t* stop_of(const halyard_submission_t& submission) {
  return HALYARD_HAS_FIELD(&submission, halyard_submission_t, stop) ? submission.stop : nullptr;
}

// As much as its writer knew.
halyard_operation_t copy_of(const halyard_operation_t& operation) {
  halyard_operation_t copy = {};
  std::memcpy(&copy, &operation, std::min<size_t>(operation.struct_size, sizeof copy));
  return copy;
}

// Work that waits, for its waits or for a worker. It lives until it is done and no semaphore can call it any
// more. One block of memory: this, then the arrays.
class HeldWork final : public Due {
 public:
  struct Wait : Waiter {
    HeldWork* owner = nullptr;
    Semaphore* semaphore = nullptr;
  };

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

  // Lists the waits. From then on any thread may make the work due and do it: this may not be touched any
  // more.
  static void hold(HeldWork* work, DueList& due) {
    for (Wait& wait : work->waits_)
      if (!wait.semaphore->watch(wait)) wait_settled(wait, wait.semaphore->failure(), due);
    bool is_due = false;
    {
      const std::lock_guard lock(work->mutex_);
      work->complete_ = true;
      is_due = work->claim();
    }
    if (is_due) due.push_work(*work);
  }

 private:
  HeldWork(Device& device, const halyard_submission_t& submission, Memory* transient, size_t bindings,
           size_t size)
      : device_(device),
        nodes_(device.instance.nodes),
        size_(size),
        operation_(copy_of(*submission.operation)),
        transient_(transient),
        completed_(submission.completed),
        completed_user_(submission.completed_user),
        stop_(stop_of(submission)),
        pending_(submission.wait_count),
        references_(submission.wait_count + 1) {
    run = [](Due& self, DueList& due) { static_cast<HeldWork&>(self).finish_work(due); };
    workers = device.workers();
    auto* end = reinterpret_cast<uint8_t*>(this + 1);
    waits_ = array<Wait>(end, submission.wait_count);
    for (size_t i = 0; i < waits_.size(); ++i) {
      waits_[i].value = submission.waits[i].value;
      waits_[i].settled = wait_settled;
      waits_[i].owner = this;
      waits_[i].semaphore = submission.waits[i].semaphore;
    }
    const auto signals = array<halyard_timepoint_t>(end, submission.signal_count);
    std::copy_n(submission.signals, signals.size(), signals.begin());
    signals_ = signals;
    const auto table = array<halyard_binding_t>(end, bindings);
    std::copy_n(operation_.execute.bindings, bindings, table.begin());
    table_ = table;
  }

  // The next array of the block.
  template <typename T>
  static std::span<T> array(uint8_t*& end, size_t count) {
    static_assert(alignof(T) <= alignof(HeldWork) && sizeof(T) % alignof(HeldWork) == 0 &&
                  std::is_trivially_destructible_v<T>);
    auto* first = reinterpret_cast<T*>(end);
    std::uninitialized_value_construct_n(first, count);
    end += count * sizeof(T);
    return {first, count};
  }

  static void wait_settled(Waiter& waiter, HostStatus failure, DueList& due) {
    HeldWork* work = static_cast<Wait&>(waiter).owner;
    bool is_due = false;
    {
      const std::lock_guard lock(work->mutex_);
      --work->pending_;
      if (failure && !work->failure_) work->failure_ = std::move(failure);
      is_due = work->claim();
    }
    if (is_due) due.push_work(*work);
    work->release(1);
  }

  void finish_work(DueList& due) {
    HostStatus failed_wait;
    {
      const std::lock_guard lock(mutex_);
      failed_wait = std::move(failure_);
    }
    size_t released = 1;  // the work's own
    if (failed_wait) {    // the other waits are of no interest any more
      for (Wait& wait : waits_)
        if (wait.semaphore->unwatch(wait)) ++released;
    }
    finish({device_, operation_, table_, transient_, signals_, completed_, completed_user_, stop_},
           std::move(failed_wait), due);
    release(released);
  }

  // Under the lock: whether the work became due now. A failure does not wait for the other waits.
  bool claim() {
    if (!complete_ || claimed_ || (pending_ > 0 && !failure_)) return false;
    claimed_ = true;
    return true;
  }

  void release(size_t count) {
    if (references_.fetch_sub(count, std::memory_order_acq_rel) != count) return;
    NodeCache& nodes = nodes_;  // the device may have closed
    const size_t size = size_;
    this->~HeldWork();
    nodes.give(this, size);
  }

  Device& device_;
  NodeCache& nodes_;
  const size_t size_;  // of the block
  const halyard_operation_t operation_;
  Memory* const transient_;
  const halyard_completed_fn completed_;
  void* const completed_user_;
  const uint32_t* const stop_;
  std::span<Wait> waits_;
  Timepoints signals_;
  BindingTable table_;

  std::mutex mutex_;
  size_t pending_;                  // waits that are not settled
  bool complete_ = false;           // all waits are listed
  bool claimed_ = false;            // somebody does it or has done it
  HostStatus failure_;              // of the first wait that failed
  std::atomic<size_t> references_;  // one for each wait that is not settled, one for the work
};

struct WaitState {
  bool pending = false;
  HostStatus failure;
};

// A failure is looked for first.
WaitState look_at(Timepoints waits) {
  WaitState state;
  for (const halyard_timepoint_t& point : waits) {
    const Progress progress = point.semaphore->progress(point.value);
    if (progress == Progress::failed) return {false, point.semaphore->failure()};
    if (progress == Progress::pending) state.pending = true;
  }
  return state;
}

}  // namespace

Result<> submit(Device& device, const halyard_submission_t& submission, DueList& due) {
  HALYARD_TRY(check_extensions(submission.extensions));
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
  WaitState state = look_at({submission.waits, submission.wait_count});
  HeldWork* held = nullptr;
  const uint64_t cost = device.workers() ? cost_of(operation) : 0;
  const bool needs_worker = device.workers() && (AtWork::is_nested() || cost >= kWorthWaking);
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
    HeldWork::hold(held, due);
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
         std::move(state.failure), due);
  return {};
}

// Within other work there is enough to do.
void help(Device& device, Timepoints timepoints, bool any) {
  if (device.workers() && !AtWork::is_nested())
    device.workers()->help([&] { return is_over(timepoints, any); });
}

}  // namespace halyard::local
