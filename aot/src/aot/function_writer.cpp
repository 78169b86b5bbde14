#include "aot/function_writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "aot/c_text.h"
#include "vm/module/calling_convention.h"
#include "vm/verify/verifier.h"

namespace halyard::aot {

using vm::Bank;
using vm::OperandKind;

namespace {

const char* c_type(Bank bank) {
  constexpr const char* kTypes[] = {"void", "uint32_t", "uint64_t", "float", "double", "vm_ref"};
  return kTypes[static_cast<size_t>(bank)];
}

// The type of an integer in functions outside of the program, where it is signed.
const char* outside_cast(char type) { return type == 'i' ? "int32_t" : type == 'I' ? "int64_t" : nullptr; }

bool passes_address(std::string_view text, uint16_t ref) {
  const std::string name = fmt::format("&r{}", ref);
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (end == text.size() || text[end] < '0' || text[end] > '9') return true;
  }
  return false;
}

constexpr std::string_view kIndent = "  ";

}  // namespace

FunctionWriter::FunctionWriter(const Plan& plan, uint32_t function, const vm::Flow& flow)
    : plan_(plan),
      module_(plan.module),
      function_(module_.functions()[function]),
      index_(function),
      flow_(flow),
      types_(function_types(module_, function)),
      variables_(module_, function_, types_, flow),
      registers_(argument_registers(types_.arguments)),
      is_direct_(plan.direct.all.contains(function)) {
  // Only functions with refs have to release something when they leave.
  has_refs_ = types_.arguments.find('r') != std::string::npos;
  for (size_t block = 0; block < flow_.blocks().size(); ++block) {
    if (!variables_.is_reachable(block)) continue;
    const vm::Flow::Block& each = flow_.blocks()[block];
    for (size_t step = each.first_step; step < each.first_step + each.step_count; ++step)
      for (size_t i = 0; i < vm::info(flow_.instruction(step).op).operand_count; ++i) {
        const vm::Operand& operand = vm::info(flow_.instruction(step).op).operands[i];
        const vm::DecodedOperand& value = flow_.instruction(step).operands[i];
        if (operand.kind == OperandKind::reg && operand.bank == Bank::ref) has_refs_ = true;
        if (operand.kind == OperandKind::reg_list)
          for (size_t n = 0; n < value.regs.size(); ++n) has_refs_ |= (value.regs[n] & vm::kRefBit) != 0;
      }
  }
  has_refs_ |= plan_.recursive.contains(index_) && !is_direct_;
  find_spans();
}

// The buffers that the instructions read and write: their forms name the bytes of operand 0.
void FunctionWriter::find_spans() {
  for (size_t block = 0; block < flow_.blocks().size(); ++block) {
    if (!variables_.is_reachable(block)) continue;
    const vm::Flow::Block& each = flow_.blocks()[block];
    for (size_t step = each.first_step; step < each.first_step + each.step_count; ++step) {
      const vm::Instruction& instruction = flow_.instruction(step);
      if (form_of(instruction.op).condition.find("$v0") != std::string_view::npos)
        spans_.insert(instruction.operands[0].reg & vm::kRefOrdinalMask);
    }
  }
}

// ---- lines

void FunctionWriter::line(std::string_view text) {
  for (int i = 0; i < depth_; ++i) body_ += kIndent;
  body_ += text;
  body_ += '\n';
  // A ref whose address is passed may have changed.
  for (const uint16_t each : spans_)
    if (passes_address(text, each)) line(fmt::format("v{0} = vm_span_of(r{0});", each));
}

void FunctionWriter::open(std::string_view text) {
  line(text);
  ++depth_;
}

void FunctionWriter::close(std::string_view text) {
  --depth_;
  line(text);
}

void FunctionWriter::refuse(size_t step, std::string_view reason) {
  if (error_) return;
  error_ = Status(Code::UNIMPLEMENTED, std::string(reason))
               .note(vm::code_location(module_, index_, flow_.steps()[step].pc));
}

FunctionWriter::Text FunctionWriter::leaves() const { return has_refs_ ? "goto leave;" : "return status;"; }

void FunctionWriter::check(std::string_view call) {
  line(fmt::format("status = {};", call));
  line(fmt::format("if (status != 0) {}", leaves()));
}

// Leaves the function with the status of `failure` if the condition holds.
void FunctionWriter::fail_if(std::string_view condition, std::string_view failure) {
  if (!has_refs_) return line(fmt::format("if ({}) return {};", condition, failure));
  open(fmt::format("if ({}) {{", condition));
  line(fmt::format("status = {};", failure));
  line("goto leave;");
  close();
}

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
  const Text name = named(variable);
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
  if (op.operand_count != 3 || form_of(instruction.op).text.find_first_of("=<>") == std::string_view::npos)
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

// ---- branches

void FunctionWriter::branch_to(size_t block) { branch_if("", block); }

void FunctionWriter::branch_if(std::string_view condition, size_t block) {
  const Text label = loops_->target(copy_, block_, block);
  ++branches_[label];
  line(fmt::format("{}goto {};", condition, label));
}

void FunctionWriter::write_moves(size_t block, size_t edge) {
  for (const Move& move : variables_.moves(block, edge)) {
    if (move.is_ref) {
      const Text from = ref(move.from);
      line(fmt::format("vm_assign(s, &{}, {}, &{});", from, move.moves_ref ? 1 : 0, ref(move.to)));
      continue;
    }
    using enum Variable::Type;
    if (move.wide) {
      const Bank bank = move.destination.type == f64 ? Bank::f64 : Bank::i64;
      assign(move.destination, bank, read(move.source, bank));
    } else if (move.source.type == i64 || move.source.type == f64) {
      const Text whole = read(move.source, Bank::i64);
      assign(
          move.destination, Bank::i32,
          move.high_half ? fmt::format("(uint32_t)({} >> 32)", whole) : fmt::format("(uint32_t){}", whole));
    } else {
      const Bank bank = move.destination.type == f32 ? Bank::f32 : Bank::i32;
      assign(move.destination, bank, read(move.source, bank));
    }
  }
}

void FunctionWriter::go(size_t block, size_t edge) {
  write_moves(block, edge);
  branch_to(flow_.edges(block)[edge].block);
}

void FunctionWriter::jump(size_t) { go(block_, 0); }

// A branch without moves is one line; a branch to the next block is none.
void FunctionWriter::choose(size_t step) {
  const Text condition = operand(step, 0);
  const auto is_bare = [&](size_t edge) { return variables_.moves(block_, edge).empty(); };
  const auto target = [&](size_t edge) { return flow_.edges(block_)[edge].block; };
  if (is_bare(0) && is_bare(1) && target(0) == block_ + 1) {
    branch_if(fmt::format("if ({} == 0) ", condition), target(1));
    return branch_to(target(0));
  }
  if (is_bare(0)) {
    branch_if(fmt::format("if ({} != 0) ", condition), target(0));
  } else {
    open(fmt::format("if ({} != 0) {{", condition));
    go(block_, 0);
    close();
  }
  go(block_, 1);
}

void FunctionWriter::jump_by_table(size_t step) {
  open(fmt::format("switch ({}) {{", operand(step, 0)));
  for (size_t edge = 1; edge < flow_.edges(block_).size(); ++edge) {
    line(fmt::format("case {}:", edge - 1));
    ++depth_;
    go(block_, edge);
    --depth_;
  }
  line("default:");
  ++depth_;
  go(block_, 0);
  --depth_;
  close();
}

// ---- calls

void FunctionWriter::call(size_t step) {
  const CallOperands operands(flow_.instruction(step));
  Text callee;
  bool is_outside = false;
  if (operands.is_import) {
    const vm::Import& import = module_.imports()[operands.callee];
    const ImportPlan& planned = plan_.imports[operands.callee];
    if (planned.callee.empty()) {
      const Text failure = fmt::format(
          "vm_fail(s, 5, {})", quoted(fmt::format("optional import '{}' of module '{}' is not resolved",
                                                  import.name, module_.name())));
      if (!has_refs_) return line(fmt::format("return {};", failure));
      line(fmt::format("status = {};", failure));
      return line("goto leave;");
    }
    if (import.convention.empty())
      return refuse(step,
                    fmt::format("import '{}' states no calling convention, so its prototype is not known; "
                                "state it where the module is made",
                                import.name));
    if (planned.takes_state) {
      write_support_call(step, operands, planned.callee + "(s");
      if (vm::has_trait(flow_.instruction(step).op, vm::SUSPENDS)) go(block_, 0);
      return;
    }
    callee = planned.callee + "(s->user";
    is_outside = true;
  } else {
    const std::string_view convention = module_.functions()[operands.callee].convention;
    if (convention.empty() && (!operands.arguments.empty() || !operands.results.empty()))
      return refuse(step,
                    fmt::format("function {} states no calling convention, but this call passes it values; "
                                "state the convention where the module is made",
                                operands.callee));
    if (plan_.direct.all.contains(operands.callee))
      return write_direct_call(step, operands, call_types(module_, operands));
    callee = plan_.functions[operands.callee] + "(s";
  }
  write_call(step, operands, call_types(module_, operands), callee, is_outside);
  if (vm::has_trait(flow_.instruction(step).op, vm::SUSPENDS)) go(block_, 0);
}

// The callee owns the refs that it gets.
void FunctionWriter::write_call(size_t step, const CallOperands& operands, const Types& types,
                                const Text& callee, bool is_outside) {
  // In bytecode 15, imports borrow their arguments, so nothing is moved.
  const bool may_move = !operands.is_import || module_.bytecode_version() >= 16;
  open("{");
  size_t values = 0;
  Text arguments;
  for (size_t i = 0; i < types.arguments.size(); ++i) {
    const char type = types.arguments[i];
    // C evaluates arguments in any order, but a register that is moved is null for the arguments after it.
    const uint16_t reg = operands.arguments[i];
    if (type == 'r') {
      const bool take = may_move && (reg & vm::kMoveBit);
      line(fmt::format("const vm_ref p{} = {}{});", i, take ? "vm_take(&" : "vm_share(", ref(reg)));
      arguments += fmt::format(", p{}", i);
      continue;
    }
    const Text value = read(variables_.at(step, values++), bank_of(type));
    arguments +=
        ", " + (is_outside && outside_cast(type) ? fmt::format("({}){}", outside_cast(type), value) : value);
  }
  for (size_t i = 0; i < types.results.size(); ++i) {
    const char* const cast = is_outside ? outside_cast(types.results[i]) : nullptr;
    line(fmt::format("{} q{} = 0;", cast ? cast : c_type(bank_of(types.results[i])), i));
    arguments += fmt::format(", &q{}", i);
  }
  check(callee + arguments + ")");
  take_results(step, operands, types.results, values, is_outside);
  close();
}

// A call of a function that returns its result.
void FunctionWriter::write_direct_call(size_t step, const CallOperands& operands, const Types& types) {
  const bool is_bounded = plan_.direct.bounded.contains(operands.callee);
  const bool is_recursive = plan_.recursive.contains(operands.callee);
  Text call = plan_.call(operands.callee);
  if (is_direct_ && is_bounded) {
    call = fmt::format("{}(s, {}", plan_.functions[operands.callee], is_recursive ? "left - 1" : "left");
    // Later calls of the block come back at once if this one is the last that may be nested.
    if (is_recursive && !std::exchange(has_left_, true)) {
      open("if (left <= s->stopped) {");
      line("vm_stop(s);");
      line("return 0;");
      close();
    }
  } else if (is_recursive) {
    fail_if("s->depth >= VM_MAX_DEPTH", "vm_too_deep(s)");
  }
  open("{");
  size_t values = 0;
  for (const char type : types.arguments) call += ", " + read(variables_.at(step, values++), bank_of(type));
  line(fmt::format("const {} q0 = {});", c_type(bank_of(types.results[0])), call));
  if (is_bounded && !is_direct_) fail_if("s->stopped != 0", "vm_was_too_deep(s)");
  if (operands.results.empty()) line("(void)q0;");
  take_results(step, operands, types.results, values, false);
  close();
}

// Stores the results q0, q1 and so on. `values` is the number of value registers among the arguments.
void FunctionWriter::take_results(size_t step, const CallOperands& operands, std::string_view types,
                                  size_t values, bool is_outside) {
  const size_t results = std::min<size_t>(operands.results.size(), types.size());
  for (size_t i = 0; i < results; ++i) {
    if (types[i] == 'r') {
      line(fmt::format("vm_put(s, &{}, q{});", ref(operands.results[i]), i));
    } else {
      const Bank bank = bank_of(types[i]);
      const bool cast = is_outside && outside_cast(types[i]);
      assign(variables_.at(step, values++), bank,
             cast ? fmt::format("({})q{}", c_type(bank), i) : fmt::format("q{}", i));
    }
  }
}

// The tuples of a span as an array; returns its count and its name.
FunctionWriter::Text FunctionWriter::span(size_t step, const CallOperands& operands, std::string_view types,
                                          uint32_t count, size_t& argument, size_t& value) {
  if (count == 0) return "0, NULL";
  const Text name = fmt::format("x{}", argument);
  open(fmt::format("const vm_item {}[] = {{", name));
  for (uint32_t tuple = 0; tuple < count; ++tuple) {
    Text items;
    for (const char type : types) {
      const char* const member = type == 'i'   ? "i"
                                 : type == 'I' ? "l"
                                 : type == 'f' ? "f"
                                 : type == 'F' ? "d"
                                               : "r";
      const Text item =
          type == 'r' ? ref(operands.arguments[argument]) : read(variables_.at(step, value++), bank_of(type));
      ++argument;
      items += fmt::format("{}{{.{} = {}}},", items.empty() ? "" : " ", member, item);
    }
    line(items);
  }
  close("};");
  return fmt::format("{}, {}", count, name);
}

// A function of aot/support borrows its arguments; refs that are moved are released afterwards, unless the
// register gets a result.
void FunctionWriter::write_support_call(size_t step, const CallOperands& operands, const Text& callee) {
  const vm::Convention convention = *vm::Convention::parse(module_.imports()[operands.callee].convention);
  const Text results = convention.result_types();
  open("{");
  Text arguments;
  size_t argument = 0;
  size_t value = 0;
  for (const vm::ConventionItem& item : convention.arguments) {
    if (item.type == 'C') {
      arguments += ", " + span(step, operands, item.span, operands.segments[item.segment], argument, value);
      continue;
    }
    const uint16_t reg = operands.arguments[argument++];
    arguments +=
        ", " + (item.type == 'r' ? ref(reg) : read(variables_.at(step, value++), bank_of(item.type)));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    line(fmt::format("{} q{} = 0;", c_type(bank_of(results[i])), i));
    arguments += fmt::format(", &q{}", i);
  }
  check(callee + arguments + ")");
  take_results(step, operands, results, value, false);
  for (size_t i = 0; i < argument && module_.bytecode_version() >= 16; ++i) {
    const uint16_t reg = operands.arguments[i];
    if (!(reg & vm::kRefBit) || !(reg & vm::kMoveBit)) continue;
    bool is_result = false;
    for (size_t n = 0; n < operands.results.size(); ++n)
      is_result |= ((operands.results[n] ^ reg) & ~vm::kMoveBit) == 0;
    if (!is_result) line(fmt::format("vm_clear(s, &{});", ref(reg)));
  }
  close();
}

void FunctionWriter::leave(size_t step) {
  const vm::RegList& list = flow_.instruction(step).operands[0].regs;
  size_t values = 0;
  for (size_t i = 0; i < types_.results.size(); ++i) {
    const char type = types_.results[i];
    if (is_direct_) return line(fmt::format("return {};", read(variables_.at(step, 0), bank_of(type))));
    if (type != 'r') {
      line(fmt::format("*o{} = {};", i, read(variables_.at(step, values++), bank_of(type))));
      continue;
    }
    const auto names_it = [&](size_t j) { return ((list[j] ^ list[i]) & ~vm::kMoveBit) == 0; };
    bool again = false;
    for (size_t j = i + 1; j < types_.results.size(); ++j) again |= names_it(j);
    const bool take = !again || (list[i] & vm::kMoveBit);
    line(fmt::format("*o{} = {}{});", i, take ? "vm_take(&" : "vm_share(", ref(list[i])));
  }
  line(has_refs_ ? "goto leave;" : "return 0;");
}

// ---- functions

void FunctionWriter::write_block(size_t block) {
  block_ = block;
  has_left_ = false;
  const vm::Flow::Block& each = flow_.blocks()[block];
  for (size_t step = each.first_step; step < each.first_step + each.step_count; ++step) {
    step_ = step;
    write_step(step);
  }
}

void FunctionWriter::write_frame(Text&, Text& arrivals, Text& releases) {
  if (!plan_.recursive.contains(index_) || is_direct_) return;
  arrivals += fmt::format(
      "{0}++s->depth;\n{0}if (s->depth > VM_MAX_DEPTH) {{\n{0}{0}status = vm_too_deep(s);\n{0}{0}goto "
      "leave;\n{0}}}\n",
      kIndent);
  releases += fmt::format("{}--s->depth;\n", kIndent);
}

// Before a loop that is written twice.
void FunctionWriter::write_guard(size_t copy) {
  const UncheckedLoops::Copy& made = loops_->copies()[copy];
  copy_ = made.parent;
  open("{");
  for (const Text& each : made.statements) line(each);
  Text all;
  for (const Text& each : made.conditions) all += fmt::format("{}{}", all.empty() ? "" : " && ", each);
  for (const uint16_t each : made.lists) {
    ref(each);
    lists_.insert(each);
  }
  const size_t header = loops_->header(copy);
  const Text unchecked = UncheckedLoops::label(copy, header);
  const Text checked = UncheckedLoops::label(copy_, header);
  open(fmt::format("if ({}) {{", all));
  for (const uint16_t each : made.lists) line(fmt::format("e{0} = vm_list_values(r{0});", each));
  line(fmt::format("goto {};", unchecked));
  close();
  close();
  line(fmt::format("goto {};", checked));
  ++branches_[unchecked];
  ++branches_[checked];
}

// The blocks of the function, then those of each copy of a loop.
std::vector<FunctionWriter::Chunk> FunctionWriter::write_chunks() {
  std::vector<Chunk> chunks;
  for (size_t copy = 0; copy < loops_->copies().size(); ++copy) {
    for (size_t block = 0; block < flow_.blocks().size(); ++block) {
      if (!loops_->contains(copy, block)) continue;
      // A failure whose status is never 0 branches to a block that nothing reaches.
      if (!variables_.is_reachable(block)) {
        chunks.push_back({UncheckedLoops::label(copy, block), {}});
        continue;
      }
      if (const std::optional<size_t> guarded = loops_->guarded(copy, block)) {
        write_guard(*guarded);
        chunks.push_back({UncheckedLoops::guard_label(copy, block), std::exchange(body_, {})});
      }
      copy_ = copy;
      write_block(block);
      chunks.push_back({UncheckedLoops::label(copy, block), std::exchange(body_, {})});
    }
  }
  // After a failure at the end of the last block.
  const Text end = UncheckedLoops::label(0, flow_.blocks().size());
  if (branches_.contains(end)) chunks.push_back({end, {}});
  return chunks;
}

// A branch to the next chunk is not written, and a chunk to which nothing branches has no label.
void FunctionWriter::join(std::vector<Chunk>& chunks, std::map<Text, size_t>& branches, Text& all) {
  for (size_t i = 0; i < chunks.size(); ++i) {
    Text& text = chunks[i].text;
    size_t next = i + 1;
    while (next < chunks.size() && chunks[next].text.empty()) ++next;
    if (next == chunks.size()) continue;
    const Text fall = fmt::format("{}goto {};\n", kIndent, chunks[next].label);
    if (!text.ends_with(fall) || (text.size() > fall.size() && text[text.size() - fall.size() - 1] != '\n'))
      continue;
    text.resize(text.size() - fall.size());
    --branches[chunks[next].label];
  }
  for (const Chunk& chunk : chunks) {
    if (branches[chunk.label] != 0) all += chunk.label + ":\n";
    all += chunk.text;
  }
}

Result<std::string> FunctionWriter::write() {
  has_refs_ |= leaves_once();
  loops_.emplace(plan_, function_, flow_, variables_,
                 [&](const Variable& variable, Bank bank) { return read(variable, bank); });
  std::vector<Chunk> chunks = write_chunks();
  if (error_) return std::unexpected(std::move(error_));

  // Parameters are the variables themselves where the types agree.
  Text parameters = plan_.direct.bounded.contains(index_) ? ", uint32_t left" : "";
  Text arrivals;
  std::set<Text> named;
  for (size_t i = 0; i < types_.arguments.size(); ++i) {
    const Bank bank = bank_of(types_.arguments[i]);
    Text name = fmt::format("a{}", i);
    if (bank == Bank::ref) {
      name = ref(registers_[i]);
      named.insert(name);
    } else {
      const Variable variable = variables_.argument(registers_[i], bank);
      if (!variable.split && Text(c_type(bank)) == aot::c_type(variable.type)) {
        name = variable.name();
        named.insert(name);
      } else {
        assign(variable, bank, name);
      }
    }
    parameters += fmt::format(", {} {}", c_type(bank), name);
    if (bank != Bank::ref && named.contains(name) && !read_.contains(name))
      arrivals += fmt::format("{}(void){};\n", kIndent, name);
  }
  arrivals += std::exchange(body_, {});
  for (size_t i = 0; i < types_.results.size() && !is_direct_; ++i)
    parameters += fmt::format(", {}* o{}", c_type(bank_of(types_.results[i])), i);

  std::set<Text> zeroed;
  for (const Variable& variable : variables_.zeroed()) zeroed.insert(variable.name());
  Text declarations;
  for (size_t type = 0; type < std::size(declared_); ++type) {
    Text names;
    for (const Text& name : declared_[type]) {
      if (named.contains(name)) continue;
      names += fmt::format("{}{}{}", names.empty() ? " " : ", ", name,
                           zeroed.contains(name) || zeroes_variables() ? " = 0" : "");
      if (!read_.contains(name)) arrivals.insert(0, fmt::format("{}(void){};\n", kIndent, name));
    }
    if (!names.empty())
      declarations +=
          fmt::format("{}{}{};\n", kIndent, aot::c_type(static_cast<Variable::Type>(type)), names);
  }
  Text releases;
  for (const uint16_t each : refs_) {
    const Text name = fmt::format("r{}", each);
    if (!named.contains(name)) declarations += fmt::format("{}vm_ref {} = NULL;\n", kIndent, name);
    releases += fmt::format("{}vm_release(s, {});\n", kIndent, name);
    if (spans_.contains(each))
      declarations +=
          fmt::format("{}vm_span v{} = {};\n", kIndent, each,
                      named.contains(name) ? fmt::format("vm_span_of({})", name) : "{NULL, 0, 0}");
    if (lists_.contains(each)) declarations += fmt::format("{}unsigned char* e{} = NULL;\n", kIndent, each);
  }
  write_frame(declarations, arrivals, releases);

  Text labelled;
  join(chunks, branches_, labelled);
  if (has_refs_) {
    if (labelled.ends_with(fmt::format("{}goto leave;\n", kIndent)) &&
        !labelled.ends_with(fmt::format("{0}{0}goto leave;\n", kIndent)))
      labelled.resize(labelled.size() - kIndent.size() - 12);
    const bool jumps = without_literals(labelled + arrivals).find("goto leave;") != Text::npos;
    labelled += fmt::format("{}{}{}return status;\n{}", jumps ? "leave:\n" : "", releases, kIndent, ending());
  }
  const Text all = without_literals(arrivals + labelled);
  if (all.find("status") != Text::npos) declarations += fmt::format("{}int status = 0;\n", kIndent);
  const bool uses_state =
      (all.find("(s, ") != Text::npos) || all.find("(s)") != Text::npos || all.find("s->") != Text::npos;
  if (!uses_state) arrivals.insert(0, fmt::format("{}(void)s;\n", kIndent));
  return fmt::format("static {} {}(vm_state* s{}) {{\n{}{}{}{}}}\n",
                     is_direct_ ? c_type(bank_of(types_.results[0])) : "int", plan_.functions[index_],
                     parameters, declarations, declarations.empty() ? "" : "\n", arrivals, labelled);
}

}  // namespace halyard::aot
