// PlainFunction: a function without addresses. The code generator sees this alone, so code depends on nothing
// that is not in the key under which the cache keeps it.
#pragma once

#include <string>
#include <vector>

#include "front/digest.h"
#include "vm/decode/code.h"
#include "vm/decode/jit_abi.h"

namespace halyard::jit {

class PlainFunction {
 public:
  // Refers to the name, the lists, the arguments and the layout of `function`.
  explicit PlainFunction(const halyard_jit_function_t& function);
  PlainFunction(const PlainFunction&) = delete;
  PlainFunction& operator=(const PlainFunction&) = delete;

  // Why it is not compiled, whatever it does: it is too large, or has nothing that would be. Else empty.
  std::string refusal() const;

  // Everything but the name.
  void add_to(Digester& digester) const;

  const halyard_jit_function_t& get() const { return function_; }

 private:
  std::vector<vm::Word> words_;  // of a call: the address of a site below
  std::vector<vm::CallSite> sites_;
  std::vector<uint32_t> calls_;  // the word of each site
  halyard_jit_function_t function_;
};

}  // namespace halyard::jit
