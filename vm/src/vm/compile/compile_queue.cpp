// A queue and the threads that serve it.
#include "vm/compile/compile_queue.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/work_scope.h"

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

CompileQueue::CompileQueue(Sampling sampling, uint32_t threads)
    : sampling_(sampling), thread_limit_(std::max(threads, 1u)) {}

CompileQueue::~CompileQueue() {
  std::deque<Turn> dropped;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    dropped.swap(turns_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// Fails only if there is no thread at all.
void CompileQueue::start_thread() try {
  threads_.reserve(threads_.size() + 1);
  threads_.emplace_back([this] { work(); });
} catch (const std::exception&) {
  if (threads_.empty()) throw;
}

void CompileQueue::add(Ref<Object> owner, Compilable& functions, const Request& request) noexcept try {
  const std::lock_guard lock(mutex_);
  if (idle_threads_ <= requests_ && threads_.size() < thread_limit_) start_thread();
  running_.reserve(running_.size() + requests_ + 1);  // so that run() needs no memory
  const auto turn = std::ranges::find(turns_, &functions, &Turn::functions);
  if (turn == turns_.end()) {
    turns_.push_back({std::move(owner), &functions, {request}});
  } else {
    std::deque<Request>& requests = turn->requests;
    requests.insert(
        std::ranges::upper_bound(requests, request.priority, std::ranges::greater{}, &Request::priority),
        request);
  }
  ++requests_;
  changed_.notify_all();
} catch (const std::exception&) {
}

CompileQueue::Request CompileQueue::take(std::deque<Turn>::iterator turn,
                                         std::deque<Request>::iterator request) {
  const Request taken = *request;
  turn->requests.erase(request);
  if (turn->requests.empty()) turns_.erase(turn);
  --requests_;
  return taken;
}

void CompileQueue::run(std::unique_lock<std::mutex>& lock, Ref<Object> owner, const Task& task) noexcept {
  running_.push_back(task);
  lock.unlock();
  task.functions->compile(task.request.function, task.request.for_loops);
  owner = {};
  lock.lock();
  std::erase_if(running_, [&](const Task& other) {
    return other.functions == task.functions && other.request.function == task.request.function &&
           other.request.for_loops == task.request.for_loops;
  });
  changed_.notify_all();
}

bool CompileQueue::is_running(const Compilable& functions, uint32_t function) const {
  return std::ranges::any_of(running_, [&](const Task& task) {
    return task.functions == &functions && task.request.function == function && !task.request.for_loops;
  });
}

void CompileQueue::finish(Compilable& functions, uint32_t function, const uint32_t* stop) noexcept {
  constexpr std::chrono::milliseconds kBetweenLooks(1);  // at the stop word, which wakes nobody
  std::unique_lock lock(mutex_);
  while (stop_code(stop) == Code::OK) {
    const bool is_running = this->is_running(functions, function);
    const auto turn = std::ranges::find(turns_, &functions, &Turn::functions);
    if (turn == turns_.end()) {
      if (!is_running) return;
      changed_.wait_for(lock, kBetweenLooks);
      continue;
    }
    auto request = std::ranges::find_if(
        turn->requests, [&](const Request& each) { return each.function == function && !each.for_loops; });
    if (request == turn->requests.end()) {
      if (!is_running) return;
      request = turn->requests.begin();  // will be needed, too
    }
    Ref<Object> owner = turn->owner;
    const Request taken = take(turn, request);
    run(lock, std::move(owner), {&functions, taken});
  }
}

size_t CompileQueue::pending() {
  const std::lock_guard lock(mutex_);
  return requests_ + running_.size();
}

void CompileQueue::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return turns_.empty() && running_.empty(); });
}

void CompileQueue::work() {
  lower_priority();
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_threads_;
    changed_.wait(lock, [this] { return done_ || !turns_.empty(); });
    --idle_threads_;
    if (done_) return;
    Turn& turn = turns_.front();
    Ref<Object> owner = turn.owner;
    Compilable& functions = *turn.functions;
    const bool has_more = turn.requests.size() > 1;
    const Request request = take(turns_.begin(), turn.requests.begin());
    if (has_more) std::rotate(turns_.begin(), turns_.begin() + 1, turns_.end());
    run(lock, std::move(owner), {&functions, request});
  }
}

}  // namespace halyard::vm
