// Converts queue work to submissions of the driver ABI, and retains the objects until the work has completed.
#include "hal/queue/submission.h"

#include <utility>

#include "base/c_boundary.h"
#include "hal/device/callback_scope.h"
#include "hal/driver/driver_memory.h"
#include "hal/queue/semaphore_fd.h"
#include "hal/queue/wait.h"

namespace halyard::hal {

namespace {

constexpr const char* kCharged = "queue work";

// `more`: additional bytes to charge.
Result<> charge_work(Charge& charge, const QueuePoint& point, uint64_t more) {
  const uint64_t timepoints = (point.wait ? point.wait->timepoints().size() : 0) +
                              (point.signal ? point.signal->timepoints().size() : 0);
  return charge.start(point.memory,
                      saturating_add(NodePool::footprint(sizeof(InFlight)) + driver_memory::kSubmission +
                                         timepoints * driver_memory::kTimepoint,
                                     more),
                      kCharged);
}

void completed(void* user, halyard_status_t handle) noexcept {
  const CallbackScope scope;
  auto* work = static_cast<InFlight*>(static_cast<WorkTrace*>(user));
  work->result = Status::adopt(handle);
  work->log_memory(work->result.ok());
  if (const InFlight::FileWrite& write = work->write; work->result.ok() && write.source)
    work->result = outcome_of([&] {
      return write.source->read(write.source_offset, write.target->bytes().data() + write.target_offset,
                                write.length);
    });
  run_step(*work);
}

}  // namespace

Result<OwnWork> make_work(const QueuePoint& point, uint64_t more) {
  OwnWork work(new_pooled<InFlight>(point.device, point));
  if (point.memory) [[unlikely]]
    HALYARD_TRY(charge_work(work->charge, point, more));
  return work;
}

halyard_operation_t operation_of(uint32_t kind) {
  halyard_operation_t operation = {};
  operation.struct_size = sizeof(operation);
  operation.kind = kind;
  return operation;
}

Result<> submit(OwnWork work, const QueuePoint& point, const halyard_operation_t& operation) {
  Device& device = work->device();
  halyard_submission_t submission = {};
  submission.struct_size = sizeof(submission);
  submission.affinity = device.queues(point.affinity);

  boost::container::small_vector<Ref<Semaphore>, 1> bridges;  // of the waits for other drivers, in order
  boost::container::small_vector<halyard_timepoint_t, 8> timepoints;  // waits, then signals
  if (point.wait) {
    for (const Timepoint& timepoint : point.wait->timepoints()) {
      if (is_of_driver(timepoint, device)) {
        timepoints.push_back({timepoint.semaphore->handle(), timepoint.value});
        continue;
      }
      constexpr uint64_t kBridge = NodePool::footprint(sizeof(Semaphore)) + driver_memory::kSemaphore +
                                   2 * driver_memory::kSubscription;
      HALYARD_TRY(work->charge.grow_by(kBridge, kCharged));
      Timepoint own = HALYARD_TRY(own_timepoint(device, timepoint));
      work->use(*own.semaphore);
      timepoints.push_back({own.semaphore->handle(), own.value});
      bridges.push_back(std::move(own.semaphore));
    }
  }
  const size_t wait_count = timepoints.size();
  if (work->signal && work->host_signals == HostSignals::foreign) {
    for (const Timepoint& timepoint : work->signal->timepoints())
      if (is_of_driver(timepoint, device))
        timepoints.push_back({timepoint.semaphore->handle(), timepoint.value});
  }
  work->waits.reserve(wait_count);  // accepted work must not fail for lack of memory
  submission.wait_count = static_cast<uint32_t>(wait_count);
  submission.waits = timepoints.data();
  submission.signal_count = static_cast<uint32_t>(timepoints.size() - wait_count);
  submission.signals = timepoints.data() + wait_count;
  submission.operation = &operation;
  submission.stop = work->scope ? work->scope->stop_word() : nullptr;
  submission.completed = completed;
  submission.completed_user = static_cast<WorkTrace*>(work.get());
  work->trace_submit(device.trace(), operation.kind, point.wait, work->commands);
  if (point.execution) point.execution->store(work->execution(), std::memory_order_relaxed);
  if (halyard_status_t status = device.table().queue_submit(device.handle(), &submission)) {
    // If the driver refuses an alloca, there is no memory, even if the driver has stored a handle here.
    if (operation.kind == HALYARD_OPERATION_ALLOCA) *operation.alloca_.memory = nullptr;
    return std::unexpected(Status::adopt(status));
  }
  work->reservation.keep();

  if (work->is_over()) {
    // On other devices, whether a failure is returned would depend on timing.
    if (!(device.properties().capabilities & HALYARD_DEVICE_RUNS_IN_CALLER)) return {};
    return to_result(std::move(work->result));
  }
  if (point.wait) {
    size_t bridge = 0;
    for (const Timepoint& timepoint : point.wait->timepoints()) {
      Semaphore& semaphore = is_of_driver(timepoint, device) ? *timepoint.semaphore : *bridges[bridge++];
      work->waits.push_back({semaphore, timepoints[work->waits.size()].value});
    }
  }
  work->keep();
  work.release()->drop_holder();
  return {};
}

Result<> hold(const QueuePoint& point, uint64_t kept,
              std::move_only_function<Result<>(const QueuePoint&)> again) {
  Charge charge;
  HALYARD_TRY(charge_work(charge, point, kept));
  return when_reached(point.wait, [again = std::move(again), device = Ref<Device>::share(&point.device),
                                   affinity = point.affinity, signal = Ref<Fence>::share(point.signal),
                                   charge = std::move(charge), memory = Ref<Budget>::share(point.memory),
                                   scope = Ref<WorkScope>::share(point.scope)](Status status) mutable {
    charge = {};
    if (status.ok())
      status = outcome_of(
          [&] { return again({*device, affinity, nullptr, signal.get(), memory.get(), scope.get()}); });
    // No effect on signals that have already failed.
    if (!status.ok()) make_signals(signal.get(), *device, HostSignals::all, status);
  });
}

}  // namespace halyard::hal
