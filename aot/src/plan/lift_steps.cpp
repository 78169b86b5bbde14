// Single instructions: numbers, memory, refs and calls.
#include <fmt/core.h>

#include <optional>

#include "aot/c_text.h"
#include "plan/decided.h"
#include "plan/lifter.h"
#include "vm/format/opcode_traits.h"
#include "vm/module/calling_convention.h"

namespace halyard::aot {

using vm::Bank;
using vm::Op;
using vm::OperandKind;

// ---- values

ValueId Lifter::let(Bank bank, std::string text, std::vector<ValueId> uses, bool removable, Nodes& out,
                    Range range, std::vector<Access> accesses) {
  Value value = {.bank = bank, .range = range, .name = fmt::format("v{}", values_.size()), .text = text};
  value.scope = static_cast<uint32_t>(current);
  value.is_narrow = bank == Bank::i64 && range.is_narrow();
  const ValueId id = values_.add(std::move(value));
  out.push_back({.kind = Node::Kind::let,
                 .value = id,
                 .text = std::move(text),
                 .uses = std::move(uses),
                 .removable = removable,
                 .accesses = std::move(accesses)});
  return id;
}

ValueId Lifter::variable(Bank bank, ValueId first, Range range, Nodes& out) {
  Value value = {
      .bank = bank, .is_variable = true, .range = range, .name = fmt::format("p{}", values_.size())};
  value.scope = static_cast<uint32_t>(current);
  value.is_narrow = bank == Bank::i64 && range.is_narrow();
  const ValueId id = values_.add(std::move(value));
  Node node = {.kind = Node::Kind::variable, .value = id};
  if (first != kNoValue) node.uses = {first};
  out.push_back(std::move(node));
  return id;
}

// The value with the type of a bank of the same width.
ValueId Lifter::as(ValueId value, Bank bank, Nodes& out) {
  if (values_[value].bank == bank) return value;
  if (values_[value].is_constant) return values_.constant(bank, values_[value].bits);
  return let(bank, values_.text(value, bank), {value}, true, out, Range::of(bank));
}

ValueId Lifter::read(State& state, uint16_t slot, Bank bank, Nodes& out) {
  const Slot low = state.slots[slot];
  if (!vm::is_wide(bank)) {
    const Value& value = values_[low.value];
    if (low.part == 0) return as(low.value, bank, out);
    if (value.is_constant)
      return values_.constant(bank, low.part == 1 ? value.bits & 0xFFFFFFFF : value.bits >> 32);
    const ValueId half =
        low.part == 1
            ? operate(Op::trunc_i64_i32, Bank::i32, {as(low.value, Bank::i64, out), kNoValue, kNoValue}, out)
            : let(Bank::i32, fmt::format("(uint32_t)({} >> 32)", values_.text(low.value, Bank::i64)),
                  {low.value}, true, out, Range::of(Bank::i32));
    return as(half, bank, out);
  }
  const Slot high = state.slots[slot + 1u];
  if (low.part == 1 && high == Slot{low.value, 2}) return as(low.value, bank, out);
  const ValueId x = read(state, slot, Bank::i32, out);
  const ValueId y = read(state, static_cast<uint16_t>(slot + 1), Bank::i32, out);
  if (values_.is_constant(x) && values_.is_constant(y))
    return values_.constant(bank, values_[x].bits | values_[y].bits << 32);
  const ValueId both =
      let(Bank::i64, fmt::format("vm_pair({}, {})", values_.text(x, Bank::i32), values_.text(y, Bank::i32)),
          {x, y}, true, out, Range::of(Bank::i64));
  return as(both, bank, out);
}

void Lifter::write(State& state, uint16_t slot, Bank bank, ValueId value) {
  if (!vm::is_wide(bank)) {
    state.slots[slot] = {value, 0};
    return;
  }
  state.slots[slot] = {value, 1};
  state.slots[slot + 1u] = {value, 2};
}

std::string Lifter::expand(std::string_view form, const std::array<ValueId, 6>& operands,
                           const std::array<Bank, 6>& banks) {
  std::string text;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '$') {
      text += form[i];
      continue;
    }
    const auto index = static_cast<size_t>(form[++i] - '0');
    text += values_.text(operands[index], banks[index]);
  }
  return text;
}

// An operation without effects, of at most three values.
ValueId Lifter::operate(Op op, Bank bank, std::array<ValueId, 3> operands, Nodes& out) {
  if (is_stuck()) return values_.constant(bank, 0);
  uint64_t bits = 0;
  if (values_.fold(op, operands, &bits)) return values_.constant(bank, bits);
  const auto is = [&](size_t i, uint64_t constant) { return values_.is_constant(operands[i], constant); };
  switch (op) {
    case Op::add_i32:
    case Op::add_i64:
    case Op::or_i32:
    case Op::or_i64:
    case Op::xor_i32:
    case Op::xor_i64:
      if (is(0, 0)) return operands[1];
      if (is(1, 0)) return operands[0];
      break;
    case Op::sub_i32:
    case Op::sub_i64:
    case Op::shl_i32:
    case Op::shl_i64:
    case Op::shr_i32_s:
    case Op::shr_i32_u:
    case Op::shr_i64_s:
    case Op::shr_i64_u:
      if (is(1, 0)) return operands[0];
      break;
    case Op::mul_i32:
    case Op::mul_i64:
      if (is(0, 1)) return operands[1];
      if (is(1, 1)) return operands[0];
      if (is(0, 0) || is(1, 0)) return values_.constant(bank, 0);
      break;
    case Op::div_i32_s:
    case Op::div_i32_u:
    case Op::div_i64_s:
    case Op::div_i64_u:
      if (is(1, 1)) return operands[0];
      break;
    case Op::select_i32:
    case Op::select_i64:
    case Op::select_f32:
    case Op::select_f64:
      if (values_.is_constant(operands[0])) return operands[values_[operands[0]].bits != 0 ? 1 : 2];
      if (operands[1] == operands[2]) return operands[1];
      break;
    default:
      break;
  }
  const Range range = values_.range(op, operands, bank);
  if (range.low == range.high && (bank == Bank::i32 || bank == Bank::i64))
    return values_.constant(bank, static_cast<uint64_t>(range.low));
  if (const std::optional<ValueId> known = decided(values_, op, operands)) return *known;
  const auto low = [&](size_t i) { return values_[operands[i]].range.low; };

  const vm::OpInfo& facts = vm::info(op);
  std::array<ValueId, 6> six = {};
  std::array<Bank, 6> banks = {};
  std::vector<ValueId> uses;
  for (size_t i = 0; i < 3 && operands[i] != kNoValue; ++i) {
    six[i] = operands[i];
    banks[i] = facts.operands[i].bank;
    uses.push_back(operands[i]);
  }
  std::string text;
  const bool is_narrow = bank == Bank::i64 && range.is_narrow();
  const auto narrow = [&](size_t i) { return values_[operands[i]].is_narrow; };
  switch (op) {
    case Op::add_i64:
    case Op::sub_i64:
    case Op::mul_i64:
    case Op::fma_i64:
    case Op::and_i64:
    case Op::or_i64:
    case Op::xor_i64:
      // The low half of the result depends on the low halves alone.
      if (is_narrow) text = expand(form_of(op).text, six, {Bank::i32, Bank::i32, Bank::i32});
      break;
    case Op::ext_i32_i64_s:
    case Op::ext_i32_i64_u:
      if (is_narrow) text = values_.text(operands[0], Bank::i32);
      break;
    case Op::div_i64_s:
    case Op::div_i64_u:
      if (is_narrow && narrow(0) && narrow(1))
        text = fmt::format("{} / {}", values_.low_text(operands[0]), values_.low_text(operands[1]));
      break;
    case Op::rem_i64_s:
    case Op::rem_i64_u:
      if (is_narrow && narrow(0) && narrow(1))
        text = fmt::format("{} % {}", values_.low_text(operands[0]), values_.low_text(operands[1]));
      break;
    case Op::cmp_lt_i64_s:
    case Op::cmp_lt_i64_u:
      if (narrow(0) && narrow(1))
        text = fmt::format("{} < {}", values_.low_text(operands[0]), values_.low_text(operands[1]));
      break;
    case Op::cmp_eq_i64:
    case Op::cmp_ne_i64:
      if (narrow(0) && narrow(1))
        text = fmt::format("{} {} {}", values_.low_text(operands[0]),
                           op == Op::cmp_eq_i64 ? "==" : "!=", values_.low_text(operands[1]));
      break;
    case Op::div_i32_s:
    case Op::rem_i32_s:
      if (low(0) >= 0 && low(1) > 0)
        text = fmt::format("{} {} {}", values_.low_text(operands[0]), op == Op::div_i32_s ? "/" : "%",
                           values_.low_text(operands[1]));
      break;
    default:
      break;
  }
  if (text.empty()) {
    text = expand(form_of(op).text, six, banks);
    if (is_narrow) text = fmt::format("(uint32_t)({})", text);
  }
  const Affine affine =
      bank == Bank::i32 || bank == Bank::i64 ? values_.affine(op, operands, range) : Affine{};
  const ValueId id = let(bank, std::move(text), std::move(uses), true, out, range);
  values_.at(id).op = op;
  values_.at(id).operands = operands;
  values_.at(id).affine = affine;
  // A quotient of numbers that no loop changes is such a number, too.
  const bool is_quotient = op == Op::div_i32_u || op == Op::div_i32_s || op == Op::div_i64_u ||
                           op == Op::div_i64_s || op == Op::shr_i32_u || op == Op::shr_i64_u;
  if (is_quotient && !range.is_full(bank) && values_.is_fixed(operands[0]) && values_.is_fixed(operands[1]))
    values_.at(id).affine = {true, 0, {{id, 1}}};
  return id;
}

// A comparison is written where it decides, so its operands are used there.
Node Lifter::branch_on(ValueId condition, bool negated) {
  Node node = {.kind = Node::Kind::branch, .text = condition_text(condition, negated), .uses = {condition}};
  node.condition = condition;
  const Value& value = values_[condition];
  if (value.op != Op::kCount && vm::info(value.op).mnemonic().starts_with("cmp.")) {
    node.uses.clear();
    for (const ValueId each : value.operands)
      if (each != kNoValue) node.uses.push_back(each);
  }
  return node;
}

std::string Lifter::condition_text(ValueId condition, bool negated) {
  const Value& value = values_[condition];
  const bool is_comparison = value.op != Op::kCount && vm::info(value.op).mnemonic().starts_with("cmp.");
  if (is_comparison) return negated ? fmt::format("!({})", value.text) : value.text;
  return fmt::format("{} {} 0", values_.text(condition, Bank::i32), negated ? "==" : "!=");
}

// ---- memory

const Object* Lifter::bytes(ObjectId id) {
  if (id == kNull || id == kUnknownObject || objects_[id].kind != Object::Kind::bytes) {
    give_up("a buffer is not known");
    return nullptr;
  }
  return &objects_[id];
}

ValueId Lifter::sum(ValueId a, ValueId b, Nodes& out) {
  if (is_stuck()) return i64(0);
  return operate(Op::add_i64, Bank::i64, {a, b, kNoValue}, out);
}

// Fails unless `length` elements from `offset` are within `limit` bytes.
void Lifter::check_range(ValueId offset, ValueId length, ValueId limit, uint32_t width, Nodes& out) {
  if (is_stuck()) return;
  const Range& from = values_[offset].range;
  const Range& count = values_[length].range;
  const Range& room = values_[limit].range;
  if (from.low >= 0 && count.low >= 0 && room.low >= 0 &&
      static_cast<__int128>(from.high) + count.high <= room.low / static_cast<int64_t>(width))
    return;
  const std::string size = values_.is_constant(limit)
                               ? fmt::format("UINT64_C({})", values_[limit].bits / width)
                           : width == 1 ? values_.text(limit, Bank::i64)
                                        : fmt::format("{} / {}", values_.text(limit, Bank::i64), width);
  const std::string x = values_.text(offset, Bank::i64);
  const std::string n = values_.text(length, Bank::i64);
  const std::string text = values_.is_constant(length, 1) ? fmt::format("{} >= {}", x, size)
                           : values_.is_constant(offset, 0)
                               ? fmt::format("{} > {}", n, size)
                               : fmt::format("{} > {} || {} > {} - {}", x, size, n, size, x);
  out.push_back(
      {.kind = Node::Kind::check,
       .text = text,
       .failure = fmt::format("vm_outside(s, {}, {}, {}, {})", n, width, x, values_.text(limit, Bank::i64)),
       .uses = {offset, length, limit}});
}

std::string Lifter::address(const Place& place, ValueId index, uint32_t width) {
  std::string text = memory_name(place.memory);
  if (!values_.is_constant(place.offset, 0)) text += " + " + values_.size_text(place.offset);
  if (!values_.is_constant(index, 0)) {
    if (values_.is_constant(index))
      text += fmt::format(" + {}u", values_[index].bits * width);
    else
      text += " + " + (width == 1 ? values_.size_text(index)
                                  : fmt::format("{}u * {}", width, values_.size_text(index)));
  }
  return text;
}

// Loads and stores.
void Lifter::access(Context& context, State& state, size_t at, Nodes& out) {
  const vm::Instruction& instruction = context.body->flow().instruction(at);
  const vm::OpInfo& op = vm::info(instruction.op);
  const auto [element_access, width] = vm::elements_of(instruction.op);
  const bool stores = element_access == vm::ElementAccess::store;
  const Bank bank = op.operands[2].bank;
  const std::string_view form = form_of(instruction.op).text;
  const Object* const buffer = bytes(ref(context, state, instruction.operands[0].reg));
  if (buffer == nullptr) return;
  const Place place = buffer->place;
  const ValueId index = read(state, instruction.operands[1].reg, Bank::i64, out);
  // "vm_element($v0, $1, 4)" is the address.
  const size_t begin = form.find("vm_element(");
  const size_t end = form.find(')', begin);
  if (memories_[place.memory].is_read_only && stores)
    return give_up("the program writes to a buffer that is read-only");
  if (memories_[place.memory].kind == MemoryKind::constants) {
    if (!values_.is_constant(index) || width != 4 || values_[index].bits >= constants.size())
      return give_up("a kernel reads its constants in an unusual way");
    return write(state, instruction.operands[2].reg, bank, as(constants[values_[index].bits], bank, out));
  }
  if (has_checks) check_range(index, i64(1), place.length, width, out);
  Access access = {.memory = place.memory, .writes = stores, .width = width, .index = index};
  access.offset = values_.is_constant(place.offset) ? static_cast<int64_t>(values_[place.offset].bits) : 0;
  if (!values_.is_constant(place.offset)) access.width = 0;
  std::array<ValueId, 6> operands = {};
  std::array<Bank, 6> banks = {};
  std::vector<ValueId> uses = {index, place.offset};
  if (stores) {
    operands[2] = read(state, instruction.operands[2].reg, bank, out);
    banks[2] = bank;
    uses.push_back(operands[2]);
  }
  const std::string text = expand(form.substr(0, begin), operands, banks) + address(place, index, width) +
                           expand(form.substr(end + 1), operands, banks);
  if (stores) {
    memories_[place.memory].is_written = true;
    out.push_back(
        {.kind = Node::Kind::effect, .text = text + ";", .uses = std::move(uses), .accesses = {access}});
    return;
  }
  memories_[place.memory].is_read = true;
  const Range range = values_.range(instruction.op, {kNoValue, kNoValue, kNoValue}, bank);
  const ValueId loaded = let(bank, text, std::move(uses), true, out, range, {access});
  write(state, instruction.operands[2].reg, bank, loaded);
}

// Fills, copies and lengths of whole ranges.
void Lifter::whole(Context& context, State& state, size_t at, Nodes& out) {
  const vm::Instruction& instruction = context.body->flow().instruction(at);
  const auto number = [&](size_t i, Bank bank) {
    return read(state, instruction.operands[i].reg, bank, out);
  };
  const auto object = [&](size_t i) { return ref(context, state, instruction.operands[i].reg); };
  if (vm::elements_of(instruction.op).access == vm::ElementAccess::fill) {
    const Object* const buffer = bytes(object(0));
    if (buffer == nullptr) return;
    const Place place = buffer->place;
    if (memories_[place.memory].is_read_only)
      return give_up("the program writes to a buffer that is read-only");
    const uint32_t width = vm::elements_of(instruction.op).bytes;
    const ValueId offset = number(1, Bank::i64);
    const ValueId length = number(2, Bank::i64);
    const Bank bank = vm::info(instruction.op).operands[3].bank;
    const ValueId value = as(number(3, bank), vm::is_wide(bank) ? Bank::i64 : Bank::i32, out);
    check_range(offset, length, place.length, width, out);
    const ValueId first = operate(Op::mul_i64, Bank::i64, {offset, i64(width), kNoValue}, out);
    const ValueId size = operate(Op::mul_i64, Bank::i64, {length, i64(width), kNoValue}, out);
    return fill({place.memory, sum(place.offset, first, out), size}, value, width, out);
  }
  switch (instruction.op) {
    case Op::buffer_alloc: {
      const ValueId length = number(0, Bank::i64);
      const ValueId alignment = number(1, Bank::i32);
      if (!values_.is_constant(length) || !values_.is_constant(alignment) ||
          values_[length].bits > (1u << 30) || values_[alignment].bits > 64 ||
          (values_[alignment].bits & (values_[alignment].bits - 1)) != 0)
        return give_up("the size of a buffer of the virtual machine is not known");
      const MemoryId memory = add_memory(
          {.kind = current == 0 && plan_->role == Role::host ? MemoryKind::state : MemoryKind::transient,
           .bytes = length,
           .is_written = true,
           .is_zeroed = true});
      Object made = {.kind = Object::Kind::bytes, .place = {memory, i64(0), length}};
      state.refs[instruction.operands[2].reg & vm::kRefOrdinalMask] = add_object(std::move(made));
      if (values_[length].bits != 0)
        out.push_back({.kind = Node::Kind::effect,
                       .text = fmt::format("memset({}, 0, {}u);", memory_name(memory), values_[length].bits),
                       .accesses = {{.memory = memory, .writes = true}}});
      return;
    }
    case Op::buffer_length: {
      const Object* const buffer = bytes(object(0));
      if (buffer != nullptr) write(state, instruction.operands[1].reg, Bank::i64, buffer->place.length);
      return;
    }
    case Op::buffer_copy: {
      const Object* const source = bytes(object(0));
      const Object* const target = bytes(object(2));
      if (source == nullptr || target == nullptr) return;
      const Place from = source->place;
      const Place to = target->place;
      const ValueId from_offset = number(1, Bank::i64);
      const ValueId to_offset = number(3, Bank::i64);
      const ValueId length = number(4, Bank::i64);
      check_range(from_offset, length, from.length, 1, out);
      if (memories_[to.memory].is_read_only)
        return give_up("the program writes to a buffer that is read-only");
      check_range(to_offset, length, to.length, 1, out);
      return copy({from.memory, sum(from.offset, from_offset, out), length},
                  {to.memory, sum(to.offset, to_offset, out), length}, out);
    }
    default:
      return give_up(fmt::format("instruction {} is not executed here", vm::info(instruction.op).mnemonic()));
  }
}

void Lifter::fill(const Place& target, ValueId pattern, uint32_t width, Nodes& out) {
  if (is_stuck() || values_.is_constant(target.length, 0)) return;
  memories_[target.memory].is_written = true;
  std::string text;
  const std::string to = address(target, i64(0), 1);
  const std::string size = values_.size_text(target.length);
  bool is_one_byte = width == 1;
  uint64_t byte = 0;
  if (values_.is_constant(pattern)) {
    byte = values_[pattern].bits & 0xFF;
    is_one_byte = true;
    for (uint32_t i = 1; i < width; ++i)
      is_one_byte = is_one_byte && (values_[pattern].bits >> (8 * i) & 0xFF) == byte;
  }
  if (is_one_byte)
    text =
        fmt::format("memset({}, {}, {});", to,
                    values_.is_constant(pattern) ? std::to_string(byte)
                                                 : fmt::format("(int)({} & 0xFF)", values_.low_text(pattern)),
                    size);
  else
    text = fmt::format("vm_fill({}, {}, {}, {});", to, size, values_.text(pattern, Bank::i64), width);
  out.push_back({.kind = Node::Kind::effect,
                 .text = std::move(text),
                 .uses = {target.offset, target.length, pattern},
                 .accesses = {{.memory = target.memory, .writes = true}}});
}

// Whether both may have bytes in common. Bindings may be the same buffer.
bool Lifter::may_overlap(const Place& x, const Place& y) const {
  const auto is_binding = [&](const Place& place) {
    return memories_[place.memory].kind == MemoryKind::binding;
  };
  return x.memory == y.memory || (is_binding(x) && is_binding(y));
}

void Lifter::copy(const Place& source, const Place& target, Nodes& out) {
  if (is_stuck() || values_.is_constant(target.length, 0)) return;
  memories_[target.memory].is_written = true;
  memories_[source.memory].is_read = true;
  out.push_back({.kind = Node::Kind::effect,
                 .text = fmt::format("{}({}, {}, {});", may_overlap(source, target) ? "memmove" : "memcpy",
                                     address(target, i64(0), 1), address(source, i64(0), 1),
                                     values_.size_text(target.length)),
                 .uses = {source.offset, target.offset, target.length},
                 .accesses = {{.memory = source.memory}, {.memory = target.memory, .writes = true}}});
}

// ---- instructions

// Refs that the instruction moves are null afterwards.
void Lifter::take_moves(Context& context, State& state, const vm::Instruction& instruction) {
  if (context.body->plan().module.bytecode_version() < 16) return;
  const vm::OpInfo& op = vm::info(instruction.op);
  for (size_t i = 0; i < op.operand_count; ++i) {
    if (op.operands[i].writes || !op.operands[i].move) continue;
    if (op.operands[i].kind == OperandKind::reg && op.operands[i].bank == Bank::ref &&
        (instruction.operands[i].reg & vm::kMoveBit))
      state.refs[instruction.operands[i].reg & vm::kRefOrdinalMask] = kNull;
    if (op.operands[i].kind == OperandKind::reg_list)
      for (size_t n = 0; n < instruction.operands[i].regs.size(); ++n) {
        const uint16_t reg = instruction.operands[i].regs[n];
        if ((reg & vm::kRefBit) && (reg & vm::kMoveBit)) state.refs[reg & vm::kRefOrdinalMask] = kNull;
      }
  }
}

void Lifter::step(Context& context, State& state, size_t at, Nodes& out) {
  const vm::Instruction& instruction = context.body->flow().instruction(at);
  const vm::OpInfo& op = vm::info(instruction.op);
  const vm::BytecodeModule& module = context.body->plan().module;
  if (++work_ > 400000) return give_up("the function takes more steps than are executed here");
  const auto number = [&](size_t i) {
    return read(state, instruction.operands[i].reg, op.operands[i].bank, out);
  };
  const auto object = [&](size_t i) { return ref(context, state, instruction.operands[i].reg); };
  const auto set_ref = [&](size_t i, ObjectId id) {
    state.refs[instruction.operands[i].reg & vm::kRefOrdinalMask] = id;
  };
  const auto set = [&](size_t i, ValueId id) {
    write(state, instruction.operands[i].reg, op.operands[i].bank, id);
  };
  switch (instruction.op) {
    case Op::const_i32_zero:
    case Op::const_i64_zero:
    case Op::const_f32_zero:
    case Op::const_f64_zero:
      return set(0, values_.constant(op.operands[0].bank, 0));
    case Op::const_i32:
    case Op::const_i64:
    case Op::const_f32:
    case Op::const_f64:
      return set(1, values_.constant(op.operands[1].bank, instruction.operands[0].immediate));
    case Op::const_ref_zero:
      return set_ref(0, kNull);
    case Op::const_ref_rodata: {
      const uint32_t ordinal = instruction.operands[0].index;
      const uint64_t size = module.rodata()[ordinal]->span().size();
      const MemoryId memory = constant_memory(ordinal);
      Object made = {.kind = Object::Kind::bytes, .place = {memory, i64(0), i64(size)}};
      return set_ref(1, add_object(std::move(made)));
    }
    case Op::discard_refs:
      for (size_t i = 0; i < instruction.operands[0].regs.size(); ++i) {
        const uint16_t reg = instruction.operands[0].regs[i];
        if (reg & vm::kRefBit) state.refs[reg & vm::kRefOrdinalMask] = kNull;
      }
      return;
    case Op::trace:
    case Op::print:
      return take_moves(context, state, instruction);
    case Op::assign_ref: {
      const ObjectId id = object(0);
      take_moves(context, state, instruction);
      return set_ref(1, id);
    }
    case Op::cast_any_ref: {
      // The types of objects that are known here pass the check, or the program is given up.
      const ObjectId id = object(0);
      if (id == kUnknownObject || (id != kNull && plan_->type(instruction.operands[1].index) == "NULL"))
        return give_up("the type of an object is checked");
      take_moves(context, state, instruction);
      return set_ref(2, id);
    }
    case Op::select_ref: {
      const ValueId condition = number(0);
      const ObjectId x = object(2);
      const ObjectId y = object(3);
      if (!values_.is_constant(condition) && x != y)
        return give_up("an object depends on a number that is not known");
      const ObjectId chosen = x == y || values_[condition].bits != 0 ? x : y;
      take_moves(context, state, instruction);
      return set_ref(4, chosen);
    }
    case Op::cmp_eq_ref:
    case Op::cmp_ne_ref: {
      const ObjectId x = object(0);
      const ObjectId y = object(1);
      if (x == kUnknownObject || y == kUnknownObject) return give_up("an object is not known");
      return set(2, i32((x == y) == (instruction.op == Op::cmp_eq_ref)));
    }
    case Op::cmp_nz_ref:
      if (object(0) == kUnknownObject) return give_up("an object is not known");
      return set(1, i32(object(0) != kNull));
    case Op::global_load_ref: {
      if (plan_->role != Role::host) return give_up("a kernel has globals");
      const uint32_t ordinal = instruction.operands[0].index;
      const ObjectId id = refs_[ordinal];
      if (instruction.operands[2].reg & vm::kMoveBit && module.bytecode_version() >= 16) {
        if (branches_ != 0) return give_up("a global depends on a branch");
        refs_[ordinal] = kNull;
      }
      return set_ref(2, id);
    }
    case Op::global_store_ref: {
      if (plan_->role != Role::host || branches_ != 0) return give_up("a global depends on a branch");
      refs_[instruction.operands[0].index] = object(2);
      return take_moves(context, state, instruction);
    }
    case Op::import_resolved:
      return set(1, i32(!plan_->imports[instruction.operands[0].index & ~vm::kImportBit].callee.empty()));
    case Op::list_get_ref: {
      const ObjectId list = object(0);
      const ValueId index = number(1);
      if (list == kNull || list == kUnknownObject || objects_[list].kind != Object::Kind::list ||
          !values_.is_constant(index) || values_[index].bits >= objects_[list].elements.size())
        return give_up("a list is not known");
      const ObjectId element = objects_[list].elements[values_[index].bits];
      const std::string type = plan_->type(instruction.operands[2].index);
      if (element == kNull ||
          type != (objects_[element].kind == Object::Kind::buffer ? "&hal_buffer_type" : "&vm_buffer_type"))
        return give_up("an element of a list has another type");
      return set_ref(3, element);
    }
    case Op::list_size: {
      const ObjectId list = object(0);
      if (list == kNull || list == kUnknownObject || objects_[list].kind != Object::Kind::list)
        return give_up("a list is not known");
      return set(1, i32(static_cast<uint32_t>(objects_[list].elements.size())));
    }
    case Op::buffer_alloc:
    case Op::buffer_length:
    case Op::buffer_copy:
      return whole(context, state, at, out);
    case Op::call:
    case Op::call_variadic:
      return call(context, state, at, out);
    default:
      break;
  }
  switch (vm::elements_of(instruction.op).access) {
    case vm::ElementAccess::load:
    case vm::ElementAccess::store:
      return access(context, state, at, out);
    case vm::ElementAccess::fill:
      return whole(context, state, at, out);
    case vm::ElementAccess::none:
      break;
  }
  const Form& form = form_of(instruction.op);
  // Numbers of globals.
  const std::string_view name = op.mnemonic();
  if (name.starts_with("global.load.") || name.starts_with("global.store.")) {
    if (plan_->role != Role::host || op.operands[0].kind != OperandKind::global_bytes)
      return give_up("globals by numbers that are not known");
    std::string text(form.text);
    text.replace(text.find("$0"), 2, fmt::format("{}u", instruction.operands[0].index));
    std::array<ValueId, 6> operands = {};
    std::array<Bank, 6> banks = {};
    if (op.operands[1].writes) {
      const Bank bank = op.operands[1].bank;
      return set(1, let(bank, text, {}, true, out, Range::of(bank)));
    }
    operands[1] = number(1);
    banks[1] = op.operands[1].bank;
    out.push_back(
        {.kind = Node::Kind::effect, .text = expand(text, operands, banks) + ";", .uses = {operands[1]}});
    return;
  }
  if (form.kind != Form::Kind::value && form.kind != Form::Kind::guarded)
    return give_up(fmt::format("instruction {} is not executed here", name));
  std::array<ValueId, 3> operands = {kNoValue, kNoValue, kNoValue};
  size_t inputs = 0;
  size_t result = op.operand_count;
  for (size_t i = 0; i < op.operand_count; ++i) {
    if (op.operands[i].kind != OperandKind::reg || op.operands[i].bank == Bank::ref ||
        op.operands[i].bank == Bank::any || inputs > 3)
      return give_up(fmt::format("instruction {} is not executed here", name));
    if (op.operands[i].writes)
      result = i;
    else if (inputs < 3)
      operands[inputs++] = number(i);
  }
  if (result == op.operand_count) return give_up(fmt::format("instruction {} is not executed here", name));
  if (form.kind == Form::Kind::guarded) {
    // Divisions.
    if (form.condition != "$1 != 0") return give_up(fmt::format("instruction {} is not executed here", name));
    const Range& divisor = values_[operands[1]].range;
    if (divisor.low <= 0 && divisor.high >= 0)
      out.push_back({.kind = Node::Kind::check,
                     .text = fmt::format("{} == 0", values_.text(operands[1], op.operands[1].bank)),
                     .failure = std::string(form.failure),
                     .uses = {operands[1]}});
  }
  set(result, operate(instruction.op, op.operands[result].bank, operands, out));
}

// ---- calls

void Lifter::call(Context& context, State& state, size_t at, Nodes& out) {
  const vm::Instruction& instruction = context.body->flow().instruction(at);
  const vm::BytecodeModule& module = context.body->plan().module;
  const CallOperands operands(instruction);
  const Types types = call_types(module, operands);
  std::vector<Returned> passed;
  for (size_t i = 0; i < operands.arguments.size(); ++i) {
    if (i >= types.arguments.size()) return give_up("a call has arguments without types");
    if (types.arguments[i] == 'r') {
      const ObjectId id = ref(context, state, operands.arguments[i]);
      if (id == kUnknownObject) return give_up("an object is not known");
      passed.push_back({.object = id, .is_ref = true});
    } else {
      passed.push_back({.value = read(state, operands.arguments[i], bank_of(types.arguments[i]), out)});
    }
  }
  std::vector<Returned> results;
  if (!operands.is_import) {
    take_moves(context, state, instruction);
    Nodes nodes = lift(context.body->plan(), operands.callee, passed, results);
    for (Node& node : nodes) out.push_back(std::move(node));
    if (is_stuck()) return;
    if (results.size() < types.results.size()) {
      // The callee always fails.
      state.is_reachable = false;
      return;
    }
  } else {
    const ImportPlan& planned = context.body->plan().imports[operands.callee];
    if (!planned.takes_state) return give_up("a function outside of the program is called");
    Call made = {.callee = planned.callee, .arguments = std::move(passed)};
    const vm::Convention convention = *vm::Convention::parse(module.imports()[operands.callee].convention);
    for (const vm::ConventionItem& item : convention.arguments)
      if (item.type == 'C') made.counts.push_back(operands.segments[item.segment]);
    if (!import(made, out))
      give_up(fmt::format("a call of {} is not known", module.imports()[operands.callee].name));
    if (is_stuck()) return;
    results = std::move(made.results);
    take_moves(context, state, instruction);
    if (results.size() != types.results.size()) return give_up("an import gives other results");
  }
  for (size_t i = 0; i < types.results.size() && i < operands.results.size(); ++i) {
    if (types.results[i] == 'r')
      state.refs[operands.results[i] & vm::kRefOrdinalMask] = results[i].object;
    else
      write(state, operands.results[i], bank_of(types.results[i]), results[i].value);
  }
}

}  // namespace halyard::aot
