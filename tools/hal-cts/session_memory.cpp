// Memory of a session: allocates it, and accesses its bytes wherever they are.
#include <algorithm>
#include <cstring>

#include "session.h"

namespace halyard::cts {

halyard_memory_request_t Session::request(uint64_t size, uint32_t type) const {
  return {.struct_size = sizeof(halyard_memory_request_t),
          .memory_type = type,
          .usage = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_INDIRECT_PARAMETERS | HALYARD_USAGE_MAPPING_SCOPED,
          .affinity = all_queues(),
          .size = size};
}

halyard_memory_statistics_t Session::memory_statistics() {
  if (!table_.device_memory_statistics) unsupported("device_memory_statistics is null");
  halyard_memory_statistics_t statistics = {.struct_size = sizeof statistics};
  must("device_memory_statistics", "device_memory_statistics",
       take(table_.device_memory_statistics(device_, &statistics)));
  return statistics;
}

Outcome Session::try_allocate(const halyard_memory_request_t& request, Memory* memory) {
  halyard_memory_request_t borrowed = request;
  halyard_memory_info_t info = {.struct_size = sizeof info};
  Outcome outcome = take(table_.memory_allocate(device_, &borrowed, &memory->handle, &info));
  std::memset(static_cast<void*>(&borrowed), 0xDD, sizeof borrowed);
  if (!outcome.ok()) return outcome;
  memory->type = info.memory_type;
  memory->size = request.size;
  const std::lock_guard lock(mutex_);
  memories_.push_back(*memory);
  return outcome;
}

Memory Session::allocate(uint64_t size, uint32_t type) {
  if (!table_.memory_map || !table_.memory_unmap)
    unsupported("memory_map or memory_unmap is null: the host sees no memory of this device");
  Memory memory;
  must("memory_allocate", fmt::format("memory_allocate of {} bytes of type 0x{:x}", size, type),
       try_allocate(request(size, type), &memory));
  if (!memory.handle)
    stop("memory_allocate", "the memory after memory_allocate succeeded", "a handle", "null");
  return memory;
}

Memory Session::allocate(const std::vector<uint8_t>& contents, uint32_t type) {
  const Memory memory = allocate(contents.size(), type);
  write(memory, 0, contents);
  return memory;
}

void Session::forget(const Memory& memory) {
  const std::lock_guard lock(mutex_);
  std::erase_if(memories_, [&](const Memory& it) { return it.handle == memory.handle; });
}

void Session::free(const Memory& memory) {
  forget(memory);
  table_.memory_free(device_, memory.handle);
}

Outcome Session::map(const Memory& memory, uint32_t access, uint64_t offset, uint64_t length,
                     void** pointer) {
  return take(table_.memory_map(device_, memory.handle, access, offset, length, pointer));
}

void Session::unmap(const Memory& memory) { table_.memory_unmap(device_, memory.handle); }

void Session::write(const Memory& memory, uint64_t offset, std::span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  if (!memory.visible()) {
    const Memory staging = allocate({bytes.begin(), bytes.end()}, kStaging);
    must_execute(
        Recording().copy(range(staging.handle, 0, bytes.size()), range(memory.handle, offset, bytes.size())));
    return free(staging);
  }
  void* pointer = nullptr;
  must("memory_map", fmt::format("memory_map of {} bytes to write", bytes.size()),
       map(memory, HALYARD_MAP_WRITE, offset, bytes.size(), &pointer));
  std::memcpy(pointer, bytes.data(), bytes.size());
  if (!memory.coherent()) {
    if (!table_.memory_flush)
      stop("R72", "memory_flush of a driver with memory that is not coherent", "there", "null");
    must("memory_flush", "memory_flush",
         take(table_.memory_flush(device_, memory.handle, offset, bytes.size())));
  }
  unmap(memory);
}

std::vector<uint8_t> Session::read(const Memory& memory, uint64_t offset, uint64_t length) {
  std::vector<uint8_t> bytes(length);
  if (bytes.empty()) return bytes;
  if (!memory.visible()) {
    const Memory staging = allocate(length, kStaging);
    must_execute(Recording().copy(range(memory.handle, offset, length), range(staging.handle, 0, length)));
    bytes = read(staging, 0, length);
    free(staging);
    return bytes;
  }
  void* pointer = nullptr;
  must("memory_map", fmt::format("memory_map of {} bytes to read", length),
       map(memory, HALYARD_MAP_READ, offset, length, &pointer));
  if (!memory.coherent()) {
    if (!table_.memory_invalidate)
      stop("R72", "memory_invalidate of a driver with memory that is not coherent", "there", "null");
    must("memory_invalidate", "memory_invalidate",
         take(table_.memory_invalidate(device_, memory.handle, offset, length)));
  }
  std::memcpy(bytes.data(), pointer, length);
  unmap(memory);
  return bytes;
}

Memory Session::alloca_(uint64_t size, const Points& waits, const Points& signals, Work** work) {
  Memory memory;
  memory.size = size;
  halyard_memory_info_t info = {.struct_size = sizeof info};
  halyard_operation_t operation = cts::operation(HALYARD_OPERATION_ALLOCA);
  halyard_memory_request_t wanted = request(size);
  operation.alloca_ = {&wanted, &memory.handle, &info};
  Work& submitted = submit(operation, waits, signals);
  std::memset(static_cast<void*>(&wanted), 0xDD, sizeof wanted);
  if (work) *work = &submitted;
  if (!memory.handle) stop("R73", "alloca's handle when queue_submit has returned", "there", "null");
  check("R70", info.size >= size, "alloca's size when queue_submit has returned",
        fmt::format("at least {}", size), fmt::format("{}", info.size));
  memory.type = info.memory_type;
  const std::lock_guard lock(mutex_);
  memories_.push_back(memory);
  return memory;
}

}  // namespace halyard::cts
