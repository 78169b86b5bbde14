// Reads bytecode one instruction at a time. The only place that knows how operands are encoded: verifier,
// decoder and disassembler all read through it. Allocates nothing; what it returns points into the function's
// bytes and has been checked to lie inside them. Nothing is said about what the operands mean: that is the
// verifier's work. Specified by isa.md, sections 1 and 2.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/status.h"
#include "vm/opcodes.h"

namespace halyard::vm {

static_assert(std::endian::native == std::endian::little, "bytecode is read in place");

// A little-endian number at any address.
template <typename T>
T load_unaligned(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// u16 numbers in the bytecode: registers, or the segment sizes of a variadic call.
class RegList {
 public:
  RegList() = default;
  RegList(const uint8_t* bytes, uint16_t count) : bytes_(bytes), count_(count) {}
  uint16_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  uint16_t operator[](size_t index) const { return load_unaligned<uint16_t>(bytes_ + 2 * index); }

 private:
  const uint8_t* bytes_ = nullptr;
  uint16_t count_ = 0;
};

struct Remap {
  uint16_t source = 0;
  uint16_t destination = 0;
};

// The moves of a branch, to be applied one after another.
class RemapList {
 public:
  RemapList() = default;
  RemapList(const uint8_t* bytes, uint16_t count) : bytes_(bytes), count_(count) {}
  uint16_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Remap operator[](size_t index) const {
    return {load_unaligned<uint16_t>(bytes_ + 4 * index), load_unaligned<uint16_t>(bytes_ + 4 * index + 2)};
  }

 private:
  const uint8_t* bytes_ = nullptr;
  uint16_t count_ = 0;
};

struct CaseEntry {
  uint32_t target = 0;
  RemapList remap;
};

// The cases of a br_table. Entries differ in size, so they are walked: for (CaseEntry entry : cases).
class CaseList {
 public:
  CaseList() = default;
  // `code` is the whole function: remaps are aligned relative to its start.
  CaseList(const uint8_t* code, uint32_t pc, uint16_t count) : code_(code), pc_(pc), count_(count) {}
  uint16_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

  class Iterator {
   public:
    Iterator(const uint8_t* code, uint32_t pc, uint16_t index) : code_(code), pc_(pc), index_(index) {}
    CaseEntry operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const uint8_t* code_;
    uint32_t pc_;
    uint16_t index_;
  };
  Iterator begin() const { return {code_, pc_, 0}; }
  Iterator end() const { return {code_, 0, count_}; }

 private:
  const uint8_t* code_ = nullptr;
  uint32_t pc_ = 0;
  uint16_t count_ = 0;
};

// One operand. Which member holds it follows from the OperandKind in the opcode table; only that one may be
// looked at. A union, for there are very many of them.
union DecodedOperand {
  uint64_t immediate;  // immediate: the bits, zero-extended
  uint32_t
      index;  // global_bytes, global_ref, rodata, type, func (with the import bit), block (the marker's pc)
  uint16_t reg;             // reg: as encoded, with ref and MOVE bits
  RegList regs;             // reg_list, u16_list
  RemapList remap;          // remap
  CaseList cases;           // cases
  std::string_view string;  // string

  DecodedOperand() {}  // none yet
};

struct Instruction {
  Op op = Op::kCount;
  uint32_t pc = 0;                                    // of the first byte, the prefix where there is one
  uint32_t next_pc = 0;                               // just past the last byte
  std::array<DecodedOperand, kMaxOperands> operands;  // the first info(op).operand_count
};

// Reads the instruction at `pc`. OUT_OF_RANGE where it does not lie wholly inside `code`; INVALID_ARGUMENT
// for an unknown opcode, one that is newer than `bytecode_version` (15, 16 or 17), or one of an extension set
// whose bit is not in `features` (of the function).
Result<Instruction> read_instruction(std::span<const uint8_t> code, uint32_t pc, uint32_t bytecode_version,
                                     uint32_t features);

// Whether the walk over a function goes on at `pc`. A single byte after the last instruction is never looked
// at.
inline bool has_instruction(std::span<const uint8_t> code, uint32_t pc) {
  return uint64_t{pc} + 1 < code.size();
}

}  // namespace halyard::vm
