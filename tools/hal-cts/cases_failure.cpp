// Failure: passes from waits to signals and to `completed`, without the operation, and stays unchanged.
#include "bytes.h"
#include "cases.h"
#include "threads.h"

namespace halyard::cts {

namespace {

constexpr halyard_status_code_t kCode = HALYARD_DATA_LOSS;
constexpr char kMessage[] = "the cause of it all";

// Checks that work was skipped because of the failure.
void is_skipped(Session& s, std::string_view rule, const std::string& what, Work& work,
                const Points& signals) {
  s.refused_naming(rule, what + ": completed", kCode, kMessage, s.end_of(work));
  for (const auto& [semaphore, value] : signals)
    s.failed_with(rule, what + ": a signalled semaphore", semaphore, kCode, kMessage);
}

}  // namespace

void failure_of_a_wait_reaches_the_signals(Session& s) {
  const Semaphore failed = s.semaphore();
  s.fail(failed, kCode, kMessage);
  const Points signals = {{s.semaphore(), 1}, {s.semaphore(5), 6}, {s.semaphore(), 1}};
  is_skipped(s, "R62", "work that waits for a failed semaphore",
             s.submit(barrier_operation(), {{failed, 1}}, signals), signals);
}

void failure_of_a_wait_skips_the_operation(Session& s) {
  const Memory memory = s.allocate(noise(64));
  const List list = s.list(Recording().fill(range(memory.handle, 0, 64), 0, 1));
  const Semaphore failed = s.semaphore(), later = s.semaphore();
  s.fail(failed, kCode, kMessage);
  is_skipped(s, "R62", "a fill that waits for a failed semaphore",
             s.submit(execute_operation(list, {}), {{failed, 1}}), {});
  Work& kept = s.submit(execute_operation(list, {}), {{later, 1}});
  s.fail(later, kCode, kMessage);
  is_skipped(s, "R62", "a fill that waits for a semaphore which fails", kept, {});
  same_bytes(s, "R62", "memory that a skipped fill names", noise(64), s.read(memory));
}

void failure_of_a_wait_that_comes_later(Session& s) {
  const Semaphore wait = s.semaphore();
  const Points signals = {{s.semaphore(), 1}, {s.semaphore(), 7}};
  Work& work = s.submit(barrier_operation(), {{wait, 3}}, signals);
  s.must("semaphore_signal", "signal of 2", s.signal(wait, 2));
  s.fail(wait, kCode, kMessage);
  is_skipped(s, "R62", "work that waits for a semaphore which fails", work, signals);
}

void failure_does_not_wait_for_the_others(Session& s) {
  const Semaphore never = s.semaphore(), wait = s.semaphore(), failed = s.semaphore();
  const Points early = {{s.semaphore(), 1}}, late = {{s.semaphore(), 1}};
  Work& kept = s.submit(barrier_operation(), {{never, 1}, {wait, 1}}, early);
  s.fail(wait, kCode, kMessage);
  is_skipped(s, "R62", "work with a failed wait and one that is never reached", kept, early);
  s.fail(failed, kCode, kMessage);
  is_skipped(s, "R62", "work submitted with a failed wait and one that is never reached",
             s.submit(barrier_operation(), {{never, 1}, {failed, 1}}, late), late);
}

void failure_passes_on_through_chains(Session& s) {
  constexpr uint64_t kLength = 30;
  std::vector<Semaphore> row = {s.semaphore()};
  std::vector<Work*> works;
  for (uint64_t i = 0; i < kLength; ++i) {
    row.push_back(s.semaphore());
    works.push_back(&s.submit(barrier_operation(), {{row[i], 1}}, {{row[i + 1], 1}}));
  }
  s.fail(row[0], kCode, kMessage);
  for (size_t i = 0; i < kLength; ++i)
    is_skipped(s, "R62", fmt::format("piece {} of a chain that failed at its begin", i), *works[i],
               {{row[i + 1], 1}});
  s.refused_naming("R53", "wait at the end of the chain", kCode, kMessage, s.await(row.back(), 1));
}

void failure_of_a_reached_wait(Session& s) {
  const Semaphore failed = s.semaphore(9);
  s.fail(failed, kCode, kMessage);
  const Points signals = {{s.semaphore(), 1}};
  is_skipped(s, "R62", "work that waits for 1 of a semaphore that failed at 9",
             s.submit(barrier_operation(), {{failed, 1}}, signals), signals);
}

void failure_of_a_signal_changes_nothing(Session& s) {
  const Semaphore failed = s.semaphore(), good = s.semaphore();
  s.fail(failed, kCode, kMessage);
  Work& work = s.submit(barrier_operation(), {}, {{failed, 5}, {good, 5}});
  s.succeeded("R64", "work that signals a failed semaphore", s.end_of(work));
  s.failed_with("R64", "that semaphore afterwards", failed, kCode, kMessage);
  s.value_is("R64", "the other semaphore that it signals", good, 5);

  // A failure does not replace an earlier one.
  const Semaphore wait = s.semaphore(), other = s.semaphore();
  s.fail(other, HALYARD_ABORTED, "another cause");
  s.fail(wait, kCode, kMessage);
  s.refused_naming("R53", "completed of work with a failed wait", kCode, kMessage,
                   s.end_of(s.submit(barrier_operation(), {{wait, 1}}, {{other, 1}})));
  s.failed_with("R81", "a signal of it that had failed before", other, HALYARD_ABORTED, "another cause");
}

void failure_completes_once(Session& s) {
  // At its end the session counts the calls of each `completed` again.
  std::vector<Work*> works;
  const Semaphore failed = s.semaphore(), later = s.semaphore();
  s.fail(failed, kCode, kMessage);
  for (int i = 0; i < 10; ++i) {
    works.push_back(&s.submit(barrier_operation(), {{failed, 1}}));
    works.push_back(&s.submit(barrier_operation(), {{later, 1}}, {{s.semaphore(), 1}}));
    works.push_back(&s.submit(barrier_operation(), {{later, 1}, {failed, 1}, {failed, 2}}));
  }
  s.fail(later, kCode, kMessage);
  for (Work* work : works) is_skipped(s, "R60", "skipped work", *work, {});
  // This work is completed later than the skipped work.
  s.must("R60", "work after skipped work", s.run(barrier_operation()));
  for (const Work* work : works) s.equal("R60", "calls of completed of skipped work", 1, work->calls.load());
}

void failure_races(Session& s) {
  for (int round = 0; round < 100; ++round) {
    const Semaphore wait = s.semaphore(), signal = s.semaphore();
    Work* work = nullptr;
    at_once(3, [&](int thread) {
      if (thread == 0) work = &s.submit(barrier_operation(), {{wait, 1}}, {{signal, 1}});
      if (thread == 1) s.must("R82", "signal that races with a failure", s.signal(wait, 1));
      if (thread == 2) s.fail(wait, kCode, kMessage);
    });
    if (!work) return;
    // Both outcomes are valid, but `completed` and the signal must agree.
    const Outcome outcome = s.end_of(*work);
    uint64_t value = 0;
    const Outcome signalled = s.query(signal, &value);
    s.equal("R63", "the signal of work that raced with a failure, against what completed was told",
            outcome.code, signalled.code);
    if (outcome.ok()) s.equal<uint64_t>("R63", "the signal of work that was done", 1, value);
    s.failed_with("R81", "the semaphore that failed in the end", wait, kCode, kMessage);
    if (s.failed()) return;
  }
}

}  // namespace halyard::cts
