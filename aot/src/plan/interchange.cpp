// A sum into consecutive elements of memory,
//   for j: { c[j] = 0; for k: c[j] = f(c[j], a[k], b[k][j]) }
// becomes
//   for j: c[j] = 0
//   for k: for j: c[j] = f(c[j], a[k], b[k][j])
// whose inner loops compilers vectorize. There may be several loops k inside each other, and no store before
// them. Each element still gets its terms in the order of the loops k.
#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "plan/simplify.h"

namespace halyard::aot {

namespace {

bool is_fixed(const Node& loop, const Values& values) {
  return loop.kind == Node::Kind::loop && loop.counted && loop.step == 1 && values.is_constant(loop.first) &&
         values.is_constant(loop.bound);
}

// The number of elements between an access of one turn of the loop and that of the next one; false: not
// known.
bool stride_of(const Access& access, ValueId counter, const Values& values, int64_t& stride) {
  if (access.width == 0 || !values[access.index].affine.known) return false;
  stride = 0;
  for (const auto& [variable, coefficient] : values[access.index].affine.terms)
    if (variable == counter) stride = coefficient;
  return true;
}

bool is_address(const Node& node) {
  return node.kind == Node::Kind::let && node.removable && node.accesses.empty();
}

bool is_store(const Node& node) {
  return node.kind == Node::Kind::effect && node.accesses.size() == 1 && node.accesses[0].writes &&
         node.text.starts_with("vm_set_");
}

bool same_element(const Access& a, const Access& b, const Values& values) {
  return a.memory == b.memory && a.width == b.width && a.offset == b.offset && values[a.index].affine.known &&
         values[a.index].affine == values[b.index].affine;
}

// The parts of a loop that sums.
struct Sum {
  Nodes before;              // addresses, and stores before the inner loops
  std::vector<Node*> inner;  // loops, from the outer one to the innermost one
  const Access* stored = nullptr;
};

// Whether the loop is such a sum.
bool find_sum(Node& outer, const Values& values, const OverlapOf& overlap, Sum& sum) {
  std::vector<const Access*> loads;
  Node* loop = &outer;
  while (is_fixed(*loop, values) && !loop->body.empty() && is_fixed(loop->body.back(), values)) {
    for (auto node = loop->body.begin(); node != loop->body.end() - 1; ++node)
      if (!is_address(*node) && !(loop == &outer && is_store(*node))) return false;
    loop = &loop->body.back();
    sum.inner.push_back(loop);
  }
  if (sum.inner.empty()) return false;
  for (const Node& node : loop->body) {
    const bool is_load = node.kind == Node::Kind::let && node.removable;
    if (is_store(node) && sum.stored == nullptr)
      sum.stored = &node.accesses[0];
    else if (!is_load || sum.stored != nullptr)
      return false;
    if (!is_load) continue;
    for (const Access& each : node.accesses) loads.push_back(&each);
  }
  int64_t stride = 0;
  if (sum.stored == nullptr || !stride_of(*sum.stored, outer.value, values, stride) || stride != 1)
    return false;
  for (const Node* const each : sum.inner)
    if (!stride_of(*sum.stored, each->value, values, stride) || stride != 0) return false;
  for (const Node& node : outer.body)
    if (is_store(node) && !same_element(node.accesses[0], *sum.stored, values)) return false;
  size_t sums = 0;
  bool has_row = false;
  for (const Access* const load : loads) {
    if (load->writes || !stride_of(*load, outer.value, values, stride)) return false;
    if (load->memory == sum.stored->memory) {
      if (!same_element(*load, *sum.stored, values)) return false;
      ++sums;
      continue;
    }
    if (overlap(load->memory, sum.stored->memory).kind != Overlap::Kind::none) return false;
    if (stride != 0 && stride != 1) return false;
    has_row = has_row || stride == 1;
  }
  return sums == 1 && has_row;
}

// Removes the addresses that no statement after them uses.
void remove_unused_addresses(Nodes& body, const Values& values) {
  std::set<ValueId> used;
  for (size_t i = body.size(); i-- > 0;) {
    const Node& node = body[i];
    if (is_address(node) && !used.contains(node.value)) {
      body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    for (const ValueId id : node.uses)
      if (id != kNoValue) used.insert({id, values[id].same});
  }
}

// The loop with other statements.
Node with_body(const Node& loop, Nodes body) {
  Node made = {.kind = Node::Kind::loop, .value = loop.value, .uses = loop.uses, .counted = true};
  made.text = loop.text;
  made.first = loop.first;
  made.bound = loop.bound;
  made.step = loop.step;
  made.body = std::move(body);
  return made;
}

}  // namespace

bool interchange_loops(Nodes& nodes, const Values& values, const OverlapOf& overlap) {
  bool changed = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    Sum sum;
    if (nodes[i].kind != Node::Kind::loop || !find_sum(nodes[i], values, overlap, sum)) {
      changed |= interchange_loops(nodes[i].body, values, overlap);
      changed |= interchange_loops(nodes[i].other, values, overlap);
      continue;
    }
    const Node outer = std::move(nodes[i]);
    Nodes first(outer.body.begin(), outer.body.end() - 1);
    const bool has_store = std::ranges::any_of(first, is_store);
    // What the inner loops compute, within the outer one.
    Nodes body;
    std::ranges::copy_if(first, std::back_inserter(body), is_address);
    for (Node* const loop : sum.inner)
      std::copy_if(loop->body.begin(), loop == sum.inner.back() ? loop->body.end() : loop->body.end() - 1,
                   std::back_inserter(body), [](const Node& each) { return each.kind != Node::Kind::loop; });
    remove_unused_addresses(first, values);
    remove_unused_addresses(body, values);
    Node made = with_body(outer, std::move(body));
    for (auto loop = sum.inner.rbegin(); loop != sum.inner.rend(); ++loop) {
      Nodes inside;
      inside.push_back(std::move(made));
      made = with_body(**loop, std::move(inside));
    }
    nodes[i] = std::move(made);
    if (has_store) {
      nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(i), with_body(outer, std::move(first)));
      ++i;
    }
    changed = true;
  }
  return changed;
}

}  // namespace halyard::aot
