// Objects of programs in the C ABI: views, buffers, lists, fences, and tensors as text.
#include "hal/queue/host_copy.h"
#include "hal/view/buffer_view.h"
#include "hal/view/element_text.h"
#include "handles.h"
#include "shared_memory.h"
#include "vm/native/module_services.h"
#include "vm/native/scalars.h"
#include "vm/object/list.h"
#include "vm/object/value.h"

using namespace halyard;
using namespace halyard::c;

namespace {

// Allocates header, shape and data in one block.
void give_tensor(std::span<const int64_t> shape, uint32_t type, size_t size, const std::vector<uint8_t>* data,
                 halyard_tensor_t** out) {
  const size_t shape_size = shape.size_bytes();
  char* block = static_cast<char*>(std::malloc(sizeof(halyard_tensor_t) + shape_size + (data ? size : 0)));
  if (!block) throw std::bad_alloc();
  char* shape_copy = block + sizeof(halyard_tensor_t);
  char* data_copy = shape_copy + shape_size;
  if (shape_size) std::memcpy(shape_copy, shape.data(), shape_size);
  if (data && size) std::memcpy(data_copy, data->data(), size);
  *out = new (block) halyard_tensor_t{
      sizeof(halyard_tensor_t),  type, shape.size(), reinterpret_cast<const int64_t*>(shape_copy), size,
      data ? data_copy : nullptr};
}

Result<vm::Variant> element_from(const vm::List& list, const halyard_value_t* value) {
  if (!value) return fail(Code::INVALID_ARGUMENT, "expected the address of a `value`, found a null pointer");
  if (value->kind > HALYARD_VALUE_I16)
    return fail(Code::INVALID_ARGUMENT, "expected a kind HALYARD_VALUE_*, found {}", value->kind);
  const vm::ValueType kept = list.element().value;
  if (!vm::is_number(value->kind) || kept == vm::ValueType::none) return vm::to_variant(*value);
  // vm.list.set would store zero, or fewer bits, for a number that does not fit.
  const bool keeps_floats = kept == vm::ValueType::f32 || kept == vm::ValueType::f64;
  std::optional<vm::Variant> number =
      vm::exact_number(*value, keeps_floats ? vm::ValueType::f64 : vm::ValueType::i64);
  if (number && !keeps_floats) {
    const unsigned bits = kept == vm::ValueType::i8    ? 8
                          : kept == vm::ValueType::i16 ? 16
                          : kept == vm::ValueType::i32 ? 32
                                                       : 64;
    const auto whole = static_cast<int64_t>(number->bits());
    if (bits < 64 && (whole < -(int64_t{1} << (bits - 1)) || whole >= int64_t{1} << (bits - 1)))
      number.reset();
  }
  if (number) return *number;
  return fail(Code::INVALID_ARGUMENT, "expected a number that a list of {} can hold, found {}",
              vm::type_text(kept), vm::value_text(*value));
}

}  // namespace

const char* halyard_object_type(halyard_object_t object) {
  return object ? from_handle<Object>(object)->type()->name : "";
}

halyard_status_t halyard_view_create(halyard_device_t device, uint32_t element_type, const int64_t* shape,
                                     size_t rank, const void* data, size_t size, halyard_object_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_dimensions(shape, rank));
    *out = give<halyard_object_t>(HALYARD_TRY(copied_view(device, {shape, rank}, element_type, data, size)));
    return {};
  });
}

halyard_status_t halyard_view_info(halyard_object_t handle, halyard_view_info_t* info) {
  return guarded([&]() -> Result<> {
    const hal::BufferView* view = HALYARD_TRY(checked<hal::BufferView>(handle));
    return fill_info(info,
                     {.struct_size = 0,
                      .element_type = view->type(),
                      .encoding = view->encoding(),
                      .rank = static_cast<uint32_t>(view->shape().size()),
                      .shape = view->shape().data(),
                      .byte_length = view->buffer().length()},
                     "info");
  });
}

halyard_status_t halyard_view_read(halyard_object_t view, uint64_t offset, void* target, size_t size) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_array(target, size, "bytes", "target"));
    const hal::BufferView* const shaped = HALYARD_TRY(checked<hal::BufferView>(view));
    HALYARD_TRY(shaped->byte_count());
    return hal::read_now(shaped->buffer(), offset, {static_cast<uint8_t*>(target), size});
  });
}

halyard_status_t halyard_view_byte_count(halyard_object_t view, uint64_t* bytes) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(bytes, "bytes"));
    *bytes = HALYARD_TRY(HALYARD_TRY(checked<hal::BufferView>(view))->byte_count());
    return {};
  });
}

halyard_status_t halyard_view_text(halyard_object_t view, uint64_t max_elements, char** out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const hal::BufferView* const shaped = HALYARD_TRY(checked<hal::BufferView>(view));
    std::vector<uint8_t> bytes(HALYARD_TRY(shaped->text_byte_count(max_elements)));
    HALYARD_TRY(hal::read_now(shaped->buffer(), 0, bytes));
    *out = to_c_string(HALYARD_TRY(shaped->text_of(bytes, max_elements)));
    return {};
  });
}

halyard_status_t halyard_view_buffer(halyard_object_t view, halyard_object_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    *out = give<halyard_object_t>(
        Ref<hal::Buffer>::share(&HALYARD_TRY(checked<hal::BufferView>(view))->buffer()));
    return {};
  });
}

halyard_status_t halyard_list_create(uint32_t element_kind, halyard_object_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    return to_result(Status::adopt(vm::module_services().list_create(element_kind, out)));
  });
}

halyard_status_t halyard_list_append(halyard_object_t handle, const halyard_value_t* value) {
  return guarded([&]() -> Result<> {
    vm::List* const list = HALYARD_TRY(checked<vm::List>(handle));
    const vm::Variant element = HALYARD_TRY(element_from(*list, value));
    const uint32_t size = list->size();
    HALYARD_TRY(to_result(Status::adopt(vm::module_services().list_resize(handle, uint64_t{size} + 1))));
    Result<> set = list->set(size, element);
    if (!set) HALYARD_TRY(list->resize(size, size));
    return set;
  });
}

halyard_status_t halyard_list_set(halyard_object_t handle, size_t index, const halyard_value_t* value) {
  return guarded([&]() -> Result<> {
    vm::List* const list = HALYARD_TRY(checked<vm::List>(handle));
    const vm::Variant element = HALYARD_TRY(element_from(*list, value));
    if (index >= list->size())
      return fail(Code::OUT_OF_RANGE, "element {} cannot be set, because the list has {} elements; append it",
                  index, list->size());
    return list->set(static_cast<uint32_t>(index), element);
  });
}

halyard_status_t halyard_list_size(halyard_object_t list, size_t* size) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(size, "size"));
    *size = HALYARD_TRY(checked<vm::List>(list))->size();
    return {};
  });
}

halyard_status_t halyard_list_get(halyard_object_t list, size_t index, halyard_value_t* value) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(value, "value"));
    const vm::List* elements = HALYARD_TRY(checked<vm::List>(list));
    if (index >= elements->size())
      return fail(Code::OUT_OF_RANGE, "element {} does not exist; the list has {} elements", index,
                  elements->size());
    *value = to_value(HALYARD_TRY(elements->get(static_cast<uint32_t>(index))));
    return {};
  });
}

halyard_status_t halyard_list_check(halyard_object_t list, size_t max_depth, size_t max_elements) {
  return guarded([&]() -> Result<> {
    return HALYARD_TRY(checked<vm::List>(list))->check_nesting(max_depth, max_elements);
  });
}

halyard_status_t halyard_tensor_parse(halyard_text_t text, halyard_tensor_t** out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const hal::TensorText tensor = HALYARD_TRY(hal::parse_tensor(view(text)));
    give_tensor(tensor.shape, tensor.type, tensor.bytes.size(), &tensor.bytes, out);
    return {};
  });
}

halyard_status_t halyard_tensor_type_parse(halyard_text_t text, halyard_tensor_t** out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const hal::TensorType tensor = HALYARD_TRY(hal::parse_tensor_type(view(text)));
    give_tensor(tensor.shape, tensor.type, HALYARD_TRY(hal::dense_byte_count(tensor.shape, tensor.type)),
                nullptr, out);
    return {};
  });
}

char* halyard_element_type_text(uint32_t element_type) {
  return text_or_null([&] { return hal::element_type_text(element_type); });
}
