// The registers of one function activation: integers as bits or as expressions, and refs.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/objects.h"
#include "vm/format/opcodes.h"

namespace halyard::analysis {

// A 32-bit slot. A pair with an expression has it in both halves.
struct Slot {
  enum class Form : uint8_t { bits, whole, low, high, unknown };
  Form form = Form::bits;
  uint32_t bits = 0;
  Expression expression;
};

class Registers {
 public:
  Registers(Symbols& symbols, size_t values, size_t refs) : symbols_(symbols), slots_(values), refs_(refs) {}

  Expression read32(uint16_t reg) const;
  Expression read64(uint16_t reg) const;
  Expression read(vm::Bank bank, uint16_t reg) const { return vm::is_wide(bank) ? read64(reg) : read32(reg); }
  void write32(uint16_t reg, const Expression& value);
  void write64(uint16_t reg, const Expression& value);
  void write(vm::Bank bank, uint16_t reg, const Expression& value) {
    return vm::is_wide(bank) ? write64(reg, value) : write32(reg, value);
  }
  // Floats and other values that are not followed.
  void write_unknown(bool is_wide, uint16_t reg);

  const Slot& slot(uint16_t reg) const { return slots_[reg]; }
  void set_slot(uint16_t reg, Slot slot) { slots_[reg] = std::move(slot); }

  // Registers as encoded, with the ref bit; MOVE empties the source.
  Ref ref(uint16_t reg) {
    Ref& place = refs_[reg & vm::kRefOrdinalMask];
    return (reg & vm::kMoveBit) != 0 ? std::exchange(place, nullptr) : place;
  }
  const Ref& peek(uint16_t reg) const { return refs_[reg & vm::kRefOrdinalMask]; }
  void set_ref(uint16_t reg, Ref ref) { refs_[reg & vm::kRefOrdinalMask] = std::move(ref); }
  // A move of a branch: a slot or a ref.
  void move(uint16_t source, uint16_t destination);

 private:
  Symbols& symbols_;
  std::vector<Slot> slots_;
  std::vector<Ref> refs_;
};

// The result of an integer instruction for operands in the order in which it reads them. Fresh symbols have
// the origin `where`.
Expression result_of(Symbols& symbols, vm::Op op, vm::Bank bank, const std::vector<Expression>& in,
                     int64_t immediate, std::string_view where);

}  // namespace halyard::analysis
