// The codes of statuses with which kernels fail (halyard/status.h).
#pragma once

#include <cstdint>

namespace halyard::jit {

inline constexpr int32_t kInvalidArgument = 3;
inline constexpr int32_t kPermissionDenied = 7;
inline constexpr int32_t kResourceExhausted = 8;
inline constexpr int32_t kOutOfRange = 11;
inline constexpr int32_t kInternal = 13;

}  // namespace halyard::jit
