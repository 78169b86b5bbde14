// Registers: what is known of a function's value slots before it is translated. Which of them a program still
// looks at where it stands, and in which form each was written last: a slot may hold an integer, a float, or
// one half of either of 64 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codegen/own_calls.h"
#include "vm/decode/words.h"

namespace halyard::jit {

// How a slot was written last. `frame`: not since compiled code was entered.
enum class Form : uint8_t { frame, i32, f32, i64, f64 };
constexpr bool is_pair(Form form) { return form == Form::i64 || form == Form::f64; }

class Registers {
 public:
  // `own_calls` must live as long as this.
  Registers(std::span<const vm::Word> words, std::span<const uint16_t> lists, uint32_t slots,
            const OwnCalls& own_calls);

  // Whether the value that the slot has before the instruction at `word` may be looked at.
  bool is_live(uint32_t word, uint32_t slot) const {
    return (live_[size_t{word} * stride_ + slot / 64] >> (slot % 64) & 1) != 0;
  }
  // What each slot is before the instruction at `word`.
  std::span<const Form> forms(uint32_t word) const { return {&forms_[size_t{word} * slots_], slots_}; }
  // The bits that the slot has before the instruction at `word`, however that is reached, where they are
  // known.
  std::optional<uint32_t> constant(uint32_t word, uint32_t slot) const {
    const Known& known = constants_[size_t{word} * slots_ + slot];
    return known.state == Known::one ? std::optional(known.bits) : std::nullopt;
  }
  // Whether some instruction takes the slot, or the other of its pair, by itself; whether one takes the pair.
  bool has_single(uint32_t slot) const { return single_[slot / 2]; }
  bool has_pair(uint32_t slot) const { return pair_[slot / 2]; }
  // Whether the slot ever holds a float, or the pair that begins there a double, as far as compiled code is
  // concerned.
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
  std::vector<uint32_t> starts_;  // words where instructions begin
  std::vector<uint64_t> live_;
  std::vector<Form> forms_;
  std::vector<Known> constants_;
  std::vector<bool> single_;
  std::vector<bool> pair_;
  std::vector<bool> float_;
  std::vector<bool> double_;
};

}  // namespace halyard::jit
