// The state of an analysed program that calls of imports see: symbols, the timeline, what was found so far.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "analysis/analysis.h"
#include "analysis/call.h"
#include "analysis/kernels.h"
#include "analysis/timeline.h"

namespace halyard::analysis {

struct Program {
  const vm::ModuleView& view;
  Analysis& analysis;
  Kernels& kernels;
  std::shared_ptr<Timeline> timeline;
  uint32_t submissions = 0;
  std::set<std::string> notes;  // of the function
  std::vector<std::weak_ptr<ListObject>> lists;

  Symbols& symbols() const { return analysis.symbols; }
  const vm::BytecodeModule& module() const { return view.module(); }
  // "prefill+0000001A", for origins of values.
  std::string where(const Place& place) const;
  std::string_view constant_text(const Ref& bytes) const;  // of a constant; empty: unknown

  std::shared_ptr<BufferObject> allocate(Allocation allocation);
  // Empties all lists, because lists may contain each other.
  void break_circles();
};

// The effect of a call. False: the import is not known.
bool call_hal(Program& program, Call& call);
bool call_queue(Program& program, Call& call);
bool call_commands(Program& program, Call& call);
bool call_inline(Program& program, Call& call);
bool call_parameters(Program& program, Call& call);

// A function's effect by the name of its import, for the tables of those files.
struct Effect {
  std::string_view name;
  void (*apply)(Program& program, Call& call);
};
bool apply_effect(std::span<const Effect> effects, Program& program, Call& call);

// The target for binding `index` of `count`: how the kernel uses it. Without facts about the kernel (null, or
// of an unknown format) the last binding is assumed to be its result.
Target binding_of(const Kernel* kernel, size_t index, size_t count);
// Adds the targets to the uses of the step.
void add_uses(Program& program, Step& step, std::span<const Target> targets);

}  // namespace halyard::analysis
