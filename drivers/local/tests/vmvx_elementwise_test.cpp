// Element-wise functions: the plain loops against the definition in exec-vmvx.md, 5.4, and every instruction
// set against the plain loops, for many strides, alignments, sizes and overlaps.
#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "vmvx/flush_denormals.h"
#include "vmvx_testing.h"

namespace halyard::local::vmvx {
namespace {

constexpr uint32_t kNaN = 0x7FC00000;
template <typename T>
uint8_t* bytes_of(std::vector<T>& elements) {
  return reinterpret_cast<uint8_t*>(elements.data());
}
uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }
float number(uint32_t value) { return std::bit_cast<float>(value); }

uint32_t binary(const Kernels& kernels, Binary operation, uint32_t a, uint32_t b) {
  uint32_t result = 0xDEAD;
  const FlushDenormals flush;
  const bool divided = kernels.binary[static_cast<size_t>(operation)](
      {reinterpret_cast<uint8_t*>(&a), 1, 1}, {reinterpret_cast<uint8_t*>(&b), 1, 1},
      {reinterpret_cast<uint8_t*>(&result), 1, 1}, {1, 1});
  EXPECT_TRUE(divided);
  return result;
}
uint32_t unary(const Kernels& kernels, Unary operation, uint32_t a) {
  uint32_t result = 0xDEAD;
  const FlushDenormals flush;
  kernels.unary[static_cast<size_t>(operation)]({reinterpret_cast<uint8_t*>(&a), 1, 1},
                                                {reinterpret_cast<uint8_t*>(&result), 1, 1}, {1, 1});
  return result;
}

class VmvxElementwise : public VmvxKernels {};
VMVX_FOR_EVERY_INSTRUCTION_SET(VmvxElementwise);

TEST_P(VmvxElementwise, Integers) {
  using enum Binary;
  struct {
    Binary operation;
    uint32_t a, b, result;
  } constexpr kCases[] = {
      {add_i32, 0xFFFFFFFF, 2, 1},
      {sub_i32, 1, 2, 0xFFFFFFFF},
      {mul_i32, 0x80000001, 3, 0x80000003},
      {divs_i32, static_cast<uint32_t>(-7), 2, static_cast<uint32_t>(-3)},
      {divs_i32, 7, static_cast<uint32_t>(-2), static_cast<uint32_t>(-3)},
      {divs_i32, 0x80000000, 0xFFFFFFFF, 0x80000000},
      {divs_i32, 0x80000000, 1, 0x80000000},
      {divs_i32, 0x80000000, 0x80000000, 1},
      {divs_i32, 0x7FFFFFFF, 0x80000000, 0},
      {divu_i32, 0x80000000, 0xFFFFFFFF, 0},
      {divu_i32, 0xFFFFFFFF, 1, 0xFFFFFFFF},
      {divu_i32, 0xFFFFFFFF, 0xFFFFFFFE, 1},
      {divu_i32, 0xFFFFFFFE, 0xFFFFFFFF, 0},
      {divu_i32, 4294967290, 3, 1431655763},
      {and_i32, 0xF0F0, 0xFF00, 0xF000},
      {or_i32, 0xF0F0, 0xFF00, 0xFFF0},
      {xor_i32, 0xF0F0, 0xFF00, 0x0FF0},
      {shl_i32, 1, 31, 0x80000000},
      {shl_i32, 3, 33, 6},
      {shl_i32, 1, 0xFFFFFFFF, 0x80000000},
      {shrs_i32, 0x80000000, 31, 0xFFFFFFFF},
      {shrs_i32, 0x80000000, 32, 0x80000000},
      {shru_i32, 0x80000000, 31, 1},
      {shru_i32, 0x80000000, 64, 0x80000000},
  };
  for (const auto& [operation, a, b, result] : kCases)
    EXPECT_EQ(binary(kernels(), operation, a, b), result)
        << static_cast<int>(operation) << " of " << a << ", " << b;
  struct {
    uint32_t of, zeros;
  } constexpr kZeros[] = {{0, 32},         {1, 31},         {2, 30},         {3, 30},
                          {0xFFFFFFFF, 0}, {0x80000000, 0}, {0x7FFFFFFF, 1}, {0x40000000, 1},
                          {0x00FFFFFF, 8}, {0x01FFFFFF, 7}, {0x01000000, 7}, {0x3FFFFFFF, 2}};
  for (const auto& [of, zeros] : kZeros) EXPECT_EQ(unary(kernels(), Unary::ctlz_i32, of), zeros) << of;
}

TEST_P(VmvxElementwise, DivisionByZeroIsReported) {
  for (const Binary operation : {Binary::divs_i32, Binary::divu_i32}) {
    for (size_t zero = 0; zero < 40; ++zero) {
      std::vector<uint32_t> a(40, 7), b(40, 3), c(40);
      b[zero] = 0;
      const auto* first = bytes_of(a);
      const auto* second = bytes_of(b);
      const BinaryKernel kernel = kernels().binary[static_cast<size_t>(operation)];
      EXPECT_FALSE(kernel({first, 40, 1}, {second, 40, 1}, {bytes_of(c), 40, 1}, {1, 40}));
      EXPECT_FALSE(kernel({first, 40, 1}, {second + zero * 4, 0, 0}, {bytes_of(c), 40, 1}, {1, 40}));
      // Bytes after the row are not read.
      EXPECT_TRUE(zero == 0 || kernel({first, 40, 1}, {second, 40, 1}, {bytes_of(c), 40, 1}, {1, zero}));
    }
  }
}

TEST_P(VmvxElementwise, FloatsWithDenormalsFlushed) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float denormal = 1e-40f;
  using enum Binary;
  EXPECT_EQ(binary(kernels(), add_f32, bits(denormal), bits(denormal)), 0u);
  EXPECT_EQ(binary(kernels(), add_f32, bits(1.5f), bits(2)), bits(3.5f));
  EXPECT_EQ(binary(kernels(), sub_f32, bits(1.5e-38f), bits(1.25e-38f)), 0u) << "a denormal result";
  EXPECT_EQ(binary(kernels(), mul_f32, bits(-0.0f), bits(3)), bits(-0.0f));
  EXPECT_EQ(binary(kernels(), mul_f32, bits(1e-30f), bits(1e-10f)), 0u);
  EXPECT_EQ(binary(kernels(), div_f32, bits(1), bits(denormal)), bits(infinity));
  EXPECT_TRUE(std::isnan(number(binary(kernels(), div_f32, 0, 0))));
  EXPECT_EQ(unary(kernels(), Unary::abs_f32, bits(-denormal)), bits(denormal)) << "bits only";
  EXPECT_EQ(unary(kernels(), Unary::neg_f32, bits(denormal)), bits(-denormal));
  EXPECT_EQ(unary(kernels(), Unary::abs_f32, kNaN | 0x80000000), kNaN);
  EXPECT_EQ(unary(kernels(), Unary::neg_f32, kNaN), kNaN | 0x80000000);
  struct {
    Unary operation;
    float of, result;
  } const kCases[] = {
      {Unary::ceil_f32, -1.5f, -1},
      {Unary::ceil_f32, 1.25f, 2},
      {Unary::ceil_f32, -0.25f, -0.0f},
      {Unary::ceil_f32, 3e9f, 3e9f},
      {Unary::ceil_f32, infinity, infinity},
      {Unary::floor_f32, -1.5f, -2},
      {Unary::floor_f32, 0.25f, 0},
      {Unary::floor_f32, -0.0f, -0.0f},
      {Unary::ceil_f32, denormal, 0},
      {Unary::floor_f32, -denormal, -0.0f},
      {Unary::exp_f32, 0, 1},
      {Unary::exp_f32, -infinity, 0},
      {Unary::exp_f32, infinity, infinity},
      {Unary::exp_f32, 89, infinity},
      {Unary::exp_f32, -88, 0},
      {Unary::exp_f32, 1, 2.7182818f},
      {Unary::exp_f32, 88.72283f, 3.4027985e38f},
      {Unary::log_f32, 1, 0},
      {Unary::log_f32, 0, -infinity},
      {Unary::log_f32, -0.0f, -infinity},
      {Unary::log_f32, infinity, infinity},
      {Unary::log_f32, denormal, -infinity},
      {Unary::log_f32, 2.7182817f, 0.99999994f},
      {Unary::rsqrt_f32, 4, 0.5f},
      {Unary::rsqrt_f32, 0, infinity},
      {Unary::rsqrt_f32, -0.0f, -infinity},
      {Unary::rsqrt_f32, infinity, 0},
  };
  for (const auto& [operation, of, result] : kCases)
    EXPECT_LE(steps_between(number(unary(kernels(), operation, bits(of))), result), 1)
        << static_cast<int>(operation) << " of " << of << ": "
        << number(unary(kernels(), operation, bits(of)));
  for (const Unary operation :
       {Unary::ceil_f32, Unary::floor_f32, Unary::exp_f32, Unary::log_f32, Unary::rsqrt_f32})
    EXPECT_TRUE(std::isnan(number(unary(kernels(), operation, kNaN)))) << static_cast<int>(operation);
  EXPECT_TRUE(std::isnan(number(unary(kernels(), Unary::log_f32, bits(-1)))));
  EXPECT_TRUE(std::isnan(number(unary(kernels(), Unary::rsqrt_f32, bits(-1)))));
}

// For all exponents, results equal the C library's in all but the last of 24 bits.
TEST_P(VmvxElementwise, ExpAndLogAgreeWithTheLibrary) {
  std::vector<uint32_t> in, out(1 << 16), right(1 << 16);
  for (uint32_t i = 0; i < 1 << 16; ++i) in.push_back(i << 16 | (i * 40503 & 0xFFFF));
  const auto run = [&](const Kernels& set, Unary operation, std::vector<uint32_t>& to) {
    const FlushDenormals flush;
    set.unary[static_cast<size_t>(operation)]({bytes_of(in), 256, 1}, {bytes_of(to), 256, 1}, {256, 256});
  };
  const auto compare = [&](Unary operation) {
    run(kernels(), operation, out);
    run(scalar_kernels(), operation, right);
    for (size_t i = 0; i < in.size(); ++i)
      ASSERT_LE(steps_between(number(out[i]), number(right[i])), 1)
          << static_cast<int>(operation) << " of " << number(in[i]);
  };
  compare(Unary::exp_f32);
  compare(Unary::log_f32);
  // More densely at common exponents.
  for (uint32_t i = 0; i < 1 << 16; ++i) in[i] = bits(static_cast<float>(static_cast<int>(i) - 32768) / 700);
  compare(Unary::exp_f32);
  for (uint32_t i = 0; i < 1 << 16; ++i) in[i] = bits(0.5f + static_cast<float>(i) / 65536);
  compare(Unary::log_f32);
}

// ---- All shapes: the operands are in one buffer, whose final bytes must be equal.

struct Placed {
  uint64_t offset, stride0, stride1;  // in elements; the offset in bytes
};
struct Problem {
  Placed a, b, out;
  uint64_t size0, size1;
};

Input input(std::vector<uint8_t>& bytes, const Placed& p) {
  return {bytes.data() + p.offset, p.stride0, p.stride1};
}
Output output(std::vector<uint8_t>& bytes, const Placed& p) {
  return {bytes.data() + p.offset, p.stride0, p.stride1};
}

constexpr size_t kBufferSize = 1 << 16;

std::vector<uint8_t> contents() {
  std::mt19937 random(11);
  std::vector<uint8_t> bytes(kBufferSize);
  for (size_t i = 0; i < kBufferSize; i += 4) {
    // Small integers that are not denormal as floats, and sometimes floats.
    const uint32_t value = random() % 3 == 0 ? random() : bits(static_cast<float>(random() % 1000) + 0.5f);
    store(bytes.data() + i, value);
  }
  return bytes;
}

std::vector<Problem> problems() {
  std::vector<Problem> list;
  std::mt19937 random(3);
  const uint64_t sizes[] = {1, 2, 3, 15, 16, 17, 31, 33, 40, 64};
  for (int i = 0; i < 600; ++i) {
    Problem p = {};
    p.size0 = sizes[random() % 10];
    p.size1 = sizes[random() % 10];
    const auto input = [&](uint64_t base) -> Placed {
      const uint64_t shift = random() % 8;
      switch (random() % 6) {
        case 0:
          return {base + shift, 0, 1};  // one row for all
        case 1:
          return {base + shift, 1, 0};  // one column for all
        case 2:
          return {base + shift, 0, 0};  // one element
        case 3:
          return {base + shift, 1, p.size0};  // transposed
        case 4:
          return {base + shift, p.size1 + 3, 1};
        default:
          return {base + shift, p.size1, 1};
      }
    };
    p.a = input(0);
    p.b = input(1 << 13);
    switch (random() % 8) {
      case 0:
        p.out = p.a;
        break;  // in place
      case 1:
        p.out = {p.a.offset + 4 * (1 + random() % 9), p.size1, 1};
        break;  // partially overlapping
      case 2:
        p.out = {1 << 14, 1, p.size0 + random() % 2};
        break;
      case 3:
        p.out = {1 << 14, p.size1 * 2 % 90, 2};
        break;
      case 4:
        p.out = {1 << 14, random() % 3, 1};
        break;  // rows overlap
      default:
        p.out = {(1 << 14) + random() % 5, p.size1 + random() % 2, 1};
        break;
    }
    list.push_back(p);
  }
  return list;
}

std::string text(const Problem& p) {
  const auto one = [](const Placed& o) {
    return fmt::format(" +{} [{},{}]", o.offset, o.stride0, o.stride1);
  };
  return fmt::format("{}x{}{}{}{}", p.size0, p.size1, one(p.a), one(p.b), one(p.out));
}

// Equal byte for byte or, for floats, nearly equal.
void expect_same(const std::vector<uint8_t>& found, const std::vector<uint8_t>& right, int64_t steps,
                 const Problem& p) {
  if (found == right) return;
  for (size_t i = 0; i + 4 <= found.size(); ++i) {
    // Compares bytes first, because elements may start anywhere.
    if (found[i] == right[i]) continue;
    const uint64_t at = i - (i - p.out.offset) % 4;
    const auto a = load<float>(found.data() + at);
    const auto b = load<float>(right.data() + at);
    ASSERT_TRUE((std::isnan(a) && std::isnan(b)) || steps_between(a, b) <= steps)
        << text(p) << " at byte " << i << ": " << a << ", not " << b;
  }
}

// Calls `run` with the kernels and with the plain loops, on copies of the same bytes. Returns the bytes of
// both.
template <typename Run>
std::pair<std::vector<uint8_t>, std::vector<uint8_t>> run_both(const Kernels& kernels, size_t size, Run run) {
  static const std::vector<uint8_t> before = contents();
  std::vector<uint8_t> found = before;
  found.resize(size, 1);
  std::vector<uint8_t> right = found;
  run(kernels, found);
  run(scalar_kernels(), right);
  return {std::move(found), std::move(right)};
}

TEST_P(VmvxElementwise, BinaryAgreesInEveryShape) {
  const FlushDenormals flush;
  size_t index = 0;
  for (const Problem& p : problems()) {
    const size_t operation = index++ % kBinaryCount;
    std::vector<bool> divided;
    const auto [found, right] = run_both(kernels(), kBufferSize, [&](const Kernels& set, auto& bytes) {
      divided.push_back(set.binary[operation](input(bytes, p.a), input(bytes, p.b), output(bytes, p.out),
                                              {p.size0, p.size1}));
    });
    ASSERT_EQ(divided[0], divided[1]) << text(p);
    if (!divided[0]) continue;
    ASSERT_NO_FATAL_FAILURE(expect_same(found, right, 0, p)) << operation;
  }
}

TEST_P(VmvxElementwise, UnaryAgreesInEveryShape) {
  const FlushDenormals flush;
  size_t index = 0;
  for (const Problem& p : problems()) {
    const size_t operation = index++ % kUnaryCount;
    const auto [found, right] = run_both(kernels(), kBufferSize, [&](const Kernels& set, auto& bytes) {
      set.unary[operation](input(bytes, p.a), output(bytes, p.out), {p.size0, p.size1});
    });
    // Differences may grow with overlapping operands, because results become inputs.
    const auto is = [&](Unary which) { return operation == static_cast<size_t>(which); };
    const bool exact = !is(Unary::exp_f32) && !is(Unary::log_f32);
    ASSERT_NO_FATAL_FAILURE(expect_same(found, right, exact ? 0 : 8, p)) << operation;
  }
}

template <typename T>
void compare_copies(const Kernels& kernels, size_t log2) {
  for (const Problem& p : problems()) {
    if (p.size0 * p.size1 * sizeof(T) > 1 << 13) continue;
    const auto [found, right] = run_both(kernels, kBufferSize * 4, [&](const Kernels& set, auto& bytes) {
      set.copy[log2](input(bytes, p.a), output(bytes, p.out), {p.size0, p.size1});
    });
    ASSERT_TRUE(found == right) << text(p) << " of " << sizeof(T);
  }
}

TEST_P(VmvxElementwise, CopiesAgreeInEveryShape) {
  compare_copies<uint8_t>(kernels(), 0);
  compare_copies<uint16_t>(kernels(), 1);
  compare_copies<uint32_t>(kernels(), 2);
  compare_copies<uint64_t>(kernels(), 3);
}

TEST_P(VmvxElementwise, LongRowsAreCopiedAndFilled) {
  for (const uint64_t size : {100u, 127u, 128u, 129u, 1000u, 70000u}) {
    for (const uint64_t shift : {0u, 1u, 7u}) {
      std::vector<uint32_t> from(size + 8), to(size + 8, 5);
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint32_t>(i * 2654435761u);
      auto* const target = bytes_of(to) + shift;
      kernels().copy[2]({bytes_of(from) + 3, size, 1}, {target, size, 1}, {1, size});
      ASSERT_EQ(std::memcmp(target, bytes_of(from) + 3, size * 4), 0);
      for (const uint32_t value : {0u, 0x7F7F7F7Fu, 0x01020304u}) {
        std::vector<uint32_t> filled(size + 8, 5), right(size + 8, 5);
        kernels().fill(value, {bytes_of(filled) + shift, size, 1}, {1, size});
        scalar_kernels().fill(value, {bytes_of(right) + shift, size, 1}, {1, size});
        ASSERT_TRUE(filled == right);
      }
    }
  }
}

// Past the caches: vectors are written around them from the first aligned address on, elements before and
// after it one by one.
TEST_P(VmvxElementwise, FillsLargerThanCachesWriteNothingElse) {
  constexpr size_t kElements = (size_t{1} << 24) / 4;
  std::vector<uint8_t> bytes((kElements + 60) * 4);
  for (const size_t shift : {0u, 4u, 60u, 2u}) {
    for (const size_t size : {kElements, kElements + 17, kElements - 1}) {
      std::ranges::fill(bytes, uint8_t{5});
      kernels().fill(0x01020304, {bytes.data() + 64 + shift, size, 1}, {1, size});
      const auto element = [&](size_t i) { return load<uint32_t>(bytes.data() + 64 + shift + i * 4); };
      size_t first_wrong = 0;
      while (first_wrong < size && element(first_wrong) == 0x01020304) ++first_wrong;
      EXPECT_EQ(first_wrong, size) << shift;
      EXPECT_EQ(load<uint32_t>(bytes.data() + 60 + shift), 0x05050505u) << shift << " before";
      EXPECT_EQ(element(size), 0x05050505u) << shift << " after";
    }
  }
}

TEST_P(VmvxElementwise, FillsAgreeInEveryShape) {
  for (const Problem& p : problems())
    for (const uint32_t value : {0xFFFFFFFFu, 0x12345678u}) {
      const auto [found, right] = run_both(kernels(), kBufferSize, [&](const Kernels& set, auto& bytes) {
        set.fill(value, {bytes.data() + p.out.offset, p.out.stride0, 1}, {p.size0, p.size1});
      });
      ASSERT_TRUE(found == right) << text(p);
    }
}

}  // namespace
}  // namespace halyard::local::vmvx
