// Bits and numbers of the HAL as programs use them. Specified by hal-types.md. halyard/driver.h defines those
// that drivers use.
#pragma once

#include <cstdint>
#include <string>

#include "halyard/driver.h"

namespace halyard::hal {

inline constexpr uint64_t kWholeLength = UINT64_MAX;  // -1: "to the end"
inline constexpr uint64_t kAnyQueue = UINT64_MAX;

enum Access : uint32_t { kRead = 1, kWrite = 2, kDiscard = 4, kDiscardWrite = 6, kAccessAll = 7 };

enum CommandBufferMode : uint32_t {
  kOneShot = 1,
  kAllowInline = 0x10,
  kUnvalidated = 0x20,
  kUnretained = 0x40
};
enum CommandCategory : uint32_t { kTransfer = 1, kDispatchCategory = 2 };

inline constexpr uint64_t kAllocaIndeterminateLifetime = 1;
inline constexpr uint64_t kDeallocaPreferOrigin = 1;

// "HOST_VISIBLE|DEVICE_VISIBLE", for messages; "NONE" for 0; unknown bits in hex.
std::string memory_type_text(uint32_t bits);
std::string usage_text(uint32_t bits);
std::string access_text(uint32_t bits);

}  // namespace halyard::hal
