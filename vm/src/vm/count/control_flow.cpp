// Follows the control flow of a kernel with the values of its integer registers. A loop is first tried as a
// whole: one pass finds the registers that it increments by a constant, a second pass counts one iteration,
// in which these registers vary along a new dimension, and the exit test gives the trip count. If another
// branch varies along the dimension, its iterations differ and are followed one by one. The grid is treated
// in the same way, as three outermost dimensions.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "vm/count/instructions.h"
#include "vm/count/kernel_counts.h"
#include "vm/count/loops.h"
#include "vm/count/scalar.h"
#include "vm/count/steps.h"

namespace halyard::vm {

namespace {

// Up to so many workgroups are followed one by one only to know the ranges of addresses.
constexpr uint64_t kFewWorkgroups = 256;
constexpr size_t kFirstInteger = 3;  // integers of a workgroup: id, size, count

// Executions of each block; the last element has the operations of imports.
using Tally = std::vector<uint64_t>;

class Counter {
 public:
  Counter(const BytecodeModule& module, const Function& function, const Flow& flow,
          std::vector<NaturalLoop> loops, const KernelArguments& arguments)
      : function_(function),
        flow_(flow),
        arguments_(arguments),
        loops_(std::move(loops)),
        loop_at_(flow.blocks().size()),
        tally_(flow.blocks().size() + 1),
        steps_(module, flow, arguments) {
    for (NaturalLoop& loop : loops_) loop_at_[loop.head] = &loop;
  }

  Result<KernelCounts> count() {
    uint64_t workgroups = 1;
    for (const uint32_t size : arguments_.workgroups)
      if (__builtin_mul_overflow(workgroups, size, &workgroups)) workgroups = UINT64_MAX;
    if (workgroups == 0) return KernelCounts{.bytes = KernelCounts::Bytes()};
    steps_.has_few_workgroups = workgroups <= kFewWorkgroups;
    // Dimensions of the grid along which workgroups differ are walked; the others are counted at once.
    std::array<bool, kGridDimensions> walked = {};
    while (!count_grid(walked)) {
      const uint32_t along = steps_.refusal.along & kGrid;
      if (along == 0) {
        // The ranges of addresses may not be worth it.
        if (!std::exchange(steps_.has_few_workgroups, false))
          return halyard::fail(Code::UNIMPLEMENTED, "{}", steps_.refusal.why);
        walked = {};
        continue;
      }
      walked[static_cast<size_t>(std::countr_zero(along))] = true;
    }
    return sum();
  }

 private:
  // Where control goes on after a part of the function was followed.
  struct End {
    enum class Kind : uint8_t { returned, repeats, left, failed };
    Kind kind = Kind::failed;
    uint32_t block = 0;  // for `left`
  };
  // A loop that is tried as a whole.
  struct Trial {
    const NaturalLoop* loop;
    int dimension;
    bool finds_steps;  // the first pass
    bool is_tested = false;
    uint64_t trips = 0;
    uint32_t exit = 0;  // the block after the exit test
    RemapList exit_moves;
    Tally at_test;
    CountedRegisters registers_at_test;
  };

  bool fail(std::string why, uint32_t along = 0) { return steps_.fail(std::move(why), along); }

  bool count_grid(const std::array<bool, kGridDimensions>& walked) {
    std::ranges::fill(tally_, 0);
    steps_.begin_grid();
    for (NaturalLoop& loop : loops_) loop.is_uniform = true;
    depth_ = kGridDimensions;
    followed_ = 0;
    uint64_t alike = 1;
    std::array<uint32_t, kGridDimensions> ends = {1, 1, 1};
    for (size_t d = 0; d < kGridDimensions; ++d) {
      steps_.trips[d] = walked[d] ? 1 : arguments_.workgroups[d];
      alike *= steps_.trips[d];
      if (walked[d]) ends[d] = arguments_.workgroups[d];
    }
    std::array<uint32_t, kGridDimensions> id = {};
    for (id[2] = 0; id[2] < ends[2]; ++id[2])
      for (id[1] = 0; id[1] < ends[1]; ++id[1])
        for (id[0] = 0; id[0] < ends[0]; ++id[0])
          if (!count_workgroup(id, walked)) return false;
    for (uint64_t& times : tally_)
      if (__builtin_mul_overflow(times, alike, &times)) return fail("there are too many operations");
    return true;
  }

  bool count_workgroup(const std::array<uint32_t, kGridDimensions>& id,
                       const std::array<bool, kGridDimensions>& walked) {
    using Kind = CountedReference::Kind;
    steps_.begin_workgroup();
    steps_.registers.reset(std::max<size_t>(function_.value_registers, 9),
                           std::max<size_t>(function_.ref_registers, 3));
    steps_.registers.set_reference(
        0, {.kind = Kind::memory, .length = arguments_.local_memory, .has_known_length = true});
    steps_.registers.set_reference(1, {.kind = Kind::constants});
    steps_.registers.set_reference(2, {.kind = Kind::bindings});
    for (size_t d = 0; d < kGridDimensions; ++d) {
      Scalar at = constant_scalar(id[d]);
      if (!walked[d] && arguments_.workgroups[d] > 1) {
        at.varies = 1u << d;
        at.slope[d] = 1;
      }
      steps_.registers.slots()[d].scalar = at;
      steps_.registers.slots()[kFirstInteger + d].scalar = constant_scalar(1);
      steps_.registers.slots()[2 * kFirstInteger + d].scalar = constant_scalar(arguments_.workgroups[d]);
    }
    return follow(0, nullptr, nullptr).kind == End::Kind::returned;
  }

  // ---- Control flow

  // Follows control from the head of `within` (or from `block`, if it is null) until it comes back to the
  // head, leaves the loop or returns.
  End follow(uint32_t block, const NaturalLoop* within, Trial* trial) {
    for (bool is_first = true;; is_first = false) {
      if (within && !is_first) {
        if (block == within->head) return {End::Kind::repeats};
        if (!within->has_block[block]) return {End::Kind::left, block};
      }
      if (NaturalLoop* const loop = loop_at_[block]; loop && loop != within) {
        const End end = run_loop(*loop);
        if (end.kind != End::Kind::left) return end;
        block = end.block;
        continue;
      }
      const Flow::Block& at = flow_.blocks()[block];
      ++tally_[block];
      followed_ += at.step_count;
      if (followed_ > arguments_.max_steps) {
        fail("its loops take too many steps to be followed");
        return {};
      }
      for (uint32_t i = 0; i + 1 < at.step_count; ++i)
        if (!steps_.step(at.first_step + i, tally_.back())) return {};
      const Instruction& last = flow_.instruction(at.first_step + at.step_count - 1);
      if (last.op == Op::return_) return {End::Kind::returned};
      size_t edge = 0;
      if (!choose(block, last, trial, edge)) return {};
      if (edge == kFallsThrough) {
        ++block;
        continue;
      }
      steps_.registers.move(flow_.edges(block)[edge].remap);
      block = flow_.edges(block)[edge].block;
    }
  }

  static constexpr size_t kFallsThrough = SIZE_MAX;

  // The way out of a block.
  bool choose(uint32_t block, const Instruction& last, Trial* trial, size_t& edge) {
    edge = 0;
    switch (last.op) {
      case Op::br:
      case Op::break_:
      case Op::cond_break:
        return true;
      case Op::fail: {
        const Scalar status = steps_.registers.narrow(last.operands[0].reg);
        if (!status.is_known) return fail("a branch depends on data");
        if (status.varies) return fail("workgroups or iterations differ", status.varies);
        if (status.value != 0) return fail("it fails");
        edge = kFallsThrough;
        return true;
      }
      case Op::cond_br: {
        const Scalar condition = steps_.registers.narrow(last.operands[0].reg);
        if (!condition.is_known) return fail("a branch depends on data");
        edge = condition.value != 0 ? 0 : 1;
        return condition.varies == 0 || test_exit(block, condition, trial, edge);
      }
      case Op::br_table: {
        const Scalar index = steps_.registers.narrow(last.operands[0].reg);
        if (!index.is_known) return fail("a branch depends on data");
        if (index.varies) return fail("workgroups or iterations differ", index.varies);
        const auto cases = static_cast<int64_t>(flow_.edges(block).size()) - 1;
        edge = index.value >= 0 && index.value < cases ? static_cast<size_t>(index.value) + 1 : 0;
        return true;
      }
      default:
        return fail(fmt::format("it has '{}'", info(last.op).mnemonic()));
    }
  }

  // A branch whose condition varies must be the only exit test of the innermost loop on trial. `edge` is the
  // way of the first iteration.
  bool test_exit(uint32_t block, const Scalar& condition, Trial* trial, size_t& edge) {
    const uint32_t along = condition.varies;
    if (!trial || along != 1u << trial->dimension) return fail("workgroups or iterations differ", along);
    const auto edges = flow_.edges(block);
    const bool stays = trial->loop->has_block[edges[edge].block];
    if (!stays) return true;  // the loop ends with its first test
    if (trial->loop->has_block[edges[1 - edge].block] || trial->is_tested)
      return fail("iterations differ", along);
    trial->is_tested = true;
    trial->exit = edges[1 - edge].block;
    trial->exit_moves = edges[1 - edge].remap;
    if (trial->finds_steps) return true;
    if (!trips_until(condition, edge == 0, trial->dimension, trial->trips))
      return fail("the number of iterations is not known", along);
    steps_.trips[static_cast<size_t>(trial->dimension)] = trial->trips;
    trial->at_test = tally_;
    trial->registers_at_test = steps_.registers;
    return true;
  }

  // How often the condition has its first outcome, `outcome`, in a row.
  static bool trips_until(const Scalar& condition, bool outcome, int dimension, uint64_t& trips) {
    using Compare = Scalar::Compare;
    const int64_t slope = condition.slope[static_cast<size_t>(dimension)];
    const int64_t difference = condition.difference;
    if (condition.compare == Compare::none || slope == 0) return false;
    if (condition.compare == Compare::less) {
      if (outcome ? slope < 0 : slope > 0) return false;  // for ever, or until it wraps
      trips = outcome ? static_cast<uint64_t>((-difference + slope - 1) / slope)
                      : static_cast<uint64_t>(difference / -slope + 1);
      return true;
    }
    const bool is_equal_now = (condition.compare == Compare::equal) == outcome;
    if (is_equal_now) {
      trips = 1;
      return true;
    }
    if (difference % slope != 0 || -difference / slope <= 0) return false;
    trips = static_cast<uint64_t>(-difference / slope);
    return true;
  }

  End run_loop(NaturalLoop& loop) {
    if (loop.is_uniform && depth_ < kMaxDimensions) {
      followed_ += steps_.registers.slots().size() + tally_.size() / 8;  // several copies take as long
      const CountedRegisters before = steps_.registers;
      const Tally tally_before = tally_;
      const Overwritten::Mark mark = steps_.overwritten.mark();
      const OwnWrites::Mark own_mark = steps_.own_writes.mark();
      const int depth = depth_;
      const int quiet = steps_.quiet;
      const uint32_t bit = 1u << depth;
      const End end = try_loop(loop, before, tally_before);
      depth_ = depth;
      steps_.quiet = quiet;
      if (end.kind != End::Kind::failed) return end;
      if (!(steps_.refusal.along & bit)) return end;
      loop.is_uniform = false;
      steps_.overwritten.go_back(mark);
      steps_.own_writes.go_back(own_mark);
      steps_.registers = before;
      tally_ = tally_before;
    }
    for (;;) {
      const End end = follow(loop.head, &loop, nullptr);
      if (end.kind != End::Kind::repeats) return end;
    }
  }

  End try_loop(const NaturalLoop& loop, const CountedRegisters& before, const Tally& tally_before) {
    const int dimension = depth_++;
    const OwnWrites::Mark own_mark = steps_.own_writes.mark();
    steps_.trips[static_cast<size_t>(dimension)] = 0;
    // First pass: what each register becomes in one iteration.
    begin_iteration(loop, dimension);
    ++steps_.quiet;
    Trial first = {.loop = &loop, .dimension = dimension, .finds_steps = true};
    End end = follow(loop.head, &loop, &first);
    --steps_.quiet;
    if (end.kind != End::Kind::repeats) {
      if (end.kind == End::Kind::failed) return end;
      // It ended within its first iteration. That is followed again for its accesses.
      steps_.registers = before;
      tally_ = tally_before;
      return follow(loop.head, &loop, nullptr);
    }
    if (!first.is_tested) {
      fail("a loop has no end", 1u << dimension);
      return {};
    }
    std::vector<std::pair<uint16_t, int64_t>> steps;
    for (const uint16_t slot : loop.values) {
      const CountedSlot& now = steps_.registers.slots()[slot];
      if (now.part == before.slots()[slot].part && now.scalar.is_known &&
          now.scalar.origin == origin_of(before, slot, dimension))
        steps.emplace_back(slot, now.scalar.added);
    }
    // Second pass.
    steps_.registers = before;
    tally_ = tally_before;
    begin_iteration(loop, dimension);
    for (const auto& [slot, step] : steps) {
      Scalar& scalar = steps_.registers.slots()[slot].scalar;
      scalar = before.slots()[slot].scalar;
      if (step == 0) continue;
      scalar.varies |= 1u << dimension;
      scalar.slope[static_cast<size_t>(dimension)] = step;
      scalar.form = -1;
    }
    Trial second = {.loop = &loop, .dimension = dimension, .finds_steps = false};
    end = follow(loop.head, &loop, &second);
    if (end.kind != End::Kind::repeats || !second.is_tested) {
      if (end.kind != End::Kind::failed) fail("iterations differ", 1u << dimension);
      return {};
    }
    for (size_t i = 0; i < tally_.size(); ++i) {
      const uint64_t until_test = second.at_test[i] - tally_before[i];
      const uint64_t after_test = tally_[i] - second.at_test[i];
      uint64_t each_trip = 0;
      uint64_t total = tally_before[i] + until_test;
      if (__builtin_mul_overflow(until_test + after_test, second.trips, &each_trip) ||
          __builtin_add_overflow(total, each_trip, &total)) {
        fail("there are too many operations");
        return {};
      }
      tally_[i] = total;
    }
    steps_.own_writes.end_loop(own_mark, dimension, steps_.trips);
    steps_.registers = std::move(second.registers_at_test);
    end_dimension(dimension, second.trips);
    steps_.registers.move(second.exit_moves);
    return {End::Kind::left, second.exit};
  }

  // The registers at the head of a loop on trial: those that it writes may have other values in other
  // iterations.
  void begin_iteration(const NaturalLoop& loop, int dimension) {
    for (const uint16_t slot : loop.values) {
      Scalar& scalar = steps_.registers.slots()[slot].scalar;
      scalar.origin = origin_of(steps_.registers, slot, dimension);
      scalar.added = 0;
      scalar.varies |= 1u << dimension;
      scalar.is_linear = false;
      scalar.compare = Scalar::Compare::none;
      scalar.form = -1;
    }
    for (const uint16_t ref : loop.refs) steps_.registers.set_reference(ref, {});
  }
  // Both halves of a pair have the origin of the low one.
  static int32_t origin_of(const CountedRegisters& registers, uint16_t slot, int dimension) {
    return dimension << 16 | (registers.slots()[slot].part == CountedSlot::Part::high ? slot - 1 : slot);
  }

  // After the loop, registers have the values of the last test.
  void end_dimension(int dimension, uint64_t trips) {
    const auto d = static_cast<size_t>(dimension);
    for (CountedSlot& slot : steps_.registers.slots()) {
      Scalar& scalar = slot.scalar;
      if (scalar.origin >> 16 == dimension) scalar.origin = -1;
      if (!(scalar.varies >> dimension & 1)) continue;
      if (!scalar.is_linear || scalar.compare != Scalar::Compare::none) {
        scalar = unknown_scalar();
        continue;
      }
      // As at run time, 64 bits wrap, and 32 bits where the register has no more.
      const uint64_t value =
          static_cast<uint64_t>(scalar.value) + static_cast<uint64_t>(scalar.slope[d]) * trips;
      scalar.value = slot.part == CountedSlot::Part::whole
                         ? static_cast<int32_t>(static_cast<uint32_t>(value))
                         : static_cast<int64_t>(value);
      scalar.slope[d] = 0;
      scalar.varies &= ~(1u << dimension);
    }
  }

  // ---- Sums

  KernelCounts sum() const {
    KernelCounts counts;
    counts.operations = tally_.back();
    for (size_t block = 0; block < flow_.blocks().size(); ++block) {
      const Flow::Block& at = flow_.blocks()[block];
      uint64_t each = 0;
      for (uint32_t i = 0; i < at.step_count; ++i)
        each += operations_of(flow_.instruction(at.first_step + i).op);
      counts.operations += each * tally_[block];
    }
    steps_.accesses.sum(counts, arguments_.binding_lengths.size(),
                        [&](uint32_t step) { return tally_[block_of(step)]; });
    if (!counts.bytes) return counts;
    counts.overwritten = steps_.overwritten.ranges().value_or(std::vector<KernelCounts::Range>());
    counts.inputs = steps_.inputs.ranges();
    return counts;
  }

  size_t block_of(uint32_t step) const {
    const auto blocks = flow_.blocks();
    const auto after = std::ranges::upper_bound(blocks, step, {}, &Flow::Block::first_step);
    return static_cast<size_t>(after - blocks.begin()) - 1;
  }

  const Function& function_;
  const Flow& flow_;
  const KernelArguments& arguments_;
  std::vector<NaturalLoop> loops_;
  std::vector<NaturalLoop*> loop_at_;  // by block; null: no head
  Tally tally_;
  CountedSteps steps_;
  int depth_ = kGridDimensions;
  uint64_t followed_ = 0;  // instructions
};

}  // namespace

Result<KernelCounts> count_kernel(const BytecodeModule& module, uint32_t function,
                                  const KernelArguments& arguments) {
  const Function& body = module.functions()[function];
  Arena arena({});
  const Flow flow = HALYARD_TRY(Flow::of(module, body, arena));
  std::optional<std::vector<NaturalLoop>> loops = natural_loops(flow);
  if (!loops) return fail(Code::UNIMPLEMENTED, "the kernel has too many loops");
  return Counter(module, body, flow, *std::move(loops), arguments).count();
}

}  // namespace halyard::vm
