// Who does what is due, and in which order.
#include "due.h"

#include "workers.h"

namespace halyard::local {

// A worker that has made just one piece of its own device's work due, and has nothing else to do, goes on
// with it: waking another thread takes longer than many a dispatch. A guest leaves everything to the workers,
// calls too: they may take their time.
void DueList::hand_over() {
  if (is_guest_) {
    for (DueQueue* queue : {&work_, &calls_})
      while (Due* due = queue->pop()) home_->post(*due);
  }
  while (const Due* next = handed_.first()) {
    const bool is_all_there_is = !next->next_due && work_.empty() && calls_.empty();
    const bool is_resident = home_ == next->workers && !is_guest_;
    if (is_all_there_is && is_resident && !home_->has_queued()) return;
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
    const bool leaves = next->is_call && home_;
    if (leaves) home_->leave();
    next->run(*next, *this);
    if (leaves) home_->come_back();
  }
}

}  // namespace halyard::local
