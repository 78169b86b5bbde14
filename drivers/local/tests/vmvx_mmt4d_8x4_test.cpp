// Matrix products of tiles with 8 columns and 4 elements of k: every instruction set against sums that are
// computed one by one.
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "vmvx/flush_denormals.h"
#include "vmvx_testing.h"

namespace halyard::local::vmvx {
namespace {

constexpr uint32_t kColumns = 8, kDepth = 4;

struct Case {
  uint64_t m, n, k;
  uint32_t m0;
  uint64_t extra;  // of strides
  bool accumulate;
};

std::string text(const Case& c) {
  return "M,N,K=" + std::to_string(c.m) + "," + std::to_string(c.n) + "," + std::to_string(c.k) +
         " m0=" + std::to_string(c.m0) + " extra " + std::to_string(c.extra) +
         (c.accumulate ? " accumulate" : "");
}

// T: float or int8_t. Sum: float or int32_t.
template <typename T, typename Sum>
struct TiledProblem {
  static constexpr size_t kMargin = 5;  // unaligned for every type
  static constexpr Mmt4dType kType = std::is_same_v<T, float> ? Mmt4dType::f32f32f32 : Mmt4dType::s8s8s32;

  Case c;
  uint64_t lhs_stride, rhs_stride, out_stride;
  std::vector<uint8_t> lhs, rhs, out;

  template <typename Value>  // returns a T
  TiledProblem(const Case& given, Value&& value)
      : c(given),
        lhs_stride(c.k * c.m0 * kDepth + c.extra),
        rhs_stride(c.k * kColumns * kDepth + c.extra),
        out_stride(c.n * c.m0 * kColumns + c.extra),
        lhs((c.m * lhs_stride - c.extra) * sizeof(T)),
        rhs((c.n * rhs_stride - c.extra) * sizeof(T)),
        out(2 * kMargin + c.m * out_stride * sizeof(Sum), 0xA5) {
    for (std::vector<uint8_t>* bytes : {&lhs, &rhs})
      for (size_t i = 0; i < bytes->size(); i += sizeof(T)) store(bytes->data() + i, T(value()));
    for (size_t i = kMargin; i + sizeof(Sum) <= out.size() - kMargin; i += sizeof(Sum))
      store(out.data() + i, static_cast<Sum>(value()));
  }
  Mmt4d operands() {
    return {.lhs = lhs.data(),
            .rhs = rhs.data(),
            .out = out.data() + kMargin,
            .lhs_stride = lhs_stride,
            .rhs_stride = rhs_stride,
            .out_stride = out_stride,
            .m = c.m,
            .n = c.n,
            .k = c.k,
            .m0 = c.m0,
            .n0 = kColumns,
            .k0 = kDepth,
            .accumulate = c.accumulate,
            .skip_rounding = true};
  }
  void run(const Kernels& kernels) {
    const FlushDenormals flush;
    kernels.mmt4d_for(kType, kColumns, kDepth)(operands());
  }
  // `add(sum, a, b)` adds a product.
  template <typename Add>
  void expect(Add&& add) {
    const FlushDenormals flush;
    for (uint64_t i = 0; i < c.m; ++i)
      for (uint64_t j = 0; j < c.n; ++j)
        for (uint64_t a = 0; a < c.m0; ++a)
          for (uint64_t b = 0; b < kColumns; ++b) {
            uint8_t* const at =
                out.data() + kMargin + (i * out_stride + (j * c.m0 + a) * kColumns + b) * sizeof(Sum);
            Sum sum = c.accumulate ? load<Sum>(at) : Sum();
            for (uint64_t k = 0; k < c.k * kDepth; ++k) {
              const uint64_t tile = k / kDepth;
              const uint64_t l = i * lhs_stride + (tile * c.m0 + a) * kDepth + k % kDepth;
              const uint64_t r = j * rhs_stride + (tile * kColumns + b) * kDepth + k % kDepth;
              sum = add(sum, load<T>(lhs.data() + l * sizeof(T)), load<T>(rhs.data() + r * sizeof(T)));
            }
            store(at, sum);
          }
  }
};
using FloatProblem = TiledProblem<float, float>;
using ByteProblem = TiledProblem<int8_t, int32_t>;

class VmvxMmt4d8x4 : public VmvxKernels {
 public:
  bool fuses() const { return GetParam() != "scalar" && GetParam() != "sse4"; }

  // The sums are those of the definition, bit by bit; NaNs may have other bits.
  template <typename Value>
  void compare_floats(const Case& c, Value&& value) {
    FloatProblem expected(c, value);
    FloatProblem found = expected;
    expected.expect([&](float sum, float a, float b) { return fuses() ? std::fma(a, b, sum) : sum + a * b; });
    found.run(kernels());
    for (size_t i = 0; i < FloatProblem::kMargin; ++i) {
      ASSERT_EQ(found.out[i], 0xA5);
      ASSERT_EQ(found.out[found.out.size() - 1 - i], 0xA5);
    }
    for (size_t i = FloatProblem::kMargin; i + 4 <= found.out.size() - FloatProblem::kMargin; i += 4) {
      const auto f = load<float>(found.out.data() + i);
      const auto e = load<float>(expected.out.data() + i);
      ASSERT_TRUE((std::isnan(f) && std::isnan(e)) ||
                  std::bit_cast<uint32_t>(f) == std::bit_cast<uint32_t>(e))
          << GetParam() << ": " << text(c) << " at " << i / 4 << ": " << f << " instead of " << e;
    }
  }
  template <typename Value>
  void compare_bytes(const Case& c, Value&& value) {
    ByteProblem expected(c, value);
    ByteProblem found = expected;
    expected.expect([](int32_t sum, int8_t a, int8_t b) {
      return static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(int{a} * b));
    });
    found.run(kernels());
    ASSERT_TRUE(found.out == expected.out) << GetParam() << ": " << text(c);
  }

  std::mt19937 random{11};
};
VMVX_FOR_EVERY_INSTRUCTION_SET(VmvxMmt4d8x4);

// All numbers of rows and columns that a loop may leave over, and more k than a block holds.
template <typename Function>
void for_shapes(Function&& function) {
  for (const uint32_t m0 : {1, 2, 3, 4, 7, 8, 12, 16})
    for (const uint64_t m : {1, 3})
      for (const uint64_t n : {1, 2, 3, 4, 5, 8, 9, 33})
        for (const uint64_t k : {0, 1, 2, 5})
          for (const bool accumulate : {false, true})
            ASSERT_NO_FATAL_FAILURE(function(Case{m, n, k, m0, k == 5 ? uint64_t{3} : 0, accumulate}));
  for (const uint32_t m0 : {1, 2, 4, 8})
    for (const uint64_t m : {1, 2})
      for (const uint64_t k : {64, 129, 515})
        ASSERT_NO_FATAL_FAILURE(function(Case{m, 5, k, m0, 1, k % 2 == 0}));
}

TEST_P(VmvxMmt4d8x4, AddsFloatsInOrder) {
  for_shapes([&](const Case& c) {
    compare_floats(c, [&] { return static_cast<float>(static_cast<int32_t>(random())) * 0x1p-28f; });
  });
}

TEST_P(VmvxMmt4d8x4, HandlesSpecialFloats) {
  using Limits = std::numeric_limits<float>;
  const float values[] = {0.0f,
                          -0.0f,
                          1.0f,
                          -1.5f,
                          Limits::infinity(),
                          -Limits::infinity(),
                          Limits::quiet_NaN(),
                          1e38f,
                          Limits::min(),
                          1e-30f,
                          Limits::denorm_min(),
                          -1e-20f};
  for (const bool accumulate : {false, true})
    for (const uint32_t m0 : {1, 2, 4, 8})
      for (const uint64_t k : {1, 2, 9})
        for (int turn = 0; turn < 8; ++turn)
          ASSERT_NO_FATAL_FAILURE(compare_floats({2, 5, k, m0, 0, accumulate},
                                                 // Mostly finite numbers, otherwise all sums are NaN.
                                                 [&] {
                                                   const size_t count =
                                                       random() % 16 == 0 ? std::size(values) : 4;
                                                   return values[random() % count];
                                                 }));
}

TEST_P(VmvxMmt4d8x4, MultipliesBytes) {
  for_shapes([&](const Case& c) {
    compare_bytes(c, [&] { return random() % 4 == 0 ? -128 : static_cast<int>(random() % 256) - 128; });
  });
}

// Sums wrap: the output to add to is close to the limits.
TEST_P(VmvxMmt4d8x4, WrapsSums) {
  const Case c = {1, 3, 20, 8, 0, true};
  ByteProblem expected(c, [] { return -128; });
  for (size_t i = ByteProblem::kMargin; i + 4 <= expected.out.size() - ByteProblem::kMargin; i += 4)
    store(expected.out.data() + i, std::numeric_limits<int32_t>::max() - static_cast<int32_t>(i));
  ByteProblem found = expected;
  expected.expect([](int32_t sum, int8_t a, int8_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(int{a} * b));
  });
  found.run(kernels());
  EXPECT_TRUE(found.out == expected.out);
  EXPECT_LT(load<int32_t>(found.out.data() + ByteProblem::kMargin), 0);
}

TEST_P(VmvxMmt4d8x4, StridesOfZeroRepeatATile) {
  const Case c = {3, 6, 7, 8, 0, false};
  FloatProblem expected(c, [&] { return static_cast<float>(random() % 64) - 32; });
  for (FloatProblem* problem : {&expected}) problem->lhs_stride = problem->rhs_stride = 0;
  FloatProblem found = expected;
  expected.expect([](float sum, float a, float b) { return sum + a * b; });  // exact
  found.run(kernels());
  EXPECT_TRUE(found.out == expected.out);
}

}  // namespace
}  // namespace halyard::local::vmvx
