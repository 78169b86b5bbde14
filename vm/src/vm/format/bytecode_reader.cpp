// Decoding of operands, one case for each kind.
#include "vm/format/bytecode_reader.h"

namespace halyard::vm {

namespace {

// Reads little-endian numbers from the remaining bytes of the function. Returns false if there are too few
// bytes.
class Cursor {
 public:
  Cursor(std::span<const uint8_t> code, uint32_t pc) : code_(code), pc_(pc) {}

  uint32_t pc() const { return pc_; }
  const uint8_t* position() const { return code_.data() + pc_; }

  bool skip(uint64_t count) {
    if (count > code_.size() - pc_) return false;
    pc_ += static_cast<uint32_t>(count);
    return true;
  }
  template <typename T>
  bool read(T& value) {
    const uint8_t* bytes = position();
    if (!skip(sizeof(T))) return false;
    value = load_unaligned<T>(bytes);
    return true;
  }
  bool align() { return pc_ % 2 == 0 || skip(1); }

 private:
  std::span<const uint8_t> code_;
  uint32_t pc_;
};

bool read_remap(Cursor& cursor, RemapList& remap) {
  uint16_t count = 0;
  if (!cursor.align() || !cursor.read(count)) return false;
  remap = RemapList(cursor.position(), count);
  return cursor.skip(uint64_t{4} * count);
}

bool read_cases(std::span<const uint8_t> code, Cursor& cursor, CaseList& cases) {
  uint16_t count = 0;
  if (!cursor.read(count)) return false;
  cases = CaseList(code.data(), cursor.pc(), count);
  for (uint16_t i = 0; i < count; ++i) {
    CaseEntry entry;
    if (!cursor.read(entry.target) || !read_remap(cursor, entry.remap)) return false;
  }
  return true;
}

bool read_immediate(Cursor& cursor, Bank bank, uint64_t& bits) {
  if (bank == Bank::i64 || bank == Bank::f64) return cursor.read(bits);
  uint32_t narrow = 0;
  if (!cursor.read(narrow)) return false;
  bits = narrow;
  return true;
}

bool read_operand(std::span<const uint8_t> code, Cursor& cursor, const Operand& operand,
                  DecodedOperand& out) {
  uint16_t count = 0;
  switch (operand.kind) {
    case OperandKind::reg:
      return cursor.read(out.reg);
    case OperandKind::immediate:
      return read_immediate(cursor, operand.bank, out.immediate);
    case OperandKind::global_bytes:
    case OperandKind::global_ref:
    case OperandKind::rodata:
    case OperandKind::type:
    case OperandKind::func:
    case OperandKind::block:
      return cursor.read(out.index);
    case OperandKind::reg_list:
    case OperandKind::u16_list:
      if (!cursor.align() || !cursor.read(count)) return false;
      out.regs = RegList(cursor.position(), count);
      return cursor.skip(uint64_t{2} * count);
    case OperandKind::string:
      if (!cursor.read(count)) return false;
      out.string = {reinterpret_cast<const char*>(cursor.position()), count};
      return cursor.skip(count);
    case OperandKind::remap:
      return read_remap(cursor, out.remap);
    case OperandKind::cases:
      return read_cases(code, cursor, out.cases);
  }
  return false;
}

Result<Op> read_opcode(Cursor& cursor, uint32_t bytecode_version, uint32_t features) {
  uint8_t byte = 0;
  if (!cursor.read(byte))
    return fail(Code::OUT_OF_RANGE, "expected an instruction at pc {}, found the end of the function",
                cursor.pc());
  Op op = kOpBySetAndByte[static_cast<size_t>(OpSet::CORE)][byte];
  if (op == Op::kCount) return fail(Code::INVALID_ARGUMENT, "byte 0x{:02X} is not an opcode", byte);
  if (const OpSet set = selected_set(op); set != OpSet::CORE) {
    if (!(features & feature_of(set)))
      return fail(
          Code::INVALID_ARGUMENT,
          "the requirements of the function lack {0}, which this opcode needs; expected the bit to be set",
          set == OpSet::F64 ? "EXT_F64" : "EXT_F32");
    const uint8_t prefix = byte;
    if (!cursor.read(byte))
      return fail(Code::OUT_OF_RANGE,
                  "expected an opcode after the prefix 0x{:02X}, found the end of the function", prefix);
    op = kOpBySetAndByte[static_cast<size_t>(set)][byte];
    if (op == Op::kCount)
      return fail(Code::INVALID_ARGUMENT, "bytes 0x{:02X} 0x{:02X} are not an opcode", prefix, byte);
  }
  if (info(op).since > bytecode_version)
    return fail(Code::INVALID_ARGUMENT,
                "opcode '{}' (0x{:02X}) exists since bytecode {}, the module is bytecode {}",
                info(op).mnemonic(), byte, info(op).since, bytecode_version);
  return op;
}

}  // namespace

CaseEntry CaseList::Iterator::operator*() const {
  const uint32_t remap = (pc_ + 4 + 1) & ~1u;
  return {load_unaligned<uint32_t>(code_ + pc_),
          RemapList(code_ + remap + 2, load_unaligned<uint16_t>(code_ + remap))};
}

CaseList::Iterator& CaseList::Iterator::operator++() {
  const uint32_t remap = (pc_ + 4 + 1) & ~1u;
  pc_ = remap + 2 + 4u * load_unaligned<uint16_t>(code_ + remap);
  ++index_;
  return *this;
}

Result<> read_any_instruction(std::span<const uint8_t> code, uint32_t pc, uint32_t bytecode_version,
                              uint32_t features, Instruction& instruction) {
  if (pc >= code.size())
    return fail(Code::OUT_OF_RANGE, "expected an instruction at pc {}, but the function has {} bytes", pc,
                code.size());
  Cursor cursor(code, pc);
  instruction.op = HALYARD_TRY(read_opcode(cursor, bytecode_version, features));
  instruction.pc = pc;
  const OpInfo& opcode = info(instruction.op);
  for (size_t i = 0; i < opcode.operand_count; ++i) {
    if (!read_operand(code, cursor, opcode.operands[i], instruction.operands[i]))
      return fail(Code::OUT_OF_RANGE, "operand '{}' of '{}' reaches past the end of the function ({} bytes)",
                  opcode.operands[i].name(), opcode.mnemonic(), code.size());
  }
  instruction.next_pc = cursor.pc();
  return {};
}

}  // namespace halyard::vm
