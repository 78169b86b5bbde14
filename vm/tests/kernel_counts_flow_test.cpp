// Counts of kernels with every form of control flow, and the reasons for which counts are unknown.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "status_testing.h"
#include "vm/count/kernel_counts.h"
#include "vm/module/bytecode_module.h"
#include "vm/text/assembler.h"

namespace halyard::vm::test {
namespace {

// A kernel with bindings 0 and 1 in r3 and r4, and the numbers 0 and 1 in i10:11 and i12:13.
std::string kernel_of(const std::string& body, const std::string& before = "") {
  return "vm.module @kernels\n" + before +
         R"(vm.export @f
vm.func @f(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, %i4: i32, %i5: i32, %i6: i32, %i7: i32, %i8: i32) -> () {
    %i9 = vm.const.i32.zero
    %r3 = vm.list.get.ref %r2, %i9 : !vm.buffer
    %i9 = vm.const.i32 1
    %r4 = vm.list.get.ref %r2, %i9 : !vm.buffer
    %i10:11 = vm.const.i64.zero
    %i12:13 = vm.const.i64 1
)" + body +
         "}\n";
}

// A loop from 0 below i14:15 in steps of i16:17 whose counter is i18:19, and whose test is `test`.
std::string counted_loop(const std::string& body,
                         const std::string& test = "vm.cmp.lt.i64.s %i18:19, %i14:15") {
  return R"(
    vm.br ^bb1(%i10 -> %i18, %i11 -> %i19)
  ^bb1:
    %i20 = )" +
         test + R"(
    vm.cond_br %i20, ^bb2, ^bb3
  ^bb2:
)" + body +
         R"(
    %i18:19 = vm.add.i64 %i18:19, %i16:17
    vm.br ^bb1
  ^bb3:
    vm.return
)";
}

constexpr uint64_t kFlowLengths[] = {1000, 2000};

Result<KernelCounts> flow_counts(const std::string& text, KernelArguments arguments = {}) {
  arguments.binding_lengths = kFlowLengths;
  const auto bytes = HALYARD_TRY(assemble(text, {17, "t.vmasm"}));
  const TypeRegistry types;
  const Ref<BytecodeModule> module = HALYARD_TRY(BytecodeModule::load(Bytes::copy(bytes), types));
  return count_kernel(*module, 0, arguments);
}

uint64_t flow_operations(const std::string& body, KernelArguments arguments = {}) {
  const Result<KernelCounts> counts = flow_counts(kernel_of(body), arguments);
  EXPECT_TRUE(counts) << counts.error().text();
  return counts ? counts->operations : UINT64_MAX;
}

constexpr char kAddFloats[] = "%i21 = vm.add.f32 %i21, %i21\n";

TEST(KernelCountsFlow, TablesOfBranches) {
  const auto taken = [](int index) {
    return flow_operations("%i20 = vm.const.i32 " + std::to_string(index) + R"(
    vm.br_table %i20 { default: ^bb3, 0: ^bb1, 1: ^bb2 }
  ^bb1:
    %i21 = vm.add.f32 %i21, %i21
    vm.br ^bb3
  ^bb2:
    %i21 = vm.add.f32 %i21, %i21
    %i21 = vm.add.f32 %i21, %i21
    vm.br ^bb3
  ^bb3:
    vm.return
)");
  };
  EXPECT_EQ(taken(0), 1u);
  EXPECT_EQ(taken(1), 2u);
  EXPECT_EQ(taken(2), 0u);
  EXPECT_EQ(taken(-1), 0u);
  // The workgroups differ, and are followed one by one.
  EXPECT_EQ(flow_operations(R"(
    vm.br_table %i0 { default: ^bb2, 0: ^bb1 }
  ^bb1:
    %i21 = vm.add.f32 %i21, %i21
    vm.br ^bb2
  ^bb2:
    vm.return
)",
                            {.workgroups = {5, 3, 1}}),
            3u);
  EXPECT_FAILS(UNIMPLEMENTED, "a branch depends on data", flow_counts(kernel_of(R"(
    %i20 = vm.buffer.load.i32 %r3, %i10:11
    vm.br_table %i20 { default: ^bb1 }
  ^bb1:
    vm.return
)")));
}

TEST(KernelCountsFlow, Failures) {
  const auto fails = [](const std::string& status) {
    return flow_counts(kernel_of(status + "\n vm.fail %i20, \"no\"\n ^bb1:\n" + kAddFloats + "vm.return\n"));
  };
  EXPECT_EQ(ASSERT_VALUE(fails("%i20 = vm.const.i32.zero")).operations, 1u);
  EXPECT_FAILS(UNIMPLEMENTED, "it fails", fails("%i20 = vm.const.i32 3"));
  EXPECT_FAILS(UNIMPLEMENTED, "a branch depends on data", fails("%i20 = vm.buffer.load.i32 %r3, %i10:11"));
  EXPECT_FAILS(UNIMPLEMENTED, "it fails",
               flow_counts(kernel_of("vm.fail %i0, \"no\"\n^bb1:\nvm.return\n"), {.workgroups = {2, 1, 1}}));
}

TEST(KernelCountsFlow, LoopsWithOtherTests) {
  const std::string head = "%i14:15 = vm.const.i64 12\n %i16:17 = vm.const.i64 3\n";
  EXPECT_EQ(flow_operations(head + counted_loop(kAddFloats, "vm.cmp.ne.i64 %i18:19, %i14:15")), 4u);
  EXPECT_EQ(flow_operations(head + counted_loop(kAddFloats, "vm.cmp.lt.i64.u %i18:19, %i14:15")), 4u);
  EXPECT_EQ(flow_operations(head + counted_loop(kAddFloats, "vm.cmp.eq.i64 %i18:19, %i10:11")), 1u);
  EXPECT_EQ(flow_operations(head + counted_loop(kAddFloats, "vm.cmp.lt.i64.s %i14:15, %i18:19")), 0u)
      << "none at all";
  // From 0 downwards.
  EXPECT_EQ(flow_operations("%i14:15 = vm.const.i64 -12\n %i16:17 = vm.const.i64 -5\n" +
                            counted_loop(kAddFloats, "vm.cmp.lt.i64.s %i14:15, %i18:19")),
            3u);
  // 13 is no multiple of 3: the loop is followed until it wraps, which takes too long.
  EXPECT_FAILS(UNIMPLEMENTED, "too many steps",
               flow_counts(kernel_of("%i14:15 = vm.const.i64 13\n %i16:17 = vm.const.i64 3\n" +
                                     counted_loop(kAddFloats, "vm.cmp.ne.i64 %i18:19, %i14:15")),
                           {.max_steps = 10'000}));
  EXPECT_FAILS(UNIMPLEMENTED, "too many steps",
               flow_counts(kernel_of(head + counted_loop(kAddFloats, "vm.cmp.lt.i64.s %i10:11, %i14:15")),
                           {.max_steps = 10'000}));
}

TEST(KernelCountsFlow, ALoopWithoutAnEnd) {
  EXPECT_FAILS(UNIMPLEMENTED, "too many steps",
               flow_counts(kernel_of("vm.br ^bb1\n^bb1:\n" + std::string(kAddFloats) +
                                     "vm.br ^bb1\n^bb2:\nvm.return\n"),
                           {.max_steps = 1000}));
}

// The counter doubles: no sum of constants, so that iterations are followed one by one.
TEST(KernelCountsFlow, ALoopWhoseCounterIsMultiplied) {
  EXPECT_EQ(flow_operations("%i14:15 = vm.const.i64 1000\n" + std::string(R"(
    vm.br ^bb1(%i12 -> %i18, %i13 -> %i19)
  ^bb1:
    %i20 = vm.cmp.lt.i64.s %i18:19, %i14:15
    vm.cond_br %i20, ^bb2, ^bb3
  ^bb2:
    %i21 = vm.add.f32 %i21, %i21
    %i18:19 = vm.add.i64 %i18:19, %i18:19
    vm.br ^bb1
  ^bb3:
    vm.return
)")),
            10u);
}

// A second test leaves the loop at 5 of 12.
TEST(KernelCountsFlow, ALoopWithTwoEnds) {
  EXPECT_EQ(flow_operations(R"(
    %i14:15 = vm.const.i64 12
    %i16:17 = vm.const.i64 5
    vm.br ^bb1(%i10 -> %i18, %i11 -> %i19)
  ^bb1:
    %i20 = vm.cmp.lt.i64.s %i18:19, %i14:15
    vm.cond_br %i20, ^bb2, ^bb4
  ^bb2:
    %i20 = vm.cmp.eq.i64 %i18:19, %i16:17
    vm.cond_br %i20, ^bb4, ^bb3
  ^bb3:
    %i21 = vm.add.f32 %i21, %i21
    %i18:19 = vm.add.i64 %i18:19, %i12:13
    vm.br ^bb1
  ^bb4:
    vm.return
)"),
            5u);
}

TEST(KernelCountsFlow, NoWorkgroupsDoNothing) {
  const KernelCounts counts = ASSERT_VALUE(
      flow_counts(kernel_of(std::string(kAddFloats) + "vm.return\n"), {.workgroups = {0, 7, 1}}));
  EXPECT_EQ(counts.operations, 0u);
  ASSERT_TRUE(counts.bytes);
  EXPECT_EQ(counts.bytes->read, 0u);
}

TEST(KernelCountsFlow, MoreOperationsThanCanBeCounted) {
  const std::string loop =
      "%i14:15 = vm.const.i64 4611686018427387000\n %i16:17 = vm.const.i64 1\n" + counted_loop(kAddFloats);
  EXPECT_EQ(flow_operations(loop), 4611686018427387000u);
  EXPECT_FAILS(UNIMPLEMENTED, "there are too many operations",
               flow_counts(kernel_of(loop), {.workgroups = {5, 1, 1}}));
  EXPECT_FAILS(UNIMPLEMENTED, "there are too many operations",
               flow_counts(kernel_of(loop), {.workgroups = {UINT32_MAX, UINT32_MAX, UINT32_MAX}}));
}

TEST(KernelCountsFlow, RangesOfWholeBuffers) {
  const KernelCounts counts = ASSERT_VALUE(flow_counts(kernel_of(R"(
    %i14:15 = vm.const.i64 100
    %i16:17 = vm.const.i64 40
    vm.buffer.copy %r3, %i10:11, %r4, %i14:15, %i16:17
    %i20 = vm.buffer.compare %r3, %i16:17, %r4, %i10:11, %i12:13
    %i22:23 = vm.buffer.hash %r4, %i14:15, %i12:13
    %i24 = vm.const.i32 1
    %r5 = vm.buffer.clone %r3, %i14:15, %i16:17, %i24
    %i22:23 = vm.buffer.length %r5
    %i22:23 = vm.buffer.length %r3
    %r6 = vm.buffer.alloc %i22:23, %i24
    %i22:23 = vm.buffer.length %r6
    vm.buffer.store.i32 %i24, %r6, %i10:11
    vm.buffer.copy %r3, %i10:11, %r4, %i14:15, %i10:11
    %r7 = vm.assign.ref %r3
    %i25 = vm.buffer.load.i8.u %r7, %i22:23
    vm.discard.refs %r3, %r4
    vm.return
)")));
  ASSERT_TRUE(counts.bytes);
  // 40 that are copied and 1 that is compared, 40 that are cloned; the load behind the end is no byte.
  EXPECT_EQ(counts.bytes->read, 41u + 40 + 2);
  EXPECT_EQ(counts.bytes->written, 40u);
  using Range = KernelCounts::Range;
  EXPECT_EQ(counts.ranges, (std::vector<Range>{{0, false, 0, 41},
                                               {0, false, 100, 140},
                                               {1, false, 0, 1},
                                               {1, false, 100, 101},
                                               {1, true, 100, 140}}));
}

TEST(KernelCountsFlow, ARangeOfUnknownLengthLeavesBytesOut) {
  const KernelCounts counts = ASSERT_VALUE(flow_counts(kernel_of(R"(
    %i14:15 = vm.buffer.load.i64 %r3, %i10:11
    vm.buffer.copy %r3, %i10:11, %r4, %i10:11, %i14:15
    %i21 = vm.add.f32 %i21, %i21
    vm.return
)")));
  EXPECT_EQ(counts.operations, 1u);
  EXPECT_FALSE(counts.bytes);
  EXPECT_TRUE(counts.ranges.empty());
}

TEST(KernelCountsFlow, BindingsThatAreNotThere) {
  const KernelCounts counts = ASSERT_VALUE(flow_counts(kernel_of(R"(
    %i9 = vm.const.i32 2
    %r5 = vm.list.get.ref %r2, %i9 : !vm.buffer
    %i21 = vm.buffer.load.f32 %r5, %i10:11
    vm.return
)")));
  EXPECT_FALSE(counts.bytes);
}

TEST(KernelCountsFlow, ConstantsBehindTheirEndAreUnknown) {
  const std::vector<int64_t> constants = {3};
  const auto bytes = std::as_bytes(std::span(constants));
  const auto loop = [&](const std::string& load) {
    return kernel_of("%i22:23 = vm.const.i64 " + load + "\n%i14:15 = vm.buffer.load.i64 %r1, %i22:23\n" +
                     "%i16:17 = vm.const.i64 1\n" + counted_loop(kAddFloats));
  };
  EXPECT_EQ(ASSERT_VALUE(flow_counts(loop("0"), {.constants = bytes})).operations, 3u);
  EXPECT_FAILS(UNIMPLEMENTED, "a branch depends on data", flow_counts(loop("1"), {.constants = bytes}));
  EXPECT_FAILS(UNIMPLEMENTED, "a branch depends on data", flow_counts(loop("-1"), {.constants = bytes}));
  EXPECT_EQ(ASSERT_VALUE(flow_counts(kernel_of("%i14:15 = vm.buffer.length %r1\n %i16:17 = vm.const.i64 1\n" +
                                               counted_loop(kAddFloats)),
                                     {.constants = bytes}))
                .operations,
            8u);
}

TEST(KernelCountsFlow, CallsOfFunctionsAndOfUnknownImports) {
  EXPECT_FAILS(UNIMPLEMENTED, "it calls another function",
               flow_counts(kernel_of("vm.call @g()\nvm.return\n") + "vm.func @g() -> () {\n vm.return\n}\n"));
  EXPECT_FAILS(UNIMPLEMENTED, "it calls 'vmvx.get'",
               flow_counts(kernel_of("%i20 = vm.call @vmvx.get()\nvm.return\n",
                                     "vm.import @vmvx.get cconv \"0v_i\"\n")));
  // What an import returns is data.
  const KernelArguments known = {
      .import_operations = [](std::string_view, std::span<const std::optional<int64_t>>) {
        return std::optional<uint64_t>(4);
      }};
  EXPECT_FAILS(
      UNIMPLEMENTED, "a branch depends on data",
      flow_counts(kernel_of("%i20 = vm.call @vmvx.get()\nvm.cond_br %i20, ^bb1, ^bb1\n^bb1:\nvm.return\n",
                            "vm.import @vmvx.get cconv \"0v_i\"\n"),
                  known));
}

// Addresses of workgroups that are no sum of multiples: few are followed one by one, of many the whole buffer
// counts.
TEST(KernelCountsFlow, AddressesThatAreNotLinear) {
  const std::string body = kernel_of(R"(
    %i14:15 = vm.ext.i32.i64.u %i0
    %i14:15 = vm.mul.i64 %i14:15, %i14:15
    %i21 = vm.buffer.load.i8.u %r3, %i14:15
    vm.return
)");
  EXPECT_EQ(ASSERT_VALUE(flow_counts(body, {.workgroups = {3, 1, 1}})).bytes->read, 3u);
  EXPECT_EQ(ASSERT_VALUE(flow_counts(body, {.workgroups = {3, 1, 1}})).ranges.size(), 1u);
  EXPECT_EQ(ASSERT_VALUE(flow_counts(body, {.workgroups = {100'000, 1, 1}})).bytes->read, 1000u);
}

// Halves of pairs, and pairs of halves that were written apart, are unknown; refs that move leave nothing
// behind.
TEST(KernelCountsFlow, RegistersThatAreNotWhatTheyWere) {
  const auto branch = [](const std::string& before, const std::string& reg) {
    return flow_counts(kernel_of(before + "\nvm.cond_br " + reg + ", ^bb1, ^bb1\n^bb1:\nvm.return\n"));
  };
  EXPECT_FAILS(UNIMPLEMENTED, "a branch depends on data", branch("", "%i12"));
  EXPECT_FAILS(UNIMPLEMENTED, "a branch depends on data",
               branch("%i13 = vm.const.i32.zero\n%i20 = vm.cmp.nz.i64 %i12:13", "%i20"));
  EXPECT_FAILS(
      UNIMPLEMENTED, "a branch depends on data",
      branch("%i14 = vm.const.i32.zero\n%i15 = vm.const.i32.zero\n%i20 = vm.cmp.nz.i64 %i14:15", "%i20"));
  EXPECT_TRUE(branch("%i20 = vm.cmp.nz.i64 %i12:13", "%i20"));
  for (const char* moved : {"%r5 = vm.assign.ref %R3", "vm.discard.refs %r3"})
    EXPECT_FALSE(ASSERT_VALUE(flow_counts(kernel_of(std::string(moved) + R"(
    %i21 = vm.buffer.load.f32 %r3, %i10:11
    vm.return
)")))
                     .bytes)
        << moved;
  // The buffer goes along a branch into another register.
  const KernelCounts along = ASSERT_VALUE(flow_counts(kernel_of(R"(
    vm.br ^bb1(%r3 -> %r5)
  ^bb1:
    %i21 = vm.buffer.load.f32 %r5, %i10:11
    vm.return
)")));
  EXPECT_EQ(along.bytes->read, 4u);
}

// A loop whose buffer changes from iteration to iteration, and one whose steps wrap.
TEST(KernelCountsFlow, LoopsThatChangeBuffersOrWrap) {
  const std::string head = "%i14:15 = vm.const.i64 12\n %i16:17 = vm.const.i64 3\n";
  const KernelCounts swapped = ASSERT_VALUE(flow_counts(kernel_of(head + counted_loop(R"(
    %i21 = vm.buffer.load.f32 %r3, %i18:19
    %r5 = vm.assign.ref %r3
    %r3 = vm.assign.ref %r4
    %r4 = vm.assign.ref %r5
)"))));
  EXPECT_FALSE(swapped.bytes && swapped.bytes->read != 16) << "four loads, of two buffers in turns";
  // 2^31 - 1 and one more is negative: a register of 32 bits.
  EXPECT_EQ(flow_operations(R"(
    %i14 = vm.const.i32 2147483646
    %i15 = vm.const.i32 1
    vm.br ^bb1
  ^bb1:
    %i20 = vm.cmp.lt.i32.s %i9, %i14
    vm.cond_br %i20, ^bb2, ^bb3
  ^bb2:
    %i21 = vm.add.f32 %i21, %i21
    %i14 = vm.add.i32 %i14, %i15
    vm.br ^bb1
  ^bb3:
    vm.return
)",
                            {.max_steps = 1000}),
            2u);
}

}  // namespace
}  // namespace halyard::vm::test
