// Generates one function of a program: blocks in any order with terminating edges, and instructions in them.
#pragma once

#include <string>
#include <vector>

#include "program_generator.h"

namespace halyard::vm::test {

// Arguments and results of a function. Without a convention, a call passes one register for each entry.
struct Signature {
  std::vector<Kind> arguments;
  std::vector<Kind> results;
  bool has_convention = true;

  std::string convention() const;
};

// A function that can be called.
struct Callee {
  uint32_t operand;  // of the call instruction
  Signature signature;
  std::string_view span = {};  // after the arguments of a native function: "rI"
  bool defers = false;
  bool bytecode = true;
};

// The types of every generated module, in this order.
enum TypeOrdinal : uint32_t {
  kTypeI8,
  kTypeI16,
  kTypeI32,
  kTypeI64,
  kTypeF32,
  kTypeF64,
  kTypeOpaque,
  kTypeBuffer,
  kTypeListOfI32,
  kTypeListOfAny,
  kTypeProbe,
  kTypeCount
};

std::vector<std::string> module_types();

// Shared by all functions of a module.
struct ModulePlan {
  uint32_t version = 17;
  uint32_t global_bytes = 0;  // the first four count the calls in this module
  std::vector<Kind> global_refs;
  uint32_t rodata = 0;
  std::vector<Callee> callees;
  std::vector<uint32_t> optional_imports;  // operands of those without a provider
};

// How a function limits the run time of a program: the function called from outside resets the count of
// calls; the others increment it and do nothing once it is large.
enum class Fuel { resets, counts };

FunctionParts generate_function(Choices& choices, const ModulePlan& plan, const Signature& signature,
                                Fuel fuel);

}  // namespace halyard::vm::test
