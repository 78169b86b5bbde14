// Tasks that became ready while a timeline advanced or work was submitted, as in the kit, and the threads
// that run them.
//
// Tasks of a device that runs in its caller run on the thread that owns the list. Tasks of a device with
// workers are posted to its thread pool.
#pragma once

#include "halyard/driver/task.hpp"

namespace halyard::local {

class TaskList;
class ThreadPool;

// `run` may free the task.
struct Task : kit::TaskLink<Task, TaskList> {
  ThreadPool* thread_pool = nullptr;  // runs the task; null: the thread that owns the list does
  bool is_brief = false;              // expected to be short: a waiting thread may run it
  bool is_call = false;               // a call of the host, which may take long
};

using TaskQueue = kit::BasicTaskQueue<Task>;

class TaskList {
 public:
  TaskList() = default;
  // For a thread of `pool`, or for a helper: a waiting thread that runs tasks of the pool and should return
  // soon.
  TaskList(ThreadPool& pool, bool is_helper) : pool_(&pool), is_helper_(is_helper) {}
  TaskList(const TaskList&) = delete;
  TaskList& operator=(const TaskList&) = delete;
  ~TaskList() { run(); }

  void push_work(Task& task) { (task.thread_pool ? for_pools_ : work_).push(task); }
  void push_call(Task& task) {
    task.is_call = true;
    calls_.push(task);
  }
  // Posts tasks to their thread pools. Call it before anything that may take long.
  void post_to_pools();
  // Runs all tasks, and those that become ready meanwhile; queue work before calls. Call it without locks
  // held.
  void run();

 private:
  ThreadPool* const pool_ = nullptr;
  const bool is_helper_ = false;
  TaskQueue work_;
  TaskQueue calls_;
  TaskQueue for_pools_;
};

}  // namespace halyard::local
