// CodeBuilder: the words of a function as they are put out, one instruction after another, and taken back
// when a later one joins them.
#pragma once

#include <memory_resource>
#include <span>
#include <vector>

#include "vm/code.h"

namespace halyard::vm {

class CodeBuilder {
 public:
  CodeBuilder(FunctionCode& code, std::pmr::memory_resource* memory) : code_(code), history_(memory) {}

  static Word word(InnerOp op, uint16_t a = 0, uint16_t b = 0, uint16_t c = 0) {
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

  uint32_t here() const { return static_cast<uint32_t>(code_.words.size()); }
  void emit(Word word) { code_.words.push_back(word); }
  Word& at(uint32_t word) { return code_.words[word]; }

  // What follows belongs to the instruction at `pc`.
  void place(uint32_t pc) { code_.places.push_back({.word = here(), .pc = pc}); }

  // A plain instruction of one value result, which what follows in the block may join.
  struct Joinable {
    uint32_t word;          // its first
    uint32_t result_field;  // 16-bit fields from there to the one that names the result
    bool wide_result;
  };
  void joinable(Joinable instruction) { history_.push_back(instruction); }
  void enter_block() { history_.clear(); }
  // The last instruction if it is joinable, and the one before; null where it is not.
  const Joinable* last() const { return ending_at(here(), 0); }
  const Joinable* before(const Joinable& instruction) const {
    return ending_at(instruction.word, static_cast<size_t>(&history_.back() - &instruction) + 1);
  }
  // Takes back everything from `word` on; the place of it is the instruction being decoded now.
  void retract(uint32_t word) {
    const uint32_t pc = code_.places.back().pc;
    code_.words.resize(word);
    while (!history_.empty() && history_.back().word >= word) history_.pop_back();
    while (!code_.places.empty() && code_.places.back().word >= word) code_.places.pop_back();
    place(pc);
  }
  uint16_t result_of(const Joinable& instruction) const { return *result_field(instruction); }
  void set_result(const Joinable& instruction, uint16_t reg) { *result_field(instruction) = reg; }

 private:
  uint16_t* result_field(const Joinable& instruction) const {
    Word& word = code_.words[instruction.word + instruction.result_field / 4];
    uint16_t* const fields[] = {&word.op, &word.a, &word.b, &word.c};
    return fields[instruction.result_field % 4];
  }
  // Joinable instructions are as long as their result's field says.
  const Joinable* ending_at(uint32_t word, size_t skip) const {
    if (history_.size() <= skip) return nullptr;
    const Joinable& found = history_[history_.size() - 1 - skip];
    return found.word + found.result_field / 4 + 1 == word ? &found : nullptr;
  }

  FunctionCode& code_;
  std::pmr::vector<Joinable> history_;
};

}  // namespace halyard::vm
