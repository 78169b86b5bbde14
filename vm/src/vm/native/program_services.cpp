// Each service is the slow path of an instruction in the interpreter, so statuses and messages are the same.
#include "vm/native/program_services.h"

#include <pthread.h>

#include <optional>

#include "base/c_boundary.h"
#include "vm/native/frame_state.h"
#include "vm/object/value.h"
#include "vm/run/failures.h"
#include "vm/run/invocation.h"
#include "vm/run/object_ops.h"

namespace halyard::vm {

namespace {

using Call = const halyard_module_call_t*;

const NativeProgram& program_of(Call call) {
  return *static_cast<const NativeModule&>(*frame_of(*call).native->instance->module).program();
}
const Limits& limits_of(Call call) { return frame_of(*call).native->invocation->context().limits(); }

// Runs an operation that returns false and sets the status if it fails.
template <typename Body>
halyard_status_t operation(Call call, Body&& body) noexcept {
  Status error;
  try {
    if (body(ObjectOps{error, limits_of(call)})) return nullptr;
  } catch (...) {
    return caught_exception().release();
  }
  return std::move(error).release();
}
template <typename Body>
halyard_status_t made(Call call, halyard_object_t* out, Body&& body) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    Object* const object = body(ops);
    *out = to_handle(object);
    return object != nullptr;
  });
}

template <typename Make>
halyard_status_t failure(Make&& make) noexcept {
  try {
    return make().release();
  } catch (...) {
    return caught_exception().release();
  }
}

halyard_status_t fail_program(uint32_t code, const char* message) noexcept {
  return failure([&] { return program_failure(code, message ? message : ""); });
}
halyard_status_t divided_by_zero(Call) noexcept {
  return failure([] { return division_by_zero(); });
}
halyard_status_t global_outside(Call call, uint32_t offset, uint32_t size) noexcept {
  return failure([&] { return global_out_of_range(offset, size, program_of(call).global_bytes); });
}
halyard_status_t global_object_outside(Call call, uint32_t ordinal) noexcept {
  return failure([&] { return global_ref_out_of_range(ordinal, program_of(call).global_refs); });
}

// The part of a thread's stack that C functions of programs leave to the functions that they call.
constexpr uintptr_t kStackForOthers = 256 << 10;

uintptr_t stack_end() noexcept {
  thread_local uintptr_t end = 0;
  if (end != 0) return end;
  end = 1;  // unknown: no limit
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return end;
  void* lowest = nullptr;
  size_t size = 0;
  if (::pthread_attr_getstack(&attributes, &lowest, &size) == 0)
    end = reinterpret_cast<uintptr_t>(lowest) + (size > 2 * kStackForOthers ? kStackForOthers : size / 2);
  ::pthread_attr_destroy(&attributes);
  return end;
}
halyard_status_t too_deep(Call call) noexcept {
  return failure([&] { return stack_exhausted(limits_of(call).stack_bytes); });
}

ElementType type_of(Call call, uint32_t type) {
  const std::vector<ElementType>& types = program_of(call).types;
  return type < types.size() ? types[type] : ElementType();
}

halyard_status_t type_check(Call call, uint32_t type, halyard_object_t object) noexcept {
  const ObjectType* const expected = type_of(call, type).object;
  if (!object || from_handle(object)->type() == expected) [[likely]]
    return nullptr;
  return operation(call, [&](const ObjectOps& ops) { return ops.type_check(from_handle(object), expected); });
}

void buffer_span(halyard_object_t object, halyard_buffer_bytes_t* bytes) noexcept {
  *bytes = {};
  if (const Buffer* const buffer = cast<Buffer>(from_handle(object)))
    *bytes = {buffer->data(), buffer->length(), buffer->is_mutable() ? 1u : 0u, 0};
}

halyard_status_t buffer_load(Call call, halyard_object_t buffer, uint64_t offset, uint32_t width) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    static_cast<void>(ops.buffer_load_failed(from_handle(buffer), offset, width));
    return !ops.error;
  });
}
halyard_status_t buffer_store(Call call, halyard_object_t buffer, uint64_t offset, uint32_t width) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    static_cast<void>(ops.buffer_store_failed(from_handle(buffer), offset, width));
    return !ops.error;
  });
}
halyard_status_t buffer_alloc(Call call, uint64_t length, uint32_t alignment,
                              halyard_object_t* out) noexcept {
  return made(call, out, [&](const ObjectOps& ops) { return ops.buffer_alloc(length, alignment); });
}
halyard_status_t buffer_clone(Call call, halyard_object_t source, uint64_t offset, uint64_t length,
                              uint32_t alignment, halyard_object_t* out) noexcept {
  return made(call, out, [&](const ObjectOps& ops) {
    return ops.buffer_clone(from_handle(source), offset, length, alignment);
  });
}
halyard_status_t buffer_length(Call call, halyard_object_t handle, uint64_t* length) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    const Buffer* const buffer = ops.buffer(from_handle(handle));
    if (buffer) *length = buffer->length();
    return buffer != nullptr;
  });
}
halyard_status_t buffer_copy(Call call, halyard_object_t source, uint64_t source_offset,
                             halyard_object_t target, uint64_t target_offset, uint64_t length) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    return ops.buffer_copy(from_handle(source), source_offset, from_handle(target), target_offset, length);
  });
}
halyard_status_t buffer_compare(Call call, halyard_object_t lhs, uint64_t lhs_offset, halyard_object_t rhs,
                                uint64_t rhs_offset, uint64_t length, uint32_t* equal) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    return ops.buffer_compare(from_handle(lhs), lhs_offset, from_handle(rhs), rhs_offset, length, *equal);
  });
}
halyard_status_t buffer_fill(Call call, halyard_object_t handle, uint64_t offset, uint64_t length,
                             uint64_t pattern, uint32_t width) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    Object* const buffer = from_handle(handle);
    switch (width) {
      case 1:
        return ops.buffer_fill(buffer, offset, length, static_cast<uint8_t>(pattern));
      case 2:
        return ops.buffer_fill(buffer, offset, length, static_cast<uint16_t>(pattern));
      case 4:
        return ops.buffer_fill(buffer, offset, length, static_cast<uint32_t>(pattern));
      default:
        return ops.buffer_fill(buffer, offset, length, pattern);
    }
  });
}
halyard_status_t buffer_hash(Call call, halyard_object_t buffer, uint64_t offset, uint64_t length,
                             uint64_t* hash) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    return ops.buffer_hash(from_handle(buffer), offset, length, *hash);
  });
}

halyard_status_t list_alloc(Call call, uint32_t type, uint32_t capacity, halyard_object_t* out) noexcept {
  return made(call, out, [&](const ObjectOps& ops) { return ops.list_alloc(type_of(call, type), capacity); });
}
halyard_status_t list_reserve(Call call, halyard_object_t list, uint32_t capacity) noexcept {
  return operation(call, [&](const ObjectOps& ops) { return ops.list_reserve(from_handle(list), capacity); });
}
halyard_status_t list_size(Call call, halyard_object_t handle, uint32_t* size) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    const List* const list = ops.list(from_handle(handle));
    if (list) *size = list->size();
    return list != nullptr;
  });
}
halyard_status_t list_resize(Call call, halyard_object_t list, uint32_t size) noexcept {
  return operation(call, [&](const ObjectOps& ops) { return ops.list_resize(from_handle(list), size); });
}

ValueType type_of_kind(uint32_t kind) {
  switch (kind) {
    case HALYARD_VALUE_I32:
      return ValueType::i32;
    case HALYARD_VALUE_I64:
      return ValueType::i64;
    case HALYARD_VALUE_F32:
      return ValueType::f32;
    default:
      return ValueType::f64;
  }
}
halyard_status_t list_get(Call call, halyard_object_t list, uint32_t index, uint32_t kind,
                          uint64_t* bits) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    return ops.list_get(from_handle(list), index, type_of_kind(kind), program_of(call).legacy_floats, *bits);
  });
}
halyard_status_t list_set(Call call, halyard_object_t list, uint32_t index, uint32_t kind,
                          uint64_t bits) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    return ops.list_set(from_handle(list), index, type_of_kind(kind), program_of(call).legacy_floats, bits);
  });
}
halyard_status_t list_get_object(Call call, halyard_object_t list, uint32_t index, uint32_t type,
                                 uint32_t moves, halyard_object_t* out) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    Object* element = nullptr;
    if (!ops.list_get_ref(from_handle(list), index, type_of(call, type).object, moves != 0, element))
      return false;
    *out = to_handle(element);
    return true;
  });
}
halyard_status_t list_set_object(Call call, halyard_object_t list, uint32_t index,
                                 halyard_object_t object) noexcept {
  return operation(call, [&](const ObjectOps& ops) {
    return ops.list_set_ref(from_handle(list), index, from_handle(object));
  });
}

constexpr halyard_program_services_t kProgramServices = {
    .struct_size = sizeof(halyard_program_services_t),
    .reserved = 0,
    .fail = fail_program,
    .division_by_zero = divided_by_zero,
    .global_out_of_range = global_outside,
    .global_object_out_of_range = global_object_outside,
    .stack_end = stack_end,
    .too_deep = too_deep,
    .type_check = type_check,
    .buffer_span = buffer_span,
    .buffer_load = buffer_load,
    .buffer_store = buffer_store,
    .buffer_alloc = buffer_alloc,
    .buffer_clone = buffer_clone,
    .buffer_length = buffer_length,
    .buffer_copy = buffer_copy,
    .buffer_compare = buffer_compare,
    .buffer_fill = buffer_fill,
    .buffer_hash = buffer_hash,
    .list_alloc = list_alloc,
    .list_reserve = list_reserve,
    .list_size = list_size,
    .list_resize = list_resize,
    .list_get = list_get,
    .list_set = list_set,
    .list_get_object = list_get_object,
    .list_set_object = list_set_object,
};

}  // namespace

halyard_program_call_t program_call(const NativeProgram& program, const NativeCall& call) {
  // The globals are the context's, which calls change.
  auto& instance = const_cast<ModuleInstance&>(*call.instance);
  return {.struct_size = sizeof(halyard_program_call_t),
          .global_bytes = program.global_bytes,
          .services = &kProgramServices,
          .globals = instance.global_bytes.get(),
          .global_objects = reinterpret_cast<halyard_object_t*>(instance.global_refs.data()),
          .constants = reinterpret_cast<const halyard_object_t*>(program.constant_objects.data()),
          .stack_bytes = call.invocation->context().limits().stack_bytes};
}

}  // namespace halyard::vm
