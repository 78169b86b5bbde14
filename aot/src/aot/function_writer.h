// Writes one function of bytecode as a function of C: a label for each block that is a target, a variable for
// each register and type (variables.h), and a statement for each instruction (forms.inc). Host code and
// kernels are written alike.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "aot/forms.h"
#include "aot/plan.h"
#include "aot/signature.h"
#include "aot/unchecked_loops.h"
#include "aot/variables.h"
#include "vm/decode/flow.h"

namespace halyard::aot {

class FunctionWriter {
 public:
  FunctionWriter(const Plan& plan, uint32_t function, const vm::Flow& flow);

  virtual ~FunctionWriter() = default;

  // The definition. INVALID_ARGUMENT or UNIMPLEMENTED: what cannot be translated, with the place.
  Result<std::string> write();

 protected:
  using Text = std::string;

  // ---- what depends on the runtime

  // Begins and ends the function: adds to the declarations, to the first statements, and to those after the
  // label `leave`.
  virtual void write_frame(Text& declarations, Text& arrivals, Text& releases);
  virtual Text ending() const { return {}; }               // what follows the last return
  virtual bool zeroes_variables() const { return false; }  // all of them at the entry
  virtual bool leaves_once() const { return false; }       // at the label `leave`, also without refs
  virtual void write_own(Form::Own kind, size_t step);
  virtual void call(size_t step);
  virtual void resolved(size_t step);
  virtual void branch_if(std::string_view condition, size_t block);
  virtual void check(std::string_view call);  // fails with the status of the call unless it is 0
  virtual void fail_if(std::string_view condition, std::string_view failure);
  virtual void fail_now(std::string_view failure);

  // ---- what does not

  // The text of a block or of a guard, with its label.
  struct Chunk {
    Text label;
    Text text;
  };

  void find_spans();
  void write_block(size_t block);
  void write_step(size_t step);
  bool compares_itself(size_t step) const;
  void write_self_comparison(size_t step, size_t result);
  void line(std::string_view text);
  void open(std::string_view text);  // a line that opens a brace
  void close(std::string_view text = "}");
  void refuse(size_t step, std::string_view reason);

  // Instructions without a text (Form::Own).
  void jump(size_t step);
  void choose(size_t step);
  void jump_by_table(size_t step);
  void leave(size_t step);
  void fail(size_t step);
  void pick(size_t step);
  void pick_ref(size_t step);
  void discard(size_t step);

  // Operands.
  Text read(const Variable& variable, vm::Bank bank);
  void assign(const Variable& variable, vm::Bank bank, const Text& expression);
  Text ref(uint16_t reg);
  Text owned_ref(uint16_t reg, bool take);  // for a place that owns it: moved, or shared with the register
  Text operand(size_t step, size_t index);
  Text expand(size_t step, std::string_view form);
  Variable variable_of(size_t step, size_t operand);
  size_t value_index(const vm::Instruction& instruction, size_t operand) const;
  bool moves(vm::Op op, const vm::Operand& operand, uint16_t reg) const;
  bool is_dead(size_t step) const;

  // Control.
  void go(size_t block, size_t edge);
  void write_moves(size_t block, size_t edge);
  void branch_to(size_t block);
  void write_guard(size_t copy);
  std::vector<Chunk> write_chunks();
  static void join(std::vector<Chunk>& chunks, std::map<Text, size_t>& branches, Text& all);
  Text leaves() const;

  // Calls.
  void write_call(size_t step, const CallOperands& operands, const Types& types, const Text& callee,
                  bool is_outside);
  void write_direct_call(size_t step, const CallOperands& operands, const Types& types);
  void write_support_call(size_t step, const CallOperands& operands, const Text& callee);
  Text span(size_t step, const CallOperands& operands, std::string_view types, uint32_t count,
            size_t& argument, size_t& value);
  void take_results(size_t step, const CallOperands& operands, std::string_view types, size_t values,
                    bool is_outside);

  const Plan& plan_;
  const vm::BytecodeModule& module_;
  const vm::Function& function_;
  const uint32_t index_;
  const vm::Flow& flow_;
  const Types types_;
  const Variables variables_;
  std::vector<uint16_t> registers_;  // of the arguments

  std::optional<UncheckedLoops> loops_;
  size_t copy_ = 0;   // of a loop, the current one
  size_t block_ = 0;  // likewise
  size_t step_ = 0;   // likewise
  bool has_refs_ = false;
  bool has_left_ = false;  // the block has compared the number of calls left
  const bool is_direct_;
  Text body_;
  int depth_ = 1;
  std::set<Text> declared_[4];  // by Variable::Type
  std::set<Text> read_;         // the variables that something reads, by name
  std::set<uint16_t> refs_;
  std::map<Text, size_t> branches_;  // to each label
  std::set<uint16_t> spans_;         // the refs whose bytes are in local variables
  std::set<uint16_t> lists_;         // the refs whose values are in local variables
  Status error_;
};

}  // namespace halyard::aot
