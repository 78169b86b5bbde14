// An inspection for people: fits a terminal's width, shows sizes instead of contents, and shortens long
// lists.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "inspection.h"
#include "vm/text/vmasm_text.h"

namespace halyard::c {
namespace {

constexpr size_t kWidth = 96;
constexpr size_t kMaxEntries = 500;  // of a list
constexpr size_t kMaxText = 1000;    // of a value
constexpr size_t kMaxName = 200;

// Made printable, on one line; states the number of omitted characters.
std::string shown(std::string_view text, size_t most) {
  std::string safe;
  for (const char c : text.substr(0, most)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      safe += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    } else {
      safe += c;
    }
  }
  if (text.size() > most) safe += fmt::format("... ({} bytes)", text.size());
  return safe;
}
std::string shown_name(std::string_view name) { return shown(name, kMaxName); }

std::string plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string size_text(uint64_t bytes) {
  if (bytes < 64 * 1024) return plural(bytes, "byte");
  const bool mega = bytes >= 1024 * 1024;
  return fmt::format("{:.1f} {} ({} bytes)", static_cast<double>(bytes) / (mega ? 1024 * 1024 : 1024),
                     mega ? "MiB" : "KiB", bytes);
}

class Report {
 public:
  explicit Report(const Inspection& inspection)
      : inspection_(inspection), view_(inspection.view), module_(view_.module()) {}

  std::string make() {
    overview();
    exports();
    executables();
    warnings();
    imports();
    attributes();
    types();
    broken();
    return std::move(text_);
  }

 private:
  // Breaks lines at blanks; lines after the first are indented by `hanging` columns.
  void wrapped(std::string_view first, size_t hanging, std::string_view words) {
    std::string line(first);
    bool empty = line.size() < hanging;  // no word yet, so no blank is needed
    line.resize(std::max(line.size(), words.empty() ? 0 : hanging), ' ');
    while (!words.empty()) {
      const size_t end = std::min(words.find(' '), words.size());
      const std::string_view word = words.substr(0, end);
      if (!empty && line.size() + 1 + word.size() > kWidth) {
        text_ += line + "\n";
        line.assign(hanging, ' ');
        empty = true;
      }
      line += (empty ? "" : " ") + std::string(word);
      empty = false;
      words.remove_prefix(std::min(end + 1, words.size()));
    }
    text_ += line + "\n";
  }
  void field(std::string_view name, std::string_view value) { wrapped(name, 14, value); }
  void section(std::string_view name, size_t count) { text_ += fmt::format("\n{} ({})\n", name, count); }
  void left_out(size_t count) {
    if (count > kMaxEntries)
      text_ += fmt::format("  ... and {} more; --json has them all\n", count - kMaxEntries);
  }

  void overview() {
    field("module", fmt::format("{}, version {}", shown_name(module_.name()), module_.version()));
    field("file",
          fmt::format("{}, {}", size_text(inspection_.file_size), inspection_.zip ? "zip archive" : "flat"));
    field("bytecode", fmt::format("{}.0, of {}", module_.bytecode_version(),
                                  releases_text(inspection_.bytecode_releases)));
    if (inspection_.uses_hal) field("hal", hal());
    for (const InlineUse& use : inspection_.inline_uses) field(use.module, inline_use(use));
    if (!inspection_.uses_hal && !inspection_.inline_uses.empty()) field("devices", no_devices());
    field("made by", made_by());
    field("requires", vm::features_text(module_.features()));
    if (!module_.dependencies().empty()) field("depends on", dependencies());
    field("state", fmt::format("{} of globals, {}", plural(module_.global_bytes(), "byte"),
                               plural(module_.global_refs(), "ref global")));
    field("code", fmt::format("{}, {}", plural(module_.functions().size(), "function"),
                              size_text(view_.bytecode_bytes())));
    field("constants", constants());
    field("debug info", debug_info());
  }

  std::string hal() const {
    size_t count = 0;
    size_t misfits = 0;
    for (uint32_t i = 0; i < module_.imports().size(); ++i) {
      if (!inspection_.is_from_hal(i)) continue;
      ++count;
      misfits += inspection_.hal_imports[i].versions.empty();
    }
    std::string text =
        inspection_.hal.empty()
            ? "imports of different versions of hal"
            : fmt::format("{}, by the signatures of {}", hal_text(inspection_.hal), plural(count, "import"));
    if (misfits) text += fmt::format("; {} that no version has, see imports", plural(misfits, "import"));
    return text;
  }

  static std::string inline_use(const InlineUse& use) {
    std::string text = use.versions.empty() ? fmt::format("imports of different versions of {}", use.module)
                                            : fmt::format("{}, by the signatures of {}",
                                                          version_text(use.module, use.versions),
                                                          plural(use.imports, "import"));
    if (use.misfits)
      text += fmt::format("; {} that no version has, see imports", plural(use.misfits, "import"));
    return text;
  }

  // For a program in which other modules replace devices.
  std::string no_devices() const {
    const std::vector<std::string> formats = formats_of(inspection_);
    if (formats.empty()) return "none";
    std::string names;
    for (const std::string& format : formats) names += (names.empty() ? "" : ", ") + shown_name(format);
    return fmt::format("none; kernels run in the call: {}", names);
  }

  std::string made_by() const {
    if (!inspection_.releases.empty()) return releases_text(inspection_.releases);
    if (inspection_.hal.empty()) return "no release: its imports from hal are of different versions";
    return fmt::format("no release: the bytecode is of {}, the imports from hal of {}",
                       releases_text(inspection_.bytecode_releases), releases_text(inspection_.hal_releases));
  }

  std::string dependencies() const {
    std::string text;
    for (size_t i = 0; i < std::min(module_.dependencies().size(), kMaxEntries); ++i) {
      const vm::Dependency& dependency = module_.dependencies()[i];
      const bool any = !dependency.required || dependency.minimum_version == 0;
      text +=
          fmt::format("{}{}, {}{}", text.empty() ? "" : "; ", shown_name(dependency.name),
                      any ? "any version" : fmt::format("version {} or later", dependency.minimum_version),
                      dependency.optional ? ", if there" : "");
    }
    return text;
  }

  std::string constants() const {
    uint64_t embedded = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < module_.rodata().size(); ++i) {
      embedded += view_.is_embedded(i);
      bytes += view_.segment(i).size();
    }
    const uint64_t count = module_.rodata().size();
    if (count == 0) return "none";
    return fmt::format("{}, {}; {} in the FlatBuffer, {} after it", count, size_text(bytes), embedded,
                       count - embedded);
  }

  std::string debug_info() const {
    uint64_t names = 0;
    for (uint32_t i = 0; i < module_.functions().size(); ++i) names += !view_.debug_name(i).empty();
    if (!names && !view_.source_locations()) return "none";
    return fmt::format("{}, {}", plural(names, "function name"),
                       plural(view_.source_locations(), "source location"));
  }

  void exports() {
    section("exports", module_.exports().size());
    for (size_t i = 0; i < std::min(module_.exports().size(), kMaxEntries); ++i) {
      const vm::Export& item = module_.exports()[i];
      wrapped("  " + shown_name(item.name) + shown(signature_text(item.convention), kMaxText), 8, "");
      for (size_t k = 0; k < std::min(item.attributes.size(), kMaxEntries); ++k)
        wrapped("      " + shown_name(item.attributes[k].key) + " =", 8,
                shown(item.attributes[k].value, kMaxText));
      left_out(item.attributes.size());
    }
    left_out(module_.exports().size());
  }

  void executables() {
    if (inspection_.executables.empty()) return;
    section("executables", inspection_.executables.size());
    for (size_t i = 0; i < std::min(inspection_.executables.size(), kMaxEntries); ++i) {
      const Executable& executable = inspection_.executables[i];
      const std::string_view format = format_of(inspection_, executable);
      text_ += fmt::format("  rodata[{}]  {}, {}{}\n", executable.constant,
                           executable.format_constant ? shown_name(format) : "format not seen",
                           size_text(view_.segment(executable.constant).size()),
                           executable.kind.empty() ? "" : "; " + executable.kind);
      for (size_t k = 0; k < std::min(executable.entries.size(), kMaxEntries); ++k)
        wrapped("    " + shown_name(executable.entries[k].name), 8, entry_attributes(executable.entries[k]));
      left_out(executable.entries.size());
    }
    left_out(inspection_.executables.size());
  }

  static std::string entry_attributes(const vm::Export& entry) {
    std::string text;
    for (size_t i = 0; i < std::min(entry.attributes.size(), kMaxEntries); ++i)
      text += fmt::format("{}{} = {}", i ? ", " : "", shown_name(entry.attributes[i].key),
                          shown_name(entry.attributes[i].value));
    return text;
  }

  void warnings() {
    if (inspection_.warnings.empty()) return;
    section("warnings", inspection_.warnings.size());
    for (const std::string& warning : inspection_.warnings) wrapped("", 2, shown(warning, kMaxText));
  }

  void imports() {
    if (module_.imports().empty()) return;
    section("imports", module_.imports().size());
    size_t width = 0;
    for (size_t i = 0; i < std::min(module_.imports().size(), kMaxEntries); ++i)
      width = std::max(width, module_.imports()[i].name.size());
    width = std::min<size_t>(width, 40);
    for (uint32_t i = 0; i < std::min(module_.imports().size(), kMaxEntries); ++i) {
      const vm::Import& import = module_.imports()[i];
      std::string line = fmt::format("  {:{}}  {}", shown_name(import.name), width,
                                     import.convention.empty() ? "any" : shown_name(import.convention));
      if (import.optional) line += "  optional";
      if (!inspection_.hal_imports[i].module.empty()) {
        line.resize(std::max(line.size() + 2, width + 30), ' ');
        line += hal_import(inspection_.hal_imports[i]);
      }
      text_ += line + "\n";
    }
    left_out(module_.imports().size());
  }

  static std::string hal_import(const HalImport& import) {
    if (!import.versions.empty())
      return fmt::format("{} {}", import.module, version_text(import.module, import.versions));
    if (import.conventions.empty()) return fmt::format("in no version of {}", import.module);
    return fmt::format("no version of {}; there is {}", import.module, fmt::join(import.conventions, ", "));
  }

  void attributes() {
    if (module_.attributes().empty()) return;
    section("attributes of the module", module_.attributes().size());
    for (size_t i = 0; i < std::min(module_.attributes().size(), kMaxEntries); ++i)
      wrapped("  " + shown_name(module_.attributes()[i].key) + " =", 8,
              shown(module_.attributes()[i].value, kMaxText));
    left_out(module_.attributes().size());
  }

  void types() {
    if (module_.type_names().empty()) return;
    section("types", module_.type_names().size());
    std::string names;
    for (size_t i = 0; i < std::min(module_.type_names().size(), kMaxEntries); ++i)
      names += (i ? " " : "") + shown_name(module_.type_names()[i]);
    wrapped("", 2, names);
    left_out(module_.type_names().size());
  }

  void broken() {
    if (inspection_.broken.empty()) return;
    section("functions that cannot run", inspection_.broken.size());
    for (size_t i = 0; i < std::min(inspection_.broken.size(), kMaxEntries); ++i) {
      const BrokenFunction& function = inspection_.broken[i];
      wrapped(fmt::format("  {} {}", function.function, shown_name(module_.function_name(function.function))),
              6, shown(function.reason, kMaxText));
    }
    left_out(inspection_.broken.size());
  }

  const Inspection& inspection_;
  const vm::ModuleView& view_;
  const vm::BytecodeModule& module_;
  std::string text_;
};

}  // namespace

std::string inspection_text(const Inspection& inspection) { return Report(inspection).make(); }

}  // namespace halyard::c
