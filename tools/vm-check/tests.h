// Tests: finds them in the given modules, names them, and selects some of them.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"
#include "common/program.h"

namespace halyard::tools {

// The tests of a module.
struct Suite {
  // The module's name. If several modules have the same name, the file's name without its extension; if
  // several files have the same name, the path.
  std::string name;
  std::string path;
  Module module;
  std::vector<std::string> tests;  // names of exports, in the module's order
};

// "suite.test"
std::string full_name(const Suite& suite, std::string_view test);

// Loads the modules with tests (--module and arguments) and finds all tests of each. INVALID_ARGUMENT: no
// module is given, a module is given twice, or a module has no test.
Result<std::vector<Suite>> load_suites(const Flags& flags, const Program& program);

// Loads the modules of --import, from which modules with tests may import.
Result<std::vector<Module>> load_imports(const Flags& flags, const Program& program);

// Removes tests that --filter does not select, and suites without tests. NOT_FOUND: no test is left.
Result<> choose_tests(const Flags& flags, std::vector<Suite>& suites);

}  // namespace halyard::tools
