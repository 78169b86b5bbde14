// The local variables of a function in C. A register of bytecode has no type: one instruction writes an i32
// to it and another one an f32, or the half of an i64. The values of a register that meet at an instruction
// or at a block share a variable; a variable has the type with which all of its instructions use it. Values
// that are used with several types are kept as their bits, one variable for each 32-bit register.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aot/signature.h"
#include "vm/decode/flow.h"

namespace halyard::aot {

struct Variable {
  enum class Type : uint8_t { i32, i64, f32, f64 };

  Type type = Type::i32;
  uint16_t slot = 0;
  bool split = false;  // of a pair: the halves are variables of type i32 for `slot` and `slot` + 1

  // "i3", "l4", "f3", "d4". Values of one register and type share the name, because only one of them is live.
  std::string name() const;
  bool operator==(const Variable&) const = default;
};

const char* c_type(Variable::Type type);
const char* c_type(vm::Bank bank);  // of a register

// A move of an edge, which the target needs. Either of refs, or of the whole of a variable, or of 32 bits.
struct Move {
  bool is_ref = false;
  bool moves_ref = false;  // the source becomes null
  bool wide = false;       // two moves of halves as one
  uint16_t from = 0;       // the ref register
  uint16_t to = 0;
  Variable source;
  Variable destination;
  bool high_half = false;  // of `source`, if it is wide and this is a move of 32 bits
};

class Variables {
 public:
  Variables(const vm::BytecodeModule& module, const vm::Function& function, const Types& types,
            const vm::Flow& flow);

  // Whether the block can be reached from the entry. Others have no variables.
  bool is_reachable(size_t block) const { return reachable_[block]; }
  // The variable of the nth value register of an instruction, in the order of for_each_value.
  Variable at(size_t step, size_t n) const;
  // The moves of the nth edge of a block.
  std::vector<Move> moves(size_t block, size_t edge) const;
  // The variable in which the argument of this register arrives.
  Variable argument(uint16_t reg, vm::Bank bank) const;
  // The variable that has the content of a register at the beginning of a block, as a number of this bank.
  // Null if nothing reads it as such a number there.
  std::optional<Variable> at_entry(size_t block, uint16_t reg, vm::Bank bank) const;
  // The variables that may be read before they are written: registers are zero at the entry.
  const std::vector<Variable>& zeroed() const { return zeroed_; }

 private:
  using Node = uint32_t;
  static constexpr Node kNone = UINT32_MAX;
  enum Uses : uint8_t { kI32 = 1, kF32 = 2, kI64 = 4, kF64 = 8, kLow = 16, kHigh = 32, kSplit = 64 };

  struct Value {
    Node parent;
    Node other = kNone;  // the other half of a pair
    uint16_t slot = 0;
    uint8_t uses = 0;
  };
  struct NodeMove {
    uint16_t from = 0;
    uint16_t to = 0;
    bool is_ref = false;
    bool moves_ref = false;
    bool wide = false;
    Node source = kNone;
    Node destination = kNone;
    Node source_high = kNone;
    Node destination_high = kNone;
  };

  Node add(uint16_t slot);
  Node find(Node node) const;
  void unite(Node a, Node b);
  Node entry(size_t block, uint16_t slot);
  Node& current(uint16_t slot) { return current_[slot]; }
  void use(Node low, Node high, vm::Bank bank);
  void pair(Node low, Node high);
  void split(Node node);
  bool is_wide(Node node) const;
  void find_reachable();
  void visit_block(size_t block, std::string_view results);
  void visit_edge(size_t block, const vm::Flow::Edge& edge, std::vector<NodeMove>& moves);
  void find_types();
  bool give_types(const NodeMove& move);
  Variable narrow(Node node) const;
  Variable wide(Node low, Node high) const;

  const vm::BytecodeModule& module_;
  const vm::Function& function_;
  const vm::Flow& flow_;
  std::vector<bool> reachable_;
  mutable std::vector<Value> values_;       // find() shortens paths
  std::vector<std::vector<Node>> entries_;  // by block and slot
  std::vector<Node> current_;               // by slot
  std::vector<std::vector<Node>> steps_;  // by step: two for each value register; the high half may be kNone
  std::vector<std::vector<std::vector<NodeMove>>> edges_;  // by block and edge
  std::vector<Variable> zeroed_;
};

}  // namespace halyard::aot
