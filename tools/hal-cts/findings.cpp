// Formats findings for people.
#include "findings.h"

#include "common/colour.h"
#include "common/printable.h"
#include "common/standard_streams.h"

namespace halyard::cts {

using tools::printable;

namespace {

constexpr const char* kNames[] = {"passed", "FAILED", "skipped"};
constexpr tools::Colour kColours[] = {tools::Colour::green, tools::Colour::error, tools::Colour::yellow};

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

void Printer::header(const std::string& line) {
  progress_.clear();
  tools::print_to(to_, "{}\n", printable(line));
}

void Printer::begin(size_t number, size_t total, const std::string& device, const Case& about) {
  if (number > 0) progress_.show(number, total, title(device, about));
}

void Printer::end(const Finding& finding) {
  progress_.clear();
  const auto verdict = static_cast<size_t>(finding.verdict);
  tools::print_to(to_, "{}{}",
                  tools::coloured(kColours[verdict], fmt::format("{:<8}", kNames[verdict]), fileno(to_)),
                  title(finding.device, *finding.about));
  for (const std::string& text : {finding.reason, finding.remark})
    if (!text.empty()) tools::print_to(to_, ": {}", printable(text));
  tools::print_to(to_, "\n");
  for (const Problem& problem : finding.problems)
    tools::print_to(to_, "        {}\n", printable(to_line(problem)));
}

void Printer::last_line(const Counts& counts) {
  tools::print_to(to_, "{} passed, {} failed, {} skipped\n", counts.passed, counts.failed, counts.skipped);
}

}  // namespace halyard::cts
