// Reads bytecode one instruction at a time, for the verifier, the decoder and the disassembler. Only this
// reader knows the encoding of operands. It does not allocate: results point into the function's bytes,
// within bounds. It does not check the meaning of operands, which is the verifier's task. Specified by
// isa.md, sections 1 and 2.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/status.h"
#include "vm/format/features.h"
#include "vm/format/opcode_traits.h"

namespace halyard::vm {

static_assert(std::endian::native == std::endian::little, "bytecode is read in place");

// Loads a little-endian number from an unaligned address.
template <typename T>
T load_unaligned(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// A list of u16 numbers in the bytecode: registers, or the segment sizes of a variadic call.
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

// The moves of a branch, applied one after another.
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

// The cases of a br_table. They have different sizes; iterate with for (CaseEntry entry : cases).
class CaseList {
 public:
  CaseList() = default;
  // `code` is the whole function, because remaps are aligned relative to its start.
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

// One operand. Only the member for its OperandKind in the opcode table may be read. It is a union to keep
// instructions small.
union DecodedOperand {
  uint64_t immediate;       // immediate: the bits, zero-extended
  uint32_t index;           // global_bytes, global_ref, rodata, type, func (with the import bit), block (pc)
  uint16_t reg;             // reg: as encoded, with ref and MOVE bits
  RegList regs;             // reg_list, u16_list
  RemapList remap;          // remap
  CaseList cases;           // cases
  std::string_view string;  // string

  DecodedOperand() {}  // uninitialized
};

struct Instruction {
  Op op = Op::kCount;
  uint32_t pc = 0;                                    // of the first byte, including a prefix
  uint32_t next_pc = 0;                               // of the byte after the instruction
  std::array<DecodedOperand, kMaxOperands> operands;  // the first info(op).operand_count

  Instruction() {}  // leaves the operands uninitialized
};

// The requirement bit of a function that uses an extension set.
constexpr uint32_t feature_of(OpSet set) { return set == OpSet::F64 ? kFeatureF64 : kFeatureF32; }

// The offsets of an opcode's operands from the first byte after the opcode, if all of them have a fixed size.
struct alignas(16) FixedLayout {
  // Bytecode version. UINT8_MAX: an operand has a variable size, or the byte is not an opcode.
  uint8_t since = UINT8_MAX;
  uint8_t count = 0;
  uint8_t bytes = 0;
  std::array<uint8_t, kMaxOperands> offset = {};
  std::array<uint8_t, kMaxOperands> unused = {};  // of 64 bits
  OpSet selects = OpSet::CORE;                    // the set that this prefix selects; CORE: not a prefix
};

inline constexpr auto kFixedLayouts = [] {
  std::array<FixedLayout, kOpCount + 1> layouts;
  for (size_t op = 0; op < kOpCount; ++op) {
    FixedLayout layout;
    bool fixed = !(kOps[op].flags & PREFIX);
    for (size_t i = 0; i < kOps[op].operand_count; ++i) {
      const Operand& operand = kOps[op].operands[i];
      const bool wide = operand.bank == Bank::i64 || operand.bank == Bank::f64;
      uint8_t bytes = 4;
      switch (operand.kind) {
        case OperandKind::reg:
          bytes = 2;
          break;
        case OperandKind::immediate:
          bytes = wide ? 8 : 4;
          break;
        case OperandKind::global_bytes:
        case OperandKind::global_ref:
        case OperandKind::rodata:
        case OperandKind::type:
        case OperandKind::func:
        case OperandKind::block:
          break;
        case OperandKind::reg_list:
        case OperandKind::u16_list:
        case OperandKind::string:
        case OperandKind::remap:
        case OperandKind::cases:
          fixed = false;
          break;
      }
      layout.offset[i] = layout.bytes;
      layout.unused[i] = static_cast<uint8_t>(64 - 8 * bytes);
      layout.bytes = static_cast<uint8_t>(layout.bytes + bytes);
    }
    layout.count = kOps[op].operand_count;
    layout.selects = selected_set(static_cast<Op>(op));
    if (fixed) layout.since = kOps[op].since;
    layouts[op] = layout;
  }
  return layouts;
}();

// The size of the largest fixed instruction plus eight bytes, so that each operand can be loaded as 64 bits.
inline constexpr size_t kFixedRoom = [] {
  size_t most = 0;
  for (const FixedLayout& layout : kFixedLayouts)
    if (layout.since != UINT8_MAX) most = layout.bytes > most ? layout.bytes : most;
  return 2 + most + 8;
}();

// The fast path of read_instruction, for the most common instructions. Returns false if the slow path is
// needed.
inline bool read_fixed_instruction(std::span<const uint8_t> code, uint32_t pc, uint32_t bytecode_version,
                                   uint32_t features, Instruction& instruction) {
  if (pc >= code.size() || code.size() - pc < kFixedRoom) return false;
  const uint8_t* bytes = code.data() + pc;
  Op op = kOpBySetAndByte[static_cast<size_t>(OpSet::CORE)][*bytes++];
  if (const OpSet set = kFixedLayouts[static_cast<size_t>(op)].selects; set != OpSet::CORE) {
    if (!(features & feature_of(set))) return false;
    op = kOpBySetAndByte[static_cast<size_t>(set)][*bytes++];
  }
  const FixedLayout& layout = kFixedLayouts[static_cast<size_t>(op)];
  if (layout.since > bytecode_version) return false;
  instruction.op = op;
  instruction.pc = pc;
  instruction.next_pc = static_cast<uint32_t>(bytes + layout.bytes - code.data());
  const auto read = [&](size_t i) {
    // Numbers of all sizes start at the first byte of the union.
    const uint64_t bits =
        load_unaligned<uint64_t>(bytes + layout.offset[i]) << layout.unused[i] >> layout.unused[i];
    std::memcpy(static_cast<void*>(&instruction.operands[i]), &bits, sizeof bits);
  };
  // Reading three operands unconditionally is faster than a loop, and most instructions have at most three.
  read(0);
  read(1);
  read(2);
  for (size_t i = 3; i < layout.count; ++i) read(i);
  return true;
}

Result<> read_any_instruction(std::span<const uint8_t> code, uint32_t pc, uint32_t bytecode_version,
                              uint32_t features, Instruction& instruction);

// Reads the instruction at `pc`. OUT_OF_RANGE: it extends past the end of `code`. INVALID_ARGUMENT: an
// unknown opcode, one that is newer than `bytecode_version` (15, 16 or 17), or one of an extension set that
// is missing in `features`, the requirements of the function.
inline Result<> read_instruction(std::span<const uint8_t> code, uint32_t pc, uint32_t bytecode_version,
                                 uint32_t features, Instruction& instruction) {
  if (read_fixed_instruction(code, pc, bytecode_version, features, instruction)) return {};
  return read_any_instruction(code, pc, bytecode_version, features, instruction);
}
inline Result<Instruction> read_instruction(std::span<const uint8_t> code, uint32_t pc,
                                            uint32_t bytecode_version, uint32_t features) {
  Instruction instruction;
  HALYARD_TRY(read_instruction(code, pc, bytecode_version, features, instruction));
  return instruction;
}

// Whether there is an instruction at `pc`. A single byte at the end of a function is ignored.
inline bool has_instruction(std::span<const uint8_t> code, uint32_t pc) {
  return uint64_t{pc} + 1 < code.size();
}

}  // namespace halyard::vm
