// Prints lines that begin with a mark of twelve characters.
#include "printer.h"

#include <cmath>

#include "common/printable.h"

namespace halyard::tools {

namespace {

constexpr std::string_view kDoubleRule = "[==========]";
constexpr std::string_view kRule = "[----------]";
constexpr std::string_view kRun = "[ RUN      ]";
constexpr std::string_view kPassed = "[  PASSED  ]";

struct Look {
  Colour colour;
  std::string_view mark;
};
Look look_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return {Colour::green, "[       OK ]"};
    case Verdict::failed:
      return {Colour::red, "[  FAILED  ]"};
    case Verdict::stopped:
      break;
  }
  return {Colour::yellow, "[  SKIPPED ]"};
}

std::string counted(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string tests_of_suites(const std::vector<Suite>& suites) {
  size_t tests = 0;
  for (const Suite& suite : suites) tests += suite.tests.size();
  return fmt::format("{} from {}", counted(tests, "test"), counted(suites.size(), "test suite"));
}

std::string milliseconds(double seconds) { return fmt::format("{:.0f} ms", std::floor(seconds * 1e3)); }

}  // namespace

std::string reasons(const Finding& finding) {
  std::string text;
  for (const FailedExpectation& it : finding.expectations) text += it.text() + "\n";
  if (finding.more_expectations > 0)
    text += fmt::format("and {} that failed\n", counted(finding.more_expectations, "more expectation"));
  if (finding.verdict == Verdict::stopped) {
    text += "stopped by Ctrl-C\n";
  } else if (finding.failure) {
    text += fmt::format("{}: {}\n", finding.has_run ? "the call failed" : "the test could not begin",
                        finding.failure->line());
  }
  return text;
}

void Printer::print(Colour colour, std::string_view mark, std::string_view text) {
  const std::string line = coloured(colour, mark, fileno(to_)) + " " + printable(text) + "\n";
  std::fputs(line.c_str(), to_);
}

void Printer::header(const std::vector<Suite>& suites) {
  print(Colour::green, kDoubleRule, fmt::format("Running {}.", tests_of_suites(suites)));
}

void Printer::begins(const Test& test) {
  const Suite& suite = *test.suite;
  if (test.name == suite.tests.front()) {
    suite_seconds_ = 0;
    print(Colour::green, kRule, fmt::format("{} from {}", counted(suite.tests.size(), "test"), suite.name));
  }
  print(Colour::green, kRun, full_name(suite, test.name));
  std::fflush(to_);  // so that the test is visible during a long wait or after a crash
}

void Printer::ended(const Finding& finding) {
  const Suite& suite = *finding.test->suite;
  std::fputs(printable(reasons(finding)).c_str(), to_);
  const Look look = look_of(finding.verdict);
  print(look.colour, look.mark,
        fmt::format("{} ({})", full_name(suite, finding.test->name), milliseconds(finding.seconds)));
  suite_seconds_ += finding.seconds;
  if (finding.test->name == suite.tests.back()) {
    print(Colour::green, kRule,
          fmt::format("{} from {} ({} total)\n", counted(suite.tests.size(), "test"), suite.name,
                      milliseconds(suite_seconds_)));
  }
  std::fflush(to_);
}

void Printer::list(Verdict verdict, std::span<const Finding> findings) {
  size_t count = 0;
  for (const Finding& finding : findings) count += finding.verdict == verdict;
  if (count == 0) return;
  const Look look = look_of(verdict);
  print(look.colour, look.mark, counted(count, "test") + ", listed below:");
  for (const Finding& finding : findings)
    if (finding.verdict == verdict)
      print(look.colour, look.mark, full_name(*finding.test->suite, finding.test->name));
}

void Printer::summary(const std::vector<Suite>& suites, std::span<const Finding> findings, size_t left_out,
                      double seconds) {
  size_t passed = 0;
  size_t failed = 0;
  for (const Finding& finding : findings) {
    passed += finding.verdict == Verdict::passed;
    failed += finding.verdict == Verdict::failed;
  }
  const std::string ran = left_out == 0 ? tests_of_suites(suites)
                                        : fmt::format("{} of {}", findings.size(), tests_of_suites(suites));
  print(Colour::green, kDoubleRule, fmt::format("{} ran. ({} total)", ran, milliseconds(seconds)));
  print(Colour::green, kPassed, counted(passed, "test") + ".");
  list(Verdict::stopped, findings);
  list(Verdict::failed, findings);
  std::string end;
  if (failed > 0) end += fmt::format("\n {} FAILED TEST{}\n", failed, failed == 1 ? "" : "S");
  if (left_out > 0)
    end += fmt::format("interrupted: {} {} not run\n", counted(left_out, "test"),
                       left_out == 1 ? "was" : "were");
  std::fputs(end.c_str(), to_);
}

std::string list_text(const std::vector<Suite>& suites) {
  std::string text;
  for (const Suite& suite : suites) {
    text += printable(suite.name) + ".\n";
    for (const std::string& test : suite.tests) text += "  " + printable(test) + "\n";
  }
  return text;
}

}  // namespace halyard::tools
