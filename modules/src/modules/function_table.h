// Function tables of native modules: every signature of every function, oldest first. Exports and
// compile-time checks are generated from them. A table is an .inc file of
//   HAL_FUNCTION(name, calling convention, first version, last version, handler)
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vm/module/native_module.h"
#include "vm/native/bind.h"

namespace halyard::modules {

// One signature of one function. A function whose signature has changed has several adjacent rows, oldest
// first. Versions are the numbers that modules report.
struct HalSignature {
  std::string_view name;        // "fence.create"
  std::string_view convention;  // "0rI_r"
  uint32_t since;
  uint32_t until;  // the last version; current if equal to the module's
};

struct TableFunction : HalSignature {
  vm::NativeExport exported;
};

// A row of the table of a module of version `kModuleVersion`. Does not compile if the parameters of the
// handler do not match the convention, or if the versions are invalid.
template <auto kHandler, uint32_t kModuleVersion>
consteval TableFunction table_function(const char* name, const char* convention, uint32_t since,
                                       uint32_t until) {
  if (std::string_view(vm::convention_of<kHandler>) != convention)
    throw "the parameters of the handler do not match the convention";
  if (since > until || until > kModuleVersion) throw "versions";
  return {{name, convention, since, until}, {name, convention, vm::bind<kHandler>}};
}

inline std::vector<vm::NativeExport> exports_of(std::span<const TableFunction> table) {
  std::vector<vm::NativeExport> exports;
  exports.reserve(table.size());
  for (const TableFunction& function : table) exports.push_back(function.exported);
  return exports;
}

}  // namespace halyard::modules
