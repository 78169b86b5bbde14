// NaNs, signs and payloads included: compiled and interpreted code give the same bits. Not compared are
// additions and products of two different NaNs: which of them is kept depends on the order in which a
// compiler of C++ puts the operands, and differs among the interpreter's own handlers.

#include <array>
#include <cmath>
#include <vector>

#include "program.h"

namespace halyard::vm::test {
namespace {

// Bodies of functions of two floats. {a}, {b} and {x} are registers of the arguments and the result, {y} and
// {z} of intermediate values, {f} and {i} the types; {0} and {1} stand for constants of {i} with the bits of
// the floats 0 and 1.
struct Body {
  const char* text;
  bool keeps_either = false;  // of two different NaNs
};
constexpr Body kBodies[] = {
    {"{x} = vm.add.{f} {a}, {b}", true},
    {"{x} = vm.mul.{f} {a}, {b}", true},
    {"{x} = vm.sub.{f} {a}, {b}"},
    {"{x} = vm.div.{f} {a}, {b}"},
    {"{x} = vm.min.{f} {a}, {b}"},
    {"{x} = vm.max.{f} {a}, {b}"},
    {"{x} = vm.neg.{f} {a}"},
    {"{x} = vm.abs.{f} {a}"},
    {"{x} = vm.ceil.{f} {a}"},
    {"{x} = vm.floor.{f} {a}"},
    {"{x} = vm.round.{f} {a}"},
    {"{x} = vm.round.{f}.even {a}"},
    {"{x} = vm.sqrt.{f} {a}"},
    {"{x} = vm.rsqrt.{f} {a}"},
    {"{x} = vm.exp.{f} {a}"},
    {"{x} = vm.sin.{f} {a}"},
    {"{x} = vm.cos.{f} {a}"},
    {"{x} = vm.atan.{f} {a}"},
    {"{x} = vm.exp2.{f} {a}"},
    {"{x} = vm.expm1.{f} {a}"},
    {"{x} = vm.log.{f} {a}"},
    {"{x} = vm.log2.{f} {a}"},
    {"{x} = vm.log10.{f} {a}"},
    {"{x} = vm.log1p.{f} {a}"},
    {"{x} = vm.tanh.{f} {a}"},
    {"{x} = vm.erf.{f} {a}"},
    {"{x} = vm.rem.{f} {a}, {b}", true},
    {"{x} = vm.pow.{f} {a}, {b}", true},
    {"{x} = vm.atan2.{f} {a}, {b}", true},
    {"{y} = vm.const.{f} -1.0\n{x} = vm.log.{f} {y}"},
    {"{y} = vm.const.{f} -1.5\n{x} = vm.pow.{f} {y}, {y}"},
    {"{y} = vm.const.{f} inf\n{x} = vm.sin.{f} {y}"},
    // Signs that could move from one operation to the next.
    {"{y} = vm.neg.{f} {b}\n{x} = vm.sub.{f} {a}, {y}"},
    {"{y} = vm.neg.{f} {b}\n{x} = vm.add.{f} {a}, {y}", true},
    {"{y} = vm.neg.{f} {a}\n{x} = vm.sub.{f} {y}, {b}"},
    {"{y} = vm.neg.{f} {a}\n{x} = vm.add.{f} {y}, {b}", true},
    {"{y} = vm.sub.{f} {a}, {b}\n{x} = vm.neg.{f} {y}"},
    {"{y} = vm.mul.{f} {a}, {b}\n{x} = vm.neg.{f} {y}", true},
    {"{y} = vm.neg.{f} {a}\n{z} = vm.neg.{f} {b}\n{x} = vm.mul.{f} {y}, {z}", true},
    {"{y} = vm.neg.{f} {a}\n{z} = vm.neg.{f} {b}\n{x} = vm.div.{f} {y}, {z}"},
    {"{y} = vm.mul.{f} {a}, {a}\n{x} = vm.abs.{f} {y}"},
    {"{y} = vm.neg.{f} {a}\n{x} = vm.abs.{f} {y}"},
    {"{y} = vm.abs.{f} {a}\n{x} = vm.neg.{f} {y}"},
    {"{y} = vm.abs.{f} {a}\n{z} = vm.abs.{f} {b}\n{x} = vm.div.{f} {y}, {z}"},
    // Constants, as floats and as bits.
    {"{y} = vm.const.{f} 1.0\n{x} = vm.mul.{f} {a}, {y}"},
    {"{y} = vm.const.{f} -1.0\n{x} = vm.mul.{f} {a}, {y}"},
    {"{y} = vm.const.{f} 1.0\n{x} = vm.div.{f} {a}, {y}"},
    {"{y} = vm.const.{f} -0.0\n{x} = vm.add.{f} {a}, {y}"},
    {"{y} = vm.const.{f}.zero\n{x} = vm.sub.{f} {a}, {y}"},
    {"{y} = vm.const.{f}.zero\n{x} = vm.sub.{f} {y}, {a}"},
    {"{y} = vm.const.{f}.zero\n{x} = vm.div.{f} {y}, {y}"},
    {"{y} = vm.const.{f} inf\n{x} = vm.sub.{f} {y}, {y}"},
    {"{y} = vm.const.{f} inf\n{z} = vm.const.{f}.zero\n{x} = vm.mul.{f} {y}, {z}"},
    {"{y} = vm.const.{f} -1.0\n{x} = vm.sqrt.{f} {y}"},
    {"{y} = vm.const.{i} {1}\n{x} = vm.mul.{f} {a}, {y}"},
    {"{y} = vm.const.{i} {1}\n{y} = vm.bitcast.{i}.{f} {y}\n{x} = vm.mul.{f} {a}, {y}"},
    {"{y} = vm.const.{i} {0}\n{x} = vm.div.{f} {y}, {y}"},
    {"{y} = vm.const.{i} {0}\n{x} = vm.sub.{f} {a}, {y}"},
    {"{y} = vm.const.{i} {1}\n{z} = vm.add.{i} {y}, {y}\n{z} = vm.sub.{i} {z}, {y}\n{x} = vm.mul.{f} {a}, "
     "{z}"},
    {"{y} = vm.const.{i} {1}\nvm.global.store.{i} {y}, .rwdata[8]\n{z} = vm.global.load.{f} .rwdata[8]\n"
     "{x} = vm.mul.{f} {a}, {z}"},
    {"{y} = vm.const.{i}.zero\nvm.global.store.{f} {y}, .rwdata[8]\n{z} = vm.global.load.{f} .rwdata[8]\n"
     "{x} = vm.div.{f} {z}, {z}"},
    {"{y} = vm.const.{i} 1\n{z} = vm.cast.s{i}.{f} {y}\n{x} = vm.mul.{f} {a}, {z}"},
    {"{y} = vm.const.{i} 1\n{z} = vm.cast.u{i}.{f} {y}\n{x} = vm.mul.{f} {a}, {z}"},
    {"{y} = vm.const.{i}.zero\n{z} = vm.cast.s{i}.{f} {y}\n{x} = vm.div.{f} {z}, {z}"},
    {"{y} = vm.const.{i}.zero\n{z} = vm.cast.u{i}.{f} {y}\n{x} = vm.div.{f} {z}, {z}"},
    {"{y} = vm.const.{f} -0.5\n{y} = vm.round.{f}.even {y}\n{x} = vm.div.{f} {y}, {y}"},
    {"{x} = vm.fma.{f} {a}, {b}, {a}", true},
    {"{y} = vm.const.{f} -1.0\n{x} = vm.fma.{f} {a}, {y}, {b}", true},
};

struct Width {
  bool wide;
  std::vector<uint64_t> values() const {
    if (!wide)
      return {0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000,
              0x7FC00000, 0xFFC00000, 0x7FC01234, 0xFFC05678, 0x7F800001, 0xFFA00000};
    return {0x0000000000000000, 0x8000000000000000, 0x3FF0000000000000, 0xBFF0000000000000,
            0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8000000000000,
            0x7FF8000000001234, 0xFFF8000000005678, 0x7FF0000000000001, 0xFFF4000000000000};
  }
  Variant variant(uint64_t bits) const {
    return Variant::value(wide ? ValueType::f64 : ValueType::f32, bits);
  }
  bool is_nan(uint64_t bits) const {
    return wide ? std::isnan(std::bit_cast<double>(bits))
                : std::isnan(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  std::string module_text(const Body& body) const {
    std::string text =
        std::string(
            "vm.module @m\nvm.state 64, 0\nvm.export @f\nvm.func @f({a}: {f}, {b}: {f}) -> ({f}) {\n") +
        body.text + "\nvm.return {x}\n}\n";
    const auto put = [&](std::string_view what, std::string_view narrow, std::string_view other) {
      text = replaced(std::move(text), what, wide ? other : narrow);
    };
    put("{a}", "%i0", "%i0:1");
    put("{b}", "%i1", "%i2:3");
    put("{x}", "%i2", "%i4:5");
    put("{y}", "%i3", "%i6:7");
    put("{z}", "%i4", "%i8:9");
    put("{f}", "f32", "f64");
    put("{i}", "i32", "i64");
    put("{0}", "0", "0");
    put("{1}", "1065353216", "4607182418800017408");
    return text;
  }
};

struct Machine : TestProgram {
  Machine(const std::string& text, const Compiler* compiler, bool fuse)
      : TestProgram(text, {.fuse = fuse, .compiler = compiler}) {
    EXPECT_EQ(is_compiled(), compiler != nullptr);
  }
  uint64_t call(std::span<const Variant> arguments) const {
    const Result<Variant> result = TestProgram::call(arguments);
    EXPECT_OK(result);
    return result ? result->bits() : 0;
  }
};

class CompiledNans : public testing::TestWithParam<bool> {};

TEST_P(CompiledNans, HaveTheSameBits) {
  const auto compiler = ASSERT_VALUE(Compiler::find());
  const Width width = {GetParam()};
  for (const Body& body : kBodies) {
    const std::string text = width.module_text(body);
    const Machine interpreted(text, nullptr, true);
    const Machine unfused(text, nullptr, false);
    const Machine compiled(text, compiler, false);
    for (const uint64_t a : width.values()) {
      for (const uint64_t b : width.values()) {
        if (body.keeps_either && width.is_nan(a) && width.is_nan(b)) continue;
        const std::array<Variant, 2> arguments = {width.variant(a), width.variant(b)};
        const uint64_t expected = interpreted.call(arguments);
        EXPECT_EQ(unfused.call(arguments), expected) << std::hex << a << ' ' << b << " not fused\n" << text;
        EXPECT_EQ(compiled.call(arguments), expected) << std::hex << a << ' ' << b << '\n' << text;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, CompiledNans, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "f64" : "f32"; });

// A float that was extended and narrowed is the float, and a signaling NaN has become quiet.
TEST(CompiledNan, IsQuietAfterConversion) {
  const auto compiler = ASSERT_VALUE(Compiler::find());
  const std::string text =
      "vm.module @m\nvm.export @f\nvm.func @f(%i0: f32) -> (f32) {\n%i2:3 = vm.ext.f32.f64 %i0\n"
      "%i4 = vm.trunc.f64.f32 %i2:3\nvm.return %i4\n}\n";
  const Machine interpreted(text, nullptr, true);
  const Machine compiled(text, compiler, false);
  for (const uint64_t bits : Width{false}.values()) {
    const std::array<Variant, 1> arguments = {Variant::value(ValueType::f32, bits)};
    EXPECT_EQ(compiled.call(arguments), interpreted.call(arguments)) << std::hex << bits;
  }
  const std::array<Variant, 1> signaling = {Variant::value(ValueType::f32, 0x7F800001)};
  EXPECT_EQ(compiled.call(signaling), 0x7FC00001u);
}

}  // namespace
}  // namespace halyard::vm::test
