// Data-flow analyses over decoded code: forwards for what refers to buffers, backwards for bytes that may be
// read. They cover the interpreter too: both engines follow the same words.
#include "codegen/own_buffers.h"

#include <algorithm>

namespace halyard::jit {

using vm::DecodedOp;
using vm::Op;
using vm::Word;

namespace {

constexpr size_t kMaxState = size_t{1} << 20;  // words times registers
constexpr size_t kMaxLoads = 64;               // that are examined, because each takes a walk over the code

bool is_op(const Word& word, Op op) { return word.op == static_cast<uint16_t>(op); }
bool is_op(const Word& word, DecodedOp op) { return word.op == static_cast<uint16_t>(op); }

}  // namespace

OwnBuffers::OwnBuffers(std::span<const Word> words, std::span<const uint16_t> lists, uint32_t ref_slots)
    : words_(words), lists_(lists), refs_(ref_slots) {
  bool allocates = false;
  for (uint32_t at = 0; at < words.size(); at += vm::word_count(words[at])) {
    starts_.push_back(at);
    allocates |= is_op(words[at], Op::buffer_alloc);
  }
  if (!allocates || words.size() * refs_ > kMaxState) return;
  find_neighbours();
  find_owners();
  find_live();
  find_last_reads();
  find_tracked();
  find_fresh();
}

void OwnBuffers::find_neighbours() {
  next_.resize(words_.size());
  previous_.resize(words_.size());
  for (const uint32_t at : starts_) {
    vm::for_each_successor(words_, at, [&](uint32_t to) {
      next_[at].push_back(to);
      previous_[to].push_back(at);
    });
  }
}

void OwnBuffers::find_owners() {
  owners_.resize(words_.size() * refs_);
  // Others may refer to arguments.
  std::fill_n(owners_.begin(), refs_, Owner::others);
  std::vector<Owner> now(refs_);
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t at : starts_) {
      std::copy_n(&owners_[index(at, 0)], refs_, now.begin());
      const Word& word = words_[at];
      if (is_op(word, DecodedOp::move_ref)) {
        const Owner moved = now[word.a];
        now[word.a] = moved == Owner::unreached ? moved : Owner::function;
        now[word.b] = moved;
      } else {
        for_each_use(at, [&](uint32_t ref, Use use) {
          if (now[ref] == Owner::unreached) return;
          if (use == Use::escapes || use == Use::replaces) now[ref] = Owner::others;
          if (use == Use::allocates || use == Use::clears) now[ref] = Owner::function;
        });
      }
      for (const uint32_t to : next_[at]) {
        for (uint32_t ref = 0; ref < refs_; ++ref) {
          Owner& owner = owners_[index(to, ref)];
          const Owner both = std::max(owner, now[ref]);
          changed |= both != owner;
          owner = both;
        }
      }
    }
  }
}

void OwnBuffers::find_live() {
  live_.resize(words_.size() * refs_);
  std::vector<bool> now(refs_);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = starts_.size(); i-- > 0;) {
      const uint32_t at = starts_[i];
      for (uint32_t ref = 0; ref < refs_; ++ref)
        now[ref] = std::ranges::any_of(next_[at], [&](uint32_t to) { return live_[index(to, ref)]; });
      const Word& word = words_[at];
      if (is_op(word, DecodedOp::move_ref)) {
        const bool moved = now[word.b];
        now[word.b] = false;
        now[word.a] = moved;
      } else {
        for (const bool wanted : {true, false}) {
          for_each_use(at, [&](uint32_t ref, Use use) {
            const bool is_new = use == Use::allocates || use == Use::replaces || use == Use::clears;
            if (wanted && is_new) now[ref] = false;
            if (!wanted && (use == Use::reads || use == Use::escapes)) now[ref] = true;
          });
        }
      }
      for (uint32_t ref = 0; ref < refs_; ++ref) {
        changed |= live_[index(at, ref)] != now[ref];
        live_[index(at, ref)] = now[ref];
      }
    }
  }
}

bool OwnBuffers::is_compiled(uint32_t at) const {
  const Word& word = words_[at];
  if (word.op < vm::kOpCount) return vm::is_compiled(static_cast<Op>(word.op));
  return is_op(word, DecodedOp::move_32) || is_op(word, DecodedOp::move_64) ||
         is_op(word, DecodedOp::move_ref);
}

void OwnBuffers::add_reachable(uint32_t from, const Words& within,
                               const std::vector<std::vector<uint32_t>>& edges, Words& reached) const {
  std::vector<uint32_t> open = edges[from];
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    if (!within[at] || reached[at]) continue;
    reached[at] = true;
    open.insert(open.end(), edges[at].begin(), edges[at].end());
  }
}

// The words on cycles through this one. Empty if there is none.
OwnBuffers::Words OwnBuffers::cycle_through(uint32_t word, const Words& within) const {
  Words after(words_.size()), before(words_.size());
  add_reachable(word, within, next_, after);
  add_reachable(word, within, previous_, before);
  if (!after[word]) return {};
  for (size_t at = 0; at < after.size(); ++at) after[at] = after[at] && before[at];
  return after;
}

// Whether all cycles through the word are loops: each set of cycles is entered at one word, without which it
// is such a set again. LLVM then finds the same loops.
bool OwnBuffers::is_reducible(uint32_t word, Words cycle) const {
  while (!cycle.empty()) {
    uint32_t head = 0, heads = 0;
    for (const uint32_t at : starts_) {
      if (!cycle[at]) continue;
      const auto is_outside = [&](uint32_t from) { return !cycle[from]; };
      if (at != 0 && std::ranges::none_of(previous_[at], is_outside)) continue;
      head = at;
      ++heads;
    }
    if (heads != 1) return false;
    if (head == word) return true;
    cycle[head] = false;
    cycle = cycle_through(word, cycle);
  }
  return true;
}

// Whether the loop only reads the buffer in this register, and nothing reads it afterwards.
bool OwnBuffers::is_read_last_in(const Words& loop, uint32_t ref) const {
  return std::ranges::all_of(starts_, [&](uint32_t at) {
    if (!loop[at]) return true;
    bool is_kept = is_compiled(at);
    for_each_use(at, [&](uint32_t used, Use use) {
      if (used == ref && use != Use::reads && use != Use::looks) is_kept = false;
    });
    return is_kept &&
           std::ranges::all_of(next_[at], [&](uint32_t to) { return loop[to] || !live_[index(to, ref)]; });
  });
}

void OwnBuffers::find_tracked() {
  std::vector<bool> has_buffers(refs_), has_others(refs_);
  for (const uint32_t at : starts_) {
    const bool allocates = is_op(words_[at], Op::buffer_alloc);
    for_each_use(at, [&](uint32_t ref, Use use) {
      if (use == Use::allocates && allocates)
        has_buffers[ref] = true;
      else if (use == Use::allocates || use == Use::escapes || use == Use::replaces ||
               (use == Use::writes && owners_[index(at, ref)] == Owner::others))
        has_others[ref] = true;
    });
  }
  for (uint32_t ref = 0; ref < refs_; ++ref) tracked_.push_back(has_buffers[ref] && !has_others[ref]);
}

bool OwnBuffers::may_write(uint32_t word, uint32_t ref) const {
  bool writes = false;
  for_each_use(word, [&](uint32_t used, Use use) { writes |= used == ref && use == Use::writes; });
  return writes;
}

void OwnBuffers::find_fresh() {
  if (std::ranges::find(tracked_, true) == tracked_.end()) return;
  // Fresh on every path: all are, until a path shows the opposite.
  fresh_.assign(words_.size() * refs_, true);
  std::fill_n(fresh_.begin(), refs_, false);
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t at : starts_) {
      for (uint32_t ref = 0; ref < refs_; ++ref) {
        if (!tracked_[ref]) continue;
        bool is_fresh = fresh_[index(at, ref)];
        for_each_use(at, [&](uint32_t used, Use use) {
          if (used != ref) return;
          if (use == Use::allocates) is_fresh = true;
          if (use == Use::writes || use == Use::clears) is_fresh = false;
        });
        for (const uint32_t to : next_[at]) {
          if (is_fresh || !fresh_[index(to, ref)]) continue;
          fresh_[index(to, ref)] = false;
          changed = true;
        }
      }
    }
  }
}

bool OwnBuffers::may_be_interpreted_write(uint32_t word, uint32_t ref) const {
  Words seen(words_.size());
  std::vector<uint32_t> open = {word};
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    if (seen[at] || is_op(words_[at], DecodedOp::enter_compiled)) continue;
    seen[at] = true;
    if (may_write(at, ref)) return true;
    open.insert(open.end(), next_[at].begin(), next_[at].end());
  }
  return false;
}

void OwnBuffers::find_last_reads() {
  last_reads_.resize(words_.size());
  const Words all(words_.size(), true);
  size_t examined = 0;
  for (const uint32_t at : starts_) {
    const Word& word = words_[at];
    if (word.op >= vm::kOpCount ||
        vm::elements_of(static_cast<Op>(word.op)).access != vm::ElementAccess::load ||
        owners_[index(at, word.a)] != Owner::function)
      continue;
    if (++examined > kMaxLoads) return;
    const Words loop = cycle_through(at, all);
    last_reads_[at] = !loop.empty() && is_read_last_in(loop, word.a) && is_reducible(at, loop);
  }
}

}  // namespace halyard::jit
