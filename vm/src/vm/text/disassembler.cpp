// Prints all parts of a module except functions, directive by directive.
#include "vm/text/disassembler.h"

#include <fmt/core.h>

#include <algorithm>

#include "vm/format/opcodes.h"
#include "vm/text/assembler.h"
#include "vm/text/disassembler_module.h"
#include "vm/text/vmasm_text.h"

namespace halyard::vm {
namespace disassembler {
namespace {

constexpr int kMaxNesting = 8;     // the assembler's limit
constexpr size_t kMaxName = 1024;  // longer names are not compared with others
constexpr size_t kMaxText = 512;   // longer rodata is not printed as a string
constexpr size_t kMinText = 3;     // shorter rodata is more likely numbers
constexpr size_t kBytesPerLine = 32;
constexpr uint32_t kRequired = 1;
constexpr uint32_t kOptional = 2;

// "vm.export" or "vm.export[3]"
std::string directive(std::string_view name, size_t ordinal, bool by_ordinal) {
  return by_ordinal ? fmt::format("{}[{}]", name, ordinal) : std::string(name);
}

std::string flags_text(uint32_t flags) {
  return flags == kRequired || flags == kOptional ? "" : fmt::format(" flags {}", flags);
}

bool is_text(std::span<const uint8_t> bytes) {
  return bytes.size() >= kMinText && bytes.size() <= kMaxText && std::ranges::all_of(bytes, [](uint8_t byte) {
           return (byte >= 0x20 && byte < 0x7F) || byte == '\n' || byte == '\t';
         });
}

// Limits the effort for all nested modules, because a file may use the same bytes as constants any number of
// times.
struct Budget {
  size_t nested_bytes = kMaxAssembledText;
};

class ModuleText {
 public:
  ModuleText(const ModuleView& view, Listing& listing, Budget& budget, bool offsets, int depth)
      : view_(view),
        module_(view.module()),
        names_(view),
        listing_(listing),
        budget_(budget),
        offsets_(offsets),
        depth_(depth) {}

  Result<> print(uint32_t outer_version) {
    print_head(outer_version);
    print_tables();
    for (uint32_t i = 0; i < module_.rodata().size() && !listing_.full(); ++i) HALYARD_TRY(print_rodata(i));
    print_exports();
    for (uint32_t i = 0; i < module_.functions().size() && !listing_.full(); ++i)
      print_function(listing_, names_, i, offsets_);
    return {};
  }

 private:
  void print_head(uint32_t outer_version) {
    std::string line = "vm.module " + symbol_text(module_.name());
    if (module_.version()) line += fmt::format(" version {}", module_.version());
    if (module_.bytecode_version() != outer_version)
      line += fmt::format(" bytecode {}", module_.bytecode_version());
    listing_.line(line);
    uint32_t features = 0;
    for (const Function& function : module_.functions()) features |= function.features;
    if (module_.features() != features) listing_.line("vm.requires " + features_text(module_.features()));
    if (module_.global_bytes() || module_.global_refs())
      listing_.line(fmt::format("vm.state {}, {}", module_.global_bytes(), module_.global_refs()));
    if (module_.functions().empty()) listing_.line("vm.empty");
  }

  void print_tables() {
    Seen keys;
    for (size_t i = 0; i < module_.attributes().size() && !listing_.full(); ++i) {
      const Attribute& attribute = module_.attributes()[i];
      const bool by_ordinal = keys.again(attribute.key) || attribute.key.empty();
      listing_.line(directive("vm.module_attr", i, by_ordinal) + " " + string_text(attribute.key) + " " +
                    string_text(attribute.value));
    }
    Seen dependencies;
    for (uint32_t i = 0; i < module_.dependencies().size() && !listing_.full(); ++i) {
      const Dependency& dependency = module_.dependencies()[i];
      const uint32_t flags = view_.dependency_flags(i);
      listing_.line(directive("vm.dependency", i, dependencies.again(dependency.name)) + " " +
                    symbol_text(dependency.name) + fmt::format(" {}", dependency.minimum_version) +
                    (flags == kOptional ? " optional" : "") + flags_text(flags));
    }
    Seen types;
    for (size_t i = 0; i < module_.type_names().size() && !listing_.full(); ++i) {
      const std::string_view name = module_.type_names()[i];
      listing_.line(directive("vm.type", i, types.again(name)) + " " +
                    (is_plain_type(name) ? std::string(name) : string_text(name)));
    }
    Seen imports;
    for (uint32_t i = 0; i < module_.imports().size() && !listing_.full(); ++i) {
      const Import& import = module_.imports()[i];
      const uint32_t flags = view_.import_flags(i);
      listing_.line(directive("vm.import", i, imports.again(import.name)) +
                    (flags == kOptional ? " optional " : " ") + symbol_text(import.name) + " cconv " +
                    string_text(import.convention) + flags_text(flags));
    }
  }

  void print_exports() {
    Seen exports;
    for (size_t i = 0; i < module_.exports().size() && !listing_.full(); ++i) {
      const Export& item = module_.exports()[i];
      const std::string name = symbol_text(item.name);
      const std::string target = names_.function(item.function);
      listing_.line(directive("vm.export", i, exports.again(item.name)) + " " + name +
                    (name == target ? "" : " = " + target));
    }
  }

  Result<> print_rodata(uint32_t ordinal) {
    const std::span<const uint8_t> bytes = view_.segment(ordinal);
    const std::string head = fmt::format("vm.rodata[{}] =", ordinal);
    if (HALYARD_TRY(print_nested(head, bytes))) return {};
    if (is_text(bytes)) {
      listing_.line(head + " " + string_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    } else if (bytes.size() <= kBytesPerLine) {
      listing_.line(head + (bytes.empty() ? "" : " ") + hex_text(bytes));
    } else {
      listing_.line(fmt::format("{} hex {{  // {} bytes", head, bytes.size()));
      listing_.indent();
      for (size_t at = 0; at < bytes.size() && !listing_.full(); at += kBytesPerLine)
        listing_.line(hex_text(bytes.subspan(at, std::min(kBytesPerLine, bytes.size() - at))));
      listing_.unindent();
      listing_.line("}");
    }
    return {};
  }

  // Returns false if the bytes are not a module.
  Result<bool> print_nested(std::string_view head, std::span<const uint8_t> bytes) {
    if (depth_ == kMaxNesting || bytes.size() < 16) return false;
    if (bytes.size() > budget_.nested_bytes)
      return fail(Code::RESOURCE_EXHAUSTED, "the constants of module '{}' have more than {} bytes in all",
                  module_.name(), kMaxAssembledText);
    budget_.nested_bytes -= bytes.size();
    const Result<ModuleView> nested = ModuleView::open(Bytes::borrow(bytes, {}));
    if (!nested) return false;
    listing_.line(std::string(head) + " module {");
    listing_.indent();
    HALYARD_TRY(
        ModuleText(*nested, listing_, budget_, offsets_, depth_ + 1).print(module_.bytecode_version()));
    listing_.unindent();
    listing_.line("}");
    return true;
  }

  const ModuleView& view_;
  const BytecodeModule& module_;
  const Names names_;
  Listing& listing_;
  Budget& budget_;
  const bool offsets_;
  const int depth_;
};

}  // namespace

void Listing::line(std::string_view text) {
  if (full_ || text.size() + indentation_ + 1 > room()) {
    full_ = true;
    return;
  }
  text_.append(indentation_, ' ');
  text_ += text;
  text_ += '\n';
}

void Listing::append(Listing&& other) {
  full_ = full_ || other.full_;
  const std::string text = other.take();
  for (std::string_view rest = text; !rest.empty() && !full_;) {
    const size_t end = rest.find('\n');
    line(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
}

bool Seen::again(std::string_view name) { return name.size() > kMaxName || !names_.insert(name).second; }

Names::Names(const ModuleView& view) : view(view), functions(view.function_names(made_up)) {
  const std::unordered_set<std::string_view> own(functions.begin(), functions.end());
  Seen imports;
  for (const Import& import : view.module().imports())
    import_by_ordinal.push_back(imports.again(import.name) || own.contains(import.name));
  Seen types;
  for (const std::string_view type : view.module().type_names())
    type_by_ordinal.push_back(types.again(type) || !is_plain_type(type));
}

std::string Names::function(uint32_t ordinal) const { return symbol_text(functions[ordinal]); }

std::string Names::callee(uint32_t callee) const {
  const uint32_t ordinal = callee & ~kImportBit;
  if (!(callee & kImportBit))
    return ordinal < functions.size() ? function(ordinal) : fmt::format("function[{}]", ordinal);
  if (ordinal >= import_by_ordinal.size() || import_by_ordinal[ordinal])
    return fmt::format("import[{}]", ordinal);
  return symbol_text(view.module().imports()[ordinal].name);
}

std::string Names::type(uint32_t ordinal) const {
  if (ordinal >= type_by_ordinal.size() || type_by_ordinal[ordinal]) return fmt::format("type[{}]", ordinal);
  return std::string(view.module().type_names()[ordinal]);
}

std::string Names::list_of(uint32_t ordinal) const {
  const std::string element = type(ordinal);
  return element.starts_with("type[") ? element : "!vm.list<" + element + ">";
}

}  // namespace disassembler

Result<std::string> disassemble(Ref<Bytes> bytes, const DisassembleOptions& options) {
  constexpr uint32_t kAssemblersDefault = 17;
  const ModuleView view = HALYARD_TRY(ModuleView::open(std::move(bytes)));
  disassembler::Listing listing(kMaxAssembledText);
  disassembler::Budget budget;
  HALYARD_TRY(disassembler::ModuleText(view, listing, budget, options.offsets, 0).print(kAssemblersDefault));
  if (listing.full())
    return fail(Code::RESOURCE_EXHAUSTED,
                "module '{}' as text has more than {} bytes, the limit of the assembler",
                view.module().name(), kMaxAssembledText);
  return listing.take();
}

}  // namespace halyard::vm
