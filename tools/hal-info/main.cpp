// hal-info: lists drivers and devices, their features, and the reasons for refusing drivers; prints captures
// and replays them on a device.
#include <algorithm>
#include <cstdio>
#include <span>
#include <string>

#include "captures.h"
#include "common/probe.h"
#include "common/survey.h"
#include "common/tool.h"
#include "info_flags.h"
#include "json.h"
#include "text.h"
#include "text/suggest.h"
#include "timing.h"

namespace halyard::tools {

namespace {

constexpr const Flag* kListFlags[] = {&flag::explain, &flag::json, &flag::driver, &flag::probe_timeout};
constexpr const Flag* kCaptureFlags[] = {&flag::replay_device, &flag::execution, &flag::command,
                                         &flag::executable,    &flag::benchmark, &flag::benchmark_min_time,
                                         &flag::output,        &flag::incomplete};

constexpr FlagGroup kGroups[] = {{"Drivers and devices", kListFlags}, {"Captures", kCaptureFlags}};

constexpr ExitCode kExitCodes[] = {
    {0,
     "Success. A refused driver, or a device that cannot be opened, does not count as a failure of a list."},
    {1, "A failure; standard error has the reason. Or replay: an execution failed or its bytes differ."},
};

constexpr ToolDescription kTool = {
    "hal-info",
    "hal-info [drivers | devices [URI] | formats URI [FORMAT[=FILE]]... | query URI CATEGORY KEY | time URI "
    "| "
    "print FILE | replay FILE | cut FILE] [flags]",
    "Lists drivers and devices. A driver that crashes or hangs is reported; the others still work.",
    kGroups,
    "  hal-info                                        drivers and devices\n"
    "  hal-info --explain                              the search for drivers, and why one was refused\n"
    "  hal-info devices local-sync                     one device\n"
    "  hal-info formats local-sync vmvx-bytecode-fb    how well executables of a format fit\n"
    "  hal-info query local-sync hal.device concurrency\n"
    "  hal-info time remote://build-box                how long a device takes to answer and to copy\n"
    "  hal-info print run.hycap                        a capture, written by vm-run --capture=run.hycap\n"
    "  hal-info replay run.hycap --device=local-sync   executes the capture again and compares the bytes\n"
    "  hal-info replay run.hycap --benchmark           measures each execution\n"
    "  hal-info cut run.hycap --execution=0 --command=17 --output=small.hycap   one kernel with its inputs\n"
    "  hal-info --json --driver=./halyard-driver-mine.so\n",
    kExitCodes,
    "drivers|devices|formats|query|time|print|replay|cut"};

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

struct Request {
  const Flags& flags;
  std::vector<std::string> arguments;  // after the verb
  std::chrono::nanoseconds limit;

  bool json() const { return flags[flag::json]; }
  Result<Survey> all() const { return survey_all(TOOL_TRY(make_instance(flags)), limit, Depth::opened); }
};

Result<> explain(const Request& request) {
  const Survey survey = TOOL_TRY(survey_drivers(TOOL_TRY(make_instance(request.flags)), request.limit));
  print(request.json() ? explanation_json(survey) : explanation(survey.search, survey.failures));
  return {};
}

Result<> summary(const Request& request) {
  const Survey survey = TOOL_TRY(request.all());
  print(request.json() ? survey_json(survey)
                       : drivers_text(survey) + "\n" + devices_text(survey.devices) + compiler_text() +
                             refused_text(survey));
  return {};
}

Result<> drivers(const Request& request) {
  const Survey survey = TOOL_TRY(request.all());
  print(request.json() ? drivers_json(survey) : drivers_text(survey) + refused_text(survey));
  return {};
}

// The device that the first argument names, and its instance.
struct Opened {
  Instance instance;
  DeviceInfo device;
};
Result<Opened> open(const Request& request) {
  Opened opened;
  opened.instance = TOOL_TRY(make_instance(request.flags));
  opened.device = TOOL_TRY(survey_device(opened.instance, request.arguments.front(), request.limit));
  return opened;
}

Result<> devices(const Request& request) {
  if (request.arguments.empty()) {
    const Survey survey = TOOL_TRY(request.all());
    const std::string shared = sharing_text(survey.devices);
    print(request.json()
              ? devices_json(survey.devices)
              : devices_text(survey.devices) + (shared.empty() ? "" : "\n" + shared) + refused_text(survey));
    return {};
  }
  std::vector<DeviceInfo> one;
  const Opened opened = TOOL_TRY(open(request));
  one.push_back(opened.device);
  print(request.json() ? devices_json(one) : devices_text(one));
  return {};
}

Result<> formats(const Request& request) {
  const Opened opened = TOOL_TRY(open(request));
  std::vector<FormatGrade> grades =
      TOOL_TRY(grade_formats(opened.device.device, {request.arguments.begin() + 1, request.arguments.end()}));
  if (request.json()) {
    print(grades_json(opened.device, grades));
    return {};
  }
  if (request.arguments.size() == 1) {  // the reason is only printed for formats that the user named
    for (FormatGrade& grade : grades)
      if (grade.fit == HALYARD_FIT_NO) grade.reason.clear();
  }
  print(grades_text(grades));
  return {};
}

Result<> query(const Request& request) {
  const Opened opened = TOOL_TRY(open(request));
  Answer answer{.category = request.arguments[1], .key = request.arguments[2]};
  const std::optional<int64_t> value = TOOL_TRY(opened.device.device.query(answer.category, answer.key));
  answer.known = value.has_value();
  answer.value = value.value_or(0);
  if (request.json()) {
    print(answer_json(opened.device, answer));
  } else if (answer.known) {
    print(fmt::format("{}\n", answer.value));
  } else {
    return fail(HALYARD_NOT_FOUND,
                "device '{}' does not know the key '{}' of category '{}'; try concurrency of hal.device, "
                "which most devices know",
                opened.device.uri, answer.key, answer.category);
  }
  return {};
}

Result<> time(const Request& request) {
  Opened opened = TOOL_TRY(open(request));
  opened.device.device = {};  // so that the device is opened as a first time
  const Timing timing = TOOL_TRY(time_device(opened.instance, request.arguments.front()));
  print(request.json() ? timing_json(timing) : timing_text(timing));
  return {};
}

Result<> print_file(const Request& request) {
  print(TOOL_TRY(capture_description(request.flags, request.arguments.front())));
  return {};
}

Result<int> replay(const Request& request) {
  return replay_capture(request.flags, request.arguments.front());
}

Result<> cut(const Request& request) { return cut_capture(request.flags, request.arguments.front()); }

// A verb that only prints: its exit status is 0.
template <Result<> (*Show)(const Request&)>
Result<int> shown(const Request& request) {
  TOOL_TRY(Show(request));
  return 0;
}

constexpr const Flag* kPrintFlags[] = {&flag::execution, &flag::incomplete};
constexpr const Flag* kReplayFlags[] = {&flag::replay_device, &flag::execution, &flag::command,
                                        &flag::executable,    &flag::benchmark, &flag::benchmark_min_time,
                                        &flag::incomplete};
constexpr const Flag* kCutFlags[] = {&flag::replay_device, &flag::execution, &flag::command,
                                     &flag::executable,    &flag::output,    &flag::incomplete};

struct Verb {
  const char* name;
  size_t least;
  size_t most;
  std::string_view arguments;
  Result<int> (*run)(const Request&);               // returns the exit status
  std::span<const Flag* const> capture_flags = {};  // those of kCaptureFlags that it reads
};
constexpr Verb kVerbs[] = {
    {"drivers", 0, 0, "no arguments", shown<drivers>},
    {"devices", 0, 1, "at most one URI", shown<devices>},
    {"formats", 1, SIZE_MAX, "URI [FORMAT[=FILE]]...", shown<formats>},
    {"query", 3, 3, "URI CATEGORY KEY", shown<query>},
    {"time", 1, 1, "URI", shown<time>},
    {"print", 1, 1, "FILE", shown<print_file>, kPrintFlags},
    {"replay", 1, 1, "FILE", replay, kReplayFlags},
    {"cut", 1, 1, "FILE", shown<cut>, kCutFlags},
};

bool reads(const Verb& verb, const Flag& flag) {
  return std::ranges::find(verb.capture_flags, &flag) != verb.capture_flags.end();
}

// Refuses flags of captures without effect. `verb` null: the summary.
Result<> check_capture_flags(const Flags& flags, const Verb* verb) {
  for (const Flag* const given : kCaptureFlags) {
    if (!flags.has(*given) || (verb && reads(*verb, *given))) continue;
    std::string readers;
    for (const Verb& each : kVerbs)
      if (reads(each, *given)) readers += fmt::format("{}'{}'", readers.empty() ? "" : " and ", each.name);
    return fail(HALYARD_INVALID_ARGUMENT, "{} has no effect on {}, only on {}; remove it", *given,
                verb ? fmt::format("'{}'", verb->name) : "the summary", readers);
  }
  return {};
}

Result<const Verb*> find_verb(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Verb& verb : kVerbs) {
    if (name == verb.name) return &verb;
    names.push_back(verb.name);
  }
  return fail(HALYARD_INVALID_ARGUMENT,
              "expected drivers, devices, formats, query, time, print, replay or cut, found '{}'{}", name,
              did_you_mean(name, names));
}

Result<int> hal_info(const Flags& flags) {
  Request request{flags, flags.positional(), TOOL_TRY(probe_limit(flags, flag::probe_timeout))};
  if (request.arguments.empty()) {
    TOOL_TRY(check_capture_flags(flags, nullptr));
    TOOL_TRY(flags[flag::explain] ? explain(request) : summary(request));
    return 0;
  }
  const Verb* const verb = TOOL_TRY(find_verb(request.arguments.front()));
  request.arguments.erase(request.arguments.begin());
  if (request.arguments.size() < verb->least || request.arguments.size() > verb->most)
    return fail(HALYARD_INVALID_ARGUMENT,
                "'hal-info {}' takes {}, found {} argument{}; 'hal-info --help' shows examples", verb->name,
                verb->arguments, request.arguments.size(), request.arguments.size() == 1 ? "" : "s");
  if (flags[flag::explain])
    return fail(HALYARD_INVALID_ARGUMENT, "{} cannot be combined with '{}'; remove one of them",
                flag::explain, verb->name);
  TOOL_TRY(check_capture_flags(flags, verb));
  return verb->run(request);
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::tools::kTool, argc, argv, halyard::tools::hal_info);
}
