// hal-cts: whether a driver keeps the rules of docs/driver-abi.md. Chooses cases, runs each, tells what came
// of it.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "common/files.h"
#include "common/flags.h"
#include "common/interrupt.h"
#include "common/quantities.h"
#include "common/table.h"
#include "findings.h"
#include "known_failures.h"
#include "leaks.h"
#include "selection.h"

namespace halyard::cts {

using tools::fail;
using tools::Flag;
using tools::FlagKind;
using tools::Flags;

namespace {

constexpr Flag kFlags[] = {
    {"driver", FlagKind::value, "FILE", "The driver to test: a halyard-driver-NAME.so.",
     "--driver=build/halyard-driver-mine.so"},
    {"device", FlagKind::list, "URI",
     "A device to test, as KIND://PATH?KEY=VALUE&...; left out: every device that the driver lists.",
     "--device=mine://0"},
    {"executable", FlagKind::list, "FORMAT=FILE",
     "A program in a format of the device, with the functions that docs/hal-cts.md names.",
     "--executable=vulkan-spirv-fb=cts.spv"},
    {"filter", FlagKind::list, "GLOB", "Runs the cases with such names.", "--filter='memory.*'"},
    {"tag", FlagKind::list, "TAG", "Runs the cases with this tag; 'hal-cts --list' shows them.",
     "--tag=queue"},
    {"skip_tag", FlagKind::list, "TAG", "Leaves out the cases with this tag.", "--skip_tag=slow"},
    {"list", FlagKind::toggle, "", "Lists the cases with tags and rules, and exits; as JSON with --json.",
     "--list --tag=queue"},
    {"timeout", FlagKind::value, "TIME", "How long one case may take; default 20s.", "--timeout=60s"},
    {"leaks", FlagKind::toggle, "",
     "Looks after each case for memory that the driver has lost, with LeakSanitizer (liblsan), which is "
     "preloaded:\n"
     "nothing has to be built anew. Cases take longer.",
     "--leaks --filter='list.*'"},
    {"no_fork", FlagKind::toggle, "",
     "Runs the cases in this process, for a debugger. A crash ends everything, and there is no time limit.",
     "--no_fork --filter=queue.flush"},
    {"expect_failures", FlagKind::value, "FILE",
     "Cases that are known to fail, one a line: NAME or DEVICE NAME, with * and ?. Their failure counts as\n"
     "skipped, their success as a failure.",
     "--expect_failures=known.txt"},
    {"junit", FlagKind::value, "FILE", "Writes the results as JUnit's XML.", "--junit=results.xml"},
    {"json", FlagKind::optional_value, "FILE",
     "Writes the results as JSON; without FILE to standard output, and text to standard error.", "--json"},
};

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
  int64_t timeout_ns = 20'000'000'000;
  bool fork = true;
  bool leaks = false;
};

// A remark travels among the notes.
constexpr std::string_view kRemark = "remark\n";

// Of the process of a case, not of what it has checked: how far it came is said behind what was found.
void say_how_far(Report& report, const Trail& trail) {
  const std::string text = trail.text();
  for (Problem& problem : report.problems)
    if (!text.empty() && (problem.what == "the case" || problem.what == "the process after the case"))
      problem.found += "; " + text;
}

Report run_case(const Run& run, const Case& about, const Target& target) {
  Trail& trail = Trail::create();
  const auto body = [&](Teller& teller) {
    const auto problem = [&](const Problem& it) { teller.problem(it); };
    SessionOptions options;
    options.trail = &trail;
    options.patience_ns = run.timeout_ns / 2;
    options.programs = &run.programs;
    options.note = [&](const std::string& text) { teller.note(text); };
    options.remark = [&](const std::string& text) { teller.note(std::string(kRemark) + text); };
    // On the heap and left there where the case stops: work that is on its way may still call back.
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
  say_how_far(report, trail);
  if (run.fork) Trail::destroy(trail);  // what stopped in this process may still come by
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
    finding.problems.push_back({"--expect_failures", about.name, "a failure, as the file says",
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

// "kind\npath\nname": what the case that lists devices notes.
Target target_of(const std::string& note) {
  const size_t path = note.find('\n') + 1;
  return {note.substr(0, path - 1), note.substr(path, note.find('\n', path) - path), {}};
}

Result<> prepare_to_find_leaks(const Run& run) {
  if (!run.fork)
    return fail(
        HALYARD_INVALID_ARGUMENT,
        "--leaks needs a process for each case, to know which one lost the memory; leave out --no_fork");
  if (!can_find_leaks()) return restart_to_find_leaks();
  const auto look = [](Teller& teller) { check_leaks([&](const Problem& it) { teller.problem(it); }); };
  const Report tried = run_apart(look, run.timeout_ns);
  if (!tried.failed()) return {};
  return fail(HALYARD_UNAVAILABLE,
              "--leaks: LeakSanitizer cannot look here: {}; it must be allowed to trace a process (ptrace)",
              tried.problems.front().found);
}

Result<int> test_driver(const Flags& flags) {
  if (!flags.positional().empty())
    return fail(HALYARD_INVALID_ARGUMENT, "'{}' is no flag; the driver is given as --driver=FILE",
                flags.positional().front());
  const std::vector<const Case*> cases =
      TOOL_TRY(choose_cases(flags.all("filter"), flags.all("tag"), flags.all("skip_tag")));
  if (flags.on("list")) {
    const std::string text = flags.has("json") ? to_json(cases) : case_list(cases);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  Run run;
  run.driver = flags.value("driver");
  if (run.driver.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "no driver; say which with --driver=halyard-driver-NAME.so");
  run.fork = !flags.on("no_fork");
  run.leaks = flags.on("leaks");
  if (run.leaks) TOOL_TRY(prepare_to_find_leaks(run));
  if (flags.has("timeout"))
    run.timeout_ns = static_cast<int64_t>(TOOL_TRY(tools::parse_duration("timeout", flags.value("timeout"))));
  if (flags.has("expect_failures")) run.known = TOOL_TRY(read_known_failures(flags.value("expect_failures")));
  for (Program& it : TOOL_TRY(given_programs(flags.all("executable")))) run.programs.push_back(std::move(it));
  static_cast<void>(
      TOOL_TRY(tools::FileContents::open(run.driver)));  // a message about the file, if it has none

  const tools::Interrupt interrupt;
  size_t left_out = 0;  // cases that were to be run when it happened
  const bool json_to_stdout = flags.has("json") && flags.value("json").empty();
  Printer printer(json_to_stdout ? stderr : stdout);
  printer.header(fmt::format("driver '{}'", run.driver));
  std::vector<Finding> findings;
  const auto one = [&](const Case& about, const Target& target, const std::string& device, size_t number,
                       size_t total, bool asked_for) {
    if (interrupt.happened()) {
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
    finding.seconds = static_cast<double>(now_ns() - begin) / 1e9;
    const bool failed = !finding.problems.empty();
    if (asked_for || failed) {
      printer.end(finding);
      findings.push_back(std::move(finding));
    }
    return std::pair(failed, std::move(notes));
  };

  // What the host refuses nothing else is asked of.
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
    const std::vector<Target> devices = TOOL_TRY(choose_devices(flags.all("device"), listed));
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
  if (flags.has("junit")) TOOL_TRY(write_file(flags.value("junit"), to_junit(name, findings)));
  if (flags.has("json")) {
    const std::string text = to_json(name, findings, interrupt.happened());
    if (json_to_stdout) {
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else {
      TOOL_TRY(write_file(flags.value("json"), text));
    }
  }
  const Counts counts = count(findings);
  if (left_out > 0) printer.header(fmt::format("interrupted: {} cases were not run", left_out));
  printer.last_line(counts);
  if (interrupt.happened()) return interrupt.exit_code();
  return counts.failed > 0 ? 1 : 0;
}

}  // namespace

}  // namespace halyard::cts

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::cts::kTool, argc, argv, halyard::cts::test_driver);
}
