// Finds the slots that hold constants, and those that are only used as immediates.
#include "vm/decode/constants.h"

#include <algorithm>
#include <array>
#include <span>

#include "vm/decode/fusion_tables.h"

namespace halyard::vm {

namespace {

// The operands of an instruction that can be immediates.
struct Foldable {
  bool right = false;
  bool left = false;
  bool wide[2] = {};
};
constexpr auto kFoldable = [] {
  std::array<Foldable, kOpCount> table;
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (!takes_immediate(op)) continue;
    table[i] = {.right = true,
                .left = commutes(op) || fused(kFusions.immediate_left, op) != kNotFused,
                .wide = {is_wide(kOps[i].operands[0].bank), is_wide(kOps[i].operands[1].bank)}};
  }
  return table;
}();

}  // namespace

std::optional<int16_t> small_operand(Op op, uint64_t bits, bool wide) {
  if (kNegated[static_cast<size_t>(op)] != Op::kCount) bits = 0 - bits;
  if (has_trait(op, SHIFTS)) bits &= is_wide(info(op).operands[2].bank) ? 63 : 31;
  const int64_t value = wide ? static_cast<int64_t>(bits) : static_cast<int32_t>(bits);
  if (value != static_cast<int16_t>(value)) return {};
  return static_cast<int16_t>(value);
}

Constants Constants::of(const Function& function, const Flow& flow, Arena& arena) {
  Constants constants(arena);
  constants.slots_.resize(function.value_registers);
  if (flow.blocks().empty()) return constants;
  const Flow::Block& entry = flow.blocks().front();
  Array<uint16_t> globals(arena);
  for (size_t step = entry.first_step; step < entry.first_step + entry.step_count; ++step) {
    if (!writes_constant(flow.steps()[step].op)) continue;
    const ConstantWrite write = constant_write(flow.instruction(step));
    for (uint32_t half = 0; half < (write.wide ? 2 : 1); ++half) {
      if (flow.write_count(write.result + half) != 1) continue;
      Slot& slot = constants.slots_[write.result + half];
      slot.global = true;
      slot.global_bits = static_cast<uint32_t>(write.bits >> (32 * half));
      globals.push_back(static_cast<uint16_t>(write.result + half));
    }
  }
  if (!globals.empty()) constants.find_folded(flow, {globals.data(), globals.size()});
  return constants;
}

void Constants::find_folded(const Flow& flow, std::span<const uint16_t> globals) {
  for (const uint16_t slot : globals) slots_[slot].folded = !flow.moved(slot) && !flow.live_in(0, slot);
  for (size_t step = 0; step + 1 < flow.steps().size(); ++step) fold_operands(flow, step);
  // A pair is folded as a whole or not at all.
  for (const uint16_t slot : globals) {
    const size_t other = slot ^ 1u;
    if (other < slots_.size() && slots_[other].global && !slots_[other].folded) slots_[slot].folded = false;
  }
}

// The slots that the instruction reads need registers, unless the instruction can take them as immediates.
void Constants::fold_operands(const Flow& flow, size_t step) {
  const std::span<const Access> accesses = flow.accesses(step);
  const Foldable& foldable = kFoldable[static_cast<size_t>(flow.steps()[step].op)];
  if (!foldable.right) {
    for (size_t i = 0; i < accesses.size() && !accesses[i].writes(); ++i)
      slots_[accesses[i].slot()].folded = false;
    return;
  }
  const size_t begin[3] = {0, foldable.wide[0] ? 2u : 1u,
                           (foldable.wide[0] ? 2u : 1u) + (foldable.wide[1] ? 2u : 1u)};
  // Whether the whole operand is constant, and whether it fits in an immediate.
  const auto constant = [&](size_t i) {
    return slots_[accesses[begin[i]].slot()].global && slots_[accesses[begin[i + 1] - 1].slot()].global;
  };
  const auto fits = [&](size_t i) {
    const uint32_t low = accesses[begin[i]].slot();
    const uint64_t high = foldable.wide[i] ? slots_[low + 1].global_bits : 0;
    return small_operand(flow.steps()[step].op, slots_[low].global_bits | high << 32, foldable.wide[i])
        .has_value();
  };
  const bool left = constant(0);
  const bool right = constant(1);
  const bool folds_right = right && !left && fits(1);
  const bool folds_left = foldable.left && left && !right && fits(0);
  for (size_t i = 0; i < accesses.size() && !accesses[i].writes(); ++i) {
    if (!(i < begin[1] ? folds_left : folds_right)) slots_[accesses[i].slot()].folded = false;
  }
}

}  // namespace halyard::vm
