// Plans of memory, ranges of numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/memory_plan.h"
#include "plan/values.h"

namespace halyard::aot {
namespace {

using vm::Bank;
using vm::Op;

constexpr uint64_t kAlignment = 16;

void expect_apart(const std::vector<Lifetime>& all) {
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = i + 1; j < all.size(); ++j) {
      const bool meet = all[i].first <= all[j].last && all[j].first <= all[i].last;
      const bool apart =
          all[i].offset + all[i].size <= all[j].offset || all[j].offset + all[j].size <= all[i].offset;
      EXPECT_TRUE(!meet || apart || all[i].size == 0 || all[j].size == 0) << i << " and " << j;
    }
}

TEST(MemoryPlan, NothingNeedsNothing) {
  std::vector<Lifetime> none;
  EXPECT_EQ(place(none, kAlignment), 0u);
  EXPECT_EQ(peak_of(none, kAlignment), 0u);
}

TEST(MemoryPlan, BuffersOfOtherTimesShareBytes) {
  std::vector<Lifetime> all = {{100, 0, 1}, {100, 2, 3}, {50, 1, 2}};
  EXPECT_EQ(place(all, kAlignment), 112u + 64u);
  EXPECT_EQ(all[0].offset, all[1].offset);
  expect_apart(all);
}

// A chain in which first fit by decreasing size leaves a hole.
TEST(MemoryPlan, IsWithinATwentiethOfThePeak) {
  std::vector<Lifetime> all = {{32, 0, 2}, {48, 1, 3}, {32, 3, 5}, {64, 4, 6}, {16, 2, 4}, {48, 5, 7}};
  const uint64_t end = place(all, kAlignment);
  expect_apart(all);
  EXPECT_LE(static_cast<double>(end), 1.05 * static_cast<double>(peak_of(all, kAlignment)));
}

TEST(MemoryPlan, IsNeverAboveFirstFitAndNeverBelowThePeak) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> all(1 + random() % 24);
    for (Lifetime& each : all) {
      each.size = random() % 4 == 0 ? random() % 100000 : random() % 500;
      each.first = random() % 30;
      each.last = each.first + random() % 8;
    }
    std::vector<Lifetime> by_size = all;
    const uint64_t most = place_by_size(by_size, kAlignment);
    const uint64_t end = place(all, kAlignment);
    EXPECT_LE(end, most);
    EXPECT_GE(end, peak_of(all, kAlignment));
    expect_apart(all);
    for (const Lifetime& each : all) EXPECT_LE(each.offset + each.size, end);
  }
}

// ---- ranges

const Op kOps[] = {
    Op::add_i32,       Op::sub_i32,       Op::mul_i32,       Op::fma_i32,      Op::and_i32,
    Op::or_i32,        Op::xor_i32,       Op::shl_i32,       Op::shr_i32_s,    Op::shr_i32_u,
    Op::trunc_i32_i8,  Op::trunc_i32_i16, Op::ext_i8_i32_s,  Op::ext_i8_i32_u, Op::ext_i16_i32_s,
    Op::ext_i16_i32_u, Op::div_i32_u,     Op::rem_i32_u,     Op::div_i32_s,    Op::rem_i32_s,
    Op::min_i32_s,     Op::max_i32_s,     Op::min_i32_u,     Op::max_i32_u,    Op::cmp_lt_i32_s,
    Op::cmp_lt_i32_u,  Op::add_i64,       Op::sub_i64,       Op::mul_i64,      Op::fma_i64,
    Op::and_i64,       Op::shl_i64,       Op::shr_i64_s,     Op::shr_i64_u,    Op::div_i64_s,
    Op::rem_i64_s,     Op::div_i64_u,     Op::rem_i64_u,     Op::min_i64_s,    Op::max_i64_s,
    Op::trunc_i64_i32, Op::ext_i32_i64_s, Op::ext_i32_i64_u, Op::select_i32,   Op::select_i64};

int64_t signed_of(Bank bank, uint64_t bits) {
  return bank == Bank::i32 ? int64_t{static_cast<int32_t>(bits)} : static_cast<int64_t>(bits);
}

// The range of each result has all results of values within the ranges of the operands.
TEST(Ranges, HoldAllResults) {
  std::mt19937_64 random(7);
  const auto range_of = [&](Bank bank) {
    const Range all = Range::of(bank);
    const auto any = [&]() -> int64_t {
      switch (random() % 5) {
        case 0:
          return static_cast<int64_t>(random() % 20) - 5;
        case 1:
          return static_cast<int64_t>(random() % 100000);
        case 2:
          return all.low + static_cast<int64_t>(random() % 3);
        case 3:
          return all.high - static_cast<int64_t>(random() % 3);
        default:
          return bank == Bank::i32 ? int64_t{static_cast<int32_t>(random())} : static_cast<int64_t>(random());
      }
    };
    if (random() % 8 == 0) return all;
    const int64_t a = any();
    const int64_t b = random() % 4 == 0 ? a : any();
    Range range = {std::min(a, b), std::max(a, b), a == b ? 0 : 1};
    const auto width = static_cast<uint64_t>(range.high) - static_cast<uint64_t>(range.low);
    if (width > 3 && width < 1000000 && random() % 2 == 0) {
      range.step = 1 + static_cast<int64_t>(random() % 4);
      if (random() % 2 == 0) range.high = range.last();
    }
    return range;
  };
  for (int round = 0; round < 60000; ++round) {
    const Op op = kOps[random() % std::size(kOps)];
    const vm::OpInfo& facts = vm::info(op);
    Values values;
    values.constant(Bank::i32, 0);
    std::array<ValueId, 3> ranged = {kNoValue, kNoValue, kNoValue};
    std::array<ValueId, 3> exact = ranged;
    size_t inputs = 0;
    Bank bank = Bank::i32;
    for (size_t i = 0; i < facts.operand_count; ++i) {
      if (facts.operands[i].writes) {
        bank = facts.operands[i].bank;
        continue;
      }
      const Range range = range_of(facts.operands[i].bank);
      ranged[inputs] = values.add({.bank = facts.operands[i].bank, .range = range, .name = "x"});
      int64_t value = range.low;
      if (range.step != 0) {
        const uint64_t steps = (static_cast<uint64_t>(range.high) - static_cast<uint64_t>(range.low)) /
                               static_cast<uint64_t>(range.step);
        const uint64_t which = random() % 3 == 0     ? steps
                               : random() % 2 == 0   ? 0
                               : steps == UINT64_MAX ? random()
                                                     : random() % (steps + 1);
        value = static_cast<int64_t>(static_cast<uint64_t>(range.low) +
                                     which * static_cast<uint64_t>(range.step));
      }
      exact[inputs++] = values.constant(facts.operands[i].bank, static_cast<uint64_t>(value));
    }
    uint64_t bits = 0;
    if (!values.fold(op, exact, &bits)) continue;  // a division by zero
    const Range found = values.range(op, ranged, bank);
    const int64_t result = signed_of(bank, bits);
    ASSERT_LE(found.low, result) << facts.mnemonic();
    ASSERT_GE(found.high, result) << facts.mnemonic();
    if (found.step > 1) {
      ASSERT_EQ((result - found.low) % found.step, 0) << facts.mnemonic();
    }
  }
}

}  // namespace
}  // namespace halyard::aot
