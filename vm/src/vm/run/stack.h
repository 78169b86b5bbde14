// The stack of an invocation: frames (vm/decode/frame.h) in one block of memory, which moves when it grows.
// Pointers into the stack are valid until the next push.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/tracer.h"
#include "vm/compile/heat.h"
#include "vm/decode/frame.h"
#include "vm/module/native_module.h"
#include "vm/object/variant.h"
#include "vm/run/limits.h"
#include "vm/run/module_instance.h"

namespace halyard::vm {

class Invocation;
enum class CallOutcome : uint8_t;
struct Stack;
CallOutcome interpret(Stack& stack);

// The first cache line has what the interpreter reads at every branch.
struct alignas(64) Stack {
  std::byte* memory = nullptr;
  std::byte* end = nullptr;
  Frame* top = nullptr;      // null: no call. While code runs, only the interpreter has the current value
  const Word* ip = nullptr;  // where the top frame continues
  bool resumed = false;      // `ip` is at a native call that has deferred
  std::atomic<uint32_t> interrupted = 0;  // 0, or the Code of an interruption; set by any thread
  uint32_t branches_until_sample = Sampling{}.branches;
  // The word that stops execution: `interrupted`, or for kernels the stop word of their work
  // (base/work_scope.h).
  const uint32_t* stop = own_stop();
  // The plain form of the interpreter: interpret_kernel() if `stop` is another word than `interrupted`.
  CallOutcome (*run_plain)(Stack&) = interpret;
  const halyard_jit_sharing_t* sharing = nullptr;  // of compiled loops; null: they run on this thread alone
  SpareBlocks* spare_blocks = nullptr;             // of the context; null: none
  Invocation* invocation = nullptr;
  uint32_t searched = 0;       // branches since the search for a loop's head began
  uint64_t checked_loops = 0;  // loop nests of compiled code that ran with all checks (decode/jit_abi.h)
  Tracer* tracer = nullptr;    // the context's; null: none
  uint64_t trace_flow = 0;     // the trace flow from the suspension of the call to its continuation
  Limits limits;
  Charge charge;
  Status error;                    // the failure of an instruction
  const Export* callee = nullptr;  // the outermost function
  std::string result_types;        // of `callee`
  std::vector<Variant> results;    // of a finished call

  // A native function called from outside; its registers are in the only frame.
  const NativeExport* native = nullptr;
  FunctionCode native_code;  // the layout of that frame
  std::vector<uint16_t> native_arguments;
  std::vector<uint16_t> native_results;

  Stack() = default;
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack();
  const uint32_t* own_stop() const { return reinterpret_cast<const uint32_t*>(&interrupted); }
  // Pushes a frame for `call`, with null refs; values are zero as far as code can observe. Returns null and
  // sets `error` if the stack limit is exceeded.
  Frame* push(const FunctionCode* code, ModuleInstance* instance, const Word* call);
  // Reserves `bytes` above the top frame, which may move. Returns false and sets `error` if the limit is
  // exceeded.
  bool reserve(size_t bytes);
  // Pops the top frame and releases its refs.
  void pop() {
    Frame* frame = top;
    Object** refs = frame->refs();
    for (uint32_t i = 0, count = frame->code->ref_slots; i < count; ++i) release(refs[i]);
    top = frame->caller();
  }
  void unwind() {
    while (top) pop();
  }
};

// Whether the call was interrupted, or the other work whose word is `stop` must stop.
inline bool must_stop(const Stack& stack) {
  return stack.interrupted.load(std::memory_order_relaxed) != 0 ||
         __atomic_load_n(stack.stop, __ATOMIC_RELAXED) != 0;
}

// Initializes the banks of a new frame. Frames are small, so inline stores are faster than memset; the empty
// asm keeps the compiler from calling memset.
inline void clear_banks(Frame* frame, uint32_t zero_from, uint32_t frame_bytes) {
  auto* bank = reinterpret_cast<std::byte*>(frame + 1) + zero_from;
  for (std::byte* end = reinterpret_cast<std::byte*>(frame) + frame_bytes; bank != end; bank += 16) {
    std::memset(bank, 0, 16);
    asm volatile("" ::: "memory");
  }
}

}  // namespace halyard::vm
