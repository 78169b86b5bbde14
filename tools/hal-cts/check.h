// What cases say about a driver: checks, and the problems that come of those that do not hold. A problem
// names the rule of docs/driver-abi.md that is broken, what was done, what was expected and what was found.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "halyard/status.h"
#include "trail.h"

namespace halyard::cts {

struct Problem {
  std::string
      rule;  // "R82"; where no rule has a number for it, the function of driver.h whose comment says so
  std::string what;  // what was looked at: "signal of 5 on a timeline at 5"
  std::string expected;
  std::string found;

  bool operator==(const Problem&) const = default;
};

// How a call of the driver ended: a status that was taken over and released.
struct Outcome {
  halyard_status_code_t code = HALYARD_OK;
  std::string message;

  bool ok() const { return code == HALYARD_OK; }
  std::string text() const;  // "NOT_FOUND ('no device 7')" or "success"
};

// Ends a case that cannot go on; its problem has been told.
struct Stopped {};
// Ends a case whose subject the driver declares not to have. `why` names what declares it.
struct Unsupported {
  std::string why;
};
[[noreturn]] void unsupported(std::string why);

// Checks of one case. Thread-safe. Everything but must() and stop() goes on after a problem.
class Checks {
 public:
  using Sink = std::function<void(const Problem&)>;
  explicit Checks(Sink sink) : sink_(std::move(sink)) {}
  Checks(const Checks&) = delete;
  // From now on what held is noted there; null: nowhere.
  void leave_trail(Trail* trail) { trail_ = trail; }
  Trail* trail() const { return trail_; }
  // What the case is about to do, where the checks around it do not say.
  void step(std::string_view text) const {
    if (trail_) trail_->step(text);
  }

  void problem(std::string_view rule, std::string what, std::string expected, std::string found);
  [[noreturn]] void stop(std::string_view rule, std::string what, std::string expected, std::string found);
  bool failed() const;

  // Whether it holds.
  bool check(std::string_view rule, bool holds, std::string_view what, std::string_view expected,
             std::string_view found);
  template <typename T>
  bool equal(std::string_view rule, std::string_view what, const T& expected,
             const std::type_identity_t<T>& found) {
    if (expected == found) return held(rule, what);
    problem(rule, std::string(what), fmt::format("{}", expected), fmt::format("{}", found));
    return false;
  }
  // Success; or this code, with a message that is not empty [R51].
  bool succeeded(std::string_view rule, std::string_view what, const Outcome& outcome);
  bool refused(std::string_view rule, std::string_view what, halyard_status_code_t code,
               const Outcome& outcome);
  // As refused, and the message has the text.
  bool refused_naming(std::string_view rule, std::string_view what, halyard_status_code_t code,
                      std::string_view named, const Outcome& outcome);
  // Success, or the case ends.
  void must(std::string_view rule, std::string_view what, const Outcome& outcome);

 private:
  bool held(std::string_view rule, std::string_view what) const {
    if (trail_) trail_->held(rule, what);
    return true;
  }

  Trail* trail_ = nullptr;
  mutable std::mutex mutex_;
  size_t problems_ = 0;  // told
  Problem last_;
  Sink sink_;
};

}  // namespace halyard::cts
