#include <algorithm>
#include <set>
#include <vector>

#include "plan/kernel_loops.h"

namespace halyard::aot {

namespace {

// The only loop of the statements, if the others are addresses before it.
Node* only_loop(Nodes& nodes, const Values& values) {
  if (nodes.empty() || !has_fixed_turns(nodes.back(), values)) return nullptr;
  for (auto node = nodes.begin(); node != nodes.end() - 1; ++node)
    if (!is_pure_let(*node) || !node->accesses.empty()) return nullptr;
  return &nodes.back();
}

}  // namespace

bool join_strips(Nodes& nodes, Values& values, const OverlapOf& overlap, ValueId group, ValueId count) {
  if (!values.is_constant(count) || values[count].range.low < 2) return false;
  std::vector<std::pair<ValueId, int64_t>> counters = {{group, values[count].range.low}};
  std::vector<Node*> loops;
  for (Node* loop = only_loop(nodes, values); loop != nullptr; loop = only_loop(loop->body, values)) {
    loops.push_back(loop);
    counters.emplace_back(loop->value, values[loop->bound].range.low - values[loop->first].range.low);
  }
  if (loops.size() < 2) return false;
  // The innermost statements only load, and store what they store to memory that nothing loads.
  std::vector<Access> loads;
  std::vector<Access> stores;
  for (const Node& node : loops.back()->body) {
    if (!is_pure_let(node) && !is_element_store(node)) return false;
    for (const Access& access : node.accesses) (access.writes ? stores : loads).push_back(access);
  }
  if (stores.size() != 1 || !is_injective(stores[0], counters, values)) return false;
  for (const Access& load : loads)
    if (load.memory == stores[0].memory || overlap(load.memory, stores[0].memory).kind != Overlap::Kind::none)
      return false;
  if (stride_of(stores[0], loops.back()->value, values) != 1 ||
      stride_of(stores[0], group, values) != counters.back().second)
    return false;

  // Addresses that depend on the group move into the new loop, in their order.
  std::set<ValueId> moving = {group};
  Nodes moved;
  const auto take = [&](Nodes& from) {
    Nodes kept;
    for (Node& node : from) {
      const bool moves = is_pure_let(node) && std::ranges::any_of(node.uses, [&](ValueId id) {
                           return id != kNoValue && (moving.contains(id) || moving.contains(values[id].same));
                         });
      if (moves) moving.insert(node.value);
      (moves ? moved : kept).push_back(std::move(node));
    }
    from = std::move(kept);
  };
  Nodes* level = &nodes;
  for (size_t depth = 0; depth + 1 < loops.size(); ++depth) {
    take(*level);
    level = &level->back().body;
  }
  take(*level);
  Node strip = {.kind = Node::Kind::loop, .value = group, .counted = true};
  strip.first = values.constant(values[group].bank, 0);
  strip.bound = count;
  strip.uses = {strip.first, strip.bound};
  strip.step = 1;
  strip.body = std::move(moved);
  strip.body.push_back(std::move(level->back()));
  level->back() = std::move(strip);
  return true;
}

}  // namespace halyard::aot
