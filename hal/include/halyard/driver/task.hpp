// Of the kit (halyard/driver.hpp): tasks that become ready when timelines advance, and threads that run them.
#ifndef HALYARD_DRIVER_TASK_HPP_
#define HALYARD_DRIVER_TASK_HPP_

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace halyard::kit {

// A task: a function to run once, and the link that puts it into a list. `run` may free the task. A driver
// with its own list of ready tasks derives its own Task from this.
template <typename Self, typename List>
struct TaskLink {
  void (*run)(Self& self, List& ready) = nullptr;
  Self* next_task = nullptr;
  bool is_queued = false;
};

// A first-in, first-out queue of tasks, linked through the tasks themselves. Not thread-safe.
template <typename T>
class BasicTaskQueue {
 public:
  bool empty() const { return !first_; }
  T* first() const { return first_; }
  void push(T& task) {
    task.next_task = nullptr;
    task.is_queued = true;
    (last_ ? last_->next_task : first_) = &task;
    last_ = &task;
  }
  T* pop() {  // null if the queue is empty
    T* const task = first_;
    if (!task) return nullptr;
    first_ = task->next_task;
    if (!first_) last_ = nullptr;
    task->is_queued = false;
    return task;
  }
  // `task` must be in the queue.
  void remove(T& task) {
    T* before = nullptr;
    for (T* at = first_; at != &task; at = at->next_task) before = at;
    (before ? before->next_task : first_) = task.next_task;
    if (last_ == &task) last_ = before;
    task.is_queued = false;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

class TaskList;
struct Task : TaskLink<Task, TaskList> {};
using TaskQueue = BasicTaskQueue<Task>;

// The tasks that became ready while timelines advanced. The thread that advanced them runs the tasks after it
// has released all locks [R32]. So a chain of dependent submissions, however long, is a loop and not a
// recursion.
class TaskList {
 public:
  TaskList() = default;
  TaskList(const TaskList&) = delete;
  TaskList& operator=(const TaskList&) = delete;
  ~TaskList() { run(); }

  void push_work(Task& task) { work_.push(task); }
  void push_call(Task& task) { calls_.push(task); }
  // Runs all tasks, and those that become ready meanwhile. Queue work runs before calls of the host [R88].
  void run() {
    do {
      run_work();
      if (Task* const call = calls_.pop()) call->run(*call, *this);
    } while (!work_.empty() || !calls_.empty());
  }
  // For a thread that leaves the host's calls to another thread: runs only the queue work. The caller then
  // takes the calls with pop_call().
  void run_work() {
    while (Task* const work = work_.pop()) work->run(*work, *this);
  }
  Task* pop_call() { return calls_.pop(); }  // null: there is none

 private:
  TaskQueue work_;
  TaskQueue calls_;
};

// A thread that runs the tasks posted to it, in order. post() is thread-safe.
class TaskThread {
 public:
  TaskThread() = default;
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  ~TaskThread() { stop(); }

  // `act(task)` runs one task, on the thread. Throws std::system_error if the system starts no thread.
  template <typename Act>
  void start(Act act) {
    thread_ = std::thread([this, act = std::move(act)] {
      while (Task* const task = next()) act(*task);
    });
  }
  void post(Task& task) {
    const std::lock_guard lock(mutex_);
    queue_.push(task);
    changed_.notify_one();
  }
  // Runs everything that was posted, then joins the thread.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  Task* next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    return queue_.pop();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  TaskQueue queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_TASK_HPP_
