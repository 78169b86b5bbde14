// Loops over buffers, compiled and interpreted: the same results, the same bytes written before a failure,
// the same failure at the same place. Lengths, offsets and strides reach the ends of buffers and of 64 bits;
// buffers overlap.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <string>

#include "loop_programs.h"
#include "program.h"
#include "vm/object/buffer.h"

namespace halyard::vm::test {
namespace {

// r1[i] = 2 * r0[from + i * step] for i below n; gives i.
const std::string kStrided = program("", "%i6:7", loop(1, "%i6:7", "%i0:1", R"(
  %i12:13 = vm.fma.i64 %i6:7, %i4:5, %i2:3
  %i11 = vm.buffer.load.i32 %r0, %i12:13
  %i11 = vm.add.i32 %i11, %i11
  vm.buffer.store.i32 %i11, %r1, %i6:7
)"));

// r1[i * step] += r0[i * from + k] * r0[k] for i below n and k below 5: floats, added in their order.
const std::string kContraction =
    program("f32", "%i6:7", "%i14:15 = vm.const.i64 5" + loop(1, "%i6:7", "%i0:1", R"(
  %i16:17 = vm.mul.i64 %i6:7, %i4:5
  %i18:19 = vm.mul.i64 %i6:7, %i2:3
)" + loop(4, "%i20:21", "%i14:15", R"(
  %i22:23 = vm.add.i64 %i18:19, %i20:21
  %i24 = vm.buffer.load.f32 %r0, %i22:23
  %i25 = vm.buffer.load.f32 %r0, %i20:21
  %i26 = vm.buffer.load.f32 %r1, %i16:17
  %i26 = vm.fma.f32 %i24, %i25, %i26
  vm.buffer.store.f32 %i26, %r1, %i16:17
)")));

// The inner loop is as long as the outer one has come, in steps of 2; bytes, with a branch inside.
const std::string kTriangleRow = R"(
  %i22:23 = vm.add.i64 %i20:21, %i2:3
  %i24 = vm.buffer.load.i8.s %r0, %i22:23
  %i25 = vm.buffer.load.i16.u %r1, %i20:21
  %i25 = vm.add.i32 %i24, %i25
  vm.cond_br %i24, ^bb7, ^bb8
^bb7:
  vm.buffer.store.i16 %i25, %r1, %i20:21
  vm.br ^bb8
^bb8:
)";
const std::string kTriangle =
    program("", "%i6:7",
            "%i14:15 = vm.const.i64 2" +
                loop(1, "%i6:7", "%i0:1", loop(4, "%i20:21", "%i6:7", kTriangleRow, "%i14:15")));

// r1[from + n] += r0[k] * r0[k * step + n] for n below i0 and k below 5: vectors across n where r0 and r1 lie
// apart.
const std::string kOutputs =
    program("f32", "%i2:3", "%i14:15 = vm.const.i64 5" + loop(1, "%i6:7", "%i0:1", R"(
  %i16:17 = vm.add.i64 %i6:7, %i2:3
)" + loop(4, "%i20:21", "%i14:15", R"(
  %i22:23 = vm.fma.i64 %i20:21, %i4:5, %i6:7
  %i24 = vm.buffer.load.f32 %r0, %i22:23
  %i25 = vm.buffer.load.f32 %r0, %i20:21
  %i26 = vm.buffer.load.f32 %r1, %i16:17
  %i26 = vm.fma.f32 %i24, %i25, %i26
  vm.buffer.store.f32 %i26, %r1, %i16:17
)")));

// As in pooling: r1[n] = max(r1[n], r0[(k + l) * step + n + from] * r0[l]) for n below 37, k below 3 and l
// below 2: 16-bit integers, two loops over terms.
const std::string kPooling = program("", "%i2:3", R"(
  %i12:13 = vm.const.i64 37
  %i14:15 = vm.const.i64 3
  %i0:1 = vm.const.i64 2
)" + loop(1, "%i6:7", "%i12:13", R"(
  %i16:17 = vm.add.i64 %i6:7, %i2:3
)" + loop(4, "%i20:21", "%i14:15", loop(7, "%i30:31", "%i0:1", R"(
  %i22:23 = vm.add.i64 %i20:21, %i30:31
  %i22:23 = vm.fma.i64 %i22:23, %i4:5, %i16:17
  %i24 = vm.buffer.load.i16.s %r0, %i22:23
  %i25 = vm.buffer.load.i16.s %r0, %i30:31
  %i24 = vm.mul.i32 %i24, %i25
  %i26 = vm.buffer.load.i16.s %r1, %i6:7
  %i26 = vm.max.i32.s %i24, %i26
  vm.buffer.store.i16 %i26, %r1, %i6:7
)"))));

// r1[n] += r0[`index`] for n below 96 and k below i0, of which there may be none; i16:17 is n + from.
std::string sum_of_columns(std::string_view index, std::string_view right) {
  return program("f64", "%i2:3",
                 "%i12:13 = vm.const.i64 96" + loop(1, "%i6:7", "%i12:13",
                                                    R"(
  %i16:17 = vm.add.i64 %i6:7, %i2:3
)" + loop(4, "%i20:21", "%i0:1",
          fmt::format(R"(
  %i22:23 = vm.fma.i64 {}
  %i24:25 = vm.buffer.load.f64 %r0, %i22:23
  %i26:27 = vm.buffer.load.f64 %r1, {}
  %i26:27 = vm.add.f64 %i24:25, %i26:27
  vm.buffer.store.f64 %i26:27, %r1, %i6:7
)",
                      index, right))));
}
// A sum over the leading dimension: r1[n] += r0[k * step + n + from].
const std::string kColumns = sum_of_columns("%i20:21, %i4:5, %i16:17", "%i6:7");
// r1[n] = r1[n + from] + r0[k * step + n]: an output depends on others, and their order counts.
const std::string kDependent = sum_of_columns("%i20:21, %i4:5, %i6:7", "%i16:17");

// A product of matrices, of which the second is transposed: r1[m * 20 + n] += r0[m * K + k + from] * r0[n * K
// + k], for m below step % 8, n below 20, k below K = i0.
const std::string kTransposed = program("f32", "%i6:7", R"(
  %i12:13 = vm.const.i64 20
  %i14:15 = vm.const.i64 7
  %i4:5 = vm.and.i64 %i4:5, %i14:15
)" + loop(1, "%i6:7", "%i4:5", R"(
  %i18:19 = vm.fma.i64 %i6:7, %i0:1, %i2:3
)" + loop(4, "%i16:17", "%i12:13", R"(
  %i22:23 = vm.fma.i64 %i6:7, %i12:13, %i16:17
)" + loop(7, "%i20:21", "%i0:1", R"(
  %i24:25 = vm.add.i64 %i18:19, %i20:21
  %i26 = vm.buffer.load.f32 %r0, %i24:25
  %i24:25 = vm.fma.i64 %i16:17, %i0:1, %i20:21
  %i27 = vm.buffer.load.f32 %r0, %i24:25
  %i28 = vm.buffer.load.f32 %r1, %i22:23
  %i28 = vm.fma.f32 %i26, %i27, %i28
  vm.buffer.store.f32 %i28, %r1, %i22:23
)"))));

// A sum over the other dimension, whose terms lie next to each other: r1[n] += r0[n * step + k].
const std::string kRows = sum_of_columns("%i6:7, %i4:5, %i20:21", "%i6:7");

// A nest that was coalesced into one loop over i0 turns, its divisors K = i2 and M = i4:
// r1[c / (M * K) + c % (M * K) / K] += r0[c % K], with the corrections for negative numbers that compilers
// write. Gives c.
const std::string kCoalesced =
    program("f32", "%i6:7", "%i14:15 = vm.const.i64.zero" + loop(1, "%i6:7", "%i0:1", R"(
  %i16:17 = vm.mul.i64 %i2:3, %i4:5
  %i18:19 = vm.div.i64.s %i6:7, %i16:17
  %i20:21 = vm.rem.i64.s %i6:7, %i16:17
  %i10 = vm.cmp.lt.i64.s %i20:21, %i14:15
  %i22:23 = vm.add.i64 %i20:21, %i16:17
  %i20:21 = vm.select.i64 %i10 ? %i22:23 : %i20:21
  %i20:21 = vm.div.i64.s %i20:21, %i2:3
  %i22:23 = vm.rem.i64.s %i6:7, %i2:3
  %i10 = vm.cmp.lt.i64.s %i22:23, %i14:15
  %i24:25 = vm.add.i64 %i22:23, %i2:3
  %i22:23 = vm.select.i64 %i10 ? %i24:25 : %i22:23
  %i18:19 = vm.add.i64 %i18:19, %i20:21
  %i26 = vm.buffer.load.f32 %r0, %i22:23
  %i27 = vm.buffer.load.f32 %r1, %i18:19
  %i27 = vm.add.f32 %i27, %i26
  vm.buffer.store.f32 %i27, %r1, %i18:19
)"));

// With one divisor: r1[c % K * M + c / K] = r0[c].
const std::string kCoalescedOnce = program("", "%i6:7", loop(1, "%i6:7", "%i0:1", R"(
  %i18:19 = vm.div.i64.s %i6:7, %i2:3
  %i20:21 = vm.rem.i64.s %i6:7, %i2:3
  %i18:19 = vm.fma.i64 %i20:21, %i4:5, %i18:19
  %i26 = vm.buffer.load.i16.s %r0, %i6:7
  vm.buffer.store.i16 %i26, %r1, %i18:19
)"));

// With a loop inside: r1[c] += r0[t * K + c % K] * r0[c / K], for t below the number of terms, which is i4 as
// far as `mask` has its bits.
std::string coalesced_around(int64_t mask) {
  return program("f32", "%i6:7",
                 fmt::format(R"(
  %i12:13 = vm.const.i64 {}
  %i4:5 = vm.and.i64 %i4:5, %i12:13
)",
                             mask) +
                     loop(1, "%i6:7", "%i0:1", R"(
  %i18:19 = vm.div.i64.s %i6:7, %i2:3
  %i20:21 = vm.rem.i64.s %i6:7, %i2:3
)" + loop(4, "%i14:15", "%i4:5", R"(
  %i22:23 = vm.fma.i64 %i14:15, %i2:3, %i20:21
  %i26 = vm.buffer.load.f32 %r0, %i22:23
  %i27 = vm.buffer.load.f32 %r0, %i18:19
  %i28 = vm.buffer.load.f32 %r1, %i6:7
  %i28 = vm.fma.f32 %i26, %i27, %i28
  vm.buffer.store.f32 %i28, %r1, %i6:7
)")));
}
const std::string kCoalescedAround = coalesced_around(7);

// The same remainder in two blocks, of which neither comes before the other.
const std::string kCoalescedApart = program("", "%i6:7", R"(
  %i14:15 = vm.const.i64.zero
  %i16:17 = vm.mul.i64 %i2:3, %i4:5
)" + loop(1, "%i6:7", "%i0:1", R"(
  %i22:23 = vm.rem.i64.s %i6:7, %i2:3
  %i10 = vm.cmp.lt.i64.s %i22:23, %i8:9
  vm.cond_br %i10, ^bb4, ^bb5
^bb4:
  %i20:21 = vm.rem.i64.s %i6:7, %i16:17
  vm.br ^bb6
^bb5:
  %i20:21 = vm.rem.i64.s %i6:7, %i16:17
  %i20:21 = vm.add.i64 %i20:21, %i8:9
  vm.br ^bb6
^bb6:
  vm.buffer.store.i8 %i20, %r1, %i20:21
)"));

const std::string kBlocks = sum_in_blocks(1, 9, 8, 1, 385);  // one loop over rows, two blocks and a rest
const std::string kBlocksOfRows =
    sum_in_blocks(3, 4, 8, 3, 129);  // two, and a block is one of the outer terms
// B is packed, of outputs that are contiguous; that are not, with terms that are; and that are not, with
// terms of two loops.
const std::string kPacked = sum_in_blocks(1, 25, 20, 1, 385);
const std::string kPackedTransposed = sum_in_blocks(1, 12, 40, 1, 300, 5);
const std::string kPackedOfRows = sum_in_blocks(3, 9, 18, 3, 33, 20);

// Sums with nests before and after them: in place, and through a buffer of the function's own, whose results
// are apart, or overlap, or are in blocks of terms; and with refs that are released before the results.
const std::string kInPlace = sums_with_neighbours("%r1", 5, 20, "%r0", "%i34:35");
constexpr std::string_view kOwn = "%i24:25 = vm.const.i64 1024\n %r2 = vm.buffer.alloc %i24:25, %i8";
const std::string kThroughMemory = sums_with_neighbours("%r2", 5, 23, "%r0", "%i2:3", kOwn);
const std::string kOverlapping = sums_with_neighbours("%r2", 5, 13, "%r0", "%i34:35", kOwn);
const std::string kBlocksThroughMemory = sums_with_neighbours("%r2", 300, 20, "%r0", "%i34:35", kOwn);
const std::string kReleased =
    sums_with_neighbours("%r2", 7, 20, "%r2", "%i34:35", kOwn, "vm.discard.refs %r0");
// The first nest has `step` rows, and so not as many as the others.
std::string with_rows_of_step(std::string text) {
  constexpr std::string_view kTest = "%i6:7, %i0:1";
  return text.replace(text.find(kTest), kTest.size(), "%i6:7, %i4:5");
}
const std::string kFilledInPart = with_rows_of_step(kInPlace);
const std::string kFilledInPartThroughMemory = with_rows_of_step(kThroughMemory);
// The sums are read again after the results, or afterwards by the interpreter, or another register has them.
const std::string kReadAgain =
    sums_with_neighbours("%r2", 5, 20, "%r0", "%i34:35", kOwn, "", loop(22, "%i6:7", "%i12:13", R"(
  %i26 = vm.buffer.load.f32 %r2, %i6:7
  vm.buffer.store.f32 %i26, %r1, %i6:7
)"));
const std::string kCopied = sums_with_neighbours("%r2", 5, 20, "%r0", "%i34:35", kOwn, "", R"(
  %i30:31 = vm.const.i64 16
  vm.buffer.copy %r2, %i30:31, %r1, %i34:35, %i30:31
)");
const std::string kReferredTo = sums_with_neighbours("%r2", 5, 20, "%r0", "%i34:35",
                                                     std::string(kOwn) + "\n %r3 = vm.assign.ref %r2", "", R"(
  %i26 = vm.buffer.load.f32 %r3, %i12:13
  vm.buffer.store.f32 %i26, %r1, %i34:35
)");
const std::string kReadsResults = sums_with_neighbours("%r2", 7, 20, "%r1", "%i34:35", kOwn);

// Sums of small integers, two terms at a time: B as it is, and packed; an odd number of terms; B transposed.
const std::string kQuantisedRow = quantised(1, 20, 7, "i8.u", false);
const std::string kQuantised = quantised(7, 20, 4, "i8.s", false);
const std::string kQuantisedPacked = quantised(7, 4, 65, "i8.s", false);
const std::string kQuantisedTransposed = quantised(3, 4, 64, "i8.u", true);

// Rows at a distance known only when the nest begins: r1[m * (step * 4) + n] += r0[from + m + k] * r0[k + n],
// for m below i0 & 7, n below 8 and k below 5. They overlap, touch, or are apart.
const std::string kRowsApart = program("f32", "%i0:1", R"(
  %i12:13 = vm.const.i64 7
  %i0:1 = vm.and.i64 %i0:1, %i12:13
  %i12:13 = vm.const.i64 8
  %i14:15 = vm.const.i64 5
  %i18:19 = vm.const.i64 4
  %i4:5 = vm.mul.i64 %i4:5, %i18:19
)" + loop(1, "%i6:7", "%i0:1", loop(4, "%i16:17", "%i12:13", R"(
  %i22:23 = vm.fma.i64 %i6:7, %i4:5, %i16:17
)" + loop(7, "%i20:21", "%i14:15", R"(
  %i24:25 = vm.add.i64 %i6:7, %i20:21
  %i24:25 = vm.add.i64 %i24:25, %i2:3
  %i26 = vm.buffer.load.f32 %r0, %i24:25
  %i24:25 = vm.add.i64 %i16:17, %i20:21
  %i27 = vm.buffer.load.f32 %r0, %i24:25
  %i28 = vm.buffer.load.f32 %r1, %i22:23
  %i28 = vm.fma.f32 %i26, %i27, %i28
  vm.buffer.store.f32 %i28, %r1, %i22:23
)"))));

// The text with one part replaced, which is there once.
std::string with(std::string text, std::string_view part, std::string_view by) {
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  EXPECT_EQ(text.find(part, at + 1), std::string::npos) << part;
  return replaced(std::move(text), part, by);
}

// The results add elements of another buffer that lie as the sums do.
const std::string kResidual =
    with(sums_with_neighbours("%r2", 5, 20, "%r0", "%i34:35", kOwn), "%i24:25 = vm.add.i64 %i6:7, %i16:17",
         "%i24:25 = vm.add.i64 %i22:23, %i34:35");
// Results with gaps between them: r1[y * 43 + 2 * o].
const std::string kScattered =
    with(sums_with_neighbours("%r2", 5, 43, "%r0", "%i34:35", kOwn),
         "%i24:25 = vm.fma.i64 %i6:7, %i18:19, %i16:17",
         "%i24:25 = vm.fma.i64 %i6:7, %i18:19, %i16:17\n %i24:25 = vm.add.i64 %i24:25, %i16:17");
// Terms are read backwards, r0[from + y * 3 - k], and results begin at 44: they may be a part of what is
// read.
const std::string kBackwards = with(
    sums_with_neighbours("%r2", 5, 20, "%r0", "%i36:37", std::string(kOwn) + "\n %i36:37 = vm.const.i64 44"),
    "%i24:25 = vm.add.i64 %i24:25, %i20:21", "%i24:25 = vm.sub.i64 %i24:25, %i20:21");
// Rows that go backwards from `from`.
const std::string kRowsBackwards =
    with(kRowsApart, "%i22:23 = vm.fma.i64 %i6:7, %i4:5, %i16:17",
         "%i22:23 = vm.fma.i64 %i6:7, %i4:5, %i16:17\n %i22:23 = vm.add.i64 %i22:23, %i2:3");
// Two loops over rows, whose distances are 4 * step and 8: they overlap unless step is large.
const std::string kRowsApartTwice = program("f32", "%i0:1", R"(
  %i12:13 = vm.const.i64 3
  %i0:1 = vm.and.i64 %i0:1, %i12:13
  %i14:15 = vm.const.i64 8
  %i16:17 = vm.const.i64 5
  %i18:19 = vm.const.i64 4
  %i4:5 = vm.mul.i64 %i4:5, %i18:19
)" + loop(1, "%i6:7", "%i0:1", loop(4, "%i20:21", "%i12:13", loop(7, "%i22:23", "%i14:15", R"(
  %i26:27 = vm.fma.i64 %i20:21, %i14:15, %i22:23
  %i26:27 = vm.fma.i64 %i6:7, %i4:5, %i26:27
)" + loop(10, "%i24:25", "%i16:17", R"(
  %i28:29 = vm.add.i64 %i6:7, %i20:21
  %i28:29 = vm.add.i64 %i28:29, %i24:25
  %i28:29 = vm.add.i64 %i28:29, %i2:3
  %i30 = vm.buffer.load.f32 %r0, %i28:29
  %i28:29 = vm.add.i64 %i22:23, %i24:25
  %i31 = vm.buffer.load.f32 %r0, %i28:29
  %i32 = vm.buffer.load.f32 %r1, %i26:27
  %i32 = vm.fma.f32 %i30, %i31, %i32
  vm.buffer.store.f32 %i32, %r1, %i26:27
)")))));

// What looks like a coalesced loop: one that counts by twos, one that begins at 3, one of which a multiple of
// the counter is used afterwards, and one whose divisor changes.
constexpr std::string_view kStartOfCounter = "%i6:7 = vm.const.i64.zero";
const std::string kCoalescedBySteps =
    with(with(kCoalescedOnce, "%i6:7 = vm.add.i64 %i6:7, %i8:9", "%i6:7 = vm.add.i64 %i6:7, %i30:31"),
         kStartOfCounter, "%i6:7 = vm.const.i64.zero\n %i30:31 = vm.const.i64 2");
const std::string kCoalescedFromThree = with(kCoalescedOnce, kStartOfCounter, "%i6:7 = vm.const.i64 3");
const std::string kCoalescedAndUsed = with(with(kCoalescedOnce, "%i10 = vm.cmp.lt.i64.s",
                                                "%i30:31 = vm.mul.i64 %i6:7, %i4:5\n %i10 = vm.cmp.lt.i64.s"),
                                           "vm.return %i6:7", "vm.return %i30:31");
const std::string kCoalescedByCounter = program("", "%i6:7", loop(1, "%i6:7", "%i0:1", R"(
  %i14 = vm.buffer.load.i8.s %r0, %i6:7
  %i14:15 = vm.ext.i32.i64.s %i14
  %i14:15 = vm.add.i64 %i14:15, %i8:9
  %i18:19 = vm.div.i64.s %i6:7, %i14:15
  %i20:21 = vm.rem.i64.s %i6:7, %i14:15
  %i18:19 = vm.fma.i64 %i20:21, %i4:5, %i18:19
  %i26 = vm.buffer.load.i16.s %r0, %i6:7
  vm.buffer.store.i16 %i26, %r1, %i18:19
)"));

// Indices whose step is another one in each row, r0[from + i * j] for j below 9, or in each iteration,
// r0[from + 0 + 1 + ... + i]: they end beyond the buffer although a few of them are within.
const std::string kProductIndex = program(
    "", "%i6:7", "%i14:15 = vm.const.i64 9" + loop(1, "%i6:7", "%i0:1", loop(4, "%i20:21", "%i14:15", R"(
  %i22:23 = vm.fma.i64 %i6:7, %i20:21, %i2:3
  %i24 = vm.buffer.load.i32 %r0, %i22:23
  %i25 = vm.buffer.load.i32 %r1, %i6:7
  %i25 = vm.add.i32 %i24, %i25
  vm.buffer.store.i32 %i25, %r1, %i6:7
)")));
const std::string kQuadraticIndex =
    program("", "%i6:7",
            "%i30:31 = vm.const.i64.zero\n%i22:23 = vm.add.i64 %i2:3, %i30:31" + loop(1, "%i6:7", "%i0:1", R"(
  %i24 = vm.buffer.load.i32 %r0, %i22:23
  vm.buffer.store.i32 %i24, %r1, %i6:7
  %i22:23 = vm.add.i64 %i22:23, %i6:7
)"));
// A divisor that is another one in each iteration.
const std::string kCoalescedByNext = with(kCoalescedByCounter,
                                          "%i14 = vm.buffer.load.i8.s %r0, %i6:7\n  %i14:15 = "
                                          "vm.ext.i32.i64.s %i14\n  %i14:15 = vm.add.i64 %i14:15, %i8:9",
                                          "%i14:15 = vm.add.i64 %i6:7, %i8:9");

// Rows of three elements right behind each other, which become one loop: r1[i * 3 + c] = r0[from + i * 3 + c]
// * 2.
const std::string kPixelsRow = R"(
  %i22:23 = vm.add.i64 %i16:17, %i20:21
  %i24 = vm.buffer.load.i16.s %r0, %i22:23
  %i24 = vm.add.i32 %i24, %i24
  %i22:23 = vm.add.i64 %i18:19, %i20:21
  vm.buffer.store.i16 %i24, %r1, %i22:23
)";
const std::string kPixels = program("", "%i6:7", "%i14:15 = vm.const.i64 3" + loop(1, "%i6:7", "%i0:1", R"(
  %i16:17 = vm.fma.i64 %i6:7, %i14:15, %i2:3
  %i18:19 = vm.mul.i64 %i6:7, %i14:15
)" + loop(4, "%i20:21", "%i14:15", kPixelsRow)));
// Not: where the rows of one buffer are apart, a value is that of a counter, of the row, or of each row's
// start.
const std::string kPixelsApart =
    with(with(kPixels, "%i14:15 = vm.const.i64 3", "%i14:15 = vm.const.i64 3\n  %i30:31 = vm.const.i64 4"),
         "%i18:19 = vm.mul.i64 %i6:7, %i14:15", "%i18:19 = vm.mul.i64 %i6:7, %i30:31");
const std::string kPixelsAndCounter = with(kPixels, "%i24 = vm.add.i32 %i24, %i24",
                                           "%i26 = vm.trunc.i64.i32 %i20:21\n  %i24 = vm.add.i32 %i24, %i26");
const std::string kPixelsAndRow = with(kPixels, "%i24 = vm.add.i32 %i24, %i24",
                                       "%i26 = vm.trunc.i64.i32 %i6:7\n  %i24 = vm.add.i32 %i24, %i26");
const std::string kPixelsAndChannel =
    with(kPixels, "%i24 = vm.add.i32 %i24, %i24",
         "%i26 = vm.buffer.load.i16.s %r0, %i20:21\n  %i24 = vm.add.i32 %i24, %i26");

const std::string kChain = chain({});
// A row of one buffer for all, and rows with a gap between them.
const std::string kChainWithBias = chain({.second = R"(
  %i26 = vm.buffer.load.f32 %r2, %i22:23
  %i27 = vm.buffer.load.f32 %r0, %i16:17
)"});
const std::string kChainOfShortRows = with_gaps(chain({}));
const std::string kChainOfShortRowsWithBias = with_gaps(kChainWithBias);
const std::string kChainWithReleases = chain({.between = "vm.discard.refs %r0"});
// Results lie elsewhere than what is read, or go over it.
const std::string kChainAhead = chain({.last = R"(
  %i30:31 = vm.add.i64 %i22:23, %i8:9
  vm.buffer.store.f32 %i26, %r1, %i30:31
)"});
const std::string kChainInPlace = chain({.last = "vm.buffer.store.f32 %i26, %r0, %i22:23"});
const std::string kChainOfOneBuffer =
    replaced(replaced(chain({}), "%r2, %i22:23", "%r1, %i22:23"), "%r3, %i22:23", "%r1, %i22:23");
// What is in between is read again, by a loop, by the interpreter, and through another register.
const std::string kChainReadAgain = chain({.after = loop(22, "%i6:7", "%i14:15", R"(
  %i26 = vm.buffer.load.f32 %r2, %i6:7
  vm.buffer.store.f32 %i26, %r1, %i6:7
)")});
const std::string kChainCopied = chain({.after = "vm.buffer.copy %r3, %i14:15, %r1, %i14:15, %i12:13"});
const std::string kChainReferredTo = chain(
    {.before = "%r4 = vm.assign.ref %r2", .after = "vm.buffer.copy %r4, %i14:15, %r1, %i14:15, %i12:13"});
// Another element than the one that was stored in the same iteration; the same one in each row; backwards.
const std::string kChainShifted = chain({.second = R"(
  %i26 = vm.buffer.load.f32 %r2, %i22:23
  %i30:31 = vm.sub.i64 %i22:23, %i16:17
  %i27 = vm.buffer.load.f32 %r2, %i30:31
)"});
const std::string kChainOfRows = chain({.first = "vm.buffer.store.f32 %i26, %r2, %i16:17", .second = R"(
  %i26 = vm.buffer.load.f32 %r2, %i16:17
  %i27 = vm.buffer.load.f32 %r0, %i16:17
)"});
const std::string kChainBackwards = chain({.second_store = R"(
  %i30:31 = vm.sub.i64 %i14:15, %i8:9
  %i30:31 = vm.sub.i64 %i30:31, %i16:17
  %i30:31 = vm.fma.i64 %i6:7, %i14:15, %i30:31
  vm.buffer.store.f32 %i26, %r3, %i30:31
)"});
// Of another type, with a conversion in memory, and of fewer rows.
const std::string kChainOfTypes =
    chain({.second = "%i27 = vm.buffer.load.i32 %r2, %i22:23\n %i26 = vm.cast.si32.f32 %i27"});
const std::string kChainOfBytes =
    chain({.first = "%i30 = vm.cast.f32.si32 %i26\n vm.buffer.store.i8 %i30, %r2, %i22:23",
           .second = "%i27 = vm.buffer.load.i8.s %r2, %i22:23\n %i26 = vm.cast.si32.f32 %i27\n"
                     "%i27 = vm.buffer.load.f32 %r0, %i22:23"});
const std::string kChainOfFewerRows = chain({.second_rows = "%i8:9"});
// A store that only the second nest repeats, to what the first has stored.
const std::string kChainStoresTwice = chain(
    {.second_store = "vm.buffer.store.f32 %i26, %r3, %i22:23\n vm.buffer.store.f32 %i29, %r2, %i22:23"});

constexpr size_t kBytes = 4096;

// Where the two buffers lie in one block of memory.
struct Buffers {
  size_t first, first_size, second, second_size;
  bool writable = true;
  bool is_null = false;
};
constexpr Buffers kBuffers[] = {
    {0, 256, 256, 256},    {0, 256, 0, 256},     {0, 256, 4, 256},          {4, 256, 0, 256},
    {0, 255, 256, 101},    {128, 3, 256, 256},   {0, 256, 256, 256, false}, {0, 256, 256, 256, true, true},
    {0, 2048, 2048, 2048}, {0, 2048, 1024, 2048}};

struct Loops : TestProgram {
  Loops(const std::string& text, const Compiler* compiler) : TestProgram(text, {.compiler = compiler}) {
    EXPECT_EQ(is_compiled(), compiler != nullptr);
  }

  // The result or failure, and all of the memory afterwards.
  std::string outcome(const Buffers& buffers, int64_t n, int64_t from, int64_t step) {
    std::array<uint8_t, kBytes> memory;
    // Floats near 1, of 32 and of 64 bits, so that the order of a sum shows.
    for (size_t i = 0; i < memory.size(); ++i)
      memory[i] = static_cast<uint8_t>(i % 4 == 3 ? 0x3F : i * 37 % 61 * 4);
    const auto wrap = [&](size_t at, size_t size, bool writable) {
      return Variant::ref(Buffer::wrap({memory.data() + at, size}, writable, {}));
    };
    const std::array<Variant, 5> arguments = {
        buffers.is_null ? Variant() : wrap(buffers.first, buffers.first_size, true),
        wrap(buffers.second, buffers.second_size, buffers.writable), Variant::i64(n), Variant::i64(from),
        Variant::i64(step)};
    const Result<Variant> result = call(arguments);
    std::string text = result ? std::to_string(result->as_i64()) : result.error().text();
    text.append(reinterpret_cast<const char*>(memory.data()), memory.size());
    return text;
  }
};

class CompiledLoops : public testing::TestWithParam<std::string> {};

TEST_P(CompiledLoops, GiveTheSame) {
  const auto compiler = ASSERT_VALUE(Compiler::find());
  Loops interpreted(GetParam(), nullptr);
  Loops compiled(GetParam(), compiler);
  constexpr int64_t kMinimum = INT64_MIN;
  size_t failed = 0;
  size_t cases = 0;
  for (const Buffers& buffers : kBuffers)
    for (const int64_t n : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{5}, int64_t{7}, int64_t{31},
                            int64_t{63}, int64_t{64}, int64_t{65}, int64_t{200}})
      for (const int64_t from : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{-1}, int64_t{-4}, int64_t{60},
                                 int64_t{64}, int64_t{1} << 61, int64_t{1} << 62, kMinimum})
        for (const int64_t step : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{-1},
                                   int64_t{1} << 60, int64_t{1} << 62, INT64_MAX, kMinimum}) {
          const std::string expected = interpreted.outcome(buffers, n, from, step);
          failed += expected[0] > '9';
          ++cases;
          ASSERT_EQ(compiled.outcome(buffers, n, from, step), expected)
              << n << ' ' << from << ' ' << step << " in buffers of " << buffers.first_size << " bytes at "
              << buffers.first << " and " << buffers.second_size << " at " << buffers.second;
        }
  // Both ways through are there.
  EXPECT_GT(failed, 100u);
  EXPECT_GT(cases - failed, 100u);
}

INSTANTIATE_TEST_SUITE_P(
    , CompiledLoops,
    testing::Values(kStrided, kContraction, kTriangle, kOutputs, kPooling, kColumns, kDependent, kRows,
                    kTransposed, kCoalesced, kCoalescedOnce, kCoalescedAround, kCoalescedApart, kBlocks,
                    kBlocksOfRows, kPacked, kPackedTransposed, kPackedOfRows, kInPlace, kThroughMemory,
                    kOverlapping, kBlocksThroughMemory, kFilledInPart, kFilledInPartThroughMemory, kReleased,
                    kReadAgain, kCopied, kReferredTo, kQuantisedRow, kQuantised, kQuantisedPacked,
                    kQuantisedTransposed, kReadsResults, kRowsApart, kResidual, kScattered, kBackwards,
                    kRowsBackwards, kRowsApartTwice, kCoalescedBySteps, kCoalescedFromThree,
                    kCoalescedAndUsed, kCoalescedByCounter, kCoalescedByNext, kProductIndex, kQuadraticIndex,
                    kPixels, kPixelsApart, kPixelsAndCounter, kPixelsAndRow, kPixelsAndChannel, kChain,
                    kChainWithBias, kChainOfShortRows, kChainOfShortRowsWithBias, kChainWithReleases,
                    kChainAhead, kChainInPlace, kChainOfOneBuffer, kChainReadAgain, kChainCopied,
                    kChainReferredTo, kChainShifted, kChainOfRows, kChainBackwards, kChainOfTypes,
                    kChainOfBytes, kChainOfFewerRows, kChainStoresTwice));

const std::string kEndless = program("", "%i6:7", R"(
  %i6:7 = vm.const.i64.zero
  vm.br ^bb1
^bb1:
  %i6:7 = vm.add.i64 %i6:7, %i4:5
  %i10 = vm.buffer.load.i32 %r0, %i2:3
  vm.buffer.store.i32 %i10, %r1, %i2:3
  %i11 = vm.cmp.lt.i64.u %i6:7, %i0:1
  vm.cond_br %i11, ^bb1, ^bb2
^bb2:
)");

TEST(CompiledLoop, IsStopped) {
  const auto compiler = ASSERT_VALUE(Compiler::find());
  Loops compiled(kEndless, compiler);
  std::array<uint8_t, 64> memory = {};
  const Variant buffer = Variant::ref(Buffer::wrap(memory, true, {}));
  // As long as 64 bits count to, and without any progress.
  for (const int64_t step : {int64_t{1}, int64_t{0}}) {
    const std::array<Variant, 5> arguments = {buffer, buffer, Variant::i64(-1), Variant::i64(0),
                                              Variant::i64(step)};
    expect_cancelled(compiled, arguments);
  }
  std::atomic<uint32_t> stop = static_cast<uint32_t>(Code::ABORTED);
  Invocation kernel(compiled.context);
  kernel.set_stop(reinterpret_cast<const uint32_t*>(&stop));
  const std::array<Variant, 5> arguments = {buffer, buffer, Variant::i64(-1), Variant::i64(0),
                                            Variant::i64(1)};
  std::array<Variant, 1> results;
  EXPECT_FAILS(ABORTED, "", kernel.call(compiled.function, arguments, results));
}

// Sums in one place: the indices of 2^40 iterations are the same, and their order counts.
const std::string kOnePlace = R"(
  %i11 = vm.buffer.load.f32 %r0, %i2:3
  %i12 = vm.buffer.load.f32 %r1, %i2:3
  %i12 = vm.add.f32 %i12, %i11
  vm.buffer.store.f32 %i12, %r1, %i2:3
)";

TEST(CompiledLoop, WithoutAnotherIndexIsStopped) {
  const auto compiler = ASSERT_VALUE(Compiler::find());
  std::array<uint8_t, 64> from = {}, to = {};
  const auto stops = [&](const std::string& text, int64_t n) {
    Loops compiled(text, compiler);
    const std::array<Variant, 5> arguments = {Variant::ref(Buffer::wrap(from, true, {})),
                                              Variant::ref(Buffer::wrap(to, true, {})), Variant::i64(n),
                                              Variant::i64(3), Variant::i64(0)};
    expect_cancelled(compiled, arguments);
  };
  stops(program("f32", "%i6:7", loop(1, "%i6:7", "%i0:1", kOnePlace)), int64_t{1} << 40);
  // Neither loop alone takes long.
  stops(program("f32", "%i6:7", loop(1, "%i6:7", "%i0:1", loop(4, "%i20:21", "%i0:1", kOnePlace))),
        int64_t{1} << 20);
}

// Few iterations, each of which takes a microsecond: all of them take seconds.
TEST(CompiledLoop, WithALongBodyIsStopped) {
  const auto compiler = ASSERT_VALUE(Compiler::find());
  std::string body = "  %i11 = vm.buffer.load.f32 %r0, %i2:3\n  %i12 = vm.buffer.load.f32 %r1, %i2:3\n";
  for (int i = 0; i < 300; ++i) body += "  %i12 = vm.div.f32 %i12, %i11\n";
  body += "  vm.buffer.store.f32 %i12, %r1, %i2:3\n";
  std::array<uint8_t, 64> from = {}, to = {};
  for (const auto& [text, n] :
       {std::pair(loop(1, "%i6:7", "%i0:1", body), int64_t{4'000'000}),
        std::pair(loop(1, "%i6:7", "%i0:1", loop(4, "%i20:21", "%i0:1", body)), int64_t{5'000})}) {
    Loops compiled(program("f32", "%i6:7", text), compiler);
    const std::array<Variant, 5> arguments = {Variant::ref(Buffer::wrap(from, true, {})),
                                              Variant::ref(Buffer::wrap(to, true, {})), Variant::i64(n),
                                              Variant::i64(3), Variant::i64(0)};
    expect_cancelled(compiled, arguments);
  }
}

// Between the rows of a coalesced loop with a loop inside: 2^21 iterations of 2^13 each take many seconds.
TEST(CompiledLoop, WithALoopInsideIsStoppedBetweenRows) {
  const auto compiler = ASSERT_VALUE(Compiler::find());
  Loops compiled(coalesced_around(8192), compiler);
  std::vector<uint8_t> from(size_t{4} << 20), to(size_t{4} << 21);
  const std::array<Variant, 5> arguments = {
      Variant::ref(Buffer::wrap(from, true, {})), Variant::ref(Buffer::wrap(to, true, {})),
      Variant::i64(int64_t{1} << 21), Variant::i64(64), Variant::i64(8192)};
  expect_cancelled(compiled, arguments);
}

// Between groups of rows, after all terms of the group: 2^20 rows of 2^19 terms take minutes.
TEST(CompiledLoop, WithBlocksOfTermsIsStoppedBetweenGroups) {
  const Result<const Compiler*> compiler = Compiler::find();
  ASSERT_TRUE(compiler) << compiler.error().text();
  Loops compiled(sum_in_blocks((1 << 20) - 1, 4, 8, 32, 4096), *compiler);
  std::vector<uint8_t> from(size_t{4} << 22), to(size_t{4} << 25);
  const std::array<Variant, 5> arguments = {Variant::ref(Buffer::wrap(from, true, {})),
                                            Variant::ref(Buffer::wrap(to, true, {})),
                                            Variant::i64((1 << 20) - 1), Variant::i64(0), Variant::i64(0)};
  expect_cancelled(compiled, arguments);
}

// Between groups of rows of nests that are written together: 2^17 rows of 20 outputs of 2^14 terms take many
// seconds. Their results may be a part of what they read: then they must be few.
TEST(CompiledLoop, WithNeighboursIsStoppedBetweenGroups) {
  const Result<const Compiler*> compiler = Compiler::find();
  ASSERT_TRUE(compiler) << compiler.error().text();
  constexpr std::string_view kLarge = "%i24:25 = vm.const.i64 16777216\n %r2 = vm.buffer.alloc %i24:25, %i8";
  constexpr int64_t kManyRows = (1 << 17) - 1;
  for (const std::string_view other : {"%r0", "%r1"}) {
    SCOPED_TRACE(other);
    Loops compiled(sums_with_neighbours("%r2", 1 << 14, 20, other, "%i34:35", kLarge, "", "", kManyRows),
                   *compiler);
    std::vector<uint8_t> from(size_t{4} << 20), to(size_t{4} << 22);
    const std::array<Variant, 5> arguments = {Variant::ref(Buffer::wrap(from, true, {})),
                                              Variant::ref(Buffer::wrap(to, true, {})),
                                              Variant::i64(kManyRows), Variant::i64(0), Variant::i64(0)};
    expect_cancelled(compiled, arguments);
  }
}

}  // namespace
}  // namespace halyard::vm::test
