/* Lists: packed values of one type, refs of one type, or variants. */
#include "objects.c"

/*@@ vm_list vm_list_type */
enum { VM_NONE, VM_I8, VM_I16, VM_I32, VM_I64, VM_F32, VM_F64 };

typedef struct vm_element_value {
  uint64_t bits; /* of a value */
  vm_ref ref;
  uint8_t type; /* VM_*; VM_NONE: `ref` */
} vm_element_value;

typedef struct vm_list {
  vm_object object;
  vm_element_value* elements; /* of refs and variants; from the size on they are zero */
  unsigned char* values;      /* of packed values, likewise */
  uint32_t size;
  uint32_t capacity;
  uint8_t type;            /* of packed values; VM_NONE: refs or variants */
  const vm_type* ref_type; /* of refs; null: variants */
} vm_list;

static void vm_list_destroy(vm_state* s, vm_ref object) {
  vm_list* const list = (vm_list*)(void*)object;
  for (uint32_t i = 0; i < list->size && list->elements != NULL; ++i) vm_release(s, list->elements[i].ref);
  vm_free(s, list->elements);
  vm_free(s, list->values);
}

static const vm_type vm_list_type = {"vm.list", vm_list_destroy};

/*@@ vm_list_of */
static inline vm_list* vm_list_of(vm_ref object) { return (vm_list*)(void*)object; }

/*@@ vm_check_list */
static int vm_check_list(vm_state* s, vm_ref object) {
  if (object != NULL && object->type == &vm_list_type) return 0;
  return vm_wrong_type(s, object, "a vm.list");
}

/*@@ vm_list_width */
/* The bytes of a packed value. */
static inline size_t vm_list_width(uint8_t type) {
  return type == VM_I8 ? 1 : type == VM_I16 ? 2 : type == VM_I32 || type == VM_F32 ? 4 : 8;
}

/*@@ vm_list_grow */
static int vm_list_grow(vm_state* s, vm_list* list, uint32_t capacity) {
  if (capacity > (1u << 28))
    return vm_fail_with(s, 8, "a list of $ elements exceeds the limit of $", capacity, 1u << 28, 0);
  if (capacity <= list->capacity) return 0;
  const size_t width = list->type != VM_NONE ? vm_list_width(list->type) : sizeof *list->elements;
  const uint64_t bytes = (uint64_t)capacity * width;
  void* const old = list->type != VM_NONE ? (void*)list->values : (void*)list->elements;
  void* const grown = bytes < SIZE_MAX ? vm_allocate(s, (size_t)bytes) : NULL;
  if (grown == NULL) return vm_no_room(s, bytes);
  if (list->size != 0) memcpy(grown, old, list->size * width);
  vm_free(s, old);
  if (list->type != VM_NONE)
    list->values = (unsigned char*)grown;
  else
    list->elements = (vm_element_value*)grown;
  list->capacity = capacity;
  return 0;
}

/*@@ vm_list_alloc */
static int vm_list_alloc(vm_state* s, uint8_t type, const vm_type* ref_type, uint32_t capacity, vm_ref* to) {
  const vm_ref made = vm_create(s, &vm_list_type, sizeof(vm_list));
  if (made == NULL) return vm_no_room(s, sizeof(vm_list));
  vm_list_of(made)->type = type;
  vm_list_of(made)->ref_type = ref_type;
  const int status = vm_list_grow(s, vm_list_of(made), capacity);
  if (status != 0)
    vm_release(s, made);
  else
    vm_put(s, to, made);
  return status;
}

/*@@ vm_list_reserve */
static int vm_list_reserve(vm_state* s, vm_ref object, uint32_t capacity) {
  const int status = vm_check_list(s, object);
  return status != 0 ? status : vm_list_grow(s, vm_list_of(object), capacity);
}

/*@@ vm_list_size */
static int vm_list_size(vm_state* s, vm_ref object, uint32_t* size) {
  const int status = vm_check_list(s, object);
  if (status == 0) *size = vm_list_of(object)->size;
  return status;
}

/*@@ vm_list_resize */
static int vm_list_resize(vm_state* s, vm_ref object, uint32_t size) {
  int status = vm_check_list(s, object);
  if (status != 0) return status;
  vm_list* const list = vm_list_of(object);
  uint64_t room = size;
  if (size > list->capacity && (uint64_t)list->capacity * 2 > room && room <= (1u << 27))
    room = list->capacity * 2u;
  status = vm_list_grow(s, list, (uint32_t)room);
  if (status != 0) return status;
  const uint32_t old = list->size;
  if (size < old && list->type != VM_NONE)
    memset(list->values + size * vm_list_width(list->type), 0, (old - size) * vm_list_width(list->type));
  for (uint32_t i = size; i < old && list->type == VM_NONE; ++i) {
    const vm_ref dropped = list->elements[i].ref;
    memset(&list->elements[i], 0, sizeof list->elements[i]);
    vm_release(s, dropped);
  }
  list->size = size;
  return 0;
}

/*@@ vm_check_element */
static int vm_check_element(vm_state* s, vm_ref object, uint32_t index) {
  const int status = vm_check_list(s, object);
  if (status != 0 || index < vm_list_of(object)->size) return status;
  return vm_fail_with(s, 11, "index $ is past the end of a list of $ elements", index,
                      vm_list_of(object)->size, 0);
}

/*@@ vm_convert */
/* Integers to integers, floats to floats; all other conversions give 0, and with `legacy` those of floats
 * too. */
static uint64_t vm_convert(uint8_t from, uint64_t bits, uint8_t to, int legacy) {
  if (from == to) return bits;
  if (from >= VM_I8 && from <= VM_I64 && to >= VM_I8 && to <= VM_I64) {
    if (from == VM_I8) bits = (uint64_t)(int64_t)(int32_t)vm_sign_extend_8((uint32_t)bits);
    if (from == VM_I16) bits = (uint64_t)(int64_t)(int32_t)vm_sign_extend_16((uint32_t)bits);
    if (from == VM_I32) bits = (uint64_t)(int64_t)(int32_t)(uint32_t)bits;
    if (to == VM_I8) return bits & 0xFF;
    if (to == VM_I16) return bits & 0xFFFF;
    return to == VM_I32 ? bits & 0xFFFFFFFFu : bits;
  }
  if (legacy) return 0;
  if (from == VM_F32 && to == VM_F64) return vm_bits_f64((double)vm_f32((uint32_t)bits));
  if (from == VM_F64 && to == VM_F32) return vm_bits_f32((float)vm_f64(bits));
  return 0;
}

/*@@ vm_list_packed */
/* The bits of a packed value. */
static uint64_t vm_list_packed(const vm_list* list, uint32_t index) {
  uint64_t bits = 0;
  memcpy(&bits, list->values + index * vm_list_width(list->type), vm_list_width(list->type));
  return bits;
}

/*@@ vm_holds_refs */
static int vm_holds_refs(vm_state* s) {
  return vm_fail(s, 9, "the list holds refs; expected a list of values or variants");
}

/*@@ vm_holds_values */
static int vm_holds_values(vm_state* s) {
  return vm_fail(s, 9, "the list holds values; expected a list of refs or variants");
}

/*@@ vm_list_get */
static int vm_list_get(vm_state* s, vm_ref object, uint32_t index, uint8_t as, int legacy, uint64_t* bits) {
  const int status = vm_check_element(s, object, index);
  if (status != 0) return status;
  const vm_list* const list = vm_list_of(object);
  if (list->type != VM_NONE) {
    *bits = vm_convert(list->type, vm_list_packed(list, index), as, legacy);
    return 0;
  }
  if (list->ref_type != NULL) return vm_holds_refs(s);
  const vm_element_value* const element = &list->elements[index];
  if (element->type == VM_NONE) {
    s->names[0] = element->ref != NULL ? element->ref->type->name : "empty";
    s->numbers[0] = index;
    return vm_fail_in_parts(s, 9, "element $ of the list is @; expected a value");
  }
  *bits = vm_convert(element->type, element->bits, as, legacy);
  return 0;
}

/*@@ vm_list_set */
static int vm_list_set(vm_state* s, vm_ref object, uint32_t index, uint8_t type, int legacy, uint64_t bits) {
  const int status = vm_check_element(s, object, index);
  if (status != 0) return status;
  vm_list* const list = vm_list_of(object);
  if (list->type != VM_NONE) {
    bits = vm_convert(type, bits, list->type, legacy);
    memcpy(list->values + index * vm_list_width(list->type), &bits, vm_list_width(list->type));
    return 0;
  }
  if (list->ref_type != NULL) return vm_holds_refs(s);
  vm_element_value* const element = &list->elements[index];
  const vm_ref old = element->ref;
  element->ref = NULL;
  element->bits = bits;
  element->type = type;
  vm_release(s, old);
  return 0;
}

/*@@ vm_list_has */
/* Whether the element is a packed value of the type, which needs no conversion. */
static inline int vm_list_has(vm_ref object, uint32_t index, uint8_t type) {
  return object != NULL && object->type == &vm_list_type && vm_list_of(object)->type == type &&
         index < vm_list_of(object)->size;
}

/*@@ vm_list_values */
static inline unsigned char* vm_list_values(vm_ref object) { return vm_list_of(object)->values; }

/*@@ vm_list_fits */
/* Whether all elements up to this one are packed values of the type. */
static inline int vm_list_fits(vm_ref object, uint64_t most, uint8_t type) {
  return most <= UINT32_MAX && vm_list_has(object, (uint32_t)most, type);
}

/*@@ vm_list_get_i32 */
static inline int vm_list_get_i32(vm_state* s, vm_ref list, uint32_t index, int legacy, uint32_t* value) {
  uint64_t bits = 0;
  int status = 0;
  if (vm_list_has(list, index, VM_I32))
    bits = vm_get_32(vm_list_values(list) + (size_t)index * 4);
  else
    status = vm_list_get(s, list, index, VM_I32, legacy, &bits);
  *value = (uint32_t)bits;
  return status;
}

/*@@ vm_list_get_i64 */
static inline int vm_list_get_i64(vm_state* s, vm_ref list, uint32_t index, int legacy, uint64_t* value) {
  if (!vm_list_has(list, index, VM_I64)) return vm_list_get(s, list, index, VM_I64, legacy, value);
  *value = vm_get_64(vm_list_values(list) + (size_t)index * 8);
  return 0;
}

/*@@ vm_list_get_f32 */
static inline int vm_list_get_f32(vm_state* s, vm_ref list, uint32_t index, int legacy, float* value) {
  uint64_t bits = 0;
  int status = 0;
  if (vm_list_has(list, index, VM_F32))
    bits = vm_get_32(vm_list_values(list) + (size_t)index * 4);
  else
    status = vm_list_get(s, list, index, VM_F32, legacy, &bits);
  *value = vm_f32((uint32_t)bits);
  return status;
}

/*@@ vm_list_get_f64 */
static inline int vm_list_get_f64(vm_state* s, vm_ref list, uint32_t index, int legacy, double* value) {
  uint64_t bits = 0;
  int status = 0;
  if (vm_list_has(list, index, VM_F64))
    bits = vm_get_64(vm_list_values(list) + (size_t)index * 8);
  else
    status = vm_list_get(s, list, index, VM_F64, legacy, &bits);
  *value = vm_f64(bits);
  return status;
}

/*@@ vm_list_set_i32 */
static inline int vm_list_set_i32(vm_state* s, vm_ref list, uint32_t index, int legacy, uint32_t value) {
  if (!vm_list_has(list, index, VM_I32)) return vm_list_set(s, list, index, VM_I32, legacy, value);
  vm_set_32(vm_list_values(list) + (size_t)index * 4, value);
  return 0;
}

/*@@ vm_list_set_i64 */
static inline int vm_list_set_i64(vm_state* s, vm_ref list, uint32_t index, int legacy, uint64_t value) {
  if (!vm_list_has(list, index, VM_I64)) return vm_list_set(s, list, index, VM_I64, legacy, value);
  vm_set_64(vm_list_values(list) + (size_t)index * 8, value);
  return 0;
}

/*@@ vm_list_set_f32 */
static inline int vm_list_set_f32(vm_state* s, vm_ref list, uint32_t index, int legacy, float value) {
  if (!vm_list_has(list, index, VM_F32))
    return vm_list_set(s, list, index, VM_F32, legacy, vm_bits_f32(value));
  vm_set_32(vm_list_values(list) + (size_t)index * 4, vm_bits_f32(value));
  return 0;
}

/*@@ vm_list_set_f64 */
static inline int vm_list_set_f64(vm_state* s, vm_ref list, uint32_t index, int legacy, double value) {
  if (!vm_list_has(list, index, VM_F64))
    return vm_list_set(s, list, index, VM_F64, legacy, vm_bits_f64(value));
  vm_set_64(vm_list_values(list) + (size_t)index * 8, vm_bits_f64(value));
  return 0;
}

/*@@ vm_list_get_ref */
/* Null if the element is of another type, which moving takes out of the list all the same. */
static int vm_list_get_ref(vm_state* s, vm_ref object, uint32_t index, const vm_type* type, vm_ref* to,
                           int moves) {
  const int status = vm_check_element(s, object, index);
  if (status != 0) return status;
  vm_list* const list = vm_list_of(object);
  if (list->type != VM_NONE || list->elements[index].type != VM_NONE) return vm_holds_values(s);
  vm_element_value* const element = &list->elements[index];
  vm_ref found = moves ? vm_take(&element->ref) : vm_share(element->ref);
  if (found != NULL && found->type != type) vm_clear(s, &found);
  vm_put(s, to, found);
  return 0;
}

/*@@ vm_list_set_ref */
static int vm_list_set_ref(vm_state* s, vm_ref object, uint32_t index, vm_ref* from, int moves) {
  const int status = vm_check_element(s, object, index);
  if (status != 0) return status;
  vm_list* const list = vm_list_of(object);
  if (list->type != VM_NONE) return vm_holds_values(s);
  if (list->ref_type != NULL && *from != NULL && (*from)->type != list->ref_type) {
    s->names[0] = list->ref_type->name;
    s->names[1] = (*from)->type->name;
    return vm_fail_in_parts(s, 3, "a list of @ cannot hold a @");
  }
  vm_element_value* const element = &list->elements[index];
  const vm_ref old = element->ref;
  element->ref = vm_share(*from);
  element->type = VM_NONE;
  if (moves) vm_clear(s, from);
  vm_release(s, old);
  return 0;
}
