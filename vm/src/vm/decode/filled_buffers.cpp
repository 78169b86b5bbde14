// A buffer is filled by a store in a perfect nest of counting loops, whose index is a sum of counters times
// constants that takes every value, or by a call with constant sizes. All paths from the allocation to an
// instruction that may read the buffer leave the nest at its end, or pass the call.
#include "vm/decode/filled_buffers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "vm/decode/ref_uses.h"

namespace halyard::vm {

namespace {

constexpr size_t kMaxSteps = size_t{1} << 21;     // of walks over the words: some 50 ms
constexpr size_t kMaxStores = 64;                 // that are examined
constexpr size_t kMaxDepth = 16;                  // of expressions
constexpr size_t kMaxLoops = 8;                   // of a nest
constexpr uint64_t kLargest = uint64_t{1} << 31;  // numbers are below, so that no sum or product wraps around

// `for (counter = 0; counter < trips; ++counter)`, as words.
struct CountingLoop {
  uint32_t head = 0;
  uint32_t latch = 0;  // the branch to the head
  uint32_t test = 0;   // the comparison, then the branch that leaves the loop
  uint32_t exit = 0;   // after the branch: moves of the edge that leaves the loop, if it has some,
  uint32_t body = 0;   // and the instruction with which an iteration begins
  uint32_t counter = 0;
  uint64_t trips = 0;
  std::vector<uint32_t> counter_writes;  // the words that set the counter, in ascending order

  bool contains(uint32_t at) const { return head <= at && at <= latch && !(exit <= at && at < body); }
};

// The sum of `constant` and each loop's counter times its number.
struct Affine {
  uint64_t constant = 0;
  std::array<uint64_t, kMaxLoops> times = {};

  bool is_constant() const {
    return std::ranges::all_of(times, [](uint64_t number) { return number == 0; });
  }
};

class Finder {
 public:
  Finder(std::span<const Word> words, std::span<const uint16_t> lists, uint32_t refs, const KnownCalls& calls)
      : words_(words), lists_(lists), refs_(refs), calls_(calls), previous_(words.size()) {
    for (uint32_t at = 0; at < words.size(); at += word_count(words[at])) {
      starts_.push_back(at);
      for_each_successor(words, at, [&](uint32_t to) { previous_[to].push_back(at); });
    }
  }

  bool is_filled(uint32_t allocation) {
    steps_ += starts_.size();  // the search for its stores
    if (steps_ > kMaxSteps || examined_ >= kMaxStores) return false;
    const std::optional<uint64_t> bytes = constant(allocation, words_[allocation].a);
    const uint32_t ref = words_[allocation].c;
    if (!bytes || *bytes >= kLargest) return false;
    return std::ranges::any_of(starts_, [&](uint32_t at) {
      if (is(at, DecodedOp::call_import))
        return writes_all(at, ref, *bytes) &&
               is_passed_before_reads(allocation, ref, [&](uint32_t, uint32_t to) { return to == at; });
      const uint32_t size = stored_bytes(words_[at]);
      if (size == 0 || words_[at].a != ref || examined_++ >= kMaxStores) return false;
      return find_nest(at, allocation) && covers(at, size, *bytes) &&
             is_passed_before_reads(allocation, ref, [&](uint32_t from, uint32_t to) {
               return from == branch_of(nest_.front()) && !nest_.front().contains(to);
             });
    });
  }

 private:
  template <typename Operation>
  bool is(uint32_t at, Operation op) const {
    return words_[at].op == static_cast<uint16_t>(op);
  }

  static uint32_t stored_bytes(const Word& word) {
    if (word.op >= kOpCount) return 0;
    const Elements elements = elements_of(static_cast<Op>(word.op));
    return elements.access == ElementAccess::store ? elements.bytes : 0;
  }

  // ---- values of registers

  bool writes(uint32_t at, uint32_t slot) const {
    bool found = false;
    for_each_value(&words_[at], lists_,
                   [&](uint32_t written, bool is_write) { found |= is_write && written == slot; });
    return found;
  }
  // Results of calls and values from lists are not visited by for_each_value().
  bool may_write_any(uint32_t at) const {
    return is(at, Op::call) || is(at, Op::call_variadic) || is(at, Op::call_yieldable) ||
           is(at, Op::call_variadic_yieldable) ||
           (is(at, DecodedOp::call_import) && call_site(&words_[at]).result_count != 0);
  }

  // The words that may have set the pair when control reaches `at`, in ascending order. None if the pair may
  // have its value of the function's beginning, or one of a call.
  std::vector<uint32_t> writes_before(uint32_t at, uint32_t pair) const {
    return writes_before(at, pair, pair + 1);
  }
  // The same for the slots from `first` to `last`.
  std::vector<uint32_t> writes_before(uint32_t at, uint32_t first, uint32_t last) const {
    std::vector<bool> seen(words_.size());
    std::vector<uint32_t> open = {at}, found;
    while (!open.empty()) {
      const uint32_t from = open.back();
      open.pop_back();
      if (from == 0 || ++steps_ > kMaxSteps) return {};
      for (const uint32_t before : previous_[from]) {
        if (seen[before]) continue;
        seen[before] = true;
        if (may_write_any(before)) return {};
        if (writes(before, first) || writes(before, last))
          found.push_back(before);
        else
          open.push_back(before);
      }
    }
    std::ranges::sort(found);
    return found;
  }

  std::optional<uint64_t> constant(uint32_t at, uint32_t pair) {
    nest_.clear();
    const std::optional<Affine> value = affine(at, pair);
    return value && value->is_constant() ? std::optional(value->constant) : std::nullopt;
  }

  static bool is_small(const Affine& value) {
    return value.constant < kLargest &&
           std::ranges::all_of(value.times, [](uint64_t number) { return number < kLargest; });
  }
  static std::optional<Affine> sum(std::optional<Affine> x, const std::optional<Affine>& y) {
    if (!x || !y) return std::nullopt;
    x->constant += y->constant;
    for (size_t i = 0; i < kMaxLoops; ++i) x->times[i] += y->times[i];
    return is_small(*x) ? x : std::nullopt;
  }
  static std::optional<Affine> product(std::optional<Affine> x, std::optional<Affine> y) {
    if (!x || !y) return std::nullopt;
    if (!y->is_constant()) std::swap(x, y);
    if (!y->is_constant()) return std::nullopt;
    x->constant *= y->constant;
    for (uint64_t& number : x->times) number *= y->constant;
    return is_small(*x) ? x : std::nullopt;
  }

  // The value of the pair when control reaches `at`, in terms of the counters of the nest.
  std::optional<Affine> affine(uint32_t at, uint32_t pair, size_t depth = 0) {
    const std::vector<uint32_t> set = writes_before(at, pair);
    for (size_t i = 0; i < nest_.size(); ++i) {
      if (nest_[i].counter != pair || nest_[i].counter_writes != set || !nest_[i].contains(at)) continue;
      Affine value;
      value.times[i] = 1;
      return value;
    }
    return set.size() == 1 && depth < kMaxDepth ? value_set_by(set.front(), pair, depth + 1) : std::nullopt;
  }

  // The value that the instruction gives the pair.
  std::optional<Affine> value_set_by(uint32_t by, uint32_t pair, size_t depth = 0) {
    const Word* const word = &words_[by];
    const auto operand = [&](size_t number) { return affine(by, field(word, number), depth); };
    if (is(by, DecodedOp::move_64)) return word->b == pair ? operand(0) : std::nullopt;
    const size_t result = word->op < kOpCount ? kWordShapes[word->op].registers - size_t{1} : 0;
    if (word->op >= kOpCount || field(word, result) != pair) return std::nullopt;
    switch (static_cast<Op>(word->op)) {
      case Op::const_i64_zero:
        return Affine();
      case Op::const_i64:
        return word[1].bits() < kLargest ? std::optional(Affine{.constant = word[1].bits()}) : std::nullopt;
      case Op::add_i64:
        return sum(operand(0), operand(1));
      case Op::mul_i64:
        return product(operand(0), operand(1));
      case Op::fma_i64:
        return sum(product(operand(0), operand(1)), operand(2));
      default:
        return std::nullopt;
    }
  }

  // ---- nests

  // Finds the loops around the store that are not around the allocation, from the outermost on, and whether
  // they are a perfect nest of counting loops.
  bool find_nest(uint32_t store, uint32_t allocation) {
    std::vector<CountingLoop> loops;
    for (const uint32_t at : starts_) {
      if (!is(at, Op::br) || words_[at].distance() >= 0) continue;
      const uint32_t head = at - static_cast<uint32_t>(-words_[at].distance());
      const CountingLoop loop{.head = head, .latch = at};
      if (loop.contains(store) && !loop.contains(allocation)) loops.push_back(loop);
    }
    if (loops.empty() || loops.size() > kMaxLoops) return false;
    std::ranges::reverse(loops);
    nest_.clear();
    for (CountingLoop& loop : loops) {
      if (!nest_.empty() && loop.head <= nest_.back().head) return false;
      if (!is_counting(loop)) return false;
      nest_.push_back(std::move(loop));
    }
    return is_perfect();
  }

  // Finds the loop's test, its counter and how often it runs.
  bool is_counting(CountingLoop& loop) {
    loop.test = loop.head;
    if (is(loop.test, DecodedOp::enter_compiled)) loop.test += word_count(words_[loop.test]);
    if (!is(loop.test, Op::cmp_lt_i64_s)) return false;
    const Word& comparison = words_[loop.test];
    const uint32_t branch = branch_of(loop);
    if (!is(branch, Op::cond_br) || words_[branch].a != comparison.c) return false;
    loop.exit = branch + word_count(words_[branch]);
    loop.body = target(branch, words_[branch + 1].distance_if());
    const std::optional<uint32_t> after =
        place_after(loop, target(branch, words_[branch + 1].distance_else()));
    if (!after || loop.contains(*after)) return false;
    if (!nest_.empty() && !(loop.latch < *after && nest_.back().contains(*after))) return false;
    loop.counter = comparison.a;
    const std::optional<Affine> trips = affine(loop.test, comparison.b);
    if (!trips || !trips->is_constant() || trips->constant == 0) return false;
    loop.trips = trips->constant;
    return counts_up(loop);
  }
  static uint32_t target(uint32_t branch, int32_t distance) {
    return static_cast<uint32_t>(branch + int64_t{distance});
  }
  // Where control goes on after the loop, if the branch leaves the loop for `outside`.
  std::optional<uint32_t> place_after(const CountingLoop& loop, uint32_t outside) const {
    if (loop.body == loop.exit) return outside;
    if (outside != loop.exit || loop.body < loop.exit || loop.body > loop.latch) return std::nullopt;
    uint32_t at = loop.exit;
    while (at < loop.body && (is(at, DecodedOp::move_32) || is(at, DecodedOp::move_64))) ++at;
    if (at + 1 != loop.body || !is(at, Op::br)) return std::nullopt;
    return target(at, words_[at].distance());
  }
  uint32_t branch_of(const CountingLoop& loop) const { return loop.test + word_count(words_[loop.test]); }

  // Whether the counter begins with 0 whenever the loop is entered, and is one more in each iteration.
  bool counts_up(CountingLoop& loop) {
    loop.counter_writes = writes_before(loop.test, loop.counter);
    if (loop.counter_writes.size() != 2) return false;
    uint32_t first = loop.counter_writes[0], next = loop.counter_writes[1];
    if (loop.contains(first)) std::swap(first, next);
    return !loop.contains(first) && is(value_set_by(first, loop.counter), 0) &&
           is_set_when_entered(loop, first) && next + word_count(words_[next]) == loop.latch &&
           is(next, Op::add_i64) && words_[next].c == loop.counter && words_[next].a == loop.counter &&
           writes_before(next, loop.counter) == loop.counter_writes && is(affine(next, words_[next].b), 1);
  }
  static bool is(const std::optional<Affine>& value, uint64_t expected) {
    return value && value->is_constant() && value->constant == expected;
  }
  // Whether `first` is the last word that sets the counter before the loop, on each way into it.
  bool is_set_when_entered(const CountingLoop& loop, uint32_t first) const {
    return std::ranges::all_of(previous_[loop.head], [&](uint32_t before) {
      return loop.contains(before) || before == first ||
             writes_before(before, loop.counter) == std::vector{first};
    });
  }

  // Whether control enters and leaves the nest at the outermost test only, and every iteration runs all of
  // its instructions: nothing branches but the loops.
  bool is_perfect() const {
    const CountingLoop& outermost = nest_.front();
    const auto is_of_loop = [&](uint32_t at) {
      return std::ranges::any_of(nest_, [&](const CountingLoop& loop) {
        return at == loop.latch || at == branch_of(loop) || (at + 1 == loop.body && at >= loop.exit);
      });
    };
    const auto is_inside = [&](uint32_t at) { return outermost.contains(at); };
    return std::ranges::all_of(starts_, [&](uint32_t at) {
      if (!is_inside(at)) return true;
      if (at != outermost.head && !std::ranges::all_of(previous_[at], is_inside)) return false;
      if (is(at, DecodedOp::enter_compiled) || is(at, DecodedOp::move_32) || is(at, DecodedOp::move_64))
        return true;
      if (words_[at].op >= kOpCount || !is_compiled(static_cast<Op>(words_[at].op))) return false;
      return is_of_loop(at) || (!is(at, Op::br) && !is(at, Op::cond_br) && !is(at, Op::br_table));
    });
  }

  // Whether the stores of all iterations are to all elements of so many bytes.
  bool covers(uint32_t store, uint32_t size, uint64_t bytes) {
    const std::optional<Affine> index = affine(store, words_[store].b);
    if (!index || index->constant != 0) return false;
    std::vector<std::pair<uint64_t, uint64_t>> steps;  // and how many
    for (size_t i = 0; i < nest_.size(); ++i) steps.emplace_back(index->times[i], nest_[i].trips);
    std::ranges::sort(steps);
    uint64_t covered = 1;  // elements from the first on
    for (const auto& [step, trips] : steps) {
      if (step > covered) return false;
      covered += step * (trips - 1);
      if (covered >= kLargest) return false;
    }
    return covered * size >= bytes;
  }

  // ---- calls

  // Whether the call fills the buffer of so many bytes in the register, which is one of its arguments.
  bool writes_all(uint32_t call, uint32_t ref, uint64_t bytes) {
    const CallSite& site = call_site(&words_[call]);
    const std::span<const uint16_t> arguments = lists_.subspan(site.bare_arguments, site.argument_count);
    const Import& import = calls_.imports[site.function];
    if (!calls_.writes || std::ranges::count(arguments, ref | kRefBit) != 1 ||
        arguments.size() >= import.convention.size() || examined_++ >= kMaxStores)
      return false;
    size_t position = 0, refs = 0;  // of the buffer among the refs
    std::vector<std::optional<int64_t>> integers;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i] == (ref | kRefBit)) position = refs;
      switch (import.convention[1 + i]) {
        case 'r':
          ++refs;
          break;
        case 'i':
          integers.push_back(single(call, arguments[i]));
          break;
        case 'I':
          integers.push_back(constant(call, arguments[i]));
          break;
        default:
          return false;
      }
    }
    const std::optional<CallWrites> written = calls_.writes(import.name, integers);
    return written && written->ref == position && written->begin == 0 && written->end >= bytes;
  }
  // The value of the slot when control reaches the call, if it is constant.
  std::optional<int64_t> single(uint32_t call, uint32_t slot) const {
    const std::vector<uint32_t> set = writes_before(call, slot, slot);
    if (set.size() != 1) return std::nullopt;
    const Word* const word = &words_[set.front()];
    if (is(set.front(), Op::const_i32_zero)) return 0;
    if (is(set.front(), Op::const_i32)) return static_cast<int32_t>(word->wide());
    return std::nullopt;
  }

  // Whether each path from the allocation has an edge that `is_end` accepts before anything may read the
  // buffer.
  template <typename IsEnd>
  bool is_passed_before_reads(uint32_t allocation, uint32_t ref, IsEnd is_end) const {
    std::vector<bool> seen(words_.size());
    std::vector<uint32_t> open;
    const auto follow = [&](uint32_t from) {
      for_each_successor(words_, from, [&](uint32_t to) {
        if (!is_end(from, to)) open.push_back(to);
      });
    };
    follow(allocation);
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      if (seen[at] || at == allocation) continue;
      if (++steps_ > kMaxSteps) return false;
      seen[at] = true;
      bool is_kept = true, is_read = false;
      for_each_ref_use(words_, lists_, refs_, at, [&](uint32_t used, RefUse use) {
        if (used != ref) return;
        is_read |= use == RefUse::reads || use == RefUse::escapes;
        is_kept &= use == RefUse::reads || use == RefUse::writes || use == RefUse::looks;
      });
      if (is_read) return false;
      if (is_kept) follow(at);
    }
    return true;
  }

  std::span<const Word> words_;
  std::span<const uint16_t> lists_;
  uint32_t refs_;
  const KnownCalls calls_;
  std::vector<uint32_t> starts_;  // first words of instructions
  std::vector<std::vector<uint32_t>> previous_;
  std::vector<CountingLoop> nest_;  // of the store that is examined, from the outermost loop on
  size_t examined_ = 0;
  mutable size_t steps_ = 0;
};

}  // namespace

std::vector<uint32_t> find_filled_buffers(std::span<const Word> words, std::span<const uint16_t> lists,
                                          uint32_t ref_slots, const KnownCalls& calls) {
  std::vector<uint32_t> allocations;
  for (uint32_t at = 0; at < words.size(); at += word_count(words[at]))
    if (words[at].op == static_cast<uint16_t>(Op::buffer_alloc)) allocations.push_back(at);
  if (allocations.empty()) return {};
  Finder finder(words, lists, ref_slots, calls);
  std::erase_if(allocations, [&](uint32_t at) { return !finder.is_filled(at); });
  return allocations;
}

}  // namespace halyard::vm
