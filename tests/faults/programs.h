// Whole programs, from the instance to the result and back, through the C ABI: what the tests of faults run
// over and over. Every call of the ABI is made with the heap armed (allocations.h).
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

// What became of it.
struct Outcome {
  halyard_status_code_t code = HALYARD_OK;
  std::string text;  // of the result, or of the status; empty where there was no memory for it
};

// Allocations that the outcome itself holds.
int64_t allocations_of(const Outcome& outcome);

const FaultyControls& faulty();
// "faulty" stands for that device of the driver from now on.
void wrap(const std::string& driver, const std::string& kind);

// Makes an instance, opens the devices, loads, calls, reads the result, and releases all of it.
Outcome run(const Program& program, const std::string& module, const std::vector<std::string>& devices);

// Handles of the faulty driver that nobody has given back, by name; "" where there are none.
std::string handles_left();

}  // namespace faults
