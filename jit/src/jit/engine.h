// Engine: LLVM as this library uses it. One for the process, made by the first function that is compiled.
#pragma once

#include <string>

#include "vm/compile/jit_explain.h"

namespace halyard::jit {

class Engine {
 public:
  // Null where LLVM does not know this processor; `reason` says what it said.
  static Engine* get(std::string& reason);

  // Counters of this process. Thread-safe.
  static void stats(halyard_jit_stats_t& stats);

  // Any thread. False: the function stays interpreted, and `reason` says why.
  bool compile(const halyard_jit_function_t& function, halyard_jit_code_t& code, std::string& reason);
  // The same without linking: the texts of halyard_jit_explain.
  bool explain(const halyard_jit_function_t& function, const halyard_jit_explanation_t& explanation,
               std::string& reason);
  // Gives back what compile() gave as the code's handle, and the memory of the code with it.
  void release(void* handle);

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

 private:
  struct Parts;
  bool make(const halyard_jit_function_t& function, halyard_jit_code_t& code, std::string& reason);
  explicit Engine(Parts* parts) : parts_(parts) {}

  Parts* parts_;  // never deleted: code of it may run as long as the process does
};

}  // namespace halyard::jit
