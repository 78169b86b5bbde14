// An execution is a chain of steps. Each starts when the fence of the previous step is reached: execute the
// commands up to the next selected command, read its buffers, execute the command alone, read its buffers
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

Result<> TensorTrace::tell(const TracedTensor& tensor) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return {};
    telling_.push_back(std::this_thread::get_id());
  }
  struct Leave {
    TensorTrace& trace;
    ~Leave() {
      const std::lock_guard lock(trace.mutex_);
      trace.telling_.erase(std::ranges::find(trace.telling_, std::this_thread::get_id()));
      trace.left_.notify_all();
    }
  };
  const Leave leave(*this);
  return sink_(tensor);
}

void TensorTrace::end() {
  std::unique_lock lock(mutex_);
  has_ended_ = true;
  left_.wait(lock, [this] {
    return std::ranges::all_of(telling_,
                               [](std::thread::id thread) { return thread == std::this_thread::get_id(); });
  });
}

struct TensorTrace::TracedWork final : ObjectOf<TensorTrace::TracedWork>, StepwiseExecution {
  static const ObjectType kType;

  TracedWork(const QueuePoint& point, CommandBuffer& executed) : StepwiseExecution(point, executed) {}

  // A range of a step, in whole allocations.
  struct Range {
    Buffer* buffer = nullptr;
    uint32_t binding = 0;
    uint64_t offset = 0;
    uint64_t length = 0;
  };

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
  std::vector<const Allocation*> numbered;  // all allocations of traced steps
  uint64_t execution = 0;
  size_t next = 0;            // index of the next command
  uint64_t number = 0;        // of the step that is being traced
  std::vector<Range> ranges;  // of this step
  std::vector<std::vector<uint8_t>> before;
  std::vector<std::vector<uint8_t>> after;

  using Then = std::move_only_function<Result<>()>;

  Result<> when(const Fence* fence, Then then) {
    return StepwiseExecution::when(fence, Ref<TracedWork>::share(this), std::move(then));
  }

  bool is_shown(size_t command) const {
    if (const auto* dispatch = std::get_if<DispatchCommand>(&list.commands[command]))
      return matches_wildcards(trace->pattern_, dispatch->function_name);
    return trace->traces_all_steps() &&
           std::ranges::any_of(uses_of(list.commands[command]), &CommandUse::may_write);
  }
  Range resolve(const CommandRange& range, uint32_t binding) const {
    if (range.buffer != kNoBuffer) return {buffers[range.buffer].get(), binding, range.offset, range.length};
    const Entry& entry = table[range.slot];
    return {entry.buffer.get(), binding, entry.offset + range.offset, range.length};
  }
  void find_ranges(const Command& command);
  uint32_t number_of(const Buffer& buffer);
  Result<> run(size_t begin, size_t end, Then then);
  Result<> read(std::vector<std::vector<uint8_t>>& into, Then then);
  std::string_view name() const;
  std::string_view source_of(const DispatchCommand* dispatch) const;
  Result<> show(bool after_it) const;
  Result<> show_step();
  Result<> go_on();
  Result<> trace_command();
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

// The ranges of a command, in order. With all steps, equal ranges appear once.
void TensorTrace::TracedWork::find_ranges(const Command& command) {
  ranges.clear();
  if (const auto* dispatch = std::get_if<DispatchCommand>(&command)) {
    for (const CommandRange& range : dispatch->bindings)
      ranges.push_back(resolve(range, static_cast<uint32_t>(ranges.size())));
  } else {
    for (const CommandUse& use : uses_of(command))
      ranges.push_back(resolve(use.range, static_cast<uint32_t>(ranges.size())));
  }
  if (!trace->traces_all_steps()) return;
  std::vector<Range> kept;
  for (const Range& range : ranges) {
    const bool is_known = std::ranges::any_of(kept, [&](const Range& other) {
      return &other.buffer->allocation() == &range.buffer->allocation() && other.offset == range.offset &&
             other.length == range.length;
    });
    if (!is_known) kept.push_back(range);
  }
  ranges = std::move(kept);
}

uint32_t TensorTrace::TracedWork::number_of(const Buffer& buffer) {
  const auto found = std::ranges::find(numbered, &buffer.allocation());
  if (found == numbered.end()) {
    numbered.push_back(&buffer.allocation());
    return static_cast<uint32_t>(numbered.size() - 1);
  }
  return static_cast<uint32_t>(found - numbered.begin());
}

// Reads the bytes of all ranges of the step.
Result<> TensorTrace::TracedWork::read(std::vector<std::vector<uint8_t>>& into, Then then) {
  into.assign(ranges.size(), {});
  std::vector<Ref<Fence>> reading;
  for (size_t i = 0; i < into.size(); ++i) {
    into[i].resize(ranges[i].length);
    Result<Ref<Fence>> fence =
        begin_read(*ranges[i].buffer, ranges[i].offset, into[i], Ref<Object>(Ref<TracedWork>::share(this)));
    if (!fence)
      return std::unexpected(
          std::move(fence.error()).note(fmt::format("reading binding {} of '{}'", i, name())));
    if (*fence) reading.push_back(*std::move(fence));
  }
  std::vector<Fence*> fences;
  for (const Ref<Fence>& fence : reading) fences.push_back(fence.get());
  return when(HALYARD_TRY(Fence::join(fences)).get(), std::move(then));
}

// The function of the command `next`; of other commands than dispatches, their word.
std::string_view TensorTrace::TracedWork::name() const {
  const Command& command = list.commands[next];
  if (const auto* dispatch = std::get_if<DispatchCommand>(&command)) return dispatch->function_name;
  return std::visit([](const auto& known) { return word_of(known); }, command);
}

Result<> TensorTrace::TracedWork::show(bool after_it) const {
  for (size_t i = 0; i < before.size(); ++i) {
    if (after_it && after[i] == before[i]) continue;
    HALYARD_TRY(trace->tell({.dispatch = number,
                             .function = name(),
                             .binding = static_cast<uint32_t>(i),
                             .after = after_it,
                             .bytes = after_it ? after[i] : before[i]}));
  }
  return {};
}

std::string_view TensorTrace::TracedWork::source_of(const DispatchCommand* dispatch) const {
  if (!dispatch) return {};
  const std::span<const ExecutableFunction> functions = list.executables[dispatch->executable]->functions();
  return dispatch->function < functions.size() ? std::string_view(functions[dispatch->function].source)
                                               : std::string_view();
}

Result<> TensorTrace::TracedWork::show_step() {
  const Command& command = list.commands[next];
  const auto* dispatch = std::get_if<DispatchCommand>(&command);
  for (size_t i = 0; i < ranges.size(); ++i)
    HALYARD_TRY(
        trace->tell({.dispatch = number,
                     .function = name(),
                     .binding = ranges[i].binding,
                     .after = after[i] != before[i],
                     .bytes = after[i],
                     .before = before[i],
                     .execution = execution,
                     .command = next,
                     .operation = std::visit([](const auto& known) { return word_of(known); }, command),
                     .device = device->uri(),
                     .place = commands->place_of(next),
                     .source = source_of(dispatch),
                     .workgroups = dispatch ? dispatch->workgroups : std::array<uint32_t, 3>(),
                     .buffer = number_of(*ranges[i].buffer),
                     .offset = ranges[i].offset}));
  return {};
}

// `keep` keeps this work alive until the step has run.
Result<> TensorTrace::TracedWork::trace_command() {
  const auto keep = Ref<TracedWork>::share(this);
  find_ranges(list.commands[next]);
  return read(before, [this, keep]() -> Result<> {
    number = trace->dispatches_.fetch_add(1);
    if (!trace->traces_all_steps()) HALYARD_TRY(show(false));
    return run(next, next + 1, [this, keep] {
      return read(after, [this, keep]() -> Result<> {
        HALYARD_TRY(trace->traces_all_steps() ? show_step() : show(true));
        ++next;
        return go_on();
      });
    });
  });
}

Result<> TensorTrace::TracedWork::go_on() {
  const size_t begin = next;
  while (next < list.commands.size() && !is_shown(next)) ++next;
  const auto then = [this, keep = Ref<TracedWork>::share(this)]() -> Result<> {
    if (next < list.commands.size()) return trace_command();
    finish({});
    return {};
  };
  return next == begin ? then() : run(begin, next, then);
}

Result<> TensorTrace::execute(const QueuePoint& point, CommandBuffer& commands,
                              std::span<const Binding> table) {
  SlotEntries entries;
  Reservation reservation = HALYARD_TRY(prepare_execute(point, commands, table, entries));
  const auto work = make<TracedWork>(point, commands);
  work->trace = Ref<TensorTrace>::share(this);
  work->list = commands.list();
  work->execution = executions_.fetch_add(1);
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
  // The numbers of allocations are those of a capture of the same execution.
  for (const Ref<Buffer>& buffer : work->buffers) static_cast<void>(work->number_of(*buffer));
  for (const TracedWork::Entry& entry : work->table)
    if (entry.buffer) static_cast<void>(work->number_of(*entry.buffer));
  HALYARD_TRY(work->when(point.wait, [work] { return work->go_on(); }));
  reservation.keep();
  return work->result_for_submitter();
}

// ---- Queue operations

struct TensorTrace::TracedOperation final : ObjectOf<TensorTrace::TracedOperation>, StepwiseExecution {
  static const ObjectType kType;

  TracedOperation(const QueuePoint& point, Operation of)
      : StepwiseExecution(point), operation(std::move(of)), memory(Ref<Budget>::share(point.memory)) {}

  Ref<TensorTrace> trace;
  Operation operation;
  Ref<Budget> memory;
  Ref<Buffer> target;
  uint64_t execution = 0;
  std::vector<uint8_t> before;
  std::vector<uint8_t> after;

  Ref<TracedOperation> self() { return Ref<TracedOperation>::share(this); }

  Result<> read(std::vector<uint8_t>& into, std::move_only_function<Result<>()> then) {
    into.resize(operation.length);
    const Ref<Fence> fence = HALYARD_TRY(begin_read(*target, operation.offset, into, Ref<Object>(self())));
    return when(fence.get(), self(), std::move(then));
  }
  Result<> run() {
    return read(before, [this, keep = self()]() -> Result<> {
      const Ref<Fence> done = HALYARD_TRY(Fence::create(device));
      HALYARD_TRY(operation.submit({*device, affinity, nullptr, done.get(), memory.get(), scope.get()}));
      return when(done.get(), self(), [this, keep] { return read(after, [this, keep] { return show(); }); });
    });
  }
  Result<> show() {
    HALYARD_TRY(trace->tell({.dispatch = trace->dispatches_.fetch_add(1),
                             .function = operation.name,
                             .after = after != before,
                             .bytes = after,
                             .before = before,
                             .execution = execution,
                             .operation = operation.name,
                             .device = device->uri(),
                             .place = operation.place,
                             .offset = target->offset() + operation.offset}));
    finish({});
    return {};
  }
};

const ObjectType TensorTrace::TracedOperation::kType =
    object_type<TensorTrace::TracedOperation>("hal.tensor_trace.operation");

Result<> TensorTrace::operate(const QueuePoint& point, Operation operation) {
  if (operation.length == kWholeLength && operation.offset <= operation.target.length())
    operation.length = operation.target.length() - operation.offset;
  // Ranges that the operation refuses are left to it.
  const bool is_valid = operation.offset <= operation.target.length() &&
                        operation.length <= operation.target.length() - operation.offset;
  if (!is_valid || operation.length == 0) return operation.submit(point);
  const auto work = make<TracedOperation>(point, std::move(operation));
  work->trace = Ref<TensorTrace>::share(this);
  work->target = Ref<Buffer>::share(&work->operation.target);
  work->execution = executions_.fetch_add(1);
  HALYARD_TRY(work->when(point.wait, work, [work] { return work->run(); }));
  return work->result_for_submitter();
}

Result<> TensorTrace::dispatch_now(Executable& executable, uint64_t function,
                                   const std::array<uint32_t, 3>& workgroups,
                                   std::span<const uint32_t> constants, std::span<const HostBinding> bindings,
                                   const WorkScope* scope, std::string_view place) {
  const auto dispatch = [&] {
    return hal::dispatch_now(executable, function, workgroups, constants, bindings, scope);
  };
  if (function >= executable.functions().size()) return dispatch();  // returns the error
  const std::string_view name = executable.functions()[function].name;
  if (!matches_wildcards(pattern_, name)) return dispatch();
  const uint64_t number = dispatches_.fetch_add(1);
  const uint64_t execution = executions_.fetch_add(1);
  std::vector<std::vector<uint8_t>> before;
  before.reserve(bindings.size());
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    before.emplace_back(bindings[i].bytes.begin(), bindings[i].bytes.end());
    if (!traces_all_steps())
      HALYARD_TRY(tell({.dispatch = number, .function = name, .binding = i, .bytes = before[i]}));
  }
  HALYARD_TRY(dispatch());
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    const bool changed = !std::ranges::equal(bindings[i].bytes, before[i]);
    if (!changed && !traces_all_steps()) continue;
    TracedTensor tensor = {
        .dispatch = number, .function = name, .binding = i, .after = changed, .bytes = bindings[i].bytes};
    if (traces_all_steps()) {
      tensor.before = before[i];
      tensor.execution = execution;
      tensor.operation = "dispatch";
      tensor.place = place;
      tensor.source = executable.functions()[function].source;
      tensor.workgroups = workgroups;
      tensor.buffer = i;
    }
    HALYARD_TRY(tell(tensor));
  }
  return {};
}

}  // namespace halyard::hal
