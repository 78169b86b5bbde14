// Flow: where the values of a function live. Blocks, what each instruction reads and writes, and whether a
// value is looked at again: what decoding needs to know before it fuses instructions or leaves some out.
// Refs are not followed, since a program can see when they are released.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "vm/format/bytecode_reader.h"
#include "vm/module/bytecode_module.h"
#include "vm/run/arena.h"

namespace halyard::vm {

// A 32-bit slot that an instruction reads or writes; a pair makes two.
class Access {
 public:
  Access() = default;
  Access(uint32_t slot, bool writes) : bits_(static_cast<uint16_t>(slot | (writes ? kWrites : 0))) {}
  uint32_t slot() const { return bits_ & (kWrites - 1u); }
  bool writes() const { return bits_ & kWrites; }
  // Of a read: nobody looks at the value again; of a write: nobody ever does.
  bool last() const { return bits_ & kLast; }
  void set_last(bool last) { bits_ = static_cast<uint16_t>((bits_ & ~kLast) | (last ? kLast : 0)); }

 private:
  static constexpr uint16_t kWrites = 0x4000;
  static constexpr uint16_t kLast = 0x8000;
  uint16_t bits_;  // as a whole: reading what was just written in part is slow
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
    bool falls_through = false;  // `fail` goes on where its status is 0
  };
  struct Edge {
    uint32_t block;  // where it leads
    bool moves_values;
    RemapList remap;
  };

  // Of a function that has passed the verifier. `arena` outlives it.
  static Result<Flow> of(const BytecodeModule& module, const Function& function, Arena& arena);

  std::span<const Block> blocks() const { return {blocks_.data(), blocks_.size()}; }  // by pc
  // Of the terminator of a block, in the order of its operands.
  std::span<const Edge> edges(size_t block) const {
    return {edges_.data() + blocks_[block].first_edge, blocks_[block].edge_count};
  }
  // The steps of all blocks in order, and one more at the end.
  std::span<const Step> steps() const { return {steps_.data(), steps_.size()}; }
  const Instruction& instruction(size_t step) const { return instructions_[step]; }
  // Reads before writes, in the order of the operands. What an edge moves is not here.
  std::span<const Access> accesses(size_t step) const {
    return {accesses_.data() + steps_[step].first_access,
            steps_[step + 1].first_access - steps_[step].first_access};
  }
  // How many instructions and edges may write the slot.
  uint32_t write_count(uint32_t slot) const { return slots_[slot].writes; }
  // Whether an edge copies from the slot.
  bool moved(uint32_t slot) const { return slots_[slot].moved; }
  // Whether the value that the slot has where the block begins may be looked at.
  bool live_in(size_t block, uint32_t slot) const {
    return all_live_ || (live_in_[block * stride_ + slot / 64] >> (slot % 64) & 1) != 0;
  }
  // Slots that the entry block may look at before anything has been written, as words of bits; empty where
  // that could be any.
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
  bool all_live_ = false;  // not computed: it would have cost too much
};

}  // namespace halyard::vm
