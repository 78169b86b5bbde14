// Runs a generated program on the machine and on the reference machine, each with its own objects, and
// reports differences: in statuses, results, globals and arguments after the calls, including the contents
// and identity of lists and buffers, and in the objects left alive.
#pragma once

#include <array>
#include <string>

#include "program_generator.h"
#include "vm/compile/loaded_module.h"

namespace halyard::vm::test {

struct Comparison {
  std::string difference;         // empty: no difference
  std::string_view not_compared;  // the reason if later calls could not be compared; otherwise empty
  std::array<uint64_t, kOpCount> executed = {};
  std::array<uint32_t, 32> codes = {};  // results of the calls
};

// How the machine runs a program. With `tiers`, functions are interpreted, and go over to machine code where
// a loop begins.
struct Ways {
  bool fuse = true;
  bool tiers = false;
  Sampling sampling = {};  // with `tiers`
};
// Built with HALYARD_TEST_COMPILED, the machine runs as machine code what the compiler takes.
Comparison compare_machines(const Program& program, Ways ways = {});

// Machine code for the loops of all functions of a module that was loaded with a queue.
void compile_loops(const LoadedModule& module);

// The same for any module that passes the verifier, however odd: calls every export `rounds` times, with
// other arguments each time; in more than one round, buffers among them overlap. Nothing is compared where
// one of its functions could make a list hold itself, or where its imports are not those of generated
// programs.
Comparison compare_exports(const Ref<LoadedModule>& module, Choices& choices, uint32_t rounds = 1);

// Overwrites every constant that a device's work may write to, as a kernel may at any time. Returns whether
// all functions are as they were.
[[nodiscard]] bool overwrite_constants(const BytecodeModule& module);

// The types that modules may name: those of the machine, of the probes of generated programs, and names that
// compiled modules use.
const TypeRegistry& known_types();

// The program as text.
std::string describe(const Program& program);

}  // namespace halyard::vm::test
