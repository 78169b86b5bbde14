// What single instructions do, and the bytes that they access.
#include "vm/count/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "vm/count/instructions.h"
#include "vm/format/opcode_traits.h"

namespace halyard::vm {

namespace {

constexpr uint64_t kMaxOwnChecks = 512;

}  // namespace

bool CountedSteps::fail(std::string why, uint32_t along) {
  refusal = {std::move(why), along};
  return false;
}

bool CountedSteps::step(uint32_t index, uint64_t& import_operations) {
  const Instruction& at = flow_.instruction(index);
  const OpInfo& op = info(at.op);
  if (has_trait(at.op, CALLS)) return call(at, import_operations);
  if (elements_of(at.op).access != ElementAccess::none) return access(index, at);
  const auto operand = [&](size_t i) { return at.operands[i]; };
  switch (at.op) {
    case Op::list_get_ref: {
      const Scalar place = registers.narrow(operand(1).reg);
      CountedReference got;
      if (registers.reference(operand(0).reg).kind == CountedReference::Kind::bindings &&
          place.is_constant() && place.value >= 0 &&
          static_cast<uint64_t>(place.value) < arguments_.binding_lengths.size()) {
        const auto binding = static_cast<uint32_t>(place.value);
        got = {CountedReference::Kind::binding, binding, arguments_.binding_lengths[binding], true};
      }
      registers.set_reference(operand(3).reg, got);
      return true;
    }
    case Op::list_set_ref:
    case Op::list_resize:
      // It may be the list of bindings, which later workgroups read too.
      return fail("it changes a list");
    case Op::assign_ref: {
      const CountedReference source = registers.reference(operand(0).reg);
      if (operand(0).reg & kMoveBit) registers.set_reference(operand(0).reg, {});
      registers.set_reference(operand(1).reg, source);
      return true;
    }
    case Op::buffer_alloc: {
      const Scalar length = registers.wide(operand(0).reg);
      registers.set_reference(operand(2).reg, {CountedReference::Kind::memory, 0,
                                               static_cast<uint64_t>(length.value), length.is_constant()});
      return true;
    }
    case Op::buffer_length: {
      const CountedReference buffer = registers.reference(operand(0).reg);
      Scalar length = unknown_scalar();
      if (buffer.has_known_length) length = constant_scalar(static_cast<int64_t>(buffer.length));
      if (buffer.kind == CountedReference::Kind::constants)
        length = constant_scalar(static_cast<int64_t>(arguments_.constants.size()));
      registers.write(Bank::i64, operand(1).reg, length);
      return true;
    }
    case Op::buffer_copy:
      return range(index, operand(0).reg, registers.wide(operand(1).reg), registers.wide(operand(4).reg),
                   false) &&
             range(index, operand(2).reg, registers.wide(operand(3).reg), registers.wide(operand(4).reg),
                   true);
    case Op::buffer_clone:
      registers.set_reference(operand(4).reg, {CountedReference::Kind::memory});
      return range(index, operand(0).reg, registers.wide(operand(1).reg), registers.wide(operand(2).reg),
                   false);
    case Op::buffer_compare:
      registers.write(Bank::i32, operand(5).reg, unknown_scalar());
      return range(index, operand(0).reg, registers.wide(operand(1).reg), registers.wide(operand(4).reg),
                   false) &&
             range(index, operand(2).reg, registers.wide(operand(3).reg), registers.wide(operand(4).reg),
                   false);
    case Op::buffer_hash:
      registers.write(Bank::i64, operand(3).reg, unknown_scalar());
      return range(index, operand(0).reg, registers.wide(operand(1).reg), registers.wide(operand(2).reg),
                   false);
    default:
      break;
  }
  compute(at, op);
  return true;
}

// Computes the integer result. Other results, and objects, are unknown.
void CountedSteps::compute(const Instruction& at, const OpInfo& op) {
  Operands<Scalar> in;
  size_t ins = 0;
  int64_t immediate = 0;
  Bank bank = Bank::none;  // of the first operand
  for (size_t i = 0; i < op.operand_count; ++i) {
    const Operand& operand = op.operands[i];
    if (operand.kind == OperandKind::immediate)
      immediate = operand.bank == Bank::i32
                      ? static_cast<int32_t>(static_cast<uint32_t>(at.operands[i].immediate))
                      : static_cast<int64_t>(at.operands[i].immediate);
    if (operand.kind != OperandKind::reg || operand.writes) continue;
    if (operand.bank == Bank::ref) {
      if (at.operands[i].reg & kMoveBit) registers.set_reference(at.operands[i].reg, {});
      continue;
    }
    if (ins == 0) bank = operand.bank;
    in[ins++] = registers.read(operand.bank, at.operands[i].reg);
  }
  for (size_t i = 0; i < op.operand_count; ++i) {
    const Operand& operand = op.operands[i];
    if (operand.kind == OperandKind::reg_list) {
      for (size_t j = 0; j < at.operands[i].regs.size(); ++j)
        if (const uint16_t reg = at.operands[i].regs[j];
            (reg & kRefBit) && (operand.writes || (reg & kMoveBit) || at.op == Op::discard_refs))
          registers.set_reference(reg, {});
    }
    if (operand.kind != OperandKind::reg || !operand.writes) continue;
    if (operand.bank == Bank::ref) {
      registers.set_reference(at.operands[i].reg, {});
    } else {
      Scalar result = result_of(at.op, bank, in, immediate);
      if (!result.is_linear || result.compare != Scalar::Compare::none)
        result.bounds = bounds_of_result(
            at.op, {bounds_of(in[0], trips), bounds_of(in[1], trips), bounds_of(in[2], trips)});
      if (arguments_.finds_overwritten && result.varies != 0)
        forms.follow(at.op, bank, operand.bank, in, trips, result);
      registers.write(operand.bank, at.operands[i].reg, result);
    }
  }
}

Scalar CountedSteps::in_bytes(const Scalar& elements, uint64_t size) {
  const Scalar factor = constant_scalar(static_cast<int64_t>(size));
  Scalar bytes = scalar_product(elements, factor);
  bytes.bounds = bounds_of_product(bounds_of(elements, trips), {factor.value, factor.value});
  if (arguments_.finds_overwritten && bytes.varies != 0)
    forms.follow(Op::mul_i64, Bank::i64, Bank::i64, {elements, factor}, trips, bytes);
  return bytes;
}

bool CountedSteps::access(uint32_t index, const Instruction& at) {
  const uint64_t size = elements_of(at.op).bytes;
  const OpInfo& op = info(at.op);
  const CountedReference buffer = registers.reference(at.operands[0].reg);
  const Scalar offset = in_bytes(registers.wide(at.operands[1].reg), size);
  if (elements_of(at.op).access == ElementAccess::fill) {
    const Scalar length = in_bytes(registers.wide(at.operands[2].reg), size);
    return range(index, at.operands[0].reg, offset, length, true);
  }
  const Operand& last = op.operands[2];
  if (last.writes) registers.write(last.bank, at.operands[2].reg, loaded(at.op, last.bank, buffer, offset));
  return touch(index, buffer, offset, size, size, !last.writes);
}

// A constant of the dispatch is known; other data is not.
Scalar CountedSteps::loaded(Op op, Bank bank, const CountedReference& buffer, const Scalar& offset) const {
  const uint64_t size = elements_of(op).bytes;
  if (buffer.kind != CountedReference::Kind::constants || !offset.is_constant() || offset.value < 0 ||
      (bank != Bank::i32 && bank != Bank::i64) || size < 4 ||
      static_cast<uint64_t>(offset.value) + size > arguments_.constants.size())
    return unknown_scalar();
  const auto* const from = reinterpret_cast<const uint8_t*>(arguments_.constants.data()) + offset.value;
  return constant_scalar(size == 4 ? load_unaligned<int32_t>(from) : load_unaligned<int64_t>(from));
}

bool CountedSteps::range(uint32_t index, uint16_t buffer, const Scalar& offset, const Scalar& length,
                         bool writes) {
  if (!length.is_constant() || length.value < 0) {
    if (quiet == 0 && registers.reference(buffer).kind == CountedReference::Kind::binding)
      accesses.add_unknown();
    return true;
  }
  return length.value == 0 ||
         touch(index, registers.reference(buffer), offset, static_cast<uint64_t>(length.value), 0, writes);
}

// Records an access of `size` bytes at `offset`, in all iterations and workgroups on trial.
bool CountedSteps::touch(uint32_t index, const CountedReference& buffer, const Scalar& offset, uint64_t size,
                         uint64_t each, bool writes) {
  if (quiet != 0 || buffer.kind == CountedReference::Kind::memory ||
      buffer.kind == CountedReference::Kind::constants)
    return true;
  if (buffer.kind != CountedReference::Kind::binding) {
    accesses.add_unknown();
    return true;
  }
  const Bounds bounds = offset.is_linear ? bounds_of(offset, trips) : offset.bounds;
  if (!bounds.is_known() && (offset.varies & kGrid) && has_few_workgroups)
    return fail("the addresses of workgroups differ", offset.varies & kGrid);
  const __int128 first = bounds.is_known() ? bounds.low : 0;
  const __int128 last = bounds.is_known() ? __int128{bounds.high} + size : __int128{buffer.length};
  accesses.add(index, buffer.binding, writes, static_cast<uint64_t>(std::max<__int128>(first, 0)),
               static_cast<uint64_t>(std::clamp<__int128>(last, 0, buffer.length)), each);
  if (arguments_.finds_overwritten) note(index, buffer, offset, bounds, size, writes);
  return true;
}

// What `overwritten`, `own_writes` and `inputs` need to know of an access.
void CountedSteps::note(uint32_t index, const CountedReference& buffer, const Scalar& offset,
                        const Bounds& bounds, uint64_t size, bool writes) {
  const bool is_inside = bounds.is_known() && !offset.may_wrap && bounds.low >= 0 &&
                         __int128{bounds.high} + size <= buffer.length;
  const std::optional<Form> form = is_inside ? forms.form_of(offset) : std::nullopt;
  if (writes) {
    const std::optional<Form::Steps> steps = form ? form->steps(trips) : std::nullopt;
    if (!steps) return;
    overwritten.add(buffer.binding, size, *steps);
    own_writes.add(buffer.binding, size, *form);
    return;
  }
  if (form && own_writes.has(buffer.binding) && own_checks_ < kMaxOwnChecks) {
    ++own_checks_;
    if (own_writes.cover(buffer.binding, size, *form, trips)) return;
  }
  inputs.add(index, buffer.binding, false, is_inside ? static_cast<uint64_t>(bounds.low) : 0,
             is_inside ? static_cast<uint64_t>(bounds.high) + size : buffer.length, 0);
}

void CountedSteps::begin_grid() {
  accesses.clear();
  inputs.clear();
  overwritten.clear();
  own_checks_ = 0;
  quiet = 0;
}

void CountedSteps::begin_workgroup() {
  forms.clear();
  own_writes.clear();
}

bool CountedSteps::call(const Instruction& at, uint64_t& import_operations) {
  const uint32_t callee = at.operands[0].index;
  if (!(callee & kImportBit) || at.op != Op::call) return fail("it calls another function");
  const std::string_view name = module_.imports()[callee & ~kImportBit].name;
  const std::string_view convention = module_.imports()[callee & ~kImportBit].convention;
  std::vector<std::optional<int64_t>> integers;  // absent: unknown, or not the same in all iterations
  uint32_t varies = 0;
  const RegList& given = at.operands[1].regs;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] & kRefBit) {
      if (quiet == 0 && registers.reference(given[i]).kind != CountedReference::Kind::memory)
        accesses.add_unknown();
      if (given[i] & kMoveBit) registers.set_reference(given[i], {});
      continue;
    }
    const char type = i + 1 < convention.size() ? convention[i + 1] : 'v';
    const Scalar scalar = type == 'I'   ? registers.wide(given[i])
                          : type == 'i' ? registers.narrow(given[i])
                                        : unknown_scalar();
    varies |= scalar.varies;
    integers.push_back(scalar.is_constant() ? std::optional(scalar.value) : std::nullopt);
  }
  std::optional<uint64_t> operations;
  if (arguments_.import_operations) operations = arguments_.import_operations(name, integers);
  if (!operations) return fail(fmt::format("it calls '{}'", name), varies);
  import_operations += *operations;
  const RegList& results = at.operands[2].regs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] & kRefBit) {
      registers.set_reference(results[i], {});
    } else {
      registers.forget(results[i]);
    }
  }
  return true;
}
}  // namespace halyard::vm
