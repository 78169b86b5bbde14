#include "aot/function_writer.h"

#include <fmt/core.h>

#include "aot/c_text.h"
#include "vm/verify/verifier.h"

namespace halyard::aot {

using vm::Bank;
using vm::OperandKind;

namespace {

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
  fail_now(failure);
  close();
}

// The same without a condition.
void FunctionWriter::fail_now(std::string_view failure) {
  if (!has_refs_) return line(fmt::format("return {};", failure));
  line(fmt::format("status = {};", failure));
  line("goto leave;");
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
  // After a failure at the end of the last block, whose status was 0.
  const Text end = UncheckedLoops::label(0, flow_.blocks().size());
  if (branches_.contains(end)) {
    fail_now("vm_program_failure(s, 3, \"execution went past the end of the function\")");
    chunks.push_back({end, std::exchange(body_, {})});
  }
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
      if (!variable.split && Text(c_type(bank)) == c_type(variable.type)) {
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
      declarations += fmt::format("{}{}{};\n", kIndent, c_type(static_cast<Variable::Type>(type)), names);
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
  // A function that loops forever.
  if (all.find("return ") == Text::npos) labelled += fmt::format("{}return 0;\n", kIndent);
  const std::set<std::string_view> words = words_of(all);
  for (size_t i = 0; i < types_.results.size() && !is_direct_; ++i)
    if (const Text name = fmt::format("o{}", i); !words.contains(name))
      arrivals += fmt::format("{}(void){};\n", kIndent, name);
  if (all.find("status") != Text::npos) declarations += fmt::format("{}int status = 0;\n", kIndent);
  const bool uses_state =
      (all.find("(s, ") != Text::npos) || all.find("(s)") != Text::npos || all.find("s->") != Text::npos;
  if (!uses_state) arrivals.insert(0, fmt::format("{}(void)s;\n", kIndent));
  return fmt::format("static {} {}(vm_state* s{}) {{\n{}{}{}{}}}\n",
                     is_direct_ ? c_type(bank_of(types_.results[0])) : "int", plan_.functions[index_],
                     parameters, declarations, declarations.empty() ? "" : "\n", arrivals, labelled);
}

}  // namespace halyard::aot
