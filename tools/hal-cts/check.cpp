// Reports only failed checks, and only the first few of them.
#include "check.h"

#include <type_traits>

namespace halyard::cts {

namespace {
constexpr size_t kMaxProblems = 8;  // per case: later problems repeat earlier ones
}

std::string Outcome::text() const {
  if (ok()) return "success";
  return fmt::format("{} ('{}')", halyard_status_code_name(code), message);
}

void unsupported(std::string why) { throw Unsupported{std::move(why)}; }

void Checks::problem(std::string_view rule, std::string what, std::string expected, std::string found) {
  Problem problem{std::string(rule), std::move(what), std::move(expected), std::move(found)};
  const std::lock_guard lock(mutex_);
  if (problems_ > 0 && problem == last_) return;  // a loop repeats the problem
  if (++problems_ <= kMaxProblems) sink_(problem);
  last_ = std::move(problem);
}

void Checks::stop(std::string_view rule, std::string what, std::string expected, std::string found) {
  problem(rule, std::move(what), std::move(expected), std::move(found));
  throw Stopped();
}

bool Checks::failed() const {
  const std::lock_guard lock(mutex_);
  return problems_ > 0;
}

bool Checks::check(std::string_view rule, bool holds, std::string_view what, std::string_view expected,
                   std::string_view found) {
  if (holds) return held(rule, what);
  problem(rule, std::string(what), std::string(expected), std::string(found));
  return false;
}

bool Checks::succeeded(std::string_view rule, std::string_view what, const Outcome& outcome) {
  return check(rule, outcome.ok(), what, "success", outcome.text());
}

bool Checks::refused(std::string_view rule, std::string_view what, halyard_status_code_t code,
                     const Outcome& outcome) {
  if (!check(rule, outcome.code == code, what, halyard_status_code_name(code), outcome.text())) return false;
  return check("R51", !outcome.message.empty(), what, "a message that says why", "an empty one");
}

bool Checks::refused_naming(std::string_view rule, std::string_view what, halyard_status_code_t code,
                            std::string_view named, const Outcome& outcome) {
  if (!refused(rule, what, code, outcome)) return false;
  return check("R51", outcome.message.find(named) != std::string::npos, what,
               fmt::format("a message that names '{}'", named), fmt::format("'{}'", outcome.message));
}

void Checks::must(std::string_view rule, std::string_view what, const Outcome& outcome) {
  if (outcome.ok()) {
    held(rule, what);
    return;
  }
  stop(rule, std::string(what), "success", outcome.text());
}

}  // namespace halyard::cts
