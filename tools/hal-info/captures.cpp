// Prints one line for each replayed execution, and the first difference.
#include "captures.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>
#include <span>
#include <system_error>
#include <utility>

#include "common/colour.h"
#include "common/drivers.h"
#include "common/json.h"
#include "common/module_file.h"
#include "common/printable.h"
#include "info_flags.h"

namespace halyard::tools {

namespace {

Result<Capture> open_capture(const Flags& flags, const std::string& path) {
  Result<Capture> capture =
      check(Capture::open(path, flags[flag::incomplete] ? HALYARD_CAPTURE_INCOMPLETE : 0));
  if (!capture && capture.error().code == HALYARD_DATA_LOSS)
    capture.error().text += fmt::format("; {} asks for it", flag::incomplete);
  return capture;
}

std::string bytes_text(std::span<const uint8_t> bytes, uint64_t length) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{}{:02x}", text.empty() ? "" : " ", byte);
  return bytes.size() < length ? text + " ..." : text;
}

std::string_view outcome_name(const Result<halyard_replay_result_t>& result) {
  if (!result) return "failed";
  if (result->outcome == HALYARD_REPLAY_SAME) return "same";
  return result->outcome == HALYARD_REPLAY_DIFFERS ? "differs" : "not compared";
}

// The result of replaying one execution.
struct Replayed {
  uint64_t number = 0;
  std::string device;
  Result<halyard_replay_result_t> result;

  bool is_bad() const { return !result || result->outcome == HALYARD_REPLAY_DIFFERS; }

  std::string text() const {
    const Colour colour = is_bad() ? Colour::red : Colour::green;
    std::string text = fmt::format("execution {} on {}: {}\n", number, printable(device),
                                   coloured(colour, outcome_name(result)));
    if (!result) return text + fmt::format("  {}\n", printable(result.error().line()));
    if (result->outcome == HALYARD_REPLAY_NOT_COMPARED)
      return text + "  it was executed, but the capture has no result to compare with\n";
    if (result->outcome != HALYARD_REPLAY_DIFFERS) return text;
    const halyard_replay_result_t& at = *result;
    text += fmt::format("  buffer{}[{}, +{}) is the first range that differs; {} in total\n", at.buffer,
                        at.offset, at.length,
                        at.total == 1 ? "1 byte differs" : fmt::format("{} bytes differ", at.total));
    text += fmt::format("    expected  {}\n", bytes_text({at.expected, at.shown}, at.length));
    text += fmt::format("    found     {}\n", bytes_text({at.found, at.shown}, at.length));
    if (at.command != HALYARD_REPLAY_NO_COMMAND)
      text += fmt::format("    command {} is the last that may write to this range\n", at.command);
    return text;
  }

  Json json() const {
    Json object = {{"number", number},
                   {"device", device},
                   {"outcome", outcome_name(result)},
                   {"error", result ? Json() : Json(result.error().line())}};
    if (!result || result->outcome != HALYARD_REPLAY_DIFFERS) return object;
    const halyard_replay_result_t& at = *result;
    object["buffer"] = at.buffer;
    object["offset"] = at.offset;
    object["length"] = at.length;
    object["total"] = at.total;
    object["expected"] = bytes_text({at.expected, at.shown}, at.length);
    object["found"] = bytes_text({at.found, at.shown}, at.length);
    object["command"] = at.command == HALYARD_REPLAY_NO_COMMAND ? Json() : Json(at.command);
    return object;
  }
};

// The times of one execution, or of one command of it.
struct Measured {
  uint64_t number = 0;
  uint64_t command = HALYARD_EVERY_COMMAND;
  std::string device;
  halyard_replay_times_t times = {};

  std::string text() const {
    const std::string what =
        command == HALYARD_EVERY_COMMAND ? std::string() : fmt::format(", command {}", command);
    const auto microseconds = [](uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; };
    return fmt::format("execution {}{} on {}: {:.1f} us median, {:.1f} us fastest, of {}\n", number, what,
                       printable(device), microseconds(times.median_ns), microseconds(times.fastest_ns),
                       times.count);
  }
  Json json() const {
    return {{"number", number},
            {"command", command == HALYARD_EVERY_COMMAND ? Json() : Json(command)},
            {"device", device},
            {"count", times.count},
            {"median_ns", times.median_ns},
            {"fastest_ns", times.fastest_ns},
            {"total_ns", times.total_ns}};
  }
};

Result<std::string> captured_format(const Capture& capture, uint64_t number) {
  const uint64_t one = TOOL_TRY(capture.info()).execution_count > 0 ? 0 : HALYARD_EVERY_EXECUTION;
  const Json described = TOOL_TRY(parse_json(TOOL_TRY(capture.describe(one, HALYARD_DESCRIBE_JSON))));
  const Json& executables = described["executables"];
  if (number >= executables.size())
    return fail(HALYARD_OUT_OF_RANGE, "executable {} does not exist; the capture has {}, counted from 0",
                number, executables.size());
  return executables[number]["format"].get<std::string>();
}

// "N=[FORMAT:]FILE"
Result<std::vector<ReplayExecutable>> substitutes(const Flags& flags, const Capture& capture) {
  std::vector<ReplayExecutable> executables;
  for (const std::string& value : flags[flag::executable]) {
    const size_t equals = value.find('=');
    ReplayExecutable executable;
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + std::min(equals, value.size()), executable.number);
    if (equals == std::string::npos || error != std::errc() || end != value.data() + equals)
      return wrong_value(flag::executable, value, "N=[FORMAT:]FILE, such as 0=vulkan-spirv-fb:kernels.fb");
    std::string path = value.substr(equals + 1);
    if (const size_t colon = path.find(':'); colon != std::string::npos) {
      executable.format = path.substr(0, colon);
      path = path.substr(colon + 1);
    } else {
      executable.format = TOOL_TRY(captured_format(capture, executable.number));
    }
    const ModuleFile file = TOOL_TRY(ModuleFile::open(path));
    executable.data.assign(file.bytes().begin(), file.bytes().end());
    executables.push_back(std::move(executable));
  }
  return executables;
}

// Replays on the device of --device, or on the captured devices. Opens each once.
class Replays {
 public:
  static Result<Replays> of(const Flags& flags, const Capture& capture) {
    Replays replays;
    replays.capture_ = capture;
    replays.device_ = flags[flag::replay_device];
    replays.options_.executables = TOOL_TRY(substitutes(flags, capture));
    replays.instance_ = TOOL_TRY(make_instance(flags));
    if (!replays.device_.empty()) static_cast<void>(TOOL_TRY(replays.on(replays.device_)));
    return replays;
  }

  // The device on which an execution is replayed.
  Result<std::string> device_of(uint64_t number) const {
    const halyard_captured_execution_t execution = TOOL_TRY(capture_.execution(number));
    return device_.empty() ? std::string(view(execution.device)) : device_;
  }

  Result<Replayed> run(uint64_t number, uint64_t command) {
    const std::string uri = TOOL_TRY(device_of(number));
    return Replayed{number, uri, run_on(uri, number, command)};
  }
  Result<Measured> measure(uint64_t number, uint64_t command, std::chrono::nanoseconds at_least) {
    const std::string uri = TOOL_TRY(device_of(number));
    return Measured{number, command, uri, TOOL_TRY(TOOL_TRY(on(uri)).measure(number, command, at_least))};
  }
  Result<std::string> cut(uint64_t number, uint64_t command, const std::string& path) {
    std::string uri = TOOL_TRY(device_of(number));
    TOOL_TRY(TOOL_TRY(on(uri)).cut(number, command, path));
    return uri;
  }

 private:
  Result<Replay> on(const std::string& uri) {
    Replay& replay = replays_[uri];
    if (!replay) replay = TOOL_TRY(Replay::create(capture_, TOOL_TRY(instance_.open(uri)), options_));
    return replay;
  }

  Result<halyard_replay_result_t> run_on(const std::string& uri, uint64_t number, uint64_t command) {
    const Replay replay = TOOL_TRY(on(uri));
    return check(command == HALYARD_EVERY_COMMAND ? replay.execute(number)
                                                  : replay.execute_to(number, command));
  }

  Capture capture_;
  std::string device_;
  ReplayOptions options_;
  Instance instance_;
  std::map<std::string, Replay> replays_;
};

// Without the flag every execution is replayed; this value cannot be given as a number.
Result<uint64_t> chosen_execution(const Flags& flags) {
  const uint64_t number = TOOL_TRY(flags[flag::execution]);
  if (number != HALYARD_EVERY_EXECUTION || !flags.has(flag::execution)) return number;
  return wrong_value(flag::execution, flags.given(flag::execution).back(),
                     fmt::format("a number, such as {}", flag::execution.example_value()));
}

Result<uint64_t> chosen_command(const Flags& flags) {
  const uint64_t number = TOOL_TRY(flags[flag::command]);
  if (number != HALYARD_EVERY_COMMAND || !flags.has(flag::command)) return number;
  return wrong_value(flag::command, flags.given(flag::command).back(), "a number, such as 17");
}

// The rows of executions. Each is printed at once, because the next execution may crash. If a later execution
// fails, the rows before it are still valid JSON.
class Rows {
 public:
  explicit Rows(bool json) : json_(json) {}
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() {
    if (is_open_) std::fputs("]}\n", stdout);
  }

  template <typename Row>
  void print(const Row& row) {
    const char* const before = !json_ ? "" : std::exchange(is_open_, true) ? ",\n" : kBegin;
    fmt::print("{}{}", before, json_ ? json_line(row.json()) : row.text());
    std::fflush(stdout);
  }
  void end() {
    if (json_) fmt::print("{}]}}\n", std::exchange(is_open_, false) ? "" : kBegin);
  }

 private:
  static constexpr const char* kBegin = "{\"executions\": [";
  const bool json_;
  bool is_open_ = false;
};

Result<int> measure_executions(const Flags& flags, Replays& replays, uint64_t begin, uint64_t end,
                               uint64_t command) {
  const auto at_least = TOOL_TRY(flags[flag::benchmark_min_time]).value_or(std::chrono::milliseconds(500));
  Rows rows(flags[flag::json]);
  for (uint64_t number = begin; number < end; ++number)
    rows.print(TOOL_TRY(replays.measure(number, command, at_least)));
  rows.end();
  return 0;
}

}  // namespace

Result<std::string> capture_description(const Flags& flags, const std::string& path) {
  const Capture capture = TOOL_TRY(open_capture(flags, path));
  const uint32_t form = flags[flag::json] ? HALYARD_DESCRIBE_JSON : HALYARD_DESCRIBE_TEXT;
  std::string text = TOOL_TRY(capture.describe(TOOL_TRY(chosen_execution(flags)), form));
  return form == HALYARD_DESCRIBE_JSON ? text : printable(text);
}

Result<int> replay_capture(const Flags& flags, const std::string& path) {
  const Capture capture = TOOL_TRY(open_capture(flags, path));
  const halyard_capture_info_t info = TOOL_TRY(capture.info());
  const uint64_t wanted = TOOL_TRY(chosen_execution(flags));
  const uint64_t command = TOOL_TRY(chosen_command(flags));
  const bool every = wanted == HALYARD_EVERY_EXECUTION;
  if (every && command != HALYARD_EVERY_COMMAND && info.execution_count != 1)
    return fail(HALYARD_INVALID_ARGUMENT, "{} needs {}, because the capture has {} executions", flag::command,
                flag::execution, info.execution_count);
  const uint64_t begin = every ? 0 : wanted;
  const uint64_t end = every ? info.execution_count : wanted + 1;
  if (command != HALYARD_EVERY_COMMAND) {
    const uint64_t count = TOOL_TRY(capture.execution(begin)).command_count;
    if (command >= count)
      return fail(HALYARD_OUT_OF_RANGE, "{}={}: execution {} has {} commands, counted from 0", flag::command,
                  command, begin, count);
  }
  Replays replays = TOOL_TRY(Replays::of(flags, capture));
  if (flags[flag::benchmark]) return measure_executions(flags, replays, begin, end, command);
  std::map<std::string_view, uint64_t> counts;
  uint64_t bad = 0;
  const bool json = flags[flag::json];
  Rows rows(json);
  for (uint64_t number = begin; number < end; ++number) {
    const Replayed replayed = TOOL_TRY(replays.run(number, command));
    ++counts[outcome_name(replayed.result)];
    bad += replayed.is_bad();
    rows.print(replayed);
  }
  rows.end();
  if (!json) {
    std::string summary;
    for (const auto& [name, count] : counts)
      summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", count, name);
    fmt::print("{} execution{}: {}\n", end - begin, end - begin == 1 ? "" : "s",
               summary.empty() ? "none" : summary);
  }
  return bad > 0 ? 1 : 0;
}

Result<> cut_capture(const Flags& flags, const std::string& path) {
  const Capture capture = TOOL_TRY(open_capture(flags, path));
  if (!flags.has(flag::command))
    return fail(HALYARD_INVALID_ARGUMENT,
                "cut needs {}=N, the command to keep; 'hal-info print {}' lists them", flag::command, path);
  const uint64_t command = TOOL_TRY(chosen_command(flags));
  uint64_t number = TOOL_TRY(chosen_execution(flags));
  if (number == HALYARD_EVERY_EXECUTION) {
    const uint64_t count = TOOL_TRY(capture.info()).execution_count;
    if (count != 1)
      return fail(HALYARD_INVALID_ARGUMENT, "cut needs {}=N, because the capture has {} executions",
                  flag::execution, count);
    number = 0;
  }
  const std::string output = flags[flag::output];
  if (output.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "cut needs {}=FILE, such as {}", flag::output,
                "--output=small.hycap");
  std::error_code error;
  if (std::filesystem::equivalent(path, output, error))
    return fail(HALYARD_INVALID_ARGUMENT, "{}={} is the capture itself; choose another file", flag::output,
                output);
  Replays replays = TOOL_TRY(Replays::of(flags, capture));
  const std::string device = TOOL_TRY(replays.cut(number, command, output));
  const uintmax_t bytes = std::filesystem::file_size(output);
  if (flags[flag::json]) {
    fmt::print("{}\n", json_line({{"execution", number},
                                  {"command", command},
                                  {"device", device},
                                  {"file", output},
                                  {"bytes", bytes}}));
  } else {
    fmt::print("command {} of execution {}, executed on {}: {}, {} bytes\n", command, number,
               printable(device), printable(output), bytes);
  }
  return {};
}

}  // namespace halyard::tools
