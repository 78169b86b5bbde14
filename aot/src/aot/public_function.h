// The functions that a program offers: exported functions with types of C. Tensors are structs over bytes of
// the caller or, for results, of the state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "aot/plan.h"

namespace halyard::aot {

struct PublicFunction {
  std::string_view name;  // of the export
  std::string symbol;
  std::string call;        // of the function of bytecode: its name and first arguments
  bool is_direct = false;  // it returns its result
  bool is_bounded = false;
  Types types;            // without the fences of an asynchronous function
  bool is_async = false;  // the callee also takes a fence to wait for and one to signal

  size_t tensor_results() const;
  std::string prototype(std::string_view prefix) const;
  std::string definition(std::string_view prefix, bool has_tensors) const;
  // For the program of --main: a function that takes and gives vm_values.
  std::string caller(size_t index) const;
};

// The exports that others may call, and in `initializer` the function to call first, if there is one.
// UNIMPLEMENTED: a function takes objects that are no tensors.
Result<std::vector<PublicFunction>> public_functions(const Plan& plan, std::string& initializer);

// Types of functions outside of the program.
std::string outside_prototype(std::string_view begin, const Types& types, std::string_view prefix);

}  // namespace halyard::aot
