// Decides when a function is compiled, and where frames switch to the compiled version (on-stack
// replacement). All versions of a function share one frame layout; a switch only stores the constants that
// fused code has folded.
#include "vm/run/sampling.h"

#include <algorithm>
#include <memory>

#include "vm/compile/code_store.h"
#include "vm/run/module_instance.h"
#include "vm/run/stack.h"

namespace halyard::vm {

namespace {

// The number of consecutive branches that the search for the head of an outermost loop examines before it
// pauses.
constexpr uint32_t kSearch = 512;

// Binds the call site of this frame to `code`. Earlier bindings stay alive, because other threads may use
// them.
void bind_again(const Frame& frame, const FunctionCode& code) {
  if (!frame.call || frame.call->op != static_cast<uint16_t>(Op::call)) return;
  const CallSite& site = call_site(frame.call);
  const Binding* earlier = std::atomic_ref(site.binding).load(std::memory_order_acquire);
  if (!earlier || earlier->callee == &code) return;
  auto binding = std::make_unique<Binding>(*earlier);
  binding->callee = &code;
  binding->entry = code.words.data();
  binding->earlier = earlier;
  if (!std::atomic_ref(site.binding)
           .compare_exchange_strong(earlier, binding.get(), std::memory_order_acq_rel))
    return;
  std::atomic_ref(*reinterpret_cast<uint64_t*>(site.bound))
      .store(reinterpret_cast<uintptr_t>(binding.release()), std::memory_order_release);
}

// The entry of `loops` for the loop that begins at `ip` of `code`; null if no loop begins there.
const Word* same_head(const FunctionCode& code, const Word* ip, const FunctionCode& loops) {
  const auto word = static_cast<uint32_t>(ip - code.words.data());
  const auto from = std::ranges::find(code.tier->heads, word, &LoopHead::word);
  if (from == code.tier->heads.end()) return nullptr;
  const auto to = std::ranges::find(loops.tier->heads, from->pc, &LoopHead::pc);
  if (to == loops.tier->heads.end()) return nullptr;
  const Word* const entry = &loops.words[to->word];
  return entry->op == static_cast<uint16_t>(DecodedOp::enter_compiled) ? entry : nullptr;
}

const Word* move_over(Stack& stack, const FunctionCode& to, const Word* word) {
  stack.top->code = &to;
  return word;
}

// Counts a sample of a function that is not compiled. Returns whether to compile the function now. After
// Sampling::hot samples, only every 64th sample reads the clock.
bool gets_hot(Heat& heat, const Sampling& sampling) {
  constexpr uint32_t kBetweenLooks = 64;
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
  const uint32_t samples = heat.samples.fetch_add(1, std::memory_order_relaxed) + 1;
  if (samples == 1) heat.first_sample.store(now().count(), std::memory_order_relaxed);
  if (samples < sampling.hot || (samples - sampling.hot) % kBetweenLooks != 0 ||
      heat.asked_for.load(std::memory_order_relaxed))
    return false;
  const std::chrono::steady_clock::duration first(heat.first_sample.load(std::memory_order_relaxed));
  return now() - first >= sampling.age && !heat.asked_for.exchange(true, std::memory_order_relaxed);
}

}  // namespace

const Sampling& sampling_of(const Frame& frame) {
  static constexpr Sampling kNoQueue;
  return frame.instance && frame.instance->store ? frame.instance->store->sampling() : kNoQueue;
}

// Sampling::hot samples take 12 ms in the tightest loop and 80 ms in larger ones. Loading LLVM and compiling
// a function take 22 to 60 ms. On a busy machine, a program that ends during a compilation ends up to 5 ms
// later, because the compile thread must end too. Sampling::age avoids this delay for short programs
// (docs/jit.md).
const Word* sample(Stack& stack, const Word* ip) {
  const FunctionCode& code = *stack.top->code;
  const Sampling& sampling = sampling_of(*stack.top);
  stack.branches_until_sample = sampling.branches;
  if (!code.heat) return nullptr;
  Heat& heat = *code.heat;
  const FunctionCode* const for_calls = heat.for_calls.load(std::memory_order_acquire);
  if (for_calls) bind_again(*stack.top, *for_calls);
  const FunctionCode* const for_loops = heat.for_loops.load(std::memory_order_acquire);
  if (!for_loops) {
    const bool wanted = for_calls
                            ? heat.late_samples.fetch_add(1, std::memory_order_relaxed) + 1 == sampling.late
                            : gets_hot(heat, sampling);
    if (wanted) stack.top->instance->store->request(code.function, for_calls != nullptr);
    return nullptr;
  }
  if (const Word* const entry = same_head(code, ip, *for_loops)) {
    for (const FoldedConstant& constant : code.tier->folded)
      stack.top->values()[constant.slot] = constant.bits;
    stack.searched = 0;
    heat.moved.fetch_add(1, std::memory_order_relaxed);
    return move_over(stack, *for_loops, entry);
  }
  if (++stack.searched < kSearch) {
    stack.branches_until_sample = 1;
  } else {
    stack.searched = 0;
  }
  return nullptr;
}

}  // namespace halyard::vm
