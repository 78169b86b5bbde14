// List and buffer instructions beyond the interpreter's inline paths. On failure they return false or null
// and set `error`. Specified by isa.md, sections 5.6 and 5.7.
#pragma once

#include <cstdint>

#include "vm/object/buffer.h"
#include "vm/object/list.h"
#include "vm/run/limits.h"

namespace halyard::vm {

struct ObjectOps {
  Status& error;
  const Limits& limits;
  SpareBlocks* spare_blocks = nullptr;  // for buffers that are allocated; null: none

  Buffer* buffer(Object* object) const;
  bool buffer_load_failed(Object* object, uint64_t offset,
                          uint32_t width) const;  // always returns false and sets `error`
  bool buffer_store_failed(Object* object, uint64_t offset, uint32_t width) const;  // likewise
  template <typename T>
  bool buffer_fill(Object* object, uint64_t offset, uint64_t length, T pattern) const;
  bool buffer_copy(Object* source, uint64_t source_offset, Object* target, uint64_t target_offset,
                   uint64_t length) const;
  bool buffer_compare(Object* lhs, uint64_t lhs_offset, Object* rhs, uint64_t rhs_offset, uint64_t length,
                      uint32_t& equal) const;
  bool buffer_hash(Object* object, uint64_t offset, uint64_t length, uint64_t& hash) const;
  Object* buffer_alloc(uint64_t length, uint32_t alignment,
                       BufferContents contents = BufferContents::zero) const;  // owned by the caller
  Object* buffer_clone(Object* source, uint64_t offset, uint64_t length, uint32_t alignment) const;

  List* list(Object* object) const;
  Object* list_alloc(const ElementType& element, uint32_t capacity) const;
  bool list_reserve(Object* object, uint32_t capacity) const;
  bool list_resize(Object* object, uint32_t size) const;
  bool list_get(Object* object, uint32_t index, ValueType as, bool legacy_floats, uint64_t& bits) const;
  bool list_set(Object* object, uint32_t index, ValueType type, bool legacy_floats, uint64_t bits) const;
  // Null if the element has another type than `type`. The caller owns `result`.
  bool list_get_ref(Object* object, uint32_t index, const ObjectType* type, bool move, Object*& result) const;
  bool list_set_ref(Object* object, uint32_t index, Object* element) const;

  // Whether `object` may be used as `type`; null always may.
  bool type_check(const Object* object, const ObjectType* type) const {
    if (!object || object->type() == type) [[likely]]
      return true;
    return type_check_failed(object, type);
  }

 private:
  bool type_check_failed(const Object* object, const ObjectType* type) const;
  bool range(const Buffer& buffer, uint64_t offset, uint64_t length, uint32_t width) const;
  bool writable(const Buffer& buffer) const;
  bool set(Result<> result) const;
  bool charge(List& list) const;
};

}  // namespace halyard::vm
