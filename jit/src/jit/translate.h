// From decoded code to LLVM's intermediate representation, one word after another.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "vm/compile/jit_abi.h"

namespace halyard::jit {

// Names of metadata. A branch that leaves compiled code where an access would be out of range, and one that
// leaves it where the work is to stop. What is wanted is the first target of both.
inline constexpr char kCheck[] = "halyard.check";
inline constexpr char kStop[] = "halyard.stop";

// Symbols. The function itself, and of the host: put_ref, the types of buffers and lists, and the function
// that does the work of an opcode.
inline constexpr char kFunction[] = "halyard_run";
inline constexpr char kPutRef[] = "halyard_put_ref";
inline constexpr char kBufferType[] = "halyard_buffer_type";
inline constexpr char kListType[] = "halyard_list_type";
inline std::string helper_name(size_t op) { return "halyard_op_" + std::to_string(op); }

// Puts the function into the module as kFunction, with the type halyard_jit_run_fn, for a processor with
// these features. Why it cannot, else empty.
std::string translate(const halyard_jit_function_t& function, llvm::Module& module, llvm::StringRef features);

}  // namespace halyard::jit
