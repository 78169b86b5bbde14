// The types of functions and calls, and the value registers that an instruction names, with their banks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "vm/format/bytecode_reader.h"
#include "vm/module/bytecode_module.h"

namespace halyard::aot {

// The arguments and results of a function, one character of the calling convention for each.
struct Types {
  std::string arguments;
  std::string results;
};

constexpr vm::Bank bank_of(char type) {
  switch (type) {
    case 'i':
      return vm::Bank::i32;
    case 'I':
      return vm::Bank::i64;
    case 'f':
      return vm::Bank::f32;
    case 'F':
      return vm::Bank::f64;
    default:
      return vm::Bank::ref;
  }
}

// The types of a convention without spans, which the verifier has parsed.
Types types_of(std::string_view convention);
// The types of a function of the module, which has passed the verifier.
Types function_types(const vm::BytecodeModule& module, uint32_t function);

// The operands of a call, in any of its forms.
struct CallOperands {
  uint32_t callee = 0;  // without the import bit
  bool is_import = false;
  bool is_variadic = false;
  vm::RegList segments;
  vm::RegList arguments;
  vm::RegList results;

  explicit CallOperands(const vm::Instruction& instruction);
};

// The types of the registers that a call names, with the tuples of spans repeated. Empty for an import that
// states no convention.
Types call_types(const vm::BytecodeModule& module, const CallOperands& call);

// Where the arguments of a function begin: the register of each argument, with the ref bit.
std::vector<uint16_t> argument_registers(std::string_view types);

// Calls each(register, bank, writes) for the value registers that the instruction names: first those it
// reads, then those it writes, each in the order of the operands. `results` are the types that the function
// returns.
template <typename Each>
void for_each_value(const vm::BytecodeModule& module, std::string_view results,
                    const vm::Instruction& instruction, Each each) {
  using vm::OperandKind;
  const vm::OpInfo& op = vm::info(instruction.op);
  const auto list = [&](const vm::RegList& regs, std::string_view types, bool writes) {
    for (size_t i = 0; i < regs.size() && i < types.size(); ++i)
      if (types[i] != 'r') each(regs[i], bank_of(types[i]), writes);
  };
  if (vm::has_trait(instruction.op, vm::CALLS)) {
    const CallOperands call(instruction);
    const Types types = call_types(module, call);
    list(call.arguments, types.arguments, false);
    list(call.results, types.results, true);
    return;
  }
  if (vm::has_trait(instruction.op, vm::RETURNS)) return list(instruction.operands[0].regs, results, false);
  for (const bool writes : {false, true}) {
    for (size_t i = 0; i < op.operand_count; ++i) {
      const vm::Operand& operand = op.operands[i];
      if (operand.writes != writes || operand.bank == vm::Bank::ref || operand.bank == vm::Bank::any)
        continue;
      if (operand.kind == OperandKind::reg) each(instruction.operands[i].reg, operand.bank, writes);
      if (operand.kind == OperandKind::reg_list)
        for (size_t n = 0; n < instruction.operands[i].regs.size(); ++n)
          each(instruction.operands[i].regs[n], operand.bank, writes);
    }
  }
}

}  // namespace halyard::aot
