// The stack of an invocation: frames one after another in one block of memory that grows by moving. A frame
// is a header, its value bank and its ref bank. Pointers into it are good until the next push.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "vm/code.h"
#include "vm/invocation.h"

namespace halyard::vm {

struct alignas(16) Frame {
  const FunctionCode* code;  // null: the call of a native function from outside
  ModuleInstance* instance;
  uint8_t* globals;       // of the instance
  const CallSite* site;   // the call that this frame is in, or was in last
  const Word* ip;         // where a suspended frame goes on
  uint32_t bytes;         // of the frame
  uint32_t caller_bytes;  // of the frame below; 0: there is none
  uint32_t values_bytes;  // of the value bank, a multiple of 16
  bool resumed;           // ip is at a native call that has deferred

  uint32_t* values() { return reinterpret_cast<uint32_t*>(this + 1); }
  Object** refs() {
    return reinterpret_cast<Object**>(reinterpret_cast<std::byte*>(this + 1) + values_bytes);
  }
  uint32_t ref_count() const {
    return static_cast<uint32_t>((bytes - sizeof(Frame) - values_bytes) / sizeof(Object*));
  }
  Frame* caller() {
    return caller_bytes ? reinterpret_cast<Frame*>(reinterpret_cast<std::byte*>(this) - caller_bytes)
                        : nullptr;
  }
};
static_assert(sizeof(Frame) == 64);

// Bytes of a bank of `count` registers of `size` bytes.
constexpr uint32_t bank_bytes(uint32_t count, uint32_t size) { return (count * size + 15) & ~15u; }

struct Stack {
  std::byte* memory = nullptr;
  size_t capacity = 0;
  Frame* top = nullptr;  // null: no call is under way
  Invocation* invocation = nullptr;
  Limits limits;
  Status error;                    // what a failing instruction leaves
  const Export* callee = nullptr;  // the outermost function
  std::string result_types;        // of it
  std::vector<Variant> results;    // of a call that is done

  // The call of a native function from outside: its registers are in the only frame.
  NativeFunction native = nullptr;
  std::vector<uint16_t> native_arguments;
  std::vector<uint16_t> native_results;

  Stack() = default;
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack();
  // A new frame on top, its banks zero. Null, with `error` set, where the stack would pass its limit.
  Frame* push(const FunctionCode* code, ModuleInstance* instance, uint32_t values_bytes, uint32_t bytes) {
    const size_t used =
        top ? static_cast<size_t>(reinterpret_cast<std::byte*>(top) - memory) + top->bytes : 0;
    if (capacity - used < bytes && !grow(used + bytes)) [[unlikely]]
      return nullptr;
    const uint32_t caller_bytes = top ? top->bytes : 0;
    top = reinterpret_cast<Frame*>(memory + used);
    *top = Frame{.code = code,
                 .instance = instance,
                 .globals = instance->global_bytes.get(),
                 .site = nullptr,
                 .ip = nullptr,
                 .bytes = bytes,
                 .caller_bytes = caller_bytes,
                 .values_bytes = values_bytes,
                 .resumed = false};
    // Frames are small: stores in line beat a call of memset, which the empty asm keeps the compiler from
    // making.
    auto* bank = reinterpret_cast<std::byte*>(top + 1);
    for (std::byte* end = memory + used + bytes; bank != end; bank += 16) {
      std::memset(bank, 0, 16);
      asm volatile("" ::: "memory");
    }
    return top;
  }
  // Drops the top frame and releases its refs.
  void pop() {
    Frame* frame = top;
    Object** refs = frame->refs();
    for (uint32_t i = 0, count = frame->ref_count(); i < count; ++i) release(refs[i]);
    top = frame->caller();
  }
  void unwind() {
    while (top) pop();
  }

 private:
  bool grow(size_t need);
};

}  // namespace halyard::vm
