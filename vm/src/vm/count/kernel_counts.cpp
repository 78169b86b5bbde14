// Follows the control flow of a kernel with the values of its integer registers. A loop is first tried as a
// whole: one pass finds the registers that it increments by a constant, a second pass counts one iteration,
// in which these registers vary along a new dimension, and the exit test gives the trip count. If another
// branch varies along the dimension, its iterations differ and are followed one by one. The grid is treated
// in the same way, as three outermost dimensions.
#include "vm/count/kernel_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "vm/count/form.h"
#include "vm/count/instructions.h"
#include "vm/count/loops.h"
#include "vm/count/overwritten.h"
#include "vm/count/own_writes.h"
#include "vm/count/scalar.h"

namespace halyard::vm {

namespace {

constexpr int kGridDimensions = 3;
constexpr uint32_t kGrid = (1u << kGridDimensions) - 1;
// Up to so many workgroups are followed one by one only to know the ranges of addresses.
constexpr uint64_t kFewWorkgroups = 256;
constexpr size_t kMaxForms = 1 << 16;
constexpr uint64_t kMaxRuns = 1 << 16;  // of bytes that are overwritten
constexpr uint64_t kMaxOwnChecks = 512;
constexpr size_t kFirstInteger = 3;  // integers of a workgroup: id, size, count

// A 32-bit register, or half of a pair. Both halves of a pair hold its scalar.
struct Slot {
  enum class Part : uint8_t { whole, low, high };
  Scalar scalar;
  Part part = Part::whole;
  uint64_t pair = 0;  // number of the write; equal in both halves
};

// The object of a ref register.
struct Reference {
  enum class Kind : uint8_t { unknown, constants, bindings, binding, memory };
  Kind kind = Kind::unknown;
  uint32_t binding = 0;
  uint64_t length = 0;  // bytes of `memory`, if known
  bool has_known_length = false;
};

struct Registers {
  std::vector<Slot> slots;
  std::vector<Reference> refs;
};

// Executions of each block; the last element has the operations of imports.
using Tally = std::vector<uint64_t>;

// Accesses of one instruction to one binding: the range of bytes, and the bytes of each execution.
struct Extent {
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  uint64_t each = 0;  // 0: of various sizes
};
struct Site {
  uint32_t step;
  uint32_t binding;
  bool writes;
  auto operator<=>(const Site&) const = default;
};

class Counter {
 public:
  Counter(const BytecodeModule& module, const Function& function, const Flow& flow,
          const KernelArguments& arguments)
      : module_(module),
        function_(function),
        flow_(flow),
        arguments_(arguments),
        loops_(natural_loops(flow)),
        loop_at_(flow.blocks().size()),
        tally_(flow.blocks().size() + 1) {
    for (NaturalLoop& loop : loops_) loop_at_[loop.head] = &loop;
    trips_.fill(0);
  }

  Result<KernelCounts> count() {
    uint64_t workgroups = 1;
    for (const uint32_t size : arguments_.workgroups)
      if (__builtin_mul_overflow(workgroups, size, &workgroups)) workgroups = UINT64_MAX;
    if (workgroups == 0) return KernelCounts{.bytes = KernelCounts::Bytes()};
    has_few_workgroups_ = workgroups <= kFewWorkgroups;
    // Dimensions of the grid along which workgroups differ are walked; the others are counted at once.
    std::array<bool, kGridDimensions> walked = {};
    while (!count_grid(walked)) {
      const uint32_t along = failed_along_ & kGrid;
      if (along == 0) {
        // The ranges of addresses may not be worth it.
        if (!std::exchange(has_few_workgroups_, false)) return halyard::fail(Code::UNIMPLEMENTED, "{}", why_);
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
    Registers registers_at_test;
  };

  bool fail(std::string why, uint32_t along = 0) {
    failed_along_ = along;
    why_ = std::move(why);
    return false;
  }

  bool count_grid(const std::array<bool, kGridDimensions>& walked) {
    std::ranges::fill(tally_, 0);
    extents_.clear();
    inputs_.clear();
    overwritten_.clear();
    own_checks_ = 0;
    has_unknown_accesses_ = false;
    for (NaturalLoop& loop : loops_) loop.is_uniform = true;
    depth_ = kGridDimensions;
    quiet_ = 0;
    steps_ = 0;
    uint64_t alike = 1;
    std::array<uint32_t, kGridDimensions> ends = {1, 1, 1};
    for (size_t d = 0; d < kGridDimensions; ++d) {
      trips_[d] = walked[d] ? 1 : arguments_.workgroups[d];
      alike *= trips_[d];
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
    using Kind = Reference::Kind;
    forms_.clear();
    own_writes_.clear();
    registers_.slots.assign(std::max<size_t>(function_.value_registers, 9), {});
    registers_.refs.assign(std::max<size_t>(function_.ref_registers, 3), {});
    registers_.refs[0] = {.kind = Kind::memory, .length = arguments_.local_memory, .has_known_length = true};
    registers_.refs[1] = {.kind = Kind::constants};
    registers_.refs[2] = {.kind = Kind::bindings};
    for (size_t d = 0; d < kGridDimensions; ++d) {
      Scalar at = constant_scalar(id[d]);
      if (!walked[d] && arguments_.workgroups[d] > 1) {
        at.varies = 1u << d;
        at.slope[d] = 1;
      }
      registers_.slots[d].scalar = at;
      registers_.slots[kFirstInteger + d].scalar = constant_scalar(1);
      registers_.slots[2 * kFirstInteger + d].scalar = constant_scalar(arguments_.workgroups[d]);
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
      steps_ += at.step_count;
      if (steps_ > arguments_.max_steps) {
        fail("its loops take too many steps to be followed");
        return {};
      }
      for (uint32_t i = 0; i + 1 < at.step_count; ++i)
        if (!step(at.first_step + i)) return {};
      const Instruction& last = flow_.instruction(at.first_step + at.step_count - 1);
      if (last.op == Op::return_) return {End::Kind::returned};
      size_t edge = 0;
      if (!choose(block, last, trial, edge)) return {};
      if (edge == kFallsThrough) {
        ++block;
        continue;
      }
      move(flow_.edges(block)[edge].remap);
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
        const Scalar status = narrow(last.operands[0].reg);
        if (!status.is_known) return fail("a branch depends on data");
        if (status.varies) return fail("workgroups or iterations differ", status.varies);
        if (status.value != 0) return fail("it fails");
        edge = kFallsThrough;
        return true;
      }
      case Op::cond_br: {
        const Scalar condition = narrow(last.operands[0].reg);
        if (!condition.is_known) return fail("a branch depends on data");
        edge = condition.value != 0 ? 0 : 1;
        return condition.varies == 0 || test_exit(block, condition, trial, edge);
      }
      case Op::br_table: {
        const Scalar index = narrow(last.operands[0].reg);
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
    trips_[static_cast<size_t>(trial->dimension)] = trial->trips;
    trial->at_test = tally_;
    trial->registers_at_test = registers_;
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
      const Registers before = registers_;
      const Tally tally_before = tally_;
      const Overwritten::Mark mark = overwritten_.mark();
      const OwnWrites::Mark own_mark = own_writes_.mark();
      const int depth = depth_;
      const int quiet = quiet_;
      const uint32_t bit = 1u << depth;
      const End end = try_loop(loop, before, tally_before);
      depth_ = depth;
      quiet_ = quiet;
      if (end.kind != End::Kind::failed) return end;
      if (!(failed_along_ & bit)) return end;
      loop.is_uniform = false;
      overwritten_.go_back(mark);
      own_writes_.go_back(own_mark);
      registers_ = before;
      tally_ = tally_before;
    }
    for (;;) {
      const End end = follow(loop.head, &loop, nullptr);
      if (end.kind != End::Kind::repeats) return end;
    }
  }

  End try_loop(const NaturalLoop& loop, const Registers& before, const Tally& tally_before) {
    const int dimension = depth_++;
    const OwnWrites::Mark own_mark = own_writes_.mark();
    trips_[static_cast<size_t>(dimension)] = 0;
    // First pass: what each register becomes in one iteration.
    begin_iteration(loop, dimension);
    ++quiet_;
    Trial first = {.loop = &loop, .dimension = dimension, .finds_steps = true};
    End end = follow(loop.head, &loop, &first);
    --quiet_;
    if (end.kind != End::Kind::repeats) {
      if (end.kind == End::Kind::failed) return end;
      // It ended within its first iteration. That is followed again for its accesses.
      registers_ = before;
      tally_ = tally_before;
      return follow(loop.head, &loop, nullptr);
    }
    if (!first.is_tested) {
      fail("a loop has no end", 1u << dimension);
      return {};
    }
    std::vector<std::pair<uint16_t, int64_t>> steps;
    for (const uint16_t slot : loop.values) {
      const Slot& now = registers_.slots[slot];
      if (now.part == before.slots[slot].part && now.scalar.is_known &&
          now.scalar.origin == origin_of(before, slot, dimension))
        steps.emplace_back(slot, now.scalar.added);
    }
    // Second pass.
    registers_ = before;
    tally_ = tally_before;
    begin_iteration(loop, dimension);
    for (const auto& [slot, step] : steps) {
      Scalar& scalar = registers_.slots[slot].scalar;
      scalar = before.slots[slot].scalar;
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
    own_writes_.end_loop(own_mark, dimension, trips_);
    registers_ = std::move(second.registers_at_test);
    end_dimension(dimension, second.trips);
    move(second.exit_moves);
    return {End::Kind::left, second.exit};
  }

  // The registers at the head of a loop on trial: those that it writes may have other values in other
  // iterations.
  void begin_iteration(const NaturalLoop& loop, int dimension) {
    for (const uint16_t slot : loop.values) {
      Scalar& scalar = registers_.slots[slot].scalar;
      scalar.origin = origin_of(registers_, slot, dimension);
      scalar.added = 0;
      scalar.varies |= 1u << dimension;
      scalar.is_linear = false;
      scalar.compare = Scalar::Compare::none;
      scalar.form = -1;
    }
    for (const uint16_t ref : loop.refs) registers_.refs[ref] = {};
  }
  // Both halves of a pair have the origin of the low one.
  static int32_t origin_of(const Registers& registers, uint16_t slot, int dimension) {
    return dimension << 16 | (registers.slots[slot].part == Slot::Part::high ? slot - 1 : slot);
  }

  // After the loop, registers have the values of the last test.
  void end_dimension(int dimension, uint64_t trips) {
    const auto d = static_cast<size_t>(dimension);
    for (Slot& slot : registers_.slots) {
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
      scalar.value = slot.part == Slot::Part::whole ? static_cast<int32_t>(static_cast<uint32_t>(value))
                                                    : static_cast<int64_t>(value);
      scalar.slope[d] = 0;
      scalar.varies &= ~(1u << dimension);
    }
  }

  // ---- Registers

  Scalar narrow(uint16_t reg) const {
    const Slot& slot = registers_.slots[reg];
    return slot.part == Slot::Part::whole ? slot.scalar : unknown_scalar();
  }
  Scalar wide(uint16_t reg) const {
    const Slot& low = registers_.slots[reg];
    const Slot& high = registers_.slots[reg + 1];
    const bool is_pair =
        low.part == Slot::Part::low && high.part == Slot::Part::high && low.pair == high.pair;
    return is_pair ? low.scalar : unknown_scalar();
  }
  Scalar read(Bank bank, uint16_t reg) const {
    return bank == Bank::i64 ? wide(reg) : bank == Bank::i32 ? narrow(reg) : unknown_scalar();
  }
  void write(Bank bank, uint16_t reg, Scalar scalar) {
    if (bank == Bank::i32) {
      const auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(scalar.value));
      if (wrapped != scalar.value) {
        scalar.is_linear = scalar.varies == 0;
        scalar.origin = -1;
        scalar.form = -1;
      }
      scalar.value = wrapped;
    }
    if (!is_wide(bank)) {
      registers_.slots[reg] = {scalar};
      return;
    }
    ++pairs_;
    registers_.slots[reg] = {scalar, Slot::Part::low, pairs_};
    registers_.slots[reg + 1] = {scalar, Slot::Part::high, pairs_};
  }

  void move(const RemapList& moves) {
    for (size_t i = 0; i < moves.size(); ++i) {
      const Remap each = moves[i];
      if (each.source & kRefBit) {
        const Reference moved = registers_.refs[each.source & kRefOrdinalMask];
        if (each.source & kMoveBit) registers_.refs[each.source & kRefOrdinalMask] = {};
        registers_.refs[each.destination & kRefOrdinalMask] = moved;
      } else {
        registers_.slots[each.destination] = registers_.slots[each.source];
      }
    }
  }

  Reference reference(uint16_t reg) const { return registers_.refs[reg & kRefOrdinalMask]; }
  void set_reference(uint16_t reg, const Reference& to) { registers_.refs[reg & kRefOrdinalMask] = to; }

  // ---- Instructions

  bool step(uint32_t index) {
    const Instruction& at = flow_.instruction(index);
    const OpInfo& op = info(at.op);
    if (has_trait(at.op, CALLS)) return call(at);
    if (element_size(at.op) != 0) return access(index, at);
    const auto operand = [&](size_t i) { return at.operands[i]; };
    switch (at.op) {
      case Op::list_get_ref: {
        const Scalar place = narrow(operand(1).reg);
        Reference got;
        if (reference(operand(0).reg).kind == Reference::Kind::bindings && place.is_constant() &&
            place.value >= 0 && static_cast<uint64_t>(place.value) < arguments_.binding_lengths.size()) {
          const auto binding = static_cast<uint32_t>(place.value);
          got = {Reference::Kind::binding, binding, arguments_.binding_lengths[binding], true};
        }
        set_reference(operand(3).reg, got);
        return true;
      }
      case Op::assign_ref: {
        const Reference source = reference(operand(0).reg);
        if (operand(0).reg & kMoveBit) set_reference(operand(0).reg, {});
        set_reference(operand(1).reg, source);
        return true;
      }
      case Op::buffer_alloc: {
        const Scalar length = wide(operand(0).reg);
        set_reference(operand(2).reg, {Reference::Kind::memory, 0, static_cast<uint64_t>(length.value),
                                       length.is_constant()});
        return true;
      }
      case Op::buffer_length: {
        const Reference buffer = reference(operand(0).reg);
        Scalar length = unknown_scalar();
        if (buffer.has_known_length) length = constant_scalar(static_cast<int64_t>(buffer.length));
        if (buffer.kind == Reference::Kind::constants)
          length = constant_scalar(static_cast<int64_t>(arguments_.constants.size()));
        write(Bank::i64, operand(1).reg, length);
        return true;
      }
      case Op::buffer_copy:
        return range(index, operand(0).reg, wide(operand(1).reg), wide(operand(4).reg), false) &&
               range(index, operand(2).reg, wide(operand(3).reg), wide(operand(4).reg), true);
      case Op::buffer_clone:
        set_reference(operand(4).reg, {Reference::Kind::memory});
        return range(index, operand(0).reg, wide(operand(1).reg), wide(operand(2).reg), false);
      case Op::buffer_compare:
        write(Bank::i32, operand(5).reg, unknown_scalar());
        return range(index, operand(0).reg, wide(operand(1).reg), wide(operand(4).reg), false) &&
               range(index, operand(2).reg, wide(operand(3).reg), wide(operand(4).reg), false);
      case Op::buffer_hash:
        write(Bank::i64, operand(3).reg, unknown_scalar());
        return range(index, operand(0).reg, wide(operand(1).reg), wide(operand(2).reg), false);
      default:
        break;
    }
    compute(at, op);
    return true;
  }

  // Computes the integer result. Other results, and objects, are unknown.
  void compute(const Instruction& at, const OpInfo& op) {
    Operands<Scalar> in;
    size_t ins = 0;
    int64_t immediate = 0;
    Bank bank = Bank::none;  // of the first operand
    for (size_t i = 0; i < op.operand_count; ++i) {
      const Operand& operand = op.operands[i];
      if (operand.kind == OperandKind::immediate)
        immediate = operand.bank == Bank::i32
                        ? static_cast<int32_t>(static_cast<uint32_t>(at.operands[i].immediate))
                        : static_cast<int64_t>(at.operands[i].immediate);
      if (operand.kind != OperandKind::reg || operand.writes) continue;
      if (operand.bank == Bank::ref) {
        if (at.operands[i].reg & kMoveBit) set_reference(at.operands[i].reg, {});
        continue;
      }
      if (ins == 0) bank = operand.bank;
      in[ins++] = read(operand.bank, at.operands[i].reg);
    }
    for (size_t i = 0; i < op.operand_count; ++i) {
      const Operand& operand = op.operands[i];
      if (operand.kind == OperandKind::reg_list) {
        for (size_t j = 0; j < at.operands[i].regs.size(); ++j)
          if (const uint16_t reg = at.operands[i].regs[j];
              (reg & kRefBit) && (operand.writes || (reg & kMoveBit) || at.op == Op::discard_refs))
            set_reference(reg, {});
      }
      if (operand.kind != OperandKind::reg || !operand.writes) continue;
      if (operand.bank == Bank::ref) {
        set_reference(at.operands[i].reg, {});
      } else {
        Scalar result = result_of(at.op, bank, in, immediate);
        if (!result.is_linear || result.compare != Scalar::Compare::none)
          result.bounds = bounds_of_result(at.op, {bounds_of(in[0]), bounds_of(in[1]), bounds_of(in[2])});
        if (arguments_.finds_overwritten && result.varies != 0)
          follow_numbers(at.op, bank, operand.bank, in, result);
        write(operand.bank, at.operands[i].reg, result);
      }
    }
  }

  // What Overwritten needs to know of a result that varies.
  void follow_numbers(Op op, Bank from, Bank to, const Operands<Scalar>& in, Scalar& result) {
    result.may_wrap = may_leave(result, range_of_result(op, to)) ||
                      std::ranges::any_of(
                          in, [&](const Scalar& each) { return may_leave(each, range_of_result(op, from)); });
    if (result.is_linear || result.may_wrap || forms_.size() == kMaxForms) return;
    const std::optional<Form> form = form_of_result(op, in);
    result.form = form ? static_cast<int32_t>(forms_.size()) : -1;
    if (form) forms_.push_back(*form);
  }

  std::optional<Form> form_of(const Scalar& scalar) const {
    if (scalar.may_wrap) return {};
    return scalar.form >= 0 ? forms_[static_cast<size_t>(scalar.form)] : Form::of(scalar);
  }

  // Operands are without the immediate.
  std::optional<Form> form_of_result(Op op, const Operands<Scalar>& in) const {
    if (op == Op::select_i32 || op == Op::select_i64) {
      const Bounds condition = bounds_of(in[0]);
      return condition.is_constant() ? form_of(in[condition.low != 0 ? 1 : 2]) : std::nullopt;
    }
    const std::optional<Form> a = form_of(in[0]);
    const std::optional<Form> b = form_of(in[1]);
    if (!a) return {};
    const auto times = [](const Scalar& x, const std::optional<Form>& form_of_x, const Scalar& y,
                          const std::optional<Form>& form_of_y) -> std::optional<Form> {
      if (y.is_constant()) return form_of_x->times(y.value);
      return x.is_constant() && form_of_y ? form_of_y->times(x.value) : std::nullopt;
    };
    const auto divisor = [&] {
      return bounds_of(in[0]).is_known() && bounds_of(in[0]).low >= 0 && in[1].is_constant() ? in[1].value
                                                                                             : 0;
    };
    switch (op) {
      case Op::add_i32:
      case Op::add_i64:
        return b ? a->plus(*b, 1) : b;
      case Op::sub_i32:
      case Op::sub_i64:
        return b ? a->plus(*b, -1) : b;
      case Op::mul_i32:
      case Op::mul_i64:
        return times(in[0], a, in[1], b);
      case Op::fma_i32:
      case Op::fma_i64: {
        const std::optional<Form> product = times(in[0], a, in[1], b);
        const std::optional<Form> c = form_of(in[2]);
        return product && c ? product->plus(*c, 1) : std::nullopt;
      }
      case Op::div_i32_s:
      case Op::div_i64_s:
      case Op::div_i32_u:
      case Op::div_i64_u:
        return divisor() > 0 ? a->quotient(divisor()) : std::nullopt;
      case Op::rem_i32_s:
      case Op::rem_i64_s:
      case Op::rem_i32_u:
      case Op::rem_i64_u:
        return divisor() > 0 ? a->remainder(divisor()) : std::nullopt;
      case Op::ext_i32_i64_s:
      case Op::ext_i32_i64_u:
      case Op::trunc_i64_i32:
        return a;
      default:
        return {};
    }
  }

  // Whether the value, or one that it was computed from, may be another one than its slopes or bounds tell,
  // because a register that can have the numbers of `range` does not have them.
  bool may_leave(const Scalar& scalar, const Bounds& range) const {
    if (!scalar.is_known || scalar.varies == 0) return false;
    if (scalar.may_wrap) return true;
    const Bounds bounds = bounds_of(scalar);
    if (!bounds.is_known()) return scalar.is_linear && scalar.compare == Scalar::Compare::none;
    return bounds.low < range.low || bounds.high > range.high;
  }

  // The values in all iterations on trial.
  Bounds bounds_of(const Scalar& scalar) const {
    if (!scalar.is_known) return {};
    if (!scalar.is_linear || scalar.compare != Scalar::Compare::none) return scalar.bounds;
    Bounds bounds = {scalar.value, scalar.value};
    for (size_t d = 0; d < kMaxDimensions; ++d) {
      if (!(scalar.varies >> d & 1)) continue;
      if (trips_[d] == 0) return {};  // its exit test comes later
      const Bounds last = {0, static_cast<int64_t>(std::min<uint64_t>(trips_[d] - 1, INT64_MAX))};
      bounds = bounds_of_sum(bounds, bounds_of_product(last, {scalar.slope[d], scalar.slope[d]}));
    }
    return bounds;
  }

  // ---- Memory

  Scalar in_bytes(const Scalar& elements, uint64_t size) {
    const Scalar factor = constant_scalar(static_cast<int64_t>(size));
    Scalar bytes = scalar_product(elements, factor);
    bytes.bounds = bounds_of_product(bounds_of(elements), {factor.value, factor.value});
    if (arguments_.finds_overwritten && bytes.varies != 0)
      follow_numbers(Op::mul_i64, Bank::i64, Bank::i64, {elements, factor}, bytes);
    return bytes;
  }

  bool access(uint32_t index, const Instruction& at) {
    const uint64_t size = element_size(at.op);
    const OpInfo& op = info(at.op);
    const Reference buffer = reference(at.operands[0].reg);
    const Scalar offset = in_bytes(wide(at.operands[1].reg), size);
    if (is_fill(at.op)) {
      const Scalar length = in_bytes(wide(at.operands[2].reg), size);
      return range(index, at.operands[0].reg, offset, length, true);
    }
    const Operand& last = op.operands[2];
    if (last.writes) write(last.bank, at.operands[2].reg, loaded(at.op, last.bank, buffer, offset));
    return touch(index, buffer, offset, size, size, !last.writes);
  }

  // A constant of the dispatch is known; other data is not.
  Scalar loaded(Op op, Bank bank, const Reference& buffer, const Scalar& offset) const {
    const uint64_t size = element_size(op);
    if (buffer.kind != Reference::Kind::constants || !offset.is_constant() || offset.value < 0 ||
        (bank != Bank::i32 && bank != Bank::i64) || size < 4 ||
        static_cast<uint64_t>(offset.value) + size > arguments_.constants.size())
      return unknown_scalar();
    const auto* const from = reinterpret_cast<const uint8_t*>(arguments_.constants.data()) + offset.value;
    return constant_scalar(size == 4 ? load_unaligned<int32_t>(from) : load_unaligned<int64_t>(from));
  }

  bool range(uint32_t index, uint16_t buffer, const Scalar& offset, const Scalar& length, bool writes) {
    if (!length.is_constant() || length.value < 0) {
      if (quiet_ == 0 && reference(buffer).kind == Reference::Kind::binding) has_unknown_accesses_ = true;
      return true;
    }
    return length.value == 0 ||
           touch(index, reference(buffer), offset, static_cast<uint64_t>(length.value), 0, writes);
  }

  // Records an access of `size` bytes at `offset`, in all iterations and workgroups on trial.
  bool touch(uint32_t index, const Reference& buffer, const Scalar& offset, uint64_t size, uint64_t each,
             bool writes) {
    if (quiet_ != 0 || buffer.kind == Reference::Kind::memory || buffer.kind == Reference::Kind::constants)
      return true;
    if (buffer.kind != Reference::Kind::binding) {
      has_unknown_accesses_ = true;
      return true;
    }
    const Bounds bounds = offset.is_linear ? bounds_of(offset) : offset.bounds;
    if (!bounds.is_known() && (offset.varies & kGrid) && has_few_workgroups_)
      return fail("the addresses of workgroups differ", offset.varies & kGrid);
    const __int128 first = bounds.is_known() ? bounds.low : 0;
    const __int128 last = bounds.is_known() ? __int128{bounds.high} + size : __int128{buffer.length};
    Extent& extent = extents_[{index, buffer.binding, writes}];
    extent.each = each;
    extent.begin = std::min(extent.begin, static_cast<uint64_t>(std::max<__int128>(first, 0)));
    extent.end = std::max(extent.end, static_cast<uint64_t>(std::clamp<__int128>(last, 0, buffer.length)));
    if (arguments_.finds_overwritten) note({index, buffer.binding, writes}, buffer, offset, bounds, size);
    return true;
  }

  // What Overwritten, OwnWrites and the inputs need to know of an access.
  void note(const Site& site, const Reference& buffer, const Scalar& offset, const Bounds& bounds,
            uint64_t size) {
    const bool is_inside = bounds.is_known() && !offset.may_wrap && bounds.low >= 0 &&
                           __int128{bounds.high} + size <= buffer.length;
    const std::optional<Form> form = is_inside ? form_of(offset) : std::nullopt;
    if (site.writes) {
      const std::optional<Form::Steps> steps = form ? form->steps(trips_) : std::nullopt;
      if (!steps) return;
      overwritten_.add(buffer.binding, size, *steps);
      own_writes_.add(buffer.binding, size, *form);
      return;
    }
    if (form && own_writes_.has(buffer.binding) && own_checks_ < kMaxOwnChecks) {
      ++own_checks_;
      if (own_writes_.cover(buffer.binding, size, *form, trips_)) return;
    }
    Extent& extent = inputs_[site];
    extent.begin = is_inside ? std::min(extent.begin, static_cast<uint64_t>(bounds.low)) : 0;
    extent.end = is_inside ? std::max(extent.end, static_cast<uint64_t>(bounds.high) + size) : buffer.length;
  }

  bool call(const Instruction& at) {
    const uint32_t callee = at.operands[0].index;
    if (!(callee & kImportBit) || at.op != Op::call) return fail("it calls another function");
    const std::string_view name = module_.imports()[callee & ~kImportBit].name;
    const std::string_view convention = module_.imports()[callee & ~kImportBit].convention;
    std::vector<std::optional<int64_t>> integers;  // absent: unknown, or not the same in all iterations
    uint32_t varies = 0;
    const RegList& given = at.operands[1].regs;
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] & kRefBit) {
        if (quiet_ == 0 && reference(given[i]).kind != Reference::Kind::memory) has_unknown_accesses_ = true;
        if (given[i] & kMoveBit) set_reference(given[i], {});
        continue;
      }
      const char type = i + 1 < convention.size() ? convention[i + 1] : 'v';
      const Scalar scalar = type == 'I' ? wide(given[i]) : type == 'i' ? narrow(given[i]) : unknown_scalar();
      varies |= scalar.varies;
      integers.push_back(scalar.is_constant() ? std::optional(scalar.value) : std::nullopt);
    }
    std::optional<uint64_t> operations;
    if (arguments_.import_operations) operations = arguments_.import_operations(name, integers);
    if (!operations) return fail(fmt::format("it calls '{}'", name), varies);
    tally_.back() += *operations;
    const RegList& results = at.operands[2].regs;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] & kRefBit) {
        set_reference(results[i], {});
      } else {
        forget(results[i]);
      }
    }
    return true;
  }
  void forget(uint16_t reg) {
    registers_.slots[reg] = {};
    if (reg + 1u < registers_.slots.size()) registers_.slots[reg + 1] = {};
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
    if (has_unknown_accesses_) return counts;
    counts.bytes = KernelCounts::Bytes();
    for (uint32_t binding = 0; binding < arguments_.binding_lengths.size(); ++binding) {
      counts.bytes->read += bytes_of(binding, false);
      counts.bytes->written += bytes_of(binding, true);
    }
    counts.ranges = ranges(extents_);
    counts.overwritten = overwritten_.ranges().value_or(std::vector<KernelCounts::Range>());
    counts.inputs = ranges(inputs_);
    return counts;
  }

  static std::vector<KernelCounts::Range> ranges(const std::map<Site, Extent>& extents) {
    std::vector<KernelCounts::Range> all;
    for (const auto& [site, extent] : extents)
      if (extent.begin < extent.end) all.push_back({site.binding, site.writes, extent.begin, extent.end});
    std::ranges::sort(all);
    std::vector<KernelCounts::Range> merged;
    for (const KernelCounts::Range& range : all) {
      const bool meets = !merged.empty() && merged.back().binding == range.binding &&
                         merged.back().writes == range.writes && merged.back().end >= range.begin;
      if (meets) {
        merged.back().end = std::max(merged.back().end, range.end);
      } else {
        merged.push_back(range);
      }
    }
    return merged;
  }

  // The union of the ranges of a binding, but at most the sum of what each instruction accesses.
  uint64_t bytes_of(uint32_t binding, bool writes) const {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    uint64_t most = 0;
    for (const auto& [site, extent] : extents_) {
      if (site.binding != binding || site.writes != writes || extent.begin >= extent.end) continue;
      ranges.emplace_back(extent.begin, extent.end);
      const uint64_t range = extent.end - extent.begin;
      uint64_t moved = 0;
      const bool is_moved_known =
          extent.each != 0 && !__builtin_mul_overflow(extent.each, tally_[block_of(site.step)], &moved);
      most += is_moved_known ? std::min(range, moved) : range;
    }
    std::ranges::sort(ranges);
    uint64_t covered = 0;
    uint64_t end = 0;
    for (const auto& [first, last] : ranges) {
      covered += last > end ? last - std::max(first, end) : 0;
      end = std::max(end, last);
    }
    return std::min(covered, most);
  }
  size_t block_of(uint32_t step) const {
    const auto blocks = flow_.blocks();
    const auto after = std::ranges::upper_bound(blocks, step, {}, &Flow::Block::first_step);
    return static_cast<size_t>(after - blocks.begin()) - 1;
  }

  const BytecodeModule& module_;
  const Function& function_;
  const Flow& flow_;
  const KernelArguments& arguments_;
  std::vector<NaturalLoop> loops_;
  std::vector<NaturalLoop*> loop_at_;  // by block; null: no head
  Registers registers_;
  Tally tally_;
  std::map<Site, Extent> extents_;
  std::map<Site, Extent> inputs_;
  Overwritten overwritten_{kMaxRuns};
  OwnWrites own_writes_;
  uint64_t own_checks_ = 0;
  std::vector<Form> forms_;  // of scalars
  bool has_unknown_accesses_ = false;
  bool has_few_workgroups_ = false;
  std::array<uint64_t, kMaxDimensions> trips_;  // 0: not known yet
  int depth_ = kGridDimensions;
  int quiet_ = 0;  // above 0: accesses are not recorded
  uint64_t steps_ = 0;
  uint64_t pairs_ = 0;
  uint32_t failed_along_ = 0;
  std::string why_;
};

}  // namespace

Result<KernelCounts> count_kernel(const BytecodeModule& module, uint32_t function,
                                  const KernelArguments& arguments) {
  const Function& body = module.functions()[function];
  Arena arena({});
  const Flow flow = HALYARD_TRY(Flow::of(module, body, arena));
  return Counter(module, body, flow, arguments).count();
}

}  // namespace halyard::vm
