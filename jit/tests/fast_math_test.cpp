// Fast math: how far results are from those of exact compiled code, which has the interpreter's bits.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "program.h"
#include "vm/object/buffer.h"

namespace halyard::vm::test {
namespace {

constexpr size_t kCount = 4096;

enum class Way { interpreted, exact, fast };

// r1[i] = body of r0[i] and r1[i] for all i; r1[0] = the sum of r0[i] * r1[i] for `kDot`.
constexpr const char* kDot = "dot";
std::string program(std::string_view body, std::string_view type, std::string_view extension) {
  const bool is_dot = body == kDot;
  const std::string_view wide = type == "f64" ? "12:13" : "12";
  const std::string_view other = type == "f64" ? "14:15" : "14";
  const std::string_view sum = type == "f64" ? "16:17" : "16";
  std::string text = R"(
vm.module @m
vm.type !vm.buffer
vm.type TYPE
vm.export @f
vm.func @f(%r0: !vm.ref<?>, %r1: !vm.ref<?>, %i0:1: i64) -> (i64) {
  .requires EXTENSION
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64 1
  %i6:7 = vm.const.i64.zero
  %iSUM = vm.const.TYPE 0.0
  vm.br ^bb1
^bb1:
  %iX = vm.buffer.load.TYPE %r0, %i2:3
  %iY = vm.buffer.load.TYPE %r1, %i2:3
  BODY
  %i2:3 = vm.add.i64 %i2:3, %i4:5
  %i10 = vm.cmp.lt.i64.s %i2:3, %i0:1
  vm.cond_br %i10, ^bb1, ^bb2
^bb2:
  END
  vm.return %i2:3
}
)";
  const auto replace = [&](std::string_view from, std::string_view to) {
    text = replaced(std::move(text), from, to);
  };
  const std::string one = std::string(body) + "\n  vm.buffer.store.TYPE %iY, %r1, %i2:3";
  replace("BODY", is_dot ? "%iY = vm.mul.TYPE %iX, %iY\n  %iSUM = vm.add.TYPE %iSUM, %iY" : one);
  replace("END", is_dot ? "vm.buffer.store.TYPE %iSUM, %r1, %i6:7" : "");
  replace("EXTENSION", extension);
  replace("SUM", sum);
  replace("TYPE", type);
  replace("%iX", "%i" + std::string(wide));
  replace("%iY", "%i" + std::string(other));
  return text;
}

// What r1 holds then.
template <typename T>
std::vector<T> run(std::string_view body, std::vector<T> x, std::vector<T> y, Way way) {
  const bool is_double = sizeof(T) == 8;
  const TestProgram tested(
      program(body, is_double ? "f64" : "f32", is_double ? "ext_f64" : "ext_f32"),
      {.compiler = way == Way::interpreted ? nullptr : *Compiler::find(), .fast_math = way == Way::fast});
  const auto buffer = [](std::vector<T>& numbers) {
    return Variant::ref(
        Buffer::wrap({reinterpret_cast<uint8_t*>(numbers.data()), numbers.size() * sizeof(T)}, true, {}));
  };
  const std::array<Variant, 3> arguments = {buffer(x), buffer(y),
                                            Variant::i64(static_cast<int64_t>(x.size()))};
  EXPECT_OK(tested.call(arguments));
  return y;
}

template <typename T>
std::vector<T> numbers(T least, T most, uint32_t seed = 7) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<T> any(least, most);
  std::vector<T> all(kCount);
  for (T& number : all) number = any(random);
  return all;
}

// In units of the last place of `right`.
template <typename T>
double distance(T value, T right) {
  if (value == right || (std::isnan(value) && std::isnan(right))) return 0;
  const T ulp = std::nextafter(std::abs(right), std::numeric_limits<T>::infinity()) - std::abs(right);
  return std::abs(static_cast<double>(value) - static_cast<double>(right)) / static_cast<double>(ulp);
}

struct Function {
  const char* name;
  double least;
  double most;
  bool has_two = false;
};
constexpr Function kFunctions[] = {{"exp", -80, 80},      {"exp2", -100, 100},      {"expm1", -10, 10},
                                   {"log", 1e-6, 1e6},    {"log10", 1e-6, 1e6},     {"log1p", -0.9, 10},
                                   {"log2", 1e-6, 1e6},   {"sin", -100, 100},       {"cos", -100, 100},
                                   {"atan", -50, 50},     {"tanh", -5, 5},          {"erf", -3, 3},
                                   {"pow", 0.1, 5, true}, {"atan2", -10, 10, true}, {"rem", -100, 100, true}};

// The bound that the documents state.
constexpr double kMaxUlps = 4;

template <typename T>
void compare_functions() {
  const std::string_view type = sizeof(T) == 8 ? "f64" : "f32";
  for (const Function& function : kFunctions) {
    const auto x = numbers<T>(static_cast<T>(function.least), static_cast<T>(function.most));
    auto y = x;
    std::ranges::reverse(y);
    const std::string body = "%iY = vm." + std::string(function.name) + "." + std::string(type) + " %iX" +
                             (function.has_two ? ", %iY" : "");
    const auto interpreted = run<T>(body, x, y, Way::interpreted);
    const auto exact = run<T>(body, x, y, Way::exact);
    const auto fast = run<T>(body, x, y, Way::fast);
    double most = 0;
    for (size_t i = 0; i < kCount; ++i) {
      using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
      ASSERT_EQ(std::bit_cast<Bits>(exact[i]), std::bit_cast<Bits>(interpreted[i]))
          << function.name << ' ' << x[i];
      most = std::max(most, distance(fast[i], exact[i]));
    }
    EXPECT_LE(most, kMaxUlps) << function.name << ' ' << type;
    testing::Test::RecordProperty(std::string(function.name) + "_" + std::string(type), std::to_string(most));
  }
}

TEST(CompiledFastMath, Functions32) { compare_functions<float>(); }
TEST(CompiledFastMath, Functions64) { compare_functions<double>(); }

// Of all exponents, with infinities and NaNs.
TEST(CompiledFunctions, OfAnyBitsAreThoseOfTheInterpreter) {
  std::mt19937 random(3);
  std::vector<float> x(4 * kCount), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = std::bit_cast<float>(static_cast<uint32_t>(random()));
    // One NaN: which of two is kept is open.
    do
      y[i] = i % 3 == 0 ? std::ldexp(1.0f, static_cast<int>(i % 270) - 140)
                        : std::bit_cast<float>(static_cast<uint32_t>(random()));
    while (std::isnan(x[i]) && std::isnan(y[i]));
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> special = {0,          -0.0f,   1,  -1,   kInfinity,
                                      -kInfinity, 0x1p24f, -3, 0.5f, std::numeric_limits<float>::quiet_NaN()};
  for (size_t i = 0; i < special.size(); ++i)
    for (size_t k = i == special.size() - 1 ? 1 : 0; k + 1 < special.size(); ++k) {
      x[i * special.size() + k] = special[i];
      y[i * special.size() + k] = special[k];
    }
  for (const Function& function : kFunctions) {
    const std::string body =
        "%iY = vm." + std::string(function.name) + ".f32 %iX" + (function.has_two ? ", %iY" : "");
    const auto interpreted = run<float>(body, x, y, Way::interpreted);
    const auto exact = run<float>(body, x, y, Way::exact);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(exact[i]), std::bit_cast<uint32_t>(interpreted[i]))
          << function.name << ' ' << x[i] << ' ' << y[i];
  }
}

// Every thousandth f32 and the special ones.
TEST(CompiledFastMath, FunctionsOfAllMagnitudes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0f, -0.0f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 1001)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (const char* const name : {"exp", "exp2", "tanh", "erf"}) {
    const std::string body = "%iY = vm." + std::string(name) + ".f32 %iX";
    const std::vector<float> exact = run<float>(body, x, x, Way::exact),
                             fast = run<float>(body, x, x, Way::fast);
    double most = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(std::isinf(fast[i]), std::isinf(exact[i])) << name << ' ' << x[i];
      ASSERT_EQ(std::isnan(fast[i]), std::isnan(exact[i])) << name << ' ' << x[i];
      const bool has_sign = !std::isnan(x[i]);
      ASSERT_EQ(has_sign && std::signbit(fast[i]), has_sign && std::signbit(exact[i])) << name << ' ' << x[i];
      most = std::max(most, distance(fast[i], exact[i]));
    }
    EXPECT_LE(most, kMaxUlps) << name;
  }
}

template <typename T>
void compare_sums() {
  size_t changed = 0;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    const auto x = numbers<T>(-1, 1, 2 * seed);
    const auto y = numbers<T>(-1, 1, 2 * seed + 1);
    const T interpreted = run<T>(kDot, x, y, Way::interpreted)[0];
    EXPECT_EQ(run<T>(kDot, x, y, Way::exact)[0], interpreted);
    const T fast = run<T>(kDot, x, y, Way::fast)[0];
    changed += fast != interpreted;
    // The bound of any order: one rounding for each product and each sum.
    double magnitude = 0;
    for (size_t i = 0; i < kCount; ++i)
      magnitude += std::abs(static_cast<double>(x[i]) * static_cast<double>(y[i]));
    const double unit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
    EXPECT_LE(std::abs(static_cast<double>(fast) - static_cast<double>(interpreted)),
              2 * static_cast<double>(kCount + 1) * unit * magnitude);
  }
  EXPECT_GT(changed, 0u) << "nothing was reordered";
}

TEST(CompiledFastMath, Sums32) { compare_sums<float>(); }
TEST(CompiledFastMath, Sums64) { compare_sums<double>(); }

}  // namespace
}  // namespace halyard::vm::test
