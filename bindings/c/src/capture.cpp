// Captures in the C ABI: opening, describing, replaying.
#include "capture.h"

#include <algorithm>
#include <array>

#include "hal/capture/replay.h"
#include "handles.h"

namespace halyard::c {

const ObjectType Capture::kType = object_type<Capture>("halyard.capture");

namespace {

struct Replay final : ObjectOf<Replay> {
  static const ObjectType kType;
  Replay(Ref<Capture> of, Ref<hal::Device> device)
      : capture(std::move(of)), replay(capture->file, std::move(device)) {}
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

halyard_status_t halyard_replay_create(halyard_capture_t capture, halyard_device_t device,
                                       halyard_replay_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    *out = give<halyard_replay_t>(
        make<Replay>(Ref<Capture>::share(HALYARD_TRY(checked<Capture>(capture))),
                     Ref<hal::Device>::share(HALYARD_TRY(checked<hal::Device>(device)))));
    return {};
  });
}

halyard_status_t halyard_replay_execute(halyard_replay_t replay, uint64_t number,
                                        halyard_replay_result_t* result) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(result, "result"));
    const hal::ReplayResult found = HALYARD_TRY(HALYARD_TRY(checked<Replay>(replay))->replay.execute(number));
    return fill_info(result, to_result(found), "result");
  });
}
