// Doing work, and holding work until it is due.
#include "queue.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "commands.h"

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
};

Result<> run_operation(const Work& work) {
  const halyard_operation_t& operation = work.operation;
  switch (operation.kind) {
    case HALYARD_OPERATION_BARRIER:
      return {};
    case HALYARD_OPERATION_ALLOCA:
      return work.transient->commit();
    case HALYARD_OPERATION_DEALLOCA:
      return {};  // the bytes go with the handle: device_memory.h
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
      return dispatch(*operation.dispatch.dispatch, {});
    default:  // HALYARD_OPERATION_EXECUTE: submit() takes no others
      return operation.execute.list->execute(work.table);
  }
}

// The operation, unless a wait has failed; then the signals; then the host is told.
void finish(const Work& work, HostStatus failure, DueList& due) {
  if (!failure) failure = guarded(work.device.services(), [&] { return run_operation(work); });
  for (const halyard_timepoint_t& point : work.signals) {
    if (failure) {
      point.semaphore->fail(failure, due);
    } else {
      point.semaphore->advance(point.value, due);
    }
  }
  work.completed(work.completed_user, std::move(failure).release());
}

// As much as its writer knew.
halyard_operation_t copy_of(const halyard_operation_t& operation) {
  halyard_operation_t copy = {};
  std::memcpy(&copy, &operation, std::min<size_t>(operation.struct_size, sizeof copy));
  return copy;
}

// Work that waits. It lives until it is done and no semaphore can call it any more.
struct HeldWork final : Due {
  struct Wait : Waiter {
    HeldWork* owner = nullptr;
    Semaphore* semaphore = nullptr;
  };

  HeldWork(Device& on, const halyard_submission_t& submission, Memory* alloca_memory)
      : device(on),
        operation(copy_of(*submission.operation)),
        transient(alloca_memory),
        signals(submission.signals, submission.signals + submission.signal_count),
        completed(submission.completed),
        completed_user(submission.completed_user),
        waits(submission.wait_count),
        pending(submission.wait_count),
        references(submission.wait_count + 1) {
    run = [](Due& self, DueList& due) { static_cast<HeldWork&>(self).finish_work(due); };
    if (operation.kind == HALYARD_OPERATION_EXECUTE) {
      const halyard_operation_execute_t& execute = operation.execute;
      table.assign(execute.bindings, execute.bindings + execute.binding_count);
    }
    for (size_t i = 0; i < waits.size(); ++i) {
      waits[i].value = submission.waits[i].value;
      waits[i].settled = wait_settled;
      waits[i].owner = this;
      waits[i].semaphore = submission.waits[i].semaphore;
    }
  }

  // Lists the waits. From then on any thread may make the work due and do it: this may not be touched any
  // more.
  static void hold(HeldWork* work, DueList& due) {
    for (Wait& wait : work->waits)
      if (!wait.semaphore->watch(wait)) wait_settled(wait, wait.semaphore->failure(), due);
    bool is_due = false;
    {
      const std::lock_guard lock(work->mutex);
      work->complete = true;
      is_due = work->claim();
    }
    if (is_due) due.push_work(*work);
  }

  static void wait_settled(Waiter& waiter, HostStatus failure, DueList& due) {
    HeldWork* work = static_cast<Wait&>(waiter).owner;
    bool is_due = false;
    {
      const std::lock_guard lock(work->mutex);
      --work->pending;
      if (failure && !work->failure) work->failure = std::move(failure);
      is_due = work->claim();
    }
    if (is_due) due.push_work(*work);
    work->release();
  }

  void finish_work(DueList& due) {
    HostStatus failed_wait;
    {
      const std::lock_guard lock(mutex);
      failed_wait = std::move(failure);
    }
    size_t released = 1;  // the work's own
    if (failed_wait) {    // the other waits are of no interest any more
      for (Wait& wait : waits)
        if (wait.semaphore->unwatch(wait)) ++released;
    }
    finish({device, operation, table, transient, signals, completed, completed_user}, std::move(failed_wait),
           due);
    release(released);
  }

 private:
  // Under the lock: whether the work became due now. A failure does not wait for the other waits.
  bool claim() {
    if (!complete || claimed || (pending > 0 && !failure)) return false;
    claimed = true;
    return true;
  }

  void release(size_t count = 1) {
    if (references.fetch_sub(count, std::memory_order_acq_rel) == count) delete this;
  }

  Device& device;
  const halyard_operation_t operation;
  std::vector<halyard_binding_t> table;
  Memory* const transient;
  const std::vector<halyard_timepoint_t> signals;
  const halyard_completed_fn completed;
  void* const completed_user;
  std::vector<Wait> waits;

  std::mutex mutex;
  size_t pending;                  // waits that are not settled
  bool complete = false;           // all waits are listed
  bool claimed = false;            // somebody does it or has done it
  HostStatus failure;              // of the first wait that failed
  std::atomic<size_t> references;  // one for each wait that is not settled, one for the work
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
  std::unique_ptr<halyard_driver_memory> transient;
  if (operation.kind == HALYARD_OPERATION_ALLOCA) {
    HALYARD_TRY(check_type(*operation.alloca_.request));
    transient = std::make_unique<halyard_driver_memory>(device.heap, *operation.alloca_.request);
  }
  WaitState state = look_at({submission.waits, submission.wait_count});
  std::unique_ptr<HeldWork> held;
  if (state.pending) held = std::make_unique<HeldWork>(device, submission, transient.get());

  // Nothing fails from here on.
  Memory* const alloca_memory = transient.get();
  if (transient) {
    transient->describe(*operation.alloca_.info);
    *operation.alloca_.memory = transient.release();
  }
  if (held) {
    HeldWork::hold(held.release(), due);
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
          submission.completed_user},
         std::move(state.failure), due);
  return {};
}

}  // namespace halyard::local
