// The imports of hal that record commands and queue work: they become statements.
#include "plan/lifter.h"

namespace halyard::aot {

using Kind = Object::Kind;

bool Lifter::import_queue(Call& call, Nodes& out) {
  const std::string_view callee = call.callee;
  const auto buffer = [&](size_t i) {
    const ObjectId id = of_kind(call.object(i), Kind::buffer);
    return is_stuck() ? Place{} : objects_[id].place;
  };
  const auto low = [&](size_t i) { return static_cast<uint32_t>(constant_of(call.value(i))); };
  // Work runs in the order of the program, so all fences are reached.
  if (callee.starts_with("hal_fence_create")) return call.give(add_object({.kind = Kind::fence}));
  if (callee.starts_with("hal_fence_join")) {
    for (const Returned& each : call.arguments)
      if (each.is_ref && each.object != kNull) return call.give(each.object);
    return call.give(kNull);
  }
  if (callee.starts_with("hal_fence_await")) {
    call.results.push_back({.value = i32(0)});
    return true;
  }
  if (!callee.starts_with("hal_queue_")) {
    if (callee != "hal_file_from_memory") return false;
    of_kind(call.object(0), Kind::device);
    const Object* const source = bytes(call.object(3));
    if ((low(2) & ~1u) != 0) give_up("a file over memory is opened for writing");
    if (source == nullptr || is_stuck()) return true;
    Object made = {.kind = Kind::file, .place = part(source->place, call.value(4), call.value(5), out)};
    return call.give(add_object(std::move(made)));
  }
  of_kind(call.object(0), Kind::device);
  if (is_stuck()) return true;
  if (callee == "hal_queue_alloca" || callee == "hal_queue_alloca_5") {
    if (constant_of(call.value(4)) != 0) give_up("a pool is named");
    return call.give(allocate(call.value(7), low(5), low(6), out));
  }
  if (callee.starts_with("hal_queue_dealloca")) {
    of_kind(call.object(4), Kind::buffer);
    return true;
  }
  if (callee == "hal_queue_barrier" || callee == "hal_queue_flush") return true;
  if (callee == "hal_queue_fill") {
    const Place target = part(buffer(4), call.value(5), call.value(6), out);
    const uint32_t width = low(8);
    if (is_stuck()) return true;
    if (width != 1 && width != 2 && width != 4) give_up("a pattern has another size");
    if (constant_of(call.value(5)) % width != 0 || constant_of(target.length) % width != 0)
      give_up("a pattern does not fit");
    if (!is_stuck()) fill(target, call.value(7), width, out);
    return true;
  }
  if (callee == "hal_queue_copy") {
    const Place source = part(buffer(4), call.value(5), call.value(8), out);
    const Place target = part(buffer(6), call.value(7), source.length, out);
    if (!is_stuck()) copy(source, target, out);
    return true;
  }
  if (callee == "hal_queue_update") {
    const Object* const from = bytes(call.object(4));
    if (from == nullptr) return true;
    const Place source = part(from->place, call.value(5), call.value(8), out);
    const Place target = part(buffer(6), call.value(7), call.value(8), out);
    if (!is_stuck()) copy(source, target, out);
    return true;
  }
  if (callee.starts_with("hal_queue_read")) {
    const ObjectId file = of_kind(call.object(4), Kind::file);
    if (is_stuck()) return true;
    const Place target = part(buffer(6), call.value(7), call.value(8), out);
    const Place source = part(objects_[file].place, call.value(5), target.length, out);
    if (!is_stuck()) copy(source, target, out);
    return true;
  }
  if (callee == "hal_queue_execute_list") {
    if (call.arguments.size() > 5) give_up("more than one command buffer is executed at once");
    if (is_stuck()) return true;
    for (size_t i = 4; i < call.arguments.size(); ++i) {
      const ObjectId id = of_kind(call.object(i), Kind::commands);
      if (is_stuck()) return true;
      if (!objects_[id].is_final) give_up("a command buffer is not finalized");
      const std::vector<Command> commands = objects_[id].commands;
      for (const Command& each : commands) run(each, {}, out);
    }
    return true;
  }
  if (callee == "hal_queue_execute" || callee.starts_with("hal_queue_execute_indirect")) {
    const ObjectId id = of_kind(call.object(4), Kind::commands);
    if (is_stuck()) return true;
    if (!objects_[id].is_final) give_up("a command buffer is not finalized");
    std::vector<Returned> table;
    if (callee != "hal_queue_execute") {
      const size_t first = callee.ends_with("_5") ? 5 : 6;
      table.assign(call.arguments.begin() + static_cast<std::ptrdiff_t>(first), call.arguments.end());
    }
    const std::vector<Command> commands = objects_[id].commands;
    for (const Command& each : commands) run(each, table, out);
    return true;
  }
  return false;
}

Place Lifter::resolve(const Command::Binding& binding, const std::vector<Returned>& table, Nodes& out) {
  ObjectId buffer = binding.buffer;
  Place whole;
  if (buffer == kNull) {
    const uint64_t slot = constant_of(binding.slot);
    if (is_stuck() || 3 * slot + 2 >= table.size()) {
      give_up("a slot is not in the binding table");
      return {};
    }
    buffer = of_kind(table[3 * slot].object, Kind::buffer);
    if (is_stuck()) return {};
    whole = part(objects_[buffer].place, table[3 * slot + 1].value, table[3 * slot + 2].value, out);
  } else {
    of_kind(buffer, Kind::buffer);
    if (is_stuck()) return {};
    whole = objects_[buffer].place;
  }
  if ((objects_[buffer].usage & binding.usage) != binding.usage)
    give_up("a buffer has another usage than a command needs");
  return part(whole, binding.offset, binding.length, out);
}

void Lifter::run(const Command& command, const std::vector<Returned>& table, Nodes& out) {
  if (is_stuck()) return;
  switch (command.kind) {
    case Command::Kind::fill: {
      const Place target = resolve(command.bindings[0], table, out);
      if (is_stuck()) return;
      if (constant_of(target.offset) % command.width != 0 || constant_of(target.length) % command.width != 0)
        give_up("a pattern does not fit");
      if (!is_stuck()) fill(target, command.pattern, command.width, out);
      return;
    }
    case Command::Kind::update: {
      const Object* const from = bytes(command.bytes);
      if (from == nullptr) return;
      const Place target = resolve(command.bindings[0], table, out);
      if (is_stuck()) return;
      copy({from->place.memory, sum(from->place.offset, command.bytes_offset, out), target.length}, target,
           out);
      return;
    }
    case Command::Kind::copy: {
      const Place source = resolve(command.bindings[0], table, out);
      const Place target = resolve(command.bindings[1], table, out);
      if (!is_stuck()) copy(source, target, out);
      return;
    }
    case Command::Kind::dispatch: {
      std::vector<Place> bindings;
      for (const Command::Binding& each : command.bindings) bindings.push_back(resolve(each, table, out));
      if (!is_stuck())
        dispatch(objects_[command.executable].kernels, command.function, command.counts, command.constants,
                 std::move(bindings), out);
      return;
    }
  }
}

bool Lifter::import_commands(Call& call, Nodes& out) {
  const std::string_view callee = call.callee;
  if (!callee.starts_with("hal_command_buffer_")) return false;
  const auto low = [&](size_t i) { return static_cast<uint32_t>(constant_of(call.value(i))); };
  if (branches_ != 0) {
    give_up("commands are recorded in a branch");
    return true;
  }
  if (callee == "hal_command_buffer_create") {
    of_kind(call.object(0), Kind::device);
    Object made = {.kind = Kind::commands};
    made.modes = low(1);
    made.categories = low(2);
    made.capacity = low(4);
    if (made.modes & ~3u) give_up("a command buffer has an unusual mode");
    call.results.push_back({.object = add_object(std::move(made)), .is_ref = true});
    return true;
  }
  const ObjectId id = of_kind(call.object(0), Kind::commands);
  if (is_stuck()) return true;
  if (objects_[id].is_final) give_up("a command buffer is not recording");
  const auto bind = [&](Command& command, ObjectId buffer, ValueId slot, ValueId offset, ValueId length,
                        uint32_t usage) {
    Command::Binding binding = {buffer, slot, offset, length, usage};
    if (buffer == kNull) {
      if (constant_of(slot) >= objects_[id].capacity) give_up("a slot is out of range");
    } else {
      of_kind(buffer, Kind::buffer);
      if (is_stuck()) return;
      if ((objects_[buffer].usage & usage) != usage)
        give_up("a buffer has another usage than a command needs");
    }
    command.bindings.push_back(binding);
  };
  const auto add = [&](Command command) {
    const uint32_t category = command.kind == Command::Kind::dispatch ? 2 : 1;
    if (!(objects_[id].categories & category)) give_up("a command buffer has another category");
    objects_[id].commands.push_back(std::move(command));
    return true;
  };
  if (callee == "hal_command_buffer_finalize") {
    objects_[id].is_final = true;
    return true;
  }
  if (callee.starts_with("hal_command_buffer_execution_barrier") ||
      callee == "hal_command_buffer_advise_buffer")
    return true;
  if (callee.starts_with("hal_command_buffer_fill_buffer")) {
    if (values_.is_constant(call.value(3), 0)) return true;
    Command command = {.kind = Command::Kind::fill};
    bind(command, call.object(1), call.value(4), call.value(2), call.value(3), 2);
    command.width = low(6);
    if (command.width != 1 && command.width != 2 && command.width != 4) give_up("a pattern has another size");
    command.pattern = call.value(5);
    return is_stuck() || add(std::move(command));
  }
  if (callee.starts_with("hal_command_buffer_update_buffer")) {
    Command command = {.kind = Command::Kind::update};
    const Object* const from = bytes(call.object(1));
    if (from == nullptr) return true;
    if (memories_[from->place.memory].kind != MemoryKind::constant)
      give_up("a command keeps bytes that may change");
    part(from->place, call.value(2), call.value(5), out);
    command.bytes = call.object(1);
    command.bytes_offset = call.value(2);
    bind(command, call.object(3), call.value(6), call.value(4), call.value(5), 2);
    return is_stuck() || add(std::move(command));
  }
  if (callee.starts_with("hal_command_buffer_copy_buffer")) {
    if (values_.is_constant(call.value(7), 0)) return true;
    Command command = {.kind = Command::Kind::copy};
    bind(command, call.object(3), call.value(1), call.value(4), call.value(7), 1);
    bind(command, call.object(5), call.value(2), call.value(6), call.value(7), 2);
    return is_stuck() || add(std::move(command));
  }
  if (callee == "hal_command_buffer_dispatch" || callee == "hal_command_buffer_dispatch_5") {
    Command command = {.kind = Command::Kind::dispatch};
    command.executable = of_kind(call.object(1), Kind::executable);
    command.function = low(2);
    if (is_stuck()) return true;
    command.counts = {call.value(3), call.value(4), call.value(5)};
    for (uint32_t i = 0; i < call.counts[0]; ++i) command.constants.push_back(call.value(7 + i));
    for (uint32_t i = 0; i < call.counts[1]; ++i) {
      const size_t first = 7 + call.counts[0] + 5 * size_t{i};
      bind(command, call.object(first + 2), call.value(first + 1), call.value(first + 3),
           call.value(first + 4), 0xC00);
    }
    return is_stuck() || add(std::move(command));
  }
  return false;
}

}  // namespace halyard::aot
