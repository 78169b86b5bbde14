// vm-check: runs the tests of test programs. These are modules whose functions check their results with the
// module `check`. Specified by check-module.md.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "check_flags.h"
#include "common/files.h"
#include "common/interrupt.h"
#include "common/program.h"
#include "common/program_flags.h"
#include "common/tool.h"
#include "printer.h"
#include "reports.h"
#include "runner.h"
#include "tests.h"

namespace halyard::tools {

namespace {

constexpr const Flag* kTestFlags[] = {&flag::test_module, &flag::import_from,    &flag::filter,
                                      &flag::list,        &flag::expect_failure, &flag::jobs};
constexpr const Flag* kReportFlags[] = {&flag::junit, &flag::json};

constexpr FlagGroup kGroups[] = {
    {"Tests", kTestFlags},
    {"Reports", kReportFlags},
    {"Devices", kDeviceFlags},
    {"Loading and limits", kLoadingFlags},
    {"From other runtimes", kForeignFlags},
};

constexpr ExitCode kExitCodes[] = {
    {0, "All tests passed; with --expect_failure, a test of each module failed."},
    {1,
     "A test failed (with --expect_failure: all tests of a module passed), or the tests could not be run: "
     "standard error has the reason."},
    {kInterrupted, "Stopped by Ctrl-C; the reports have the tests that ran before."},
    {kTerminated, "Stopped by SIGTERM, in the same way."},
    {kHungUp, "Stopped by SIGHUP (the terminal was closed), in the same way."},
};

constexpr ToolDescription kTool = {
    "vm-check",
    "vm-check FILE... [--device=URI] [flags]",
    "Runs the tests of test programs. Every export without arguments and results is a test, unless its name "
    "begins with '__'. Each test runs in its own context. A test fails if its call fails, or if one of its "
    "expectations (functions of the module 'check') fails. More: docs/vm-check.md.",
    kGroups,
    "  vm-check tests.vmfb --device=local-sync\n"
    "  vm-check one.vmfb two.vmfb --device=vulkan --filter='*.conv*-*f64*' --jobs=4\n"
    "  vm-check tests.vmfb --list\n"
    "  vm-check wrong.vmfb --expect_failure --junit=results.xml\n",
    kExitCodes,
    "FILE"};

Result<size_t> jobs_of(const Flags& flags) {
  const uint64_t jobs = TOOL_TRY(flags[flag::jobs]);
  if (jobs == 0) return wrong_value(flag::jobs, "0", "at least 1");
  return jobs;
}

// A report in addition to the text. Its file is created before the tests run, so that an invalid path is
// found early.
class Report {
 public:
  static Result<Report> junit(const Flags& flags) {
    if (flags.has(flag::junit) && flags[flag::junit].empty())
      return fail(HALYARD_INVALID_ARGUMENT, "{} needs the name of a file, such as {}", flag::junit,
                  flag::junit.example);
    return make(flags.has(flag::junit), flags[flag::junit]);
  }
  static Result<Report> json(const Flags& flags) {
    return make(flags.has(flag::json), flags[flag::json].value_or(""));
  }
  bool wanted() const { return wanted_; }
  bool is_output() const { return wanted_ && path_.empty(); }  // on standard output
  Result<> write(std::string_view text) const {
    if (!path_.empty())
      return write_file(path_, false, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    std::fwrite(text.data(), 1, text.size(), stdout);
    return {};
  }

 private:
  static Result<Report> make(bool wanted, std::string path) {
    Report report;
    report.wanted_ = wanted;
    report.path_ = std::move(path);
    if (!report.path_.empty()) TOOL_TRY(report.write(""));
    return report;
  }

  bool wanted_ = false;
  std::string path_;
};

// --expect_failure: the exit code is 0 if each module has a test that ran and failed.
Result<> check_all_fail(const std::vector<Suite>& suites, std::span<const Finding> findings) {
  for (const Finding& finding : findings)
    if (!finding.has_run)
      return fail(
          finding.failure->code, "{}: test '{}' could not begin, which does not count as a failed test: {}",
          flag::expect_failure, full_name(*finding.test->suite, finding.test->name), finding.failure->text);
  for (const Suite& suite : suites) {
    const bool fails = std::ranges::any_of(findings, [&](const Finding& finding) {
      return finding.test->suite == &suite && finding.verdict == Verdict::failed;
    });
    if (!fails)
      return fail(HALYARD_FAILED_PRECONDITION, "{}: expected a failing test in module '{}', but {} passed",
                  flag::expect_failure, suite.name,
                  suite.tests.size() == 1 ? "its only test" : fmt::format("all {}", suite.tests.size()));
  }
  return {};
}

Result<int> vm_check(const Flags& flags) {
  Program program;
  TOOL_TRY(make_instance(flags, program));
  const std::vector<Module> imports = TOOL_TRY(load_imports(flags, program));
  std::vector<Suite> suites = TOOL_TRY(load_suites(flags, program));
  TOOL_TRY(choose_tests(flags, suites));
  if (flags[flag::list]) {
    const std::string text = flags.has(flag::json) ? to_json(suites) : list_text(suites);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  const size_t jobs = TOOL_TRY(jobs_of(flags));
  program.modules = imports;
  for (const Suite& suite : suites) program.modules.push_back(suite.module);
  TOOL_TRY(open_devices(flags, program));
  const ContextOptions options = TOOL_TRY(context_options(flags, program));
  const Report junit = TOOL_TRY(Report::junit(flags));
  const Report json = TOOL_TRY(Report::json(flags));

  std::vector<Test> tests;
  for (const Suite& suite : suites)
    for (const std::string& test : suite.tests) tests.push_back({&suite, test});
  Printer printer(json.is_output() ? stderr : stdout);
  printer.header(suites);
  const auto begin = std::chrono::steady_clock::now();
  const Findings findings = run_tests(program, options, imports, tests, jobs, printer);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  printer.summary(suites, findings.all, tests.size() - findings.all.size(), seconds);

  if (junit.wanted()) TOOL_TRY(junit.write(to_junit(suites, findings.all, seconds)));
  if (json.wanted()) TOOL_TRY(json.write(to_json(suites, findings.all, findings.interrupted)));
  if (program.trace) TOOL_TRY(program.trace.finish());
  if (findings.interrupted) return findings.exit_code;
  if (flags[flag::expect_failure]) {
    TOOL_TRY(check_all_fail(suites, findings.all));
    return 0;
  }
  const bool passed = std::ranges::all_of(
      findings.all, [](const Finding& finding) { return finding.verdict == Verdict::passed; });
  return passed ? 0 : 1;
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::tools::kTool, argc, argv, halyard::tools::vm_check);
}
