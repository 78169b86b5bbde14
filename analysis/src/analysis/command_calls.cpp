// Effects of recording: a command buffer is the list of its commands.
#include "analysis/program.h"

namespace halyard::analysis {

namespace {

void create(Program&, Call& call) { call.give(0, std::make_shared<CommandsObject>()); }
void no_command(Program&, Call&) {}

Target recorded(const Call& call, size_t buffer, size_t slot, size_t offset, size_t length, bool writes) {
  Target target;
  target.buffer = call.object<BufferObject>(buffer);
  target.slot = call.number(slot);
  target.offset = call.number(offset);
  target.length = call.number(length);
  target.reads = !writes;
  target.writes = writes;
  return target;
}

void record(const Call& call, Step::Kind kind, std::vector<Target> targets) {
  const auto commands = call.object<CommandsObject>(0);
  if (!commands) return;
  Command command;
  command.step.kind = kind;
  command.step.place = call.place;
  command.targets = std::move(targets);
  commands->commands.push_back(std::move(command));
}

void fill(Program&, Call& call) { record(call, Step::Kind::fill, {recorded(call, 1, 4, 2, 3, true)}); }
void update(Program&, Call& call) { record(call, Step::Kind::update, {recorded(call, 3, 6, 4, 5, true)}); }
void copy(Program&, Call& call) {
  record(call, Step::Kind::copy, {recorded(call, 3, 1, 4, 7, false), recorded(call, 5, 2, 6, 7, true)});
}
void collective(Program&, Call& call) {
  record(call, Step::Kind::collective,
         {recorded(call, 6, 4, 8, 9, false), recorded(call, 7, 5, 10, 11, true)});
}

void add_bindings(Program& program, Command& command, std::span<const std::vector<Value>> bindings) {
  const Kernel* kernel =
      command.step.executable ? program.kernels.find(*command.step.executable, command.step.entry) : nullptr;
  if (kernel) command.step.name = kernel->name;
  for (size_t i = 0; i < bindings.size(); ++i) {
    const std::vector<Value>& binding = bindings[i];
    Target target = binding_of(kernel, i, bindings.size());
    target.slot = binding[1].number;
    target.buffer = as<BufferObject>(binding[2].ref);
    target.offset = binding[3].number;
    target.length = binding[4].number;
    command.targets.push_back(std::move(target));
  }
}

void dispatch(Program& program, Call& call, bool is_indirect) {
  const auto commands = call.object<CommandsObject>(0);
  const auto executable = call.object<ExecutableObject>(1);
  if (!commands) return;
  Command command;
  command.step.kind = Step::Kind::dispatch;
  command.step.place = call.place;
  if (executable) command.step.executable = executable->constant;
  const auto entry = call.number(2).constant();
  command.step.entry = entry && *entry >= 0 ? static_cast<uint64_t>(*entry) : 0;
  if (is_indirect) {
    Target workgroups = recorded(call, 4, 3, 5, 5, false);
    workgroups.length = 12;
    command.targets.push_back(std::move(workgroups));
  } else {
    command.step.workgroups = {call.number(3), call.number(4), call.number(5)};
  }
  for (const auto& constant : call.span(0)) command.step.constants.push_back(constant[0].number);
  add_bindings(program, command, call.span(1));
  commands->commands.push_back(std::move(command));
}
void dispatch_direct(Program& program, Call& call) { dispatch(program, call, false); }
void dispatch_indirect(Program& program, Call& call) { dispatch(program, call, true); }

constexpr Effect kCommandEffects[] = {
    {"hal.command_buffer.create", create},
    {"hal.command_buffer.finalize", no_command},
    {"hal.command_buffer.begin_debug_group", no_command},
    {"hal.command_buffer.end_debug_group", no_command},
    {"hal.command_buffer.execution_barrier", no_command},
    {"hal.command_buffer.advise_buffer", no_command},
    {"hal.command_buffer.fill_buffer", fill},
    {"hal.command_buffer.update_buffer", update},
    {"hal.command_buffer.copy_buffer", copy},
    {"hal.command_buffer.collective", collective},
    {"hal.command_buffer.dispatch", dispatch_direct},
    {"hal.command_buffer.dispatch.indirect", dispatch_indirect},
};

}  // namespace

bool call_commands(Program& program, Call& call) { return apply_effect(kCommandEffects, program, call); }

}  // namespace halyard::analysis
