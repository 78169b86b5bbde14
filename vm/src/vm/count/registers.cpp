// Reads, writes and moves of registers whose integers may be known.
#include "vm/count/registers.h"

namespace halyard::vm {

void CountedRegisters::reset(size_t value_registers, size_t ref_registers) {
  slots_.assign(value_registers, {});
  refs_.assign(ref_registers, {});
}

Scalar CountedRegisters::narrow(uint16_t reg) const {
  const CountedSlot& slot = slots_[reg];
  return slot.part == CountedSlot::Part::whole ? slot.scalar : unknown_scalar();
}

Scalar CountedRegisters::wide(uint16_t reg) const {
  const CountedSlot& low = slots_[reg];
  const CountedSlot& high = slots_[reg + 1];
  const bool is_pair =
      low.part == CountedSlot::Part::low && high.part == CountedSlot::Part::high && low.pair == high.pair;
  return is_pair ? low.scalar : unknown_scalar();
}

Scalar CountedRegisters::read(Bank bank, uint16_t reg) const {
  return bank == Bank::i64 ? wide(reg) : bank == Bank::i32 ? narrow(reg) : unknown_scalar();
}

void CountedRegisters::write(Bank bank, uint16_t reg, Scalar scalar) {
  if (bank == Bank::i32) {
    const auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(scalar.value));
    if (wrapped != scalar.value) {
      scalar.is_linear = scalar.varies == 0;
      scalar.origin = -1;
      scalar.form = -1;
    }
    scalar.value = wrapped;
  }
  if (!is_wide(bank)) {
    slots_[reg] = {scalar};
    return;
  }
  ++pairs_;
  slots_[reg] = {scalar, CountedSlot::Part::low, pairs_};
  slots_[reg + 1] = {scalar, CountedSlot::Part::high, pairs_};
}

void CountedRegisters::forget(uint16_t reg) {
  slots_[reg] = {};
  if (reg + 1u < slots_.size()) slots_[reg + 1] = {};
}

void CountedRegisters::move(const RemapList& moves) {
  for (size_t i = 0; i < moves.size(); ++i) {
    const Remap each = moves[i];
    if (each.source & kRefBit) {
      const CountedReference moved = reference(each.source);
      if (each.source & kMoveBit) set_reference(each.source, {});
      set_reference(each.destination, moved);
    } else {
      slots_[each.destination] = slots_[each.source];
    }
  }
}

}  // namespace halyard::vm
