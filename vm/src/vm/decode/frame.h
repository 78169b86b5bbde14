// Frame: the registers of one activation of a function, as decoded and compiled code address them: a header,
// a value bank and a ref bank.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/object.h"
#include "vm/decode/code.h"

namespace halyard::vm {

struct ModuleInstance;

struct alignas(16) Frame {
  const FunctionCode* code;
  ModuleInstance* instance;
  const Word* call;       // the calling instruction, in the frame below; null: called from outside
  uint32_t caller_bytes;  // size of the frame below; 0: none

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

// The size of a bank of `count` registers of `size` bytes.
constexpr uint32_t bank_bytes(uint32_t count, uint32_t size) { return (count * size + 15) & ~15u; }

}  // namespace halyard::vm
