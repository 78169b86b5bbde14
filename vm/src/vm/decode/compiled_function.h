// CompiledFunction: machine code of a function, destroyed with the function. Entered by enter_compiled words.
#pragma once

#include <utility>

#include "vm/decode/jit_abi.h"

namespace halyard::vm {

class CompiledFunction {
 public:
  CompiledFunction() = default;
  CompiledFunction(halyard_jit_run_fn run, void* handle, void (*release)(void*))
      : run_(run), handle_(handle), release_(release) {}
  CompiledFunction(const CompiledFunction&) = delete;
  CompiledFunction& operator=(const CompiledFunction&) = delete;
  CompiledFunction(CompiledFunction&& other) noexcept { swap(other); }
  CompiledFunction& operator=(CompiledFunction&& other) noexcept {
    swap(other);
    return *this;
  }
  ~CompiledFunction() {
    if (handle_) release_(handle_);
  }

  explicit operator bool() const { return run_ != nullptr; }
  uint32_t run(uint32_t* values, void** refs, const uint32_t* stop, uint8_t* globals,
               halyard_jit_stack_t& stack, uint32_t entry) const {
    return run_(values, refs, stop, globals, &stack, entry);
  }

 private:
  void swap(CompiledFunction& other) noexcept {
    std::swap(run_, other.run_);
    std::swap(handle_, other.handle_);
    std::swap(release_, other.release_);
  }

  halyard_jit_run_fn run_ = nullptr;
  void* handle_ = nullptr;
  void (*release_)(void*) = nullptr;
};

}  // namespace halyard::vm
