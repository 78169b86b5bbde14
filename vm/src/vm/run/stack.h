// The stack of an invocation: frames one after another in one block of memory that grows by moving. A frame
// is a header, its value bank and its ref bank. Pointers into it are good until the next push.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "vm/decode/code.h"
#include "vm/run/invocation.h"

namespace halyard::vm {

struct alignas(16) Frame {
  const FunctionCode* code;
  ModuleInstance* instance;
  const Word* call;       // in the frame below, that made this frame; null: made from outside
  uint32_t caller_bytes;  // of the frame below; 0: there is none

  uint32_t* values() { return reinterpret_cast<uint32_t*>(this + 1); }
  Object** refs() {
    return reinterpret_cast<Object**>(reinterpret_cast<std::byte*>(this + 1) + code->refs_offset);
  }
  Frame* caller() {
    return caller_bytes ? reinterpret_cast<Frame*>(reinterpret_cast<std::byte*>(this) - caller_bytes)
                        : nullptr;
  }
};
static_assert(sizeof(Frame) == 32);

// Bytes of a bank of `count` registers of `size` bytes.
constexpr uint32_t bank_bytes(uint32_t count, uint32_t size) { return (count * size + 15) & ~15u; }

struct Stack {
  std::byte* memory = nullptr;
  std::byte* end = nullptr;
  Frame* top = nullptr;      // null: no call is under way. While code runs the interpreter knows better
  const Word* ip = nullptr;  // where the top frame goes on
  bool resumed = false;      // that is at a native call that has deferred
  std::atomic<uint32_t> interrupted = 0;  // or the Code to stop with, from any thread
  const uint32_t* stop =
      nullptr;  // of a kernel: the word that stops the work it is part of (base/work_scope.h)
  Invocation* invocation = nullptr;
  Tracer* tracer = nullptr;  // the context's; null: none
  uint64_t trace_flow = 0;   // from where the call was suspended to where it goes on
  Limits limits;
  Charge charge;
  Status error;                    // what a failing instruction leaves
  const Export* callee = nullptr;  // the outermost function
  std::string result_types;        // of it
  std::vector<Variant> results;    // of a call that is done

  // The call of a native function from outside: its registers are in the only frame.
  const NativeExport* native = nullptr;
  FunctionCode native_code;  // what that frame is like
  std::vector<uint16_t> native_arguments;
  std::vector<uint16_t> native_results;

  Stack() = default;
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack();
  // A new frame on top, made by `call`, its refs null and its values zero where that can be seen. Null, with
  // `error` set, where the stack would pass its limit.
  Frame* push(const FunctionCode* code, ModuleInstance* instance, const Word* call);
  // Room for `bytes` above the top frame, which may move. False, with `error` set, past the limit.
  bool reserve(size_t bytes);
  // Drops the top frame and releases its refs.
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

// Makes the banks of a new frame what they are when code begins to run. Frames are small: stores in line beat
// a call of memset, which the empty asm keeps the compiler from making.
inline void clear_banks(Frame* frame, uint32_t zero_from, uint32_t frame_bytes) {
  auto* bank = reinterpret_cast<std::byte*>(frame + 1) + zero_from;
  for (std::byte* end = reinterpret_cast<std::byte*>(frame) + frame_bytes; bank != end; bank += 16) {
    std::memset(bank, 0, 16);
    asm volatile("" ::: "memory");
  }
}

}  // namespace halyard::vm
