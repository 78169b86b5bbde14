// The three kinds of lists.
#include "vm/object/list.h"

#include <cstddef>
#include <cstring>
#include <new>

#include "vm/object/offset.h"

namespace halyard::vm {

const ObjectType List::kType = {"vm.list", &List::destroy};

namespace {

constexpr const char* kCharged = "a list";

uint32_t width(ValueType type) {
  switch (type) {
    case ValueType::i8:
      return 1;
    case ValueType::i16:
      return 2;
    case ValueType::i64:
    case ValueType::f64:
      return 8;
    default:
      return 4;
  }
}

std::unexpected<Status> out_of_range(uint32_t index, uint32_t size) {
  return fail(Code::OUT_OF_RANGE, "index {} is past the end of a list of {} elements", index, size);
}

std::unexpected<Status> holds_refs() {
  return fail(Code::FAILED_PRECONDITION, "the list holds refs; expected a list of values or variants");
}

std::unexpected<Status> holds_values() {
  return fail(Code::FAILED_PRECONDITION, "the list holds values; expected a list of refs or variants");
}

template <typename T>
uint64_t load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

List::Layout List::layout() {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // no virtual bases: both compilers define the offsets
  constexpr auto kVector = static_cast<uint32_t>(offsetof(List, packed_));
  constexpr auto kElement = static_cast<uint32_t>(offsetof(List, element_) + offsetof(ElementType, value));
  constexpr auto kSize = static_cast<uint32_t>(offsetof(List, size_));
#pragma GCC diagnostic pop
  // The offset at which a vector stores the address of its elements.
  const std::vector<uint8_t> sample(1);
  return {kElement, kSize, kVector + offset_of_pointer(&sample, sample.data())};
}

template <typename Visit>
void List::each_ref(Visit visit) {
  for (Ref<Object>& object : refs_) visit(std::move(object));
  for (Variant& variant : variants_) {
    Ref<Object> object = Ref<Object>::share(variant.object());
    variant = Variant();
    visit(std::move(object));
  }
}

// Lists may be nested arbitrarily deep, so they are destroyed in a loop, not recursively.
void List::destroy(Object* object) {
  List* doomed = static_cast<List*>(object);
  while (doomed) {
    List* list = doomed;
    doomed = list->next_doomed_;
    list->each_ref([&](Ref<Object> element) {
      List* inner = cast<List>(element.get());
      if (!inner || !inner->unique()) return;
      (void)element.detach();
      inner->next_doomed_ = doomed;
      doomed = inner;
    });
    delete list;
  }
}

Result<Ref<List>> List::allocate(ElementType element, uint32_t capacity, uint32_t limit, Budget* budget) {
  Ref<List> list = make<List>(element);
  HALYARD_TRY(list->charge_to(budget));
  HALYARD_TRY(list->reserve(capacity, limit));
  return list;
}

Result<> List::charge_to(Budget* budget) {
  if (!budget || charge_.has_budget()) return {};
  const uint64_t bytes = block_bytes(sizeof(List)) + block_bytes(packed_.capacity()) +
                         block_bytes(refs_.capacity() * sizeof(Ref<Object>)) +
                         block_bytes(variants_.capacity() * sizeof(Variant));
  HALYARD_TRY(charge_.start(budget, bytes, kCharged));
  charge_.count(kType, 1);
  return {};
}

// The capacity never shrinks, and neither does the charge. Not inlined: most lists grow once.
template <typename T>
[[gnu::noinline]] Result<> List::grow(std::vector<T>& elements, size_t count) {
  try {
    return reserve_charged(elements, count, charge_, kCharged);
  } catch (const std::bad_alloc&) {
    return fail(Code::RESOURCE_EXHAUSTED, "no memory for a list of {} bytes", count * sizeof(T));
  }
}

// Calls visit(elements, count).
template <typename Visit>
Result<> List::with_elements(uint32_t count, uint32_t limit, Visit visit) {
  if (count > limit)
    return fail(Code::RESOURCE_EXHAUSTED, "a list of {} elements exceeds the limit of {}", count, limit);
  if (element_.value != ValueType::none) return visit(packed_, size_t{count} * width(element_.value));
  if (element_.object) return visit(refs_, count);
  return visit(variants_, count);
}

Result<> List::reserve(uint32_t capacity, uint32_t limit) {
  return with_elements(capacity, limit, [&](auto& elements, size_t count) -> Result<> {
    if (count <= elements.capacity()) return {};
    return grow(elements, count);
  });
}

Result<> List::resize(uint32_t size, uint32_t limit) {
  return with_elements(size, limit, [&](auto& elements, size_t count) -> Result<> {
    if (count > elements.capacity()) HALYARD_TRY(grow(elements, count));
    elements.resize(count);
    size_ = size;
    return {};
  });
}

Result<uint64_t> List::get_value(uint32_t index, ValueType as, bool legacy_floats) const {
  if (index >= size_) return out_of_range(index, size_);
  if (element_.object) return holds_refs();
  if (element_.is_variant()) {
    const Variant& variant = variants_[index];
    if (!variant.is_value()) {
      return fail(Code::FAILED_PRECONDITION, "element {} of the list is {}; expected a value", index,
                  variant.object() ? variant.object()->type()->name : "empty");
    }
    return coerce(variant.type(), variant.bits(), as, legacy_floats);
  }
  const uint8_t* from = packed_.data() + size_t{index} * width(element_.value);
  uint64_t bits = 0;
  switch (width(element_.value)) {
    case 1:
      bits = load<uint8_t>(from);
      break;
    case 2:
      bits = load<uint16_t>(from);
      break;
    case 4:
      bits = load<uint32_t>(from);
      break;
    default:
      bits = load<uint64_t>(from);
      break;
  }
  return coerce(element_.value, bits, as, legacy_floats);
}

Result<> List::set_value(uint32_t index, ValueType type, uint64_t bits, bool legacy_floats) {
  if (index >= size_) return out_of_range(index, size_);
  if (element_.object) return holds_refs();
  if (element_.is_variant()) {
    variants_[index] = Variant::value(type, bits);
    return {};
  }
  const uint64_t converted = coerce(type, bits, element_.value, legacy_floats);
  // Little-endian: the low bytes come first.
  std::memcpy(packed_.data() + size_t{index} * width(element_.value), &converted, width(element_.value));
  return {};
}

Result<Object*> List::get_ref(uint32_t index) const {
  if (index >= size_) return out_of_range(index, size_);
  if (element_.object) return refs_[index].get();
  if (!element_.is_variant() || variants_[index].is_value()) return holds_values();
  return variants_[index].object();
}

Result<Ref<Object>> List::take_ref(uint32_t index) {
  Object* object = HALYARD_TRY(get_ref(index));
  Ref<Object> taken = Ref<Object>::share(object);
  if (element_.object) {
    refs_[index] = nullptr;
  } else {
    variants_[index] = Variant();
  }
  return taken;
}

Result<> List::set_ref(uint32_t index, Ref<Object> object) {
  if (index >= size_) return out_of_range(index, size_);
  if (element_.value != ValueType::none) return holds_values();
  if (element_.is_variant()) {
    variants_[index] = Variant::ref(std::move(object));
    return {};
  }
  if (object && object->type() != element_.object) {
    return fail(Code::INVALID_ARGUMENT, "a list of {} cannot hold a {}", element_.object->name,
                object->type()->name);
  }
  refs_[index] = std::move(object);
  return {};
}

const List* List::list_at(uint32_t index) const {
  if (element_.object) return cast<List>(refs_[index].get());
  return element_.is_variant() ? cast<List>(variants_[index].object()) : nullptr;
}

Result<> List::check_nesting(uint64_t depth, uint64_t elements) const {
  struct Level {
    const List* list;
    uint32_t next;  // the element to visit next
  };
  std::vector<Level> levels;
  uint64_t count = 0;
  const auto enter = [&](const List* list) -> Result<> {
    if (levels.size() >= depth)
      return fail(Code::RESOURCE_EXHAUSTED,
                  "expected lists nested at most {} deep, found more levels, or a list that contains itself",
                  depth);
    count += list->size_;
    if (count > elements)
      return fail(Code::RESOURCE_EXHAUSTED,
                  "a list and the lists within it have more than {} elements; a list that is reached on "
                  "several paths counts once for each",
                  elements);
    // Packed numbers contain no lists.
    levels.push_back({list, list->element_.value == ValueType::none ? 0 : list->size_});
    return {};
  };
  HALYARD_TRY(enter(this));
  while (!levels.empty()) {
    Level& level = levels.back();
    if (level.next == level.list->size_) {
      levels.pop_back();
    } else if (const List* inner = level.list->list_at(level.next++)) {
      HALYARD_TRY(enter(inner));
    }
  }
  return {};
}

Result<Variant> List::get(uint32_t index) const {
  if (index >= size_) return out_of_range(index, size_);
  if (element_.object) return Variant::ref(refs_[index]);
  if (element_.is_variant()) return variants_[index];
  return Variant::value(element_.value, HALYARD_TRY(get_value(index, element_.value)));
}

Result<> List::set(uint32_t index, const Variant& variant) {
  if (variant.is_value()) return set_value(index, variant.type(), variant.bits());
  return set_ref(index, Ref<Object>::share(variant.object()));
}

}  // namespace halyard::vm
