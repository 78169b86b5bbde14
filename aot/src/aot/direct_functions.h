// Direct functions: those that return their result instead of a status, so that their calls cost what calls
// in C do. They take and return numbers and cannot fail, but for calls that are nested too deep. After that
// they return any number, and so do all calls of such functions until the first one that returns a status,
// which fails: a function that may be nested too deep has neither loops nor effects, and calls none that has.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "vm/module/bytecode_module.h"

namespace halyard::aot {

struct DirectFunctions {
  std::set<uint32_t> all;
  // Those whose calls may be nested too deep. They get the number of calls that may be nested in theirs.
  std::set<uint32_t> bounded;
};

// Of the functions in `calls`, which has the functions that each calls, without those of `kept`, whose C has
// another form.
DirectFunctions direct_functions(const vm::BytecodeModule& module,
                                 const std::map<uint32_t, std::set<uint32_t>>& calls,
                                 const std::set<uint32_t>& recursive, const std::set<uint32_t>& kept);

}  // namespace halyard::aot
