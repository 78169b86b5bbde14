// The directives of a module (vmasm.md, section 3) and Halyard's additions (docs/vmasm.md), one row each.
// Directives that declare a name also have a form with an ordinal, "vm.export[N]", which may repeat a name,
// because some modules that no compiler made repeat names.
#include <algorithm>
#include <array>

#include "text/suggest.h"
#include "vm/text/assembler_module.h"
#include "vm/text/vmasm_text.h"

namespace halyard::vm::assembler {
namespace {

struct Directive {
  std::string_view name;
  bool may_precede_module;
  bool may_follow_function;
  Result<> (*assemble)(Module&, Cursor, LineReader&, int depth);
};

// Reads the "[N]" after a directive, which must be `next`. Returns false if there is none.
Result<bool> accept_ordinal(Cursor& cursor, size_t next, std::string_view directive) {
  if (!cursor.rest().starts_with('[')) return false;
  const uint32_t ordinal = HALYARD_TRY(cursor.ordinal("the ordinal"));
  if (ordinal == next) return true;
  return cursor.error(Code::INVALID_ARGUMENT, "expected {}[{}], found ordinal {}; they count from 0 up",
                      directive, next, ordinal);
}

// Adds a name to a table. `what` describes it in the message about a duplicate, unless duplicates are
// allowed.
Result<> define(OrdinalOf& names, std::string_view name, size_t ordinal, const Cursor& cursor,
                std::string_view what, bool again) {
  if (names.emplace(name, static_cast<uint32_t>(ordinal)).second || again) return {};
  return cursor.error(Code::INVALID_ARGUMENT, "{} '@{}' is already declared; give each its own name", what,
                      name);
}

Result<> module_directive(Module& module, Cursor cursor, LineReader&, int) {
  if (module.declared)
    return cursor.error(Code::INVALID_ARGUMENT, "vm.module occurs twice; this module is already '@{}'",
                        module.name);
  module.name = HALYARD_TRY(cursor.symbol("the module's name"));
  if (module.name.empty())
    return cursor.error(Code::INVALID_ARGUMENT, "the module's name is empty; expected a name");
  if (cursor.accept_word("version")) module.version = HALYARD_TRY(cursor.number("the module's version"));
  if (cursor.accept_word("bytecode")) {
    const uint32_t version = HALYARD_TRY(cursor.number("the bytecode version"));
    if (version < 15 || version > 17)
      return cursor.error(Code::INVALID_ARGUMENT, "bytecode version {} does not exist; choose 15, 16 or 17",
                          version);
    if (!module.forced_version) module.bytecode_version = version;
  }
  module.declared = true;
  return cursor.expect_end("vm.module @NAME [version N] [bytecode N]");
}

// In instructions, types are words; in the table they may also be strings.
Result<> type_directive(Module& module, Cursor cursor, LineReader&, int) {
  const bool again = HALYARD_TRY(accept_ordinal(cursor, module.types.size(), "vm.type"));
  std::string type;
  if (cursor.at("\"") || cursor.at("e\"")) {
    type = HALYARD_TRY(cursor.string("the type"));
    if (type.empty())
      return cursor.error(Code::INVALID_ARGUMENT, "the type's name is empty; expected a name");
  } else {
    type = HALYARD_TRY(type_name(cursor, HALYARD_TRY(cursor.type())));
  }
  HALYARD_TRY(cursor.expect_end("the type"));
  if (!module.type_ordinals.emplace(type, static_cast<uint32_t>(module.types.size())).second && !again)
    return cursor.error(Code::INVALID_ARGUMENT, "type {} is already in the type table", quoted(type));
  module.types.push_back(std::move(type));
  return {};
}

// Reads "hex {", lines of hex digits, and "}".
Result<std::vector<uint8_t>> hex_lines(Module& module, Cursor& cursor, LineReader& lines) {
  HALYARD_TRY(cursor.expect("{", "after 'hex'"));
  HALYARD_TRY(cursor.expect_end("'{'"));
  std::vector<uint8_t> bytes;
  while (const auto line = lines.next()) {
    if (line->text == "}") return bytes;
    Cursor digits(*module.source, *line);
    HALYARD_TRY(read_hex(digits, bytes));
  }
  return cursor.error(Code::INVALID_ARGUMENT, "the rodata has no end; expected '}}' alone on a line");
}

Result<> rodata_directive(Module& module, Cursor cursor, LineReader& lines, int depth) {
  if (!HALYARD_TRY(accept_ordinal(cursor, module.rodata.size(), "vm.rodata")))
    return cursor.expected("'[' directly after vm.rodata");
  HALYARD_TRY(cursor.expect("=", "after vm.rodata[N]"));
  if (cursor.at("\"") || cursor.at("e\"")) {
    const auto text = HALYARD_TRY(cursor.string("the rodata text"));
    HALYARD_TRY(cursor.expect_end("the rodata text"));
    module.rodata.emplace_back(text.begin(), text.end());
  } else if (cursor.accept_word("hex")) {
    module.rodata.push_back(HALYARD_TRY(hex_lines(module, cursor, lines)));
  } else if (cursor.accept_word("module")) {
    HALYARD_TRY(cursor.expect("{", "after 'module'"));
    HALYARD_TRY(cursor.expect_end("'{'"));
    module.rodata.push_back(HALYARD_TRY(
        assemble_module(lines, *module.source, module.forced_version, &module, depth + 1, cursor.line())));
  } else {
    if (!cursor.at_end() && hex_digit(cursor.rest().front()) < 0)
      return cursor.expected("hex digits, \"text\", 'hex {' or 'module {' after vm.rodata[N] =");
    HALYARD_TRY(read_hex(cursor, module.rodata.emplace_back()));
  }
  return {};
}

// Reads "flags N" at the end of an import or dependency: the raw flags of the module.
Result<> accept_flags(Cursor& cursor, uint32_t& flags) {
  if (cursor.accept_word("flags")) flags = HALYARD_TRY(cursor.number("the flags"));
  return {};
}

Result<> import_directive(Module& module, Cursor cursor, LineReader&, int) {
  const bool again = HALYARD_TRY(accept_ordinal(cursor, module.imports.size(), "vm.import"));
  Import import;
  if (cursor.accept_word("optional")) import.flags = kOptional;
  import.full_name = HALYARD_TRY(cursor.symbol("the imported function"));
  if (!cursor.accept_word("cconv"))
    return cursor.expected("'cconv' and the calling convention",
                           "as in: vm.import @hal.devices.count cconv \"0v_i\"");
  import.calling_convention = HALYARD_TRY(cursor.string("the calling convention"));
  HALYARD_TRY(accept_flags(cursor, import.flags));
  HALYARD_TRY(cursor.expect_end("the calling convention"));
  HALYARD_TRY(
      define(module.import_ordinals, import.full_name, module.imports.size(), cursor, "import", again));
  module.imports.push_back(import);
  return {};
}

struct GlobalType {
  std::string_view name;
  Bank bank;
};
constexpr GlobalType kGlobalTypes[] = {
    {"i32", Bank::i32}, {"i64", Bank::i64}, {"f32", Bank::f32}, {"f64", Bank::f64}};

template <size_t kType>
Result<> global_directive(Module& module, Cursor cursor, LineReader&, int) {
  constexpr GlobalType type = kGlobalTypes[kType];
  cursor.accept_word("private");
  cursor.accept_word("mutable");
  const auto name = HALYARD_TRY(cursor.symbol("the global's name"));
  if (cursor.accept("=")) {
    const std::string_view rest = trimmed(cursor.rest());
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string_view value = trimmed(rest.substr(0, colon));
    const std::string_view value_type = colon == rest.size() ? "" : trimmed(rest.substr(colon + 1));
    if (value.empty() || value_type.empty())
      return cursor.expected(fmt::format("'0 : {}' after '='", type.name));
    if (value_type != type.name)
      return cursor.error(Code::INVALID_ARGUMENT, "the initial value has type {}, the global {}",
                          quoted(value_type), type.name);
    if (value != "0")
      return cursor.error(
          Code::UNIMPLEMENTED,
          "globals begin as 0, found the initial value {}; set it in the exported function @__init",
          quoted(value));
  } else {
    HALYARD_TRY(cursor.expect_end("the global"));
  }
  HALYARD_TRY(define(module.global_ordinals, name, module.globals.size(), cursor, "global", false));
  module.globals.push_back({type.bank});
  return {};
}

Result<> export_directive(Module& module, Cursor cursor, LineReader&, int) {
  const bool again = HALYARD_TRY(accept_ordinal(cursor, module.exports.size(), "vm.export"));
  Export item;
  item.line = cursor.line();
  item.name = HALYARD_TRY(cursor.symbol("the export's name"));
  item.target = item.name;
  if (cursor.accept("=")) item.target = HALYARD_TRY(cursor.symbol("the exported function"));
  HALYARD_TRY(cursor.expect_end("the export"));
  HALYARD_TRY(define(module.export_ordinals, item.name, module.exports.size(), cursor, "export", again));
  module.exports.push_back(item);
  return {};
}

Result<> dependency_directive(Module& module, Cursor cursor, LineReader&, int) {
  const bool again = HALYARD_TRY(accept_ordinal(cursor, module.dependencies.size(), "vm.dependency"));
  Dependency dependency;
  dependency.name = HALYARD_TRY(cursor.symbol("the module that is needed"));
  dependency.minimum_version = HALYARD_TRY(cursor.number("its minimum version"));
  if (cursor.accept_word("optional")) dependency.flags = kOptional;
  HALYARD_TRY(accept_flags(cursor, dependency.flags));
  HALYARD_TRY(cursor.expect_end("vm.dependency @MODULE VERSION [optional]"));
  HALYARD_TRY(define(module.dependency_ordinals, dependency.name, module.dependencies.size(), cursor,
                     "the dependency", again));
  module.dependencies.push_back(dependency);
  return {};
}

Result<> has_key(const Cursor& cursor, const Attribute& attribute) {
  if (!attribute.key.empty()) return {};
  return cursor.error(Code::INVALID_ARGUMENT, "an attribute's key is empty; expected a name");
}

Result<> attribute_directive(Module& module, Cursor cursor, LineReader&, int) {
  ExportAttribute item;
  item.line = cursor.line();
  item.export_name = HALYARD_TRY(cursor.symbol("the exported function"));
  item.attribute = HALYARD_TRY(read_attribute(cursor));
  HALYARD_TRY(has_key(cursor, item.attribute));
  module.export_attributes.push_back(item);
  return {};
}

Result<> module_attribute_directive(Module& module, Cursor cursor, LineReader&, int) {
  const bool again = HALYARD_TRY(accept_ordinal(cursor, module.attributes.size(), "vm.module_attr"));
  const auto attribute = HALYARD_TRY(read_attribute(cursor));
  if (!again) HALYARD_TRY(has_key(cursor, attribute));
  if (!module.attribute_ordinals.emplace(attribute.key, 0).second && !again)
    return cursor.error(Code::INVALID_ARGUMENT, "the module's attribute \"{}\" is already given",
                        attribute.key);
  module.attributes.push_back(attribute);
  return {};
}

Result<> requires_directive(Module& module, Cursor cursor, LineReader&, int) {
  module.requirements = HALYARD_TRY(read_features(cursor));
  return {};
}

Result<> state_directive(Module& module, Cursor cursor, LineReader&, int) {
  if (module.state_given) return cursor.error(Code::INVALID_ARGUMENT, "vm.state occurs twice");
  module.state_given = true;
  module.global_bytes = HALYARD_TRY(cursor.number("the bytes of globals", INT32_MAX));
  HALYARD_TRY(cursor.expect(",", "after the bytes of globals"));
  module.global_refs = HALYARD_TRY(cursor.number("the count of ref globals", INT32_MAX));
  return cursor.expect_end("vm.state BYTES, REFS");
}

Result<> empty_directive(Module& module, Cursor cursor, LineReader&, int) {
  module.functionless = true;
  return cursor.expect_end("vm.empty");
}

Result<> function_directive(Module& module, Cursor cursor, LineReader& lines, int) {
  if (module.functionless)
    return cursor.error(Code::INVALID_ARGUMENT,
                        "found vm.func in a module with vm.empty; remove one of them");
  if (module.functions.empty()) HALYARD_TRY(lay_out_globals(module, cursor));
  return assemble_function(module, cursor, lines);
}

constexpr Directive kDirectives[] = {
    {"vm.module", true, true, module_directive},
    {"vm.type", false, false, type_directive},
    {"vm.rodata", false, false, rodata_directive},
    {"vm.import", false, false, import_directive},
    {"vm.global.i32", false, false, global_directive<0>},
    {"vm.global.i64", false, false, global_directive<1>},
    {"vm.global.f32", false, false, global_directive<2>},
    {"vm.global.f64", false, false, global_directive<3>},
    {"vm.export", true, true, export_directive},
    {"vm.dependency", true, false, dependency_directive},
    {"vm.attr", true, true, attribute_directive},
    {"vm.module_attr", true, true, module_attribute_directive},
    {"vm.requires", false, false, requires_directive},
    {"vm.state", false, false, state_directive},
    {"vm.empty", false, false, empty_directive},
    {"vm.func", false, true, function_directive},
};

}  // namespace

Result<> read_hex(Cursor& cursor, std::vector<uint8_t>& bytes) {
  const std::string_view digits = trimmed(cursor.rest());
  for (size_t i = 0; i < digits.size(); ++i) {
    const int digit = hex_digit(digits[i]);
    if (digit < 0)
      return cursor.error(Code::INVALID_ARGUMENT, "expected hex digits, found {}", quoted(digits.substr(i)));
    if (i % 2 == 0) {
      bytes.push_back(static_cast<uint8_t>(digit << 4));
    } else {
      bytes.back() = static_cast<uint8_t>(bytes.back() | digit);
    }
  }
  if (digits.size() % 2 != 0)
    return cursor.error(Code::INVALID_ARGUMENT, "found {} hex digits; two make a byte", digits.size());
  return {};
}

Result<Attribute> read_attribute(Cursor& cursor) {
  Attribute attribute;
  attribute.key = HALYARD_TRY(cursor.string("the attribute's key"));
  attribute.value = HALYARD_TRY(cursor.string("the attribute's value"));
  HALYARD_TRY(cursor.expect_end("the attribute"));
  return attribute;
}

Result<uint32_t> read_features(Cursor& cursor) {
  uint32_t features = 0;
  if (cursor.accept_word("none")) {
    HALYARD_TRY(cursor.expect_end("'none'"));
    return features;
  }
  do {
    cursor.skip_blanks();
    if (!cursor.rest().empty() && cursor.rest()[0] >= '0' && cursor.rest()[0] <= '9') {
      features |= HALYARD_TRY(cursor.number("requirement bits"));
      continue;
    }
    Cursor at = cursor;
    const uint32_t bit = feature_bit(cursor.word());
    if (bit == 0) return at.expected("ext_f32, ext_f64, yield, unwind, a number or 'none'");
    features |= bit;
  } while (cursor.accept(","));
  HALYARD_TRY(cursor.expect_end("the requirements"));
  return features;
}

Result<> lay_out_globals(Module& module, const Cursor& at) {
  uint32_t offset = 0;
  for (const uint32_t size : {4u, 8u}) {
    for (Global& global : module.globals) {
      if (global.size() != size) continue;
      offset = (offset + size - 1) & ~(size - 1);
      global.offset = offset;
      offset += size;
    }
  }
  if (!module.state_given) {
    module.global_bytes = offset;
  } else if (offset > module.global_bytes) {
    return at.error(Code::INVALID_ARGUMENT, "the globals take {} bytes, but vm.state says {}", offset,
                    module.global_bytes);
  }
  return {};
}

Result<> assemble_directive(Module& module, Cursor cursor, LineReader& lines, int depth) {
  const Cursor start = cursor;
  const std::string_view name = cursor.word();
  const auto found = std::ranges::find(kDirectives, name, &Directive::name);
  if (found == std::end(kDirectives)) {
    std::array<std::string_view, std::size(kDirectives)> names;
    std::ranges::transform(kDirectives, names.begin(), &Directive::name);
    return start.error(Code::INVALID_ARGUMENT,
                       "expected a directive such as vm.func or vm.export, found {}{}", quoted(start.rest()),
                       did_you_mean(name, names));
  }
  if (!module.declared && !found->may_precede_module)
    return start.error(Code::INVALID_ARGUMENT, "found {} before vm.module; begin with 'vm.module @NAME'",
                       name);
  if (!module.functions.empty() && !found->may_follow_function)
    return start.error(Code::INVALID_ARGUMENT, "found {} after a function; move it before the first vm.func",
                       name);
  return found->assemble(module, cursor, lines, depth);
}

}  // namespace halyard::vm::assembler
