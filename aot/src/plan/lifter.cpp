// The structure of a function: blocks, branches and loops.
#include "plan/lifter.h"

#include <fmt/core.h>

#include <algorithm>

#include "aot/c_text.h"
#include "vm/module/calling_convention.h"

namespace halyard::aot {

using vm::Bank;
using vm::Op;

namespace {

constexpr size_t kMaxWork = 400000;  // steps
constexpr size_t kMaxDepth = 40;
constexpr size_t kMaxValues = 1500000;

bool is_half(uint8_t part) { return part != 0; }

}  // namespace

Body* Lifter::body_of(const Plan& plan, uint32_t function) {
  std::unique_ptr<Body>& body = bodies_[{&plan, function}];
  if (!body) {
    Result<std::unique_ptr<Body>> made = Body::of(plan, function);
    if (!made) {
      give_up(std::string(made.error().text()));
      return nullptr;
    }
    body = *std::move(made);
  }
  return body.get();
}

MemoryId Lifter::add_memory(Memory memory) {
  if (memory.bytes != kNoValue && values_.is_constant(memory.bytes)) {
    memory.has_size = true;
    memory.size = values_[memory.bytes].bits;
  }
  memory.function = current;
  memories_.push_back(memory);
  return static_cast<MemoryId>(memories_.size() - 1);
}

ObjectId Lifter::add_object(Object object) {
  objects_.push_back(std::move(object));
  return static_cast<ObjectId>(objects_.size() - 1);
}

ValueId Lifter::parameter(Bank bank, std::string name, Range range) {
  Value value = {.bank = bank, .range = range, .name = std::move(name)};
  value.scope = static_cast<uint32_t>(current);
  value.is_narrow = bank == Bank::i64 && range.is_narrow();
  const bool is_sum = (bank == Bank::i32 || bank == Bank::i64) && !range.is_full(bank);
  const ValueId id = values_.add(std::move(value));
  if (is_sum) values_.at(id).affine = {true, 0, {{id, 1}}};
  return id;
}

Nodes Lifter::lift(const Plan& plan, uint32_t function, const std::vector<Returned>& passed,
                   std::vector<Returned>& results) {
  Nodes out;
  Body* const body = body_of(plan, function);
  if (body == nullptr) return out;
  if (++depth_ > kMaxDepth || plan.recursive.contains(function)) {
    give_up("functions call themselves");
    return out;
  }
  const Plan* const outer = std::exchange(plan_, &plan);
  const Types types = function_types(plan.module, function);
  const vm::Function& facts = plan.module.functions()[function];
  Context context = {body, &types};
  State state;
  state.slots.resize(size_t{facts.value_registers} + 2, Slot{i32(0), 0});
  state.refs.resize(facts.ref_registers, kNull);
  const std::vector<uint16_t> registers = argument_registers(types.arguments);
  for (size_t i = 0; i < registers.size(); ++i) {
    if (types.arguments[i] == 'r')
      state.refs[registers[i] & vm::kRefOrdinalMask] = passed[i].object;
    else
      write(state, registers[i], bank_of(types.arguments[i]), passed[i].value);
  }
  State end = lift_from(context, 0, std::move(state), body->exit(), nullptr, out);
  if (end.is_reachable)
    results = std::move(end.results);
  else if (!is_stuck())
    results.clear();
  plan_ = outer;
  --depth_;
  return out;
}

// ---- blocks

Lifter::State Lifter::lift_from(Context& context, size_t block, State state, size_t stop, Loop* loop,
                                Nodes& out) {
  Body& body = *context.body;
  const vm::Flow& flow = body.flow();
  for (bool first = true;; first = false) {
    if (is_stuck() || !state.is_reachable) return state;
    const bool is_head = loop != nullptr && block == loop->head;
    if (block == stop && !(first && is_head)) return state;
    if (is_head && !first) {
      give_up("a loop goes on from within a branch");
      return state;
    }
    if (loop != nullptr && (block == body.exit() || !loop->shape->blocks.contains(block)))
      return leave_loop(context, std::move(state), *loop, out);
    if (block == body.exit()) return state;
    LoopShape* const shape = body.loop_at(block);
    if (shape != nullptr && !(first && is_head) && !(shape->moves_refs && plan_->role == Role::host)) {
      // A loop of the kernels, or one that only computes.
      state = lift_loop(context, block, std::move(state), loop, out);
      block = shape->exit;
      continue;
    }
    if (values_.size() > kMaxValues || ++work_ > kMaxWork) {
      give_up("the function takes more steps than are executed here");
      return state;
    }
    const vm::Flow::Block& each = flow.blocks()[block];
    const auto edges = flow.edges(block);
    const size_t last = each.first_step + each.step_count - 1;
    for (size_t at = each.first_step; at < last; ++at) {
      step(context, state, at, out);
      if (is_stuck() || !state.is_reachable) return state;
    }
    const vm::Instruction& end = flow.instruction(last);
    switch (end.op) {
      case Op::return_: {
        const vm::RegList& list = end.operands[0].regs;
        for (size_t i = 0; i < context.types->results.size(); ++i) {
          const char type = context.types->results[i];
          if (type == 'r')
            state.results.push_back({.object = ref(context, state, list[i]), .is_ref = true});
          else
            state.results.push_back({.value = read(state, list[i], bank_of(type), out)});
        }
        if (loop != nullptr) give_up("a function returns from within a loop");
        return state;
      }
      case Op::fail: {
        const ValueId status = read(state, end.operands[0].reg, Bank::i32, out);
        const std::string failure = fmt::format(
            "vm_program_failure(s, {}, {})", values_.text(status, Bank::i32), quoted(end.operands[1].string));
        if (values_.is_constant(status) && values_[status].bits != 0) {
          out.push_back({.kind = Node::Kind::fail, .failure = failure});
          state.is_reachable = false;
          return state;
        }
        if (!values_.is_constant(status))
          out.push_back({.kind = Node::Kind::check,
                         .text = values_.text(status, Bank::i32) + " != 0",
                         .failure = failure,
                         .uses = {status}});
        if (block + 1 >= body.exit()) {
          give_up("a function ends without a return");
          return state;
        }
        ++block;
        continue;
      }
      case Op::cond_br: {
        const ValueId condition = read(state, end.operands[0].reg, Bank::i32, out);
        if (values_.is_constant(condition)) {
          const vm::Flow::Edge& edge = edges[values_[condition].bits != 0 ? 0 : 1];
          move(context, edge, state);
          block = edge.block;
          continue;
        }
        if (body.plan().role == Role::host && body.leaves_object_loop(block)) {
          give_up("a loop that changes objects runs a number of times that is not known");
          return state;
        }
        size_t meeting = body.meeting(block);
        if (loop != nullptr && (meeting == body.exit() || !loop->shape->blocks.contains(meeting)))
          meeting = stop;
        // Of a branch out of the loop, only the way that stays goes on.
        Nodes nodes[2];
        State states[2] = {state, state};
        for (const size_t way : {size_t{0}, size_t{1}}) {
          learn(states[way], condition, way == 0);
          move(context, edges[way], states[way]);
        }
        const auto leaves = [&](size_t way) {
          return loop != nullptr && !loop->shape->blocks.contains(edges[way].block);
        };
        if (leaves(0) != leaves(1)) {
          const size_t out_way = leaves(0) ? 0 : 1;
          leave_loop(context, std::move(states[out_way]), *loop, nodes[out_way]);
          out.push_back(branch_on(condition, out_way == 1));
          out.back().body = std::move(nodes[out_way]);
          state = std::move(states[1 - out_way]);
          block = edges[1 - out_way].block;
          if (block == stop) return state;
          continue;
        }
        ++branches_;
        for (const size_t way : {size_t{0}, size_t{1}})
          states[way] =
              lift_from(context, edges[way].block, std::move(states[way]), meeting, loop, nodes[way]);
        --branches_;
        if (is_stuck()) return state;
        if (states[0].is_reachable && states[1].is_reachable) {
          state =
              merge(context, meeting, std::move(states[0]), nodes[0], std::move(states[1]), nodes[1], out);
          out.push_back(branch_on(condition, false));
          out.back().body = std::move(nodes[0]);
          out.back().other = std::move(nodes[1]);
        } else {
          // One way ends: the other one is not nested.
          const size_t ended = states[0].is_reachable ? 1 : 0;
          out.push_back(branch_on(condition, ended == 1));
          out.back().body = std::move(nodes[ended]);
          for (Node& node : nodes[1 - ended]) out.push_back(std::move(node));
          state = std::move(states[1 - ended]);
          if (!state.is_reachable) return state;
        }
        block = meeting;
        if (block == stop) return state;
        if (block == body.exit()) return state;
        continue;
      }
      case Op::br:
      case Op::yield:
      case Op::cond_break:
      case Op::break_:
        move(context, edges[0], state);
        block = edges[0].block;
        continue;
      case Op::call_yieldable:
      case Op::call_variadic_yieldable:
        call(context, state, last, out);
        move(context, edges[0], state);
        block = edges[0].block;
        continue;
      default:
        if (vm::info(end.op).terminator()) {
          give_up(fmt::format("instruction {} is not executed here", vm::info(end.op).mnemonic()));
          return state;
        }
        step(context, state, last, out);
        if (edges.empty()) {
          give_up("a block without an end");
          return state;
        }
        move(context, edges[0], state);
        block = edges[0].block;
        continue;
    }
  }
}

// The moves of an edge, one after another.
void Lifter::move(Context& context, const vm::Flow::Edge& edge, State& state) {
  for (size_t i = 0; i < edge.remap.size(); ++i) {
    const vm::Remap each = edge.remap[i];
    if (!(each.destination & vm::kRefBit)) {
      state.slots[each.destination] = state.slots[each.source];
      continue;
    }
    const size_t from = each.source & vm::kRefOrdinalMask;
    const size_t to = each.destination & vm::kRefOrdinalMask;
    state.refs[to] = state.refs[from];
    if (from != to && (each.source & vm::kMoveBit) && context.body->plan().module.bytecode_version() >= 16)
      state.refs[from] = kNull;
  }
}

// Where two ways meet, slots with different values become variables.
Lifter::State Lifter::merge(Context& context, size_t block, State a, Nodes& a_nodes, State b, Nodes& b_nodes,
                            Nodes& out) {
  State state = a;
  const auto join = [&](ValueId x, ValueId y, Bank bank) {
    const Range range = values_[x].range.joined(values_[y].range);
    const bool integers =
        values_[x].bank == bank && values_[y].bank == bank && (bank == Bank::i32 || bank == Bank::i64);
    const ValueId made = variable(bank, kNoValue, integers ? range : Range::of(bank), out);
    a_nodes.push_back({.kind = Node::Kind::assign, .value = made, .uses = {x}});
    b_nodes.push_back({.kind = Node::Kind::assign, .value = made, .uses = {y}});
    return made;
  };
  if (block == context.body->exit()) {
    for (size_t i = 0; i < a.results.size(); ++i) {
      if (a.results[i].is_ref) {
        if (a.results[i].object != b.results[i].object) give_up("a function returns one of several objects");
      } else if (a.results[i].value != b.results[i].value) {
        const Bank bank = bank_of(context.types->results[i]);
        state.results[i].value =
            join(as(a.results[i].value, bank, a_nodes), as(b.results[i].value, bank, b_nodes), bank);
      }
    }
    return state;
  }
  const vm::Flow& flow = context.body->flow();
  for (uint16_t slot = 0; slot + 2u < state.slots.size(); ++slot) {
    if (a.slots[slot] == b.slots[slot]) continue;
    if (!flow.live_in(block, slot)) {
      state.slots[slot] = {i32(0), 0};
      continue;
    }
    const bool pair = a.slots[slot].part == 1 && b.slots[slot].part == 1 && slot + 1u < state.slots.size() &&
                      a.slots[slot + 1] == Slot{a.slots[slot].value, 2} &&
                      b.slots[slot + 1] == Slot{b.slots[slot].value, 2};
    if (pair) {
      const bool floats =
          values_[a.slots[slot].value].bank == Bank::f64 && values_[b.slots[slot].value].bank == Bank::f64;
      const Bank bank = floats ? Bank::f64 : Bank::i64;
      const ValueId x = read(a, slot, bank, a_nodes);
      const ValueId y = read(b, slot, bank, b_nodes);
      write(state, slot, bank, join(x, y, bank));
      ++slot;
      continue;
    }
    const bool floats = !is_half(a.slots[slot].part) && !is_half(b.slots[slot].part) &&
                        values_[a.slots[slot].value].bank == Bank::f32 &&
                        values_[b.slots[slot].value].bank == Bank::f32;
    const Bank bank = floats ? Bank::f32 : Bank::i32;
    const ValueId x = read(a, slot, bank, a_nodes);
    const ValueId y = read(b, slot, bank, b_nodes);
    write(state, slot, bank, join(x, y, bank));
  }
  for (size_t i = 0; i < state.refs.size(); ++i)
    if (a.refs[i] != b.refs[i]) state.refs[i] = kUnknownObject;
  return state;
}

// ---- what branches tell

void Lifter::refine(State& state, ValueId value, Range range) {
  if (values_[value].is_constant) return;
  Value copy = values_[value];
  if (range.low > range.high) return;  // the way is never taken
  if (range.low == copy.range.low && range.high == copy.range.high) return;
  copy.range = range;
  const ValueId root = copy.same;
  const ValueId made = values_.add(std::move(copy));
  for (Slot& slot : state.slots)
    if (slot.value != kNoValue && !values_[slot.value].is_constant && values_[slot.value].same == root)
      slot.value = made;
}

void Lifter::learn(State& state, ValueId condition, bool holds) {
  const Value known = values_[condition];
  if (known.operands[1] == kNoValue) return;
  const auto x = known.operands[0];
  const auto y = known.operands[1];
  const Range a = values_[x].range;
  const Range b = values_[y].range;
  // The largest number of the range that is not greater than the limit.
  const auto below = [](const Range& range, int64_t limit) {
    if (limit >= range.high) return range;
    Range cut = range;
    cut.high = range.step > 1 && limit >= range.low
                   ? range.low + (limit - range.low) / range.step * range.step
                   : limit;
    if (cut.low == cut.high) cut.step = 0;
    return cut;
  };
  const auto above = [](const Range& range, int64_t limit) {
    Range cut = range;
    if (limit > range.low) {
      cut.low = limit;
      if (range.step > 1)
        cut.low = range.low + (limit - range.low + range.step - 1) / range.step * range.step;
    }
    return cut;
  };
  switch (known.op) {
    case Op::cmp_lt_i32_u:
    case Op::cmp_lt_i64_u:
      if (a.low < 0 || b.low < 0) return;
      [[fallthrough]];
    case Op::cmp_lt_i32_s:
    case Op::cmp_lt_i64_s:
      if (holds) {
        if (b.high != INT64_MIN) refine(state, x, below(a, b.high - 1));
        if (a.low != INT64_MAX) refine(state, y, above(b, a.low + 1));
      } else {
        refine(state, x, above(a, b.low));
        refine(state, y, below(b, a.high));
      }
      return;
    case Op::cmp_eq_i32:
    case Op::cmp_eq_i64:
    case Op::cmp_ne_i32:
    case Op::cmp_ne_i64:
      if (holds == (known.op == Op::cmp_eq_i32 || known.op == Op::cmp_eq_i64)) {
        refine(state, x, below(above(a, b.low), b.high));
        refine(state, y, below(above(b, a.low), a.high));
      } else {
        // A number that is not the end of its range.
        const auto without = [](const auto& from, const Range& range, const Range& other) {
          if (other.low != other.high || range.low >= range.high) return range;
          if (other.low == range.low) return from(range, 1);
          return other.low == range.high ? from(range, -1) : range;
        };
        const auto cut = [&](const Range& range, int by) {
          return by > 0 ? above(range, range.low + 1) : below(range, range.high - 1);
        };
        refine(state, x, without(cut, a, b));
        refine(state, y, without(cut, b, a));
      }
      return;
    default:
      return;
  }
}

// ---- loops

// The slots that the loop changes and that are needed at its begin become variables.
std::map<uint16_t, ValueId> Lifter::variables_of(Context& context, LoopShape& shape, size_t head,
                                                 const State& before, Nodes& out) {
  State state = before;
  std::map<uint16_t, ValueId> all;
  const vm::Flow& flow = context.body->flow();
  for (const uint16_t slot : shape.slots) {
    if (!flow.live_in(head, slot)) continue;
    if (all.contains(static_cast<uint16_t>(slot - 1)) && slot > 0) {
      const Bank bank = values_[all[static_cast<uint16_t>(slot - 1)]].bank;
      if (bank == Bank::i64 || bank == Bank::f64) continue;
    }
    const bool pair = state.slots[slot].part == 1 &&
                      state.slots[slot + 1u] == Slot{state.slots[slot].value, 2} &&
                      shape.slots.contains(static_cast<uint16_t>(slot + 1));
    Bank bank = Bank::i32;
    if (pair)
      bank = values_[state.slots[slot].value].bank == Bank::f64 ? Bank::f64 : Bank::i64;
    else if (!is_half(state.slots[slot].part) && values_[state.slots[slot].value].bank == Bank::f32)
      bank = Bank::f32;
    const ValueId first = read(state, slot, bank, out);
    Range range = Range::of(bank);
    const bool counts =
        shape.counter && shape.counter->slot == slot && (bank == Bank::i64 || bank == Bank::i32);
    if (counts) {
      const Counter& counter = *shape.counter;
      int64_t bound = INT64_MAX;
      if (counter.is_constant) {
        bound = bank == Bank::i32 ? static_cast<int32_t>(counter.bits) : static_cast<int64_t>(counter.bits);
      } else {
        const Slot& held = state.slots[counter.bound_slot];
        if (held.value != kNoValue && values_[held.value].bank == bank)
          bound = values_[held.value].range.high;
      }
      const Range begin = values_[first].range;
      shape.assumed = INT64_MAX;
      if (bound < range.high - counter.step) {
        range.low = begin.low;
        range.high = std::max(begin.high, bound - 1 + counter.step);
        range.step = begin.step == 0 ? counter.step : 1;
        range.high = range.last();
        shape.assumed = bound;
      }
    }
    const ValueId made = variable(bank, first, range, out);
    if (counts && values_[made].range.low != INT64_MIN) values_.at(made).affine = {true, 0, {{made, 1}}};
    all[slot] = made;
  }
  return all;
}

// Lifts the loop once and forgets the result, to find the variable that counts.
bool Lifter::search_loop(Context& context, size_t head, const State& before, Loop* outer) {
  LoopShape& shape = *context.body->loop_at(head);
  shape.is_known = true;
  const vm::Flow& flow = context.body->flow();
  const vm::Flow::Block& block = flow.blocks()[head];
  const vm::Instruction& end = flow.instruction(block.first_step + block.step_count - 1);
  if (end.op != Op::cond_br) return false;
  const auto edges = flow.edges(head);
  if (!shape.blocks.contains(edges[0].block) || shape.blocks.contains(edges[1].block)) return false;
  // A comparison of the counter with the bound ends the head.
  State state = before;
  Nodes nodes;
  const std::map<uint16_t, ValueId> variables = variables_of(context, shape, head, before, nodes);
  for (const auto& [slot, value] : variables) write(state, slot, values_[value].bank, value);
  for (size_t at = block.first_step; at + 1 < block.first_step + block.step_count; ++at)
    step(context, state, at, nodes);
  if (is_stuck()) return false;
  const ValueId condition = read(state, end.operands[0].reg, Bank::i32, nodes);
  const Value known = values_[condition];
  if (known.op != Op::cmp_lt_i64_s && known.op != Op::cmp_lt_i32_s) return false;
  const bool is_wide = known.op == Op::cmp_lt_i64_s;
  for (const auto& [slot, value] : variables) {
    if (known.operands[0] != value) continue;
    Counter counter = {.slot = slot};
    const ValueId bound = known.operands[1];
    if (values_.is_constant(bound)) {
      counter.is_constant = true;
      counter.bits = values_[bound].bits;
    } else {
      bool found = false;
      for (uint16_t other = 0; other + 2u < before.slots.size() && !found; ++other) {
        const Slot& held = before.slots[other];
        if (held.value != bound || held.part != (is_wide ? 1 : 0) || shape.slots.contains(other)) continue;
        counter.bound_slot = other;
        found = true;
      }
      if (!found) return false;
    }
    // The step: lift the body once.
    Loop loop = {.shape = &shape, .head = head, .outside = &nodes, .outer = outer};
    std::set<ValueId> all;
    for (const auto& [key, id] : variables) all.insert(id);
    loop.variables = &all;
    loop.first_value = static_cast<ValueId>(values_.size());
    State after;
    loop.after = &after;
    State again = before;
    for (const auto& [key, id] : variables) write(again, key, values_[id].bank, id);
    for (const uint16_t reg : shape.refs) again.refs[reg] = kUnknownObject;
    Nodes inside;
    State last = lift_from(context, head, std::move(again), head, &loop, inside);
    if (is_stuck() || !last.is_reachable) return false;
    const ValueId next = read(last, slot, is_wide ? Bank::i64 : Bank::i32, inside);
    const Value& sum = values_[next];
    if (sum.op != (is_wide ? Op::add_i64 : Op::add_i32)) return false;
    const ValueId counted = values_[value].same;
    const auto is_counter = [&](ValueId id) { return values_[id].same == counted; };
    ValueId by = kNoValue;
    if (is_counter(sum.operands[0])) by = sum.operands[1];
    if (is_counter(sum.operands[1])) by = sum.operands[0];
    if (by == kNoValue || !values_.is_constant(by)) return false;
    counter.step = values_[by].range.low;
    if (counter.step <= 0 || counter.step > INT32_MAX) return false;
    shape.counter = counter;
    return true;
  }
  return false;
}

Lifter::State Lifter::leave_loop(Context& context, State state, Loop& loop, Nodes& out) {
  const vm::Flow& flow = context.body->flow();
  const size_t target = loop.shape->exit;
  const bool first = loop.after->slots.empty();
  State after = state;
  if (target == context.body->exit()) {
    give_up("a function returns from within a loop");
    return state;
  }
  for (const uint16_t slot : loop.shape->slots) {
    if (!flow.live_in(target, slot)) {
      after.slots[slot] = {i32(0), 0};
      continue;
    }
    const Slot held = state.slots[slot];
    const bool is_variable = held.value != kNoValue && !values_[held.value].is_constant &&
                             loop.variables->contains(values_[held.value].same);
    const bool outside =
        held.value != kNoValue && values_[held.value].same < loop.first_value && !is_variable;
    if (loop.shape->exit_edges == 1 && (is_variable || outside || values_[held.value].is_constant)) {
      // What a branch told about the variable holds after the loop as well.
      continue;
    }
    if (slot > 0 && loop.exits.contains(static_cast<uint16_t>(slot - 1))) {
      const ValueId low = loop.exits[static_cast<uint16_t>(slot - 1)];
      if (values_[low].bank == Bank::i64 || values_[low].bank == Bank::f64) {
        after.slots[slot] = {low, 2};
        continue;
      }
    }
    ValueId& exit = loop.exits.try_emplace(slot, kNoValue).first->second;
    if (exit == kNoValue) {
      const bool pair = held.part == 1 && state.slots[slot + 1u] == Slot{held.value, 2} &&
                        loop.shape->slots.contains(static_cast<uint16_t>(slot + 1));
      Bank bank = Bank::i32;
      if (pair)
        bank = values_[held.value].bank == Bank::f64 ? Bank::f64 : Bank::i64;
      else if (!is_half(held.part) && values_[held.value].bank == Bank::f32)
        bank = Bank::f32;
      exit = variable(bank, kNoValue, Range::of(bank), *loop.outside);
    }
    const Bank bank = values_[exit].bank;
    const ValueId value = read(state, slot, bank, out);
    out.push_back({.kind = Node::Kind::assign, .value = exit, .uses = {value}});
    write(after, slot, bank, exit);
  }
  if (first) {
    *loop.after = after;
  } else {
    for (size_t i = 0; i < after.refs.size(); ++i)
      if (loop.after->refs[i] != after.refs[i]) loop.after->refs[i] = kUnknownObject;
    for (const uint16_t slot : loop.shape->slots)
      if (flow.live_in(target, slot) && !(loop.after->slots[slot] == after.slots[slot]))
        give_up("a loop has several ends");
  }
  out.push_back({.kind = Node::Kind::leave_loop});
  state.is_reachable = false;
  return state;
}

Lifter::State Lifter::lift_loop(Context& context, size_t head, State state, Loop* outer, Nodes& out) {
  LoopShape& shape = *context.body->loop_at(head);
  if (!shape.is_simple || shape.exit == context.body->exit()) {
    give_up("a loop has several ends");
    return state;
  }
  if (!shape.is_known) {
    const size_t memories = memories_.size();
    const size_t sites = sites_.size();
    search_loop(context, head, state, outer);
    memories_.resize(memories);
    std::erase_if(constants_, [&](const auto& each) { return each.second >= memories; });
    sites_.resize(sites);
    if (is_stuck()) return state;
  }
  ++branches_;
  const std::map<uint16_t, ValueId> variables = variables_of(context, shape, head, state, out);
  const int64_t assumed = shape.assumed;  // loops in the body have their own
  State inside = state;
  std::set<ValueId> all;
  for (const auto& [slot, value] : variables) {
    write(inside, slot, values_[value].bank, value);
    all.insert(value);
  }
  for (const uint16_t reg : shape.refs) inside.refs[reg] = kUnknownObject;
  State after;
  Loop loop = {.shape = &shape, .head = head, .variables = &all, .after = &after};
  loop.first_value = static_cast<ValueId>(values_.size());
  loop.outside = &out;
  loop.outer = outer;
  Node node = {.kind = Node::Kind::loop};
  State end = lift_from(context, head, std::move(inside), head, &loop, node.body);
  --branches_;
  if (is_stuck()) return state;
  if (after.slots.empty()) {
    give_up("a loop has no end");
    return state;
  }
  // The next values of the variables; one that another one reads later is kept.
  ValueId counter = kNoValue;
  if (end.is_reachable) {
    std::vector<std::pair<ValueId, ValueId>> moves;
    for (const auto& [slot, value] : variables) {
      const ValueId next = read(end, slot, values_[value].bank, node.body);
      if (values_[next].same == values_[value].same && !values_[next].is_constant) continue;
      moves.emplace_back(value, next);
    }
    for (auto& [to, from] : moves) {
      if (values_[from].is_constant || !all.contains(values_[from].same)) continue;
      from = let(values_[from].bank, values_.text(from, values_[from].bank), {from}, true, node.body,
                 values_[from].range);
    }
    for (const auto& [to, from] : moves) {
      if (shape.counter && variables.contains(shape.counter->slot) &&
          variables.at(shape.counter->slot) == to) {
        // The step must be that of the search.
        const Value& sum = values_[from];
        const bool is_sum = (sum.op == Op::add_i64 || sum.op == Op::add_i32) &&
                            ((values_[sum.operands[0]].same == to && values_[sum.operands[1]].is_constant &&
                              values_[sum.operands[1]].range.low == shape.counter->step) ||
                             (values_[sum.operands[1]].same == to && values_[sum.operands[0]].is_constant &&
                              values_[sum.operands[0]].range.low == shape.counter->step));
        // In a loop of one iteration, the counter and its next value are constants.
        const bool is_last = sum.is_constant && sum.range.low == values_[to].range.low + shape.counter->step;
        if (!is_sum && !is_last) {
          give_up("a loop counts in two ways");
          return state;
        }
        counter = to;
      }
      node.body.push_back({.kind = Node::Kind::assign, .value = to, .uses = {from}});
    }
  }
  if (shape.counter && counter == kNoValue && end.is_reachable) {
    give_up("a loop does not count");
    return state;
  }
  // A loop whose first branch is the test of its counter.
  size_t test = 0;
  while (test < node.body.size() && node.body[test].kind == Node::Kind::let && node.body[test].removable)
    ++test;
  // The search may have seen another bound than this place has.
  if (shape.counter && assumed != INT64_MAX) {
    const ValueId condition = test < node.body.size() && node.body[test].kind == Node::Kind::branch
                                  ? node.body[test].condition
                                  : kNoValue;
    if (counter == kNoValue || condition == kNoValue || values_[condition].operands[0] != counter ||
        (values_[condition].op != Op::cmp_lt_i64_s && values_[condition].op != Op::cmp_lt_i32_s) ||
        values_[values_[condition].operands[1]].range.high > assumed) {
      give_up("the bound of a loop is not known");
      return state;
    }
  }
  if (counter != kNoValue && test < node.body.size()) {
    Node& branch = node.body[test];
    const bool is_test = branch.kind == Node::Kind::branch && branch.body.size() == 1 &&
                         branch.body[0].kind == Node::Kind::leave_loop && branch.other.empty();
    const ValueId condition = is_test ? branch.condition : kNoValue;
    bool used_after = false;
    for (const Slot& slot : after.slots)
      used_after |=
          slot.value != kNoValue && !values_[slot.value].is_constant && values_[slot.value].same == counter;
    if (is_test && condition != kNoValue && values_[condition].operands[0] == counter && !used_after) {
      node.counted = true;
      node.value = counter;
      node.step = shape.counter->step;
      node.bound = values_[condition].operands[1];
      node.uses = {node.bound};
      // Nothing outside of the body sees the counter, so its last value is below the bound.
      Range& range = values_.at(counter).range;
      const int64_t last = values_[node.bound].range.high - 1;
      if (last >= range.low && last < range.high)
        range.high = range.step > 1 ? range.low + (last - range.low) / range.step * range.step : last;
      node.body.erase(node.body.begin() + static_cast<std::ptrdiff_t>(test));
      std::erase_if(node.body, [&](const Node& each) {
        return each.kind == Node::Kind::assign && each.value == counter;
      });
      for (auto each = out.begin(); each != out.end(); ++each)
        if (each->kind == Node::Kind::variable && each->value == counter) {
          node.first = each->uses[0];
          node.uses.push_back(node.first);
          out.erase(each);
          break;
        }
    }
  }
  out.push_back(std::move(node));
  return after;
}

}  // namespace halyard::aot
