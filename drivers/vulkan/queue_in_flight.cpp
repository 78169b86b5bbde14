// The work in flight on a queue: submits it, retires it and fails it, and runs the queue's thread.
#include <algorithm>
#include <array>
#include <string>
#include <system_error>
#include <vector>

#include "device.h"
#include "halyard/driver/trace.hpp"
#include "queue.h"
#include "trace.h"
#include "work.h"

namespace halyard::vulkan {

uint64_t FlightList::first_number() const { return first_->number; }

// New work usually has the largest number.
void FlightList::insert(Work& work) {
  work.next_in_flight = nullptr;
  if (!first_ || last_->number <= work.number) {
    (first_ ? last_->next_in_flight : first_) = &work;
    last_ = &work;
    return;
  }
  Work** link = &first_;
  while ((*link)->number <= work.number) link = &(*link)->next_in_flight;
  work.next_in_flight = *link;
  *link = &work;
}

Work* FlightList::take(uint64_t number) {
  Work* taken = first_;
  Work* last = nullptr;
  while (first_ && first_->number <= number) {
    last = first_;
    first_ = first_->next_in_flight;
  }
  if (!last) return nullptr;
  last->next_in_flight = nullptr;
  if (!first_) last_ = nullptr;
  return taken;
}

namespace {

// The queue's thread retires work that no other thread has retired within this time.
constexpr uint64_t kGrace = 2'000'000;  // nanoseconds

// Finishes the works in order. Then the device and the queue may have been destroyed.
void finish_all(Work* work, const Status& failure, TaskList& ready) {
  while (work) {
    Work* next = work->next_in_flight;
    work->finish(failure, ready);
    work = next;
  }
}

}  // namespace

Queue::Queue(Device& device, const Traits& traits)
    : device_(device), vk_(device.vk()), vk_device_(device.handle()), traits_(traits) {}

Queue::~Queue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    timer_.set(TimerFd::kNow);
  }
  if (thread_.joinable()) thread_.join();
  for (const Doomed& doomed : doomed_) vk_.DestroySemaphore(vk_device_, doomed.semaphore, nullptr);
  if (timeline_) vk_.DestroySemaphore(vk_device_, timeline_, nullptr);
}

Result<> Queue::start() {
  HALYARD_KIT_TRY(timer_.open());
  vk_.GetDeviceQueue(vk_device_, traits_.family, traits_.index, &queue_);
  if (traits_.timestamp_bits != 0)
    trace_ = std::make_unique<QueueTrace>(device_, traits_.position, traits_.timestamp_bits);
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  return check(vk_.CreateSemaphore(vk_device_, &info, nullptr, &timeline_), "vkCreateSemaphore");
}

// Called under the lock: retires the work up to `number`, which has completed. Reports the work to the trace,
// in the queue's order and before the host is notified.
Work* Queue::retire_up_to(uint64_t number) {
  Work* const done = flights_.take(number);
  if (trace_) [[unlikely]]
    for (const Work* work = done; work; work = work->next_in_flight)
      trace_->report(work->encoded.timestamps, work->completed_user, work->submit_time);
  return done;
}

// Called under the lock: puts the submitted work in flight. Returns completed work, or null.
Work* Queue::put_in_flight(Work& work, TaskList& ready) {
  flights_.insert(work);
  work.queue = this;
  const uint64_t seen = device_.options().inline_completion ? done_now() : 0;
  Work* done = retire_up_to(seen);
  if (flights_.empty()) return done;
  const uint64_t now = kit::trace_time();
  if (work.number > seen)
    for (const halyard_timepoint_t& signal : work.signals)
      signal.semaphore->promise(signal.value, {this, work.number}, ready);
  if (!device_.options().inline_completion) want(work.number);
  if (start_thread()) {
    arm(now);
    return done;
  }
  (void)wait_for(submitted_);  // if no thread can be started, the submitting thread waits
  Work** end = &done;
  while (*end) end = &(*end)->next_in_flight;
  *end = retire_up_to(done_now());
  return done;
}

Result<> Queue::submit(Work& work, VkCommandBuffer commands, std::span<const QueueSubmission> after,
                       TaskList& ready) {
  // Waits for other drivers come first. Then the work waits, on each queue of the device, for the
  // submission in `after` on that queue, but at least for the last completed submission: the host may have
  // submitted the work because that submission had completed, and only a semaphore wait makes the queue's
  // writes visible here.
  DeviceWaits& on = work.device_waits;
  VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
  if (traits_.computes) stage |= VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
  if (trace_) stage |= VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT;  // so that timestamps come after the waits
  for (const Queue& queue : device_.queues()) {
    uint64_t number = queue.done_.load(std::memory_order_acquire);
    for (const QueueSubmission& submission : after)
      if (submission.queue == &queue) number = std::max(number, submission.number);
    if (number != 0) on.add(queue.timeline_, number);
  }
  on.stages.assign(on.semaphores.size(), stage);
  const auto waits = static_cast<uint32_t>(on.semaphores.size());
  Work* done = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const uint64_t number = submitted_ + 1;
    work.id = device_.next_submission();
    work.number = number;
    work.queue = this;
    work.submit_time = kit::trace_time();
    const VkTimelineSemaphoreSubmitInfo timeline = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                    .waitSemaphoreValueCount = waits,
                                                    .pWaitSemaphoreValues = on.values.data(),
                                                    .signalSemaphoreValueCount = 1,
                                                    .pSignalSemaphoreValues = &number};
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &timeline,
                               .waitSemaphoreCount = waits,
                               .pWaitSemaphores = waits != 0 ? on.semaphores.data() : nullptr,
                               .pWaitDstStageMask = waits != 0 ? on.stages.data() : nullptr,
                               .commandBufferCount = commands ? 1u : 0u,
                               .pCommandBuffers = &commands,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &timeline_};
    HALYARD_KIT_TRY(check(vk_.QueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit"));
    submitted_ = number;
    describe(work, log_.next());
    done = put_in_flight(work, ready);
  }
  finish_all(done, Status(), ready);
  return {};
}

bool Queue::attach(Work& work, uint64_t number, TaskList& ready) {
  Work* done = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (done_now() >= number) return false;
    work.number = number;
    work.submit_time = kit::trace_time();
    done = put_in_flight(work, ready);
  }
  finish_all(done, Status(), ready);
  return true;
}

void Queue::retire(TaskList& ready) {
  Work* done = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (flights_.empty()) return;
    done = retire_up_to(done_now());
  }
  finish_all(done, Status(), ready);
}

void Queue::fail_all(const Status& failure, TaskList& ready) {
  Work* failed = nullptr;
  {
    const std::lock_guard lock(mutex_);
    failed = flights_.take(UINT64_MAX);
  }
  finish_all(failed, failure, ready);
}

// Reports the last few submissions, and the oldest one that has not completed, because the device most likely
// hangs there.
void Queue::report(std::vector<Line>& lines) {
  const std::lock_guard lock(mutex_);
  const uint64_t done = done_now();
  uint64_t first_id = UINT64_MAX;
  log_.each([&](const LoggedSubmission& submission) {
    first_id = std::min(first_id, submission.id);
    lines.push_back(
        {submission.id, submission.text() + (submission.number <= done ? ", done" : ", in flight")});
  });
  for (const Work* work = flights_.first(); work; work = work->next_in_flight) {
    if (work->id == 0 || work->number <= done) continue;
    if (work->id >= first_id) return;
    LoggedSubmission oldest;
    describe(*work, oldest);
    lines.push_back({oldest.id, oldest.text() + ", in flight"});
    return;
  }
}

// Called under the lock. False: the system cannot start a thread.
bool Queue::start_thread() {
  if (thread_.joinable()) return true;
  try {
    thread_ = std::thread(&Queue::run, this);
    pthread_setname_np(thread_.native_handle(), "halyard-queue");
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

// Called under the lock: makes the thread check for completed work kGrace from now at the latest. Moves the
// timer only if it would expire before half of that time, so that not every submission moves it.
void Queue::arm(uint64_t now) {
  if (is_awake_) return;
  if (timer_time_ < now + kGrace / 2) {
    timer_time_ = now + kGrace;
    timer_.set(timer_time_);
  }
  // The timer must not delay notifications that are already requested.
  if (wanted_ >= flights_.first_number()) timer_.set(TimerFd::kNow);
}

// The submission that the thread should wait for. 0: the thread should sleep.
uint64_t Queue::next_to_wait_for() {
  const std::lock_guard lock(mutex_);
  is_awake_ = true;
  timer_time_ = 0;
  if (flights_.empty()) {
    is_awake_ = false;
    return 0;
  }
  const Work& first = *flights_.first();
  const uint64_t time = first.submit_time + kGrace;
  if (stopping_ || wanted_ >= first.number || kit::trace_time() >= time) return first.number;
  is_awake_ = false;
  arm(first.submit_time);
  return 0;
}

void Queue::run() {
  while (true) {
    timer_.wait();
    while (const uint64_t number = next_to_wait_for()) {
      TaskList ready;
      if (const VkResult result = wait_for(number); result == VK_SUCCESS) {
        retire(ready);
      } else {
        device_.lose(vulkan::check(result, "vkWaitSemaphores").failure(), nullptr, ready);
      }
      device_.run_ready(ready);
    }
    const std::lock_guard lock(mutex_);
    if (stopping_ && flights_.empty()) return;
  }
}

}  // namespace halyard::vulkan
