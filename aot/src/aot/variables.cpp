// Values are united with a union-find structure: each write makes a value, and each edge unites the values at
// its end with those at the beginning of its target, for the registers that are live there.
#include "aot/variables.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace halyard::aot {

using vm::Bank;
using vm::kRefBit;

std::string Variable::name() const {
  constexpr char kLetters[] = {'i', 'l', 'f', 'd'};
  return fmt::format("{}{}", kLetters[static_cast<size_t>(type)], slot);
}

const char* c_type(Variable::Type type) {
  constexpr const char* kTypes[] = {"uint32_t", "uint64_t", "float", "double"};
  return kTypes[static_cast<size_t>(type)];
}

const char* c_type(vm::Bank bank) {
  constexpr const char* kTypes[] = {"void", "uint32_t", "uint64_t", "float", "double", "vm_ref"};
  return kTypes[static_cast<size_t>(bank)];
}

Variables::Variables(const vm::BytecodeModule& module, const vm::Function& function, const Types& types,
                     const vm::Flow& flow)
    : module_(module),
      function_(function),
      flow_(flow),
      reachable_(flow.blocks().size()),
      entries_(flow.blocks().size()),
      steps_(flow.steps().size()),
      edges_(flow.blocks().size()) {
  find_reachable();
  // The values that arrive at the entry are those of block 0, to which a loop may return.
  const std::vector<uint16_t> registers = argument_registers(types.arguments);
  for (size_t i = 0; i < registers.size(); ++i) {
    const Bank bank = bank_of(types.arguments[i]);
    if (bank == Bank::ref) continue;
    const Node low = entry(0, registers[i]);
    use(low, vm::is_wide(bank) ? entry(0, static_cast<uint16_t>(registers[i] + 1)) : kNone, bank);
  }
  const size_t argument_slots = entries_[0].size();
  std::vector<bool> is_argument(function.value_registers);
  for (size_t slot = 0; slot < argument_slots; ++slot) is_argument[slot] = entries_[0][slot] != kNone;
  for (size_t block = 0; block < flow.blocks().size(); ++block)
    if (reachable_[block]) visit_block(block, types.results);
  find_types();
  for (size_t slot = 0; slot < entries_[0].size(); ++slot) {
    const Node node = entries_[0][slot];
    if (node == kNone || is_argument[slot]) continue;
    Variable variable = narrow(node);
    if (is_wide(node)) {
      const bool high = values_[find(node)].uses & kHigh;
      const Node other = values_[find(node)].other;
      variable = high ? wide(other, node) : wide(node, other);
    }
    if (std::ranges::find(zeroed_, variable) == zeroed_.end()) zeroed_.push_back(variable);
  }
}

void Variables::find_reachable() {
  std::vector<size_t> left = {0};
  while (!left.empty()) {
    const size_t block = left.back();
    left.pop_back();
    if (reachable_[block]) continue;
    reachable_[block] = true;
    for (const vm::Flow::Edge& edge : flow_.edges(block)) left.push_back(edge.block);
    if (flow_.blocks()[block].falls_through && block + 1 < flow_.blocks().size()) left.push_back(block + 1);
  }
}

Variables::Node Variables::add(uint16_t slot) {
  const auto node = static_cast<Node>(values_.size());
  values_.push_back({.parent = node, .slot = slot});
  return node;
}

Variables::Node Variables::find(Node node) const {
  while (values_[node].parent != node) node = values_[node].parent = values_[values_[node].parent].parent;
  return node;
}

void Variables::unite(Node a, Node b) {
  a = find(a);
  b = find(b);
  if (a == b) return;
  if (b < a) std::swap(a, b);
  Value& kept = values_[a];
  Value& joined = values_[b];
  joined.parent = a;
  kept.uses |= joined.uses;
  if (joined.other == kNone) return;
  if (kept.other == kNone) {
    kept.other = joined.other;
  } else {
    // The other halves are one value, too, unless something tears them apart.
    const Node others[] = {kept.other, joined.other};
    unite(others[0], others[1]);
  }
}

Variables::Node Variables::entry(size_t block, uint16_t slot) {
  std::vector<Node>& nodes = entries_[block];
  if (nodes.size() <= slot) nodes.resize(slot + 1u, kNone);
  if (nodes[slot] == kNone) nodes[slot] = add(slot);
  return nodes[slot];
}

void Variables::pair(Node low, Node high) {
  values_[find(low)].uses |= kLow;
  values_[find(high)].uses |= kHigh;
  const auto link = [&](Node of, Node to) {
    const Node other = values_[find(of)].other;
    if (other == kNone) {
      values_[find(of)].other = to;
    } else if (find(other) != find(to)) {
      unite(other, to);
    }
  };
  link(low, high);
  link(high, low);
}

void Variables::use(Node low, Node high, Bank bank) {
  constexpr uint8_t kUse[] = {0, kI32, kI64, kF32, kF64};
  values_[find(low)].uses |= kUse[static_cast<size_t>(bank)];
  if (high == kNone) return;
  values_[find(high)].uses |= kUse[static_cast<size_t>(bank)];
  pair(low, high);
}

void Variables::visit_block(size_t index, std::string_view results) {
  const vm::Flow::Block& block = flow_.blocks()[index];
  current_.assign(function_.value_registers, kNone);
  for (size_t step = block.first_step; step < block.first_step + block.step_count; ++step) {
    std::vector<Node>& nodes = steps_[step];
    for_each_value(module_, results, flow_.instruction(step), [&](uint16_t reg, Bank bank, bool writes) {
      Node halves[2] = {kNone, kNone};
      for (int half = 0; half < (vm::is_wide(bank) ? 2 : 1); ++half) {
        const auto slot = static_cast<uint16_t>(reg + half);
        Node& node = current(slot);
        if (writes) node = add(slot);
        if (node == kNone) node = entry(index, slot);
        halves[half] = node;
      }
      use(halves[0], halves[1], bank);
      nodes.insert(nodes.end(), halves, halves + 2);
    });
  }
  // Edges do not see each other's moves.
  const std::vector<Node> at_end = current_;
  for (const vm::Flow::Edge& edge : flow_.edges(index)) {
    current_ = at_end;
    visit_edge(index, edge, edges_[index].emplace_back());
  }
  current_ = at_end;
  std::vector<NodeMove> none;
  if (block.falls_through && index + 1 < flow_.blocks().size())
    visit_edge(index, {.block = static_cast<uint32_t>(index + 1), .moves_values = false, .remap = {}}, none);
}

// Moves happen one after another, so they are visited in order. A move whose destination is neither live in
// the target nor the source of a later move is left out.
void Variables::visit_edge(size_t block, const vm::Flow::Edge& edge, std::vector<NodeMove>& moves) {
  const auto live = [&](uint32_t slot) { return flow_.live_in(edge.block, slot); };
  const vm::RemapList& remap = edge.remap;
  std::vector<bool> needed(remap.size(), true);
  std::vector<std::pair<uint16_t, bool>> wanted;  // the last word on a slot comes last
  const auto is_wanted = [&](uint16_t slot) {
    for (size_t i = wanted.size(); i-- > 0;)
      if (wanted[i].first == slot) return wanted[i].second;
    return live(slot);
  };
  for (size_t i = remap.size(); i-- > 0;) {
    const vm::Remap move = remap[i];
    if (move.source & kRefBit) continue;
    needed[i] = move.source != move.destination && is_wanted(move.destination);
    if (!needed[i]) continue;
    wanted.emplace_back(move.destination, false);
    wanted.emplace_back(move.source, true);
  }
  const auto value_of = [&](uint16_t slot) {
    if (current(slot) == kNone) current(slot) = entry(block, slot);
    return current(slot);
  };
  for (size_t i = 0; i < remap.size(); ++i) {
    const vm::Remap move = remap[i];
    if (move.source & kRefBit) {
      const auto from = static_cast<uint16_t>(move.source & vm::kRefOrdinalMask);
      const auto to = static_cast<uint16_t>(move.destination & vm::kRefOrdinalMask);
      if (from != to)
        moves.push_back(
            {.from = from, .to = to, .is_ref = true, .moves_ref = (move.source & vm::kMoveBit) != 0});
      continue;
    }
    if (!needed[i]) continue;
    NodeMove made = {.from = move.source, .to = move.destination};
    // Both halves of an aligned pair, low half first.
    if (i + 1 < remap.size() && needed[i + 1] && !(remap[i + 1].source & kRefBit) && move.source % 2 == 0 &&
        move.destination % 2 == 0 && remap[i + 1].source == move.source + 1 &&
        remap[i + 1].destination == move.destination + 1) {
      made.wide = true;
      made.source_high = value_of(remap[i + 1].source);
      made.destination_high = add(remap[i + 1].destination);
      ++i;
    }
    made.source = value_of(move.source);
    made.destination = add(move.destination);
    current(made.to) = made.destination;
    if (made.wide) current(static_cast<uint16_t>(made.to + 1)) = made.destination_high;
    moves.push_back(made);
  }
  for (uint16_t slot = 0; slot < function_.value_registers; ++slot) {
    if (!live(slot)) continue;
    const Node end = value_of(slot);
    unite(end, entry(edge.block, slot));
  }
}

void Variables::split(Node node) {
  Value& value = values_[find(node)];
  value.uses |= kSplit;
  if (value.other != kNone) values_[find(value.other)].uses |= kSplit;
}

// Whether the value is the half of a pair that is kept as a whole.
bool Variables::is_wide(Node node) const {
  const uint8_t uses = values_[find(node)].uses;
  return (uses & (kLow | kHigh)) && !(uses & kSplit);
}

// Passes types through moves of values that nothing else uses. Returns whether anything changed.
bool Variables::give_types(const NodeMove& move) {
  const auto uses = [&](Node node) -> uint8_t& { return values_[find(node)].uses; };
  const auto before = std::array{uses(move.source), uses(move.destination)};
  if (move.wide) {
    const bool from = is_wide(move.source) && is_wide(move.source_high);
    const bool to = is_wide(move.destination) && is_wide(move.destination_high);
    const auto give = [&](Node low, Node high, Node of) {
      const uint8_t types = uses(of) & (kI64 | kF64);
      uses(low) |= types;
      uses(high) |= types;
      pair(low, high);
    };
    if (from && uses(move.destination) == 0 && uses(move.destination_high) == 0)
      give(move.destination, move.destination_high, move.source);
    if (to && uses(move.source) == 0 && uses(move.source_high) == 0)
      give(move.source, move.source_high, move.destination);
    // A whole is written as a whole.
    if (to && !from && (uses(move.source) != 0 || uses(move.source_high) != 0)) split(move.destination);
  } else {
    if (is_wide(move.destination)) split(move.destination);
    if (uses(move.destination) == 0)
      uses(move.destination) |= is_wide(move.source) ? kI32 : uses(move.source) & (kI32 | kF32);
    if (uses(move.source) == 0) uses(move.source) |= uses(move.destination) & (kI32 | kF32);
  }
  return before != std::array{uses(move.source), uses(move.destination)};
}

void Variables::find_types() {
  for (bool changed = true; changed;) {
    changed = false;
    for (Node node = 0; node < values_.size(); ++node) {
      if (find(node) != node) continue;
      Value& value = values_[node];
      if ((value.uses & kSplit) || !(value.uses & (kLow | kHigh))) continue;
      // A half that is also used alone, or whose other half is not always the same.
      const Node other = value.other == kNone ? kNone : find(value.other);
      const bool torn = (value.uses & (kI32 | kF32)) || ((value.uses & kLow) && (value.uses & kHigh)) ||
                        other == kNone || (values_[other].uses & kSplit) || values_[other].other == kNone ||
                        find(values_[other].other) != node || values_[other].slot / 2 != value.slot / 2;
      if (!torn) continue;
      split(node);
      changed = true;
    }
    for (const auto& block : edges_)
      for (const auto& moves : block)
        for (const NodeMove& move : moves)
          if (!move.is_ref) changed |= give_types(move);
  }
}

Variable Variables::narrow(Node node) const {
  const Value& value = values_[find(node)];
  const bool is_float = value.uses == kF32;
  return {.type = is_float ? Variable::Type::f32 : Variable::Type::i32, .slot = value.slot};
}

Variable Variables::wide(Node low, Node high) const {
  const Value& value = values_[find(low)];
  const bool whole = is_wide(low) && is_wide(high);
  const bool is_float = whole && (value.uses & kF64) && !(value.uses & kI64);
  return {.type = is_float ? Variable::Type::f64 : Variable::Type::i64, .slot = value.slot, .split = !whole};
}

Variable Variables::at(size_t step, size_t n) const {
  const std::vector<Node>& nodes = steps_[step];
  return nodes[2 * n + 1] == kNone ? narrow(nodes[2 * n]) : wide(nodes[2 * n], nodes[2 * n + 1]);
}

Variable Variables::argument(uint16_t reg, Bank bank) const {
  const Node low = entries_[0][reg];
  return vm::is_wide(bank) ? wide(low, entries_[0][reg + 1u]) : narrow(low);
}

std::optional<Variable> Variables::at_entry(size_t block, uint16_t reg, Bank bank) const {
  const std::vector<Node>& nodes = entries_[block];
  if (reg >= nodes.size() || nodes[reg] == kNone) return {};
  if (!vm::is_wide(bank)) return is_wide(nodes[reg]) ? std::nullopt : std::optional(narrow(nodes[reg]));
  if (reg + 1u >= nodes.size() || nodes[reg + 1u] == kNone) return {};
  const Node low = find(nodes[reg]);
  const Node high = find(nodes[reg + 1u]);
  if (!is_wide(low) || !is_wide(high) || values_[low].other == kNone || find(values_[low].other) != high)
    return {};
  return wide(low, high);
}

std::vector<Move> Variables::moves(size_t block, size_t edge) const {
  std::vector<Move> found;
  const auto half = [&](Node node, Move& move) {
    if (!is_wide(node)) {
      move.source = narrow(node);
      return;
    }
    move.high_half = (values_[find(node)].uses & kHigh) != 0;
    const Node other = values_[find(node)].other;
    move.source = move.high_half ? wide(other, node) : wide(node, other);
  };
  for (const NodeMove& node : edges_[block][edge]) {
    if (node.is_ref) {
      found.push_back({.is_ref = true, .moves_ref = node.moves_ref, .from = node.from, .to = node.to});
      continue;
    }
    if (node.wide && is_wide(node.destination)) {
      found.push_back({.wide = true,
                       .source = wide(node.source, node.source_high),
                       .destination = wide(node.destination, node.destination_high)});
      continue;
    }
    for (const bool high : {false, true}) {
      if (high && !node.wide) break;
      Move move = {.destination = narrow(high ? node.destination_high : node.destination)};
      half(high ? node.source_high : node.source, move);
      found.push_back(move);
    }
  }
  return found;
}

}  // namespace halyard::aot
