#include "aot/loops.h"

#include <algorithm>
#include <utility>

namespace halyard::aot {

Loops::Loops(const vm::Flow& flow)
    : position_(flow.blocks().size(), Loop::kNone),
      predecessors_(flow.blocks().size()),
      dominators_(flow.blocks().size(), Loop::kNone) {
  visit(flow);
  find_dominators();
  find_loops();
}

// Depth first, without recursion: functions may have very many blocks.
void Loops::visit(const vm::Flow& flow) {
  std::vector<std::vector<size_t>> successors(flow.blocks().size());
  for (size_t block = 0; block < successors.size(); ++block) {
    for (const vm::Flow::Edge& edge : flow.edges(block)) successors[block].push_back(edge.block);
    if (flow.blocks()[block].falls_through && block + 1 < successors.size())
      successors[block].push_back(block + 1);
  }
  std::vector<bool> seen(successors.size());
  std::vector<std::pair<size_t, size_t>> path = {{0, 0}};  // block, next successor
  seen[0] = true;
  while (!path.empty()) {
    auto& [block, next] = path.back();
    if (next == successors[block].size()) {
      order_.push_back(block);
      path.pop_back();
      continue;
    }
    const size_t successor = successors[block][next++];
    if (seen[successor]) continue;
    seen[successor] = true;
    path.emplace_back(successor, 0);
  }
  std::ranges::reverse(order_);
  for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
  for (const size_t block : order_)
    for (const size_t successor : successors[block]) predecessors_[successor].push_back(block);
}

size_t Loops::common(size_t a, size_t b) const {
  while (a != b) {
    while (position_[a] > position_[b]) a = dominators_[a];
    while (position_[b] > position_[a]) b = dominators_[b];
  }
  return a;
}

void Loops::find_dominators() {
  dominators_[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const size_t block : order_) {
      if (block == 0) continue;
      size_t found = Loop::kNone;
      for (const size_t each : predecessors_[block])
        if (dominators_[each] != Loop::kNone) found = found == Loop::kNone ? each : common(found, each);
      changed |= std::exchange(dominators_[block], found) != found;
    }
  }
}

bool Loops::dominates(size_t first, size_t second) const {
  while (position_[second] > position_[first]) second = dominators_[second];
  return first == second;
}

void Loops::find_loops() {
  for (const size_t header : order_) {
    Loop loop = {.header = header, .blocks = std::vector<bool>(position_.size()), .latches = {}};
    for (const size_t each : predecessors_[header]) {
      if (position_[each] < position_[header]) continue;
      if (!dominates(header, each)) {
        loops_.clear();
        return;
      }
      loop.latches.push_back(each);
    }
    if (loop.latches.empty()) continue;
    loop.blocks[header] = true;
    std::vector<size_t> left = loop.latches;
    while (!left.empty()) {
      const size_t block = left.back();
      left.pop_back();
      if (loop.blocks[block]) continue;
      loop.blocks[block] = true;
      left.insert(left.end(), predecessors_[block].begin(), predecessors_[block].end());
    }
    loop.parent = innermost(header);
    loops_.push_back(std::move(loop));
  }
}

// Headers of outer loops precede those of inner ones.
size_t Loops::innermost(size_t block) const {
  for (size_t i = loops_.size(); i-- > 0;)
    if (loops_[i].blocks[block]) return i;
  return Loop::kNone;
}

}  // namespace halyard::aot
