// Due: something to do, as a link of a list that its owner allocated. DueList: what has become due while a
// timeline moved or a submission was taken, for whoever did that to see to once all locks are given back. A
// chain of work, however long, is a loop and not a recursion.
#pragma once

namespace halyard::vulkan {

class DueList;

// `run` may free it.
struct Due {
  void (*run)(Due& self, DueList& due) = nullptr;
  Due* next_due = nullptr;
};

// Work goes before calls of the host: it takes no time to hand to the device. Not synchronised.
class DueList {
 public:
  DueList() = default;
  DueList(const DueList&) = delete;
  DueList& operator=(const DueList&) = delete;

  void push_work(Due& due) { work_.push(due); }
  void push_call(Due& due) { calls_.push(due); }
  // Does all there is, and what becomes due by it, until there is none. Without locks held.
  void run() {
    while (true) {
      Due* next = work_.pop();
      if (!next) next = calls_.pop();
      if (!next) return;
      next->run(*next, *this);
    }
  }

 private:
  struct Queue {
    Due* first = nullptr;
    Due* last = nullptr;
    void push(Due& due) {
      due.next_due = nullptr;
      (last ? last->next_due : first) = &due;
      last = &due;
    }
    Due* pop() {
      Due* due = first;
      if (due) first = due->next_due;
      if (!first) last = nullptr;
      return due;
    }
  };
  Queue work_;
  Queue calls_;
};

}  // namespace halyard::vulkan
