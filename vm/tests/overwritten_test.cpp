// The bytes that a kernel certainly writes, and those that it may read before, equal those that follow by
// hand; forms equal what their expressions compute.
#include "vm/count/overwritten.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "counted_kernel.h"
#include "status_testing.h"
#include "vm/count/form.h"
#include "vm/count/kernel_counts.h"
#include "vm/module/bytecode_module.h"
#include "vm/text/assembler.h"

namespace halyard::vm::test {
namespace {

using WrittenRange = KernelCounts::Range;
using OverwrittenTrips = std::array<uint64_t, kMaxDimensions>;

// A loop with counter %i18:19 from 0 to `trips` - 1.
std::string writing_loop(int trips, const std::string& body, const std::string& before_test = "") {
  return "    %i14:15 = vm.const.i64 " + std::to_string(trips) + R"(
    vm.br ^bb1(%i10 -> %i18, %i11 -> %i19)
  ^bb1:
)" + before_test +
         R"(
    %i20 = vm.cmp.lt.i64.s %i18:19, %i14:15
    vm.cond_br %i20, ^bb2, ^bb3
  ^bb2:
)" + body +
         R"(
    %i18:19 = vm.add.i64 %i18:19, %i12:13
    vm.br ^bb1
  ^bb3:
)";
}

Result<KernelCounts> accesses_of(const std::string& body, std::array<uint32_t, 3> workgroups = {1, 1, 1}) {
  static constexpr uint64_t kLengths[] = {1000, 2000, 4000};
  const auto bytes = HALYARD_TRY(assemble(counted_kernel(body), {17, "t.vmasm"}));
  const TypeRegistry types;
  const Ref<BytecodeModule> module = HALYARD_TRY(BytecodeModule::load(Bytes::copy(bytes), types));
  return count_kernel(*module, 0,
                      {.binding_lengths = kLengths, .workgroups = workgroups, .finds_overwritten = true});
}

void expect_overwritten(const std::string& body, const std::vector<WrittenRange>& expected,
                        std::array<uint32_t, 3> workgroups = {1, 1, 1}) {
  const Result<KernelCounts> counts = accesses_of(body, workgroups);
  ASSERT_TRUE(counts) << counts.error().message();
  EXPECT_EQ(counts->overwritten.size(), expected.size());
  EXPECT_EQ(counts->overwritten, expected);
}

void expect_inputs(const std::string& body, const std::vector<WrittenRange>& expected,
                   std::array<uint32_t, 3> workgroups = {1, 1, 1}) {
  const Result<KernelCounts> counts = accesses_of(body, workgroups);
  ASSERT_TRUE(counts) << counts.error().message();
  EXPECT_EQ(counts->inputs.size(), expected.size());
  EXPECT_EQ(counts->inputs, expected);
}

constexpr const char* kStoreAtCounter = "    vm.buffer.store.i32 %i9, %r4, %i18:19\n";

TEST(Overwritten, ByALoop) {
  expect_overwritten(writing_loop(100, kStoreAtCounter) + "    vm.return\n", {{1, true, 0, 400}});
  // Each second element.
  expect_overwritten(writing_loop(3, R"(
    %i22:23 = vm.add.i64 %i18:19, %i18:19
    vm.buffer.store.i32 %i9, %r4, %i22:23
)") + "    vm.return\n",
                     {{1, true, 0, 4}, {1, true, 8, 12}, {1, true, 16, 20}});
  // Backwards.
  expect_overwritten(writing_loop(10, R"(
    %i22:23 = vm.sub.i64 %i14:15, %i18:19
    vm.buffer.store.i32 %i9, %r4, %i22:23
)") + "    vm.return\n",
                     {{1, true, 4, 44}});
}

// The 5x7 elements in the corner of a matrix with rows of 10; one loop, as compilers coalesce two.
TEST(Overwritten, ByQuotientsAndRemainders) {
  const auto corner = [](int trips) {
    return writing_loop(trips, R"(
    %i24:25 = vm.const.i64 7
    %i26:27 = vm.div.i64.s %i18:19, %i24:25
    %i28:29 = vm.rem.i64.s %i18:19, %i24:25
    %i20 = vm.cmp.lt.i64.s %i28:29, %i10:11
    %i30:31 = vm.add.i64 %i28:29, %i24:25
    %i28:29 = vm.select.i64 %i20 ? %i30:31 : %i28:29
    %i24:25 = vm.const.i64 10
    %i26:27 = vm.fma.i64 %i26:27, %i24:25, %i28:29
    vm.buffer.store.i32 %i9, %r4, %i26:27
)") + "    vm.return\n";
  };
  std::vector<WrittenRange> rows;
  for (uint64_t row = 0; row < 5; ++row) rows.push_back({1, true, 40 * row, 40 * row + 28});
  expect_overwritten(corner(35), rows);
  expect_overwritten(corner(34), {});  // the last row is not complete: nothing is known
}

// Elements of four columns for each of two workgroups that differ in size, and of three that do not.
TEST(Overwritten, ByWorkgroups) {
  expect_overwritten(R"(
    %i14:15 = vm.ext.i32.i64.u %i0
    vm.buffer.store.i64 %i12:13, %r4, %i14:15
    vm.return
)",
                     {{1, true, 0, 24}}, {3, 1, 1});
  expect_overwritten(R"(
    %i20 = vm.cmp.nz.i32 %i0
    vm.cond_br %i20, ^bb1, ^bb2
  ^bb1:
    vm.buffer.store.i64 %i12:13, %r4, %i12:13
    vm.return
  ^bb2:
    vm.buffer.store.i32 %i9, %r4, %i10:11
    vm.return
)",
                     {{1, true, 0, 4}, {1, true, 8, 16}}, {2, 1, 1});
}

TEST(Overwritten, ByRangesOfBuffers) {
  expect_overwritten(R"(
    %i14:15 = vm.const.i64 100
    %i16:17 = vm.const.i64 50
    vm.buffer.fill.i32 %r5, %i16:17, %i16:17, %i9
    vm.buffer.copy %r3, %i10:11, %r4, %i14:15, %i16:17
    vm.return
)",
                     {{1, true, 100, 150}, {2, true, 200, 400}});
}

// Offsets outside of the binding, after which the kernel fails.
TEST(Overwritten, OnlyInside) {
  expect_overwritten(writing_loop(501, kStoreAtCounter) + "    vm.return\n", {});
  expect_overwritten(writing_loop(3, R"(
    %i22:23 = vm.sub.i64 %i18:19, %i12:13
    vm.buffer.store.i32 %i9, %r4, %i22:23
)") + "    vm.return\n",
                     {});
}

// Indices that wrap are other ones than their first iterations tell.
TEST(Overwritten, OnlyWithoutWrapping) {
  const auto narrowed = [](int trips, const char* op) {
    return writing_loop(trips,
                        std::string("    %i22 = vm.trunc.i64.i32 %i18:19\n    %i22 = vm.") + op + R"( %i22
    %i24:25 = vm.ext.i32.i64.s %i22
    vm.buffer.store.i8 %i9, %r4, %i24:25
)") + "    vm.return\n";
  };
  expect_overwritten(narrowed(256, "trunc.i32.i8"), {{1, true, 0, 256}});
  expect_overwritten(narrowed(257, "trunc.i32.i8"), {});
  expect_overwritten(narrowed(128, "ext.i8.i32.s"), {{1, true, 0, 128}});
  expect_overwritten(narrowed(129, "ext.i8.i32.s"), {});
  // A sum of 32 bits that wraps to where the binding begins.
  const auto sum = [](int64_t start) {
    return writing_loop(8, R"(
    %i22 = vm.trunc.i64.i32 %i18:19
    %i23 = vm.const.i32 )" + std::to_string(start) +
                               R"(
    %i22 = vm.add.i32 %i22, %i23
    %i24:25 = vm.ext.i32.i64.s %i22
    %i26:27 = vm.const.i64 )" + std::to_string(start) +
                               R"(
    %i24:25 = vm.sub.i64 %i24:25, %i26:27
    vm.buffer.store.i8 %i9, %r4, %i24:25
)") + "    vm.return\n";
  };
  expect_overwritten(sum(2147483640), {{1, true, 0, 8}});
  expect_overwritten(sum(2147483641), {});
}

// What depends on data is not certain; a store before the test of its loop is not counted.
TEST(Overwritten, OnlyIfItIsCertain) {
  const Result<KernelCounts> counts = accesses_of(R"(
    %i14 = vm.buffer.load.i32 %r3, %i10:11
    vm.cond_br %i14, ^bb1, ^bb2
  ^bb1:
    vm.buffer.store.i32 %i9, %r4, %i10:11
    vm.return
  ^bb2:
    vm.return
)");
  EXPECT_FALSE(counts);
  expect_overwritten(R"(
    %i14 = vm.buffer.load.i32 %r3, %i10:11
    %i14:15 = vm.ext.i32.i64.u %i14
    vm.buffer.store.i32 %i9, %r4, %i14:15
    vm.return
)",
                     {});
  expect_overwritten(writing_loop(5, "", kStoreAtCounter) + "    vm.return\n", {});
}

// Iterations that differ are followed one by one; what was noted before that was found does not count.
TEST(Overwritten, ByIterationsThatDiffer) {
  expect_overwritten(writing_loop(6, R"(
    vm.buffer.store.i32 %i9, %r4, %i18:19
    %i24:25 = vm.const.i64 3
    %i20 = vm.cmp.lt.i64.s %i18:19, %i24:25
    vm.cond_br %i20, ^bb4, ^bb5
  ^bb4:
    vm.buffer.store.i32 %i9, %r5, %i18:19
    vm.br ^bb5
  ^bb5:
)") + "    vm.return\n",
                     {{1, true, 0, 24}, {2, true, 0, 12}});
}

TEST(Inputs, AreWhatIsReadBeforeItIsWritten) {
  const std::string load = "    %i22 = vm.buffer.load.i32 %r4, %i18:19\n";
  expect_inputs(writing_loop(50, load) + "    vm.return\n", {{1, false, 0, 200}});
  expect_inputs(writing_loop(50, load + kStoreAtCounter) + "    vm.return\n", {{1, false, 0, 200}});
  expect_inputs(writing_loop(50, kStoreAtCounter + load) + "    vm.return\n", {});
  // Written in the iterations before only.
  expect_inputs(writing_loop(50, kStoreAtCounter + std::string(R"(
    %i24:25 = vm.add.i64 %i18:19, %i12:13
    %i22 = vm.buffer.load.i32 %r4, %i24:25
)")) + "    vm.return\n",
                {{1, false, 4, 204}});
  // In a loop after the one that writes.
  const auto after = [&](int trips) {
    return writing_loop(50, kStoreAtCounter) + "    %i14:15 = vm.const.i64 " + std::to_string(trips) + R"(
    vm.br ^bb4(%i10 -> %i18, %i11 -> %i19)
  ^bb4:
    %i20 = vm.cmp.lt.i64.s %i18:19, %i14:15
    vm.cond_br %i20, ^bb5, ^bb6
  ^bb5:
    %i22 = vm.buffer.load.i32 %r4, %i18:19
    %i18:19 = vm.add.i64 %i18:19, %i12:13
    vm.br ^bb4
  ^bb6:
    vm.return
)";
  };
  expect_inputs(after(50), {});
  expect_inputs(after(49), {});
  expect_inputs(after(51), {{1, false, 0, 204}});
}

// A workgroup does not see what others write.
TEST(Inputs, AreThoseOfEachWorkgroup) {
  const auto with_read_at = [](const std::string& read) {
    return R"(
    %i14:15 = vm.ext.i32.i64.u %i0
    vm.buffer.store.i32 %i9, %r4, %i14:15
    %i18:19 = vm.add.i64 %i14:15, %i12:13
    %i9 = vm.buffer.load.i32 %r4, )" +
           read + "\n    vm.return\n";
  };
  expect_inputs(with_read_at("%i14:15"), {}, {4, 1, 1});
  expect_inputs(with_read_at("%i18:19"), {{1, false, 4, 20}}, {4, 1, 1});
  expect_inputs(with_read_at("%i10:11"), {{1, false, 0, 4}}, {4, 1, 1});
  expect_inputs(with_read_at("%i10:11"), {}, {1, 1, 1});
}

TEST(Inputs, AreWholeBindingsIfTheirOffsetsAreNotKnown) {
  expect_inputs(R"(
    %i14 = vm.buffer.load.i32 %r3, %i12:13
    %i14:15 = vm.ext.i32.i64.u %i14
    %i9 = vm.buffer.load.i32 %r4, %i14:15
    vm.return
)",
                {{0, false, 4, 8}, {1, false, 0, 2000}});
  // It wraps, so the offsets of the first iterations tell nothing.
  expect_inputs(writing_loop(300, R"(
    %i22 = vm.trunc.i64.i32 %i18:19
    %i22 = vm.trunc.i32.i8 %i22
    %i24:25 = vm.ext.i32.i64.s %i22
    %i9 = vm.buffer.load.i8.u %r4, %i24:25
)") + "    vm.return\n",
                {{1, false, 0, 2000}});
}

// Random expressions of two counters: forms have the values that the expression has in each iteration, and
// steps the same set of values.
TEST(Form, IsItsExpression) {
  std::mt19937_64 random(1);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  OverwrittenTrips trips = {};
  int with_steps = 0;
  for (int round = 0; round < 20'000; ++round) {
    trips[3] = static_cast<uint64_t>(1 + below(4)) * 6;
    trips[5] = static_cast<uint64_t>(1 + below(5));
    struct Term {
      std::optional<Form> form;
      std::function<int64_t(int64_t, int64_t)> value;
    };
    std::vector<Term> terms;
    for (const int dimension : {3, 5}) {
      Scalar counter = constant_scalar(0);
      counter.varies = 1u << dimension;
      counter.slope[static_cast<size_t>(dimension)] = 1;
      terms.push_back({Form::of(counter), [=](int64_t i, int64_t j) { return dimension == 3 ? i : j; }});
    }
    const auto least = [&](const Term& term) {
      int64_t result = INT64_MAX;
      for (int64_t i = 0; i < static_cast<int64_t>(trips[3]); ++i)
        for (int64_t j = 0; j < static_cast<int64_t>(trips[5]); ++j)
          result = std::min(result, term.value(i, j));
      return result;
    };
    for (int step = 0; step < 5; ++step) {
      const Term a = terms[static_cast<size_t>(below(static_cast<int64_t>(terms.size())))];
      const Term b = terms[static_cast<size_t>(below(static_cast<int64_t>(terms.size())))];
      if (!a.form || !b.form) continue;
      const int64_t number = 1 + below(6);
      switch (below(4)) {
        case 0: {
          const int64_t factor = below(2) ? 1 : -1;
          terms.push_back({a.form->plus(*b.form, factor),
                           [=](int64_t i, int64_t j) { return a.value(i, j) + factor * b.value(i, j); }});
          break;
        }
        case 1:
          terms.push_back(
              {a.form->times(number), [=](int64_t i, int64_t j) { return a.value(i, j) * number; }});
          break;
        case 2:
          if (least(a) < 0) break;
          terms.push_back(
              {a.form->quotient(number), [=](int64_t i, int64_t j) { return a.value(i, j) / number; }});
          break;
        default:
          if (least(a) < 0) break;
          terms.push_back(
              {a.form->remainder(number), [=](int64_t i, int64_t j) { return a.value(i, j) % number; }});
      }
    }
    const Term& last = terms.back();
    const auto steps = last.form ? last.form->steps(trips) : std::nullopt;
    if (!steps) continue;
    ++with_steps;
    std::set<int64_t> expected;
    for (int64_t i = 0; i < static_cast<int64_t>(trips[3]); ++i)
      for (int64_t j = 0; j < static_cast<int64_t>(trips[5]); ++j) expected.insert(last.value(i, j));
    std::set<int64_t> found = {steps->begin};
    for (size_t s = 0; s < steps->count; ++s) {
      std::set<int64_t> next;
      for (const int64_t value : found)
        for (uint64_t k = 0; k < steps->steps[s].trips; ++k)
          next.insert(value + static_cast<int64_t>(k) * steps->steps[s].stride);
      found = std::move(next);
    }
    ASSERT_EQ(found, expected) << "round " << round;
  }
  EXPECT_GT(with_steps, 5'000);
}

// Random boxes: the ranges are the bytes of all of them.
TEST(Overwritten, RangesAreTheBytesOfAllBoxes) {
  std::mt19937_64 random(2);
  const auto below = [&](uint64_t end) { return random() % end; };
  for (int round = 0; round < 5'000; ++round) {
    Overwritten overwritten(1 << 16);
    std::vector<bool> expected(400, false);
    for (uint64_t box = 1 + below(5); box > 0; --box) {
      Form::Steps steps = {.begin = static_cast<int64_t>(80 + below(40)), .count = below(3)};
      for (size_t s = 0; s < steps.count; ++s)
        steps.steps[s] = {static_cast<int64_t>(below(19)) - 9, 1 + below(5)};
      for (size_t s = 0; s < steps.count; ++s)
        if (steps.steps[s].stride == 0) steps.steps[s].stride = 1;
      const uint64_t size = 1 + below(8);
      overwritten.add(0, size, steps);
      for (uint64_t i = 0; i < (steps.count > 0 ? steps.steps[0].trips : 1); ++i)
        for (uint64_t j = 0; j < (steps.count > 1 ? steps.steps[1].trips : 1); ++j)
          for (uint64_t k = 0; k < size; ++k)
            expected[static_cast<size_t>(steps.begin + static_cast<int64_t>(i) * steps.steps[0].stride +
                                         static_cast<int64_t>(j) * steps.steps[1].stride) +
                     k] = true;
    }
    std::vector<bool> found(400, false);
    const auto ranges = overwritten.ranges();
    ASSERT_TRUE(ranges);
    for (size_t r = 0; r < ranges->size(); ++r) {
      const WrittenRange& range = (*ranges)[r];
      ASSERT_LT(range.begin, range.end);
      if (r != 0) {
        ASSERT_LT((*ranges)[r - 1].end, range.begin) << "they do not meet";
      }
      for (uint64_t i = range.begin; i < range.end; ++i) found[i] = true;
    }
    ASSERT_EQ(found, expected) << "round " << round;
  }
}

TEST(Overwritten, TooManyRangesAreNotListed) {
  Overwritten few(10);
  few.add(0, 1, {.begin = 0, .count = 1, .steps = {{{2, 10}}}});
  EXPECT_TRUE(few.ranges());
  few.add(0, 1, {.begin = 100, .count = 0});
  EXPECT_FALSE(few.ranges());
}

}  // namespace
}  // namespace halyard::vm::test
