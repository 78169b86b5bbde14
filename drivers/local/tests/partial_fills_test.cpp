// Fills of lists that are executed several times: each execution leaves the bytes of a device that fills
// everything.
#include "partial_fills.h"

#include <numeric>
#include <thread>

#include "kernels.h"

namespace halyard::local_tests {
namespace {

using local::ByteRange;
using local::PartialFills;

constexpr uint32_t kFilledWords = 64 << 10;
constexpr uint64_t kFilledBytes = 4 * uint64_t{kFilledWords};
constexpr uint32_t kFillPattern = 0x04030201;
constexpr int kFillExecutions = 36;  // the fills are looked at after 32

// A loop over words i from `constant 0` on, as many as constant 1 says. %i18:19 is the index, %i22 is i as 32
// bits.
std::string loop_over_words(std::string_view body, std::string_view after = "") {
  return fmt::format(R"(
  %i10:11 = vm.const.i64.zero
  %i12:13 = vm.const.i64 1
  %i14 = vm.buffer.load.i32 %r1, %i10:11
  %i15 = vm.buffer.load.i32 %r1, %i12:13
  %i16:17 = vm.ext.i32.i64.u %i15
  %i24:25 = vm.ext.i32.i64.u %i14
  %i16:17 = vm.add.i64 %i16:17, %i24:25
  vm.br ^bb1(%i24 -> %i18, %i25 -> %i19)
^bb1:
  %i20 = vm.cmp.lt.i64.s %i18:19, %i16:17
  vm.cond_br %i20, ^bb2, ^bb3
^bb2:
{}
  %i18:19 = vm.add.i64 %i18:19, %i12:13
  vm.br ^bb1
^bb3:
{})",
                     body, after);
}
constexpr std::string_view kStoreIndex =
    "  %i22 = vm.trunc.i64.i32 %i18:19\n  vm.buffer.store.i32 %i22, %r3, %i18:19";
constexpr std::string_view kSecondBinding =
    "  %i9 = vm.const.i32 1\n  %r4 = vm.list.get.ref %r2, %i9 : !vm.buffer\n";

class PartialFillsTest : public KernelTest {
 public:
  // Writes i to words i.
  Executable writer() { return load(kernel_on_binding(loop_over_words(kStoreIndex))); }
  // Does the same, then fails.
  Executable failing_writer() {
    return load(kernel_on_binding(loop_over_words(
        kStoreIndex, "  %i26:27 = vm.const.i64 1000000000\n  vm.buffer.store.i32 %i22, %r3, %i26:27")));
  }
  // Adds words to those of binding 1.
  Executable adder() {
    return load(kernel_on_binding(
        std::string(kSecondBinding) +
        loop_over_words("  %i22 = vm.buffer.load.i32 %r3, %i18:19\n  %i23 = vm.buffer.load.i32 %r4, %i18:19\n"
                        "  %i22 = vm.add.i32 %i22, %i23\n  vm.buffer.store.i32 %i22, %r4, %i18:19")));
  }
  // Adds 1 to words.
  Executable incrementer() {
    return load(kernel_on_binding(
        loop_over_words("  %i22 = vm.buffer.load.i32 %r3, %i18:19\n  %i23 = vm.const.i32 1\n"
                        "  %i22 = vm.add.i32 %i22, %i23\n  vm.buffer.store.i32 %i22, %r3, %i18:19")));
  }
  static Dispatch over(uint32_t first, uint32_t count, std::vector<halyard_range_t> bindings) {
    return {.constants = {first, count}, .bindings = std::move(bindings)};
  }

  // Begins with a fill of the memory.
  static Recording filled(Memory memory) {
    Recording recording;
    recording.fill(range(memory, 0, kFilledBytes), kFillPattern, 4).barrier();
    return recording;
  }
  // What the fills of a list have to write.
  static std::vector<std::vector<ByteRange>> rests(const Recording& recording) {
    const halyard_command_list_args_t args = recording.args(0);
    const auto* const bytes = reinterpret_cast<const uint8_t*>(args.commands);
    const auto fills = PartialFills::find({bytes, args.commands_size}, nullptr);
    std::vector<std::vector<ByteRange>> result;
    for (uint64_t at = 0; fills && at < args.commands_size;) {
      const auto* const command = reinterpret_cast<const halyard_command_t*>(bytes + at);
      if (const PartialFills::Fill* const fill = fills->of(*command)) result.push_back(fill->rest);
      at += command->size;
    }
    return result;
  }
  using Rests = std::vector<std::vector<ByteRange>>;

  // Executes the list several times. Before each, the words of the memory are `before`.
  void expect(List list, const std::vector<halyard_binding_t>& table, Memory memory,
              const std::vector<uint32_t>& expected) {
    for (uint32_t round = 0; round < kFillExecutions; ++round) {
      auto* const words = reinterpret_cast<uint32_t*>(bytes(memory));
      std::fill_n(words, expected.size(), 0xAAAAAAAA + round);
      EXPECT_OK(run(execute_operation(list, table)));
      ASSERT_EQ(content<uint32_t>(memory, expected.size()), expected) << "round " << round;
    }
  }
  static std::vector<uint32_t> filled_but(uint32_t first, uint32_t count, uint32_t words = kFilledWords) {
    std::vector<uint32_t> expected(words, kFillPattern);
    std::iota(expected.begin() + first, expected.begin() + first + count, first);
    return expected;
  }
};
HALYARD_ON_EVERY_DEVICE_AND_COMPILED(PartialFillsTest);

TEST_P(PartialFillsTest, LeaveWhatTheNextDispatchWrites) {
  Memory memory = zeros(kFilledWords);
  const Dispatch d = over(100, kFilledWords - 300, {range(memory, 0, kFilledBytes)});
  const Recording recording = filled(memory).dispatch(command(writer(), d));
  EXPECT_EQ(rests(recording), (Rests{{{0, 400}, {kFilledBytes - 800, kFilledBytes}}}));
  expect(finish(recording), {}, memory, filled_but(100, kFilledWords - 300));
}

TEST_P(PartialFillsTest, MayHaveNothingToWrite) {
  Memory memory = zeros(kFilledWords);
  const Dispatch d = over(0, kFilledWords, {range(memory, 0, kFilledBytes)});
  const Recording recording = filled(memory).dispatch(command(writer(), d));
  EXPECT_EQ(rests(recording), Rests{{}});
  expect(finish(recording), {}, memory, filled_but(0, kFilledWords));
}

// Ranges of the target and of the binding that begin elsewhere in the memory.
TEST_P(PartialFillsTest, CountFromTheirTarget) {
  Memory memory = zeros(2 * kFilledWords);
  const Dispatch d = over(0, kFilledWords, {range(memory, 4096, kFilledBytes)});
  const Recording recording = Recording()
                                  .fill(range(memory, 8192, kFilledBytes), kFillPattern, 4)
                                  .barrier()
                                  .dispatch(command(writer(), d));
  EXPECT_EQ(rests(recording), (Rests{{{kFilledBytes - 4096, kFilledBytes}}}));
  std::vector<uint32_t> expected(kFilledWords + 2048, kFillPattern);
  std::iota(expected.begin() + 1024, expected.begin() + 1024 + kFilledWords, 0);
  std::fill_n(expected.begin(), 1024, 0xAAAAAAAA);
  List list = finish(recording);
  for (int round = 0; round < kFillExecutions; ++round) {
    std::fill_n(reinterpret_cast<uint32_t*>(bytes(memory)), 2 * kFilledWords, 0xAAAAAAAA);
    EXPECT_OK(run(execute_operation(list, {})));
    ASSERT_EQ(content<uint32_t>(memory, expected.size()), expected);
  }
}

// Patterns of 4 bytes are written whole, also where a kernel begins within one.
TEST_P(PartialFillsTest, WriteWholePatterns) {
  Memory memory = zeros(kFilledWords);
  const Dispatch d = over(0, kFilledWords - 1000, {range(memory, 2, kFilledBytes - 2)});
  for (const uint32_t size : {1u, 2u, 4u}) {
    const Recording recording = Recording()
                                    .fill(range(memory, 0, kFilledBytes), kFillPattern, size)
                                    .barrier()
                                    .dispatch(command(writer(), d));
    ASSERT_EQ(rests(recording).size(), 1U);
    EXPECT_EQ(rests(recording)[0],
              (std::vector<ByteRange>{{0, size == 4 ? 4U : 2U},
                                      {kFilledBytes - 4000 + 2 - (size == 4 ? 2 : 0), kFilledBytes}}));
    std::vector<uint8_t> expected(kFilledBytes);
    for (uint64_t i = 0; i < kFilledBytes; ++i)
      expected[i] = static_cast<uint8_t>(kFillPattern >> (8 * (i % size)));
    for (uint32_t i = 0; i < kFilledWords - 1000; ++i) std::memcpy(&expected[2 + 4 * uint64_t{i}], &i, 4);
    List list = finish(recording);
    for (int round = 0; round < kFillExecutions; ++round) {
      std::memset(bytes(memory), 0x77, kFilledBytes);
      EXPECT_OK(run(execute_operation(list, {})));
      ASSERT_EQ(content<uint8_t>(memory, kFilledBytes), expected) << size;
    }
  }
}

TEST_P(PartialFillsTest, WriteWhatIsReadBefore) {
  Memory memory = zeros(kFilledWords);
  Memory seen = zeros(kFilledWords);
  const Dispatch d = over(0, kFilledWords, {range(memory, 0, kFilledBytes)});
  {
    const Recording recording = filled(memory)
                                    .copy(range(memory, kFilledBytes / 2, 4096), range(seen, 0, 4096))
                                    .barrier()
                                    .dispatch(command(writer(), d));
    EXPECT_EQ(rests(recording), (Rests{{{kFilledBytes / 2, kFilledBytes / 2 + 4096}}}));
    expect(finish(recording), {}, memory, filled_but(0, kFilledWords));
    EXPECT_EQ(content<uint32_t>(seen, 1024), std::vector<uint32_t>(1024, kFillPattern));
  }
  const Dispatch reads =
      over(10, kFilledWords / 2, {range(memory, 0, kFilledBytes), range(seen, 0, kFilledBytes)});
  const Recording recording = Recording()
                                  .fill(range(seen, 0, kFilledBytes), 0, 4)
                                  .fill(range(memory, 0, kFilledBytes), kFillPattern, 4)
                                  .barrier()
                                  .dispatch(command(adder(), reads))
                                  .barrier()
                                  .dispatch(command(writer(), d));
  EXPECT_EQ(rests(recording), (Rests{{{40, 40 + kFilledBytes / 2}}}));
  expect(finish(recording), {}, memory, filled_but(0, kFilledWords));
  std::vector<uint32_t> expected(kFilledWords, 0);
  std::fill_n(expected.begin() + 10, kFilledWords / 2, kFillPattern);
  EXPECT_EQ(content<uint32_t>(seen, kFilledWords), expected);
}

// A dispatch that reads what it writes.
TEST_P(PartialFillsTest, WriteWhatTheDispatchItselfReads) {
  Memory memory = zeros(kFilledWords);
  const Dispatch d = over(0, kFilledWords, {range(memory, 0, kFilledBytes)});
  const Recording recording = filled(memory).dispatch(command(incrementer(), d));
  EXPECT_EQ(rests(recording), Rests());
  expect(finish(recording), {}, memory, std::vector<uint32_t>(kFilledWords, kFillPattern + 1));
}

// The kernel puts a buffer of its own in the place of the binding, and writes to it.
TEST_P(PartialFillsTest, WriteAllBeforeAKernelThatChangesItsListOfBindings) {
  Memory memory = zeros(kFilledWords);
  const std::string own = fmt::format(
      "  %i28:29 = vm.const.i64 {}\n  %i9 = vm.const.i32.zero\n"
      "  %r5 = vm.buffer.alloc %i28:29, %i9\n  vm.list.set.ref %r2, %i9, %r5\n"
      "  %r3 = vm.list.get.ref %r2, %i9 : !vm.buffer\n",
      kFilledBytes);
  Executable executable = load(kernel(own + loop_over_words(kStoreIndex)));
  const Dispatch d = over(0, kFilledWords, {range(memory, 0, kFilledBytes)});
  const Recording recording = filled(memory).dispatch(command(executable, d));
  EXPECT_EQ(rests(recording), Rests());
  expect(finish(recording), {}, memory, std::vector<uint32_t>(kFilledWords, kFillPattern));
}

// Nothing is looked at after a stop request.
TEST_P(PartialFillsTest, WriteAllIfTheWorkIsStopped) {
  Memory memory = zeros(kFilledWords);
  const Dispatch d = over(0, kFilledWords, {range(memory, 0, kFilledBytes)});
  const Recording recording = filled(memory).dispatch(command(writer(), d));
  const halyard_command_list_args_t args = recording.args(0);
  const std::span commands(reinterpret_cast<const uint8_t*>(args.commands), args.commands_size);
  const uint32_t stop = static_cast<uint32_t>(Code::CANCELLED);
  EXPECT_EQ(PartialFills::find(commands, &stop), nullptr);
  EXPECT_NE(PartialFills::find(commands, nullptr), nullptr);
}

TEST_P(PartialFillsTest, AreLeftToSeveralDispatches) {
  Memory memory = zeros(kFilledWords);
  Executable executable = writer();
  const Dispatch low = over(0, kFilledWords / 2 - 8, {range(memory, 0, kFilledBytes)});
  const Dispatch high = over(kFilledWords / 2, kFilledWords / 2 - 8, {range(memory, 0, kFilledBytes)});
  const Recording recording =
      filled(memory).dispatch(command(executable, low)).dispatch(command(executable, high));
  EXPECT_EQ(rests(recording),
            (Rests{{{kFilledBytes / 2 - 32, kFilledBytes / 2}, {kFilledBytes - 32, kFilledBytes}}}));
  std::vector<uint32_t> expected = filled_but(0, kFilledWords);
  for (const uint32_t end : {kFilledWords / 2, kFilledWords})
    std::fill_n(expected.begin() + end - 8, 8, kFillPattern);
  expect(finish(recording), {}, memory, expected);
}

// Too few bytes, no workgroups, a count in memory, another memory, nothing after it.
TEST_P(PartialFillsTest, AreNotWorthItOrNotCertain) {
  Memory memory = zeros(kFilledWords);
  Memory other = zeros(kFilledWords);
  Memory counts = allocate(std::vector<uint32_t>{0, 1, 1});
  Executable executable = writer();
  const auto rests_before = [&](const Dispatch& d) {
    return rests(filled(memory).dispatch(command(executable, d)));
  };
  EXPECT_EQ(rests_before(over(0, 1000, {range(memory, 0, kFilledBytes)})), Rests());
  Dispatch none = over(0, kFilledWords, {range(memory, 0, kFilledBytes)});
  none.y = 0;
  EXPECT_EQ(rests_before(none), Rests());
  Dispatch indirect = over(0, kFilledWords, {range(memory, 0, kFilledBytes)});
  const halyard_range_t count = range(counts, 0, 12);
  indirect.indirect = &count;
  EXPECT_EQ(rests_before(indirect), Rests());
  EXPECT_EQ(rests_before(over(0, kFilledWords, {range(other, 0, kFilledBytes)})), Rests());
  EXPECT_EQ(rests_before(over(0, kFilledWords, {slot(0, 0, kFilledBytes)})), Rests());
  EXPECT_EQ(rests(Recording().fill(range(memory, 0, kFilledBytes), kFillPattern, 4)), Rests());
  EXPECT_EQ(rests_before(over(0, kFilledWords, {range(memory, 0, kFilledBytes)})), Rests{{}})
      << "but this one is";
  // The count is read when the dispatch runs: nothing is written but the pattern.
  const Recording recording = filled(memory).dispatch(command(executable, indirect));
  expect(finish(recording), {}, memory, std::vector<uint32_t>(kFilledWords, kFillPattern));
}

// The pattern is there after a failure, too: none of the bytes is that of before.
TEST_P(PartialFillsTest, AreCompletedAfterAFailure) {
  Memory memory = zeros(kFilledWords);
  const Dispatch d = over(100, kFilledWords - 200, {range(memory, 0, kFilledBytes)});
  const Recording recording = filled(memory).dispatch(command(failing_writer(), d));
  EXPECT_EQ(rests(recording), (Rests{{{0, 400}, {kFilledBytes - 400, kFilledBytes}}}));
  List list = finish(recording);
  for (int round = 0; round < kFillExecutions; ++round) {
    std::memset(bytes(memory), 0xAA, kFilledBytes);
    EXPECT_CODE(OUT_OF_RANGE, run(execute_operation(list, {})));
    const auto words = content<uint32_t>(memory, kFilledWords);
    for (uint32_t i = 0; i < kFilledWords; ++i)
      ASSERT_TRUE(words[i] == kFillPattern || (words[i] == i && i >= 100 && i < kFilledWords - 100)) << i;
  }
}

// A failure before the dispatch that would have written the bytes, and one after it.
TEST_P(PartialFillsTest, AreCompletedOnlyIfTheirDispatchHasNotRun) {
  Memory memory = zeros(kFilledWords);
  Memory other = zeros(16);
  Executable failing =
      load(kernel_on_binding("  %i26:27 = vm.const.i64 1000000000\n  %i22 = vm.const.i32 1\n  "
                             "vm.buffer.store.i32 %i22, %r3, %i26:27"));
  const Dispatch d = over(0, kFilledWords, {range(memory, 0, kFilledBytes)});
  const Dispatch fails = {.bindings = {range(other, 0, 64)}};
  for (const bool is_before : {true, false}) {
    Recording recording = filled(memory);
    if (is_before) recording.dispatch(command(failing, fails)).barrier();
    recording.dispatch(command(writer(), d)).barrier();
    if (!is_before) recording.dispatch(command(failing, fails));
    EXPECT_EQ(rests(recording), Rests{{}});
    List list = finish(recording);
    for (int round = 0; round < kFillExecutions; ++round) {
      std::memset(bytes(memory), 0xAA, kFilledBytes);
      EXPECT_CODE(OUT_OF_RANGE, run(execute_operation(list, {})));
      EXPECT_EQ(content<uint32_t>(memory, kFilledWords),
                is_before ? std::vector<uint32_t>(kFilledWords, kFillPattern) : filled_but(0, kFilledWords));
    }
  }
}

// The same list with other tables: memory that is filled may be known by another slot, too, which a command
// reads.
TEST_P(PartialFillsTest, HoldForTheTableOfEachExecution) {
  Memory first = zeros(2 * kFilledWords);
  Memory second = zeros(2 * kFilledWords);
  Memory seen = zeros(kFilledWords);
  const Dispatch d = over(0, kFilledWords, {slot(0, 0, kFilledBytes)});
  const Recording recording = Recording()
                                  .fill(slot(0, 0, kFilledBytes), kFillPattern, 4)
                                  .barrier()
                                  .copy(slot(1, 0, 4096), range(seen, 0, 4096))
                                  .barrier()
                                  .dispatch(command(writer(), d));
  EXPECT_EQ(rests(recording), Rests{{}});
  List list = finish(recording, 2);
  const auto expect_seen = [&](const std::vector<halyard_binding_t>& table, Memory memory,
                               uint32_t expected) {
    std::fill_n(reinterpret_cast<uint32_t*>(bytes(first)), 2 * kFilledWords, 1);
    std::fill_n(reinterpret_cast<uint32_t*>(bytes(second)), 2 * kFilledWords, 2);
    EXPECT_OK(run(execute_operation(list, table)));
    EXPECT_EQ(content<uint32_t>(seen, 1024), std::vector<uint32_t>(1024, expected));
    EXPECT_EQ(reinterpret_cast<uint32_t*>(bytes(memory))[table[0].offset / 4 + 77], 77U);
  };
  for (int round = 0; round < kFillExecutions; ++round) {
    expect_seen({{first, 0, kFilledBytes}, {second, 0, kFilledBytes}}, first, 2);
    expect_seen({{first, 0, kFilledBytes}, {first, 0, kFilledBytes}}, first, kFillPattern);
    expect_seen({{first, kFilledBytes, kFilledBytes}, {first, 0, kFilledBytes}}, first, 1);
    expect_seen({{first, kFilledBytes / 2, kFilledBytes}, {first, kFilledBytes, 4096}}, first, kFillPattern);
    expect_seen({{second, 0, kFilledBytes}, {first, 0, kFilledBytes}}, second, 1);
  }
}

// Two memories over the same bytes.
TEST_P(PartialFillsTest, FindMemoryThatIsKnownTwice) {
  alignas(64) static std::array<uint32_t, kFilledWords> words;
  constexpr uint32_t kAccess = HALYARD_MAP_READ | HALYARD_MAP_WRITE;
  Memory one = import_memory(words.data(), kFilledBytes, kAccess);
  Memory two = import_memory(words.data(), kFilledBytes, kAccess);
  Memory seen = zeros(kFilledWords);
  const Dispatch d = over(0, kFilledWords, {range(one, 0, kFilledBytes)});
  const Recording recording = Recording()
                                  .fill(range(one, 0, kFilledBytes), kFillPattern, 4)
                                  .barrier()
                                  .copy(range(two, 0, 4096), range(seen, 0, 4096))
                                  .barrier()
                                  .dispatch(command(writer(), d));
  List list = finish(recording);
  for (int round = 0; round < kFillExecutions; ++round) {
    words.fill(0xAAAAAAAA);
    EXPECT_OK(run(execute_operation(list, {})));
    EXPECT_EQ(content<uint32_t>(seen, 1024), std::vector<uint32_t>(1024, kFillPattern));
    EXPECT_TRUE(std::ranges::equal(words, filled_but(0, kFilledWords)));
  }
}

// Executions at the same time, each with memory of its own, while the fills are looked for.
TEST_P(PartialFillsTest, ConcurrentExecutions) {
  const Dispatch d = over(5, kFilledWords - 10, {slot(0, 0, kFilledBytes)});
  Executable executable = writer();
  for (int round = 0; round < 8; ++round) {
    const Recording recording = Recording()
                                    .fill(slot(0, 0, kFilledBytes), kFillPattern, 4)
                                    .barrier()
                                    .dispatch(command(executable, d));
    List list = finish(recording, 1);
    std::vector<Memory> memories;
    for (int i = 0; i < 3; ++i) memories.push_back(zeros(kFilledWords));
    std::vector<std::thread> threads;
    for (Memory memory : memories)
      threads.emplace_back([&, memory] {
        for (int i = 0; i < 14; ++i) EXPECT_OK(run(execute_operation(list, {{memory, 0, kFilledBytes}})));
      });
    for (std::thread& thread : threads) thread.join();
    for (Memory memory : memories) {
      EXPECT_EQ(content<uint32_t>(memory, kFilledWords), filled_but(5, kFilledWords - 10));
      destroy(memory);
    }
  }
}

// Memory without bytes is refused as before.
TEST_P(PartialFillsTest, OfMemoryWithoutBytesFail) {
  Semaphore never = semaphore();
  Completion completion;
  Memory unborn = queue_allocate(kFilledBytes, {{never, 1}}, {}, completion);
  const Dispatch d = over(0, kFilledWords, {range(unborn, 0, kFilledBytes)});
  List list = finish(Recording()
                         .fill(range(unborn, 0, kFilledBytes), kFillPattern, 4)
                         .barrier()
                         .dispatch(command(writer(), d)));
  for (int round = 0; round < kFillExecutions; ++round)
    EXPECT_CODE(FAILED_PRECONDITION, run(execute_operation(list, {})));
  EXPECT_OK(signal(never, 1));
  EXPECT_OK(outcome(completion));
  expect(list, {}, unborn, filled_but(0, kFilledWords));
}

TEST(RangeSet, IsTheSetOfItsBytes) {
  using local::RangeSet;
  RangeSet set;
  const std::vector<ByteRange> ranges = {{10, 20}, {5, 5}, {30, 40}, {20, 25}, {0, 3}, {12, 14}};
  set.add(ranges);
  EXPECT_EQ(set.ranges(), (std::vector<ByteRange>{{0, 3}, {10, 25}, {30, 40}}));
  EXPECT_EQ(set.size(), 28U);
  const RangeSet other(ByteRange{2, 32});
  EXPECT_EQ(set.without(other).ranges(), (std::vector<ByteRange>{{0, 2}, {32, 40}}));
  EXPECT_EQ(set.common(other).ranges(), (std::vector<ByteRange>{{2, 3}, {10, 25}, {30, 32}}));
  EXPECT_EQ(other.without(set).ranges(), (std::vector<ByteRange>{{3, 10}, {25, 30}}));
  EXPECT_EQ(set.whole(4, 0).ranges(), (std::vector<ByteRange>{{12, 24}, {32, 40}}));
  EXPECT_EQ(set.without(set).size(), 0U);
}

}  // namespace
}  // namespace halyard::local_tests
