// Flow: control flow and liveness of a function's values. It contains the blocks, the slots that each
// instruction reads and writes, and whether a value is still needed. The decoder uses it to fuse and to omit
// instructions. Refs are not tracked, because programs can observe when they are released.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "vm/decode/arena.h"
#include "vm/format/bytecode_reader.h"
#include "vm/module/bytecode_module.h"

namespace halyard::vm {

// A read or write of a 32-bit slot; a pair is two accesses.
class Access {
 public:
  Access() = default;
  Access(uint32_t slot, bool writes) : bits_(static_cast<uint16_t>(slot | (writes ? kWrites : 0))) {}
  uint32_t slot() const { return bits_ & (kWrites - 1u); }
  bool writes() const { return bits_ & kWrites; }
  // For a read: no later read of the value. For a write: the value is never read.
  bool last() const { return bits_ & kLast; }
  void set_last(bool last) { bits_ = static_cast<uint16_t>((bits_ & ~kLast) | (last ? kLast : 0)); }

 private:
  static constexpr uint16_t kWrites = 0x4000;
  static constexpr uint16_t kLast = 0x8000;
  uint16_t bits_;  // one integer, because partial reads after a full store are slow
};
static_assert(sizeof(Access) == 2);

class Flow {
 public:
  struct Step {  // an instruction other than a block marker
    Op op;
    uint32_t pc;
    uint32_t first_access;
  };
  struct Block {
    uint32_t pc;
    uint32_t first_step;
    uint32_t step_count = 0;
    uint32_t first_edge = 0;
    uint32_t edge_count = 0;
    bool falls_through = false;  // ends with `fail`, which continues if its status is 0
  };
  struct Edge {
    uint32_t block;  // the target
    bool moves_values;
    RemapList remap;
  };

  // The function must have passed the verifier. `arena` must outlive the result.
  static Result<Flow> of(const BytecodeModule& module, const Function& function, Arena& arena);

  std::span<const Block> blocks() const { return {blocks_.data(), blocks_.size()}; }  // ordered by pc
  // The edges of a block's terminator, in the order of its operands.
  std::span<const Edge> edges(size_t block) const {
    return {edges_.data() + blocks_[block].first_edge, blocks_[block].edge_count};
  }
  // The steps of all blocks in order, followed by a sentinel.
  std::span<const Step> steps() const { return {steps_.data(), steps_.size()}; }
  const Instruction& instruction(size_t step) const { return instructions_[step]; }
  // The reads, then the writes, each in the order of the operands. Excludes moves of edges.
  std::span<const Access> accesses(size_t step) const {
    return {accesses_.data() + steps_[step].first_access,
            steps_[step + 1].first_access - steps_[step].first_access};
  }
  // The number of instructions and edges that may write the slot.
  uint32_t write_count(uint32_t slot) const { return slots_[slot].writes; }
  // Whether an edge reads the slot.
  bool moved(uint32_t slot) const { return slots_[slot].moved; }
  // Whether the slot's value at the start of the block may be read.
  bool live_in(size_t block, uint32_t slot) const {
    return all_live_ || (live_in_[block * stride_ + slot / 64] >> (slot % 64) & 1) != 0;
  }
  // The slots that may be read before they are written, as a bit set; empty: possibly any slot.
  std::span<const uint64_t> live_at_entry() const {
    if (all_live_) return {};
    return {live_in_.data(), stride_};
  }

  explicit Flow(Arena& arena)
      : blocks_(arena),
        steps_(arena),
        instructions_(arena),
        accesses_(arena),
        edges_(arena),
        slots_(arena),
        live_in_(arena) {}

 private:
  template <size_t>
  friend class FlowBuilder;
  size_t block_at(uint32_t pc) const;

  Array<Block> blocks_;
  Array<Step> steps_;
  Array<Instruction> instructions_;
  Array<Access> accesses_;
  Array<Edge> edges_;
  struct Slot {
    uint32_t writes;
    bool moved;
  };
  Array<Slot> slots_;
  Array<uint64_t> live_in_;  // `stride_` words for each block
  size_t stride_ = 0;
  bool all_live_ = false;  // liveness was not computed because of its cost: every value counts as live
};

}  // namespace halyard::vm
