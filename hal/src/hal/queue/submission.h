// One submission to a driver: the objects that it needs until it has completed, and its submission.
// To wait for another driver, it waits for a semaphore of the executing device that follows the foreign
// semaphore (hal/queue/semaphore_fd.h). The host signals foreign semaphores on completion.
#pragma once

#include <atomic>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/atomics.h"
#include "base/budget.h"
#include "base/loop.h"
#include "base/status.h"
#include "hal/device/buffer.h"
#include "hal/device/pooled.h"
#include "hal/device/reservation.h"
#include "hal/queue/bridge.h"
#include "hal/queue/fence.h"
#include "hal/queue/file.h"
#include "hal/queue/queue_point.h"
#include "hal/trace/device_trace.h"

namespace halyard::hal {

// The state of a submission, from the call until its signals are made after the driver's `completed`. It has
// two holders, the submitter and the completion; the last holder frees it. Its objects are borrowed from the
// caller, and only retained if the work is still running when the call returns.
struct InFlight : Step, WorkTrace {
  std::atomic<int> holders{2};
  Status result;  // of the work

  Device* const home;      // the device on which it is queued
  Fence* const signal;     // may be null
  WorkScope* const scope;  // may be null
  HostSignals host_signals = HostSignals::foreign;
  boost::container::small_vector<Object*, 6> resources;
  bool keeps = false;                                // the objects are retained
  boost::container::small_vector<Awaited, 2> waits;  // not Refs, which would keep the semaphores from failing
  std::unique_ptr<uint8_t[]> payload;
  Charge charge;
  // Whose alloca or dealloca it is, if the device logs its memory. Among the resources.
  Allocation* allocated = nullptr;
  Allocation* deallocated = nullptr;
  const TracedCommands* commands = nullptr;  // that it executes; among the resources
  Reservation reservation;                   // undone if the work is refused; of one of the resources

  // For queue_write: the copy to the file, after the driver's part has completed.
  struct FileWrite {
    Ref<Buffer> source;
    uint64_t source_offset = 0;
    Ref<File> target;
    uint64_t target_offset = 0;
    uint64_t length = 0;
  } write;

  explicit InFlight(const QueuePoint& point) : home(&point.device), signal(point.signal), scope(point.scope) {
    run = [](Step& self) noexcept { static_cast<InFlight&>(self).end(); };
  }

  Device& device() const { return *home; }
  // For the submitter: whether the signals are made and the completion has dropped its hold.
  bool is_over() const { return holders.load(std::memory_order_acquire) == 1; }
  void log_memory(bool has_run) {
    if (allocated) [[unlikely]]
      allocated->log_done(false, has_run);
    if (deallocated) [[unlikely]]
      deallocated->log_done(true, has_run);
  }
  void use(Object& object) { resources.push_back(&object); }
  void keep() {
    home->retain();
    if (signal) signal->retain();
    if (scope) scope->retain();
    for (Object* object : resources) object->retain();
    keeps = true;
  }
  Ref<Device> leave() {
    if (!keeps) return {};
    if (signal) signal->release();
    if (scope) scope->release();
    for (Object* object : resources) object->release();
    return Ref<Device>::adopt(home);
  }
  void drop_holder() noexcept {
    if (fetch_sub(holders, 1, std::memory_order_acq_rel) == 1) destroy_pooled(this);
  }
  // A failure fails all signals. If the driver has failed them, this has no effect; if the driver forgot to,
  // this releases the waiters.
  void end() noexcept {
    trace_done(signal);
    make_signals(signal, *home, result.ok() ? host_signals : HostSignals::all, result);
    drop_holder();
  }
};

// Owns work that has not been submitted yet.
struct DropWork {
  void operator()(InFlight* work) const noexcept { destroy_pooled(work); }
};
using OwnWork = std::unique_ptr<InFlight, DropWork>;

// `more`: additional bytes to charge. RESOURCE_EXHAUSTED.
Result<OwnWork> make_work(const QueuePoint& point, uint64_t more = 0);

// An operation without arguments.
halyard_operation_t operation_of(uint32_t kind);

// Gives the work to the driver. On devices that run in the caller, returns also the failure of the work.
Result<> submit(OwnWork work, const QueuePoint& point, const halyard_operation_t& operation);

// Calls `again` when the waits of the point are reached. `again` retains its objects, of `kept` bytes.
Result<> hold(const QueuePoint& point, uint64_t kept,
              std::move_only_function<Result<>(const QueuePoint&)> again);

}  // namespace halyard::hal
