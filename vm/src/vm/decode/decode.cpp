// Translates bytecode to FunctionCode. Later stages do not know the bytecode version.
#include <algorithm>
#include <cassert>
#include <optional>
#include <ranges>

#include "vm/decode/code_builder.h"
#include "vm/decode/constants.h"
#include "vm/decode/edge_moves.h"
#include "vm/decode/filled_buffers.h"
#include "vm/decode/flow.h"
#include "vm/decode/frame.h"
#include "vm/decode/fusing.h"
#include "vm/decode/fusion_tables.h"
#include "vm/decode/words.h"
#include "vm/format/bytecode_reader.h"
#include "vm/module/bytecode_module.h"
#include "vm/module/calling_convention.h"
#include "vm/object/offset.h"

namespace halyard::vm {

namespace {

// Opcodes that write the registers of a list, or a constant.
enum class OddWrites : uint8_t { none, list, constant };
constexpr auto kOddWrites = [] {
  std::array<OddWrites, kOpCount> table = {};
  for (size_t op = 0; op < kOpCount; ++op) {
    for (const Operand& operand : kOps[op].operands)
      if (operand.kind == OperandKind::reg_list && operand.writes) table[op] = OddWrites::list;
    if (writes_constant(static_cast<Op>(op))) table[op] = OddWrites::constant;
  }
  return table;
}();

// Opcodes whose operands are all registers: one or two words.
constexpr auto kOnlyRegisters = [] {
  std::array<bool, kOpCount> table = {};
  for (size_t op = 0; op < kOpCount; ++op) {
    table[op] = true;
    for (size_t i = 0; i < kOps[op].operand_count; ++i)
      table[op] &= kOps[op].operands[i].kind == OperandKind::reg;
  }
  return table;
}();

class Decoder {
 public:
  Decoder(const BytecodeModule& module, uint32_t function, DecodeOptions options, FunctionCode& code)
      : module_(module),
        function_(module.functions()[function]),
        version_(module.bytecode_version()),
        fuse_(options.fuse),
        entries_(options.entries),
        tiers_(options.tiers),
        call_writes_(options.call_writes),
        code_(code) {
    code_.module = &module;
    code_.function = function;
    code_.has_convention = !function_.convention.empty();
    code_.legacy_floats = version_ < 16;
  }

  Result<> run() {
    HALYARD_TRY(find_types());
    code_.result_count = static_cast<uint32_t>(result_types_.size());
    flow_ = HALYARD_TRY(Flow::of(module_, function_, arena_));
    build_.reserve(flow_.steps().size());
    block_words_.reserve(flow_.blocks().size());
    fixups_.reserve(2 * flow_.blocks().size());
    constants_ = Constants::of(function_, flow_, arena_);
    is_resumed_ = std::ranges::any_of(flow_.steps(), [](const Flow::Step& step) {
      return step.op != Op::kCount && has_trait(step.op, SUSPENDS);
    });
    if (entries_ != Entries::none || tiers_) find_loops();
    for (size_t i = 0; i < flow_.blocks().size(); ++i) decode_block(i);
    build_.place(static_cast<uint32_t>(function_.bytecode.size()));
    build_.emit(CodeBuilder::word(DecodedOp::end));
    lay_out_frame();
    resolve();
    const std::span<Word> words = build_.finish(code_);
    if (entries_ != Entries::none)
      for (const uint32_t at :
           find_filled_buffers(words, code_.lists, code_.ref_slots, {module_.imports(), call_writes_}))
        words[at].c |= kFilledBit;
    if (tiers_) note_tiers();
    return {};
  }

 private:
  struct Loop {
    size_t head;
    size_t tail;  // the block that leads back to the head
  };

  // Finds loops by their back edges. Assumes the usual layout: the body of a loop is between its head and
  // tail.
  void find_loops() {
    for (size_t block = 0; block < flow_.blocks().size(); ++block) {
      for (const Flow::Edge& edge : flow_.edges(block))
        if (edge.block <= block) loops_.push_back({edge.block, block});
    }
    code_.has_compiled_loop = std::ranges::any_of(loops_, [&](const Loop& loop) {
      const auto& blocks = flow_.blocks();
      const size_t end = blocks[loop.tail].first_step + blocks[loop.tail].step_count;
      for (size_t step = blocks[loop.head].first_step; step < end; ++step)
        if (!is_compiled(flow_.steps()[step].op)) return false;
      return true;
    });
  }
  bool is_outermost_head(size_t block) const {
    bool found = false;
    for (const Loop& loop : loops_) {
      if (loop.head < block && loop.tail >= block) return false;
      found |= loop.head == block;
    }
    return found;
  }

  void note_tiers() {
    auto notes = std::make_unique<TierNotes>();
    for (size_t block = 0; block < flow_.blocks().size(); ++block) {
      if (!is_outermost_head(block)) continue;
      const uint32_t pc = flow_.blocks()[block].pc;
      notes->heads.push_back({block_words_[block], pc});
      if (!fuse_ || !is_test(block)) continue;
      // The test is duplicated at the end of the loop. There, a frame may execute the test again, so it may
      // switch versions.
      for (const Flow::Edge& edge : flow_.edges(block))
        if (edge.block > block && is_repeatable(block, edge))
          notes->heads.push_back({block_words_[edge.block], pc});
    }
    for (uint32_t slot = 0; fuse_ && slot < function_.value_registers; ++slot)
      if (const auto bits = constants_.folded(slot)) notes->folded.push_back({slot, *bits});
    code_.tier = std::move(notes);
  }
  // Whether a frame at the end of this edge can execute the test block again with the same outcome.
  bool is_repeatable(size_t test, const Flow::Edge& edge) const {
    if (edge.moves_values || !edge.remap.empty()) return false;
    size_t edges = 0;
    for (size_t block = 0; block < flow_.blocks().size(); ++block)
      for (const Flow::Edge& other : flow_.edges(block)) edges += other.block == edge.block;
    if (edges != 1 || edge.block == 0 || flow_.blocks()[edge.block - 1].falls_through) return false;
    const std::span<const Access> accesses = flow_.accesses(flow_.blocks()[test].first_step);
    for (const Access written : accesses)
      for (const Access read : accesses)
        if (written.writes() && !read.writes() && written.slot() == read.slot()) return false;
    return true;
  }

  struct Fixup {
    uint32_t word;  // contains the distance in one half
    bool high;
    uint32_t origin;  // the distance is from this word
    uint32_t block;   // to this block
  };

  void decode_block(size_t index) {
    block_words_.push_back(build_.here());
    build_.enter_block();
    constants_.enter_block(index);
    wants_entry_ = index == 0 || is_resumed_ || flow_.blocks()[index - 1].falls_through ||
                   (entries_ == Entries::loops && is_outermost_head(index));
    decode_steps(index);
  }

  void decode_steps(size_t index) {
    block_ = index;
    const Flow::Block& block = flow_.blocks()[index];
    for (size_t step = block.first_step; step < block.first_step + block.step_count; ++step)
      decode_step(step);
  }

  void decode_step(size_t step) {
    const Instruction& instruction = flow_.instruction(step);
    build_.place(instruction.pc);
    step_ = step;
    if (entries_ != Entries::none) emit_entry(instruction.op);
    decode(instruction);
    note_writes(instruction);
  }

  // Compiled code can be entered at the start of the function, after instructions that the compiler does not
  // support, and where a suspended call may continue.
  void emit_entry(Op op) {
    const bool compiled = is_compiled(op);
    if (compiled && std::exchange(wants_entry_, false))
      build_.emit(CodeBuilder::word(DecodedOp::enter_compiled, entry_count_++));
    wants_entry_ |= !compiled;
  }

  // Updates the known values of the slots that the instruction writes.
  void note_writes(const Instruction& instruction) {
    const std::span<const Access> accesses = flow_.accesses(step_);
    for (size_t i = accesses.size(); i > 0 && accesses[i - 1].writes(); --i)
      constants_.forget(accesses[i - 1].slot());
    switch (kOddWrites[static_cast<size_t>(instruction.op)]) {
      case OddWrites::none:
        return;
      case OddWrites::list:
        return note_results(instruction);
      case OddWrites::constant:
        return note_constant(instruction);
    }
  }

  void note_constant(const Instruction& instruction) {
    const ConstantWrite write = constant_write(instruction);
    constants_.set(write.result, static_cast<uint32_t>(write.bits));
    if (write.wide) constants_.set(write.result + 1u, static_cast<uint32_t>(write.bits >> 32));
  }

  void note_results(const Instruction& instruction) {
    const OpInfo& op = info(instruction.op);
    for (size_t i = 0; i < op.operand_count; ++i) {
      const Operand& operand = op.operands[i];
      if (operand.kind != OperandKind::reg_list || !operand.writes) continue;
      const RegList& list = instruction.operands[i].regs;
      for (size_t k = 0; k < list.size(); ++k) {
        if (list[k] & kRefBit) continue;
        constants_.forget(list[k]);
        // The result may be a pair, unless the slot is written only once, with a constant that no register
        // has.
        const uint32_t high = list[k] + 1u;
        if (high < function_.value_registers && !constants_.needs_no_register(high)) constants_.forget(high);
      }
    }
  }

  Result<> find_types() {
    if (const std::optional<PlainTypes> plain = plain_types(function_.convention)) {
      place_arguments(plain->arguments);
      result_types_ = plain->results;
      return {};
    }
    const Convention convention = HALYARD_TRY(Convention::parse(function_.convention));
    std::string arguments;
    for (const ConventionItem& item : convention.arguments) arguments += item.type;
    result_types_ = convention.result_types();
    place_arguments(arguments);
    return {};
  }

  // Assigns the argument registers, which callers fill.
  void place_arguments(std::string_view types) {
    uint16_t value = 0;
    uint16_t ref = 0;
    for (const char type : types) {
      uint16_t place;
      if (type == 'r') {
        place = kRefBit | ref++;
      } else if (type == 'I' || type == 'F') {
        place = kWideBit | ((value + 1) & ~1);
        value = static_cast<uint16_t>((place & kRegisterMask) + 2);
      } else {
        place = value++;
      }
      build_.argument(place);
    }
    if (value) build_.mention(static_cast<uint16_t>(value - 1), false);
    if (ref) build_.mention(static_cast<uint16_t>(kRefBit | (ref - 1)), false);
  }

  // A register operand: a plain index, with the MOVE bit if it has an effect here.
  uint16_t field(Op op, const Operand& operand, uint16_t reg) {
    build_.mention(reg, is_wide(operand.bank));
    if (!(reg & kRefBit)) return reg;
    const bool moves = version_ >= 16 && operand.move && (!operand.writes || has_trait(op, TAKES));
    return reg & (moves ? kRegisterMask | kMoveBit : kRegisterMask);
  }

  // An entry of the list of a call or return.
  uint16_t list_entry(uint16_t reg, bool moves) {
    build_.mention(reg, true);
    if (!(reg & kRefBit)) return reg;
    return reg & (moves ? 0xFFFF : 0xFFFF & ~kMoveBit);
  }

  void branch(uint32_t word, bool high, uint32_t origin, size_t block) {
    fixups_.push_back({word, high, origin, static_cast<uint32_t>(block)});
  }

  void emit_branch(size_t block) {
    branch(build_.here(), true, build_.here(), block);
    build_.emit(CodeBuilder::word(Op::br));
  }

  // One target of a branch with several targets. If its edge has moves, they are emitted after the branch,
  // and the branch goes to the first of them.
  struct Target {
    uint32_t word;
    bool high;
    uint32_t origin;
    Flow::Edge edge;
  };
  void emit_edges(std::span<const Target> targets) {
    for (const Target& target : targets) {
      const size_t block = target.edge.block;
      moves_.find(target.edge.remap, block);
      if (moves_.empty()) {
        branch(target.word, target.high, target.origin, block);
      } else {
        build_.set_half(target.word, target.high, build_.here() - target.origin);
        moves_.emit();
        emit_branch(block);
      }
    }
  }

  uint32_t emit_list(const RegList& list, bool moves) {
    const uint32_t start = build_.list_end();
    for (size_t i = 0; i < list.size(); ++i) build_.list(list_entry(list[i], moves));
    return start;
  }

  void decode(const Instruction& instruction) {
    const auto& operands = instruction.operands;
    const uint16_t traits = kOpTraits[static_cast<size_t>(instruction.op)];
    if (traits & (CALLS | JUMPS | PICKS | DIAGNOSTIC)) {
      if (traits & CALLS) return decode_call(Call(instruction), instruction);
      if (traits & JUMPS) return decode_branch(flow_.edges(block_)[0]);
      if (traits & PICKS) return decode_switch(instruction);
      return decode_discard(operands[1].regs, true);
    }
    switch (instruction.op) {
      case Op::cond_br:
        decode_cond_br(instruction);
        return;
      case Op::br_table:
        decode_br_table(instruction);
        return;
      case Op::yield: {
        const Flow::Edge& edge = flow_.edges(block_)[0];
        const size_t block = edge.block;
        moves_.find(edge.remap, block);
        moves_.emit_after_last();
        branch(build_.here(), true, build_.here(), block);
        build_.emit(CodeBuilder::word(Op::yield));
        return;
      }
      case Op::return_:
        decode_return(operands[0].regs);
        return;
      case Op::fail: {
        const std::string_view message = operands[1].string;
        build_.emit(CodeBuilder::word(Op::fail, field(Op::fail, info(Op::fail).operands[0], operands[0].reg),
                                      static_cast<uint16_t>(message.size())));
        build_.emit(CodeBuilder::data(message.data()));
        return;
      }
      case Op::discard_refs:
        decode_discard(operands[0].regs, false);
        return;
      default:
        if (!fuse_ || !fuser_.fuse(step_)) decode_plain(instruction);
        return;
    }
  }

  void decode_plain(const Instruction& instruction) {
    if (kOnlyRegisters[static_cast<size_t>(instruction.op)]) {
      decode_registers(instruction);
    } else {
      decode_mixed(instruction);
    }
  }

  void decode_registers(const Instruction& instruction) {
    const OpInfo& op = info(instruction.op);
    uint16_t fields[7] = {};
    for (size_t i = 0; i < op.operand_count; ++i)
      fields[i] = field(instruction.op, op.operands[i], instruction.operands[i].reg);
    const uint32_t start = build_.here();
    build_.emit(CodeBuilder::word(instruction.op, fields[0], fields[1], fields[2]));
    if (op.operand_count > 3) build_.emit({fields[3], fields[4], fields[5], fields[6]});
    note_fusible(op, start, op.operand_count);
  }

  // Marks an instruction as fusible. Its fields must be registers or narrow constants.
  void note_fusible(const OpInfo& op, uint32_t start, uint32_t fields) {
    const Operand& last = op.operands[op.operand_count - 1u];
    if (last.kind != OperandKind::reg || !last.writes || last.bank == Bank::ref) return;
    build_.fusible({.word = start, .result_field = fields, .wide_result = is_wide(last.bank)});
  }

  // Emits an instruction with registers and one operand of another kind.
  void decode_mixed(const Instruction& instruction) {
    const OpInfo& op = info(instruction.op);
    uint16_t fields[7] = {};
    size_t count = 0;
    std::optional<uint32_t> wide;
    std::optional<Word> extra;
    for (size_t i = 0; i < op.operand_count; ++i) {
      const Operand& operand = op.operands[i];
      const DecodedOperand& decoded = instruction.operands[i];
      switch (operand.kind) {
        case OperandKind::reg:
          fields[count++] = field(instruction.op, operand, decoded.reg);
          break;
        case OperandKind::immediate:
          if (is_wide(operand.bank)) {
            extra = CodeBuilder::data(decoded.immediate);
          } else {
            wide = static_cast<uint32_t>(decoded.immediate);
          }
          break;
        case OperandKind::global_bytes:
        case OperandKind::global_ref:
          wide = decoded.index;
          break;
        case OperandKind::func:
          wide = decoded.index & ~kImportBit;
          break;
        case OperandKind::rodata:
          extra = CodeBuilder::data(static_cast<Object*>(module_.rodata()[decoded.index].get()));
          break;
        case OperandKind::type:
          extra = has_trait(instruction.op, ELEMENT_TYPE) ? CodeBuilder::data(&type(decoded.index))
                                                          : CodeBuilder::data(type(decoded.index).object);
          break;
        default:
          assert(false && "an operand that needs a case of its own");
          break;
      }
    }
    const uint32_t start = build_.here();
    if (wide) {
      assert(count == 1);
      build_.emit(CodeBuilder::with_wide(static_cast<uint16_t>(instruction.op), fields[0], *wide));
    } else {
      build_.emit(CodeBuilder::word(instruction.op, fields[0], fields[1], fields[2]));
      if (count > 3) build_.emit({fields[3], fields[4], fields[5], fields[6]});
    }
    if (extra) {
      build_.emit(*extra);
    } else {
      note_fusible(op, start, static_cast<uint32_t>(count));
    }
  }

  const ElementType& type(uint32_t ordinal) const { return module_.types()[ordinal]; }

  // ---- Branches

  void decode_branch(const Flow::Edge& edge) {
    const size_t block = edge.block;
    moves_.find(edge.remap, block);
    moves_.emit_after_last();
    if (fuse_ && is_test(block)) {
      // The loop's condition is at its head: emit a copy of the condition here instead of a jump to it.
      decode_steps(block);
      return;
    }
    if (block != block_ + 1) emit_branch(block);
  }

  // Whether the block consists of a comparison and a branch.
  bool is_test(size_t index) const {
    const Flow::Block& block = flow_.blocks()[index];
    if (block.step_count != 2 || flow_.steps()[block.first_step + 1].op != Op::cond_br) return false;
    return fused(kFusions.branch, flow_.steps()[block.first_step].op) != kNotFused;
  }

  void decode_cond_br(const Instruction& instruction) {
    const uint16_t condition = instruction.operands[0].reg;
    build_.mention(condition, false);
    if (!fuse_ || !fuser_.fuse_condition(step_, condition))
      build_.emit(CodeBuilder::word(Op::cond_br, condition));
    // A fused comparison also has one word.
    const uint32_t start = build_.here() - 1;
    build_.emit(CodeBuilder::data(uint64_t{0}));
    const std::span<const Flow::Edge> edges = flow_.edges(block_);
    const Target targets[] = {{start + 1, false, start, edges[0]}, {start + 1, true, start, edges[1]}};
    emit_edges(targets);
  }

  // The number of cases, the distance of the default target, then the distance of each case.
  void decode_br_table(const Instruction& instruction) {
    const auto& operands = instruction.operands;
    const uint32_t start = build_.here();
    std::vector<Target> targets;
    for (const Flow::Edge& edge : flow_.edges(block_))
      targets.push_back({start + 1 + static_cast<uint32_t>(targets.size()), true, start, edge});
    build_.emit(CodeBuilder::with_wide(static_cast<uint16_t>(Op::br_table),
                                       field(Op::br_table, info(Op::br_table).operands[0], operands[0].reg),
                                       operands[3].cases.size()));
    for (size_t i = 0; i < targets.size(); ++i) build_.emit(CodeBuilder::data(uint64_t{0}));
    emit_edges(targets);
  }

  // The index, the default, the list and the result; for refs also the type.
  void decode_switch(const Instruction& instruction) {
    const OpInfo& op = info(instruction.op);
    const auto& operands = instruction.operands;
    const bool of_refs = op.operands[1].kind == OperandKind::type;
    const size_t fallback = of_refs ? 2 : 1;
    const size_t values = fallback + 1;
    const size_t result = fallback + 2;
    build_.emit(CodeBuilder::word(instruction.op, field(instruction.op, op.operands[0], operands[0].reg),
                                  field(instruction.op, op.operands[fallback], operands[fallback].reg),
                                  field(instruction.op, op.operands[result], operands[result].reg)));
    build_.emit(CodeBuilder::data(operands[values].regs.size(), emit_list(operands[values].regs, true)));
    if (of_refs) build_.emit(CodeBuilder::data(type(operands[1].index).object));
  }

  // Releases refs. trace and print release only those with the MOVE bit.
  void decode_discard(const RegList& list, bool marked_only) {
    const uint32_t start = build_.list_end();
    for (size_t i = 0; i < list.size(); ++i) {
      if (!(list[i] & kRefBit) || (marked_only && !(list[i] & kMoveBit))) continue;
      build_.mention(list[i], false);
      build_.list(list[i] & kRegisterMask);
    }
    const uint32_t count = build_.list_end() - start;
    if (!count) return;
    build_.emit(
        CodeBuilder::with_wide(static_cast<uint16_t>(Op::discard_refs), static_cast<uint16_t>(count), start));
  }

  // The returned values. The convention determines which are pairs; without a convention, each entry is one
  // slot.
  void decode_return(const RegList& values) {
    const uint32_t start = build_.list_end();
    const size_t count = code_.has_convention ? result_types_.size() : values.size();
    assert(count <= values.size());
    for (size_t i = 0; i < count; ++i) {
      uint16_t entry = list_entry(values[i], true);
      if (code_.has_convention && (result_types_[i] == 'I' || result_types_[i] == 'F')) entry |= kWideBit;
      // The frame is popped afterwards, so the last use of a returned ref can move it.
      const auto names_it = [&](size_t j) { return ((values[j] ^ values[i]) & ~kMoveBit) == 0; };
      if ((entry & kRefBit) && std::ranges::none_of(std::views::iota(i + 1, count), names_it))
        entry |= kMoveBit;
      build_.list(entry);
    }
    if (code_.has_convention && count < 2 && result_types_ != "r") {
      returns_.push_back(build_.here());
      const uint16_t reg = count ? values[0] : 0;
      const DecodedOp op = count == 0                                     ? DecodedOp::return_none
                           : result_types_ == "I" || result_types_ == "F" ? DecodedOp::return_64
                                                                          : DecodedOp::return_32;
      build_.emit(CodeBuilder::word(op, reg));
      build_.emit(
          CodeBuilder::with_wide(static_cast<uint16_t>(Op::return_), static_cast<uint16_t>(count), start));
      return;
    }
    build_.emit(
        CodeBuilder::with_wide(static_cast<uint16_t>(Op::return_), static_cast<uint16_t>(count), start));
  }

  // The operands of a call, in any of its forms.
  struct Call {
    uint32_t callee = 0;
    std::optional<RegList> segments;
    RegList arguments;
    RegList results;
    std::optional<uint32_t> resume;

    explicit Call(const Instruction& instruction) {
      const OpInfo& op = info(instruction.op);
      for (size_t i = 0; i < op.operand_count; ++i) {
        const DecodedOperand& operand = instruction.operands[i];
        switch (op.operands[i].kind) {
          case OperandKind::func:
            callee = operand.index;
            break;
          case OperandKind::u16_list:
            segments = operand.regs;
            break;
          case OperandKind::reg_list:
            (op.operands[i].writes ? results : arguments) = operand.regs;
            break;
          case OperandKind::block:
            resume = operand.index;
            break;
          default:
            assert(false && "not an operand of a call");
            break;
        }
      }
    }
  };

  void decode_call(const Call& call, const Instruction& instruction) {
    CallSite site;
    site.is_import = call.callee & kImportBit;
    site.function = call.callee & ~kImportBit;
    site.return_pc = call.resume ? *call.resume + 1 : instruction.next_pc;
    site.yieldable = call.resume.has_value();
    site.argument_count = call.arguments.size();
    site.result_count = given_results(call);
    // In bytecode 15, imports borrow their arguments, so nothing is moved.
    const bool moves = !site.is_import || version_ >= 16;
    site.arguments = emit_list(call.arguments, moves);
    site.results = emit_list(call.results, false);
    if (site.is_import) {
      site.bare_arguments = emit_list(call.arguments, false);
      site.variadic = call.segments.has_value();
      site.segments = build_.list_end();
      for (size_t i = 0; call.segments && i < call.segments->size(); ++i) build_.list((*call.segments)[i]);
      site.releases = build_.list_end();
      for (size_t i = 0; moves && i < call.arguments.size(); ++i) {
        const uint16_t argument = call.arguments[i];
        if (!(argument & kRefBit) || !(argument & kMoveBit) ||
            names(call.results, site.result_count, argument))
          continue;
        build_.list(argument & kRegisterMask);
      }
      site.release_count = static_cast<uint16_t>(build_.list_end() - site.releases);
    }
    build_.call(site, call.results.size() && !(call.results[0] & kRefBit) ? call.results[0] : 0);
    if (call.resume) emit_branch(flow_.edges(block_)[0].block);
  }

  // The number of results that the callee of a call returns. The convention of the import determines it,
  // unless the importer leaves it to the provider.
  uint16_t given_results(const Call& call) const {
    if (!(call.callee & kImportBit)) return call.results.size();
    const std::string_view convention = module_.imports()[call.callee & ~kImportBit].convention;
    const size_t results = convention.find('_');
    if (results == std::string_view::npos) return call.results.size();
    const auto count = std::ranges::count_if(convention.substr(results + 1), [](char c) { return c != 'v'; });
    return static_cast<uint16_t>(std::min<size_t>(call.results.size(), static_cast<size_t>(count)));
  }

  static bool names(const RegList& list, size_t count, uint16_t ref) {
    for (size_t i = 0; i < count; ++i) {
      if ((list[i] & ~kMoveBit) == (ref & ~kMoveBit)) return true;
    }
    return false;
  }

  // Writes the values that are only known at the end.
  void resolve() {
    for (const Fixup& fixup : fixups_)
      build_.set_half(fixup.word, fixup.high, block_words_[fixup.block] - fixup.origin);
    for (const uint32_t word : returns_) build_.at(word).b = static_cast<uint16_t>(code_.ref_slots);
  }

  void lay_out_frame() {
    // List entries count as pairs if they may be pairs; the verifier's rounded count is the limit.
    code_.value_slots = tiers_ ? function_.value_registers
                               : std::min<uint32_t>(build_.value_slots(), function_.value_registers);
    code_.ref_slots =
        tiers_ ? function_.ref_registers : std::min<uint32_t>(build_.ref_slots(), function_.ref_registers);
    code_.refs_offset = bank_bytes(code_.value_slots, sizeof(uint32_t));
    code_.frame_bytes = static_cast<uint32_t>(sizeof(Frame)) + code_.refs_offset +
                        bank_bytes(code_.ref_slots, sizeof(Object*));
    code_.zero_from = reads_before_writing() ? 0 : code_.refs_offset;
  }

  // Whether a value register that is not an argument may be read before it is written.
  bool reads_before_writing() {
    const std::span<const uint64_t> live = flow_.live_at_entry();
    if (live.empty() || !fuse_) return true;
    Array<uint64_t> left(arena_, live.size());
    std::ranges::copy(live, left.begin());
    for (const uint16_t place : build_.arguments()) {
      if (place & kRefBit) continue;
      const uint32_t slot = place & kRegisterMask;
      for (uint32_t i = slot; i <= slot + (place & kWideBit ? 1u : 0u); ++i)
        left[i / 64] &= ~(uint64_t{1} << (i % 64));
    }
    return std::ranges::any_of(left, [](uint64_t word) { return word != 0; });
  }

  const BytecodeModule& module_;
  const Function& function_;
  const uint32_t version_;
  const bool fuse_;
  const Entries entries_;
  const bool tiers_;
  const CallWritesOf call_writes_;
  bool is_resumed_ = false;   // some block can be the continuation of a suspended call
  bool wants_entry_ = false;  // emit an entry before the next instruction that the compiler supports
  uint16_t entry_count_ = 0;
  FunctionCode& code_;
  // Memory for decoding; enough for most functions.
  alignas(8) std::byte first_memory_[24 << 10];
  Arena arena_{first_memory_};
  CodeBuilder build_{arena_};
  Flow flow_{arena_};
  Constants constants_{arena_};
  Fuser fuser_{build_, flow_, constants_};
  EdgeMoves moves_{arena_, build_, flow_, constants_, function_.value_registers, fuse_};
  size_t block_ = 0;  // the block being decoded
  size_t step_ = 0;
  std::string result_types_;
  std::vector<Loop> loops_;  // with entries or tiers
  Array<uint32_t> block_words_{arena_};
  Array<Fixup> fixups_{arena_};
  Array<uint32_t> returns_{arena_};  // words that need the number of ref registers
};

}  // namespace

uint32_t FunctionCode::words_offset() {
  const Word word = {};
  FunctionCode code;
  code.words = {&word, 1};
  return offset_of_pointer(&code, &word);
}

uint32_t FunctionCode::pc_of(uint32_t word) const {
  const auto after = std::ranges::upper_bound(places, word, {}, &Place::word);
  return after == places.begin() ? 0 : std::prev(after)->pc;
}

Result<std::unique_ptr<FunctionCode>> decode_function(const BytecodeModule& module, uint32_t function,
                                                      DecodeOptions options) {
  auto code = std::make_unique<FunctionCode>();
  Decoder decoder(module, function, options, *code);
  HALYARD_TRY(decoder.run());
  return code;
}

}  // namespace halyard::vm
