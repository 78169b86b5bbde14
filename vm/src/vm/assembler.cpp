// The assembler from end to end: lines to directives and functions, then what may name things further down
// (exports, callees, attributes), then the archive.
#include "vm/assembler.h"

#include <algorithm>

#include "base/suggest.h"
#include "vm/assembler_module.h"

namespace halyard::vm {
namespace assembler {
namespace {

// The text of a module grows at most fourfold when assembled (tiny nested modules), and a FlatBuffer ends at
// 2 GiB.
constexpr size_t kMaxText = size_t{256} << 20;
constexpr int kMaxNesting = 8;

constexpr std::string_view kValueTypes[] = {"i8", "i16", "i32", "i64", "f32", "f64"};

// The callee of a use: an own function or import by name, @module.function, or @module:ORDINAL.
Result<uint32_t> resolve(const Module& module, const CalleeUse& use) {
  const auto import = module.import_ordinals.find(use.name);
  if (use.import_only) {
    if (import != module.import_ordinals.end()) return kImportBit | import->second;
    return use.at.error(Code::INVALID_ARGUMENT,
                        "no import '@{}' to ask about{}; declare it with vm.import optional", use.name,
                        suggestion(use.name, module.import_ordinals));
  }
  if (const size_t colon = use.name.find(':'); colon != std::string_view::npos) {
    if (use.name.substr(0, colon) != module.name)
      return use.at.error(Code::INVALID_ARGUMENT,
                          "'@{}' names a function of another module by ordinal; this module is "
                          "'@{}', functions of others are imported by name",
                          use.name, module.name);
    const std::string_view digits = use.name.substr(colon + 1);
    const CInteger ordinal = parse_c_integer(digits);
    if (ordinal.length != digits.size())
      return use.at.error(Code::INVALID_ARGUMENT, "'@{}' has a blank after ':'", use.name);
    return static_cast<uint32_t>(ordinal.magnitude);
  }
  if (const auto own = module.function_ordinals.find(use.name); own != module.function_ordinals.end())
    return own->second;
  if (import != module.import_ordinals.end()) return kImportBit | import->second;
  std::string_view local = use.name;
  if (local.starts_with(module.name) && local.substr(module.name.size()).starts_with('.')) {
    local.remove_prefix(module.name.size() + 1);
    if (const auto own = module.function_ordinals.find(local); own != module.function_ordinals.end())
      return own->second;
  }
  std::string meant = suggestion(local, module.function_ordinals);
  if (meant.empty()) meant = suggestion(use.name, module.import_ordinals);
  return use.at.error(Code::INVALID_ARGUMENT, "no function or import '@{}'{}", use.name, meant);
}

Result<> resolve_callees(Module& module) {
  for (const CalleeUse& use : module.callees) {
    const uint32_t ordinal = HALYARD_TRY(resolve(module, use));
    for (size_t i = 0; i < 4; ++i)
      module.bytecode[use.position + i] = static_cast<uint8_t>(ordinal >> (8 * i));
  }
  return {};
}

Result<> check_exports(const Module& module) {
  for (const Export& item : module.exports) {
    if (module.function_ordinals.contains(item.target)) continue;
    return Cursor(module.options.file, item.line)
        .error(Code::INVALID_ARGUMENT, "export '@{}' has no function '@{}'{}", item.name, item.target,
               suggestion(item.target, module.function_ordinals));
  }
  return {};
}

Result<> attach_attributes(Module& module) {
  for (const ExportAttribute& item : module.export_attributes) {
    const Cursor at(module.options.file, item.line);
    const auto found = module.export_ordinals.find(item.export_name);
    if (found == module.export_ordinals.end())
      return at.error(Code::INVALID_ARGUMENT, "no export '@{}'{}; attributes belong to exported functions",
                      item.export_name, suggestion(item.export_name, module.export_ordinals));
    const Export& exported = module.exports[found->second];
    auto& attributes = module.functions[module.function_ordinals.at(exported.target)].attributes;
    const auto place = std::ranges::lower_bound(attributes, item.attribute.key, {}, &Attribute::key);
    if (place != attributes.end() && place->key == item.attribute.key)
      return at.error(Code::INVALID_ARGUMENT, "function '@{}' already has the attribute \"{}\"",
                      exported.target, item.attribute.key);
    attributes.insert(place, item.attribute);
  }
  return {};
}

}  // namespace

Result<std::string> type_name(const Cursor& cursor, std::string_view written) {
  if (std::ranges::find(kValueTypes, written) != std::end(kValueTypes)) return std::string(written);
  if (written.size() > 1 && written.starts_with('!')) return std::string(written);
  if (written.find('.') != std::string_view::npos) return "!" + std::string(written);
  return cursor.error(Code::INVALID_ARGUMENT,
                      "expected i8, i16, i32, i64, f32, f64 or '!' and the name of a ref type, found {}{}",
                      quoted(written), did_you_mean(written, kValueTypes));
}

Result<uint32_t> Module::type_ordinal(const Cursor& cursor, std::string_view written) {
  const std::string type = HALYARD_TRY(type_name(cursor, written));
  const auto [found, added] = type_ordinals.emplace(type, static_cast<uint32_t>(types.size()));
  if (added) types.push_back(type);
  return found->second;
}

std::string suggestion(std::string_view word, const OrdinalOf& names) {
  std::vector<std::string_view> candidates;
  candidates.reserve(names.size());
  for (const auto& [name, ordinal] : names) candidates.push_back(name);
  std::ranges::sort(candidates);
  return did_you_mean(word, candidates);
}

Result<std::vector<uint8_t>> assemble_module(LineReader& lines, const AssembleOptions& options, int depth,
                                             SourceLine opened) {
  const Cursor opening(options.file, opened);
  if (depth > kMaxNesting)
    return opening.error(Code::INVALID_ARGUMENT, "modules are nested deeper than {}", kMaxNesting);
  Module module;
  module.options = options;
  bool closed = depth == 0;
  while (const auto line = lines.next()) {
    if (depth > 0 && line->text == "}") {
      closed = true;
      break;
    }
    HALYARD_TRY(assemble_directive(module, Cursor(options.file, *line), lines, depth));
  }
  if (!closed)
    return opening.error(Code::INVALID_ARGUMENT,
                         "the nested module has no end: expected '}}' alone on a line");
  const Cursor end(options.file, {lines.line_number(), {}});
  if (!module.declared)
    return end.error(Code::INVALID_ARGUMENT, "the text has no vm.module; begin with 'vm.module @NAME'");
  if (module.functions.empty())
    return end.error(Code::INVALID_ARGUMENT, "module '@{}' has no function; a module needs at least one",
                     module.name);
  HALYARD_TRY(resolve_callees(module));
  HALYARD_TRY(check_exports(module));
  HALYARD_TRY(attach_attributes(module));
  return flat_archive(module);
}

}  // namespace assembler

Result<std::vector<uint8_t>> assemble(std::string_view text, const AssembleOptions& options) {
  if (options.bytecode_version < 15 || options.bytecode_version > 17)
    return fail(Code::INVALID_ARGUMENT, "bytecode version {} does not exist; choose 15, 16 or 17",
                options.bytecode_version);
  if (text.size() > assembler::kMaxText)
    return fail(Code::OUT_OF_RANGE, "{}: the text has {} bytes; at most {} can be assembled", options.file,
                text.size(), assembler::kMaxText);
  LineReader lines(text);
  return assembler::assemble_module(lines, options, 0, {});
}

}  // namespace halyard::vm
