// Captures in the C ABI: opening, describing, replaying.
#include "capture.h"

#include <algorithm>
#include <array>

#include "hal/capture/replay.h"
#include "handles.h"
#include "step_trace.h"

namespace halyard::c {

const ObjectType Capture::kType = object_type<Capture>("halyard.capture");

namespace {

struct Replay final : ObjectOf<Replay> {
  static const ObjectType kType;
  Replay(Ref<Capture> of, Ref<hal::Device> device, hal::ReplayOptions options)
      : capture(std::move(of)), replay(capture->file, std::move(device), std::move(options)) {}
  Ref<Capture> capture;
  hal::Replay replay;
};
const ObjectType Replay::kType = object_type<Replay>("halyard.replay");

using Outcome = hal::CapturedExecution::Outcome;
static_assert(static_cast<int>(Outcome::unknown) == HALYARD_EXECUTION_UNKNOWN);
static_assert(static_cast<int>(Outcome::done) == HALYARD_EXECUTION_DONE);
static_assert(static_cast<int>(Outcome::failed) == HALYARD_EXECUTION_FAILED);
static_assert(static_cast<int>(hal::ReplayResult::Outcome::same) == HALYARD_REPLAY_SAME);
static_assert(static_cast<int>(hal::ReplayResult::Outcome::differs) == HALYARD_REPLAY_DIFFERS);
static_assert(static_cast<int>(hal::ReplayResult::Outcome::not_compared) == HALYARD_REPLAY_NOT_COMPARED);
static_assert(sizeof(halyard_replay_result_t::expected) == hal::kShownBytes);

Result<> check_number(const hal::CaptureFile& file, uint64_t number) {
  if (number < file.executions.size()) return {};
  return fail(Code::OUT_OF_RANGE, "execution {} does not exist; the capture has {}, counted from 0", number,
              file.executions.size());
}

halyard_replay_result_t to_result(const hal::ReplayResult& from) {
  halyard_replay_result_t to = {};
  to.outcome = static_cast<uint32_t>(from.outcome);
  if (from.outcome != hal::ReplayResult::Outcome::differs) return to;
  const hal::Difference& difference = from.difference;
  to.buffer = difference.buffer;
  to.shown = static_cast<uint32_t>(difference.expected.size());
  to.offset = difference.offset;
  to.length = difference.length;
  to.total = difference.total;
  to.command = difference.command ? *difference.command : HALYARD_REPLAY_NO_COMMAND;
  std::ranges::copy(difference.expected, to.expected);
  std::ranges::copy(difference.found, to.found);
  return to;
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  static constexpr std::array<std::string_view, 3> kNames = {"unknown", "done", "failed"};
  return kNames[static_cast<size_t>(outcome)];
}

bool is_changed(const hal::CapturedRange& range) {
  // Equal bytes are stored in one blob, so most pieces can be compared by address.
  return !std::ranges::equal(range.before, range.after, [](const auto& before, const auto& after) {
    return before.size() == after.size() &&
           (before.data() == after.data() || std::ranges::equal(before, after));
  });
}

}  // namespace halyard::c

using namespace halyard;
using namespace halyard::c;

halyard_status_t halyard_capture_open(const char* path, uint32_t flags, halyard_capture_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_flags(flags, HALYARD_CAPTURE_INCOMPLETE, "HALYARD_CAPTURE_*"));
    const std::string file(HALYARD_TRY(given_text(path, "path")));
    const auto incomplete =
        flags & HALYARD_CAPTURE_INCOMPLETE ? hal::Incomplete::accept : hal::Incomplete::refuse;
    *out = give<halyard_capture_t>(
        make<Capture>(HALYARD_TRY(with_note(hal::read_capture(HALYARD_TRY(Bytes::map_file(file)), incomplete),
                                            fmt::format("reading '{}'", file)))));
    return {};
  });
}

halyard_status_t halyard_capture_info(halyard_capture_t capture, halyard_capture_info_t* info) {
  return guarded([&]() -> Result<> {
    const hal::CaptureFile& file = HALYARD_TRY(checked<Capture>(capture))->file;
    halyard_capture_info_t filled = {};
    filled.is_complete = file.is_complete;
    filled.execution_count = file.executions.size();
    filled.executable_count = file.executables.size();
    return fill_info(info, filled, "info");
  });
}

halyard_status_t halyard_capture_execution(halyard_capture_t capture, uint64_t number,
                                           halyard_captured_execution_t* execution) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(execution, "execution"));
    const hal::CaptureFile& file = HALYARD_TRY(checked<Capture>(capture))->file;
    HALYARD_TRY(check_number(file, number));
    const hal::CapturedExecution& of = file.executions[number];
    halyard_captured_execution_t filled = {};
    filled.outcome = static_cast<uint32_t>(of.outcome);
    filled.command_count = of.commands.size();
    filled.device = to_text(of.device);
    return fill_info(execution, filled, "execution");
  });
}

halyard_status_t halyard_capture_describe(halyard_capture_t capture, uint64_t number, uint32_t form,
                                          char** out, size_t* out_size) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const hal::CaptureFile& file = HALYARD_TRY(checked<Capture>(capture))->file;
    HALYARD_TRY(check_form(form));
    Executions executions = {0, file.executions.size()};
    if (number != HALYARD_EVERY_EXECUTION) {
      HALYARD_TRY(check_number(file, number));
      executions = {number, number + 1};
    }
    give_text(HALYARD_TRY(form == HALYARD_DESCRIBE_TEXT ? capture_text(file, executions)
                                                        : capture_json(file, executions)),
              out, out_size);
    return {};
  });
}

namespace {

Result<hal::ReplayOptions> replay_options(const hal::CaptureFile& file,
                                          const halyard_replay_options_t& given) {
  hal::ReplayOptions options;
  HALYARD_TRY(check_array(given.executables, given.executable_count, "executables", "executables"));
  for (size_t i = 0; i < given.executable_count; ++i) {
    const halyard_replay_executable_t& from = given.executables[i];
    if (from.number >= file.executables.size())
      return fail(Code::OUT_OF_RANGE, "executable {} does not exist; the capture has {}, counted from 0",
                  from.number, file.executables.size());
    HALYARD_TRY(check_array(static_cast<const uint8_t*>(from.data), from.size, "data", "bytes"));
    const auto* const data = static_cast<const uint8_t*>(from.data);
    options.substitutes[static_cast<uint32_t>(from.number)] = {
        std::string(view(from.format)), Bytes::own(std::vector<uint8_t>(data, data + from.size)), {}};
  }
  if (given.tensor) options.tensors = step_trace("*", given.tensor, given.tensor_user);
  return options;
}

// HALYARD_EVERY_COMMAND: all.
size_t end_of(uint64_t command) {
  if (command == HALYARD_EVERY_COMMAND) return hal::kAllCommands;
  return static_cast<size_t>(std::min<uint64_t>(command, UINT32_MAX)) + 1;
}

}  // namespace

halyard_status_t halyard_replay_create(halyard_capture_t capture, halyard_device_t device,
                                       halyard_replay_t* out) {
  return halyard_replay_create_with(capture, device, nullptr, out);
}

halyard_status_t halyard_replay_create_with(halyard_capture_t capture, halyard_device_t device,
                                            const halyard_replay_options_t* options, halyard_replay_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    auto of = Ref<Capture>::share(HALYARD_TRY(checked<Capture>(capture)));
    halyard_replay_options_t known = {};
    if (options) known = HALYARD_TRY(known_fields(options));
    hal::ReplayOptions made = HALYARD_TRY(replay_options(of->file, known));
    *out = give<halyard_replay_t>(make<Replay>(
        std::move(of), Ref<hal::Device>::share(HALYARD_TRY(checked<hal::Device>(device))), std::move(made)));
    return {};
  });
}

halyard_status_t halyard_replay_execute(halyard_replay_t replay, uint64_t number,
                                        halyard_replay_result_t* result) {
  return halyard_replay_execute_to(replay, number, HALYARD_EVERY_COMMAND, result);
}

halyard_status_t halyard_replay_execute_to(halyard_replay_t replay, uint64_t number, uint64_t command,
                                           halyard_replay_result_t* result) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(result, "result"));
    const hal::ReplayResult found =
        HALYARD_TRY(HALYARD_TRY(checked<Replay>(replay))->replay.execute(number, end_of(command)));
    return fill_info(result, to_result(found), "result");
  });
}

halyard_status_t halyard_replay_measure(halyard_replay_t replay, uint64_t number, uint64_t command,
                                        uint64_t at_least_ns, halyard_replay_times_t* times) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(times, "times"));
    constexpr uint64_t kMaxTime = uint64_t{1} << 62;
    const hal::ReplayTimes found = HALYARD_TRY(
        HALYARD_TRY(checked<Replay>(replay))
            ->replay.measure(number, command == HALYARD_EVERY_COMMAND ? 0 : command, end_of(command),
                             std::chrono::nanoseconds(std::min(at_least_ns, kMaxTime))));
    halyard_replay_times_t filled = {};
    filled.count = found.count;
    filled.fastest_ns = static_cast<uint64_t>(found.fastest.count());
    filled.median_ns = static_cast<uint64_t>(found.median.count());
    filled.total_ns = static_cast<uint64_t>(found.total.count());
    return fill_info(times, filled, "times");
  });
}

halyard_status_t halyard_replay_cut(halyard_replay_t replay, uint64_t number, uint64_t command,
                                    const char* path) {
  return guarded([&]() -> Result<> {
    const std::string file(HALYARD_TRY(given_text(path, "path")));
    return HALYARD_TRY(checked<Replay>(replay))->replay.cut(number, command, file);
  });
}

halyard_status_t halyard_capture_read(halyard_capture_t capture, uint64_t number, uint32_t buffer,
                                      uint64_t offset, uint32_t after, void* target, size_t size) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_array(static_cast<uint8_t*>(target), size, "target", "bytes"));
    const hal::CaptureFile& file = HALYARD_TRY(checked<Capture>(capture))->file;
    HALYARD_TRY(check_number(file, number));
    const hal::CapturedExecution& of = file.executions[number];
    if (buffer >= of.buffers.size())
      return fail(Code::OUT_OF_RANGE, "buffer {} does not exist; execution {} has {}, counted from 0", buffer,
                  number, of.buffers.size());
    auto* to = static_cast<uint8_t*>(target);
    for (const hal::CapturedRange& range : of.buffers[buffer].ranges) {
      if (offset < range.offset || offset - range.offset > range.length ||
          size > range.length - (offset - range.offset))
        continue;
      if (after && range.after.empty() && range.length > 0) break;
      uint64_t skipped = offset - range.offset;
      for (const std::span<const uint8_t> piece : after ? range.after : range.before) {
        if (skipped >= piece.size()) {
          skipped -= piece.size();
          continue;
        }
        const size_t count = std::min<size_t>(size, piece.size() - skipped);
        to = std::copy_n(piece.data() + skipped, count, to);
        size -= count;
        skipped = 0;
      }
      return {};
    }
    return fail(Code::OUT_OF_RANGE,
                "the capture does not have the bytes [{}, +{}) of buffer{} {} execution {}", offset, size,
                buffer, after ? "after" : "before", number);
  });
}
