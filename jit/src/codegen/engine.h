// Engine: LLVM as this library uses it. One for the process, made by the first function that is compiled.
#pragma once

#include <string>

#include "vm/compile/jit_explain.h"

namespace halyard::jit {

class Engine {
 public:
  // Null where LLVM does not know this processor; `reason` says what it said.
  static Engine* get(std::string& reason);

  // Any thread. False: the function stays interpreted, and `reason` says why.
  bool generate(const halyard_jit_function_t& function, std::string& image, std::string& reason);
  // The texts of halyard_jit_explain instead.
  bool explain(const halyard_jit_function_t& function, const halyard_jit_explanation_t& explanation,
               std::string& reason);

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

 private:
  struct Parts;
  explicit Engine(Parts* parts) : parts_(parts) {}

  Parts* parts_;  // never deleted
};

}  // namespace halyard::jit
