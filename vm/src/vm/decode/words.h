// The layout of unfused decoded instructions: their length, their register fields, and whether compilers
// support them. The decoder and the compiler share these rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "vm/decode/code.h"
#include "vm/format/opcode_traits.h"
#include "vm/format/opcodes.h"

namespace halyard::vm {

// The size of an unfused instruction. A 32-bit operand other than a register is in the upper half of the
// first word; a 64-bit immediate or a pointer takes a word of its own.
struct WordShape {
  uint8_t registers = 0;  // register fields, in the order of the operands
  uint8_t words = 1;
};
inline constexpr auto kWordShapes = [] {
  std::array<WordShape, kOpCount> shapes;
  for (size_t op = 0; op < kOpCount; ++op) {
    bool extra = false;
    for (size_t i = 0; i < kOps[op].operand_count; ++i) {
      const Operand& operand = kOps[op].operands[i];
      if (operand.kind == OperandKind::reg) ++shapes[op].registers;
      extra |= (operand.kind == OperandKind::immediate && is_wide(operand.bank)) ||
               operand.kind == OperandKind::rodata || operand.kind == OperandKind::type;
    }
    shapes[op].words = static_cast<uint8_t>(1 + (shapes[op].registers > 3 ? 1 : 0) + (extra ? 1 : 0));
  }
  const auto set = [&](Op op, uint8_t words) { shapes[static_cast<size_t>(op)].words = words; };
  set(Op::call, kCallWords);
  set(Op::cond_br, 2);
  set(Op::fail, 2);
  for (const Op op : {Op::switch_i32, Op::switch_i64, Op::switch_f32, Op::switch_f64}) set(op, 2);
  set(Op::switch_ref, 3);
  return shapes;
}();

// The number of words of the instruction that begins with `word`.
inline uint32_t word_count(const Word& word) {
  if (word.op >= kOpCount)
    return word.op == static_cast<uint16_t>(DecodedOp::call_import) ? kImportCallWords : 1;
  if (word.op == static_cast<uint16_t>(Op::br_table)) return 2 + word.wide();
  return kWordShapes[word.op].words;
}

// The number of leading words of the instruction that hold no address; the following words may hold
// addresses.
inline uint32_t plain_word_count(const Word& word) {
  const uint32_t words = word_count(word);
  if (word.op >= kOpCount) return word.op == static_cast<uint16_t>(DecodedOp::call_import) ? 1 : words;
  const Op op = static_cast<Op>(word.op);
  if (op == Op::call || op == Op::fail) return 1;
  for (size_t i = 0; i < info(op).operand_count; ++i) {
    const OperandKind kind = info(op).operands[i].kind;
    if (kind == OperandKind::rodata || kind == OperandKind::type) return words - 1;
  }
  return words;
}

// The register of the operand with this index among the register operands.
inline uint16_t field(const Word* instruction, size_t index) {
  switch (index) {
    case 0:
      return instruction->a;
    case 1:
      return instruction->b;
    case 2:
      return instruction->c;
    case 3:
      return instruction[1].op;
    case 4:
      return instruction[1].a;
    case 5:
      return instruction[1].b;
    default:
      return instruction[1].c;
  }
}

// Calls `visit` with the word of each possible successor of the instruction at word `at`.
template <typename Visit>
void for_each_successor(std::span<const Word> words, uint32_t at, Visit visit) {
  const Word* const word = &words[at];
  const auto to = [&](int32_t distance) {
    visit(static_cast<uint32_t>(static_cast<int64_t>(at) + distance));
  };
  if (word->op == static_cast<uint16_t>(DecodedOp::end) || word->op == static_cast<uint16_t>(Op::return_))
    return;
  if (word->op == static_cast<uint16_t>(Op::br) || word->op == static_cast<uint16_t>(Op::yield))
    return to(word->distance());
  if (word->op == static_cast<uint16_t>(Op::cond_br)) {
    to(word[1].distance_if());
    return to(word[1].distance_else());
  }
  if (word->op == static_cast<uint16_t>(Op::br_table)) {
    for (uint32_t i = 0; i <= word->wide(); ++i) to(word[1 + i].distance());
    return;
  }
  visit(at + word_count(*word));
}

// Calls `visit(slot, writes)` for each value slot that the instruction reads or writes. For a call, counts
// each argument as a read of a pair, because the argument may be one, and results as not written.
template <typename Visit>
void for_each_value(const Word* word, std::span<const uint16_t> lists, Visit visit) {
  const auto value = [&](uint16_t reg, bool wide, bool writes) {
    visit(uint32_t{reg}, writes);
    if (wide) visit(reg + 1u, writes);
  };
  const auto read_list = [&](uint32_t first, uint32_t count, bool maybe_pairs) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint16_t entry = lists[first + i];
      if (entry & kRefBit) continue;
      value(entry & kRegisterMask, maybe_pairs || (entry & kWideBit), false);
    }
  };
  if (word->op >= kOpCount) {
    switch (static_cast<DecodedOp>(word->op)) {
      case DecodedOp::move_32:
        value(word->a, false, false);
        return value(word->b, false, true);
      case DecodedOp::move_64:
        value(word->a, true, false);
        return value(word->b, true, true);
      case DecodedOp::return_32:
        return value(word->a, false, false);
      case DecodedOp::return_64:
        return value(word->a, true, false);
      case DecodedOp::call_import: {
        const CallSite& site = call_site(word);
        return read_list(site.arguments, site.argument_count, true);
      }
      default:
        return;
    }
  }
  const Op op = static_cast<Op>(word->op);
  if (op == Op::call) {
    const CallSite& site = call_site(word);
    return read_list(site.arguments, site.argument_count, true);
  }
  if (op == Op::return_) return read_list(word->wide(), word->a, true);
  if (op == Op::br || op == Op::yield || op == Op::discard_refs) return;
  const bool is_switch =
      op == Op::switch_i32 || op == Op::switch_i64 || op == Op::switch_f32 || op == Op::switch_f64;
  size_t index = 0;
  for (const bool writes : {false, true}) {
    index = 0;
    for (size_t i = 0; i < info(op).operand_count; ++i) {
      const Operand& operand = info(op).operands[i];
      if (operand.kind != OperandKind::reg) continue;
      const size_t at = index++;
      if (operand.bank == Bank::ref || operand.bank == Bank::none || operand.writes != writes) continue;
      value(field(word, at), is_wide(operand.bank), writes);
    }
    if (is_switch && !writes)
      read_list(word[1].wide(), word[1].low(), op == Op::switch_i64 || op == Op::switch_f64);
  }
}

// Whether a compiler supports the instruction. Other instructions leave compiled code: the interpreter
// executes them, and the next instruction is an entry.
constexpr bool is_compiled(Op op) {
  if (elements_of(op).access == ElementAccess::fill) return false;
  switch (op) {
    case Op::global_load_ref:
    case Op::global_store_ref:
    case Op::global_load_indirect_ref:
    case Op::global_store_indirect_ref:
    case Op::const_ref_rodata:
    case Op::list_alloc:
    case Op::list_reserve:
    case Op::list_resize:
    case Op::list_get_ref:
    case Op::list_set_ref:
    case Op::select_ref:
    case Op::switch_i32:
    case Op::switch_i64:
    case Op::switch_f32:
    case Op::switch_f64:
    case Op::switch_ref:
    case Op::cast_any_ref:
    case Op::call:
    case Op::call_variadic:
    case Op::call_yieldable:
    case Op::call_variadic_yieldable:
    case Op::return_:
    case Op::fail:
    case Op::yield:
    case Op::import_resolved:
    case Op::buffer_alloc:
    case Op::buffer_clone:
    case Op::buffer_copy:
    case Op::buffer_compare:
    case Op::buffer_hash:
    case Op::assign_ref:
      return false;
    default:
      return true;
  }
}

// Whether the call is a recursive call that compiled code may perform, if it may perform any: the call has as
// many arguments and results as the convention.
inline bool is_own_call(uint32_t function, size_t arguments, size_t results, const CallSite& site) {
  return !site.is_import && site.function == function && site.argument_count == arguments &&
         site.result_count == results;
}

// Identifies the format of decoded code: a hash of the opcodes, their operands and the numbers of decoded
// instructions. Builds with different numbers are incompatible.
inline constexpr uint64_t kCodeFormat = [] {
  uint64_t hash = 14695981039346656037u;
  const auto add = [&](uint64_t part) { hash = (hash ^ part) * 1099511628211u; };
  for (const OpInfo& op : kOps) {
    for (const char c : op.mnemonic()) add(static_cast<uint8_t>(c));
    for (size_t i = 0; i < op.operand_count; ++i) {
      add(static_cast<uint64_t>(op.operands[i].kind));
      add(static_cast<uint64_t>(op.operands[i].bank) * 2 + (op.operands[i].writes ? 1 : 0));
    }
  }
  for (size_t op = 0; op < kOpCount; ++op) add(is_compiled(static_cast<Op>(op)) ? 1 : 0);
  add(static_cast<uint64_t>(DecodedOp::enter_compiled));
  add(static_cast<uint64_t>(DecodedOp::kCount));
  add(kCallWords);
  add(sizeof(CallSite));
  return hash;
}();

}  // namespace halyard::vm
