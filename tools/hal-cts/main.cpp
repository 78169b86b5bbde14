// hal-cts: whether a driver keeps the rules of docs/driver-abi.md. Chooses cases, runs each, tells what came
// of it.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "common/files.h"
#include "common/flags.h"
#include "common/quantities.h"
#include "findings.h"
#include "known_failures.h"

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
    {"list", FlagKind::toggle, "", "Lists the cases with tags and rules, and exits.", "--list"},
    {"timeout", FlagKind::value, "TIME", "How long one case may take; default 20s.", "--timeout=60s"},
    {"no_fork", FlagKind::toggle, "",
     "Runs the cases in this process, for a debugger. A crash ends everything, and there is no time limit.",
     "--no_fork --filter=queue.order"},
    {"expect_failures", FlagKind::value, "FILE",
     "Cases that are known to fail, one a line: NAME or DEVICE NAME, with * and ?. Their failure counts as\n"
     "skipped, their success as a failure.",
     "--expect_failures=known.txt"},
    {"junit", FlagKind::value, "FILE", "Writes the results as JUnit's XML.", "--junit=results.xml"},
    {"json", FlagKind::optional_value, "FILE",
     "Writes the results as JSON; without FILE to standard output, and text to standard error.", "--json"},
};

constexpr tools::ToolDescription kTool = {
    "hal-cts", "hal-cts --driver=FILE [flags]",
    "Tests whether a driver keeps its contract (docs/driver-abi.md): each case in a process of its own, on "
    "every\n"
    "device of the driver. Exits with 0 if nothing failed. How to use it: docs/hal-cts.md.",
    kFlags,
    "  hal-cts --driver=build/halyard-driver-mine.so\n"
    "  hal-cts --driver=build/halyard-driver-mine.so --filter='semaphore.*'\n"
    "  hal-cts --driver=build/halyard-driver-mine.so --device=mine://1 --expect_failures=known.txt\n"
    "  gdb --args hal-cts --driver=build/halyard-driver-mine.so --no_fork --filter=queue.order\n"};

struct Run {
  std::string driver;
  std::vector<Program> programs = built_in_programs();
  std::vector<KnownFailure> known;
  int64_t timeout_ns = 20'000'000'000;
  bool fork = true;
};

Report run_case(const Run& run, const Case& about, const Target& target) {
  const auto body = [&](Teller& teller) {
    Result<Driver> driver = Driver::load(run.driver);
    if (!driver) return teller.problem({"R5", "dlopen", "a library", driver.error().text});
    SessionOptions options;
    options.patience_ns = run.timeout_ns / 2;
    options.programs = &run.programs;
    options.note = [&](const std::string& text) { teller.note(text); };
    // On the heap and left there where the case stops: work that is on its way may still call back.
    static Driver kept = *driver;
    static Session* session = nullptr;
    session = new Session(kept, target, options, [&](const Problem& it) { teller.problem(it); });
    try {
      try {
        if (about.scope == Scope::device) session->start();
        about.run(*session);
      } catch (const Unsupported& it) {
        teller.skipped(it.why);
      }
      session->finish();
      delete session;
    } catch (const Stopped&) {
    }
  };
  return run_apart(body, run.fork ? run.timeout_ns : 0);
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

// ---- What the flags say

Result<Target> parse_device(const std::string& uri) {
  Target target;
  const size_t scheme = uri.find("://");
  target.kind = uri.substr(0, scheme);
  if (scheme == std::string::npos) return target;
  const size_t question = std::min(uri.find('?', scheme), uri.size());
  target.path = uri.substr(scheme + 3, question - scheme - 3);
  std::string_view options = std::string_view(uri).substr(std::min(question + 1, uri.size()));
  while (!options.empty()) {
    const std::string_view option = options.substr(0, options.find('&'));
    const size_t equals = option.find('=');
    if (equals == std::string_view::npos)
      return fail(HALYARD_INVALID_ARGUMENT, "--device={}: found the option '{}', expected KEY=VALUE", uri,
                  option);
    target.options.emplace_back(option.substr(0, equals), option.substr(equals + 1));
    options.remove_prefix(std::min(option.size() + 1, options.size()));
  }
  return target;
}

// Those of `listed` that are wanted; all where nothing is.
Result<std::vector<Target>> choose_devices(const std::vector<std::string>& wanted,
                                           const std::vector<Target>& listed) {
  if (wanted.empty()) return listed;
  std::vector<std::string> uris;
  for (const Target& it : listed) uris.push_back(it.uri());
  std::vector<const char*> names;
  std::string known;
  for (const std::string& uri : uris) {
    names.push_back(uri.c_str());
    known += (known.empty() ? "'" : ", '") + uri + "'";
  }
  std::vector<Target> chosen;
  for (const std::string& uri : wanted) {
    Target target = TOOL_TRY(parse_device(uri));
    const bool is_listed = std::ranges::find(uris, target.uri()) != uris.end();
    const bool is_default =
        target.path.empty() && std::ranges::find(listed, target.kind, &Target::kind) != listed.end();
    if (!is_listed && !is_default) {
      const tools::Block<char> hint(halyard_did_you_mean(uri.c_str(), names.data(), names.size()));
      return fail(HALYARD_NOT_FOUND, "--device={}: the driver has no such device{}; it lists {}", uri,
                  hint.get(), known.empty() ? "none" : known);
    }
    chosen.push_back(std::move(target));
  }
  return chosen;
}

Result<> check_tag(const char* flag, const std::string& tag) {
  const std::vector<std::string> tags = all_tags();
  if (std::ranges::find(tags, tag) != tags.end()) return {};
  std::vector<const char*> names;
  for (const std::string& it : tags) names.push_back(it.c_str());
  const tools::Block<char> hint(halyard_did_you_mean(tag.c_str(), names.data(), names.size()));
  return fail(HALYARD_INVALID_ARGUMENT, "--{}: no tag '{}'{}; 'hal-cts --list' shows them", flag, tag,
              hint.get());
}

Result<std::vector<const Case*>> choose_cases(const Flags& flags) {
  const std::vector<std::string> filters = flags.all("filter"), tags = flags.all("tag"),
                                 skipped = flags.all("skip_tag");
  for (const std::string& filter : filters) TOOL_TRY(check_names_a_case("--filter", filter));
  for (const std::string& tag : tags) TOOL_TRY(check_tag("tag", tag));
  for (const std::string& tag : skipped) TOOL_TRY(check_tag("skip_tag", tag));
  std::vector<const Case*> chosen;
  for (const Case& it : all_cases()) {
    const auto named = [&](const std::string& pattern) { return matches(pattern, it.name); };
    const auto tagged = [&](const std::string& tag) { return it.has_tag(tag); };
    if (!filters.empty() && std::ranges::none_of(filters, named)) continue;
    if (!tags.empty() && std::ranges::none_of(tags, tagged)) continue;
    if (std::ranges::none_of(skipped, tagged)) chosen.push_back(&it);
  }
  if (chosen.empty())
    return fail(HALYARD_INVALID_ARGUMENT,
                "--filter, --tag and --skip_tag together leave no case; "
                "'hal-cts --list' with them shows what each leaves");
  return chosen;
}

Result<> add_programs(const Flags& flags, std::vector<Program>& programs) {
  for (const std::string& given : flags.all("executable")) {
    const size_t equals = given.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == given.size())
      return fail(HALYARD_INVALID_ARGUMENT, "--executable={}: expected FORMAT=FILE", given);
    const std::string path = given.substr(equals + 1);
    const tools::FileContents file = TOOL_TRY(tools::FileContents::open(path));
    programs.push_back({given.substr(0, equals), {file.bytes().begin(), file.bytes().end()}, path});
  }
  return {};
}

Result<> write_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool complete = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  complete = file && std::fclose(file) == 0 && complete;
  if (complete) return {};
  return fail(tools::code_of_errno(errno), "cannot write '{}': {}", path, std::strerror(errno));
}

void list_cases(const std::vector<const Case*>& cases) {
  for (const Case* it : cases) fmt::print("{:<36} {:<30} {}\n", it->name, it->tags, it->rules);
}

// ---- The run

// "kind\npath\nname": what the case that lists devices notes.
Target target_of(const std::string& note) {
  const size_t path = note.find('\n') + 1;
  return {note.substr(0, path - 1), note.substr(path, note.find('\n', path) - path), {}};
}

Result<int> test_driver(const Flags& flags) {
  if (!flags.positional().empty())
    return fail(HALYARD_INVALID_ARGUMENT, "'{}' is no flag; the driver is given as --driver=FILE",
                flags.positional().front());
  const std::vector<const Case*> cases = TOOL_TRY(choose_cases(flags));
  if (flags.on("list")) return list_cases(cases), 0;
  Run run;
  run.driver = flags.value("driver");
  if (run.driver.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "no driver; say which with --driver=halyard-driver-NAME.so");
  run.fork = !flags.on("no_fork");
  if (flags.has("timeout"))
    run.timeout_ns = static_cast<int64_t>(TOOL_TRY(tools::parse_duration("timeout", flags.value("timeout"))));
  if (flags.has("expect_failures")) run.known = TOOL_TRY(read_known_failures(flags.value("expect_failures")));
  TOOL_TRY(add_programs(flags, run.programs));
  static_cast<void>(
      TOOL_TRY(tools::FileContents::open(run.driver)));  // a message about the file, if it has none

  const bool json_to_stdout = flags.has("json") && flags.value("json").empty();
  Printer printer(json_to_stdout ? stderr : stdout);
  printer.header(fmt::format("driver '{}'", run.driver));
  std::vector<Finding> findings;
  const auto one = [&](const Case& about, const Target& target, const std::string& device, size_t number,
                       size_t total, bool asked_for) {
    printer.begin(number, total, device, about);
    const int64_t begin = now_ns();
    Report report = run_case(run, about, target);
    std::vector<std::string> notes = std::move(report.notes);
    Finding finding = judge(run, about, device, std::move(report));
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
    refused = failed;
    for (const std::string& note : notes) listed.push_back(target_of(note));
  }
  if (!refused) {
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
    const std::string text = to_json(name, findings);
    if (json_to_stdout) {
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else {
      TOOL_TRY(write_file(flags.value("json"), text));
    }
  }
  const Counts counts = count(findings);
  printer.last_line(counts);
  return counts.failed > 0 ? 1 : 0;
}

}  // namespace

}  // namespace halyard::cts

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::cts::kTool, argc, argv, halyard::cts::test_driver);
}
