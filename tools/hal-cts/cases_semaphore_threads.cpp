// Timelines that several threads use concurrently, and actions that subscribers may take.
#include <atomic>
#include <chrono>
#include <thread>

#include "cases.h"
#include "subscriptions.h"
#include "threads.h"

namespace halyard::cts {

namespace {
void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
}  // namespace

void semaphore_wakes_waiters(Session& s) {
  const Semaphore a = s.semaphore(), b = s.semaphore();
  at_once(7, [&](int thread) {
    if (thread == 6) {
      sleep_ms(20);  // so that some threads are waiting; the outcome is right in any case
      s.must("semaphore_signal", "signal of 1", s.signal(a, 1));
      s.must("semaphore_signal", "signal of 5", s.signal(b, 5));
    } else if (thread % 3 == 0) {
      s.succeeded("R84", "wait for one semaphore, in a thread", s.wait({{a, 1}}, false, s.patience()));
    } else if (thread % 3 == 1) {
      s.succeeded("R84", "wait for all of two, in a thread", s.wait({{a, 1}, {b, 4}}, false, s.patience()));
    } else {
      s.succeeded("R84", "wait for any of two, in a thread",
                  s.wait({{a, 100}, {b, 1}}, true, HALYARD_WAIT_FOREVER));
    }
  });
}

void semaphore_failure_wakes_waiters(Session& s) {
  const Semaphore a = s.semaphore(), b = s.semaphore();
  at_once(4, [&](int thread) {
    if (thread == 3) {
      sleep_ms(20);
      s.fail(b, HALYARD_ABORTED, "aborted while others wait");
      return;
    }
    // Neither value will be reached.
    const Points points = thread == 0 ? Points{{b, 1}} : Points{{a, 1}, {b, 1}};
    s.refused_naming("R84", "wait of a thread for a semaphore that fails", HALYARD_ABORTED,
                     "aborted while others wait", s.wait(points, thread == 2, s.patience()));
  });
}

void semaphore_unsubscribe_races(Session& s) {
  for (int round = 0; round < 300; ++round) {
    const Semaphore semaphore = s.semaphore();
    Subscription subscription(s);
    s.must("semaphore_subscribe", "semaphore_subscribe", subscription.to(semaphore, 1));
    int32_t taken_back = -1;
    at_once(2, [&](int thread) {
      if (thread == 0) {
        s.must("semaphore_signal", "signal of 1", s.signal(semaphore, 1));
      } else {
        taken_back = subscription.unsubscribe(semaphore);
      }
    });
    if (taken_back == 0) subscription.is_called("R87", "a subscriber that could not be taken back", 1);
    if (taken_back == 1)
      s.equal("R87", "calls of a subscriber that was taken back while the semaphore was signalled", 0,
              subscription.calls());
    if (s.failed()) return;
    s.destroy(semaphore);
  }
}

void semaphore_subscribers_may_do_anything(Session& s) {
  const Semaphore semaphore = s.semaphore(), next = s.semaphore(), done = s.semaphore();
  const Memory memory = s.allocate(64);
  Subscription other(s);
  s.must("semaphore_subscribe", "semaphore_subscribe", other.to(semaphore, 50));
  Subscription inner(s);
  Subscription outer(s, [&] {
    until_stopped([&] {
      uint64_t value = 0;
      s.succeeded("R32", "query in a subscriber", s.query(semaphore, &value));
      s.succeeded("R32", "poll in a subscriber", s.wait({{semaphore, 1}}, false, 0));
      s.succeeded("R32", "semaphore_subscribe in a subscriber", inner.to(next, 1));
      s.equal("R32", "semaphore_unsubscribe in a subscriber", 1, other.unsubscribe(semaphore));
      s.succeeded("R32", "signal in a subscriber", s.signal(next, 1));
      void* pointer = nullptr;
      if (s.succeeded("R32", "memory_map in a subscriber", s.map(memory, HALYARD_MAP_READ, 0, 64, &pointer)))
        s.unmap(memory);
      s.destroy(s.semaphore());
      s.fail(s.semaphore(), HALYARD_ABORTED, "failed in a subscriber");
      s.submit(barrier_operation(), {{next, 1}}, {{done, 1}});
    });
  });
  s.must("semaphore_subscribe", "semaphore_subscribe", outer.to(semaphore, 1));
  s.must("semaphore_signal", "signal of 1", s.signal(semaphore, 1));
  outer.is_called("R32", "the subscriber that does it all", 1);
  inner.is_called("R32", "the subscriber that a subscriber subscribed", 1);
  s.succeeded("R32", "wait for the work that a subscriber submitted", s.await(done, 1));
}

void semaphore_slow_subscribers_delay_nobody(Session& s) {
  // The first subscriber waits for an action that the main thread takes after it has seen the value.
  const Semaphore semaphore = s.semaphore(), freed = s.semaphore();
  std::atomic<bool> was_freed = false;
  Subscription slow(s, [&] { was_freed = s.wait({{freed, 1}}, false, s.patience()).ok(); });
  s.must("semaphore_subscribe", "semaphore_subscribe", slow.to(semaphore, 1));
  at_once(2, [&](int thread) {
    if (thread == 0) {
      s.must("semaphore_signal", "signal of 1", s.signal(semaphore, 1));
    } else {
      s.succeeded("R88", "wait for a value while a subscriber to it is still busy", s.await(semaphore, 1));
      s.must("semaphore_signal", "signal", s.signal(freed, 1));
    }
  });
  slow.is_called("R88", "the slow subscriber", 1);
  s.check("R88", was_freed, "the slow subscriber's wait for what happens after the value was seen", "success",
          "a failure");
}

void semaphore_help_comes_back(Session& s) {
  if (!s.table().device_help) unsupported("device_help is null");
  const auto help = [&](Semaphore semaphore, uint64_t value) {
    s.note(fmt::format("device_help until {}", value));
    const halyard_timepoint_t point = {semaphore, value};
    halyard_semaphore_wait_args_t args = {};
    args.struct_size = sizeof args;
    args.timepoint_count = 1;
    args.timepoints = &point;
    args.deadline_ns = HALYARD_WAIT_FOREVER;
    s.table().device_help(s.device(), &args);
  };
  halyard_operation_t nothing = {};
  nothing.struct_size = sizeof nothing;
  nothing.kind = HALYARD_OPERATION_BARRIER;

  // There is no work, or no thread runs it.
  const Semaphore start = s.semaphore(1), failed = s.semaphore();
  s.fail(failed, HALYARD_ABORTED, "failed");
  help(start, 1);
  help(start, 2);
  help(failed, 1);

  // Threads run pending work that other threads have made ready.
  constexpr uint64_t kTurns = 50;
  const Semaphore turns = s.semaphore();
  for (uint64_t turn = 1; turn < kTurns; ++turn) s.submit(nothing, {{turns, turn}}, {{turns, turn + 1}});
  help(turns, kTurns);
  at_once(4, [&](int thread) {
    if (thread == 0) s.must("semaphore_signal", "signal of 1", s.signal(turns, 1));
    help(turns, kTurns);
    s.succeeded("R60", "the end of work that threads have helped with", s.await(turns, kTurns));
  });

  // A subscriber waits for an action of the thread that runs pending work.
  const Semaphore middle = s.semaphore(), end = s.semaphore(), freed = s.semaphore();
  std::atomic<bool> was_freed = false;
  Subscription slow(s, [&] { was_freed = s.wait({{freed, 1}}, false, s.patience()).ok(); });
  s.must("semaphore_subscribe", "semaphore_subscribe", slow.to(middle, 1));
  s.submit(nothing, {{start, 2}}, {{middle, 1}});
  s.submit(nothing, {{middle, 1}}, {{end, 1}});
  at_once(2, [&](int thread) {
    if (thread == 0) {
      s.must("semaphore_signal", "signal of 2", s.signal(start, 2));
    } else {
      help(end, 1);
      s.succeeded("R88", "a wait behind a value to which a subscriber is still busy", s.await(end, 1));
      s.must("semaphore_signal", "signal", s.signal(freed, 1));
    }
  });
  slow.is_called("R88", "the slow subscriber", 1);
  s.check("R89", was_freed, "the slow subscriber's wait for what the thread that helped did then", "success",
          "a failure");
}

void semaphore_threads(Session& s) {
  // Each thread waits for the previous one: each turn increments the value.
  constexpr int kThreads = 8, kTurns = 50;
  const Semaphore semaphore = s.semaphore();
  at_once(kThreads, [&](int thread) {
    for (int turn = 0; turn < kTurns; ++turn) {
      const auto mine = static_cast<uint64_t>(turn) * kThreads + static_cast<uint64_t>(thread);
      s.must("R84", fmt::format("wait for {} in thread {}", mine, thread), s.await(semaphore, mine));
      uint64_t value = 0;
      s.must("semaphore_query", "query", s.query(semaphore, &value));
      s.check("R80", value == mine, "the value in a thread whose turn it is", fmt::format("{}", mine),
              fmt::format("{}", value));
      s.must("semaphore_signal", "signal of the next turn", s.signal(semaphore, mine + 1));
    }
  });
  s.value_is("R80", "the value after all turns", semaphore, kThreads * kTurns);

  // Racing signals: each value is set at most once, and values never decrease.
  const Semaphore raced = s.semaphore();
  std::atomic<int> won = 0;
  at_once(kThreads, [&](int thread) {
    uint64_t last = 0;
    for (uint64_t value = 1; value <= 500; ++value) {
      const Outcome outcome = s.signal(raced, value);
      if (outcome.ok()) {
        ++won;
      } else {
        s.refused("R82", "a signal that came too late", HALYARD_INVALID_ARGUMENT, outcome);
      }
      uint64_t seen = 0;
      s.must("semaphore_query", "query", s.query(raced, &seen));
      s.check("R80", seen >= last && seen >= value, fmt::format("the value that thread {} sees", thread),
              fmt::format("at least {}", std::max(last, value)), fmt::format("{}", seen));
      last = seen;
      if (s.failed()) return;
    }
  });
  s.check("R82", won <= 500 && won >= 1, "signals of 500 values by 8 threads that succeeded", "1 to 500",
          fmt::format("{}", won.load()));
  s.value_is("R80", "the value after all signals", raced, 500);
}

}  // namespace halyard::cts
