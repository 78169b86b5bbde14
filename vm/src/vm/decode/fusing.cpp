// Fuses an instruction with those emitted before it.
#include "vm/decode/fusing.h"

#include "vm/decode/fusion_tables.h"

namespace halyard::vm {

namespace {

// The ways in which an opcode can be fused.
struct Ways {
  bool constant = false;
  bool immediate = false;
  bool index = false;
  bool arithmetic = false;
};
constexpr auto kWays = [] {
  std::array<Ways, kOpCount> table;
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    Ways& ways = table[i];
    ways.constant = writes_constant(op);
    ways.immediate = takes_immediate(op);
    ways.index = fused(kFusions.at_sum, op) != kNotFused;
    ways.arithmetic = arithmetic(op).type != Arithmetic::Type::none;
  }
  return table;
}();

}  // namespace

bool Fuser::fuse(size_t step) {
  const Instruction& instruction = flow_.instruction(step);
  const Ways ways = kWays[static_cast<size_t>(instruction.op)];
  if (ways.constant) {
    const ConstantWrite write = constant_write(instruction);
    return constants_.needs_no_register(write.result) &&
           (!write.wide || constants_.needs_no_register(write.result + 1u));
  }
  // A constant operand without a register must become an immediate.
  if (ways.immediate && (constants_.needs_no_register(instruction.operands[0].reg) ||
                         constants_.needs_no_register(instruction.operands[1].reg)))
    return fuse_immediate(instruction);
  return (ways.index && fuse_index(step, instruction)) ||
         (ways.arithmetic && fuse_arithmetic(step, instruction)) ||
         (ways.immediate && fuse_immediate(instruction));
}

std::optional<int16_t> Fuser::small_constant(const Instruction& instruction, size_t operand) const {
  const bool wide = is_wide(info(instruction.op).operands[operand].bank);
  const auto value = constants_.value(instruction.operands[operand].reg, wide);
  if (!value) return {};
  return small_operand(instruction.op, *value, wide);
}

bool Fuser::fuse_immediate(const Instruction& instruction) {
  const OpInfo& op = info(instruction.op);
  const uint16_t left = instruction.operands[0].reg;
  const uint16_t right = instruction.operands[1].reg;
  const uint16_t result = instruction.operands[2].reg;
  const DecodedOp to_right = fused(kFusions.immediate, instruction.op);
  const DecodedOp to_left = fused(kFusions.immediate_left, instruction.op);
  Word word;
  const auto right_value = small_constant(instruction, 1);
  if (right_value && !constants_.needs_no_register(left)) {
    word = CodeBuilder::word(to_right, left, static_cast<uint16_t>(*right_value), result);
  } else if (const auto left_value = small_constant(instruction, 0);
             left_value && (commutes(instruction.op) || to_left != kNotFused)) {
    const auto bits = static_cast<uint16_t>(*left_value);
    word = commutes(instruction.op) ? CodeBuilder::word(to_right, right, bits, result)
                                    : CodeBuilder::word(to_left, bits, right, result);
  } else {
    return false;
  }
  for (size_t i = 0; i < 3; ++i) build_.mention(instruction.operands[i].reg, is_wide(op.operands[i].bank));
  build_.fusible({.word = build_.here(), .result_field = 3, .wide_result = is_wide(op.operands[2].bank)});
  build_.emit(word);
  return true;
}

// Whether this step is the last one that reads the slot or pair.
bool Fuser::last_read(size_t step, uint16_t slot, bool wide) const {
  bool low = false;
  bool high = !wide;
  for (const Access each : flow_.accesses(step)) {
    if (each.writes()) continue;
    low |= each.slot() == slot && each.last();
    high |= each.slot() == slot + 1u && each.last();
  }
  return low && high;
}

// Fuses a load or store with the previous instruction, if that computes its index.
bool Fuser::fuse_index(size_t step, const Instruction& instruction) {
  const CodeBuilder::Fusible* last = build_.last();
  if (!last) return false;
  const uint32_t start = last->word;
  const Word sum = build_.at(start);
  const uint16_t index = instruction.operands[1].reg;
  const uint16_t value = instruction.operands[2].reg;
  const OpInfo& op = info(instruction.op);
  if (build_.result_of(*last) != index || !last->wide_result) return false;
  // The stored value may overlap the index.
  const bool is_stored = !op.operands[2].writes && (value == index || value == index + 1);
  const bool kept = is_stored || !last_read(step, index, true);
  const uint16_t buffer = instruction.operands[0].reg & kRegisterMask;
  if (kept) {
    if (!is_sum(sum.op, Arithmetic::Type::i64)) return false;
    build_.retract(start);
    build_.emit(CodeBuilder::word(fused(kFusions.at_kept_sum, instruction.op), buffer, sum.a, sum.b));
    build_.emit({value, index, 0, 0});
    build_.mention(index, true);
  } else if (is_sum(sum.op, Arithmetic::Type::i64)) {
    build_.retract(start);
    build_.emit(CodeBuilder::word(fused(kFusions.at_sum, instruction.op), buffer, sum.a, sum.b));
    build_.emit({value, 0, 0, 0});
  } else if (is_product_and_sum(sum.op, Arithmetic::Type::i64)) {
    build_.retract(start);
    build_.emit(CodeBuilder::word(fused(kFusions.at_product, instruction.op), buffer, sum.a, sum.b));
    build_.emit({sum.c, value, 0, 0});
  } else {
    return false;
  }
  build_.mention(instruction.operands[0].reg, false);
  build_.mention(value, is_wide(op.operands[2].bank));
  return true;
}

// Fuses arithmetic with the previous instruction, if only this one reads its result.
bool Fuser::fuse_arithmetic(size_t step, const Instruction& instruction) {
  const CodeBuilder::Fusible* last = build_.last();
  if (!last) return false;
  const uint32_t start = last->word;
  const Word first = build_.at(start);
  const uint16_t middle = build_.result_of(*last);
  const uint16_t left = instruction.operands[0].reg;
  const uint16_t right = instruction.operands[1].reg;
  if ((left == middle) == (right == middle)) return false;
  const Arithmetic second = arithmetic(instruction.op);
  const bool of_two = first.op < kOpCount;
  const DecodedOp both =
      of_two ? arithmetic_of_two(arithmetic(static_cast<Op>(first.op)), second, right == middle)
             : arithmetic_of_three(first.op, second);
  const bool wide = last->wide_result;
  if (both == kNotFused || !last_read(step, middle, wide)) return false;
  build_.retract(start);
  const uint16_t other = left == middle ? right : left;
  const uint16_t result = instruction.operands[2].reg;
  if (of_two) {
    build_.fusible({.word = start, .result_field = 4, .wide_result = wide});
    build_.emit(CodeBuilder::word(both, first.a, first.b, other));
    build_.emit({result, 0, 0, 0});
  } else {
    build_.fusible({.word = start, .result_field = 5, .wide_result = wide});
    build_.emit(CodeBuilder::word(both, first.a, first.b, first.c));
    build_.emit({other, result, 0, 0});
  }
  for (const uint16_t reg : {left, right, result}) build_.mention(reg, wide);
  return true;
}

bool Fuser::fuse_condition(size_t step, uint16_t condition) {
  const CodeBuilder::Fusible* last = build_.last();
  if (!last || build_.result_of(*last) != condition || last->wide_result ||
      !last_read(step, condition, false))
    return false;
  const Word compare = build_.at(last->word);
  const uint32_t start = last->word;
  DecodedOp both;
  if (compare.op < kOpCount) {
    const Op op = static_cast<Op>(compare.op);
    both = fused(kFusions.branch, op);
    if (both == kNotFused) return false;
    const CodeBuilder::Fusible* addition = build_.before(*last);
    if (addition && fused(kFusions.loop, op) != kNotFused && fuse_loop(*addition, op, compare)) return true;
  } else {
    both = kBranchOfCompare[compare.op - kOpCount];
    if (both == kNotFused) return false;
  }
  build_.retract(start);
  build_.emit(CodeBuilder::word(both, compare.a, compare.b));
  return true;
}

bool Fuser::fuse_loop(const CodeBuilder::Fusible& addition, Op op, Word compare) {
  const Word add = build_.at(addition.word);
  const bool wide = is_wide(info(op).operands[0].bank);
  const Arithmetic::Type type = wide ? Arithmetic::Type::i64 : Arithmetic::Type::i32;
  const bool by_constant = is_sum_with_constant(add.op, type);
  if (!by_constant && !is_sum(add.op, type)) return false;
  const bool swapped = commutes(op) && compare.b == add.c;
  const uint16_t counter = swapped ? compare.b : compare.a;
  const uint16_t bound = swapped ? compare.a : compare.b;
  if (counter != add.c || bound == counter) return false;
  // The counter may be either operand of the addition.
  if (add.a != counter && (by_constant || add.b != counter)) return false;
  const uint16_t step = add.a == counter ? add.b : add.a;
  const uint32_t word = addition.word;
  const DecodedOp loop = by_constant ? fused(kFusions.loop, op) : fused(kFusions.loop_by, op);
  build_.retract(word);
  fuse_loop_end(loop, word);
  build_.emit(CodeBuilder::word(loop, counter, bound, step));
  return true;
}

// Fuses the loop instruction at `word` with the instruction before it.
void Fuser::fuse_loop_end(DecodedOp loop, uint32_t word) {
  const std::optional<uint32_t> previous = build_.previous();
  if (!previous) return;
  Word& first = build_.at(*previous);
  const DecodedOp both = last_of_loop(first.op, loop);
  if (both != kNotFused && *previous + (first.op < kOpCount ? 1 : 2) == word)
    first.op = static_cast<uint16_t>(both);
}

}  // namespace halyard::vm
