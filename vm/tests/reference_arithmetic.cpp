// The arithmetic instructions of the reference machine: isa.md, 4, 5.1 to 5.3, 5.11.
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "reference_interpreter.h"
#include "vm/elementary/functions.h"

namespace halyard::vm::test {

namespace {

// Reads one operand after another, in the order of their encoding.
uint32_t next_i32(ReferenceFrame& frame) { return frame.narrow(frame.u16()); }
uint64_t next_i64(ReferenceFrame& frame) { return frame.wide(frame.u16()); }
float next_f32(ReferenceFrame& frame) { return std::bit_cast<float>(next_i32(frame)); }
double next_f64(ReferenceFrame& frame) { return std::bit_cast<double>(next_i64(frame)); }
template <typename T>
T next(ReferenceFrame& frame) {
  if constexpr (std::is_same_v<T, float>)
    return next_f32(frame);
  else if constexpr (std::is_same_v<T, double>)
    return next_f64(frame);
  else if constexpr (sizeof(T) == 8)
    return static_cast<T>(next_i64(frame));
  else
    return static_cast<T>(next_i32(frame));
}
// The result, with the width of its type.
void result(ReferenceFrame& frame, int32_t value) {
  frame.set_narrow(frame.u16(), static_cast<uint32_t>(value));
}
void result(ReferenceFrame& frame, uint32_t value) { frame.set_narrow(frame.u16(), value); }
void result(ReferenceFrame& frame, int64_t value) {
  frame.set_wide(frame.u16(), static_cast<uint64_t>(value));
}
void result(ReferenceFrame& frame, uint64_t value) { frame.set_wide(frame.u16(), value); }
void result(ReferenceFrame& frame, float value) {
  frame.set_narrow(frame.u16(), std::bit_cast<uint32_t>(value));
}
void result(ReferenceFrame& frame, double value) {
  frame.set_wide(frame.u16(), std::bit_cast<uint64_t>(value));
}

template <typename F>
bool distinct_nans(F a, F b) {
  using Bits = std::conditional_t<sizeof(F) == sizeof(uint32_t), uint32_t, uint64_t>;
  return std::isnan(a) && std::isnan(b) && std::bit_cast<Bits>(a) != std::bit_cast<Bits>(b);
}

// Of two different NaNs, the processor keeps the first operand, and the compiler chooses the order.
template <typename F, typename Compute>
void float_binary(ReferenceFrame& frame, bool& unspecified, Compute compute) {
  const F a = next<F>(frame);
  const F b = next<F>(frame);
  if (distinct_nans(a, b)) unspecified = true;
  result(frame, static_cast<F>(compute(a, b)));
}

template <typename F>
void float_fma(ReferenceFrame& frame, bool& unspecified) {
  const F a = next<F>(frame);
  const F b = next<F>(frame);
  const F c = next<F>(frame);
  volatile F product = a * b;  // rounded separately
  const F kept = product;
  if (distinct_nans(a, b) || distinct_nans(kept, c)) unspecified = true;
  result(frame, static_cast<F>(kept + c));
}

// Two's complement for all operands.
template <typename T>
Code divide(ReferenceFrame& frame, bool remainder) {
  const T a = next<T>(frame);
  const T b = next<T>(frame);
  if (b == 0) return Code::INVALID_ARGUMENT;
  if (std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == static_cast<T>(-1)) {
    result(frame, remainder ? T{0} : a);
  } else {
    result(frame, static_cast<T>(remainder ? a % b : a / b));
  }
  return Code::OK;
}

template <typename T>
void absolute(ReferenceFrame& frame) {
  const T a = next<T>(frame);
  result(frame, a >= 0 || a == std::numeric_limits<T>::min() ? a : static_cast<T>(-a));
}

template <typename T, typename Count>
Count leading_zeros(T value) {
  Count zeros = 0;
  for (T bit = T{1} << (sizeof(T) * 8 - 1); bit != 0 && !(value & bit); bit >>= 1) ++zeros;
  return zeros;
}

// Like `round`, then from an odd half one towards zero.
template <typename F>
F round_half_even(F x) {
  F r = std::round(x);
  if (std::fabs(x - r) == F(0.5) && std::fmod(r, F(2)) != 0) r += r > 0 ? F(-1) : F(1);
  return r;
}

template <typename F>
int64_t to_i64(F x) {
  const F r = std::round(x);
  if (std::isnan(r) || r < F(-9223372036854775808.0) || r >= F(9223372036854775808.0))
    return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(r);
}

// i64 lacks the range from 2^63 on. Above the range of ui64 the result depends on the host, and is 0 here.
uint64_t to_u64(float x) {
  const float r = std::round(x);
  if (r >= 18446744073709551616.0f) return 0;
  if (r >= 9223372036854775808.0f) return static_cast<uint64_t>(r);
  return static_cast<uint64_t>(to_i64(x));
}

template <typename Load, typename Store>
void choose(ReferenceFrame& frame, Load load, Store store) {
  const bool condition = next_i32(frame) != 0;
  const auto a = load(frame.u16());
  const auto b = load(frame.u16());
  store(frame.u16(), condition ? a : b);
}

template <typename Load, typename Store>
void choose_from_list(ReferenceFrame& frame, Load load, Store store) {
  const int32_t index = static_cast<int32_t>(next_i32(frame));
  const auto fallback = load(frame.u16());
  const std::vector<uint16_t> values = frame.list();
  const bool listed = index >= 0 && index < static_cast<int32_t>(values.size());
  store(frame.u16(), listed ? load(values[static_cast<size_t>(index)]) : fallback);
}

template <typename F>
bool unordered(F a, F b) {
  return std::isnan(a) || std::isnan(b);
}

}  // namespace

// result = an expression of x (and y).
#define UNARY(op, type, expression)   \
  case Op::op: {                      \
    const auto x = next<type>(frame); \
    result(frame, expression);        \
    break;                            \
  }
#define BINARY(op, type, expression)  \
  case Op::op: {                      \
    const auto x = next<type>(frame); \
    const auto y = next<type>(frame); \
    result(frame, expression);        \
    break;                            \
  }
#define SHIFT(op, type, mask, expression)      \
  case Op::op: {                               \
    const auto x = next<type>(frame);          \
    const uint32_t y = next_i32(frame) & mask; \
    result(frame, expression);                 \
    break;                                     \
  }
#define FUSED(op, type)               \
  case Op::op: {                      \
    const auto x = next<type>(frame); \
    const auto y = next<type>(frame); \
    const auto z = next<type>(frame); \
    result(frame, x* y + z);          \
    break;                            \
  }
#define DIVIDE(op, type, remainder)          \
  case Op::op:                               \
    status = divide<type>(frame, remainder); \
    break;
#define IN(expression) \
  int32_t { expression }

#define INTEGERS(i, unsigned_type, signed_type)                                    \
  BINARY(add_##i, unsigned_type, x + y)                                            \
  BINARY(sub_##i, unsigned_type, x - y)                                            \
  BINARY(mul_##i, unsigned_type, x* y)                                             \
  DIVIDE(div_##i##_s, signed_type, false)                                          \
  DIVIDE(div_##i##_u, unsigned_type, false)                                        \
  DIVIDE(rem_##i##_s, signed_type, true)                                           \
  DIVIDE(rem_##i##_u, unsigned_type, true)                                         \
  FUSED(fma_##i, unsigned_type)                                                    \
  UNARY(not_##i, unsigned_type, ~x)                                                \
  BINARY(and_##i, unsigned_type, x& y)                                             \
  BINARY(or_##i, unsigned_type, x | y)                                             \
  BINARY(xor_##i, unsigned_type, x ^ y)                                            \
  SHIFT(shl_##i, unsigned_type, (sizeof x * 8 - 1), x << y)                        \
  SHIFT(shr_##i##_s, signed_type, (sizeof x * 8 - 1), x >> y)                      \
  SHIFT(shr_##i##_u, unsigned_type, (sizeof x * 8 - 1), x >> y)                    \
  UNARY(ctlz_##i, unsigned_type, (leading_zeros<unsigned_type, unsigned_type>(x))) \
  case Op::abs_##i:                                                                \
    absolute<signed_type>(frame);                                                  \
    break;                                                                         \
    BINARY(min_##i##_s, signed_type, x < y ? x : y)                                \
    BINARY(min_##i##_u, unsigned_type, x < y ? x : y)                              \
    BINARY(max_##i##_s, signed_type, x > y ? x : y)                                \
    BINARY(max_##i##_u, unsigned_type, x > y ? x : y)                              \
    BINARY(cmp_eq_##i, unsigned_type, IN(x == y))                                  \
    BINARY(cmp_ne_##i, unsigned_type, IN(x != y))                                  \
    BINARY(cmp_lt_##i##_s, signed_type, IN(x < y))                                 \
    BINARY(cmp_lt_##i##_u, unsigned_type, IN(x < y))                               \
    UNARY(cmp_nz_##i, unsigned_type, IN(x != 0))

#define FLOAT_BINARY(op, type, expression)                                             \
  case Op::op:                                                                         \
    float_binary<type>(frame, unspecified, [](type x, type y) { return expression; }); \
    break;

#define FLOATS(f, type, bits, sign)                              \
  FLOAT_BINARY(add_##f, type, x + y)                             \
  FLOAT_BINARY(sub_##f, type, x - y)                             \
  FLOAT_BINARY(mul_##f, type, x* y)                              \
  FLOAT_BINARY(div_##f, type, x / y)                             \
  FLOAT_BINARY(rem_##f, type, std::remainder(x, y))              \
  FLOAT_BINARY(atan2_##f, type, arctangent_of_point(x, y))       \
  FLOAT_BINARY(pow_##f, type, power(x, y))                       \
  case Op::fma_##f:                                              \
    float_fma<type>(frame, unspecified);                         \
    break;                                                       \
    UNARY(abs_##f, bits, x & ~(sign))                            \
    UNARY(neg_##f, bits, x ^ (sign))                             \
    BINARY(min_##f, type, y < x ? y : x)                         \
    BINARY(max_##f, type, x < y ? y : x)                         \
    UNARY(ceil_##f, type, std::ceil(x))                          \
    UNARY(floor_##f, type, std::floor(x))                        \
    UNARY(round_##f, type, std::round(x))                        \
    UNARY(round_##f##_even, type, round_half_even(x))            \
    UNARY(atan_##f, type, arctangent(x))                         \
    UNARY(cos_##f, type, cosine(x))                              \
    UNARY(sin_##f, type, sine(x))                                \
    UNARY(exp_##f, type, exponential(x))                         \
    UNARY(exp2_##f, type, binary_exponential(x))                 \
    UNARY(expm1_##f, type, exponential_less_one(x))              \
    UNARY(log_##f, type, natural_logarithm(x))                   \
    UNARY(log10_##f, type, decimal_logarithm(x))                 \
    UNARY(log1p_##f, type, logarithm_of_one_plus(x))             \
    UNARY(log2_##f, type, binary_logarithm(x))                   \
    UNARY(rsqrt_##f, type, type(1) / std::sqrt(x))               \
    UNARY(sqrt_##f, type, std::sqrt(x))                          \
    UNARY(tanh_##f, type, hyperbolic_tangent(x))                 \
    UNARY(erf_##f, type, error_function(x))                      \
    BINARY(cmp_eq_##f##_o, type, IN(x == y))                     \
    BINARY(cmp_eq_##f##_u, type, IN(unordered(x, y) || x == y))  \
    BINARY(cmp_ne_##f##_o, type, IN(x != y))                     \
    BINARY(cmp_ne_##f##_u, type, IN(x != y))                     \
    BINARY(cmp_lt_##f##_o, type, IN(x < y))                      \
    BINARY(cmp_lt_##f##_u, type, IN(unordered(x, y) || x < y))   \
    BINARY(cmp_lte_##f##_o, type, IN(x <= y))                    \
    BINARY(cmp_lte_##f##_u, type, IN(unordered(x, y) || x <= y)) \
    UNARY(cmp_nan_##f, type, IN(x != x))

bool reference_arithmetic(ReferenceFrame& frame, Op op, Code& status, bool& unspecified) {
  const auto load_32 = [&](uint16_t reg) { return frame.narrow(reg); };
  const auto load_64 = [&](uint16_t reg) { return frame.wide(reg); };
  const auto store_32 = [&](uint16_t reg, uint32_t value) { frame.set_narrow(reg, value); };
  const auto store_64 = [&](uint16_t reg, uint64_t value) { frame.set_wide(reg, value); };
  status = Code::OK;
  switch (op) {
    case Op::const_i32_zero:
    case Op::const_f32_zero:
      result(frame, uint32_t{0});
      break;
    case Op::const_i64_zero:
    case Op::const_f64_zero:
      result(frame, uint64_t{0});
      break;
    case Op::const_i32:
    case Op::const_f32:
      result(frame, frame.u32());
      break;
    case Op::const_i64:
    case Op::const_f64:
      result(frame, frame.u64());
      break;
    case Op::select_i32:
    case Op::select_f32:
      choose(frame, load_32, store_32);
      break;
    case Op::select_i64:
    case Op::select_f64:
      choose(frame, load_64, store_64);
      break;
    case Op::switch_i32:
    case Op::switch_f32:
      choose_from_list(frame, load_32, store_32);
      break;
    case Op::switch_i64:  // the whole value: ruling 2
    case Op::switch_f64:
      choose_from_list(frame, load_64, store_64);
      break;
      INTEGERS(i32, uint32_t, int32_t)
      INTEGERS(i64, uint64_t, int64_t)
      UNARY(trunc_i32_i8, uint32_t, x & 0xFF)
      UNARY(trunc_i32_i16, uint32_t, x & 0xFFFF)
      UNARY(trunc_i64_i32, uint64_t, static_cast<uint32_t>(x & 0xFFFFFFFF))
      UNARY(ext_i8_i32_s, uint32_t, (x & 0x80) ? x | 0xFFFFFF00 : x & 0xFF)
      UNARY(ext_i8_i32_u, uint32_t, x & 0xFF)
      UNARY(ext_i16_i32_s, uint32_t, (x & 0x8000) ? x | 0xFFFF0000 : x & 0xFFFF)
      UNARY(ext_i16_i32_u, uint32_t, x & 0xFFFF)
      UNARY(ext_i32_i64_s, uint32_t, (x >> 31) ? x | 0xFFFFFFFF00000000 : uint64_t{x})
      UNARY(ext_i32_i64_u, uint32_t, uint64_t{x})
      FLOATS(f32, float, uint32_t, uint32_t{1} << 31)
      FLOATS(f64, double, uint64_t, uint64_t{1} << 63)
      UNARY(bitcast_i32_f32, uint32_t, x)
      UNARY(bitcast_f32_i32, uint32_t, x)
      UNARY(bitcast_i64_f64, uint64_t, x)
      UNARY(bitcast_f64_i64, uint64_t, x)
      UNARY(cast_si32_f32, int32_t, static_cast<float>(x))
      UNARY(cast_ui32_f32, uint32_t, static_cast<float>(x))
      UNARY(cast_si64_f32, int64_t, static_cast<float>(x))
      UNARY(cast_ui64_f32, uint64_t, static_cast<float>(x))
      UNARY(cast_si32_f64, int32_t, static_cast<double>(x))
      UNARY(cast_ui32_f64, uint32_t, static_cast<double>(x))
      UNARY(cast_si64_f64, int64_t, static_cast<double>(x))
      UNARY(cast_ui64_f64, uint64_t, static_cast<double>(x))
      UNARY(cast_f32_si32, float, static_cast<uint32_t>(to_i64(x)))
      UNARY(cast_f32_ui32, float, static_cast<uint32_t>(to_i64(x)))
      UNARY(cast_f32_si64, float, to_i64(x))
      UNARY(cast_f32_ui64, float, to_u64(x))
      UNARY(cast_f64_si32, double, static_cast<uint32_t>(to_i64(static_cast<float>(x))))
      UNARY(cast_f64_ui32, double, static_cast<uint32_t>(to_i64(static_cast<float>(x))))
      UNARY(cast_f64_si64, double, to_i64(x))
      UNARY(cast_f64_ui64, double, to_i64(x))
      UNARY(trunc_f64_f32, double, static_cast<float>(x))
      UNARY(ext_f32_f64, float, static_cast<double>(x))
    default:
      return false;
  }
  return true;
}

}  // namespace halyard::vm::test
