// Runs a generated program on the machine and on the reference machine, each with objects of its own, and
// says where they differ: in the status of a call, its results, what globals and arguments hold afterwards,
// down to the contents of lists and buffers and which of them are the same, or in what is left alive.
#pragma once

#include <array>
#include <string>

#include "program_generator.h"

namespace halyard::vm::test {

struct Comparison {
  std::string difference;         // empty: there is none
  std::string_view not_compared;  // why nothing could be said after some call; empty: everything was
  std::array<uint64_t, kOpCount> executed = {};
  std::array<uint32_t, 32> codes = {};  // how the calls ended
};

Comparison compare_machines(const Program& program);

// The program for people to read.
std::string describe(const Program& program);

}  // namespace halyard::vm::test
