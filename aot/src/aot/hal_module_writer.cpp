// The files of a program over a host.
#include <bytecode_module_generated.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <set>

#include "aot/c_text.h"
#include "aot/hal_function_writer.h"
#include "aot/plan.h"
#include "aot/program.h"
#include "aot/split_source.h"
#include "aot/support.h"
#include "aot/waits.h"
#include "aot/written_functions.h"
#include "halyard/module.h"
#include "vm/decode/code.h"
#include "vm/decode/flow.h"
#include "vm/format/archive.h"
#include "vm/module/calling_convention.h"
#include "write/long_texts.h"

namespace halyard::aot {

namespace {

// Constants beyond this many bytes in all are in a file of their own, because C compilers need much time and
// memory for arrays.
constexpr uint64_t kBytesInC = 64 << 10;
constexpr size_t kConstantAlignment = 64;

bool has_only(std::string_view text, std::string_view punctuation) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           punctuation.contains(c);
  });
}

std::string_view member_of(char type) { return type == 'r' ? "object" : vm::type_name(type); }
const char* cast_of(char type) { return type == 'i' ? "(uint32_t)" : type == 'I' ? "(uint64_t)" : ""; }
const char* signed_cast_of(char type) { return type == 'i' ? "(int32_t)" : type == 'I' ? "(int64_t)" : ""; }
const char* variable_of(char type) {
  switch (type) {
    case 'i':
      return "uint32_t";
    case 'I':
      return "uint64_t";
    case 'f':
      return "float";
    case 'F':
      return "double";
    default:
      return "vm_ref";
  }
}

class HalModuleWriter {
 public:
  HalModuleWriter(const Plan& plan, const Options& options)
      : plan_(plan), module_(plan.module), options_(options) {}

  Result<std::vector<File>> write() {
    HALYARD_TRY(check_names());
    waiting_ = waiting_functions(plan_);
    HALYARD_TRY(write_functions());
    for (size_t i = 0; i < module_.exports().size(); ++i) write_export(i);
    const CalledFunctions called = called_functions(written_, exports_);
    prototypes_ += called.prototypes;
    functions_ += called.definitions;
    place_constants();
    const std::string tables = write_tables();
    support_ = program_support_for(without_literals(prototypes_ + functions_ + exports_));
    std::vector<File> files = {{options_.name + ".h", header()}, {options_.name + ".c", source(tables)}};
    if (!data_.empty()) {
      files.push_back({options_.name + ".bin", data_});
      files.push_back({options_.name + "_data.S", data_source()});
    }
    return files;
  }

 private:
  // The names that native modules may have (docs/native-modules.md).
  Result<> check_names() const {
    constexpr size_t kLongestModule = sizeof(halyard_module_note_t::name) - 1;
    constexpr size_t kLongestName = 255;
    if (!has_only(module_.name(), "_$-") || module_.name().size() > kLongestModule)
      return fail(
          Code::UNIMPLEMENTED,
          "the module's name '{}' cannot be that of a native module; expected 1 to {} letters, digits, "
          "'_', '$' and '-'",
          module_.name(), kLongestModule);
    const auto check = [&](std::string_view what, std::string_view name) -> Result<> {
      if (has_only(name, "_$-.") && name.size() <= kLongestName) return {};
      return fail(Code::UNIMPLEMENTED,
                  "the name of {} '{}' cannot be that of a native module; expected 1 to {} letters, digits, "
                  "'_', '$', '-' and '.'",
                  what, name, kLongestName);
    };
    for (const vm::Export& each : module_.exports()) {
      HALYARD_TRY(check("export", each.name));
      constexpr size_t kMostValues = 256;
      const Types types = function_types(module_, each.function);
      if (std::max(types.arguments.size(), types.results.size()) > kMostValues)
        return fail(
            Code::UNIMPLEMENTED,
            "function '{}' has {} arguments and {} results; functions of native modules have at most {}",
            each.name, types.arguments.size(), types.results.size(), kMostValues);
    }
    for (const vm::Import& each : module_.imports()) HALYARD_TRY(check("import", each.name));
    return {};
  }

  // ---- functions

  Result<> write_functions() {
    for (uint32_t i = 0; i < plan_.functions.size(); ++i) {
      if (plan_.functions[i].empty()) continue;
      alignas(8) std::array<std::byte, 16 << 10> memory;
      vm::Arena arena(memory);
      const vm::Flow flow = HALYARD_TRY(vm::Flow::of(module_, module_.functions()[i], arena));
      const std::unique_ptr<vm::FunctionCode> code = HALYARD_TRY(vm::decode_function(module_, i, {}));
      const std::string text =
          HALYARD_TRY(HalFunctionWriter(plan_, i, flow, waiting_, code->frame_bytes).write());
      written_.push_back({plan_.functions[i], text});
    }
    return {};
  }

  // The frame function of an export. A call that is resumed has passed its arguments before.
  void write_export(size_t index) {
    const vm::Export& each = module_.exports()[index];
    const Types types = function_types(module_, each.function);
    std::string text = fmt::format(
        "static halyard_status_t vm_export_{}(void* unused, halyard_module_call_t* call) {{\n"
        "  vm_state state;\n  vm_state* const s = &state;\n  (void)unused;\n  vm_begin(s, call);\n",
        index);
    if (!plan_.recursive.empty()) text += "  s->stack_end = s->ops->stack_end();\n";
    std::string call = plan_.functions[each.function] + "(s";
    for (size_t i = 0; i < types.arguments.size(); ++i) {
      const char type = types.arguments[i];
      call += type == 'r' ? fmt::format(", s->resuming ? NULL : vm_share(call->arguments[{}].object)", i)
                          : fmt::format(", {}call->arguments[{}].{}", cast_of(type), i, member_of(type));
    }
    std::string results;
    for (size_t i = 0; i < types.results.size(); ++i) {
      const char type = types.results[i];
      text += fmt::format("  {} q{} = 0;\n", variable_of(type), i);
      call += fmt::format(", &q{}", i);
      results +=
          fmt::format("  call->results[{0}].{1} = {2}q{0};\n", i, member_of(type), signed_cast_of(type));
    }
    exports_ += text + fmt::format(
                           "  const int status = {});\n  if (status != 0) return vm_end(s, status);\n{}"
                           "  return NULL;\n}}\n\n",
                           call, results);
  }

  // ---- constants

  void place_constants() {
    uint64_t bytes = 0;
    for (const uint32_t ordinal : plan_.constants) bytes += module_.rodata()[ordinal]->length();
    const bool in_file = bytes > kBytesInC;
    for (const uint32_t ordinal : plan_.constants) {
      const std::span<const uint8_t> content = module_.rodata()[ordinal]->span();
      const uint32_t index = plan_.constant(ordinal);
      if (content.empty()) {
        constant_rows_ += "    {NULL, 0},\n";
      } else if (in_file) {
        constant_rows_ +=
            fmt::format("    {{{}_data + {}, {}}},\n", plan_.prefix, data_.size(), content.size());
        data_.append(content.begin(), content.end());
        data_.resize((data_.size() + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment);
      } else {
        constants_ += fmt::format("static _Alignas({}) unsigned char vm_constant_{}[{}] = {{",
                                  kConstantAlignment, index, content.size());
        for (size_t i = 0; i < content.size(); ++i) {
          if (i % 32 == 0) constants_ += "\n  ";
          constants_ += std::to_string(content[i]);
          constants_ += ',';
        }
        constants_ += "};\n";
        constant_rows_ += fmt::format("    {{vm_constant_{}, {}}},\n", index, content.size());
      }
    }
    if (!data_.empty())
      constants_ += fmt::format(
          "/* {0}.bin, by way of {0}_data.S */\n"
          "#if defined(__GNUC__)\n__attribute__((visibility(\"hidden\")))\n#endif\n"
          "extern unsigned char {1}_data[];\n",
          options_.name, plan_.prefix);
  }

  std::string data_source() const {
    return fmt::format(
        "/* The constants of {0}.c. Compile with -I and the folder of {0}.bin, or in that folder. */\n"
        "  .data\n  .balign {2}\n  .globl {1}_data\n  .hidden {1}_data\n  .type {1}_data, %object\n"
        "  .size {1}_data, {3}\n{1}_data:\n  .incbin \"{0}.bin\"\n"
        "  .section .note.GNU-stack, \"\", %progbits\n",
        options_.name, plan_.prefix, kConstantAlignment, data_.size());
  }

  // ---- tables

  // A literal or, for a text that is longer than C compilers have to accept, the name of an array.
  static std::string text_of(std::string_view text, std::string& tables) {
    constexpr size_t kLongestLiteral = 4000;
    if (text.size() <= kLongestLiteral) return quoted(text);
    const std::string name = fmt::format("vm_text_{}", tables.size());
    tables += fmt::format("static const char {}[] = {{", name);
    for (size_t i = 0; i < text.size(); ++i) {
      if (i % 32 == 0) tables += "\n  ";
      tables += fmt::format("'\\{:03o}',", static_cast<unsigned char>(text[i]));
    }
    tables += "0};\n";
    return name;
  }

  // The name of a table of attributes and its length, in the order of the fields; the table itself is added
  // to `tables`.
  static std::string attributes(std::span<const vm::Attribute> list, std::string_view name,
                                std::string& tables) {
    if (list.empty()) return "NULL, 0";
    std::string rows;
    for (const vm::Attribute& each : list) {
      const std::string key = text_of(each.key, tables);
      rows += fmt::format("    {{{}, {}}},\n", key, text_of(each.value, tables));
    }
    tables += fmt::format("static const halyard_module_attribute_t {}[] = {{\n{}}};\n\n", name, rows);
    return fmt::format("{}, {}", name, list.size());
  }

  std::string write_tables() const {
    std::string tables;
    std::string exports;
    std::string reflection;  // attributes of exports
    bool has_reflection = false;
    for (size_t i = 0; i < module_.exports().size(); ++i) {
      const vm::Export& each = module_.exports()[i];
      const std::string_view convention = each.convention.empty() ? "0v_v" : each.convention;
      exports +=
          fmt::format("    HALYARD_FRAME({}, {}, vm_export_{}),\n", quoted(each.name), quoted(convention), i);
      reflection += fmt::format("    {{{}}},\n",
                                attributes(each.attributes, fmt::format("vm_attributes_{}", i), tables));
      has_reflection |= !each.attributes.empty();
    }
    const auto table = [&](std::string_view type, std::string_view name, const std::string& rows) {
      if (!rows.empty()) tables += fmt::format("static const {} {}[] = {{\n{}}};\n\n", type, name, rows);
    };
    table("halyard_module_export_t", "vm_exports", exports);
    if (!has_reflection) reflection.clear();
    table("halyard_module_attributes_t", "vm_reflection", reflection);
    std::string imports;
    for (const vm::Import& each : module_.imports())
      imports += fmt::format("    {{{}, {}, {}, 0}},\n", quoted(each.name), quoted(each.convention),
                             each.optional ? "HALYARD_IMPORT_OPTIONAL" : "0");
    table("halyard_module_import_t", "vm_imports", imports);
    std::string dependencies;
    for (const vm::Dependency& each : module_.dependencies())
      dependencies += fmt::format("    {{{}, {}u, {} | {}}},\n", quoted(each.name), each.minimum_version,
                                  each.required ? "(uint32_t)HALYARD_DEPENDENCY_VERSIONED" : "0u",
                                  each.optional ? "(uint32_t)HALYARD_DEPENDENCY_OPTIONAL" : "0u");
    table("halyard_module_dependency_t", "vm_dependencies", dependencies);
    std::string types;
    for (const std::string_view name : module_.type_names()) types += fmt::format("    {},\n", quoted(name));
    table("char* const", "vm_types", types);
    table("halyard_program_constant_t", "vm_constants", constant_rows_);
    const auto named = [](std::string_view name, bool is_there) {
      return is_there ? std::string(name) : "NULL";
    };
    tables += fmt::format(
        "static const halyard_program_t vm_program = {{\n    .struct_size = sizeof vm_program,\n"
        "    .global_bytes = {}u,\n    .global_objects = {}u,\n    .type_count = {}u,\n    .types = {},\n"
        "    .constants = {},\n    .constant_count = {}u,\n    .flags = {}}};\n\n",
        module_.global_bytes(), module_.global_refs(), module_.type_names().size(),
        named("vm_types", !types.empty()), named("vm_constants", !constant_rows_.empty()),
        plan_.constants.size(), module_.bytecode_version() < 16 ? "HALYARD_PROGRAM_LEGACY_FLOATS" : "0");
    const std::string of_module = attributes(module_.attributes(), "vm_attributes", tables);
    tables += fmt::format(
        "static const halyard_module_definition_t vm_definition = {{\n    .struct_size = sizeof "
        "vm_definition,\n"
        "    .abi_version = HALYARD_MODULE_ABI_V1,\n    .name = {},\n    .version = {}u,\n"
        "    .export_size = sizeof(halyard_module_export_t),\n    .exports = {},\n    .export_count = {},\n"
        "    .type_size = sizeof(halyard_module_type_t),\n    .imports = {},\n    .import_count = {},\n"
        "    .import_size = sizeof(halyard_module_import_t),\n    .dependencies = {},\n"
        "    .dependency_count = {},\n    .dependency_size = sizeof(halyard_module_dependency_t),\n"
        "    .attributes = {{{}}},\n    .export_attributes = {},\n    .program = &vm_program}};\n\n",
        quoted(module_.name()), module_.version(), named("vm_exports", !exports.empty()),
        module_.exports().size(), named("vm_imports", !imports.empty()), module_.imports().size(),
        named("vm_dependencies", !dependencies.empty()), module_.dependencies().size(), of_module,
        named("vm_reflection", has_reflection));
    return tables;
  }

  // ---- files

  std::string comment() const {
    return fmt::format("/* Module '{}'{}, written by vm-cc --runtime=hal. */\n", module_.name(),
                       options_.source.empty() ? "" : " of " + in_comment(options_.source));
  }

  std::string header() const {
    std::string guard = plan_.prefix;
    std::ranges::transform(guard, guard.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    return comment() +
           fmt::format(
               "#ifndef {0}_H_\n#define {0}_H_\n\n#include <halyard/module.h>\n\n"
               "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
               "/* The module, for halyard_module_create_native (halyard/halyard.h): programs that link it "
               "statically. A\n * shared library of it is a module for --module and halyard_module_load. */\n"
               "const halyard_module_definition_t* {1}_module(void);\n\n"
               "#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {0}_H_ */\n",
               guard, plan_.prefix);
  }

  bool uses(std::string_view text) const {
    return functions_.find(text) != std::string::npos || support_.find(text) != std::string::npos;
  }

  std::string source(const std::string& tables) const {
    std::string text =
        comment() + fmt::format(
                        "#include \"{}.h\"\n\n#include <halyard/program.h>\n#include <stdio.h>\n"
                        "#include <string.h>\n",
                        options_.name);
    const bool floats = uses("float") || uses("double");
    if (floats) text += "#include <float.h>\n#include <math.h>\n";
    text += compiler_checks(floats);
    if (uses("VM_GLOBAL_BYTES")) text += fmt::format("#define VM_GLOBAL_BYTES {}u\n", module_.global_bytes());
    if (uses("VM_REF_GLOBALS")) text += fmt::format("#define VM_REF_GLOBALS {}u\n", module_.global_refs());
    return text + "\n" + constants_ + "\n" + support_ + "\n" + prototypes_ + "\n" + functions_ + exports_ +
           tables + interface();
  }

  // Without services for imports, the host is older than this kind of module.
  std::string interface() const {
    return fmt::format(
        "const halyard_module_definition_t* {0}_module(void) {{ return &vm_definition; }}\n\n"
        "/* Linked statically, a module has no interface of a library. */\n"
        "#ifndef HALYARD_STATIC_MODULE\nHALYARD_MODULE_NOTE({1}, \"1\");\n\n"
        "int32_t halyard_module_negotiate(const halyard_module_request_t* request, "
        "halyard_module_reply_t* reply) {{\n"
        "  if (!HALYARD_HAS_FIELD(request->services, halyard_module_services_t, call_stopped)) {{\n"
        "    snprintf(reply->refusal, sizeof reply->refusal, \"it has imports, which a newer Halyard "
        "links\");\n"
        "    return 0;\n  }}\n"
        "  return halyard_module_offer(request, reply, &vm_definition);\n}}\n#endif\n",
        plan_.prefix, quoted(module_.name()));
  }

  const Plan& plan_;
  const vm::BytecodeModule& module_;
  const Options& options_;
  std::set<uint32_t> waiting_;
  std::vector<WrittenFunction> written_;
  std::string prototypes_;
  std::string functions_;
  std::string exports_;  // their frame functions
  std::string constants_;
  std::string constant_rows_;
  std::string data_;  // of constants that are not in C
  std::string support_;
};

// A registry with all types that a module names. The host that loads the module knows them.
class AnyTypes {
 public:
  explicit AnyTypes(std::span<const uint8_t> bytes) {
    const Result<vm::Archive> archive = vm::open_archive(Bytes::borrow(bytes, {}));
    if (!archive || !archive->module->types()) return;  // loading it will fail
    for (const auto* const type : *archive->module->types()) {
      if (!type || !type->full_name()) continue;
      const std::string name = type->full_name()->str();
      if (!name.starts_with('!') || registry_.find(name.substr(1))) continue;
      names_.push_back(name.substr(1));
      types_.push_back({names_.back().c_str(), nullptr});
      registry_.add(&types_.back());
    }
  }
  const vm::TypeRegistry& registry() const { return registry_; }

 private:
  std::deque<std::string> names_;
  std::deque<ObjectType> types_;
  vm::TypeRegistry registry_;
};

Result<std::vector<File>> write_program(std::span<const uint8_t> bytes, const Options& options) {
  const AnyTypes types(bytes);
  const Ref<vm::BytecodeModule> module =
      HALYARD_TRY(vm::BytecodeModule::load(Bytes::borrow(bytes, {}), types.registry()));
  const Plan plan = HALYARD_TRY(Plan::of(*module, Role::program, identifier(options.name)));
  return HalModuleWriter(plan, options).write();
}

}  // namespace

std::expected<std::vector<File>, Refusal> translate_program(std::span<const uint8_t> module,
                                                            const Options& options) {
  Result<std::vector<File>> files = write_program(module, options);
  if (files) {
    split_source(options.name, options.split, *files);
    for (File& each : *files)
      if (each.name.ends_with(".c")) each.text = without_long_texts(std::move(each.text));
    return *std::move(files);
  }
  const std::string text = files.error().text();
  return std::unexpected(
      Refusal{.code = static_cast<int32_t>(files.error().code()), .text = text.substr(text.find("; ") + 2)});
}

}  // namespace halyard::aot
