// Fill, update and copy, as queue operations and in command lists; slots; groups and barriers. Dispatch:
// executable_test.cpp.
#include <numeric>

#include "harness.h"

namespace halyard::local_tests {
namespace {

class CommandsTest : public LocalTest {
 public:
  static std::vector<uint8_t> counting(size_t count) {
    std::vector<uint8_t> result(count);
    std::iota(result.begin(), result.end(), uint8_t{1});
    return result;
  }
};
HALYARD_ON_EVERY_DEVICE(CommandsTest);

TEST_P(CommandsTest, FillsEveryPatternAtEveryPlace) {
  constexpr uint32_t kPattern = 0xD4C3B2A1;
  for (const uint32_t size : {1u, 2u, 4u}) {
    for (uint64_t offset = 0; offset <= 24; offset += size) {
      for (uint64_t length = 0; length <= 40; length += size) {
        std::vector<uint8_t> expected(72, 0x5A);
        Memory memory = allocate(expected);
        for (uint64_t i = 0; i < length; ++i)
          expected[offset + i] = static_cast<uint8_t>(kPattern >> (8 * (i % size)));
        EXPECT_OK(run(fill_operation(range(memory, offset, length), kPattern, size)));
        ASSERT_EQ(content<uint8_t>(memory, 72), expected) << size << " at " << offset << " for " << length;
        destroy(memory);
      }
    }
  }
}

// More bytes than are copied at once, of a pattern whose bytes differ and of one whose bytes are equal.
TEST_P(CommandsTest, FillsManyBytes) {
  constexpr size_t kSize = 100004;
  Memory memory = allocate(std::vector<uint8_t>(kSize + 4, 0x5A));
  for (const uint32_t pattern : {0xD4C3B2A1u, 0x07070707u}) {
    std::vector<uint8_t> expected(kSize + 4, 0x5A);
    for (size_t i = 0; i < kSize; ++i) expected[i] = static_cast<uint8_t>(pattern >> (8 * (i % 4)));
    EXPECT_OK(run(fill_operation(range(memory, 0, kSize), pattern, 4)));
    EXPECT_EQ(content<uint8_t>(memory, kSize + 4), expected);
  }
}

TEST_P(CommandsTest, Update) {
  const std::vector<uint8_t> source = {1, 2, 3, 4, 5};
  Memory memory = allocate(std::vector<uint8_t>(7, 0));
  EXPECT_OK(run(update_operation(source.data() + 1, range(memory, 3, 3))));
  EXPECT_EQ(content<uint8_t>(memory, 7), (std::vector<uint8_t>{0, 0, 0, 2, 3, 4, 0}));
  EXPECT_OK(run(update_operation(nullptr, range(memory, 3, 0))));
}

TEST_P(CommandsTest, Copy) {
  Memory source = allocate(counting(10));
  Memory target = allocate(std::vector<uint8_t>(10, 0));
  EXPECT_OK(run(copy_operation(range(source, 2, 5), range(target, 4, 5))));
  EXPECT_EQ(content<uint8_t>(target, 10), (std::vector<uint8_t>{0, 0, 0, 0, 3, 4, 5, 6, 7, 0}));
  EXPECT_OK(run(copy_operation(range(source, 10, 0), range(target, 0, 0))));
  EXPECT_OK(run(copy_operation(range(source, 0, 5), range(source, 5, 5)))) << "two ranges of one memory";
  EXPECT_EQ(content<uint8_t>(source, 10), (std::vector<uint8_t>{1, 2, 3, 4, 5, 1, 2, 3, 4, 5}));
}

TEST_P(CommandsTest, ListsRunInOrder) {
  Memory first = allocate(std::vector<uint8_t>(8, 0));
  Memory second = allocate(std::vector<uint8_t>(8, 0));
  const uint8_t source[] = {9, 8};
  const char label[] = "group";
  const Recording recording =
      Recording()
          .add(HALYARD_COMMAND_BEGIN_GROUP, halyard_command_begin_group_t{{}, {label, 5}})
          .fill(range(first, 0, 8), 1, 1)
          .barrier()
          .update(source, range(first, 2, 2))
          .barrier()
          .copy(range(first, 0, 4), range(second, 4, 4))
          .barrier()
          .fill(range(first, 0, 4), 2, 1)
          .add(HALYARD_COMMAND_END_GROUP, halyard_command_barrier_t{});
  List list = finish(recording);
  for (int repetition = 0; repetition < 2; ++repetition) {
    EXPECT_OK(run(execute_operation(list, {})));
    EXPECT_EQ(content<uint8_t>(first, 8), (std::vector<uint8_t>{2, 2, 2, 2, 1, 1, 1, 1}));
    EXPECT_EQ(content<uint8_t>(second, 8), (std::vector<uint8_t>{0, 0, 0, 0, 1, 1, 9, 8}));
  }
}

TEST_P(CommandsTest, EmptyList) { EXPECT_OK(run(execute_operation(finish(Recording()), {}))); }

TEST_P(CommandsTest, SlotsAreRelativeToTheirEntry) {
  Memory first = allocate(counting(16));
  Memory second = allocate(std::vector<uint8_t>(16, 0));
  const Recording recording =
      Recording().copy(slot(2, 1, 3), slot(0, 2, 3)).fill(range(first, 0, 1), 0xFF, 1);
  List list = finish(recording, 3);
  // No command uses slot 1; entries after the last slot are ignored.
  EXPECT_OK(run(execute_operation(list, {{second, 4, 8}, {nullptr, 0, 0}, {first, 8, 8}, {first, 0, 1}})));
  EXPECT_EQ(content<uint8_t>(second, 16),
            (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 10, 11, 12, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(bytes(first)[0], 0xFF);
  // A different table with a different place; slots may overlap.
  EXPECT_OK(run(execute_operation(list, {{first, 9, 7}, {}, {first, 9, 7}})));
}

TEST_P(CommandsTest, FailureEndsTheList) {
  Semaphore never = semaphore();
  Completion completion;
  Memory unborn = queue_allocate(4, {{never, 1}}, {}, completion);
  Memory memory = allocate(std::vector<uint8_t>(2, 0));
  const Recording recording = Recording()
                                  .fill(range(memory, 0, 1), 1, 1)
                                  .fill(range(unborn, 0, 4), 1, 1)
                                  .fill(range(memory, 1, 1), 1, 1);
  List list = finish(recording);
  EXPECT_CODE(FAILED_PRECONDITION, run(execute_operation(list, {})));
  EXPECT_EQ(content<uint8_t>(memory, 2), (std::vector<uint8_t>{1, 0}));
  EXPECT_OK(signal(never, 1));
  EXPECT_OK(outcome(completion));
  EXPECT_OK(run(execute_operation(list, {})));
  EXPECT_EQ(content<uint8_t>(memory, 2), (std::vector<uint8_t>{1, 1}));
}

TEST_P(CommandsTest, UnknownCommandsAreRefusedAtCreation) {
  EXPECT_FAILS(
      UNIMPLEMENTED, "kind 6",
      try_finish(Recording().barrier().add(HALYARD_COMMAND_COLLECTIVE, halyard_command_collective_t{})));
  for (const uint32_t kind : {0u, 9u, 1000u, UINT32_MAX})
    EXPECT_CODE(UNIMPLEMENTED, try_finish(Recording().add(kind, halyard_command_barrier_t{})));
}

}  // namespace
}  // namespace halyard::local_tests
