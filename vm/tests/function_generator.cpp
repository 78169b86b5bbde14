// Generates random blocks that pass the verifier, with loops that terminate.
#include "function_generator.h"

#include <numeric>

#include "function_instructions.h"

namespace halyard::vm::test {

namespace {

constexpr uint32_t kMaxCalls = 40;  // within one module, for each call from outside

struct Writer : InstructionWriter {
  Fuel fuel;
  uint32_t block_count = 0;
  uint32_t back_edges = 0;  // number of back edges that may still be created
  std::vector<uint32_t> layout = {};
  std::vector<uint32_t> block_pc = {};

  FunctionParts write() {
    plan_registers();
    plan_blocks();
    for (uint32_t position = 0; position < block_count; ++position) {
      const uint32_t block = layout[position];
      block_pc[block] = code.pc();
      code.block();
      if (block == 0) {
        prologue();
      } else {
        if (!choices.one_in(4)) live.assign(live.size(), false);  // it may be entered from anywhere
        for (uint32_t n = choices.below(10); n > 0; --n) instruction();
        terminator(block, position + 1 < block_count ? layout[position + 1] : 0);
      }
    }
    for (const auto& [pc, block] : fixups) code.patch_u32(pc, block_pc[block]);
    FunctionParts parts = {.code = code.bytes()};
    if (choices.one_in(8)) parts.code.push_back(0xFF);  // ignored
    parts.convention = signature.has_convention ? signature.convention() : "";
    parts.values = value_count;
    parts.refs = ref_count;
    parts.blocks = static_cast<int>(block_count);
    parts.features = 3;
    if (plan.version >= 17) parts.features |= choices.below(4) << 2;
    return parts;
  }
  // ---- edges

  using Moves = std::vector<std::pair<uint16_t, uint16_t>>;
  void edge(uint32_t block, Moves moves = {}) {
    target(block);
    for (uint32_t n = choices.below(4); n > 0; --n) add_moves(moves);
    code.remap(moves);
  }
  void add_moves(Moves& moves) {
    switch (choices.below(8)) {
      case 0: {  // swapped
        const uint16_t a = narrow();
        const uint16_t b = narrow();
        moves.emplace_back(a, b);
        moves.emplace_back(b, a);
        break;
      }
      case 1: {  // a 64-bit value, low half first or last
        const uint16_t a = wide();
        const uint16_t b = wide();
        const uint16_t first = choices.below(2) ? 1 : 0;
        moves.emplace_back(a + first, b + first);
        if (!choices.one_in(6)) moves.emplace_back(a + 1 - first, b + 1 - first);
        break;
      }
      case 2: {  // a chain, in either order
        const uint16_t a = narrow();
        const uint16_t b = narrow();
        const uint16_t c = narrow();
        if (choices.one_in(2)) {
          moves.emplace_back(a, b);
          moves.emplace_back(b, c);
        } else {
          moves.emplace_back(b, c);
          moves.emplace_back(a, b);
        }
        break;
      }
      case 3: {
        const uint16_t a = narrow();
        moves.emplace_back(a, a);
        break;
      }
      case 4:
      case 5: {
        const Kind kind = any_ref_kind();
        const uint16_t source = ref_for(kind);
        const uint16_t result = ref_of(kind);
        const bool had = is_live(source);
        moves.emplace_back(movable(source), plain(result));
        set_live(result, had);
        break;
      }
      default:
        moves.emplace_back(narrow_source(), narrow());
        break;
    }
  }
  // ---- blocks

  void plan_blocks() {
    block_count = 3 + choices.below(7);  // the entry, some others, and the last one, which returns
    back_edges = choices.below(kMaxLoops + 1);
    block_pc.resize(block_count);
    layout.resize(block_count);
    std::iota(layout.begin(), layout.end(), 0);
    if (choices.one_in(3)) {
      for (uint32_t i = 1; i + 1 < block_count; ++i)
        std::swap(layout[i], layout[i + choices.below(block_count - i)]);
    }
  }
  // The last instruction's result, which only the edge reads.
  Moves fresh_result() {
    Moves moves;
    if (!choices.one_in(3)) return moves;
    const Op op = choices.pick(groups(plan.version).integer_binary);
    const OpInfo& opcode = info(op);
    if (opcode.mnemonic().starts_with("div.") || opcode.mnemonic().starts_with("rem.")) return moves;
    code.op(op, {value_source(opcode.operands[0].bank), value_source(opcode.operands[1].bank), scratch()});
    if (is_wide(opcode.operands[2].bank)) {
      const uint16_t destination = wide();
      const uint16_t first = choices.below(2) ? 1 : 0;
      moves.emplace_back(scratch() + first, destination + first);
      moves.emplace_back(scratch() + 1 - first, destination + 1 - first);
    } else {
      moves.emplace_back(scratch(), narrow());
    }
    return moves;
  }
  uint32_t later(uint32_t block) { return block + 1 + choices.below(block_count - block - 1); }

  // Registers that only the entry block writes.
  void reserved_values() {
    for (uint32_t i = choices.below(kConstants + 1); i > 0; --i) {
      if (choices.one_in(3)) {
        const_i32(constant(i - 1), choices.one_in(2) ? choices.below(40) : bits_32());
      } else {
        const_i64(constant(i - 1), choices.one_in(2) ? choices.below(40) : bits_64());
      }
    }
    if (back_edges == 0) return;
    const_i64(constant_one(), 1);
    code.op(Op::and_i64, {wide(), constant_one(), computed_one()});
    code.op(Op::or_i64, {computed_one(), constant_one(), computed_one()});
    for (uint32_t i = 0; i < back_edges; ++i) {
      const_i64(loop_limit(i), 1 + choices.below(4));
      if (choices.one_in(2)) continue;
      const_i64(scratch(), 3);
      code.op(Op::and_i64, {wide(), scratch(), loop_limit(i)});
      code.op(Op::add_i64, {loop_limit(i), constant_one(), loop_limit(i)});
    }
  }
  // Initializes some of the pool's registers, or all, so that none is read before it is written.
  void initial_values() {
    if (choices.one_in(4)) {
      for (const uint16_t pair : wide_pool) const_i64(pair, choices.one_in(4) ? bits_64() : pair);
      return;
    }
    for (uint32_t n = choices.below(6); n > 0; --n) {
      if (choices.one_in(2)) {
        const_i32(narrow(), bits_32());
      } else {
        const_i64(wide(), bits_64());
      }
    }
  }

  void prologue() {
    const uint16_t count = scratch();
    if (fuel == Fuel::resets) {
      const_i32(count, 0);
      code.op(Op::global_store_i32).u32(0).u16(count);
      initial_values();
      reserved_values();
      code.op(Op::br);
      edge(1);
      return;
    }
    if (choices.one_in(2)) initial_values();
    reserved_values();
    const uint16_t one = condition();
    const uint16_t limit = condition() + 1;
    code.op(Op::global_load_i32).u32(0).u16(count);
    const_i32(one, 1);
    code.op(Op::add_i32, {count, one, count});
    code.op(Op::global_store_i32).u32(0).u16(count);
    const_i32(limit, kMaxCalls);
    code.op(Op::cmp_lt_i32_s, {count, limit, one});
    code.op(Op::cond_br).u16(one);
    edge(1);
    edge(block_count - 1);
  }

  void terminator(uint32_t block, uint32_t next_in_layout) {
    if (block + 1 == block_count) return return_values();
    switch (choices.below(16)) {
      case 0:
      case 1:
        return branch_or_break(later(block));
      case 2:
        return yield(later(block));
      case 3:
        code.op(Op::cond_break).u16(narrow_source());
        return edge(later(block));
      case 4:
        return table(block);
      case 5:
        if (plan.version >= 17 && call(true, later(block))) return;
        return branch_or_break(later(block));
      case 6:
        if (next_in_layout > block) return fail_or_go_on();
        return branch_or_break(later(block));
      case 7:
        if (choices.one_in(4)) return return_values();
        return branch_or_break(later(block));
      case 8:
      case 9:
      case 10:
      case 11:
        if (back_edges > 0) return choices.one_in(2) ? loop(block) : tight_loop(block);
        [[fallthrough]];
      default: {
        uint16_t decides = narrow_source();
        if (!choices.one_in(5)) {
          decides = choices.one_in(3) ? narrow() : condition();
          compare(decides);
          if (choices.one_in(12)) value_instruction(choices.pick(groups(plan.version).values));
        }
        code.op(Op::cond_br).u16(decides);
        edge(later(block));
        edge(later(block));
      }
    }
  }
  void branch_or_break(uint32_t to) {
    const Moves fresh = fresh_result();
    code.op(choices.one_in(6) ? Op::break_ : Op::br);
    edge(to, fresh);
  }
  void yield(uint32_t to) {
    const Moves fresh = fresh_result();
    code.op(Op::yield);
    edge(to, fresh);
  }
  void table(uint32_t block) {
    const uint16_t index = choices.one_in(3) ? narrow_source() : index_32(5);
    code.op(Op::br_table).u16(index);
    edge(later(block));
    const uint32_t cases = choices.below(5);
    code.u16(static_cast<uint16_t>(cases));
    for (uint32_t i = 0; i < cases; ++i) edge(later(block));
  }
  // Usually a status of 0, which continues.
  void fail_or_go_on() {
    const uint16_t status = choices.one_in(6) ? narrow() : zero();
    code.op(Op::fail).u16(status).string(choices.one_of<std::string_view>({"", "reason", "odd"}));
  }
  void return_values() {
    std::vector<uint16_t> list;
    for (const Kind kind : signature.results) {
      if (is_ref(kind))
        list.push_back(movable(ref_for(kind)));
      else
        list.push_back(is_wide(kind) ? wide() : narrow_source());
    }
    if (signature.has_convention && choices.one_in(12)) list.push_back(any_register(false));
    code.op(Op::return_).list(list);
  }

  // Ends a loop like compilers do: adds one to the counter and compares it with a limit from the entry block.
  // The exit resets the counter.
  void tight_loop(uint32_t block) {
    const uint32_t index = --back_edges;
    const uint16_t counter = loop_counter(index);
    const uint16_t limit = loop_limit(index);
    const uint16_t one = choices.one_in(2) ? constant_one() : computed_one();
    const uint16_t decides = choices.one_in(4) ? narrow() : condition();
    const bool wide_counter = choices.one_in(2);
    const Op add = wide_counter ? Op::add_i64 : Op::add_i32;
    const Op compare =
        wide_counter ? choices.one_of({Op::cmp_lt_i64_s, Op::cmp_lt_i64_u, Op::cmp_ne_i64, Op::cmp_eq_i64})
                     : choices.one_of({Op::cmp_lt_i32_s, Op::cmp_lt_i32_u, Op::cmp_ne_i32, Op::cmp_eq_i32});
    const bool equality = compare == Op::cmp_ne_i32 || compare == Op::cmp_ne_i64;
    const bool leaves = compare == Op::cmp_eq_i32 || compare == Op::cmp_eq_i64;
    if (choices.one_in(2)) {
      code.op(add, {counter, one, counter});
    } else {
      code.op(add, {one, counter, counter});
    }
    if ((equality || leaves) && choices.one_in(2)) {
      code.op(compare, {limit, counter, decides});
    } else {
      code.op(compare, {counter, limit, decides});
    }
    const uint32_t back = choices.one_in(2) ? block : 1 + choices.below(block);
    const Moves restart = {{constant_zero(), counter}, {constant_zero() + 1, counter + 1}};
    code.op(Op::cond_br).u16(decides);
    edge(leaves ? later(block) : back, leaves ? restart : Moves());
    edge(leaves ? back : later(block), leaves ? Moves() : restart);
  }

  // A branch back to this block or an earlier one, taken a few times in total. The counter is its own.
  void loop(uint32_t block) {
    const uint16_t counter = loop_counter(--back_edges);
    const uint16_t other = scratch();
    const uint16_t decides = choices.one_in(2) ? condition() : narrow();
    const uint32_t times = 1 + choices.below(5);
    bool on_true = true;  // branches back
    const bool swapped = choices.one_in(2);
    const auto step = [&](Op add, Op constant, uint64_t one) {
      code.op(constant);
      is_wide(info(constant).operands[0].bank) ? code.u64(one) : code.u32(static_cast<uint32_t>(one));
      code.u16(other);
      if (choices.one_in(2))
        code.op(add, {counter, other, counter});
      else
        code.op(add, {other, counter, counter});
    };
    const auto limit = [&](Op compare, Op constant, uint64_t bits) {
      code.op(constant);
      is_wide(info(constant).operands[0].bank) ? code.u64(bits) : code.u32(static_cast<uint32_t>(bits));
      code.u16(other);
      if (swapped)
        code.op(compare, {other, counter, decides});  // limit < counter: exits
      else
        code.op(compare, {counter, other, decides});
      on_true = !swapped;
    };
    switch (choices.below(8)) {
      case 0:
      case 1:
        step(Op::add_i32, Op::const_i32, 1);
        limit(choices.one_of({Op::cmp_lt_i32_s, Op::cmp_lt_i32_u}), Op::const_i32, times);
        break;
      case 2:
        step(Op::add_i64, Op::const_i64, 1);
        limit(choices.one_of({Op::cmp_lt_i64_s, Op::cmp_lt_i64_u}), Op::const_i64, times);
        break;
      case 3:
        step(Op::add_f32, Op::const_f32, 0x3F800000);
        limit(choices.one_of({Op::cmp_lt_f32_o, Op::cmp_lte_f32_o, Op::cmp_lt_f32_u}), Op::const_f32,
              std::bit_cast<uint32_t>(static_cast<float>(times)));
        break;
      case 4:
        step(Op::add_f64, Op::const_f64, 0x3FF0000000000000);
        limit(choices.one_of({Op::cmp_lt_f64_o, Op::cmp_lte_f64_u}), Op::const_f64,
              std::bit_cast<uint64_t>(static_cast<double>(times)));
        break;
      default: {  // counts up to the limit and stays there
        step(Op::add_i32, Op::const_i32, 1);
        code.op(Op::const_i32).u32(times).u16(other);
        code.op(Op::min_i32_s, {counter, other, counter});
        switch (choices.below(4)) {
          case 0:
            code.op(Op::cmp_ne_i32, {counter, other, decides});
            break;
          case 1:
            code.op(Op::cmp_eq_i32, {counter, other, decides});
            on_true = false;
            break;
          case 2:
            code.op(Op::sub_i32, {other, counter, decides});
            break;
          default:
            code.op(Op::sub_i32, {other, counter, decides});
            code.op(Op::cmp_nz_i32, {decides, decides});
            break;
        }
        break;
      }
    }
    const uint32_t back = 1 + choices.below(block);
    code.op(Op::cond_br).u16(decides);
    edge(on_true ? back : later(block));
    edge(on_true ? later(block) : back);
  }
};

}  // namespace

std::string Signature::convention() const {
  const auto characters = [](const std::vector<Kind>& kinds) {
    std::string text;
    for (const Kind kind : kinds) text += is_ref(kind) ? 'r' : "iIfF"[static_cast<size_t>(kind)];
    return text.empty() ? "v" : text;
  };
  return "0" + characters(arguments) + "_" + characters(results);
}

FunctionParts generate_function(Choices& choices, const ModulePlan& plan, const Signature& signature,
                                Fuel fuel) {
  return Writer{{{choices, plan, signature}}, fuel}.write();
}

}  // namespace halyard::vm::test
