#include "aot/unchecked_loops.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <ranges>

#include "aot/c_text.h"
#include "aot/forms.h"

namespace halyard::aot {

using vm::Bank;
using vm::Op;
using vm::OperandKind;

namespace {

// Larger loops are not copied, and not more than this of a function.
constexpr size_t kMostSteps = 400;
constexpr size_t kMostCopied = 2000;
constexpr size_t kMostConditions = 16;

constexpr std::string_view kBytes = "$v0";
constexpr std::string_view kIndex = "$1";

// The condition of an access with `index` in place of its operand.
std::string with_index(std::string_view condition, uint16_t ref, std::string_view index) {
  std::string text(condition);
  text.replace(text.find(kBytes), kBytes.size(), fmt::format("v{}", ref));
  return text.replace(text.find(kIndex), kIndex.size(), index);
}

}  // namespace

const ListAccess* list_access(Op op) {
  static constexpr ListAccess kLoads[] = {{"VM_I32", "vm_get_32($p0 + (size_t)$1 * 4)"},
                                          {"VM_I64", "vm_get_64($p0 + (size_t)$1 * 8)"},
                                          {"VM_F32", "vm_f32(vm_get_32($p0 + (size_t)$1 * 4))"},
                                          {"VM_F64", "vm_f64(vm_get_64($p0 + (size_t)$1 * 8))"}};
  static constexpr ListAccess kStores[] = {{"VM_I32", "vm_set_32($p0 + (size_t)$1 * 4, $2)"},
                                           {"VM_I64", "vm_set_64($p0 + (size_t)$1 * 8, $2)"},
                                           {"VM_F32", "vm_set_32($p0 + (size_t)$1 * 4, vm_bits_f32($2))"},
                                           {"VM_F64", "vm_set_64($p0 + (size_t)$1 * 8, vm_bits_f64($2))"}};
  constexpr Op kLoadOps[] = {Op::list_get_i32, Op::list_get_i64, Op::list_get_f32, Op::list_get_f64};
  constexpr Op kStoreOps[] = {Op::list_set_i32, Op::list_set_i64, Op::list_set_f32, Op::list_set_f64};
  for (size_t i = 0; i < std::size(kLoadOps); ++i) {
    if (op == kLoadOps[i]) return &kLoads[i];
    if (op == kStoreOps[i]) return &kStores[i];
  }
  return nullptr;
}

UncheckedLoops::UncheckedLoops(const Plan& plan, const vm::Function& function, const vm::Flow& flow,
                               const Variables& variables, const LoopRanges::Read& read)
    : plan_(plan),
      function_(function),
      flow_(flow),
      variables_(variables),
      read_(read),
      loops_(flow),
      copies_(1) {
  std::vector<size_t> outermost;
  for (size_t loop = 0; loop < loops_.all().size(); ++loop)
    if (loops_.all()[loop].parent == Loop::kNone) outermost.push_back(loop);
  this->plan(0, outermost);
}

std::optional<size_t> UncheckedLoops::guarded(size_t copy, size_t block) const {
  for (size_t i = 1; i < copies_.size(); ++i)
    if (copies_[i].parent == copy && loops_.all()[copies_[i].loop].header == block) return i;
  return {};
}

std::string UncheckedLoops::label(size_t copy, size_t block) {
  return copy == 0 ? fmt::format("b{}", block) : fmt::format("b{}_{}", block, copy);
}

std::string UncheckedLoops::guard_label(size_t copy, size_t block) {
  return "g" + label(copy, block).substr(1);
}

std::string UncheckedLoops::target(size_t copy, size_t from, size_t to) const {
  while (!contains(copy, to)) copy = copies_[copy].parent;
  const std::optional<size_t> inner = guarded(copy, to);
  return inner && !contains(*inner, from) ? guard_label(copy, to) : label(copy, to);
}

UncheckedLoops::Effects UncheckedLoops::effects_of(const Loop& loop) const {
  Effects effects;
  const auto changes = [&](uint16_t reg) { effects.refs.insert(reg & vm::kRefOrdinalMask); };
  for (size_t block = 0; block < loop.blocks.size(); ++block) {
    if (!loop.blocks[block]) continue;
    const vm::Flow::Block& each = flow_.blocks()[block];
    effects.steps += each.step_count;
    for (size_t step = each.first_step; step < each.first_step + each.step_count; ++step) {
      const vm::Instruction& instruction = flow_.instruction(step);
      const vm::OpInfo& op = vm::info(instruction.op);
      effects.calls |=
          vm::has_trait(instruction.op, vm::CALLS) || vm::has_trait(instruction.op, vm::SUSPENDS);
      effects.resizes |= instruction.op == Op::list_resize || instruction.op == Op::list_reserve;
      for (size_t i = 0; i < op.operand_count; ++i) {
        const vm::DecodedOperand& operand = instruction.operands[i];
        if (op.operands[i].kind == OperandKind::reg && op.operands[i].bank == Bank::ref &&
            (op.operands[i].writes || (operand.reg & vm::kMoveBit)))
          changes(operand.reg);
        if (op.operands[i].kind != OperandKind::reg_list) continue;
        for (size_t n = 0; n < operand.regs.size(); ++n)
          if (operand.regs[n] & vm::kRefBit) changes(operand.regs[n]);
      }
    }
    for (const vm::Flow::Edge& edge : flow_.edges(block)) {
      if (!loop.blocks[edge.block]) continue;
      for (size_t i = 0; i < edge.remap.size(); ++i) {
        if (!(edge.remap[i].source & vm::kRefBit)) continue;
        changes(edge.remap[i].destination);
        if (edge.remap[i].source & vm::kMoveBit) changes(edge.remap[i].source);
      }
    }
  }
  return effects;
}

std::vector<size_t> UncheckedLoops::inner(size_t loop, bool innermost_only) const {
  std::vector<size_t> found;
  for (size_t i = loop + 1; i < loops_.all().size(); ++i) {
    const Loop& each = loops_.all()[i];
    if (!loops_.all()[loop].blocks[each.header]) continue;
    const bool has_loops =
        std::ranges::any_of(loops_.all(), [&](const Loop& other) { return other.parent == i; });
    if (innermost_only ? !has_loops : each.parent == loop) found.push_back(i);
  }
  return found;
}

void UncheckedLoops::plan(size_t copy, const std::vector<size_t>& loops) {
  for (const size_t loop : loops) {
    const Effects effects = effects_of(loops_.all()[loop]);
    const bool fits = !effects.calls && effects.steps <= kMostSteps && copied_ + effects.steps <= kMostCopied;
    if (!fits || !guard(copy, loop, effects)) {
      plan(copy, inner(loop, false));
      continue;
    }
    copied_ += effects.steps;
    const size_t made = copies_.size() - 1;
    plan(made, inner(loop, false));
    // A guard may fail although the accesses of an inner loop are within their buffers.
    plan(copy, inner(loop, true));
  }
}

// Adds a copy of the loop, if one of its checks can be made before it.
bool UncheckedLoops::guard(size_t copy, size_t loop, const Effects& effects) {
  const Loop& all = loops_.all()[loop];
  Copy made = {.loop = loop, .parent = copy, .steps = copies_[copy].steps};
  std::optional<LoopRanges> ranges;
  for (const size_t block : loops_.order()) {
    if (!all.blocks[block]) continue;
    // Only accesses of each iteration: the guard would compare indices that are not used.
    const Loop& innermost = loops_.all()[loops_.innermost(block)];
    if (!std::ranges::all_of(innermost.latches, [&](size_t latch) { return loops_.dominates(block, latch); }))
      continue;
    const vm::Flow::Block& each = flow_.blocks()[block];
    for (size_t step = each.first_step; step < each.first_step + each.step_count; ++step) {
      const vm::Instruction& instruction = flow_.instruction(step);
      const std::string_view condition = form_of(instruction.op).condition;
      const ListAccess* const list = plan_.role == Role::program ? nullptr : list_access(instruction.op);
      const bool is_buffer = plan_.has_checks && condition.find(kBytes) != std::string_view::npos;
      if ((!is_buffer && !list) || made.steps.contains(step)) continue;
      const auto ref = static_cast<uint16_t>(instruction.operands[0].reg & vm::kRefOrdinalMask);
      if (effects.refs.contains(ref) || (list && effects.resizes)) continue;
      if (!ranges) ranges.emplace(function_, flow_, variables_, loops_, loop, read_);
      const std::optional<std::string> index = ranges->most(step, 1);
      if (!index) continue;
      const std::string needed = list ? fmt::format("vm_list_fits(r{}, {}, {})", ref, *index, list->type)
                                      : with_index(condition, ref, *index);
      if (std::ranges::find(made.conditions, needed) == made.conditions.end()) {
        if (made.conditions.size() == kMostConditions) continue;
        made.conditions.push_back(needed);
      }
      if (list) made.lists.insert(ref);
      made.steps.insert(step);
    }
  }
  if (made.conditions.empty()) return false;
  // Without the statements of bounds that were not found in the end.
  std::set<std::string, std::less<>> used;
  const auto use = [&](std::string_view text) {
    for (const std::string_view word : words_of(text)) used.emplace(word);
  };
  for (const std::string& each : made.conditions) use(each);
  for (const std::string& each : ranges->statements() | std::views::reverse) {
    const size_t name = std::string_view("const uint64_t ").size();
    if (!used.contains(each.substr(name, each.find(' ', name) - name))) continue;
    use(each);
    made.statements.insert(made.statements.begin(), each);
  }
  copies_.push_back(std::move(made));
  return true;
}

}  // namespace halyard::aot
