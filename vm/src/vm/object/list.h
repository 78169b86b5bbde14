// vm.list: a growable array of values, refs of one type, or variants. Specified by verifier-and-execution.md,
// section 8. Shared by reference; not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"
#include "vm/object/variant.h"

namespace halyard::vm {

// The element type of a list, or a type of the type table.
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
  // Reserves `capacity` elements. The budget (may be null) is charged for them and for growth.
  // RESOURCE_EXHAUSTED as for reserve().
  static Result<Ref<List>> allocate(ElementType element, uint32_t capacity, uint32_t limit, Budget* budget);

  ElementType element() const { return element_; }
  uint32_t size() const { return size_; }
  // Charges a list without a budget to `budget`, which may be null. RESOURCE_EXHAUSTED.
  Result<> charge_to(Budget* budget);
  bool is_charged() const { return charge_.has_budget(); }
  // RESOURCE_EXHAUSTED if `limit` elements, the budget or memory is exceeded.
  Result<> reserve(uint32_t capacity, uint32_t limit);
  Result<> resize(uint32_t size, uint32_t limit);

  // Whether `index` exists and the list packs values of exactly this type; packed() is their address.
  bool packs(ValueType type, uint32_t index) const { return element_.value == type && index < size_; }
  // Whether `index` exists and the list holds refs of exactly this type; held() is the ref, which may be
  // null.
  bool holds(const ObjectType* type, uint32_t index) const {
    return type && element_.object == type && index < size_;
  }
  Object* held(uint32_t index) const { return refs_[index].get(); }
  uint8_t* packed(uint32_t index, uint32_t width) { return packed_.data() + size_t{index} * width; }

  // OUT_OF_RANGE, FAILED_PRECONDITION and INVALID_ARGUMENT as in section 8.2.
  Result<uint64_t> get_value(uint32_t index, ValueType as, bool legacy_floats = false) const;
  Result<> set_value(uint32_t index, ValueType type, uint64_t bits, bool legacy_floats = false);
  Result<Object*> get_ref(uint32_t index) const;  // borrowed; null if empty
  Result<Ref<Object>> take_ref(uint32_t index);   // moves the element out
  Result<> set_ref(uint32_t index, Ref<Object> object);
  // Copies an element without conversion, for hosts and printers.
  Result<Variant> get(uint32_t index) const;
  Result<> set(uint32_t index, const Variant& variant);
  // RESOURCE_EXHAUSTED: nested lists exceed `depth` levels (this list is the first), or `elements` elements
  // in all. The elements of a list count once for each path to it, so a list that contains itself always
  // fails. Visits at most `elements` elements, and uses memory for `depth` levels.
  Result<> check_nesting(uint64_t depth, uint64_t elements) const;

  // Byte offsets of members, for compiled code.
  struct Layout {
    uint32_t element;  // ElementType::value
    uint32_t size;
    uint32_t data;  // the address of packed values
  };
  static Layout layout();

  explicit List(ElementType element) : element_(element) {}
  ~List() { charge_.count(kType, -1); }

 private:
  static void destroy(Object* object);
  const List* list_at(uint32_t index) const;  // null if the element is not a list
  template <typename Visit>
  void each_ref(Visit visit);  // removes each ref and passes it on

  template <typename T>
  Result<> grow(std::vector<T>& elements, size_t count);
  template <typename Visit>
  Result<> with_elements(uint32_t count, uint32_t limit, Visit visit);

  ElementType element_;
  uint32_t size_ = 0;
  Charge charge_;
  std::vector<uint8_t> packed_;    // elements of a value list
  std::vector<Ref<Object>> refs_;  // elements of a ref list
  std::vector<Variant> variants_;  // elements of a variant list
  List* next_doomed_ = nullptr;    // link for the iterative destructor
};

}  // namespace halyard::vm
