#include "plan/body.h"

#include <algorithm>

#include "aot/signature.h"

namespace halyard::aot {

namespace {

using Sets = std::vector<std::vector<bool>>;

// The dominators of each node from `entry`; a node that cannot be reached has all.
Sets dominators(const std::vector<std::vector<size_t>>& before, size_t entry) {
  const size_t count = before.size();
  Sets sets(count, std::vector<bool>(count, true));
  sets[entry].assign(count, false);
  sets[entry][entry] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t node = 0; node < count; ++node) {
      if (node == entry) continue;
      std::vector<bool> all(count, true);
      for (const size_t each : before[node])
        for (size_t i = 0; i < count; ++i) all[i] = all[i] && sets[each][i];
      all[node] = true;
      if (all == sets[node]) continue;
      sets[node] = std::move(all);
      changed = true;
    }
  }
  return sets;
}

constexpr size_t kMaxBlocks = 600;

}  // namespace

std::vector<size_t> Body::successors(size_t block) const {
  std::vector<size_t> all;
  for (const vm::Flow::Edge& edge : flow_->edges(block)) all.push_back(edge.block);
  const vm::Flow::Block& each = flow_->blocks()[block];
  if (each.falls_through && block + 1 < exit()) all.push_back(block + 1);
  if (all.empty()) all.push_back(exit());
  return all;
}

bool Body::leaves_object_loop(size_t block) const {
  for (const auto& [head, loop] : loops_) {
    if (!loop.moves_refs || !loop.blocks.contains(block)) continue;
    for (const size_t next : successors(block))
      if (!loop.blocks.contains(next)) return true;
  }
  return false;
}

void Body::find_meetings() {
  const size_t count = exit() + 1;
  std::vector<std::vector<size_t>> after(count);
  for (size_t block = 0; block < exit(); ++block) after[block] = successors(block);
  const Sets sets = dominators(after, exit());
  // The nearest is the one that all others dominate.
  meetings_.assign(count, exit());
  for (size_t block = 0; block < exit(); ++block) {
    size_t nearest = exit();
    size_t depth = 0;
    for (size_t each = 0; each < count; ++each) {
      if (each == block || !sets[block][each]) continue;
      const auto size = static_cast<size_t>(std::ranges::count(sets[each], true));
      if (size >= depth) {
        depth = size;
        nearest = each;
      }
    }
    meetings_[block] = nearest;
  }
}

Result<> Body::find_loops() {
  const size_t count = exit();
  std::vector<std::vector<size_t>> before(count);
  for (size_t block = 0; block < count; ++block)
    for (const size_t next : successors(block))
      if (next != exit()) before[next].push_back(block);
  // Blocks that cannot be reached are in no loop.
  std::vector<bool> reachable(count, false);
  std::vector<size_t> left = {0};
  while (!left.empty()) {
    const size_t block = left.back();
    left.pop_back();
    if (block == exit() || reachable[block]) continue;
    reachable[block] = true;
    for (const size_t next : successors(block)) left.push_back(next);
  }
  for (auto& each : before) std::erase_if(each, [&](size_t block) { return !reachable[block]; });
  const Sets sets = dominators(before, 0);
  for (size_t tail = 0; tail < count; ++tail) {
    if (!reachable[tail]) continue;
    for (const size_t head : successors(tail)) {
      if (head == exit() || !sets[tail][head]) continue;
      LoopShape& loop = loops_[head];
      loop.blocks.insert(head);
      std::vector<size_t> inside = {tail};
      while (!inside.empty()) {
        const size_t block = inside.back();
        inside.pop_back();
        if (!loop.blocks.insert(block).second) continue;
        for (const size_t each : before[block]) inside.push_back(each);
      }
    }
  }
  for (auto& [head, loop] : loops_) {
    bool first = true;
    for (const size_t block : loop.blocks) {
      for (const size_t next : successors(block)) {
        if (next != exit() && loop.blocks.contains(next)) continue;
        if (!first && loop.exit != next) loop.is_simple = false;
        loop.exit = next;
        first = false;
        ++loop.exit_edges;
      }
      const vm::Flow::Block& each = flow_->blocks()[block];
      for (size_t step = each.first_step; step < each.first_step + each.step_count; ++step) {
        for (const vm::Access access : flow_->accesses(step))
          if (access.writes()) loop.slots.insert(static_cast<uint16_t>(access.slot()));
        const vm::Instruction& instruction = flow_->instruction(step);
        const vm::OpInfo& op = vm::info(instruction.op);
        const auto touch = [&](uint16_t reg) { loop.refs.insert(reg & vm::kRefOrdinalMask); };
        for (size_t i = 0; i < op.operand_count; ++i) {
          if (op.operands[i].kind == vm::OperandKind::reg && op.operands[i].bank == vm::Bank::ref &&
              (op.operands[i].writes || (instruction.operands[i].reg & vm::kMoveBit)))
            touch(instruction.operands[i].reg);
          if (op.operands[i].kind == vm::OperandKind::reg_list)
            for (size_t n = 0; n < instruction.operands[i].regs.size(); ++n) {
              const uint16_t reg = instruction.operands[i].regs[n];
              const bool discards = instruction.op == vm::Op::discard_refs;
              if ((reg & vm::kRefBit) && (op.operands[i].writes || discards || (reg & vm::kMoveBit)))
                touch(reg);
            }
        }
      }
      for (const vm::Flow::Edge& edge : flow_->edges(block))
        for (size_t i = 0; i < edge.remap.size(); ++i) {
          const vm::Remap remap = edge.remap[i];
          if (remap.destination & vm::kRefBit) {
            loop.refs.insert(remap.destination & vm::kRefOrdinalMask);
            if (remap.source & vm::kMoveBit) loop.refs.insert(remap.source & vm::kRefOrdinalMask);
          } else {
            loop.slots.insert(remap.destination);
          }
        }
    }
    if (first) loop.is_simple = false;
    loop.moves_refs = !loop.refs.empty();
  }
  return {};
}

Result<std::unique_ptr<Body>> Body::of(const Plan& plan, uint32_t function) {
  std::unique_ptr<Body> body(new Body(plan, function));
  body->flow_.emplace(
      HALYARD_TRY(vm::Flow::of(plan.module, plan.module.functions()[function], body->arena_)));
  if (body->exit() > kMaxBlocks)
    return fail(Code::UNIMPLEMENTED, "function {} has {} blocks, more than {}", function, body->exit(),
                kMaxBlocks);
  body->find_meetings();
  HALYARD_TRY(body->find_loops());
  return body;
}

}  // namespace halyard::aot
