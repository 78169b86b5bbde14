// Which slots hold constants, and which of those are wanted as operands only.
#include "vm/constants.h"

#include "vm/fusion.h"

namespace halyard::vm {

namespace {

bool is_wide(Bank bank) { return bank == Bank::i64 || bank == Bank::f64; }

bool is_constant_op(Op op) {
  return op == Op::const_i32 || op == Op::const_i32_zero || op == Op::const_i64 || op == Op::const_i64_zero;
}

}  // namespace

ConstantWrite constant_write(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::const_i32:
      return {.is_constant = true, .wide = false, .bits = instruction.operands[0].immediate};
    case Op::const_i32_zero:
      return {.is_constant = true, .wide = false, .bits = 0};
    case Op::const_i64:
      return {.is_constant = true, .wide = true, .bits = instruction.operands[0].immediate};
    case Op::const_i64_zero:
      return {.is_constant = true, .wide = true, .bits = 0};
    default:
      return {};
  }
}

std::optional<int16_t> small_operand(Op op, uint64_t bits, bool wide) {
  switch (op) {
    case Op::sub_i32:
    case Op::sub_i64:
      bits = 0 - bits;  // added
      break;
    case Op::shl_i32:
    case Op::shr_i32_s:
    case Op::shr_i32_u:
      bits &= 31;
      break;
    case Op::shl_i64:
    case Op::shr_i64_s:
    case Op::shr_i64_u:
      bits &= 63;
      break;
    default:
      break;
  }
  const int64_t value = wide ? static_cast<int64_t>(bits) : static_cast<int32_t>(bits);
  if (value != static_cast<int16_t>(value)) return {};
  return static_cast<int16_t>(value);
}

Constants Constants::of(const Function& function, const Flow& flow, std::pmr::memory_resource* memory) {
  Constants constants(memory);
  const size_t slots = function.value_registers;
  constants.known_.resize(slots);
  constants.global_.resize(slots);
  constants.global_bits_.resize(slots);
  constants.folded_.resize(slots);
  if (flow.blocks().empty()) return constants;
  const Flow::Block& entry = flow.blocks().front();
  bool any = false;
  for (size_t step = entry.first_step; step < entry.first_step + entry.step_count; ++step) {
    if (!is_constant_op(flow.steps()[step].op)) continue;
    const ConstantWrite write = constant_write(flow.instruction(step));
    const auto accesses = flow.accesses(step);
    for (const Access each : accesses) {
      if (flow.write_count(each.slot) != 1) continue;
      const bool high = each.slot != accesses.front().slot;
      constants.global_[each.slot] = true;
      constants.global_bits_[each.slot] = static_cast<uint32_t>(high ? write.bits >> 32 : write.bits);
      any = true;
    }
  }
  if (any) constants.find_folded(flow);
  return constants;
}

void Constants::find_folded(const Flow& flow) {
  for (size_t slot = 0; slot < global_.size(); ++slot)
    folded_[slot] = global_[slot] && !flow.moved(static_cast<uint32_t>(slot)) &&
                    !flow.live_in(0, static_cast<uint32_t>(slot));
  for (size_t step = 0; step + 1 < flow.steps().size(); ++step) {
    const Op op = flow.steps()[step].op;
    const OpInfo& opcode = info(op);
    const auto accesses = flow.accesses(step);
    const bool right = op == Op::sub_i32 || op == Op::sub_i64 || fused(kFusions.immediate, op) != kNoInner;
    size_t operand[2] = {};
    size_t next = 0;
    for (size_t i = 0; i < 2 && right; ++i) {
      operand[i] = next;
      next += is_wide(opcode.operands[i].bank) ? 2 : 1;
    }
    // Whether all of an operand is constant, and would do as a small one.
    const auto all_global = [&](size_t i) {
      const bool wide = is_wide(opcode.operands[i].bank);
      return global_[accesses[operand[i]].slot] && (!wide || global_[accesses[operand[i] + 1].slot]);
    };
    const auto fits = [&](size_t i) {
      const bool wide = is_wide(opcode.operands[i].bank);
      const uint32_t low = accesses[operand[i]].slot;
      const uint64_t bits = global_bits_[low] | (wide ? uint64_t{global_bits_[low + 1]} << 32 : 0);
      return small_operand(op, bits, wide).has_value();
    };
    bool folds[2] = {};
    if (right) {
      const bool constant[2] = {all_global(0), all_global(1)};
      folds[1] = constant[1] && !constant[0] && fits(1);
      const bool left = commutes(op) || fused(kFusions.immediate_left, op) != kNoInner;
      folds[0] = left && constant[0] && !constant[1] && fits(0);
    }
    for (size_t i = 0; i < accesses.size(); ++i) {
      if (accesses[i].writes) continue;
      const bool folds_here = right && ((i >= operand[1] && folds[1]) || (i < operand[1] && folds[0]));
      if (!folds_here) folded_[accesses[i].slot] = false;
    }
  }
  // Of a pair both halves or none.
  for (size_t slot = 0; slot + 1 < folded_.size(); slot += 2) {
    if (folded_[slot] == folded_[slot + 1]) continue;
    if (global_[slot] && global_[slot + 1]) folded_[slot] = folded_[slot + 1] = false;
  }
}

}  // namespace halyard::vm
