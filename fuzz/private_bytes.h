// The bytes of an input, like those of a mapped file: in separate memory, to which devices may write. They
// end where the memory ends, so that AddressSanitizer detects a read beyond them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"

namespace halyard::fuzz {

inline Ref<Bytes> private_bytes(std::span<const uint8_t> input) {
  // Keeps the distance from an aligned address, because alignment is checked.
  const size_t shift = reinterpret_cast<uintptr_t>(input.data()) % 16;
  const std::shared_ptr<uint8_t[]> memory(new uint8_t[shift + input.size()]);
  std::ranges::copy(input, memory.get() + shift);
  return make<Bytes>(std::span<const uint8_t>(memory.get() + shift, input.size()), [memory] {}, true);
}

}  // namespace halyard::fuzz
