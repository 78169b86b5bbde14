// Texts of programs with loops, of a function of two buffers and three numbers.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace halyard::vm::test {

// A function of two buffers and three numbers with this body, which may use floats of the type `floats`. i8:9
// is 1.
inline std::string program(std::string_view floats, std::string_view result, std::string_view body) {
  return fmt::format(R"(
vm.module @m
vm.type !vm.buffer
{}
vm.export @f
vm.func @f(%r0: !vm.ref<?>, %r1: !vm.ref<?>, %i0:1: i64, %i2:3: i64, %i4:5: i64) -> (i64) {{
  {}
  %i8:9 = vm.const.i64 1
  {}
  vm.return {}
}}
)",
                     floats.empty() ? "" : fmt::format("vm.type {}", floats),
                     floats.empty() ? "" : fmt::format(".requires ext_{}", floats), body, result);
}

// A loop from 0 below `limit`, in blocks from ^bb`block` on; the next free block is 3 later.
inline std::string loop(int block, std::string_view counter, std::string_view limit, std::string_view body,
                        std::string_view step = "%i8:9") {
  return fmt::format(R"(
  {1} = vm.const.i64.zero
  vm.br ^bb{4}
^bb{4}:
  %i10 = vm.cmp.lt.i64.s {1}, {2}
  vm.cond_br %i10, ^bb{5}, ^bb{6}
^bb{5}:
  {0}
  {1} = vm.add.i64 {1}, {3}
  vm.br ^bb{4}
^bb{6}:
)",
                     body, counter, limit, step, block, block + 1, block + 2);
}

// Elements of rows that begin `row_step` after each other, without sums:
//
//   r1[y * row_step + x] = exp(r0[y * 3 + x]) + r0[x]
inline std::string elements_of_rows(int64_t rows, int64_t elements, int64_t row_step) {
  return program("f32", "%i8:9",
                 fmt::format(R"(
  %i14:15 = vm.const.i64 {}
  %i16:17 = vm.const.i64 {}
  %i18:19 = vm.const.i64 {}
  %i20:21 = vm.const.i64 3
)",
                             rows, elements, row_step) +
                     loop(1, "%i6:7", "%i14:15", loop(4, "%i22:23", "%i16:17", R"(
  %i24:25 = vm.fma.i64 %i6:7, %i20:21, %i22:23
  %i26 = vm.buffer.load.f32 %r0, %i24:25
  %i27 = vm.buffer.load.f32 %r0, %i22:23
  %i26 = vm.exp.f32 %i26
  %i26 = vm.add.f32 %i26, %i27
  %i24:25 = vm.fma.i64 %i6:7, %i18:19, %i22:23
  vm.buffer.store.f32 %i26, %r1, %i24:25
)")));
}

// A sum of many terms for each of some outputs in some rows: with counts that are constants, so that terms
// are added in blocks. The bits of n that are in `rows` count the rows of the outer loop.
//
//   r1[(y * R + x) * outputs + o] += r0[from + y * 2 + x * 3 + k * 5 + t] * r0[k * 7 + t + o * apart]
inline std::string sum_in_blocks(int64_t rows, int64_t inner_rows, int64_t outputs, int64_t outer_terms,
                                 int64_t terms, int64_t apart = 1) {
  return program("f32", "%i8:9",
                 fmt::format(R"(
  %i14:15 = vm.const.i64 {}
  %i0:1 = vm.and.i64 %i0:1, %i14:15
  %i14:15 = vm.const.i64 {}
  %i16:17 = vm.const.i64 {}
  %i18:19 = vm.const.i64 {}
  %i20:21 = vm.const.i64 {}
  %i30:31 = vm.const.i64 2
  %i32:33 = vm.const.i64 3
  %i34:35 = vm.const.i64 5
  %i36:37 = vm.const.i64 7
  %i44:45 = vm.const.i64 {}
)",
                             rows, inner_rows, outputs, outer_terms, terms, apart) +
                     loop(1, "%i6:7", "%i0:1",
                          loop(4, "%i22:23", "%i14:15",
                               loop(7, "%i24:25", "%i16:17",
                                    loop(10, "%i26:27", "%i18:19", loop(13, "%i28:29", "%i20:21", R"(
  %i38:39 = vm.fma.i64 %i6:7, %i30:31, %i2:3
  %i38:39 = vm.fma.i64 %i22:23, %i32:33, %i38:39
  %i38:39 = vm.fma.i64 %i26:27, %i34:35, %i38:39
  %i38:39 = vm.add.i64 %i38:39, %i28:29
  %i40 = vm.buffer.load.f32 %r0, %i38:39
  %i38:39 = vm.fma.i64 %i26:27, %i36:37, %i28:29
  %i38:39 = vm.fma.i64 %i24:25, %i44:45, %i38:39
  %i41 = vm.buffer.load.f32 %r0, %i38:39
  %i38:39 = vm.fma.i64 %i6:7, %i14:15, %i22:23
  %i38:39 = vm.fma.i64 %i38:39, %i16:17, %i24:25
  %i42 = vm.buffer.load.f32 %r1, %i38:39
  %i42 = vm.fma.f32 %i40, %i41, %i42
  vm.buffer.store.f32 %i42, %r1, %i38:39
)"))))));
}

// Sums of products of 8-bit elements with offsets, `second` of which are loaded as `i8.s` or `i8.u`; the
// offset of the first is the argument `step` times 10923, which is too large for 16 bits if `step` is 2 or 3.
//
//   r1[m * outputs + o] += (r0[from + m * 3 + k] - offset) * (r0[m_k_o] + 9), for m below n & rows, o below
//   outputs and k below terms; m_k_o is k * outputs + o, or o * terms + k if B is transposed
inline std::string quantised(int64_t rows, int64_t outputs, int64_t terms, std::string_view second,
                             bool is_transposed) {
  return program(
      "", "%i8:9",
      fmt::format(R"(
  %i12:13 = vm.const.i64 {}
  %i0:1 = vm.and.i64 %i0:1, %i12:13
  %i12:13 = vm.const.i64 {}
  %i14:15 = vm.const.i64 {}
  %i32:33 = vm.const.i64 3
  %i35 = vm.trunc.i64.i32 %i4:5
  %i36 = vm.const.i32 10923
  %i35 = vm.mul.i32 %i35, %i36
  %i36 = vm.const.i32 9
)",
                  rows, outputs, terms) +
          loop(
              1, "%i6:7", "%i0:1",
              loop(4, "%i16:17", "%i12:13",
                   loop(7, "%i20:21", "%i14:15",
                        fmt::format(R"(
  %i24:25 = vm.fma.i64 %i6:7, %i32:33, %i2:3
  %i24:25 = vm.add.i64 %i24:25, %i20:21
  %i26 = vm.buffer.load.i8.s %r0, %i24:25
  %i26 = vm.sub.i32 %i26, %i35
  %i24:25 = vm.fma.i64 {}
  %i27 = vm.buffer.load.{} %r0, %i24:25
  %i27 = vm.add.i32 %i27, %i36
  %i24:25 = vm.fma.i64 %i6:7, %i12:13, %i16:17
  %i28 = vm.buffer.load.i32 %r1, %i24:25
  %i28 = vm.fma.i32 %i26, %i27, %i28
  vm.buffer.store.i32 %i28, %r1, %i24:25
)",
                                    is_transposed ? "%i16:17, %i14:15, %i20:21" : "%i20:21, %i12:13, %i16:17",
                                    second)))));
}

// Three nests: sums begin with 0.5, terms are added, and a result follows from each sum. `before` is in front
// of them, `between` before the last one, `after` behind them (blocks from ^bb22 on are free), and sums are
// in the register `sums`. The bits of n that are in `most_rows` count the rows.
//
//   S[y * 20 + o] = 0.5; S[y * 20 + o] += r0[from + y * 3 + k] * r0[k + o], for y below n and o below 20
//   r1[y * `apart` + o + `shift`] = max(S[y * 20 + o] + `other`[y + o], 0.5)
inline std::string sums_with_neighbours(std::string_view sums, int64_t terms, int64_t apart,
                                        std::string_view other, std::string_view shift,
                                        std::string_view before = "", std::string_view between = "",
                                        std::string_view after = "", int64_t most_rows = 7) {
  const auto rows = [](int block, const std::string& body) {
    return loop(block, "%i6:7", "%i0:1", loop(block + 3, "%i16:17", "%i12:13", R"(
  %i22:23 = vm.fma.i64 %i6:7, %i12:13, %i16:17
)" + body));
  };
  return program("f32", "%i0:1",
                 fmt::format(R"(
  %i12:13 = vm.const.i64 {}
  %i0:1 = vm.and.i64 %i0:1, %i12:13
  %i12:13 = vm.const.i64 20
  %i14:15 = vm.const.i64 {}
  %i18:19 = vm.const.i64 {}
  %i32:33 = vm.const.i64 3
  %i34:35 = vm.const.i64.zero
  %i29 = vm.const.f32 0.5
  {}
)",
                             most_rows, terms, apart, before) +
                     rows(1, fmt::format("vm.buffer.store.f32 %i29, {}, %i22:23", sums)) +
                     rows(7, loop(13, "%i20:21", "%i14:15",
                                  fmt::format(R"(
  %i24:25 = vm.fma.i64 %i6:7, %i32:33, %i2:3
  %i24:25 = vm.add.i64 %i24:25, %i20:21
  %i26 = vm.buffer.load.f32 %r0, %i24:25
  %i24:25 = vm.add.i64 %i16:17, %i20:21
  %i27 = vm.buffer.load.f32 %r0, %i24:25
  %i28 = vm.buffer.load.f32 {0}, %i22:23
  %i28 = vm.fma.f32 %i26, %i27, %i28
  vm.buffer.store.f32 %i28, {0}, %i22:23
)",
                                              sums))) +
                     std::string(between) +
                     rows(16, fmt::format(R"(
  %i26 = vm.buffer.load.f32 {}, %i22:23
  %i24:25 = vm.add.i64 %i6:7, %i16:17
  %i27 = vm.buffer.load.f32 {}, %i24:25
  %i26 = vm.add.f32 %i26, %i27
  %i26 = vm.max.f32 %i26, %i29
  %i24:25 = vm.fma.i64 %i6:7, %i18:19, %i16:17
  %i24:25 = vm.add.i64 %i24:25, {}
  vm.buffer.store.f32 %i26, %r1, %i24:25
)",
                                          sums, other, shift)) +
                     std::string(after));
}

// Nests of 4 by 8 elements, each of which reads what one before it has stored:
//
//   r2[i] = r0[from + i] * 0.5; r3[i] = max(r2[i], r0[i]); r1[i] = r3[i] + r2[i]
//
// `second` are the loads of the second nest, `last` is the last store; `between` is before the last nest, and
// `after` behind it (blocks from ^bb22 on are free).
struct ChainText {
  std::string before = "";
  std::string first = "vm.buffer.store.f32 %i26, %r2, %i22:23";
  std::string second = "%i26 = vm.buffer.load.f32 %r2, %i22:23\n %i27 = vm.buffer.load.f32 %r0, %i22:23";
  std::string second_store = "vm.buffer.store.f32 %i26, %r3, %i22:23";
  std::string between = "";
  std::string last = "vm.buffer.store.f32 %i26, %r1, %i22:23";
  std::string after = "";
  std::string second_rows = "%i12:13";
};
inline std::string chain(const ChainText& text) {
  const auto nest = [](int block, const std::string& rows, const std::string& body) {
    return loop(
        block, "%i6:7", rows,
        loop(block + 3, "%i16:17", "%i14:15", "%i22:23 = vm.fma.i64 %i6:7, %i14:15, %i16:17\n" + body));
  };
  return program("f32", "%i14:15",
                 R"(
  %i12:13 = vm.const.i64 4
  %i14:15 = vm.const.i64 8
  %i24:25 = vm.const.i64 128
  %i34:35 = vm.const.i64.zero
  %i22:23 = vm.const.i64.zero
  %i29 = vm.const.f32 0.5
  %r2 = vm.buffer.alloc %i24:25, %i8
  %r3 = vm.buffer.alloc %i24:25, %i8
)" + text.before + nest(1, "%i12:13", R"(
  %i24:25 = vm.add.i64 %i22:23, %i2:3
  %i26 = vm.buffer.load.f32 %r0, %i24:25
  %i26 = vm.mul.f32 %i26, %i29
)" + text.first) + nest(7, text.second_rows, text.second + R"(
  %i26 = vm.max.f32 %i26, %i27
)" + text.second_store) +
                     text.between + nest(13, "%i12:13", R"(
  %i26 = vm.buffer.load.f32 %r3, %i22:23
  %i27 = vm.buffer.load.f32 %r2, %i22:23
  %i26 = vm.add.f32 %i26, %i27
)" + text.last) + text.after);
}

// The same with rows that are 9 elements apart.
inline std::string with_gaps(std::string chain) {
  constexpr std::string_view kIndex = "vm.fma.i64 %i6:7, %i14:15, %i16:17", kSize = "vm.const.i64 128";
  for (size_t at = 0; (at = chain.find(kIndex, at)) != std::string::npos;)
    chain.replace(at, kIndex.size(), "vm.fma.i64 %i6:7, %i36:37, %i16:17");
  return chain.replace(chain.find(kSize), kSize.size(), "vm.const.i64 160\n  %i36:37 = vm.const.i64 9");
}

}  // namespace halyard::vm::test
