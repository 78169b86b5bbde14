// The control flow of one function: loops, and where branches meet again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "aot/plan.h"
#include "vm/decode/flow.h"

namespace halyard::aot {

// A variable of a loop that counts up to a bound.
struct Counter {
  uint16_t slot = 0;
  int64_t step = 0;
  bool is_constant = false;  // the bound
  uint64_t bits = 0;
  uint16_t bound_slot = 0;
};

struct LoopShape {
  std::set<size_t> blocks;
  size_t exit = 0;  // the block after the loop
  size_t exit_edges = 0;
  bool is_simple = true;  // all ways out lead to one block
  bool moves_refs = false;
  std::set<uint16_t> slots;  // that the loop writes
  std::set<uint16_t> refs;
  std::optional<Counter> counter;
  bool is_known = false;        // whether the loop was searched for a counter
  int64_t assumed = INT64_MAX;  // the largest bound that the range of the counter allows
};

class Body {
 public:
  // UNIMPLEMENTED: the control flow has a form that is not known here.
  static Result<std::unique_ptr<Body>> of(const Plan& plan, uint32_t function);

  const Plan& plan() const { return plan_; }
  const vm::Flow& flow() const { return *flow_; }
  uint32_t function() const { return function_; }
  size_t exit() const { return flow_->blocks().size(); }  // stands for the return
  size_t meeting(size_t block) const { return meetings_[block]; }
  LoopShape* loop_at(size_t block) {
    const auto found = loops_.find(block);
    return found == loops_.end() ? nullptr : &found->second;
  }
  std::vector<size_t> successors(size_t block) const;
  // Whether a branch at the end of the block may leave a loop that changes refs.
  bool leaves_object_loop(size_t block) const;

 private:
  Body(const Plan& plan, uint32_t function) : plan_(plan), function_(function), arena_(memory_) {}
  void find_meetings();
  Result<> find_loops();

  const Plan& plan_;
  uint32_t function_;
  alignas(8) std::array<std::byte, size_t{16} << 10> memory_ = {};
  vm::Arena arena_;
  std::optional<vm::Flow> flow_;
  std::vector<size_t> meetings_;
  std::map<size_t, LoopShape> loops_;
};

}  // namespace halyard::aot
