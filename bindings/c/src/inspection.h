// The inspection of a module: the releases that can have made it, its requirements, its contents. Collected
// once (inspection.cpp), printed for people and for programs (inspection_text.cpp, inspection_json.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "vm/text/module_view.h"

namespace halyard::c {

// A range of versions or releases, both included; empty if `from` is greater.
struct Range {
  uint32_t from = 0;
  uint32_t to = 0;
  bool empty() const { return from > to; }
  void narrow(Range other);
};

// Describes an import from `hal`, `hal_inline` or `hal_loader`.
struct HalImport {
  std::string_view module;  // name of that module; empty: none of them
  Range versions;           // versions that have it with this signature; 5 is hal 0.5, 0 is hal_loader 0
  std::vector<std::string_view>
      conventions;  // existing ones, if none matches: empty if the function is unknown
};

// A module that replaces devices, `hal_inline` or `hal_loader`, and the imports from it.
struct InlineUse {
  std::string_view module;
  Range versions;  // that have every import
  size_t imports = 0;
  size_t misfits = 0;  // imports that no version has
};

// A constant that is passed to hal.executable.create or hal_loader.executable.load, or that is a module.
struct Executable {
  uint32_t constant = 0;
  std::optional<uint32_t> format_constant;  // the constant that names the format
  std::string kind;                         // from the first bytes: "module", "ELF x86_64"; may be empty
  std::vector<vm::Export> entries;          // of a module
  std::shared_ptr<const vm::ModuleView> module;
};

inline constexpr size_t kMaxBroken = 1000;
struct BrokenFunction {
  uint32_t function = 0;
  std::string reason;  // shortened if it is very long
};

struct Inspection {
  vm::ModuleView view;
  uint64_t file_size = 0;
  bool zip = false;
  Range hal;  // versions that have every import from hal; all versions without imports
  bool uses_hal = false;
  std::vector<HalImport> hal_imports;  // indexed by import
  std::vector<InlineUse> inline_uses;  // the modules from which it imports
  Range releases;                      // of the compiler
  Range bytecode_releases;             // that emit this bytecode
  Range hal_releases;                  // that emit programs for these versions of hal
  std::vector<Executable> executables;
  std::vector<std::string> warnings;   // code that is likely to give wrong results, module_warnings.h
  std::vector<BrokenFunction> broken;  // the first kMaxBroken; functions after them are not checked

  bool is_from_hal(uint32_t import) const;
};

// Fails like vm::ModuleView::open.
Result<Inspection> inspect(Ref<Bytes> bytes);

std::string releases_text(Range releases);                          // "IREE 3.4 to 3.9"
std::string hal_text(Range versions);                               // "0.5", "0.6 to 0.7"
std::string version_text(std::string_view module, Range versions);  // "0.6" for hal; "0", "0 to 1" for others
// The formats of the executables of a program without devices, sorted; unknown formats are omitted.
std::vector<std::string> formats_of(const Inspection& inspection);
// "(i32, ref) -> (f32)"; an invalid convention is returned unchanged.
std::string signature_text(std::string_view convention);
std::string_view format_of(const Inspection& inspection,
                           const Executable& executable);  // empty if unknown

std::string inspection_text(const Inspection& inspection);
// RESOURCE_EXHAUSTED: more than 256 MiB.
Result<std::string> inspection_json(const Inspection& inspection);

}  // namespace halyard::c
