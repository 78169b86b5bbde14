// Creates buffers with the captured earlier bytes, records the commands again, executes them, and compares.
#include "hal/capture/replay.h"

#include <algorithm>

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

Result<Ref<Executable>> Replay::executable(uint32_t number) {
  Ref<Executable>& made = executables_[number];
  if (!made) {
    const CapturedExecutable& captured = capture_.executables[number];
    made = HALYARD_TRY(
        with_note(Executable::create(device_, kAnyQueue, captured.format, captured.data, capture_.bytes,
                                     captured.constants, {.subgroup_sizes = captured.subgroup_sizes}),
                  fmt::format("executable {} of the capture", number)));
  }
  return made;
}

Result<ReplayResult> Replay::execute(size_t number) {
  if (number >= capture_.executions.size())
    return fail(Code::OUT_OF_RANGE, "execution {} is not in the capture, which has {}, counted from 0",
                number, capture_.executions.size());
  const CapturedExecution& captured = capture_.executions[number];
  for (const Command& command : captured.commands)
    if (const auto* dispatch = std::get_if<DispatchCommand>(&command))
      HALYARD_TRY(executable(dispatch->executable));
  std::vector<Ref<Buffer>> buffers;
  for (const CapturedBuffer& buffer : captured.buffers)
    buffers.push_back(HALYARD_TRY(with_note(
        make_buffer(*device_, buffer), fmt::format("buffer{} of execution {}", buffers.size(), number))));

  Ref<CommandBuffer> commands =
      HALYARD_TRY(CommandBuffer::create(device_, captured.mode & kOneShot, kTransfer | kDispatchCategory,
                                        captured.affinity, static_cast<uint32_t>(captured.entries.size())));
  const Rerecording recording = {*commands, buffers, executables_, {}};
  for (size_t i = 0; i < captured.commands.size(); ++i)
    HALYARD_TRY(with_note(recording.record(captured.commands[i]),
                          fmt::format("command {} of execution {}", i, number)));
  HALYARD_TRY(commands->finalize());
  std::vector<Binding> table;
  for (const CapturedEntry& entry : captured.entries)
    table.push_back(
        {entry.buffer == kNoBuffer ? nullptr : buffers[entry.buffer].get(), entry.offset, entry.length});
  Ref<Fence> done = HALYARD_TRY(Fence::create(device_));
  HALYARD_TRY(queue_execute({*device_, captured.affinity, nullptr, done.get()}, *commands, table));
  HALYARD_TRY(wait_for(std::move(done)));

  ReplayResult result;
  if (captured.outcome != CapturedExecution::Outcome::done) return result;
  Comparison comparison;
  for (uint32_t i = 0; i < buffers.size(); ++i)
    HALYARD_TRY(comparison.compare(*buffers[i], captured.buffers[i], i));
  std::optional<Difference> difference = comparison.take();
  result.outcome = difference ? ReplayResult::Outcome::differs : ReplayResult::Outcome::same;
  if (!difference) return result;
  result.difference = *std::move(difference);
  result.difference.command = last_writer(captured, result.difference.buffer, result.difference.offset);
  return result;
}

}  // namespace halyard::hal
