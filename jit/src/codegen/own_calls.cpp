// Derives the types of a function's results from its return instructions, because the host does not pass
// them.
#include "codegen/own_calls.h"

#include <algorithm>

namespace halyard::jit {

using vm::DecodedOp;
using vm::Op;
using vm::Word;

bool OwnCalls::returns(const Word* word) {
  return word->op == static_cast<uint16_t>(Op::return_) ||
         word->op == static_cast<uint16_t>(DecodedOp::return_none) ||
         word->op == static_cast<uint16_t>(DecodedOp::return_32) ||
         word->op == static_cast<uint16_t>(DecodedOp::return_64);
}

bool OwnCalls::is_argument(uint32_t slot) const {
  return std::ranges::any_of(arguments_, [&](uint16_t argument) {
    const uint32_t first = argument & vm::kRegisterMask;
    return slot == first || ((argument & vm::kWideBit) && slot == first + 1);
  });
}

std::vector<uint16_t> OwnCalls::returned(const Word* word, const uint16_t* lists) {
  if (word->op == static_cast<uint16_t>(DecodedOp::return_32)) return {word->a};
  if (word->op == static_cast<uint16_t>(DecodedOp::return_64))
    return {static_cast<uint16_t>(word->a | vm::kWideBit)};
  if (word->op != static_cast<uint16_t>(Op::return_)) return {};
  return {lists + word->wide(), lists + word->wide() + word->a};
}

OwnCalls::OwnCalls(const halyard_jit_function_t& function) {
  if (!function.own_calls || function.ref_slots != 0) return;
  // Results are stored in the callee's frame temporarily.
  if (function.frame_bytes < function.layout->frame_bytes + 8 * function.result_count) return;
  ordinal_ = function.ordinal;
  arguments_ = {function.arguments, function.argument_count};
  results_ = function.result_count;
  for (const uint16_t argument : arguments_)
    if (argument & vm::kRefBit) return;
  const std::span<const Word> words(static_cast<const Word*>(function.words), function.word_count);
  for (uint32_t at = 0; at < words.size(); at += vm::word_count(words[at])) {
    if (words[at].op != static_cast<uint16_t>(Op::return_)) continue;
    const std::vector<uint16_t> registers = returned(&words[at], function.lists);
    if (registers.size() != results_) return;
    std::vector<bool> wide;
    for (const uint16_t reg : registers) wide.push_back((reg & vm::kWideBit) != 0);
    if (allowed_ && wide != wide_) {
      allowed_ = false;
      return;
    }
    wide_ = wide;
    allowed_ = true;
  }
}

}  // namespace halyard::jit
