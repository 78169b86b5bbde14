// The complete inspection for programs, as JSON (RFC 8259). Bytes of names that are not UTF-8 become U+FFFD.
#include <fmt/core.h>

#include "inspection.h"
#include "json_writer.h"
#include "vm/text/vmasm_text.h"

namespace halyard::c {
namespace {

class Writer {
 public:
  explicit Writer(const Inspection& inspection)
      : inspection_(inspection), view_(inspection.view), module_(view_.module()) {}

  Result<std::string> write() {
    json_.begin('{');
    overview();
    list("dependencies", module_.dependencies().size(), [&](size_t i) {
      const vm::Dependency& dependency = module_.dependencies()[i];
      json_.field("name", dependency.name);
      json_.field("minimum_version", dependency.minimum_version);
      json_.flag("required", dependency.required);
      json_.flag("optional", dependency.optional);
    });
    list("imports", module_.imports().size(), [&](size_t i) { import(static_cast<uint32_t>(i)); });
    list("exports", module_.exports().size(), [&](size_t i) {
      const vm::Export& item = module_.exports()[i];
      json_.field("name", item.name);
      json_.field("function", item.function);
      json_.field("convention", item.convention);
      attributes(item.attributes);
    });
    attributes(module_.attributes());
    list("functions", module_.functions().size(), [&](size_t i) { function(static_cast<uint32_t>(i)); });
    json_.key("types");
    json_.begin('[');
    for (size_t i = 0; i < module_.type_names().size() && !json_.full(); ++i)
      json_.string(module_.type_names()[i]);
    json_.end(']');
    list("constants", module_.rodata().size(), [&](size_t i) {
      json_.field("bytes", view_.segment(static_cast<uint32_t>(i)).size());
      json_.flag("embedded", view_.is_embedded(static_cast<uint32_t>(i)));
    });
    list("executables", inspection_.executables.size(),
         [&](size_t i) { executable(inspection_.executables[i]); });
    json_.key("warnings");
    json_.begin('[');
    for (const std::string& warning : inspection_.warnings) json_.string(warning);
    json_.end(']');
    list("broken_functions", inspection_.broken.size(), [&](size_t i) {
      json_.field("function", inspection_.broken[i].function);
      json_.field("reason", inspection_.broken[i].reason);
    });
    json_.end('}');
    if (json_.full())
      return fail(Code::RESOURCE_EXHAUSTED, "the description of module '{}' has more than {} bytes",
                  module_.name().substr(0, 100), Json::kMaxBytes);
    return json_.take() + "\n";
  }

 private:
  template <typename Entry>
  void list(std::string_view name, size_t count, Entry entry) {
    json_.list(name, count, entry);
  }

  void range(std::string_view module, Range versions) {
    json_.key(module);
    if (versions.empty()) return json_.null();
    json_.begin('{');
    json_.field("from", version_text(module, {versions.from, versions.from}));
    json_.field("to", version_text(module, {versions.to, versions.to}));
    json_.end('}');
  }

  // If a key is repeated, only the first is written.
  void attributes(const std::vector<vm::Attribute>& entries) {
    list("attributes", entries.size(), [&](size_t i) {
      json_.field("key", entries[i].key);
      json_.field("value", entries[i].value);
    });
  }

  void features(uint32_t bits) {
    json_.key("requires");
    json_.begin('[');
    for (uint32_t bit = 1; bit != 0; bit <<= 1)
      if (bits & bit) json_.string(vm::features_text(bit));
    json_.end(']');
  }

  void overview() {
    json_.field("name", module_.name());
    json_.field("version", module_.version());
    json_.field("file_bytes", inspection_.file_size);
    json_.field("container", inspection_.zip ? "zip" : "flat");
    json_.field("bytecode_version", module_.bytecode_version());
    json_.field("bytecode_bytes", view_.bytecode_bytes());
    json_.field("bytecode_releases", releases_text(inspection_.bytecode_releases));
    if (inspection_.uses_hal) {
      range("hal", inspection_.hal);
    } else {
      json_.key("hal");
      json_.null();
    }
    for (const InlineUse& use : inspection_.inline_uses) range(use.module, use.versions);
    json_.field("made_by", releases_text(inspection_.releases));
    features(module_.features());
    json_.field("global_bytes", module_.global_bytes());
    json_.field("global_refs", module_.global_refs());
    json_.field("source_locations", view_.source_locations());
  }

  void import(uint32_t ordinal) {
    const vm::Import& import = module_.imports()[ordinal];
    json_.field("name", import.name);
    json_.field("convention", import.convention);
    json_.flag("optional", import.optional);
    const HalImport& hal = inspection_.hal_imports[ordinal];
    if (hal.module.empty()) return;
    range(hal.module, hal.versions);
    if (!hal.versions.empty()) return;
    json_.key("known_conventions");
    json_.begin('[');
    for (const std::string_view convention : hal.conventions) json_.string(convention);
    json_.end(']');
  }

  void function(uint32_t ordinal) {
    const vm::Function& function = module_.functions()[ordinal];
    const vm::FunctionFields fields = view_.function_fields(ordinal);
    json_.field("convention", function.convention);
    json_.field("debug_name", view_.debug_name(ordinal));
    json_.field("bytes", function.bytecode.size());
    json_.field("blocks", function.block_count);
    json_.field("value_registers", fields.value_registers);
    json_.field("ref_registers", fields.ref_registers);
    features(function.features);
  }

  void executable(const Executable& executable) {
    json_.field("constant", executable.constant);
    json_.key("format");
    if (executable.format_constant) {
      json_.string(format_of(inspection_, executable));
    } else {
      json_.null();
    }
    json_.field("bytes", view_.segment(executable.constant).size());
    json_.field("kind", executable.kind);
    list("entries", executable.entries.size(), [&](size_t i) {
      json_.field("name", executable.entries[i].name);
      json_.field("convention", executable.entries[i].convention);
      attributes(executable.entries[i].attributes);
    });
  }

  const Inspection& inspection_;
  const vm::ModuleView& view_;
  const vm::BytecodeModule& module_;
  Json json_;
};

}  // namespace

Result<std::string> inspection_json(const Inspection& inspection) { return Writer(inspection).write(); }

}  // namespace halyard::c
