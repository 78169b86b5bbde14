// Offsets that compiled code needs and that C++ does not tell.
#pragma once

#include <cstdint>
#include <cstring>

namespace halyard::vm {

// Where the object keeps this pointer, which it must.
inline uint32_t offset_of_pointer(const void* object, const void* pointer) {
  uint32_t offset = 0;
  while (std::memcmp(static_cast<const char*>(object) + offset, &pointer, sizeof pointer) != 0)
    offset += sizeof pointer;
  return offset;
}

}  // namespace halyard::vm
