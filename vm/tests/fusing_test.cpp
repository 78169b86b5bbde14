// Compares fused instructions with the same programs without fusing (LoadOptions::fuse).
#include <array>
#include <string_view>

#include "fixtures.h"
#include "machine_testing.h"

namespace halyard::vm::test {
namespace {

// The results or the failure of a call, as text.
std::string outcome(const std::string& text, bool fuse, const std::string& function,
                    const Values& arguments) {
  Machine machine;
  machine.fuse = fuse;
  machine.add(text);
  const Result<Values> results = machine.call(function, arguments);
  if (!results) return results.error().text();
  std::string outcome;
  for (const Variant& result : *results) outcome += to_text(result) + " ";
  return outcome;
}

TEST(Fusing, BenchmarkProgramsGiveTheSame) {
  const std::string text = file_text(fixtures() / "../bench/core.vmasm");
  if (text.empty()) GTEST_SKIP() << "the benchmark programs are not here";
  const std::pair<const char*, std::vector<int>> programs[] = {
      {"loop_sum", {1, 1000, 70000}}, {"fib", {0, 1, 15}},      {"sieve", {3, 10, 1000, 4099}},
      {"matmul_f32", {1, 7, 24}},     {"orbit_f64", {1, 1000}}, {"list_sum", {1, 1000}}};
  for (const auto& [function, sizes] : programs) {
    for (const int size : sizes)
      EXPECT_EQ(outcome(text, true, function, {i32(size)}), outcome(text, false, function, {i32(size)}))
          << function << ' ' << size;
  }
}

struct Case {
  const char* name;
  const char* body;  // of a function from i32 to i32
  std::vector<int> inputs;
};

// Cases in which omitted or fused instructions could be observed from outside.
const Case kCases[] = {
    {"HalvesOfPairsInSwitches",  // an edge moves into the high half of a pair that only a list names
     R"(
  %i2:3 = vm.const.i64 0x110586779D273C2F
  %i4:5 = vm.const.i64.zero
  vm.cond_br %i0, ^bb1(%i2 -> %i3), ^bb1()
^bb1:
  %i1 = vm.const.i32.zero
  %i6:7 = vm.switch.i64 %i1[%i2:3] else %i4:5
  %i1 = vm.const.i32 32
  %i6:7 = vm.shr.i64.u %i6:7, %i1
  %i0 = vm.trunc.i64.i32 %i6:7
  vm.return %i0
)",
     {0, 1}},
    {"IndicesThatAreKept",
     R"(
  %i2:3 = vm.const.i64 32
  %i1 = vm.const.i32 16
  %r0 = vm.buffer.alloc %i2:3, %i1
  %i4:5 = vm.ext.i32.i64.s %i0
  %i6:7 = vm.ext.i32.i64.s %i0
  %i8:9 = vm.add.i64 %i4:5, %i6:7
  vm.buffer.store.i32 %i0, %r0, %i8:9
  %i10 = vm.buffer.load.i32 %r0, %i8:9
  %i8:9 = vm.add.i64 %i8:9, %i4:5
  vm.buffer.store.i32 %i8, %r0, %i8:9
  %i11 = vm.buffer.load.i32 %r0, %i8:9
  %i4:5 = vm.add.i64 %i4:5, %i6:7
  %i4 = vm.buffer.load.i32 %r0, %i4:5
  %i12 = vm.add.i32 %i10, %i11
  %i12 = vm.add.i32 %i12, %i4
  %i12 = vm.add.i32 %i12, %i5
  vm.return %i12
)",
     {0, 1, 2, 3, -1}},
};

TEST(Fusing, CasesGiveTheSame) {
  for (const Case& each : kCases) {
    const std::string text =
        std::string("vm.module @m\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) {") + each.body + "}\n";
    for (const int input : each.inputs)
      EXPECT_EQ(outcome(text, true, "f", {i32(input)}), outcome(text, false, "f", {i32(input)}))
          << each.name << ' ' << input;
  }
}

// Chains of three operations over all combinations of four registers.
TEST(Fusing, ArithmeticGivesTheSame) {
  struct Type {
    const char* name;
    std::string load;   // loads constants into A, B, C and D, which stand for registers
    std::string store;  // adds R, or its bits, to %i0
    std::array<const char*, 5> registers;
  };
  const Type types[] = {
      {"i32",
       "  A = vm.const.i32 70001\n  B = vm.const.i32 -300007\n  C = vm.const.i32 0x7FFFFFF1\n  D = "
       "vm.const.i32 500009\n",
       "  %i0 = vm.add.i32 %i0, R\n",
       {"%i2", "%i3", "%i4", "%i5", "%i6"}},
      {"i64",
       "  A = vm.const.i64 70001\n  B = vm.const.i64 -300007\n  C = vm.const.i64 0x7FFFFFFFFFFFFFF1\n  D = "
       "vm.const.i64 500009\n",
       "  %i1 = vm.trunc.i64.i32 R\n  %i0 = vm.add.i32 %i0, %i1\n",
       {"%i2:3", "%i4:5", "%i6:7", "%i8:9", "%i10:11"}},
      // One rounding instead of several gives a different result.
      {"f32",
       "  A = vm.const.f32 1.0000001\n  B = vm.const.f32 1.0000002\n  C = vm.const.f32 -1.0000004\n"
       "  D = vm.const.f32 3.1\n",
       "  %i1 = vm.bitcast.f32.i32 R\n  %i0 = vm.add.i32 %i0, %i1\n",
       {"%i2", "%i3", "%i4", "%i5", "%i6"}},
      {"f64",
       "  A = vm.const.f64 1.0000000000000002\n  B = vm.const.f64 1.0000000000000004\n"
       "  C = vm.const.f64 -1.0000000000000009\n  D = vm.const.f64 3.1\n",
       "  %i12:13 = vm.bitcast.f64.i64 R\n  %i1 = vm.trunc.i64.i32 %i12:13\n  %i0 = vm.add.i32 %i0, %i1\n",
       {"%i2:3", "%i4:5", "%i6:7", "%i8:9", "%i10:11"}},
  };
  const char* const ops[] = {"add", "sub", "mul"};
  for (const Type& type : types) {
    for (int shape = 0; shape < 27 * 8; ++shape) {
      const auto arithmetic = [&](const char* op, std::string left, std::string right, bool swap) {
        if (swap) std::swap(left, right);
        return fmt::format("  R = vm.{}.{} {}, {}\n", op, type.name, left, right);
      };
      const int first = shape % 3, second = shape / 3 % 3, third = shape / 9 % 3, swaps = shape / 27;
      const std::string body = type.load + arithmetic(ops[first], "A", "B", swaps & 1) +
                               arithmetic(ops[second], "R", "C", swaps & 2) +
                               arithmetic(ops[third], "R", "D", swaps & 4) + type.store;
      std::string text = "vm.module @m\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) {\n";
      for (const char c : body) {
        const size_t name = std::string_view("ABCDR").find(c);
        text += name == std::string_view::npos ? std::string(1, c) : type.registers[name];
      }
      text += "  vm.return %i0\n}\n";
      EXPECT_EQ(outcome(text, true, "f", {i32(11)}), outcome(text, false, "f", {i32(11)})) << text;
    }
  }
}

// The last instruction of a loop's body, before each kind of loop instruction that is fused with it. Stores
// and list accesses also go beyond their ends.
TEST(Fusing, EndsOfLoopsGiveTheSame) {
  const char* const ends[] = {
      "%i1 = vm.add.i32 %i1, %i4",
      "%i6:7 = vm.add.i64 %i6:7, %i8:9",
      "%i16 = vm.add.f32 %i16, %i17",
      "%i18:19 = vm.add.f64 %i18:19, %i20:21",
      "%i22 = vm.mul.f32 %i16, %i17\n  %i16 = vm.add.f32 %i22, %i16",
      "%i24:25 = vm.mul.f64 %i18:19, %i20:21\n  %i18:19 = vm.add.f64 %i24:25, %i18:19",
      "vm.buffer.store.i8 %i4, %r0, %i8:9",
      "vm.buffer.store.i32 %i4, %r0, %i8:9",
      "vm.buffer.store.f32 %i17, %r0, %i8:9",
      "vm.buffer.store.i64 %i8:9, %r0, %i8:9",
      "vm.buffer.store.f64 %i18:19, %r0, %i8:9",
      "vm.list.set.i32 %r1, %i4, %i4",
  };
  const char* const loops[] = {
      "%i4 = vm.add.i32 %i4, %i5\n  %i10 = vm.cmp.lt.i32.s %i4, %i2",  // a constant
      "%i4 = vm.add.i32 %i4, %i3\n  %i10 = vm.cmp.lt.i32.s %i4, %i2",  // a register
      "%i8:9 = vm.add.i64 %i8:9, %i12:13\n  %i10 = vm.cmp.lt.i64.s %i8:9, %i14:15",
      "%i8:9 = vm.add.i64 %i8:9, %i26:27\n  %i10 = vm.cmp.lt.i64.s %i8:9, %i14:15",
  };
  for (const char* end : ends) {
    for (const char* loop : loops) {
      const std::string text = fmt::format(R"(
vm.module @m
vm.type i32
vm.type !vm.list<i32>
vm.export @f
vm.func @f(%i0: i32, %i1: i32) -> (i32, i32, i64, f32, f64, i64, i32) {{
  %i2 = vm.or.i32 %i0, %i0
  %i3 = vm.or.i32 %i1, %i1
  %i0 = vm.const.i32 64
  %i28:29 = vm.const.i64 64
  %i30:31 = vm.const.i64.zero
  %i1 = vm.const.i32 100000
  %i4 = vm.const.i32.zero
  %i5 = vm.const.i32 1
  %i6:7 = vm.const.i64 0x1234567812345678
  %i8:9 = vm.const.i64.zero
  %i12:13 = vm.const.i64 1
  %i14:15 = vm.ext.i32.i64.s %i2
  %i26:27 = vm.ext.i32.i64.s %i3
  %i16 = vm.const.f32 1.5
  %i17 = vm.const.f32 0.3
  %i18:19 = vm.const.f64 1.5
  %i20:21 = vm.const.f64 0.3
  %r0 = vm.buffer.alloc %i28:29, %i0
  %i11 = vm.const.i32 16
  %r1 = vm.list.alloc %i11 : !vm.list<i32>
  vm.list.resize %r1, %i11
  vm.br ^bb1()
^bb1:
  {}
  {}
  vm.cond_br %i10, ^bb1(), ^bb2()
^bb2:
  %i24:25 = vm.buffer.load.i64 %r0, %i12:13
  %i11 = vm.list.get.i32 %r1, %i5
  vm.return %i1, %i4, %i6:7, %i16, %i18:19, %i24:25, %i11
}}
)",
                                           end, loop);
      for (const int size : {1, 7, 8, 16, 40})
        for (const int step : {1, 3})
          EXPECT_EQ(outcome(text, true, "f", {i32(size), i32(step)}),
                    outcome(text, false, "f", {i32(size), i32(step)}))
              << text << size << ' ' << step;
    }
  }
}

// Nested loops, and calls of functions with loops: each continues in the right place.
TEST(Fusing, LoopsGiveTheSame) {
  const char* const text = R"(
vm.module @m
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  %i2 = vm.const.i32.zero
  %i3 = vm.const.i32 1
  vm.br ^bb1()
^bb1:
  %i4 = vm.const.i32.zero
  vm.br ^bb2()
^bb2:
  %i5 = vm.call @turns(%i4)
  %i1 = vm.add.i32 %i1, %i5
  %i4 = vm.add.i32 %i4, %i3
  %i6 = vm.cmp.lt.i32.s %i4, %i0
  vm.cond_br %i6, ^bb2(), ^bb3()
^bb3:
  %i1 = vm.mul.i32 %i1, %i0
  %i2 = vm.add.i32 %i2, %i3
  %i6 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i6, ^bb1(), ^bb4()
^bb4:
  vm.return %i1
}
vm.func @turns(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  %i2 = vm.const.i32.zero
  %i3 = vm.const.i32 1
  vm.br ^bb1()
^bb1:
  %i1 = vm.add.i32 %i1, %i2
  %i2 = vm.add.i32 %i2, %i3
  %i4 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i4, ^bb1(), ^bb2()
^bb2:
  vm.return %i1
}
)";
  for (const int32_t size : {1, 2, 7}) {
    uint32_t expected = 0;
    for (int32_t i = 0; i < size; ++i) {
      for (int32_t j = 0; j < size; ++j) expected += static_cast<uint32_t>(j * (j - 1) / 2);
      expected *= static_cast<uint32_t>(size);
    }
    for (const bool fuse : {true, false}) {
      Machine machine;
      machine.fuse = fuse;
      machine.add(text);
      const auto results = ASSERT_VALUE(machine.call("f", {i32(size)}));
      EXPECT_EQ(results.front().as_i32(), static_cast<int32_t>(expected)) << size << ' ' << fuse;
    }
  }
}

}  // namespace
}  // namespace halyard::vm::test
