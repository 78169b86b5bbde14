// CodeBuilder: a function's code during decoding. Instructions are appended, and removed when a later
// instruction is fused with them. Memory comes from the decoder's arena; finish() copies the code to its own
// block.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "vm/decode/arena.h"
#include "vm/decode/code.h"

namespace halyard::vm {

class CodeBuilder {
 public:
  explicit CodeBuilder(Arena& arena)
      : words_(arena),
        places_(arena),
        lists_(arena),
        calls_(arena),
        call_words_(arena),
        arguments_(arena),
        history_(arena) {}

  // Reserves memory for the words that this many instructions usually need.
  void reserve(size_t instructions) {
    words_.reserve(2 * instructions + 8);
    places_.reserve(instructions + 8);
    history_.reserve(instructions);
  }

  static Word word(DecodedOp op, uint16_t a = 0, uint16_t b = 0, uint16_t c = 0) {
    return {static_cast<uint16_t>(op), a, b, c};
  }
  static Word word(Op op, uint16_t a = 0, uint16_t b = 0, uint16_t c = 0) {
    return {static_cast<uint16_t>(op), a, b, c};
  }
  static Word with_wide(uint16_t op, uint16_t a, uint32_t wide) {
    return {op, a, static_cast<uint16_t>(wide), static_cast<uint16_t>(wide >> 16)};
  }
  static Word data(uint64_t bits) {
    Word word;
    std::memcpy(static_cast<void*>(&word), &bits, sizeof word);
    return word;
  }
  static Word data(const void* pointer) { return data(reinterpret_cast<uintptr_t>(pointer)); }
  static Word data(uint32_t low, uint32_t high) { return data(low | uint64_t{high} << 32); }

  uint32_t here() const { return static_cast<uint32_t>(words_.size()); }
  void emit(Word word) { words_.push_back(word); }
  Word& at(uint32_t word) { return words_[word]; }
  // Sets one half of a data word.
  void set_half(uint32_t word, bool high, uint32_t value) {
    std::memcpy(reinterpret_cast<char*>(&words_[word]) + (high ? 4 : 0), &value, sizeof value);
  }

  // The following words belong to the instruction at `pc`.
  void place(uint32_t pc) { places_.push_back({.word = here(), .pc = pc}); }

  // Appends to the lists.
  uint32_t list_end() const { return static_cast<uint32_t>(lists_.size()); }
  void list(uint16_t entry) { lists_.push_back(entry); }
  void argument(uint16_t place) { arguments_.push_back(place); }
  std::span<const uint16_t> arguments() const { return {arguments_.data(), arguments_.size()}; }

  // Emits a call instruction. finish() fills in all words but the first.
  void call(const CallSite& site, uint16_t result) {
    call_words_.push_back(here());
    emit(site.is_import ? with_wide(static_cast<uint16_t>(DecodedOp::call_import), result, 0)
                        : with_wide(static_cast<uint16_t>(Op::call), result, 0));
    for (uint32_t i = 1; i < (site.is_import ? kImportCallWords : kCallWords); ++i) emit(data(uint64_t{0}));
    calls_.push_back(site);
  }

  // Records that the frame needs the register, and its partner if it may be the low half of a pair.
  void mention(uint16_t reg, bool maybe_pair) {
    if (reg & kRefBit) {
      ref_slots_ = std::max<uint32_t>(ref_slots_, (reg & kRegisterMask) + 1u);
    } else {
      value_slots_ = std::max<uint32_t>(value_slots_, reg + (maybe_pair && reg % 2 == 0 ? 2u : 1u));
    }
  }
  uint32_t value_slots() const { return value_slots_; }
  uint32_t ref_slots() const { return ref_slots_; }

  // A plain instruction with one value result; the next instruction of the block may be fused with it.
  struct Fusible {
    uint32_t word;          // its first word
    uint32_t result_field;  // offset of the result in 16-bit fields
    bool wide_result;
  };
  void fusible(Fusible instruction) { history_.push_back(instruction); }
  void enter_block() {
    history_.clear();
    block_ = here();
  }
  // The first word of the instruction emitted before the current one in this block, if any. If that
  // instruction has no words, the word where they would be.
  std::optional<uint32_t> previous() const {
    const size_t count = places_.size();
    if (count < 2 || places_[count - 2].word < block_) return {};
    return places_[count - 2].word;
  }
  // The last instruction if it is fusible, and the fusible one before it; otherwise null.
  const Fusible* last() const { return ending_at(here(), 0); }
  const Fusible* before(const Fusible& instruction) const {
    return ending_at(instruction.word, static_cast<size_t>(&history_.back() - &instruction) + 1);
  }
  // Removes all words from `word` on; new words belong to the current instruction.
  void retract(uint32_t word) {
    const uint32_t pc = places_.back().pc;
    words_.shrink(word);
    while (!history_.empty() && history_.back().word >= word) history_.pop_back();
    while (!places_.empty() && places_.back().word >= word) places_.pop_back();
    place(pc);
  }
  uint16_t result_of(const Fusible& instruction) const {
    uint16_t reg;
    std::memcpy(&reg, field_at(instruction), sizeof reg);
    return reg;
  }
  void set_result(const Fusible& instruction, uint16_t reg) {
    std::memcpy(field_at(instruction), &reg, sizeof reg);
  }

  // Moves everything to `code`, whose frame is laid out, and returns its words. Nothing may be emitted
  // afterwards.
  std::span<Word> finish(FunctionCode& code);

 private:
  const char* field_at(const Fusible& instruction) const {
    return reinterpret_cast<const char*>(words_.data() + instruction.word) + 2 * instruction.result_field;
  }
  char* field_at(const Fusible& instruction) {
    return reinterpret_cast<char*>(words_.data() + instruction.word) + 2 * instruction.result_field;
  }
  // A fusible instruction ends with its result field, so the field gives its length.
  const Fusible* ending_at(uint32_t word, size_t skip) const {
    if (history_.size() <= skip) return nullptr;
    const Fusible& found = history_[history_.size() - 1 - skip];
    return found.word + found.result_field / 4 + 1 == word ? &found : nullptr;
  }

  Array<Word> words_;
  Array<Place> places_;
  Array<uint16_t> lists_;
  Array<CallSite> calls_;
  Array<uint32_t> call_words_;  // the first words of the calls
  Array<uint16_t> arguments_;
  Array<Fusible> history_;
  uint32_t block_ = 0;  // the block's first word
  uint32_t value_slots_ = 0;
  uint32_t ref_slots_ = 0;
};

}  // namespace halyard::vm
