/* A model of Wait and Wakeup (base/wait.h) with the two users of a Wait: a call (Invocation of vm), which blocks
 * or is suspended, and a wait on the stack of a thread. Spin tries all schedules (tests/test_models.py).
 *
 * Properties: no wakeup is lost (a process that stays blocked is an invalid end state); a wakeup of an earlier wait
 * does not end a later one; after a wait was cancelled, its hook is not called; a wait may be freed as soon as its
 * thread is unblocked. PLANT_* are faults that the test defines, to see that the model finds them.
 *
 * The words between backquotes are the code for which the step stands; the test fails if that code changes.
 * Sources: base/src/base/wait.cpp base/src/base/wait.h vm/src/vm/run/invocation.cpp
 *
 * Spin interleaves sequentially consistent steps: the code is as strong, because everything is under the lock
 * except the reads of waiting_ in waiting() and abandon(), by the only thread that begins waits.
 */

#define ANY 0 /* `static constexpr uint64_t kAny = 0;` */

/* The members of Wait. */
bool locked, waiting, armed, hook, failed;
byte number, missing;
bool sleeping; /* a thread sleeps on changed_ */

bool alive = true;      /* the memory of the Wait */
bool user_alive = true; /* what the hook uses */
bool quiet = true;      /* no wait in progress is armed: the hook must not be called */
bool ready;             /* the hook has told the embedder to resume */
bool interrupted;       /* of the call: Stack::interrupted */
bool arrived_2;         /* the part of the second wait has arrived */

#define LOCK atomic { !locked -> locked = true }
#define UNLOCK locked = false

inline call_hook() { /* `if (armed_ && hook_.function) hook_.function(hook_.user);` */
  if
  :: armed && hook -> assert(!quiet); assert(user_alive); ready = true; assert(user_alive)
  :: else
  fi
}

/* `bool Wait::arrive_at(uint64_t number, Status status, bool ends) noexcept {` */
inline arrive_at(which, status_failed, ends) {
  LOCK;
  if
#ifdef PLANT_NO_NUMBER
  :: !waiting -> UNLOCK
#else
  /* `if (!waiting_ || (number != kAny && number != number_)) return false;` */
  :: !waiting || (which != ANY && which != number) -> UNLOCK
#endif
  :: else ->
    if
    :: !status_failed && !ends -> missing-- /* `if (status.ok() && !ends && --missing_ > 0) return false;` */
    :: else
    fi;
    if
    :: !status_failed && !ends && missing > 0 -> UNLOCK
    :: else ->
      failed = status_failed; /* `failure_ = std::move(status);` */
      waiting = false;        /* `waiting_ = false;` */
#ifdef PLANT_NOTIFY_UNLOCKED
      UNLOCK;
      assert(alive);
      sleeping = false;
      LOCK;
#else
      assert(alive);
      sleeping = false; /* `changed_.notify_all();` */
#endif
#ifdef PLANT_HOOK_UNLOCKED
      UNLOCK;
      call_hook()
#else
      call_hook();
      UNLOCK
#endif
    fi
  fi
}

inline begin(parts) { /* `uint64_t Wait::begin(uint32_t parts) {` */
  LOCK;
  failed = false;
  missing = parts;
#ifndef PLANT_STAYS_ARMED
  armed = false; /* `armed_ = false;` */
#endif
  quiet = true;
  ready = false;
  waiting = true; /* `waiting_ = true;` */
  number++;       /* `return ++number_;` */
  UNLOCK
}

inline arm(result) { /* `bool Wait::arm() {` */
#ifdef PLANT_CHECK_BEFORE_ARMED
  result = waiting;
  LOCK;
  armed = true;
  quiet = false;
#else
  LOCK;
  armed = true;
  quiet = false;
  result = waiting; /* `return waiting_;` */
#endif
  UNLOCK
}

inline abandon() { /* `bool Wait::abandon() {` */
  if
  :: !waiting /* `if (!waiting_) return false;` A hook may still be running. */
  :: else ->
#ifdef PLANT_ABANDON_UNLOCKED
    waiting = false;
    quiet = true
#else
    LOCK;
    waiting = false; /* `return waiting_.exchange(false);` */
    quiet = true;
    UNLOCK
#endif
  fi
}

/* `bool Wait::block(const Deadline& deadline) {` */
inline block(has_deadline) {
#ifdef PLANT_CHECK_UNLOCKED
  if
  :: !waiting
  :: else ->
    LOCK;
    atomic { sleeping = true; UNLOCK };
    if
    :: !sleeping
    :: has_deadline -> sleeping = false
    fi
  fi
#else
  LOCK;
  do
  :: !waiting -> break /* `const auto has_ended = [this] { return !waiting_; };` */
  :: else ->
    atomic { sleeping = true; UNLOCK }; /* `changed_.wait(lock, has_ended);` */
    if
    :: !sleeping -> LOCK
    :: has_deadline -> sleeping = false; LOCK; break /* `if (deadline) return changed_.wait_until(lock, *deadline, has_ended);` */
    fi
  od;
  UNLOCK
#endif
}

/* `Wakeup Invocation::begin_wait(const Deadline& deadline) {` */
inline begin_wait(parts) {
#ifdef PLANT_CHECK_FIRST
  if
  :: interrupted -> begin(parts); arrive_at(ANY, false, true)
  :: else -> begin(parts)
  fi
#else
  begin(parts); /* `const uint64_t number = wait_->begin();` */
  if
  :: interrupted -> arrive_at(ANY, false, true) /* `if (stack_->interrupted.load() != 0) wait_->end();` */
  :: else
  fi
#endif
}

/* Waits in one of the ways of a call. gone: the invocation was destroyed while it was suspended. */
inline await(has_deadline) {
  if
  :: block(has_deadline); /* `wait_->block(wait_deadline_);` */
     abandon()
  :: arm(is_suspended); /* `return wait_->arm() ? Outcome::waiting : Outcome::yielded;` */
     if
     :: !is_suspended -> assert(!ready)
     :: else ->
       if
       :: true -> /* the embedder waits for the hook, or for the deadline */
          if
          :: ready
          :: has_deadline
          fi
       :: true -> !waiting /* it asks: `return wait_->waiting() && (!wait_deadline_ || Clock::now() < *wait_deadline_);` */
       :: LOCK; hook = false; UNLOCK; /* `wait_->set_hook({});` */
          user_alive = false;
          gone = true
       fi
     fi;
     abandon() /* `wait_->abandon();` */
  fi
}

proctype signaller(byte which) { /* `if (wait_) wait_->arrive(number_);` */
  if
  :: which == 2 -> arrived_2 = true
  :: else
  fi;
  if
  :: arrive_at(which, false, false)
  :: which == 1 -> arrive_at(which, true, false) /* a failure, as in FenceWait::part_arrived() */
  :: interrupted /* the part never arrives: only the interruption ends the wait */
  fi
}

proctype interrupter() { /* `void Invocation::interrupt(Code code) {` */
  if
  :: true
  :: interrupted = true;            /* `stack_->interrupted.store(static_cast<uint32_t>(code));` */
     arrive_at(ANY, false, true)    /* `wait_->end();` */
  fi
}

proctype call() {
  bool deadline, is_suspended, gone;
  hook = true;
  if
  :: deadline = true
  :: deadline = false
  fi;
  begin_wait(2);
  run signaller(1);
  run signaller(1);
  await(deadline);
  assert(!waiting);
  if
  :: gone || interrupted
  :: else ->
    begin_wait(1);
    run signaller(2);
    await(false);
    assert(!waiting);
    assert(arrived_2 || interrupted || gone)
  fi
}

/* A thread whose Wait is on its stack: dispatch_now of hal_loader. */
proctype thread() {
  begin(1);
  run signaller(1);
  block(false);
  assert(!waiting);
  alive = false
}

init {
  atomic {
    if
    :: run call(); run interrupter()
    :: run thread()
    fi
  }
}
