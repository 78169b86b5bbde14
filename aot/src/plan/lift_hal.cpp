// The imports of hal, hal_inline and hal_loader: objects change when the program is translated; commands of
// queues become statements.
#include <fmt/core.h>

#include <algorithm>

#include "aot/c_text.h"
#include "plan/lifter.h"

namespace halyard::aot {

using vm::Bank;
using vm::Op;
using Kind = Object::Kind;

namespace {

// As aot/support/hal_buffers.c.
constexpr uint32_t kUsageOfConstants = 0x80000;
constexpr std::string_view kFormat = "vmvx-bytecode-fb";

bool matches(std::string_view pattern, std::string_view name) {
  while (!pattern.empty() && pattern[0] != '*') {
    if (name.empty() || (pattern[0] != '?' && pattern[0] != name[0])) return false;
    pattern.remove_prefix(1);
    name.remove_prefix(1);
  }
  if (pattern.empty()) return name.empty();
  for (;; name.remove_prefix(1)) {
    if (matches(pattern.substr(1), name)) return true;
    if (name.empty()) return false;
  }
}

}  // namespace

ObjectId Lifter::of_kind(ObjectId id, Kind kind) {
  if (id == kNull || id == kUnknownObject || objects_[id].kind != kind) {
    give_up("an object of another type is used");
    return kNull;
  }
  return id;
}

uint64_t Lifter::constant_of(ValueId id) {
  if (!values_.is_constant(id)) {
    give_up("a number of a device call is not known");
    return 0;
  }
  return values_[id].bits;
}

// The characters of a constant.
std::string_view Lifter::text_of(ObjectId id) {
  const Object* const buffer = bytes(id);
  if (buffer == nullptr || memories_[buffer->place.memory].kind != MemoryKind::constant) {
    give_up("a text is not a constant");
    return {};
  }
  const std::span<const uint8_t> all = plan_->module.rodata()[memories_[buffer->place.memory].index]->span();
  return {reinterpret_cast<const char*>(all.data()), all.size()};
}

MemoryId Lifter::constant_memory(uint32_t ordinal) {
  const auto [found, is_new] = constants_.try_emplace({plan_, ordinal}, kNoMemory);
  if (is_new) {
    const uint64_t size = plan_->module.rodata()[ordinal]->span().size();
    found->second = add_memory(
        {.kind = MemoryKind::constant, .bytes = i64(size), .index = ordinal, .is_read_only = true});
  }
  return found->second;
}

ObjectId Lifter::allocate(ValueId length, uint32_t type, uint32_t usage, Nodes& out) {
  const MemoryId memory =
      add_memory({.kind = current == 0 ? MemoryKind::state : MemoryKind::transient, .bytes = length});
  if (!values_.is_constant(length)) {
    // The bytes after those of known buffers.
    if (current == 0 || branches_ != 0) give_up("the size of a buffer depends on a branch");
    out.push_back({.kind = Node::Kind::allocate,
                   .text = memory_name(memory),
                   .uses = {length},
                   .accesses = {{.memory = memory}}});
  } else if (values_[length].bits > (uint64_t{1} << 40)) {
    give_up("a buffer is larger than any memory");
  }
  Object made = {.kind = Kind::buffer, .place = {memory, i64(0), length}};
  made.type = type == 0 ? 0x3E : type | 0x16;
  made.usage = (usage == 0 ? 0xC03 : usage) | 0x3000000;
  return add_object(std::move(made));
}

// A part of a place; all bytes are UINT64_MAX.
Place Lifter::part(const Place& place, ValueId offset, ValueId length, Nodes& out) {
  if (is_stuck() || place.memory == kNoMemory) return {};
  if (values_.is_constant(length, UINT64_MAX))
    length = operate(Op::sub_i64, Bank::i64, {place.length, offset, kNoValue}, out);
  if (values_.is_constant(offset) && values_.is_constant(length) && values_.is_constant(place.length)) {
    const uint64_t from = values_[offset].bits;
    const uint64_t count = values_[length].bits;
    const uint64_t room = values_[place.length].bits;
    if (from > room || count > room - from) give_up("a range is not within its buffer");
  } else if (!(values_.is_constant(offset, 0) && length == place.length)) {
    check_range(offset, length, place.length, 1, out);
  }
  return {place.memory, sum(place.offset, offset, out), length};
}

ObjectId Lifter::create_executable(ObjectId format, ObjectId data, ObjectId constants) {
  if (text_of(format) != kFormat) give_up("an executable has another format");
  const Object* const code = bytes(data);
  if (code == nullptr || (constants != kNull && (bytes(constants) == nullptr ||
                                                 !values_.is_constant(bytes(constants)->place.length, 0)))) {
    give_up("an executable has constants");
    return kNull;
  }
  const Memory& memory = memories_[code->place.memory];
  for (size_t i = 0; i < kernels_.size(); ++i)
    if (memory.kind == MemoryKind::constant && host_.constant(memory.index) == kernels_[i].constant)
      return add_object({.kind = Kind::executable, .kernels = i});
  give_up("an executable is not among the constants");
  return kNull;
}

void Lifter::dispatch(size_t kernels, uint32_t function, const std::array<ValueId, 3>& counts,
                      std::vector<ValueId> constants, std::vector<Place> bindings, Nodes& out) {
  if (is_stuck()) return;
  Node node = {.kind = Node::Kind::dispatch};
  node.site = sites_.size();
  node.uses.assign(counts.begin(), counts.end());
  node.uses.insert(node.uses.end(), constants.begin(), constants.end());
  for (const Place& place : bindings) {
    node.uses.push_back(place.offset);
    node.uses.push_back(place.length);
    node.accesses.push_back({.memory = place.memory, .writes = true});
  }
  sites_.push_back({kernels, function, counts, std::move(constants), std::move(bindings), current});
  out.push_back(std::move(node));
}

// ---- views

// A dimension of a view. That of an argument is a parameter until the program states the type.
ValueId Lifter::dimension(ObjectId id, uint32_t index) {
  const Object& view = objects_[id];
  if (view.argument == SIZE_MAX) return index < view.shape.size() ? view.shape[index] : i64(0);
  Argument& argument = arguments[view.argument];
  if (argument.is_checked) return index < argument.shape.size() ? argument.shape[index] : i64(0);
  while (argument.asked.size() <= index) argument.asked.push_back(kNoValue);
  if (argument.asked[index] == kNoValue)
    argument.asked[index] =
        parameter(Bank::i64, fmt::format("d{}_{}", view.argument, index), {0, INT32_MAX, 1});
  return argument.asked[index];
}

void Lifter::assert_view(Call& call, Nodes& out) {
  const ObjectId id = of_kind(call.arguments[0].object, Kind::view);
  if (is_stuck()) return;
  const std::string_view message = text_of(call.arguments[1].object);
  const auto element_type = static_cast<uint32_t>(constant_of(call.arguments[2].value));
  const auto encoding = static_cast<uint32_t>(constant_of(call.arguments[3].value));
  const uint32_t rank = call.counts[0];
  const Object view = objects_[id];
  if (view.argument != SIZE_MAX && !arguments[view.argument].is_checked) {
    Argument& argument = arguments[view.argument];
    argument.is_checked = true;
    argument.element_type = element_type;
    argument.encoding = encoding;
    argument.name = message;
    if (argument.asked.size() > rank) return give_up("an argument has more dimensions than its type");
    argument.asked.resize(rank, kNoValue);
    for (uint32_t i = 0; i < rank; ++i) {
      const ValueId wanted = call.arguments[4 + i].value;
      const ValueId asked = argument.asked[i];
      if (asked == kNoValue && values_.is_constant(wanted)) {
        argument.shape.push_back(wanted);
        continue;
      }
      const ValueId own = asked != kNoValue ? asked
                                            : parameter(Bank::i64, fmt::format("d{}_{}", view.argument, i),
                                                        {0, INT32_MAX, 1});
      argument.shape.push_back(own);
      if (own == wanted) continue;
      out.push_back(
          {.kind = Node::Kind::check,
           .text = fmt::format("{} != {}", values_.text(own, Bank::i64), values_.text(wanted, Bank::i64)),
           .failure = fmt::format(
               "vm_fail_of(s, {}, 3, \"@ shape dimension mismatch; expected $ but have $\", {}, {})",
               quoted(message), values_.text(wanted, Bank::i64), values_.text(own, Bank::i64)),
           .uses = {own, wanted}});
    }
    objects_[id].shape = argument.shape;
    objects_[id].element_type = i32(element_type);
    objects_[id].encoding = i32(encoding);
    return;
  }
  const std::vector<ValueId>& shape = view.argument != SIZE_MAX ? arguments[view.argument].shape : view.shape;
  bool same = shape.size() == rank && values_.is_constant(view.element_type, element_type) &&
              values_.is_constant(view.encoding, encoding);
  for (uint32_t i = 0; same && i < rank; ++i) same = shape[i] == call.arguments[4 + i].value;
  if (!same) give_up("a view has another type than the program expects");
}

ObjectId Lifter::make_view(ObjectId buffer, const Call& call, size_t first, Nodes& out) {
  const ObjectId from = of_kind(buffer, Kind::buffer);
  if (is_stuck()) return kNull;
  Object range = objects_[from];
  range.place = part(range.place, call.arguments[first].value, call.arguments[first + 1].value, out);
  Object view = {.kind = Kind::view};
  view.buffer = add_object(std::move(range));
  view.element_type = call.arguments[first + 2].value;
  view.encoding = call.arguments[first + 3].value;
  for (uint32_t i = 0; i < call.counts[0]; ++i) view.shape.push_back(call.arguments[first + 4 + i].value);
  return add_object(std::move(view));
}

// ---- imports

bool Lifter::import(Call& call, Nodes& out) {
  std::string_view& callee = call.callee;
  // Functions of hal 0.5 differ in types and flags alone, except for those whose arguments are elsewhere.
  if (callee.starts_with("vmvx_")) return import_microkernel(call, out);
  if (callee.starts_with("io_parameters_")) return import_parameters(call, out);
  if (import_device(call, out) || is_stuck()) return true;
  if (import_queue(call, out) || is_stuck()) return true;
  if (import_commands(call, out) || is_stuck()) return true;
  return import_inline(call, out);
}

bool Lifter::import_device(Call& call, Nodes& out) {
  const std::string_view callee = call.callee;
  const auto object = [&](size_t i) { return call.arguments[i].object; };
  const auto value = [&](size_t i) { return call.arguments[i].value; };
  const auto gives = [&](ObjectId id) {
    call.results.push_back({.object = id, .is_ref = true});
    return true;
  };
  const auto number = [&](ValueId id) {
    call.results.push_back({.value = id});
    return true;
  };
  if (callee == "hal_devices_count") return number(i32(1));
  if (callee == "hal_devices_get") {
    if (constant_of(value(0)) != 0) return gives(kNull);
    if (device_ == kNull) device_ = add_object({.kind = Kind::device});
    return gives(device_);
  }
  if (callee == "hal_device_allocator") {
    of_kind(object(0), Kind::device);
    if (allocator_ == kNull) allocator_ = add_object({.kind = Kind::allocator});
    return gives(allocator_);
  }
  if (callee == "hal_device_query_i64") {
    of_kind(object(0), Kind::device);
    const std::string_view category = text_of(object(1));
    const std::string_view key = text_of(object(2));
    uint64_t answer = 0;
    bool known = true;
    if (category == "hal.device.id")
      answer = matches(key, "local-sync");
    else if (category == "hal.executable.format")
      answer = key == kFormat;
    else if ((category == "hal.device" || category == "hal.dispatch") && key == "concurrency")
      answer = 1;
    else
      known = false;
    number(i32(known));
    return number(i64(answer));
  }
  if (callee == "hal_allocator_allocate") {
    of_kind(object(0), Kind::allocator);
    return gives(allocate(value(4), static_cast<uint32_t>(constant_of(value(2))),
                          static_cast<uint32_t>(constant_of(value(3))), out));
  }
  if (callee == "hal_allocator_import") {
    of_kind(object(0), Kind::allocator);
    const Object* const source = bytes(object(5));
    const auto usage = static_cast<uint32_t>(constant_of(value(4)));
    if (source == nullptr) return true;
    const Place from = source->place;
    if (memories_[from.memory].is_read_only && !(usage & kUsageOfConstants))
      give_up("a constant is imported to be written");
    if (constant_of(value(6)) % 64 != 0) give_up("a constant is not aligned");
    Object made = {.kind = Kind::buffer, .place = part(from, value(6), value(7), out)};
    made.type = static_cast<uint32_t>(constant_of(value(3)));
    made.usage = usage;
    made.is_import = true;
    return gives(add_object(std::move(made)));
  }
  if (callee == "hal_buffer_assert") {
    const ObjectId buffer = of_kind(object(0), Kind::buffer);
    of_kind(object(2), Kind::allocator);
    if (is_stuck()) return true;
    const Object checked = objects_[buffer];
    const auto type = static_cast<uint32_t>(constant_of(value(4)));
    const auto usage = static_cast<uint32_t>(constant_of(value(5)));
    if ((checked.type & type) != type || (checked.usage & usage) != usage)
      give_up("a buffer has another type than the program expects");
    const ValueId minimum = value(3);
    const ValueId length = checked.place.length;
    if (values_.is_constant(minimum) && values_.is_constant(length)) {
      if (values_[length].bits < values_[minimum].bits)
        give_up("a buffer is smaller than the program expects");
    } else if (length != minimum) {
      out.push_back(
          {.kind = Node::Kind::check,
           .text = fmt::format("{} < {}", values_.text(length, Bank::i64), values_.text(minimum, Bank::i64)),
           .failure = fmt::format(
               "vm_fail_of(s, {}, 3, \"@ buffer byte length $ less than expected minimum $\", {}, {})",
               quoted(text_of(object(1))), values_.text(length, Bank::i64), values_.text(minimum, Bank::i64)),
           .uses = {length, minimum}});
    }
    return true;
  }
  if (callee == "hal_buffer_subspan") {
    const ObjectId buffer = of_kind(object(0), Kind::buffer);
    if (is_stuck()) return true;
    Object made = objects_[buffer];
    made.place = part(made.place, value(1), value(2), out);
    return gives(add_object(std::move(made)));
  }
  if (callee == "hal_buffer_length") {
    const ObjectId buffer = of_kind(object(0), Kind::buffer);
    return is_stuck() || number(objects_[buffer].place.length);
  }
  if (callee == "hal_buffer_load") {
    const ObjectId buffer = of_kind(object(0), Kind::buffer);
    const uint64_t size = constant_of(value(2));
    if (is_stuck() || (size != 1 && size != 2 && size != 4)) return false;
    const Place place = part(objects_[buffer].place, value(1), i64(size), out);
    memories_[place.memory].is_read = true;
    const char* const form = size == 1 ? "vm_get_8({})" : size == 2 ? "vm_get_16({})" : "vm_get_32({})";
    const Range range = size == 1 ? Range{0, 255, 1} : size == 2 ? Range{0, 65535, 1} : Range::of(Bank::i32);
    return number(let(Bank::i32, fmt::format(fmt::runtime(form), address(place, i64(0), 1)), {place.offset},
                      true, out, range, {{.memory = place.memory}}));
  }
  if (callee == "hal_buffer_store") {
    const ObjectId buffer = of_kind(object(1), Kind::buffer);
    const uint64_t size = constant_of(value(3));
    if (is_stuck() || objects_[buffer].is_import || (size != 1 && size != 2 && size != 4)) return false;
    const Place place = part(objects_[buffer].place, value(2), i64(size), out);
    memories_[place.memory].is_written = true;
    const std::string low = values_.text(value(0), Bank::i32);
    out.push_back({.kind = Node::Kind::effect,
                   .text = size == 4 ? fmt::format("vm_set_32({}, {});", address(place, i64(0), 1), low)
                           : size == 2
                               ? fmt::format("vm_set_16({}, (uint16_t)({}));", address(place, i64(0), 1), low)
                               : fmt::format("vm_set_8({}, (uint8_t)({}));", address(place, i64(0), 1), low),
                   .uses = {place.offset, value(0)},
                   .accesses = {{.memory = place.memory, .writes = true}}});
    return true;
  }
  if (callee == "hal_buffer_view_create") return gives(make_view(object(0), call, 1, out));
  if (callee == "hal_buffer_view_assert") {
    assert_view(call, out);
    return true;
  }
  if (callee.starts_with("hal_buffer_view_")) {
    const ObjectId id = of_kind(object(0), Kind::view);
    if (is_stuck()) return true;
    const Object view = objects_[id];
    if (callee == "hal_buffer_view_buffer") {
      if (view.argument != SIZE_MAX) {
        // The bytes of the argument are those of its type.
        Argument& argument = arguments[view.argument];
        if (!argument.is_checked) give_up("the program does not state the type of an argument");
        if (is_stuck()) return true;
        Memory& memory = memories_[argument.memory];
        if (memory.bytes == kNoValue) {
          const uint32_t bits = argument.element_type & 0xFF;
          ValueId size = i64(bits == 0 ? 1 : (bits + 7) / 8);
          for (const ValueId each : argument.shape)
            size = operate(Op::mul_i64, Bank::i64, {size, each, kNoValue}, out);
          memories_[argument.memory].bytes = size;
          if (values_.is_constant(size)) {
            memories_[argument.memory].has_size = true;
            memories_[argument.memory].size = values_[size].bits;
          }
          objects_[view.buffer].place = {argument.memory, i64(0), size};
        }
      }
      return gives(view.buffer);
    }
    if (view.argument != SIZE_MAX && !arguments[view.argument].is_checked &&
        callee != "hal_buffer_view_dim") {
      give_up("the program reads the type of an argument");
      return true;
    }
    if (callee == "hal_buffer_view_element_type") return number(view.element_type);
    if (callee == "hal_buffer_view_encoding_type") return number(view.encoding);
    if (callee == "hal_buffer_view_rank") return number(i32(static_cast<uint32_t>(view.shape.size())));
    if (callee == "hal_buffer_view_dim")
      return number(dimension(id, static_cast<uint32_t>(constant_of(value(1)))));
  }
  if (callee == "hal_executable_create") return gives(create_executable(object(2), object(3), object(4)));
  if (callee == "hal_executable_create_5") return gives(create_executable(object(1), object(2), object(3)));
  if (callee == "hal_executable_lookup_function") {
    const ObjectId id = of_kind(object(0), Kind::executable);
    const std::string_view name = text_of(object(1));
    if (is_stuck()) return true;
    uint64_t index = 0;
    for (const vm::Export& each : kernels_[objects_[id].kernels].module->exports()) {
      if (each.name.starts_with("__")) continue;
      if (each.name == name) return number(i64(index));
      ++index;
    }
    give_up("a kernel is not in its executable");
    return true;
  }
  return false;
}

bool Lifter::import_queue(Call& call, Nodes& out) {
  const std::string_view callee = call.callee;
  const auto object = [&](size_t i) { return call.arguments[i].object; };
  const auto value = [&](size_t i) { return call.arguments[i].value; };
  const auto gives = [&](ObjectId id) {
    call.results.push_back({.object = id, .is_ref = true});
    return true;
  };
  const auto buffer = [&](size_t i) {
    const ObjectId id = of_kind(object(i), Kind::buffer);
    return is_stuck() ? Place{} : objects_[id].place;
  };
  const auto low = [&](size_t i) { return static_cast<uint32_t>(constant_of(value(i))); };
  // Work runs in the order of the program, so all fences are reached.
  if (callee.starts_with("hal_fence_create")) return gives(add_object({.kind = Kind::fence}));
  if (callee.starts_with("hal_fence_join")) {
    for (const Returned& each : call.arguments)
      if (each.is_ref && each.object != kNull) return gives(each.object);
    return gives(kNull);
  }
  if (callee.starts_with("hal_fence_await")) {
    call.results.push_back({.value = i32(0)});
    return true;
  }
  if (!callee.starts_with("hal_queue_")) {
    if (callee != "hal_file_from_memory") return false;
    of_kind(object(0), Kind::device);
    const Object* const source = bytes(object(3));
    if (source == nullptr) return true;
    Object made = {.kind = Kind::file, .place = part(source->place, value(4), value(5), out)};
    return gives(add_object(std::move(made)));
  }
  of_kind(object(0), Kind::device);
  if (is_stuck()) return true;
  if (callee == "hal_queue_alloca" || callee == "hal_queue_alloca_5") {
    if (constant_of(value(4)) != 0) give_up("a pool is named");
    return gives(allocate(value(7), low(5), low(6), out));
  }
  if (callee.starts_with("hal_queue_dealloca")) {
    of_kind(object(4), Kind::buffer);
    return true;
  }
  if (callee == "hal_queue_barrier" || callee == "hal_queue_flush") return true;
  if (callee == "hal_queue_fill") {
    const Place target = part(buffer(4), value(5), value(6), out);
    const uint32_t width = low(8);
    if (is_stuck()) return true;
    if (width != 1 && width != 2 && width != 4) give_up("a pattern has another size");
    if (constant_of(value(5)) % width != 0 || constant_of(target.length) % width != 0)
      give_up("a pattern does not fit");
    if (!is_stuck()) fill(target, value(7), width, out);
    return true;
  }
  if (callee == "hal_queue_copy") {
    const Place source = part(buffer(4), value(5), value(8), out);
    const Place target = part(buffer(6), value(7), source.length, out);
    if (!is_stuck()) copy(source, target, out);
    return true;
  }
  if (callee == "hal_queue_update") {
    const Object* const from = bytes(object(4));
    if (from == nullptr) return true;
    const Place source = part(from->place, value(5), value(8), out);
    const Place target = part(buffer(6), value(7), value(8), out);
    if (!is_stuck()) copy(source, target, out);
    return true;
  }
  if (callee.starts_with("hal_queue_read")) {
    const ObjectId file = of_kind(object(4), Kind::file);
    if (is_stuck()) return true;
    const Place target = part(buffer(6), value(7), value(8), out);
    const Place source = part(objects_[file].place, value(5), target.length, out);
    if (!is_stuck()) copy(source, target, out);
    return true;
  }
  if (callee == "hal_queue_execute_list") {
    for (size_t i = 4; i < call.arguments.size(); ++i) {
      const ObjectId id = of_kind(object(i), Kind::commands);
      if (is_stuck()) return true;
      if (!objects_[id].is_final) give_up("a command buffer is not finalized");
      const std::vector<Command> commands = objects_[id].commands;
      for (const Command& each : commands) run(each, {}, out);
    }
    return true;
  }
  if (callee == "hal_queue_execute" || callee.starts_with("hal_queue_execute_indirect")) {
    const ObjectId id = of_kind(object(4), Kind::commands);
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
  const auto object = [&](size_t i) { return call.arguments[i].object; };
  const auto value = [&](size_t i) { return call.arguments[i].value; };
  const auto low = [&](size_t i) { return static_cast<uint32_t>(constant_of(value(i))); };
  if (branches_ != 0) {
    give_up("commands are recorded in a branch");
    return true;
  }
  if (callee == "hal_command_buffer_create") {
    of_kind(object(0), Kind::device);
    Object made = {.kind = Kind::commands};
    made.modes = low(1);
    made.categories = low(2);
    made.capacity = low(4);
    if (made.modes & ~3u) give_up("a command buffer has an unusual mode");
    call.results.push_back({.object = add_object(std::move(made)), .is_ref = true});
    return true;
  }
  const ObjectId id = of_kind(object(0), Kind::commands);
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
    if (values_.is_constant(value(3), 0)) return true;
    Command command = {.kind = Command::Kind::fill};
    bind(command, object(1), value(4), value(2), value(3), 2);
    command.width = low(6);
    if (command.width != 1 && command.width != 2 && command.width != 4) give_up("a pattern has another size");
    command.pattern = value(5);
    return is_stuck() || add(std::move(command));
  }
  if (callee.starts_with("hal_command_buffer_update_buffer")) {
    Command command = {.kind = Command::Kind::update};
    const Object* const from = bytes(object(1));
    if (from == nullptr) return true;
    if (memories_[from->place.memory].kind != MemoryKind::constant)
      give_up("a command keeps bytes that may change");
    part(from->place, value(2), value(5), out);
    command.bytes = object(1);
    command.bytes_offset = value(2);
    bind(command, object(3), value(6), value(4), value(5), 2);
    return is_stuck() || add(std::move(command));
  }
  if (callee.starts_with("hal_command_buffer_copy_buffer")) {
    if (values_.is_constant(value(7), 0)) return true;
    Command command = {.kind = Command::Kind::copy};
    bind(command, object(3), value(1), value(4), value(7), 1);
    bind(command, object(5), value(2), value(6), value(7), 2);
    return is_stuck() || add(std::move(command));
  }
  if (callee == "hal_command_buffer_dispatch" || callee == "hal_command_buffer_dispatch_5") {
    Command command = {.kind = Command::Kind::dispatch};
    command.executable = of_kind(object(1), Kind::executable);
    command.function = low(2);
    if (is_stuck()) return true;
    command.counts = {value(3), value(4), value(5)};
    for (uint32_t i = 0; i < call.counts[0]; ++i) command.constants.push_back(value(7 + i));
    for (uint32_t i = 0; i < call.counts[1]; ++i) {
      const size_t first = 7 + call.counts[0] + 5 * size_t{i};
      bind(command, object(first + 2), value(first + 1), value(first + 3), value(first + 4), 0xC00);
    }
    return is_stuck() || add(std::move(command));
  }
  return false;
}

bool Lifter::import_inline(Call& call, Nodes& out) {
  const std::string_view callee = call.callee;
  const auto object = [&](size_t i) { return call.arguments[i].object; };
  const auto value = [&](size_t i) { return call.arguments[i].value; };
  const auto gives = [&](ObjectId id) {
    call.results.push_back({.object = id, .is_ref = true});
    return true;
  };
  const auto storage = [&](const Place& place) {
    Object made = {.kind = Kind::bytes, .place = place};
    return add_object(std::move(made));
  };
  if (callee == "hal_inline_buffer_allocate" || callee == "hal_inline_buffer_allocate_initialized") {
    const bool has_source = callee != "hal_inline_buffer_allocate";
    const uint64_t alignment = constant_of(value(0));
    if ((alignment & (alignment - 1)) != 0 || alignment > 64)
      give_up("a buffer is aligned in an unusual way");
    Place source;
    if (has_source) {
      const Object* const from = bytes(object(1));
      if (from == nullptr) return true;
      source = part(from->place, value(2), value(3), out);
    }
    if (is_stuck()) return true;
    const ObjectId buffer = allocate(value(has_source ? 3 : 1), 0, 0, out);
    const Place place = objects_[buffer].place;
    if (has_source) {
      copy(source, place, out);
    } else if (!values_.is_constant(place.length, 0)) {
      memories_[place.memory].is_zeroed = true;
      out.push_back({.kind = Node::Kind::effect,
                     .text = fmt::format("memset({}, 0, {});", memory_name(place.memory),
                                         values_.size_text(place.length)),
                     .uses = {place.length},
                     .accesses = {{.memory = place.memory, .writes = true}}});
    }
    gives(buffer);
    return gives(storage(place));
  }
  if (callee == "hal_inline_buffer_wrap") {
    const Object* const from = bytes(object(0));
    if (from == nullptr) return true;
    Object made = {.kind = Kind::buffer, .place = part(from->place, value(1), value(2), out)};
    made.type = 0x3E;
    made.usage = 0x3000C03;
    return gives(add_object(std::move(made)));
  }
  if (callee == "hal_storage") {
    const ObjectId buffer = of_kind(object(0), Kind::buffer);
    return is_stuck() || gives(storage(objects_[buffer].place));
  }
  if (callee == "hal_loader_query_support") {
    call.results.push_back({.value = i32(text_of(object(0)) == kFormat)});
    return true;
  }
  if (callee == "hal_loader_load") return gives(create_executable(object(0), object(1), object(2)));
  if (callee == "hal_loader_dispatch") {
    const ObjectId id = of_kind(object(0), Kind::executable);
    const auto function = static_cast<uint32_t>(constant_of(value(1)));
    if (is_stuck()) return true;
    std::vector<ValueId> constants;
    std::vector<Place> bindings;
    for (uint32_t i = 0; i < call.counts[0]; ++i) constants.push_back(value(5 + i));
    for (uint32_t i = 0; i < call.counts[1]; ++i) {
      const size_t first = 5 + call.counts[0] + 3 * size_t{i};
      const Object* const from = bytes(object(first));
      if (from == nullptr) return true;
      bindings.push_back(part(from->place, value(first + 1), value(first + 2), out));
    }
    if (!is_stuck())
      dispatch(objects_[id].kernels, function, {value(2), value(3), value(4)}, std::move(constants),
               std::move(bindings), out);
    return true;
  }
  return false;
}

// Parameters are constants of the program, or bytes that its caller gives.
bool Lifter::import_parameters(Call& call, Nodes& out) {
  const bool loads = call.callee == "io_parameters_load";
  const auto object = [&](size_t i) { return call.arguments[i].object; };
  of_kind(object(0), Kind::device);
  const std::string scope = object(4) == kNull ? std::string() : std::string(text_of(object(4)));
  const std::string_view table = text_of(object(loads ? 8 : 6));
  const std::string_view keys = text_of(object(loads ? 9 : 7));
  const std::string_view spans = text_of(object(loads ? 10 : 8));
  if (is_stuck()) return true;
  if (current != 0) give_up("parameters are loaded after the start");
  const auto word = [](std::string_view text, size_t at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= uint64_t{static_cast<uint8_t>(text[at + i])} << (8 * i);
    return value;
  };
  const size_t count = spans.size() / 24;
  if (table.size() < 8 * count) give_up("a table of parameters is too short");
  Object list = {.kind = Kind::list};
  for (size_t i = 0; i < count && !is_stuck(); ++i) {
    const uint64_t begin = word(table, 8 * i, 4);
    const uint64_t length = word(table, 8 * i + 4, 4);
    if (begin > keys.size() || length > keys.size() - begin) {
      give_up("a key of a parameter is outside of its table");
      return true;
    }
    const std::string key(keys.substr(begin, length));
    const uint64_t from = word(spans, 24 * i, 8);
    const uint64_t to = word(spans, 24 * i + 8, 8);
    const uint64_t size = word(spans, 24 * i + 16, 8);
    if (from > (uint64_t{1} << 40) || size > (uint64_t{1} << 40) || (loads && to != 0))
      give_up("a range of a parameter is too large");
    auto found = std::ranges::find_if(
        parameters, [&](const UsedParameter& each) { return each.scope == scope && each.key == key; });
    if (found == parameters.end()) {
      UsedParameter used = {.scope = scope, .key = key};
      for (const ParameterBytes& each : given)
        if (used.baked == nullptr && each.scope == scope && each.key == key) used.baked = &each;
      parameters.push_back(used);
      found = parameters.end() - 1;
    }
    if (found->baked != nullptr && (from > found->baked->length || size > found->baked->length - from))
      give_up(fmt::format("parameter '{}' of scope '{}' has {} bytes; the program reads {} bytes at {}", key,
                          scope, found->baked->length, size, from));
    if (found->baked != nullptr && found->baked->bytes.empty() && found->baked->length != 0)
      give_up(fmt::format("parameter '{}' of scope '{}' is a pattern, which is not translated", key, scope));
    if (is_stuck()) return true;
    found->length = std::max(found->length, from + size);
    const auto index = static_cast<size_t>(found - parameters.begin());
    MemoryId memory = kNoMemory;
    for (MemoryId id = 0; id < memories_.size(); ++id)
      if (memories_[id].parameter == index) memory = id;
    if (memory == kNoMemory)
      memory = add_memory(
          {.kind = MemoryKind::constant, .bytes = i64(0), .is_read_only = true, .parameter = index});
    memories_[memory].size = found->length;
    if (!loads) {
      const ObjectId target = of_kind(object(5), Kind::buffer);
      if (is_stuck()) return true;
      const Place place = part(objects_[target].place, i64(to), i64(size), out);
      if (!is_stuck()) copy({memory, i64(from), i64(size)}, place, out);
      continue;
    }
    Object made = {.kind = Kind::buffer, .place = {memory, i64(from), i64(size)}};
    const auto type = static_cast<uint32_t>(constant_of(call.arguments[6].value));
    const auto usage = static_cast<uint32_t>(constant_of(call.arguments[7].value));
    made.type = type == 0 ? 0x3E : type | 0x16;
    made.usage = (usage == 0 ? 0xC03 : usage) | 0x3000000;
    list.elements.push_back(add_object(std::move(made)));
  }
  if (loads) call.results.push_back({.object = add_object(std::move(list)), .is_ref = true});
  return true;
}

// Microkernels work on buffers, which are made for the call.
bool Lifter::import_microkernel(Call& call, Nodes& out) {
  if (call.callee == "vmvx_query_tile_sizes_2d") {
    const uint64_t role = constant_of(call.arguments[2].value) & 0xFF;
    if (role < 1 || role > 3) give_up("an operand of tiles is not known");
    call.results.push_back({.value = i64(8)});
    call.results.push_back({.value = i64(role == 3 ? 8 : 1)});
    return true;
  }
  std::string arguments;
  std::vector<ValueId> uses;
  std::vector<Access> accesses;
  size_t last = 0;
  for (size_t i = 0; i < call.arguments.size(); ++i)
    if (call.arguments[i].is_ref) last = i;
  const std::string_view convention = [&]() -> std::string_view {
    for (const vm::Import& each : plan_->module.imports()) {
      std::string name = each.name.empty() ? "" : std::string(each.name);
      std::ranges::replace(name, '.', '_');
      if (name == call.callee) return each.convention;
    }
    return "";
  }();
  if (convention.empty()) return false;
  const Types types = types_of(convention);
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (!call.arguments[i].is_ref) {
      arguments += ", " + values_.text(call.arguments[i].value, bank_of(types.arguments[i]));
      uses.push_back(call.arguments[i].value);
      continue;
    }
    const Object* const buffer = bytes(call.arguments[i].object);
    if (buffer == nullptr) return true;
    const Place place = buffer->place;
    const bool writes = i == last;
    if (writes && memories_[place.memory].is_read_only)
      give_up("the program writes to a buffer that is read-only");
    (writes ? memories_[place.memory].is_written : memories_[place.memory].is_read) = true;
    if (writes) memories_[place.memory].is_read = true;
    const ValueId id = values_.add({.name = fmt::format("h{}", values_.size())});
    out.push_back({.kind = Node::Kind::effect,
                   .text = fmt::format("vm_buffer {} = vm_bytes({}, {}, {});", values_[id].name,
                                       address(place, i64(0), 1), values_.text(place.length, Bank::i64),
                                       writes ? 1 : 0),
                   .uses = {place.offset, place.length},
                   .accesses = {{.memory = place.memory, .writes = writes}}});
    arguments += fmt::format(", &{}.object", values_[id].name);
    accesses.push_back({.memory = place.memory, .writes = writes});
  }
  out.push_back({.kind = Node::Kind::attempt,
                 .text = fmt::format("{}(s{})", call.callee, arguments),
                 .uses = std::move(uses),
                 .accesses = std::move(accesses)});
  return true;
}

}  // namespace halyard::aot
