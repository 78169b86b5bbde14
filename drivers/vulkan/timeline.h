// Semaphore: a timeline of the host, which is a value that only increases or a permanent failure, and a list
// of waiters. The waiters own the list's nodes, so that advancing the timeline allocates nothing.
//
// Vulkan's timeline semaphores cannot fail, must not be signalled twice with the same value, and cost a
// system object each, while programs create one for every call. So each queue has one Vulkan semaphore, which
// counts its submissions, and a host timeline has promises: "this submission of that queue will signal value
// v". Work of the same device that waits for a promised value is submitted at once and waits on the device
// for that queue's semaphore, without the host in between.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "halyard/driver/timeline.hpp"
#include "queue.h"
#include "semaphore_fd.h"
#include "status.h"

namespace halyard::vulkan {

using kit::Progress;

// A waiter for a value. Its wait ends when the value is reached, when the timeline fails, or when `device`
// has promised the value.
struct Waiter : kit::WaiterLink<Waiter, TaskList> {
  const Device* device = nullptr;  // accepts promises of this device's queues; null: of none
  // If the wait ended with a promise: the submission for which the device waits.
  QueueSubmission submission;
  bool promised = false;
};

class Semaphore : public kit::BasicTimeline<Semaphore, Waiter, Task, TaskList> {
 public:
  Semaphore(Device& device, const Services& services, uint64_t initial)
      : BasicTimeline(services, initial), device_(device) {}
  Semaphore(const Services& services, SharedSemaphore import)
      : BasicTimeline(services, 0), device_(import.device()), import_(std::move(import)) {}

  // The value, including completed submissions that have not been retired yet.
  uint64_t seen_value() const;

  // A signal by the host. INVALID_ARGUMENT: `value` is not larger than the current value. UNIMPLEMENTED: an
  // import.
  Result<> signal(uint64_t value, TaskList& ready);
  void fail(const Status& failure, TaskList& ready);

  // `submission` has been submitted and will signal `value`. No effect if the timeline has reached `value`.
  void promise(uint64_t value, QueueSubmission submission, TaskList& ready);
  // `submission` has completed; without a submission, the host has signalled. No effect if the value is not
  // larger, or the timeline has failed.
  void keep(uint64_t value, QueueSubmission submission, TaskList& ready);
  // `submission` will not complete.
  void break_promise(uint64_t value, QueueSubmission submission);
  // The earliest promise of at least `value`, by any device.
  QueueSubmission promised(uint64_t value) const;

  // Adds the waiter to the list. Returns false if its wait is already over, because of its `submission` and
  // `promised`, or because the timeline has failed.
  bool watch(Waiter& waiter);
  // UNIMPLEMENTED: an import; the host subscribes to the original semaphore [R111].
  Result<> subscribe(uint64_t value, halyard_subscriber_fn subscriber, void* user, TaskList& ready);

  // ---- Other drivers (semaphore_fd.h)

  // See semaphore_export and semaphore_underway in driver.h; the timeline must not have failed.
  Result<int32_t> export_fd();
  bool underway(uint64_t value);
  // For a timeline created to import: takes ownership of the descriptor on success.
  Result<> take(int32_t fd) { return import_->take(fd); }
  // The imported semaphore; null: not an import. Only its own device waits for it, and may do so at any time,
  // because the host ensures that the awaited work has been submitted [R111].
  const SharedSemaphore* import() const { return import_ ? &*import_ : nullptr; }
  // For an import: checks its current state, for blocked threads.
  void look();
  // For an import: the semaphore that the device waits for until it reaches `value`; null: it has failed.
  VkSemaphore await_on_device(uint64_t value);

 private:
  struct Promise {
    uint64_t value;
    QueueSubmission submission;
  };

  struct Export {
    SharedSemaphore semaphore;
    uint64_t signalled;  // the value that it has or will have
  };

  void update_exports();
  void signal_current();   // under exports_mutex_: signals the current value
  void signal_promised();  // under exports_mutex_: signals promised values
  void release_device();
  uint64_t on_device() const;
  Result<> check_no_import(const char* what) const;
  Waiter* take_completed_here();
  const Promise* promise_for(uint64_t value, const Device* device) const;

  Device& device_;
  // Guarded by the lock of BasicTimeline:
  QueueSubmission source_;         // the submission that signalled the value
  std::vector<Promise> promises_;  // not yet fulfilled
  bool is_exported_ = false;
  std::optional<SharedSemaphore> import_;
  uint64_t awaited_ = 0;  // the largest value of the import for which the device waits

  // Locked before a queue's lock, which is locked before BasicTimeline's.
  std::mutex exports_mutex_;
  std::vector<Export> exports_;
};

}  // namespace halyard::vulkan

struct halyard_driver_semaphore final : halyard::vulkan::Semaphore {
  using Semaphore::Semaphore;
};
