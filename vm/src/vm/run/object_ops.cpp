// List and buffer operations for the interpreter.
#include "vm/run/object_ops.h"

#include <algorithm>
#include <cstring>

#include "vm/object/siphash.h"

namespace halyard::vm {

namespace {

template <typename T>
T* expect(Object* object, Status& error) {
  if (T* typed = cast<T>(object)) return typed;
  error = Status(Code::INVALID_ARGUMENT, fmt::format("expected a {}, found {}", T::kType.name,
                                                     object ? object->type()->name : "null"));
  return nullptr;
}

}  // namespace

bool ObjectOps::set(Result<> result) const {
  if (result) return true;
  error = std::move(result).error();
  return false;
}

bool ObjectOps::type_check_failed(const Object* object, const ObjectType* type) const {
  error = Status(Code::INVALID_ARGUMENT,
                 fmt::format("expected {}, found {}", type ? type->name : "a type that no ref has",
                             object->type()->name));
  return false;
}

// A list is charged to the program that grows it first, even if another program created the list.
bool ObjectOps::charge(List& list) const {
  return !limits.memory || list.is_charged() || set(list.charge_to(limits.memory.get()));
}

Buffer* ObjectOps::buffer(Object* object) const { return expect<Buffer>(object, error); }

// `offset` and `length` are in elements of `width` bytes.
bool ObjectOps::range(const Buffer& buffer, uint64_t offset, uint64_t length, uint32_t width) const {
  const uint64_t size = buffer.length() / width;
  if (offset <= size && length <= size - offset) return true;
  error = Status(Code::OUT_OF_RANGE,
                 fmt::format("{} elements of {} bytes at element {} are not within a buffer of {} bytes",
                             length, width, offset, buffer.length()));
  return false;
}

bool ObjectOps::writable(const Buffer& buffer) const {
  if (buffer.is_mutable()) return true;
  error = Status(Code::PERMISSION_DENIED, "the buffer is read-only");
  return false;
}

bool ObjectOps::buffer_load_failed(Object* object, uint64_t offset, uint32_t width) const {
  if (const Buffer* from = buffer(object)) range(*from, offset, 1, width);
  return false;
}

bool ObjectOps::buffer_store_failed(Object* object, uint64_t offset, uint32_t width) const {
  const Buffer* to = buffer(object);
  if (to && writable(*to)) range(*to, offset, 1, width);
  return false;
}

template <typename T>
bool ObjectOps::buffer_fill(Object* object, uint64_t offset, uint64_t length, T pattern) const {
  const Buffer* to = buffer(object);
  if (!to || !writable(*to) || !range(*to, offset, length, sizeof(T))) return false;
  uint8_t* at = to->data() + offset * sizeof(T);
  if constexpr (sizeof(T) == 1) {
    if (length) std::memset(at, pattern, length);
  } else {
    for (uint64_t i = 0; i < length; ++i) std::memcpy(at + i * sizeof(T), &pattern, sizeof(T));
  }
  return true;
}

template bool ObjectOps::buffer_fill(Object*, uint64_t, uint64_t, uint8_t) const;
template bool ObjectOps::buffer_fill(Object*, uint64_t, uint64_t, uint16_t) const;
template bool ObjectOps::buffer_fill(Object*, uint64_t, uint64_t, uint32_t) const;
template bool ObjectOps::buffer_fill(Object*, uint64_t, uint64_t, uint64_t) const;

bool ObjectOps::buffer_copy(Object* source, uint64_t source_offset, Object* target, uint64_t target_offset,
                            uint64_t length) const {
  const Buffer* from = buffer(source);
  if (!from) return false;
  const Buffer* to = buffer(target);
  if (!to || !range(*from, source_offset, length, 1) || !writable(*to) ||
      !range(*to, target_offset, length, 1))
    return false;
  if (length) std::memmove(to->data() + target_offset, from->data() + source_offset, length);
  return true;
}

bool ObjectOps::buffer_compare(Object* lhs, uint64_t lhs_offset, Object* rhs, uint64_t rhs_offset,
                               uint64_t length, uint32_t& equal) const {
  const Buffer* left = buffer(lhs);
  if (!left) return false;
  const Buffer* right = buffer(rhs);
  if (!right || !range(*left, lhs_offset, length, 1) || !range(*right, rhs_offset, length, 1)) return false;
  equal = length == 0 || std::memcmp(left->data() + lhs_offset, right->data() + rhs_offset, length) == 0;
  return true;
}

bool ObjectOps::buffer_hash(Object* object, uint64_t offset, uint64_t length, uint64_t& hash) const {
  const Buffer* from = buffer(object);
  if (!from || !range(*from, offset, length, 1)) return false;
  hash = siphash(from->span().subspan(offset, length));
  return true;
}

Object* ObjectOps::buffer_alloc(uint64_t length, uint32_t alignment, BufferContents contents) const {
  Result<Ref<Buffer>> made =
      Buffer::allocate(length, alignment, limits.buffer_bytes, limits.memory.get(), spare_blocks, contents);
  if (made) return made->detach();
  error = std::move(made).error();
  return nullptr;
}

Object* ObjectOps::buffer_clone(Object* source, uint64_t offset, uint64_t length, uint32_t alignment) const {
  const Buffer* from = buffer(source);
  if (!from || !range(*from, offset, length, 1)) return nullptr;
  Object* made = buffer_alloc(length, alignment);
  if (made && length) std::memcpy(static_cast<Buffer*>(made)->data(), from->data() + offset, length);
  return made;
}

List* ObjectOps::list(Object* object) const { return expect<List>(object, error); }

Object* ObjectOps::list_alloc(const ElementType& element, uint32_t capacity) const {
  Ref<List> made = List::create(element);
  return charge(*made) && set(made->reserve(capacity, limits.list_elements)) ? made.detach() : nullptr;
}

bool ObjectOps::list_reserve(Object* object, uint32_t capacity) const {
  List* of = list(object);
  return of && charge(*of) && set(of->reserve(capacity, limits.list_elements));
}

bool ObjectOps::list_resize(Object* object, uint32_t size) const {
  List* of = list(object);
  return of && charge(*of) && set(of->resize(size, limits.list_elements));
}

bool ObjectOps::list_get(Object* object, uint32_t index, ValueType as, bool legacy_floats,
                         uint64_t& bits) const {
  const List* from = list(object);
  if (!from) return false;
  Result<uint64_t> value = from->get_value(index, as, legacy_floats);
  if (value) {
    bits = *value;
    return true;
  }
  error = std::move(value).error();
  return false;
}

bool ObjectOps::list_set(Object* object, uint32_t index, ValueType type, bool legacy_floats,
                         uint64_t bits) const {
  List* to = list(object);
  return to && set(to->set_value(index, type, bits, legacy_floats));
}

bool ObjectOps::list_get_ref(Object* object, uint32_t index, const ObjectType* type, bool move,
                             Object*& result) const {
  List* from = list(object);
  if (!from) return false;
  Ref<Object> element;
  if (move) {
    Result<Ref<Object>> taken = from->take_ref(index);
    if (!taken) {
      error = std::move(taken).error();
      return false;
    }
    element = std::move(*taken);
  } else {
    Result<Object*> borrowed = from->get_ref(index);
    if (!borrowed) {
      error = std::move(borrowed).error();
      return false;
    }
    element = Ref<Object>::share(*borrowed);
  }
  result = element && element->type() == type ? element.detach() : nullptr;
  return true;
}

bool ObjectOps::list_set_ref(Object* object, uint32_t index, Object* element) const {
  List* to = list(object);
  return to && set(to->set_ref(index, Ref<Object>::share(element)));
}

}  // namespace halyard::vm
