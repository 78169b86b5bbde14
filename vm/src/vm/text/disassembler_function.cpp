// Prints a function: its signature, the descriptor's facts that the body does not determine, and the body.
// The assembler and the disassembler share the forms of instructions.
#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "vm/format/bytecode_reader.h"
#include "vm/module/calling_convention.h"
#include "vm/text/disassembler_module.h"
#include "vm/text/vmasm_forms.h"
#include "vm/text/vmasm_text.h"
#include "vm/verify/verifier.h"

namespace halyard::vm::disassembler {
namespace {

// Text can name fewer registers than a descriptor may declare: verifier-and-execution.md, rule 3.1.3.
constexpr uint32_t kMaxNamedValues = 0x4000;
constexpr uint32_t kMaxNamedRefs = 0x2000;
constexpr size_t kCodeBytesPerLine = 32;
constexpr size_t kMaxRemark = 48;

// Converts a text to one line, for a comment.
std::string one_line(std::string_view text) {
  std::string safe;
  for (const char c : text) safe += c < 0x20 || c >= 0x7F ? '?' : c;  // where char is signed, and where not
  return safe;
}

// The types of a call's arguments, with spans repeated by their segment sizes; at most `count`.
std::string argument_types(const Convention& convention, RegList segments, size_t count) {
  std::string types;
  for (const ConventionItem& item : convention.arguments) {
    if (types.size() >= count) break;
    if (item.type != 'C') {
      types += item.type;
      continue;
    }
    const size_t tuples = item.segment < segments.size() ? segments[item.segment] : 0;
    for (size_t i = 0; i < tuples && types.size() < count; ++i) types += item.span;
  }
  return types;
}

// Whether these are the bytes that the assembler would write: padding bytes must be 0.
bool skips_only_zeros(std::span<const uint8_t> code, const Instruction& instruction) {
  const OpInfo& op = info(instruction.op);
  uint64_t at = instruction.pc + (op.set == OpSet::CORE ? 1 : 2);
  bool zeros = true;
  const auto list = [&](uint64_t bytes) {
    if (at % 2) zeros = code[at++] == 0 && zeros;
    at += 2 + bytes;
  };
  for (size_t i = 0; i < op.operand_count; ++i) {
    const DecodedOperand& operand = instruction.operands[i];
    switch (op.operands[i].kind) {
      case OperandKind::reg:
        at += 2;
        break;
      case OperandKind::immediate:
        at += is_wide(op.operands[i].bank) ? 8 : 4;
        break;
      case OperandKind::global_bytes:
      case OperandKind::global_ref:
      case OperandKind::rodata:
      case OperandKind::type:
      case OperandKind::func:
      case OperandKind::block:
        at += 4;
        break;
      case OperandKind::string:
        at += 2 + operand.string.size();
        break;
      case OperandKind::reg_list:
      case OperandKind::u16_list:
        list(uint64_t{2} * operand.regs.size());
        break;
      case OperandKind::remap:
        list(uint64_t{4} * operand.remap.size());
        break;
      case OperandKind::cases:
        at += 2;
        for (const CaseEntry entry : operand.cases) {
          at += 4;
          list(uint64_t{4} * entry.remap.size());
        }
        break;
    }
  }
  return zeros;
}

class FunctionText {
 public:
  FunctionText(const Names& names, uint32_t ordinal, bool offsets)
      : names_(names),
        view_(names.view),
        module_(view_.module()),
        function_(module_.functions()[ordinal]),
        ordinal_(ordinal),
        offsets_(offsets) {}

  void print(Listing& listing) {
    const Result<> verified = view_.verify(ordinal_);
    scan();
    const bool raw = !verified || !exact_;
    const Result<Convention> own = Convention::parse(function_.convention);
    const std::string signature = signature_text(own);
    if (own) returned_types_ = own->result_types();

    Listing body(listing.room());
    print_instructions(body);
    const uint32_t values = used_values_;
    const uint32_t refs = used_refs_;

    listing.line("vm.func " + names_.function(ordinal_) + signature + " {");
    print_facts(listing, raw, values, refs);
    if (!raw) {
      listing.append(std::move(body));
    } else {
      listing.line("  // " + (verified ? "given as bytes: padding bytes are not 0"
                                       : "cannot run: " + one_line(verified.error().text())));
      print_comments(listing);
      print_bytes(listing);
    }
    listing.line("}");
  }

 private:
  // Collects information that the first line requires: where blocks begin, and whether the assembler would
  // write the same bytes.
  void scan() {
    const std::span<const uint8_t> code = function_.bytecode;
    uint32_t pc = 0;
    while (has_instruction(code, pc)) {
      const Result<Instruction> instruction = read(pc);
      if (!instruction) return;
      const OpInfo& op = info(instruction->op);
      if (instruction->op == kBlockMarker) markers_.push_back(pc);
      if (has_trait(instruction->op, RETURNS | FAILS)) returns_ = true;
      if (op.set == OpSet::F32) used_features_ |= kFeatureF32;
      if (op.set == OpSet::F64) used_features_ |= kFeatureF64;
      for (size_t i = 0; i < op.operand_count; ++i) {
        const DecodedOperand& operand = instruction->operands[i];
        if (op.operands[i].kind == OperandKind::block && operand.index == 0) entry_is_target_ = true;
        if (op.operands[i].kind != OperandKind::cases) continue;
        for (const CaseEntry entry : operand.cases) entry_is_target_ |= entry.target == 0;
      }
      if (!skips_only_zeros(code, *instruction)) return;
      pc = instruction->next_pc;
    }
    exact_ = pc == code.size();
  }

  Result<Instruction> read(uint32_t pc) const {
    return read_instruction(function_.bytecode, pc, module_.bytecode_version(), function_.features);
  }

  // "(%i0: i32, %r0: !vm.ref<?>) -> (i64)"; counts its registers as used. Empty if the text cannot express
  // the convention.
  std::string signature_text(const Result<Convention>& convention) {
    derived_convention_ = "0v_v";
    if (!convention || convention->has_span) return "() -> ()";
    std::string arguments;
    std::string results;
    std::string codes;
    uint32_t values = 0;
    uint32_t refs = 0;
    for (const ConventionItem& item : convention->arguments) {
      if (!arguments.empty()) arguments += ", ";
      if (item.type == 'r') {
        arguments += fmt::format("%r{}: ", refs++);
      } else if (is_wide(item.type)) {
        values += values % 2;
        arguments += fmt::format("%i{}:{}: ", values, values + 1);
        values += 2;
      } else {
        arguments += fmt::format("%i{}: ", values++);
      }
      arguments += type_of(item.type);
      codes += item.type;
    }
    if (values > kMaxNamedValues || refs > kMaxNamedRefs) return "() -> ()";
    used_values_ = values;
    used_refs_ = refs;
    codes += codes.empty() ? "v_" : "_";
    for (const ConventionItem& item : convention->results) {
      if (!results.empty()) results += ", ";
      results += type_of(item.type);
      codes += item.type;
    }
    derived_convention_ = "0" + codes + (convention->results.empty() ? "v" : "");
    return "(" + arguments + ") -> (" + results + ")";
  }

  static std::string_view type_of(char type) { return type == 'r' ? "!vm.ref<?>" : type_name(type); }

  void print_facts(Listing& listing, bool raw, uint32_t values, uint32_t refs) const {
    const FunctionFields fields = view_.function_fields(ordinal_);
    if (function_.convention != derived_convention_)
      listing.line("  .cconv " + string_text(function_.convention));
    if (const std::string_view name = view_.debug_name(ordinal_); !name.empty())
      listing.line("  .debug_name " + string_text(name));
    for (const Attribute& attribute : view_.function_attributes(ordinal_)) {
      if (listing.full()) return;
      listing.line("  .attr " + string_text(attribute.key) + " " + string_text(attribute.value));
    }
    if (raw || function_.features != used_features_)
      listing.line("  .requires " + features_text(function_.features));
    if (raw || fields.value_registers != values || fields.ref_registers != refs)
      listing.line(fmt::format("  .registers {}, {}", fields.value_registers, fields.ref_registers));
    if (fields.reserved) listing.line(fmt::format("  .reserved {}", static_cast<uint16_t>(fields.reserved)));
    if (raw) listing.line(fmt::format("  .blocks {}", function_.block_count));
    if (!raw && !returns_) listing.line("  .endless");
  }

  void print_bytes(Listing& listing) const {
    const std::span<const uint8_t> code = function_.bytecode;
    for (size_t at = 0; at < code.size() && !listing.full(); at += kCodeBytesPerLine)
      listing.line("  .bytes " + hex_text(code.subspan(at, std::min(kCodeBytesPerLine, code.size() - at))));
  }

  void print_comments(Listing& listing) {
    Listing body(listing.room());
    print_instructions(body);
    const std::string text = body.take();
    for (std::string_view rest = text; !rest.empty() && !listing.full();) {
      const size_t end = rest.find('\n');
      listing.line("  //   " + std::string(rest.substr(0, end)));
      rest.remove_prefix(end + 1);
    }
  }

  // Prints the readable part of a function that cannot run.
  void print_instructions(Listing& listing) {
    for (uint32_t pc = 0; has_instruction(function_.bytecode, pc) && !listing.full();) {
      const Result<Instruction> instruction = read(pc);
      if (!instruction) return;
      if (instruction->op == kBlockMarker) {
        if (pc != 0 || entry_is_target_) listing.line(label(pc) + ":");
      } else {
        const std::string offset = offsets_ ? fmt::format("[{:08X}] ", pc) : "";
        remark_.clear();
        std::string text = offset + "  " + instruction_text(*instruction);
        if (!remark_.empty()) text += "  // " + remark_;
        listing.line(text);
      }
      pc = instruction->next_pc;
    }
  }

  std::string label(uint32_t pc) const {
    const auto found = std::ranges::lower_bound(markers_, pc);
    if (found != markers_.end() && *found == pc) return fmt::format("^bb{}", found - markers_.begin());
    return fmt::format("^pc{:X}", pc);  // in a function that cannot run
  }

  std::string register_text(uint16_t field, bool wide, char moved) {
    const uint32_t value = field;
    if (field & kRefBit) {
      const uint32_t ordinal = field & kRefOrdinalMask;
      used_refs_ = std::max(used_refs_, ordinal + 1);
      return fmt::format("%{}{}", field & kMoveBit ? moved : 'r', ordinal);
    }
    used_values_ = std::max(used_values_, value + (wide ? 2 : 1));
    return wide ? fmt::format("%i{}:{}", value, value + 1) : fmt::format("%i{}", value);
  }

  // `types` may be shorter than the list: the remaining entries are not used.
  std::string registers_text(RegList list, Bank bank, std::string_view types) {
    std::string text;
    for (size_t i = 0; i < list.size(); ++i) {
      const bool wide = i < types.size() ? is_wide(types[i]) : is_wide(bank);
      if (i > 0) text += ", ";
      text += register_text(list[i], wide, 'R');
    }
    return text;
  }

  std::string edge_text(uint32_t target, RemapList remap) {
    std::string text = label(target);
    if (remap.empty()) return text;
    for (size_t i = 0; i < remap.size(); ++i)
      text += (i ? ", " : "(") + register_text(remap[i].source, false, 'R') + " -> " +
              register_text(remap[i].destination, false, 'R');
    return text + ")";
  }

  // Finds the types of a call's arguments and results, or of a return's values; empty if unknown.
  void find_types(const Instruction& instruction) {
    argument_types_.clear();
    result_types_.clear();
    if (has_trait(instruction.op, RETURNS)) argument_types_ = returned_types_;
    const OpInfo& op = info(instruction.op);
    if (!has_trait(instruction.op, CALLS)) return;
    const uint32_t callee = instruction.operands[0].index;
    const uint32_t ordinal = callee & ~kImportBit;
    if (ordinal >= (callee & kImportBit ? module_.imports().size() : module_.functions().size())) return;
    const Result<Convention> convention =
        Convention::parse(callee & kImportBit ? module_.imports()[ordinal].convention
                                              : module_.functions()[ordinal].convention);
    if (!convention) return;
    RegList segments;
    RegList arguments;
    for (size_t i = 0; i < op.operand_count; ++i) {
      if (op.operands[i].kind == OperandKind::u16_list) segments = instruction.operands[i].regs;
      if (op.operands[i].kind == OperandKind::reg_list && !op.operands[i].writes)
        arguments = instruction.operands[i].regs;
    }
    argument_types_ = argument_types(*convention, segments, arguments.size());
    result_types_ = convention->result_types();
  }

  std::string instruction_text(const Instruction& instruction) {
    const OpInfo& op = info(instruction.op);
    const std::string_view form = text_form(instruction.op);
    find_types(instruction);
    std::string text;
    for (size_t i = 0; i < op.operand_count && form.find("$r") == std::string_view::npos; ++i)
      if (op.operands[i].writes) text += operand_text(instruction, i, '\0');
    if (!text.empty()) text += " = ";
    text += "vm.";
    text += op.mnemonic();
    if (!form.empty()) text += ' ';
    for (size_t i = 0; i < form.size(); ++i) {
      if (form[i] == '~') continue;
      if (is_last_list(instruction.op, form.substr(i)) &&
          instruction.operands[static_cast<size_t>(form[i + 3] - '0')].regs.empty())
        break;
      if (form[i] != '$') {
        text += form[i] == '_' ? ' ' : form[i];
        continue;
      }
      const char next = form[++i];
      if (next == 't') text += "!vm.ref<?>";
      if (next == 't' || next == 's') continue;
      const bool has_mode = next < '0' || next > '9';
      if (has_mode) ++i;
      text += operand_text(instruction, static_cast<size_t>(form[i] - '0'), has_mode ? next : '\0');
    }
    while (text.ends_with(' ')) text.pop_back();
    return text;
  }

  std::string operand_text(const Instruction& instruction, size_t index, char mode) {
    const Operand& operand = info(instruction.op).operands[index];
    const DecodedOperand& value = instruction.operands[index];
    switch (operand.kind) {
      case OperandKind::reg:
        return register_text(value.reg, is_wide(operand.bank), operand.move ? 'R' : 'm');
      case OperandKind::reg_list:
        return registers_text(value.regs, operand.bank, operand.writes ? result_types_ : argument_types_);
      case OperandKind::immediate:
        return immediate_text(value.immediate, operand.bank);
      case OperandKind::global_bytes:
        return fmt::format(".rwdata[{}]", value.index);
      case OperandKind::global_ref:
        return fmt::format(".refs[{}]", value.index);
      case OperandKind::rodata:
        remark_ = rodata_remark(value.index);
        return std::to_string(value.index);
      case OperandKind::type:
        return mode == 'l' ? names_.list_of(value.index) : names_.type(value.index);
      case OperandKind::func:
        return names_.callee(value.index);
      case OperandKind::string:
        return string_text(value.string);
      case OperandKind::block:
        return mode == 'e' ? edge_text(value.index, instruction.operands[index + 1].remap)
                           : label(value.index);
      case OperandKind::cases: {
        std::string text;
        size_t number = 0;
        for (const CaseEntry entry : value.cases)
          text += fmt::format(", {}: {}", number++, edge_text(entry.target, entry.remap));
        return text;
      }
      case OperandKind::u16_list: {
        std::string text;
        for (size_t i = 0; i < value.regs.size(); ++i)
          text += fmt::format("{}{}", i ? ", " : "", value.regs[i]);
        return text;
      }
      case OperandKind::remap:
        return {};  // printed with its block
    }
    return {};
  }

  static std::string immediate_text(uint64_t bits, Bank bank) {
    switch (bank) {
      case Bank::f32:
        return f32_text(static_cast<uint32_t>(bits));
      case Bank::f64:
        return f64_text(bits);
      case Bank::i64:
        return std::to_string(static_cast<int64_t>(bits));
      default:
        return std::to_string(static_cast<int32_t>(bits));
    }
  }

  // Short texts are shown as comments where they are used.
  std::string rodata_remark(uint32_t segment) const {
    if (segment >= module_.rodata().size()) return {};
    const std::span<const uint8_t> bytes = view_.segment(segment);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return !text.empty() && text.size() <= kMaxRemark && is_plain_string(text) ? string_text(text) : "";
  }

  const Names& names_;
  const ModuleView& view_;
  const BytecodeModule& module_;
  const Function& function_;
  const uint32_t ordinal_;
  const bool offsets_;

  std::vector<uint32_t> markers_;  // pcs of blocks
  bool entry_is_target_ = false;
  bool returns_ = false;
  bool exact_ = false;
  uint32_t used_features_ = 0;
  uint32_t used_values_ = 0;  // the count that the assembler will compute
  uint32_t used_refs_ = 0;
  std::string derived_convention_;
  std::string returned_types_;

  std::string argument_types_;  // of the current instruction
  std::string result_types_;
  std::string remark_;
};

}  // namespace

void print_function(Listing& listing, const Names& names, uint32_t function, bool offsets) {
  FunctionText(names, function, offsets).print(listing);
}

}  // namespace halyard::vm::disassembler
