// Timelines: values, failure, waiting, subscribing, on one thread.
#include "cases.h"
#include "subscriptions.h"

namespace halyard::cts {

void semaphore_initial_values(Session& s) {
  for (const uint64_t initial : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, UINT64_MAX - 1})
    s.value_is("semaphore_create", fmt::format("a semaphore that was created at {}", initial),
               s.semaphore(initial), initial);
}

void semaphore_signals(Session& s) {
  const Semaphore semaphore = s.semaphore(2), other = s.semaphore();
  for (const uint64_t value : {uint64_t{3}, uint64_t{4}, uint64_t{1000}, uint64_t{1} << 40, UINT64_MAX - 1}) {
    s.must("semaphore_signal", fmt::format("signal of {}", value), s.signal(semaphore, value));
    s.value_is("R80", fmt::format("the value after a signal of {}", value), semaphore, value);
  }
  s.value_is("R80", "another semaphore meanwhile", other, 0);
}

void semaphore_signal_backwards(Session& s) {
  const Semaphore semaphore = s.semaphore(5);
  for (const uint64_t value : {uint64_t{5}, uint64_t{4}, uint64_t{0}}) {
    s.refused("R82", fmt::format("signal of {} on a timeline at 5", value), HALYARD_INVALID_ARGUMENT,
              s.signal(semaphore, value));
    s.value_is("R80", fmt::format("the timeline at 5 after a signal of {}", value), semaphore, 5);
  }
  s.must("semaphore_signal", "signal of 6 on a timeline at 5", s.signal(semaphore, 6));
}

void semaphore_first_failure_stays(Session& s) {
  const Semaphore semaphore = s.semaphore(5);
  s.fail(semaphore, HALYARD_DATA_LOSS, "the first failure");
  s.failed_with("R83", "query of a failed semaphore", semaphore, HALYARD_DATA_LOSS, "the first failure");
  s.fail(semaphore, HALYARD_ABORTED, "a later failure");
  s.failed_with("R81", "query after a second failure", semaphore, HALYARD_DATA_LOSS, "the first failure");
  // Each query returns another reference: using one does not affect the next.
  s.failed_with("R83", "query asked again", semaphore, HALYARD_DATA_LOSS, "the first failure");
}

void semaphore_signal_after_failure(Session& s) {
  const Semaphore semaphore = s.semaphore(5);
  s.fail(semaphore, HALYARD_ABORTED, "failed early");
  for (const uint64_t value : {6, 5, 0})
    s.succeeded("R82", fmt::format("signal of {} on a failed timeline", value), s.signal(semaphore, value));
  s.failed_with("R81", "query of a failed semaphore after signals", semaphore, HALYARD_ABORTED,
                "failed early");
}

void semaphore_wait_for_all(Session& s) {
  const Semaphore a = s.semaphore(1), b = s.semaphore(2);
  s.succeeded("R84", "wait for all of two that are reached", s.wait({{a, 1}, {b, 1}}, false, s.patience()));
  s.succeeded("R85", "poll of all of two that are reached", s.wait({{a, 1}, {b, 2}}, false, 0));
  s.refused("R85", "poll of all of two, one of which is not reached", HALYARD_DEADLINE_EXCEEDED,
            s.wait({{a, 1}, {b, 3}}, false, 0));
  s.must("semaphore_signal", "signal", s.signal(b, 3));
  s.succeeded("R84", "the same after a signal", s.wait({{a, 1}, {b, 3}}, false, 0));
  s.succeeded("R84", "wait for one timepoint twice", s.wait({{b, 3}, {b, 3}}, false, HALYARD_WAIT_FOREVER));
}

void semaphore_wait_for_any(Session& s) {
  const Semaphore a = s.semaphore(1), b = s.semaphore(2);
  s.succeeded("R84", "wait for any of two, the first reached",
              s.wait({{a, 1}, {b, 9}}, true, HALYARD_WAIT_FOREVER));
  s.succeeded("R84", "wait for any of two, the second reached",
              s.wait({{a, 9}, {b, 2}}, true, HALYARD_WAIT_FOREVER));
  s.refused("R85", "poll of any of two, none reached", HALYARD_DEADLINE_EXCEEDED,
            s.wait({{a, 9}, {b, 9}}, true, 0));
}

void semaphore_wait_for_none(Session& s) {
  for (const bool any : {false, true})
    s.succeeded("R84", fmt::format("wait for {} of no timepoints", any ? "any" : "all"), s.wait({}, any, 0));
}

void semaphore_wait_sees_failure_first(Session& s) {
  const Semaphore reached = s.semaphore(7), never = s.semaphore(), failed = s.semaphore(5);
  s.fail(failed, HALYARD_DATA_LOSS, "failed before the wait");
  const Points orders[] = {{{failed, 1}},
                           {{failed, 9}},
                           {{reached, 7}, {failed, 9}},
                           {{failed, 9}, {reached, 7}},
                           {{never, 1}, {failed, 9}},
                           {{failed, 1}, {never, 1}}};
  for (const Points& points : orders)
    for (const bool any : {false, true})
      for (const int64_t deadline : {int64_t{0}, s.patience()})
        s.refused_naming("R84",
                         fmt::format("wait for {} of {} timepoints, one of them failed", any ? "any" : "all",
                                     points.size()),
                         HALYARD_DATA_LOSS, "failed before the wait", s.wait(points, any, deadline));
}

void semaphore_deadlines(Session& s) {
  const Semaphore semaphore = s.semaphore(1);
  for (const int64_t deadline : {int64_t{0}, int64_t{1}, now_ns() - 1'000'000'000})
    s.refused("R85", "wait with a deadline in the past", HALYARD_DEADLINE_EXCEEDED,
              s.wait({{semaphore, 2}}, false, deadline));
  for (const int64_t away : {1'000, 1'000'000, 30'000'000}) {
    const int64_t deadline = now_ns() + away;
    s.refused("R85", fmt::format("wait with a deadline {} us away", away / 1000), HALYARD_DEADLINE_EXCEEDED,
              s.wait({{semaphore, 2}}, false, deadline));
    s.check("R85", now_ns() >= deadline,
            fmt::format("the end of a wait with a deadline {} us away", away / 1000),
            "not before the deadline", "before it");
  }
  s.succeeded("R85", "wait for what is reached with a deadline in the past",
              s.wait({{semaphore, 1}}, false, 1));
}

void semaphore_subscribe_to_the_past(Session& s) {
  const Semaphore semaphore = s.semaphore(3);
  Subscription subscription(s);
  for (const uint64_t value : {0, 2, 3})
    s.must("semaphore_subscribe", "semaphore_subscribe", subscription.to(semaphore, value));
  s.equal("R86", "calls of subscribers to what is reached, when semaphore_subscribe has returned", 3,
          subscription.calls());
  s.check("R86", subscription.outcome().ok(), "what such a subscriber is told", "success",
          subscription.outcome().text());
}

void semaphore_subscribers_are_called_once(Session& s) {
  const Semaphore semaphore = s.semaphore();
  Subscription early(s), late(s), never(s);
  s.must("semaphore_subscribe", "semaphore_subscribe", early.to(semaphore, 2));
  s.must("semaphore_subscribe", "semaphore_subscribe", late.to(semaphore, 5));
  s.must("semaphore_subscribe", "semaphore_subscribe", never.to(semaphore, 100));
  s.must("semaphore_signal", "signal of 1", s.signal(semaphore, 1));
  s.equal("R86", "calls of a subscriber to 2 after a signal of 1", 0, early.calls());
  s.must("semaphore_signal", "signal of 3", s.signal(semaphore, 3));
  early.is_called("R86", "a subscriber to 2 after a signal of 3", 1);
  s.must("semaphore_signal", "signal of 7", s.signal(semaphore, 7));
  late.is_called("R86", "a subscriber to 5 after a signal of 7", 1);
  early.is_called("R86", "a subscriber to 2 after a further signal", 1);
  s.equal("R86", "calls of a subscriber to 100 after a signal of 7", 0, never.calls());
  s.equal("R87", "unsubscribing what was not called", 1, never.unsubscribe(semaphore));
}

void semaphore_subscribers_of_a_failure(Session& s) {
  const Semaphore semaphore = s.semaphore(2);
  Subscription first(s), second(s), after(s);
  s.must("semaphore_subscribe", "semaphore_subscribe", first.to(semaphore, 3));
  s.must("semaphore_subscribe", "semaphore_subscribe", second.to(semaphore, 300));
  s.fail(semaphore, HALYARD_CANCELLED, "cancelled by the host");
  for (Subscription* it : {&first, &second}) {
    it->is_called("R86", "a subscriber to a semaphore that has failed", 1);
    s.refused_naming("R53", "what a subscriber is told", HALYARD_CANCELLED, "cancelled by the host",
                     it->outcome());
  }
  s.must("semaphore_subscribe", "semaphore_subscribe to a failed semaphore", after.to(semaphore, 1));
  after.is_called("R86", "a subscriber that came after the failure", 1);
  s.refused_naming("R53", "what it is told", HALYARD_CANCELLED, "cancelled by the host", after.outcome());
}

void semaphore_unsubscribe(Session& s) {
  const Semaphore semaphore = s.semaphore(), other = s.semaphore();
  Subscription subscription(s), kept(s);
  s.equal("R87", "unsubscribing what was never subscribed", 0, subscription.unsubscribe(semaphore));
  s.must("semaphore_subscribe", "semaphore_subscribe", subscription.to(semaphore, 1));
  s.must("semaphore_subscribe", "semaphore_subscribe", kept.to(semaphore, 1));
  s.equal("R87", "unsubscribing from another semaphore", 0, subscription.unsubscribe(other));
  s.equal("R87", "unsubscribing", 1, subscription.unsubscribe(semaphore));
  s.equal("R87", "unsubscribing again", 0, subscription.unsubscribe(semaphore));
  s.must("semaphore_signal", "signal of 1", s.signal(semaphore, 1));
  kept.is_called("R86", "the other subscriber", 1);
  s.equal("R87", "calls of a subscriber that was taken back", 0, subscription.calls());
  s.equal("R87", "unsubscribing what was called", 0, kept.unsubscribe(semaphore));
}

void semaphore_unsubscribe_takes_back_one(Session& s) {
  const Semaphore semaphore = s.semaphore();
  Subscription subscription(s);
  for (int i = 0; i < 3; ++i)
    s.must("semaphore_subscribe", "semaphore_subscribe", subscription.to(semaphore, 1));
  s.equal("R87", "unsubscribing one of three that are equal", 1, subscription.unsubscribe(semaphore));
  s.must("semaphore_signal", "signal of 1", s.signal(semaphore, 1));
  subscription.is_called("R87", "two of three equal subscribers", 2);
}

void semaphore_destroy_in_any_state(Session& s) {
  s.destroy(s.semaphore());
  const Semaphore failed = s.semaphore();
  s.fail(failed, HALYARD_INTERNAL, "failed before it is destroyed");
  s.destroy(failed);  // at its end the session counts the references
  const Semaphore unsubscribed = s.semaphore();
  Subscription subscription(s);
  s.must("semaphore_subscribe", "semaphore_subscribe", subscription.to(unsubscribed, 1));
  s.equal("R87", "unsubscribing", 1, subscription.unsubscribe(unsubscribed));
  s.destroy(unsubscribed);
  s.equal("R87", "calls of a subscriber that was taken back", 0, subscription.calls());
}

}  // namespace halyard::cts
