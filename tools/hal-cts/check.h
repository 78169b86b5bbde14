// Checks in cases, and the problems that failed checks report. A problem contains the broken rule of
// docs/driver-abi.md, the tested action, the expected and the actual outcome.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "case_log.h"
#include "halyard/status.h"

namespace halyard::cts {

struct Problem {
  std::string rule;  // "R82"; if the rule has no number, the function of driver.h whose comment states it
  std::string what;  // the tested action: "signal of 5 on a timeline at 5"
  std::string expected;
  std::string found;

  bool operator==(const Problem&) const = default;
};

// The outcome of a call to the driver. It is made from a status, which is released.
struct Outcome {
  halyard_status_code_t code = HALYARD_OK;
  std::string message;

  bool ok() const { return code == HALYARD_OK; }
  std::string text() const;  // "NOT_FOUND ('no device 7')" or "success"
};

// Ends a case that cannot continue; its problem has been reported.
struct Stopped {};
// Ends a case about a feature that the driver declares not to have. `why` names the declaration.
struct Unsupported {
  std::string why;
};
[[noreturn]] void unsupported(std::string why);

// The checks of one case. Thread-safe. All functions except must() and stop() return after a problem.
class Checks {
 public:
  using Sink = std::function<void(const Problem&)>;
  explicit Checks(Sink sink) : sink_(std::move(sink)) {}
  Checks(const Checks&) = delete;
  // Records later passed checks in the log of the case; null: not recorded.
  void set_case_log(CaseLog* case_log) { case_log_ = case_log; }
  CaseLog* case_log() const { return case_log_; }
  // Records the next action of the case, if the checks around it do not.
  void step(std::string_view text) const {
    if (case_log_) case_log_->step(text);
  }

  void problem(std::string_view rule, std::string what, std::string expected, std::string found);
  [[noreturn]] void stop(std::string_view rule, std::string what, std::string expected, std::string found);
  bool failed() const;

  // Returns `holds`.
  bool check(std::string_view rule, bool holds, std::string_view what, std::string_view expected,
             std::string_view found);
  template <typename T>
  bool equal(std::string_view rule, std::string_view what, const T& expected,
             const std::type_identity_t<T>& found) {
    if (expected == found) return held(rule, what);
    problem(rule, std::string(what), fmt::format("{}", expected), fmt::format("{}", found));
    return false;
  }
  // Expects success; or, in refused(), this code with a non-empty message [R51].
  bool succeeded(std::string_view rule, std::string_view what, const Outcome& outcome);
  bool refused(std::string_view rule, std::string_view what, halyard_status_code_t code,
               const Outcome& outcome);
  // Like refused(), but the message must also contain the text.
  bool refused_naming(std::string_view rule, std::string_view what, halyard_status_code_t code,
                      std::string_view named, const Outcome& outcome);
  // Expects success; otherwise ends the case.
  void must(std::string_view rule, std::string_view what, const Outcome& outcome);

 private:
  bool held(std::string_view rule, std::string_view what) const {
    if (case_log_) case_log_->held(rule, what);
    return true;
  }

  CaseLog* case_log_ = nullptr;
  mutable std::mutex mutex_;
  size_t problems_ = 0;  // number of reported problems
  Problem last_;
  Sink sink_;
};

}  // namespace halyard::cts
