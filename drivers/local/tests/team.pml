/* A model of Team (team.h): an owner shares two works with helpers that join, stay, leave and join again; within a work
 * a helper may share a loop. Spin tries all schedules (tests/test_models.py).
 *
 * Properties: when share() returns, no thread is inside its work; a thread inside sees the work that it has entered, and
 * enters no work twice; no task is posted twice; nothing is used after the team was freed, and it is freed. A process
 * that stays blocked is an invalid end state. PLANT_* are faults that the test defines, to see that the model finds them.
 *
 * The words between backquotes are the code for which the step stands; the test fails if that code changes.
 * Sources: drivers/local/team.cpp drivers/local/team.h
 *
 * Spin interleaves sequentially consistent steps. The code is as strong where it matters: all changes of a gate are of
 * one word, entering acquires what opening has released, and closing acquires what leaving has released.
 */

#define GATES 2   /* the code has four; the model never needs more */
#define HELPERS 2
#define WORKS 2
#define OWNER HELPERS /* the number of the thread that owns the team */

/* The word of a gate. Changes of it are atomic. */
byte number[GATES], inside[GATES], seats[GATES];
bool open[GATES], taken[GATES];
byte work_of[GATES]; /* `gate->work = work;` */

byte last_number;
bool has_ended, freed;
byte references = 1; /* `std::atomic<uint32_t> references_ = 1;` */
bool away[HELPERS] = true, queued[HELPERS];
byte entered[GATES * 3]; /* of each thread: the last number, by gate */
bool visited[4 * 3];     /* of each work: by thread */

#define ALIVE assert(!freed)

/* `void Team::release() noexcept {` */
inline release() {
  atomic {
    ALIVE;
    references--; /* `if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;` */
    if
    :: references == 0 -> freed = true /* `this->~Team();` */
    :: else
    fi
  }
}

/* `void Team::call(uint32_t helpers) {` Other threads may call at the same time. */
inline call() {
  h = 0;
  do
  :: h < HELPERS ->
    atomic { /* `!helper.is_away.exchange(false, std::memory_order_acquire))` */
      ALIVE;
      was_away = away[h];
      away[h] = false
    };
    if
    :: was_away ->
#ifndef PLANT_NO_REFERENCE
      references++; /* `references_.fetch_add(1, std::memory_order_relaxed);` */
#endif
      atomic { assert(!queued[h]); queued[h] = true } /* `thread_pool_.post(helper);` */
    :: else
    fi;
    h++
  :: h == HELPERS -> break
  od;
  h = 0
}

/* `const auto take = [](Gate& gate) {` */
inline take() {
  atomic {
    ALIVE;
    if
    :: !open[0] && !taken[0] && inside[0] == 0 -> g = 0; taken[0] = true
    :: !(!open[0] && !taken[0] && inside[0] == 0) && !open[1] && !taken[1] && inside[1] == 0 -> g = 1; taken[1] = true
    :: else -> g = GATES /* `if (gate == gates_.end()) return work(data, Role::owner);` */
    fi
  }
}

/* `gate->state.store(uint64_t{number} << 32 | kOpen | kTaken | seats << kSeats, std::memory_order_release);` */
inline open_gate(wanted) {
  d_step { last_number++; mine = last_number }; /* `last_.fetch_add(1, std::memory_order_relaxed) + 1;` */
  work_of[g] = mine;
  d_step { number[g] = mine; seats[g] = wanted; open[g] = true }
}

/* `bool Team::take_part(Seen& seen, uint32_t after) noexcept {` For gate `at`; a helper's work may share a loop. */
inline enter(me, at, after) {
  has_entered = false;
  atomic {
    ALIVE;
    if
#ifdef PLANT_ENTER_CLOSED
    :: taken[at] && number[at] > entered[me * GATES + at] && number[at] > after && inside[at] < seats[at] ->
#else
    /* `while ((state & kOpen) && state >> 32 > std::max(seen[i], after) &&` */
    :: open[at] && number[at] > entered[me * GATES + at] && number[at] > after && inside[at] < seats[at] ->
#endif
      inside[at]++; /* `gate.state.compare_exchange_weak(state, state + 1, std::memory_order_acquire)` */
#ifndef PLANT_FORGET_NUMBER
      entered[me * GATES + at] = number[at]; /* `seen[i] = static_cast<uint32_t>(state >> 32);` */
#endif
      has_entered = true;
      its = number[at];
      assert(!visited[its * 3 + me]);
      visited[its * 3 + me] = true
    :: else
    fi
  }
}

/* `gate.state.fetch_sub(1, std::memory_order_release);` */
inline leave(at) {
  d_step { ALIVE; assert(work_of[at] == its); assert(inside[at] > 0); inside[at]-- }
}

/* `void Team::close(Gate& gate, uint32_t number) noexcept {` */
inline close(me) {
  open[g] = false; /* `gate.state.fetch_and(~kOpen, std::memory_order_acquire) & ~kOpen;` */
#ifndef PLANT_DO_NOT_WAIT
  do
  :: inside[g] == 0 -> break
  :: inside[g] != 0 && open[1 - g] && number[1 - g] > mine -> /* `if (take_part(seen, number)) continue;` */
    enter(me, 1 - g, mine);
    if
    :: has_entered -> leave(1 - g)
    :: else
    fi
  od;
#endif
  assert(inside[g] == 0);
  d_step { taken[g] = false; seats[g] = 0 } /* `gate.state.store(state >> 32 << 32, std::memory_order_release);` */
}

active proctype owner() {
  byte h, g, mine, its, works;
  bool was_away, has_entered;
  do
  :: works < WORKS ->
    take();
    assert(g < GATES);
    open_gate(HELPERS);
    call();
    close(OWNER);
    works++
  :: works == WORKS -> break
  od;
  /* `void Team::end() noexcept {` */
  has_ended = true; /* `has_ended_.store(true, std::memory_order_release);` */
  h = 0;
  do
  :: h < HELPERS ->
    if
#ifdef PLANT_RELEASE_STARTED
    :: !away[h] -> queued[h] = false; release()
#else
    /* `if (!helper.is_away.load(std::memory_order_acquire) && thread_pool_.take_back(helper)) release();` */
    :: atomic { queued[h] -> queued[h] = false }; release()
#endif
    :: else
    fi;
    h++
  :: h == HELPERS -> break
  od;
  release()
}

/* A thread of the pool that runs the task of helper `me` each time it is posted. */
proctype helper(byte me) {
  byte h, g, mine, its, outer, at;
  bool was_away, has_entered;
end:
  do
  :: atomic { queued[me] -> queued[me] = false };
    /* `void Team::stay() noexcept {` */
    at = 0;
    do
    :: ALIVE; has_ended -> break /* `while (!has_ended_.load(std::memory_order_acquire)) {` */
    :: !has_ended ->
      ALIVE;
      if
      :: break /* `if (thread_pool_.is_idle_too_long(idle) ||` and the task is posted again later */
      :: at = 0
      :: at = 1
      fi;
      enter(me, at, 0);
      if
      :: has_entered ->
        outer = its;
        if
        :: at == 0 && outer == 1 && me == 0 -> /* shares a loop within the work */
          take();
          if
          :: g < GATES ->
            open_gate(1);
            call();
            close(me);
            g = 0
          :: else
          fi;
          its = outer
        :: else
        fi;
        leave(at)
      :: else
      fi
    od;
#ifdef PLANT_RELEASE_FIRST
    release();
    atomic { ALIVE; away[me] = true }
#else
    atomic { ALIVE; away[me] = true }; /* `self.is_away.store(true, std::memory_order_release);` */
    release() /* `team.release();` */
#endif
  od
}

init {
  atomic { run helper(0); run helper(1) };
  timeout -> assert(freed) /* when nobody can go on */
}
