// Dispatches whose workgroups are shared out between workers. The kernels take long enough to be worth it.
#include <algorithm>
#include <array>

#include "kernels.h"

namespace halyard::local_tests {
namespace {

// %i9: the number of the workgroup; %r3: the first binding; then some hundred instructions of nothing.
constexpr std::string_view kSlow =
    "  %i9 = vm.const.i32.zero\n  %r3 = vm.list.get.ref %r2, %i9 : !vm.buffer\n"
    "  %i9 = vm.mul.i32 %i2, %i7\n  %i9 = vm.add.i32 %i9, %i1\n  %i9 = vm.mul.i32 %i9, %i6\n"
    "  %i9 = vm.add.i32 %i9, %i0\n  %i12:13 = vm.ext.i32.i64.u %i9\n"
    "  %i10 = vm.const.i32 1\n  %i11 = vm.const.i32 100\n  vm.br ^bb1\n"
    "^bb1:\n  %i11 = vm.sub.i32 %i11, %i10\n  vm.cond_br %i11, ^bb1, ^bb2\n^bb2:\n";

class TilesTest : public KernelTest {
 public:
  TilesTest() : KernelTest("local-task", "3") {}

  static std::string slow_kernel(std::string_view body, std::string_view directives = "") {
    return kernel(std::string(kSlow) + std::string(body), directives);
  }
};

// Adds one to the word of the workgroup.
constexpr std::string_view kCount =
    "  %i14 = vm.buffer.load.i32 %r3, %i12:13\n  %i14 = vm.add.i32 %i14, %i10\n"
    "  vm.buffer.store.i32 %i14, %r3, %i12:13";

TEST_F(TilesTest, EveryWorkgroupRunsOnce) {
  Executable executable = load(slow_kernel(kCount));
  for (const auto& [x, y, z] : {std::array{3000u, 1u, 1u}, std::array{1u, 1u, 2999u}, std::array{7u, 5u, 90u},
                                std::array{2u, 1500u, 1u}, std::array{1u, 2u, 1u}, std::array{3u, 1u, 1u}}) {
    const uint32_t total = x * y * z;
    Memory memory = allocate(std::vector<uint32_t>(total + 1, 0));
    for (uint32_t round = 1; round <= 5; ++round) {
      EXPECT_OK(dispatch(executable, {.x = x, .y = y, .z = z, .bindings = {range(memory, 0, 4 * total)}}));
      std::vector<uint32_t> expected(total, round);
      expected.push_back(0);
      ASSERT_EQ(content<uint32_t>(memory, total + 1), expected) << x << "x" << y << "x" << z;
    }
  }
}

TEST_F(TilesTest, IndirectCountsAreSharedOutToo) {
  Executable executable = load(slow_kernel(kCount));
  Memory memory = allocate(std::vector<uint32_t>(4000, 0));
  Memory counts = allocate(std::vector<uint32_t>{2000, 1, 2});
  const halyard_range_t indirect = range(counts, 0, 12);
  EXPECT_OK(dispatch(executable, {.bindings = {range(memory, 0, 16000)}, .indirect = &indirect}));
  EXPECT_EQ(content<uint32_t>(memory, 4000), std::vector<uint32_t>(4000, 1));
}

// A global counts the calls of one instantiation of the module: there are as many ones as workers that took
// part.
TEST_F(TilesTest, SeveralWorkersTakePart) {
  const std::string source = slow_kernel(
      "  %i14 = vm.global.load.i32 @calls\n  %i14 = vm.add.i32 %i14, %i10\n"
      "  vm.global.store.i32 %i14, @calls\n  vm.buffer.store.i32 %i14, %r3, %i12:13",
      "vm.global.i32 private mutable @calls\n");
  constexpr uint32_t kWorkgroups = 20000;
  Memory memory = allocate(std::vector<uint32_t>(kWorkgroups, 0));
  // Once in a while the others get no processor before all is done.
  EXPECT_TRUE(comes_true([&] {
    Executable executable = load(source);
    EXPECT_OK(dispatch(executable, {.x = kWorkgroups, .bindings = {range(memory, 0, 4 * kWorkgroups)}}));
    const std::vector<uint32_t> calls = content<uint32_t>(memory, kWorkgroups);
    const auto workers = std::ranges::count(calls, 1u);
    EXPECT_GE(workers, 1);
    EXPECT_LE(workers, 3);
    return workers > 1;
  }));
}

TEST_F(TilesTest, WorkersHaveTheirOwnLocalMemory) {
  Executable executable = load(
      kernel("  %i14:15 = vm.const.i64.zero\n  vm.buffer.store.i32 %i0, %r0, %i14:15\n" + std::string(kSlow) +
                 "  %i14:15 = vm.const.i64.zero\n  %i16 = vm.buffer.load.i32 %r0, %i14:15\n"
                 "  vm.buffer.store.i32 %i16, %r3, %i12:13",
             "vm.attr @k \"local_memory\" \"4096\"\n"));
  constexpr uint32_t kWorkgroups = 5000;
  Memory memory = allocate(std::vector<uint32_t>(kWorkgroups, 0));
  EXPECT_OK(dispatch(executable, {.x = kWorkgroups, .bindings = {range(memory, 0, 4 * kWorkgroups)}}));
  const std::vector<uint32_t> ids = content<uint32_t>(memory, kWorkgroups);
  for (uint32_t i = 0; i < kWorkgroups; ++i) ASSERT_EQ(ids[i], i);
}

// Whoever fails first in time: the one that a single thread would have found is told, and all before it have
// run.
TEST_F(TilesTest, TheFirstFailureInOrderIsTold) {
  const std::string counted = slow_kernel(
      std::string(kCount) +
      "\n  %i15 = vm.const.i32 777\n  %i16 = vm.cmp.lt.i32.u %i9, %i15\n  vm.cond_br %i16, ^bb3, ^bb4\n"
      "^bb4:\n  %i17 = vm.const.i32 9\n  vm.fail %i17, \"too far\"\n^bb3:");
  Executable executable = load(counted);
  constexpr uint32_t kWorkgroups = 3000;
  for (int round = 0; round < 20; ++round) {
    Memory memory = allocate(std::vector<uint32_t>(kWorkgroups, 0));
    const Outcome outcome =
        dispatch(executable, {.x = kWorkgroups, .bindings = {range(memory, 0, 4 * kWorkgroups)}});
    EXPECT_CODE(FAILED_PRECONDITION, outcome);
    EXPECT_NE(outcome.message().find("workgroup 777,0,0 of 3000,1,1"), std::string::npos) << outcome.text();
    const std::vector<uint32_t> calls = content<uint32_t>(memory, kWorkgroups);
    EXPECT_EQ(std::vector<uint32_t>(calls.begin(), calls.begin() + 778), std::vector<uint32_t>(778, 1));
    EXPECT_EQ(std::ranges::count_if(calls, [](uint32_t n) { return n > 1; }), 0);
  }
}

// Dispatches of one executable at the same time, more of them than workers: whoever helps one is missed
// elsewhere, and each ends all the same.
TEST_F(TilesTest, DispatchesCompeteForWorkers) {
  Executable executable = load(slow_kernel(kCount));
  constexpr uint32_t kDispatches = 12, kWorkgroups = 1000;
  Semaphore start = semaphore(0);
  struct Piece {
    Memory memory;
    Dispatch described;
    halyard_command_dispatch_t recorded;
    Completion completion;
  };
  std::vector<Piece> pieces(kDispatches);
  for (Piece& piece : pieces) {
    piece.memory = allocate(std::vector<uint32_t>(kWorkgroups, 0));
    piece.described = {.x = kWorkgroups, .bindings = {range(piece.memory, 0, 4 * kWorkgroups)}};
    piece.recorded = command(executable, piece.described);
    halyard_operation_t work = operation(HALYARD_OPERATION_DISPATCH);
    work.dispatch = {&piece.recorded};
    EXPECT_OK(submit(work, {{start, 1}}, {}, piece.completion));
  }
  EXPECT_OK(signal(start, 1));
  for (Piece& piece : pieces) {
    EXPECT_OK(outcome(piece.completion));
    EXPECT_EQ(content<uint32_t>(piece.memory, kWorkgroups), std::vector<uint32_t>(kWorkgroups, 1));
  }
}

// Barriers of a list order one dispatch against the next, however many threads each has.
TEST_F(TilesTest, BarriersHoldBetweenSharedDispatches) {
  Executable executable = load(slow_kernel(kCount));
  constexpr uint32_t kWorkgroups = 2000;
  Memory first = allocate(std::vector<uint32_t>(kWorkgroups, 0));
  Memory second = allocate(std::vector<uint32_t>(kWorkgroups, 0));
  const Dispatch on_first = {.x = kWorkgroups, .bindings = {range(first, 0, 4 * kWorkgroups)}};
  const Dispatch on_second = {.x = kWorkgroups, .bindings = {range(second, 0, 4 * kWorkgroups)}};
  Recording recording;
  recording.dispatch(command(executable, on_first))
      .barrier()
      .copy(range(first, 0, 4 * kWorkgroups), range(second, 0, 4 * kWorkgroups))
      .barrier()
      .dispatch(command(executable, on_second))
      .dispatch(command(executable, on_first));
  List list = finish(recording);
  for (uint32_t round = 0; round < 5; ++round) {
    EXPECT_OK(run(execute(list, {})));
    EXPECT_EQ(content<uint32_t>(first, kWorkgroups), std::vector<uint32_t>(kWorkgroups, 2 * round + 2));
    EXPECT_EQ(content<uint32_t>(second, kWorkgroups), std::vector<uint32_t>(kWorkgroups, 2 * round + 2));
  }
}

}  // namespace
}  // namespace halyard::local_tests
