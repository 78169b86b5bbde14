// Constants: constant propagation for the decoder. Within a block it tracks the values that instructions
// write. Across blocks it tracks slots that are written once, in the entry block. A constant needs no
// register if every instruction that reads it can take it as an immediate.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "vm/decode/arena.h"
#include "vm/decode/flow.h"
#include "vm/format/opcode_traits.h"

namespace halyard::vm {

// Whether the instruction writes a constant integer.
constexpr bool writes_constant(Op op) { return has_trait(op, CONSTANT); }
struct ConstantWrite {
  uint16_t result;
  bool wide;
  uint64_t bits;
};
inline ConstantWrite constant_write(const Instruction& instruction) {
  const OpInfo& op = info(instruction.op);
  const bool zero = op.operand_count == 1;
  return {.result = instruction.operands[zero ? 0 : 1].reg,
          .wide = is_wide(op.operands[zero ? 0 : 1].bank),
          .bits = zero ? 0 : instruction.operands[0].immediate};
}

// The constant as a 16-bit immediate of `op`, if it fits.
std::optional<int16_t> small_operand(Op op, uint64_t bits, bool wide);

class Constants {
 public:
  static Constants of(const Function& function, const Flow& flow, Arena& arena);
  explicit Constants(Arena& arena) : slots_(arena) {}

  void enter_block(size_t index) { ++epoch_, in_entry_ = index == 0; }
  void set(uint32_t slot, uint32_t bits) { slots_[slot].epoch = epoch_, slots_[slot].bits = bits; }
  void forget(uint32_t slot) { slots_[slot].epoch = 0; }
  std::optional<uint64_t> value(uint32_t slot, bool wide) const {
    const std::optional<uint32_t> low = half(slot);
    if (!wide || !low) return low;
    const std::optional<uint32_t> high = half(slot + 1);
    if (!high) return {};
    return *low | uint64_t{*high} << 32;
  }
  // The value of a slot that needs no register.
  std::optional<uint32_t> folded(uint32_t slot) const {
    return slots_[slot].folded ? std::optional(slots_[slot].global_bits) : std::nullopt;
  }
  // Whether the slot is written once, with a constant, and every reader takes the constant as an immediate.
  bool needs_no_register(uint32_t slot) const { return slots_[slot].folded; }

 private:
  struct Slot {
    uint32_t epoch;  // the epoch in which `bits` is known; 0: none
    uint32_t bits;
    uint32_t global_bits;
    bool global;  // written once, with a constant, in the entry block
    bool folded;
  };
  std::optional<uint32_t> half(uint32_t slot) const {
    const Slot& found = slots_[slot];
    if (found.epoch == epoch_) return found.bits;
    if (!in_entry_ && found.global) return found.global_bits;
    return {};
  }
  void find_folded(const Flow& flow, std::span<const uint16_t> globals);
  void fold_operands(const Flow& flow, size_t step);

  Array<Slot> slots_;
  uint32_t epoch_ = 0;
  bool in_entry_ = false;
};

}  // namespace halyard::vm
