// One pass over a function. Operands are checked by their kind in the opcode table; calls and returns are
// also checked against the calling convention of the callee.
#include "vm/verify/verifier.h"

#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vm/format/bytecode_reader.h"
#include "vm/format/opcode_traits.h"

namespace halyard::vm {

namespace {

constexpr uint32_t kEndOfBlockPcs = 0x00FFFFFF;

Bank bank_of(char type) {
  switch (type) {
    case 'i':
      return Bank::i32;
    case 'I':
      return Bank::i64;
    case 'f':
      return Bank::f32;
    case 'F':
      return Bank::f64;
    default:
      return Bank::ref;
  }
}

std::string_view bank_name(Bank bank) {
  constexpr std::string_view kNames[] = {"no", "i32", "i64", "f32", "f64", "ref", "any"};
  return kNames[static_cast<size_t>(bank)];
}

// Parses a convention for verification: every error is INVALID_ARGUMENT, except an unknown version.
Result<Convention> parse_convention(std::string_view text) {
  Result<Convention> convention = Convention::parse(text);
  if (!convention && text[0] == '0') return fail(Code::INVALID_ARGUMENT, "{}", convention.error().message());
  return convention;
}

// "place: message"
Result<> in_place(std::string_view place, Result<> result) {
  if (!result) return fail(result.error().code(), "{}: {}", place, result.error().message());
  return result;
}

// Checks of registers against the register counts of a function.
struct RegisterCheck {
  const Function& function;

  Result<> exists(uint16_t reg) const {
    if (reg & kRefBit) {
      if ((reg & kRefOrdinalMask) >= function.ref_registers)
        return fail(Code::OUT_OF_RANGE, "names r{}, but the function has {} ref registers",
                    reg & kRefOrdinalMask, function.ref_registers);
    } else if (reg >= function.value_registers) {
      return fail(Code::OUT_OF_RANGE, "names i{}, but the function has {} value registers", reg,
                  function.value_registers);
    }
    return {};
  }

  // Whether holds() would succeed.
  bool fits(uint16_t reg, Bank bank) const {
    if (reg & kRefBit)
      return (bank == Bank::ref || bank == Bank::any) && (reg & kRefOrdinalMask) < function.ref_registers;
    if (bank == Bank::ref) return false;
    if (is_wide(bank)) return reg % 2 == 0 && reg + 1 < function.value_registers;
    return reg < function.value_registers;
  }

  Result<> holds(uint16_t reg, Bank bank) const {
    if (fits(reg, bank)) [[likely]]
      return {};
    return refuse(reg, bank);
  }

  [[gnu::cold]] Result<> refuse(uint16_t reg, Bank bank) const {
    const bool is_ref = reg & kRefBit;
    if (bank != Bank::any && is_ref != (bank == Bank::ref))
      return fail(Code::INVALID_ARGUMENT, "names {}{}; expected a register of kind {}", is_ref ? 'r' : 'i',
                  is_ref ? reg & kRefOrdinalMask : reg, bank_name(bank));
    if (is_wide(bank)) {
      if (reg % 2 != 0)
        return fail(Code::INVALID_ARGUMENT,
                    "names i{}; expected an even register, the low half of a 64-bit pair", reg);
      if (reg + 1 >= function.value_registers)
        return fail(Code::OUT_OF_RANGE, "names the pair i{}:{}, but the function has {} value registers", reg,
                    reg + 1, function.value_registers);
      return {};
    }
    return exists(reg);
  }

  // Checks the next entry of the list of a call or return.
  Result<> entry(std::string_view what, RegList list, size_t& index, char type) const {
    if (index >= list.size())
      return fail(Code::OUT_OF_RANGE, "expected at least {} {}, found {}", index + 1, what, list.size());
    if (Result<> result = holds(list[index], bank_of(type)); !result)
      return in_place(fmt::format("entry {} of the {}", index, what), std::move(result));
    ++index;
    return {};
  }

  // Checks one entry for each type.
  Result<> entries(std::string_view what, RegList list, std::string_view types) const {
    size_t index = 0;
    for (const char type : types) HALYARD_TRY(entry(what, list, index, type));
    return {};
  }

  // `segments` is empty if the instruction is not variadic.
  Result<> arguments(const Convention& convention, RegList list, bool variadic, RegList segments) const {
    if (convention.has_span && !variadic)
      return fail(Code::INVALID_ARGUMENT, "the callee takes a span; expected the variadic form of the call");
    size_t index = 0;
    for (const ConventionItem& item : convention.arguments) {
      if (item.type != 'C') {
        HALYARD_TRY(entry("arguments", list, index, item.type));
        continue;
      }
      if (item.segment >= segments.size())
        return fail(Code::OUT_OF_RANGE, "expected at least {} segment sizes, found {}", item.segment + 1,
                    segments.size());
      for (uint32_t tuple = segments[item.segment]; tuple > 0; --tuple)
        for (const char type : item.span) HALYARD_TRY(entry("arguments", list, index, type));
    }
    return {};
  }
};

// The operands of a call, found by their kinds.
struct Call {
  uint32_t callee = 0;
  RegList arguments;
  RegList results;
  RegList segments;
  bool variadic = false;

  explicit Call(const Instruction& instruction) {
    const OpInfo& opcode = info(instruction.op);
    for (size_t i = 0; i < opcode.operand_count; ++i) {
      const DecodedOperand& operand = instruction.operands[i];
      switch (opcode.operands[i].kind) {
        case OperandKind::func:
          callee = operand.index;
          break;
        case OperandKind::u16_list:
          segments = operand.regs;
          variadic = true;
          break;
        case OperandKind::reg_list:
          (opcode.operands[i].writes ? results : arguments) = operand.regs;
          break;
        default:
          break;
      }
    }
  }

  Result<> check(const RegisterCheck& registers, const PlainTypes& types) const {
    HALYARD_TRY(registers.entries("arguments", arguments, types.arguments));
    return registers.entries("results", results, types.results);
  }
  Result<> check(const RegisterCheck& registers, const Convention& convention) const {
    HALYARD_TRY(registers.arguments(convention, arguments, variadic, segments));
    size_t index = 0;
    for (const ConventionItem& item : convention.results)
      HALYARD_TRY(registers.entry("results", results, index, item.type));
    return {};
  }
};

bool is_call(Op op) { return has_trait(op, CALLS); }

std::string describe_call(const BytecodeModule& module, Op op, const Call& call) {
  const uint32_t callee = call.callee;
  const bool yieldable = has_trait(op, SUSPENDS);
  const bool variadic = call.variadic;
  const std::string form =
      fmt::format("{}{}call to ", yieldable ? "yieldable " : "", variadic ? "variadic " : "");
  if (callee & kImportBit)
    return fmt::format("{}import '{}'", form, module.imports()[callee & ~kImportBit].name);
  return fmt::format("{}internal function {}", form, callee);
}

class FunctionVerifier {
 public:
  FunctionVerifier(const BytecodeModule& module, const Function& function)
      : module_(module), function_(function), registers_{function} {}

  uint32_t pc() const { return pc_; }  // of the failing instruction

  Result<> verify() {
    HALYARD_TRY(check_frame());
    blocks_.resize(function_.bytecode.size());
    bool in_block = false;
    Instruction instruction;
    while (has_instruction(function_.bytecode, pc_)) {
      const bool marker = function_.bytecode[pc_] == info(kBlockMarker).byte;
      if (marker == in_block)
        return in_block
                   ? fail(Code::INVALID_ARGUMENT,
                          "found a block marker inside a block; expected a terminator before it")
                   : fail(Code::INVALID_ARGUMENT, "expected a block marker (0x{:02X}), found byte 0x{:02X}",
                          info(kBlockMarker).byte, function_.bytecode[pc_]);
      HALYARD_TRY(read_instruction(function_.bytecode, pc_, module_.bytecode_version(), function_.features,
                                   instruction));
      if (marker) HALYARD_TRY(add_block(pc_, kMarker));
      HALYARD_TRY(check_operands(instruction));
      if (is_call(instruction.op)) HALYARD_TRY(check_call(instruction));
      if (has_trait(instruction.op, RETURNS))
        HALYARD_TRY(registers_.entries("returned values", instruction.operands[0].regs, result_types_));
      in_block = !info(instruction.op).terminator();
      pc_ = instruction.next_pc;
    }
    if (in_block) return fail(Code::INVALID_ARGUMENT, "the last block has no terminator");
    return check_blocks();
  }

 private:
  enum : uint8_t { kMarker = 1, kTarget = 2 };

  // Checks the rules of section 3.1.
  Result<> check_frame() {
    const uint32_t unknown = function_.features & ~known_features(module_.bytecode_version());
    if (unknown != 0)
      return fail(Code::INVALID_ARGUMENT,
                  "the function requires features 0x{:X}, which bytecode {} does not have", unknown,
                  module_.bytecode_version());
    if (function_.value_registers > kMaxValueRegisters || function_.ref_registers > kMaxRefRegisters)
      return fail(Code::RESOURCE_EXHAUSTED,
                  "the function has {} value and {} ref registers (rounded up to powers of two); expected at "
                  "most 16384 and 8192",
                  function_.value_registers, function_.ref_registers);
    const std::string argument_types = HALYARD_TRY(find_types());
    uint64_t values = 0;
    uint64_t refs = 0;
    for (const char type : argument_types) {
      const Bank bank = bank_of(type);
      if (bank == Bank::ref) {
        ++refs;
      } else {
        values = is_wide(bank) ? (values + 1) / 2 * 2 + 2 : values + 1;
      }
    }
    if (values > function_.value_registers || refs > function_.ref_registers)
      return fail(Code::INVALID_ARGUMENT,
                  "the arguments of '{}' take {} value and {} ref registers, but the function has {} and {}",
                  function_.convention, values, refs, function_.value_registers, function_.ref_registers);
    return {};
  }

  // Parses the function's own convention. Returns the types of the arguments, and stores those of the
  // results.
  Result<std::string> find_types() {
    if (const std::optional<PlainTypes> plain = plain_types(function_.convention)) {
      result_types_ = plain->results;
      return std::string(plain->arguments);
    }
    const Convention convention = HALYARD_TRY(parse_convention(function_.convention));
    if (convention.has_span)
      return fail(Code::INVALID_ARGUMENT, "calling convention '{}': only imports may take spans",
                  function_.convention);
    std::string arguments;
    for (const ConventionItem& item : convention.arguments) arguments += item.type;
    result_types_ = convention.result_types();
    return arguments;
  }

  Result<> add_block(uint32_t pc, uint8_t kind) {
    if (pc >= kEndOfBlockPcs)
      return fail(Code::OUT_OF_RANGE, "a block begins at pc 0x{:X}; expected a pc below 0x{:X}", pc,
                  kEndOfBlockPcs);
    if (!has_instruction(function_.bytecode, pc))
      return fail(Code::INVALID_ARGUMENT,
                  "a branch to pc 0x{:X}, which is not within the function (0x{:X} bytes)", pc,
                  function_.bytecode.size());
    if (blocks_[pc] == 0 && ++block_count_ > function_.block_count)
      return fail(Code::INVALID_ARGUMENT, "the function has more blocks than the stated {}",
                  function_.block_count);
    blocks_[pc] |= kind;
    return {};
  }

  Result<> check_blocks() {
    if (block_count_ != function_.block_count)
      return fail(Code::INVALID_ARGUMENT, "the function states {} blocks, but {} were found",
                  function_.block_count, block_count_);
    if (const void* alone = std::memchr(blocks_.data(), kTarget, blocks_.size()))
      return fail(Code::INVALID_ARGUMENT, "a branch to pc 0x{:X}, where no block starts",
                  static_cast<const uint8_t*>(alone) - blocks_.data());
    return {};
  }

  Result<> check_operands(const Instruction& instruction) {
    const OpInfo& opcode = info(instruction.op);
    for (size_t i = 0; i < opcode.operand_count; ++i) {
      const Operand& operand = opcode.operands[i];
      if (operand.kind == OperandKind::reg && registers_.fits(instruction.operands[i].reg, operand.bank))
        continue;
      Result<> result = check_operand(instruction, operand, instruction.operands[i]);
      if (!result)
        return in_place(fmt::format("operand '{}' of '{}'", operand.name(), opcode.mnemonic()),
                        std::move(result));
    }
    return {};
  }

  Result<> check_operand(const Instruction& instruction, const Operand& operand,
                         const DecodedOperand& value) {
    switch (operand.kind) {
      case OperandKind::reg:
        return registers_.holds(value.reg, operand.bank);
      case OperandKind::reg_list:
        for (size_t i = 0; i < value.regs.size(); ++i)
          HALYARD_TRY(registers_.holds(value.regs[i], operand.bank));
        return {};
      case OperandKind::immediate:
      case OperandKind::string:
      case OperandKind::u16_list:
        return {};
      case OperandKind::global_bytes:
        return check_global(instruction, value.index);
      case OperandKind::global_ref:
        return in_table(value.index, module_.global_refs(), "ref global");
      case OperandKind::rodata:
        return in_table(value.index, module_.rodata().size(), "constant");
      case OperandKind::type:
        return in_table(value.index, module_.types().size(), "type");
      case OperandKind::func:
        return check_function(instruction.op, value.index);
      case OperandKind::block:
        return add_block(value.index, kTarget);
      case OperandKind::remap:
        return check_remap(value.remap);
      case OperandKind::cases:
        for (const CaseEntry entry : value.cases) {
          HALYARD_TRY(add_block(entry.target, kTarget));
          HALYARD_TRY(check_remap(entry.remap));
        }
        return {};
    }
    return {};
  }

  Result<> in_table(uint32_t ordinal, size_t count, std::string_view what) {
    if (ordinal >= count)
      return fail(Code::OUT_OF_RANGE, "{} {} does not exist; the module has {}", what, ordinal, count);
    return {};
  }

  // The size of the global follows from the instruction's register operand.
  Result<> check_global(const Instruction& instruction, uint32_t offset) {
    const uint64_t size = is_wide(info(instruction.op).operands[1].bank) ? 8 : 4;
    if (offset + size > module_.global_bytes())
      return fail(Code::OUT_OF_RANGE, "globals {} to {} do not exist; the module has {} bytes of them",
                  offset, offset + size, module_.global_bytes());
    return {};
  }

  Result<> check_function(Op op, uint32_t function) {
    const bool import = function & kImportBit;
    const uint32_t ordinal = function & ~kImportBit;
    if (has_trait(op, NAMES_IMPORT) && !import)
      return fail(Code::INVALID_ARGUMENT, "names internal function {}; expected an import (bit 31 set)",
                  ordinal);
    const size_t count = import ? module_.imports().size() : module_.functions().size();
    if (ordinal >= count)
      return fail(Code::INVALID_ARGUMENT, "{} {} does not exist; the module has {}",
                  import ? "import" : "function", ordinal, count);
    return {};
  }

  Result<> check_remap(RemapList remap) {
    for (size_t i = 0; i < remap.size(); ++i) {
      HALYARD_TRY(registers_.exists(remap[i].source));
      HALYARD_TRY(registers_.exists(remap[i].destination));
      if ((remap[i].source & kRefBit) != (remap[i].destination & kRefBit))
        return fail(Code::INVALID_ARGUMENT,
                    "move {} is between a value and a ref register; expected two of one kind", i);
    }
    return {};
  }

  Result<> check_call(const Instruction& instruction) {
    const Call call(instruction);
    Result<> result = check_callee(call);
    if (!result) return in_place(describe_call(module_, instruction.op, call), std::move(result));
    return {};
  }

  Result<> check_callee(const Call& call) {
    const bool import = call.callee & kImportBit;
    if (call.variadic && !import)
      return fail(Code::FAILED_PRECONDITION,
                  "found a variadic call to an internal function; only imports take spans");
    const std::string_view text = import ? module_.imports()[call.callee & ~kImportBit].convention
                                         : module_.functions()[call.callee].convention;
    if (const std::optional<PlainTypes> types = plain_types(text)) return call.check(registers_, *types);
    return call.check(registers_, *HALYARD_TRY(parsed_convention(call.callee, text)));
  }

  Result<const Convention*> parsed_convention(uint32_t callee, std::string_view text) {
    const auto known = callees_.find(callee);
    if (known != callees_.end()) return &known->second;
    return &callees_.emplace(callee, HALYARD_TRY(parse_convention(text))).first->second;
  }

  const BytecodeModule& module_;
  const Function& function_;
  const RegisterCheck registers_;
  std::string result_types_;
  std::unordered_map<uint32_t, Convention> callees_;
  std::vector<uint8_t> blocks_;  // by pc: is there a marker, is it a branch target
  uint32_t block_count_ = 0;
  uint32_t pc_ = 0;
};

}  // namespace

std::string code_location(const BytecodeModule& module, uint32_t function, uint32_t pc) {
  const std::string_view name = module.function_name(function);
  if (name.empty()) return fmt::format("at {}@{}+{:08X}", module.name(), function, pc);
  return fmt::format("at {}.{}+{:08X}", module.name(), name, pc);
}

Result<> verify_function(const BytecodeModule& module, uint32_t function) {
  FunctionVerifier verifier(module, module.functions()[function]);
  Result<> result = verifier.verify();
  if (!result) return with_note(std::move(result), code_location(module, function, verifier.pc()));
  return {};
}

Result<> check_import_calls(const BytecodeModule& module, std::span<const Convention* const> providers) {
  for (uint32_t ordinal = 0; ordinal < module.functions().size(); ++ordinal) {
    const Function& function = module.functions()[ordinal];
    const RegisterCheck registers{function};
    for (uint32_t pc = 0; has_instruction(function.bytecode, pc);) {
      const Result<Instruction> instruction =
          read_instruction(function.bytecode, pc, module.bytecode_version(), function.features);
      if (!instruction) break;
      pc = instruction->next_pc;
      if (!is_call(instruction->op)) continue;
      const Call call(*instruction);
      const uint32_t import = call.callee & ~kImportBit;
      if (!(call.callee & kImportBit) || import >= providers.size() || !providers[import]) continue;
      Result<> result = call.check(registers, *providers[import]);
      if (!result)
        return with_note(in_place(describe_call(module, instruction->op, call), std::move(result)),
                         code_location(module, ordinal, instruction->pc));
    }
  }
  return {};
}

}  // namespace halyard::vm
