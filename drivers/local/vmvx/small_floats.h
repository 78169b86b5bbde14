// 16-bit floats as bits, for the plain loops: halyard/small_floats.hpp, with NaNs that keep their bits.
#pragma once

#include <cstdint>

#include "halyard/small_floats.hpp"

namespace halyard::local::vmvx {

inline float f16_to_f32(uint16_t bits) {
  return small_floats::widen<small_floats::kF16, small_floats::NanBits::kept>(bits);
}
inline uint16_t f32_to_f16(float value) {
  return static_cast<uint16_t>(small_floats::narrow<small_floats::kF16, small_floats::NanBits::kept>(value));
}
inline float bf16_to_f32(uint16_t bits) {
  return small_floats::widen<small_floats::kBf16, small_floats::NanBits::kept>(bits);
}
inline uint16_t f32_to_bf16(float value) {
  return static_cast<uint16_t>(small_floats::narrow<small_floats::kBf16, small_floats::NanBits::kept>(value));
}

}  // namespace halyard::local::vmvx
