// The registers of a generated function: their kinds, and which ones the next instruction uses.
#pragma once

#include <algorithm>

#include "function_generator.h"

namespace halyard::vm::test {

inline bool is_value_bank(Bank bank) { return bank >= Bank::i32 && bank <= Bank::f64; }
inline bool is_wide(Kind kind) { return kind == Kind::i64 || kind == Kind::f64; }

struct RegisterPlan {
  Choices& choices;
  const ModulePlan& plan;
  const Signature& signature;

  CodeBuilder code = {};
  std::vector<uint16_t> narrow_pool = {};  // registers that any instruction may write
  std::vector<uint16_t> wide_pool = {};    // the even ones among them whose partner is in the pool too
  std::vector<std::vector<uint16_t>> by_kind = {};  // ref registers, as fields without MOVE
  std::vector<bool> live = {};                      // whether a ref register has been set, in code order
  uint16_t value_count = 0;
  uint16_t ref_count = 0;
  uint16_t reserved = 0;  // the first register reserved for loops and fuel

  void plan_registers() {
    uint16_t argument_slots = 0;
    by_kind.resize(static_cast<size_t>(Kind::any) + 1);
    for (const Kind kind : signature.arguments) {
      if (is_ref(kind)) {
        refs_of(kind).push_back(static_cast<uint16_t>(kRefBit | ref_count++));
      } else {
        if (is_wide(kind)) argument_slots += argument_slots % 2;
        argument_slots += is_wide(kind) ? 2 : 1;
      }
    }
    live.assign(ref_count, true);
    const auto general = static_cast<uint16_t>(
        std::max(argument_slots + argument_slots % 2, 4 + 2 * static_cast<int>(choices.below(8))));
    add_slots(0, general);
    // Sometimes with large numbers.
    const bool far = choices.one_in(12);
    const uint16_t far_start = far ? choices.one_of<uint16_t>({126, 254, 1022, 8190}) : 0;
    if (far) add_slots(far_start, 6);
    reserved = far ? far_start + 6 : general;
    value_count = reserved + kReservedSlots;
    for (const Kind kind : {Kind::buffer, Kind::probe, Kind::values, Kind::leaf, Kind::outer, Kind::any}) {
      const uint32_t more = kind == Kind::buffer ? 2 : 1;
      for (uint32_t n = more + choices.below(2); n > 0; --n)
        refs_of(kind).push_back(static_cast<uint16_t>(kRefBit | ref_count++));
    }
    if (choices.one_in(12)) {
      ref_count = choices.one_of<uint16_t>({64, 257, 4000});
      refs_of(Kind::any).push_back(static_cast<uint16_t>(kRefBit | (ref_count - 1)));
    }
    live.resize(ref_count, false);
  }
  void add_slots(uint16_t first, uint16_t count) {
    for (uint16_t i = 0; i < count; ++i) {
      narrow_pool.push_back(first + i);
      if (i % 2 == 0) wide_pool.push_back(first + i);
    }
  }

  // Reserved pairs, written only for their purpose: the counter and limit of each loop, the number 1 as a
  // constant and as a computed value, 0, constants of the entry block, one pair that is written and read at
  // once, and one for conditions.
  static constexpr uint16_t kMaxLoops = 3;
  static constexpr uint16_t kConstants = 3;
  static constexpr uint16_t kReservedSlots = 2 * (2 * kMaxLoops + 3 + kConstants + 2);
  uint16_t reserved_pair(uint32_t index) const { return static_cast<uint16_t>(reserved + 2 * index); }
  uint16_t loop_counter(uint32_t loop) const { return reserved_pair(loop); }
  uint16_t loop_limit(uint32_t loop) const { return reserved_pair(kMaxLoops + loop); }
  uint16_t constant_one() const { return reserved_pair(2 * kMaxLoops); }
  uint16_t computed_one() const { return reserved_pair(2 * kMaxLoops + 1); }
  uint16_t constant_zero() const { return reserved_pair(2 * kMaxLoops + 2); }
  uint16_t constant(uint32_t index) const { return reserved_pair(2 * kMaxLoops + 3 + index); }
  uint16_t scratch() const { return reserved_pair(2 * kMaxLoops + 3 + kConstants); }
  uint16_t condition() const { return reserved_pair(2 * kMaxLoops + 4 + kConstants); }

  std::vector<uint16_t>& refs_of(Kind kind) { return by_kind[static_cast<size_t>(kind)]; }
  uint16_t narrow() { return choices.pick(narrow_pool); }
  uint16_t wide() { return choices.pick(wide_pool); }
  uint16_t value(Bank bank) { return is_wide(bank) ? wide() : narrow(); }
  // For reading: sometimes one of the reserved registers.
  uint16_t narrow_source() {
    switch (choices.below(16)) {
      case 0:
        return loop_counter(choices.below(kMaxLoops));
      case 1:
        return loop_limit(choices.below(kMaxLoops));
      case 2:
      case 3:
        return static_cast<uint16_t>(constant(choices.below(kConstants)) + choices.below(2));
      case 4:
        return constant_one();
      default:
        return narrow();
    }
  }
  uint16_t wide_source() {
    switch (choices.below(16)) {
      case 0:
        return loop_counter(choices.below(kMaxLoops));
      case 1:
      case 2:
        return constant(choices.below(kConstants));
      case 3:
        return constant_one();
      default:
        return wide();
    }
  }
  uint16_t value_source(Bank bank) { return is_wide(bank) ? wide_source() : narrow_source(); }

  uint16_t ref_of(Kind kind) { return choices.pick(refs_of(kind)); }
  Kind any_ref_kind() { return static_cast<Kind>(static_cast<uint32_t>(Kind::buffer) + choices.below(6)); }
  // A register of this kind, or one of a compatible kind.
  uint16_t ref_for(Kind kind) {
    if (kind == Kind::any) return ref_of(any_ref_kind());
    if (choices.one_in(16)) return ref_of(choices.one_of({Kind::buffer, Kind::probe}));
    return ref_of(kind);
  }
  bool is_live(uint16_t reg) const { return live[reg & kRefOrdinalMask]; }
  void set_live(uint16_t reg, bool is) { live[reg & kRefOrdinalMask] = is; }
  // A field that may move its register...
  uint16_t movable(uint16_t reg) {
    if (!choices.one_in(3)) return reg;
    if (plan.version >= 16) set_live(reg, false);
    return reg | kMoveBit;
  }
  // ... that is written, where MOVE may have an effect...
  uint16_t written(uint16_t reg) {
    set_live(reg, true);
    return choices.one_in(6) ? reg | kMoveBit : reg;
  }
  // ... or where MOVE never has an effect.
  uint16_t plain(uint16_t reg) { return choices.one_in(12) ? reg | kMoveBit : reg; }

  // ---- constants

  uint32_t bits_32() {
    static const std::vector<uint32_t> kInteresting = {
        0,          1,          2,          3,          4,          7,          8,          31,
        32,         33,         63,         64,         127,        128,        255,        256,
        0x7FFF,     0x8000,     0xFFFF,     0x10000,    0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE,
        0x3F800000, 0xBF800000, 0x3F000000, 0x40200000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001,
        0x4F000000, 0x5F000000, 0x4F32D05E, 0x80000001};
    const uint32_t form = choices.below(4);
    if (form <= 1) return choices.pick(kInteresting);
    return form == 2 ? choices.byte() : static_cast<uint32_t>(choices.bits(4));
  }
  uint64_t bits_64() {
    static const std::vector<uint64_t> kInteresting = {
        0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 0x100000000,        0xFFFFFFFF,
        0x3FF0000000000000, 0xBFF0000000000000, 0x3FE0000000000000, 0x4004000000000000, 0x7FF0000000000000,
        0xFFF0000000000000, 0x7FF8000000000000, 0x43E0000000000000, 0x47EFFFFFF0000000, 0x0000000000000001};
    const uint32_t form = choices.below(4);
    if (form == 0) return bits_32();
    if (form == 1) return choices.pick(kInteresting);
    if (form == 2) return static_cast<uint64_t>(int64_t{static_cast<int8_t>(choices.byte())});
    return choices.bits(8);
  }
  void const_i32(uint16_t reg, uint32_t bits) {
    if (bits == 0 && choices.one_in(2)) {
      code.op(Op::const_i32_zero, {reg});
    } else {
      code.op(Op::const_i32).u32(bits).u16(reg);
    }
  }
  void const_i64(uint16_t reg, uint64_t bits) { code.op(Op::const_i64).u64(bits).u16(reg); }
};

}  // namespace halyard::vm::test
