// Liveness, as every compiler does it: backwards over the blocks until nothing changes.
#include "vm/flow.h"

#include <algorithm>
#include <cassert>

namespace halyard::vm {

namespace {

// What liveness may cost, in words of bits and in rounds over the function; past it every value counts as
// looked at again.
constexpr size_t kMostWords = size_t{1} << 20;
constexpr int kMostRounds = 32;

bool is_wide(Bank bank) { return bank == Bank::i64 || bank == Bank::f64; }

}  // namespace

void edges_of(const Instruction& instruction, std::pmr::vector<Edge>& edges) {
  edges.clear();
  const OpInfo& op = info(instruction.op);
  for (size_t i = 0; i < op.operand_count; ++i) {
    const DecodedOperand& operand = instruction.operands[i];
    if (op.operands[i].kind == OperandKind::block) {
      const bool moves = i + 1 < op.operand_count && op.operands[i + 1].kind == OperandKind::remap;
      edges.push_back({operand.index, moves ? instruction.operands[i + 1].remap : RemapList()});
    } else if (op.operands[i].kind == OperandKind::cases) {
      for (const CaseEntry entry : operand.cases) edges.push_back({entry.target, entry.remap});
    }
  }
}

class FlowBuilder {
 public:
  FlowBuilder(const BytecodeModule& module, const Function& function, std::pmr::memory_resource* memory)
      : module_(module),
        function_(function),
        memory_(memory),
        flow_(memory),
        block_edges_(memory),
        edges_(memory),
        edge_blocks_(memory),
        scratch_(memory),
        may_write_(memory),
        live_(memory),
        before_(memory) {}

  Result<Flow> run() {
    slots_ = function_.value_registers;
    flow_.write_counts_.resize(slots_);
    flow_.moved_.resize(slots_);
    flow_.blocks_.reserve(function_.block_count);
    block_edges_.reserve(function_.block_count);
    const size_t likely_steps = function_.bytecode.size() / 8;
    flow_.steps_.reserve(likely_steps);
    flow_.instructions_.reserve(likely_steps);
    flow_.accesses_.reserve(4 * likely_steps);
    HALYARD_TRY(walk());
    for (const Edge& edge : edges_)
      edge_blocks_.push_back(static_cast<uint32_t>(flow_.block_at(edge.target)));
    spread();
    for (size_t block = 0; block < flow_.blocks_.size(); ++block) mark(block);
    return std::move(flow_);
  }

 private:
  struct BlockEdges {
    uint32_t first = 0;
    uint32_t count = 0;
    bool falls_through = false;  // `fail` goes on where its status is 0
  };

  void access(uint16_t slot, bool writes) {
    flow_.accesses_.push_back({.slot = slot, .writes = writes, .last = 0});
    if (writes) ++flow_.write_counts_[slot];
  }

  // Whether the list of a call or return may name pairs, going by the convention that it follows.
  bool may_name_pairs(const Instruction& instruction) const {
    std::string_view convention = function_.convention;  // of a return
    if (info(instruction.op).operands[0].kind == OperandKind::func) {
      const uint32_t callee = instruction.operands[0].index;
      convention = callee & kImportBit ? module_.imports()[callee & ~kImportBit].convention
                                       : module_.functions()[callee].convention;
      if (convention.empty() && (callee & kImportBit)) return true;  // it is the provider's
    }
    return convention.find_first_of("IF") != std::string_view::npos;
  }

  // What a list names: pairs or single slots.
  void list(const RegList& regs, bool writes, bool may_be_pairs) {
    for (size_t i = 0; i < regs.size(); ++i) {
      const uint16_t reg = regs[i];
      if (reg & kRefBit) continue;
      const bool pair = may_be_pairs && reg % 2 == 0 && reg + 1u < slots_;
      if (writes) {
        may_write_.push_back(reg);
        if (pair) may_write_.push_back(static_cast<uint16_t>(reg + 1));
      } else {
        access(reg, false);
        if (pair) access(static_cast<uint16_t>(reg + 1), false);
      }
    }
  }

  void operands(const Instruction& instruction, bool writes) {
    const OpInfo& op = info(instruction.op);
    for (size_t i = 0; i < op.operand_count; ++i) {
      const Operand& operand = op.operands[i];
      const DecodedOperand& decoded = instruction.operands[i];
      if (operand.writes != writes) continue;
      if (operand.kind == OperandKind::reg && operand.bank != Bank::ref) {
        access(decoded.reg, writes);
        if (is_wide(operand.bank)) access(static_cast<uint16_t>(decoded.reg + 1), writes);
      } else if (operand.kind == OperandKind::reg_list) {
        list(decoded.regs, writes,
             operand.bank == Bank::any ? may_name_pairs(instruction) : is_wide(operand.bank));
      }
    }
  }

  Result<> walk() {
    for (uint32_t pc = 0; has_instruction(function_.bytecode, pc);) {
      const Instruction instruction = HALYARD_TRY(
          read_instruction(function_.bytecode, pc, module_.bytecode_version(), function_.features));
      pc = instruction.next_pc;
      if (instruction.op == Op::block) {
        flow_.blocks_.push_back({.pc = instruction.pc,
                                 .first_step = static_cast<uint32_t>(flow_.steps_.size()),
                                 .step_count = 0});
        block_edges_.push_back({});
        continue;
      }
      flow_.steps_.push_back({.op = instruction.op,
                              .pc = instruction.pc,
                              .first_access = static_cast<uint32_t>(flow_.accesses_.size())});
      ++flow_.blocks_.back().step_count;
      flow_.instructions_.push_back(instruction);
      operands(instruction, false);
      operands(instruction, true);
      // Results of calls are no writes to rely on, but they end what was known of the slots.
      for (const uint16_t slot : may_write_) ++flow_.write_counts_[slot];
      may_write_.clear();
      note_edges(instruction);
    }
    flow_.steps_.push_back({.op = Op::kCount,
                            .pc = static_cast<uint32_t>(function_.bytecode.size()),
                            .first_access = static_cast<uint32_t>(flow_.accesses_.size())});
    return {};
  }

  void note_edges(const Instruction& instruction) {
    edges_of(instruction, scratch_);
    BlockEdges& edges = block_edges_.back();
    if (scratch_.empty()) {
      if (instruction.op == Op::fail) edges.falls_through = true;
      return;
    }
    if (edges.count == 0) edges.first = static_cast<uint32_t>(edges_.size());
    edges.count += static_cast<uint32_t>(scratch_.size());
    for (const Edge& edge : scratch_) {
      edges_.push_back(edge);
      for (size_t i = 0; i < edge.remap.size(); ++i) {
        const Remap move = edge.remap[i];
        if (move.destination & kRefBit) continue;
        ++flow_.write_counts_[move.destination];
        flow_.moved_[move.source] = true;
      }
    }
  }

  // A set of slots is `stride_` words of bits.
  static bool has(const uint64_t* set, uint32_t slot) { return (set[slot / 64] >> (slot % 64) & 1) != 0; }
  static void add(uint64_t* set, uint32_t slot) { set[slot / 64] |= uint64_t{1} << (slot % 64); }
  static void remove(uint64_t* set, uint32_t slot) { set[slot / 64] &= ~(uint64_t{1} << (slot % 64)); }
  uint64_t* live_in(size_t block) { return flow_.live_in_.data() + block * stride_; }

  // What is live at the start of every block.
  void spread() {
    const size_t count = flow_.blocks_.size();
    stride_ = flow_.stride_ = (slots_ + 63) / 64;
    live_.resize(stride_);
    before_.resize(stride_);
    flow_.all_live_ = count * stride_ > kMostWords;
    if (flow_.all_live_) return;
    flow_.live_in_.resize(count * stride_);
    std::pmr::vector<uint64_t> uses(count * stride_, memory_);
    std::pmr::vector<uint64_t> definitions(count * stride_, memory_);
    for (size_t i = 0; i < count; ++i) {
      const Flow::Block& block = flow_.blocks_[i];
      uint64_t* use = uses.data() + i * stride_;
      uint64_t* defined = definitions.data() + i * stride_;
      const size_t end = flow_.steps_[block.first_step + block.step_count].first_access;
      for (size_t k = flow_.steps_[block.first_step].first_access; k < end; ++k) {
        const Access each = flow_.accesses_[k];
        if (each.writes) {
          add(defined, each.slot);
        } else if (!has(defined, each.slot)) {
          add(use, each.slot);
        }
      }
    }
    bool changed = true;
    for (int round = 0; changed; ++round) {
      if (round == kMostRounds) {
        flow_.all_live_ = true;
        return;
      }
      changed = false;
      for (size_t i = count; i-- > 0;) {
        find_live_out(i);
        uint64_t* in = live_in(i);
        for (size_t word = 0; word < stride_; ++word) {
          const uint64_t next = uses[i * stride_ + word] | (live_[word] & ~definitions[i * stride_ + word]);
          changed |= next != in[word];
          in[word] = next;
        }
      }
    }
  }

  // What is live at the end of the block, into live_.
  void find_live_out(size_t block) {
    std::ranges::fill(live_, flow_.all_live_ ? ~uint64_t{0} : 0);
    if (flow_.all_live_) return;
    const BlockEdges& edges = block_edges_[block];
    for (uint32_t i = edges.first; i < edges.first + edges.count; ++i) {
      std::copy_n(live_in(edge_blocks_[i]), stride_, before_.begin());
      const RemapList& remap = edges_[i].remap;
      for (size_t k = remap.size(); k-- > 0;) {
        const Remap move = remap[k];
        if (move.source & kRefBit) continue;
        remove(before_.data(), move.destination);
        add(before_.data(), move.source);
      }
      for (size_t word = 0; word < stride_; ++word) live_[word] |= before_[word];
    }
    if (edges.falls_through && block + 1 < flow_.blocks_.size()) {
      for (size_t word = 0; word < stride_; ++word) live_[word] |= live_in(block + 1)[word];
    }
  }

  // The `last` bits of a block's accesses.
  void mark(size_t index) {
    const Flow::Block& block = flow_.blocks_[index];
    find_live_out(index);
    for (size_t step = block.first_step + block.step_count; step-- > block.first_step;) {
      const size_t first = flow_.steps_[step].first_access;
      const size_t end = flow_.steps_[step + 1].first_access;
      for (size_t i = end; i-- > first;) {
        Access& each = flow_.accesses_[i];
        each.last = !has(live_.data(), each.slot);
        if (each.writes) remove(live_.data(), each.slot);
      }
      // After all of them: an operand that is named twice is read for the last time twice.
      for (size_t i = first; i < end; ++i) {
        if (!flow_.accesses_[i].writes) add(live_.data(), flow_.accesses_[i].slot);
      }
    }
  }

  const BytecodeModule& module_;
  const Function& function_;
  std::pmr::memory_resource* memory_;
  Flow flow_;
  uint32_t slots_ = 0;
  size_t stride_ = 0;
  std::pmr::vector<BlockEdges> block_edges_;
  std::pmr::vector<Edge> edges_;
  std::pmr::vector<uint32_t> edge_blocks_;  // where each edge leads
  std::pmr::vector<Edge> scratch_;
  std::pmr::vector<uint16_t> may_write_;
  std::pmr::vector<uint64_t> live_;
  std::pmr::vector<uint64_t> before_;
};

Result<Flow> Flow::of(const BytecodeModule& module, const Function& function,
                      std::pmr::memory_resource* memory) {
  return FlowBuilder(module, function, memory).run();
}

size_t Flow::block_at(uint32_t pc) const {
  const auto found = std::ranges::lower_bound(blocks_, pc, {}, &Block::pc);
  assert(found != blocks_.end() && found->pc == pc);
  return static_cast<size_t>(found - blocks_.begin());
}

}  // namespace halyard::vm
