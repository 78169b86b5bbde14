// The directives of a module, vmasm.md section 3, and Halyard's own (docs/vmasm.md): one row each.
#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "vm/assembler_module.h"

namespace halyard::vm::assembler {
namespace {

struct Directive {
  std::string_view name;
  bool may_precede_module;
  bool may_follow_function;
  Result<> (*assemble)(Module&, Cursor, LineReader&, int depth);
};

// Adds a name to a table; `what` for the message that it is there already.
Result<> define(OrdinalOf& names, std::string_view name, size_t ordinal, const Cursor& cursor,
                std::string_view what) {
  if (names.emplace(name, static_cast<uint32_t>(ordinal)).second) return {};
  return cursor.error(Code::INVALID_ARGUMENT, "{} '@{}' is already declared; give each its own name", what,
                      name);
}

Result<> module_directive(Module& module, Cursor cursor, LineReader&, int) {
  if (module.declared)
    return cursor.error(Code::INVALID_ARGUMENT, "vm.module is given twice; this module is '@{}' already",
                        module.name);
  module.name = HALYARD_TRY(cursor.symbol("the module's name"));
  if (cursor.accept_word("version")) module.version = HALYARD_TRY(cursor.number("the module's version"));
  module.declared = true;
  return cursor.expect_end("vm.module @NAME [version N]");
}

Result<> type_directive(Module& module, Cursor cursor, LineReader&, int) {
  const auto written = HALYARD_TRY(cursor.type());
  HALYARD_TRY(cursor.expect_end("the type"));
  const size_t before = module.types.size();
  HALYARD_TRY(module.type_ordinal(cursor, written));
  if (module.types.size() == before)
    return cursor.error(Code::INVALID_ARGUMENT, "type {} is already in the type table", written);
  return {};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::vector<uint8_t>> hex_bytes(Cursor& cursor) {
  const std::string_view digits = trimmed(cursor.rest());
  std::vector<uint8_t> bytes;
  bytes.reserve(digits.size() / 2);
  for (size_t i = 0; i < digits.size(); ++i) {
    const int digit = hex_digit(digits[i]);
    if (digit < 0)
      return cursor.error(Code::INVALID_ARGUMENT,
                          "expected hex digits, \"text\" or 'module {{', found {} in the rodata",
                          quoted(digits.substr(i)));
    if (i % 2 == 0) {
      bytes.push_back(static_cast<uint8_t>(digit << 4));
    } else {
      bytes.back() = static_cast<uint8_t>(bytes.back() | digit);
    }
  }
  if (digits.size() % 2 != 0)
    return cursor.error(Code::INVALID_ARGUMENT, "rodata has {} hex digits; two make a byte", digits.size());
  return bytes;
}

Result<> rodata_directive(Module& module, Cursor cursor, LineReader& lines, int depth) {
  if (!cursor.rest().starts_with('[')) return cursor.expected("'[' directly after vm.rodata");
  cursor.accept("[");
  const uint32_t ordinal = HALYARD_TRY(cursor.number("the rodata ordinal"));
  if (ordinal != module.rodata.size())
    return cursor.error(Code::INVALID_ARGUMENT,
                        "expected vm.rodata[{}], found ordinal {}; segments count from 0 up",
                        module.rodata.size(), ordinal);
  HALYARD_TRY(cursor.expect("]", "after the rodata ordinal"));
  HALYARD_TRY(cursor.expect("=", "after vm.rodata[N]"));
  if (cursor.at("\"")) {
    const auto text = HALYARD_TRY(cursor.string("the rodata text"));
    HALYARD_TRY(cursor.expect_end("the rodata text"));
    module.rodata.emplace_back(text.begin(), text.end());
  } else if (cursor.accept_word("module")) {
    HALYARD_TRY(cursor.expect("{", "after 'module'"));
    HALYARD_TRY(cursor.expect_end("'{'"));
    module.rodata.push_back(HALYARD_TRY(assemble_module(lines, module.options, depth + 1, cursor.line())));
  } else {
    cursor.skip_blanks();
    module.rodata.push_back(HALYARD_TRY(hex_bytes(cursor)));
  }
  return {};
}

Result<> import_directive(Module& module, Cursor cursor, LineReader&, int) {
  Import import;
  import.optional = cursor.accept_word("optional");
  import.full_name = HALYARD_TRY(cursor.symbol("the imported function"));
  if (!cursor.accept_word("cconv"))
    return cursor.expected("'cconv' and the calling convention",
                           "as in: vm.import @hal.devices.count cconv \"0v_i\"");
  import.calling_convention = HALYARD_TRY(cursor.string("the calling convention"));
  HALYARD_TRY(cursor.expect_end("the calling convention"));
  HALYARD_TRY(define(module.import_ordinals, import.full_name, module.imports.size(), cursor, "import"));
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
          "globals begin as 0, found the initial value {}; store it in the exported function @__init",
          quoted(value));
  } else {
    HALYARD_TRY(cursor.expect_end("the global"));
  }
  HALYARD_TRY(define(module.global_ordinals, name, module.globals.size(), cursor, "global"));
  module.globals.push_back({type.bank});
  return {};
}

Result<> export_directive(Module& module, Cursor cursor, LineReader&, int) {
  Export item;
  item.line = cursor.line();
  item.name = HALYARD_TRY(cursor.symbol("the export's name"));
  item.target = item.name;
  if (cursor.accept("=")) item.target = HALYARD_TRY(cursor.symbol("the exported function"));
  HALYARD_TRY(cursor.expect_end("the export"));
  HALYARD_TRY(define(module.export_ordinals, item.name, module.exports.size(), cursor, "export"));
  module.exports.push_back(item);
  return {};
}

Result<> dependency_directive(Module& module, Cursor cursor, LineReader&, int) {
  Dependency dependency;
  dependency.name = HALYARD_TRY(cursor.symbol("the module that is needed"));
  dependency.minimum_version = HALYARD_TRY(cursor.number("its minimum version"));
  dependency.optional = cursor.accept_word("optional");
  HALYARD_TRY(cursor.expect_end("vm.dependency @MODULE VERSION [optional]"));
  if (std::ranges::find(module.dependencies, dependency.name, &Dependency::name) != module.dependencies.end())
    return cursor.error(Code::INVALID_ARGUMENT, "the dependency '@{}' is already declared", dependency.name);
  module.dependencies.push_back(dependency);
  return {};
}

Result<Attribute> read_attribute(Cursor& cursor) {
  Attribute attribute;
  attribute.key = HALYARD_TRY(cursor.string("the attribute's key"));
  if (attribute.key.empty())
    return cursor.error(Code::INVALID_ARGUMENT, "an attribute's key is empty; name what it says");
  attribute.value = HALYARD_TRY(cursor.string("the attribute's value"));
  HALYARD_TRY(cursor.expect_end("the attribute"));
  return attribute;
}

Result<> attribute_directive(Module& module, Cursor cursor, LineReader&, int) {
  ExportAttribute item;
  item.line = cursor.line();
  item.export_name = HALYARD_TRY(cursor.symbol("the exported function"));
  item.attribute = HALYARD_TRY(read_attribute(cursor));
  module.export_attributes.push_back(item);
  return {};
}

Result<> module_attribute_directive(Module& module, Cursor cursor, LineReader&, int) {
  const auto attribute = HALYARD_TRY(read_attribute(cursor));
  if (std::ranges::find(module.attributes, attribute.key, &Attribute::key) != module.attributes.end())
    return cursor.error(Code::INVALID_ARGUMENT, "the module's attribute \"{}\" is already given",
                        attribute.key);
  module.attributes.push_back(attribute);
  return {};
}

// 4-byte globals first, then the 8-byte ones, each in the order of declaration.
void lay_out_globals(Module& module) {
  uint32_t offset = 0;
  for (uint32_t size : {4u, 8u}) {
    for (Global& global : module.globals) {
      if (global.size() != size) continue;
      offset = (offset + size - 1) & ~(size - 1);
      global.offset = offset;
      offset += size;
    }
  }
  module.global_bytes = offset;
}

Result<> function_directive(Module& module, Cursor cursor, LineReader& lines, int) {
  if (module.functions.empty()) lay_out_globals(module);
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
    {"vm.func", false, true, function_directive},
};

}  // namespace

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
    return start.error(Code::INVALID_ARGUMENT, "{} before vm.module; begin with 'vm.module @NAME'", name);
  if (!module.functions.empty() && !found->may_follow_function)
    return start.error(Code::INVALID_ARGUMENT, "{} after a function; declare it before the first vm.func",
                       name);
  return found->assemble(module, cursor, lines, depth);
}

}  // namespace halyard::vm::assembler
