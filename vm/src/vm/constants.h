// Constants: what decoding knows of the values of slots. Inside a block, what its instructions have put
// there; everywhere after the entry block, what only the entry block writes, once. A constant that every
// reader can take into its own instruction needs no register.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <vector>

#include "vm/flow.h"

namespace halyard::vm {

// The bits that a const instruction writes, of integers only.
struct ConstantWrite {
  bool is_constant = false;
  bool wide = false;
  uint64_t bits = 0;
};
ConstantWrite constant_write(const Instruction& instruction);

// The constant as a 16-bit operand of `op`, where it fits.
std::optional<int16_t> small_operand(Op op, uint64_t bits, bool wide);

class Constants {
 public:
  static Constants of(const Function& function, const Flow& flow, std::pmr::memory_resource* memory);
  explicit Constants(std::pmr::memory_resource* memory)
      : known_(memory), global_(memory), global_bits_(memory), folded_(memory) {}

  void enter_block(size_t index) { ++epoch_, in_entry_ = index == 0; }
  void set(uint32_t slot, uint32_t bits) { known_[slot] = {epoch_, bits}; }
  void forget(uint32_t slot) { known_[slot].epoch = 0; }
  std::optional<uint64_t> value(uint32_t slot, bool wide) const {
    const std::optional<uint32_t> low = half(slot);
    if (!wide || !low) return low;
    const std::optional<uint32_t> high = half(slot + 1);
    if (!high) return {};
    return *low | uint64_t{*high} << 32;
  }
  // Whether the slot is written by one constant that no reader needs in a register.
  bool needs_no_register(uint32_t slot) const { return folded_[slot]; }

 private:
  struct Known {
    uint32_t epoch = 0;
    uint32_t bits = 0;
  };
  std::optional<uint32_t> half(uint32_t slot) const {
    if (known_[slot].epoch == epoch_) return known_[slot].bits;
    if (!in_entry_ && global_[slot]) return global_bits_[slot];
    return {};
  }
  void find_folded(const Flow& flow);

  std::pmr::vector<Known> known_;
  std::pmr::vector<bool> global_;  // the only write is a constant, in the entry block
  std::pmr::vector<uint32_t> global_bits_;
  std::pmr::vector<bool> folded_;
  uint32_t epoch_ = 0;
  bool in_entry_ = false;
};

}  // namespace halyard::vm
