// Matrix products: the plain loops against the definition, and every instruction set against the plain loops.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "vmvx/flush_denormals.h"
#include "vmvx/small_floats.h"
#include "vmvx_testing.h"

namespace halyard::local::vmvx {
namespace {

enum class Element { f32, f16, bf16, s32, s16, s8, s4, u4 };

struct TypeOf {
  const char* name;
  Element lhs, rhs, out;
};
constexpr TypeOf kTypes[kMmt4dTypeCount] = {
    {"f32f32f32", Element::f32, Element::f32, Element::f32},
    {"s8s8s32", Element::s8, Element::s8, Element::s32},
    {"f16f16f32", Element::f16, Element::f16, Element::f32},
    {"f16f16f16", Element::f16, Element::f16, Element::f16},
    {"bf16bf16f32", Element::bf16, Element::bf16, Element::f32},
    {"bf16bf16bf16", Element::bf16, Element::bf16, Element::bf16},
    {"s16s16s32", Element::s16, Element::s16, Element::s32},
    {"s16u4s32", Element::s16, Element::u4, Element::s32},
    {"s16s8s32", Element::s16, Element::s8, Element::s32},
    {"s8s4s32", Element::s8, Element::s4, Element::s32},
};

size_t bits_of(Element element) {
  switch (element) {
    case Element::f32:
    case Element::s32:
      return 32;
    case Element::f16:
    case Element::bf16:
    case Element::s16:
      return 16;
    case Element::s8:
      return 8;
    default:
      return 4;
  }
}
bool is_float(Element element) { return element <= Element::bf16; }

// Elements as unaligned bytes, with a margin that must not change.
struct Operand {
  static constexpr size_t kMargin = 67;
  Element element;
  std::vector<uint8_t> bytes;

  Operand(Element type, size_t count)
      : element(type), bytes(2 * kMargin + (count * bits_of(type) + 7) / 8, 0xA5) {}
  uint8_t* data() { return bytes.data() + kMargin; }
  size_t size() const { return (bytes.size() - 2 * kMargin) * 8 / bits_of(element); }
  double get(size_t i) {
    switch (element) {
      case Element::f32:
        return load<float>(data() + i * 4);
      case Element::s32:
        return load<int32_t>(data() + i * 4);
      case Element::f16:
        return f16_to_f32(load<uint16_t>(data() + i * 2));
      case Element::bf16:
        return bf16_to_f32(load<uint16_t>(data() + i * 2));
      case Element::s16:
        return load<int16_t>(data() + i * 2);
      case Element::s8:
        return load<int8_t>(data() + i);
      case Element::u4:
        return (data()[i / 2] >> i % 2 * 4) & 15;
      case Element::s4:
        return (((data()[i / 2] >> i % 2 * 4) & 15) ^ 8) - 8;
    }
    return 0;
  }
  // Integers of the whole range, often extremes; floats from -2 to 2 in small steps.
  void randomize(std::mt19937& random) {
    for (size_t i = 0; i < bytes.size() - 2 * kMargin; ++i) data()[i] = static_cast<uint8_t>(random());
    for (size_t i = 0; i < size(); ++i) {
      const auto value = static_cast<float>(static_cast<int>(random() % 257) - 128) / 64;
      if (element == Element::f32) store(data() + i * 4, value);
      if (element == Element::f16) store(data() + i * 2, f32_to_f16(value));
      if (element == Element::bf16) store(data() + i * 2, f32_to_bf16(value));
      if (element == Element::s8 && random() % 4 == 0) store(data() + i, static_cast<int8_t>(-128));
      if (element == Element::s16 && random() % 4 == 0) store(data() + i * 2, static_cast<int16_t>(-32768));
    }
  }
};

struct Mmt4dCase {
  size_t type;
  uint64_t m, n, k;
  TileSizes tile;
  uint64_t extra;  // of strides
  bool accumulate, skip_rounding;
};

std::string text(const Mmt4dCase& c) {
  return fmt::format("{} M,N,K={},{},{} m0,n0,k0={},{},{} extra {}{}{}", kTypes[c.type].name, c.m, c.n, c.k,
                     c.tile.m0, c.tile.n0, c.tile.k0, c.extra, c.accumulate ? " accumulate" : "",
                     c.skip_rounding ? " skip" : "");
}

struct Mmt4dProblem {
  Mmt4dCase c;
  Operand lhs, rhs, out;
  Mmt4d operands;

  explicit Mmt4dProblem(const Mmt4dCase& given, unsigned seed)
      : c(given),
        lhs(kTypes[c.type].lhs, c.m * lhs_stride()),
        rhs(kTypes[c.type].rhs, c.n * rhs_stride()),
        out(kTypes[c.type].out, c.m * out_stride()) {
    std::mt19937 random(seed);
    lhs.randomize(random);
    rhs.randomize(random);
    out.randomize(random);
    operands = {.lhs = lhs.data(),
                .rhs = rhs.data(),
                .out = out.data(),
                .lhs_stride = lhs_stride(),
                .rhs_stride = rhs_stride(),
                .out_stride = out_stride(),
                .m = c.m,
                .n = c.n,
                .k = c.k,
                .m0 = c.tile.m0,
                .n0 = c.tile.n0,
                .k0 = c.tile.k0,
                .accumulate = c.accumulate,
                .skip_rounding = c.skip_rounding};
  }
  // Even, as required for 4-bit elements.
  uint64_t lhs_stride() const { return c.k * c.tile.m0 * c.tile.k0 + 2 * c.extra; }
  uint64_t rhs_stride() const {
    return c.k * c.tile.n0 * c.tile.k0 + (c.k * c.tile.n0 * c.tile.k0) % 2 + 2 * c.extra;
  }
  uint64_t out_stride() const { return c.n * c.tile.m0 * c.tile.n0 + c.extra; }
  // Runs the kernel and returns all bytes.
  const std::vector<uint8_t>& run(const Kernels& kernels) {
    const FlushDenormals flush;
    kernels.mmt4d_for(static_cast<Mmt4dType>(c.type), c.tile.n0, c.tile.k0)(operands);
    return out.bytes;
  }
};

TEST(VmvxPlainMmt4d, FollowsTheDefinition) {
  for (size_t type = 0; type < kMmt4dTypeCount; ++type) {
    for (const bool accumulate : {false, true}) {
      const Mmt4dCase c = {type, 2, 3, 4, {3, 2, 2}, 3, accumulate, true};
      Mmt4dProblem problem(c, 1);
      Mmt4dProblem before(c, 1);
      problem.run(scalar_kernels());
      for (uint64_t i = 0; i < c.m; ++i)
        for (uint64_t j = 0; j < c.n; ++j)
          for (uint64_t a = 0; a < c.tile.m0; ++a)
            for (uint64_t b = 0; b < c.tile.n0; ++b) {
              const uint64_t at = i * problem.out_stride() + (j * c.tile.m0 + a) * c.tile.n0 + b;
              double sum = accumulate ? before.out.get(at) : 0;
              for (uint64_t k = 0; k < c.k; ++k)
                for (uint64_t inner = 0; inner < c.tile.k0; ++inner)
                  sum += before.lhs.get(i * problem.lhs_stride() + (k * c.tile.m0 + a) * c.tile.k0 + inner) *
                         before.rhs.get(j * problem.rhs_stride() + (k * c.tile.n0 + b) * c.tile.k0 + inner);
              if (is_float(kTypes[type].out)) {
                EXPECT_NEAR(problem.out.get(at), sum, 0.02 * std::max(1.0, std::abs(sum))) << text(c);
              } else {
                const auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(sum)));
                EXPECT_EQ(problem.out.get(at), wrapped) << text(c);
              }
            }
    }
  }
}

// The kernels of one instruction set against the plain loops.
void compare(const Kernels& kernels, const Mmt4dCase& c) {
  Mmt4dProblem expected(c, 7);
  Mmt4dProblem found(c, 7);
  const std::vector<uint8_t>& right = expected.run(scalar_kernels());
  const std::vector<uint8_t>& bytes = found.run(kernels);
  const TypeOf& type = kTypes[c.type];
  const bool exact = !is_float(type.out) || (type.out != Element::f32 && !c.skip_rounding);
  if (exact) {
    ASSERT_TRUE(bytes == right) << kernels.instructions << ": " << text(c);
    return;
  }
  for (const size_t margin : {size_t{0}, bytes.size() - Operand::kMargin})
    ASSERT_TRUE(std::equal(bytes.begin() + margin, bytes.begin() + margin + Operand::kMargin,
                           right.begin() + margin));
  // Values are below 4, rounding errors below half of the last place of the largest sum.
  const double step = type.out == Element::f32 ? 0x1p-24 : type.out == Element::f16 ? 0x1p-11 : 0x1p-8;
  const double terms = static_cast<double>(c.k * c.tile.k0) + 1;
  for (size_t i = 0; i < found.out.size(); ++i)
    ASSERT_NEAR(found.out.get(i), expected.out.get(i), 4 * terms * 2 * step * std::sqrt(terms))
        << kernels.instructions << ": " << text(c) << " at " << i;
}

class VmvxMmt4d : public VmvxKernels {};
VMVX_FOR_EVERY_INSTRUCTION_SET(VmvxMmt4d);

TEST_P(VmvxMmt4d, AgreesInItsOwnTiles) {
  for (size_t type = 0; type < kMmt4dTypeCount; ++type)
    for (const uint64_t m : {1, 2})
      for (const uint64_t n : {1, 2, 5})
        for (const uint64_t k : {0, 1, 7, 257})
          for (const uint64_t extra : {0, 3})
            for (const int flags : {0, 1, 2, 3}) {
              const Mmt4dCase c = {
                  type, m, n, k, kernels().tiles[type], extra, (flags & 1) != 0, (flags & 2) != 0};
              ASSERT_NO_FATAL_FAILURE(compare(kernels(), c));
            }
}

// More columns than a block.
TEST_P(VmvxMmt4d, AgreesInBlocks) {
  for (size_t type = 0; type < kMmt4dTypeCount; ++type)
    ASSERT_NO_FATAL_FAILURE(compare(kernels(), {type, 2, 35, 300, kernels().tiles[type], 1, false, true}));
}

TEST_P(VmvxMmt4d, AgreesInOtherTiles) {
  for (size_t type = 0; type < kMmt4dTypeCount; ++type)
    for (const TileSizes& tile : {TileSizes{1, 16, 1},
                                  {16, 16, 1},
                                  {16, 16, 2},
                                  {16, 16, 4},
                                  {16, 8, 1},
                                  {8, 16, 4},
                                  {3, 5, 3},
                                  {16, 16, 8}})
      for (const int flags : {0, 1}) {
        const Mmt4dCase c = {type, 2, 3, 5, tile, 2, (flags & 1) != 0, true};
        ASSERT_NO_FATAL_FAILURE(compare(kernels(), c));
      }
}

TEST_P(VmvxMmt4d, StridesOfZeroRepeatATile) {
  for (size_t type = 0; type < kMmt4dTypeCount; ++type) {
    const Mmt4dCase c = {type, 3, 3, 40, kernels().tiles[type], 0, true, true};
    Mmt4dProblem expected(c, 3);
    Mmt4dProblem found(c, 3);
    for (Mmt4dProblem* problem : {&expected, &found})
      problem->operands.lhs_stride = problem->operands.rhs_stride = 0;
    expected.run(scalar_kernels());
    found.run(kernels());
    for (size_t i = 0; i < found.out.size(); ++i)
      ASSERT_NEAR(found.out.get(i), expected.out.get(i), std::abs(expected.out.get(i)) * 0.02) << text(c);
  }
}

TEST_P(VmvxMmt4d, TileSizesDivide16) {
  for (const TileSizes& tile : kernels().tiles)
    for (const uint32_t size : {tile.m0, tile.n0, tile.k0}) {
      ASSERT_NE(size, 0u);
      EXPECT_EQ(16 % size, 0u);
    }
}

// Rounding of results, in all ranges of half precision.
TEST_P(VmvxMmt4d, RoundsTo16BitsAsThePlainLoopsDo) {
  for (const auto type : {Mmt4dType::f16f16f16, Mmt4dType::bf16bf16bf16}) {
    const auto index = static_cast<size_t>(type);
    const Mmt4dCase c = {index, 1, 2, 1, kernels().tiles[index], 0, false, false};
    std::mt19937 random(5);
    // Products of bf16 that overflow or underflow an f32 differ between fused and separate operations.
    const bool brain = type == Mmt4dType::bf16bf16bf16;
    const auto any = [&] { return brain ? (random() & 0xBFFF) | 0x2000 : random(); };
    for (int turn = 0; turn < 400; ++turn) {
      Mmt4dProblem expected(c, 1);
      Mmt4dProblem found(c, 1);
      for (Operand* operand : {&expected.lhs, &expected.rhs})
        for (size_t i = 0; i < operand->size(); ++i)
          store(operand->data() + i * 2, static_cast<uint16_t>(turn % 2 ? any() : random() & 0x83FF));
      found.lhs.bytes = expected.lhs.bytes;
      found.rhs.bytes = expected.rhs.bytes;
      expected.run(scalar_kernels());
      found.run(kernels());
      for (size_t i = 0; i < found.out.size(); ++i) {
        if (std::isnan(expected.out.get(i))) {
          ASSERT_TRUE(std::isnan(found.out.get(i)));
        } else {
          ASSERT_EQ(found.out.get(i), expected.out.get(i)) << kernels().instructions << " " << text(c);
        }
      }
    }
  }
}

}  // namespace
}  // namespace halyard::local::vmvx
