// The `hal_inline` module and its functions.
#include "modules/hal_inline_module.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include "base/cpu_features.h"
#include "hal/device/external_memory.h"
#include "hal/device/host_memory.h"
#include "modules/caller_makes.h"
#include "modules/hal_inline_functions.h"

namespace halyard::modules {

namespace hal_inline_functions {

namespace {

// The buffer properties that programs with `hal` require, so that buffers can be passed to them.
constexpr uint32_t kMemoryType = HALYARD_MEMORY_DEVICE_LOCAL | HALYARD_MEMORY_HOST_VISIBLE;
constexpr uint32_t kUsage = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED |
                            HALYARD_USAGE_MAPPING_PERSISTENT | HALYARD_USAGE_MAPPING_RANDOM;
constexpr uint32_t kMaxAlignment = 1u << 16;  // bytes

// The storage retains the memory, independently of the buffer.
Result<Ref<vm::Buffer>> storage_of(HalInlineState& state, hal::Buffer& buffer, std::span<uint8_t> bytes) {
  Ref<hal::Allocation> kept = Ref<hal::Allocation>::share(&buffer.allocation());
  hal::Allocation* const allocation = kept.get();
  Result<Ref<vm::Buffer>> storage =
      vm::Buffer::wrap(bytes, (allocation->access & hal::kWrite) != 0, buffer.device().nodes(),
                       state.options.memory.get(), [allocation] {
                         allocation->unmap();
                         allocation->release();
                       });
  if (storage) {
    (void)kept.detach();  // the storage now owns the reference
  } else {
    allocation->unmap();
  }
  return storage;
}

}  // namespace

Result<BufferAndStorage> buffer_allocate(HalInlineState& state, vm::CallContext& call,
                                         uint32_t minimum_alignment, uint64_t size) {
  const CallerMakes caller(*state.host, call);
  const uint64_t given = state.host->properties().memory_alignment;
  if (minimum_alignment != 0 && !std::has_single_bit(minimum_alignment))
    return fail(Code::INVALID_ARGUMENT,
                "expected an alignment of 0 or a power of two for buffer.allocate, found {} bytes",
                minimum_alignment);
  if (minimum_alignment > kMaxAlignment)
    return fail(Code::RESOURCE_EXHAUSTED,
                "expected an alignment of at most {} bytes for buffer.allocate, found {}", kMaxAlignment,
                minimum_alignment);
  // If the alignment exceeds that of the memory, allocates a larger block and uses an offset.
  const uint64_t slack = minimum_alignment > given ? minimum_alignment - given : 0;
  if (size > UINT64_MAX - slack)
    return fail(Code::RESOURCE_EXHAUSTED, "a buffer of {} bytes aligned to {} is too large", size,
                minimum_alignment);
  Budget* const memory = state.options.memory.get();
  Ref<hal::Buffer> buffer = HALYARD_TRY(hal::Buffer::allocate(
      *state.host, hal::kAnyQueue, kMemoryType, kUsage, size + slack, memory, state.options.owner));
  std::span<uint8_t> bytes = HALYARD_TRY(buffer->map());
  Ref<vm::Buffer> storage = HALYARD_TRY(storage_of(state, *buffer, bytes));
  if (slack != 0) {
    const uintptr_t misfit = reinterpret_cast<uintptr_t>(bytes.data()) & (minimum_alignment - 1);
    const uint64_t begin = misfit ? minimum_alignment - misfit : 0;
    buffer = HALYARD_TRY(buffer->subspan(begin, size, memory));
    storage->rebind(bytes.subspan(begin, size), true);
  }
  return BufferAndStorage(std::move(buffer), std::move(storage));
}

Result<BufferAndStorage> buffer_allocate_initialized(HalInlineState& state, vm::CallContext& call,
                                                     uint32_t minimum_alignment, vm::Buffer& source,
                                                     uint64_t offset, uint64_t length) {
  const std::span<const uint8_t> bytes = HALYARD_TRY(hal_functions::host_range(source, offset, length));
  BufferAndStorage made = HALYARD_TRY(buffer_allocate(state, call, minimum_alignment, length));
  if (length != 0) std::memcpy(std::get<1>(made)->data(), bytes.data(), length);
  return made;
}

Result<Ref<hal::Buffer>> buffer_wrap(HalInlineState& state, vm::Buffer& source, uint64_t offset,
                                     uint64_t length) {
  const std::span<uint8_t> bytes = HALYARD_TRY(hal_functions::host_range(source, offset, length));
  static constexpr uint8_t kNothing = 0;  // its address serves empty ranges
  auto* const data = bytes.empty() ? const_cast<uint8_t*>(&kNothing) : bytes.data();
  return hal::import_host(*state.host, hal::kAnyQueue, kMemoryType, kUsage,
                          source.is_mutable() ? hal::kAccessAll : hal::kRead, data, length,
                          Ref<Object>::share(&source), state.options.memory.get());
}

Result<Ref<hal::Buffer>> buffer_subspan(HalInlineState& state, hal::Buffer& buffer, uint64_t offset,
                                        uint64_t length) {
  return buffer.subspan(offset, length, state.options.memory.get());
}

Result<Ref<vm::Buffer>> buffer_storage(HalInlineState& state, hal::Buffer& buffer) {
  return storage_of(state, buffer, HALYARD_TRY(buffer.map()));
}

Result<Ref<hal::BufferView>> buffer_view_create(HalInlineState& state, hal::Buffer& buffer, uint64_t offset,
                                                uint64_t length, uint32_t element_type, uint32_t encoding,
                                                Span<int64_t> shape) {
  return hal_functions::create_view(buffer, offset, length, element_type, encoding, shape,
                                    state.options.memory.get());
}

Result<> buffer_view_trace(HalInlineState& state, Object* key, Span<Object*> views) {
  return hal_functions::trace_views(state.options.trace, key, views);
}

Result<std::tuple<int32_t, int64_t>> device_query_i64(vm::Buffer& category, vm::Buffer& key) {
  std::optional<bool> answer;
  if (hal_functions::text(category) == "hal.cpu") answer = cpu_feature(hal_functions::text(key));
  return std::tuple<int32_t, int64_t>(answer.has_value(), answer.value_or(false));
}

}  // namespace hal_inline_functions

namespace {

constexpr TableFunction kInlineFunctions[] = {
#define HAL_FUNCTION(name, convention, since, until, handler) \
  table_function<&hal_inline_functions::handler, kHalInlineVersion>(name, convention, since, until),
#include "modules/hal_inline_functions.inc"
#undef HAL_FUNCTION
};

}  // namespace

std::span<const TableFunction> hal_inline_signatures() { return kInlineFunctions; }

Ref<vm::NativeModule> create_hal_inline_module(HalInlineOptions options) {
  vm::NativeModule::Definition definition;
  definition.name = "hal_inline";
  definition.version = kHalInlineVersion;
  definition.exports = exports_of(kInlineFunctions);
  definition.create_state = [options = std::move(options)]() -> Result<vm::NativeState> {
    auto state = std::make_unique<HalInlineState>(options, HALYARD_TRY(hal::open_host_memory()));
    return vm::NativeState{state.release(), [](void* kept) { delete static_cast<HalInlineState*>(kept); }};
  };
  return vm::NativeModule::create(std::move(definition));
}

}  // namespace halyard::modules
