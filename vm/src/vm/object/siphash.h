// SipHash-2-4, the keyed hash function of buffer.hash.
#pragma once

#include <cstdint>
#include <span>

namespace halyard::vm {

// The 16-byte key is 00 01 .. 0F, fixed by the instruction set.
uint64_t siphash(std::span<const uint8_t> bytes);

}  // namespace halyard::vm
