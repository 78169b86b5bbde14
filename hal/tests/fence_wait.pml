/* A model of waiting for fences: timelines of the kit (halyard/driver/timeline.hpp), semaphores and their holders
 * (hal/queue/fence.h), a wait for two timepoints (hal/queue/wait.h), and queue work that waits for the first semaphore
 * and signals the second. Spin tries all schedules (tests/test_models.py). base/tests/wait.pml models Wait itself,
 * whose functions are single steps here.
 *
 * Properties: no wakeup is lost, and a semaphore that nobody can signal any more fails its waiters (a process that stays
 * blocked is an invalid end state); a cancelled wait leaves no subscriber behind and frees its memory once; nothing is used
 * after it was freed; the outcome is that of the semaphores. PLANT_* are faults that the test defines, to see that the
 * model finds them.
 *
 * The words between backquotes are the code for which the step stands; the test fails if that code changes.
 * Sources: hal/include/halyard/driver/timeline.hpp hal/src/hal/queue/fence.h hal/src/hal/queue/fence.cpp
 *          hal/src/hal/queue/wait.cpp hal/src/hal/queue/submission.h hal/src/hal/queue/submission.cpp
 *          hal/include/halyard/driver/waiting.hpp
 *
 * Spin interleaves sequentially consistent steps. The code is as strong: the value of a timeline and its count of
 * waiters are sequentially consistent, holders change by read-modify-write, and the rest is under the lock.
 */

/* Waiters: 0 and 1 are the subscriptions of the wait, to semaphores 0 and 1; 2 is the work's wait for semaphore 0. */
#define SEMAPHORE_OF(w) ((w) == 1 -> 1 : 0)
#define WORK 2

/* BasicTimeline and WaiterList. */
bool value[2], failed[2], locked[2];
byte count[2];
bool listed[3];

/* Semaphore. References: the wait's fence has one of each, the signaller one of 0, the submitter one of each. */
bool alive[2] = true;
byte references[2], holders[2] = 1;
bool awaited[2];

/* FenceWait. */
bool wait_alive, waiting, wait_failed, woken;
byte wait_holders, missing;

/* The queue work. */
bool work_ready, work_failed;

bool cancelled;

#define LOCK(s) atomic { assert(alive[s]); !locked[s] -> locked[s] = true }
#define UNLOCK(s) locked[s] = false

/* `void Semaphore::drop_holder() {` */
inline drop_semaphore_holder(s) {
  atomic {
    assert(alive[s]);
    holders[s]--;
    if
    :: holders[s] == 0 -> assert(count[s] == 0); alive[s] = false
    :: else
    fi
  }
}

/* `void drop_holder() noexcept {` */
inline drop_wait_holder() {
  atomic {
    assert(wait_alive);
    wait_holders--;
    if
    :: wait_holders == 0 -> wait_alive = false; is_last = true /* the subscriptions are destroyed with it */
    :: else -> is_last = false
    fi
  };
  if
  :: is_last -> drop_semaphore_holder(0); drop_semaphore_holder(1)
  :: else
  fi
}

/* `void part_arrived(Status status) noexcept {` */
inline part_arrived(status_failed) {
  atomic { /* `if (!arrive(std::move(status))) return;` */
    assert(wait_alive);
    has_ended = false;
    if
    :: waiting ->
      if
      :: status_failed
      :: else -> missing--
      fi;
      if
      :: status_failed || missing == 0 -> waiting = false; wait_failed = status_failed; has_ended = true
      :: else
      fi
    :: else
    fi
  };
  if
  :: has_ended -> woken = true /* `end_.wakeup.wake();` */
  :: else
  fi
}

/* `static void called(void* user, halyard_status_t handle) {` */
inline complete(w, status_failed) {
  if
  :: w == WORK -> work_failed = status_failed; work_ready = true
  :: else -> part_arrived(status_failed); drop_wait_holder() /* `wait.drop_holder();` */
  fi
}

/* Under the lock: `return waiters_.take_front(` */
inline take_completed(s) {
  d_step {
    i = 0;
    do
    :: i < 3 ->
      took[i] = listed[i] && SEMAPHORE_OF(i) == s;
      if
      :: took[i] -> listed[i] = false; count[s]--
      :: else
      fi;
      i++
    :: else -> break
    od;
    i = 0
  }
}

/* `void complete_all(W* first, const Status& failure, List& ready) {` */
inline complete_all(status_failed) {
  do
  :: i < 3 ->
    if
    :: took[i] -> complete(i, status_failed)
    :: else
    fi;
    i++
  :: else -> break
  od
}

/* `bool advance(uint64_t to, List& ready) {` */
inline advance(s) {
  assert(alive[s]);
  if
  :: failed[s] /* `if (failed_.load(std::memory_order_acquire) || !grow(to)) return false;` */
  :: else ->
    value[s] = true;
    if
    :: count[s] == 0 /* `if (!waiters_.any()) return true;` */
    :: else -> LOCK(s); take_completed(s); UNLOCK(s); complete_all(false)
    fi
  fi
}

/* `void fail(const Status& failure, List& ready) {` */
inline fail(s) {
  LOCK(s);
  if
  :: failed[s] -> UNLOCK(s) /* `if (failed_.load(std::memory_order_relaxed)) return;` */
  :: else ->
    failed[s] = true; /* `failed_.store(true, std::memory_order_release);` */
    take_completed(s);
    UNLOCK(s);
    complete_all(true)
  fi
}

/* `bool watch(W& waiter) {` */
inline watch(w, s) {
#ifdef PLANT_CHECK_FIRST
  if
  :: failed[s] || value[s] -> is_watched = false
  :: else -> LOCK(s); listed[w] = true; count[s]++; UNLOCK(s); is_watched = true
  fi
#else
  LOCK(s);
  listed[w] = true; count[s]++; /* `waiters_.insert(waiter);` */
  if
  /* `if (!failed_.load(std::memory_order_relaxed) && value_.load() < waiter.value) return true;` */
  :: !failed[s] && !value[s] -> is_watched = true
  :: else -> listed[w] = false; count[s]--; is_watched = false /* `waiters_.remove(waiter);` */
  fi;
  UNLOCK(s)
#endif
}

/* `void subscribe(uint64_t value, halyard_subscriber_fn function, void* user, List& ready) {` */
inline subscribe(w, s) {
  watch(w, s);
  if
  :: is_watched
  :: else -> complete(w, failed[s])
  fi
}

/* `bool unsubscribe(halyard_subscriber_fn function, void* user) {` */
inline unsubscribe(w, s) {
  LOCK(s);
  if
  :: listed[w] -> listed[w] = false; count[s]--; is_removed = true
  :: else -> is_removed = false
  fi;
  UNLOCK(s)
}

/* `Awaited::Awaited(Semaphore& semaphore, uint64_t value) : semaphore_(&semaphore) {` */
inline add_awaited(s) {
  atomic { assert(alive[s]); holders[s]++ };
  awaited[s] = true
}

/* Releases a Ref; the last one: `void Semaphore::destroy(Object* object) {` */
inline drop_reference(s) {
  atomic { references[s]--; is_last = references[s] == 0 };
  if
  :: !is_last
  :: else ->
    if /* `if (semaphore->holders_.load(std::memory_order_acquire) > 1) {` */
#ifndef PLANT_DROP_SILENTLY
    :: holders[s] > 1 && !failed[s] && !value[s] && awaited[s] -> fail(s) /* `semaphore->fail(std::move(abandoned));` */
#endif
    :: else
    fi;
    drop_semaphore_holder(s) /* `semaphore->drop_holder();` */
  fi
}

/* `static void destroy(Object* object) {` */
inline cancel_subscription(w) {
  if
  :: wait_holders == 1 /* `if (wait->holders_.load(std::memory_order_acquire) == 1) break;` */
  :: else ->
#ifdef PLANT_LEAVE_SUBSCRIBER
    drop_wait_holder()
#else
    unsubscribe(w, w);
    if
#ifdef PLANT_DROP_TWICE
    :: true -> drop_wait_holder()
#else
    /* `if (semaphore.device().table().semaphore_unsubscribe(semaphore.handle(), called, &each) != 0)` */
    :: is_removed -> drop_wait_holder()
    :: else
#endif
    fi
#endif
  fi
}

proctype waiter() {
  bool took[3], has_ended, is_last, is_watched, is_removed, patient;
  byte i;
  if
  :: patient = true
  :: patient = false
  fi;
  /* `static Result<Ref<FenceWait>> begin(const Unreached& timepoints, End end) {` */
  wait_alive = true;
  waiting = true;
  wait_holders = 1;
  missing = 3;                 /* `static_cast<uint32_t>(timepoints == 1 ? 1 : timepoints + 1)` */
  add_awaited(0);              /* `subscriptions_.push_back({this, Awaited(semaphore, timepoint->value)});` */
  wait_holders++;              /* `fetch_add(holders_, 1, std::memory_order_relaxed);` */
  subscribe(0, 0);
  add_awaited(1);
  wait_holders++;
  subscribe(1, 1);
  part_arrived(false);         /* `if (timepoints.size() > 1) part_arrived({});` */
  i = 0;
  drop_reference(0);           /* the program drops its fence */
  i = 0;
  drop_reference(1);
  if
  :: patient -> woken; assert(!waiting); assert(wait_failed || (value[0] && value[1])); assert(!wait_failed || failed[0] || failed[1])
  :: !patient -> cancelled = true /* the deadline, or the end of the call, drops the watch */
  fi;
  cancel_subscription(0);
  cancel_subscription(1);
  drop_wait_holder();          /* `wait->drop_holder();` */
}

/* The program, or another device: signals semaphore 0, fails it, or drops it. */
proctype signaller() {
  bool took[3], has_ended, is_last;
  byte i;
  if
  :: advance(0)
  :: fail(0)
  :: true
  fi;
  i = 0;
  drop_reference(0)
}

/* Submits work that waits for semaphore 0 and signals semaphore 1, and runs it. */
proctype work() {
  bool took[3], has_ended, is_last, is_watched;
  byte i;
  if
  :: true -> drop_reference(0) /* the submission is refused, or never made */
  :: watch(WORK, 0);           /* `if (!wait.timeline->watch(wait)) wait_completed(wait, wait.timeline->failure(), ready);` */
     if
     :: is_watched
     :: else -> complete(WORK, failed[0])
     fi;
#ifdef PLANT_KEEP_LATE
     drop_reference(0);
     i = 0;
     add_awaited(0);
#else
     add_awaited(0);           /* `work->waits.push_back({semaphore, timepoints[work->waits.size()].value});` */
     drop_reference(0);        /* the caller's fence */
#endif
     i = 0;
     work_ready;
     if
     :: work_failed -> fail(1) /* `make_signals(signal, *home, result.ok() ? host_signals : HostSignals::all, result);` */
     :: else -> advance(1)
     fi;
     drop_semaphore_holder(0)
  fi;
  i = 0;
  drop_reference(1)            /* `if (signal) signal->release();` */
}

init {
  atomic {
    references[0] = 3;
    references[1] = 2;
    run waiter();
    run signaller();
    run work()
  };
  _nr_pr == 1;
  assert(!wait_alive);
  assert(cancelled || woken)
}
