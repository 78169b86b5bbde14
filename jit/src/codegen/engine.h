// Engine: LLVM as this library uses it. One for the process. Threads do not wait for each other: each has
// parts of its own while it compiles, so that a function which takes long holds up no other.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "vm/compile/jit_explain.h"

namespace halyard::jit {

class Engine {
 public:
  static Engine& get();

  // Any thread. False: the function stays interpreted, and `reason` says why; also where LLVM does not know
  // this processor.
  bool generate(const halyard_jit_function_t& function, std::string& image, std::string& reason);
  // The texts of halyard_jit_explain instead.
  bool explain(const halyard_jit_function_t& function, const halyard_jit_explanation_t& explanation,
               std::string& reason);

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

 private:
  struct Parts;
  class Borrowed;
  Engine();

  std::mutex mutex_;
  std::vector<std::unique_ptr<Parts>> idle_;
  size_t made_ = 0;  // as many as threads have compiled at once
};

}  // namespace halyard::jit
