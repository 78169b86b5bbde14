#include "aot/hal_function_writer.h"

#include <fmt/core.h>

#include "aot/c_text.h"
#include "vm/module/calling_convention.h"
#include "vm/module/source_location.h"
#include "vm/verify/verifier.h"

namespace halyard::aot {

using vm::Bank;

namespace {

const char* value_of(char type) {
  switch (type) {
    case 'i':
      return "vm_of_i32";
    case 'I':
      return "vm_of_i64";
    case 'f':
      return "vm_of_f32";
    case 'F':
      return "vm_of_f64";
    default:
      return "vm_of_ref";
  }
}

// The value of type `type` in y[i].
std::string result_of(char type, size_t i) {
  switch (type) {
    case 'i':
      return fmt::format("(uint32_t)y[{}].i32", i);
    case 'I':
      return fmt::format("(uint64_t)y[{}].i64", i);
    case 'f':
      return fmt::format("y[{}].f32", i);
    case 'F':
      return fmt::format("y[{}].f64", i);
    default:
      return fmt::format("y[{}].object", i);
  }
}

}  // namespace

HalFunctionWriter::HalFunctionWriter(const Plan& plan, uint32_t function, const vm::Flow& flow,
                                     const std::set<uint32_t>& waiting, uint32_t frame_bytes)
    : FunctionWriter(plan, function, flow),
      waiting_(waiting),
      waits_(waiting.contains(function)),
      frame_bytes_(frame_bytes) {}

// ---- failures

// "m.f", pc, source: the arguments of vm_at.
FunctionWriter::Text HalFunctionWriter::place() const {
  const uint32_t pc = flow_.steps()[step_].pc;
  const std::string_view name = module_.function_name(index_);
  const Text function = name.empty() ? fmt::format("{}@{}", module_.name(), index_)
                                     : fmt::format("{}.{}", module_.name(), name);
  return fmt::format("{}, {}u, {}", quoted(function), pc, quoted(vm::source_location(module_, index_, pc)));
}

// The same as one text.
FunctionWriter::Text HalFunctionWriter::place_text() const {
  const uint32_t pc = flow_.steps()[step_].pc;
  const std::string source = vm::source_location(module_, index_, pc);
  return vm::code_location(module_, index_, pc) + (source.empty() ? "" : fmt::format(" ({})", source));
}

FunctionWriter::Text HalFunctionWriter::trace_line() const {
  const Text at = place();
  const size_t source = at.rfind("u, \"") + 1;
  return fmt::format("{}, {}u{}", at.substr(0, source), flow_.instruction(step_).next_pc, at.substr(source));
}

void HalFunctionWriter::check(std::string_view call) {
  line(fmt::format("status = {};", call));
  fail_through(false, fmt::format("vm_at(s, {})", place()));
}

void HalFunctionWriter::fail_through(bool is_waiting, std::string_view failure) {
  open("if (status != 0) {");
  if (is_waiting) line("if (status == VM_WAITS) goto wait;");
  line(fmt::format("status = {};", failure));
  line("goto leave;");
  close();
}

void HalFunctionWriter::fail_if(std::string_view condition, std::string_view failure) {
  open(fmt::format("if ({}) {{", condition));
  fail_now(failure);
  close();
}

void HalFunctionWriter::fail_now(std::string_view failure) {
  line(fmt::format("{};", failure));
  line(fmt::format("status = vm_at(s, {});", place()));
  line("goto leave;");
}

void HalFunctionWriter::stop_if_asked() {
  reads_stop_ = true;
  fail_if("*stop != 0", "vm_stopped(s)");
}

// A branch back closes a loop.
void HalFunctionWriter::branch_if(std::string_view condition, size_t block) {
  if (block > block_) return FunctionWriter::branch_if(condition, block);
  if (condition.empty()) {
    stop_if_asked();
    return FunctionWriter::branch_if("", block);
  }
  open(fmt::format("{}{{", condition));
  stop_if_asked();
  FunctionWriter::branch_if("", block);
  close();
}

// ---- waits

size_t HalFunctionWriter::begin_point() {
  ++points_;
  line(fmt::format("point = {}u;", points_));
  line(fmt::format("w{}:;", points_));
  return points_;
}

void HalFunctionWriter::write_own(Form::Own kind, size_t step) {
  if (flow_.instruction(step).op != vm::Op::yield) return FunctionWriter::write_own(kind, step);
  line(fmt::format("point = {}u;", ++points_));
  line("goto wait;");
  line(fmt::format("w{}:;", points_));
  line("s->resuming = 0;");
  jump(step);
}

// ---- calls

void HalFunctionWriter::resolved(size_t step) {
  const uint32_t import = flow_.instruction(step).operands[0].index & ~vm::kImportBit;
  if (!is_dead(step)) assign(variable_of(step, 1), Bank::i32, fmt::format("vm_is_resolved(s, {}u)", import));
}

void HalFunctionWriter::call(size_t step) {
  const CallOperands operands(flow_.instruction(step));
  const std::string_view convention = operands.is_import ? module_.imports()[operands.callee].convention
                                                         : module_.functions()[operands.callee].convention;
  if (convention.empty() && (!operands.arguments.empty() || !operands.results.empty()))
    return refuse(step,
                  operands.is_import
                      ? fmt::format("import '{}' states no calling convention, so the types of this call "
                                    "are not known; state it where the module is made",
                                    module_.imports()[operands.callee].name)
                      : fmt::format("function {} states no calling convention, but this call passes it "
                                    "values; state the convention where the module is made",
                                    operands.callee));
  if (operands.is_import) {
    call_import(step, operands);
  } else {
    call_function(step, operands);
  }
  if (vm::has_trait(flow_.instruction(step).op, vm::SUSPENDS)) go(block_, 0);
}

// The callee owns the refs that it gets. When the call is resumed, it takes what it has kept instead.
void HalFunctionWriter::call_function(size_t step, const CallOperands& operands) {
  const bool waits = waiting_.contains(operands.callee);
  const Types types = call_types(module_, operands);
  if (waits) begin_point();
  open("{");
  size_t values = 0;
  Text arguments;
  for (size_t i = 0; i < types.arguments.size(); ++i) {
    const char type = types.arguments[i];
    const uint16_t reg = operands.arguments[i];
    if (type == 'r') {
      line(fmt::format("const vm_ref p{} = {}{};", i, waits ? "s->resuming ? NULL : " : "",
                       owned_ref(reg, (reg & vm::kMoveBit) != 0)));
      arguments += fmt::format(", p{}", i);
    } else {
      arguments += ", " + read(variables_.at(step, values++), bank_of(type));
    }
  }
  for (size_t i = 0; i < types.results.size(); ++i) {
    line(fmt::format("{} q{} = 0;", c_type(bank_of(types.results[i])), i));
    arguments += fmt::format(", &q{}", i);
  }
  line(fmt::format("status = {}(s{});", plan_.functions[operands.callee], arguments));
  fail_through(waits, fmt::format("vm_through(s, {})", trace_line()));
  take_results(step, operands, types.results, values, false);
  close();
}

void HalFunctionWriter::call_import(size_t step, const CallOperands& operands) {
  const ImportWait wait = import_wait(module_, flow_.instruction(step));
  const Types types = call_types(module_, operands);
  if (wait != ImportWait::never) begin_point();
  open("{");
  size_t values = 0;
  if (!types.arguments.empty()) {
    open("const halyard_value_t x[] = {");
    for (size_t i = 0; i < types.arguments.size(); ++i) {
      const char type = types.arguments[i];
      const Text value =
          type == 'r' ? ref(operands.arguments[i]) : read(variables_.at(step, values++), bank_of(type));
      line(fmt::format("{}({}),", value_of(type), value));
    }
    close("};");
  }
  Text spans;
  size_t span_count = 0;
  const vm::Convention convention = *vm::Convention::parse(module_.imports()[operands.callee].convention);
  for (const vm::ConventionItem& item : convention.arguments) {
    if (item.type != 'C') continue;
    spans += fmt::format("{}{}u", span_count == 0 ? "" : ", ", operands.segments[item.segment]);
    ++span_count;
  }
  if (span_count != 0) line(fmt::format("static const uint32_t n[] = {{{}}};", spans));
  if (!types.results.empty()) line(fmt::format("halyard_value_t y[{}];", types.results.size()));
  const char* const flags = wait == ImportWait::never          ? "0"
                            : wait == ImportWait::for_programs ? "HALYARD_CALL_MAY_WAIT_FOR_PROGRAM"
                                                               : "HALYARD_CALL_MAY_WAIT";
  // The messages of module check have the place of the call.
  const Text at =
      module_.imports()[operands.callee].name.starts_with("check.") ? quoted(place_text()) : "NULL";
  line(fmt::format("status = vm_import(s, {}u, {}, {}, {}, {}, {}, {}, {}, {});", operands.callee, flags,
                   types.arguments.empty() ? "NULL" : "x", types.arguments.size(),
                   span_count == 0 ? "NULL" : "n", span_count, types.results.empty() ? "NULL" : "y",
                   types.results.size(), at));
  fail_through(wait != ImportWait::never, fmt::format("vm_at(s, {})", place()));
  const size_t results = std::min<size_t>(operands.results.size(), types.results.size());
  for (size_t i = 0; i < results; ++i) {
    const char type = types.results[i];
    if (type == 'r') {
      line(fmt::format("vm_put(s, &{}, {});", ref(operands.results[i]), result_of(type, i)));
    } else {
      assign(variables_.at(step, values++), bank_of(type), result_of(type, i));
    }
  }
  // The import has borrowed its arguments. Bytecode 15 moves none.
  for (size_t i = 0; i < types.arguments.size() && module_.bytecode_version() >= 16; ++i) {
    const uint16_t reg = operands.arguments[i];
    if (types.arguments[i] != 'r' || !(reg & vm::kMoveBit)) continue;
    bool is_result = false;
    for (size_t n = 0; n < operands.results.size(); ++n)
      is_result |= ((operands.results[n] ^ reg) & ~vm::kMoveBit) == 0;
    if (!is_result) line(fmt::format("vm_clear(s, &{});", ref(reg)));
  }
  close();
}

// ---- the whole function

void HalFunctionWriter::write_frame(Text& declarations, Text& arrivals, Text& releases) {
  const bool is_recursive = plan_.recursive.contains(index_);
  Text condition = "s->stack > s->stack_bytes";
  if (is_recursive) {
    declarations += "  const char here = 0; /* its address tells how deep the stack is */\n";
    condition += " || (uintptr_t)&here < s->stack_end";
  }
  arrivals +=
      fmt::format("  s->stack += {}u;\n  if ({}) {{\n    status = vm_too_deep(s);\n    goto leave;\n  }}\n",
                  frame_bytes_, condition);
  releases += fmt::format("  s->stack -= {}u;\n", frame_bytes_);
  if (is_recursive) {
    reads_stop_ = true;
    arrivals +=
        "  if (*stop != 0) {\n    status = vm_stopped(s);\n    s->is_unplaced = 1;\n    goto leave;\n  }\n";
  }
  if (reads_stop_) declarations += "  const volatile uint32_t* const stop = s->stop;\n";
  if (!waits_ || points_ == 0) return;
  Text fields;
  Text loads;
  for (size_t type = 0; type < std::size(declared_); ++type) {
    for (const Text& name : declared_[type]) {
      fields += fmt::format("    {} {};\n", aot::c_type(static_cast<Variable::Type>(type)), name);
      loads += fmt::format("    {0} = from->{0};\n", name);
      stores_ += fmt::format("    to->{0} = {0};\n", name);
    }
  }
  size_t object = 0;
  Text spans;
  for (const uint16_t each : refs_) {
    loads += fmt::format("    r{} = kept.objects[{}];\n", each, object);
    stores_ += fmt::format("    kept.objects[{}] = r{};\n", object, each);
    if (spans_.contains(each)) spans += fmt::format("    v{0} = vm_span_of(r{0});\n", each);
    ++object;
  }
  declarations +=
      fmt::format("  struct kept {{\n    uint32_t point;\n{}  }};\n  uint32_t point = 0;\n", fields);
  Text cases;
  for (size_t point = 1; point <= points_; ++point)
    cases += fmt::format("      case {0}:\n        goto w{0};\n", point);
  arrivals += fmt::format(
      "  if (s->resuming) {{\n    halyard_kept_t kept;\n    status = vm_restore(s, &kept);\n"
      "    if (status != 0) goto leave;\n    const struct kept* const from = (const struct "
      "kept*)kept.bytes;\n"
      "    point = from->point;\n{}{}    switch (point) {{\n{}      default:\n        break;\n    }}\n  }}\n",
      loads, spans, cases);
}

FunctionWriter::Text HalFunctionWriter::ending() const {
  if (!waits_ || points_ == 0) return {};
  return fmt::format(
      "wait: {{\n    halyard_kept_t kept;\n    status = vm_keep(s, {}u, sizeof(struct kept), &kept);\n"
      "    if (status != 0) goto leave;\n    struct kept* const to = (struct kept*)kept.bytes;\n"
      "    to->point = point;\n{}    s->stack -= {}u;\n    return VM_WAITS;\n  }}\n",
      refs_.size(), stores_, frame_bytes_);
}

}  // namespace halyard::aot
