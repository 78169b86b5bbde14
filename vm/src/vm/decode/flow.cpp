// Standard liveness analysis: iterates backwards over the blocks to a fixed point.
#include "vm/decode/flow.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace halyard::vm {

namespace {

// Limits of the analysis: words of bit sets, and iterations over the function. Beyond them every value counts
// as live.
constexpr size_t kMaxWords = size_t{1} << 20;
constexpr int kMaxRounds = 32;

// The slots that an opcode reads and writes, except in lists: first the reads, then the writes, in the order
// of the operands.
struct ValueOperands {
  struct Each {
    uint8_t operand;
    bool wide;
    bool writes;
  };
  std::array<Each, kMaxOperands> each = {};
  uint8_t count = 0;
  bool lists = false;
};

constexpr auto kValueOperands = [] {
  std::array<ValueOperands, kOpCount> table;
  for (size_t op = 0; op < kOpCount; ++op) {
    for (const bool writes : {false, true}) {
      for (uint8_t i = 0; i < kOps[op].operand_count; ++i) {
        const Operand& operand = kOps[op].operands[i];
        if (operand.kind == OperandKind::reg_list) table[op].lists = true;
        if (operand.kind != OperandKind::reg || operand.bank == Bank::ref || operand.writes != writes)
          continue;
        table[op].each[table[op].count++] = {i, operand.bank == Bank::i64 || operand.bank == Bank::f64,
                                             writes};
      }
    }
  }
  return table;
}();

// Calls `each` with the target pc and the moves of each edge of a branch.
template <typename Each>
void for_each_edge(const Instruction& instruction, Each each) {
  const OpInfo& op = info(instruction.op);
  for (size_t i = 0; i < op.operand_count; ++i) {
    const DecodedOperand& operand = instruction.operands[i];
    if (op.operands[i].kind == OperandKind::block) {
      const bool moves = i + 1 < op.operand_count && op.operands[i + 1].kind == OperandKind::remap;
      each(operand.index, moves ? instruction.operands[i + 1].remap : RemapList());
    } else if (op.operands[i].kind == OperandKind::cases) {
      for (const CaseEntry entry : operand.cases) each(entry.target, entry.remap);
    }
  }
}

}  // namespace

// Slot sets are bit sets. kWords is their size in words: 1 for most functions, 0 if it is unknown at compile
// time.
template <size_t kWords>
class FlowBuilder {
 public:
  FlowBuilder(const BytecodeModule& module, const Function& function, Arena& arena)
      : module_(module),
        function_(function),
        flow_(arena),
        slots_(function.value_registers),
        any_words_((slots_ + 63) / 64),
        uses_(arena),
        definitions_(arena),
        live_out_(arena),
        live_(arena, words()),
        before_(arena, words()) {}

  Result<Flow> run() {
    const size_t blocks = function_.block_count;
    flow_.slots_.resize(slots_);
    flow_.blocks_.reserve(blocks);
    flow_.edges_.reserve(2 * blocks);
    const size_t likely_steps = function_.bytecode.size() / 8;
    flow_.steps_.reserve(likely_steps);
    flow_.instructions_.reserve(likely_steps);
    flow_.accesses_.reserve(4 * likely_steps);
    flow_.stride_ = words();
    flow_.all_live_ = blocks * words() > kMaxWords;
    HALYARD_TRY(walk());
    for (size_t block = 0; block < blocks; ++block) {
      const Flow::Block& from = flow_.blocks_[block];
      for (uint32_t i = from.first_edge; i < from.first_edge + from.edge_count; ++i) {
        flow_.edges_[i].block = static_cast<uint32_t>(flow_.block_at(flow_.edges_[i].block));
        loops_ |= flow_.edges_[i].block <= block;
      }
    }
    if (!flow_.all_live_) {
      flow_.live_in_.resize(blocks * words());
      uses_.resize(blocks * words());
      definitions_.resize(blocks * words());
      live_out_.resize(blocks * words());
      for (size_t block = 0; block < blocks; ++block) find_uses(block);
      spread();
    }
    for (size_t block = 0; block < blocks; ++block) mark(block);
    return flow_;
  }

 private:
  size_t words() const { return kWords ? kWords : any_words_; }

  void access(uint16_t slot, bool writes) { flow_.accesses_.push_back(Access(slot, writes)); }

  // Whether the list of a call or return may contain pairs, according to its convention.
  bool may_name_pairs(const Instruction& instruction) const {
    std::string_view convention = function_.convention;  // of a return
    if (info(instruction.op).operands[0].kind == OperandKind::func) {
      const uint32_t callee = instruction.operands[0].index;
      convention = callee & kImportBit ? module_.imports()[callee & ~kImportBit].convention
                                       : module_.functions()[callee].convention;
      if (convention.empty() && (callee & kImportBit)) return true;  // the provider's convention is unknown
    }
    return std::ranges::any_of(convention, [](char type) { return type == 'I' || type == 'F'; });
  }

  // The slots of a list: pairs or single slots. Results of calls do not count as definitions, but end the
  // lifetime of earlier values of their slots.
  void list(const RegList& regs, bool writes, bool may_be_pairs) {
    for (size_t i = 0; i < regs.size(); ++i) {
      const uint16_t reg = regs[i];
      if (reg & kRefBit) continue;
      const int count = may_be_pairs && reg % 2 == 0 && reg + 1u < slots_ ? 2 : 1;
      for (int half = 0; half < count; ++half) {
        const auto slot = static_cast<uint16_t>(reg + half);
        if (writes) {
          ++flow_.slots_[slot].writes;
        } else {
          access(slot, false);
        }
      }
    }
  }

  void operands(const Instruction& instruction) {
    const ValueOperands& values = kValueOperands[static_cast<size_t>(instruction.op)];
    if (values.lists) return operands_and_lists(instruction);
    Access* at = flow_.accesses_.room(2 * kMaxOperands);
    for (const ValueOperands::Each *each = values.each.data(), *end = each + values.count; each != end;
         ++each) {
      const uint16_t reg = instruction.operands[each->operand].reg;
      at[0] = Access(reg, each->writes);
      at[1] = Access(reg + 1u, each->writes);
      at += each->wide ? 2 : 1;
    }
    flow_.accesses_.set_end(at);
  }

  void operands_and_lists(const Instruction& instruction) {
    const OpInfo& op = info(instruction.op);
    const bool pairs = may_name_pairs(instruction);
    for (const bool writes : {false, true}) {
      for (size_t i = 0; i < op.operand_count; ++i) {
        const Operand& operand = op.operands[i];
        const DecodedOperand& decoded = instruction.operands[i];
        if (operand.writes != writes) continue;
        if (operand.kind == OperandKind::reg && operand.bank != Bank::ref) {
          access(decoded.reg, writes);
          if (is_wide(operand.bank)) access(static_cast<uint16_t>(decoded.reg + 1), writes);
        } else if (operand.kind == OperandKind::reg_list) {
          list(decoded.regs, writes, operand.bank == Bank::any ? pairs : is_wide(operand.bank));
        }
      }
    }
  }

  Result<> walk() {
    const uint32_t version = module_.bytecode_version();
    const std::span<const uint8_t> code = function_.bytecode;
    for (uint32_t pc = 0; has_instruction(code, pc);) {
      Instruction& instruction = flow_.instructions_.append();
      if (!read_fixed_instruction(code, pc, version, function_.features, instruction))
        HALYARD_TRY(read_any_instruction(code, pc, version, function_.features, instruction));
      pc = instruction.next_pc;
      const auto step = static_cast<uint32_t>(flow_.steps_.size());
      if (instruction.op == kBlockMarker) {
        flow_.blocks_.push_back({.pc = instruction.pc,
                                 .first_step = step,
                                 .first_edge = static_cast<uint32_t>(flow_.edges_.size())});
        flow_.instructions_.pop_back();
        continue;
      }
      flow_.steps_.push_back({.op = instruction.op,
                              .pc = instruction.pc,
                              .first_access = static_cast<uint32_t>(flow_.accesses_.size())});
      operands(instruction);
      if (!info(instruction.op).terminator()) continue;
      flow_.blocks_.back().step_count = step + 1 - flow_.blocks_.back().first_step;
      note_edges(instruction);
    }
    flow_.steps_.push_back({.op = Op::kCount,
                            .pc = static_cast<uint32_t>(code.size()),
                            .first_access = static_cast<uint32_t>(flow_.accesses_.size())});
    for (const Access each : flow_.accesses_) flow_.slots_[each.slot()].writes += each.writes();
    return {};
  }

  void note_edges(const Instruction& instruction) {
    Flow::Block& block = flow_.blocks_.back();
    for_each_edge(instruction, [&](uint32_t target, RemapList remap) {
      bool moves_values = false;
      for (size_t i = 0; i < remap.size(); ++i) {
        const Remap move = remap[i];
        if (move.destination & kRefBit) continue;
        ++flow_.slots_[move.destination].writes;
        flow_.slots_[move.source].moved = true;
        moves_values = true;
      }
      // Replaced by the block's index when all blocks are known.
      flow_.edges_.push_back({.block = target, .moves_values = moves_values, .remap = remap});
      ++block.edge_count;
    });
    if (has_trait(instruction.op, FAILS)) block.falls_through = true;
  }

  static size_t word_of(uint32_t slot) { return kWords == 1 ? 0 : slot / 64; }
  static bool has(const uint64_t* set, uint32_t slot) { return (set[word_of(slot)] >> (slot % 64) & 1) != 0; }
  static void add(uint64_t* set, uint32_t slot) { set[word_of(slot)] |= uint64_t{1} << (slot % 64); }
  static void remove(uint64_t* set, uint32_t slot) { set[word_of(slot)] &= ~(uint64_t{1} << (slot % 64)); }
  uint64_t* live_in(size_t block) { return flow_.live_in_.data() + block * words(); }
  uint64_t* live_out(size_t block) { return live_out_.data() + block * words(); }

  std::span<Access> accesses(const Flow::Block& block) {
    const uint32_t first = flow_.steps_[block.first_step].first_access;
    const uint32_t end = flow_.steps_[block.first_step + block.step_count].first_access;
    return {flow_.accesses_.data() + first, end - first};
  }

  // The slots that the block reads before it writes them, and those that it writes.
  void find_uses(size_t block) {
    uint64_t one_word[2] = {};
    uint64_t* const use = kWords == 1 ? &one_word[0] : uses_.data() + block * words();
    uint64_t* const defined = kWords == 1 ? &one_word[1] : definitions_.data() + block * words();
    for (const Access each : accesses(flow_.blocks_[block])) {
      if (each.writes()) {
        add(defined, each.slot());
      } else if (!has(defined, each.slot())) {
        add(use, each.slot());
      }
    }
    if (kWords == 1) uses_[block] = one_word[0], definitions_[block] = one_word[1];
  }

  // Computes the slots that are live at the start of each block.
  void spread() {
    const size_t count = flow_.blocks_.size();
    bool changed = true;
    for (int round = 0; changed; ++round) {
      if (round == kMaxRounds) {
        flow_.all_live_ = true;
        return;
      }
      changed = false;
      // One backward pass is enough if there are no loops.
      for (size_t i = count; i-- > 0;) {
        find_live_out(i);
        std::copy_n(live_.data(), words(), live_out(i));
        uint64_t* const in = live_in(i);
        for (size_t word = 0; word < words(); ++word) {
          const size_t at = i * words() + word;
          const uint64_t next = uses_[at] | (live_[word] & ~definitions_[at]);
          changed |= loops_ && next != in[word];
          in[word] = next;
        }
      }
    }
  }

  // Computes in live_ the slots that are live at the end of the block.
  void find_live_out(size_t block) {
    for (size_t word = 0; word < words(); ++word) live_[word] = 0;
    for (const Flow::Edge& edge : flow_.edges(block)) add_live_before(edge);
    if (flow_.blocks_[block].falls_through && block + 1 < flow_.blocks_.size())
      add_to_live(live_in(block + 1));
  }

  void add_to_live(const uint64_t* set) {
    for (size_t word = 0; word < words(); ++word) live_[word] |= set[word];
  }

  void add_live_before(const Flow::Edge& edge) {
    const uint64_t* const after = live_in(edge.block);
    if (!edge.moves_values) return add_to_live(after);
    for (size_t word = 0; word < words(); ++word) before_[word] = after[word];
    for (size_t i = edge.remap.size(); i-- > 0;) {
      const Remap move = edge.remap[i];
      if (move.source & kRefBit) continue;
      remove(before_.data(), move.destination);
      add(before_.data(), move.source);
    }
    add_to_live(before_.data());
  }

  // Sets the `last` bits of a block's accesses.
  void mark(size_t index) {
    const Flow::Block& block = flow_.blocks_[index];
    for (size_t word = 0; word < words(); ++word)
      live_[word] = flow_.all_live_ ? ~uint64_t{0} : live_out(index)[word];
    uint64_t one_word = kWords == 1 ? live_[0] : 0;
    uint64_t* const live = kWords == 1 ? &one_word : live_.data();
    Access* const accesses = flow_.accesses_.data();
    const Flow::Step* const steps = flow_.steps_.data() + block.first_step;
    Access* end = accesses + steps[block.step_count].first_access;
    for (size_t step = block.step_count; step-- > 0;) {
      Access* const first = accesses + steps[step].first_access;
      for (Access* each = end; each != first;) {
        --each;
        each->set_last(!has(live, each->slot()));
        if (each->writes()) remove(live, each->slot());
      }
      // After all reads are marked, because if an operand occurs twice, both are last reads.
      for (const Access* each = first; each != end && !each->writes(); ++each) add(live, each->slot());
      end = first;
    }
  }

  const BytecodeModule& module_;
  const Function& function_;
  Flow flow_;
  const uint32_t slots_;
  const size_t any_words_;
  bool loops_ = false;           // there is a back edge
  Array<uint64_t> uses_;         // by block: slots that it reads before it writes them
  Array<uint64_t> definitions_;  // by block: slots that it writes
  Array<uint64_t> live_out_;     // by block: slots that are live at its end
  Array<uint64_t> live_;
  Array<uint64_t> before_;
};

Result<Flow> Flow::of(const BytecodeModule& module, const Function& function, Arena& arena) {
  if (function.value_registers <= 64) return FlowBuilder<1>(module, function, arena).run();
  return FlowBuilder<0>(module, function, arena).run();
}

size_t Flow::block_at(uint32_t pc) const {
  const auto found = std::ranges::lower_bound(blocks_, pc, {}, &Block::pc);
  assert(found != blocks_.end() && found->pc == pc);
  return static_cast<size_t>(found - blocks_.begin());
}

}  // namespace halyard::vm
