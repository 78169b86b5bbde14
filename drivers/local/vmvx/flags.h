// The flags of microkernels (exec-vmvx.md, 5.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels.h"

namespace halyard::local::vmvx {

inline constexpr uint32_t kTypeMask = 0xFF;

// Of matrix products.
inline constexpr uint32_t kAccumulate = 0x100;
inline constexpr uint32_t kSkipRounding = 0x400;

struct ProductType {
  uint32_t flag;
  Mmt4dType type;
  uint64_t operand_size, result_size;  // bytes per element
};
inline constexpr ProductType kProductTypes[] = {{1, Mmt4dType::f32f32f32, 4, 4},
                                                {2, Mmt4dType::s8s8s32, 1, 4}};

// Of packing and unpacking.
inline constexpr uint32_t kInnerTransposed = 0x100;
inline constexpr uint32_t kOuterTransposed = 0x200;
// Log2 of an element's size in bytes; absent if there is no such type.
constexpr std::optional<size_t> element_size_log2(uint32_t flags) {
  switch (flags & kTypeMask) {
    case 1:  // f32
    case 3:  // i32
      return 2;
    case 2:  // i8
      return 0;
    default:
      return std::nullopt;
  }
}

}  // namespace halyard::local::vmvx
