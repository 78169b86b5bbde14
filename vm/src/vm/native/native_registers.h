// Writes the results of a native function to its caller's registers, according to its convention.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "base/object.h"
#include "vm/format/opcodes.h"
#include "vm/module/native_module.h"

namespace halyard::vm {

// The most values of a function of a native module.
constexpr size_t kMaxNativeArguments = 256;
constexpr size_t kMaxNativeResults = 256;

// The address of the value or object of a register, for C.
inline void* register_address(const NativeCall& call, uint16_t reg, char type) {
  return type == 'r' ? static_cast<void*>(&call.refs[reg & kRefOrdinalMask])
                     : static_cast<void*>(call.values + reg);
}

// Stores a value of this type that a C function wrote at `from`; an object is an owned reference.
inline void store_result(const NativeCall& call, uint16_t reg, char type, const void* from) {
  switch (type) {
    case 'r': {
      Object* object;
      std::memcpy(&object, from, sizeof object);
      release(std::exchange(call.refs[reg & kRefOrdinalMask], object));
      return;
    }
    case 'I':
    case 'F':
      std::memcpy(call.values + reg, from, sizeof(uint64_t));
      return;
    default:
      std::memcpy(call.values + reg, from, sizeof(uint32_t));
      return;
  }
}

}  // namespace halyard::vm
