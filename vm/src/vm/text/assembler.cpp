// The stages of the assembler: lines to directives and functions, then references to later items (exports,
// callees, attributes), then the archive.
#include "vm/text/assembler.h"

#include <algorithm>
#include <map>

#include "text/suggest.h"
#include "vm/module/bytecode_module.h"
#include "vm/text/assembler_module.h"
#include "vm/text/vmasm_text.h"

namespace halyard::vm {
namespace assembler {
namespace {

// Assembling expands the text at most fourfold (tiny nested modules), and a FlatBuffer is limited to 2 GiB.
static_assert(kMaxAssembledText * 4 < size_t{2} << 30);
constexpr int kMaxNesting = 8;

constexpr std::string_view kValueTypes[] = {"i8", "i16", "i32", "i64", "f32", "f64"};

// Resolves a callee: an internal function or import by name, @module.function, @module:ORDINAL or
// import[ORDINAL].
Result<uint32_t> resolve(const Module& module, const CalleeUse& use) {
  const Callee& callee = use.callee;
  if (callee.kind == Callee::import) return kImportBit | callee.ordinal;
  const auto import = module.import_ordinals.find(callee.name);
  if (use.import_only) {
    if (callee.kind == Callee::by_name && import != module.import_ordinals.end())
      return kImportBit | import->second;
    return use.at.error(Code::INVALID_ARGUMENT,
                        "no import '@{}' to query{}; declare it with vm.import optional", callee.name,
                        suggestion(callee.name, module.import_ordinals));
  }
  if (callee.kind == Callee::function) {
    if (callee.name == module.name) return callee.ordinal;
    return use.at.error(
        Code::INVALID_ARGUMENT,
        "'@{}:{}' names a function of another module by ordinal, but this module is '@{}'; import "
        "functions of other modules by name",
        callee.name, callee.ordinal, module.name);
  }
  if (const auto own = module.function_ordinals.find(callee.name); own != module.function_ordinals.end())
    return own->second;
  if (import != module.import_ordinals.end()) return kImportBit | import->second;
  std::string_view local = callee.name;
  if (local.starts_with(module.name) && local.substr(module.name.size()).starts_with('.')) {
    local.remove_prefix(module.name.size() + 1);
    if (const auto own = module.function_ordinals.find(local); own != module.function_ordinals.end())
      return own->second;
  }
  std::string meant = suggestion(local, module.function_ordinals);
  if (meant.empty()) meant = suggestion(callee.name, module.import_ordinals);
  return use.at.error(Code::INVALID_ARGUMENT, "no function or import '@{}'{}", callee.name, meant);
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
    return Cursor(*module.source, item.line)
        .error(Code::INVALID_ARGUMENT, "export '@{}' has no function '@{}'{}", item.name, item.target,
               suggestion(item.target, module.function_ordinals));
  }
  return {};
}

Result<> attach_attributes(Module& module) {
  std::map<uint32_t, std::map<std::string_view, Attribute>> sorted;  // by function and key
  for (const ExportAttribute& item : module.export_attributes) {
    const Cursor at(*module.source, item.line);
    const auto found = module.export_ordinals.find(item.export_name);
    if (found == module.export_ordinals.end())
      return at.error(Code::INVALID_ARGUMENT, "no export '@{}'{}; attributes belong to exported functions",
                      item.export_name, suggestion(item.export_name, module.export_ordinals));
    const Export& exported = module.exports[found->second];
    const uint32_t function = module.function_ordinals.at(exported.target);
    if (!sorted[function].emplace(item.attribute.key, item.attribute).second)
      return at.error(Code::INVALID_ARGUMENT, "function '@{}' already has the attribute \"{}\"",
                      exported.target, item.attribute.key);
  }
  for (const auto& [function, attributes] : sorted) {
    std::vector<Attribute> all;
    for (const auto& [key, attribute] : attributes) all.push_back(attribute);
    auto& own = module.functions[function].attributes;
    own.insert(own.begin(), all.begin(), all.end());
  }
  return {};
}

Result<> check_requirements(const Module& module, const Cursor& at) {
  uint32_t features = 0;
  for (const Function& function : module.functions) features |= function.requirements;
  features = module.requirements.value_or(features);
  const uint32_t unknown = features & ~known_features(module.bytecode_version);
  if (unknown == 0) return {};
  return at.error(
      Code::INVALID_ARGUMENT,
      "module '@{}' requires {}, which bytecode {} does not have; assemble it for a newer version, or "
      "remove the requirement from its vm.requires and .requires lines",
      module.name, features_text(unknown), module.bytecode_version);
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

Result<std::vector<uint8_t>> assemble_module(LineReader& lines, Source& source, uint32_t forced_version,
                                             const Module* outer, int depth, SourceLine opened) {
  const Cursor opening(source, opened);
  if (depth > kMaxNesting)
    return opening.error(Code::INVALID_ARGUMENT, "modules are nested deeper than {}", kMaxNesting);
  Module module;
  module.source = &source;
  module.forced_version = forced_version;
  if (outer) module.bytecode_version = outer->bytecode_version;
  if (forced_version) module.bytecode_version = forced_version;
  bool closed = !outer;
  while (const auto line = lines.next()) {
    if (outer && line->text == "}") {
      closed = true;
      break;
    }
    HALYARD_TRY(assemble_directive(module, Cursor(source, *line), lines, depth));
  }
  if (!closed)
    return opening.error(Code::INVALID_ARGUMENT,
                         "the nested module has no end; expected '}}' alone on a line");
  const Cursor end(source, {lines.line_number(), {}});
  if (!module.declared)
    return end.error(
        Code::INVALID_ARGUMENT, "{}; begin with 'vm.module @NAME'",
        lines.said_anything() ? "the text has no vm.module" : "the text is empty or has only comments");
  if (module.functions.empty() && !module.functionless)
    return end.error(Code::INVALID_ARGUMENT,
                     "module '@{}' has no function; a module needs at least one, or the line 'vm.empty'",
                     module.name);
  if (module.functions.empty()) HALYARD_TRY(lay_out_globals(module, end));
  HALYARD_TRY(resolve_callees(module));
  HALYARD_TRY(check_exports(module));
  HALYARD_TRY(attach_attributes(module));
  HALYARD_TRY(check_requirements(module, end));
  return flat_archive(module);
}

}  // namespace assembler

Result<std::vector<uint8_t>> assemble(std::string_view text, const AssembleOptions& options) {
  if (options.bytecode_version && (options.bytecode_version < 15 || options.bytecode_version > 17))
    return fail(Code::INVALID_ARGUMENT, "bytecode version {} does not exist; choose 15, 16 or 17",
                options.bytecode_version);
  if (text.size() > kMaxAssembledText)
    return fail(Code::OUT_OF_RANGE, "{}: the text has {} bytes; at most {} can be assembled", options.file,
                text.size(), kMaxAssembledText);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return fail(Code::INVALID_ARGUMENT, "{}:1: the text is UTF-16; save it as UTF-8 or ASCII", options.file);
  Source source{options.file, {}};
  LineReader lines(text);
  return assembler::assemble_module(lines, source, options.bytecode_version, nullptr, 0, {});
}

}  // namespace halyard::vm
