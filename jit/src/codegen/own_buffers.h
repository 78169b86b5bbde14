// OwnBuffers: facts about buffers that a function allocates and that only one of its registers refers to.
// Nothing else sees their bytes, so bytes that the function does not read again need not be written, and
// bytes that it does not write need not be cleared when the memory is used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vm/decode/ref_uses.h"
#include "vm/decode/words.h"

namespace halyard::jit {

class OwnBuffers {
 public:
  OwnBuffers(std::span<const vm::Word> words, std::span<const uint16_t> lists, uint32_t ref_slots);

  // Whether the load at `word` reads a buffer of the function's own, in a loop that is left for good, and
  // nothing reads the buffer after the loop. The whole loop is compiled and does not write to the buffer.
  bool is_last_read(uint32_t word) const { return !last_reads_.empty() && last_reads_[word]; }

  // Whether nothing but this register refers to the buffers that the function allocates for it, and all
  // writes to the register's object are writes to such a buffer.
  bool is_tracked(uint32_t ref) const { return !tracked_.empty() && tracked_[ref]; }
  // Whether the bytes of the buffer in a tracked register are as they were allocated before `word`.
  bool is_fresh(uint32_t word, uint32_t ref) const { return is_tracked(ref) && fresh_[index(word, ref)]; }
  // Whether the interpreter, which continues at `word`, may write to the buffer in a tracked register before
  // it enters compiled code again.
  bool may_be_interpreted_write(uint32_t word, uint32_t ref) const;

 private:
  using Use = vm::RefUse;
  enum class Owner : uint8_t { unreached, function, others };  // `function`: also if there is no object
  using Words = std::vector<bool>;                             // a set of words

  void for_each_use(uint32_t at, auto visit) const { vm::for_each_ref_use(words_, lists_, refs_, at, visit); }
  void find_neighbours();
  void find_owners();
  void find_live();
  void find_last_reads();
  void find_tracked();
  void find_fresh();
  bool may_write(uint32_t word, uint32_t ref) const;
  size_t index(uint32_t at, uint32_t ref) const { return size_t{at} * refs_ + ref; }
  bool is_compiled(uint32_t at) const;
  bool is_read_last_in(const Words& loop, uint32_t ref) const;
  bool is_reducible(uint32_t word, Words cycle) const;
  void add_reachable(uint32_t from, const Words& within, const std::vector<std::vector<uint32_t>>& edges,
                     Words& reached) const;
  Words cycle_through(uint32_t word, const Words& within) const;

  std::span<const vm::Word> words_;
  std::span<const uint16_t> lists_;
  uint32_t refs_;
  std::vector<uint32_t> starts_;  // first words of instructions
  std::vector<std::vector<uint32_t>> next_, previous_;
  std::vector<Owner> owners_;  // before each word, of the object in each register
  std::vector<bool> live_;     // before each word, whether bytes of the buffer in each register may be read
  Words last_reads_;
  std::vector<bool> tracked_;  // by register
  std::vector<bool> fresh_;    // before each word, of each register
};

}  // namespace halyard::jit
