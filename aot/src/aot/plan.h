// Plan: which functions, imports and constants of a module become C, and their names there. Everything that a
// FunctionWriter needs to know about the rest of the module.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "aot/signature.h"
#include "base/object.h"
#include "vm/module/bytecode_module.h"

namespace halyard::aot {

// An import as C.
struct ImportPlan {
  std::string callee;        // empty: not resolved
  bool takes_state = false;  // of this file; else an extern function, which gets the user's pointer
};

struct Plan {
  const vm::BytecodeModule& module;
  std::string prefix;                              // of public names
  std::vector<std::string> functions;              // C names by ordinal; empty for those that nothing calls
  std::vector<ImportPlan> imports;                 // by ordinal
  std::set<uint32_t> constants;                    // ordinals of the constants that these functions use
  std::set<uint32_t> recursive;                    // functions that may call themselves
  std::map<const ObjectType*, std::string> types;  // names of the descriptors in C

  // The functions that exports reach, in order of their ordinals. Fails for functions that the verifier
  // refuses.
  static Result<Plan> of(const vm::BytecodeModule& module, std::string_view name);

  // The index of a constant among those.
  uint32_t constant(uint32_t ordinal) const;
  // The descriptor of a type for checks of refs: "&vm_buffer_type", or "NULL" for a type that no ref has.
  std::string type(uint32_t ordinal) const;
  // The same for the elements of a list: its number for packed values (0: none), and its descriptor.
  std::string element_type(uint32_t ordinal) const;
};

}  // namespace halyard::aot
