// Which instructions can be joined into which: the rows of inner_ops.inc as tables to look up.
#pragma once

#include <array>

#include "vm/decode/code.h"

namespace halyard::vm {

inline constexpr InnerOp kNoInner = InnerOp::kBefore;

using InnerOfOp = std::array<InnerOp, kOpCount>;

// Instructions that do the same to the bits.
constexpr Op same_bits(Op op) {
  switch (op) {
    case Op::buffer_load_f32:
      return Op::buffer_load_i32;
    case Op::buffer_load_f64:
      return Op::buffer_load_i64;
    case Op::buffer_store_f32:
      return Op::buffer_store_i32;
    case Op::buffer_store_f64:
      return Op::buffer_store_i64;
    case Op::cmp_ne_f32_u:
      return Op::cmp_ne_f32_o;
    case Op::cmp_ne_f64_u:
      return Op::cmp_ne_f64_o;
    default:
      return op;
  }
}

struct FusionTables {
  InnerOfOp immediate;
  InnerOfOp immediate_left;
  InnerOfOp branch;
  InnerOfOp branch_immediate;
  InnerOfOp branch_immediate_left;
  InnerOfOp loop;
  InnerOfOp loop_by;
  InnerOfOp at_sum;
  InnerOfOp at_kept_sum;
  InnerOfOp at_product;
};

inline constexpr FusionTables kFusions = [] {
  FusionTables tables;
  InnerOfOp* const all[] = {&tables.immediate,
                            &tables.immediate_left,
                            &tables.branch,
                            &tables.branch_immediate,
                            &tables.branch_immediate_left,
                            &tables.loop,
                            &tables.loop_by,
                            &tables.at_sum,
                            &tables.at_kept_sum,
                            &tables.at_product};
  for (InnerOfOp* table : all) table->fill(kNoInner);
#define AT(table, op, inner) tables.table[static_cast<size_t>(Op::op)] = InnerOp::inner;
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
#include "vm/decode/inner_ops.inc"
#undef AT
  for (InnerOfOp* table : all)
    for (size_t op = 0; op < kOpCount; ++op)
      (*table)[op] = (*table)[static_cast<size_t>(same_bits(static_cast<Op>(op)))];
  return tables;
}();

constexpr InnerOp fused(const InnerOfOp& table, Op op) { return table[static_cast<size_t>(op)]; }

constexpr bool commutes(Op op) {
  switch (op) {
    case Op::add_i32:
    case Op::mul_i32:
    case Op::and_i32:
    case Op::or_i32:
    case Op::xor_i32:
    case Op::cmp_eq_i32:
    case Op::cmp_ne_i32:
    case Op::add_i64:
    case Op::mul_i64:
    case Op::and_i64:
    case Op::or_i64:
    case Op::xor_i64:
    case Op::cmp_eq_i64:
    case Op::cmp_ne_i64:
      return true;
    default:
      return false;
  }
}

// A comparison with a constant, as the branch that it becomes together with a cond_br.
inline constexpr auto kBranchOfCompare = [] {
  std::array<InnerOp, static_cast<size_t>(InnerOp::kCount) - kOpCount> table;
  table.fill(kNoInner);
  for (size_t op = 0; op < kOpCount; ++op) {
    if (kFusions.branch_immediate[op] != kNoInner)
      table[static_cast<size_t>(kFusions.immediate[op]) - kOpCount] = kFusions.branch_immediate[op];
    if (kFusions.branch_immediate_left[op] != kNoInner)
      table[static_cast<size_t>(kFusions.immediate_left[op]) - kOpCount] = kFusions.branch_immediate_left[op];
  }
  return table;
}();

// Whether the instruction exists with a constant on its right; a subtraction becomes an addition.
constexpr bool takes_immediate(Op op) {
  return op == Op::sub_i32 || op == Op::sub_i64 || fused(kFusions.immediate, op) != kNoInner;
}

// Addition, subtraction and multiplication, which can be chained.
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

inline constexpr auto kChains = [] {
  // By type, first, second, and whether the first is the right operand of the second.
  std::array<std::array<std::array<std::array<InnerOp, 2>, 3>, 3>, 5> table;
  for (auto& types : table)
    for (auto& firsts : types)
      for (auto& seconds : firsts) seconds.fill(kNoInner);
#define ROW(type, first, second, right, op)                                                        \
  table[static_cast<size_t>(Arithmetic::Type::type)][static_cast<size_t>(Arithmetic::Kind::first)] \
       [static_cast<size_t>(Arithmetic::Kind::second)][right] = InnerOp::op;
#define CHAIN(type, first, second) ROW(type, first, second, 0, first##_##second##_##type)
#define CHAIN_RIGHT(type, first, second) ROW(type, first, second, 1, first##_##second##_right_##type)
#include "vm/decode/inner_ops.inc"
#undef ROW
  return table;
}();

// second(first(a, b), c), or with `right` second(c, first(a, b)).
constexpr InnerOp chain_of(Arithmetic first, Arithmetic second, bool right) {
  if (first.type != second.type) return kNoInner;
  const bool matters = second.kind == Arithmetic::Kind::sub;
  return kChains[static_cast<size_t>(first.type)][static_cast<size_t>(first.kind)]
                [static_cast<size_t>(second.kind)][right && matters];
}

// The end of a loop's body, as decoded, and the loop instruction behind it.
struct LastOfLoop {
  uint16_t first;
  InnerOp loop;
  InnerOp joined;
};

inline constexpr LastOfLoop kLastOfLoop[] = {
#define LAST_OF(kind, first, loop) \
  {static_cast<uint16_t>(kind::first), InnerOp::loop, InnerOp::first##_last_of_##loop},
#include "vm/decode/inner_ops.inc"
};

// `first` as a word of code has it.
constexpr InnerOp last_of_loop(uint16_t first, InnerOp loop) {
  if (first < kOpCount) first = static_cast<uint16_t>(same_bits(static_cast<Op>(first)));
  for (const LastOfLoop& row : kLastOfLoop)
    if (row.first == first && row.loop == loop) return row.joined;
  return kNoInner;
}

// What may follow a chain of two.
struct ChainOfThree {
  Arithmetic::Type type = Arithmetic::Type::none;
  std::array<InnerOp, 3> by_third;
};

inline constexpr auto kChainsOfThree = [] {
  std::array<ChainOfThree, static_cast<size_t>(InnerOp::kCount) - kOpCount> table;
  for (ChainOfThree& row : table) row.by_third.fill(kNoInner);
#define CHAIN_OF_THREE(chain_type, first, second, third)                                                 \
  {                                                                                                      \
    ChainOfThree& row = table[static_cast<size_t>(InnerOp::first##_##second##_##chain_type) - kOpCount]; \
    row.type = Arithmetic::Type::chain_type;                                                             \
    row.by_third[static_cast<size_t>(Arithmetic::Kind::third)] =                                         \
        InnerOp::first##_##second##_##third##_##chain_type;                                              \
  }
#include "vm/decode/inner_ops.inc"
  return table;
}();

// third(chain, d), of the number of an instruction that only decoded code has.
constexpr InnerOp chain_of_three(uint16_t chain, Arithmetic third) {
  const ChainOfThree& row = kChainsOfThree[chain - kOpCount];
  return row.type == third.type ? row.by_third[static_cast<size_t>(third.kind)] : kNoInner;
}

}  // namespace halyard::vm
