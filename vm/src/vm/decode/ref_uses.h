// What decoded, unfused instructions do with the objects in ref registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vm/decode/words.h"

namespace halyard::vm {

enum class RefUse : uint8_t {
  reads,      // bytes of a buffer
  writes,     // bytes of a buffer
  looks,      // neither
  escapes,    // something else may refer to the object afterwards
  allocates,  // puts a new buffer in the register
  replaces,   // puts another object in the register
  clears      // leaves nothing in the register
};

// The use of the ref register that the instruction reads as its operand `number` of refs.
constexpr RefUse use_of_read(Op op, size_t number) {
  switch (elements_of(op).access) {
    case ElementAccess::load:
      return RefUse::reads;
    case ElementAccess::store:
    case ElementAccess::fill:
      return RefUse::writes;
    case ElementAccess::none:
      break;
  }
  switch (op) {
    case Op::buffer_copy:
      return number == 0 ? RefUse::reads : RefUse::writes;
    case Op::buffer_compare:
    case Op::buffer_hash:
    case Op::buffer_clone:
      return RefUse::reads;
    case Op::buffer_length:
    case Op::cmp_eq_ref:
    case Op::cmp_ne_ref:
    case Op::cmp_nz_ref:
      return RefUse::looks;
    default:
      return RefUse::escapes;
  }
}

// Calls `visit(register, use)` for each ref register of the instruction at `at`, in the order of effects.
// Functions have `refs` ref registers.
template <typename Visit>
void for_each_ref_use(std::span<const Word> words, std::span<const uint16_t> lists, uint32_t refs,
                      uint32_t at, Visit visit) {
  const Word* const word = &words[at];
  const auto use = [&](uint16_t reg, RefUse what) {
    if ((reg & kRegisterMask) < refs) visit(uint32_t{reg} & kRegisterMask, what);
  };
  const auto use_list = [&](uint32_t first, uint32_t count, RefUse what) {
    for (uint32_t i = 0; i < count; ++i)
      if (lists[first + i] & kRefBit) use(lists[first + i], what);
  };
  const auto use_call = [&] {
    const CallSite& site = call_site(word);
    use_list(site.arguments, site.argument_count, RefUse::escapes);
    use_list(site.results, site.result_count, RefUse::replaces);
  };
  const auto is = [&](DecodedOp op) { return word->op == static_cast<uint16_t>(op); };
  if (word->op >= kOpCount) {
    if (is(DecodedOp::call_import)) return use_call();
    if (!is(DecodedOp::copy_ref) && !is(DecodedOp::move_ref)) return;
    use(word->a, RefUse::escapes);
    return use(word->b, RefUse::replaces);
  }
  const Op op = static_cast<Op>(word->op);
  switch (op) {
    case Op::call:
      return use_call();
    case Op::return_:
      return use_list(word->wide(), word->a, RefUse::escapes);
    case Op::discard_refs:
      for (uint32_t i = 0; i < word->a; ++i) use(lists[word->wide() + i], RefUse::clears);
      return;
    case Op::const_ref_zero:
      return use(word->a, RefUse::clears);
    case Op::switch_ref:  // its values are in a list
      for (uint32_t ref = 0; ref < refs; ++ref) visit(ref, RefUse::escapes);
      break;
    default:
      break;
  }
  for (const bool writes : {false, true}) {
    size_t index = 0, number = 0;
    for (size_t i = 0; i < info(op).operand_count; ++i) {
      const Operand& operand = info(op).operands[i];
      if (operand.kind != OperandKind::reg) continue;
      const uint16_t reg = field(word, index++);
      if (operand.bank != Bank::ref || operand.writes != writes) continue;
      if (!writes) {
        use(reg, use_of_read(op, number++));
      } else {
        use(reg, op == Op::buffer_alloc || op == Op::buffer_clone ? RefUse::allocates : RefUse::replaces);
      }
    }
  }
}

}  // namespace halyard::vm
