// Queue: one VkQueue, the timeline semaphore that counts its submissions, and the work that is in flight on
// it.
//
// Whoever submits looks at once whether the work is done, and whoever waits for it waits for the device and
// sees to it. A thread, which each queue starts with the first work that is not done at once, does so for all
// others: at once where somebody is to be told (a subscriber, work of another device), and otherwise where
// nobody has come for the work for 2 ms. Waking it for each submission would cost as much as a small
// dispatch; so it sleeps at an alarm, which a submission moves without waking it. When it is awake it waits
// for the device, for the oldest work in flight. It never looks again and again: in a program that waits for
// its work, and in an idle one, it sleeps.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "alarm.h"
#include "loader.h"
#include "submission_log.h"
#include "timeline.h"
#include "trace.h"

namespace halyard::vulkan {

class Device;
struct Work;

// Work in flight, in the order of its numbers.
class FlightList {
 public:
  bool empty() const { return !first_; }
  uint64_t first_number() const;
  void insert(Work& work);
  // Those up to `number`, as a list by Work::next_in_flight; null: none.
  Work* take(uint64_t number);
  const Work* first() const { return first_; }

 private:
  Work* first_ = nullptr;
  Work* last_ = nullptr;
};

class Queue {
 public:
  struct Traits {
    uint32_t family = 0;
    uint32_t index = 0;           // in its family
    bool computes = true;         // else it only transfers
    uint32_t position = 0;        // among the device's queues: the bit of an affinity
    uint32_t timestamp_bits = 0;  // 0: nothing is told to a trace
  };

  Queue(Device& device, const Traits& traits) : device_(device), traits_(traits) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();
  Result<> start();

  Device& device() const { return device_; }
  const Traits& traits() const { return traits_; }
  VkSemaphore timeline() const { return timeline_; }
  // Submission `number` is done. Never blocks.
  bool has_done(uint64_t number) const;

  // Hands the commands to the device, after the points of its queues, and sees to what is done by now.
  // `commands` may be null: nothing but waiting. On failure the work is still the caller's.
  Result<> submit(Work& work, VkCommandBuffer commands, std::span<const QueuePoint> after, TaskList& ready);
  // The work is done when submission `number` is. False, and nothing happened, where it is done already.
  bool attach(Work& work, uint64_t number, TaskList& ready);
  // Somebody is to be told as soon as submission `number` is done. Takes no lock.
  void want(uint64_t number);
  // Sees to what is done.
  void retire(TaskList& ready);
  // Another driver's semaphore gets `value` when all that was submitted so far is done. The submission that
  // does it; 0: the device is lost.
  uint64_t signal(VkSemaphore semaphore, uint64_t value);
  // When submission `number` is done.
  void destroy_behind(VkSemaphore semaphore, uint64_t number);
  // What there is to say of the last submissions when the device is lost.
  struct Line {
    uint64_t id;
    std::string text;
  };
  void report(std::vector<Line>& lines);
  // Everything in flight has failed.
  void fail_all(const Status& failure, TaskList& ready);

 private:
  uint64_t done_now() const;
  VkResult wait_for(uint64_t number) const;
  Work* put_in_flight(Work& work, TaskList& ready);
  Work* retire_up_to(uint64_t number);
  bool start_thread();
  void arm(uint64_t now);
  void run();
  uint64_t next_to_wait_for();

  Device& device_;
  const Traits traits_;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  mutable std::atomic<uint64_t> done_ = 0;  // as far as anybody has looked

  std::mutex mutex_;  // of the VkQueue, too
  uint64_t submitted_ = 0;
  SubmissionLog log_;
  FlightList flights_;
  std::unique_ptr<QueueTrace> trace_;  // null: it tells nothing
  Alarm alarm_;
  uint64_t alarm_time_ = 0;  // the time the alarm was last set to; guarded by the lock; 0: it has expired
  std::thread thread_;
  bool stopping_ = false;
  // The thread is awake and will look before it sleeps. Written under the lock. Whoever wants something
  // writes `wanted_`, then looks at this; the thread writes this, then looks at `wanted_`: one of them sees
  // the other.
  std::atomic<bool> is_awake_ = false;
  std::atomic<uint64_t> wanted_ = 0;  // up to here somebody is to be told

  struct Doomed {
    VkSemaphore semaphore;
    uint64_t number;
  };
  std::vector<Doomed> doomed_;
};

}  // namespace halyard::vulkan
