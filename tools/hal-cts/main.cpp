// hal-cts: tests whether a driver follows the rules of docs/driver-abi.md. Selects cases, runs each, reports
// the outcome.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "common/files.h"
#include "common/interrupt.h"
#include "common/table.h"
#include "common/tool.h"
#include "cts_flags.h"
#include "findings.h"
#include "known_failures.h"
#include "leaks.h"
#include "selection.h"

namespace halyard::cts {

using tools::fail;
using tools::Flags;

namespace {

constexpr const tools::Flag* kFlags[] = {
    &flag::driver, &flag::device,  &flag::executable,   &flag::filter, &flag::tag,     &flag::skip_tag,
    &flag::list,   &flag::timeout, &flag::max_timeouts, &flag::leaks,  &flag::no_fork, &flag::expect_failures,
    &flag::junit,  &flag::json};

constexpr tools::FlagGroup kGroups[] = {{"", kFlags}};

constexpr tools::ExitCode kExitCodes[] = {
    {0, "No case failed."},
    {1, "A case failed, or the tests could not be run: standard error says why."},
    {tools::kInterrupted,
     "Stopped by Ctrl-C after the case that was running; the reports have the cases until then."},
    {tools::kTerminated, "Stopped by SIGTERM, in the same way."},
    {tools::kHungUp, "Stopped by SIGHUP, in the same way."},
};

constexpr tools::ToolDescription kTool = {
    "hal-cts",
    "hal-cts --driver=FILE [flags]",
    "Tests whether a driver keeps its contract (docs/driver-abi.md): each case in a process of its own, on "
    "every\n"
    "device of the driver. Exits with 0 if nothing failed. How to use it: docs/hal-cts.md.",
    kGroups,
    "  hal-cts --driver=build/halyard-driver-mine.so\n"
    "  hal-cts --driver=build/halyard-driver-mine.so --filter='semaphore.*'\n"
    "  hal-cts --driver=build/halyard-driver-mine.so --device=mine://1 --expect_failures=known.txt\n"
    "  gdb --args hal-cts --driver=build/halyard-driver-mine.so --no_fork --filter=queue.flush\n",
    kExitCodes};

struct Run {
  std::string driver;
  std::vector<Program> programs = built_in_programs();
  std::vector<KnownFailure> known;
  int64_t timeout_ns = 0;
  int64_t patience_ns() const { return timeout_ns / 2; }  // of one step of a case
  bool fork = true;
  bool leaks = false;
};

// A note with this prefix is a remark.
constexpr std::string_view kRemark = "remark\n";

// Adds the last step of the case to problems of its process, such as a crash.
void say_how_far(Report& report, const CaseLog& case_log) {
  const std::string text = case_log.text();
  for (Problem& problem : report.problems)
    if (!text.empty() && (problem.what == "the case" || problem.what == "the process after the case"))
      problem.found += "; " + text;
}

Report run_case(const Run& run, const Case& about, const Target& target) {
  CaseLog& case_log = CaseLog::create();
  const auto body = [&](Teller& teller) {
    const auto problem = [&](const Problem& it) { teller.problem(it); };
    SessionOptions options;
    options.case_log = &case_log;
    options.patience_ns = run.patience_ns();
    options.programs = &run.programs;
    options.note = [&](const std::string& text) { teller.note(text); };
    options.remark = [&](const std::string& text) { teller.note(std::string(kRemark) + text); };
    // On the heap, and not freed if the case stops, because work in flight may still call back.
    static Session* session = nullptr;
    session = new Session(run.driver, target, options, problem);
    try {
      try {
        if (about.scope == Scope::device) session->start();
        about.run(*session);
      } catch (const Unsupported& it) {
        teller.skipped(it.why);
      }
      session->finish();
      delete session;
      session = nullptr;
    } catch (const Stopped&) {
      return;
    }
    if (run.leaks) check_leaks(problem);
  };
  Report report = run_apart(body, run.fork ? run.timeout_ns : 0);
  say_how_far(report, case_log);
  if (run.fork) CaseLog::destroy(case_log);  // a case that stopped in this process may still write to it
  return report;
}

Finding judge(const Run& run, const Case& about, const std::string& device, Report report) {
  Finding finding{.device = device, .about = &about, .problems = std::move(report.problems)};
  const bool known = is_known(run.known, device, about.name);
  if (!finding.problems.empty()) {
    finding.verdict = known ? Verdict::skipped : Verdict::failed;
    if (known) finding.reason = "expected failure";
  } else if (report.skipped) {
    finding.verdict = Verdict::skipped;
    finding.reason = "unsupported: " + report.reason;
  } else if (known) {
    finding.verdict = Verdict::failed;
    finding.problems.push_back({flag::expect_failures.text(), about.name, "a failure, as the file says",
                                "that it passes; take it out of the file"});
  }
  return finding;
}

// ---- The run

Result<> write_file(const std::string& path, const std::string& text) {
  return tools::write_file(path, false, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::string case_list(const std::vector<const Case*>& cases) {
  std::vector<tools::Row> rows;
  for (const Case* it : cases) rows.push_back({it->name, it->tags, it->rules, it->description});
  return tools::table({"CASE", "TAGS", "RULES", "WHAT IT CHECKS"}, std::move(rows));
}

// Parses "kind\npath\nname", the note of the case that lists devices.
Target target_of(const std::string& note) {
  const size_t path = note.find('\n') + 1;
  return {note.substr(0, path - 1), note.substr(path, note.find('\n', path) - path), {}};
}

Result<> prepare_to_find_leaks(const Run& run) {
  if (!run.fork)
    return fail(HALYARD_INVALID_ARGUMENT,
                "{} needs a process for each case, to know which one lost the memory; leave out {}",
                flag::leaks, flag::no_fork);
  if (!can_find_leaks()) return restart_to_find_leaks();
  const auto look = [](Teller& teller) { check_leaks([&](const Problem& it) { teller.problem(it); }); };
  const Report tried = run_apart(look, run.timeout_ns);
  if (!tried.failed()) return {};
  return fail(HALYARD_UNAVAILABLE,
              "{}: LeakSanitizer cannot look here: {}; it must be allowed to trace a process (ptrace)",
              flag::leaks, tried.problems.front().found);
}

Result<int> test_driver(const Flags& flags) {
  TOOL_TRY(check_only_flags(flags, "the driver is", flag::driver));
  const std::vector<const Case*> cases =
      TOOL_TRY(choose_cases(flags[flag::filter], flags[flag::tag], flags[flag::skip_tag]));
  if (flags[flag::list]) {
    const std::string text = flags.has(flag::json) ? to_json(cases) : case_list(cases);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  Run run;
  run.driver = flags[flag::driver];
  if (run.driver.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "no driver; say which with {}=halyard-driver-NAME.so",
                flag::driver);
  run.fork = !flags[flag::no_fork];
  run.leaks = flags[flag::leaks];
  if (run.leaks) TOOL_TRY(prepare_to_find_leaks(run));
  run.timeout_ns = TOOL_TRY(flags[flag::timeout]).value_or(std::chrono::seconds(20)).count();
  const uint64_t max_timeouts = TOOL_TRY(flags[flag::max_timeouts]);
  if (flags.has(flag::expect_failures))
    run.known = TOOL_TRY(read_known_failures(flags[flag::expect_failures]));
  for (Program& it : TOOL_TRY(given_programs(flags[flag::executable]))) run.programs.push_back(std::move(it));
  static_cast<void>(TOOL_TRY(tools::FileContents::open(run.driver)));  // fails with a message about the file

  const tools::Interrupt interrupt;
  size_t timeouts = 0;  // cases that failed because of the time limit
  const auto is_hopeless = [&] { return max_timeouts > 0 && timeouts >= max_timeouts; };
  size_t left_out = 0;  // cases that are not run, for one of these reasons
  const bool json_to_stdout = flags[flag::json] == "";
  Printer printer(json_to_stdout ? stderr : stdout);
  printer.header(fmt::format("driver '{}'", run.driver));
  std::vector<Finding> findings;
  const auto one = [&](const Case& about, const Target& target, const std::string& device, size_t number,
                       size_t total, bool asked_for) {
    if (interrupt.happened() || is_hopeless()) {
      left_out += asked_for;
      return std::pair(false, std::vector<std::string>());
    }
    printer.begin(number, total, device, about);
    const int64_t begin = now_ns();
    Report report = run_case(run, about, target);
    std::vector<std::string> notes = std::move(report.notes);
    std::string remark;
    std::erase_if(notes, [&](const std::string& note) {
      if (!note.starts_with(kRemark)) return false;
      remark += (remark.empty() ? "" : ", ") + note.substr(kRemark.size());
      return true;
    });
    Finding finding = judge(run, about, device, std::move(report));
    if (finding.verdict == Verdict::passed) finding.remark = std::move(remark);
    const int64_t time = now_ns() - begin;
    finding.seconds = static_cast<double>(time) / 1e9;
    timeouts += finding.verdict == Verdict::failed && time >= run.patience_ns();
    const bool failed = !finding.problems.empty();
    if (asked_for || failed) {
      printer.end(finding);
      findings.push_back(std::move(finding));
    }
    return std::pair(failed, std::move(notes));
  };

  // If the host refuses the driver, no other case runs.
  const auto asked_for = [&](const Case& it) { return std::ranges::find(cases, &it) != cases.end(); };
  std::vector<Target> listed;
  bool refused = false;
  for (const Case& it : all_cases()) {
    if (it.scope != Scope::host || refused) continue;
    auto [failed, notes] = one(it, {}, "", 0, 0, asked_for(it));
    refused = failed && notes.empty();
    for (const std::string& note : notes) listed.push_back(target_of(note));
  }
  if (interrupt.happened()) {
    printer.header("interrupted before the devices were known: no case of a device was run");
  } else if (!refused) {
    const std::vector<Target> devices = TOOL_TRY(choose_devices(flags[flag::device], listed));
    const auto of_scope = [&](Scope scope) {
      return std::ranges::count(cases, scope, [](const Case* it) { return it->scope; });
    };
    const size_t total = of_scope(Scope::driver) + devices.size() * of_scope(Scope::device);
    size_t number = 0;
    const Target first = listed.empty() ? Target() : listed.front();
    for (const Case* it : cases)
      if (it->scope == Scope::driver) one(*it, first, "", ++number, total, true);
    for (const Target& device : devices)
      for (const Case* it : cases)
        if (it->scope == Scope::device) one(*it, device, device.uri(), ++number, total, true);
    if (devices.empty()) printer.header("the driver lists no device: nothing was tested on one");
  } else {
    printer.header(
        "nothing else was run: a driver that the host does not take, or whose devices cannot be listed, "
        "cannot be tested further");
  }

  const std::string name = std::filesystem::path(run.driver).filename().string();
  if (flags.has(flag::junit)) TOOL_TRY(write_file(flags[flag::junit], to_junit(name, findings)));
  if (flags.has(flag::json)) {
    const std::string text = to_json(name, findings, interrupt.happened(), left_out);
    if (json_to_stdout) {
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else {
      TOOL_TRY(write_file(*flags[flag::json], text));
    }
  }
  const Counts counts = count(findings);
  if (left_out > 0 && interrupt.happened())
    printer.header(fmt::format("interrupted: {} cases were not run", left_out));
  else if (left_out > 0)
    printer.header(
        fmt::format("stopped: {} cases failed because of the time limit; {} cases were not run; "
                    "{}=0 runs them, {}=NAME runs one",
                    timeouts, left_out, flag::max_timeouts, flag::filter));
  printer.last_line(counts);
  if (interrupt.happened()) return interrupt.exit_code();
  return counts.failed > 0 ? 1 : 0;
}

}  // namespace

}  // namespace halyard::cts

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::cts::kTool, argc, argv, halyard::cts::test_driver);
}
