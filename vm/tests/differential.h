// Runs a generated program on the machine and on the reference machine, each with its own objects, and
// reports differences: in statuses, results, globals and arguments after the calls, including the contents
// and identity of lists and buffers, and in the number of live objects.
#pragma once

#include <array>
#include <string>

#include "program_generator.h"
#include "vm/compile/loaded_module.h"

struct halyard_jit_sharing_t;

namespace halyard::vm::test {

struct Comparison {
  std::string difference;         // empty: no difference
  std::string_view not_compared;  // the reason if later calls could not be compared; otherwise empty
  std::array<uint64_t, kOpCount> executed = {};
  std::array<uint32_t, 32> codes = {};  // results of the calls
  uint64_t checked_loops = 0;           // of compiled code that ran with all of their checks
};

// How the machine runs a program. With `tiers`, functions are first interpreted, and switch to machine code
// at the begin of a loop.
struct Ways {
  bool fuse = true;
  bool tiers = false;
  Sampling sampling = {};  // with `tiers`
};
// If built with HALYARD_TEST_COMPILED, the machine runs machine code for all functions that the compiler
// supports.
Comparison compare_machines(const Program& program, Ways ways = {});

// Compiles the loops of all functions of a module that was loaded with a queue.
void compile_loops(const LoadedModule& module);

// How the exports of a module are called.
struct ExportCalls {
  uint32_t rounds = 1;  // of calls of every export; with several, some buffers of arguments overlap
  uint64_t instructions = 300'000;  // that the reference machine executes at most, in all calls together
  // Threads that run pieces of compiled loops in every other round; null: none.
  const halyard_jit_sharing_t* sharing = nullptr;
};
// Does the same for any module that passes the verifier: calls its exports, each time with other arguments.
// Nothing is compared if a function could make a list contain itself, or if the imports are not those of
// generated programs.
Comparison compare_exports(const Ref<LoadedModule>& module, Choices& choices, const ExportCalls& how = {});

// Overwrites every constant to which a device's work may write, as a kernel may do at any time. Returns
// whether all functions are unchanged.
[[nodiscard]] bool overwrite_constants(const BytecodeModule& module);

// The types that modules may name: those of the machine, those of the probes of generated programs, and names
// that compiled modules use.
const TypeRegistry& known_types();

// The program as text.
std::string describe(const Program& program);

}  // namespace halyard::vm::test
