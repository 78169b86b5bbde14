// An element of memory into which loops sum,
//   c[i] = 0; for k: c[i] = f(c[i], a[k])
// becomes a variable until the sum is complete:
//   float sum = 0; for k: sum = f(sum, a[k]); c[i] = sum
// Without the store before the loops, the variable begins with the element. There may be several loops
// inside each other. What is loaded where it was just stored is taken from the value.
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <vector>

#include "plan/kernel_loops.h"

namespace halyard::aot {

namespace {

struct MemorySum {
  std::vector<Node*> loops;  // from the outer one to the innermost one
  Node* store = nullptr;     // in the innermost loop
  Node* load = nullptr;      // the first one of this element
};

bool is_load(const Node& node) {
  return is_pure_let(node) && node.accesses.size() == 1 && node.text.find("vm_get_") != std::string::npos;
}

// Whether the loop is one.
bool find_memory_sum(Node& outer, const Values& values, const OverlapOf& overlap, MemorySum& sum) {
  sum.loops = loop_nest(outer, values);
  if (sum.loops.empty()) return false;
  Node& innermost = *sum.loops.back();
  for (Node& node : innermost.body) {
    if (is_pure_let(node)) continue;
    if (!is_element_store(node) || sum.store != nullptr) return false;
    sum.store = &node;
  }
  if (sum.store == nullptr) return false;
  const Access& stored = sum.store->accesses[0];
  if (!values[stored.index].affine.known) return false;
  for (const Node* const loop : sum.loops)
    if (stride_of(stored, loop->value, values) != 0) return false;
  for (const Node* const loop : sum.loops) {
    for (Node& node : const_cast<Node*>(loop)->body) {
      if (&node == sum.store || node.kind == Node::Kind::loop) continue;
      for (const Access& access : node.accesses) {
        if (loop == &innermost && is_load(node) && is_same_element(access, stored, values)) {
          if (sum.load == nullptr) sum.load = &node;
        } else if (!lie_apart(access, stored, values, overlap)) {
          return false;
        }
      }
    }
  }
  return sum.load != nullptr && sum.load < sum.store;
}

// The store of the same element before the loop at `at`, after which nothing loads or stores the element.
size_t store_before(const Nodes& nodes, size_t at, const Access& stored, const Values& values,
                    const OverlapOf& overlap) {
  for (size_t i = at; i-- > 0;) {
    const Node& node = nodes[i];
    if (is_element_store(node) && is_same_element(node.accesses[0], stored, values)) return i;
    if (!is_pure_let(node) && !is_element_store(node) && node.cell.empty()) return SIZE_MAX;
    for (const Access& access : node.accesses)
      if (!lie_apart(access, stored, values, overlap)) return SIZE_MAX;
  }
  return SIZE_MAX;
}

// Moves the addresses that do not depend on the counters out of the loops.
Nodes take_fixed_addresses(const std::vector<Node*>& loops, const Values& values) {
  std::set<ValueId> inside;
  Nodes taken;
  for (Node* const loop : loops) {
    inside.insert(loop->value);
    std::erase_if(loop->body, [&](Node& node) {
      if (!is_pure_let(node)) return false;
      const bool depends = !node.accesses.empty() || std::ranges::any_of(node.uses, [&](ValueId id) {
        return id != kNoValue && (inside.contains(id) || inside.contains(values[id].same));
      });
      if (depends)
        inside.insert(node.value);
      else
        taken.push_back(node);
      return !depends;
    });
  }
  return taken;
}

void forget_index(Node& node) {
  const auto found = std::ranges::find(node.uses, node.accesses[0].index);
  if (found != node.uses.end()) node.uses.erase(found);
  node.accesses.clear();
}

// Whether the statement neither fails nor does anything but load and store elements.
bool is_plain(const Node& node) { return is_pure_let(node) || is_element_store(node); }

// The loads after the store at `at` that load what it stores get the value instead. If the element is then
// stored again before anything else loads it, the first store is removed; returns whether it was.
bool forward_store(Nodes& nodes, size_t at, const Values& values, const OverlapOf& overlap) {
  const Node store = nodes[at];
  const Access& stored = store.accesses[0];
  if (!values[stored.index].affine.known) return false;
  Node value = store;
  forget_index(value);
  for (size_t i = at + 1; i < nodes.size() && is_plain(nodes[i]); ++i) {
    Node& node = nodes[i];
    if (is_element_store(node)) {
      if (is_same_element(node.accesses[0], stored, values)) {
        nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(at));
        return true;
      }
      if (!lie_apart(node.accesses[0], stored, values, overlap)) return false;
      continue;
    }
    if (is_load(node) && is_same_element(node.accesses[0], stored, values)) {
      CellType type(stored.width);
      type.add(store);
      type.add(node);
      type.load(node.text, stored.memory, fmt::format("({})", type.stored(store)));
      forget_index(node);
      node.uses.insert(node.uses.end(), value.uses.begin(), value.uses.end());
      continue;
    }
    for (const Access& access : node.accesses)
      if (!lie_apart(access, stored, values, overlap)) return false;
  }
  return false;
}

}  // namespace

void forward_stores(Nodes& nodes, const Values& values, const OverlapOf& overlap) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    forward_stores(nodes[i].body, values, overlap);
    forward_stores(nodes[i].other, values, overlap);
    if (is_element_store(nodes[i]) && forward_store(nodes, i, values, overlap)) --i;
  }
}

void keep_sums(Nodes& nodes, const Values& values, const OverlapOf& overlap) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    MemorySum sum;
    if (!find_memory_sum(nodes[i], values, overlap, sum)) {
      keep_sums(nodes[i].body, values, overlap);
      keep_sums(nodes[i].other, values, overlap);
      continue;
    }
    const Access stored = sum.store->accesses[0];
    const size_t before = store_before(nodes, i, stored, values, overlap);
    CellType type(stored.width);
    if (before != SIZE_MAX) type.add(nodes[before]);
    type.add(*sum.store);
    for (const Node& node : sum.loops.back()->body)
      if (is_load(node) && is_same_element(node.accesses[0], stored, values)) type.add(node);
    const std::string name = fmt::format("sum{}", sum.load->value);
    const Node& first = before != SIZE_MAX ? nodes[before] : *sum.load;
    Node declaration = {
        .kind = Node::Kind::effect,
        .text = fmt::format("{} {} = {};", type.declaration(), name,
                            before != SIZE_MAX ? type.stored(first) : type.loaded(first.text)),
        .uses = first.uses,
        .accesses = first.accesses,
        .cell = name};
    if (before != SIZE_MAX) forget_index(declaration);
    Node last = before != SIZE_MAX ? nodes[before] : *sum.store;
    const std::string value = stored_text(last);
    last.text.replace(last.text.size() - value.size() - 2, value.size(), type.value(name));
    last.uses = {last.accesses[0].index};
    Nodes made;
    if (before != SIZE_MAX) {
      nodes[before] = std::move(declaration);
    } else {
      made = take_fixed_addresses(sum.loops, values);
      made.push_back(std::move(declaration));
    }
    for (Node& node : sum.loops.back()->body) {
      if (is_element_store(node)) {
        node.text = fmt::format("{} = {};", name, type.stored(node));
        node.cell = name;
        forget_index(node);
      } else if (is_load(node) && is_same_element(node.accesses[0], stored, values)) {
        type.load(node.text, stored.memory, name);
        forget_index(node);
      }
    }
    made.push_back(std::move(nodes[i]));
    made.push_back(std::move(last));
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
    nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(i), std::make_move_iterator(made.begin()),
                 std::make_move_iterator(made.end()));
    i += made.size() - 1;
  }
}

}  // namespace halyard::aot
