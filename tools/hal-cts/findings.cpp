// Telling a person.
#include "findings.h"

#include <unistd.h>

#include "common/printable.h"

namespace halyard::cts {

using tools::printable;

namespace {

constexpr const char* kNames[] = {"passed", "FAILED", "skipped"};
constexpr const char* kColours[] = {"\x1b[32m", "\x1b[1;31m", "\x1b[33m"};

std::string title(const std::string& device, const Case& about) {
  return device.empty() ? about.name : printable(device) + " " + about.name;
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  constexpr const char* kWords[] = {"passed", "failed", "skipped"};
  return kWords[static_cast<size_t>(verdict)];
}

std::string to_line(const Problem& problem) {
  return fmt::format("[{}] {}: expected {}, found {}", problem.rule, problem.what, problem.expected,
                     problem.found);
}

Counts count(std::span<const Finding> findings) {
  Counts counts;
  for (const Finding& it : findings)
    ++(it.verdict == Verdict::passed   ? counts.passed
       : it.verdict == Verdict::failed ? counts.failed
                                       : counts.skipped);
  return counts;
}

Printer::Printer(std::FILE* to) : to_(to), terminal_(isatty(fileno(to)) == 1) {}

void Printer::header(const std::string& line) { fmt::print(to_, "{}\n", printable(line)); }

void Printer::begin(size_t number, size_t total, const std::string& device, const Case& about) {
  if (!terminal_ || number == 0) return;
  fmt::print(to_, "\r\x1b[K[{}/{}] {}", number, total, title(device, about));
  std::fflush(to_);
}

void Printer::end(const Finding& finding) {
  const auto verdict = static_cast<size_t>(finding.verdict);
  if (terminal_) fmt::print(to_, "\r\x1b[K{}", kColours[verdict]);
  fmt::print(to_, "{:<8}", kNames[verdict]);
  if (terminal_) fmt::print(to_, "\x1b[0m");
  fmt::print(to_, "{}", title(finding.device, *finding.about));
  if (!finding.reason.empty()) fmt::print(to_, ": {}", printable(finding.reason));
  fmt::print(to_, "\n");
  for (const Problem& problem : finding.problems)
    fmt::print(to_, "        {}\n", printable(to_line(problem)));
}

void Printer::last_line(const Counts& counts) {
  fmt::print(to_, "{} passed, {} failed, {} skipped\n", counts.passed, counts.failed, counts.skipped);
}

}  // namespace halyard::cts
