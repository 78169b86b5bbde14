// Memory types, and the lifetime of the bytes.
#include "device_memory.h"

#include <cstring>

#include "halyard/driver/host_memory.hpp"

namespace halyard::local {

namespace {

constexpr uint32_t kAddedUsage = HALYARD_USAGE_TRANSFER | HALYARD_USAGE_MAPPING_SCOPED |
                                 HALYARD_USAGE_MAPPING_PERSISTENT | HALYARD_USAGE_MAPPING_RANDOM;
constexpr uint32_t kAddedType = HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_HOST_COHERENT;

// The type bits that this driver supports.
constexpr uint32_t kEveryType =
    HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_HOST_CACHED | HALYARD_MEMORY_DEVICE_LOCAL;

// Grants all wanted properties, because all of them are available.
uint32_t granted_type(uint32_t wanted) {
  const uint32_t bits = wanted & kEveryType;
  return (bits ? bits : uint32_t{HALYARD_MEMORY_DEVICE_LOCAL}) | kAddedType;
}

std::unexpected<Status> not_there() {
  return fail(
      Code::FAILED_PRECONDITION,
      "the memory of a queue allocation is used before its alloca has run; wait for the alloca's signal");
}

std::unexpected<Status> not_there_any_more() {
  return fail(
      Code::FAILED_PRECONDITION,
      "the memory of a queue allocation is used after its dealloca; make the dealloca wait for the last "
      "use");
}

}  // namespace

Result<> check_type(const halyard_memory_request_t& request) {
  const uint32_t unknown = request.memory_type & ~(kEveryType | HALYARD_MEMORY_OPTIMAL);
  if (unknown == 0 || (request.memory_type & HALYARD_MEMORY_OPTIMAL)) return {};
  return fail(Code::INVALID_ARGUMENT,
              "no memory has the type bits 0x{:x}; ask without, or with OPTIMAL (0x1)", unknown);
}

Memory::Memory(Heap& heap, const halyard_memory_request_t& request, bool queue_ordered)
    : heap_(heap),
      size_(request.size),
      type_(granted_type(request.memory_type)),
      usage_(request.usage | kAddedUsage),
      queue_ordered_(queue_ordered),
      owner_(kit::owner_of(request)) {}

Memory::Memory(Heap& heap, uint8_t* bytes, uint32_t access, const halyard_memory_request_t& request)
    : heap_(heap),
      imported_(bytes),
      size_(request.size),
      type_(granted_type(request.memory_type)),
      usage_(request.usage | kAddedUsage),
      access_(access),
      bytes_(bytes) {}

Memory::~Memory() {
  uint8_t* bytes = bytes_.load(std::memory_order_acquire);
  if (bytes && bytes != imported_) heap_.free(bytes, size_, host_local(), owner_);
}

bool Memory::host_local() const { return (type_ & HALYARD_MEMORY_HOST_LOCAL) == HALYARD_MEMORY_HOST_LOCAL; }

Result<halyard_external_memory_t> Memory::export_to(uint32_t kind) const {
  HALYARD_TRY(from_kit(kit::check_export(kind)));
  const uint32_t access = is_constant() ? HALYARD_MAP_READ : HALYARD_MAP_READ | HALYARD_MAP_WRITE;
  return kit::host_allocation(HALYARD_TRY(bytes()), size_, access);
}

void Memory::describe(halyard_memory_info_t& info) const {
  info.memory_type = type_;
  info.usage = usage_;
  info.size = size_;
}

Result<> Memory::commit() {
  bytes_.store(HALYARD_TRY(heap_.allocate(size_, host_local(), owner_)), std::memory_order_release);
  return {};
}

// The memory keeps its bytes, so a use that races with the dealloca at worst reads the pattern.
Result<> Memory::dealloca() {
  if (!queue_ordered_ || !heap_.validates()) return {};
  uint8_t* bytes = HALYARD_TRY(this->bytes());
  deallocated_.store(true, std::memory_order_release);
  std::memset(bytes, Heap::kFreedPattern, size_);
  return {};
}

// The failure for bytes that do not exist yet, or no longer.
Result<uint8_t*> Memory::no_bytes(const uint8_t* bytes) {
  if (!bytes) return not_there();
  return not_there_any_more();
}

Result<uint8_t*> Memory::constant_to_write() {
  uint8_t* bytes = HALYARD_TRY(this->bytes());
  const bool is_copy = bytes != imported_;
  return is_copy || (access_ & HALYARD_MAP_PRIVATE) ? bytes : copy_constant(bytes);
}

// If threads race, one thread makes the copy and all threads use it.
Result<uint8_t*> Memory::copy_constant(uint8_t* original) {
  uint8_t* const copy = HALYARD_TRY(heap_.allocate(size_, host_local(), owner_));
  if (size_ != 0) std::memcpy(copy, original, size_);
  uint8_t* current = original;
  if (bytes_.compare_exchange_strong(current, copy, std::memory_order_acq_rel)) return copy;
  heap_.free(copy, size_, host_local(), owner_);
  return current;
}

Result<std::span<uint8_t>> bytes_at(const Memory& memory, uint64_t offset, uint64_t length) {
  return std::span<uint8_t>(HALYARD_TRY(memory.bytes()) + offset, length);
}

}  // namespace halyard::local
