// A queue and the thread that serves it.
#include "vm/compile/compile_queue.h"

#include <unistd.h>

#include <algorithm>
#include <exception>

namespace halyard::vm {

namespace {

// Lowers the priority of the calling thread. Next to a thread of normal priority on the same processor, it
// gets 3 % of the time if the process has only one processor. If the process has more, it gets 25 %, because
// the program may not need all of them, and functions should be compiled even on a busy machine.
void lower_priority() {
#ifdef __linux__
  const int niceness = std::thread::hardware_concurrency() == 1 ? 15 : 5;
  [[maybe_unused]] const int now = ::nice(niceness);  // applies to the thread, on Linux
#endif
}

}  // namespace

CompileQueue::CompileQueue(Sampling sampling) : sampling_(sampling) {}

CompileQueue::~CompileQueue() {
  std::deque<Turn> dropped;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    dropped.swap(turns_);
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CompileQueue::add(Ref<Object> owner, Compilable& functions, uint32_t function, bool for_loops) noexcept
    try {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  auto turn = std::ranges::find(turns_, &functions, &Turn::functions);
  if (turn == turns_.end()) turn = turns_.insert(turn, Turn{std::move(owner), &functions, {}});
  turn->requests.push_back({function, for_loops});
  ++requests_;
  changed_.notify_all();
} catch (const std::exception&) {
}

size_t CompileQueue::pending() {
  const std::lock_guard lock(mutex_);
  return requests_ + (busy_ ? 1 : 0);
}

void CompileQueue::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return turns_.empty() && !busy_; });
}

void CompileQueue::work() {
  lower_priority();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return done_ || !turns_.empty(); });
    if (done_) return;
    const Request request = turns_.front().requests.front();
    Ref<Object> owner = turns_.front().owner;
    Compilable& functions = *turns_.front().functions;
    turns_.front().requests.pop_front();
    --requests_;
    if (!turns_.front().requests.empty()) turns_.push_back(std::move(turns_.front()));
    turns_.pop_front();
    busy_ = true;
    lock.unlock();
    functions.compile(request.function, request.for_loops);
    owner = {};
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace halyard::vm
