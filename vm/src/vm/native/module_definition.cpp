// Validates a definition: each field is checked before code relies on it.
#include "vm/native/module_definition.h"

#include <algorithm>
#include <deque>
#include <set>

#include "halyard/program.h"
#include "vm/module/bytecode_module.h"
#include "vm/native/ffi_call.h"
#include "vm/native/frame_call.h"
#include "vm/native/module_services.h"
#include "vm/native/native_registers.h"

namespace halyard::vm {

const PluginKind kModulePlugin = {.what = "native module",
                                  .abi = "module ABI",
                                  .note_type = HALYARD_NOTE_TYPE_MODULE,
                                  .note_size = sizeof(halyard_module_note_t),
                                  .note_macro = "HALYARD_MODULE (halyard/module.h)",
                                  .negotiate_symbol = HALYARD_MODULE_NEGOTIATE_SYMBOL,
                                  .export_macro = "HALYARD_MODULE_EXPORT"};

namespace {

constexpr size_t kMaxName = 255;
constexpr uint64_t kMaxExports = 1 << 16;
constexpr uint32_t kMaxTypes = 1 << 16;
constexpr uint64_t kMaxAttributes = 1 << 16;

bool is_name(std::string_view text, std::string_view punctuation) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           punctuation.contains(c);
  });
}

// Returns a zero-terminated text, truncated to one character more than the longest valid name.
std::string_view bounded(const char* text) {
  return text ? std::string_view(text, ::strnlen(text, kMaxName + 1)) : std::string_view();
}

// All data to which the VM module points; destroyed with the module.
struct Parts {
  std::string name;
  std::string argument;
  std::deque<std::string> texts;  // their addresses are stable
  std::vector<std::unique_ptr<const PlainFunction>> plain;
  std::vector<std::unique_ptr<const FrameFunction>> frames;
  std::vector<Ref<NativeType>> types;
  std::vector<halyard_type_t> type_handles;
  NativeProgram program;
  bool is_program = false;
  halyard_module_definition_t definition = {};  // only user, create_state and destroy_state are used later
  void (*release)(void* user) = nullptr;        // set when the module is created

  Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() {
    if (release) release(definition.user);
  }

  const char* keep(std::string_view text) { return texts.emplace_back(text).c_str(); }
};

template <typename Function>
const void* keep(std::vector<std::unique_ptr<const Function>>& functions,
                 std::unique_ptr<const Function> function) {
  return functions.emplace_back(std::move(function)).get();
}

// Returns the fields that the definition's writer had, if they are sufficient.
Result<halyard_module_definition_t> known_definition(const halyard_module_definition_t* definition) {
  if (!definition)
    return fail(Code::INVALID_ARGUMENT, "expected the `definition` of a native module, found a null pointer");
  constexpr size_t kNeeded = HALYARD_FIELD_END(halyard_module_definition_t, type_size);
  const uint32_t size = definition->struct_size;
  if (size >= HALYARD_FIELD_END(halyard_module_definition_t, abi_version) &&
      (definition->abi_version < kModuleAbi.low || definition->abi_version > kModuleAbi.high))
    return fail(Code::INCOMPATIBLE,
                "the definition of a native module uses module ABI {}, this Halyard supports {}{}",
                definition->abi_version, to_text(kModuleAbi),
                definition->abi_version == 0
                    ? "; version 0 marks an unfinished ABI: set abi_version to HALYARD_MODULE_ABI_V1"
                    : "; build it with the headers of this Halyard");
  if (size < kNeeded)
    return fail(Code::INCOMPATIBLE,
                "the definition of a native module has {} bytes, module ABI {} needs {}; set struct_size to "
                "sizeof(halyard_module_definition_t)",
                size, HALYARD_MODULE_ABI_V1, kNeeded);
  halyard_module_definition_t known = {};
  std::memcpy(&known, definition, std::min<size_t>(size, sizeof known));
  return known;
}

// An array whose elements state their size.
struct Elements {
  const char* what;   // "functions"
  const char* field;  // the field with the element size
  const void* first;
  uint64_t count;
  uint64_t most;
  uint32_t size;
  size_t needed;
};
Result<> check_elements(const std::string& module, const Elements& elements) {
  if (elements.count == 0) return {};
  if (!elements.first)
    return fail(Code::INVALID_ARGUMENT, "native module '{}' states {} {} but no table of them", module,
                elements.count, elements.what);
  if (elements.count > elements.most)
    return fail(Code::INVALID_ARGUMENT, "native module '{}' states {} {}; expected at most {}", module,
                elements.count, elements.what, elements.most);
  if (elements.size < elements.needed || elements.size % alignof(void*) != 0)
    return fail(Code::INCOMPATIBLE,
                "native module '{}': {} is {} bytes, module ABI {} needs {}; set it to sizeof(one element)",
                module, elements.field, elements.size, HALYARD_MODULE_ABI_V1, elements.needed);
  return {};
}

// Returns element `index` of a table with elements of `size` bytes, with the fields that this version has.
template <typename T>
T element(const T* first, size_t size, size_t index) {
  T known = {};
  std::memcpy(&known, reinterpret_cast<const char*>(first) + index * size, std::min(size, sizeof known));
  return known;
}

Result<Convention> parse_convention(std::string_view text) {
  if (text.empty()) return fail(Code::INVALID_ARGUMENT, "no calling convention; expected one like '0ii_i'");
  if (text.size() > 2 * (kMaxNativeArguments + kMaxNativeResults) + 3)
    return fail(Code::INVALID_ARGUMENT, "a calling convention of more than {} characters",
                2 * (kMaxNativeArguments + kMaxNativeResults) + 3);
  Convention convention = HALYARD_TRY(Convention::parse(text));
  size_t arguments = 0;
  for (const ConventionItem& item : convention.arguments)
    arguments += item.type == 'C' ? item.span.size() : 1;
  if (arguments > kMaxNativeArguments || convention.results.size() > kMaxNativeResults)
    return fail(Code::INVALID_ARGUMENT, "expected at most {} arguments and {} results, found {} and {}",
                kMaxNativeArguments, kMaxNativeResults, arguments, convention.results.size());
  return convention;
}

// The attributes, with texts of their own.
Result<std::vector<Attribute>> make_attributes(const halyard_module_attributes_t& attributes, Parts& parts) {
  HALYARD_TRY(check_elements(
      parts.name, {"attributes", "the size of an attribute", attributes.list, attributes.count,
                   kMaxAttributes, sizeof(halyard_module_attribute_t), sizeof(halyard_module_attribute_t)}));
  std::vector<Attribute> made;
  for (uint64_t i = 0; i < attributes.count; ++i) {
    if (!attributes.list[i].key || !attributes.list[i].value)
      return fail(Code::INVALID_ARGUMENT, "attribute {} has no {}; expected a key and a value", i,
                  attributes.list[i].key ? "value" : "key");
    const char* const key = parts.keep(attributes.list[i].key);
    made.push_back({key, parts.keep(attributes.list[i].value)});
  }
  return made;
}

Result<NativeExport> make_export(const halyard_module_export_t& source, uint32_t index, Parts& parts) {
  const std::string_view name = bounded(source.name);
  // Truncated to one character more than the longest supported convention.
  const std::string_view text =
      source.convention
          ? std::string_view(source.convention,
                             ::strnlen(source.convention, 2 * (kMaxNativeArguments + kMaxNativeResults) + 4))
          : std::string_view();
  const Convention convention = HALYARD_TRY(parse_convention(text));
  if ((source.plain != nullptr) == (source.frame != nullptr))
    return fail(Code::INVALID_ARGUMENT, "it has {}; expected exactly one of plain and frame",
                source.plain ? "both a plain and a frame function" : "no function");
  NativeExport made = {parts.keep(name), parts.keep(text), nullptr, nullptr, {}};
  if (source.plain) {
    made.function = &PlainFunction::call;
    made.data =
        keep(parts.plain, HALYARD_TRY(PlainFunction::prepare(convention, source.plain, source.flags)));
  } else {
    made.function = &FrameFunction::call;
    made.data = keep(parts.frames, HALYARD_TRY(FrameFunction::prepare(
                                       convention, source.frame, source.flags, parts.type_handles.data(),
                                       index, parts.is_program ? &parts.program : nullptr)));
  }
  return made;
}

Result<std::vector<NativeExport>> make_exports(const halyard_module_definition_t& definition, Parts& parts) {
  HALYARD_TRY(check_elements(
      parts.name, {"functions", "export_size", definition.exports, definition.export_count, kMaxExports,
                   definition.export_size, HALYARD_FIELD_END(halyard_module_export_t, reserved)}));
  std::vector<NativeExport> exports;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (uint64_t i = 0; i < definition.export_count; ++i) {
    const auto source = element(definition.exports, definition.export_size, i);
    const std::string_view name = bounded(source.name);
    if (!is_function_name(name))
      return fail(Code::INVALID_ARGUMENT,
                  "native module '{}': function {} has the name '{}'; expected 1 to {} letters, digits, '_', "
                  "'$', '-' and '.'",
                  parts.name, i, name, kMaxName);
    NativeExport made =
        HALYARD_TRY(with_note(make_export(source, static_cast<uint32_t>(i), parts),
                              fmt::format("in function '{}' of native module '{}'", name, parts.name)));
    if (!seen.emplace(made.name, made.convention).second)
      return fail(Code::INVALID_ARGUMENT,
                  "native module '{}' has the function '{}' with the calling convention '{}' twice",
                  parts.name, made.name, made.convention);
    if (definition.export_attributes)
      made.attributes =
          HALYARD_TRY(with_note(make_attributes(definition.export_attributes[i], parts),
                                fmt::format("in function '{}' of native module '{}'", name, parts.name)));
    exports.push_back(made);
  }
  return exports;
}

Result<> make_types(const halyard_module_definition_t& definition, Parts& parts, TypeRegistry& registry) {
  HALYARD_TRY(
      check_elements(parts.name, {"types", "type_size", definition.types, definition.type_count, kMaxTypes,
                                  definition.type_size, HALYARD_FIELD_END(halyard_module_type_t, destroy)}));
  std::set<std::string_view> seen;
  std::vector<Ref<NativeType>> types;
  for (uint32_t i = 0; i < definition.type_count; ++i) {
    const auto source = element(definition.types, definition.type_size, i);
    const std::string_view name = bounded(source.name);
    const std::string prefix = parts.name + ".";
    if (!name.starts_with(prefix) || !is_function_name(name.substr(prefix.size())))
      return fail(
          Code::INVALID_ARGUMENT,
          "native module '{}': type {} has the name '{}'; expected '{}' and letters, digits, '_', '$', "
          "'-' and '.'",
          parts.name, i, name, prefix);
    if (!seen.insert(parts.keep(name)).second)
      return fail(Code::INVALID_ARGUMENT, "native module '{}' has the type '{}' twice", parts.name, name);
    types.push_back(make<NativeType>(std::string(name), source.destroy));
  }
  parts.types = HALYARD_TRY(
      with_note(registry.add(std::move(types)), fmt::format("in native module '{}'", parts.name)));
  // Assigned in place, because functions already have the array's address.
  for (size_t i = 0; i < parts.types.size(); ++i) parts.type_handles[i] = to_handle(parts.types[i].get());
  return {};
}

Result<std::vector<Import>> make_imports(const halyard_module_definition_t& definition, Parts& parts) {
  HALYARD_TRY(check_elements(
      parts.name, {"imports", "import_size", definition.imports, definition.import_count, kMaxExports,
                   definition.import_size, HALYARD_FIELD_END(halyard_module_import_t, reserved)}));
  std::vector<Import> imports;
  for (uint32_t i = 0; i < definition.import_count; ++i) {
    const auto source = element(definition.imports, definition.import_size, i);
    const std::string_view name = bounded(source.name);
    if (!is_function_name(name) || !name.contains('.'))
      return fail(Code::INVALID_ARGUMENT,
                  "native module '{}': import {} has the name '{}'; expected 'module.function' of letters, "
                  "digits, '_', '$' and '-'",
                  parts.name, i, name);
    if (const uint32_t unknown = source.flags & ~uint32_t{HALYARD_IMPORT_OPTIONAL})
      return fail(Code::UNIMPLEMENTED,
                  "native module '{}': flags {:#x} of import '{}' are unknown; use a newer Halyard",
                  parts.name, unknown, name);
    const std::string_view convention = source.convention ? std::string_view(source.convention) : "";
    if (!convention.empty())
      HALYARD_TRY(with_note(parse_convention(convention),
                            fmt::format("in import '{}' of native module '{}'", name, parts.name)));
    const char* const kept = parts.keep(name);
    imports.push_back({kept, parts.keep(convention), (source.flags & HALYARD_IMPORT_OPTIONAL) != 0});
  }
  return imports;
}

Result<std::vector<Dependency>> make_dependencies(const halyard_module_definition_t& definition,
                                                  Parts& parts) {
  constexpr uint32_t kKnownFlags = HALYARD_DEPENDENCY_VERSIONED | HALYARD_DEPENDENCY_OPTIONAL;
  HALYARD_TRY(check_elements(
      parts.name,
      {"dependencies", "dependency_size", definition.dependencies, definition.dependency_count, kMaxExports,
       definition.dependency_size, HALYARD_FIELD_END(halyard_module_dependency_t, flags)}));
  std::vector<Dependency> dependencies;
  for (uint32_t i = 0; i < definition.dependency_count; ++i) {
    const auto source = element(definition.dependencies, definition.dependency_size, i);
    const std::string_view name = bounded(source.name);
    if (!is_module_name(name))
      return fail(
          Code::INVALID_ARGUMENT,
          "native module '{}': dependency {} has the name '{}'; expected 1 to {} letters, digits, '_', "
          "'$' and '-'",
          parts.name, i, name, kMaxName);
    if (const uint32_t unknown = source.flags & ~kKnownFlags)
      return fail(Code::UNIMPLEMENTED,
                  "native module '{}': flags {:#x} of dependency '{}' are unknown; use a newer Halyard",
                  parts.name, unknown, name);
    dependencies.push_back({parts.keep(name), source.minimum_version,
                            (source.flags & HALYARD_DEPENDENCY_VERSIONED) != 0,
                            (source.flags & HALYARD_DEPENDENCY_OPTIONAL) != 0});
  }
  return dependencies;
}

Result<> make_program(const halyard_program_t& source, Parts& parts, const TypeRegistry& registry) {
  constexpr size_t kNeeded = HALYARD_FIELD_END(halyard_program_t, flags);
  if (source.struct_size < kNeeded)
    return fail(Code::INCOMPATIBLE,
                "the program of native module '{}' has {} bytes, expected at least {}; set struct_size to "
                "sizeof(halyard_program_t)",
                parts.name, source.struct_size, kNeeded);
  if (const uint32_t unknown = source.flags & ~uint32_t{HALYARD_PROGRAM_LEGACY_FLOATS})
    return fail(Code::UNIMPLEMENTED,
                "the program of native module '{}' has unknown flags {:#x}; use a newer Halyard", parts.name,
                unknown);
  HALYARD_TRY(check_elements(parts.name, {"types of the program", "the size of an address", source.types,
                                          source.type_count, kMaxTypes, sizeof(char*), sizeof(char*)}));
  HALYARD_TRY(check_elements(
      parts.name, {"constants", "the size of a constant", source.constants, source.constant_count, UINT32_MAX,
                   sizeof(halyard_program_constant_t), sizeof(halyard_program_constant_t)}));
  NativeProgram& program = parts.program;
  program.global_bytes = source.global_bytes;
  program.global_refs = source.global_objects;
  program.legacy_floats = (source.flags & HALYARD_PROGRAM_LEGACY_FLOATS) != 0;
  for (uint32_t i = 0; i < source.type_count; ++i) {
    const std::string_view name = bounded(source.types[i]);
    const std::optional<ElementType> type = find_element_type(name, registry);
    if (!type)
      return fail(
          Code::NOT_FOUND,
          "type '{}' (types[{}]) of the program of native module '{}' is unknown; load the module that "
          "defines it first",
          name, i, parts.name);
    program.types.push_back(*type);
  }
  for (uint32_t i = 0; i < source.constant_count; ++i) {
    const halyard_program_constant_t& constant = source.constants[i];
    if (!constant.data && constant.length != 0)
      return fail(Code::INVALID_ARGUMENT, "constant {} of native module '{}' states {} bytes but no address",
                  i, parts.name, constant.length);
    program.constants.push_back(
        Buffer::wrap_const({static_cast<const uint8_t*>(constant.data), constant.length}, {}, true));
    program.constant_objects.push_back(program.constants.back().get());
  }
  return {};
}

Result<NativeState> make_state(const Parts& parts) {
  const halyard_module_definition_t& definition = parts.definition;
  if (!definition.create_state) return NativeState{definition.user, nullptr};
  const halyard_module_state_args_t args = {.struct_size = sizeof args,
                                            .type_count = static_cast<uint32_t>(parts.type_handles.size()),
                                            .services = &module_services(),
                                            .user = definition.user,
                                            .argument = parts.argument.c_str(),
                                            .types = parts.type_handles.data()};
  void* state = nullptr;
  if (Status status = Status::adopt(definition.create_state(&args, &state)))
    return std::unexpected(
        std::move(status).note(fmt::format("while creating the state of native module '{}'", parts.name)));
  return NativeState{state, definition.destroy_state};
}

}  // namespace

bool is_module_name(std::string_view text) { return text.size() <= kMaxName && is_name(text, "_$-"); }
bool is_function_name(std::string_view text) { return text.size() <= kMaxName && is_name(text, "_$-."); }

Result<Ref<NativeModule>> create_native_module(const halyard_module_definition_t* source,
                                               NativeModuleOptions options, TypeRegistry& types) {
  const halyard_module_definition_t definition = HALYARD_TRY(known_definition(source));
  const std::string_view name = bounded(definition.name);
  if (!is_module_name(name))
    return fail(
        Code::INVALID_ARGUMENT,
        "expected a name of 1 to {} letters, digits, '_', '$' and '-' for a native module, found '{}'",
        kMaxName, name);
  if (!options.name.empty() && options.name != name)
    return fail(Code::INCOMPATIBLE, "the definition has the name '{}', the note '{}'; expected the same name",
                name, options.name);
  auto parts = std::make_shared<Parts>();
  parts->name = name;
  parts->argument = std::move(options.argument);
  parts->definition = definition;
  parts->type_handles.resize(std::min(definition.type_count, kMaxTypes));
  parts->is_program = definition.program != nullptr;
  NativeModule::Definition made;
  made.name = parts->name;
  made.version = definition.version;
  made.exports = HALYARD_TRY(make_exports(definition, *parts));
  made.imports = HALYARD_TRY(make_imports(definition, *parts));
  made.dependencies = HALYARD_TRY(make_dependencies(definition, *parts));
  made.attributes = HALYARD_TRY(make_attributes(definition.attributes, *parts));
  if (parts->is_program) {
    HALYARD_TRY(make_program(*definition.program, *parts, types));
    made.program = &parts->program;
  }
  HALYARD_TRY(make_types(definition, *parts, types));  // last, because it cannot be undone
  made.create_state = [parts] { return make_state(*parts); };
  Ref<NativeModule> module = NativeModule::create(std::move(made));
  parts->release = definition.release;
  return module;
}

}  // namespace halyard::vm
