// What opcodes.inc says of opcodes besides their encoding, as tables to look up: which ones call, jump,
// commute.
#pragma once

#include <array>
#include <cstdint>

#include "vm/format/opcodes.h"

namespace halyard::vm {

// What each means: opcodes.inc, TRAITS.
enum OpTraits : uint16_t {
  JUMPS = 1 << 0,
  CALLS = 1 << 1,
  SUSPENDS = 1 << 2,
  PICKS = 1 << 3,
  DIAGNOSTIC = 1 << 4,
  CONSTANT = 1 << 5,
  TAKES = 1 << 6,
  SHIFTS = 1 << 7,
  COMMUTES = 1 << 8,
};

inline constexpr auto kOpTraits = [] {
  std::array<uint16_t, kOpCount> traits = {};
#define OP(set, byte, identifier, mnemonic, since, flags, operands)
#define TRAITS(identifier, bits) traits[static_cast<size_t>(Op::identifier)] = bits;
#include "vm/format/opcodes.inc"
#undef TRAITS
#undef OP
  return traits;
}();

constexpr bool has_trait(Op op, OpTraits trait) { return kOpTraits[static_cast<size_t>(op)] & trait; }

// The opcode itself where no other one is named.
inline constexpr auto kSameBits = [] {
  std::array<Op, kOpCount> ops = {};
  for (size_t i = 0; i < kOpCount; ++i) ops[i] = static_cast<Op>(i);
#define OP(set, byte, identifier, mnemonic, since, flags, operands)
#define SAME_BITS(identifier, other) ops[static_cast<size_t>(Op::identifier)] = Op::other;
#include "vm/format/opcodes.inc"
#undef SAME_BITS
#undef OP
  return ops;
}();

// Op::kCount where there is none.
inline constexpr auto kNegated = [] {
  std::array<Op, kOpCount> ops;
  ops.fill(Op::kCount);
#define OP(set, byte, identifier, mnemonic, since, flags, operands)
#define NEGATED(identifier, other) ops[static_cast<size_t>(Op::identifier)] = Op::other;
#include "vm/format/opcodes.inc"
#undef NEGATED
#undef OP
  return ops;
}();

}  // namespace halyard::vm
