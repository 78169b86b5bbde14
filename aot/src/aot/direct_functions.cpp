#include "aot/direct_functions.h"

#include <algorithm>
#include <utility>

#include "aot/forms.h"
#include "aot/signature.h"

namespace halyard::aot {

namespace {

struct Facts {
  bool is_direct = true;
  bool has_loops = false;
  bool has_effects = false;
};

bool is_value(vm::Bank bank) { return bank != vm::Bank::ref; }

// What the instruction says; the callee's are not known here.
void add_instruction(const vm::Instruction& instruction, uint32_t pc, Facts& facts) {
  using enum Form::Own;
  const vm::OpInfo& op = vm::info(instruction.op);
  const Form& form = form_of(instruction.op);
  const bool is_kept = form.own == nothing || form.own == jump || form.own == choose ||
                       form.own == jump_by_table || form.own == leave || form.own == resolved ||
                       form.own == pick;
  const bool is_plain_call =
      instruction.op == vm::Op::call && !(instruction.operands[0].index & vm::kImportBit);
  facts.is_direct &= form.kind == Form::Kind::value || form.kind == Form::Kind::statement ||
                     (form.kind == Form::Kind::own && (is_kept || is_plain_call));
  facts.is_direct &= !vm::has_trait(instruction.op, vm::SUSPENDS);
  facts.has_effects |= form.kind == Form::Kind::statement;
  for (size_t i = 0; i < op.operand_count; ++i) {
    const vm::DecodedOperand& operand = instruction.operands[i];
    if (op.operands[i].kind == vm::OperandKind::reg) facts.is_direct &= is_value(op.operands[i].bank);
    if (op.operands[i].kind == vm::OperandKind::reg_list)
      for (size_t n = 0; n < operand.regs.size(); ++n) facts.is_direct &= !(operand.regs[n] & vm::kRefBit);
    if (op.operands[i].kind == vm::OperandKind::remap)
      for (size_t n = 0; n < operand.remap.size(); ++n)
        facts.is_direct &= !(operand.remap[n].source & vm::kRefBit);
    // Blocks are in the order of the text, so each loop has a branch back.
    if (op.operands[i].kind == vm::OperandKind::block) facts.has_loops |= operand.index <= pc;
    if (op.operands[i].kind == vm::OperandKind::cases)
      for (const vm::CaseEntry entry : operand.cases) {
        facts.has_loops |= entry.target <= pc;
        for (size_t n = 0; n < entry.remap.size(); ++n)
          facts.is_direct &= !(entry.remap[n].source & vm::kRefBit);
      }
  }
}

Facts facts_of(const vm::BytecodeModule& module, uint32_t ordinal) {
  const vm::Function& function = module.functions()[ordinal];
  const Types types = function_types(module, ordinal);
  Facts facts;
  facts.is_direct = types.results.size() == 1 && types.results[0] != 'r' && !types.arguments.contains('r');
  for (uint32_t pc = 0; vm::has_instruction(function.bytecode, pc) && facts.is_direct;) {
    // The verifier has read it.
    const vm::Instruction instruction =
        *vm::read_instruction(function.bytecode, pc, module.bytecode_version(), function.features);
    add_instruction(instruction, pc, facts);
    pc = instruction.next_pc;
  }
  return facts;
}

// Adds the loops and the effects of the functions that each function calls, and of those that these call.
void add_callees(const std::map<uint32_t, std::set<uint32_t>>& calls, std::map<uint32_t, Facts>& facts) {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& [function, own] : facts)
      for (const uint32_t callee : calls.at(function)) {
        const auto found = facts.find(callee);
        if (found == facts.end()) continue;
        changed |= (found->second.has_loops && !std::exchange(own.has_loops, true)) ||
                   (found->second.has_effects && !std::exchange(own.has_effects, true));
      }
  }
}

}  // namespace

DirectFunctions direct_functions(const vm::BytecodeModule& module,
                                 const std::map<uint32_t, std::set<uint32_t>>& calls,
                                 const std::set<uint32_t>& recursive, const std::set<uint32_t>& kept) {
  DirectFunctions found;
  std::map<uint32_t, Facts> facts;
  for (const auto& [function, callees] : calls) {
    if (kept.contains(function)) continue;
    facts[function] = facts_of(module, function);
    if (facts[function].is_direct) found.all.insert(function);
  }
  add_callees(calls, facts);
  for (bool changed = true; changed;) {
    // A function is bounded if it or a callee is recursive.
    found.bounded.clear();
    for (bool grows = true; grows;) {
      grows = false;
      for (const uint32_t function : found.all) {
        const bool is_bounded =
            recursive.contains(function) || std::ranges::any_of(calls.at(function), [&](uint32_t callee) {
              return found.bounded.contains(callee);
            });
        if (is_bounded) grows |= found.bounded.insert(function).second;
      }
    }
    changed = std::erase_if(found.all, [&](uint32_t function) {
                const bool is_calm = !facts[function].has_loops && !facts[function].has_effects;
                return (found.bounded.contains(function) && !is_calm) ||
                       std::ranges::any_of(calls.at(function),
                                           [&](uint32_t callee) { return !found.all.contains(callee); });
              }) != 0;
  }
  return found;
}

}  // namespace halyard::aot
