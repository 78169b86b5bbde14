// Member offsets that compiled code needs and that offsetof cannot compute.
#pragma once

#include <cstdint>
#include <cstring>

namespace halyard::vm {

// Returns the offset at which the object stores this pointer. The object must store it.
inline uint32_t offset_of_pointer(const void* object, const void* pointer) {
  uint32_t offset = 0;
  while (std::memcmp(static_cast<const char*>(object) + offset, &pointer, sizeof pointer) != 0)
    offset += sizeof pointer;
  return offset;
}

}  // namespace halyard::vm
