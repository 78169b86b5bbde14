// Complete programs that use the C ABI, from creating the instance to reading the result and releasing
// everything. The fault tests run them repeatedly. Every ABI call runs with the failing heap (allocations.h).
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
  std::string file;  // in this project
  std::string function;
  std::vector<std::string> inputs;  // in the form of --input of vm-run
  std::string expected;             // the only result as text
};
// Two programs that dispatch, and programs with queue work of every kind.
const std::vector<Program>& programs();

// Assembled only once.
std::string module_of(const Program& program);

// The outcome of a run.
struct Outcome {
  halyard_status_code_t code = HALYARD_OK;
  std::string text;  // of the result or the status; empty without memory for it
};

// The number of allocations that the outcome itself holds.
int64_t allocations_of(const Outcome& outcome);

const FaultyControls& faulty();
// Lets "faulty" wrap that kind of the driver from now on.
void wrap(const std::string& driver, const std::string& kind);

// Creates an instance, opens the devices, loads, calls, reads the result, and releases everything.
Outcome run(const Program& program, const std::string& module, const std::vector<std::string>& devices);

// Leaked handles of the faulty driver, by name; "" if there are none.
std::string handles_left();

}  // namespace faults
