// Invocation: one activity of a context, with a stack of its own. Reusable: a warm one allocates nothing. One
// thread at a time. Specified by verifier-and-execution.md, sections 4 to 7, and calling-convention.md,
// sections 3 and 7.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "vm/context.h"
#include "vm/variant.h"

namespace halyard::vm {

struct Stack;  // vm/stack.h

enum class Outcome : uint8_t { done, suspended };

class Invocation {
 public:
  explicit Invocation(Ref<Context> context);
  ~Invocation();
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;

  // Calls to the end: a yield without a wait continues at once. Arguments are borrowed and coerced as the
  // convention says; `results` has exactly as many elements as the convention and is written only on success.
  // INVALID_ARGUMENT for wrong counts ("expected N arguments but passed M").
  Result<> call(const Callable& callee, std::span<const Variant> arguments, std::span<Variant> results);

  // The same in steps. After `suspended`, resume() on any thread continues; results are written when it is
  // done.
  Result<Outcome> begin(const Callable& callee, std::span<const Variant> arguments);
  Result<Outcome> resume();
  void take_results(std::span<Variant> results);  // after `done`
  void cancel();                                  // drops a suspended call, releasing its frames

  Context& context() const { return *context_; }

 private:
  Ref<Context> context_;
  std::unique_ptr<Stack> stack_;
};

}  // namespace halyard::vm
