// PlainFunction: a function without addresses. The code generator sees only this, so its code depends on
// nothing outside the cache key.
#pragma once

#include <string>
#include <vector>

#include "front/digest.h"
#include "vm/decode/code.h"
#include "vm/decode/jit_abi.h"

namespace halyard::jit {

class PlainFunction {
 public:
  // Keeps pointers to the name, the lists, the arguments and the layout of `function`.
  explicit PlainFunction(const halyard_jit_function_t& function);
  PlainFunction(const PlainFunction&) = delete;
  PlainFunction& operator=(const PlainFunction&) = delete;

  // Why the function is not compiled, independently of LLVM: it is too large, or has nothing to compile.
  // Empty otherwise.
  std::string refusal() const;

  // Adds everything but the name to the cache key.
  void add_to(Digester& digester) const;

  const halyard_jit_function_t& get() const { return function_; }

 private:
  std::vector<vm::Word> words_;  // call instructions contain the address of an element of sites_
  std::vector<vm::CallSite> sites_;
  std::vector<uint32_t> calls_;  // the word with each site's address
  halyard_jit_function_t function_;
};

}  // namespace halyard::jit
