// Handles work from submission to completion.
#include "work.h"

#include <algorithm>
#include <array>

#include "command_list.h"

namespace halyard::vulkan {

namespace {

// ---- What the device does

bool computes(const Work& work) {
  const halyard_operation_t& operation = work.operation;
  return operation.kind == HALYARD_OPERATION_DISPATCH ||
         (operation.kind == HALYARD_OPERATION_EXECUTE && operation.execute.list->computes());
}

bool is_for_device(const Work& work) {
  return work.operation.kind != HALYARD_OPERATION_BARRIER &&
         work.operation.kind != HALYARD_OPERATION_ALLOCA && work.operation.kind != HALYARD_OPERATION_DEALLOCA;
}

Result<> encode_operation(const halyard_operation_t& operation, CommandEncoder& encoder) {
  switch (operation.kind) {
    case HALYARD_OPERATION_FILL:
      return encoder.fill(HALYARD_KIT_TRY(resolve(operation.fill.target, {})), operation.fill.pattern,
                          operation.fill.pattern_size);
    case HALYARD_OPERATION_UPDATE:
      return encoder.update(HALYARD_KIT_TRY(resolve(operation.update.target, {})), operation.update.source);
    case HALYARD_OPERATION_COPY:
      return encoder.copy(HALYARD_KIT_TRY(resolve(operation.copy.source, {})),
                          HALYARD_KIT_TRY(resolve(operation.copy.target, {})));
    default:  // HALYARD_OPERATION_DISPATCH
      return encoder.dispatch(*operation.dispatch.dispatch, {});
  }
}

Result<EncodedCommands> commands_for(Work& work, Queue& queue) {
  const halyard_operation_t& operation = work.operation;
  if (operation.kind == HALYARD_OPERATION_EXECUTE)
    return operation.execute.list->commands_for(queue, work.table);
  EncodedCommands use;
  use.once = HALYARD_KIT_TRY(
      work.device->encoders(queue).take([&] { return CommandEncoder::create(*work.device, queue); }));
  HALYARD_KIT_TRY(use.once->begin(true));
  HALYARD_KIT_TRY(encode_operation(operation, *use.once));
  HALYARD_KIT_TRY(use.once->end());
  use.commands = use.once->commands();
  use.timestamps = use.once->timestamps();
  return use;
}

void give_back(EncodedCommands& use, Work& work) {
  if (use.list) use.list->release(use.index);
  if (use.once) work.device->encoders(*work.queue).give(std::move(use.once));
  use = {};
}

// Returns whether the work is in flight; otherwise it has completed.
Result<bool> start(Work& work, TaskList& ready) {
  Device& device = *work.device;
  if (work.transient) HALYARD_KIT_TRY(work.transient->commit());

  // The submissions on the device for which the work waits.
  std::array<QueueSubmission, kMaxQueues> after;
  size_t count = 0;
  work.device_waits.clear();
  for (const Work::Wait& wait : work.waits) {
    if (wait.promised && wait.timeline->import()) {
      const VkSemaphore imported = wait.timeline->await_on_device(wait.value);
      if (!imported) return false;  // it has failed, so the work will fail too
      work.device_waits.add(imported, wait.value);
    }
    if (!wait.submission.queue || &wait.submission.queue->device() != &device) continue;
    QueueSubmission* const found = std::find_if(
        after.data(), after.data() + count,
        [&](const QueueSubmission& submission) { return submission.queue == wait.submission.queue; });
    if (found == after.data() + count) after[count++] = wait.submission;
    found->number = std::max(found->number, wait.submission.number);
  }

  if (is_for_device(work)) {
    Queue& queue = device.queue_for(work.affinity, computes(work));
    work.queue = &queue;
    work.encoded = HALYARD_KIT_TRY(commands_for(work, queue));
    if (Result<> submitted = queue.submit(work, work.encoded.commands, {after.data(), count}, ready);
        !submitted) {
      give_back(work.encoded, work);
      return std::move(submitted.failure());
    }
    return true;
  }
  if (!work.device_waits.semaphores.empty()) {
    HALYARD_KIT_TRY(
        device.queue_for(work.affinity, false).submit(work, VK_NULL_HANDLE, {after.data(), count}, ready));
    return true;
  }
  count = static_cast<size_t>(std::remove_if(after.data(), after.data() + count,
                                             [](const QueueSubmission& submission) {
                                               return submission.queue->has_done(submission.number);
                                             }) -
                              after.data());
  if (count == 0) return false;
  if (count == 1) return after[0].queue->attach(work, after[0].number, ready);
  HALYARD_KIT_TRY(after[0].queue->submit(work, VK_NULL_HANDLE, {after.data(), count}, ready));
  return true;
}

}  // namespace

// Called when all waits have completed, or one has failed.
void Work::issue(TaskList& ready) {
  size_t unwatched = 0;
  Status failed = take_failure(waits, unwatched);
  if (unwatched > 0) leave(unwatched);
  if (!failed) failed = device->lost();
  if (!failed) {
    Device& on = *device;
    bool in_flight = false;
    bool is_lost = false;
    failed = guarded(on.services(), [&]() -> Result<> {
      Result<bool> started = start(*this, ready);
      if (started) {
        in_flight = *started;
        return {};
      }
      is_lost = started.failure().code == HALYARD_ABORTED;
      if (is_lost) {
        LoggedSubmission refused;
        describe(*this, refused);
        on.lose(started.failure(), id != 0 ? &refused : nullptr, ready);
      }
      return std::move(started.failure());
    });
    if (in_flight) return;
    if (is_lost) failed = on.lost();
  }
  finish(std::move(failed), ready);
}

void Work::finish(Status failure, TaskList& ready) {
  if (encoded.commands) give_back(encoded, *this);
  // A promised wait may have failed meanwhile.
  for (const Wait& wait : waits)
    if (!failure && wait.promised && wait.timeline->value() < wait.value) failure = wait.timeline->failure();
  const QueueSubmission submission = {queue && number != 0 ? queue : nullptr, number};
  for (const halyard_timepoint_t& signal : signals) {
    if (failure) {
      signal.semaphore->break_promise(signal.value, submission);
      signal.semaphore->fail(failure, ready);
    } else {
      signal.semaphore->keep(signal.value, submission, ready);
    }
  }
  const halyard_completed_fn notify = completed;
  void* const user = completed_user;
  leave(1);
  notify(user, std::move(failure).release());
}

void Work::begin(const halyard_submission_t& submission, TaskList& ready) {
  run = [](Task& self, TaskList& list) { static_cast<Work&>(self).issue(list); };
  prepare(waits, {submission.waits, submission.wait_count});
  for (Wait& wait : waits) wait.device = device;
  hold(waits, ready);
}

Result<> submit(Device& device, const halyard_submission_t& submission, TaskList& ready) {
  HALYARD_KIT_TRY(device.no_messages());
  const halyard_operation_t& operation = *submission.operation;
  if (operation.kind >= 64 || !(kOperationBits >> operation.kind & 1))
    return fail(HALYARD_UNIMPLEMENTED, "this device has no queue operation of kind {}", operation.kind);
  if (operation.kind == HALYARD_OPERATION_DISPATCH)
    HALYARD_KIT_TRY(check_dispatch(device, *operation.dispatch.dispatch));
  std::unique_ptr<halyard_driver_memory> transient;
  halyard_memory_info_t info = {sizeof info, 0, 0, 0, 0};
  if (operation.kind == HALYARD_OPERATION_ALLOCA)
    transient = HALYARD_KIT_TRY(device.allocate(*operation.alloca_.request, true, info));

  Instance& instance = device.instance();
  std::unique_ptr<Work> work = instance.works.take([] { return std::make_unique<Work>(); });
  work->instance = &instance;
  work->device = &device;
  work->affinity = submission.affinity;
  work->operation = kit::copy_sized(operation);
  work->transient = transient.get();
  work->signals.assign(submission.signals, submission.signals + submission.signal_count);
  work->table.clear();
  if (operation.kind == HALYARD_OPERATION_EXECUTE && operation.execute.binding_count != 0)
    work->table.assign(operation.execute.bindings,
                       operation.execute.bindings + operation.execute.binding_count);
  work->waits.clear();
  work->waits.resize(submission.wait_count);
  work->completed = submission.completed;
  work->completed_user = submission.completed_user;
  work->id = 0;
  work->number = 0;
  work->queue = nullptr;

  // Nothing fails after this point.
  if (transient) {
    kit::fill_sized(*operation.alloca_.info, info);
    *operation.alloca_.memory = transient.release();
  }
  work.release()->begin(submission, ready);
  return {};
}

void describe(const Work& work, LoggedSubmission& submission) {
  const halyard_operation_t& operation = work.operation;
  submission.id = work.id;
  submission.number = work.number;
  submission.queue = work.queue ? work.queue->traits().position : 0;
  submission.operation = operation.kind;
  if (operation.kind == HALYARD_OPERATION_EXECUTE) {
    submission.label = operation.execute.list->label();
    return;
  }
  submission.label = {};
  if (operation.kind == HALYARD_OPERATION_DISPATCH) {
    const halyard_command_dispatch_t& dispatch = *operation.dispatch.dispatch;
    submission.label.add_function(dispatch.executable->pipeline(dispatch.function).name);
  }
}

}  // namespace halyard::vulkan
