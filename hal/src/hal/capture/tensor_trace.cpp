// An execution is a chain of steps. Each starts when the fence of the previous step is reached: execute the
// commands up to the next selected dispatch, read its buffers, execute the dispatch alone, read its buffers
// again.
#include "hal/capture/tensor_trace.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "hal/command/rerecord.h"
#include "hal/queue/host_copy.h"
#include "hal/queue/stepwise.h"
#include "halyard/wildcards.hpp"

namespace halyard::hal {

const ObjectType TensorTrace::kType = object_type<TensorTrace>("hal.tensor_trace");

struct TensorTrace::TracedWork final : ObjectOf<TensorTrace::TracedWork>, StepwiseExecution {
  static const ObjectType kType;

  TracedWork(const QueuePoint& point, CommandBuffer& executed) : StepwiseExecution(point, executed) {}

  Ref<TensorTrace> trace;
  CommandList list;
  std::vector<Ref<Buffer>> buffers;  // whole allocations, numbered as in the list
  std::vector<Ref<Executable>> executables;
  struct Entry {
    Ref<Buffer> buffer;  // the whole allocation
    uint64_t offset = 0;
    uint64_t length = 0;
  };
  std::vector<Entry> table;
  size_t next = 0;      // index of the next command
  uint64_t number = 0;  // of the dispatch that is being traced
  std::vector<std::vector<uint8_t>> before;
  std::vector<std::vector<uint8_t>> after;

  using Then = std::move_only_function<Result<>()>;

  Result<> when(const Fence* fence, Then then) {
    return StepwiseExecution::when(fence, Ref<TracedWork>::share(this), std::move(then));
  }

  const DispatchCommand* shown(size_t command) const {
    const auto* dispatch = std::get_if<DispatchCommand>(&list.commands[command]);
    return dispatch && matches_wildcards(trace->pattern_, dispatch->function_name) ? dispatch : nullptr;
  }
  Result<> run(size_t begin, size_t end, Then then);
  Result<> read(const DispatchCommand& dispatch, std::vector<std::vector<uint8_t>>& into, Then then);
  Result<> show(const DispatchCommand& dispatch, bool after_it) const;
  Result<> go_on();
  Result<> show_dispatch(const DispatchCommand& dispatch);
};

const ObjectType TensorTrace::TracedWork::kType =
    object_type<TensorTrace::TracedWork>("hal.tensor_trace.work");

// Executes some of the commands. Omits debug groups, because their begin and end may be in different parts.
Result<> TensorTrace::TracedWork::run(size_t begin, size_t end, Then then) {
  const Ref<CommandBuffer> piece = HALYARD_TRY(CommandBuffer::create(
      device, kOneShot, kTransfer | kDispatchCategory, affinity, static_cast<uint32_t>(table.size())));
  const Rerecording recording = {*piece, buffers, executables, list.channels};
  for (size_t i = begin; i < end; ++i) {
    const Command& command = list.commands[i];
    if (std::holds_alternative<BeginGroupCommand>(command) ||
        std::holds_alternative<EndGroupCommand>(command))
      continue;
    HALYARD_TRY(recording.record(command));
  }
  HALYARD_TRY(piece->finalize());
  std::vector<Binding> bindings;
  for (const Entry& entry : table) bindings.push_back({entry.buffer.get(), entry.offset, entry.length});
  const Ref<Fence> done = HALYARD_TRY(Fence::create(device));
  HALYARD_TRY(
      queue_execute({*device, affinity, nullptr, done.get(), nullptr, scope.get()}, *piece, bindings));
  return when(done.get(), std::move(then));
}

// Reads the bytes of all bindings.
Result<> TensorTrace::TracedWork::read(const DispatchCommand& dispatch,
                                       std::vector<std::vector<uint8_t>>& into, Then then) {
  into.assign(dispatch.bindings.size(), {});
  std::vector<Ref<Fence>> reading;
  for (size_t i = 0; i < into.size(); ++i) {
    const CommandRange& range = dispatch.bindings[i];
    const bool is_slot = range.buffer == kNoBuffer;
    Buffer& buffer = is_slot ? *table[range.slot].buffer : *buffers[range.buffer];
    const uint64_t offset = range.offset + (is_slot ? table[range.slot].offset : 0);
    into[i].resize(range.length);
    Result<Ref<Fence>> fence = begin_read(buffer, offset, into[i], Ref<Object>(Ref<TracedWork>::share(this)));
    if (!fence)
      return std::unexpected(std::move(fence.error())
                                 .note(fmt::format("reading binding {} of '{}'", i, dispatch.function_name)));
    if (*fence) reading.push_back(*std::move(fence));
  }
  std::vector<Fence*> fences;
  for (const Ref<Fence>& fence : reading) fences.push_back(fence.get());
  return when(HALYARD_TRY(Fence::join(fences)).get(), std::move(then));
}

Result<> TensorTrace::TracedWork::show(const DispatchCommand& dispatch, bool after_it) const {
  for (size_t i = 0; i < before.size(); ++i) {
    if (after_it && after[i] == before[i]) continue;
    HALYARD_TRY(trace->sink_({number, dispatch.function_name, static_cast<uint32_t>(i), after_it,
                              after_it ? after[i] : before[i]}));
  }
  return {};
}

// `keep` keeps this work alive until the step has run.
Result<> TensorTrace::TracedWork::show_dispatch(const DispatchCommand& dispatch) {
  const auto keep = Ref<TracedWork>::share(this);
  return read(dispatch, before, [this, keep, &dispatch]() -> Result<> {
    number = trace->dispatches_.fetch_add(1);
    HALYARD_TRY(show(dispatch, false));
    const size_t place = next++;
    return run(place, place + 1, [this, keep, &dispatch] {
      return read(dispatch, after, [this, keep, &dispatch]() -> Result<> {
        HALYARD_TRY(show(dispatch, true));
        return go_on();
      });
    });
  });
}

Result<> TensorTrace::TracedWork::go_on() {
  const size_t begin = next;
  while (next < list.commands.size() && !shown(next)) ++next;
  const auto then = [this, keep = Ref<TracedWork>::share(this)]() -> Result<> {
    if (next < list.commands.size()) return show_dispatch(*shown(next));
    finish({});
    return {};
  };
  return next == begin ? then() : run(begin, next, then);
}

Result<> TensorTrace::execute(const QueuePoint& point, CommandBuffer& commands,
                              std::span<const Binding> table) {
  SlotEntries entries;
  HALYARD_TRY(prepare_execute(point, commands, table, entries));
  const auto work = make<TracedWork>(point, commands);
  work->trace = Ref<TensorTrace>::share(this);
  work->list = commands.list();
  for (Allocation* buffer : work->list.buffers)
    work->buffers.push_back(Buffer::create(Ref<Allocation>::share(buffer)));
  for (Executable* executable : work->list.executables)
    work->executables.push_back(Ref<Executable>::share(executable));
  // Entries after the declared slots are recorded buffers of other drivers (hal/device/sharing.h).
  for (const SlotEntry& entry : std::span<const SlotEntry>(entries).first(commands.declared_slots())) {
    TracedWork::Entry& to = work->table.emplace_back();
    if (entry.allocation)
      to = {Buffer::create(Ref<Allocation>::share(entry.allocation)), entry.offset, entry.length};
  }
  HALYARD_TRY(work->when(point.wait, [work] { return work->go_on(); }));
  return work->result_for_submitter();
}

Result<> TensorTrace::dispatch_now(Executable& executable, uint64_t function,
                                   const std::array<uint32_t, 3>& workgroups,
                                   std::span<const uint32_t> constants, std::span<const HostBinding> bindings,
                                   const WorkScope* scope) {
  const auto dispatch = [&] {
    return hal::dispatch_now(executable, function, workgroups, constants, bindings, scope);
  };
  if (function >= executable.functions().size()) return dispatch();  // returns the error
  const std::string_view name = executable.functions()[function].name;
  if (!matches_wildcards(pattern_, name)) return dispatch();
  const uint64_t number = dispatches_.fetch_add(1);
  std::vector<std::vector<uint8_t>> before;
  before.reserve(bindings.size());
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    before.emplace_back(bindings[i].bytes.begin(), bindings[i].bytes.end());
    HALYARD_TRY(sink_({number, name, i, false, before[i]}));
  }
  HALYARD_TRY(dispatch());
  for (uint32_t i = 0; i < bindings.size(); ++i)
    if (!std::ranges::equal(bindings[i].bytes, before[i]))
      HALYARD_TRY(sink_({number, name, i, true, bindings[i].bytes}));
  return {};
}

}  // namespace halyard::hal
