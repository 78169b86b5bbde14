// A sum into consecutive elements of memory,
//   for j: { c[j] = 0; for k: c[j] = f(c[j], a[k], b[k][j]) }
// becomes
//   for j: c[j] = 0
//   for k: for j: c[j] = f(c[j], a[k], b[k][j])
// whose inner loops compilers vectorize. A short row c that is stored first is a local array until all sums
// are complete, so that compilers keep it in registers. There may be several loops k inside each other, and
// no store before them. Each element still gets its terms in the order of the loops k.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "aot/c_text.h"
#include "plan/kernel_loops.h"

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

// Rows up to this size are local arrays.
constexpr uint64_t kMostRowBytes = 512;

// A local array in place of a row of memory.
struct Row {
  std::string element;  // in C
  CellType type;
  Node declaration;
  Node store;  // the loop that stores the row to memory
};

// Replaces the accesses of the row.
void use_row(Nodes& nodes, const Row& row, MemoryId memory, const Values& values) {
  for (Node& node : nodes) {
    if (node.accesses.size() != 1 || node.accesses[0].memory != memory) continue;
    if (node.kind == Node::Kind::let)
      row.type.load(node.text, memory, row.element);
    else
      node.text = fmt::format("{} = {};", row.element, row.type.stored(node));
    node.accesses.clear();
    // The index is not used any more.
    const std::set<std::string_view> words = words_of(node.text);
    std::erase_if(node.uses, [&](ValueId id) {
      return id != kNoValue && !values[id].name.empty() && !words.contains(values[id].name);
    });
  }
}

// `first` are the statements before the loops that sum, `body` those of the sums.
std::optional<Row> row_of(const Node& outer, const Sum& sum, const Nodes& first, const Nodes& body,
                          const Values& values) {
  const uint64_t bytes = static_cast<uint64_t>(values[outer.bound].range.low) * sum.stored->width;
  if (values[outer.first].range.low != 0 || bytes > kMostRowBytes) return {};
  const std::string name = fmt::format("row{}", outer.value);
  Row row = {.element = fmt::format("{}[{}]", name, values[outer.value].name),
             .type = CellType(sum.stored->width)};
  for (const Nodes* const nodes : {&first, &body})
    for (const Node& node : *nodes)
      if (node.accesses.size() == 1 && node.accesses[0].memory == sum.stored->memory) row.type.add(node);
  row.declaration = {.kind = Node::Kind::effect, .array_bytes = bytes};
  row.declaration.text = fmt::format("{} {}[{}];", row.type.declaration(), name, bytes / sum.stored->width);
  Nodes stores;
  for (const Node& node : body) {
    if (is_address(node)) stores.push_back(node);
    if (!is_store(node)) continue;
    stores.push_back(node);
    const std::string value = stored_text(node);
    std::string& text = stores.back().text;
    text.replace(text.size() - value.size() - 2, value.size(), row.type.value(row.element));
    stores.back().uses = {node.accesses[0].index};
  }
  remove_unused_lets(stores, values);
  for (const Node& node : stores)
    for (const ValueId id : node.uses)
      for (const Node* const loop : sum.inner)
        if (id != kNoValue && values[id].same == loop->value) return {};
  row.store = loop_like(outer, std::move(stores));
  return row;
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
    const std::optional<Row> row = has_store ? row_of(outer, sum, first, body, values) : std::nullopt;
    if (row) {
      use_row(first, *row, sum.stored->memory, values);
      use_row(body, *row, sum.stored->memory, values);
    }
    remove_unused_lets(first, values);
    remove_unused_lets(body, values);
    Node made = loop_like(outer, std::move(body));
    for (auto loop = sum.inner.rbegin(); loop != sum.inner.rend(); ++loop) {
      Nodes inside;
      inside.push_back(std::move(made));
      made = loop_like(**loop, std::move(inside));
    }
    Nodes all;
    if (row) all.push_back(row->declaration);
    if (has_store) all.push_back(loop_like(outer, std::move(first)));
    all.push_back(std::move(made));
    if (row) all.push_back(row->store);
    const auto at = nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
    nodes.insert(at, all.begin(), all.end());
    i += all.size() - 1;
    changed = true;
  }
  return changed;
}

}  // namespace halyard::aot
