// SipHash-2-4: the keyed hash of buffer.hash.
#pragma once

#include <cstdint>
#include <span>

namespace halyard::vm {

// With the 16-byte key 00 01 .. 0F, which is part of the instruction set.
uint64_t siphash(std::span<const uint8_t> bytes);

}  // namespace halyard::vm
