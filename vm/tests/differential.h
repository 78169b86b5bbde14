// Runs a generated program on the machine and on the reference machine, each with objects of its own, and
// says where they differ: in the status of a call, its results, what globals and arguments hold afterwards,
// down to the contents of lists and buffers and which of them are the same, or in what is left alive.
#pragma once

#include <array>
#include <string>

#include "program_generator.h"
#include "vm/module/bytecode_module.h"

namespace halyard::vm::test {

struct Comparison {
  std::string difference;         // empty: there is none
  std::string_view not_compared;  // why nothing could be said after some call; empty: everything was
  std::array<uint64_t, kOpCount> executed = {};
  std::array<uint32_t, 32> codes = {};  // how the calls ended
};

// Without `fuse`, the machine fuses no instructions. Built with HALYARD_TEST_COMPILED, it runs as machine
// code what the compiler takes.
Comparison compare_machines(const Program& program, bool fuse = true);

// The same for any module that passes the verifier, however odd: calls every export once. Nothing is compared
// where one of its functions could make a list hold itself, or where its imports are not those of generated
// programs.
Comparison compare_exports(const Ref<BytecodeModule>& module, Choices& choices);

// What types modules may name: those of the machine, of the probes of generated programs, and the names that
// compiled modules use.
const TypeRegistry& known_types();

// The program for people to read.
std::string describe(const Program& program);

}  // namespace halyard::vm::test
