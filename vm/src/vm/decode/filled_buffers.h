// Finds buffers that a function allocates and fills before anything reads them: a nest of loops stores to
// each element. Such a buffer need not be 0 at first, whichever engine runs the code.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vm/decode/words.h"

namespace halyard::vm {

// In the result register of a buffer.alloc word: the buffer is filled.
inline constexpr uint16_t kFilledBit = 0x4000;

// The words of the allocations of such buffers. The instructions must not be fused.
std::vector<uint32_t> find_filled_buffers(std::span<const Word> words, std::span<const uint16_t> lists,
                                          uint32_t ref_slots);

}  // namespace halyard::vm
