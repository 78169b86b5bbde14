// The opcode table in C++: an enum, and the mnemonic and operand encoding of each opcode.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace halyard::vm {

enum class Op : uint16_t {
#define OP(set, byte, identifier, mnemonic, since, flags, operands) identifier,
#include "vm/format/opcodes.inc"
#undef OP
  kCount
};
inline constexpr size_t kOpCount = static_cast<size_t>(Op::kCount);

enum class OpSet : uint8_t { CORE, F32, F64 };

enum class Bank : uint8_t { none, i32, i64, f32, f64, ref, any };
// Whether a value of this bank takes two registers.
constexpr bool is_wide(Bank bank) { return bank == Bank::i64 || bank == Bank::f64; }

enum class OperandKind : uint8_t {
  reg,           // u16: IN, OUT
  reg_list,      // pad to even, u16 count, u16 each: INS, OUTS
  immediate,     // 4 or 8 bytes by bank
  global_bytes,  // u32 byte offset
  global_ref,    // u32 ordinal
  rodata,        // u32 ordinal
  type,          // u32 ordinal
  func,          // u32 ordinal, bit 31 = import
  string,        // u16 length, bytes
  block,         // u32 pc of a block marker
  remap,         // pad to even, u16 count, (u16 source, u16 destination) each
  cases,         // u16 count, (block, remap) each
  u16_list,      // pad to even, u16 count, u16 each
};

// A text in a table. Kept in place, because the dynamic linker would adjust a pointer in each process.
template <size_t size>
class TableText {
 public:
  constexpr TableText() = default;
  template <size_t bytes>
  constexpr TableText(const char (&text)[bytes]) : length_(bytes - 1) {
    static_assert(bytes - 1 <= size);
    for (size_t i = 0; i < bytes - 1; ++i) bytes_[i] = text[i];
  }
  constexpr std::string_view view() const { return {bytes_, length_}; }

 private:
  char bytes_[size] = {};
  uint8_t length_ = 0;
};

struct Operand {
  OperandKind kind = OperandKind::reg;
  Bank bank = Bank::none;
  bool writes = false;
  bool move = false;  // the MOVE bit is allowed
  TableText<16> text;

  constexpr std::string_view name() const { return text.view(); }
};

inline constexpr size_t kMaxOperands = 6;

enum OpFlags : uint8_t { TERMINATOR = 1, MARKER = 2, PREFIX = 4 };

struct OpInfo {
  TableText<25> text;
  OpSet set = OpSet::CORE;
  uint8_t byte = 0;
  uint8_t since = 15;  // bytecode major version
  uint8_t flags = 0;   // OpFlags
  uint8_t operand_count = 0;
  std::array<Operand, kMaxOperands> operands;

  constexpr OpInfo() = default;
  constexpr OpInfo(OpSet set, uint8_t byte, TableText<25> mnemonic, uint8_t since, int bits,
                   std::initializer_list<Operand> list)
      : text(mnemonic), set(set), byte(byte), since(since), flags(static_cast<uint8_t>(bits)) {
    for (const Operand& operand : list) operands[operand_count++] = operand;
  }
  constexpr std::string_view mnemonic() const { return text.view(); }  // without "vm."
  constexpr bool terminator() const { return flags & TERMINATOR; }
};

inline constexpr auto kOps = [] {
  using enum OperandKind;
  std::array<OpInfo, kOpCount> ops;
  size_t index = 0;
#define IN(bank, name) Operand{reg, Bank::bank, false, false, #name},
#define IN_MOVE(bank, name) Operand{reg, Bank::bank, false, true, #name},
#define OUT(bank, name) Operand{reg, Bank::bank, true, false, #name},
#define OUT_MOVE(bank, name) Operand{reg, Bank::bank, true, true, #name},
#define INS(bank, name) Operand{reg_list, Bank::bank, false, false, #name},
#define INS_MOVE(bank, name) Operand{reg_list, Bank::bank, false, true, #name},
#define OUTS(name) Operand{reg_list, Bank::any, true, false, #name},
#define IMM(bank, name) Operand{immediate, Bank::bank, false, false, #name},
#define GLOBAL_BYTES(name) Operand{global_bytes, Bank::none, false, false, #name},
#define GLOBAL_REF(name) Operand{global_ref, Bank::none, false, false, #name},
#define RODATA(name) Operand{rodata, Bank::none, false, false, #name},
#define TYPE(name) Operand{type, Bank::none, false, false, #name},
#define FUNC(name) Operand{func, Bank::none, false, false, #name},
#define STRING(name) Operand{string, Bank::none, false, false, #name},
#define BLOCK(name) Operand{block, Bank::none, false, false, #name},
#define REMAP(name) Operand{remap, Bank::any, false, true, #name},
#define CASES(name) Operand{cases, Bank::any, false, true, #name},
#define U16S(name) Operand{u16_list, Bank::none, false, false, #name},
#define OP(set, byte, identifier, mnemonic, since, flags, operands) \
  ops[index++] = OpInfo(OpSet::set, byte, mnemonic, since, flags, {operands});
#include "vm/format/opcodes.inc"
#undef OP
#undef IN
#undef IN_MOVE
#undef OUT
#undef OUT_MOVE
#undef INS
#undef INS_MOVE
#undef OUTS
#undef IMM
#undef GLOBAL_BYTES
#undef GLOBAL_REF
#undef RODATA
#undef TYPE
#undef FUNC
#undef STRING
#undef BLOCK
#undef REMAP
#undef CASES
#undef U16S
  return ops;
}();

constexpr const OpInfo& info(Op op) { return kOps[static_cast<size_t>(op)]; }

// The opcode at `byte` of `set`; Op::kCount if there is none.
inline constexpr auto kOpBySetAndByte = [] {
  std::array<std::array<Op, 256>, 3> ops;
  for (auto& set : ops) set.fill(Op::kCount);
  for (size_t i = 0; i < kOpCount; ++i)
    ops[static_cast<size_t>(kOps[i].set)][kOps[i].byte] = static_cast<Op>(i);
  return ops;
}();

// The opcode that starts a block.
inline constexpr Op kBlockMarker = [] {
  size_t op = 0;
  while (!(kOps[op].flags & MARKER)) ++op;
  return static_cast<Op>(op);
}();

// Register fields, isa.md 2.1.
inline constexpr uint16_t kRefBit = 0x8000;
inline constexpr uint16_t kMoveBit = 0x4000;
inline constexpr uint16_t kRefOrdinalMask = 0x3FFF;
inline constexpr uint32_t kImportBit = 0x80000000u;  // of a func operand

// The most registers that a function descriptor may declare, module-format.md, section 4.
inline constexpr uint32_t kMaxValueRegisters = 0x7FFF;
inline constexpr uint32_t kMaxRefRegisters = 0x3FFF;

}  // namespace halyard::vm
