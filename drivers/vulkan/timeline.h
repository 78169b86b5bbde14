// Semaphore: a timeline of the host's. A value that only grows, or a failure that stays; and those who wait
// for it, as a list of nodes that the waiters own, so that moving the timeline allocates nothing.
//
// Vulkan has timeline semaphores, but theirs cannot fail, must never be signalled twice with one value, and
// cost a system object each, while programs make one for every call. So there is one of Vulkan's for each
// queue, which counts its submissions, and a timeline of the host's holds promises: "this submission of that
// queue will bring value v". Work of the same device that waits for a promised value goes to the device at
// once and waits there, for that queue's semaphore; nothing goes through the host in between.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "due.h"
#include "semaphore_fd.h"
#include "status.h"

namespace halyard::vulkan {

// Submission number `number` of `queue`; no queue: nothing on the device.
struct QueuePoint {
  Queue* queue = nullptr;
  uint64_t number = 0;
};

// Somebody who waits for `value`. `settled` is called once, without locks: the value is reached (empty
// status), the timeline has failed, or the value is promised by `device`. It may free the waiter.
struct Waiter {
  uint64_t value = 0;
  void (*settled)(Waiter& waiter, HostStatus failure, DueList& due) = nullptr;
  const Device* device = nullptr;  // a promise of this device's queues will do; null: none does
  // What it came to, where that is on the device: wait there for it.
  QueuePoint point;
  bool promised = false;
  // The semaphore's, under its lock:
  Waiter* next = nullptr;
  Waiter* previous = nullptr;
  bool listed = false;
};

enum class Progress : uint8_t { pending, reached, failed };

class Semaphore {
 public:
  Semaphore(Device& device, const Services& services, uint64_t initial)
      : device_(device), services_(services), value_(initial) {}
  Semaphore(const Services& services, SharedSemaphore import)
      : device_(import.device()), services_(services), value_(0), import_(std::move(import)) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  const Services& services() const { return services_; }
  uint64_t value() const { return value_.load(std::memory_order_acquire); }
  // Takes no lock. A failure is seen before a value.
  Progress progress(uint64_t value) const {
    if (failed_.load(std::memory_order_acquire)) return Progress::failed;
    return this->value() >= value ? Progress::reached : Progress::pending;
  }
  HostStatus failure() const;  // empty while it has not failed
  // The value, looking also at what queues have done and nobody has seen to yet.
  uint64_t value_on_device() const;

  // INVALID_ARGUMENT where `value` is not larger than the value now.
  Result<> signal(uint64_t value, DueList& due);
  void fail(const HostStatus& failure, DueList& due);

  // `point` is submitted, and will bring `value`. Where that is less than what the timeline has it stays as
  // it is.
  void promise(uint64_t value, QueuePoint point, DueList& due);
  // `point` is done: no effect where the value is not larger or the timeline has failed. No point: the host
  // did it.
  void keep(uint64_t value, QueuePoint point, DueList& due);
  // `point` will not come.
  void break_promise(uint64_t value, QueuePoint point);
  // The earliest promise of at least `value`, of any device.
  QueuePoint promised(uint64_t value) const;

  // Puts the waiter on the list; false where it is settled at once, as its `point` and `promised` say, or the
  // failure does.
  bool watch(Waiter& waiter);
  // Takes it off; false where its `settled` was or is being called.
  bool unwatch(Waiter& waiter);

  // Where there is nothing to wait for, the call is due at once.
  void subscribe(uint64_t value, halyard_subscriber_fn subscriber, void* user, DueList& due);
  bool unsubscribe(halyard_subscriber_fn subscriber, void* user);

  // ---- Other drivers (semaphore_fd.h)

  // As semaphore_export in driver.h.
  HostStatus export_to(int32_t& fd);
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
  void tell();  // under exports_mutex_
  void release_device();
  uint64_t on_device() const;
  Waiter* take_settled();
  const Promise* promise_for(uint64_t value, const Device* device) const;
  void unlink(Waiter& waiter);

  Device& device_;
  const Services& services_;
  std::atomic<uint64_t> value_;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;  // of what follows, and of writing what stands above
  HostStatus failure_;
  QueuePoint source_;              // what brought the value
  std::vector<Promise> promises_;  // not yet kept
  Waiter* first_ = nullptr;        // waiters by value, then arrival
  Waiter* last_ = nullptr;
  bool is_exported_ = false;
  std::optional<SharedSemaphore> import_;
  uint64_t awaited_ = 0;  // by the device, of the import

  // Taken before a queue's lock, and that before the one above.
  std::mutex exports_mutex_;
  std::vector<Export> exports_;
};

// Blocks until all, or any, of the timepoints are reached; a failed one is looked for first. `deadline` as in
// driver.h.
HostStatus wait_for(const Services& services, std::span<const halyard_timepoint_t> timepoints, bool any,
                    int64_t deadline_ns);

}  // namespace halyard::vulkan

struct halyard_driver_semaphore final : halyard::vulkan::Semaphore {
  using Semaphore::Semaphore;
};
