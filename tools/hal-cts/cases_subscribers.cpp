// Subscribing at the moment of the signal, and subscribers that wait.
#include <atomic>
#include <thread>

#include "bytes.h"
#include "cases.h"
#include "interruption.h"
#include "subscriptions.h"
#include "threads.h"

namespace halyard::cts {

namespace {

// Waits like a thread of the host that is about to block: it runs pending work of the device [R89].
Outcome wait_helping(Session& s, Semaphore semaphore, uint64_t value) {
  const Points points = {{semaphore, value}};
  const halyard_semaphore_wait_args_t args = {.struct_size = sizeof args,
                                              .timepoint_count = 1,
                                              .timepoints = points.data(),
                                              .deadline_ns = HALYARD_WAIT_FOREVER};
  const int64_t end = s.patience() - s.patience_ns() / 2;
  Outcome outcome;
  do {
    if (s.table().device_help) s.table().device_help(s.device(), &args);
    outcome = s.wait(points, false, now_ns() + 5'000'000);
  } while (outcome.code == HALYARD_DEADLINE_EXCEEDED && now_ns() < end);
  return outcome;
}

}  // namespace

void semaphore_subscribe_races(Session& s) {
  constexpr int kMaxRounds = 30000, kWays = 3;
  constexpr const char* kNames[kWays] = {"a host's signal", "a queue's signal", "a failure"};
  const int64_t end = now_ns() + s.patience_ns() / 16;
  Semaphore semaphore = nullptr;
  int round = 0;
  std::atomic<bool> over = false;
  at_once(2, [&](int thread) {
    if (thread == 0) {
      serve_interruptions(
          [&] {
            until_stopped([&] {
              switch (round % kWays) {
                case 0:
                  return s.must("semaphore_signal", "signal while somebody subscribes",
                                s.signal(semaphore, 1));
                case 1:
                  return static_cast<void>(s.submit(barrier_operation(), {}, {{semaphore, 1}}));
                default:
                  return s.fail(semaphore, HALYARD_ABORTED, "failed while somebody subscribes");
              }
            });
          },
          [&] { return over.load(); });
      return;
    }
    until_stopped([&] {
      Interruption interruption;
      for (; round < kMaxRounds && (round < kWays || now_ns() < end) && !s.failed(); ++round) {
        semaphore = s.semaphore();
        Subscription subscription(s);
        Outcome outcome;
        interruption.during([&] { outcome = subscription.to(semaphore, 1); });
        s.must("R86", "semaphore_subscribe while it is signalled or fails", outcome);
        const char* const way = kNames[round % kWays];
        subscription.is_called("R86", fmt::format("a subscriber that comes at the same moment as {}", way),
                               1);
        if (round % kWays == 2)
          s.refused("R86", "what a subscriber is told that comes with a failure", HALYARD_ABORTED,
                    subscription.outcome());
      }
    });
    over = true;
  });
}

void semaphore_subscribers_wait_for_later_work(Session& s) {
  const Memory memory = s.allocate(std::vector<uint8_t>(64, 0));
  const List list = s.list(Recording().fill(range(memory.handle, 0, 64), 0x5A, 1));
  for (const bool is_kept : {false, true}) {
    const std::string what =
        is_kept ? "work that becomes due together with it" : "work that is submitted later";
    const Semaphore begin = s.semaphore(), first = s.semaphore(), later = s.semaphore();
    std::atomic<bool> began = false;
    Outcome waited;
    Subscription subscription(s, [&] {
      began = true;
      waited = wait_helping(s, later, 1);
    });
    s.must("semaphore_subscribe", "semaphore_subscribe", subscription.to(first, 1));
    s.submit(barrier_operation(), {{begin, 1}}, {{first, 1}});
    if (is_kept) s.submit(execute_operation(list, {}), {{first, 1}}, {{later, 1}});
    // On a device that runs work in its caller, the subscriber may run in the caller too, so another thread
    // submits the rest.
    at_once(2, [&](int thread) {
      if (thread == 0) {
        s.must("semaphore_signal", "signal of 1", s.signal(begin, 1));
        // Work that only a queue makes ready.
        s.submit(barrier_operation(), {}, {{s.semaphore(), 1}});
      } else if (!is_kept) {
        const int64_t end = s.patience() - s.patience_ns() / 2;
        while (!began && now_ns() < end) std::this_thread::yield();
        s.submit(execute_operation(list, {}), {}, {{later, 1}});
      }
    });
    subscription.is_called("R86", "a subscriber that waits for " + what, 1);
    if (!s.succeeded("R88", "the wait of a subscriber for " + what, waited)) return;
  }
  same_bytes(s, "R63", "what that work has written", std::vector<uint8_t>(64, 0x5A), s.read(memory));

  // The same if a queue makes the first signal: then nothing happens in a call of the host.
  const Semaphore first = s.semaphore(), later = s.semaphore();
  Outcome waited;
  std::atomic<bool> began = false;
  Subscription subscription(s, [&] {
    began = true;
    waited = wait_helping(s, later, 1);
  });
  s.must("semaphore_subscribe", "semaphore_subscribe", subscription.to(first, 1));
  at_once(2, [&](int thread) {
    if (thread == 0) {
      s.submit(execute_operation(list, {}), {}, {{first, 1}});
    } else {
      const int64_t end = s.patience() - s.patience_ns() / 2;
      while (!began && now_ns() < end) std::this_thread::yield();
      s.submit(execute_operation(list, {}), {}, {{later, 1}});
    }
  });
  subscription.is_called("R86", "a subscriber to what a queue signals", 1);
  s.succeeded("R88", "its wait for later work of that queue", waited);
}

}  // namespace halyard::cts
