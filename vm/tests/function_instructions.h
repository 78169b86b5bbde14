// Generates the instructions in blocks. Most are generated from their row in the opcode table. Instructions
// whose operands must match are generated together with the instructions that prepare the operands.
#pragma once

#include "function_registers.h"

namespace halyard::vm::test {

// Opcodes of the table with the same form.
template <typename Predicate>
std::vector<Op> ops_where(Predicate predicate) {
  std::vector<Op> found;
  for (size_t i = 0; i < kOpCount; ++i) {
    if (predicate(kOps[i])) found.push_back(static_cast<Op>(i));
  }
  return found;
}

inline bool only_values(const OpInfo& op) {
  if (op.operand_count == 0 || op.terminator()) return false;
  if (op.mnemonic().find("indirect") != op.mnemonic().npos) return false;  // their offsets need care
  return std::all_of(op.operands.begin(), op.operands.begin() + op.operand_count, [](const Operand& operand) {
    switch (operand.kind) {
      case OperandKind::reg:
      case OperandKind::reg_list:
      case OperandKind::immediate:
        return is_value_bank(operand.bank);
      case OperandKind::global_bytes:
        return true;
      default:
        return false;
    }
  });
}

inline std::vector<Op> ops_named(std::string_view prefix) {
  return ops_where([&](const OpInfo& op) { return op.mnemonic().starts_with(prefix); });
}

// The opcodes of a bytecode version that are generated in the same way.
struct OpGroups {
  explicit OpGroups(uint32_t version) {
    for (std::vector<Op>* ops :
         {&values, &compares, &integer_binary, &buffer_access, &buffer_fill, &list_value, &global_indirect})
      std::erase_if(*ops, [&](Op op) { return info(op).since > version; });
  }

  std::vector<Op> values = ops_where(only_values);
  std::vector<Op> compares = ops_where(
      [](const OpInfo& op) { return op.mnemonic().starts_with("cmp.") && op.operands[0].bank != Bank::ref; });
  std::vector<Op> integer_binary = ops_where([](const OpInfo& op) {
    return op.set == OpSet::CORE && only_values(op) && op.operand_count == 3 &&
           op.operands[0].kind == OperandKind::reg && op.operands[0].bank == op.operands[2].bank;
  });
  std::vector<Op> buffer_access = [] {
    std::vector<Op> ops = ops_named("buffer.load.");
    for (const Op op : ops_named("buffer.store.")) ops.push_back(op);
    return ops;
  }();
  std::vector<Op> buffer_fill = ops_named("buffer.fill.");
  std::vector<Op> list_value = ops_where([](const OpInfo& op) {
    return (op.mnemonic().starts_with("list.get.") || op.mnemonic().starts_with("list.set.")) &&
           !op.mnemonic().ends_with("ref");
  });
  std::vector<Op> global_indirect = ops_where([](const OpInfo& op) {
    return op.mnemonic().starts_with("global.") && op.mnemonic().find("indirect") != op.mnemonic().npos &&
           !op.mnemonic().ends_with("ref");
  });
};
inline const OpGroups& groups(uint32_t version) {
  static const OpGroups all[] = {OpGroups(15), OpGroups(16), OpGroups(17)};
  return all[version - 15];
}

struct InstructionWriter : RegisterPlan {
  std::vector<std::pair<uint32_t, uint32_t>> fixups = {};  // pc of a branch target, block

  void target(uint32_t block) {
    fixups.emplace_back(code.pc(), block);
    code.u32(0);
  }
  // ---- instructions

  void instruction() {
    switch (choices.below(21)) {
      case 20:
        return chain();
      case 0:
      case 1:
      case 2:
      case 3:
        return value_instruction(choices.pick(groups(plan.version).values));
      case 4:
      case 5:
        return with_constant();
      case 6:
        return compare_and_use();
      case 7:
      case 8:
        return buffer_access();
      case 9:
        return buffer_range();
      case 10:
      case 11:
        return list_values();
      case 12:
        return list_refs();
      case 13:
        return ref_moves();
      case 14:
        return global_indirect();
      case 15:
        return global_refs();
      case 16:
      case 17:
        call(false);
        return;
      case 18: {
        const Kind kind = choices.one_of({Kind::buffer, Kind::values, Kind::leaf, Kind::outer});
        return make(kind, ref_of(kind));
      }
      default:
        return odds_and_ends();
    }
  }

  // Any instruction on values only, generated from its row in the table.
  void value_instruction(Op op) {
    const OpInfo& opcode = info(op);
    if (opcode.mnemonic().starts_with("div.i") || opcode.mnemonic().starts_with("rem.i")) return division(op);
    code.op(op);
    for (size_t i = 0; i < opcode.operand_count; ++i) value_operand(opcode, opcode.operands[i]);
  }
  void value_operand(const OpInfo& opcode, const Operand& operand) {
    switch (operand.kind) {
      case OperandKind::reg:
        code.u16(operand.writes ? value(operand.bank) : value_source(operand.bank));
        break;
      case OperandKind::reg_list: {
        std::vector<uint16_t> list;
        for (uint32_t n = choices.below(5); n > 0; --n) list.push_back(value(operand.bank));
        code.list(list);
        break;
      }
      case OperandKind::immediate:
        is_wide(operand.bank) ? code.u64(bits_64()) : code.u32(bits_32());
        break;
      default: {  // global_bytes; the width is that of the other operand
        const uint32_t size = is_wide(opcode.operands[1].bank) ? 8 : 4;
        code.u32(4 + choices.below(plan.global_bytes - 4 - size + 1));
        break;
      }
    }
  }
  // Usually a nonzero divisor.
  void division(Op op) {
    const Bank bank = info(op).operands[0].bank;
    const uint16_t divisor = value(bank);
    if (!choices.one_in(16)) {
      if (is_wide(bank)) {
        const_i64(scratch(), choices.one_of<uint64_t>({1, 3, 16, 255}));
        code.op(Op::or_i64, {divisor, scratch(), divisor});
      } else {
        const_i32(scratch(), choices.one_of<uint32_t>({1, 3, 16, 255}));
        code.op(Op::or_i32, {divisor, scratch(), divisor});
      }
    }
    code.op(op, {value_source(bank), divisor, value(bank)});
  }
  // A constant that is used at once, on either side or both.
  void with_constant() {
    const Op op = choices.pick(groups(plan.version).integer_binary);
    const OpInfo& opcode = info(op);
    const uint32_t side = choices.below(8);
    uint16_t operands[2] = {value_source(opcode.operands[0].bank), value_source(opcode.operands[1].bank)};
    const size_t at = side == 0 ? 0 : 1;
    const Bank bank = opcode.operands[at].bank;
    const uint16_t constant = choices.one_in(4) ? scratch() : value(bank);
    if (is_wide(bank))
      const_i64(constant, bits_64());
    else
      const_i32(constant, bits_32());
    if (choices.one_in(8)) value_instruction(choices.pick(groups(plan.version).values));
    operands[at] = constant;
    if (side == 1 && opcode.operands[0].bank == bank) operands[0] = constant;
    const bool divides = opcode.mnemonic().starts_with("div.i") || opcode.mnemonic().starts_with("rem.i");
    if (divides && !choices.one_in(16)) return division(op);
    code.op(op, {operands[0], operands[1], value(opcode.operands[2].bank)});
  }
  void compare(uint16_t result) {
    if (choices.one_in(10)) {
      code.op(Op::cmp_nz_ref, {plain(ref_for(Kind::any)), result});
      return;
    }
    const OpInfo& opcode = info(choices.pick(groups(plan.version).compares));
    const Bank bank = opcode.operands[0].bank;
    uint16_t constant = 0;
    const bool against_constant = opcode.operand_count == 3 && choices.one_in(3);
    if (against_constant) {
      constant = choices.one_in(2) ? scratch() : value(bank);
      if (is_wide(bank))
        const_i64(constant, bits_64());
      else
        const_i32(constant, bits_32());
    }
    code.op(static_cast<Op>(&opcode - kOps.data())).u16(value_source(bank));
    if (opcode.operand_count == 3) code.u16(against_constant ? constant : value_source(bank));
    code.u16(result);
  }
  // A comparison whose result is used as a value.
  void compare_and_use() {
    const uint16_t result = narrow();
    compare(result);
    switch (choices.below(4)) {
      case 0:
        code.op(Op::add_i32, {result, narrow_source(), narrow()});
        break;
      case 1:
        code.op(Op::select_i32, {result, narrow_source(), result, narrow()});
        break;
      case 2:
        code.op(choices.one_of({Op::select_i64, Op::select_f64}), {result, wide(), wide(), wide()});
        break;
      default:
        break;
    }
  }

  // Chains of sums and products whose intermediate results are not used again.
  void chain() {
    struct Type {
      Op add, sub, mul;
    };
    static constexpr Type kTypes[] = {{Op::add_i32, Op::sub_i32, Op::mul_i32},
                                      {Op::add_i64, Op::sub_i64, Op::mul_i64},
                                      {Op::add_f32, Op::sub_f32, Op::mul_f32},
                                      {Op::add_f64, Op::sub_f64, Op::mul_f64}};
    const Type type = kTypes[choices.below(4)];
    const Bank bank = info(type.add).operands[0].bank;
    const auto any_op = [&] { return choices.one_of({type.add, type.sub, type.mul}); };
    code.op(any_op(), {value_source(bank), value_source(bank), scratch()});
    for (uint32_t n = choices.below(3); n > 0; --n) {
      if (choices.one_in(2)) {
        code.op(any_op(), {scratch(), value_source(bank), scratch()});
      } else {
        code.op(any_op(), {value_source(bank), scratch(), scratch()});
      }
    }
    const uint16_t left = choices.one_in(2) ? scratch() : value_source(bank);
    const uint16_t right = left == scratch() && !choices.one_in(8) ? value_source(bank) : scratch();
    code.op(any_op(), {left, right, value(bank)});
  }

  // ---- places in buffers, lists, globals

  // A 64-bit register that is usually below `limit`, computed in the ways that programs use.
  uint16_t index_64(uint32_t limit) {
    if (choices.one_in(100)) return wide();
    const uint16_t index = wide();
    switch (choices.below(4)) {
      case 0:
        const_i64(index, choices.below(limit));
        return index;
      case 1: {
        const_i64(scratch(), mask(limit));
        code.op(Op::and_i64, {wide(), scratch(), index});
        return index;
      }
      case 2: {
        const uint16_t narrow_index = index_32(limit);
        code.op(choices.one_of({Op::ext_i32_i64_u, Op::ext_i32_i64_s}), {narrow_index, index});
        return index;
      }
      default:
        break;
    }
    // base + constant, base << constant, ...
    const uint16_t base = wide();
    const uint16_t amount = wide();
    const_i64(base, 1 + choices.below(limit / 4));
    if (amount == base) return base;
    switch (choices.below(4)) {
      case 0:
        const_i64(amount, choices.below(3));
        code.op(Op::add_i64, {base, amount, index});
        break;
      case 1:
        const_i32(amount, choices.below(2));
        code.op(choices.one_of({Op::shl_i64, Op::shr_i64_s, Op::shr_i64_u}), {base, amount, index});
        break;
      case 2:
        const_i64(amount, choices.below(3));
        code.op(Op::mul_i64, {base, amount, index});
        break;
      default:
        const_i64(amount, choices.below(2));
        code.op(Op::sub_i64, {base, amount, index});
        break;
    }
    return index;
  }
  // A register with an unknown value that is at most `mask`.
  uint16_t masked(uint64_t mask) {
    const uint16_t result = wide();
    const_i64(condition(), mask);
    code.op(Op::and_i64, {wide_source(), condition(), result});
    return result;
  }
  uint16_t index_32(uint32_t limit) {
    if (choices.one_in(100)) return narrow();
    const uint16_t index = narrow();
    switch (choices.below(3)) {
      case 0:
        const_i32(index, choices.below(limit));
        break;
      case 1:
        const_i32(scratch(), mask(limit));
        code.op(Op::and_i32, {narrow_source(), scratch(), index});
        break;
      default:
        const_i32(index, choices.below(limit));
        const_i32(scratch(), choices.below(2));
        code.op(Op::add_i32, {index, scratch(), index});
        break;
    }
    return index;
  }
  // The largest 2^n - 1 below the limit.
  static uint32_t mask(uint32_t limit) { return std::bit_floor(limit) - 1; }

  // A list or buffer operand: usually of a suitable kind.
  uint16_t operand_of(Kind kind) { return plain(choices.one_in(100) ? ref_of(Kind::any) : ready(kind)); }
  uint16_t list_operand() { return operand_of(choices.one_of({Kind::values, Kind::leaf, Kind::outer})); }

  void buffer_access() {
    const OpInfo& opcode = info(choices.pick(groups(plan.version).buffer_access));
    const Operand& last = opcode.operands[2];
    const uint16_t buffer = operand_of(Kind::buffer);
    uint16_t index = 0;
    if (choices.one_in(2)) {
      index = index_64(8);
    } else {  // computed just before, and usually not used again
      index = choices.one_in(4) ? wide() : scratch();
      switch (choices.below(5)) {
        case 0: {
          const uint16_t base = masked(3);
          code.op(Op::add_i64, {base, masked(3), index});
          break;
        }
        case 1: {
          const uint16_t base = masked(1);
          const uint16_t factor = masked(3);
          const uint16_t offset = masked(3);
          code.op(Op::mul_i64, {base, factor, index});
          if (choices.one_in(2)) {
            code.op(Op::add_i64, {index, offset, index});
          } else {
            code.op(Op::add_i64, {offset, index, index});
          }
          break;
        }
        case 2:
        case 3: {
          const uint16_t base = index_64(4);
          const_i64(scratch(), choices.below(5));
          code.op(Op::add_i64, {base, scratch(), index});
          break;
        }
        default: {
          const uint16_t base = index_64(4);
          const_i32(scratch(), choices.below(2));
          code.op(choices.one_of({Op::shl_i64, Op::shr_i64_u, Op::shr_i64_s}), {base, scratch(), index});
          break;
        }
      }
    }
    code.op(static_cast<Op>(&opcode - kOps.data()), {buffer, index, value(last.bank)});
    if (choices.one_in(4)) value_instruction(choices.pick(groups(plan.version).values));
  }
  void buffer_range() {
    switch (choices.below(6)) {
      case 0: {
        const OpInfo& opcode = info(choices.pick(groups(plan.version).buffer_fill));
        const uint16_t buffer = operand_of(Kind::buffer);
        const uint16_t offset = index_64(4);
        const uint16_t length = index_64(5);
        code.op(static_cast<Op>(&opcode - kOps.data()),
                {buffer, offset, length, value(opcode.operands[3].bank)});
        break;
      }
      case 1:
      case 2: {
        const uint16_t source = operand_of(Kind::buffer);
        const uint16_t source_offset = index_64(8);
        const uint16_t target = operand_of(Kind::buffer);
        const uint16_t target_offset = index_64(8);
        const uint16_t length = index_64(16);
        if (choices.one_in(2)) {
          code.op(Op::buffer_copy, {source, source_offset, target, target_offset, length});
        } else {
          code.op(Op::buffer_compare, {source, source_offset, target, target_offset, length, narrow()});
        }
        break;
      }
      case 3: {
        const uint16_t buffer = operand_of(Kind::buffer);
        const uint16_t offset = index_64(8);
        const uint16_t length = index_64(32);
        code.op(Op::buffer_hash, {buffer, offset, length, wide()});
        break;
      }
      case 4: {
        const uint16_t source = operand_of(Kind::buffer);
        const bool whole = choices.one_in(2);
        const uint16_t offset = whole ? wide() : index_64(8);
        const uint16_t length = whole ? scratch() : index_64(16);
        if (whole) {
          const_i64(offset, 0);
          const_i64(length, 64);
        }
        uint16_t alignment = condition();
        const_i32(alignment, choices.one_of<uint32_t>({0, 1, 16, 64}));
        if (choices.one_in(32)) alignment = narrow();
        const uint16_t result = ref_of(Kind::buffer);
        code.op(Op::buffer_clone, {source, offset, length, alignment, written(result)});
        set_live(result, whole);
        break;
      }
      default:
        code.op(Op::buffer_length, {operand_of(Kind::buffer), wide()});
        break;
    }
  }

  void list_values() {
    switch (choices.below(8)) {
      case 0:
        code.op(Op::list_size, {list_operand(), narrow()});
        break;
      case 1: {
        const uint16_t list = list_operand();
        const uint16_t size = narrow();
        if (!choices.one_in(100)) const_i32(size, choices.one_of<uint32_t>({8, 5, 12, 65}));
        code.op(choices.one_of({Op::list_resize, Op::list_reserve}), {list, size});
        break;
      }
      default: {
        Op op = choices.pick(groups(plan.version).list_value);
        const bool variants = choices.one_in(4);
        if (variants && !choices.one_in(6))  // the elements may be unset
          op = choices.one_of({Op::list_set_i32, Op::list_set_i64, Op::list_set_f32, Op::list_set_f64});
        const uint16_t list = operand_of(variants ? Kind::leaf : Kind::values);
        const uint16_t index = index_32(4);
        code.op(op, {list, index, value(info(op).operands[2].bank)});
        break;
      }
    }
  }
  void list_refs() {
    const bool outer = choices.one_in(2);
    const uint16_t list = ready(outer ? Kind::outer : Kind::leaf);
    if (choices.one_in(2)) {
      const Kind kind = outer && !choices.one_in(6) ? choices.one_of({Kind::values, Kind::leaf})
                                                    : choices.one_of({Kind::buffer, Kind::probe});
      const uint16_t element = ready(kind);
      const uint16_t index = index_32(4);
      code.op(Op::list_set_ref, {plain(list), index, movable(element)});
      return;
    }
    const uint16_t index = index_32(4);
    code.op(Op::list_get_ref).u16(plain(list)).u16(index);
    const Kind kind = outer ? choices.one_of({Kind::leaf, Kind::leaf, Kind::buffer, Kind::probe, Kind::any})
                            : choices.one_of({Kind::buffer, Kind::probe, Kind::any});
    const uint16_t result = ref_of(kind);
    code.u32(type_of(kind)).u16(choices.one_in(3) ? result | kMoveBit : result);
    set_live(result, false);  // unknown
  }

  // The usual type of refs of this kind.
  uint32_t type_of(Kind kind) {
    if (kind == Kind::buffer) return kTypeBuffer;
    if (kind == Kind::probe) return kTypeProbe;
    if (kind == Kind::any) return choices.below(kTypeCount);
    return choices.one_of<uint32_t>({kTypeListOfI32, kTypeListOfAny});
  }
  // A type to check refs of this kind against; usually it matches.
  uint32_t checked_type(Kind kind) { return choices.one_in(64) ? choices.below(kTypeCount) : type_of(kind); }

  // An object of this kind with contents.
  uint16_t ready(Kind kind) {
    const uint16_t reg = ref_of(kind);
    if (!is_live(reg) && !choices.one_in(64)) make(kind, reg);
    return reg;
  }
  void make(Kind kind, uint16_t reg) {
    if (kind == Kind::buffer) {
      if (choices.one_in(24)) {
        code.op(Op::const_ref_rodata).u32(plan.rodata - 1 - choices.below(plan.rodata)).u16(written(reg));
        return;
      }
      const uint16_t length = wide();
      const_i64(length, choices.one_of<uint64_t>({64, 64, 65, 72, 80, 1025}));
      if (choices.one_in(32)) const_i64(length, choices.one_of<uint64_t>({33, 8, 3, 0}));
      uint16_t alignment = condition();
      const_i32(alignment, choices.one_of<uint32_t>({0, 0, 0, 0, 0, 16, 8, 64}));
      if (choices.one_in(32)) alignment = narrow();
      code.op(Op::buffer_alloc, {length, alignment, written(reg)});
    } else if (kind == Kind::values || kind == Kind::leaf || kind == Kind::outer) {
      const uint32_t type = kind == Kind::values ? choices.below(kTypeOpaque)
                            : kind == Kind::outer
                                ? choices.one_of<uint32_t>({kTypeOpaque, kTypeListOfI32, kTypeListOfAny})
                                : choices.one_of<uint32_t>({kTypeOpaque, kTypeOpaque, kTypeOpaque,
                                                            kTypeOpaque, kTypeBuffer, kTypeProbe});
      const uint16_t capacity = narrow();
      const_i32(capacity, choices.one_of<uint32_t>({0, 1, 8, 70}));
      code.op(Op::list_alloc).u32(type).u16(capacity).u16(written(reg));
      const uint16_t size = narrow();
      const_i32(size, choices.one_of<uint32_t>({5, 8, 9, 65}));
      code.op(Op::list_resize, {plain(reg), size});
    } else {
      const Kind from = kind == Kind::probe
                            ? Kind::probe
                            : choices.one_of({Kind::buffer, Kind::values, Kind::leaf, Kind::outer});
      const uint16_t source = ref_of(from);
      code.op(Op::cast_any_ref).u16(source).u32(type_of(from)).u16(written(reg));
      set_live(reg, is_live(source));
    }
  }
  uint16_t zero() {
    code.op(Op::const_i32_zero, {scratch()});
    return scratch();
  }

  void ref_moves() {
    const Kind kind = any_ref_kind();
    switch (choices.below(8)) {
      case 0:
        code.op(Op::const_ref_zero, {written(ref_of(kind))});
        break;
      case 1: {
        const uint16_t source = ref_for(kind);
        const uint16_t result = ref_of(kind);
        const uint32_t type = checked_type(kind == Kind::any ? kind_of(source) : kind);
        const bool had = is_live(source);
        code.op(Op::cast_any_ref).u16(movable(source)).u32(type).u16(written(result));
        set_live(result, had);
        break;
      }
      case 2: {
        if (plan.version < 16) return;
        const uint16_t source = ref_for(kind);
        const uint16_t result = ref_of(kind);
        const bool had = is_live(source);
        code.op(Op::assign_ref, {movable(source), written(result)});
        set_live(result, had);
        break;
      }
      case 3: {
        const uint16_t on_true = ref_for(kind);
        const uint16_t on_false = ref_for(kind);
        const uint16_t result = ref_of(kind);
        code.op(Op::select_ref).u16(narrow_source()).u32(checked_type(kind_of(on_true)));
        code.u16(movable(on_true)).u16(movable(on_false)).u16(written(result));
        break;
      }
      case 4: {
        const uint16_t index = choices.one_in(3) ? narrow_source() : index_32(4);
        std::vector<uint16_t> list;
        for (uint32_t n = choices.below(4); n > 0; --n) {
          const uint16_t entry = ref_for(kind);
          list.push_back(choices.one_in(3) ? entry | kMoveBit : entry);
        }
        const uint16_t fallback = ref_for(kind);
        code.op(Op::switch_ref).u16(index).u32(checked_type(kind_of(fallback))).u16(movable(fallback));
        code.list(list).u16(written(ref_of(kind)));
        break;
      }
      case 5:
        code.op(Op::cmp_nz_ref, {plain(ref_of(kind)), narrow()});
        break;
      case 6:
        code.op(choices.one_of({Op::cmp_eq_ref, Op::cmp_ne_ref}),
                {plain(ref_of(kind)), plain(ref_for(kind)), narrow()});
        break;
      default: {
        if (plan.version < 16) return;
        std::vector<uint16_t> list;
        for (uint32_t n = choices.below(3); n > 0; --n) {
          list.push_back(any_register(true));
          if (list.back() & kRefBit) set_live(list.back(), false);
        }
        code.op(Op::discard_refs).list(list);
        break;
      }
    }
  }
  Kind kind_of(uint16_t reg) {
    for (const Kind kind : {Kind::buffer, Kind::probe, Kind::values, Kind::leaf, Kind::outer}) {
      if (std::ranges::find(refs_of(kind), reg) != refs_of(kind).end()) return kind;
    }
    return Kind::any;
  }
  // For lists that accept values and refs.
  uint16_t any_register(bool may_move) {
    if (choices.one_in(3)) return narrow_source();
    const uint16_t reg = ref_for(Kind::any);
    if (!may_move || !choices.one_in(3)) return reg;
    set_live(reg, false);
    return reg | kMoveBit;
  }

  void global_indirect() {
    const Op op = choices.pick(groups(plan.version).global_indirect);
    const OpInfo& opcode = info(op);
    const uint32_t size = is_wide(opcode.operands[1].bank) ? 8 : 4;
    const uint16_t offset = narrow();
    // Must not overwrite the count of calls.
    const_i32(offset, choices.one_in(24) ? plan.global_bytes - choices.below(12)
                                         : 4 + choices.below(plan.global_bytes - 4 - size + 1));
    code.op(op, {offset, value(opcode.operands[1].bank)});
  }
  void global_refs() {
    if (plan.global_refs.empty()) return;
    const uint32_t ordinal = choices.below(static_cast<uint32_t>(plan.global_refs.size()));
    const Kind kind = plan.global_refs[ordinal];
    const bool indirect = choices.one_in(3);
    const bool loads = choices.one_in(2);
    const uint16_t reg = loads ? ref_of(choices.one_in(6) ? Kind::any : kind) : ref_for(kind);
    const uint32_t type = checked_type(kind == Kind::any ? kind_of(reg) : kind);
    if (indirect) {
      const uint16_t at = narrow();
      const_i32(at, choices.one_in(24) ? static_cast<uint32_t>(plan.global_refs.size()) : ordinal);
      code.op(loads ? Op::global_load_indirect_ref : Op::global_store_indirect_ref).u16(at);
    } else {
      code.op(loads ? Op::global_load_ref : Op::global_store_ref).u32(ordinal);
    }
    code.u32(type);
    if (loads) {
      code.u16(written(reg));
      set_live(reg, false);
    } else {
      code.u16(movable(reg));
    }
  }

  void odds_and_ends() {
    switch (choices.below(3)) {
      case 0:
        if (!plan.optional_imports.empty()) {
          code.op(Op::import_resolved).u32(choices.pick(plan.optional_imports)).u16(narrow());
          break;
        }
        [[fallthrough]];
      default: {
        std::vector<uint16_t> list;
        for (uint32_t n = choices.below(4); n > 0; --n) list.push_back(any_register(true));
        code.op(choices.one_of({Op::trace, Op::print}));
        code.string(choices.one_of<std::string_view>({"", "a", "event"})).list(list);
        break;
      }
    }
  }
  // ---- calls

  // `yieldable`: ends the block and continues at `resume`. False: there is nothing to call.
  bool call(bool yieldable, uint32_t resume = 0) {
    if (plan.callees.empty()) return false;
    const Callee& callee = choices.pick(plan.callees);
    if (callee.defers && !yieldable && !callee.signature.results.empty() && !choices.one_in(24)) return false;
    std::vector<uint16_t> arguments;
    for (const Kind kind : callee.signature.arguments) argument(callee, kind, arguments);
    std::vector<uint16_t> segments(callee.signature.arguments.size(), 0xFFFF);
    if (!callee.span.empty()) {
      segments.push_back(static_cast<uint16_t>(choices.below(4)));
      for (uint16_t n = segments.back(); n > 0; --n) {
        for (const char type : callee.span)
          argument(callee, type == 'r' ? Kind::any : type == 'I' ? Kind::i64 : Kind::i32, arguments);
      }
      if (choices.one_in(8)) segments.push_back(7);
    }
    if (!callee.signature.has_convention && choices.one_in(8) && !arguments.empty()) arguments.pop_back();
    if (callee.signature.has_convention && choices.one_in(12)) arguments.push_back(any_register(false));
    std::vector<uint16_t> results;
    for (const Kind kind : callee.signature.results) {
      results.push_back(is_ref(kind) ? written(ref_of(kind)) : is_wide(kind) ? wide() : narrow());
    }
    if (!callee.signature.has_convention && choices.one_in(24) && !results.empty()) results.pop_back();
    if (!callee.defers && choices.one_in(12)) results.push_back(any_register(false));
    const bool variadic = !callee.span.empty() || ((callee.operand & kImportBit) && choices.one_in(8));
    code.op(yieldable ? (variadic ? Op::call_variadic_yieldable : Op::call_yieldable)
                      : (variadic ? Op::call_variadic : Op::call));
    code.u32(callee.operand);
    if (variadic) code.list(segments);
    code.list(arguments);
    if (yieldable) target(resume);
    code.list(results);
    return true;
  }
  void argument(const Callee& callee, Kind kind, std::vector<uint16_t>& list) {
    if (!is_ref(kind)) {
      list.push_back(is_wide(kind) ? wide() : narrow_source());
      return;
    }
    const uint16_t reg = ref_for(kind);
    // A moved register is null for later arguments. Native functions access registers in place, so for them
    // it is not named twice.
    const auto moved = std::ranges::find(list, reg | kMoveBit);
    if (!callee.bytecode && moved != list.end()) {
      *moved = reg;
      list.push_back(reg);
    } else {
      list.push_back(movable(reg));
    }
  }
};

}  // namespace halyard::vm::test
