// Machine: follows the bytecode of one path through a program. Where a branch depends on an unknown number,
// the choices of the path say which way to go.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/program.h"
#include "analysis/registers.h"
#include "vm/format/bytecode_reader.h"

namespace halyard::analysis {

// The ways taken at unknown branches, in their order. A path is repeated with other choices to see all ways.
struct Choices {
  struct Choice {
    uint32_t taken = 0;
    uint32_t ways = 1;
  };
  std::vector<Choice> made;
  size_t next = 0;  // the next one to follow

  void begin() { next = 0; }
  // Changes the last choice that has another way; false: all paths were followed.
  bool advance();
};

// What all paths of an analysis share: the work that is left, and the functions that the verifier accepted.
struct Budget {
  uint64_t steps = 0;                 // instructions
  uint64_t elements = 1'000'000;      // of lists
  uint64_t arithmetic = 200'000'000;  // Symbols::work
  std::set<uint32_t> verified;
};

class Machine {
 public:
  Machine(Program& program, Choices& choices, Budget& budget);

  // Follows a function to its end; returns its results. A failure is the reason why it could not be followed,
  // or the failure with which the program ends on this path.
  Result<std::vector<Value>> run(uint32_t function, std::vector<Value> arguments);
  // Whether the last failure was one of the program, on this path only.
  bool has_failed() const { return has_failed_; }
  void use(Choices& choices) { choices_ = &choices; }
  // Forgets which branches were taken: a new function begins.
  void begin_function() { repeats_.clear(); }

 private:
  struct Frame {
    uint32_t function;
    const vm::Function& body;
    Registers registers;
  };
  static constexpr uint32_t kMaxDepth = 64;
  // A branch that depends on data is taken in the same way so many times at the most, so that loops end.
  static constexpr uint32_t kMaxRepeats = 3;

  Result<std::vector<Value>> enter(uint32_t function, std::vector<Value> arguments, uint32_t depth);
  Result<std::vector<Value>> follow(Frame& frame, uint32_t depth);
  Result<> call(Frame& frame, const vm::Instruction& at, uint32_t depth);
  Result<std::vector<Value>> call_import(uint32_t import, Call call);
  void compute(Frame& frame, const vm::Instruction& at);
  bool access_global(Frame& frame, const vm::Instruction& at);
  bool access_list(Frame& frame, const vm::Instruction& at);
  bool access_bytes(Frame& frame, const vm::Instruction& at);
  bool handle_refs(Frame& frame, const vm::Instruction& at);
  // The way at a branch whose condition is not known: one of `ways`; those that only fail are avoided.
  uint32_t choose(const Frame& frame, uint32_t pc, const std::vector<uint32_t>& targets);
  bool only_fails(const Frame& frame, uint32_t pc) const;
  static void take(Frame& frame, const vm::RemapList& moves);

  Expression unknown(const Frame& frame, const vm::Instruction& at, std::string_view what);

  Program& program_;
  Choices* choices_;
  Budget& budget_;
  std::map<uint32_t, Slot> globals_;     // by byte offset
  std::map<uint32_t, Ref> global_refs_;  // that have been read or written; others are null
  struct Repeats {
    std::vector<uint32_t> taken;  // how often each way was chosen
    Expression live;              // of memory, the last time
    bool grows = false;
  };
  std::map<std::pair<uint32_t, uint32_t>, Repeats> repeats_;
  bool has_failed_ = false;
};

}  // namespace halyard::analysis
