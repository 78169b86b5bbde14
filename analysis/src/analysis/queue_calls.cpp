// Effects of queue work: memory in the order of the program, and the steps of executed command buffers.
#include <algorithm>

#include "analysis/program.h"

namespace halyard::analysis {

namespace {

uint32_t queue_device(const Call& call) {
  const auto device = call.object<DeviceObject>(0);
  return device ? device->number : 0;
}

void queue_alloca(Program& program, Call& call) {
  Allocation allocation;
  allocation.size = call.number(7);
  allocation.place = call.place;
  allocation.device = queue_device(call);
  call.give(0, program.allocate(std::move(allocation)));
}

void queue_dealloca(Program& program, Call& call) {
  const auto buffer = call.object<BufferObject>(4);
  if (!buffer || !buffer->memory) return;
  const Allocation& allocation = program.timeline->allocations()[buffer->memory->allocation];
  if (allocation.source == Allocation::Source::queue_alloca ||
      allocation.source == Allocation::Source::parameter)
    program.timeline->free(buffer->memory->allocation);
}

Target target_of(const Call& call, size_t buffer, size_t offset, size_t length, bool writes) {
  Target target;
  target.buffer = call.object<BufferObject>(buffer);
  target.offset = call.number(offset);
  target.length = call.number(length);
  target.reads = !writes;
  target.writes = writes;
  return target;
}

void add_step(Program& program, const Call& call, Step::Kind kind, std::span<const Target> targets) {
  Step step;
  step.kind = kind;
  step.place = call.place;
  step.device = queue_device(call);
  step.submission = program.submissions++;
  add_uses(program, step, targets);
  program.timeline->add(std::move(step));
}

void queue_fill(Program& program, Call& call) {
  const Target targets[] = {target_of(call, 4, 5, 6, true)};
  add_step(program, call, Step::Kind::fill, targets);
}
void queue_update(Program& program, Call& call) {
  const Target targets[] = {target_of(call, 6, 7, 8, true)};
  add_step(program, call, Step::Kind::update, targets);
}
void queue_copy(Program& program, Call& call) {
  const Target targets[] = {target_of(call, 4, 5, 8, false), target_of(call, 6, 7, 8, true)};
  add_step(program, call, Step::Kind::copy, targets);
}
void queue_read(Program& program, Call& call) {
  const Target targets[] = {target_of(call, 6, 7, 8, true)};
  add_step(program, call, Step::Kind::read, targets);
}
void queue_write(Program& program, Call& call) {
  const Target targets[] = {target_of(call, 4, 5, 8, false)};
  add_step(program, call, Step::Kind::write, targets);
}

std::optional<uint64_t> known_size(const Expression& number) {
  const auto constant = number.constant();
  if (!constant || *constant < 0) return std::nullopt;
  return static_cast<uint64_t>(*constant);
}

// Kernels often get a whole arena as a binding, and offsets as constants. If the ranges that a dispatch
// accesses are known, each of them is a use.
void narrow(Program& program, Step& step) {
  if (step.kind != Step::Kind::dispatch || !step.executable || step.workgroups.size() != 3) return;
  std::vector<uint32_t> constants;
  std::vector<uint64_t> lengths;
  std::array<uint32_t, 3> workgroups = {};
  for (const Expression& number : step.constants) {
    const auto constant = number.constant();
    if (!constant) return;
    constants.push_back(static_cast<uint32_t>(*constant));
  }
  for (const Use& use : step.uses) {
    const auto length = known_size(use.length);
    if (!length) return;
    lengths.push_back(*length);
  }
  for (size_t i = 0; i < workgroups.size(); ++i) {
    const auto count = known_size(step.workgroups[i]);
    if (!count || *count > UINT32_MAX) return;
    workgroups[i] = static_cast<uint32_t>(*count);
  }
  const auto* const ranges =
      program.kernels.ranges(*step.executable, step.entry, constants, lengths, workgroups);
  if (!ranges) return;
  std::vector<Use> uses;
  for (const vm::KernelCounts::Range& range : *ranges) {
    if (range.binding >= step.uses.size() || range.end > INT64_MAX) continue;
    Use use = step.uses[range.binding];
    use.offset = program.symbols().add(use.offset, static_cast<int64_t>(range.begin));
    use.length = static_cast<int64_t>(range.end - range.begin);
    use.writes = range.writes;
    use.reads = !range.writes;
    use.is_assumed = false;
    uses.push_back(std::move(use));
  }
  step.uses = std::move(uses);
}

// The bindings of the table replace the slots of the recording.
void execute(Program& program, const Call& call, const CommandsObject& commands,
             std::span<const std::vector<Value>> table) {
  const uint32_t submission = program.submissions++;
  for (const Command& command : commands.commands) {
    Step step = command.step;
    step.device = queue_device(call);
    step.submission = submission;
    std::vector<Target> targets = command.targets;
    for (Target& target : targets) {
      if (target.buffer) continue;
      const auto slot = target.slot.constant();
      if (!slot || *slot < 0 || static_cast<uint64_t>(*slot) >= table.size()) continue;
      const std::vector<Value>& bound = table[static_cast<size_t>(*slot)];
      target.buffer = as<BufferObject>(bound[0].ref);
      if (target.length.is(-1) && !bound[2].number.is(-1))
        target.length = program.symbols().subtract(bound[2].number, target.offset);
      target.offset = program.symbols().add(target.offset, bound[1].number);
    }
    add_uses(program, step, targets);
    narrow(program, step);
    program.timeline->add(std::move(step));
  }
}

void queue_execute(Program& program, Call& call) {
  for (const auto& tuple : call.span(0))
    if (const auto commands = as<CommandsObject>(tuple[0].ref)) execute(program, call, *commands, {});
  if (const auto commands = call.object<CommandsObject>(4)) execute(program, call, *commands, {});
}

void queue_execute_indirect(Program& program, Call& call) {
  if (const auto commands = call.object<CommandsObject>(4)) execute(program, call, *commands, call.span(0));
}

void queue_barrier(Program&, Call&) {}

constexpr Effect kQueueEffects[] = {
    {"hal.device.queue.alloca", queue_alloca},
    {"hal.device.queue.dealloca", queue_dealloca},
    {"hal.device.queue.fill", queue_fill},
    {"hal.device.queue.update", queue_update},
    {"hal.device.queue.copy", queue_copy},
    {"hal.device.queue.read", queue_read},
    {"hal.device.queue.write", queue_write},
    {"hal.device.queue.barrier", queue_barrier},
    {"hal.device.queue.execute", queue_execute},
    {"hal.device.queue.execute.indirect", queue_execute_indirect},
};

}  // namespace

bool call_queue(Program& program, Call& call) { return apply_effect(kQueueEffects, program, call); }

}  // namespace halyard::analysis
