#include "plan/simplify.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "aot/c_text.h"
#include "plan/cells.h"

namespace halyard::aot {

namespace {

// ---- unused statements

bool defines(const Node& node) {
  return (node.kind == Node::Kind::let && node.removable) || node.kind == Node::Kind::variable ||
         node.kind == Node::Kind::assign;
}

void erase_unused(Nodes& nodes, const std::set<ValueId>& used) {
  for (Node& node : nodes) {
    erase_unused(node.body, used);
    erase_unused(node.other, used);
  }
  std::erase_if(nodes, [&](const Node& node) {
    if (defines(node) && !used.contains(node.value)) return true;
    if (node.kind == Node::Kind::branch && node.body.empty() && node.other.empty()) return true;
    return node.kind == Node::Kind::loop && node.counted && node.body.empty();
  });
}

// ---- accesses of loops

void collect(const Nodes& nodes, std::vector<Access>& accesses, std::set<ValueId>& assigned,
             std::set<ValueId>& used, bool& is_plain) {
  for_each_node(nodes, [&](const Node& node) {
    accesses.insert(accesses.end(), node.accesses.begin(), node.accesses.end());
    used.insert(node.uses.begin(), node.uses.end());
    if (node.kind == Node::Kind::assign) assigned.insert(node.value);
    is_plain =
        is_plain && (defines(node) || node.kind == Node::Kind::let || node.kind == Node::Kind::branch ||
                     (node.kind == Node::Kind::loop && node.counted) ||
                     (node.kind == Node::Kind::effect && !node.accesses.empty()));
  });
}

class Fusion {
 public:
  Fusion(Values& values, const OverlapOf& overlap) : values_(values), overlap_(overlap) {}

  void fuse(Nodes& nodes) {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < nodes.size() && !changed; ++i) {
        if (nodes[i].kind != Node::Kind::loop || !nodes[i].counted) continue;
        size_t next = i + 1;
        while (next < nodes.size() && is_movable(nodes[next])) ++next;
        if (next == nodes.size() || nodes[next].kind != Node::Kind::loop || !nodes[next].counted) continue;
        changed = try_pair(nodes, i, next);
      }
    }
    for (Node& node : nodes) {
      if (node.kind == Node::Kind::loop) fuse(node.body);
      if (node.kind == Node::Kind::branch) {
        fuse(node.body);
        fuse(node.other);
      }
    }
  }

 private:
  static bool is_movable(const Node& node) {
    return node.accesses.empty() &&
           ((node.kind == Node::Kind::let && node.removable) || node.kind == Node::Kind::variable);
  }

  ValueId root(ValueId id) const {
    const auto found = same_.find(id);
    return found == same_.end() ? id : root(found->second);
  }

  Affine mapped(const Affine& affine) const {
    Affine all = {affine.known, affine.base, {}};
    for (const auto& [variable, coefficient] : affine.terms)
      all.terms.emplace_back(root(variable), coefficient);
    std::ranges::sort(all.terms);
    return all;
  }

  Range range_of(const Affine& affine) const {
    Range all = Range::just(affine.base);
    for (const auto& [variable, coefficient] : affine.terms) {
      const Range& one = values_[variable].range;
      const int64_t a = one.low * coefficient;
      const int64_t b = one.high * coefficient;
      all.low += std::min(a, b);
      all.high += std::max(a, b);
    }
    return all;
  }

  bool is_independent(const Access& a, const Access& b, ValueId counter, int64_t step) const {
    if (!a.writes && !b.writes) return true;
    if (lie_apart(a, b, values_, overlap_)) return true;
    int64_t distance = 0;
    if (a.memory != b.memory) {
      const Overlap lies = overlap_(a.memory, b.memory);
      if (lies.kind == Overlap::Kind::unknown) return false;
      distance = lies.distance;
    }
    if (a.width == 0 || b.width == 0) return false;
    // The same elements in the same iteration, and others in others.
    if (a.width != b.width || a.offset != b.offset + distance) return false;
    const Affine p = mapped(values_[a.index].affine);
    const Affine q = mapped(values_[b.index].affine);
    if (!p.known || !q.known) return false;
    int64_t factor = 0;
    const auto rest = [&](Affine of, int64_t* coefficient, const Affine& against) {
      for (const auto& term : of.terms)
        if (term.first == counter) *coefficient = term.second;
      // The counters of loops around both have one value.
      std::erase_if(of.terms, [&](const auto& term) {
        return term.first == counter || (!inner_.contains(term.first) &&
                                         std::ranges::find(against.terms, term) != against.terms.end());
      });
      return of;
    };
    int64_t other = 0;
    const Range u = range_of(rest(p, &factor, q));
    const Range v = range_of(rest(q, &other, p));
    if (factor == 0 || factor != other) return false;
    const int64_t span = std::max(u.high, v.high) - std::min(u.low, v.low);
    return span < (factor < 0 ? -factor : factor) * step;
  }

  bool try_pair(Nodes& nodes, size_t i, size_t next) {
    Node& a = nodes[i];
    Node& b = nodes[next];
    if (a.step != b.step || a.first != b.first || a.bound != b.bound) return false;
    if (!values_.is_constant(a.first) || !values_.is_constant(a.bound)) return false;
    std::vector<Access> x;
    std::vector<Access> y;
    std::set<ValueId> a_assigned;
    std::set<ValueId> b_assigned;
    std::set<ValueId> a_used;
    std::set<ValueId> b_used;
    bool is_plain = true;
    collect(a.body, x, a_assigned, a_used, is_plain);
    collect(b.body, y, b_assigned, b_used, is_plain);
    for (size_t between = i + 1; between < next; ++between)
      b_used.insert(nodes[between].uses.begin(), nodes[between].uses.end());
    if (!is_plain) return false;
    for (const ValueId each : a_assigned)
      if (b_used.contains(each)) return false;
    for (const ValueId each : b_assigned)
      if (a_used.contains(each)) return false;
    same_[b.value] = a.value;
    inner_.clear();
    for (const Nodes* const body : {&a.body, &b.body})
      for_each_node(*body, [&](const Node& node) {
        if (node.kind == Node::Kind::loop) inner_.insert(root(node.value));
      });
    for (const Access& each : x)
      for (const Access& other : y)
        if (!is_independent(each, other, root(a.value), a.step)) {
          same_.erase(b.value);
          return false;
        }
    a.body.push_back({.kind = Node::Kind::let,
                      .value = b.value,
                      .text = values_[a.value].name,
                      .uses = {a.value},
                      .removable = true});
    // The counters hold the same, but the type of the second one may be another.
    if (values_[a.value].is_narrow != values_[b.value].is_narrow)
      a.body.back().text =
          values_[b.value].is_narrow ? "(uint32_t)" + values_[a.value].name : values_[a.value].name;
    for (Node& node : b.body) a.body.push_back(std::move(node));
    Nodes before;
    for (size_t between = i + 1; between < next; ++between) before.push_back(std::move(nodes[between]));
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                nodes.begin() + static_cast<std::ptrdiff_t>(next) + 1);
    nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(i), std::make_move_iterator(before.begin()),
                 std::make_move_iterator(before.end()));
    return true;
  }

  Values& values_;
  const OverlapOf& overlap_;
  std::map<ValueId, ValueId> same_;  // the counters of fused loops
  std::set<ValueId> inner_;          // those of loops inside the pair

 public:
  // The fused loops' counters, for those who compare indices afterwards.
  const std::map<ValueId, ValueId>& same() const { return same_; }
};

// ---- buffers as variables

bool is_zeroing(const Node& node, MemoryId memory) {
  return node.kind == Node::Kind::effect && node.text.starts_with("memset(" + memory_name(memory) + ",");
}

size_t count_of(const Nodes& nodes, MemoryId memory) {
  size_t count = 0;
  for_each_node(nodes, [&](const Node& node) {
    for (const Access& each : node.accesses) count += each.memory == memory && !is_zeroing(node, memory);
  });
  return count;
}

// The innermost list that has all accesses.
Nodes* home_of(Nodes& nodes, MemoryId memory, size_t count) {
  for (Node& node : nodes)
    for (Nodes* const inner : {&node.body, &node.other})
      if (node.kind == Node::Kind::loop && count_of(*inner, memory) == count)
        return home_of(*inner, memory, count);
  return &nodes;
}

void rename(Nodes& nodes, MemoryId memory, const std::string& name, const CellType& type, bool& is_declared) {
  for (Node& node : nodes) {
    const bool here =
        std::ranges::any_of(node.accesses, [&](const Access& each) { return each.memory == memory; });
    if (here && node.kind == Node::Kind::let) {
      type.load(node.text, memory, name);
    } else if (here) {
      node.text =
          fmt::format("{}{} = {};", is_declared ? "" : type.declaration() + " ", name, type.stored(node));
      node.cell = name;
      is_declared = true;
    }
    if (here) {
      // The index is not used any more.
      const ValueId index = node.accesses[0].index;
      const auto found = std::ranges::find(node.uses, index);
      if (found != node.uses.end()) node.uses.erase(found);
      node.accesses.clear();
    }
    rename(node.body, memory, name, type, is_declared);
    rename(node.other, memory, name, type, is_declared);
  }
}

}  // namespace

void remove_unused(Nodes& nodes, const Values& values, const std::vector<ValueId>& results) {
  for (size_t before = SIZE_MAX;;) {
    std::map<ValueId, std::vector<const Node*>> definitions;
    std::vector<ValueId> left = results;
    size_t count = 0;
    for_each_node(nodes, [&](const Node& node) {
      ++count;
      if (defines(node))
        definitions[node.value].push_back(&node);
      else
        left.insert(left.end(), node.uses.begin(), node.uses.end());
    });
    if (count == before) return;
    before = count;
    std::set<ValueId> used;
    while (!left.empty()) {
      const ValueId id = left.back();
      left.pop_back();
      if (id == kNoValue) continue;
      const ValueId root = values[id].same;
      for (const ValueId each : {id, root}) {
        if (!used.insert(each).second) continue;
        const auto found = definitions.find(each);
        if (found == definitions.end()) continue;
        for (const Node* const node : found->second)
          left.insert(left.end(), node->uses.begin(), node->uses.end());
      }
    }
    erase_unused(nodes, used);
  }
}

void fuse_loops(Nodes& nodes, Values& values, const OverlapOf& overlap) {
  Fusion fusion(values, overlap);
  fusion.fuse(nodes);
  // Indices name the counters of the loops that are left.
  const auto root = [&](ValueId id) {
    for (auto found = fusion.same().find(id); found != fusion.same().end(); found = fusion.same().find(id))
      id = found->second;
    return id;
  };
  for (ValueId id = 0; id < values.size(); ++id) {
    for (auto& [variable, coefficient] : values.at(id).affine.terms) variable = root(variable);
    std::ranges::sort(values.at(id).affine.terms);
  }
}

bool remove_unread(Nodes& nodes) {
  // "uint32_t x5 = ...;" or "x5 = ...;"
  const auto target = [](const Node& node) -> std::string {
    if (node.kind != Node::Kind::effect || !node.accesses.empty()) return "";
    const size_t equals = node.text.find(" = ");
    if (equals == std::string::npos) return "";
    const size_t space = node.text.rfind(' ', equals - 1);
    const std::string name = node.text.substr(space == std::string::npos ? 0 : space + 1,
                                              equals - (space == std::string::npos ? 0 : space + 1));
    return name.size() > 1 && name[0] == 'x' && name[1] >= '0' && name[1] <= '9' ? name : "";
  };
  std::set<std::string> written;
  std::set<std::string, std::less<>> read;
  for_each_node(nodes, [&](const Node& node) {
    const std::string name = target(node);
    if (!name.empty()) written.insert(name);
    const size_t equals = name.empty() ? 0 : node.text.find(" = ") + 3;
    for (const std::string_view word : words_of(std::string_view(node.text).substr(equals)))
      read.emplace(word);
  });
  const auto is_unread = [&](const Node& node) {
    const std::string name = target(node);
    return !name.empty() && written.contains(name) && !read.contains(name);
  };
  bool changed = false;
  const auto erase = [&](auto& self, Nodes& inner) -> void {
    for (Node& node : inner) {
      self(self, node.body);
      self(self, node.other);
    }
    changed |= std::erase_if(inner, is_unread) != 0;
  };
  erase(erase, nodes);
  return changed;
}

void replace_buffers(Nodes& nodes, const Values& values, const std::vector<Memory>& memories) {
  for (MemoryId memory = 0; memory < memories.size(); ++memory) {
    if (memories[memory].kind != MemoryKind::transient || !memories[memory].is_zeroed) continue;
    const size_t count = count_of(nodes, memory);
    if (count == 0) continue;
    Nodes* const home = home_of(nodes, memory, count);
    if (home == &nodes) continue;
    // One element, which is stored first.
    const Node* first = nullptr;
    for (const Node& node : *home) {
      if (count_of({node}, memory) == 0) continue;
      first = &node;
      break;
    }
    if (first == nullptr || first->kind != Node::Kind::effect || first->accesses.size() != 1 ||
        !first->accesses[0].writes || !first->text.starts_with("vm_set_"))
      continue;
    const Access wanted = first->accesses[0];
    bool same = wanted.width != 0 && values[wanted.index].affine.known;
    for_each_node(*home, [&](const Node& node) {
      for (const Access& each : node.accesses) {
        if (each.memory != memory) continue;
        same = same && node.accesses.size() == 1 && each.width == wanted.width &&
               each.offset == wanted.offset && values[each.index].affine == values[wanted.index].affine &&
               (node.kind == Node::Kind::let || node.text.starts_with("vm_set_"));
      }
    });
    if (!same) continue;
    CellType type(wanted.width);
    for_each_node(*home, [&](const Node& node) {
      if (!node.accesses.empty() && node.accesses[0].memory == memory) type.add(node);
    });
    bool is_declared = false;
    rename(*home, memory, fmt::format("x{}", memory), type, is_declared);
    std::erase_if(nodes, [&](const Node& node) { return is_zeroing(node, memory); });
  }
}

}  // namespace halyard::aot
