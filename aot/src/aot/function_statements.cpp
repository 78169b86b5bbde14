// The statements of FunctionWriter: operands, and the instructions that neither branch nor call.
#include <fmt/core.h>

#include "aot/c_text.h"
#include "aot/function_writer.h"

namespace halyard::aot {

using vm::Bank;
using vm::OperandKind;

// ---- operands

FunctionWriter::Text FunctionWriter::read(const Variable& variable, Bank bank) {
  using enum Variable::Type;
  const auto named = [&](const Variable& of) {
    const Text name = of.name();
    declared_[static_cast<size_t>(of.type)].insert(name);
    read_.insert(name);
    return name;
  };
  if (variable.split) {
    const Text low = named({.type = i32, .slot = variable.slot});
    const Text high = named({.type = i32, .slot = static_cast<uint16_t>(variable.slot + 1)});
    const Text both = fmt::format("vm_pair({}, {})", low, high);
    return bank == Bank::f64 ? fmt::format("vm_f64({})", both) : both;
  }
  Text name = named(variable);
  switch (bank) {
    case Bank::i32:
      return variable.type == f32 ? fmt::format("vm_bits_f32({})", name) : name;
    case Bank::i64:
      return variable.type == f64 ? fmt::format("vm_bits_f64({})", name) : name;
    case Bank::f32:
      return variable.type == f32 ? name : fmt::format("vm_f32({})", name);
    case Bank::f64:
      return variable.type == f64 ? name : fmt::format("vm_f64({})", name);
    default:
      return name;
  }
}

void FunctionWriter::assign(const Variable& variable, Bank bank, const Text& expression) {
  using enum Variable::Type;
  const auto named = [&](const Variable& of) {
    declared_[static_cast<size_t>(of.type)].insert(of.name());
    return of.name();
  };
  if (variable.split) {
    const Text low = named({.type = i32, .slot = variable.slot});
    const Text high = named({.type = i32, .slot = static_cast<uint16_t>(variable.slot + 1)});
    const Text bits = bank == Bank::f64 ? fmt::format("vm_bits_f64({})", expression) : expression;
    return line(fmt::format("vm_split({}, &{}, &{});", bits, low, high));
  }
  Text value = expression;
  if (bank == Bank::f32 && variable.type != f32) value = fmt::format("vm_bits_f32({})", expression);
  if (bank == Bank::f64 && variable.type != f64) value = fmt::format("vm_bits_f64({})", expression);
  if (bank == Bank::i32 && variable.type == f32) value = fmt::format("vm_f32({})", expression);
  if (bank == Bank::i64 && variable.type == f64) value = fmt::format("vm_f64({})", expression);
  const Text name = named(variable);
  if (value != name) line(fmt::format("{} = {};", name, value));
}

FunctionWriter::Text FunctionWriter::ref(uint16_t reg) {
  refs_.insert(reg & vm::kRefOrdinalMask);
  return fmt::format("r{}", reg & vm::kRefOrdinalMask);
}

FunctionWriter::Text FunctionWriter::owned_ref(uint16_t reg, bool take) {
  return fmt::format("{}{})", take ? "vm_take(&" : "vm_share(", ref(reg));
}

// The position of an operand among the value registers of the instruction, which lists do not precede.
size_t FunctionWriter::value_index(const vm::Instruction& instruction, size_t operand) const {
  const vm::OpInfo& op = vm::info(instruction.op);
  const auto counts = [&](size_t i, bool writes) -> size_t {
    const vm::Operand& each = op.operands[i];
    if (each.writes != writes || each.bank == Bank::ref || each.bank == Bank::any) return 0;
    if (each.kind == OperandKind::reg) return 1;
    return each.kind == OperandKind::reg_list ? instruction.operands[i].regs.size() : 0;
  };
  size_t index = 0;
  if (op.operands[operand].writes)
    for (size_t i = 0; i < op.operand_count; ++i) index += counts(i, false);
  for (size_t i = 0; i < operand; ++i) index += counts(i, op.operands[operand].writes);
  return index;
}

Variable FunctionWriter::variable_of(size_t step, size_t operand) {
  return variables_.at(step, value_index(flow_.instruction(step), operand));
}

// Whether a MOVE bit has an effect: isa.md, section 3.
bool FunctionWriter::moves(vm::Op op, const vm::Operand& operand, uint16_t reg) const {
  return module_.bytecode_version() >= 16 && operand.move && (reg & vm::kMoveBit) &&
         (!operand.writes || vm::has_trait(op, vm::TAKES));
}

FunctionWriter::Text FunctionWriter::operand(size_t step, size_t index) {
  const vm::Instruction& instruction = flow_.instruction(step);
  const vm::Operand& operand = vm::info(instruction.op).operands[index];
  const vm::DecodedOperand& value = instruction.operands[index];
  switch (operand.kind) {
    case OperandKind::reg:
      if (operand.bank == Bank::ref) return ref(value.reg);
      return read(variable_of(step, index), operand.bank);
    case OperandKind::immediate:
      switch (operand.bank) {
        case Bank::i64:
          return constant_i64(value.immediate);
        case Bank::f32:
          return constant_f32(static_cast<uint32_t>(value.immediate));
        case Bank::f64:
          return constant_f64(value.immediate);
        default:
          return constant_i32(static_cast<uint32_t>(value.immediate));
      }
    case OperandKind::type:
      return plan_.type(value.index);
    case OperandKind::rodata:
      return fmt::format("{}u", plan_.constant(value.index));
    default:
      return fmt::format("{}u", value.index);
  }
}

// A result that is passed by address is a variable of its type, or a temporary that is stored afterwards.
FunctionWriter::Text FunctionWriter::expand(size_t step, std::string_view form) {
  const vm::Instruction& instruction = flow_.instruction(step);
  const vm::OpInfo& op = vm::info(instruction.op);
  Text text;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] == '&' && i + 1 < form.size() && form[i + 1] == '$' && form[i + 2] >= '0' &&
        form[i + 2] <= '9') {
      const auto index = static_cast<size_t>(form[i + 2] - '0');
      text +=
          op.operands[index].bank == Bank::ref ? "&" + ref(instruction.operands[index].reg) : Text("&result");
      i += 2;
      continue;
    }
    if (form[i] != '$') {
      text += form[i];
      continue;
    }
    const char kind = form[++i];
    if (kind == 'v') {
      const auto index = static_cast<size_t>(form[++i] - '0');
      text += fmt::format("v{}", instruction.operands[index].reg & vm::kRefOrdinalMask);
    } else if (kind == 'p') {
      const auto index = static_cast<size_t>(form[++i] - '0');
      text += fmt::format("e{}", instruction.operands[index].reg & vm::kRefOrdinalMask);
    } else if (kind == 'L') {
      text += module_.bytecode_version() < 16 ? "1" : "0";
    } else if (kind == 'm') {
      const auto index = static_cast<size_t>(form[++i] - '0');
      text += moves(instruction.op, op.operands[index], instruction.operands[index].reg) ? "1" : "0";
    } else if (kind == 'e') {
      text += plan_.element_type(instruction.operands[static_cast<size_t>(form[++i] - '0')].index);
    } else {
      text += operand(step, static_cast<size_t>(kind - '0'));
    }
  }
  return text;
}

// Whether nothing reads the values that the instruction writes.
bool FunctionWriter::is_dead(size_t step) const {
  bool writes = false;
  for (const vm::Access access : flow_.accesses(step)) {
    if (!access.writes()) continue;
    writes = true;
    if (!access.last()) return false;
  }
  return writes;
}

// ---- instructions

void FunctionWriter::write_step(size_t step) {
  const vm::Instruction& instruction = flow_.instruction(step);
  const vm::OpInfo& op = vm::info(instruction.op);
  const Form& form = form_of(instruction.op);
  size_t result = op.operand_count;
  for (size_t i = 0; i < op.operand_count; ++i)
    if (op.operands[i].writes && op.operands[i].kind == OperandKind::reg && op.operands[i].bank != Bank::ref)
      result = i;
  const bool has_result = result < op.operand_count;
  switch (form.kind) {
    case Form::Kind::own:
      return write_own(form.own, step);
    case Form::Kind::guarded:
      if (form.condition.find("$v0") == std::string_view::npos ||
          (plan_.has_checks && loops_->is_checked(copy_, step)))
        fail_if(fmt::format("!({})", expand(step, form.condition)), expand(step, form.failure));
      [[fallthrough]];
    case Form::Kind::value:
    case Form::Kind::statement:
      if (compares_itself(step)) return write_self_comparison(step, result);
      if (!has_result) return line(expand(step, form.text) + ";");
      if (!is_dead(step))
        assign(variable_of(step, result), op.operands[result].bank, expand(step, form.text));
      return;
    case Form::Kind::attempt:
      if (!loops_->is_checked(copy_, step)) {
        const Text text = expand(step, list_access(instruction.op)->text);
        if (!has_result) return line(text + ";");
        if (!is_dead(step)) assign(variable_of(step, result), op.operands[result].bank, text);
        return;
      }
      if (!has_result) return check(expand(step, form.text));
      open("{");
      line(fmt::format("{} result = 0;", c_type(op.operands[result].bank)));
      check(expand(step, form.text));
      if (!is_dead(step)) assign(variable_of(step, result), op.operands[result].bank, "result");
      close();
      return;
  }
}

void FunctionWriter::write_own(Form::Own kind, size_t step) {
  switch (kind) {
    case Form::Own::nothing:
      return;
    case Form::Own::jump:
      return jump(step);
    case Form::Own::choose:
      return choose(step);
    case Form::Own::jump_by_table:
      return jump_by_table(step);
    case Form::Own::call:
      return call(step);
    case Form::Own::leave:
      return leave(step);
    case Form::Own::fail:
      return fail(step);
    case Form::Own::resolved:
      return resolved(step);
    case Form::Own::pick:
      return pick(step);
    case Form::Own::pick_ref:
      return pick_ref(step);
    case Form::Own::discard:
      return discard(step);
  }
}

// Whether the instruction compares an integer or a ref with itself, of which C compilers warn.
bool FunctionWriter::compares_itself(size_t step) const {
  const vm::Instruction& instruction = flow_.instruction(step);
  const vm::OpInfo& op = vm::info(instruction.op);
  if (op.operand_count != 3 || op.operands[0].bank != op.operands[1].bank ||
      has_trait(instruction.op, vm::SHIFTS) ||
      form_of(instruction.op).text.find_first_of("=<>") == std::string_view::npos)
    return false;
  const auto is_plain = [&](size_t i) {
    const Bank bank = op.operands[i].bank;
    return op.operands[i].kind == OperandKind::reg &&
           (bank == Bank::i32 || bank == Bank::i64 || bank == Bank::ref);
  };
  return is_plain(0) && is_plain(1) &&
         ((instruction.operands[0].reg ^ instruction.operands[1].reg) & ~vm::kMoveBit) == 0;
}

void FunctionWriter::write_self_comparison(size_t step, size_t result) {
  if (is_dead(step)) return;
  const vm::OpInfo& op = vm::info(flow_.instruction(step).op);
  const Text same = operand(step, 1);
  open("{");
  line(fmt::format("const {} same = {};", c_type(op.operands[1].bank), same));
  const std::string_view form = form_of(flow_.instruction(step).op).text;
  Text replaced;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] == '$') {
      replaced += form[++i] == '0' ? "same" : same;
    } else {
      replaced += form[i];
    }
  }
  assign(variable_of(step, result), op.operands[result].bank, replaced);
  close();
}

void FunctionWriter::resolved(size_t step) {
  const vm::Instruction& instruction = flow_.instruction(step);
  const bool is_there = !plan_.imports[instruction.operands[0].index & ~vm::kImportBit].callee.empty();
  if (!is_dead(step)) assign(variable_of(step, 1), Bank::i32, is_there ? "1" : "0");
}

// switch.i32 and its like.
void FunctionWriter::pick(size_t step) {
  if (is_dead(step)) return;
  const vm::Instruction& instruction = flow_.instruction(step);
  const Bank bank = vm::info(instruction.op).operands[1].bank;
  const Variable result = variable_of(step, 3);
  open(fmt::format("switch ({}) {{", operand(step, 0)));
  const vm::RegList& values = instruction.operands[2].regs;
  for (size_t i = 0; i < values.size(); ++i) {
    line(fmt::format("case {}:", i));
    ++depth_;
    assign(result, bank, read(variables_.at(step, value_index(instruction, 2) + i), bank));
    line("break;");
    --depth_;
  }
  line("default:");
  ++depth_;
  assign(result, bank, operand(step, 1));
  line("break;");
  --depth_;
  close();
}

void FunctionWriter::pick_ref(size_t step) {
  const vm::Instruction& instruction = flow_.instruction(step);
  const auto cast = [&](uint16_t reg, bool moved) {
    check(fmt::format("vm_cast(s, &{}, {}, {}, &{})", ref(reg), moved ? 1 : 0, operand(step, 1),
                      ref(instruction.operands[4].reg)));
    line("break;");
  };
  open(fmt::format("switch ({}) {{", operand(step, 0)));
  const vm::RegList& values = instruction.operands[3].regs;
  for (size_t i = 0; i < values.size(); ++i) {
    line(fmt::format("case {}:", i));
    ++depth_;
    cast(values[i], (values[i] & vm::kMoveBit) != 0);
    --depth_;
  }
  line("default:");
  ++depth_;
  const uint16_t other = instruction.operands[2].reg;
  cast(other, moves(instruction.op, vm::info(instruction.op).operands[2], other));
  --depth_;
  close();
}

// discard.refs releases all refs of its list, trace and print those with MOVE.
void FunctionWriter::discard(size_t step) {
  const vm::Instruction& instruction = flow_.instruction(step);
  const bool marked_only = vm::has_trait(instruction.op, vm::DIAGNOSTIC);
  const vm::RegList& list = instruction.operands[vm::info(instruction.op).operand_count - 1u].regs;
  for (size_t i = 0; i < list.size(); ++i)
    if ((list[i] & vm::kRefBit) && (!marked_only || (list[i] & vm::kMoveBit)))
      line(fmt::format("vm_clear(s, &{});", ref(list[i])));
}

void FunctionWriter::fail(size_t step) {
  const Text status = operand(step, 0);
  fail_if(fmt::format("{} != 0", status), fmt::format("vm_program_failure(s, {}, {})", status,
                                                      quoted(flow_.instruction(step).operands[1].string)));
  branch_to(block_ + 1);
}

}  // namespace halyard::aot
