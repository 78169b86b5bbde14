// The services, implemented over VM objects. Object types are checked here, because the caller's code cannot
// be verified.
#include "vm/native/module_services.h"

#include <string>

#include "base/c_boundary.h"
#include "vm/native/frame_state.h"
#include "vm/native/import_call.h"
#include "vm/object/buffer.h"
#include "vm/object/list.h"
#include "vm/object/value.h"
#include "vm/run/context.h"
#include "vm/run/invocation.h"

namespace halyard::vm {

namespace {

// Returns the status of a handle; does not take ownership of the caller's reference.
template <typename Body>
auto borrowed(halyard_status_t handle, Body&& body) noexcept {
  Status status = Status::adopt(handle);
  auto answer = body(status);
  static_cast<void>(std::move(status).release());
  return answer;
}

halyard_status_t status_create(halyard_status_code_t code, const char* message) noexcept {
  return guarded(
      [&] { return to_result(Status(failure_code(static_cast<uint32_t>(code)), message ? message : "")); });
}
halyard_status_t status_retain(halyard_status_t handle) noexcept {
  return borrowed(handle, [](const Status& status) { return Status(status).release(); });
}
void status_release(halyard_status_t handle) noexcept { static_cast<void>(Status::adopt(handle)); }
halyard_status_code_t status_code(halyard_status_t handle) noexcept {
  return borrowed(handle,
                  [](const Status& status) { return static_cast<halyard_status_code_t>(status.code()); });
}
const char* status_message(halyard_status_t handle) noexcept {
  return borrowed(handle, [](const Status& status) { return status.message().c_str(); });
}
halyard_status_t status_note(halyard_status_t handle, const char* note) noexcept {
  return Status::adopt(handle).note(note ? note : "").release();
}

const char* type_name(const Object* object) { return object ? object->type()->name : "null"; }

void object_retain(halyard_object_t object) noexcept { retain(from_handle(object)); }
void object_release(halyard_object_t object) noexcept { release(from_handle(object)); }
const char* object_type(halyard_object_t object) noexcept {
  return object ? from_handle(object)->type()->name : "";
}

// The object as a T; INVALID_ARGUMENT names its type.
template <typename T>
Result<T*> as(halyard_object_t handle) {
  Object* const object = from_handle(handle);
  if (T* const typed = cast<T>(object)) return typed;
  return fail(Code::INVALID_ARGUMENT, "expected a {}, found {}", T::kType.name, type_name(object));
}

// INVALID_ARGUMENT: a required pointer is null. `name` is that of the parameter.
Result<> check_address(const void* address, const char* name) {
  if (address) [[likely]]
    return {};
  return fail(Code::INVALID_ARGUMENT, "expected an address for `{}`, found a null pointer", name);
}

template <typename T>
void give(halyard_object_t* out, Ref<T> object) {
  *out = to_handle(object.detach());
}

halyard_status_t buffer_create(uint64_t length, uint32_t alignment, halyard_object_t* out) noexcept {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_address(out, "out"));
    give(out, HALYARD_TRY(Buffer::allocate(length, alignment, Limits().buffer_bytes)));
    return {};
  });
}

halyard_status_t buffer_wrap(void* data, uint64_t length, uint32_t is_mutable, void (*released)(void*),
                             void* user, halyard_object_t* out) noexcept {
  return guarded([&]() -> Result<> {
    constexpr uint64_t kMaxBytes = uint64_t{1} << 56;  // bytes of an address space
    HALYARD_TRY(check_address(out, "out"));
    if (!data && length != 0)
      return fail(Code::INVALID_ARGUMENT,
                  "expected the address of {} bytes as `data` of a buffer, found a null pointer", length);
    if (length > kMaxBytes)
      return fail(Code::INVALID_ARGUMENT,
                  "expected a buffer of at most {} bytes, the size of an address space, found {}", kMaxBytes,
                  length);
    std::function<void()> end;
    if (released) end = [released, user] { released(user); };
    give(out, Buffer::wrap({static_cast<uint8_t*>(data), length}, is_mutable != 0, std::move(end)));
    return {};
  });
}

halyard_status_t buffer_bytes(halyard_object_t handle, halyard_buffer_bytes_t* bytes) noexcept {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_address(bytes, "bytes"));
    const Buffer* const buffer = HALYARD_TRY(as<Buffer>(handle));
    *bytes = {buffer->data(), buffer->length(), buffer->is_mutable() ? 1u : 0u, 0};
    return {};
  });
}

Result<ElementType> element_of(uint32_t kind) {
  switch (kind) {
    case HALYARD_VALUE_NULL:
      return ElementType{};
    case HALYARD_VALUE_I8:
      return ElementType{ValueType::i8};
    case HALYARD_VALUE_I16:
      return ElementType{ValueType::i16};
    case HALYARD_VALUE_I32:
      return ElementType{ValueType::i32};
    case HALYARD_VALUE_I64:
      return ElementType{ValueType::i64};
    case HALYARD_VALUE_F32:
      return ElementType{ValueType::f32};
    case HALYARD_VALUE_F64:
      return ElementType{ValueType::f64};
    default:
      return fail(
          Code::INVALID_ARGUMENT,
          "expected a kind of number for the elements of a list, or HALYARD_VALUE_NULL for values of any "
          "kind, found kind {}",
          kind);
  }
}

Result<uint32_t> checked_index(const List& list, uint64_t index) {
  if (index < list.size()) return static_cast<uint32_t>(index);
  return fail(Code::OUT_OF_RANGE, "element {} does not exist; the list has {} elements", index, list.size());
}

halyard_status_t list_create(uint32_t element_kind, halyard_object_t* out) noexcept {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_address(out, "out"));
    give(out, List::create(HALYARD_TRY(element_of(element_kind))));
    return {};
  });
}
halyard_status_t list_size(halyard_object_t list, uint64_t* size) noexcept {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_address(size, "size"));
    *size = HALYARD_TRY(as<List>(list))->size();
    return {};
  });
}
halyard_status_t list_resize(halyard_object_t handle, uint64_t size) noexcept {
  return guarded([&]() -> Result<> {
    List* const list = HALYARD_TRY(as<List>(handle));
    const uint32_t limit = Limits().list_elements;
    if (size > limit)
      return fail(Code::RESOURCE_EXHAUSTED, "a list of {} elements exceeds the limit of {}", size, limit);
    return list->resize(static_cast<uint32_t>(size), limit);
  });
}
halyard_status_t list_get(halyard_object_t handle, uint64_t index, halyard_value_t* value) noexcept {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_address(value, "value"));
    const List* const list = HALYARD_TRY(as<List>(handle));
    *value = to_value(HALYARD_TRY(list->get(HALYARD_TRY(checked_index(*list, index)))));
    return {};
  });
}
halyard_status_t list_set(halyard_object_t handle, uint64_t index, const halyard_value_t* value) noexcept {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_address(value, "value"));
    List* const list = HALYARD_TRY(as<List>(handle));
    return list->set(HALYARD_TRY(checked_index(*list, index)), to_variant(*value));
  });
}

halyard_status_t object_create(halyard_type_t type, void* pointer, halyard_object_t* out) noexcept {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_address(out, "out"));
    HALYARD_TRY(check_address(type, "type"));
    give(out, NativeObject::create(from_handle(type), pointer));
    return {};
  });
}
halyard_status_t object_pointer(halyard_type_t type, halyard_object_t handle, void** pointer) noexcept {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_address(type, "type"));
    HALYARD_TRY(check_address(pointer, "pointer"));
    Object* const object = from_handle(handle);
    const NativeType& expected = from_handle(type);
    const NativeObject* const found = NativeObject::of_type(expected, object);
    if (!found)
      return fail(Code::INVALID_ARGUMENT, "expected a {}, found {}", expected.of_objects().name,
                  type_name(object));
    *pointer = found->pointer();
    return {};
  });
}

halyard_kept_t to_kept(KeptRooms::Room& room) {
  return {reinterpret_cast<halyard_object_t*>(room.objects.data()), room.bytes.data(),
          static_cast<uint32_t>(room.objects.size()), room.byte_count};
}

Wakeup* from_handle(halyard_wakeup_t handle) { return reinterpret_cast<Wakeup*>(handle); }

halyard_status_t call_wait(halyard_module_call_t* call, halyard_wakeup_t* out) noexcept {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_address(call, "call"));
    HALYARD_TRY(check_address(out, "out"));
    auto& frame = *static_cast<FrameCall*>(call);
    if (frame.waits) return fail(Code::FAILED_PRECONDITION, "this attempt already waits; use its wakeup");
    if (!frame.native->may_defer || !frame.native->invocation)
      return fail(Code::FAILED_PRECONDITION,
                  "the program cannot wait for the results of this call; it needs call.yieldable");
    auto wakeup = std::make_unique<Wakeup>(frame.native->invocation->begin_wait({}));
    *out = reinterpret_cast<halyard_wakeup_t>(wakeup.release());
    frame.waits = true;
    frame.deferred = 1;
    return {};
  });
}
void wakeup_wake(halyard_wakeup_t handle) noexcept {
  if (Wakeup* const wakeup = from_handle(handle)) wakeup->wake();
}
void wakeup_release(halyard_wakeup_t handle) noexcept { delete from_handle(handle); }

// The frame of a call in a context. INVALID_ARGUMENT: there is none.
Result<FrameCall*> frame_in_context(halyard_module_call_t* call) {
  HALYARD_TRY(check_address(call, "call"));
  FrameCall& frame = frame_of(*call);
  if (frame.native->invocation && frame.native->instance) [[likely]]
    return &frame;
  return fail(Code::INVALID_ARGUMENT, "expected a call of a module in a context");
}

halyard_status_t import_call(halyard_module_call_t* call, halyard_import_call_t* import) noexcept {
  return guarded([&]() -> Result<> {
    FrameCall* const frame = HALYARD_TRY(frame_in_context(call));
    HALYARD_TRY(check_address(import, "import_call"));
    return call_import(*frame, *import);
  });
}
uint32_t import_is_resolved(const halyard_module_call_t* call, uint32_t import) noexcept {
  const ModuleInstance* const instance = call ? frame_of(*call).native->instance : nullptr;
  return instance && import < instance->imports.size() && instance->imports[import].instance;
}

halyard_status_t call_keep(halyard_module_call_t* call, uint32_t object_count, uint32_t byte_count,
                           halyard_kept_t* kept) noexcept {
  return guarded([&]() -> Result<> {
    FrameCall* const frame = HALYARD_TRY(frame_in_context(call));
    HALYARD_TRY(check_address(kept, "kept"));
    Invocation& invocation = *frame->native->invocation;
    KeptRooms::Room* const room = HALYARD_TRY(
        invocation.kept_rooms().keep(object_count, byte_count, invocation.context().limits().memory));
    *kept = to_kept(*room);
    return {};
  });
}
halyard_status_t call_take(halyard_module_call_t* call, halyard_kept_t* kept) noexcept {
  return guarded([&]() -> Result<> {
    FrameCall* const frame = HALYARD_TRY(frame_in_context(call));
    HALYARD_TRY(check_address(kept, "kept"));
    KeptRooms::Room* const room = frame->native->invocation->kept_rooms().take();
    if (!room) return fail(Code::FAILED_PRECONDITION, "this call has kept nothing; use call_keep first");
    *kept = to_kept(*room);
    return {};
  });
}
halyard_status_t call_stopped(const halyard_module_call_t* call) noexcept {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_address(call, "call"));
    const Invocation* const invocation = frame_of(*call).native->invocation;
    return invocation ? to_result(invocation->stopped()) : Result<>();
  });
}

constexpr halyard_module_services_t kServices = {
    .struct_size = sizeof(halyard_module_services_t),
    .reserved = 0,
    .status_create = status_create,
    .status_retain = status_retain,
    .status_release = status_release,
    .status_code = status_code,
    .status_message = status_message,
    .status_note = status_note,
    .object_retain = object_retain,
    .object_release = object_release,
    .object_type = object_type,
    .buffer_create = buffer_create,
    .buffer_wrap = buffer_wrap,
    .buffer_bytes = buffer_bytes,
    .list_create = list_create,
    .list_size = list_size,
    .list_resize = list_resize,
    .list_get = list_get,
    .list_set = list_set,
    .object_create = object_create,
    .object_pointer = object_pointer,
    .call_wait = call_wait,
    .wakeup_wake = wakeup_wake,
    .wakeup_release = wakeup_release,
    .import_call = import_call,
    .import_is_resolved = import_is_resolved,
    .call_keep = call_keep,
    .call_take = call_take,
    .call_stopped = call_stopped,
};

}  // namespace

const halyard_module_services_t& module_services() { return kServices; }

}  // namespace halyard::vm
