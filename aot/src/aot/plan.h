// Plan: which functions, imports and constants of a module become C, and their names there. Everything that a
// FunctionWriter needs to know about the rest of the module.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "aot/direct_functions.h"
#include "aot/signature.h"
#include "vm/module/bytecode_module.h"
#include "vm/object/type_registry.h"

namespace halyard::aot {

// An import as C.
struct ImportPlan {
  std::string callee;  // empty: not resolved
  bool takes_state =
      false;  // a function of aot/support; else an extern function, which gets the user's pointer
};

// What a module is for.
enum class Role {
  host,     // a program without a runtime
  kernels,  // of a program without a runtime
  program,  // a program over services of a host: imports and types are ordinals
};

struct Plan {
  const vm::BytecodeModule& module;
  Role role = Role::host;
  std::string prefix;                  // of names in C: public ones of a host module, all of kernels
  std::vector<std::string> functions;  // C names by ordinal; empty for those that nothing calls
  std::vector<ImportPlan> imports;     // by ordinal
  std::set<uint32_t> constants;        // ordinals of the constants that these functions use
  bool has_checks = true;              // of bounds, in loads and stores
  uint32_t first_constant = 0;         // the index of the first of them among all constants of the program
  std::set<uint32_t> recursive;        // functions that may call themselves
  DirectFunctions direct;              // functions that return their result

  // The functions that exports reach. Fails for functions that the verifier refuses, and for imports that
  // cannot be had.
  static Result<Plan> of(const vm::BytecodeModule& module, Role role, std::string_view prefix);

  // The first arguments of a call of a function from one that returns a status: "(s".
  std::string call(uint32_t function) const;
  // The index of a constant among all constants of the program.
  uint32_t constant(uint32_t ordinal) const;
  // The descriptor of a type for checks of refs: "&vm_buffer_type", or "NULL" for a type that no ref has. Of
  // programs over a host, the ordinal.
  std::string type(uint32_t ordinal) const;
  // The same for the elements of a list: its number for packed values (0: none), and its descriptor.
  std::string element_type(uint32_t ordinal) const;
};

// The names in C that a program without a runtime may have besides those of its exports.
std::vector<std::string> own_names(std::string_view prefix);

// The types that modules may name.
const vm::TypeRegistry& known_types();

}  // namespace halyard::aot
