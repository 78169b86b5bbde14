#include "aot/loop_ranges.h"

#include <fmt/core.h>

#include <algorithm>

#include "aot/c_text.h"
#include "aot/forms.h"

namespace halyard::aot {

using vm::Bank;
using vm::Op;
using vm::OperandKind;

namespace {

// The cells of instructions whose results are not known have numbers above those of blocks.
constexpr uint64_t kOfStep = uint64_t{1} << 32;

bool is_integer(Bank bank) { return bank == Bank::i32 || bank == Bank::i64; }

// Whether the result depends on the operands alone, which are registers with integers, and nothing can fail.
bool is_pure(Op op) {
  const vm::OpInfo& info = vm::info(op);
  const Form& form = form_of(op);
  if (form.kind != Form::Kind::value || info.operand_count < 2 || info.operand_count > 4) return false;
  for (size_t i = 0; i < info.operand_count; ++i)
    if (info.operands[i].kind != OperandKind::reg || !is_integer(info.operands[i].bank) ||
        info.operands[i].writes != (i + 1 == info.operand_count))
      return false;
  return form.text.find("(s)") == std::string_view::npos;
}

}  // namespace

LoopRanges::LoopRanges(const vm::Function& function, const vm::Flow& flow, const Variables& variables,
                       const Loops& loops, size_t loop, Read read)
    : flow_(flow),
      variables_(variables),
      loops_(loops),
      loop_(loops.all()[loop]),
      read_(std::move(read)),
      slots_(function.value_registers) {
  for (const size_t block : loops_.order())
    if (loop_.blocks[block]) visit_block(block);
}

// ---- terms

LoopRanges::Id LoopRanges::add(const Term& term) {
  const auto [found, is_new] = ids_.emplace(term.key(), static_cast<Id>(terms_.size()));
  if (is_new) terms_.push_back(term);
  return found->second;
}

LoopRanges::Id LoopRanges::value(const Contents& contents, uint16_t reg, Bank bank) {
  const Content& low = contents[reg];
  if (bank == Bank::i32) {
    if (low.part == Content::Part::whole) return low.term;
    if (low.part != Content::Part::cell) return kNone;
    return add({.kind = Kind::cell, .changes = low.changes, .constant = low.block, .operands = {low.slot}});
  }
  const Content& high = contents[reg + 1u];
  if (low.part == Content::Part::low && high.part == Content::Part::high && low.term == high.term)
    return low.term;
  if (low.part != Content::Part::cell || high.part != Content::Part::cell || low.block != high.block ||
      low.slot + 1 != high.slot)
    return kNone;
  return add({.kind = Kind::cell,
              .wide = true,
              .changes = low.changes || high.changes,
              .constant = low.block,
              .operands = {low.slot}});
}

std::vector<bool> LoopRanges::written_in(const Loop& loop) const {
  std::vector<bool> written(slots_);
  for (size_t block = 0; block < loop.blocks.size(); ++block) {
    if (!loop.blocks[block]) continue;
    const vm::Flow::Block& each = flow_.blocks()[block];
    for (size_t step = each.first_step; step < each.first_step + each.step_count; ++step)
      for (const vm::Access access : flow_.accesses(step))
        if (access.writes()) written[access.slot()] = true;
    for (const vm::Flow::Edge& edge : flow_.edges(block)) {
      if (!loop.blocks[edge.block]) continue;
      for (size_t i = 0; i < edge.remap.size(); ++i)
        if (!(edge.remap[i].destination & vm::kRefBit)) written[edge.remap[i].destination] = true;
    }
  }
  return written;
}

LoopRanges::Contents LoopRanges::after_edge(size_t from, const vm::Flow::Edge* edge) const {
  Contents contents = at_end_.at(from);
  for (size_t i = 0; edge && i < edge->remap.size(); ++i) {
    const vm::Remap move = edge->remap[i];
    if (!(move.source & vm::kRefBit)) contents[move.destination] = contents[move.source];
  }
  return contents;
}

// What arrives over the branches forward.
LoopRanges::Contents LoopRanges::entry_of(size_t block) const {
  Contents all;
  const auto arrive = [&](const Contents& contents) {
    if (all.empty()) {
      all = contents;
      return;
    }
    for (size_t slot = 0; slot < slots_; ++slot)
      if (!(all[slot] == contents[slot]))
        all[slot] = {
            .changes = true, .block = static_cast<uint32_t>(block), .slot = static_cast<uint32_t>(slot)};
  };
  std::vector<size_t> seen;
  for (const size_t from : loops_.predecessors(block)) {
    // Branches back come from blocks that have not been visited.
    if (!at_end_.contains(from) || std::ranges::find(seen, from) != seen.end()) continue;
    seen.push_back(from);
    for (const vm::Flow::Edge& edge : flow_.edges(from))
      if (edge.block == block) arrive(after_edge(from, &edge));
    if (flow_.blocks()[from].falls_through && from + 1 == block) arrive(after_edge(from, nullptr));
  }
  return all;
}

void LoopRanges::visit_block(size_t block) {
  Contents contents;
  const auto cells = [&](const std::vector<bool>& written, bool all) {
    contents.resize(slots_);
    for (size_t slot = 0; slot < slots_; ++slot)
      if (all || written[slot])
        contents[slot] = {.changes = written[slot],
                          .block = static_cast<uint32_t>(block),
                          .slot = static_cast<uint32_t>(slot)};
  };
  if (block == loop_.header) {
    cells(written_in(loop_), true);
  } else {
    contents = entry_of(block);
    for (const Loop& loop : loops_.all()) {
      if (loop.header != block) continue;
      inner_entry_[block] = contents;
      cells(written_in(loop), false);
    }
  }
  const vm::Flow::Block& each = flow_.blocks()[block];
  for (size_t step = each.first_step; step < each.first_step + each.step_count; ++step) {
    const vm::Instruction& instruction = flow_.instruction(step);
    const vm::OpInfo& op = vm::info(instruction.op);
    for (size_t i = 0; i < op.operand_count; ++i)
      if (op.operands[i].kind == OperandKind::reg && !op.operands[i].writes &&
          is_integer(op.operands[i].bank))
        read_terms_[{step, i}] = value(contents, instruction.operands[i].reg, op.operands[i].bank);
    if (instruction.op == Op::cond_br) conditions_[block] = read_terms_.at({step, 0});
    visit_step(step, contents);
  }
  at_end_[block] = std::move(contents);
}

void LoopRanges::visit_step(size_t step, Contents& contents) {
  const vm::Instruction& instruction = flow_.instruction(step);
  const vm::OpInfo& op = vm::info(instruction.op);
  Id result = kNone;
  const size_t last = op.operand_count == 0 ? 0 : op.operand_count - 1u;
  const auto is = [&](Op a, Op b) { return instruction.op == a || instruction.op == b; };
  if (is(Op::const_i32, Op::const_i32_zero) || is(Op::const_i64, Op::const_i64_zero)) {
    const bool wide = is(Op::const_i64, Op::const_i64_zero);
    const uint64_t constant = last == 0 ? 0 : instruction.operands[0].immediate;
    result = add({.wide = wide, .constant = wide ? constant : static_cast<uint32_t>(constant)});
  } else if (is_pure(instruction.op)) {
    Term term = {.kind = Kind::operation, .wide = op.operands[last].bank == Bank::i64, .op = instruction.op};
    bool known = true;
    for (size_t i = 0; i < last && known; ++i) {
      term.operands[i] = read_terms_.at({step, i});
      known = term.operands[i] != kNone;
      if (known) term.changes |= terms_[term.operands[i]].changes;
    }
    if (known) result = add(term);
  }
  using enum Content::Part;
  if (result != kNone) {
    const uint16_t reg = instruction.operands[last].reg;
    contents[reg] = {.part = terms_[result].wide ? low : whole, .term = result};
    if (terms_[result].wide) contents[reg + 1u] = {.part = high, .term = result};
    return;
  }
  for (const vm::Access access : flow_.accesses(step))
    if (access.writes())
      contents[access.slot()] = {.part = whole,
                                 .term = add({.kind = Kind::cell,
                                              .changes = true,
                                              .constant = kOfStep + step,
                                              .operands = {access.slot()}})};
}

// ---- facts

// What the comparison at the end of `from` says about the edge, if it is the only one to the block.
std::optional<LoopRanges::Fact> LoopRanges::fact_of(size_t from, size_t to) const {
  const auto condition = conditions_.find(from);
  if (condition == conditions_.end() || condition->second == kNone) return {};
  const std::span<const vm::Flow::Edge> edges = flow_.edges(from);
  if (edges.size() != 2 || edges[0].block == edges[1].block) return {};
  const Term& term = terms_[condition->second];
  if (term.kind != Kind::operation) return {};
  const bool is_signed = term.op == Op::cmp_lt_i32_s || term.op == Op::cmp_lt_i64_s;
  if (!is_signed && term.op != Op::cmp_lt_i32_u && term.op != Op::cmp_lt_i64_u) return {};
  if (edges[0].block == to)
    return Fact{.first = term.operands[0], .second = term.operands[1], .is_signed = is_signed};
  return Fact{
      .first = term.operands[1], .second = term.operands[0], .is_signed = is_signed, .or_equal = true};
}

// What holds whenever the block runs.
std::vector<LoopRanges::Fact> LoopRanges::facts_at(size_t block) const {
  std::vector<Fact> facts;
  while (block != loop_.header) {
    const std::vector<size_t>& from = loops_.predecessors(block);
    if (from.size() == 1)
      if (const std::optional<Fact> fact = fact_of(from[0], block)) facts.push_back(*fact);
    block = loops_.dominator(block);
  }
  return facts;
}

// ---- bounds

std::optional<std::string> LoopRanges::most(size_t step, size_t operand) {
  const auto term = read_terms_.find({step, operand});
  if (term == read_terms_.end() || term->second == kNone) return {};
  size_t block = 0;
  while (step >= flow_.blocks()[block].first_step + flow_.blocks()[block].step_count) ++block;
  return bound(term->second, block);
}

std::string LoopRanges::name(const std::string& expression) {
  const auto [found, is_new] = names_.emplace(expression, fmt::format("h{}", names_.size()));
  if (is_new) statements_.push_back(fmt::format("const uint64_t {} = {};", found->second, expression));
  return found->second;
}

// The value of a term that does not change, of its own type.
std::optional<std::string> LoopRanges::exact(Id id) {
  if (const auto known = exact_.find(id); known != exact_.end()) return known->second;
  const Term term = terms_[id];
  std::optional<std::string> text;
  if (term.kind == Kind::constant) {
    text = term.wide ? constant_i64(term.constant) : constant_i32(static_cast<uint32_t>(term.constant));
  } else if (term.kind == Kind::cell) {
    const Bank bank = term.wide ? Bank::i64 : Bank::i32;
    if (const auto variable =
            variables_.at_entry(loop_.header, static_cast<uint16_t>(term.operands[0]), bank))
      text = read_(*variable, bank);
  } else {
    std::string expression;
    const std::string_view form = form_of(term.op).text;
    // Compilers warn of comparisons of a value with itself.
    bool known = term.operands[0] != term.operands[1] || form.find_first_of("=<>") == std::string_view::npos;
    for (size_t i = 0; i < form.size() && known; ++i) {
      if (form[i] != '$') {
        expression += form[i];
        continue;
      }
      const std::optional<std::string> operand = exact(term.operands[form[++i] - '0']);
      known = operand.has_value();
      if (known) expression += *operand;
    }
    if (known)
      text = term.wide ? name(fmt::format("(uint64_t)({})", expression))
                       : fmt::format("(uint32_t){}", name(fmt::format("(uint32_t)({})", expression)));
  }
  return exact_[id] = text;
}

// A bound that holds whenever the block runs.
std::optional<std::string> LoopRanges::bound(Id id, size_t block) {
  const auto [known, is_new] = bounds_.try_emplace({id, block});
  if (!is_new) return known->second;  // none while it is being looked for
  std::optional<std::string> found = own_bound(id, block);
  const Term term = terms_[id];
  if (term.changes) {
    for (const Fact& fact : facts_at(block)) {
      if (fact.first != id) continue;
      // A number of which nothing is known may be negative.
      if (!found && fact.is_signed) continue;
      const std::string half = fact.is_signed ? (term.wide ? "INT64_MAX" : "INT32_MAX") : limit(term);
      const std::string second = bound(fact.second, block).value_or(limit(term));
      found = name(fmt::format("vm_most_below({}, {}, {}, {})", found.value_or(limit(term)), second,
                               fact.or_equal ? 0 : 1, half));
    }
  }
  return bounds_[{id, block}] = found;
}

std::optional<std::string> LoopRanges::own_bound(Id id, size_t block) {
  const Term term = terms_[id];
  if (!term.changes) {
    const std::optional<std::string> text = exact(id);
    return text ? std::optional(name(*text)) : std::nullopt;
  }
  return term.kind == Kind::cell ? counter_bound(term) : operation_bound(term, block);
}

std::optional<std::string> LoopRanges::operation_bound(const Term& term, size_t block) {
  std::optional<std::string> x[3];
  for (size_t i = 0; i < 3; ++i)
    if (term.operands[i] != kNone) x[i] = bound(term.operands[i], block);
  const std::string most = limit(term);
  const auto shift = [&]() -> std::optional<unsigned> {
    const Term& amount = terms_[term.operands[1]];
    if (amount.kind != Kind::constant) return {};
    return static_cast<unsigned>(amount.constant & (term.wide ? 63 : 31));
  };
  switch (term.op) {
    case Op::add_i32:
    case Op::add_i64:
      if (!x[0] || !x[1]) return {};
      return name(fmt::format("vm_most_sum({}, {}, {})", *x[0], *x[1], most));
    case Op::mul_i32:
    case Op::mul_i64:
      if (!x[0] || !x[1]) return {};
      return name(fmt::format("vm_most_product({}, {}, {})", *x[0], *x[1], most));
    case Op::fma_i32:
    case Op::fma_i64:
      if (!x[0] || !x[1] || !x[2]) return {};
      return name(
          fmt::format("vm_most_sum(vm_most_product({}, {}, {}), {}, {})", *x[0], *x[1], most, *x[2], most));
    case Op::and_i32:
    case Op::and_i64:
      if (!x[0] || !x[1]) return x[0] ? x[0] : x[1];
      return name(fmt::format("vm_lesser({}, {})", *x[0], *x[1]));
    case Op::shl_i32:
    case Op::shl_i64:
      if (!x[0] || !shift()) return {};
      return name(fmt::format("vm_most_product({}, UINT64_C({}), {})", *x[0], uint64_t{1} << *shift(), most));
    case Op::shr_i32_u:
    case Op::shr_i64_u:
      if (!x[0] || !shift()) return {};
      return name(fmt::format("{} >> {}", *x[0], *shift()));
    case Op::ext_i32_i64_u:
      return x[0];
    case Op::ext_i32_i64_s:
      if (!x[0]) return {};
      return name(fmt::format("{0} > INT32_MAX ? UINT64_MAX : {0}", *x[0]));
    case Op::trunc_i64_i32:
      if (!x[0]) return {};
      return name(fmt::format("vm_lesser({}, UINT32_MAX)", *x[0]));
    case Op::min_i32_u:
    case Op::min_i64_u:
      if (!x[0] || !x[1]) return x[0] ? x[0] : x[1];
      return name(fmt::format("vm_lesser({}, {})", *x[0], *x[1]));
    case Op::max_i32_u:
    case Op::max_i64_u:
      if (!x[0] || !x[1]) return {};
      return name(fmt::format("vm_greater({}, {})", *x[0], *x[1]));
    case Op::select_i32:
    case Op::select_i64:
      if (!x[1] || !x[2]) return {};
      return name(fmt::format("vm_greater({}, {})", *x[1], *x[2]));
    default:
      return {};
  }
}

// A register of a header to which each iteration adds.
std::optional<std::string> LoopRanges::counter_bound(const Term& term) {
  const auto loop = std::ranges::find(loops_.all(), term.constant, &Loop::header);
  if (loop == loops_.all().end() || loop->latches.size() != 1 || !at_end_.contains(loop->latches[0]))
    return {};
  const size_t latch = loop->latches[0];
  const auto slot = static_cast<uint16_t>(term.operands[0]);
  const Bank bank = term.wide ? Bank::i64 : Bank::i32;
  const Id own = add(term);
  Id next = kNone;
  for (const vm::Flow::Edge& edge : flow_.edges(latch))
    if (edge.block == loop->header) next = value(after_edge(latch, &edge), slot, bank);
  if (next == kNone || terms_[next].op != (term.wide ? Op::add_i64 : Op::add_i32) ||
      terms_[next].kind != Kind::operation)
    return {};
  const Term sum = terms_[next];
  if (sum.operands[0] != own && sum.operands[1] != own) return {};
  const std::optional<std::string> step = bound(sum.operands[sum.operands[0] == own ? 1 : 0], latch);
  std::optional<std::string> first;
  if (loop->header == loop_.header) {
    if (const auto variable = variables_.at_entry(loop_.header, slot, bank))
      first = name(read_(*variable, bank));
  } else {
    const Id entry = value(inner_entry_.at(loop->header), slot, bank);
    if (entry != kNone) first = bound(entry, loops_.dominator(loop->header));
  }
  if (!step || !first) return {};
  std::vector<Fact> facts = facts_at(latch);
  if (const std::optional<Fact> fact = fact_of(latch, loop->header)) facts.push_back(*fact);
  for (const Fact& fact : facts) {
    if (fact.first != own && fact.first != next) continue;
    const std::optional<std::string> second = bound(fact.second, latch);
    if (!second) continue;
    const std::string half = fact.is_signed ? (term.wide ? "INT64_MAX" : "INT32_MAX") : limit(term);
    return name(fmt::format("vm_most_counter({}, {}, {}, {}, {}, {}, {})", *first, *second,
                            fact.or_equal ? 0 : 1, *step, fact.first == next ? 1 : 0, half, limit(term)));
  }
  return {};
}

}  // namespace halyard::aot
