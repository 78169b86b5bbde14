// Prints one line for each replayed execution, and the first difference.
#include "captures.h"

#include <cstdio>
#include <map>
#include <span>

#include "common/colour.h"
#include "common/drivers.h"
#include "common/json.h"
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

// Replays on the device of --device, or on the captured devices. Opens each once.
class Replays {
 public:
  static Result<Replays> of(const Flags& flags, const Capture& capture) {
    Replays replays;
    replays.capture_ = capture;
    replays.device_ = flags[flag::replay_device];
    replays.instance_ = TOOL_TRY(make_instance(flags));
    if (!replays.device_.empty()) static_cast<void>(TOOL_TRY(replays.on(replays.device_)));
    return replays;
  }

  Result<Replayed> run(uint64_t number) {
    const halyard_captured_execution_t execution = TOOL_TRY(capture_.execution(number));
    const std::string uri = device_.empty() ? std::string(view(execution.device)) : device_;
    return Replayed{number, uri, run_on(uri, number)};
  }

 private:
  Result<Replay> on(const std::string& uri) {
    Replay& replay = replays_[uri];
    if (!replay) replay = TOOL_TRY(Replay::create(capture_, TOOL_TRY(instance_.open(uri))));
    return replay;
  }

  Result<halyard_replay_result_t> run_on(const std::string& uri, uint64_t number) {
    return check(TOOL_TRY(on(uri)).execute(number));
  }

  Capture capture_;
  std::string device_;
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
  const bool every = wanted == HALYARD_EVERY_EXECUTION;
  const uint64_t begin = every ? 0 : wanted;
  const uint64_t end = every ? info.execution_count : wanted + 1;
  const bool json = flags[flag::json];

  Replays replays = TOOL_TRY(Replays::of(flags, capture));
  std::map<std::string_view, uint64_t> counts;
  uint64_t bad = 0;
  if (json) fmt::print("{{\"executions\": [");
  for (uint64_t number = begin; number < end; ++number) {
    const Replayed replayed = TOOL_TRY(replays.run(number));
    ++counts[outcome_name(replayed.result)];
    bad += replayed.is_bad();
    fmt::print("{}{}", json && number > begin ? ",\n" : "",
               json ? json_line(replayed.json()) : replayed.text());
    std::fflush(stdout);  // the next replay may crash
  }
  if (json) {
    fmt::print("]}}\n");
  } else {
    std::string summary;
    for (const auto& [name, count] : counts)
      summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", count, name);
    fmt::print("{} execution{}: {}\n", end - begin, end - begin == 1 ? "" : "s",
               summary.empty() ? "none" : summary);
  }
  return bad > 0 ? 1 : 0;
}

}  // namespace halyard::tools
