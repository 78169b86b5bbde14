// The branches and calls of FunctionWriter.
#include <fmt/core.h>

#include <algorithm>

#include "aot/c_text.h"
#include "aot/function_writer.h"
#include "vm/module/calling_convention.h"

namespace halyard::aot {

using vm::Bank;

namespace {

// The type of an integer in functions outside of the program, where it is signed.
const char* outside_cast(char type) { return type == 'i' ? "int32_t" : type == 'I' ? "int64_t" : nullptr; }

}  // namespace

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
      return fail_now(fmt::format("vm_fail(s, 5, {})",
                                  quoted(fmt::format("optional import '{}' of module '{}' is not resolved",
                                                     import.name, module_.name()))));
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
      line(fmt::format("const vm_ref p{} = {};", i, owned_ref(reg, take)));
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
    line(fmt::format("*o{} = {};", i, owned_ref(list[i], take)));
  }
  line(has_refs_ ? "goto leave;" : "return 0;");
}

}  // namespace halyard::aot
