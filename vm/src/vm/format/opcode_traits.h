// The properties of opcodes besides their encoding (calls, branches, commutes, and so on): lookup tables
// generated from opcodes.inc.
#pragma once

#include <array>
#include <cstdint>

#include "vm/format/opcodes.h"

namespace halyard::vm {

// opcodes.inc, TRAITS, explains them.
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
  RETURNS = 1 << 9,
  FAILS = 1 << 10,
  ELEMENT_TYPE = 1 << 11,
  NAMES_IMPORT = 1 << 12,
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

// Whether the opcode has at least one of `traits`.
constexpr bool has_trait(Op op, int traits) { return (kOpTraits[static_cast<size_t>(op)] & traits) != 0; }

// The prefix of each set; Op::kCount for CORE, which has none.
inline constexpr auto kPrefixes = [] {
  std::array<Op, 3> prefixes;
  prefixes.fill(Op::kCount);
#define OP(set, byte, identifier, mnemonic, since, flags, operands)
#define SELECTS(identifier, set) prefixes[static_cast<size_t>(OpSet::set)] = Op::identifier;
#include "vm/format/opcodes.inc"
#undef SELECTS
#undef OP
  return prefixes;
}();

constexpr Op prefix_of(OpSet set) { return kPrefixes[static_cast<size_t>(set)]; }
// The set that a prefix selects; CORE for other opcodes.
constexpr OpSet selected_set(Op op) {
  for (const OpSet set : {OpSet::F32, OpSet::F64})
    if (op == prefix_of(set)) return set;
  return OpSet::CORE;
}

// Maps an opcode to one with the same effect on the bits; to itself if there is none.
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

// Maps a comparison to its negation; Op::kCount if there is none.
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

enum class ElementAccess : uint8_t { none, load, store, fill };
struct Elements {
  ElementAccess access = ElementAccess::none;
  uint8_t bytes = 0;  // of each
};
inline constexpr auto kElements = [] {
  std::array<Elements, kOpCount> elements = {};
#define OP(set, byte, identifier, mnemonic, since, flags, operands)
#define ELEMENTS(identifier, access, bytes) \
  elements[static_cast<size_t>(Op::identifier)] = {ElementAccess::access, bytes};
#include "vm/format/opcodes.inc"
#undef ELEMENTS
#undef OP
  return elements;
}();
// How the opcode accesses elements of a buffer.
constexpr Elements elements_of(Op op) { return kElements[static_cast<size_t>(op)]; }

}  // namespace halyard::vm
