// UncheckedLoops: the loops that are written twice. Before such a loop, a guard compares the greatest index
// of each access with the length of its buffer or list; if all are within, the copy runs, whose accesses have
// no checks. Else the loop with all checks runs, and fails where the interpreter does. A guard is before the
// outermost loop for which it can be computed, as that of the compiler at run time is.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "aot/loop_ranges.h"
#include "aot/loops.h"
#include "aot/plan.h"
#include "aot/variables.h"

namespace halyard::aot {

// An access to an element of a list of packed values, without checks.
struct ListAccess {
  const char* type;  // VM_*
  const char* text;  // as in forms.inc; $p0 is where the values of the list in operand 0 are
};
// Null for other instructions.
const ListAccess* list_access(vm::Op op);

class UncheckedLoops {
 public:
  struct Copy {
    size_t loop = 0;
    size_t parent = 0;                    // the copy from which it is entered
    std::set<size_t> steps;               // without checks
    std::vector<std::string> statements;  // of the guard
    std::vector<std::string> conditions;
    std::set<uint16_t> lists;  // the refs whose values the guard looks up
  };

  UncheckedLoops(const Plan& plan, const vm::Function& function, const vm::Flow& flow,
                 const Variables& variables, const LoopRanges::Read& read);

  // The first one is the function itself.
  const std::vector<Copy>& copies() const { return copies_; }
  bool contains(size_t copy, size_t block) const {
    if (copy == 0) return true;
    const std::vector<bool>& blocks = loops_.all()[copies_[copy].loop].blocks;
    return block < blocks.size() && blocks[block];
  }
  bool is_checked(size_t copy, size_t step) const { return !copies_[copy].steps.contains(step); }
  size_t header(size_t copy) const { return loops_.all()[copies_[copy].loop].header; }
  // The copy whose guard is before the block in `copy`.
  std::optional<size_t> guarded(size_t copy, size_t block) const;
  // The label of a block, and that to which a block in `copy` branches.
  static std::string label(size_t copy, size_t block);
  static std::string guard_label(size_t copy, size_t block);
  std::string target(size_t copy, size_t from, size_t to) const;

 private:
  struct Effects {
    size_t steps = 0;
    bool calls = false;       // or waits
    bool resizes = false;     // a list
    std::set<uint16_t> refs;  // that change
  };

  Effects effects_of(const Loop& loop) const;
  void plan(size_t copy, const std::vector<size_t>& loops);
  bool guard(size_t copy, size_t loop, const Effects& effects);
  std::vector<size_t> inner(size_t loop, bool innermost_only) const;

  const Plan& plan_;
  const vm::Function& function_;
  const vm::Flow& flow_;
  const Variables& variables_;
  LoopRanges::Read read_;
  Loops loops_;
  std::vector<Copy> copies_;
  size_t copied_ = 0;  // steps
};

}  // namespace halyard::aot
