// From bytecode to FunctionCode. What differs between the versions of bytecode ends here.
#include <algorithm>
#include <cassert>
#include <optional>

#include "vm/bytecode_module.h"
#include "vm/bytecode_reader.h"
#include "vm/calling_convention.h"
#include "vm/code.h"
#include "vm/stack.h"

namespace halyard::vm {

namespace {

class Decoder {
 public:
  Decoder(const BytecodeModule& module, uint32_t function, FunctionCode& code)
      : module_(module),
        function_(module.functions()[function]),
        version_(module.bytecode_version()),
        code_(code) {
    code_.module = &module;
    code_.function = function;
    code_.has_convention = !function_.convention.empty();
    code_.legacy_floats = version_ < 16;
  }

  Result<> run() {
    const Convention convention = HALYARD_TRY(Convention::parse(function_.convention));
    place_arguments(convention);
    for (const ConventionItem& item : convention.results) result_types_ += item.type;
    code_.result_count = static_cast<uint32_t>(result_types_.size());
    for (uint32_t pc = 0; has_instruction(function_.bytecode, pc);) {
      const Instruction instruction =
          HALYARD_TRY(read_instruction(function_.bytecode, pc, version_, function_.features));
      if (instruction.op == Op::block) {
        blocks_.push_back({.word = here(), .pc = pc});
      } else {
        code_.places.push_back({.word = here(), .pc = pc});
        decode(instruction);
      }
      pc = instruction.next_pc;
    }
    code_.places.push_back({.word = here(), .pc = static_cast<uint32_t>(function_.bytecode.size())});
    emit(inner(InnerOp::end));
    resolve_targets();
    lay_out_frame();
    return {};
  }

 private:
  struct Fixup {
    uint32_t word;    // whose wide part becomes the distance
    uint32_t origin;  // from this word
    uint32_t target;  // to the block at this pc
  };

  static Word inner(InnerOp op, uint16_t a = 0, uint16_t b = 0) {
    return {static_cast<uint16_t>(op), a, b, 0};
  }
  static Word head(Op op, uint16_t a = 0, uint16_t b = 0, uint16_t c = 0) {
    return {static_cast<uint16_t>(op), a, b, c};
  }
  static Word with_wide(uint16_t op, uint16_t a, uint32_t wide) {
    return {op, a, static_cast<uint16_t>(wide), static_cast<uint16_t>(wide >> 16)};
  }
  static Word data(uint64_t bits) {
    Word word;
    std::memcpy(static_cast<void*>(&word), &bits, sizeof word);
    return word;
  }
  static Word data(const void* pointer) { return data(reinterpret_cast<uintptr_t>(pointer)); }
  static Word data(uint32_t low, uint32_t high) { return data(low | uint64_t{high} << 32); }

  uint32_t here() const { return static_cast<uint32_t>(code_.words.size()); }
  void emit(Word word) { code_.words.push_back(word); }

  // A register of the frame, and its partner where it may be the low half of a pair.
  void mention(uint16_t reg, bool maybe_pair) {
    if (reg & kRefBit) {
      ref_slots_ = std::max<uint32_t>(ref_slots_, (reg & kRegisterMask) + 1u);
    } else {
      value_slots_ = std::max<uint32_t>(value_slots_, reg + (maybe_pair && reg % 2 == 0 ? 2u : 1u));
    }
  }

  // Where a caller from outside, or one of another function, puts the arguments.
  void place_arguments(const Convention& convention) {
    uint16_t value = 0;
    uint16_t ref = 0;
    for (const ConventionItem& item : convention.arguments) {
      if (item.type == 'r') {
        code_.arguments.push_back(kRefBit | ref++);
      } else if (item.type == 'I' || item.type == 'F') {
        value = (value + 1) & ~1;
        code_.arguments.push_back(kWideBit | value);
        value += 2;
      } else {
        code_.arguments.push_back(value++);
      }
    }
    value_slots_ = value;
    ref_slots_ = ref;
  }

  // A register operand: a plain index, with the MOVE bit where it has an effect.
  uint16_t field(Op op, const Operand& operand, uint16_t reg) {
    mention(reg, operand.bank == Bank::i64 || operand.bank == Bank::f64);
    if (!(reg & kRefBit)) return reg;
    const bool result_moves =
        op == Op::global_load_ref || op == Op::global_load_indirect_ref || op == Op::list_get_ref;
    const bool moves = version_ >= 16 && operand.move && (!operand.writes || result_moves);
    return reg & (moves ? kRegisterMask | kMoveBit : kRegisterMask);
  }

  // An entry of a call or return list.
  uint16_t list_entry(uint16_t reg, bool moves) {
    mention(reg, true);
    if (!(reg & kRefBit)) return reg;
    return reg & (moves ? 0xFFFF : 0xFFFF & ~kMoveBit);
  }

  void branch(uint32_t word, uint32_t origin, uint32_t target) { fixups_.push_back({word, origin, target}); }

  void emit_branch(uint32_t target) {
    branch(here(), here(), target);
    emit(head(Op::br));
  }

  static bool is_self(Remap remap) {
    return (remap.source & ~kMoveBit) == (remap.destination & ~(remap.destination & kRefBit ? kMoveBit : 0));
  }

  static bool needs_moves(const RemapList& remap) {
    for (size_t i = 0; i < remap.size(); ++i) {
      if (!is_self(remap[i])) return true;
    }
    return false;
  }

  // The moves of an edge, one after another as they are listed. The halves of a pair move together: pairs
  // begin at even registers, so the half that moves first is never a source of the other.
  void emit_moves(const RemapList& remap) {
    for (size_t i = 0; i < remap.size(); ++i) {
      const Remap move = remap[i];
      mention(move.source, false);
      mention(move.destination, false);
      assert((move.source & kRefBit) == (move.destination & kRefBit));
      if (is_self(move)) continue;
      if (move.source & kRefBit) {
        emit(inner(move.source & kMoveBit ? InnerOp::move_ref : InnerOp::copy_ref,
                   move.source & kRegisterMask, move.destination & kRegisterMask));
        continue;
      }
      if (i + 1 < remap.size() && move.source % 2 == move.destination % 2) {
        const Remap next = remap[i + 1];
        const int step = move.source % 2 == 0 ? 1 : -1;
        if (next.source == move.source + step && next.destination == move.destination + step) {
          mention(next.source, false);
          mention(next.destination, false);
          emit(inner(InnerOp::move_64, move.source & ~1, move.destination & ~1));
          ++i;
          continue;
        }
      }
      emit(inner(InnerOp::move_32, move.source, move.destination));
    }
  }

  // A word of several targets: leads to the block, by way of the edge's moves where there are any. Those are
  // put behind the instruction, once all of its words are out.
  struct Edge {
    uint32_t word;
    uint32_t origin;
    uint32_t target;
    RemapList remap;
  };
  void emit_edges(std::span<const Edge> edges) {
    for (const Edge& edge : edges) {
      if (needs_moves(edge.remap)) {
        set_wide(edge.word, here() - edge.origin);
        emit_moves(edge.remap);
        emit_branch(edge.target);
      } else {
        branch(edge.word, edge.origin, edge.target);
      }
    }
  }

  void set_wide(uint32_t word, uint32_t wide) {
    code_.words[word].b = static_cast<uint16_t>(wide);
    code_.words[word].c = static_cast<uint16_t>(wide >> 16);
  }

  uint32_t emit_list(const RegList& list, bool moves) {
    const uint32_t start = static_cast<uint32_t>(code_.lists.size());
    for (size_t i = 0; i < list.size(); ++i) code_.lists.push_back(list_entry(list[i], moves));
    return start;
  }

  void decode(const Instruction& instruction) {
    const auto& operands = instruction.operands;
    switch (instruction.op) {
      case Op::br:
      case Op::break_:
        return decode_branch(instruction, operands[0].index, operands[1].remap);
      case Op::cond_break:
        return decode_branch(instruction, operands[1].index, operands[2].remap);
      case Op::cond_br:
        return decode_cond_br(instruction);
      case Op::br_table:
        return decode_br_table(instruction);
      case Op::yield: {
        emit_moves(operands[1].remap);
        branch(here(), here(), operands[0].index);
        return emit(head(Op::yield));
      }
      case Op::call:
        return decode_call(
            {.callee = operands[0].index, .arguments = operands[1].regs, .results = operands[2].regs},
            instruction);
      case Op::call_variadic:
        return decode_call({.callee = operands[0].index,
                            .segments = operands[1].regs,
                            .arguments = operands[2].regs,
                            .results = operands[3].regs},
                           instruction);
      case Op::call_yieldable:
        return decode_call({.callee = operands[0].index,
                            .arguments = operands[1].regs,
                            .results = operands[3].regs,
                            .resume = operands[2].index},
                           instruction);
      case Op::call_variadic_yieldable:
        return decode_call({.callee = operands[0].index,
                            .segments = operands[1].regs,
                            .arguments = operands[2].regs,
                            .results = operands[4].regs,
                            .resume = operands[3].index},
                           instruction);
      case Op::return_:
        return decode_return(operands[0].regs);
      case Op::fail: {
        const std::string_view message = operands[1].string;
        emit(head(Op::fail, field(Op::fail, info(Op::fail).operands[0], operands[0].reg),
                  static_cast<uint16_t>(message.size())));
        return emit(data(message.data()));
      }
      case Op::trace:
      case Op::print:
        return decode_discard(operands[1].regs, true);
      case Op::discard_refs:
        return decode_discard(operands[0].regs, false);
      case Op::switch_i32:
      case Op::switch_i64:
      case Op::switch_f32:
      case Op::switch_f64:
        return decode_switch(instruction, operands[2].regs, operands[3].reg);
      case Op::switch_ref: {
        decode_switch(instruction, operands[3].regs, operands[4].reg);
        return emit(data(type(operands[1].index).object));
      }
      default:
        return decode_plain(instruction);
    }
  }

  // Registers and at most one thing of another kind.
  void decode_plain(const Instruction& instruction) {
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
          if (operand.bank == Bank::i64 || operand.bank == Bank::f64) {
            extra = data(decoded.immediate);
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
          extra = data(static_cast<Object*>(module_.rodata()[decoded.index].get()));
          break;
        case OperandKind::type:
          extra = instruction.op == Op::list_alloc ? data(&type(decoded.index))
                                                   : data(type(decoded.index).object);
          break;
        default:
          assert(false && "an operand that needs a case of its own");
          break;
      }
    }
    if (wide) {
      assert(count == 1);
      emit(with_wide(static_cast<uint16_t>(instruction.op), fields[0], *wide));
    } else {
      emit(head(instruction.op, fields[0], fields[1], fields[2]));
      if (count > 3) emit({fields[3], fields[4], fields[5], fields[6]});
    }
    if (extra) emit(*extra);
  }

  const ElementType& type(uint32_t ordinal) const { return module_.types()[ordinal]; }

  void decode_branch(const Instruction& instruction, uint32_t target, const RemapList& remap) {
    emit_moves(remap);
    if (target != instruction.next_pc) emit_branch(target);
  }

  void decode_cond_br(const Instruction& instruction) {
    const auto& operands = instruction.operands;
    const uint32_t start = here();
    emit(head(Op::cond_br, field(Op::cond_br, info(Op::cond_br).operands[0], operands[0].reg)));
    emit(data(uint64_t{0}));
    const Edge edges[] = {{start, start, operands[1].index, operands[2].remap},
                          {start + 1, start, operands[3].index, operands[4].remap}};
    emit_edges(edges);
  }

  // The count, the distance of the default, then that of each case.
  void decode_br_table(const Instruction& instruction) {
    const auto& operands = instruction.operands;
    const uint32_t start = here();
    std::vector<Edge> edges = {{start + 1, start, operands[1].index, operands[2].remap}};
    for (const CaseEntry entry : operands[3].cases) {
      edges.push_back({start + 1 + static_cast<uint32_t>(edges.size()), start, entry.target, entry.remap});
    }
    emit(with_wide(static_cast<uint16_t>(Op::br_table),
                   field(Op::br_table, info(Op::br_table).operands[0], operands[0].reg),
                   operands[3].cases.size()));
    for (size_t i = 0; i < edges.size(); ++i) emit(data(uint64_t{0}));
    emit_edges(edges);
  }

  void decode_switch(const Instruction& instruction, const RegList& values, uint16_t result) {
    const OpInfo& op = info(instruction.op);
    const size_t fallback = instruction.op == Op::switch_ref ? 2 : 1;
    emit(head(instruction.op, field(instruction.op, op.operands[0], instruction.operands[0].reg),
              field(instruction.op, op.operands[fallback], instruction.operands[fallback].reg),
              field(instruction.op, op.operands[op.operand_count - 1u], result)));
    emit(data(values.size(), emit_list(values, true)));
  }

  // Refs to release. trace and print release those that are marked only.
  void decode_discard(const RegList& list, bool marked_only) {
    const uint32_t start = static_cast<uint32_t>(code_.lists.size());
    for (size_t i = 0; i < list.size(); ++i) {
      if (!(list[i] & kRefBit) || (marked_only && !(list[i] & kMoveBit))) continue;
      mention(list[i], false);
      code_.lists.push_back(list[i] & kRegisterMask);
    }
    const size_t count = code_.lists.size() - start;
    if (count) emit(with_wide(static_cast<uint16_t>(Op::discard_refs), static_cast<uint16_t>(count), start));
  }

  // What is returned: by the convention, which knows pairs; without one, one slot for each entry.
  void decode_return(const RegList& values) {
    const uint32_t start = static_cast<uint32_t>(code_.lists.size());
    const size_t count = code_.has_convention ? result_types_.size() : values.size();
    assert(count <= values.size());
    for (size_t i = 0; i < count; ++i) {
      uint16_t entry = list_entry(values[i], true);
      if (code_.has_convention && (result_types_[i] == 'I' || result_types_[i] == 'F')) entry |= kWideBit;
      code_.lists.push_back(entry);
    }
    emit(with_wide(static_cast<uint16_t>(Op::return_), static_cast<uint16_t>(count), start));
  }

  struct Call {
    uint32_t callee;
    std::optional<RegList> segments = {};
    RegList arguments;
    RegList results;
    std::optional<uint32_t> resume = {};
  };

  void decode_call(const Call& call, const Instruction& instruction) {
    CallSite site;
    site.is_import = call.callee & kImportBit;
    site.function = call.callee & ~kImportBit;
    site.return_pc = call.resume ? *call.resume + 1 : instruction.next_pc;
    site.yieldable = call.resume.has_value();
    site.argument_count = call.arguments.size();
    site.result_count = call.results.size();
    // Imports of bytecode 15 borrow: they move nothing.
    const bool moves = !site.is_import || version_ >= 16;
    site.arguments = emit_list(call.arguments, moves);
    site.results = emit_list(call.results, false);
    if (site.is_import) {
      site.bare_arguments = emit_list(call.arguments, false);
      site.variadic = call.segments.has_value();
      site.segments = static_cast<uint32_t>(code_.lists.size());
      for (size_t i = 0; call.segments && i < call.segments->size(); ++i)
        code_.lists.push_back((*call.segments)[i]);
      site.releases = static_cast<uint32_t>(code_.lists.size());
      for (size_t i = 0; moves && i < call.arguments.size(); ++i) {
        const uint16_t argument = call.arguments[i];
        if (!(argument & kRefBit) || !(argument & kMoveBit) || lists_register(call.results, argument))
          continue;
        code_.lists.push_back(argument & kRegisterMask);
      }
      site.release_count = static_cast<uint16_t>(code_.lists.size() - site.releases);
    }
    const uint16_t op =
        site.is_import ? static_cast<uint16_t>(InnerOp::call_import) : static_cast<uint16_t>(Op::call);
    emit(with_wide(op, 0, static_cast<uint32_t>(code_.calls.size())));
    site.next = here();
    if (call.resume) resumes_.push_back({static_cast<uint32_t>(code_.calls.size()), *call.resume});
    code_.calls.push_back(site);
  }

  static bool lists_register(const RegList& list, uint16_t ref) {
    for (size_t i = 0; i < list.size(); ++i) {
      if ((list[i] & ~kMoveBit) == (ref & ~kMoveBit)) return true;
    }
    return false;
  }

  uint32_t block(uint32_t pc) const {
    const auto found = std::ranges::lower_bound(blocks_, pc, {}, &FunctionCode::Place::pc);
    assert(found != blocks_.end() && found->pc == pc);
    return found->word;
  }

  void resolve_targets() {
    for (const Fixup& fixup : fixups_) set_wide(fixup.word, block(fixup.target) - fixup.origin);
    for (const auto& [site, pc] : resumes_) code_.calls[site].next = block(pc);
  }

  void lay_out_frame() {
    // A list entry counts as a pair where it may be one; the verifier's rounded count is the end.
    code_.value_slots = std::min<uint32_t>(value_slots_, function_.value_registers);
    code_.ref_slots = std::min<uint32_t>(ref_slots_, function_.ref_registers);
    code_.refs_offset = bank_bytes(code_.value_slots, sizeof(uint32_t));
    code_.frame_bytes = static_cast<uint32_t>(sizeof(Frame)) + code_.refs_offset +
                        bank_bytes(code_.ref_slots, sizeof(Object*));
  }

  const BytecodeModule& module_;
  const Function& function_;
  const uint32_t version_;
  FunctionCode& code_;
  std::string result_types_;
  uint32_t value_slots_ = 0;
  uint32_t ref_slots_ = 0;
  std::vector<FunctionCode::Place> blocks_;  // ascending
  std::vector<Fixup> fixups_;
  std::vector<std::pair<uint32_t, uint32_t>> resumes_;  // call site, pc of the block
};

}  // namespace

uint32_t FunctionCode::pc_of(uint32_t word) const {
  const auto after = std::ranges::upper_bound(places, word, {}, &Place::word);
  return after == places.begin() ? 0 : std::prev(after)->pc;
}

Result<std::unique_ptr<const FunctionCode>> decode_function(const BytecodeModule& module, uint32_t function) {
  auto code = std::make_unique<FunctionCode>();
  Decoder decoder(module, function, *code);
  HALYARD_TRY(decoder.run());
  return code;
}

}  // namespace halyard::vm
