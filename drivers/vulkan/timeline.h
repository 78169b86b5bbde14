// Semaphore: a timeline of the host's. A value that only grows, or a failure that stays; and those who wait
// for it, as a list of nodes that the waiters own, so that moving the timeline allocates nothing.
//
// Vulkan has timeline semaphores, but theirs cannot fail, must never be signalled twice with one value, and
// cost a system object each, while programs make one for every call. So there is one of Vulkan's for each
// queue, which counts its submissions, and a timeline of the host's holds promises: "this submission of that
// queue will bring value v". Work of the same device that waits for a promised value goes to the device at
// once and waits there, for that queue's semaphore; nothing goes through the host in between.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "halyard/driver/timeline.hpp"
#include "semaphore_fd.h"
#include "status.h"

namespace halyard::vulkan {

using kit::Progress;
using kit::Task;
using kit::TaskList;

// Submission number `number` of `queue`; no queue: nothing on the device.
struct QueuePoint {
  Queue* queue = nullptr;
  uint64_t number = 0;
};

// A waiter for a value. Its wait ends when the value is reached, the timeline has failed, or `device` has
// promised the value.
struct Waiter : kit::WaiterLink<Waiter, TaskList> {
  const Device* device = nullptr;  // a promise of this device's queues will do; null: none does
  // What it came to, where that is on the device: wait there for it.
  QueuePoint point;
  bool promised = false;
};

class Semaphore : public kit::BasicTimeline<Semaphore, Waiter, Task, TaskList> {
 public:
  Semaphore(Device& device, const Services& services, uint64_t initial)
      : BasicTimeline(services, initial), device_(device) {}
  Semaphore(const Services& services, SharedSemaphore import)
      : BasicTimeline(services, 0), device_(import.device()), import_(std::move(import)) {}

  // The value, looking also at what queues have done and nobody has seen to yet.
  uint64_t seen_value() const;

  // From the host. INVALID_ARGUMENT where `value` is not larger than the value now. UNIMPLEMENTED: an import.
  Result<> signal(uint64_t value, TaskList& ready);
  void fail(const Status& failure, TaskList& ready);

  // `point` is submitted, and will bring `value`. Where that is less than what the timeline has it stays as
  // it is.
  void promise(uint64_t value, QueuePoint point, TaskList& ready);
  // `point` is done: no effect where the value is not larger or the timeline has failed. No point: the host
  // did it.
  void keep(uint64_t value, QueuePoint point, TaskList& ready);
  // `point` will not come.
  void break_promise(uint64_t value, QueuePoint point);
  // The earliest promise of at least `value`, of any device.
  QueuePoint promised(uint64_t value) const;

  // Adds the waiter to the list. Returns false if its wait is already over: by its `point` and `promised`, or
  // by the timeline's failure.
  bool watch(Waiter& waiter);
  // UNIMPLEMENTED: an import; the host subscribes to what it follows [R111].
  Result<> subscribe(uint64_t value, halyard_subscriber_fn subscriber, void* user, TaskList& ready);

  // ---- Other drivers (semaphore_fd.h)

  // As semaphore_export and semaphore_underway in driver.h, of one that has not failed.
  Result<int32_t> export_fd();
  bool underway(uint64_t value);
  // Of what was made to import: it takes the descriptor over on success.
  Result<> take(int32_t fd) { return import_->take(fd); }
  // What this one follows; null: nothing. It is waited for by its own device only, which can do so at any
  // time: the host sees to it that what it waits for is underway [R111].
  const SharedSemaphore* import() const { return import_ ? &*import_ : nullptr; }
  // Of an import: what has come of it, for those who block.
  void look();
  // Of an import: what the device is to wait for until it has `value`; null: it has failed.
  VkSemaphore await_on_device(uint64_t value);

 private:
  struct Promise {
    uint64_t value;
    QueuePoint point;
  };

  struct Export {
    SharedSemaphore semaphore;
    uint64_t told;  // the value that it has, or will have
  };

  void tell_exports();
  void tell();     // under exports_mutex_: what the value is
  void pass_on();  // under exports_mutex_: what it will be
  void release_device();
  uint64_t on_device() const;
  Result<> check_no_import(const char* what) const;
  Waiter* take_completed_here();
  const Promise* promise_for(uint64_t value, const Device* device) const;

  Device& device_;
  // Under the lock of BasicTimeline:
  QueuePoint source_;              // what brought the value
  std::vector<Promise> promises_;  // not yet kept
  bool is_exported_ = false;
  std::optional<SharedSemaphore> import_;
  uint64_t awaited_ = 0;  // by the device, of the import

  // Taken before a queue's lock, and that before the one above.
  std::mutex exports_mutex_;
  std::vector<Export> exports_;
};

}  // namespace halyard::vulkan

struct halyard_driver_semaphore final : halyard::vulkan::Semaphore {
  using Semaphore::Semaphore;
};
