// Tests: finds them in the modules that are given, names them, and chooses among them.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"
#include "common/program.h"

namespace halyard::tools {

// The tests of a module.
struct Suite {
  // The module's name. If several modules have it, the file's name without its ending; if several files have
  // that, the path.
  std::string name;
  std::string path;
  Handle<halyard_module_t> module;
  std::vector<std::string> tests;  // names of exports, in the module's order
};

// "suite.test"
std::string full_name(const Suite& suite, std::string_view test);

// Loads the modules with tests (--module and arguments) and finds all tests of each. INVALID_ARGUMENT: no
// module is given, a module is given twice, or one has no test.
Result<std::vector<Suite>> load_suites(const Flags& flags, const Program& program);

// Loads --import: modules with tests may import from these.
Result<std::vector<Handle<halyard_module_t>>> load_imports(const Flags& flags, const Program& program);

// Removes tests that --filter does not choose, and suites without tests. NOT_FOUND: none is left.
Result<> choose_tests(const Flags& flags, std::vector<Suite>& suites);

}  // namespace halyard::tools
