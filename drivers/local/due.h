// What has become due while a timeline moved or a submission was taken, as in the kit, with those who do it.
//
// Work of a device that runs in its caller is done by that list's thread. Work of a device that has workers
// is given to them.
#pragma once

#include "halyard/driver/due.hpp"

namespace halyard::local {

class DueList;
class Workers;

// `run` may free it.
struct Due : kit::DueLink<Due, DueList> {
  Workers* workers = nullptr;  // who does it; null: whoever has the list
  bool is_brief = false;       // known to be over soon: a thread that waits may do it meanwhile
  bool is_call = false;        // of the host's, which may take its time
};

using DueQueue = kit::BasicDueQueue<Due>;

class DueList {
 public:
  DueList() = default;
  // Of a thread that works as one of these; a guest has its own to do before long.
  DueList(Workers& home, bool is_guest) : home_(&home), is_guest_(is_guest) {}
  DueList(const DueList&) = delete;
  DueList& operator=(const DueList&) = delete;
  ~DueList() { run(); }

  void push_work(Due& due) { (due.workers ? handed_ : work_).push(due); }
  void push_call(Due& due) {
    due.is_call = true;
    calls_.push(due);
  }
  // Gives workers what is theirs. Said before anything that may take long.
  void hand_over();
  // Does all there is, and what becomes due by it, until there is none; work before calls. Without locks
  // held.
  void run();

 private:
  Workers* const home_ = nullptr;
  const bool is_guest_ = false;
  DueQueue work_;
  DueQueue calls_;
  DueQueue handed_;
};

}  // namespace halyard::local
