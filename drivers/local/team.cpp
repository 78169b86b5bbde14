// Helpers enter and leave work by one atomic word each.
#include "team.h"

#include <algorithm>
#include <new>
#include <thread>

#include "estimate.h"

namespace halyard::local {

Team::Owned Team::create(ThreadPool& thread_pool, NodeCache& nodes, uint64_t cost) {
  const size_t helpers = thread_pool.limit() - 1;
  const size_t size = sizeof(Team) + helpers * sizeof(Helper);
  return Owned(new (nodes.take(size)) Team(thread_pool, nodes, cost, helpers, size));
}

Team::Team(ThreadPool& thread_pool, NodeCache& nodes, uint64_t cost, size_t helpers, size_t size)
    : thread_pool_(thread_pool),
      nodes_(nodes),
      size_(size),
      helpers_(reinterpret_cast<Helper*>(this + 1), helpers) {
  std::uninitialized_default_construct(helpers_.begin(), helpers_.end());
  for (Helper& helper : helpers_) {
    helper.run = [](Task& task, TaskList&) {
      Helper& self = static_cast<Helper&>(task);
      Team& team = *self.team;
      team.stay();
      self.is_away.store(true, std::memory_order_release);
      team.release();
    };
    helper.thread_pool = &thread_pool;
    helper.is_brief = cost < kBrief;
    helper.team = this;
  }
}

void Team::end() noexcept {
  has_ended_.store(true, std::memory_order_release);
  for (Helper& helper : helpers_)
    if (!helper.is_away.load(std::memory_order_acquire) && thread_pool_.take_back(helper)) release();
  release();
}

void Team::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  NodeCache& nodes = nodes_;
  const size_t size = size_;
  this->~Team();
  nodes.give(this, size);
}

uint32_t Team::spare_threads() const {
  return looking_.load(std::memory_order_relaxed) + coming_.load(std::memory_order_relaxed) +
         thread_pool_.idle_threads();
}

// Posts tasks for helpers that are missing.
void Team::call(uint32_t helpers) {
  uint32_t there = looking_.load(std::memory_order_relaxed) + coming_.load(std::memory_order_relaxed);
  for (Helper& helper : helpers_) {
    if (there >= helpers) return;
    if (!helper.is_away.load(std::memory_order_relaxed) ||
        !helper.is_away.exchange(false, std::memory_order_acquire))
      continue;
    references_.fetch_add(1, std::memory_order_relaxed);
    coming_.fetch_add(1, std::memory_order_relaxed);
    thread_pool_.post(helper);
    ++there;
  }
}

void Team::share(uint32_t helpers, void (*work)(void* data, Role role) noexcept, void* data) noexcept {
  const auto take = [](Gate& gate) {
    uint64_t state = gate.state.load(std::memory_order_relaxed);
    return (state & (kOpen | kTaken | kInside)) == 0 &&
           gate.state.compare_exchange_strong(state, state | kTaken, std::memory_order_acquire);
  };
  const auto gate = std::ranges::find_if(gates_, take);
  if (gate == gates_.end()) return work(data, Role::owner);
  const uint64_t seats = std::min<uint64_t>(helpers, kMost);
  gate->work = work;
  gate->data = data;
  const uint32_t number = last_.fetch_add(1, std::memory_order_relaxed) + 1;
  gate->state.store(uint64_t{number} << 32 | kOpen | kTaken | seats << kSeats, std::memory_order_release);
  call(helpers);
  work(data, Role::owner);
  close(*gate, number);
}

bool Team::take_part(Seen& seen, uint32_t after) noexcept {
  for (size_t i = 0; i < kGates; ++i) {
    Gate& gate = gates_[i];
    uint64_t state = gate.state.load(std::memory_order_acquire);
    while ((state & kOpen) && state >> 32 > std::max(seen[i], after) &&
           (state & kInside) < (state >> kSeats & kMost)) {
      if (!gate.state.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) continue;
      seen[i] = static_cast<uint32_t>(state >> 32);
      looking_.fetch_sub(1, std::memory_order_relaxed);
      gate.work(gate.data, Role::helper);
      looking_.fetch_add(1, std::memory_order_relaxed);
      leave(gate);
      return true;
    }
  }
  return false;
}

void Team::leave(Gate& gate) noexcept {
  gate.state.fetch_sub(1, std::memory_order_release);
  gate.state.notify_all();
}

// Waits for the helpers inside, and meanwhile helps with loops within their work. Looks as long as helpers
// themselves do, then sleeps, because waking a thread takes the time of a small dispatch.
void Team::close(Gate& gate, uint32_t number) noexcept {
  uint64_t state = gate.state.fetch_and(~kOpen, std::memory_order_acquire) & ~kOpen;
  if ((state & kInside) != 0) {
    Seen seen = {};
    looking_.fetch_add(1, std::memory_order_relaxed);
    const Stopwatch watch(true);
    while (((state = gate.state.load(std::memory_order_acquire)) & kInside) != 0) {
      if (take_part(seen, number)) continue;
      const uint64_t elapsed = watch.elapsed();
      if (elapsed >= kStaysAwake)
        gate.state.wait(state, std::memory_order_acquire);
      else if (elapsed >= kWorthHelping)
        std::this_thread::yield();  // the helper may have no processor
    }
    looking_.fetch_sub(1, std::memory_order_relaxed);
  }
  gate.state.store(state >> 32 << 32, std::memory_order_release);
}

void Team::stay() noexcept {
  Seen seen = {};
  looking_.fetch_add(1, std::memory_order_relaxed);
  coming_.fetch_sub(1, std::memory_order_relaxed);
  Stopwatch idle(true);
  while (!has_ended_.load(std::memory_order_acquire)) {
    if (take_part(seen, 0))
      idle = Stopwatch(true);
    else if (thread_pool_.is_idle_too_long(idle) ||
             (thread_pool_.has_queued() && idle.elapsed() >= kWorthHelping))
      break;
  }
  looking_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace halyard::local
