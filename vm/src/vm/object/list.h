// vm.list: a growable array of values, refs of one type, or variants. Specified by verifier-and-execution.md,
// section 8. Shared by reference; not synchronised: one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"
#include "vm/object/variant.h"

namespace halyard::vm {

// What a list holds, or what a type table entry means.
struct ElementType {
  ValueType value = ValueType::none;   // packed values of this type
  const ObjectType* object = nullptr;  // refs of this type
  bool is_variant() const { return value == ValueType::none && object == nullptr; }  // !vm.opaque
  friend bool operator==(const ElementType&, const ElementType&) = default;
};

class List final : public ObjectOf<List> {
 public:
  static const ObjectType kType;  // "vm.list"

  static Ref<List> create(ElementType element) { return make<List>(element); }
  // With room for `capacity` elements. It is charged to the budget (may be null), and so is what it grows to.
  // RESOURCE_EXHAUSTED as reserve().
  static Result<Ref<List>> allocate(ElementType element, uint32_t capacity, uint32_t limit, Budget* budget);

  ElementType element() const { return element_; }
  uint32_t size() const { return size_; }
  // Charges a list that nobody is charged for; a null budget does not. RESOURCE_EXHAUSTED.
  Result<> charge_to(Budget* budget);
  bool is_charged() const { return charge_.has_budget(); }
  // RESOURCE_EXHAUSTED past `limit` elements, the budget, or memory.
  Result<> reserve(uint32_t capacity, uint32_t limit);
  Result<> resize(uint32_t size, uint32_t limit);

  // Whether there is an element at `index` that is a packed value of just this type, and where it lies.
  bool packs(ValueType type, uint32_t index) const { return element_.value == type && index < size_; }
  // Whether there is an element at `index` that is a ref of just this type, or null, and which.
  bool holds(const ObjectType* type, uint32_t index) const {
    return type && element_.object == type && index < size_;
  }
  Object* held(uint32_t index) const { return refs_[index].get(); }
  uint8_t* packed(uint32_t index, uint32_t width) { return packed_.data() + size_t{index} * width; }

  // OUT_OF_RANGE, FAILED_PRECONDITION, INVALID_ARGUMENT as section 8.2 says.
  Result<uint64_t> get_value(uint32_t index, ValueType as, bool legacy_floats = false) const;
  Result<> set_value(uint32_t index, ValueType type, uint64_t bits, bool legacy_floats = false);
  Result<Object*> get_ref(uint32_t index) const;  // borrowed; null where empty
  Result<Ref<Object>> take_ref(uint32_t index);   // moves the element out
  Result<> set_ref(uint32_t index, Ref<Object> object);
  // A copy of the element as it is: for hosts and printers.
  Result<Variant> get(uint32_t index) const;
  Result<> set(uint32_t index, const Variant& variant);

  explicit List(ElementType element) : element_(element) {}
  ~List() { charge_.count(kType, -1); }

 private:
  static void destroy(Object* object);
  template <typename Visit>
  void each_ref(Visit visit);  // takes every ref out

  template <typename T>
  Result<> grow(std::vector<T>& elements, size_t count);
  template <typename Visit>
  Result<> with_elements(uint32_t count, uint32_t limit, Visit visit);

  ElementType element_;
  uint32_t size_ = 0;
  Charge charge_;
  std::vector<uint8_t> packed_;    // value lists
  std::vector<Ref<Object>> refs_;  // ref lists
  std::vector<Variant> variants_;  // variant lists
  List* next_doomed_ = nullptr;    // while being destroyed
};

}  // namespace halyard::vm
