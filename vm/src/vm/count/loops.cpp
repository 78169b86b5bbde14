// Finds loops from the back edges of a depth-first walk.
#include "vm/count/loops.h"

#include <algorithm>
#include <map>

namespace halyard::vm {

namespace {

using Blocks = std::vector<std::vector<uint32_t>>;

constexpr uint64_t kMostVisits = uint64_t{1}
                                 << 20;  // of blocks: kernels of compiled programs need at most 2^16

// The edges that lead to a block which the walk has entered and not left: by head, where they come from.
std::map<uint32_t, std::vector<uint32_t>> back_edges(const Blocks& successors) {
  enum class State : uint8_t { unseen, open, done };
  std::vector<State> states(successors.size(), State::unseen);
  std::map<uint32_t, std::vector<uint32_t>> edges;
  struct Visit {
    uint32_t block;
    size_t next;
  };
  std::vector<Visit> stack = {{0, 0}};
  states[0] = State::open;
  while (!stack.empty()) {
    Visit& visit = stack.back();
    if (visit.next == successors[visit.block].size()) {
      states[visit.block] = State::done;
      stack.pop_back();
      continue;
    }
    const uint32_t target = successors[visit.block][visit.next++];
    if (states[target] == State::open) edges[target].push_back(visit.block);
    if (states[target] != State::unseen) continue;
    states[target] = State::open;
    stack.push_back({target, 0});
  }
  return edges;
}

void add_writes(const Flow& flow, uint32_t block, NaturalLoop& loop) {
  const auto add_register = [&](uint16_t reg, int slots) {
    if (reg & kRefBit) {
      loop.refs.push_back(reg & kRefOrdinalMask);
    } else {
      for (int i = 0; i < slots; ++i) loop.values.push_back(static_cast<uint16_t>(reg + i));
    }
  };
  const Flow::Block& at = flow.blocks()[block];
  for (uint32_t step = at.first_step; step < at.first_step + at.step_count; ++step) {
    const Instruction& instruction = flow.instruction(step);
    const OpInfo& op = info(instruction.op);
    for (size_t i = 0; i < op.operand_count; ++i) {
      const Operand& operand = op.operands[i];
      const DecodedOperand& decoded = instruction.operands[i];
      // A moved ref leaves its register empty.
      if (operand.kind == OperandKind::reg && operand.bank == Bank::ref) {
        if (operand.writes || (decoded.reg & kMoveBit)) loop.refs.push_back(decoded.reg & kRefOrdinalMask);
      } else if (operand.kind == OperandKind::reg && operand.writes) {
        add_register(decoded.reg, is_wide(operand.bank) ? 2 : 1);
      } else if (operand.kind == OperandKind::reg_list && (operand.writes || operand.move)) {
        for (size_t j = 0; j < decoded.regs.size(); ++j)
          if (operand.writes || (decoded.regs[j] & kRefBit)) add_register(decoded.regs[j], 2);
      }
    }
  }
  for (const Flow::Edge& edge : flow.edges(block)) {
    for (size_t i = 0; i < edge.remap.size(); ++i) {
      add_register(edge.remap[i].destination, 1);
      if (edge.remap[i].source & kRefBit) add_register(edge.remap[i].source, 1);
    }
  }
}

template <typename T>
void sort_and_unite(std::vector<T>& numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

std::optional<std::vector<NaturalLoop>> natural_loops(const Flow& flow) {
  const size_t count = flow.blocks().size();
  Blocks successors(count);
  Blocks predecessors(count);
  for (uint32_t block = 0; block < count; ++block) {
    for_each_successor(flow, block, [&](uint32_t target) {
      successors[block].push_back(target);
      predecessors[target].push_back(block);
    });
  }
  const auto edges = back_edges(successors);
  if (uint64_t{count} * edges.size() > kMostVisits) return std::nullopt;
  std::vector<NaturalLoop> loops;
  for (const auto& [head, sources] : edges) {
    NaturalLoop loop;
    loop.head = head;
    loop.has_block.resize(count);
    loop.has_block[head] = true;
    std::vector<uint32_t> pending = sources;
    while (!pending.empty()) {
      const uint32_t block = pending.back();
      pending.pop_back();
      if (loop.has_block[block]) continue;
      loop.has_block[block] = true;
      pending.insert(pending.end(), predecessors[block].begin(), predecessors[block].end());
    }
    if (head != 0 && loop.has_block[0]) continue;  // entered other than by its head
    for (uint32_t block = 0; block < count; ++block)
      if (loop.has_block[block]) add_writes(flow, block, loop);
    sort_and_unite(loop.values);
    sort_and_unite(loop.refs);
    loops.push_back(std::move(loop));
  }
  return loops;
}

}  // namespace halyard::vm
