// LoopRanges: C that computes, before a loop, what the indices in it are at most. The registers of the loop
// and of the loops in it become terms: constants, values from before the loop, counters, and operations on
// them. Bounds are those of the values as unsigned numbers. They hold whatever wraps: an operation that may
// wrap has the largest number as its bound.
//
// A counter is a register to which each iteration adds, while a comparison with a bound lets the loop go on.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "aot/loops.h"
#include "aot/variables.h"

namespace halyard::aot {

class LoopRanges {
 public:
  // The text of a variable as a value of a bank.
  using Read = std::function<std::string(const Variable&, vm::Bank)>;

  LoopRanges(const vm::Function& function, const vm::Flow& flow, const Variables& variables,
             const Loops& loops, size_t loop, Read read);

  // A bound for a register that the instruction reads, which is an i32 or i64, as C of type uint64_t. Null if
  // none is known. `operand` is one of kind reg.
  std::optional<std::string> most(size_t step, size_t operand);
  // The statements that the bounds need, one a line.
  const std::vector<std::string>& statements() const { return statements_; }

 private:
  using Id = uint32_t;
  static constexpr Id kNone = UINT32_MAX;

  enum class Kind : uint8_t { constant, cell, operation };
  using Key = std::tuple<Kind, bool, bool, uint64_t, vm::Op, Id, Id, Id>;
  struct Term {
    Kind kind = Kind::constant;
    bool wide = false;
    bool changes = false;   // within the loop
    uint64_t constant = 0;  // or the block of a cell
    vm::Op op = {};
    Id operands[3] = {kNone, kNone, kNone};  // of an operation; of a cell, its register
    // A cell is the value of a register at the beginning of a block. That of the outermost header that does
    // not change comes from before the loop.
    Key key() const { return {kind, wide, changes, constant, op, operands[0], operands[1], operands[2]}; }
  };
  // A register's content: a term, or the half of one; or the register's own content at the beginning of a
  // block.
  struct Content {
    enum class Part : uint8_t { cell, whole, low, high };
    Part part = Part::cell;
    bool changes = false;
    uint32_t block = 0;  // of a cell
    uint32_t slot = 0;   // likewise
    Id term = kNone;
    bool operator==(const Content&) const = default;
  };
  using Contents = std::vector<Content>;
  // first < second, or first <= second, at the end of an edge.
  struct Fact {
    Id first = kNone;
    Id second = kNone;
    bool is_signed = false;
    bool or_equal = false;
  };

  Id add(const Term& term);
  Id value(const Contents& contents, uint16_t reg, vm::Bank bank);
  void visit_block(size_t block);
  Contents entry_of(size_t block) const;
  Contents after_edge(size_t from, const vm::Flow::Edge* edge) const;
  void visit_step(size_t step, Contents& contents);
  std::vector<bool> written_in(const Loop& loop) const;
  std::optional<Fact> fact_of(size_t from, size_t to) const;
  std::vector<Fact> facts_at(size_t block) const;

  std::optional<std::string> bound(Id term, size_t block);
  std::optional<std::string> own_bound(Id term, size_t block);
  std::optional<std::string> operation_bound(const Term& term, size_t block);
  std::optional<std::string> counter_bound(const Term& term);
  std::optional<std::string> exact(Id term);
  std::string name(const std::string& expression);
  static std::string limit(const Term& term) { return term.wide ? "UINT64_MAX" : "UINT32_MAX"; }

  const vm::Flow& flow_;
  const Variables& variables_;
  const Loops& loops_;
  const Loop& loop_;
  Read read_;
  size_t slots_ = 0;

  std::vector<Term> terms_;
  std::map<Key, Id> ids_;
  std::map<size_t, Contents> at_begin_;     // by block
  std::map<size_t, Contents> at_end_;       // by block
  std::map<size_t, Id> conditions_;         // of the branch at the end of a block
  std::map<size_t, Contents> inner_entry_;  // of inner loops, by header: before their first iteration
  std::map<std::pair<size_t, size_t>, Id> read_terms_;  // by step and operand
  std::map<std::pair<Id, size_t>, std::optional<std::string>> bounds_;
  std::map<Id, std::optional<std::string>> exact_;
  std::map<std::string, std::string> names_;
  std::vector<std::string> statements_;
};

}  // namespace halyard::aot
