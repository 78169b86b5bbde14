// EdgeMoves: the moves of registers on an edge between blocks, as far as the target block can observe them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vm/decode/arena.h"
#include "vm/decode/code_builder.h"
#include "vm/decode/constants.h"
#include "vm/decode/flow.h"
#include "vm/format/bytecode_reader.h"

namespace halyard::vm {

class EdgeMoves {
 public:
  // With `fuses`, moves that nothing observes are left out, and an instruction may write to the destination
  // of the move after it.
  EdgeMoves(Arena& arena, CodeBuilder& build, const Flow& flow, Constants& constants,
            uint32_t value_registers, bool fuses)
      : build_(build),
        flow_(flow),
        constants_(constants),
        value_registers_(value_registers),
        fuses_(fuses),
        moves_(arena),
        wanted_(arena) {}

  // Collects the moves of an edge to the block, in order.
  void find(const RemapList& remap, size_t block) {
    moves_.clear();
    if (!remap.empty()) collect(remap, block);
  }
  bool empty() const { return moves_.empty(); }
  void emit() { emit_from(0); }
  // For an edge that always follows the last instruction.
  void emit_after_last() {
    if (!moves_.empty()) emit_from(fuse_first());
  }

 private:
  struct Move {
    Remap remap;
    bool source_lives;  // the source is needed after the move
  };
  struct Wanted {
    uint32_t epoch;
    bool wanted;
  };

  void collect(const RemapList& remap, size_t block);
  bool is_pair(size_t i) const;
  size_t fuse_first();
  void emit_from(size_t first);
  void forget_constant(size_t i);

  CodeBuilder& build_;
  const Flow& flow_;
  Constants& constants_;
  const uint32_t value_registers_;
  const bool fuses_;
  Array<Move> moves_;
  Array<Wanted> wanted_;  // by slot: whether the slot is read after the current move
  uint32_t wanted_epoch_ = 0;
};

}  // namespace halyard::vm
