// Engine: the LLVM instances of this library; one Engine for the process. Each compiling thread uses its own
// instance, so a function that takes long to compile does not delay other threads.
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

  // Compiles a function to an image. False: the function stays interpreted, for `reason`; also if LLVM does
  // not know this processor. Any thread.
  bool generate(const halyard_jit_function_t& function, std::string& image, std::string& reason);
  // Produces the texts of halyard_jit_explain instead.
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
  size_t made_ = 0;  // the largest number of threads that compiled at once
};

}  // namespace halyard::jit
