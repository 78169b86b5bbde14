// Compiles a function to code in memory, with the cache or the code generator.
#pragma once

#include <string>

#include "vm/compile/jit_explain.h"
#include "vm/decode/jit_abi.h"

namespace halyard::jit {

// See halyard_jit_table_t. False: the function is not compiled, for `reason`. Any thread.
bool compile(const halyard_jit_function_t& function, const halyard_jit_host_t& host, const char* cache,
             halyard_jit_code_t& code, std::string& reason);
void release(void* handle);
void get_stats(halyard_jit_stats_t& stats);

// See halyard_jit_explain_fn.
bool explain(const halyard_jit_function_t& function, const halyard_jit_explanation_t& explanation,
             std::string& reason);

}  // namespace halyard::jit
