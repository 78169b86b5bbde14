// OwnCalls: recursive calls that compiled code performs without the interpreter, in consecutive frames. Only
// for functions without refs.
#pragma once

#include <span>
#include <vector>

#include "vm/decode/jit_abi.h"
#include "vm/decode/words.h"

namespace halyard::jit {

class OwnCalls {
 public:
  explicit OwnCalls(const halyard_jit_function_t& function);

  explicit operator bool() const { return allowed_; }
  bool is_call(const vm::Word* word) const {
    return allowed_ && word->op == static_cast<uint16_t>(vm::Op::call) &&
           vm::is_own_call(ordinal_, arguments_.size(), results_, vm::call_site(word));
  }
  // The registers of the arguments; pairs have vm::kWideBit.
  std::span<const uint16_t> arguments() const { return arguments_; }
  bool is_argument(uint32_t slot) const;
  // Whether each result is a pair.
  const std::vector<bool>& wide_results() const { return wide_; }
  // The registers that the instruction returns, pairs with vm::kWideBit; empty if it does not return.
  static std::vector<uint16_t> returned(const vm::Word* word, const uint16_t* lists);
  static bool returns(const vm::Word* word);

 private:
  bool allowed_ = false;
  uint32_t ordinal_ = 0;
  std::span<const uint16_t> arguments_;
  size_t results_ = 0;
  std::vector<bool> wide_;
};

}  // namespace halyard::jit
