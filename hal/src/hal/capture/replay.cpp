// Creates buffers with the captured earlier bytes, records the commands again, executes them, and compares.
#include "hal/capture/replay.h"

#include <algorithm>

#include "hal/capture/capture.h"
#include "hal/command/command_buffer.h"
#include "hal/command/rerecord.h"
#include "hal/queue/host_copy.h"
#include "hal/queue/queue.h"
#include "hal/queue/wait.h"

namespace halyard::hal {

namespace {

Result<> wait_for(const Result<Ref<Fence>>& fence) {
  if (!fence) return std::unexpected(fence.error());
  if (!*fence) return {};
  Fence* const fences[] = {fence->get()};
  return to_result(await(fences, kWaitForever));
}

// The device chooses the memory type; transfers must be able to read and write the buffer.
Result<Ref<Buffer>> make_buffer(Device& device, const CapturedBuffer& captured) {
  constexpr auto kUses = static_cast<uint32_t>(HALYARD_USAGE_INDIRECT_PARAMETERS |
                                               HALYARD_USAGE_UNIFORM_READ | HALYARD_USAGE_STORAGE);
  const uint32_t usage = (captured.usage & kUses) | HALYARD_USAGE_TRANSFER;
  Ref<Buffer> buffer = HALYARD_TRY(Buffer::allocate(device, kAnyQueue, 0, usage, captured.size));
  for (const CapturedRange& range : captured.ranges) {
    uint64_t offset = range.offset;
    for (const std::span<const uint8_t> piece : range.before) {
      HALYARD_TRY(wait_for(begin_write(piece, *buffer, offset)));
      offset += piece.size();
    }
  }
  return buffer;
}

// The last command that may write to the byte.
std::optional<uint32_t> last_writer(const CapturedExecution& execution, uint32_t buffer, uint64_t byte) {
  for (size_t i = execution.commands.size(); i-- > 0;) {
    for (const CommandUse& use : uses_of(execution.commands[i])) {
      const CapturedEntry entry = use.range.buffer == kNoBuffer ? execution.entries[use.range.slot]
                                                                : CapturedEntry{use.range.buffer, 0, 0};
      const uint64_t begin = entry.offset + use.range.offset;
      if (use.may_write && entry.buffer == buffer && byte >= begin && byte - begin < use.range.length)
        return static_cast<uint32_t>(i);
    }
  }
  return std::nullopt;
}

// Compares piece by piece; keeps the first difference and counts the others.
class Comparison {
 public:
  Result<> compare(Buffer& found, const CapturedBuffer& captured, uint32_t number) {
    for (const CapturedRange& range : captured.ranges) {
      uint64_t offset = range.offset;
      for (const std::span<const uint8_t> piece : range.after) {
        const Ref<Bytes> bytes = Bytes::own(std::vector<uint8_t>(piece.size()));
        const std::span<uint8_t> target(const_cast<uint8_t*>(bytes->data()), bytes->size());
        HALYARD_TRY(wait_for(begin_read(found, offset, target, bytes)));
        compare(piece, bytes->span(), number, offset);
        offset += piece.size();
      }
    }
    return {};
  }

  std::optional<Difference> take() { return std::move(first_); }

 private:
  void compare(std::span<const uint8_t> expected, std::span<const uint8_t> found, uint32_t buffer,
               uint64_t offset) {
    for (size_t i = 0; i < expected.size(); ++i) {
      if (expected[i] == found[i]) continue;
      if (!first_) first_ = Difference{.buffer = buffer, .offset = offset + i};
      ++first_->total;
      const bool adjoins = first_->buffer == buffer && first_->offset + first_->length == offset + i;
      if (!adjoins) continue;
      ++first_->length;
      if (first_->expected.size() == kShownBytes) continue;
      first_->expected.push_back(expected[i]);
      first_->found.push_back(found[i]);
    }
  }

  std::optional<Difference> first_;
};

}  // namespace

struct Replay::Prepared {
  const CapturedExecution& captured;
  size_t number = 0;
  std::vector<Ref<Buffer>> buffers = {};
  std::vector<Binding> table = {};
};

Result<Ref<Executable>> Replay::executable(uint32_t number) {
  Ref<Executable>& made = executables_[number];
  if (made) return made;
  const CapturedExecutable& captured = capture_.executables[number];
  const auto substitute = options_.substitutes.find(number);
  if (substitute == options_.substitutes.end()) {
    made = HALYARD_TRY(
        with_note(Executable::create(device_, kAnyQueue, captured.format, captured.data, capture_.bytes,
                                     captured.constants, {.subgroup_sizes = captured.subgroup_sizes}),
                  fmt::format("executable {} of the capture", number)));
    return made;
  }
  const Substitute& other = substitute->second;
  made = HALYARD_TRY(
      with_note(Executable::create(device_, kAnyQueue, other.format, other.code->span(), other.code,
                                   other.constants.empty() ? captured.constants : other.constants, {}),
                fmt::format("the substitute for executable {} of the capture", number)));
  return made;
}

// Creates the executables of the commands up to `end`, and all buffers.
Result<Replay::Prepared> Replay::prepare(size_t number, size_t begin, size_t end) {
  if (number >= capture_.executions.size())
    return fail(Code::OUT_OF_RANGE, "execution {} is not in the capture, which has {}, counted from 0",
                number, capture_.executions.size());
  const CapturedExecution& captured = capture_.executions[number];
  if (begin > end || end > captured.commands.size())
    return fail(Code::OUT_OF_RANGE, "command {} is not in execution {}, which has {}, counted from 0",
                std::max(begin, end) - 1, number, captured.commands.size());
  for (size_t i = 0; i < end; ++i)
    if (const auto* dispatch = std::get_if<DispatchCommand>(&captured.commands[i]))
      HALYARD_TRY(executable(dispatch->executable));
  Prepared prepared = {captured, number};
  for (const CapturedBuffer& buffer : captured.buffers)
    prepared.buffers.push_back(
        HALYARD_TRY(with_note(make_buffer(*device_, buffer),
                              fmt::format("buffer{} of execution {}", prepared.buffers.size(), number))));
  for (const CapturedEntry& entry : captured.entries)
    prepared.table.push_back({entry.buffer == kNoBuffer ? nullptr : prepared.buffers[entry.buffer].get(),
                              entry.offset, entry.length});
  return prepared;
}

// Records the commands [begin, end). Omits debug groups of parts, because their ends may be in another part.
Result<Ref<CommandBuffer>> Replay::record(const Prepared& prepared, size_t begin, size_t end, uint32_t mode) {
  const CapturedExecution& captured = prepared.captured;
  Ref<CommandBuffer> commands =
      HALYARD_TRY(CommandBuffer::create(device_, mode, kTransfer | kDispatchCategory, captured.affinity,
                                        static_cast<uint32_t>(captured.entries.size())));
  const Rerecording recording = {*commands, prepared.buffers, executables_, {}};
  const bool is_part = begin != 0 || end != captured.commands.size();
  for (size_t i = begin; i < end; ++i) {
    Command command = captured.commands[i];
    if (is_part && (std::holds_alternative<BeginGroupCommand>(command) ||
                    std::holds_alternative<EndGroupCommand>(command)))
      continue;
    if (auto* const dispatch = std::get_if<DispatchCommand>(&command);
        dispatch && options_.substitutes.contains(dispatch->executable)) {
      const auto& functions = executables_[dispatch->executable]->functions();
      for (uint32_t function = 0; function < functions.size(); ++function)
        if (functions[function].name == dispatch->function_name) dispatch->function = function;
    }
    HALYARD_TRY(
        with_note(recording.record(command), fmt::format("command {} of execution {}", i, prepared.number)));
  }
  HALYARD_TRY(commands->finalize());
  return commands;
}

Result<> Replay::run(const Prepared& prepared, CommandBuffer& commands) {
  Ref<Fence> done = HALYARD_TRY(Fence::create(device_));
  const QueuePoint point = {*device_, prepared.captured.affinity, nullptr, done.get()};
  HALYARD_TRY(options_.tensors ? options_.tensors->execute(point, commands, prepared.table)
                               : queue_execute(point, commands, prepared.table));
  return wait_for(std::move(done));
}

namespace {

// Without the bytes that commands from `end` on may write.
std::vector<CapturedBuffer> without_later_bytes(const CapturedExecution& captured, size_t end) {
  std::vector<CapturedBuffer> buffers = captured.buffers;
  struct Written {
    uint64_t begin;
    uint64_t end;
  };
  std::vector<std::vector<Written>> later(buffers.size());
  for (size_t i = end; i < captured.commands.size(); ++i)
    for (const CommandUse& use : uses_of(captured.commands[i])) {
      if (!use.may_write) continue;
      const CapturedEntry entry = use.range.buffer == kNoBuffer ? captured.entries[use.range.slot]
                                                                : CapturedEntry{use.range.buffer, 0, 0};
      if (entry.buffer == kNoBuffer) continue;
      const uint64_t begin = entry.offset + use.range.offset;
      later[entry.buffer].push_back({begin, begin + use.range.length});
    }
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::ranges::sort(later[i], {}, &Written::begin);
    std::vector<CapturedRange> kept;
    for (const CapturedRange& range : buffers[i].ranges) {
      uint64_t at = range.offset;
      for (const std::span<const uint8_t> piece : range.after) {
        const uint64_t piece_end = at + piece.size();
        uint64_t from = at;
        const auto keep = [&](uint64_t to) {
          if (to > from) kept.push_back({from, to - from, {}, {piece.subspan(from - at, to - from)}});
        };
        for (const Written& written : later[i]) {
          if (written.end <= from || written.begin >= piece_end) continue;
          keep(std::max(written.begin, from));
          from = std::min(written.end, piece_end);
        }
        keep(piece_end);
        at = piece_end;
      }
    }
    buffers[i].ranges = std::move(kept);
  }
  return buffers;
}

}  // namespace

Result<ReplayResult> Replay::execute(size_t number, size_t end) {
  if (end == kAllCommands && number < capture_.executions.size())
    end = capture_.executions[number].commands.size();
  const Prepared prepared = HALYARD_TRY(prepare(number, 0, end));
  const CapturedExecution& captured = prepared.captured;
  const Ref<CommandBuffer> commands = HALYARD_TRY(record(prepared, 0, end, captured.mode & kOneShot));
  HALYARD_TRY(run(prepared, *commands));

  ReplayResult result;
  if (captured.outcome != CapturedExecution::Outcome::done) return result;
  const bool is_part = end != captured.commands.size();
  const std::vector<CapturedBuffer> expected =
      is_part ? without_later_bytes(captured, end) : std::vector<CapturedBuffer>();
  Comparison comparison;
  for (uint32_t i = 0; i < prepared.buffers.size(); ++i)
    HALYARD_TRY(comparison.compare(*prepared.buffers[i], is_part ? expected[i] : captured.buffers[i], i));
  std::optional<Difference> difference = comparison.take();
  result.outcome = difference ? ReplayResult::Outcome::differs : ReplayResult::Outcome::same;
  if (!difference) return result;
  result.difference = *std::move(difference);
  result.difference.command = last_writer(captured, result.difference.buffer, result.difference.offset);
  return result;
}

Result<ReplayTimes> Replay::measure(size_t number, size_t begin, size_t end,
                                    std::chrono::nanoseconds at_least) {
  using Clock = std::chrono::steady_clock;
  if (end == kAllCommands && number < capture_.executions.size())
    end = capture_.executions[number].commands.size();
  const Prepared prepared = HALYARD_TRY(prepare(number, begin, end));
  if (begin > 0) HALYARD_TRY(run(prepared, *HALYARD_TRY(record(prepared, 0, begin, 0))));
  const Ref<CommandBuffer> commands = HALYARD_TRY(record(prepared, begin, end, 0));
  HALYARD_TRY(run(prepared, *commands));  // compilation and first touches of memory are not measured
  std::vector<std::chrono::nanoseconds> times;
  ReplayTimes result;
  do {
    const Clock::time_point start = Clock::now();
    HALYARD_TRY(run(prepared, *commands));
    times.push_back(Clock::now() - start);
    result.total += times.back();
  } while (result.total < at_least);
  result.count = times.size();
  std::ranges::sort(times);
  result.fastest = times.front();
  result.median = times[times.size() / 2];
  return result;
}

Result<> Replay::cut(size_t number, size_t command, const std::string& path) {
  if (number < capture_.executions.size() && command < capture_.executions[number].commands.size() &&
      uses_of(capture_.executions[number].commands[command]).empty())
    return fail(Code::INVALID_ARGUMENT,
                "command {} of execution {} touches no bytes: it is '{}'; choose a dispatch, fill or copy",
                command, number, command_text(capture_.executions[number].commands[command]));
  const Prepared prepared = HALYARD_TRY(prepare(number, command, command + 1));
  if (command > 0) HALYARD_TRY(run(prepared, *HALYARD_TRY(record(prepared, 0, command, 0))));
  const Ref<CommandBuffer> commands = HALYARD_TRY(record(prepared, command, command + 1, 0));
  Ref<Capture> capture = HALYARD_TRY(Capture::create(path, kSmallBlobBytes));
  Ref<Fence> done = HALYARD_TRY(Fence::create(device_));
  HALYARD_TRY(capture->execute({*device_, prepared.captured.affinity, nullptr, done.get()}, *commands,
                               prepared.table));
  return wait_for(std::move(done));
}

}  // namespace halyard::hal
