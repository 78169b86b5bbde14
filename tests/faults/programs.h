// Whole programs through the C ABI, from the instance to the result and the release, which the fault tests
// run repeatedly. Every ABI call runs with the failing heap (allocations.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "faulty_driver.h"
#include "halyard/halyard.h"

namespace faults {

struct Program {
  std::string name;
  std::string file;  // of this project
  std::string function;
  std::vector<std::string> inputs;  // as vm-run takes them
  std::string expected;             // the only result as text
};
// Two that dispatch, and queue work of every kind.
const std::vector<Program>& programs();

// Assembled once.
std::string module_of(const Program& program);

// The outcome of a run.
struct Outcome {
  halyard_status_code_t code = HALYARD_OK;
  std::string text;  // of the result or the status; empty if there was no memory for it
};

// Allocations that the outcome itself holds.
int64_t allocations_of(const Outcome& outcome);

const FaultyControls& faulty();
// From now on "faulty" wraps that device of the driver.
void wrap(const std::string& driver, const std::string& kind);

// Creates an instance, opens the devices, loads, calls, reads the result, and releases everything.
Outcome run(const Program& program, const std::string& module, const std::vector<std::string>& devices);

// Leaked handles of the faulty driver, by name; "" if there are none.
std::string handles_left();

}  // namespace faults
