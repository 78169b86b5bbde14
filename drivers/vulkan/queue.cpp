// Submitting, and seeing to what is done.
#include "queue.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <system_error>
#include <vector>

#include "device.h"
#include "work.h"

namespace halyard::vulkan {

uint64_t FlightList::first_number() const { return first_->number; }

// Most work comes last.
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

thread_local bool is_queue_thread = false;

// The works' ends, one after the other. Afterwards device and queue may be gone.
void finish_all(Work* work, const HostStatus& failure, DueList& due) {
  while (work) {
    Work* next = work->next_in_flight;
    Work::finish(work, failure, due);
    work = next;
  }
}

}  // namespace

bool Queue::is_own_thread() { return is_queue_thread; }

Queue::~Queue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  for (const Doomed& doomed : doomed_)
    device_.vk().DestroySemaphore(device_.handle(), doomed.semaphore, nullptr);
  if (timeline_) device_.vk().DestroySemaphore(device_.handle(), timeline_, nullptr);
}

Result<> Queue::start() {
  device_.vk().GetDeviceQueue(device_.handle(), traits_.family, traits_.index, &queue_);
  if (traits_.timestamp_bits != 0)
    trace_ = std::make_unique<QueueTrace>(device_, traits_.position, traits_.timestamp_bits);
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  return check(device_.vk().CreateSemaphore(device_.handle(), &info, nullptr, &timeline_),
               "vkCreateSemaphore");
}

uint64_t Queue::done_now() const {
  uint64_t value = 0;
  if (device_.vk().GetSemaphoreCounterValue(device_.handle(), timeline_, &value) == VK_SUCCESS &&
      value != UINT64_MAX) {  // what some implementations say of a lost device
    uint64_t known = done_.load(std::memory_order_relaxed);
    while (known < value && !done_.compare_exchange_weak(known, value, std::memory_order_acq_rel)) {
    }
  }
  return done_.load(std::memory_order_acquire);
}

bool Queue::has_done(uint64_t number) const {
  return done_.load(std::memory_order_acquire) >= number || done_now() >= number;
}

VkResult Queue::wait_for(uint64_t number) const {
  const VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                    .semaphoreCount = 1,
                                    .pSemaphores = &timeline_,
                                    .pValues = &number};
  return device_.vk().WaitSemaphores(device_.handle(), &wait, UINT64_MAX);
}

// Under the lock: the work up to `number` is done, which a trace is told in the queue's order and before the
// host is told.
Work* Queue::land(uint64_t number) {
  Work* const done = flights_.take(number);
  if (trace_) [[unlikely]]
    for (const Work* work = done; work; work = work->next_in_flight) trace_->tell(*work);
  return done;
}

// Under the lock: the work is on its way, with its number. What is done by now; null: nothing.
Work* Queue::fly(Work& work, DueList& due) {
  flights_.insert(work);
  work.queue = this;
  const uint64_t seen = device_.options().inline_completion ? done_now() : 0;
  Work* done = land(seen);
  if (flights_.empty()) return done;
  if (work.number > seen)
    for (const halyard_timepoint_t& signal : work.signals)
      signal.semaphore->promise(signal.value, {this, work.number}, due);
  if (!device_.options().inline_completion) want(work.number);
  if (start_thread()) {
    if (parked_) changed_.notify_one();
    return done;
  }
  (void)wait_for(submitted_);  // no thread can be had: whoever submits waits
  Work** end = &done;
  while (*end) end = &(*end)->next_in_flight;
  *end = land(done_now());
  return done;
}

Result<> Queue::submit(Work& work, VkCommandBuffer commands, std::span<const QueuePoint> after,
                       DueList& due) {
  // What it waits for of other drivers. Then, for each queue of the device: what the work waits for there,
  // and at least all that is done. The host may have seen that and submit because of it, and nothing but a
  // semaphore makes what was written there seen here.
  DeviceWaits& on = work.device_waits;
  VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
  if (traits_.computes) stage |= VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
  if (trace_) stage |= VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT;  // no timestamp before the waits are over
  for (const Queue& queue : device_.queues()) {
    uint64_t number = queue.done_.load(std::memory_order_acquire);
    for (const QueuePoint& point : after)
      if (point.queue == &queue) number = std::max(number, point.number);
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
    if (trace_) [[unlikely]]
      work.submit_time = trace_time();
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
    HALYARD_TRY(check(device_.vk().QueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit"));
    submitted_ = number;
    describe(work, log_.next());
    done = fly(work, due);
  }
  finish_all(done, HostStatus(), due);
  return {};
}

uint64_t Queue::signal(VkSemaphore semaphore, uint64_t value) {
  const std::lock_guard lock(mutex_);
  const VkSemaphore semaphores[] = {timeline_, semaphore};
  const uint64_t values[] = {submitted_ + 1, value};
  const VkTimelineSemaphoreSubmitInfo timeline = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                  .signalSemaphoreValueCount = 2,
                                                  .pSignalSemaphoreValues = values};
  const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                             .pNext = &timeline,
                             .signalSemaphoreCount = 2,
                             .pSignalSemaphores = semaphores};
  if (device_.vk().QueueSubmit(queue_, 1, &info, VK_NULL_HANDLE) != VK_SUCCESS) return 0;
  return ++submitted_;
}

void Queue::destroy_behind(VkSemaphore semaphore, uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(doomed_, [&](const Doomed& doomed) {
    if (!has_done(doomed.number)) return false;
    device_.vk().DestroySemaphore(device_.handle(), doomed.semaphore, nullptr);
    return true;
  });
  if (!has_done(number)) {
    try {
      doomed_.push_back({semaphore, number});
      return;
    } catch (const std::bad_alloc&) {
      (void)wait_for(number);
    }
  }
  device_.vk().DestroySemaphore(device_.handle(), semaphore, nullptr);
}

bool Queue::attach(Work& work, uint64_t number, DueList& due) {
  Work* done = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (done_now() >= number) return false;
    work.number = number;
    done = fly(work, due);
  }
  finish_all(done, HostStatus(), due);
  return true;
}

void Queue::retire(DueList& due) {
  Work* done = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (flights_.empty()) return;
    done = land(done_now());
  }
  finish_all(done, HostStatus(), due);
}

void Queue::fail_all(const HostStatus& failure, DueList& due) {
  Work* failed = nullptr;
  {
    const std::lock_guard lock(mutex_);
    failed = flights_.take(UINT64_MAX);
  }
  finish_all(failed, failure, due);
}

// The last few, and the oldest that is not done: the device most likely stands there.
void Queue::report(std::vector<Line>& lines) {
  const std::lock_guard lock(mutex_);
  const uint64_t done = done_now();
  uint64_t first_id = UINT64_MAX;
  log_.each([&](const Submission& submission) {
    first_id = std::min(first_id, submission.id);
    lines.push_back(
        {submission.id, submission.text() + (submission.number <= done ? ", done" : ", in flight")});
  });
  for (const Work* work = flights_.first(); work; work = work->next_in_flight) {
    if (work->id == 0 || work->number <= done) continue;
    if (work->id >= first_id) return;
    Submission oldest;
    describe(*work, oldest);
    lines.push_back({oldest.id, oldest.text() + ", in flight"});
    return;
  }
}

// Under the lock. False: the system has none to give.
bool Queue::start_thread() {
  if (thread_.joinable()) return true;
  try {
    thread_ = std::thread(&Queue::run, this);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void Queue::want(uint64_t number) {
  uint64_t known = wanted_.load(std::memory_order_relaxed);
  while (known < number && !wanted_.compare_exchange_weak(known, number, std::memory_order_acq_rel)) {
  }
  // Without the lock this may come between the thread's look and its sleep, which then is one tick long.
  if (known < number) changed_.notify_one();
}

void Queue::run() {
  is_queue_thread = true;
  constexpr std::chrono::milliseconds kTick(1);
  constexpr int kTicksBeforeParking = 20;
  const auto is_wanted = [&] {
    return !flights_.empty() && (stopping_ || flights_.first_number() <= wanted_);
  };
  for (int idle = 0;;) {
    uint64_t number = 0;
    {
      std::unique_lock lock(mutex_);
      if (stopping_ && flights_.empty()) return;
      if (flights_.empty() && idle == kTicksBeforeParking) {
        parked_ = true;
        changed_.wait(lock, [&] { return stopping_ || !flights_.empty(); });
        parked_ = false;
        idle = 0;
      } else if (!is_wanted()) {
        changed_.wait_for(lock, kTick, [&] { return stopping_ || is_wanted(); });
        idle = flights_.empty() ? idle + 1 : 0;
      }
      if (is_wanted()) number = flights_.first_number();
    }
    DueList due;
    const VkResult result = number != 0 ? wait_for(number) : VK_SUCCESS;
    if (result == VK_SUCCESS) {
      retire(due);
    } else {
      device_.lose(vulkan::check(result, "vkWaitSemaphores").error(), nullptr, due);
    }
    due.run();
  }
}

}  // namespace halyard::vulkan
