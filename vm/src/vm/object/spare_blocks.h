// SpareBlocks: memory of released buffers, kept for buffers that are allocated later. Only the bytes that a
// buffer may have written are cleared again. One thread at a time; outlives the buffers that use it.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/budget.h"

namespace halyard::vm {

class SpareBlocks {
 public:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<uint8_t[], Free>;
  struct Block {
    Memory memory;  // null: none
    uint64_t bytes = 0;
    uint64_t written = 0;  // only the first ones may be other than 0
    Charge charge;         // of the block and of the buffer's header; stays while the block is kept
  };

  static constexpr uint64_t kSmallest = 1024;              // bytes of a block that is kept
  static constexpr uint64_t kMaxKept = uint64_t{2} << 20;  // bytes of all kept blocks
  static constexpr size_t kBlocks = 4;

  // A kept block of at least `bytes` and less than twice as many, all of them 0.
  Block take(uint64_t bytes);
  // Keeps the block, or frees it if there is no room.
  void give(Block block);
  // Frees all kept blocks. Returns whether there was one.
  bool trim();

 private:
  std::array<Block, kBlocks> blocks_;
  uint64_t kept_ = 0;
};

}  // namespace halyard::vm
