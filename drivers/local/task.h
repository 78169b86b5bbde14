// Task: a function to run once, and the thread pool that runs it.
#pragma once

#include "halyard/driver/task.hpp"

namespace halyard::local {

class TaskList;
class ThreadPool;

// `run` may free the task.
struct Task : kit::TaskLink<Task, TaskList> {
  ThreadPool* thread_pool = nullptr;  // runs the task; null: the thread that owns the list runs it
  bool is_brief = false;              // expected to be short: a waiting thread may run it
  bool is_call = false;               // calls the host, which may take long
};

using TaskQueue = kit::BasicTaskQueue<Task>;

}  // namespace halyard::local
