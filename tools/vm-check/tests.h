// Tests: which there are in the modules that are given, what they are called, which are chosen.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"
#include "common/program.h"

namespace halyard::tools {

// The tests of a module.
struct Suite {
  // The module's; where several modules have that name, the file's without its ending; where several files
  // have that, the path.
  std::string name;
  std::string path;
  Handle<halyard_module_t> module;
  std::vector<std::string> tests;  // names of exports, in the module's order
};

// "suite.test"
std::string full_name(const Suite& suite, std::string_view test);

// Loads the modules with tests, --module and arguments, each with all that it has. INVALID_ARGUMENT: none is
// given, one twice, or one has no test.
Result<std::vector<Suite>> load_suites(const Flags& flags, const Program& program);

// --import: what the modules with tests may import from.
Result<std::vector<Handle<halyard_module_t>>> load_imports(const Flags& flags, const Program& program);

// Leaves the tests that --filter takes, and the suites that have any. NOT_FOUND: there are none.
Result<> choose_tests(const Flags& flags, std::vector<Suite>& suites);

}  // namespace halyard::tools
