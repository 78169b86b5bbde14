// Queue: a VkQueue, the timeline semaphore that counts its submissions, and its work in flight.
//
// The submitting thread checks at once whether the work has completed. A thread that waits for work waits for
// the device and retires the work. For all other work, each queue has a thread, which is started when a
// submission does not complete at once. The thread retires work immediately if a notification is requested
// (by a subscriber or by work of another device), otherwise after 2 ms. It sleeps on a timer. A submission
// can move the timer without waking the thread, because waking it for each submission would cost as much as a
// small dispatch. While awake, the thread waits for the device to complete the oldest work in flight. It
// never polls: it sleeps in an idle program, and in a program that waits for its own work.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "halyard/driver/task.hpp"
#include "loader.h"
#include "submission_log.h"
#include "timer_fd.h"

namespace halyard::vulkan {

class Device;
class Queue;
class QueueTrace;
struct Work;

using kit::Task;
using kit::TaskList;

// Submission `number` of `queue`. If `queue` is null, no submission.
struct QueueSubmission {
  Queue* queue = nullptr;
  uint64_t number = 0;
};

// Work in flight, ordered by number.
class FlightList {
 public:
  bool empty() const { return !first_; }
  uint64_t first_number() const;
  void insert(Work& work);
  // Removes the work up to `number` and returns it as a list linked by Work::next_in_flight, or null.
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
    uint32_t index = 0;           // within its family
    bool computes = true;         // false: supports transfers only
    uint32_t position = 0;        // among the device's queues; also its bit in an affinity
    uint32_t timestamp_bits = 0;  // 0: does not report to traces
  };

  Queue(Device& device, const Traits& traits);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();
  Result<> start();

  Device& device() const { return device_; }
  const Traits& traits() const { return traits_; }
  VkSemaphore timeline() const { return timeline_; }
  // Whether submission `number` has completed. Never blocks.
  bool has_done(uint64_t number) const;

  // Submits the commands to the device and retires completed work. The commands wait for the submissions in
  // `after`. `commands` null: only waits. On failure the caller keeps the work.
  Result<> submit(Work& work, VkCommandBuffer commands, std::span<const QueueSubmission> after,
                  TaskList& ready);
  // Makes the work complete together with submission `number`. False: the submission has already completed,
  // and nothing has changed.
  bool attach(Work& work, uint64_t number, TaskList& ready);
  // Requests a notification as soon as submission `number` has completed. Takes no lock.
  void want(uint64_t number);
  // Retires completed work.
  void retire(TaskList& ready);
  // Signals another driver's semaphore with `value` when all work submitted so far has completed. Returns the
  // number of the submission that signals; 0: the device is lost.
  uint64_t signal(VkSemaphore semaphore, uint64_t value);
  // Submits commands of no work, and blocks until they have completed.
  Result<> run_now(VkCommandBuffer commands);
  // Destroys the semaphore after submission `number` has completed.
  void destroy_behind(VkSemaphore semaphore, uint64_t number);
  // A report of the last submissions, for a lost device.
  struct Line {
    uint64_t id;
    std::string text;
  };
  void report(std::vector<Line>& lines);
  // Fails all work in flight.
  void fail_all(const Status& failure, TaskList& ready);

 private:
  // Submits commands (may be null) of no work, after which also `semaphore` (may be null) has `value`.
  // `number` gets the submission's.
  VkResult submit_alone(VkCommandBuffer commands, VkSemaphore semaphore, uint64_t value, uint64_t& number);
  uint64_t done_now() const;
  VkResult wait_for(uint64_t number) const;
  Work* put_in_flight(Work& work, TaskList& ready);
  Work* retire_up_to(uint64_t number);
  bool start_thread();
  void arm(uint64_t now);
  void run();
  uint64_t next_to_wait_for();

  Device& device_;
  const DeviceFunctions& vk_;
  const VkDevice vk_device_;
  const Traits traits_;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  mutable std::atomic<uint64_t> done_ = 0;  // the last known completed number

  std::mutex mutex_;  // also guards the VkQueue
  uint64_t submitted_ = 0;
  SubmissionLog log_;
  FlightList flights_;
  std::unique_ptr<QueueTrace> trace_;  // null: not traced
  TimerFd timer_;
  uint64_t timer_time_ = 0;  // the time to which the timer is set, guarded by the lock; 0: expired
  std::thread thread_;
  bool stopping_ = false;
  // Whether the thread is awake and will check for work before it sleeps. Written under the lock. A requester
  // writes `wanted_`, then reads `is_awake_`; the thread writes `is_awake_`, then reads `wanted_`. So at
  // least one of them sees the other's write.
  std::atomic<bool> is_awake_ = false;
  std::atomic<uint64_t> wanted_ = 0;  // notifications are requested up to this number

  // A semaphore to destroy after submission `number` has completed.
  struct Doomed {
    VkSemaphore semaphore;
    uint64_t number;
  };
  std::vector<Doomed> doomed_;
};

}  // namespace halyard::vulkan
