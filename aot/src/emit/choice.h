// The function that chooses an executable, as text for the assembler.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emit/processors.h"
#include "vm/module/bytecode_module.h"

namespace halyard::aot {

// A function of the runtime that creates executables.
struct CreatingImport {
  std::string_view name;
  std::string_view convention;
  std::string_view parameters;  // of the new function
  std::string_view arguments;   // of the call, moved
  uint32_t format;              // ref registers of the parameters
  uint32_t data;
  uint32_t constants;
  bool is_loader;  // of hal_loader, which has no devices
};
// Null: the import does not create executables.
const CreatingImport* find_creating_import(std::string_view name, std::string_view convention);

// Constants and imports that the function needs and the module may not have.
class Additions {
 public:
  Additions(const vm::BytecodeModule& module);
  uint32_t constant(std::string_view text);       // the ordinal
  uint32_t constant(std::vector<uint8_t> bytes);  // of new bytes
  uint32_t import(std::string_view name, std::string_view convention);

  struct NewImport {
    std::string name;
    std::string convention;
  };
  std::vector<std::vector<uint8_t>> constants;  // after those of the module
  std::vector<NewImport> imports;

 private:
  const vm::BytecodeModule& module_;
};

// A constant of the module with `variants`, and the constants of their libraries.
struct Choice {
  uint32_t portable;
  std::vector<std::pair<size_t, uint32_t>> libraries;  // processor, constant
};

// A module with the tables of `module` and one function, which has the parameters and results of the import
// with the ordinal `import`. `none`: the name of the format if no library suits; empty: the portable
// executable then.
std::string choosing_module(const vm::BytecodeModule& module, const CreatingImport& creating, uint32_t import,
                            std::span<const Processor> processors, std::span<const Choice> choices,
                            std::string_view portable, std::string_view none, Additions& additions);

}  // namespace halyard::aot
