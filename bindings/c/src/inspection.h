// What a module is, found by looking at it: which releases can have made it, what it needs, what it holds.
// Collected once (inspection.cpp), printed for people and for programs (inspection_text.cpp,
// inspection_json.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "vm/text/module_view.h"

namespace halyard::c {

// Versions or releases from one to another, both included; empty where `from` is greater.
struct Range {
  uint32_t from = 0;
  uint32_t to = 0;
  bool empty() const { return from > to; }
  void narrow(Range other);
};

// Of an import from `hal`, `hal_inline` or `hal_loader`.
struct HalImport {
  std::string_view module;  // which of them; empty: none
  Range versions;           // of it that have it with this signature; 5 is hal 0.5, 0 is hal_loader 0
  std::vector<std::string_view>
      conventions;  // that there are, where none fits: empty if the function is unknown
};

// A module that stands in for devices, `hal_inline` or `hal_loader`, and what is imported from it.
struct InlineUse {
  std::string_view module;
  Range versions;  // that have every import
  size_t imports = 0;
  size_t misfits = 0;  // that no version has
};

// A constant that hal.executable.create or hal_loader.executable.load gets, or that is a module.
struct Executable {
  uint32_t constant = 0;
  std::optional<uint32_t> format_constant;  // the constant with the format's name
  std::string kind;                 // of file, by its first bytes: "module", "ELF x86_64"; maybe empty
  std::vector<vm::Export> entries;  // of a module
  std::shared_ptr<const vm::ModuleView> module;
};

inline constexpr size_t kMostBroken = 1000;
struct BrokenFunction {
  uint32_t function = 0;
  std::string reason;  // cut short where it is very long
};

struct Inspection {
  vm::ModuleView view;
  uint64_t file_size = 0;
  bool zip = false;
  Range hal;  // versions that have every import from hal; all of them where there is none
  bool uses_hal = false;
  std::vector<HalImport> hal_imports;  // by import
  std::vector<InlineUse> inline_uses;  // of the modules that are imported from
  Range releases;                      // of the compiler
  Range bytecode_releases;             // that make this bytecode
  Range hal_releases;                  // that make programs for these versions of hal
  std::vector<Executable> executables;
  std::vector<std::string> warnings;   // what is likely to give wrong results, module_warnings.h
  std::vector<BrokenFunction> broken;  // the first kMostBroken; functions after them were not looked at

  bool is_from_hal(uint32_t import) const;
};

// Fails as vm::ModuleView::open.
Result<Inspection> inspect(Ref<Bytes> bytes);

std::string releases_text(Range releases);                          // "IREE 3.4 to 3.9"
std::string hal_text(Range versions);                               // "0.5", "0.6 to 0.7"
std::string version_text(std::string_view module, Range versions);  // that of hal; of others "0", "0 to 1"
// What the executables of a program without devices must be run by: their formats, sorted; those not seen
// left out.
std::vector<std::string> formats_of(const Inspection& inspection);
// "(i32, ref) -> (f32)"; the convention itself where it is none.
std::string signature_text(std::string_view convention);
std::string_view format_of(const Inspection& inspection,
                           const Executable& executable);  // empty where not known

std::string inspection_text(const Inspection& inspection);
// RESOURCE_EXHAUSTED: more than 256 MiB.
Result<std::string> inspection_json(const Inspection& inspection);

}  // namespace halyard::c
