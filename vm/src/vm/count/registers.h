// Registers of a counted function: the integers that are known, and the objects that ref registers hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vm/count/scalar.h"
#include "vm/format/bytecode_reader.h"
#include "vm/format/opcodes.h"

namespace halyard::vm {

// A 32-bit register, or half of a pair. Both halves of a pair hold its scalar.
struct CountedSlot {
  enum class Part : uint8_t { whole, low, high };
  Scalar scalar;
  Part part = Part::whole;
  uint64_t pair = 0;  // number of the write; equal in both halves
};

// The object of a ref register.
struct CountedReference {
  enum class Kind : uint8_t { unknown, constants, bindings, binding, memory };
  Kind kind = Kind::unknown;
  uint32_t binding = 0;
  uint64_t length = 0;  // bytes of `memory`, if known
  bool has_known_length = false;
};

class CountedRegisters {
 public:
  // Nothing is known.
  void reset(size_t value_registers, size_t ref_registers);

  // The scalar of a 32-bit register, of a pair, or of a register of an integer bank (other banks: unknown).
  Scalar narrow(uint16_t reg) const;
  Scalar wide(uint16_t reg) const;
  Scalar read(Bank bank, uint16_t reg) const;
  // A value of 32 bits wraps.
  void write(Bank bank, uint16_t reg, Scalar scalar);
  // After a write of unknown width.
  void forget(uint16_t reg);

  CountedReference reference(uint16_t reg) const { return refs_[reg & kRefOrdinalMask]; }
  void set_reference(uint16_t reg, const CountedReference& to) { refs_[reg & kRefOrdinalMask] = to; }

  // The moves of an edge, in order.
  void move(const RemapList& moves);

  std::vector<CountedSlot>& slots() { return slots_; }
  const std::vector<CountedSlot>& slots() const { return slots_; }

 private:
  std::vector<CountedSlot> slots_;
  std::vector<CountedReference> refs_;
  uint64_t pairs_ = 0;
};

}  // namespace halyard::vm
