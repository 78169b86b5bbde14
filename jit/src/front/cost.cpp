// Counts instructions, loops and calls. A depth-first walk finds loops: a branch to a word on the current
// path closes a loop. So each loop has its own head, in any order of its blocks.
#include "front/cost.h"

#include <algorithm>
#include <vector>

#include "vm/decode/words.h"

namespace halyard::jit {

namespace {

using vm::DecodedOp;
using vm::Op;
using vm::Word;

// Weights of the estimate. Loop passes scan the whole function again for each loop that they change, and loop
// analyses compare instructions pairwise. Recursive calls store each register twice.
constexpr uint64_t kPerPair = 2;
constexpr uint64_t kPerPairInLoops = 16;
constexpr uint64_t kPerPairOfLoops = 8;  // for each instruction
constexpr uint64_t kPerWrittenRegister = 2048;

bool is_compiled(uint16_t op) {
  if (op < vm::kOpCount) return vm::is_compiled(static_cast<Op>(op));
  return op == static_cast<uint16_t>(DecodedOp::move_32) || op == static_cast<uint16_t>(DecodedOp::move_64);
}

class LoopHeads {
 public:
  explicit LoopHeads(std::span<const Word> words)
      : words_(words), seen_(words.size(), Seen::no), is_head_(words.size(), false) {}

  void walk_from(uint32_t first) {
    if (seen_[first] == Seen::no) enter(first);
    while (!path_.empty()) {
      if (open_.size() == path_.back().rest) {
        seen_[path_.back().word] = Seen::left;
        path_.pop_back();
        continue;
      }
      const uint32_t next = open_.back();
      open_.pop_back();
      if (seen_[next] == Seen::no) {
        enter(next);
      } else if (seen_[next] == Seen::under_way) {
        is_head_[next] = true;
      }
    }
  }

  size_t count() const { return static_cast<size_t>(std::ranges::count(is_head_, true)); }

 private:
  enum class Seen : uint8_t { no, under_way, left };
  struct Step {
    uint32_t word;
    size_t rest;  // index of this step's first branch in `open_`
  };

  void enter(uint32_t word) {
    seen_[word] = Seen::under_way;
    path_.push_back({word, open_.size()});
    vm::for_each_successor(words_, word, [&](uint32_t next) {
      if (next < words_.size()) open_.push_back(next);
    });
  }

  const std::span<const Word> words_;
  std::vector<Seen> seen_;
  std::vector<bool> is_head_;
  std::vector<Step> path_;
  std::vector<uint32_t> open_;
};

}  // namespace

Cost estimate_cost(const halyard_jit_function_t& function, std::span<const Word> words) {
  Cost cost;
  LoopHeads heads(words);
  for (uint32_t at = 0; at < words.size(); at += vm::word_count(words[at])) {
    const uint16_t op = words[at].op;
    if (at == 0 || op == static_cast<uint16_t>(DecodedOp::enter_compiled)) heads.walk_from(at);
    if (op == static_cast<uint16_t>(Op::call)) cost.own_calls += function.own_calls;
    cost.instructions += is_compiled(op);
  }
  cost.loops = heads.count();
  const uint64_t pairs = cost.instructions * cost.instructions;
  cost.total = pairs * (cost.loops == 0 ? kPerPair : kPerPairInLoops) +
               kPerPairOfLoops * cost.loops * cost.loops * cost.instructions +
               kPerWrittenRegister * cost.own_calls * function.value_slots;
  return cost;
}

}  // namespace halyard::jit
