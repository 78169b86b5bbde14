// Runs a generated program on the machine and on the reference machine, each with its own objects, and
// reports differences: in statuses, results, globals and arguments after the calls, including the contents
// and identity of lists and buffers, and in the objects left alive.
#pragma once

#include <array>
#include <string>

#include "program_generator.h"
#include "vm/module/bytecode_module.h"

namespace halyard::vm::test {

struct Comparison {
  std::string difference;         // empty: no difference
  std::string_view not_compared;  // the reason if later calls could not be compared; otherwise empty
  std::array<uint64_t, kOpCount> executed = {};
  std::array<uint32_t, 32> codes = {};  // results of the calls
};

// Without `fuse`, the machine fuses no instructions. If built with HALYARD_TEST_COMPILED, it runs machine
// code for what the compiler supports.
Comparison compare_machines(const Program& program, bool fuse = true);

// The same for any module that passes the verifier: calls every export once. Nothing is compared if a
// function could make a list contain itself, or if its imports are not those of generated programs.
Comparison compare_exports(const Ref<BytecodeModule>& module, Choices& choices);

// The types that modules may name: those of the machine, of the probes of generated programs, and names that
// compiled modules use.
const TypeRegistry& known_types();

// The program as text.
std::string describe(const Program& program);

}  // namespace halyard::vm::test
