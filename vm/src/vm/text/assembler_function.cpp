// Function bodies. Instructions are read and encoded by their text form (vmasm_forms.h) and their operands in
// the opcode table; only calls, branches and globals need lookups. assembler_signature.cpp reads the
// signature and the directives of a function.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "text/suggest.h"
#include "vm/format/opcode_traits.h"
#include "vm/text/assembler_module.h"
#include "vm/text/vmasm_forms.h"

namespace halyard::vm::assembler {
namespace {

constexpr size_t kMaxCount = 0xFFFF;         // of a list, a string or a table
constexpr size_t kMaxBlocks = 0x7FFF;        // the descriptor's field is an i16
constexpr size_t kMaxBytecode = 0x7FFFFFFF;  // offsets and lengths are i32

struct Edge {
  std::string_view label;
  std::vector<uint16_t> pairs;  // source, destination, ...
};

// An operand as read; its kind determines which members are used.
struct Value {
  uint64_t number = 0;            // reg, immediate, ordinals, offsets
  std::vector<uint16_t> numbers;  // reg_list, u16_list
  std::string_view text;          // string
  Callee callee;                  // func
  std::vector<Edge> edges;        // block with the remap after it; cases
};

// bits(0x7FC00001)
template <typename Bits>
Result<uint64_t> raw_bits(const Cursor& cursor, std::string_view text, std::string_view bank) {
  const std::string_view digits = text.substr(5, text.size() - 5 - text.ends_with(')'));
  const CInteger bits = parse_c_integer(digits);
  if (!text.ends_with(')') || bits.length == 0 || bits.length != digits.size() || bits.negative ||
      bits.overflow || bits.magnitude > std::numeric_limits<Bits>::max())
    return cursor.error(Code::INVALID_ARGUMENT, "expected the bits of an {} as in bits(0x7FC00001), found {}",
                        bank, quoted(text));
  return bits.magnitude;
}

// The bits of a float in C syntax, independent of the locale. nullopt if the value is not exactly
// representable as a normal number, zero, infinity or NaN.
template <typename Float, typename Bits>
Result<uint64_t> float_bits(const Cursor& cursor, std::string_view text, std::string_view bank) {
  if (text.starts_with("bits(")) return raw_bits<Bits>(cursor, text, bank);
  std::string_view digits = text;
  bool negative = false;
  if (digits.starts_with('-') || digits.starts_with('+')) {
    negative = digits.front() == '-';
    digits.remove_prefix(1);
  }
  auto format = std::chars_format::general;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
    format = std::chars_format::hex;
  }
  Float value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, format);
  const bool bad_start = digits.starts_with('-') || (format == std::chars_format::hex &&
                                                     digits.find_first_of("nNiI") != std::string_view::npos);
  if (read.ec == std::errc::invalid_argument || bad_start || read.ptr != digits.data() + digits.size())
    return cursor.error(Code::INVALID_ARGUMENT,
                        "expected an {} number such as 1.5, 0x1.8p1, inf or nan, without a suffix, found {}",
                        bank, quoted(text));
  if (read.ec == std::errc::result_out_of_range || std::fpclassify(value) == FP_SUBNORMAL)
    return cursor.error(Code::INVALID_ARGUMENT,
                        "{} is not a normal {} number: it overflows or is denormal; write it as bits(0x...)",
                        quoted(text), bank);
  if (negative) value = -value;
  return std::bit_cast<Bits>(value);
}

class Body {
 public:
  Body(Module& module, Function& function) : module_(module), function_(function) {}

  Result<> line(Cursor cursor) {
    if (cursor.at(".")) return fact(cursor);
    if (facts_.raw)
      return cursor.error(Code::INVALID_ARGUMENT,
                          "the body of function @{} is given by .bytes; it has no other instructions",
                          function_.name);
    if (function_.block_count == 0) begin_block();
    if (cursor.at("^")) return block(cursor);
    starts_with_label_ = false;
    return instruction(cursor);
  }

  Result<> finish(const Cursor& last) {
    if (!returns_ && !facts_.endless && !facts_.raw)
      return last.error(Code::INVALID_ARGUMENT,
                        "function @{} has neither vm.return nor vm.fail; every function needs one",
                        function_.name);
    for (const LabelUse& use : label_uses_) {
      const auto found = labels_.find(use.label);
      if (found == labels_.end())
        return use.at.error(Code::INVALID_ARGUMENT,
                            "no block '^bb{}' in function @{}; expected a line '^bb{}:' in it", use.label,
                            function_.name, use.label);
      patch_u32(use.position, found->second);
    }
    if (function_.block_count == 0 && !facts_.raw) begin_block();
    function_.length = static_cast<uint32_t>(pc());
    HALYARD_TRY(apply_facts(last, function_, facts_));
    auto& bytecode = module_.bytecode;
    bytecode.resize((bytecode.size() + 7) & ~size_t{7});
    if (bytecode.size() > kMaxBytecode)
      return last.error(Code::OUT_OF_RANGE, "the module's code is longer than {} bytes", kMaxBytecode);
    return {};
  }

 private:
  struct LabelUse {
    Cursor at;
    std::string_view label;
    size_t position;
  };

  size_t pc() const { return module_.bytecode.size() - function_.offset; }
  void u8(uint8_t value) { module_.bytecode.push_back(value); }
  void u16(uint64_t value) {
    u8(static_cast<uint8_t>(value));
    u8(static_cast<uint8_t>(value >> 8));
  }
  void u32(uint64_t value) {
    u16(value);
    u16(value >> 16);
  }
  void pad_to_even() {
    if (pc() % 2) u8(0);
  }
  void patch_u32(size_t position, uint32_t value) {
    for (size_t i = 0; i < 4; ++i) module_.bytecode[position + i] = static_cast<uint8_t>(value >> (8 * i));
  }
  void begin_block() {
    u8(info(kBlockMarker).byte);
    ++function_.block_count;
  }

  // .bytes is handled here, because only this class knows the preceding lines.
  Result<> fact(Cursor& cursor) {
    if (!starts_with_label_)
      return cursor.error(
          Code::INVALID_ARGUMENT,
          "found {} after the first instruction of function @{}; move it before the instructions",
          quoted(cursor.rest().substr(0, cursor.rest().find(' '))), function_.name);
    if (!cursor.accept_word(".bytes")) return read_fact(cursor, function_, facts_);
    facts_.raw = true;
    HALYARD_TRY(read_hex(cursor, module_.bytecode));
    return {};
  }

  Result<> block(Cursor& cursor) {
    const auto label = HALYARD_TRY(cursor.label());
    if (cursor.rest() != ":")
      return cursor.expected("':' directly after the block label and nothing more on the line");
    if (!starts_with_label_) {
      if (function_.block_count == kMaxBlocks)
        return cursor.error(Code::OUT_OF_RANGE, "function @{} has more than {} blocks", function_.name,
                            kMaxBlocks);
      begin_block();
    }
    const uint32_t marker = static_cast<uint32_t>(pc() - 1);
    starts_with_label_ = false;
    if (!labels_.emplace(label, marker).second)
      return cursor.error(Code::INVALID_ARGUMENT, "block '^bb{}' is already defined in function @{}", label,
                          function_.name);
    return {};
  }

  Result<> instruction(Cursor& cursor) {
    std::vector<RegisterName> results;
    if (cursor.at("%")) {
      do results.push_back(HALYARD_TRY(cursor.reg("the result")));
      while (cursor.accept(","));
      HALYARD_TRY(cursor.expect("=", "after the results"));
    }
    const std::string_view written = cursor.word();
    std::string_view mnemonic = written;
    if (mnemonic.starts_with("vm.")) mnemonic.remove_prefix(3);
    const Op op = op_by_mnemonic(mnemonic);
    if (op == Op::kCount) return unknown(cursor, written, mnemonic);
    const OpInfo& op_info = info(op);
    if (op_info.since > module_.bytecode_version)
      return cursor.error(Code::INVALID_ARGUMENT,
                          "vm.{} needs bytecode version {}; this module is assembled for version {}",
                          mnemonic, op_info.since, module_.bytecode_version);
    if (!cursor.at_end() && cursor.rest().data() == written.data() + written.size())
      return cursor.expected(fmt::format("a blank after vm.{}", mnemonic));

    std::array<Value, kMaxOperands> values;
    HALYARD_TRY(read(cursor, op, values));
    HALYARD_TRY(cursor.expect_end(fmt::format("vm.{}", mnemonic)));
    HALYARD_TRY(take_results(cursor, op, results, values));
    encode(cursor, op, values);
    if (has_trait(op, RETURNS | FAILS)) returns_ = true;
    if (op_info.set == OpSet::F32) function_.requirements |= 1;
    if (op_info.set == OpSet::F64) function_.requirements |= 2;
    if (pc() > kMaxBytecode)
      return cursor.error(Code::OUT_OF_RANGE, "function @{} is longer than {} bytes", function_.name,
                          kMaxBytecode);
    return {};
  }

  std::unexpected<Status> unknown(Cursor& cursor, std::string_view written, std::string_view mnemonic) {
    if (written.empty()) return cursor.expected("an instruction");
    if (is_implicit(mnemonic))
      return cursor.error(Code::INVALID_ARGUMENT, "{} cannot be written; the assembler emits it",
                          quoted(written));
    if (mnemonic == "func")
      return cursor.error(Code::INVALID_ARGUMENT,
                          "function @{} is still open; close it with '}}' alone on a line", function_.name);
    const auto names = writable_mnemonics();
    return cursor.error(Code::INVALID_ARGUMENT, "unknown instruction {}{}", quoted(written),
                        did_you_mean(mnemonic, names));
  }

  // Walks the form and stores the operands.
  Result<> read(Cursor& cursor, Op op, std::array<Value, kMaxOperands>& values) {
    const OpInfo& op_info = info(op);
    const std::string_view form = text_form(op);
    const std::string where = fmt::format("in vm.{}", op_info.mnemonic());
    for (size_t i = 0; i < form.size(); ++i) {
      if (form[i] == ' ' || form[i] == '~') continue;
      if (form[i] == '_') {
        if (cursor.skip_blanks() == 0) return cursor.expected(fmt::format("a blank here {}", where));
        continue;
      }
      if (form[i] != '$') {
        // The last list may be empty; then the comma before it is omitted.
        if (form[i] == ',' && cursor.at_end() && is_last_list(op, form.substr(i))) return {};
        size_t end = form.find_first_of(" _~$", i);
        if (end == std::string_view::npos) end = form.size();
        HALYARD_TRY(cursor.expect(form.substr(i, end - i), where));
        i = end - 1;
        continue;
      }
      const char mode = form[i + 1] >= '0' && form[i + 1] <= '9' ? '\0' : form[i + 1];
      i += mode ? 2 : 1;
      if (mode == 't') {
        HALYARD_TRY(cursor.type());
        --i;
        continue;
      }
      if (mode == 's') {
        if (cursor.at("segments")) HALYARD_TRY(segments(cursor));
        --i;
        continue;
      }
      const size_t index = static_cast<size_t>(form[i] - '0');
      const Operand& operand = op_info.operands[index];
      HALYARD_TRY(read_operand(cursor, op_info, operand, mode, values[index]));
    }
    return {};
  }

  Result<> segments(Cursor& cursor) {
    HALYARD_TRY(cursor.expect("segments", "after the callee"));
    HALYARD_TRY(cursor.expect("[", "after 'segments'"));
    HALYARD_TRY(u16_list(cursor));
    HALYARD_TRY(cursor.expect("]", "after the segment sizes"));
    return {};
  }

  Result<> read_operand(Cursor& cursor, const OpInfo& op_info, const Operand& operand, char mode,
                        Value& value) {
    switch (operand.kind) {
      case OperandKind::reg: {
        const auto reg = HALYARD_TRY(cursor.reg(operand.name()));
        HALYARD_TRY(check(cursor, reg, operand.bank, operand.move, operand.name()));
        value.number = reg.field;
        return {};
      }
      case OperandKind::reg_list:
        return read_registers(cursor, operand, value);
      case OperandKind::immediate:
        return read_immediate(cursor, operand, value);
      case OperandKind::global_bytes:
        return read_global_bytes(cursor, op_info, value);
      case OperandKind::global_ref:
        return read_global_ref(cursor, value);
      case OperandKind::rodata:
        value.number = HALYARD_TRY(cursor.number("the rodata ordinal"));
        return {};
      case OperandKind::type: {
        if (cursor.accept_word("type")) {
          value.number = HALYARD_TRY(cursor.ordinal("the ordinal of a type"));
          return {};
        }
        const std::string_view written = HALYARD_TRY(cursor.type());
        if (mode != 'l') {
          value.number = HALYARD_TRY(module_.type_ordinal(cursor, written));
          return {};
        }
        constexpr std::string_view kList = "vm.list<";
        std::string_view element = written;
        if (element.starts_with('!')) element.remove_prefix(1);
        if (!element.starts_with(kList) || !element.ends_with('>'))
          return cursor.error(Code::INVALID_ARGUMENT, "expected a list type such as !vm.list<i32>, found {}",
                              quoted(written));
        element = element.substr(kList.size(), element.size() - kList.size() - 1);
        value.number = HALYARD_TRY(module_.type_ordinal(cursor, element));
        return {};
      }
      case OperandKind::func:
        value.callee = HALYARD_TRY(read_callee(cursor));
        return {};
      case OperandKind::string:
        value.text = HALYARD_TRY(cursor.string(operand.name()));
        if (value.text.size() > kMaxCount)
          return cursor.error(Code::INVALID_ARGUMENT, "the string is {} bytes long; at most {} fit",
                              value.text.size(), kMaxCount);
        return {};
      case OperandKind::block:
        value.edges.resize(1);
        if (mode == 'e') return read_edge(cursor, value.edges[0]);
        value.edges[0].label = HALYARD_TRY(cursor.label());
        return {};
      case OperandKind::cases:
        return read_cases(cursor, value);
      case OperandKind::u16_list:
        value.numbers = HALYARD_TRY(u16_list(cursor));
        return {};
      case OperandKind::remap:
        return {};  // read together with its block
    }
    return {};
  }

  Result<> check(const Cursor& cursor, const RegisterName& reg, Bank bank, bool move, std::string_view what) {
    const Bank needed = bank == Bank::ref ? Bank::ref : is_wide(bank) ? Bank::i64 : Bank::i32;
    if (reg.bank != needed)
      return cursor.error(Code::INVALID_ARGUMENT, "{}: expected {}, found {}", what, bank_text(bank),
                          bank_text(reg.bank));
    if (reg.idle && move)
      return cursor.error(Code::INVALID_ARGUMENT, "{}: this operand can be moved; write %R{} instead of %m{}",
                          what, reg.last, reg.last);
    if (reg.move() && !reg.idle && !move)
      return cursor.error(Code::INVALID_ARGUMENT,
                          "{}: this operand cannot be moved; write %r{} instead of %R{}", what, reg.last,
                          reg.last);
    function_.use(reg);
    return {};
  }

  // %m is allowed for single operands only.
  Result<> check_idle(const Cursor& cursor, const RegisterName& reg, std::string_view what) {
    if (!reg.idle) return {};
    return cursor.error(Code::INVALID_ARGUMENT, "{}: registers of a list are moved with %R{}, not %m{}", what,
                        reg.last, reg.last);
  }

  // In a list, a 64-bit register may be written as its low half.
  Result<> check_entry(const Cursor& cursor, const RegisterName& reg, Bank bank, std::string_view what) {
    HALYARD_TRY(check_idle(cursor, reg, what));
    if (bank != Bank::any &&
        ((reg.bank == Bank::ref) != (bank == Bank::ref) || (reg.bank == Bank::i64 && !is_wide(bank))))
      return cursor.error(Code::INVALID_ARGUMENT, "{}: expected {}, found {}", what, bank_text(bank),
                          bank_text(reg.bank));
    function_.use(reg);
    return {};
  }

  Result<> read_registers(Cursor& cursor, const Operand& operand, Value& value) {
    if (cursor.at_end() || cursor.at(")") || cursor.at("]")) return {};
    do {
      const auto reg = HALYARD_TRY(cursor.reg(operand.name()));
      HALYARD_TRY(check_entry(cursor, reg, operand.bank, operand.name()));
      value.numbers.push_back(reg.field);
    } while (cursor.accept(","));
    return check_count(cursor, value.numbers.size(), operand.name());
  }

  Result<> check_count(const Cursor& cursor, size_t count, std::string_view what) {
    if (count > kMaxCount)
      return cursor.error(Code::OUT_OF_RANGE, "{}: {} entries; at most {} fit", what, count, kMaxCount);
    return {};
  }

  Result<std::vector<uint16_t>> u16_list(Cursor& cursor) {
    std::vector<uint16_t> numbers;
    if (cursor.at("]")) return numbers;
    do numbers.push_back(static_cast<uint16_t>(HALYARD_TRY(cursor.number("a segment size", 0xFFFF))));
    while (cursor.accept(","));
    HALYARD_TRY(check_count(cursor, numbers.size(), "segments"));
    return numbers;
  }

  Result<> read_immediate(Cursor& cursor, const Operand& operand, Value& value) {
    if (cursor.at_end()) return cursor.expected("the constant's value");
    const std::string_view text = cursor.operand();
    if (operand.bank == Bank::f32) {
      value.number = HALYARD_TRY(float_bits<float, uint32_t>(cursor, text, "f32"));
      return {};
    }
    if (operand.bank == Bank::f64) {
      value.number = HALYARD_TRY(float_bits<double, uint64_t>(cursor, text, "f64"));
      return {};
    }
    const bool wide = operand.bank == Bank::i64;
    const size_t max_length = wide ? 31 : 15;
    if (text.size() > max_length)
      return cursor.error(Code::INVALID_ARGUMENT, "the number {} is longer than {} characters", quoted(text),
                          max_length);
    const CInteger integer = parse_c_integer(text);
    if (integer.length == 0 || integer.length != text.size())
      return cursor.error(Code::INVALID_ARGUMENT, "expected an integer such as 42, -1 or 0xFF, found {}",
                          quoted(text));
    const uint64_t half = uint64_t{1} << (wide ? 63 : 31);
    const uint64_t limit = integer.negative ? half : wide ? half - 1 : 2 * half - 1;
    if (integer.overflow || integer.magnitude > limit)
      return cursor.error(Code::INVALID_ARGUMENT, "{} does not fit into an {}", quoted(text),
                          wide ? "i64" : "i32");
    value.number = integer.negative ? uint64_t{0} - integer.magnitude : integer.magnitude;
    return {};
  }

  Result<> read_global_bytes(Cursor& cursor, const OpInfo& op_info, Value& value) {
    Bank bank = Bank::none;
    for (size_t i = 0; i < op_info.operand_count; ++i)
      if (op_info.operands[i].kind == OperandKind::reg) bank = op_info.operands[i].bank;
    const uint32_t size = is_wide(bank) ? 8 : 4;
    if (cursor.accept(".rwdata")) {
      HALYARD_TRY(cursor.expect("[", "after '.rwdata'"));
      const uint32_t offset = HALYARD_TRY(cursor.number("the byte offset", INT32_MAX - size));
      HALYARD_TRY(cursor.expect("]", "after the byte offset"));
      if (module_.state_given && offset + size > module_.global_bytes)
        return cursor.error(Code::INVALID_ARGUMENT,
                            ".rwdata[{}] has {} bytes, but vm.state says {} bytes in all", offset, size,
                            module_.global_bytes);
      module_.global_bytes = std::max(module_.global_bytes, offset + size);
      value.number = offset;
      return {};
    }
    const auto name = HALYARD_TRY(cursor.symbol("the global, @NAME or .rwdata[OFFSET]"));
    const auto found = module_.global_ordinals.find(name);
    if (found == module_.global_ordinals.end())
      return cursor.error(Code::INVALID_ARGUMENT, "no global '@{}'{}", name,
                          suggestion(name, module_.global_ordinals));
    const Global& global = module_.globals[found->second];
    if (global.size() != size)
      return cursor.error(Code::INVALID_ARGUMENT, "global '@{}' has {} bytes, vm.{} accesses {}", name,
                          global.size(), op_info.mnemonic(), size);
    value.number = global.offset;
    return {};
  }

  Result<> read_global_ref(Cursor& cursor, Value& value) {
    HALYARD_TRY(cursor.expect(".refs", "and the ordinal of the ref global, as in .refs[0]"));
    HALYARD_TRY(cursor.expect("[", "after '.refs'"));
    const uint32_t ordinal = HALYARD_TRY(cursor.number("the ordinal of the ref global", INT32_MAX - 1));
    HALYARD_TRY(cursor.expect("]", "after the ordinal"));
    if (module_.state_given && ordinal >= module_.global_refs)
      return cursor.error(Code::INVALID_ARGUMENT, ".refs[{}] does not exist: vm.state says {} ref globals",
                          ordinal, module_.global_refs);
    module_.global_refs = std::max(module_.global_refs, ordinal + 1);
    value.number = ordinal;
    return {};
  }

  // @function, @module.function, @module:ORDINAL or import[ORDINAL].
  Result<Callee> read_callee(Cursor& cursor) {
    if (cursor.accept_word("import"))
      return Callee{Callee::import, {}, HALYARD_TRY(cursor.ordinal("the ordinal of an import"))};
    const std::string_view name = HALYARD_TRY(cursor.symbol("the callee"));
    if (!cursor.rest().starts_with(':')) return Callee{Callee::by_name, name, 0};
    cursor.accept(":");
    if (cursor.skip_blanks() > 0)
      return cursor.error(Code::INVALID_ARGUMENT, "'@{}:' has a blank after ':'; expected an ordinal", name);
    return Callee{Callee::function, name, HALYARD_TRY(cursor.number("the callee's ordinal"))};
  }

  Result<> read_edge(Cursor& cursor, Edge& edge) {
    edge.label = HALYARD_TRY(cursor.label());
    if (!cursor.accept("(")) return {};
    if (cursor.accept(")")) return {};
    do {
      const auto source = HALYARD_TRY(cursor.reg("the source of a branch argument"));
      HALYARD_TRY(cursor.expect("->", "between source and destination"));
      const auto destination = HALYARD_TRY(cursor.reg("the destination of a branch argument"));
      if ((source.bank == Bank::ref) != (destination.bank == Bank::ref))
        return cursor.error(Code::INVALID_ARGUMENT,
                            "a branch argument moves {} into {}; both must be of one kind",
                            bank_text(source.bank), bank_text(destination.bank));
      HALYARD_TRY(check_idle(cursor, source, "a branch argument"));
      HALYARD_TRY(check_idle(cursor, destination, "a branch argument"));
      function_.use(source);
      function_.use(destination);
      edge.pairs.push_back(source.field);
      edge.pairs.push_back(destination.field);
    } while (cursor.accept(","));
    HALYARD_TRY(check_count(cursor, edge.pairs.size() / 2, "branch arguments"));
    return cursor.expect(")", "after the branch arguments");
  }

  Result<> read_cases(Cursor& cursor, Value& value) {
    while (cursor.accept(",")) {
      const uint32_t number = HALYARD_TRY(cursor.number("a case of vm.br_table"));
      if (number != value.edges.size())
        return cursor.error(Code::INVALID_ARGUMENT,
                            "expected case {} of vm.br_table, found {}; cases count from 0 up",
                            value.edges.size(), number);
      HALYARD_TRY(cursor.expect(":", "after the number of a case"));
      HALYARD_TRY(read_edge(cursor, value.edges.emplace_back()));
    }
    return check_count(cursor, value.edges.size(), "cases");
  }

  // Assigns the results before the '=' to the operands that are written, unless the form has read them.
  Result<> take_results(const Cursor& cursor, Op op, const std::vector<RegisterName>& results,
                        std::array<Value, kMaxOperands>& values) {
    const OpInfo& op_info = info(op);
    for (size_t i = 0; i < op_info.operand_count; ++i) {
      const Operand& operand = op_info.operands[i];
      if (!operand.writes) continue;
      if (text_form(op).find("$r") != std::string::npos) {
        if (results.empty()) return {};
        return cursor.error(
            Code::INVALID_ARGUMENT,
            "the results of vm.{} follow its block, as in '-> ^bbN(%i0)', and are not written before the '='",
            op_info.mnemonic());
      }
      if (operand.kind == OperandKind::reg_list) {
        for (const RegisterName& reg : results) {
          HALYARD_TRY(check_idle(cursor, reg, operand.name()));
          function_.use(reg);
          values[i].numbers.push_back(reg.field);
        }
        return check_count(cursor, results.size(), operand.name());
      }
      if (results.size() != 1)
        return cursor.error(Code::INVALID_ARGUMENT, "vm.{} has one result, found {}; write '{} = vm.{} ...'",
                            op_info.mnemonic(), results.size(), register_form(operand.bank),
                            op_info.mnemonic());
      HALYARD_TRY(check(cursor, results[0], operand.bank, operand.move, operand.name()));
      values[i].number = results[0].field;
    }
    return {};
  }

  void encode(const Cursor& cursor, Op op, std::array<Value, kMaxOperands>& values) {
    const OpInfo& op_info = info(op);
    if (op_info.set != OpSet::CORE) u8(info(prefix_of(op_info.set)).byte);
    u8(op_info.byte);
    for (size_t i = 0; i < op_info.operand_count; ++i) {
      const Value& value = values[i];
      switch (op_info.operands[i].kind) {
        case OperandKind::reg:
          u16(value.number);
          break;
        case OperandKind::immediate:
          u32(value.number);
          if (is_wide(op_info.operands[i].bank)) u32(value.number >> 32);
          break;
        case OperandKind::global_bytes:
        case OperandKind::global_ref:
        case OperandKind::rodata:
        case OperandKind::type:
          u32(value.number);
          break;
        case OperandKind::func:
          module_.callees.push_back(
              {cursor, value.callee, module_.bytecode.size(), has_trait(op, NAMES_IMPORT)});
          u32(0);
          break;
        case OperandKind::string:
          u16(value.text.size());
          module_.bytecode.insert(module_.bytecode.end(), value.text.begin(), value.text.end());
          break;
        case OperandKind::reg_list:
        case OperandKind::u16_list:
          encode_list(value.numbers, value.numbers.size());
          break;
        case OperandKind::block:
          encode_target(cursor, value.edges[0]);
          break;
        case OperandKind::remap: {
          const auto& pairs = values[i - 1].edges[0].pairs;
          encode_list(pairs, pairs.size() / 2);
          break;
        }
        case OperandKind::cases:
          u16(value.edges.size());
          for (const Edge& edge : value.edges) {
            encode_target(cursor, edge);
            encode_list(edge.pairs, edge.pairs.size() / 2);
          }
          break;
      }
    }
  }

  void encode_list(const std::vector<uint16_t>& numbers, size_t count) {
    pad_to_even();
    u16(count);
    for (uint16_t number : numbers) u16(number);
  }

  void encode_target(const Cursor& cursor, const Edge& edge) {
    label_uses_.push_back({cursor, edge.label, module_.bytecode.size()});
    u32(0);
  }

  Module& module_;
  Function& function_;
  bool starts_with_label_ = true;  // nothing was read yet, so a label here names the entry block
  bool returns_ = false;
  FunctionFacts facts_;
  OrdinalOf labels_;  // label to marker pc
  std::vector<LabelUse> label_uses_;
};

}  // namespace

void Function::use(const RegisterName& reg) {
  uint32_t& count = reg.bank == Bank::ref ? ref_registers : value_registers;
  count = std::max(count, reg.last + 1);
}

Result<> assemble_function(Module& module, Cursor cursor, LineReader& lines) {
  const uint32_t ordinal = static_cast<uint32_t>(module.functions.size());
  Function function;
  function.name = HALYARD_TRY(cursor.symbol("the function's name"));
  function.offset = static_cast<uint32_t>(module.bytecode.size());
  if (!module.function_ordinals.emplace(function.name, ordinal).second)
    return cursor.error(Code::INVALID_ARGUMENT, "function '@{}' is already defined", function.name);
  HALYARD_TRY(read_signature(cursor, function));
  HALYARD_TRY(cursor.expect("{", "at the end of the function's first line"));
  HALYARD_TRY(cursor.expect_end("'{'"));

  Body body(module, function);
  while (const auto line = lines.next()) {
    const Cursor at(*module.source, *line);
    if (line->text != "}") {
      HALYARD_TRY(body.line(at));
      continue;
    }
    HALYARD_TRY(body.finish(at));
    module.functions.push_back(std::move(function));
    return {};
  }
  return cursor.error(Code::INVALID_ARGUMENT, "function '@{}' has no end; expected '}}' alone on a line",
                      function.name);
}

}  // namespace halyard::vm::assembler
