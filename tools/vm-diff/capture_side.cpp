// Steps of replays number executions and buffers as the capture does.
#include "capture_side.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "common/files.h"
#include "common/program.h"
#include "common/program_flags.h"
#include "recording_side.h"

namespace halyard::tools {

namespace {

Result<Capture> open_capture(const std::string& path) { return check(Capture::open(path)); }

class ReplaySide final : public RecordingSide {
 public:
  ReplaySide(const Flags& flags, std::string path, std::string description)
      : RecordingSide(std::move(description)), flags_(flags), path_(std::move(path)) {}

 private:
  Result<> run(Recorder& recorder) const override {
    const Capture capture = TOOL_TRY(open_capture(path_));
    const std::vector<std::string> uris = flags_[flag::device];
    if (uris.size() > 1)
      return fail(HALYARD_INVALID_ARGUMENT, "found {} flags {}, but a capture is replayed on one device",
                  uris.size(), flag::device);
    Program program;
    TOOL_TRY(make_instance(flags_, program));
    std::map<std::string, Device> devices;
    const uint64_t count = TOOL_TRY(capture.info()).execution_count;
    for (uint64_t number = 0; number < count; ++number) {
      const std::string uri =
          uris.empty() ? std::string(view(TOOL_TRY(capture.execution(number)).device)) : uris.front();
      Device& device = devices[uri];
      if (!device) device = TOOL_TRY(open_device(flags_, program, uri));
      ReplayOptions options;
      options.tensor = [&](const halyard_traced_tensor_t& tensor) -> halyard::Result<void> {
        halyard_traced_tensor_t numbered = tensor;
        numbered.execution = number;  // each replay counts from 0
        recorder.take(numbered);
        return {};
      };
      const Replay replay = TOOL_TRY(Replay::create(capture, device, std::move(options)));
      const Result<halyard_replay_result_t> done = check(replay.execute(number));
      if (!done) return fail(done.error().code, "execution {}: {}", number, done.error().text);
    }
    return {};
  }

  const Flags& flags_;
  const std::string path_;
};

class RecordedSide final : public Side {
 public:
  RecordedSide(Side& other, std::string path, std::string description)
      : Side(std::move(description)), other_(other), path_(std::move(path)) {}

  Result<RunRecord> record() override {
    const Capture capture = TOOL_TRY(open_capture(path_));
    RunRecord record = TOOL_TRY(other_.record());
    std::vector<Step> kept;
    for (size_t i = 0; i < record.steps.size(); ++i) {
      Step step = record.steps[i];
      const bool is_done = TOOL_TRY(capture.execution(step.key.execution)).outcome == HALYARD_EXECUTION_DONE;
      std::vector<StepRange> ranges;
      for (StepRange& range : step.ranges) {
        // A range whose bytes are unknown counts as unwritten, so it has no partner.
        if (!is_done || range.written.empty() || is_overwritten(record, i, range)) range.written = {};
        const std::vector<uint8_t> bytes = TOOL_TRY(recorded(capture, step.key, range, range.written));
        range.after = digest_of(bytes);
        ranges.push_back(range);
      }
      step.ranges = std::move(ranges);
      if (step.written_bytes() > 0) kept.push_back(std::move(step));
    }
    return RunRecord{std::move(kept)};
  }
  Result<Kept> keep(const RunRecord& record, const Wanted& wanted, std::vector<size_t>&) override {
    const Capture capture = TOOL_TRY(open_capture(path_));
    Kept kept;
    for (const auto& [place, extents] : wanted) {
      const Step& step = record.steps[place];
      std::vector<KeptRange>& ranges = kept[place];
      for (size_t i = 0; i < extents.size() && i < step.ranges.size(); ++i) {
        KeptRange& to = ranges.emplace_back();
        if (extents[i].empty()) continue;
        to.extent = extents[i];
        to.bytes = TOOL_TRY(recorded(capture, step.key, step.ranges[i], extents[i]));
        to.changed.resize(extents[i].size());
      }
    }
    return kept;
  }

 private:
  // Whether a later step of the execution has written into the same bytes.
  static bool is_overwritten(const RunRecord& record, size_t place, const StepRange& range) {
    const Step& step = record.steps[place];
    for (size_t i = place + 1; i < record.steps.size() && record.steps[i].key.execution == step.key.execution;
         ++i)
      for (const StepRange& later : record.steps[i].ranges)
        if (later.buffer == range.buffer && !later.written.empty() &&
            later.offset + later.written.begin < range.offset + range.written.end &&
            range.offset + range.written.begin < later.offset + later.written.end)
          return true;
    return false;
  }

  static Result<std::vector<uint8_t>> recorded(const Capture& capture, const StepKey& key,
                                               const StepRange& range, const Extent& extent) {
    std::vector<uint8_t> bytes(extent.size());
    if (extent.empty()) return bytes;
    TOOL_TRY(check(capture.read(key.execution, range.buffer, range.offset + extent.begin, true,
                                std::as_writable_bytes(std::span(bytes)))));
    return bytes;
  }

  Side& other_;
  const std::string path_;
};

}  // namespace

bool is_capture(const std::string& path) {
  const Result<OpenFile> file = open_file(path);
  std::array<char, 12> begin = {};
  if (!file || std::fread(begin.data(), 1, begin.size(), file->get()) != begin.size()) return false;
  const std::string_view text(begin.data(), begin.size());
  return text.substr(8, 4) == "HYCP" || text.starts_with("IRRP");
}

std::unique_ptr<Side> replay_side(const Flags& flags, std::string path, std::string description) {
  return std::make_unique<ReplaySide>(flags, std::move(path), std::move(description));
}

std::unique_ptr<Side> recorded_side(Side& other, std::string path, std::string description) {
  return std::make_unique<RecordedSide>(other, std::move(path), std::move(description));
}

}  // namespace halyard::tools
