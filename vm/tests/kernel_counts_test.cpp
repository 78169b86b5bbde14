// The counts of kernels equal numbers that follow from their loops by hand.
#include "vm/count/kernel_counts.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "counted_kernel.h"
#include "status_testing.h"
#include "vm/module/bytecode_module.h"
#include "vm/text/assembler.h"

namespace halyard::vm::test {
namespace {

Result<KernelCounts> counts_of(const std::string& text, KernelArguments arguments) {
  static constexpr uint64_t kLengths[] = {1000, 2000, 4000};
  if (arguments.binding_lengths.empty()) arguments.binding_lengths = kLengths;
  const auto bytes = HALYARD_TRY(assemble(text, {17, "t.vmasm"}));
  const TypeRegistry types;
  const Ref<BytecodeModule> module = HALYARD_TRY(BytecodeModule::load(Bytes::copy(bytes), types));
  return count_kernel(*module, 0, arguments);
}

void expect_counts(const std::string& text, const KernelArguments& arguments, uint64_t operations,
                   uint64_t read, uint64_t written) {
  const Result<KernelCounts> counts = counts_of(text, arguments);
  ASSERT_TRUE(counts) << counts.error().message();
  EXPECT_EQ(counts->operations, operations);
  ASSERT_TRUE(counts->bytes);
  EXPECT_EQ(counts->bytes->read, read);
  EXPECT_EQ(counts->bytes->written, written);
}

void expect_unknown(const std::string& text, const KernelArguments& arguments, const std::string& why) {
  const Result<KernelCounts> counts = counts_of(text, arguments);
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().code(), Code::UNIMPLEMENTED);
  EXPECT_EQ(counts.error().message(), why);
}

// A product of 4x3 and 3x2 matrices; the grid is the result, the constants are 3 and 2.
const char kProduct[] = R"(
    %i16 = vm.buffer.load.i32 %r1, %i10:11
    %i17 = vm.buffer.load.i32 %r1, %i12:13
    %i18 = vm.const.f32 0
    %i19 = vm.const.i32.zero
    vm.br ^bb1
  ^bb1:
    %i20 = vm.cmp.lt.i32.u %i19, %i16
    vm.cond_br %i20, ^bb2, ^bb3
  ^bb2:
    %i21 = vm.fma.i32 %i1, %i16, %i19
    %i22:23 = vm.ext.i32.i64.u %i21
    %i24 = vm.buffer.load.f32 %r3, %i22:23
    %i21 = vm.fma.i32 %i19, %i17, %i0
    %i22:23 = vm.ext.i32.i64.u %i21
    %i25 = vm.buffer.load.f32 %r4, %i22:23
    %i18 = vm.fma.f32 %i24, %i25, %i18
    %i9 = vm.const.i32 1
    %i19 = vm.add.i32 %i19, %i9
    vm.br ^bb1
  ^bb3:
    %i21 = vm.fma.i32 %i1, %i17, %i0
    %i22:23 = vm.ext.i32.i64.u %i21
    vm.buffer.store.f32 %i18, %r5, %i22:23
    vm.return
)";

TEST(KernelCounts, OfAProductOfMatrices) {
  const std::vector<uint32_t> constants = {3, 2};
  const auto bytes = std::as_bytes(std::span(constants));
  expect_counts(counted_kernel(kProduct), {.constants = bytes, .workgroups = {2, 4, 1}}, 2 * 4 * 3 * 2,
                4 * (4 * 3 + 3 * 2), 4 * 4 * 2);
}

TEST(KernelCounts, OfLoopsDoNotDependOnTheirLength) {
  const std::vector<uint32_t> constants = {1'000'000, 1'000};
  const auto bytes = std::as_bytes(std::span(constants));
  const std::vector<uint64_t> lengths(3, uint64_t{1} << 40);
  expect_counts(counted_kernel(kProduct),
                {.constants = bytes, .binding_lengths = lengths, .workgroups = {1'000, 1'000, 1}},
                2'000'000'000'000, 4 * (1'000'000'000 + 1'000'000'000ull), 4'000'000);
}

// Each workgroup adds up to 64 of 100 numbers: the last workgroup has 36.
TEST(KernelCounts, OfWorkgroupsThatDiffer) {
  expect_counts(counted_kernel(R"(
    %i14:15 = vm.ext.i32.i64.u %i0
    %i16:17 = vm.const.i64 64
    %i18:19 = vm.const.i64 100
    %i14:15 = vm.mul.i64 %i14:15, %i16:17
    %i18:19 = vm.sub.i64 %i18:19, %i14:15
    %i18:19 = vm.min.i64.s %i18:19, %i16:17
    vm.br ^bb1(%i10 -> %i20, %i11 -> %i21)
  ^bb1:
    %i22 = vm.cmp.lt.i64.s %i20:21, %i18:19
    vm.cond_br %i22, ^bb2, ^bb3
  ^bb2:
    %i24:25 = vm.add.i64 %i14:15, %i20:21
    %i26 = vm.buffer.load.f32 %r3, %i24:25
    %i27 = vm.add.f32 %i26, %i26
    vm.buffer.store.f32 %i27, %r4, %i24:25
    %i20:21 = vm.add.i64 %i20:21, %i12:13
    vm.br ^bb1
  ^bb3:
    vm.return
)"),
                {.workgroups = {2, 1, 1}}, 100, 400, 400);
}

// Rows of a triangle: the inner loop runs 0, 1, ..., 9 times.
TEST(KernelCounts, OfLoopsWhoseBoundsVary) {
  expect_counts(counted_kernel(R"(
    %i14:15 = vm.const.i64 10
    vm.br ^bb1(%i10 -> %i16, %i11 -> %i17)
  ^bb1:
    %i20 = vm.cmp.lt.i64.s %i16:17, %i14:15
    vm.cond_br %i20, ^bb2(%i10 -> %i18, %i11 -> %i19), ^bb5
  ^bb2:
    %i20 = vm.cmp.lt.i64.s %i18:19, %i16:17
    vm.cond_br %i20, ^bb3, ^bb4
  ^bb3:
    %i21 = vm.buffer.load.f32 %r3, %i18:19
    %i21 = vm.mul.f32 %i21, %i21
    %i18:19 = vm.add.i64 %i18:19, %i12:13
    vm.br ^bb2
  ^bb4:
    %i16:17 = vm.add.i64 %i16:17, %i12:13
    vm.br ^bb1
  ^bb5:
    vm.return
)"),
                {}, 45, 36, 0);
}

// The test is after the body, which runs for 10, 8, ..., 2; the address falls.
TEST(KernelCounts, OfLoopsThatTestAtTheirEnd) {
  expect_counts(counted_kernel(R"(
    %i14:15 = vm.const.i64 10
    %i16:17 = vm.const.i64 2
    vm.br ^bb1
  ^bb1:
    %i21 = vm.buffer.load.f32 %r3, %i14:15
    %i21 = vm.sqrt.f32 %i21
    %i14:15 = vm.sub.i64 %i14:15, %i16:17
    %i22 = vm.cmp.lt.i64.s %i10:11, %i14:15
    vm.cond_br %i22, ^bb1, ^bb2
  ^bb2:
    vm.buffer.store.f32 %i21, %r4, %i14:15
    vm.return
)"),
                {}, 5, 20, 4);
}

// Of 16 elements the odd ones are multiplied, and those below 4 are added.
TEST(KernelCounts, OfBranchesWithinLoops) {
  expect_counts(counted_kernel(R"(
    %i14:15 = vm.const.i64 16
    %i16:17 = vm.const.i64 4
    vm.br ^bb1(%i10 -> %i18, %i11 -> %i19)
  ^bb1:
    %i20 = vm.cmp.lt.i64.s %i18:19, %i14:15
    vm.cond_br %i20, ^bb2, ^bb7
  ^bb2:
    %i22:23 = vm.and.i64 %i18:19, %i12:13
    %i20 = vm.cmp.nz.i64 %i22:23
    vm.cond_br %i20, ^bb3, ^bb4
  ^bb3:
    %i21 = vm.mul.f32 %i21, %i21
    vm.br ^bb4
  ^bb4:
    %i20 = vm.cmp.lt.i64.s %i18:19, %i16:17
    vm.cond_br %i20, ^bb5, ^bb6
  ^bb5:
    %i21 = vm.add.f32 %i21, %i21
    vm.br ^bb6
  ^bb6:
    %i18:19 = vm.add.i64 %i18:19, %i12:13
    vm.br ^bb1
  ^bb7:
    vm.return
)"),
                {}, 8 + 4, 0, 0);
}

// A loop of stride 8 through 64 elements: the bytes of its elements, not the range.
TEST(KernelCounts, OfAccessesWithGaps) {
  expect_counts(counted_kernel(R"(
    %i14:15 = vm.const.i64 64
    %i16:17 = vm.const.i64 8
    vm.br ^bb1(%i10 -> %i18, %i11 -> %i19)
  ^bb1:
    %i20 = vm.cmp.lt.i64.s %i18:19, %i14:15
    vm.cond_br %i20, ^bb2, ^bb3
  ^bb2:
    %i21 = vm.buffer.load.i8.u %r3, %i18:19
    vm.buffer.store.i16 %i21, %r4, %i18:19
    %i18:19 = vm.add.i64 %i18:19, %i16:17
    vm.br ^bb1
  ^bb3:
    vm.buffer.fill.i32 %r5, %i10:11, %i16:17, %i21
    vm.return
)"),
                {}, 0, 8, 16 + 32);
}

// One loop over the 5x7 elements in the corner of a matrix with rows of 10, as compilers coalesce two.
TEST(KernelCounts, OfLoopsOverQuotientsAndRemainders) {
  expect_counts(counted_kernel(R"(
    %i14:15 = vm.const.i64 35
    %i16:17 = vm.const.i64 7
    %i28:29 = vm.const.i64 10
    vm.br ^bb1(%i10 -> %i18, %i11 -> %i19)
  ^bb1:
    %i20 = vm.cmp.lt.i64.s %i18:19, %i14:15
    vm.cond_br %i20, ^bb2, ^bb3
  ^bb2:
    %i22:23 = vm.div.i64.s %i18:19, %i16:17
    %i24:25 = vm.rem.i64.s %i18:19, %i16:17
    %i20 = vm.cmp.lt.i64.s %i24:25, %i10:11
    %i26:27 = vm.add.i64 %i24:25, %i16:17
    %i24:25 = vm.select.i64 %i20 ? %i26:27 : %i24:25
    %i24:25 = vm.fma.i64 %i22:23, %i28:29, %i24:25
    %i21 = vm.buffer.load.f32 %r3, %i24:25
    %i21 = vm.add.f32 %i21, %i21
    %i21 = vm.buffer.load.f32 %r3, %i24:25
    vm.buffer.store.f32 %i21, %r4, %i24:25
    %i18:19 = vm.add.i64 %i18:19, %i12:13
    vm.br ^bb1
  ^bb3:
    vm.return
)"),
                {}, 35, 4 * (4 * 10 + 7), 4 * 35);
}

TEST(KernelCounts, AreUnknownIfTheyDependOnData) {
  expect_unknown(counted_kernel(R"(
    %i20 = vm.buffer.load.i32 %r3, %i10:11
    vm.cond_br %i20, ^bb1, ^bb2
  ^bb1:
    %i21 = vm.add.f32 %i21, %i21
    vm.br ^bb2
  ^bb2:
    vm.return
)"),
                 {}, "a branch depends on data");
}

// Later workgroups read another buffer from it.
TEST(KernelCounts, AreUnknownIfTheListOfBindingsChanges) {
  expect_unknown(counted_kernel(R"(
    %r6 = vm.buffer.alloc %i12:13, %i9
    vm.list.set.ref %r2, %i9, %r6
    vm.return
)"),
                 {}, "it changes a list");
  expect_unknown(counted_kernel("    vm.list.resize %r2, %i9\n    vm.return\n"), {}, "it changes a list");
}

// Finding the loops takes time and memory for each pair of a block and a loop.
TEST(KernelCounts, AreUnknownWithManyLoops) {
  const auto with = [](int loops) {
    std::string text = "    vm.br ^bb1\n";
    for (int i = 1; i <= loops; ++i)
      text += fmt::format("  ^bb{}:\n    vm.cond_br %i9, ^bb{}, ^bb{}\n", i, i + 1, i);
    return counted_kernel(fmt::format("{}  ^bb{}:\n    vm.return\n", text, loops + 1));
  };
  EXPECT_TRUE(counts_of(with(100), {}));
  expect_unknown(with(1100), {}, "the kernel has too many loops");
}

TEST(KernelCounts, OfImportsFollowFromTheirIntegers) {
  const std::string text = counted_kernel(R"(
    vm.call @vmvx.scale(%r3, %i12:13)
    vm.return
)",
                                          "vm.import @vmvx.scale cconv \"0rI_v\"\n");
  expect_unknown(text, {}, "it calls 'vmvx.scale'");
  const KernelArguments arguments = {
      .workgroups = {5, 1, 1},
      .import_operations = [](std::string_view, std::span<const std::optional<int64_t>> integers) {
        return integers[0] ? std::optional<uint64_t>(7 * static_cast<uint64_t>(*integers[0])) : std::nullopt;
      }};
  const Result<KernelCounts> counts = counts_of(text, arguments);
  ASSERT_TRUE(counts) << counts.error().message();
  EXPECT_EQ(counts->operations, 35u);
  EXPECT_FALSE(counts->bytes);
}

}  // namespace
}  // namespace halyard::vm::test
