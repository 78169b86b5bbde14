// Loops: the natural loops of a function, and which block is on every path to another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vm/decode/flow.h"

namespace halyard::aot {

struct Loop {
  static constexpr size_t kNone = SIZE_MAX;

  size_t header = 0;
  size_t parent = kNone;     // the smallest loop around it
  std::vector<bool> blocks;  // with those of inner loops
  std::vector<size_t> latches;
};

class Loops {
 public:
  explicit Loops(const vm::Flow& flow);

  // Without loops if one of the function's loops has several entries. An outer loop precedes its inner ones.
  const std::vector<Loop>& all() const { return loops_; }
  // The reachable blocks; each follows its predecessors, but for branches back to a header.
  const std::vector<size_t>& order() const { return order_; }
  const std::vector<size_t>& predecessors(size_t block) const { return predecessors_[block]; }
  // The last block before this one that is on every path to it. The entry has itself.
  size_t dominator(size_t block) const { return dominators_[block]; }
  bool dominates(size_t first, size_t second) const;
  // The smallest loop that contains the block, or kNone.
  size_t innermost(size_t block) const;

 private:
  void visit(const vm::Flow& flow);
  void find_dominators();
  size_t common(size_t a, size_t b) const;
  void find_loops();

  std::vector<size_t> order_;
  std::vector<size_t> position_;  // in order_, by block; kNone: not reachable
  std::vector<std::vector<size_t>> predecessors_;
  std::vector<size_t> dominators_;
  std::vector<Loop> loops_;
};

}  // namespace halyard::aot
