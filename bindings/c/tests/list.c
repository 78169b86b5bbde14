/* Lists that an embedder makes: kinds of elements, conversions, lists within lists, and a program that gets
 * one. */
#include <stdlib.h>
#include <string.h>

#include "halyard/halyard.h"
#include "program.h"

static const char kProgram[] =
    "vm.module @m\n"
    "vm.export @second\n"
    "vm.func @second(%r0: !vm.list<i32>) -> (i32) {\n"
    "  %i0 = vm.const.i32 1\n"
    "  %i1 = vm.list.get.i32 %r0, %i0\n"
    "  vm.return %i1\n"
    "}\n";

static void numbers(void) {
  halyard_object_t list = NULL;
  if (!OK(halyard_list_create(HALYARD_VALUE_I32, &list))) return;
  EXPECT(strcmp(halyard_object_type(list), "vm.list") == 0);
  size_t size = 1;
  if (OK(halyard_list_size(list, &size))) EXPECT(size == 0);
  halyard_value_t value = i32(-7);
  OK(halyard_list_append(list, &value));
  value.kind = HALYARD_VALUE_I64; /* becomes an i32 */
  value.i64 = 2;
  OK(halyard_list_append(list, &value));
  halyard_value_t found = {0};
  if (OK(halyard_list_get(list, 0, &found))) EXPECT(found.kind == HALYARD_VALUE_I32 && found.i32 == -7);
  if (OK(halyard_list_get(list, 1, &found))) EXPECT(found.kind == HALYARD_VALUE_I32 && found.i32 == 2);
  value = i32(5);
  OK(halyard_list_set(list, 0, &value));
  if (OK(halyard_list_get(list, 0, &found))) EXPECT(found.i32 == 5);
  FAILS(halyard_list_set(list, 2, &value), HALYARD_OUT_OF_RANGE,
        "element 2 cannot be set, because the list has 2");
  value = object(list);
  FAILS(halyard_list_append(list, &value), HALYARD_FAILED_PRECONDITION, "the list holds values");
  value = f64(2.5);
  FAILS(halyard_list_append(list, &value), HALYARD_INVALID_ARGUMENT, "found f64 2.5");
  value.kind = HALYARD_VALUE_I64;
  value.i64 = INT64_C(1) << 31;
  FAILS(halyard_list_set(list, 0, &value), HALYARD_INVALID_ARGUMENT, "found i64 2147483648");
  value.kind = 99;
  FAILS(halyard_list_append(list, &value), HALYARD_INVALID_ARGUMENT, "found 99");
  FAILS(halyard_list_append(list, NULL), HALYARD_INVALID_ARGUMENT, "null pointer");
  if (OK(halyard_list_size(list, &size))) EXPECT(size == 2); /* a failure changes nothing */
  halyard_release(list);
  FAILS(halyard_list_create(HALYARD_VALUE_OBJECT, &list), HALYARD_INVALID_ARGUMENT, "kind");
}

static void anything(void) {
  halyard_object_t list = NULL;
  halyard_object_t inner = NULL;
  if (!OK(halyard_list_create(HALYARD_VALUE_NULL, &list)) ||
      !OK(halyard_list_create(HALYARD_VALUE_I64, &inner)))
    return;
  halyard_value_t value = object(inner);
  OK(halyard_list_append(list, &value));
  halyard_release(inner); /* the list has a reference of its own */
  value = object(NULL);
  OK(halyard_list_append(list, &value));
  value = f64(2.5);
  OK(halyard_list_append(list, &value));
  halyard_value_t found = {0};
  if (OK(halyard_list_get(list, 0, &found))) {
    EXPECT(found.kind == HALYARD_VALUE_OBJECT && strcmp(halyard_object_type(found.object), "vm.list") == 0);
    halyard_release(found.object);
  }
  if (OK(halyard_list_get(list, 1, &found))) EXPECT(found.kind == HALYARD_VALUE_NULL);
  if (OK(halyard_list_get(list, 2, &found))) EXPECT(found.kind == HALYARD_VALUE_F64 && found.f64 == 2.5);
  halyard_release(list);
}

/* A list around `inner`, which it takes over, `times` times. */
static halyard_object_t around(halyard_object_t inner, int times) {
  halyard_object_t list = NULL;
  if (!OK(halyard_list_create(HALYARD_VALUE_NULL, &list))) exit(1);
  const halyard_value_t value = object(inner);
  for (int i = 0; i < times; ++i) OK(halyard_list_append(list, &value));
  halyard_release(inner);
  return list;
}

/* Lists whose elements never end when they are followed, or not in a lifetime. */
static void without_bounds(void) {
  halyard_object_t list = around(NULL, 0);
  OK(halyard_list_check(list, 1, 0));
  FAILS(halyard_list_check(list, 0, 10), HALYARD_RESOURCE_EXHAUSTED, "0 deep");
  for (int i = 1; i < 1000 * 1000; ++i) list = around(list, 1);
  FAILS(halyard_list_check(list, 999999, SIZE_MAX), HALYARD_RESOURCE_EXHAUSTED, "at most 999999 deep");
  OK(halyard_list_check(list, 1000 * 1000, SIZE_MAX));
  FAILS(halyard_list_check(list, HALYARD_LIST_MAX_DEPTH, HALYARD_LIST_MAX_ELEMENTS),
        HALYARD_RESOURCE_EXHAUSTED, "256 deep");
  halyard_release(list); /* a million levels, one after the other */

  list = around(NULL, 0);
  for (int i = 0; i < 100; ++i) list = around(list, 2);
  FAILS(halyard_list_check(list, HALYARD_LIST_MAX_DEPTH, HALYARD_LIST_MAX_ELEMENTS),
        HALYARD_RESOURCE_EXHAUSTED, "1048576 elements");
  halyard_release(list);
  list = around(around(around(NULL, 0), 2), 2);
  OK(halyard_list_check(list, 3, 6));
  FAILS(halyard_list_check(list, 3, 5), HALYARD_RESOURCE_EXHAUSTED, "more than 5 elements");
  FAILS(halyard_list_check(list, 2, 6), HALYARD_RESOURCE_EXHAUSTED, "at most 2 deep");
  /* One that contains itself goes when that ends. */
  halyard_value_t value = object(list);
  OK(halyard_list_set(list, 1, &value));
  FAILS(halyard_list_check(list, HALYARD_LIST_MAX_DEPTH, HALYARD_LIST_MAX_ELEMENTS),
        HALYARD_RESOURCE_EXHAUSTED, "contains itself");
  value = object(NULL);
  OK(halyard_list_set(list, 1, &value));
  halyard_release(list);
  FAILS(halyard_list_check(NULL, 1, 1), HALYARD_INVALID_ARGUMENT, "vm.list");
  list = NULL;
  if (!OK(halyard_list_create(HALYARD_VALUE_I8, &list))) return;
  value = i32(1);
  OK(halyard_list_append(list, &value));
  OK(halyard_list_check(list, 1, 1));
  FAILS(halyard_list_check(list, 1, 0), HALYARD_RESOURCE_EXHAUSTED, "more than 0 elements");
  halyard_release(list);
}

static void argument(void) {
  halyard_instance_t instance = NULL;
  void* bytes = NULL;
  size_t byte_count = 0;
  halyard_module_t module = NULL;
  OK(halyard_instance_create(NULL, &instance));
  if (!OK(halyard_assemble(kProgram, sizeof kProgram - 1, NULL, &bytes, &byte_count)) ||
      !OK(halyard_module_load_memory(instance, bytes, byte_count, HALYARD_MODULE_PRELOAD, &module)))
    return;
  halyard_free(bytes);
  const halyard_context_t context = context_of(instance, module, NULL);
  halyard_object_t list = NULL;
  if (context && OK(halyard_list_create(HALYARD_VALUE_I32, &list))) {
    for (int32_t i = 0; i < 3; ++i) {
      const halyard_value_t value = i32(i * 10);
      OK(halyard_list_append(list, &value));
    }
    const halyard_value_t given = object(list);
    halyard_value_t result = {0};
    if (OK(call_once(context, NULL, "second", &given, 1, &result, 1))) EXPECT(result.i32 == 10);
  }
  RELEASE(list, context, module, instance);
}

int main(void) {
  numbers();
  anything();
  without_bounds();
  argument();
  return failures != 0;
}
