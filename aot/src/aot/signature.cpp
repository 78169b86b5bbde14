#include "aot/signature.h"

#include "vm/module/calling_convention.h"

namespace halyard::aot {

namespace {

// The verifier has parsed the convention of everything that is called.
vm::Convention parsed(std::string_view text) { return *vm::Convention::parse(text); }

}  // namespace

Types types_of(std::string_view text) {
  const vm::Convention convention = parsed(text);
  Types types;
  for (const vm::ConventionItem& item : convention.arguments) types.arguments += item.type;
  types.results = convention.result_types();
  return types;
}

Types function_types(const vm::BytecodeModule& module, uint32_t function) {
  return types_of(module.functions()[function].convention);
}

CallOperands::CallOperands(const vm::Instruction& instruction) {
  const vm::OpInfo& op = vm::info(instruction.op);
  for (size_t i = 0; i < op.operand_count; ++i) {
    const vm::DecodedOperand& operand = instruction.operands[i];
    if (op.operands[i].kind == vm::OperandKind::func) {
      callee = operand.index & ~vm::kImportBit;
      is_import = operand.index & vm::kImportBit;
    } else if (op.operands[i].kind == vm::OperandKind::u16_list) {
      segments = operand.regs;
      is_variadic = true;
    } else if (op.operands[i].kind == vm::OperandKind::reg_list) {
      (op.operands[i].writes ? results : arguments) = operand.regs;
    }
  }
}

Types call_types(const vm::BytecodeModule& module, const CallOperands& call) {
  const vm::Convention convention = parsed(call.is_import ? module.imports()[call.callee].convention
                                                          : module.functions()[call.callee].convention);
  Types types;
  types.results = convention.result_types();
  for (const vm::ConventionItem& item : convention.arguments) {
    if (item.type != 'C') {
      types.arguments += item.type;
      continue;
    }
    for (uint32_t tuple = call.segments[item.segment]; tuple > 0; --tuple) types.arguments += item.span;
  }
  return types;
}

std::vector<uint16_t> argument_registers(std::string_view types) {
  std::vector<uint16_t> registers;
  uint16_t value = 0;
  uint16_t ref = 0;
  for (const char type : types) {
    if (type == 'r') {
      registers.push_back(vm::kRefBit | ref++);
      continue;
    }
    const bool wide = vm::is_wide(bank_of(type));
    if (wide) value = static_cast<uint16_t>((value + 1) / 2 * 2);
    registers.push_back(value);
    value = static_cast<uint16_t>(value + (wide ? 2 : 1));
  }
  return registers;
}

}  // namespace halyard::aot
