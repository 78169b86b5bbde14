// Tensors: views of buffers (hal.buffer_view) with elements of C++ types. A tensor is created from a copy,
// over memory of the program, or through DLPack, and read through a copy or in place. Also lists (vm.list).
#ifndef HALYARD_CPP_TENSOR_HPP_
#define HALYARD_CPP_TENSOR_HPP_

#include <complex>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "halyard/cpp/instance.hpp"
#include "halyard/cpp/value.hpp"
#include "halyard/memory.h"

namespace halyard::inline HALYARD_CPP_FORM {

// Element types (halyard/element_type.h). Integers of compiled programs are signless: `i32`.
enum class ElementType : uint32_t {
  none = HALYARD_ELEMENT_NONE,
  boolean = HALYARD_ELEMENT_BOOL,
  i4 = HALYARD_ELEMENT_I4,
  i8 = HALYARD_ELEMENT_I8,
  i16 = HALYARD_ELEMENT_I16,
  i32 = HALYARD_ELEMENT_I32,
  i64 = HALYARD_ELEMENT_I64,
  si4 = HALYARD_ELEMENT_SI4,
  si8 = HALYARD_ELEMENT_SI8,
  si16 = HALYARD_ELEMENT_SI16,
  si32 = HALYARD_ELEMENT_SI32,
  si64 = HALYARD_ELEMENT_SI64,
  ui4 = HALYARD_ELEMENT_UI4,
  ui8 = HALYARD_ELEMENT_UI8,
  ui16 = HALYARD_ELEMENT_UI16,
  ui32 = HALYARD_ELEMENT_UI32,
  ui64 = HALYARD_ELEMENT_UI64,
  f16 = HALYARD_ELEMENT_F16,
  f32 = HALYARD_ELEMENT_F32,
  f64 = HALYARD_ELEMENT_F64,
  bf16 = HALYARD_ELEMENT_BF16,
  cf64 = HALYARD_ELEMENT_CF64,
  cf128 = HALYARD_ELEMENT_CF128,
  f8e5m2 = HALYARD_ELEMENT_F8E5M2,
  f8e4m3fn = HALYARD_ELEMENT_F8E4M3FN,
  f8e5m2fnuz = HALYARD_ELEMENT_F8E5M2FNUZ,
  f8e4m3fnuz = HALYARD_ELEMENT_F8E4M3FNUZ,
  f8e8m0fnu = HALYARD_ELEMENT_F8E8M0FNU,
  opaque8 = HALYARD_ELEMENT_OPAQUE8,
  opaque16 = HALYARD_ELEMENT_OPAQUE16,
  opaque32 = HALYARD_ELEMENT_OPAQUE32,
  opaque64 = HALYARD_ELEMENT_OPAQUE64,
};

namespace detail {
template <typename T>
constexpr ElementType element_type() {
  if constexpr (std::is_same_v<T, bool>) return ElementType::boolean;
  if constexpr (std::is_same_v<T, float>) return ElementType::f32;
  if constexpr (std::is_same_v<T, double>) return ElementType::f64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return ElementType::cf64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return ElementType::cf128;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return static_cast<ElementType>(0x10000000u + 8 * sizeof(T));
  return ElementType::none;
}
}  // namespace detail

// A C++ type for elements: bool, integers, float, double, std::complex of float or double.
template <typename T>
concept Element = detail::element_type<T>() != ElementType::none;
template <Element T>
inline constexpr ElementType element_type_of = detail::element_type<T>();

// Whether elements of that type are read and written as T. Signedness does not matter.
template <Element T>
constexpr bool fits(ElementType type) noexcept {
  const auto number = static_cast<uint32_t>(type), wanted = static_cast<uint32_t>(element_type_of<T>);
  const auto is_integer = [](uint32_t of) { return (of >> 24) >= 0x10 && (of >> 24) <= 0x12; };
  return number == wanted ||
         (is_integer(number) && is_integer(wanted) && (number & 0xFF) == (wanted & 0xFF)) ||
         (type == ElementType::boolean && sizeof(T) == 1 && std::is_integral_v<T>);
}

// "f32"
inline Result<std::string> text_of(ElementType type) {
  return detail::take_text(halyard_element_type_text(static_cast<uint32_t>(type)));
}

// The dimensions of a tensor, borrowed for a call: {2, 3}, or any contiguous range of int64_t.
class Shape {
 public:
  Shape(std::initializer_list<int64_t> dimensions) noexcept
      : dimensions_(dimensions.begin(), dimensions.size()) {}
  Shape(std::span<const int64_t> dimensions) noexcept : dimensions_(dimensions) {}
  Shape(const std::vector<int64_t>& dimensions) noexcept : dimensions_(dimensions) {}
  const int64_t* data() const noexcept { return dimensions_.data(); }
  size_t rank() const noexcept { return dimensions_.size(); }

 private:
  std::span<const int64_t> dimensions_;
};

enum class Access : uint32_t {
  read = HALYARD_VIEW_READ,
  write = HALYARD_VIEW_WRITE,
  read_write = HALYARD_VIEW_READ | HALYARD_VIEW_WRITE,
};

// The elements of a tensor, mapped in place while this object lives.
template <typename T>
class Mapping {
 public:
  Mapping(Object view, std::span<T> elements) noexcept : view_(std::move(view)), elements_(elements) {}
  Mapping(Mapping&&) noexcept = default;
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(view_, other.view_);
    std::swap(elements_, other.elements_);
    return *this;
  }
  ~Mapping() {
    if (view_) halyard_view_unmap(view_.get());
  }

  std::span<T> elements() const noexcept { return elements_; }
  T* data() const noexcept { return elements_.data(); }
  size_t size() const noexcept { return elements_.size(); }
  T* begin() const noexcept { return data(); }
  T* end() const noexcept { return data() + size(); }
  T& operator[](size_t index) const noexcept { return elements_[index]; }

 private:
  Object view_;
  std::span<T> elements_;
};

// A view of a buffer: shape, element type, bytes. Any thread. Functions of an empty Tensor fail.
class Tensor : public Object {
 public:
  using Object::Object;

  // Creates a tensor of the device with a copy of the elements; empty `device`: for programs without devices.
  // INVALID_ARGUMENT: shape and size disagree.
  template <Element T>
  static Result<Tensor> create(const Device& device, Shape shape, std::span<const T> elements) {
    return create(device, element_type_of<T>, shape, elements.data(), elements.size_bytes());
  }
  template <Element T>
  static Result<Tensor> create(const Device& device, Shape shape, const std::vector<T>& elements) {
    return create<T>(device, shape, std::span<const T>(elements));
  }
  template <Element T>
  static Result<Tensor> create(const Device& device, Shape shape, std::initializer_list<T> elements) {
    return create<T>(device, shape, std::span<const T>(elements.begin(), elements.size()));
  }
  // The same for any element type; `data` null: zeros.
  static Result<Tensor> create(const Device& device, ElementType type, Shape shape, const void* data,
                               size_t size) {
    halyard_object_t made = nullptr;
    const halyard_status_t status = halyard_view_create(device.get(), static_cast<uint32_t>(type),
                                                        shape.data(), shape.rank(), data, size, &made);
    return detail::finish(status, [&] { return Tensor(adopt, made); });
  }

  // Creates a tensor over memory of the program; the device uses it in place if it can (halyard_view_import),
  // else copies it. The tensor holds `owner` until nothing uses the bytes any longer, and drops it on the
  // thread where this happens. `flags` is HALYARD_IMPORT_*; *is_copy may be null.
  template <typename T>
    requires Element<std::remove_const_t<T>>
  static Result<Tensor> import(const Device& device, Shape shape, std::span<T> elements,
                               std::shared_ptr<const void> owner, uint32_t flags = 0,
                               bool* is_copy = nullptr) {
    return import(device, element_type_of<std::remove_const_t<T>>, shape,
                  const_cast<std::remove_const_t<T>*>(elements.data()), elements.size_bytes(),
                  std::move(owner), std::is_const_v<T> ? flags | HALYARD_IMPORT_READ_ONLY : flags, is_copy);
  }
  static Result<Tensor> import(const Device& device, ElementType type, Shape shape, void* data, size_t size,
                               std::shared_ptr<const void> owner, uint32_t flags = 0,
                               bool* is_copy = nullptr) {
    auto held = owner ? std::make_unique<std::shared_ptr<const void>>(std::move(owner)) : nullptr;
    const halyard_release_fn let_go = [](void* user) {
      delete static_cast<std::shared_ptr<const void>*>(user);
    };
    uint32_t copied = 0;
    halyard_object_t made = nullptr;
    const halyard_status_t status =
        halyard_view_import(device.get(), static_cast<uint32_t>(type), shape.data(), shape.rank(), data, size,
                            flags, held ? let_go : nullptr, held.get(), &copied, &made);
    if (!status) static_cast<void>(held.release());  // the release callback frees it
    if (!status && is_copy) *is_copy = copied != 0;
    return detail::finish(status, [&] { return Tensor(adopt, made); });
  }

  // Creates a tensor over the memory of a file descriptor (halyard_view_import_fd). Sets struct_size.
  static Result<Tensor> import_fd(const Device& device, ElementType type, Shape shape,
                                  halyard_fd_memory_t memory, bool* is_copy = nullptr) {
    memory.struct_size = sizeof memory;
    uint32_t copied = 0;
    halyard_object_t made = nullptr;
    const halyard_status_t status = halyard_view_import_fd(
        device.get(), static_cast<uint32_t>(type), shape.data(), shape.rank(), &memory, &copied, &made);
    if (!status && is_copy) *is_copy = copied != 0;
    return detail::finish(status, [&] { return Tensor(adopt, made); });
  }

  // Imports through DLPack. Takes ownership of the tensor on success. `flags` is HALYARD_DLPACK_*.
  static Result<Tensor> from_dlpack(const Device& device, DLManagedTensorVersioned* tensor,
                                    uint32_t flags = 0, bool* is_copy = nullptr) {
    return from_dlpack_with(halyard_view_from_dlpack, device, tensor, flags, is_copy);
  }
  static Result<Tensor> from_dlpack(const Device& device, DLManagedTensor* tensor, uint32_t flags = 0,
                                    bool* is_copy = nullptr) {
    return from_dlpack_with(halyard_view_from_dlpack_unversioned, device, tensor, flags, is_copy);
  }
  // Exports through DLPack. The consumer owns the tensor and calls its deleter or release_dlpack.
  Result<DLManagedTensorVersioned*> to_dlpack(uint32_t flags = 0) const {
    DLManagedTensorVersioned* made = nullptr;
    return detail::finish(halyard_view_to_dlpack(get(), flags, &made), [&] { return made; });
  }
  Result<DLManagedTensor*> to_dlpack_unversioned(uint32_t flags = 0) const {
    DLManagedTensor* made = nullptr;
    return detail::finish(halyard_view_to_dlpack_unversioned(get(), flags, &made), [&] { return made; });
  }
  static void release_dlpack(DLManagedTensorVersioned* tensor) noexcept { halyard_dlpack_release(tensor); }
  static void release_dlpack(DLManagedTensor* tensor) noexcept { halyard_dlpack_release_unversioned(tensor); }

  // Element type, encoding, shape, bytes. The shape lives as long as the tensor.
  Result<halyard_view_info_t> info() const {
    auto info = detail::sized<halyard_view_info_t>();
    return detail::finish(halyard_view_info(get(), &info), [&] { return info; });
  }
  Result<std::span<const int64_t>> shape() const {
    auto info = detail::sized<halyard_view_info_t>();
    return detail::finish(halyard_view_info(get(), &info),
                          [&] { return std::span<const int64_t>(info.shape, info.rank); });
  }
  Result<ElementType> element_type() const {
    auto info = detail::sized<halyard_view_info_t>();
    return detail::finish(halyard_view_info(get(), &info),
                          [&] { return static_cast<ElementType>(info.element_type); });
  }

  // The bytes that the elements need (halyard_view_byte_count). OUT_OF_RANGE: the buffer has fewer.
  Result<uint64_t> byte_count() const {
    uint64_t bytes = 0;
    return detail::finish(halyard_view_byte_count(get(), &bytes), [&] { return bytes; });
  }

  // A copy of the elements. The work that produces them must be complete. INVALID_ARGUMENT: elements of
  // another type; OUT_OF_RANGE: the buffer has fewer bytes than the shape needs.
  template <Element T>
  Result<std::vector<T>> read() const {
    static_assert(!std::is_same_v<T, bool>, "a vector of bool is not an array; read as uint8_t");
    uint64_t bytes = 0;
    if (halyard_status_t status = check_type<T>(&bytes))
      return detail::fail<std::vector<T>>(Error::adopt(status));
    std::vector<T> elements(bytes / sizeof(T));
    return detail::finish(halyard_view_read(get(), 0, elements.data(), elements.size() * sizeof(T)),
                          [&] { return std::move(elements); });
  }
  // Reads elements, starting with number `first`. OUT_OF_RANGE: too few elements.
  template <Element T>
  Result<void> read(std::span<T> target, uint64_t first = 0) const {
    uint64_t bytes = 0;
    if (halyard_status_t status = check_type<T>(&bytes)) return detail::fail<void>(Error::adopt(status));
    return read_bytes(std::as_writable_bytes(target), first * sizeof(T));
  }
  Result<void> read_bytes(std::span<std::byte> target, uint64_t offset = 0) const {
    return detail::finish(halyard_view_read(get(), offset, target.data(), target.size()));
  }

  // Maps the elements in place (halyard_view_map): `const T` for reading, T for reading and writing.
  template <typename T>
    requires Element<std::remove_const_t<T>>
  Result<Mapping<T>> map() const {
    uint64_t bytes = 0;
    if (halyard_status_t status = check_type<std::remove_const_t<T>>(&bytes))
      return detail::fail<Mapping<T>>(Error::adopt(status));
    void* data = nullptr;
    size_t size = 0;
    const auto access = std::is_const_v<T> ? Access::read : Access::read_write;
    return detail::finish(halyard_view_map(get(), static_cast<uint32_t>(access), &data, &size), [&] {
      return Mapping<T>(*this, std::span<T>(static_cast<T*>(data), size / sizeof(T)));
    });
  }
  // Maps the bytes, whatever the element type.
  Result<Mapping<std::byte>> map_bytes(Access access) const {
    void* data = nullptr;
    size_t size = 0;
    return detail::finish(halyard_view_map(get(), static_cast<uint32_t>(access), &data, &size), [&] {
      return Mapping<std::byte>(*this, std::span(static_cast<std::byte*>(data), size));
    });
  }

  // Creates a tensor of the bytes from `offset` on, with its own type and shape, without a copy.
  Result<Tensor> part(uint64_t offset, ElementType type, Shape shape) const {
    halyard_object_t made = nullptr;
    return detail::finish(
        halyard_view_part(get(), offset, static_cast<uint32_t>(type), shape.data(), shape.rank(), &made),
        [&] { return Tensor(adopt, made); });
  }
  // "2x2xf32=[1 2][3 4]", at most `max_elements` elements.
  Result<std::string> text(uint64_t max_elements = 1024) const {
    char* text = nullptr;
    return detail::finish(halyard_view_text(get(), max_elements, &text),
                          [&] { return detail::take_text(text, std::char_traits<char>::length(text)); });
  }
  // The device to which the memory belongs; "host://" for memory without a device.
  Result<Device> device() const {
    halyard_device_t made = nullptr;
    return detail::finish(halyard_view_device(get(), &made), [&] { return Device(adopt, made); });
  }
  // The tensor's buffer (hal.buffer).
  Result<Object> buffer() const {
    halyard_object_t made = nullptr;
    return detail::finish(halyard_view_buffer(get(), &made), [&] { return Object(adopt, made); });
  }

 private:
  template <typename Import, typename Managed>
  static Result<Tensor> from_dlpack_with(Import import, const Device& device, Managed* tensor, uint32_t flags,
                                         bool* is_copy) {
    uint32_t copied = 0;
    halyard_object_t made = nullptr;
    const halyard_status_t status = import(device.get(), tensor, flags, &copied, &made);
    if (!status && is_copy) *is_copy = copied != 0;
    return detail::finish(status, [&] { return Tensor(adopt, made); });
  }
  template <Element T>
  halyard_status_t check_type(uint64_t* bytes) const {
    auto info = detail::sized<halyard_view_info_t>();
    if (halyard_status_t status = halyard_view_info(get(), &info)) return status;
    if (!fits<T>(static_cast<ElementType>(info.element_type)))
      return wrong_type(info.element_type, element_type_of<T>);
    return halyard_view_byte_count(get(), bytes);
  }
  [[gnu::cold]] static halyard_status_t wrong_type(uint32_t found, ElementType wanted) {
    const Block<char> is(adopt, halyard_element_type_text(found), 0);
    const Block<char> asked(adopt, halyard_element_type_text(static_cast<uint32_t>(wanted)), 0);
    const std::string message = std::string("the tensor's elements are ") + (is.data() ? is.data() : "?") +
                                ", but they are accessed as " + (asked.data() ? asked.data() : "?");
    return halyard_status_create(HALYARD_INVALID_ARGUMENT, message.c_str());
  }
};

// A vm.list. One thread at a time.
class List : public Object {
 public:
  using Object::Object;

  // Creates an empty list: for numbers of one kind HALYARD_VALUE_*, or for any values. INVALID_ARGUMENT:
  // another kind.
  static Result<List> create(uint32_t element_kind = HALYARD_VALUE_NULL) {
    halyard_object_t list = nullptr;
    return detail::finish(halyard_list_create(element_kind, &list), [&] { return List(adopt, list); });
  }
  // FAILED_PRECONDITION: an object for a list of numbers.
  Result<void> append(const Value& value) const {
    return detail::finish(halyard_list_append(get(), &value.raw()));
  }
  // As append; also OUT_OF_RANGE: no such element.
  Result<void> set(size_t index, const Value& value) const {
    return detail::finish(halyard_list_set(get(), index, &value.raw()));
  }
  Result<size_t> size() const {
    size_t size = 0;
    return detail::finish(halyard_list_size(get(), &size), [&] { return size; });
  }
  // OUT_OF_RANGE: no such element.
  Result<Value> operator[](size_t index) const {
    halyard_value_t value = {};
    return detail::finish(halyard_list_get(get(), index, &value), [&] { return Value(adopt, value); });
  }
  // Call it before a walk through lists of an untrusted program, because they may contain themselves.
  // RESOURCE_EXHAUSTED: more levels or more elements (halyard_list_check).
  Result<void> check(size_t max_depth = HALYARD_LIST_MAX_DEPTH,
                     size_t max_elements = HALYARD_LIST_MAX_ELEMENTS) const {
    return detail::finish(halyard_list_check(get(), max_depth, max_elements));
  }
};

// "2x3xf32=1,2,3,4,5,6" parsed into host memory (docs/spec/run-module-cli.md): type, shape and bytes in one
// block.
class TensorText {
 public:
  static Result<TensorText> parse(std::string_view text) {
    halyard_tensor_t* parsed = nullptr;
    return detail::finish(halyard_tensor_parse(to_text(text), &parsed), [&] { return TensorText(parsed); });
  }
  // Parses "2x3xf32"; data is null, and size is that of such a tensor.
  static Result<TensorText> parse_type(std::string_view text) {
    halyard_tensor_t* parsed = nullptr;
    return detail::finish(halyard_tensor_type_parse(to_text(text), &parsed),
                          [&] { return TensorText(parsed); });
  }
  const halyard_tensor_t& operator*() const noexcept { return *block_.data(); }
  const halyard_tensor_t* operator->() const noexcept { return block_.data(); }
  Result<Tensor> create(const Device& device) const {
    return Tensor::create(device, static_cast<ElementType>((**this).element_type),
                          std::span((**this).shape, (**this).rank), (**this).data, (**this).size);
  }

 private:
  explicit TensorText(halyard_tensor_t* parsed) noexcept : block_(adopt, parsed, 1) {}
  Block<halyard_tensor_t> block_;
};

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_TENSOR_HPP_
