// Of the kit (halyard/driver.hpp): host memory that devices access by its address.
#ifndef HALYARD_DRIVER_HOST_MEMORY_HPP_
#define HALYARD_DRIVER_HOST_MEMORY_HPP_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "halyard/driver/failure.hpp"

namespace halyard::kit {

// The request's owner; 0 (shares memory with no request) if the host predates the field.
inline uint64_t owner_of(const halyard_memory_request_t& request) {
  constexpr size_t kEnd = offsetof(halyard_memory_request_t, owner) + sizeof request.owner;
  return request.struct_size >= kEnd ? request.owner : 0;
}

// The bytes of a host allocation that is imported. UNIMPLEMENTED: external memory of another kind.
// INVALID_ARGUMENT: smaller than the request. OUT_OF_RANGE: not aligned to `alignment` bytes.
inline Result<uint8_t*> host_bytes(const halyard_memory_request_t& request,
                                   const halyard_external_memory_t& external, uint64_t alignment) {
  if (external.kind != HALYARD_EXTERNAL_HOST_ALLOCATION)
    return Failure{HALYARD_UNIMPLEMENTED, "cannot import external memory of kind " +
                                              std::to_string(external.kind) +
                                              "; this device imports host allocations (" +
                                              std::to_string(HALYARD_EXTERNAL_HOST_ALLOCATION) + ")"};
  char address[2 * sizeof(void*) + 3];
  std::snprintf(address, sizeof address, "%p", external.pointer);
  if (!external.pointer || request.size > external.size)
    return Failure{HALYARD_INVALID_ARGUMENT, "cannot import " + std::to_string(request.size) +
                                                 " bytes from the " + std::to_string(external.size) +
                                                 " bytes of host memory at " + address};
  if (reinterpret_cast<uintptr_t>(external.pointer) % alignment != 0)
    return Failure{HALYARD_OUT_OF_RANGE, std::string("cannot import host memory at ") + address +
                                             "; expected a multiple of " + std::to_string(alignment) +
                                             " bytes"};
  return static_cast<uint8_t*>(external.pointer);
}

// UNIMPLEMENTED: memory cannot be exported as this kind.
inline Result<> check_export(uint32_t kind) {
  if (kind == HALYARD_EXTERNAL_HOST_ALLOCATION) return {};
  return Failure{HALYARD_UNIMPLEMENTED, "cannot export memory as external kind " + std::to_string(kind) +
                                            "; this device exports host allocations (" +
                                            std::to_string(HALYARD_EXTERNAL_HOST_ALLOCATION) + ")"};
}

// The description of memory that the host can access at `bytes`. `access`: HALYARD_MAP_*.
inline halyard_external_memory_t host_allocation(uint8_t* bytes, uint64_t size, uint32_t access) {
  halyard_external_memory_t external = {};
  external.kind = HALYARD_EXTERNAL_HOST_ALLOCATION;
  external.pointer = bytes;
  external.fd = -1;
  external.access = access;
  external.size = size;
  return external;
}

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_HOST_MEMORY_HPP_
