// SpareBlocks: memory of released buffers, kept for buffers that are allocated later, with room for the
// buffer object itself. Only the bytes that a buffer may have written are cleared again. One thread at a
// time; outlives the buffers that use it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/budget.h"

namespace halyard::vm {

class SpareBlocks {
 public:
  static constexpr uint64_t kAlignment = 64;               // of the data
  static constexpr uint64_t kHeader = 128;                 // bytes for the object, at the beginning
  static constexpr uint64_t kMaxKept = uint64_t{2} << 20;  // bytes of data of all kept blocks
  static constexpr size_t kBlocks = 32;

  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  struct Block {
    std::unique_ptr<uint8_t[], Free> memory;  // null: none
    uint64_t bytes = 0;                       // of data
    uint64_t written = 0;                     // only the first ones may be other than 0
    Charge charge;                            // stays while the block is kept

    uint8_t* data() const { return data_of(memory.get()); }
  };
  static uint8_t* data_of(uint8_t* memory) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory) + kHeader;
    return memory + kHeader + (-address & (kAlignment - 1));
  }

  // Whether buffers of this size and alignment come from blocks.
  static bool has(uint64_t bytes, uint64_t alignment) { return bytes <= kMaxKept && alignment <= kAlignment; }
  // Puts a kept block of at least `length` bytes and less than twice as many, or a new one, in `block`, which
  // has none. New ones are charged to the budget (may be null). The data is 0 if `clears` is set.
  Result<> take(uint64_t length, Budget* budget, bool clears, Block& block);
  // Keeps the block, or frees it if there is no room.
  void give(Block block);
  // Frees all kept blocks. Returns whether there was one.
  bool trim();
  ~SpareBlocks() { trim(); }

  size_t kept_blocks() const { return count_; }

 private:
  bool take_kept(uint64_t bytes, Block& block);
  Result<> make_block(uint64_t bytes, Budget* budget, Block& block);

  std::array<Block, kBlocks> blocks_;  // the last one given is the last of the first `count_`
  size_t count_ = 0;
  uint64_t kept_ = 0;
};

}  // namespace halyard::vm
