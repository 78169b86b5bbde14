// Counts of kernels with every form of control flow, and the reasons for which counts are unknown.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "counted_kernel.h"
#include "status_testing.h"
#include "vm/count/kernel_counts.h"
#include "vm/module/bytecode_module.h"
#include "vm/text/assembler.h"

namespace halyard::vm::test {
namespace {

// A kernel with bindings 0 and 1 in r3 and r4, and the numbers 0 and 1 in i10:11 and i12:13.
std::string kernel_of(const std::string& body, const std::string& before = "") {
  return "vm.module @kernels\n" + before + "vm.export @f\nvm.func @f" + std::string(kCountedSignature) + R"( {
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

// After a loop, its registers have the values that they have at run time: 32 bits wrap, and so do 64.
TEST(KernelCountsFlow, RegistersWrapWithinALoop) {
  const std::string head = R"(
    %i14:15 = vm.const.i64 12
    %i16:17 = vm.const.i64 1
    %i22 = vm.const.i32 2147483646
    %i23 = vm.const.i32 1
    %i24:25 = vm.const.i64 0x7FFFFFFFFFFFFFFE
    %i26:27 = vm.const.i64 0x4000000000000000
)";
  const auto after_loop = [&](const std::string& test) {
    return flow_operations(head + R"(
    vm.br ^bb1(%i10 -> %i18, %i11 -> %i19)
  ^bb1:
    %i20 = vm.cmp.lt.i64.s %i18:19, %i14:15
    vm.cond_br %i20, ^bb2, ^bb3
  ^bb2:
    %i22 = vm.add.i32 %i22, %i23
    %i24:25 = vm.add.i64 %i24:25, %i16:17
    %i26:27 = vm.add.i64 %i26:27, %i24:25
    %i18:19 = vm.add.i64 %i18:19, %i16:17
    vm.br ^bb1
  ^bb3:
)" + test + R"(
    vm.cond_br %i20, ^bb4, ^bb5
  ^bb4:
    %i21 = vm.add.f32 %i21, %i21
    vm.br ^bb5
  ^bb5:
    vm.return
)");
  };
  EXPECT_EQ(after_loop("%i20 = vm.cmp.lt.i32.s %i22, %i9\n"), 1u) << "2^31 + 10 is negative in 32 bits";
  EXPECT_EQ(after_loop("%i28 = vm.const.i32 -2147483638\n%i20 = vm.cmp.eq.i32 %i22, %i28\n"), 1u);
  EXPECT_EQ(after_loop("%i20 = vm.cmp.lt.i64.s %i24:25, %i10:11\n"), 1u);
}

// 13 loops are counted as wholes within the three dimensions of the grid; what is nested deeper is followed.
TEST(KernelCountsFlow, LoopsAreNestedDeeperThanTheyAreCounted) {
  constexpr int kLoops = 15;
  // Loop i has its head in block 3 * i, enters the next loop from block 3 * i + 1, and goes on in block 3 * i
  // + 2.
  constexpr int kBody = 3 * kLoops, kEnd = kBody + 1;
  const auto counter = [](int loop) { return fmt::format("%i{}:{}", 30 + 2 * loop, 31 + 2 * loop); };
  const auto enter = [](int loop) {
    return fmt::format("^bb{}(%i10 -> %i{}, %i11 -> %i{})", 3 * loop, 30 + 2 * loop, 31 + 2 * loop);
  };
  std::string body = "%i14:15 = vm.const.i64 2\nvm.br " + enter(0) + "\n";
  for (int i = 0; i < kLoops; ++i)
    body += fmt::format(
        "^bb{0}:\n%i20 = vm.cmp.lt.i64.s {1}, %i14:15\nvm.cond_br %i20, ^bb{2}, ^bb{3}\n"
        "^bb{2}:\nvm.br {4}\n"
        "^bb{5}:\n{1} = vm.add.i64 {1}, %i12:13\nvm.br ^bb{0}\n",
        3 * i, counter(i), 3 * i + 1, i == 0 ? kEnd : 3 * i - 1,
        i + 1 < kLoops ? enter(i + 1) : fmt::format("^bb{}", kBody), 3 * i + 2);
  body += fmt::format("^bb{}:\n{}vm.br ^bb{}\n^bb{}:\nvm.return\n", kBody, kAddFloats, 3 * kLoops - 1, kEnd);
  EXPECT_EQ(flow_operations(body), uint64_t{1} << kLoops);
}

// The body is where the test fails.
TEST(KernelCountsFlow, LoopsThatEndWhenTheirTestHolds) {
  const auto until = [](int from, int step, const std::string& test) {
    return flow_counts(kernel_of(fmt::format(R"(
    %i14:15 = vm.const.i64 5
    %i16:17 = vm.const.i64 {}
    %i18:19 = vm.const.i64 {}
    vm.br ^bb1
  ^bb1:
    %i20 = {}
    vm.cond_br %i20, ^bb3, ^bb2
  ^bb2:
    %i21 = vm.add.f32 %i21, %i21
    %i18:19 = vm.add.i64 %i18:19, %i16:17
    vm.br ^bb1
  ^bb3:
    vm.return
)",
                                             step, from, test)),
                       {.max_steps = 10'000});
  };
  const std::string less = "vm.cmp.lt.i64.s %i18:19, %i14:15";
  EXPECT_EQ(ASSERT_VALUE(until(9, -1, less)).operations, 5u);   // 9 to 5
  EXPECT_EQ(ASSERT_VALUE(until(10, -3, less)).operations, 2u);  // 10 and 7
  EXPECT_EQ(ASSERT_VALUE(until(4, -1, less)).operations, 0u);
  EXPECT_FAILS(UNIMPLEMENTED, "too many steps", until(9, 1, less));  // until it wraps
  EXPECT_EQ(ASSERT_VALUE(until(-7, 4, "vm.cmp.eq.i64 %i18:19, %i14:15")).operations, 3u);
  EXPECT_FAILS(UNIMPLEMENTED, "too many steps", until(9, 4, "vm.cmp.eq.i64 %i18:19, %i14:15"));
  EXPECT_EQ(ASSERT_VALUE(until(5, 4, "vm.cmp.ne.i64 %i18:19, %i14:15")).operations, 1u);
  // A test that is no comparison of sums: 1, 2 and 3 have a bit of 3, 4 has none. As it is negated, 4 has.
  EXPECT_EQ(ASSERT_VALUE(
                until(4, 1, "vm.const.i32 3\n%i22 = vm.trunc.i64.i32 %i18:19\n%i20 = vm.and.i32 %i22, %i20"))
                .operations,
            1u);
}

// The steps of a loop may cancel out: a bound that is changed and restored does not vary.
TEST(KernelCountsFlow, ABoundThatIsRestoredInEachIteration) {
  EXPECT_EQ(
      flow_operations("%i14:15 = vm.const.i64 12\n %i16:17 = vm.const.i64 1\n" +
                      counted_loop("%i14:15 = vm.add.i64 %i14:15, %i16:17\n%i21 = vm.add.f32 %i21, %i21\n"
                                   "%i14:15 = vm.sub.i64 %i14:15, %i16:17\n")),
      12u);
  // ... or move along with the counter, at half its speed.
  EXPECT_EQ(
      flow_operations("%i14:15 = vm.const.i64 12\n %i16:17 = vm.const.i64 2\n" +
                      counted_loop("%i21 = vm.add.f32 %i21, %i21\n%i14:15 = vm.add.i64 %i14:15, %i12:13\n")),
      12u);
}

TEST(KernelCountsFlow, NestedLoopsOfMoreOperationsThanCanBeCounted) {
  EXPECT_FAILS(UNIMPLEMENTED, "there are too many operations", flow_counts(kernel_of(R"(
    %i14:15 = vm.const.i64 0x200000000
    vm.br ^bb1(%i10 -> %i18, %i11 -> %i19)
  ^bb1:
    %i20 = vm.cmp.lt.i64.s %i18:19, %i14:15
    vm.cond_br %i20, ^bb2(%i10 -> %i22, %i11 -> %i23), ^bb5
  ^bb2:
    %i20 = vm.cmp.lt.i64.s %i22:23, %i14:15
    vm.cond_br %i20, ^bb3, ^bb4
  ^bb3:
    %i21 = vm.add.f32 %i21, %i21
    %i22:23 = vm.add.i64 %i22:23, %i12:13
    vm.br ^bb2
  ^bb4:
    %i18:19 = vm.add.i64 %i18:19, %i12:13
    vm.br ^bb1
  ^bb5:
    vm.return
)")));
}

// Two blocks that lead to each other, and the entry to both: no loop has one head.
TEST(KernelCountsFlow, LoopsThatAreEnteredInTwoPlaces) {
  EXPECT_EQ(flow_operations(R"(
    %i14:15 = vm.const.i64 6
    %i18:19 = vm.const.i64.zero
    %i20 = vm.cmp.lt.i64.s %i12:13, %i14:15
    vm.cond_br %i20, ^bb1, ^bb2
  ^bb1:
    %i21 = vm.add.f32 %i21, %i21
    %i18:19 = vm.add.i64 %i18:19, %i12:13
    vm.br ^bb2
  ^bb2:
    %i18:19 = vm.add.i64 %i18:19, %i12:13
    %i20 = vm.cmp.lt.i64.s %i18:19, %i14:15
    vm.cond_br %i20, ^bb1, ^bb3
  ^bb3:
    vm.return
)"),
            3u);
}

TEST(KernelCountsFlow, BreakpointsAndYields) {
  EXPECT_EQ(flow_operations("%i20 = vm.const.i32 1\nvm.break ^bb1\n^bb1:\n" + std::string(kAddFloats) +
                            "vm.cond_break %i20, ^bb2\n^bb2:\n" + kAddFloats + "vm.return\n"),
            2u);
  EXPECT_FAILS(UNIMPLEMENTED, "it has 'yield'", flow_counts(kernel_of("vm.yield ^bb1\n^bb1:\nvm.return\n")));
}

// Bytes are known only while it is known which binding an access uses.
TEST(KernelCountsFlow, BindingsThatAreNotKnown) {
  const auto has_bytes = [](const std::string& body) {
    const Result<KernelCounts> counts = flow_counts(kernel_of(body + "\nvm.return\n"));
    EXPECT_TRUE(counts) << counts.error().text();
    return counts && counts->bytes;
  };
  const std::string load = "%i21 = vm.buffer.load.f32 %r5, %i10:11\n";
  EXPECT_TRUE(has_bytes("%r5 = vm.assign.ref %r3\n" + load));
  EXPECT_FALSE(has_bytes(
      "%i9 = vm.buffer.load.i32 %r3, %i10:11\n%r5 = vm.list.get.ref %r2, %i9 : !vm.buffer\n" + load))
      << "the binding is data";
  EXPECT_FALSE(has_bytes("%i9 = vm.const.i32 -1\n%r5 = vm.list.get.ref %r2, %i9 : !vm.buffer\n" + load));
  EXPECT_FALSE(has_bytes("%r5 = vm.list.get.ref %r3, %i9 : !vm.buffer\n" + load))
      << "not the list of bindings";
  EXPECT_FALSE(has_bytes("%r5 = vm.assign.ref %r3\n%r6 = vm.assign.ref %R5\n" + load)) << "it was moved away";
  EXPECT_FALSE(has_bytes("vm.br ^bb1(%R3 -> %r6)\n^bb1:\n%r5 = vm.assign.ref %r3\n" + load));
  EXPECT_FALSE(has_bytes("%r5 = vm.switch.ref %i9[%r3, %R4] else %r3 -> !vm.buffer\n" + load))
      << "one of two";
  // Lengths that are not known, or are no lengths. Memory of the kernel's own is no binding.
  const std::string alloc = "%i20 = vm.const.i32 16\n%r5 = vm.buffer.alloc %i12:13, %i20\n";
  const std::string length = "%i14:15 = vm.buffer.load.i64 %r3, %i10:11\n";
  EXPECT_FALSE(has_bytes(length + "%i22:23 = vm.buffer.hash %r3, %i10:11, %i14:15"));
  EXPECT_TRUE(has_bytes(length + alloc + "%i22:23 = vm.buffer.hash %r5, %i10:11, %i14:15"));
  EXPECT_FALSE(has_bytes("%i14:15 = vm.const.i64 -1\n%i22:23 = vm.buffer.hash %r3, %i10:11, %i14:15"));
}

// The addresses of few workgroups are followed one by one: the squares of 0 to 3, so that the range ends
// behind 9.
TEST(KernelCountsFlow, RangesThatAreNotLinear) {
  const auto bytes = [](const std::string& access, uint32_t workgroups) {
    const std::string body = "%i14:15 = vm.ext.i32.i64.u %i0\n %i14:15 = vm.mul.i64 %i14:15, %i14:15\n" +
                             access + "\n vm.return\n";
    const Result<KernelCounts> counts = flow_counts(kernel_of(body), {.workgroups = {workgroups, 1, 1}});
    EXPECT_TRUE(counts && counts->bytes);
    return counts && counts->bytes ? *counts->bytes : KernelCounts::Bytes();
  };
  const std::string copy_from = "vm.buffer.copy %r3, %i14:15, %r4, %i10:11, %i12:13";
  const std::string copy_to = "vm.buffer.copy %r3, %i10:11, %r4, %i14:15, %i12:13";
  const std::string compare_left = "%i20 = vm.buffer.compare %r3, %i14:15, %r4, %i10:11, %i12:13";
  const std::string compare_right = "%i20 = vm.buffer.compare %r4, %i10:11, %r3, %i14:15, %i12:13";
  EXPECT_EQ(bytes(copy_from, 4).read, 10u);
  EXPECT_EQ(bytes(copy_from, 4).written, 1u);
  EXPECT_EQ(bytes(copy_to, 4).written, 10u);
  EXPECT_EQ(bytes(compare_left, 4).read, 10u + 1);
  EXPECT_EQ(bytes(compare_right, 4).read, 1u + 10);
  EXPECT_EQ(bytes(copy_to, 100'000).written, 2000u) << "the whole binding";
}

// Constants are known as integers of 32 and 64 bits alone.
TEST(KernelCountsFlow, ConstantsOfOtherTypesAreData) {
  const std::vector<int64_t> constants = {1, 1};
  const auto bytes = std::as_bytes(std::span(constants));
  const auto branch = [&](const std::string& load) {
    return flow_counts(kernel_of(load + "\nvm.cond_br %i20, ^bb1, ^bb1\n^bb1:\nvm.return\n"),
                       {.constants = bytes});
  };
  EXPECT_TRUE(branch("%i20 = vm.buffer.load.i32 %r1, %i12:13"));
  EXPECT_TRUE(branch("%i22:23 = vm.buffer.load.i64 %r1, %i12:13\n%i20 = vm.cmp.nz.i64 %i22:23"));
  for (const char* load :
       {"%i20 = vm.buffer.load.i8.u %r1, %i12:13", "%i20 = vm.buffer.load.i16.s %r1, %i12:13",
        "%i22 = vm.buffer.load.f32 %r1, %i12:13\n%i20 = vm.bitcast.f32.i32 %i22",
        R"(%i22:23 = vm.buffer.load.f64 %r1, %i12:13
           %i22:23 = vm.bitcast.f64.i64 %i22:23
           %i20 = vm.cmp.nz.i64 %i22:23)",
        "%i14:15 = vm.buffer.load.i64 %r3, %i10:11\n%i20 = vm.buffer.load.i32 %r1, %i14:15"})
    EXPECT_FAILS(UNIMPLEMENTED, "a branch depends on data", branch(load));
}

// An import learns the integers that are known, and gives back data.
TEST(KernelCountsFlow, ImportsLearnWhatIsKnown) {
  static std::vector<std::optional<int64_t>> learned;
  const KernelArguments arguments = {
      .workgroups = {3, 1, 1},
      .import_operations = [](std::string_view, std::span<const std::optional<int64_t>> given) {
        learned.assign(given.begin(), given.end());
        return given[0] ? std::optional<uint64_t>(1) : std::nullopt;
      }};
  const std::string import = "vm.import @host.f cconv \"0iIfrri_rI\"\n";
  const auto call = [&](const std::string& before, const std::string& after) {
    return flow_counts(
        kernel_of(before + "\n%r6, %i26:27 = vm.call @host.f(%i9, %i12:13, %i21, %r0, %R3, %i0)\n" + after +
                      "\nvm.return\n",
                  import),
        arguments);
  };
  EXPECT_EQ(ASSERT_VALUE(call("", "")).operations, 3u);
  ASSERT_EQ(learned.size(), 4u);
  EXPECT_EQ(learned[0], 1);
  EXPECT_EQ(learned[1], 1);
  EXPECT_FALSE(learned[2]) << "a float";
  EXPECT_FALSE(learned[3]) << "another in each workgroup";
  EXPECT_FALSE(ASSERT_VALUE(call("", "")).bytes) << "it may use binding 0";
  EXPECT_FAILS(UNIMPLEMENTED, "a branch depends on data",
               call("", "%i20 = vm.cmp.nz.i64 %i26:27\nvm.cond_br %i20, ^bb1, ^bb1\n^bb1:"));
  // The first integer is not known in the same way: it is the workgroup, or data.
  EXPECT_EQ(ASSERT_VALUE(call("%i9 = vm.add.i32 %i0, %i9", "")).operations, 3u) << "followed one by one";
  EXPECT_FAILS(UNIMPLEMENTED, "it calls 'host.f'", call("%i9 = vm.buffer.load.i32 %r3, %i10:11", ""));
  // In a loop: what the import returns is data in each iteration, too.
  EXPECT_FAILS(
      UNIMPLEMENTED, "a branch depends on data",
      flow_counts(
          kernel_of("%i14:15 = vm.const.i64 12\n %i16:17 = vm.const.i64 1\n" +
                        counted_loop("%r6, %i14:15 = vm.call @host.f(%i9, %i12:13, %i21, %r0, %r3, %i9)\n"),
                    import),
          arguments));
}

// Refs that a loop moves or replaces are not known in its next iteration.
TEST(KernelCountsFlow, LoopsThatReplaceRefs) {
  const std::string head = "%i14:15 = vm.const.i64 12\n %i16:17 = vm.const.i64 1\n";
  const auto has_bytes = [&](const std::string& body, const std::string& import = "") {
    const KernelArguments arguments = {
        .import_operations = [](std::string_view, std::span<const std::optional<int64_t>>) {
          return std::optional<uint64_t>(1);
        }};
    const Result<KernelCounts> counts = flow_counts(kernel_of(head + counted_loop(body), import), arguments);
    EXPECT_TRUE(counts) << counts.error().text();
    return counts && counts->bytes;
  };
  const std::string load = "%i21 = vm.buffer.load.f32 %r3, %i18:19\n";
  EXPECT_TRUE(has_bytes(load));
  EXPECT_FALSE(has_bytes(load + "%r5 = vm.assign.ref %R3\n"));
  EXPECT_FALSE(has_bytes(load + "%r3 = vm.call @host.f(%r0)\n", "vm.import @host.f cconv \"0r_r\"\n"));
  EXPECT_FALSE(has_bytes(load + "vm.call @host.f(%R3)\n", "vm.import @host.f cconv \"0r_v\"\n"));
  EXPECT_FALSE(has_bytes(load + "vm.br ^bb4(%R3 -> %r6)\n^bb4:\n"));
  EXPECT_FALSE(has_bytes(load + "vm.discard.refs %r3\n"));
}

}  // namespace
}  // namespace halyard::vm::test
