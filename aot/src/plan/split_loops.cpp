#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "plan/kernel_loops.h"

namespace halyard::aot {

using vm::Bank;
using vm::Op;

Node loop_like(const Node& loop, Nodes body) {
  Node made = {
      .kind = Node::Kind::loop, .value = loop.value, .text = loop.text, .uses = loop.uses, .counted = true};
  made.first = loop.first;
  made.bound = loop.bound;
  made.step = loop.step;
  made.body = std::move(body);
  return made;
}

bool has_fixed_turns(const Node& node, const Values& values) {
  return node.kind == Node::Kind::loop && node.counted && node.step == 1 && values.is_constant(node.first) &&
         values.is_constant(node.bound) && values[node.first].range.low < values[node.bound].range.low;
}

std::vector<Node*> loop_nest(Node& outer, const Values& values) {
  std::vector<Node*> loops;
  for (Node* loop = &outer; has_fixed_turns(*loop, values); loop = &loop->body.back()) {
    loops.push_back(loop);
    if (loop->body.empty() || !has_fixed_turns(loop->body.back(), values)) break;
    if (!std::all_of(loop->body.begin(), loop->body.end() - 1,
                     [](const Node& node) { return is_pure_let(node) && node.accesses.empty(); }))
      break;
  }
  return loops;
}

bool is_pure_let(const Node& node) { return node.kind == Node::Kind::let && node.removable; }

void remove_unused_lets(Nodes& body, const Values& values) {
  std::set<ValueId> used;
  const auto use = [&](ValueId id) {
    if (id != kNoValue) used.insert({id, values[id].same});
  };
  for (size_t i = body.size(); i-- > 0;) {
    if (is_pure_let(body[i]) && !used.contains(body[i].value)) {
      body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    for_each_node({body[i]}, [&](const Node& node) {
      for (const ValueId id : node.uses) use(id);
      for (const ValueId id : {node.first, node.bound, node.condition}) use(id);
    });
  }
}

namespace {

// ---- two dimensions

// The statement divides the counter by a constant: the quotient, or the remainder.
struct Division {
  const Node* quotient = nullptr;
  const Node* remainder = nullptr;
  int64_t by = 0;
};

std::optional<Division> division_of(const Node& loop, const Values& values) {
  Division found;
  std::set<const Node*> parts;
  for (const Node& node : loop.body) {
    if (!is_pure_let(node) || !node.accesses.empty()) continue;
    const Value& value = values[node.value];
    const bool is_quotient = value.op == Op::div_i32_u || value.op == Op::div_i32_s ||
                             value.op == Op::div_i64_u || value.op == Op::div_i64_s;
    const bool is_remainder = value.op == Op::rem_i32_u || value.op == Op::rem_i32_s ||
                              value.op == Op::rem_i64_u || value.op == Op::rem_i64_s;
    if ((!is_quotient && !is_remainder) || values[value.operands[0]].same != loop.value ||
        !values.is_constant(value.operands[1]))
      continue;
    const int64_t by = values[value.operands[1]].range.low;
    const Node*& part = is_quotient ? found.quotient : found.remainder;
    if (part != nullptr || (found.by != 0 && found.by != by)) return {};
    found.by = by;
    part = &node;
    parts.insert(&node);
  }
  if (parts.size() != 2 || found.by <= 1) return {};
  bool is_alone = true;
  for_each_node(loop.body, [&](const Node& node) {
    if (parts.contains(&node)) return;
    for (const ValueId id : node.uses)
      is_alone = is_alone && (id == kNoValue || values[id].same != loop.value);
    for (const ValueId id : {node.first, node.bound, node.condition})
      is_alone = is_alone && (id == kNoValue || values[id].same != loop.value);
  });
  return is_alone ? std::optional(found) : std::nullopt;
}

void set_affine(Values& values, ValueId id, const Affine& affine) {
  for (ValueId each = 0; each < values.size(); ++each)
    if (each == id || values[each].same == id) values.at(each).affine = affine;
}

// What the statements compute, in terms of the new counters.
void find_affine(const Nodes& nodes, Values& values) {
  for (const Node& node : nodes) {
    if (node.kind == Node::Kind::let) {
      const Value& value = values[node.value];
      if ((value.bank == Bank::i32 || value.bank == Bank::i64) && value.op != Op::kCount)
        set_affine(values, node.value, values.affine(value.op, value.operands, value.range));
    }
    find_affine(node.body, values);
    find_affine(node.other, values);
  }
}

bool split_dimensions(Node& loop, Values& values) {
  if (!has_fixed_turns(loop, values) || values[loop.first].range.low != 0) return false;
  const std::optional<Division> division = division_of(loop, values);
  const int64_t turns = values[loop.bound].range.low;
  if (!division || turns % division->by != 0) return false;
  const auto counter = [&](const Node& let, int64_t bound, Nodes body) {
    Node made = {.kind = Node::Kind::loop, .value = let.value, .counted = true};
    made.first = values.constant(values[let.value].bank, 0);
    made.bound = values.constant(values[let.value].bank, static_cast<uint64_t>(bound));
    made.uses = {made.first, made.bound};
    made.step = 1;
    made.body = std::move(body);
    set_affine(values, let.value, {true, 0, {{let.value, 1}}});
    return made;
  };
  Nodes body;
  for (const Node& node : loop.body)
    if (&node != division->quotient && &node != division->remainder) body.push_back(node);
  Nodes inner;
  inner.push_back(counter(*division->remainder, division->by, std::move(body)));
  Node outer = counter(*division->quotient, turns / division->by, std::move(inner));
  find_affine(outer.body, values);
  loop = std::move(outer);
  return true;
}

// ---- the first turn

// Whether the branch compares the counter with its first value; `equal`: which part is the first turn's.
bool is_first_turn(const Node& branch, const Node& loop, const Values& values, bool& equal) {
  if (branch.kind != Node::Kind::branch || branch.condition == kNoValue) return false;
  const Value& condition = values[branch.condition];
  const bool is_zero_test = condition.op == Op::cmp_nz_i32 || condition.op == Op::cmp_nz_i64;
  equal = condition.op == Op::cmp_eq_i32 || condition.op == Op::cmp_eq_i64;
  if (!equal && !is_zero_test && condition.op != Op::cmp_ne_i32 && condition.op != Op::cmp_ne_i64)
    return false;
  if (branch.text == fmt::format("!({})", condition.text))
    equal = !equal;
  else if (branch.text != condition.text)
    return false;
  const int64_t first = values[loop.first].range.low;
  if (values[condition.operands[0]].same != loop.value) return false;
  if (is_zero_test) return first == 0;
  return values.is_constant(condition.operands[1]) && values[condition.operands[1]].range.low == first;
}

// Makes two loops of one; false if its first turn is like the others.
bool split_first(const Node& loop, Values& values, Node& first, Node& rest) {
  if (!has_fixed_turns(loop, values) || loop.body.empty()) return false;
  bool equal = false;
  if (!is_first_turn(loop.body.back(), loop, values, equal)) return false;
  Nodes before(loop.body.begin(), loop.body.end() - 1);
  if (!std::ranges::all_of(before, is_pure_let)) return false;
  const auto part = [&](const Nodes& branch) {
    Nodes body = before;
    body.insert(body.end(), branch.begin(), branch.end());
    remove_unused_lets(body, values);
    return loop_like(loop, std::move(body));
  };
  const Node& branch = loop.body.back();
  first = part(equal ? branch.body : branch.other);
  rest = part(equal ? branch.other : branch.body);
  const Bank bank = values[loop.value].bank;
  const auto begin = static_cast<uint64_t>(values[loop.first].range.low);
  first.bound = rest.first = values.constant(bank, begin + 1);
  return true;
}

}  // namespace

void split_loops(Nodes& nodes, Values& values) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    split_dimensions(nodes[i], values);
    split_loops(nodes[i].body, values);
    split_loops(nodes[i].other, values);
    Node first;
    Node rest;
    if (!split_first(nodes[i], values, first, rest)) continue;
    const bool has_rest = values[rest.first].range.low < values[rest.bound].range.low;
    nodes[i] = std::move(first);
    if (has_rest) nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(++i), std::move(rest));
  }
}

}  // namespace halyard::aot
