// A captured execution is a chain of steps. Each starts when the fence of the previous step is reached: wait,
// read the bytes, write them and submit, read the bytes again, write those, signal.
#include "hal/capture/capture.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "hal/queue/host_copy.h"
#include "hal/queue/stepwise.h"

namespace halyard::hal {

const ObjectType Capture::kType = object_type<Capture>("hal.capture");

namespace {

// The bytes of every range that commands access, in the order of buffers and ranges.
using Snapshot = std::vector<std::vector<uint8_t>>;

struct CapturedWork final : ObjectOf<CapturedWork>, StepwiseExecution {
  static const ObjectType kType;

  CapturedWork(const QueuePoint& point, CommandBuffer& executed) : StepwiseExecution(point, executed) {}
  // Closes the file before the signal, so that a program that exits after the signal finds it closed.
  void release_resources() override { capture = {}; }

  Ref<Capture> capture;
  std::vector<SlotEntry> entries;
  std::vector<Ref<Buffer>> buffers;  // whole allocations; also retains the table's buffers
  CapturedExecution captured;        // contents are views into the snapshots
  std::vector<Executable*> executables;
  Snapshot before;
  Snapshot after;
  uint32_t number = 0;
};

const ObjectType CapturedWork::kType = object_type<CapturedWork>("hal.capture.work");

// ---- Touched ranges ----

// Collects the ranges that commands access. Buffers are numbered as in the list; buffers that only the
// binding table contains follow.
class Touched {
 public:
  explicit Touched(CapturedWork& work) : work_(work) {}

  void collect(std::span<Allocation* const> buffers) {
    for (Allocation* allocation : buffers) number(allocation);
    CapturedExecution& captured = work_.captured;
    // Entries after the declared slots are recorded buffers of other drivers (hal/device/sharing.h).
    const size_t declared = work_.commands->declared_slots();
    for (const SlotEntry& entry : std::span(work_.entries).first(declared)) {
      CapturedEntry& to = captured.entries.emplace_back();
      if (entry.allocation) to = {number(entry.allocation), entry.offset, entry.length};
    }
    for (const Command& command : captured.commands)
      for (const CommandUse& use : uses_of(command)) touch(use.range);
    for (CapturedBuffer& buffer : captured.buffers) merge(buffer.ranges);
  }

 private:
  uint32_t number(Allocation* allocation) {
    std::vector<CapturedBuffer>& buffers = work_.captured.buffers;
    const auto [found, is_new] = numbers_.try_emplace(allocation, static_cast<uint32_t>(buffers.size()));
    if (is_new) {
      work_.buffers.push_back(Buffer::create(Ref<Allocation>::share(allocation)));
      CapturedBuffer& buffer = buffers.emplace_back();
      buffer.device = allocation->device().uri();
      buffer.size = allocation->size;
      buffer.memory_type = allocation->memory_type;
      buffer.usage = allocation->usage;
      buffer.access = allocation->access;
    }
    return found->second;
  }

  void touch(const CommandRange& range) {
    if (range.length == 0) return;
    CapturedExecution& captured = work_.captured;
    uint32_t buffer = range.buffer;
    uint64_t offset = range.offset;
    if (buffer == kNoBuffer) {
      const CapturedEntry& entry = captured.entries[range.slot];
      buffer = entry.buffer;
      offset += entry.offset;
    }
    captured.buffers[buffer].ranges.push_back({offset, range.length, {}, {}});
  }

  static void merge(std::vector<CapturedRange>& ranges) {
    std::ranges::sort(ranges, {}, &CapturedRange::offset);
    size_t kept = 0;
    for (const CapturedRange& range : ranges) {
      if (kept > 0 && range.offset <= ranges[kept - 1].offset + ranges[kept - 1].length) {
        CapturedRange& last = ranges[kept - 1];
        last.length = std::max(last.offset + last.length, range.offset + range.length) - last.offset;
      } else {
        ranges[kept++] = range;
      }
    }
    ranges.resize(kept);
  }

  CapturedWork& work_;
  std::map<Allocation*, uint32_t> numbers_;
};

// ---- Steps ----

// Reads all accessed ranges and continues with `next`.
Result<> snapshot(const Ref<CapturedWork>& work, Snapshot& into, CapturedBytes CapturedRange::* contents,
                  std::move_only_function<Result<>()> next) {
  std::vector<Ref<Fence>> reading;
  size_t place = 0;
  for (const CapturedBuffer& buffer : work->captured.buffers) place += buffer.ranges.size();
  into.resize(place);
  place = 0;
  for (size_t i = 0; i < work->buffers.size(); ++i) {
    for (CapturedRange& range : work->captured.buffers[i].ranges) {
      std::vector<uint8_t>& bytes = into[place++];
      bytes.resize(range.length);
      Result<Ref<Fence>> fence = begin_read(*work->buffers[i], range.offset, bytes, work);
      if (!fence)
        return std::unexpected(std::move(fence.error())
                                   .note(fmt::format("capturing {} bytes at byte {} of buffer {}",
                                                     range.length, range.offset, i)));
      if (*fence) reading.push_back(*std::move(fence));
      (range.*contents) = {bytes};
    }
  }
  std::vector<Fence*> fences;
  for (const Ref<Fence>& fence : reading) fences.push_back(fence.get());
  const Ref<Fence> all = HALYARD_TRY(Fence::join(fences));
  return work->when(all.get(), work, std::move(next));
}

Result<> write_end(CapturedWork& work, const Status& failure) {
  return work.capture->writer().end(work.number, work.captured.buffers, failure);
}

// A failure of the work takes precedence over a failure to write the capture.
void finish_failed(CapturedWork& work, Status failure) {
  if (Status written = Status::adopt(guarded([&] { return write_end(work, failure); })); !written.ok())
    failure = std::move(failure).note(written.message());
  work.finish(std::move(failure));
}

Result<> submit(const Ref<CapturedWork>& work) {
  work->number = HALYARD_TRY(work->capture->writer().begin(work->captured, work->executables));
  work->before = {};
  for (CapturedBuffer& buffer : work->captured.buffers)
    for (CapturedRange& range : buffer.ranges) range.before.clear();
  const Ref<Fence> done = HALYARD_TRY(Fence::create(work->device));
  Result<> submitted =
      submit_execute({*work->device, work->affinity, nullptr, done.get(), nullptr, work->scope.get()},
                     *work->commands, work->entries);
  if (!submitted) {
    finish_failed(*work, std::move(submitted.error()));
    return {};
  }
  return when_reached(done.get(), [work](Status status) {
    if (!status.ok()) return finish_failed(*work, std::move(status));
    work->attempt([&] {
      return snapshot(work, work->after, &CapturedRange::after, [work]() -> Result<> {
        HALYARD_TRY(write_end(*work, {}));
        work->finish({});
        return {};
      });
    });
  });
}

}  // namespace

Result<Ref<Capture>> Capture::create(const std::string& path, uint64_t blob_bytes) {
  return make<Capture>(HALYARD_TRY(CaptureWriter::create(path, blob_bytes)));
}

Result<> Capture::execute(const QueuePoint& point, CommandBuffer& commands, std::span<const Binding> table) {
  SlotEntries entries;
  Reservation reservation = HALYARD_TRY(prepare_execute(point, commands, table, entries));
  CommandList list = commands.list();
  const auto work = make<CapturedWork>(point, commands);
  work->capture = Ref<Capture>::share(this);
  work->entries.assign(entries.begin(), entries.end());
  work->executables = std::move(list.executables);
  work->captured.device = point.device.uri();
  work->captured.affinity = point.affinity;
  work->captured.mode = commands.mode();
  work->captured.commands = std::move(list.commands);
  Touched(*work).collect(list.buffers);
  HALYARD_TRY(work->when(point.wait, work, [work] {
    // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a copy of a reference that is not null
    return snapshot(work, work->before, &CapturedRange::before, [work] { return submit(work); });
  }));
  reservation.keep();
  return work->result_for_submitter();
}

}  // namespace halyard::hal
