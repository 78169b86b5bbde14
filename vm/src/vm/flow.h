// Flow: where the values of a function live. Blocks, what each instruction reads and writes, and whether a
// value is looked at again: what decoding needs to know before it joins instructions or leaves some out.
// Refs are not followed, since a program can see when they are released.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "base/status.h"
#include "vm/bytecode_module.h"
#include "vm/bytecode_reader.h"

namespace halyard::vm {

// A 32-bit slot that an instruction reads or writes; a pair makes two.
struct Access {
  uint16_t slot : 14;
  uint16_t writes : 1;
  uint16_t last : 1;  // of a read: nobody looks at the value again; of a write: nobody ever does
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
    uint32_t step_count;
  };

  // Of a function that has passed the verifier. `memory` outlives it.
  static Result<Flow> of(const BytecodeModule& module, const Function& function,
                         std::pmr::memory_resource* memory);

  std::span<const Block> blocks() const { return blocks_; }  // by pc
  size_t block_at(uint32_t pc) const;
  // The steps of all blocks in order, and one more at the end.
  std::span<const Step> steps() const { return steps_; }
  const Instruction& instruction(size_t step) const { return instructions_[step]; }
  // Reads before writes, in the order of the operands. What an edge moves is not here.
  std::span<const Access> accesses(size_t step) const {
    return {accesses_.data() + steps_[step].first_access,
            steps_[step + 1].first_access - steps_[step].first_access};
  }
  // How many instructions and edges may write the slot.
  uint32_t write_count(uint32_t slot) const { return write_counts_[slot]; }
  // Whether an edge copies from the slot.
  bool moved(uint32_t slot) const { return moved_[slot]; }
  // Whether the value that the slot has where the block begins may be looked at.
  bool live_in(size_t block, uint32_t slot) const {
    return all_live_ || (live_in_[block * stride_ + slot / 64] >> (slot % 64) & 1) != 0;
  }
  // Slots that the entry block may look at before anything has been written, as words of bits; empty where
  // that could be any.
  std::span<const uint64_t> live_at_entry() const {
    return all_live_ ? std::span<const uint64_t>() : std::span(live_in_).first(stride_);
  }

  explicit Flow(std::pmr::memory_resource* memory)
      : blocks_(memory),
        steps_(memory),
        instructions_(memory),
        accesses_(memory),
        write_counts_(memory),
        moved_(memory),
        live_in_(memory) {}

 private:
  friend class FlowBuilder;
  std::pmr::vector<Block> blocks_;
  std::pmr::vector<Step> steps_;
  std::pmr::vector<Instruction> instructions_;
  std::pmr::vector<Access> accesses_;
  std::pmr::vector<uint32_t> write_counts_;
  std::pmr::vector<bool> moved_;
  std::pmr::vector<uint64_t> live_in_;  // `stride_` words for each block
  size_t stride_ = 0;
  bool all_live_ = false;  // not computed: it would have cost too much
};

// The edges of a branch: its targets and the moves on the way.
struct Edge {
  uint32_t target = 0;
  RemapList remap;
};
void edges_of(const Instruction& instruction, std::pmr::vector<Edge>& edges);

}  // namespace halyard::vm
