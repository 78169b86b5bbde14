// Both reports use the same counts. Texts come from modules, so each format escapes them.
#include "reports.h"

#include <algorithm>

#include "common/json.h"
#include "common/xml.h"
#include "printer.h"

namespace halyard::tools {

namespace {

struct Counts {
  size_t tests = 0;
  size_t passed = 0;
  size_t failed = 0;  // only expectations failed
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

// The findings of a suite; all findings are in the order of their suites.
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

const char* word_of(Verdict verdict) {
  constexpr const char* kWords[] = {"passed", "failed", "stopped"};
  return kWords[static_cast<size_t>(verdict)];
}

Json json_test(const Finding& finding) {
  constexpr int kPlaces = 6;
  Json test = {{"name", finding.test->name},
               {"result", word_of(finding.verdict)},
               {"seconds", json_rounded(finding.seconds, kPlaces)}};
  if (!finding.expectations.empty()) {
    Json& failed = test["expectations"] = Json::array();
    for (const FailedExpectation& it : finding.expectations)
      failed.push_back({{"function", it.function}, {"place", it.place}, {"message", it.message}});
    test["more_expectations"] = finding.more_expectations;
  }
  if (is_error(finding))
    test["error"] = {{"code", halyard_status_code_name(finding.failure->code)},
                     {"message", finding.failure->text}};
  return test;
}

// A JSON object for a suite; `tests` is an array.
Json json_suite(const Suite& suite, Json tests) {
  return {{"name", suite.name}, {"file", suite.path}, {"tests", std::move(tests)}};
}

constexpr int kLines = 4;  // depth of a document with one line for each test

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
  Json modules = Json::array();
  for (const Suite& suite : suites) {
    Json tests = Json::array();
    for (const Finding& finding : of_suite(findings, suite)) tests.push_back(json_test(finding));
    modules.push_back(json_suite(suite, std::move(tests)));
  }
  return json_document({{"passed", counts.passed},
                        {"failed", counts.failed + counts.errors},
                        {"stopped", counts.stopped},
                        {"interrupted", interrupted},
                        {"modules", std::move(modules)}},
                       kLines);
}

std::string to_json(const std::vector<Suite>& suites) {
  Json modules = Json::array();
  for (const Suite& suite : suites) modules.push_back(json_suite(suite, suite.tests));
  return json_document({{"modules", std::move(modules)}}, kLines);
}

}  // namespace halyard::tools
