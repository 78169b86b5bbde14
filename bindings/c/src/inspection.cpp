// Collects the properties of a module, without running any of it.
#include "inspection.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "module_warnings.h"
#include "modules/hal_inline_module.h"
#include "modules/hal_loader_module.h"
#include "modules/hal_module.h"
#include "vm/format/bytecode_reader.h"
#include "vm/module/calling_convention.h"

namespace halyard::c {
namespace {

// Compilers as numbers: 1 to 11 are the releases 3.1 to 3.11; the others are builds between releases.
constexpr uint32_t kLastRelease = 11;
constexpr uint32_t kBeforeHal7 = 12;  // after 3.11, before 2026-05-19
constexpr uint32_t kSinceHal7 = 13;
constexpr std::string_view kHal7Day = "2026-05-19";

struct VersionReleases {
  uint32_t version;
  Range releases;
};
constexpr VersionReleases kBytecode[] = {{15, {1, 9}}, {16, {10, 10}}, {17, {11, kSinceHal7}}};
constexpr VersionReleases kHal[] = {{5, {1, 3}}, {6, {4, kBeforeHal7}}, {7, {kSinceHal7, kSinceHal7}}};
constexpr Range kAllHal = {5, modules::kHalVersion};

constexpr std::string_view kHalPrefix = "hal.";
// A function that loads executables, and the index of the format among its ref arguments; the data is the
// next one.
struct Load {
  std::string_view name;
  size_t format;
};
constexpr Load kLoads[] = {{"hal.executable.create", 1}, {"hal_loader.executable.load", 0}};

// The modules for devices, and the modules that replace them.
struct HalModule {
  std::string_view name;
  std::span<const modules::TableFunction> (*signatures)();
  Range versions;
};
constexpr HalModule kHalModules[] = {
    {"hal", modules::hal_signatures, kAllHal},
    {"hal_inline", modules::hal_inline_signatures, {0, modules::kHalInlineVersion}},
    {"hal_loader", modules::hal_loader_signatures, {0, modules::kHalLoaderVersion}}};
constexpr size_t kMaxReason = 1000;
constexpr size_t kMaxSignature = 1000;                 // longer ones are not printed
constexpr size_t kMaxNestedBytes = size_t{256} << 20;  // in opened ones: constants may share their bytes

struct FirstBytes {
  std::string_view bytes;
  size_t offset;
  std::string_view kind;
};
constexpr FirstBytes kKinds[] = {{"VKE1", 0, "Vulkan shaders"},
                                 {"VKE1", 4, "Vulkan shaders, without the header of 3.9"},
                                 {"\x03\x02\x23\x07", 0, "SPIR-V"},
                                 {"\xFA\x70\x0E\x1F", 0, "FatELF"}};
struct Machine {
  uint16_t number;
  std::string_view name;
};
constexpr Machine kMachines[] = {{3, "i386"}, {40, "arm"}, {62, "x86_64"}, {183, "aarch64"}, {243, "riscv"}};

std::string kind_of(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\x7F"
                       "ELF") &&
      bytes.size() >= 20) {
    const auto number = vm::load_unaligned<uint16_t>(bytes.data() + 18);
    const auto* machine = std::ranges::find(kMachines, number, &Machine::number);
    return machine != std::end(kMachines) ? fmt::format("ELF {}", machine->name)
                                          : fmt::format("ELF for machine {}", number);
  }
  for (const FirstBytes& kind : kKinds)
    if (text.size() >= kind.offset && text.substr(kind.offset).starts_with(kind.bytes))
      return std::string(kind.kind);
  return {};
}

Range releases_of(std::span<const VersionReleases> table, Range versions) {
  Range releases = {UINT32_MAX, 0};
  for (const VersionReleases& made : table) {
    if (made.version < versions.from || made.version > versions.to) continue;
    releases = {std::min(releases.from, made.releases.from), std::max(releases.to, made.releases.to)};
  }
  return releases;
}

HalImport find_hal_import(const HalModule& module, const vm::Import& import) {
  HalImport found{module.name, {UINT32_MAX, 0}, {}};
  const std::string_view name = import.name.substr(module.name.size() + 1);
  for (const modules::HalSignature& signature : module.signatures()) {
    if (signature.name != name) continue;
    found.conventions.push_back(signature.convention);
    if (import.convention.empty() || import.convention == signature.convention)
      found.versions = {std::min(found.versions.from, signature.since),
                        std::max(found.versions.to, signature.until)};
  }
  if (!found.versions.empty()) found.conventions.clear();
  return found;
}

// Tracks which constants the registers contain, through a function in the order of its bytes. That is enough
// to pair the format and the data of executables, because compilers load them right before their use.
class ExecutableFinder {
 public:
  explicit ExecutableFinder(const vm::BytecodeModule& module) : module_(module) {}

  std::map<uint32_t, uint32_t> find() {  // maps data to format
    for (const vm::Function& function : module_.functions()) scan(function);
    return std::move(found_);
  }

 private:
  void scan(const vm::Function& function) {
    std::map<uint32_t, uint32_t> held;
    for (uint32_t pc = 0; vm::has_instruction(function.bytecode, pc);) {
      const auto instruction =
          vm::read_instruction(function.bytecode, pc, module_.bytecode_version(), function.features);
      if (!instruction) return;
      pc = instruction->next_pc;
      if (instruction->op == vm::Op::call) call(*instruction, held);
      const vm::OpInfo& op = vm::info(instruction->op);
      for (size_t i = 0; i < op.operand_count; ++i)
        if (op.operands[i].kind == vm::OperandKind::reg && op.operands[i].writes)
          held.erase(ordinal(instruction->operands[i].reg));
      if (instruction->op == vm::Op::const_ref_rodata &&
          instruction->operands[0].index < module_.rodata().size())
        held[ordinal(instruction->operands[1].reg)] = instruction->operands[0].index;
    }
  }

  void call(const vm::Instruction& instruction, std::map<uint32_t, uint32_t>& held) {
    const uint32_t callee = instruction.operands[0].index;
    const uint32_t import = callee & ~vm::kImportBit;
    const vm::RegList results = instruction.operands[2].regs;
    const Load* load = std::end(kLoads);
    if ((callee & vm::kImportBit) && import < module_.imports().size())
      load = std::ranges::find(kLoads, module_.imports()[import].name, &Load::name);
    if (load != std::end(kLoads)) {
      std::vector<uint32_t> refs;
      const vm::RegList arguments = instruction.operands[1].regs;
      for (size_t i = 0; i < arguments.size(); ++i)
        if (arguments[i] & vm::kRefBit) refs.push_back(ordinal(arguments[i]));
      const size_t format = load->format;
      if (refs.size() >= format + 2 && held.contains(refs[format]) && held.contains(refs[format + 1]))
        found_.emplace(held[refs[format + 1]], held[refs[format]]);
    }
    for (size_t i = 0; i < results.size(); ++i) held.erase(ordinal(results[i]));
  }

  static uint32_t ordinal(uint16_t field) {
    return field & vm::kRefBit ? field & vm::kRefOrdinalMask : UINT32_MAX;
  }

  const vm::BytecodeModule& module_;
  std::map<uint32_t, uint32_t> found_;
};

void find_executables(Inspection& inspection) {
  const vm::BytecodeModule& module = inspection.view.module();
  const std::map<uint32_t, uint32_t> created = ExecutableFinder(module).find();
  size_t budget = kMaxNestedBytes;
  for (uint32_t i = 0; i < module.rodata().size(); ++i) {
    const std::span<const uint8_t> bytes = inspection.view.segment(i);
    Executable executable;
    executable.constant = i;
    if (const auto found = created.find(i); found != created.end())
      executable.format_constant = found->second;
    if (bytes.size() >= 16 && bytes.size() <= budget) {
      budget -= bytes.size();
      Result<vm::ModuleView> nested = vm::ModuleView::open(Bytes::borrow(bytes, {}));
      if (nested) {
        executable.kind = fmt::format("module, bytecode {}", nested->module().bytecode_version());
        executable.module = std::make_shared<const vm::ModuleView>(*std::move(nested));
        executable.entries = executable.module->module().exports();
      }
    }
    if (!executable.module) executable.kind = kind_of(bytes);
    if (executable.module || executable.format_constant)
      inspection.executables.push_back(std::move(executable));
  }
}

void find_hal_versions(Inspection& inspection) {
  const vm::BytecodeModule& module = inspection.view.module();
  inspection.hal = kAllHal;
  inspection.hal_imports.resize(module.imports().size());
  for (const HalModule& hal : kHalModules) {
    InlineUse use = {hal.name, hal.versions};
    for (uint32_t i = 0; i < module.imports().size(); ++i) {
      const std::string_view name = module.imports()[i].name;
      if (!name.starts_with(hal.name) || !name.substr(hal.name.size()).starts_with('.')) continue;
      HalImport& import = inspection.hal_imports[i] = find_hal_import(hal, module.imports()[i]);
      ++use.imports;
      use.misfits += import.versions.empty();
      if (!import.versions.empty()) use.versions.narrow(import.versions);
    }
    if (use.imports == 0) continue;
    if (&hal == kHalModules) {
      inspection.uses_hal = true;
      inspection.hal = use.versions;
    } else {
      inspection.inline_uses.push_back(use);
    }
  }
  inspection.bytecode_releases =
      releases_of(kBytecode, {module.bytecode_version(), module.bytecode_version()});
  inspection.hal_releases = releases_of(kHal, inspection.hal);
  inspection.releases = inspection.bytecode_releases;
  inspection.releases.narrow(inspection.hal_releases);
}

std::string types_text(const std::vector<vm::ConventionItem>& items) {
  std::string text;
  for (const vm::ConventionItem& item : items) {
    if (!text.empty()) text += ", ";
    if (item.type != 'C') {
      text += vm::type_name(item.type);
      continue;
    }
    std::string span;
    for (const char type : item.span) span += (span.empty() ? "" : ", ") + std::string(vm::type_name(type));
    text += "[" + span + "]...";
  }
  return "(" + text + ")";
}

}  // namespace

void Range::narrow(Range other) {
  from = std::max(from, other.from);
  to = std::min(to, other.to);
}

bool Inspection::is_from_hal(uint32_t import) const {
  return view.module().imports()[import].name.starts_with(kHalPrefix);
}

Result<Inspection> inspect(Ref<Bytes> bytes) {
  const uint64_t size = bytes->size();
  const bool zip = bytes->span().size() > 1 && bytes->span()[0] == 'P' && bytes->span()[1] == 'K';
  Inspection inspection{.view = HALYARD_TRY(vm::ModuleView::open(std::move(bytes)))};
  inspection.file_size = size;
  inspection.zip = zip;
  find_hal_versions(inspection);
  find_executables(inspection);
  inspection.warnings = warnings_about(inspection.view.module());
  const size_t count = inspection.view.module().functions().size();
  for (uint32_t i = 0; i < count && inspection.broken.size() < kMaxBroken; ++i)
    if (const Result<> verified = inspection.view.verify(i); !verified)
      inspection.broken.push_back({i, verified.error().text().substr(0, kMaxReason)});
  return inspection;
}

std::string releases_text(Range releases) {
  if (releases.empty()) return "no release";
  if (releases.from == kSinceHal7) return fmt::format("an IREE build since {}", kHal7Day);
  if (releases.from == kBeforeHal7)
    return fmt::format("an IREE build after 3.{}, before {}", kLastRelease, kHal7Day);
  if (releases.to == kSinceHal7) return fmt::format("IREE 3.{} or later", releases.from);
  const std::string numbered =
      releases.from >= std::min(releases.to, kLastRelease)
          ? fmt::format("IREE 3.{}", releases.from)
          : fmt::format("IREE 3.{} to 3.{}", releases.from, std::min(releases.to, kLastRelease));
  return releases.to == kBeforeHal7 ? fmt::format("{}, or a build before {}", numbered, kHal7Day) : numbered;
}

std::string hal_text(Range versions) {
  if (versions.empty()) return "no version";
  return versions.from == versions.to ? fmt::format("0.{}", versions.from)
                                      : fmt::format("0.{} to 0.{}", versions.from, versions.to);
}

std::string version_text(std::string_view module, Range versions) {
  if (module == kHalModules[0].name || versions.empty()) return hal_text(versions);
  return versions.from == versions.to ? fmt::format("{}", versions.from)
                                      : fmt::format("{} to {}", versions.from, versions.to);
}

std::vector<std::string> formats_of(const Inspection& inspection) {
  std::set<std::string> formats;
  for (const Executable& executable : inspection.executables)
    if (executable.format_constant) formats.emplace(format_of(inspection, executable));
  return {formats.begin(), formats.end()};
}

std::string signature_text(std::string_view convention) {
  if (convention.size() > kMaxSignature) return "'" + std::string(convention) + "'";
  const Result<vm::Convention> parsed = vm::Convention::parse(convention);
  if (!parsed) return "'" + std::string(convention) + "'";
  return types_text(parsed->arguments) + " -> " + types_text(parsed->results);
}

std::string_view format_of(const Inspection& inspection, const Executable& executable) {
  if (!executable.format_constant) return {};
  const std::span<const uint8_t> bytes = inspection.view.segment(*executable.format_constant);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace halyard::c
