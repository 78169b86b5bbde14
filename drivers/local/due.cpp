// Who does what is due, and in which order.
#include "due.h"

#include "workers.h"

namespace halyard::local {

void DueQueue::push(Due& due) {
  due.next_due = nullptr;
  (last_ ? last_->next_due : first_) = &due;
  last_ = &due;
}

Due* DueQueue::pop() {
  Due* due = first_;
  if (due) first_ = due->next_due;
  if (!first_) last_ = nullptr;
  return due;
}

// A worker that has made just one piece of its own device's work due, and has nothing else to do, goes on
// with it: waking another thread takes longer than many a dispatch.
void DueList::hand_over() {
  while (const Due* next = handed_.first()) {
    const bool is_all_there_is = !next->next_due && work_.empty() && calls_.empty();
    if (is_all_there_is && home_ && next->workers == home_ && !home_->has_queued()) return;
    Due& due = *handed_.pop();
    due.workers->post(due);
  }
}

void DueList::run() {
  while (true) {
    hand_over();
    Due* next = work_.pop();
    if (!next) next = calls_.pop();
    if (!next) next = handed_.pop();
    if (!next) return;
    next->run(*next, *this);
  }
}

}  // namespace halyard::local
