#include "vm/decode/edge_moves.h"

#include <algorithm>
#include <cassert>
#include <ranges>

namespace halyard::vm {

namespace {

bool is_self(Remap remap) {
  return (remap.source & ~kMoveBit) == (remap.destination & ~(remap.destination & kRefBit ? kMoveBit : 0));
}

}  // namespace

void EdgeMoves::collect(const RemapList& remap, size_t block) {
  ++wanted_epoch_;
  wanted_.resize(value_registers_);
  const auto wanted = [&](uint16_t slot) {
    const Wanted& state = wanted_[slot];
    return state.epoch == wanted_epoch_ ? state.wanted : flow_.live_in(block, slot);
  };
  for (size_t i = remap.size(); i-- > 0;) {
    const Remap move = remap[i];
    build_.mention(move.source, false);
    build_.mention(move.destination, false);
    assert((move.source & kRefBit) == (move.destination & kRefBit));
    if (is_self(move)) continue;
    if (move.source & kRefBit) {
      moves_.push_back({move, true});
      continue;
    }
    if (!wanted(move.destination) && fuses_) continue;
    wanted_[move.destination] = {wanted_epoch_, false};
    moves_.push_back({move, wanted(move.source)});
    wanted_[move.source] = {wanted_epoch_, true};
  }
  std::ranges::reverse(moves_);
}

// Whether the moves at `i` and `i + 1` are the two halves of a pair. Pairs start at even registers, so the
// half that moves first is never a source of the other.
bool EdgeMoves::is_pair(size_t i) const {
  if (i + 1 >= moves_.size()) return false;
  const Remap move = moves_[i].remap;
  const Remap next = moves_[i + 1].remap;
  if (((move.source | next.source) & kRefBit) || move.source % 2 != move.destination % 2) return false;
  const int step = move.source % 2 == 0 ? 1 : -1;
  return next.source == move.source + step && next.destination == move.destination + step;
}

// Makes the last instruction write directly to the destination of the first move, or of the first pair.
// Returns how many moves that replaces.
size_t EdgeMoves::fuse_first() {
  const bool pair = is_pair(0);
  const CodeBuilder::Fusible* last = build_.last();
  if (!fuses_ || !last || last->wide_result != pair) return 0;
  const Remap move = moves_[0].remap;
  const uint16_t source = pair ? move.source & ~1 : move.source;
  if ((move.source & kRefBit) || build_.result_of(*last) != source) return 0;
  if (moves_[0].source_lives || (pair && moves_[1].source_lives)) return 0;
  build_.set_result(*last, pair ? move.destination & ~1 : move.destination);
  forget_constant(0);
  if (pair) forget_constant(1);
  return pair ? 2 : 1;
}

void EdgeMoves::emit_from(size_t first) {
  for (size_t i = first; i < moves_.size(); ++i) {
    const Remap move = moves_[i].remap;
    forget_constant(i);
    if (move.source & kRefBit) {
      build_.emit(CodeBuilder::word(move.source & kMoveBit ? DecodedOp::move_ref : DecodedOp::copy_ref,
                                    move.source & kRegisterMask, move.destination & kRegisterMask));
    } else if (is_pair(i)) {
      forget_constant(++i);
      build_.emit(CodeBuilder::word(DecodedOp::move_64, move.source & ~1, move.destination & ~1));
    } else {
      build_.emit(CodeBuilder::word(DecodedOp::move_32, move.source, move.destination));
    }
  }
}

void EdgeMoves::forget_constant(size_t i) {
  const Remap move = moves_[i].remap;
  if (!(move.source & kRefBit)) constants_.forget(move.destination);
}

}  // namespace halyard::vm
