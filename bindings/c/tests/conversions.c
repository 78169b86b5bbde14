/* Values of every kind for arguments and for elements of lists of every kind: those that are kept exactly are
 * taken, and no other. */
#include <float.h>
#include <math.h>

#include "program.h"

static const char kText[] =
    "vm.module @m\n"
    "vm.export @i32\nvm.func @i32(%i0: i32) -> (i32) {\n  vm.return %i0\n}\n"
    "vm.export @i64\nvm.func @i64(%i0:1: i64) -> (i64) {\n  vm.return %i0:1\n}\n"
    "vm.export @f32\nvm.func @f32(%i0: f32) -> (f32) {\n  vm.return %i0\n}\n"
    "vm.export @f64\nvm.func @f64(%i0:1: f64) -> (f64) {\n  vm.return %i0:1\n}\n"
    "vm.export @named\n"
    "vm.attr @named \"iree.abi.declaration\" \"sync func @named(%scale: f32) -> ()\"\n"
    "vm.func @named(%i0: f32) -> () {\n  vm.return\n}\n"
    "vm.export @object\nvm.func @object(%r0: !vm.buffer) -> () {\n  vm.return\n}\n";

static halyard_context_t context;

static halyard_value_t i8(int8_t value) { return (halyard_value_t){.kind = HALYARD_VALUE_I8, .i32 = value}; }
static halyard_value_t i16(int16_t value) {
  return (halyard_value_t){.kind = HALYARD_VALUE_I16, .i32 = value};
}

/* Which of the types i8, i16, i32, i64, f32, f64 keep the value. */
enum {
  I8 = 1,
  I16 = 2,
  I32 = 4,
  I64 = 8,
  F32 = 16,
  F64 = 32,
  INTEGERS = I8 | I16 | I32 | I64,
  FLOATS = F32 | F64
};

static const char* const kNames[] = {"i8", "i16", "i32", "i64", "f32", "f64"};
static const uint32_t kKinds[] = {HALYARD_VALUE_I8,  HALYARD_VALUE_I16, HALYARD_VALUE_I32,
                                  HALYARD_VALUE_I64, HALYARD_VALUE_F32, HALYARD_VALUE_F64};

static double as_double(halyard_value_t value) {
  switch (value.kind) {
    case HALYARD_VALUE_F32:
      return value.f32;
    case HALYARD_VALUE_F64:
      return value.f64;
    case HALYARD_VALUE_I64:
      return (double)value.i64;
    case HALYARD_VALUE_I8:
      return (int8_t)value.i32;
    case HALYARD_VALUE_I16:
      return (int16_t)value.i32;
    default:
      return value.i32;
  }
}

static int is_same(halyard_value_t a, halyard_value_t b) {
  const double x = as_double(a), y = as_double(b);
  return isnan(x) ? isnan(y) : x == y && !signbit(x) == !signbit(y);
}

/* `found` is how messages show the value. */
static void is_kept_by(halyard_value_t value, int types, const char* found) {
  for (int i = 0; i < 6; ++i) {
    const int keeps = types >> i & 1, before = failures;
    if (i >= 2) { /* functions have no arguments of i8 and i16 */
      halyard_value_t result = {0};
      halyard_status_t status = call_once(context, NULL, kNames[i], &value, 1, &result, 1);
      if (!keeps)
        FAILS(status, HALYARD_INVALID_ARGUMENT, found);
      else if (OK(status))
        EXPECT(result.kind == kKinds[i] && is_same(value, result));
    }
    /* Lists round floats. */
    const int lists = keeps || (i == 4 && types >> 5 & 1);
    halyard_object_t list = NULL;
    OK(halyard_list_create(kKinds[i], &list));
    halyard_value_t element = {0};
    halyard_status_t status = halyard_list_append(list, &value);
    if (!lists)
      FAILS(status, HALYARD_INVALID_ARGUMENT, found);
    else if (OK(status) && OK(halyard_list_get(list, 0, &element)) && keeps)
      EXPECT(is_same(value, element));
    if (failures != before) fprintf(stderr, "  %s as %s\n", found, kNames[i]);
    halyard_release(list);
  }
}

static void numbers(void) {
  is_kept_by(i8(-128), INTEGERS | FLOATS, "");
  is_kept_by(i16(-129), (INTEGERS ^ I8) | FLOATS, "found i16 -129");
  is_kept_by(i16(127), INTEGERS | FLOATS, "");
  is_kept_by(i32(128), (INTEGERS ^ I8) | FLOATS, "found i32 128");
  is_kept_by(i32(-32769), I32 | I64 | FLOATS, "found i32 -32769");
  is_kept_by(i32(16777217), I32 | I64 | F64, "found i32 16777217");
  is_kept_by(i64(INT64_C(1) << 31), I64 | FLOATS, "found i64 2147483648");
  is_kept_by(i64(INT64_MIN), I64 | FLOATS, "found i64 -9223372036854775808");
  is_kept_by(i64(INT64_MAX), I64, "found i64 9223372036854775807");
  is_kept_by(i64((INT64_C(1) << 53) + 1), I64, "found i64 9007199254740993");
  is_kept_by(f32(3), INTEGERS | FLOATS, "");
  is_kept_by(f32(2.5f), FLOATS, "found f32 2.5");
  is_kept_by(f32(-INFINITY), FLOATS, "found f32 -inf");
  is_kept_by(f32(9223372036854775808.0f), FLOATS, "found f32 ");
  is_kept_by(f64(-9223372036854775808.0), I64 | FLOATS, "found f64 ");
  is_kept_by(f64(0.1), F64, "found f64 0.1");
  is_kept_by(f64(DBL_MAX), F64, "found f64 1.797");
  is_kept_by(f64(NAN), FLOATS, "found f64 nan");
}

static void values_that_are_none(void) {
  const halyard_value_t null = object(NULL), no_object = {.kind = HALYARD_VALUE_OBJECT},
                        unknown = {.kind = 99};
  halyard_object_t list = NULL;
  OK(halyard_list_create(HALYARD_VALUE_I32, &list));
  const halyard_value_t of_list = object(list);
  halyard_value_t result = {0};
  for (int i = 2; i < 6; ++i) {
    FAILS(call_once(context, NULL, kNames[i], &null, 1, &result, 1), HALYARD_INVALID_ARGUMENT,
          "found a null reference");
    FAILS(call_once(context, NULL, kNames[i], &no_object, 1, &result, 1), HALYARD_INVALID_ARGUMENT,
          "found a null reference");
    FAILS(call_once(context, NULL, kNames[i], &of_list, 1, &result, 1), HALYARD_INVALID_ARGUMENT, "list");
    FAILS(call_once(context, NULL, kNames[i], &unknown, 1, &result, 1), HALYARD_INVALID_ARGUMENT, "kind 99");
  }
  const halyard_value_t number = f64(0.1), other = i32(1);
  FAILS(call_once(context, NULL, "named", &number, 1, NULL, 0), HALYARD_INVALID_ARGUMENT,
        "argument 0 ('%scale') of 'named' must be an f32, found f64 0.1, which it cannot hold exactly");
  FAILS(call_once(context, NULL, "object", &other, 1, NULL, 0), HALYARD_INVALID_ARGUMENT,
        "must be an object or null, found i32 1");
  FAILS(call_once(context, NULL, "object", &unknown, 1, NULL, 0), HALYARD_INVALID_ARGUMENT, "kind 99");
  OK(call_once(context, NULL, "object", &null, 1, NULL, 0));
  OK(call_once(context, NULL, "object", &no_object, 1, NULL, 0));
  halyard_value_t dirty = i32(1);
  dirty.reserved = 3;
  FAILS(call_once(context, NULL, "i32", &dirty, 1, &result, 1), HALYARD_INVALID_ARGUMENT,
        "0x3 in the field `reserved`");
  halyard_release(list);
}

int main(void) {
  halyard_instance_t instance = NULL;
  OK(halyard_instance_create(NULL, &instance));
  halyard_module_t module = load_text(instance, kText);
  context = context_of(instance, module, NULL);
  if (!context) return 1;
  numbers();
  values_that_are_none();
  RELEASE(context, module, instance);
  return failures != 0;
}
