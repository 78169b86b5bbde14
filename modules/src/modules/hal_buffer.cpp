// hal.buffer.*. Specified by hal-module.md, "Buffer".
#include "modules/hal_functions.h"

namespace halyard::modules::hal_functions {

namespace {
constexpr uint32_t kMaxScalar = 4;  // bytes of one load or store
}

Result<> buffer_assert(hal::Buffer& buffer, vm::Buffer& message, Object* allocator, uint64_t minimum_length,
                       uint32_t memory_types, uint32_t usage) {
  if (buffer.length() < minimum_length)
    return fail(Code::INVALID_ARGUMENT, "{}: expected a buffer of at least {} bytes, found {}", text(message),
                minimum_length, buffer.length());
  if ((buffer.memory_type() & memory_types) != memory_types)
    return fail(Code::PERMISSION_DENIED, "{}: expected a buffer with memory of type {}, found {}",
                text(message), hal::memory_type_text(memory_types),
                hal::memory_type_text(buffer.memory_type()));
  if ((buffer.usage() & usage) != usage)
    return fail(Code::PERMISSION_DENIED, "{}: expected a buffer with usage {}, found {}", text(message),
                hal::usage_text(usage), hal::usage_text(buffer.usage()));
  if (!allocator) return fail(Code::INVALID_ARGUMENT, "expected a hal.allocator, found null");
  if (!cast<hal::Allocator>(allocator))
    return fail(Code::INVALID_ARGUMENT, "expected a hal.allocator, found {}", allocator->type()->name);
  return {};
}

Result<> buffer_preserve(hal::Buffer& buffer) {
  buffer.allocation().owners.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<int32_t> buffer_discard(hal::Buffer& buffer) {
  return buffer.allocation().owners.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

Result<int32_t> buffer_is_terminal(hal::Buffer& buffer) {
  return buffer.allocation().owners.load(std::memory_order_acquire) == 1;
}

Result<Ref<hal::Buffer>> buffer_subspan(HalOptions& state, hal::Buffer& buffer, uint64_t offset,
                                        uint64_t length) {
  return buffer.subspan(offset, length, state.memory.get());
}

Result<uint64_t> buffer_length(hal::Buffer& buffer) { return buffer.length(); }

Result<uint32_t> buffer_load(hal::Buffer& buffer, uint64_t offset, uint32_t length) {
  if (length > kMaxScalar)
    return fail(Code::INVALID_ARGUMENT, "buffer.load of {} bytes; expected at most {}", length, kMaxScalar);
  uint32_t value = 0;
  HALYARD_TRY(buffer.read(offset, &value, length));
  return value;
}

Result<> buffer_store(uint32_t value, hal::Buffer& buffer, uint64_t offset, uint32_t length) {
  if (length > kMaxScalar)
    return fail(Code::INVALID_ARGUMENT, "buffer.store of {} bytes; expected at most {}", length, kMaxScalar);
  return buffer.write(offset, &value, length);
}

}  // namespace halyard::modules::hal_functions
