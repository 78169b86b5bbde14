// WrittenFunctions: the C functions of a program's bytecode.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halyard::aot {

struct WrittenFunction {
  std::string name;
  std::string text;
};

// The prototypes and the definitions of the functions that `callers`, a text of C, calls directly or through
// others, in their order. Only unreachable blocks call the rest, of which compilers warn.
struct CalledFunctions {
  std::string prototypes;
  std::string definitions;
};
CalledFunctions called_functions(const std::vector<WrittenFunction>& written, std::string_view callers);

}  // namespace halyard::aot
