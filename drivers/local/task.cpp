// Where ready tasks run, and in which order.
#include "task.h"

#include "thread_pool.h"

namespace halyard::local {

// A pool thread that made exactly one task of its own device ready, and has nothing else to run, runs that
// task itself: waking another thread takes longer than many dispatches. A helper posts everything to the
// pool, including calls of the host, which may take long.
void TaskList::post_to_pools() {
  if (is_helper_) {
    for (TaskQueue* queue : {&work_, &calls_})
      while (Task* task = queue->pop()) pool_->post(*task);
  }
  while (const Task* next = for_pools_.first()) {
    const bool is_only_task = !next->next_task && work_.empty() && calls_.empty();
    const bool is_own = pool_ == next->thread_pool && !is_helper_;
    if (is_only_task && is_own && !pool_->has_queued()) return;
    Task& task = *for_pools_.pop();
    task.thread_pool->post(task);
  }
}

void TaskList::run() {
  while (true) {
    post_to_pools();
    Task* next = work_.pop();
    if (!next) next = calls_.pop();
    if (!next) next = for_pools_.pop();
    if (!next) return;
    const bool is_host_call = next->is_call && pool_;
    if (is_host_call) pool_->begin_host_call();
    next->run(*next, *this);
    if (is_host_call) pool_->end_host_call();
  }
}

}  // namespace halyard::local
