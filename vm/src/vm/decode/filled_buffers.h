// Finds buffers that a function allocates and fills before anything reads them: a nest of loops stores to
// each element, or a call writes all bytes. Such a buffer need not be 0 at first, whichever engine runs the
// code.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vm/decode/call_writes.h"
#include "vm/decode/words.h"
#include "vm/module/module.h"

namespace halyard::vm {

// In the result register of a buffer.alloc word: the buffer is filled.
inline constexpr uint16_t kFilledBit = 0x4000;

struct KnownCalls {
  std::span<const Import> imports;  // the module's
  CallWritesOf writes = nullptr;
};

// The words of the allocations of such buffers. The instructions must not be fused.
std::vector<uint32_t> find_filled_buffers(std::span<const Word> words, std::span<const uint16_t> lists,
                                          uint32_t ref_slots, const KnownCalls& calls);

}  // namespace halyard::vm
