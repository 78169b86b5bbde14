// Which buffers a function fills before anything reads them, and the contents of those that it does not.
#include "vm/decode/filled_buffers.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "status_testing.h"
#include "vm/decode/code.h"
#include "vm/module/bytecode_module.h"
#include "vm/text/assembler.h"

namespace halyard::vm::test {
namespace {

// other.fill writes so many bytes of its second buffer from the first number on, if the last number is 7.
std::optional<CallWrites> writes_of(std::string_view import,
                                    std::span<const std::optional<int64_t>> integers) {
  if (import != "other.fill" || integers.size() != 3 || integers[2] != 7 || !integers[0] || !integers[1])
    return std::nullopt;
  const auto begin = static_cast<uint64_t>(*integers[0]);
  return CallWrites{1, begin, begin + static_cast<uint64_t>(*integers[1])};
}

// For each allocation of a function with this body, whether its buffer is filled. The buffer in r2 has 240
// bytes. i0:1 is an argument, i2:3 is 0, and i4:5 is 1.
std::vector<bool> filled(const std::string& body) {
  const std::string text = R"(
vm.module @m
vm.type !vm.buffer
vm.import @other.read cconv "0r_v"
vm.import @other.fill cconv "0rIrIi_v"
vm.export @f
vm.func @f(%r0: !vm.ref<?>, %r1: !vm.ref<?>, %i0:1: i64) -> (i64) {
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64 1
  %i6:7 = vm.const.i64 240
  %i8 = vm.const.i32.zero
  %r2 = vm.buffer.alloc %i6:7, %i8
)" + body + R"(
  vm.return %i4:5
}
)";
  const auto bytes = assemble(text, {17, "t.vmasm"});
  EXPECT_TRUE(bytes) << bytes.error().message() << text;
  if (!bytes) return {};
  const TypeRegistry types;
  const auto module = BytecodeModule::load(Bytes::copy(*bytes), types);
  EXPECT_TRUE(module);
  if (!module) return {};
  const auto code =
      decode_function(**module, 0, {.fuse = false, .entries = Entries::calls, .call_writes = writes_of});
  EXPECT_TRUE(code);
  std::vector<bool> found;
  for (uint32_t at = 0; code && at < (*code)->words.size(); at += word_count((*code)->words[at]))
    if (const Word& word = (*code)->words[at]; word.op == static_cast<uint16_t>(Op::buffer_alloc))
      found.push_back((word.c & kFilledBit) != 0);
  return found;
}

struct LoopText {
  std::string first = "%i2:3";
  std::string step = "%i4:5";
  std::string before_latch;
};

// A loop with the counter i`counter`:`counter` + 1, in blocks from ^bb`block` on.
std::string counting(int block, int counter, int trips, const std::string& body, const LoopText& text = {}) {
  const std::string pair = "%i" + std::to_string(counter) + ":" + std::to_string(counter + 1);
  const std::string bound = "%i" + std::to_string(counter + 2) + ":" + std::to_string(counter + 3);
  const auto bb = [&](int number) { return "^bb" + std::to_string(block + number); };
  return "  " + bound + " = vm.const.i64 " + std::to_string(trips) + "\n  " + pair + " = vm.add.i64 " +
         text.first + ", %i2:3\n  vm.br " + bb(0) + "\n" + bb(0) + ":\n  %i8 = vm.cmp.lt.i64.s " + pair +
         ", " + bound + "\n  vm.cond_br %i8, " + bb(1) + ", " + bb(2) + "\n" + bb(1) + ":\n" + body + "  " +
         pair + " = vm.add.i64 " + pair + ", " + text.step + "\n" + text.before_latch + "  vm.br " + bb(0) +
         "\n" + bb(2) + ":\n";
}

const std::string kRead = "  %i9 = vm.buffer.load.i32 %r2, %i2:3\n";
const std::string kStore = "  vm.buffer.store.i32 %i8, %r2, %i20:21\n";

// Stores to 60 elements of 4 bytes in loops of these counts, with these distances.
std::string nest(const std::vector<std::pair<int, int>>& loops, const std::string& more = "",
                 const std::string& store = kStore) {
  std::string body = "  %i20:21 = vm.const.i64.zero\n";
  for (size_t i = 0; i < loops.size(); ++i) {
    const std::string counter = "%i" + std::to_string(30 + 4 * i) + ":" + std::to_string(31 + 4 * i);
    body += "  %i22:23 = vm.const.i64 " + std::to_string(loops[i].second) + "\n  %i20:21 = vm.fma.i64 " +
            counter + ", %i22:23, %i20:21\n";
  }
  body += more + store;
  for (size_t i = loops.size(); i-- > 0;)
    body = counting(static_cast<int>(1 + 3 * i), static_cast<int>(30 + 4 * i), loops[i].first, body);
  return body;
}

using Found = std::vector<bool>;

TEST(FilledBuffers, ByANestThatStoresToEachElement) {
  EXPECT_EQ(filled(nest({{60, 1}}) + kRead), Found{true});
  EXPECT_EQ(filled(nest({{6, 10}, {10, 1}}) + kRead), Found{true});
  EXPECT_EQ(filled(nest({{10, 1}, {6, 10}}) + kRead), Found{true});
  EXPECT_EQ(filled(nest({{3, 20}, {4, 5}, {5, 1}}) + kRead), Found{true});
  EXPECT_EQ(filled(nest({{61, 1}}) + kRead), Found{true});          // fails at the last one
  EXPECT_EQ(filled(nest({{7, 9}, {10, 1}}) + kRead), Found{true});  // some twice
  EXPECT_EQ(filled(nest({{60, 1}, {3, 0}}) + kRead), Found{true});  // each three times
  EXPECT_EQ(filled(nest({{30, 1}}, "", "  vm.buffer.store.i64 %i2:3, %r2, %i20:21\n") + kRead), Found{true});
  EXPECT_EQ(filled(nest({{60, 1}})), Found{true});
}

TEST(FilledBuffers, NotIfAnElementIsLeftOut) {
  EXPECT_EQ(filled(nest({{59, 1}}) + kRead), Found{false});
  EXPECT_EQ(filled(nest({{6, 11}, {10, 1}}) + kRead), Found{false});
  EXPECT_EQ(filled(nest({{60, 2}}) + kRead), Found{false});
  EXPECT_EQ(filled(nest({{60, 1}}, "  %i20:21 = vm.add.i64 %i20:21, %i4:5\n") + kRead), Found{false});
  EXPECT_EQ(filled(nest({{60, 1}}, "", "  vm.buffer.store.i16 %i8, %r2, %i20:21\n") + kRead), Found{false});
  EXPECT_EQ(filled(nest({{60, 1}}, "  %i20:21 = vm.mul.i64 %i20:21, %i0:1\n") + kRead), Found{false});
  EXPECT_EQ(filled(kRead), Found{false});
  EXPECT_EQ(filled("  vm.buffer.store.i64 %i2:3, %r2, %i2:3\n" + kRead), Found{false});
}

TEST(FilledBuffers, NotIfSomethingReadsBefore) {
  EXPECT_EQ(filled(kRead + nest({{60, 1}})), Found{false});
  EXPECT_EQ(filled(nest({{60, 1}}, "  %i9 = vm.buffer.load.i32 %r2, %i20:21\n") + kRead), Found{false});
  EXPECT_EQ(filled("  %i9 = vm.buffer.compare %r1, %i2:3, %r2, %i2:3, %i4:5\n" + nest({{60, 1}})),
            Found{false});
  EXPECT_EQ(filled("  vm.buffer.copy %r2, %i2:3, %r1, %i2:3, %i4:5\n" + nest({{60, 1}})), Found{false});
  EXPECT_EQ(filled("  vm.buffer.copy %r1, %i2:3, %r2, %i2:3, %i4:5\n" + nest({{60, 1}})), Found{true});
  EXPECT_EQ(filled("  %r3 = vm.assign.ref %r2\n" + nest({{60, 1}}) + kRead), Found{false});
  EXPECT_EQ(filled("  vm.call @other.read(%r2)\n" + nest({{60, 1}}) + kRead), Found{false});
  EXPECT_EQ(filled(nest({{60, 1}}) + "  vm.call @other.read(%r2)\n"), Found{true});
  EXPECT_EQ(filled("  %i6:7 = vm.buffer.length %r2\n" + nest({{60, 1}}) + kRead), Found{true});
}

TEST(FilledBuffers, NotIfAPathGoesAroundTheNest) {
  const std::string around = "  %i8 = vm.cmp.eq.i64 %i0:1, %i4:5\n  vm.cond_br %i8, ^bb20, ^bb21\n^bb20:\n";
  EXPECT_EQ(filled(around + nest({{60, 1}}) + "  vm.br ^bb21\n^bb21:\n" + kRead), Found{false});
  EXPECT_EQ(filled(around + nest({{60, 1}}) + kRead + "  vm.br ^bb21\n^bb21:\n"), Found{true});
  // The nest's end is reached from elsewhere.
  EXPECT_EQ(filled("  %i8 = vm.cmp.eq.i64 %i0:1, %i4:5\n  vm.cond_br %i8, ^bb20, ^bb3\n^bb20:\n" +
                   nest({{60, 1}}) + kRead),
            Found{false});
}

TEST(FilledBuffers, NotIfALoopIsOfAnotherKind) {
  const auto with = [](const LoopText& text, const std::string& body = "") {
    return filled(counting(1, 30, 60, "  %i20:21 = vm.add.i64 %i30:31, %i2:3\n" + body + kStore, text) +
                  kRead);
  };
  EXPECT_EQ(with({}), Found{true});
  EXPECT_EQ(with({.first = "%i4:5"}), Found{false});
  EXPECT_EQ(with({.first = "%i0:1"}), Found{false});
  EXPECT_EQ(with({.step = "%i0:1"}), Found{false});
  EXPECT_EQ(with({.before_latch = "  %i30:31 = vm.add.i64 %i30:31, %i4:5\n"}), Found{false});
  EXPECT_EQ(with({.before_latch = "  %i31 = vm.const.i32.zero\n"}), Found{false});
  EXPECT_EQ(with({}, "  %i30:31 = vm.add.i64 %i30:31, %i4:5\n"), Found{false});
  // A number of iterations that is not known, or changes.
  EXPECT_EQ(with({}, "  %i32:33 = vm.add.i64 %i0:1, %i2:3\n"), Found{false});
  EXPECT_EQ(with({}, "  %i32:33 = vm.const.i64 10\n"), Found{false});
}

TEST(FilledBuffers, NotIfAnIterationMayLeaveTheStoreOut) {
  const std::string choice = "  %i8 = vm.cmp.eq.i64 %i0:1, %i4:5\n  vm.cond_br %i8, ^bb20, ^bb21\n^bb20:\n";
  EXPECT_EQ(filled(nest({{60, 1}}, "", choice + kStore + "  vm.br ^bb21\n^bb21:\n") + kRead), Found{false});
  // It leaves the loop.
  EXPECT_EQ(filled(nest({{60, 1}}, choice + "  vm.br ^bb3\n^bb21:\n") + kRead), Found{false});
  // Between the heads of two loops.
  EXPECT_EQ(filled(counting(1, 30, 6,
                            choice +
                                counting(4, 34, 10,
                                         "  %i22:23 = vm.const.i64 10\n"
                                         "  %i20:21 = vm.fma.i64 %i30:31, %i22:23, %i34:35\n" +
                                             kStore) +
                                "  vm.br ^bb21\n^bb21:\n") +
                   kRead),
            Found{false});
}

// The inner counter is 10 after the first iteration of the outer loop, so the inner loop runs once.
TEST(FilledBuffers, NotIfACounterDoesNotBeginAgain) {
  std::string text = nest({{6, 10}, {10, 1}});
  const std::string first = "  %i34:35 = vm.add.i64 %i2:3, %i2:3\n";
  const size_t at = text.find(first);
  ASSERT_NE(at, std::string::npos);
  text.erase(at, first.size());
  EXPECT_EQ(filled(first + text + kRead), Found{false});
  // Nor does the nest run again for a second buffer of the same instruction.
  const std::string again = "  vm.br ^bb20\n^bb20:\n  %r2 = vm.buffer.alloc %i6:7, %i8\n" + nest({{60, 1}}) +
                            kRead +
                            "  %i8 = vm.cmp.eq.i64 %i0:1, %i4:5\n  vm.cond_br %i8, ^bb20, ^bb21\n^bb21:\n";
  EXPECT_EQ(filled(again), (Found{true, true}));
  std::string once = again;
  const std::string begins = "  %i30:31 = vm.add.i64 %i2:3, %i2:3\n";
  once.erase(once.find(begins), begins.size());
  EXPECT_EQ(filled(begins + once), (Found{false, false}));
}

TEST(FilledBuffers, ByACallThatWritesAllBytes) {
  const auto with = [](const std::string& call, const std::string& kind = "  %i9 = vm.const.i32 7\n") {
    return filled(kind + "  %i10:11 = vm.const.i64 239\n  vm.call @other.fill(" + call + ")\n" + kRead);
  };
  EXPECT_EQ(with("%r1, %i2:3, %r2, %i6:7, %i9"), Found{true});
  EXPECT_EQ(with("%r1, %i2:3, %r2, %i10:11, %i9"), Found{false});  // one less
  EXPECT_EQ(with("%r1, %i4:5, %r2, %i6:7, %i9"), Found{false});    // not the first one
  EXPECT_EQ(with("%r2, %i2:3, %r1, %i6:7, %i9"), Found{false});    // of another buffer
  EXPECT_EQ(with("%r2, %i2:3, %r2, %i6:7, %i9"), Found{false});    // which it may read
  EXPECT_EQ(with("%r1, %i2:3, %r2, %i0:1, %i9"), Found{false});    // how many is not known
  EXPECT_EQ(with("%r1, %i2:3, %r2, %i6:7, %i9", "  %i9 = vm.const.i32.zero\n"), Found{false});
  EXPECT_EQ(with("%r1, %i2:3, %r2, %i6:7, %i0", ""), Found{false});
}

TEST(FilledBuffers, NotIfSomethingReadsBeforeTheCall) {
  const std::string call = "  %i9 = vm.const.i32 7\n  vm.call @other.fill(%r1, %i2:3, %r2, %i6:7, %i9)\n";
  EXPECT_EQ(filled(kRead + call), Found{false});
  EXPECT_EQ(filled("  vm.call @other.read(%r2)\n" + call), Found{false});
  EXPECT_EQ(filled(call + "  vm.call @other.read(%r2)\n"), Found{true});
  EXPECT_EQ(filled("  %r3 = vm.assign.ref %r2\n" + call), Found{false});
  const std::string around = "  %i8 = vm.cmp.eq.i64 %i0:1, %i4:5\n  vm.cond_br %i8, ^bb20, ^bb21\n^bb20:\n";
  EXPECT_EQ(filled(around + call + "  vm.br ^bb21\n^bb21:\n" + kRead), Found{false});
  EXPECT_EQ(filled(around + call + kRead + "  vm.br ^bb21\n^bb21:\n"), Found{true});
  // A loop comes back to the read.
  EXPECT_EQ(filled("  vm.br ^bb20\n^bb20:\n" + kRead + call +
                   "  %i8 = vm.cmp.eq.i64 %i0:1, %i4:5\n  vm.cond_br %i8, ^bb20, ^bb21\n^bb21:\n"),
            Found{false});
}

TEST(FilledBuffers, EachAllocationForItself) {
  const std::string other = "  %r3 = vm.buffer.alloc %i6:7, %i8\n";
  EXPECT_EQ(filled(other + nest({{60, 1}}) + kRead), (Found{true, false}));
  EXPECT_EQ(filled("  %r2 = vm.buffer.alloc %i6:7, %i8\n" + nest({{60, 1}}) + kRead), (Found{true, true}));
  EXPECT_EQ(filled(nest({{60, 1}}) + "  %r2 = vm.buffer.alloc %i6:7, %i8\n" + kRead), (Found{true, false}));
  // A size that is not known.
  EXPECT_EQ(filled("  %r2 = vm.buffer.alloc %i0:1, %i8\n" + nest({{60, 1}}) + kRead), (Found{true, false}));
}

}  // namespace
}  // namespace halyard::vm::test
