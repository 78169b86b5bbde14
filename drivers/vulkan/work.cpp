// From a submission to its end.
#include "work.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "command_list.h"

namespace halyard::vulkan {

namespace {

// As much as its writer knew.
halyard_operation_t copy_of(const halyard_operation_t& operation) {
  halyard_operation_t copy = {};
  std::memcpy(&copy, &operation, std::min<size_t>(operation.struct_size, sizeof copy));
  return copy;
}

void release(Work* work, size_t count) {
  if (work->references.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  work->instance->works.give(std::unique_ptr<Work>(work));
}

// Under the lock: whether the work became due now. A failure does not wait for the other waits.
bool claim(Work& work) {
  if (!work.complete || work.claimed || (work.pending > 0 && !work.failure)) return false;
  work.claimed = true;
  return true;
}

void wait_settled(Waiter& waiter, HostStatus failure, DueList& due) {
  Work* work = static_cast<Work::Wait&>(waiter).owner;
  bool is_due = false;
  {
    const std::lock_guard lock(work->mutex);
    --work->pending;
    if (failure && !work->failure) work->failure = std::move(failure);
    is_due = claim(*work);
  }
  if (is_due) due.push_work(*work);
  release(work, 1);
}

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

Result<> record_operation(const halyard_operation_t& operation, Recorder& recorder) {
  switch (operation.kind) {
    case HALYARD_OPERATION_FILL:
      return recorder.fill(HALYARD_TRY(resolve(operation.fill.target, {})), operation.fill.pattern,
                           operation.fill.pattern_size);
    case HALYARD_OPERATION_UPDATE:
      return recorder.update(HALYARD_TRY(resolve(operation.update.target, {})), operation.update.source);
    case HALYARD_OPERATION_COPY:
      return recorder.copy(HALYARD_TRY(resolve(operation.copy.source, {})),
                           HALYARD_TRY(resolve(operation.copy.target, {})));
    default:  // HALYARD_OPERATION_DISPATCH
      return recorder.dispatch(*operation.dispatch.dispatch, {});
  }
}

Result<RecordingUse> commands_for(Work& work, Queue& queue) {
  const halyard_operation_t& operation = work.operation;
  if (operation.kind == HALYARD_OPERATION_EXECUTE)
    return operation.execute.list->commands_for(queue, work.table);
  RecordingUse use;
  use.once =
      HALYARD_TRY(work.device->recorders(queue).take([&] { return Recorder::create(*work.device, queue); }));
  HALYARD_TRY(use.once->begin(true));
  HALYARD_TRY(record_operation(operation, *use.once));
  HALYARD_TRY(use.once->end());
  use.commands = use.once->commands();
  use.timestamps = use.once->timestamps();
  return use;
}

void give_back(RecordingUse& use, Work& work) {
  if (use.list) use.list->release(use.index);
  if (use.once) work.device->recorders(*work.queue).give(std::move(use.once));
  use = {};
}

// Whether the work is in flight; otherwise it is done.
Result<bool> start(Work& work, DueList& due) {
  Device& device = *work.device;
  if (work.transient) HALYARD_TRY(work.transient->commit());

  // Where on the device its waits are.
  constexpr size_t kMostPoints = 64;
  std::array<QueuePoint, kMostPoints> points;
  size_t count = 0;
  work.device_waits.clear();
  for (const Work::Wait& wait : work.waits) {
    if (wait.promised && wait.semaphore->import()) {
      const VkSemaphore imported = wait.semaphore->await_on_device(wait.value);
      if (!imported) return false;  // it has failed, and so will the work
      work.device_waits.add(imported, wait.value);
    }
    if (!wait.point.queue || &wait.point.queue->device() != &device) continue;
    QueuePoint* const found =
        std::find_if(points.data(), points.data() + count,
                     [&](const QueuePoint& point) { return point.queue == wait.point.queue; });
    if (found == points.data() + count) points[count++] = wait.point;  // a device has 64 queues at most
    found->number = std::max(found->number, wait.point.number);
  }

  if (is_for_device(work)) {
    Queue& queue = device.queue_for(work.affinity, computes(work));
    work.queue = &queue;
    work.recording = HALYARD_TRY(commands_for(work, queue));
    if (Result<> submitted = queue.submit(work, work.recording.commands, {points.data(), count}, due);
        !submitted) {
      give_back(work.recording, work);
      return std::unexpected(std::move(submitted).error());
    }
    return true;
  }
  if (!work.device_waits.semaphores.empty()) {
    HALYARD_TRY(
        device.queue_for(work.affinity, false).submit(work, VK_NULL_HANDLE, {points.data(), count}, due));
    return true;
  }
  count = static_cast<size_t>(
      std::remove_if(points.data(), points.data() + count,
                     [](const QueuePoint& point) { return point.queue->has_done(point.number); }) -
      points.data());
  if (count == 0) return false;
  if (count == 1) return points[0].queue->attach(work, points[0].number, due);
  HALYARD_TRY(points[0].queue->submit(work, VK_NULL_HANDLE, {points.data(), count}, due));
  return true;
}

// All waits are settled, or one has failed.
void issue(Due& due_work, DueList& due) {
  auto* work = static_cast<Work*>(&due_work);
  HostStatus failure;
  {
    const std::lock_guard lock(work->mutex);
    failure = std::move(work->failure);
    work->failure = HostStatus();
  }
  if (failure) {  // the other waits are of no interest any more
    size_t released = 0;
    for (Work::Wait& wait : work->waits)
      if (wait.semaphore->unwatch(wait)) ++released;
    if (released > 0) release(work, released);
  } else {
    failure = work->device->lost();
  }
  if (!failure) {
    Device& device = *work->device;
    const Services& services = device.services();
    bool in_flight = false;
    bool is_lost = false;
    failure = guarded(services, [&]() -> Result<> {
      Result<bool> started = start(*work, due);
      if (started) {
        in_flight = *started;
        return {};
      }
      is_lost = started.error().code == Code::ABORTED;
      if (is_lost) device.lose(started.error(), work, due);
      return std::unexpected(std::move(started).error());
    });
    if (in_flight) return;
    if (is_lost) failure = device.lost();
  }
  Work::finish(work, std::move(failure), due);
}

}  // namespace

void Work::finish(Work* work, HostStatus failure, DueList& due) {
  if (work->recording.commands) give_back(work->recording, *work);
  // A wait that was promised may have failed since.
  for (const Wait& wait : work->waits)
    if (!failure && wait.promised && wait.semaphore->value() < wait.value)
      failure = wait.semaphore->failure();
  const QueuePoint point = {work->queue && work->number != 0 ? work->queue : nullptr, work->number};
  for (const halyard_timepoint_t& signal : work->signals) {
    if (failure) {
      signal.semaphore->break_promise(signal.value, point);
      signal.semaphore->fail(failure, due);
    } else {
      signal.semaphore->keep(signal.value, point, due);
    }
  }
  const halyard_completed_fn completed = work->completed;
  void* const user = work->completed_user;
  release(work, 1);
  completed(user, std::move(failure).release());
}

Result<> submit(Device& device, const halyard_submission_t& submission, DueList& due) {
  HALYARD_TRY(check_extensions(submission.extensions));
  HALYARD_TRY(device.no_messages());
  const halyard_operation_t& operation = *submission.operation;
  if (operation.kind >= 64 || !(kOperationBits >> operation.kind & 1))
    return fail(Code::UNIMPLEMENTED, "this device has no queue operation of kind {}", operation.kind);
  if (operation.kind == HALYARD_OPERATION_DISPATCH)
    HALYARD_TRY(check_dispatch(device, *operation.dispatch.dispatch));
  std::unique_ptr<halyard_driver_memory> transient;
  if (operation.kind == HALYARD_OPERATION_ALLOCA)
    transient = HALYARD_TRY(Memory::create(device.heap(), device.tally(), *operation.alloca_.request));

  Instance& instance = device.instance();
  std::unique_ptr<Work> node = HALYARD_TRY(
      instance.works.take([]() -> Result<std::unique_ptr<Work>> { return std::make_unique<Work>(); }));
  Work* work = node.get();
  work->run = issue;
  work->instance = &instance;
  work->device = &device;
  work->affinity = submission.affinity;
  work->operation = copy_of(operation);
  work->transient = transient.get();
  work->signals.assign(submission.signals, submission.signals + submission.signal_count);
  work->table.clear();
  if (operation.kind == HALYARD_OPERATION_EXECUTE && operation.execute.binding_count != 0)
    work->table.assign(operation.execute.bindings,
                       operation.execute.bindings + operation.execute.binding_count);
  work->waits.clear();
  work->waits.resize(submission.wait_count);
  for (size_t i = 0; i < work->waits.size(); ++i) {
    Work::Wait& wait = work->waits[i];
    wait.value = submission.waits[i].value;
    wait.settled = wait_settled;
    wait.device = &device;
    wait.owner = work;
    wait.semaphore = submission.waits[i].semaphore;
  }
  work->completed = submission.completed;
  work->completed_user = submission.completed_user;
  work->pending = work->waits.size();
  work->complete = false;
  work->claimed = false;
  work->failure = HostStatus();
  work->references = work->waits.size() + 1;
  work->id = 0;
  work->number = 0;
  work->queue = nullptr;

  // Nothing fails from here on.
  if (transient) {
    transient->describe(*operation.alloca_.info);
    *operation.alloca_.memory = transient.release();
  }
  (void)node.release();
  for (Work::Wait& wait : work->waits)
    if (!wait.semaphore->watch(wait)) wait_settled(wait, wait.semaphore->failure(), due);
  bool is_due = false;
  {
    const std::lock_guard lock(work->mutex);
    work->complete = true;
    is_due = claim(*work);
  }
  if (is_due) due.push_work(*work);
  return {};
}

void describe(const Work& work, Submission& submission) {
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
