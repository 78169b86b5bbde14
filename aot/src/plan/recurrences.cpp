#include <fmt/core.h>

#include <algorithm>

#include "plan/kernel_loops.h"

namespace halyard::aot {

namespace {

// Whether `load` gives in each turn what `store` stored in the turn before.
bool is_turn_before(const Access& load, const Access& store, ValueId counter, const Values& values) {
  if (load.writes || load.memory != store.memory || load.width != store.width || load.offset != store.offset)
    return false;
  const Affine& from = values[load.index].affine;
  const Affine& to = values[store.index].affine;
  if (!from.known || !to.known || from.terms != to.terms) return false;
  int64_t stride = 0;
  for (const auto& [variable, coefficient] : to.terms)
    if (variable == counter) stride = coefficient;
  return stride != 0 && to.base - from.base == stride;
}

// The statement of the loop that loads what the turn before stored; null if the loop has another form.
const Node* find_load(const Node& loop, const Values& values, const OverlapOf& overlap) {
  if (!has_fixed_turns(loop, values)) return nullptr;
  const Node* store = nullptr;
  for (const Node& node : loop.body) {
    if (is_element_store(node) && store == nullptr)
      store = &node;
    else if (!is_pure_let(node))
      return nullptr;
  }
  if (store == nullptr) return nullptr;
  const Node* load = nullptr;
  for (const Node& node : loop.body) {
    if (&node == store) continue;
    for (const Access& access : node.accesses) {
      if (load == nullptr && &node < store && node.accesses.size() == 1 &&
          node.text.find("vm_get_") != std::string::npos &&
          is_turn_before(access, store->accesses[0], loop.value, values))
        load = &node;
      else if (access.memory == store->accesses[0].memory ||
               overlap(access.memory, store->accesses[0].memory).kind != Overlap::Kind::none)
        return nullptr;
    }
  }
  return load;
}

}  // namespace

void keep_stored(Nodes& nodes, Values& values, const OverlapOf& overlap) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    keep_stored(nodes[i].body, values, overlap);
    keep_stored(nodes[i].other, values, overlap);
    const Node* const load = find_load(nodes[i], values, overlap);
    if (load == nullptr) continue;
    const Access access = load->accesses[0];
    const std::string name = fmt::format("last{}", load->value);
    const auto at = load - nodes[i].body.data();
    const Node& store = *std::ranges::find_if(nodes[i].body, is_element_store);
    CellType type(access.width);
    type.add(*load);
    type.add(store);
    // What the first turn loads: the addresses and the load, once.
    Node first = loop_like(nodes[i], Nodes(nodes[i].body.begin(), nodes[i].body.begin() + at));
    first.bound = values.constant(values[nodes[i].value].bank,
                                  static_cast<uint64_t>(values[nodes[i].first].range.low + 1));
    first.body.push_back({.kind = Node::Kind::effect,
                          .text = fmt::format("{} = {};", name, type.loaded(load->text)),
                          .uses = load->uses,
                          .accesses = {access}});
    const Node last = {.kind = Node::Kind::effect,
                       .text = fmt::format("{} = {};", name, type.stored(store)),
                       .uses = store.uses};
    Node& loop = nodes[i];
    loop.body.insert(loop.body.begin() + (&store - loop.body.data()) + 1, last);
    Node& kept = loop.body[static_cast<size_t>(at)];
    type.load(kept.text, access.memory, name);
    kept.uses.clear();
    kept.accesses.clear();
    remove_unused_lets(loop.body, values);
    remove_unused_lets(first.body, values);
    const Node declared = {.kind = Node::Kind::effect,
                           .text = fmt::format("{} {};", type.declaration(), name)};
    nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(i), {declared, std::move(first)});
    i += 2;
  }
}

}  // namespace halyard::aot
