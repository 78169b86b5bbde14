// The arithmetic of reductions: combines the contributions of all ranks in the order of the ranks. Specified
// by halyard/channel.h, "Collectives".
#ifndef HALYARD_CHANNEL_REDUCE_HPP_
#define HALYARD_CHANNEL_REDUCE_HPP_

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "halyard/channel.h"
#include "halyard/channel/small_float.hpp"

namespace halyard::channel {

namespace internal {

// The storage of an element type, and the type in which it is combined.
template <typename T>
struct Plain {
  using Stored = T;
  using Value = T;
  static T load(T stored) { return stored; }
  // Stores every NaN as the same bits, because compilers may exchange the operands of a sum, and so the sign
  // of a NaN.
  static T store(T value) {
    if constexpr (std::is_floating_point_v<T>)
      return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
    return value;
  }
};
// Averages of integers.
template <typename T>
struct Wide {
  using Stored = T;
  using Value = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  static Value load(T stored) { return stored; }
  static T store(Value value) { return static_cast<T>(value); }
};
template <FloatFormat format, typename Code>
struct Small {
  using Stored = Code;
  using Value = float;
  static float load(Code stored) { return widen<format>(stored); }
  static Code store(float value) { return static_cast<Code>(round_to<format>(value)); }
};

// Signed integers wrap around. Small integers are not promoted to int.
template <typename T>
using Wrapping = std::conditional_t<std::is_floating_point_v<T>, T,
                                    std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>>;

struct Sum {
  template <typename T>
  static T combine(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Product {
  template <typename T>
  static T combine(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct Minimum {
  template <typename T>
  static T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
      if (a == b) return std::signbit(a) ? a : b;
    }
    return b < a ? b : a;
  }
};
struct Maximum {
  template <typename T>
  static T combine(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
      if (a == b) return std::signbit(a) ? b : a;
    }
    return a < b ? b : a;
  }
};

// Elements of a block; a block's intermediate values fit in the first-level cache.
inline constexpr size_t kBlock = 1024;

template <typename Element, typename Operation, bool average>
void reduce(std::span<const void* const> inputs, void* output, uint64_t count) {
  using Stored = typename Element::Stored;
  using Value = typename Element::Value;
  Value values[kBlock];
  for (uint64_t at = 0; at < count; at += kBlock) {
    const size_t size = static_cast<size_t>(std::min<uint64_t>(kBlock, count - at));
    const Stored* first = static_cast<const Stored*>(inputs[0]) + at;
    size_t next = 1;
    if (inputs.size() == 1) {
      for (size_t i = 0; i < size; ++i) values[i] = Element::load(first[i]);
    } else {
      const Stored* second = static_cast<const Stored*>(inputs[next++]) + at;
      for (size_t i = 0; i < size; ++i)
        values[i] = Operation::combine(Element::load(first[i]), Element::load(second[i]));
    }
    for (; next < inputs.size(); ++next) {
      const Stored* other = static_cast<const Stored*>(inputs[next]) + at;
      for (size_t i = 0; i < size; ++i) values[i] = Operation::combine(values[i], Element::load(other[i]));
    }
    if constexpr (average) {
      const auto ranks = static_cast<Value>(inputs.size());
      for (size_t i = 0; i < size; ++i) values[i] = values[i] / ranks;
    }
    Stored* const to = static_cast<Stored*>(output) + at;
    for (size_t i = 0; i < size; ++i) to[i] = Element::store(values[i]);
  }
}

using Function = void (*)(std::span<const void* const> inputs, void* output, uint64_t count);

template <typename Element, typename Averaged = Element>
Function function_of(uint32_t reduction) {
  switch (reduction) {
    case HALYARD_REDUCTION_SUM:
      return reduce<Element, Sum, false>;
    case HALYARD_REDUCTION_PRODUCT:
      return reduce<Element, Product, false>;
    case HALYARD_REDUCTION_MINIMUM:
      return reduce<Element, Minimum, false>;
    case HALYARD_REDUCTION_MAXIMUM:
      return reduce<Element, Maximum, false>;
    case HALYARD_REDUCTION_AVERAGE:
      return reduce<Averaged, Sum, true>;
    default:
      return nullptr;
  }
}

template <typename T>
Function function_of_integer(uint32_t reduction) {
  return function_of<Plain<T>, Wide<T>>(reduction);
}

inline Function function_for(uint32_t element, uint32_t reduction) {
  switch (element) {
    case HALYARD_COLLECTIVE_SINT_8:
      return function_of_integer<int8_t>(reduction);
    case HALYARD_COLLECTIVE_UINT_8:
      return function_of_integer<uint8_t>(reduction);
    case HALYARD_COLLECTIVE_SINT_16:
      return function_of_integer<int16_t>(reduction);
    case HALYARD_COLLECTIVE_UINT_16:
      return function_of_integer<uint16_t>(reduction);
    case HALYARD_COLLECTIVE_SINT_32:
      return function_of_integer<int32_t>(reduction);
    case HALYARD_COLLECTIVE_UINT_32:
      return function_of_integer<uint32_t>(reduction);
    case HALYARD_COLLECTIVE_SINT_64:
      return function_of_integer<int64_t>(reduction);
    case HALYARD_COLLECTIVE_UINT_64:
      return function_of_integer<uint64_t>(reduction);
    case HALYARD_COLLECTIVE_FLOAT_16:
      return function_of<Small<kFloat16, uint16_t>>(reduction);
    case HALYARD_COLLECTIVE_FLOAT_32:
      return function_of<Plain<float>>(reduction);
    case HALYARD_COLLECTIVE_FLOAT_64:
      return function_of<Plain<double>>(reduction);
    case HALYARD_COLLECTIVE_BFLOAT_16:
      return function_of<Small<kBfloat16, uint16_t>>(reduction);
    case HALYARD_COLLECTIVE_FLOAT_8_E5M2:
      return function_of<Small<kFloat8E5M2, uint8_t>>(reduction);
    case HALYARD_COLLECTIVE_FLOAT_8_E4M3FN:
      return function_of<Small<kFloat8E4M3FN, uint8_t>>(reduction);
    case HALYARD_COLLECTIVE_FLOAT_8_E5M2FNUZ:
      return function_of<Small<kFloat8E5M2FNUZ, uint8_t>>(reduction);
    case HALYARD_COLLECTIVE_FLOAT_8_E4M3FNUZ:
      return function_of<Small<kFloat8E4M3FNUZ, uint8_t>>(reduction);
    default:
      return nullptr;
  }
}

}  // namespace internal

// Reduces `count` elements of each input. There is one input for each rank, in order, and at least one.
// `output` may be one of the inputs, but must not overlap another. Pointers are multiples of the element's
// size.
inline void reduce(uint32_t element, uint32_t reduction, std::span<const void* const> inputs, void* output,
                   uint64_t count) {
  internal::function_for(element, reduction)(inputs, output, count);
}

}  // namespace halyard::channel

#endif  // HALYARD_CHANNEL_REDUCE_HPP_
