// Floats of 16 and 8 bits in reductions: halyard/small_floats.hpp, with one NaN for all.
#ifndef HALYARD_CHANNEL_SMALL_FLOAT_HPP_
#define HALYARD_CHANNEL_SMALL_FLOAT_HPP_

#include <cstdint>

#include "halyard/small_floats.hpp"

namespace halyard::channel {

using FloatFormat = small_floats::Format;

inline constexpr FloatFormat kFloat16 = small_floats::kF16;
inline constexpr FloatFormat kBfloat16 = small_floats::kBf16;
inline constexpr FloatFormat kFloat8E5M2 = small_floats::kF8E5M2;
inline constexpr FloatFormat kFloat8E4M3FN = small_floats::kF8E4M3FN;
inline constexpr FloatFormat kFloat8E5M2FNUZ = small_floats::kF8E5M2FNUZ;
inline constexpr FloatFormat kFloat8E4M3FNUZ = small_floats::kF8E4M3FNUZ;

template <FloatFormat format>
constexpr float widen(uint32_t code) {
  return small_floats::widen<format>(code);
}

// Compilers exchange the operands of a sum, and the sign of a NaN with them: no NaN has a sign.
template <FloatFormat format>
constexpr uint32_t round_to(float value) {
  return value != value ? format.nan : small_floats::narrow<format>(value);
}

}  // namespace halyard::channel

#endif  // HALYARD_CHANNEL_SMALL_FLOAT_HPP_
