// One function of a generated program: blocks in any order with edges that end, and instructions in them.
#pragma once

#include <string>
#include <vector>

#include "program_generator.h"

namespace halyard::vm::test {

// What a function takes and gives. Without a convention, a call passes one register for each entry.
struct Signature {
  std::vector<Kind> arguments;
  std::vector<Kind> results;
  bool has_convention = true;

  std::string convention() const;
};

// What can be called.
struct Callee {
  uint32_t operand;  // as in the instruction
  Signature signature;
  std::string_view span = {};  // after the arguments, of a native function: "rI"
  bool defers = false;
  bool bytecode = true;
};

// The types that every generated module has, in this order.
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

// What all functions of a module share.
struct ModulePlan {
  uint32_t version = 17;
  uint32_t global_bytes = 0;  // the first four count the calls of this module
  std::vector<Kind> global_refs;
  uint32_t rodata = 0;
  std::vector<Callee> callees;
  std::vector<uint32_t> optional_imports;  // operands of those that nobody provides
};

// How a function keeps the program from running for ever: the one that is called from outside sets the count
// of calls to zero, the others count and do nothing once it is large.
enum class Fuel { resets, counts };

FunctionParts generate_function(Choices& choices, const ModulePlan& plan, const Signature& signature,
                                Fuel fuel);

}  // namespace halyard::vm::test
