// Both are written from the same counts. Texts come from modules: each form makes them safe in its own way.
#include "reports.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/xml.h"
#include "printer.h"

namespace halyard::tools {

namespace {

struct Counts {
  size_t tests = 0;
  size_t passed = 0;
  size_t failed = 0;  // an expectation, or several, and nothing else
  size_t errors = 0;  // the call failed, or could not be made
  size_t stopped = 0;
  double seconds = 0;
};

bool is_error(const Finding& finding) { return finding.verdict == Verdict::failed && finding.failure; }

Counts count(std::span<const Finding> findings) {
  Counts counts{.tests = findings.size()};
  for (const Finding& it : findings) {
    counts.passed += it.verdict == Verdict::passed;
    counts.failed += it.verdict == Verdict::failed && !it.failure;
    counts.errors += is_error(it);
    counts.stopped += it.verdict == Verdict::stopped;
    counts.seconds += it.seconds;
  }
  return counts;
}

// Findings stand in the order of their suites.
std::span<const Finding> of_suite(std::span<const Finding> findings, const Suite& suite) {
  const auto [begin, end] = std::ranges::equal_range(
      findings, &suite, std::less<>(), [](const Finding& finding) { return finding.test->suite; });
  return {begin, end};
}

std::string junit_counts(const Counts& counts, double seconds) {
  return fmt::format(
      "tests=\"{}\" failures=\"{}\" disabled=\"0\" skipped=\"{}\" errors=\"{}\" time=\"{:.3f}\"",
      counts.tests, counts.failed, counts.stopped, counts.errors, seconds);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string junit_case(const Finding& finding) {
  const bool stopped = finding.verdict == Verdict::stopped;
  std::string text =
      fmt::format("    <testcase name=\"{}\" status=\"run\" result=\"{}\" time=\"{:.3f}\" classname=\"{}\"",
                  xml(finding.test->name), stopped ? "skipped" : "completed", finding.seconds,
                  xml(finding.test->suite->name));
  if (finding.verdict == Verdict::passed) return text + " />\n";
  text += ">\n";
  if (stopped) text += "      <skipped message=\"stopped by Ctrl-C\" />\n";
  for (const FailedExpectation& it : finding.expectations)
    text += fmt::format("      <failure message=\"{}\" type=\"{}\">{}</failure>\n",
                        xml(first_line(it.message)), xml(it.function), xml(it.text()));
  if (is_error(finding))
    text += fmt::format("      <error message=\"{}\" type=\"{}\"></error>\n", xml(finding.failure->text),
                        halyard_status_code_name(finding.failure->code));
  return text + "    </testcase>\n";
}

std::string json(std::string_view text) { return Block<char>(halyard_json_quote(to_text(text))).get(); }

const char* word_of(Verdict verdict) {
  constexpr const char* kWords[] = {"passed", "failed", "stopped"};
  return kWords[static_cast<size_t>(verdict)];
}

std::string json_test(const Finding& finding) {
  std::string text = fmt::format("{{\"name\": {}, \"result\": \"{}\", \"seconds\": {:.6f}",
                                 json(finding.test->name), word_of(finding.verdict), finding.seconds);
  if (!finding.expectations.empty()) {
    std::vector<std::string> failed;
    for (const FailedExpectation& it : finding.expectations)
      failed.push_back(fmt::format("{{\"function\": {}, \"place\": {}, \"message\": {}}}", json(it.function),
                                   json(it.place), json(it.message)));
    text += fmt::format(", \"expectations\": [{}], \"more_expectations\": {}", fmt::join(failed, ", "),
                        finding.more_expectations);
  }
  if (is_error(finding))
    text += fmt::format(", \"error\": {{\"code\": \"{}\", \"message\": {}}}",
                        halyard_status_code_name(finding.failure->code), json(finding.failure->text));
  return text + "}";
}

// The suites as a list; `tests` writes those of one.
template <typename Tests>
std::string json_suites(const std::vector<Suite>& suites, Tests&& tests) {
  std::vector<std::string> entries;
  for (const Suite& suite : suites) {
    const std::vector<std::string> texts = tests(suite);
    entries.push_back(fmt::format("    {{\"name\": {}, \"file\": {}, \"tests\": [{}{}{}]}}", json(suite.name),
                                  json(suite.path), texts.empty() ? "" : "\n      ",
                                  fmt::join(texts, ",\n      "), texts.empty() ? "" : "\n    "));
  }
  return fmt::format("  \"modules\": [\n{}\n  ]\n", fmt::join(entries, ",\n"));
}

}  // namespace

std::string to_junit(const std::vector<Suite>& suites, std::span<const Finding> findings, double seconds) {
  std::string text =
      fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {} name=\"AllTests\">\n",
                  junit_counts(count(findings), seconds));
  for (const Suite& suite : suites) {
    const std::span<const Finding> own = of_suite(findings, suite);
    const Counts counts = count(own);
    text += fmt::format("  <testsuite name=\"{}\" file=\"{}\" {}>\n", xml(suite.name), xml(suite.path),
                        junit_counts(counts, counts.seconds));
    for (const Finding& finding : own) text += junit_case(finding);
    text += "  </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

std::string to_json(const std::vector<Suite>& suites, std::span<const Finding> findings, bool interrupted) {
  const Counts counts = count(findings);
  return fmt::format(
      "{{\n  \"passed\": {},\n  \"failed\": {},\n  \"stopped\": {},\n  \"interrupted\": {},\n{}}}\n",
      counts.passed, counts.failed + counts.errors, counts.stopped, interrupted,
      json_suites(suites, [&](const Suite& suite) {
        std::vector<std::string> texts;
        for (const Finding& finding : of_suite(findings, suite)) texts.push_back(json_test(finding));
        return texts;
      }));
}

std::string to_json(const std::vector<Suite>& suites) {
  return fmt::format("{{\n{}}}\n", json_suites(suites, [](const Suite& suite) {
                       std::vector<std::string> texts;
                       for (const std::string& test : suite.tests) texts.push_back(json(test));
                       return texts;
                     }));
}

}  // namespace halyard::tools
