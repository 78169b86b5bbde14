// The signature of a function, and its directives, which state facts that the body does not determine.
#include <algorithm>
#include <bit>

#include "text/suggest.h"
#include "vm/format/opcodes.h"
#include "vm/text/assembler_module.h"

namespace halyard::vm::assembler {
namespace {

struct ArgumentType {
  std::string_view text;
  Bank bank;
  char code;
};
constexpr ArgumentType kArgumentTypes[] = {
    {"i32", Bank::i32, 'i'}, {"i64", Bank::i64, 'I'}, {"f32", Bank::f32, 'f'}, {"f64", Bank::f64, 'F'}};

Result<ArgumentType> read_type(Cursor& cursor) {
  const std::string_view written = HALYARD_TRY(cursor.type());
  for (const ArgumentType& type : kArgumentTypes)
    if (type.text == written) return type;
  if (written == "i8" || written == "i16")
    return cursor.error(Code::UNIMPLEMENTED, "arguments and results cannot be {}; use i32", written);
  if (!written.starts_with('!'))
    return cursor.error(Code::INVALID_ARGUMENT,
                        "expected i32, i64, f32, f64 or a ref type such as !vm.buffer, found {}",
                        quoted(written));
  return ArgumentType{written, Bank::ref, 'r'};
}

// Arguments are numbered from 0 in each bank. A 64-bit argument may follow without a gap, or use the even
// register in which callers pass it.
Result<> read_arguments(Cursor& cursor, Function& function) {
  uint32_t next_value = 0;
  uint32_t next_ref = 0;
  if (!cursor.at(")")) {
    do {
      const auto reg = HALYARD_TRY(cursor.reg("an argument"));
      HALYARD_TRY(cursor.expect(":", "and a type after the argument's register"));
      const auto type = HALYARD_TRY(read_type(cursor));
      const bool wide = is_wide(type.bank);
      const Bank needed = type.bank == Bank::ref ? Bank::ref : wide ? Bank::i64 : Bank::i32;
      if (reg.bank != needed)
        return cursor.error(Code::INVALID_ARGUMENT, "an argument of type {} is {}, found {}", type.text,
                            bank_text(type.bank), bank_text(reg.bank));
      if (reg.move())
        return cursor.error(Code::INVALID_ARGUMENT, "an argument is declared as %r{}, not %R{}", reg.last,
                            reg.last);
      const uint32_t first = wide ? reg.last - 1 : reg.last;
      uint32_t& next = type.bank == Bank::ref ? next_ref : next_value;
      const bool at_even = wide && first == ((next + 1) & ~1u);
      if (first != next && !at_even)
        return cursor.error(Code::INVALID_ARGUMENT,
                            "expected register {} for the next argument, found {}; arguments "
                            "take registers in sequence from 0, values and refs separately",
                            next, first);
      next = reg.last + 1;
      function.use(reg);
      function.calling_convention += type.code;
    } while (cursor.accept(","));
  }
  if (next_value + next_ref == 0) function.calling_convention += 'v';
  return cursor.expect(")", "after the arguments");
}

Result<> read_results(Cursor& cursor, Function& function) {
  HALYARD_TRY(cursor.expect("(", "before the result types"));
  const size_t before = function.calling_convention.size();
  if (!cursor.at(")")) {
    do {
      if (cursor.at("%")) {
        HALYARD_TRY(cursor.reg("a result"));
        HALYARD_TRY(cursor.expect(":", "and a type after the result's register"));
      }
      function.calling_convention += HALYARD_TRY(read_type(cursor)).code;
    } while (cursor.accept(","));
  }
  if (function.calling_convention.size() == before) function.calling_convention += 'v';
  return cursor.expect(")", "after the result types");
}

struct Fact {
  std::string_view name;
  Result<> (*read)(Cursor&, Function&, FunctionFacts&);
};

Result<> convention_fact(Cursor& cursor, Function&, FunctionFacts& facts) {
  facts.calling_convention = HALYARD_TRY(cursor.string("the calling convention"));
  return {};
}

Result<> attribute_fact(Cursor& cursor, Function& function, FunctionFacts&) {
  function.attributes.push_back(HALYARD_TRY(read_attribute(cursor)));
  return {};
}

Result<> debug_name_fact(Cursor& cursor, Function& function, FunctionFacts&) {
  function.debug_name = HALYARD_TRY(cursor.string("the name for the debug database"));
  return {};
}

Result<> requires_fact(Cursor& cursor, Function&, FunctionFacts& facts) {
  facts.requirements = HALYARD_TRY(read_features(cursor));
  return {};
}

Result<> registers_fact(Cursor& cursor, Function&, FunctionFacts& facts) {
  facts.value_registers = HALYARD_TRY(cursor.number("the count of value registers", kMaxValueRegisters));
  HALYARD_TRY(cursor.expect(",", "after the count of value registers"));
  facts.ref_registers = HALYARD_TRY(cursor.number("the count of ref registers", kMaxRefRegisters));
  return {};
}

Result<> reserved_fact(Cursor& cursor, Function& function, FunctionFacts&) {
  function.reserved = static_cast<int16_t>(HALYARD_TRY(cursor.number("the reserved field", 0xFFFF)));
  return {};
}

Result<> blocks_fact(Cursor& cursor, Function&, FunctionFacts& facts) {
  facts.blocks = HALYARD_TRY(cursor.number("the count of blocks", 0x7FFF));
  return {};
}

Result<> endless_fact(Cursor&, Function&, FunctionFacts& facts) {
  facts.endless = true;
  return {};
}

constexpr Fact kFacts[] = {
    {".cconv", convention_fact},  {".attr", attribute_fact},      {".debug_name", debug_name_fact},
    {".requires", requires_fact}, {".registers", registers_fact}, {".reserved", reserved_fact},
    {".blocks", blocks_fact},     {".endless", endless_fact},
};

// Registers are addressed up to the next power of two (verifier-and-execution.md, 3.1).
bool covers(uint32_t stated, uint32_t used) { return used <= std::bit_ceil(std::max(stated, 1u)); }

}  // namespace

std::string_view register_form(Bank bank) {
  if (bank == Bank::ref) return "%rN";
  return is_wide(bank) ? "%iN:N+1" : "%iN";
}

std::string bank_text(Bank bank) {
  const std::string_view kind = bank == Bank::ref ? "ref" : is_wide(bank) ? "64-bit" : "32-bit";
  return fmt::format("a {} register, {}", kind, register_form(bank));
}

Result<> read_signature(Cursor& cursor, Function& function) {
  function.calling_convention = "0";
  HALYARD_TRY(cursor.expect("(", "after the function's name"));
  HALYARD_TRY(read_arguments(cursor, function));
  HALYARD_TRY(cursor.expect("->", "and the results after the arguments, as in '-> ()'"));
  function.calling_convention += '_';
  return read_results(cursor, function);
}

Result<> read_fact(Cursor& cursor, Function& function, FunctionFacts& facts) {
  const Cursor start = cursor;
  const std::string_view name = cursor.word();
  const auto* found = std::ranges::find(kFacts, name, &Fact::name);
  if (found == std::end(kFacts)) {
    std::array<std::string_view, std::size(kFacts)> names;
    std::ranges::transform(kFacts, names.begin(), &Fact::name);
    return start.error(Code::INVALID_ARGUMENT,
                       "expected .registers, .attr or another such directive, found {}{}",
                       quoted(start.rest()), did_you_mean(name, names));
  }
  HALYARD_TRY(found->read(cursor, function, facts));
  return cursor.expect_end(name);
}

Result<> apply_facts(const Cursor& at, Function& function, const FunctionFacts& facts) {
  if (facts.raw && function.length == 0)
    return at.error(Code::INVALID_ARGUMENT, "function @{} has .bytes without bytes", function.name);
  if (facts.raw != facts.blocks.has_value())
    return at.error(Code::INVALID_ARGUMENT, "function @{} has {}; .bytes and .blocks belong together",
                    function.name, facts.raw ? ".bytes without .blocks" : ".blocks without .bytes");
  if (facts.value_registers && !facts.raw &&
      !(covers(*facts.value_registers, function.value_registers) &&
        covers(*facts.ref_registers, function.ref_registers)))
    return at.error(Code::INVALID_ARGUMENT,
                    "function @{} uses {} value and {} ref registers, but .registers states {} and {}",
                    function.name, function.value_registers, function.ref_registers, *facts.value_registers,
                    *facts.ref_registers);
  function.calling_convention = facts.calling_convention.value_or(function.calling_convention);
  function.requirements = facts.requirements.value_or(function.requirements);
  function.value_registers = facts.value_registers.value_or(function.value_registers);
  function.ref_registers = facts.ref_registers.value_or(function.ref_registers);
  function.block_count = facts.blocks.value_or(function.block_count);
  return {};
}

}  // namespace halyard::vm::assembler
