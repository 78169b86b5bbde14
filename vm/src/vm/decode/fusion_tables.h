// Lookup tables of the instructions that can be fused, generated from decoded_ops.inc.
#pragma once

#include <array>

#include "vm/decode/code.h"
#include "vm/format/opcode_traits.h"

namespace halyard::vm {

inline constexpr DecodedOp kNotFused = DecodedOp::kBefore;

using FusedOfOp = std::array<DecodedOp, kOpCount>;

struct FusionTables {
  FusedOfOp immediate;
  FusedOfOp immediate_left;
  FusedOfOp branch;
  FusedOfOp branch_immediate;
  FusedOfOp branch_immediate_left;
  FusedOfOp loop;
  FusedOfOp loop_by;
  FusedOfOp at_sum;
  FusedOfOp at_kept_sum;
  FusedOfOp at_product;
};

inline constexpr FusionTables kFusions = [] {
  FusionTables tables;
  FusedOfOp* const all[] = {&tables.immediate,
                            &tables.immediate_left,
                            &tables.branch,
                            &tables.branch_immediate,
                            &tables.branch_immediate_left,
                            &tables.loop,
                            &tables.loop_by,
                            &tables.at_sum,
                            &tables.at_kept_sum,
                            &tables.at_product};
  for (FusedOfOp* table : all) table->fill(kNotFused);
#define AT(table, op, form) tables.table[static_cast<size_t>(Op::op)] = DecodedOp::form;
#define IMMEDIATE(op) AT(immediate, op, op##_imm)
#define IMMEDIATE_LEFT(op) AT(immediate_left, op, op##_imm_left)
#define BRANCH(op) AT(branch, op, br_##op)
#define BRANCH_IMMEDIATE(op) AT(branch_immediate, op, br_##op##_imm)
#define BRANCH_IMMEDIATE_LEFT(op) AT(branch_immediate_left, op, br_##op##_imm_left)
#define LOOP(op) AT(loop, op, loop_##op)
#define LOOP_BY(op) AT(loop_by, op, loop_by_##op)
#define INDEXED(op) AT(at_sum, op, op##_at_sum)
#define INDEXED_KEPT(op) AT(at_kept_sum, op, op##_at_kept_sum)
#define INDEXED_PRODUCT(op) AT(at_product, op, op##_at_product)
#include "vm/decode/decoded_ops.inc"
#undef AT
  for (FusedOfOp* table : all)
    for (size_t op = 0; op < kOpCount; ++op) (*table)[op] = (*table)[static_cast<size_t>(kSameBits[op])];
  for (size_t op = 0; op < kOpCount; ++op)
    if (kNegated[op] != Op::kCount)
      tables.immediate[op] = tables.immediate[static_cast<size_t>(kNegated[op])];
  return tables;
}();

constexpr DecodedOp fused(const FusedOfOp& table, Op op) { return table[static_cast<size_t>(op)]; }

constexpr bool commutes(Op op) { return has_trait(op, COMMUTES); }

// Maps a comparison with a constant to its fusion with a cond_br.
inline constexpr auto kBranchOfCompare = [] {
  std::array<DecodedOp, static_cast<size_t>(DecodedOp::kCount) - kOpCount> table;
  table.fill(kNotFused);
  for (size_t op = 0; op < kOpCount; ++op) {
    if (kFusions.branch_immediate[op] != kNotFused)
      table[static_cast<size_t>(kFusions.immediate[op]) - kOpCount] = kFusions.branch_immediate[op];
    if (kFusions.branch_immediate_left[op] != kNotFused)
      table[static_cast<size_t>(kFusions.immediate_left[op]) - kOpCount] = kFusions.branch_immediate_left[op];
  }
  return table;
}();

// Whether the instruction can take its right operand as an immediate; a subtraction becomes an addition.
constexpr bool takes_immediate(Op op) { return fused(kFusions.immediate, op) != kNotFused; }

// Addition, subtraction and multiplication, which can be fused with each other.
struct Arithmetic {
  enum class Type : uint8_t { none, i32, i64, f32, f64 };
  enum class Kind : uint8_t { add, sub, mul };
  Type type = Type::none;
  Kind kind = Kind::add;
};

inline constexpr auto kArithmetic = [] {
  std::array<Arithmetic, kOpCount> table;
#define ROW(type, kind) \
  table[static_cast<size_t>(Op::kind##_##type)] = {Arithmetic::Type::type, Arithmetic::Kind::kind};
#define ROWS(type) ROW(type, add) ROW(type, sub) ROW(type, mul)
  ROWS(i32)
  ROWS(i64)
  ROWS(f32)
  ROWS(f64)
#undef ROWS
#undef ROW
  return table;
}();

constexpr Arithmetic arithmetic(Op op) { return kArithmetic[static_cast<size_t>(op)]; }

inline constexpr auto kArithmeticOfTwo = [] {
  // Indexed by type, first kind, second kind, and whether the first result is the right operand of the
  // second.
  std::array<std::array<std::array<std::array<DecodedOp, 2>, 3>, 3>, 5> table;
  for (auto& types : table)
    for (auto& firsts : types)
      for (auto& seconds : firsts) seconds.fill(kNotFused);
#define ROW(type, first, second, right, op)                                                        \
  table[static_cast<size_t>(Arithmetic::Type::type)][static_cast<size_t>(Arithmetic::Kind::first)] \
       [static_cast<size_t>(Arithmetic::Kind::second)][right] = DecodedOp::op;
#define ARITHMETIC(type, first, second) ROW(type, first, second, 0, first##_##second##_##type)
#define ARITHMETIC_RIGHT(type, first, second) ROW(type, first, second, 1, first##_##second##_right_##type)
#include "vm/decode/decoded_ops.inc"
#undef ROW
  return table;
}();

// second(first(a, b), c), or with `right` second(c, first(a, b)).
constexpr DecodedOp arithmetic_of_two(Arithmetic first, Arithmetic second, bool right) {
  if (first.type != second.type) return kNotFused;
  const bool matters = second.kind == Arithmetic::Kind::sub;
  return kArithmeticOfTwo[static_cast<size_t>(first.type)][static_cast<size_t>(first.kind)]
                         [static_cast<size_t>(second.kind)][right && matters];
}

// The addition of each type.
inline constexpr auto kSums = [] {
  std::array<Op, 5> sums;
  sums.fill(Op::kCount);
  for (size_t op = 0; op < kOpCount; ++op)
    if (kArithmetic[op].kind == Arithmetic::Kind::add)
      sums[static_cast<size_t>(kArithmetic[op].type)] = static_cast<Op>(op);
  return sums;
}();

// Whether a decoded instruction computes a + b, a + constant, or a * b + c.
constexpr bool is_sum(uint16_t op, Arithmetic::Type type) {
  return op == static_cast<uint16_t>(kSums[static_cast<size_t>(type)]);
}
constexpr bool is_sum_with_constant(uint16_t op, Arithmetic::Type type) {
  return op == static_cast<uint16_t>(fused(kFusions.immediate, kSums[static_cast<size_t>(type)]));
}
constexpr bool is_product_and_sum(uint16_t op, Arithmetic::Type type) {
  constexpr bool kRight = false;
  return op == static_cast<uint16_t>(
                   arithmetic_of_two({type, Arithmetic::Kind::mul}, {type, Arithmetic::Kind::add}, kRight));
}

// The last instruction of a loop's body and the loop instruction after it.
struct LastOfLoop {
  uint16_t first;
  DecodedOp loop;
  DecodedOp both;
};

inline constexpr LastOfLoop kLastOfLoop[] = {
#define LAST_OF(kind, first, loop) \
  {static_cast<uint16_t>(kind::first), DecodedOp::loop, DecodedOp::first##_last_of_##loop},
#include "vm/decode/decoded_ops.inc"
};

// `first` is the opcode of a word.
constexpr DecodedOp last_of_loop(uint16_t first, DecodedOp loop) {
  if (first < kOpCount) first = static_cast<uint16_t>(kSameBits[first]);
  for (const LastOfLoop& row : kLastOfLoop)
    if (row.first == first && row.loop == loop) return row.both;
  return kNotFused;
}

// The third operations that can follow two fused ones.
struct ArithmeticOfThree {
  Arithmetic::Type type = Arithmetic::Type::none;
  std::array<DecodedOp, 3> by_third;
};

inline constexpr auto kArithmeticOfThree = [] {
  std::array<ArithmeticOfThree, static_cast<size_t>(DecodedOp::kCount) - kOpCount> table;
  for (ArithmeticOfThree& row : table) row.by_third.fill(kNotFused);
#define ARITHMETIC_OF_THREE(bank, first, second, third)                                                   \
  {                                                                                                       \
    ArithmeticOfThree& row = table[static_cast<size_t>(DecodedOp::first##_##second##_##bank) - kOpCount]; \
    row.type = Arithmetic::Type::bank;                                                                    \
    row.by_third[static_cast<size_t>(Arithmetic::Kind::third)] =                                          \
        DecodedOp::first##_##second##_##third##_##bank;                                                   \
  }
#include "vm/decode/decoded_ops.inc"
  return table;
}();

// third(two, d), where `two` is the number of the DecodedOp of the first two.
constexpr DecodedOp arithmetic_of_three(uint16_t two, Arithmetic third) {
  const ArithmeticOfThree& row = kArithmeticOfThree[two - kOpCount];
  return row.type == third.type ? row.by_third[static_cast<size_t>(third.kind)] : kNotFused;
}

}  // namespace halyard::vm
