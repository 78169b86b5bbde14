// Registers: the analysis of a function's value slots before translation. For each instruction it tells which
// slots are live, and in which form each slot was last written. A slot holds an integer, a float, or one half
// of a 64-bit integer or double.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codegen/own_calls.h"
#include "vm/decode/words.h"

namespace halyard::jit {

// The form in which a slot was last written. `frame`: not written since compiled code was entered.
enum class Form : uint8_t { frame, i32, f32, i64, f64 };
constexpr bool is_pair(Form form) { return form == Form::i64 || form == Form::f64; }

class Registers {
 public:
  // `own_calls` must outlive this object.
  Registers(std::span<const vm::Word> words, std::span<const uint16_t> lists, uint32_t slots,
            const OwnCalls& own_calls);

  // Whether the value that the slot has before the instruction at `word` may be read.
  bool is_live(uint32_t word, uint32_t slot) const {
    return (live_[size_t{word} * stride_ + slot / 64] >> (slot % 64) & 1) != 0;
  }
  // The form of each slot before the instruction at `word`.
  std::span<const Form> forms(uint32_t word) const { return {&forms_[size_t{word} * slots_], slots_}; }
  // The bits of the slot before the instruction at `word`, if they are the same on all paths and known.
  std::optional<uint32_t> constant(uint32_t word, uint32_t slot) const {
    const Known& known = constants_[size_t{word} * slots_ + slot];
    return known.state == Known::one ? std::optional(known.bits) : std::nullopt;
  }
  // Whether some instruction accesses the slot, or the other slot of its pair, alone; whether one accesses
  // the pair.
  bool has_single(uint32_t slot) const { return single_[slot / 2]; }
  bool has_pair(uint32_t slot) const { return pair_[slot / 2]; }
  // Whether compiled code ever stores a float in the slot, or a double in the pair that begins there.
  bool holds_float(uint32_t slot) const { return float_[slot]; }
  bool holds_double(uint32_t slot) const { return double_[slot]; }

 private:
  struct Known {
    enum State : uint8_t { unreached, one, varies } state = unreached;
    uint32_t bits = 0;
    bool operator==(const Known&) const = default;
  };

  void find_uses();
  void note_own_call(const vm::Word* word);
  void note_return(const vm::Word* word);
  void spread_floats();
  template <typename Visit>
  void for_each_value(const vm::Word* word, Visit visit) const;
  void find_live();
  void find_forms();
  void find_constants();
  void write_constants(const vm::Word* word, std::span<Known> known) const;
  void write_forms(const vm::Word* word, std::span<Form> forms) const;
  void note(uint32_t slot, vm::Bank bank);

  std::span<const vm::Word> words_;
  std::span<const uint16_t> lists_;
  uint32_t slots_;
  const OwnCalls& own_calls_;
  size_t stride_;
  std::vector<uint32_t> starts_;  // first words of instructions
  std::vector<uint64_t> live_;
  std::vector<Form> forms_;
  std::vector<Known> constants_;
  std::vector<bool> single_;
  std::vector<bool> pair_;
  std::vector<bool> float_;
  std::vector<bool> double_;
};

}  // namespace halyard::jit
