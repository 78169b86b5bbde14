/* The module check: an expectation that does not hold fails the call. */
#include "hal_inline.c"

/*@@ check_expect_true */
static int check_expect_true(vm_state* s, uint32_t value) {
  return value != 0
             ? 0
             : vm_fail(s, 9,
                       "expectation 'expect_true' does not hold: expected a value other than 0, found 0");
}

/*@@ check_expect_false */
static int check_expect_false(vm_state* s, uint32_t value) {
  if (value == 0) return 0;
  return value >> 31 != 0
             ? vm_fail_with(s, 9, "expectation 'expect_false' does not hold: expected 0, found -$", 0 - value,
                            0, 0)
             : vm_fail_with(s, 9, "expectation 'expect_false' does not hold: expected 0, found $", value, 0,
                            0);
}

/*@@ check_elements */
/* The bytes of a view. Elements of other sizes than whole bytes count as bytes. */
typedef struct check_elements {
  const unsigned char* data;
  uint64_t count;
  uint32_t width;
} check_elements;

static int check_elements_of(vm_state* s, vm_ref device, vm_ref object, check_elements* out) {
  hal_range range = {NULL, 0, 0};
  int status = hal_check(s, device, &hal_device_type);
  if (status == 0) status = hal_check(s, object, &hal_view_type);
  if (status != 0) return status;
  const hal_view* const view = hal_view_of(object);
  const uint32_t bits = view->element_type & 0xFF;
  const uint64_t room = hal_buffer_of(view->buffer)->length;
  uint64_t count = 1;
  for (uint32_t i = 0; i < view->rank; ++i) {
    if (view->shape[i] != 0 && count > UINT64_MAX / 256 / view->shape[i])
      return vm_fail(s, 11, "a view has more elements than any buffer");
    count *= view->shape[i];
  }
  const uint64_t bytes = (count * bits + 7) / 8;
  if (bytes > room) return vm_fail_with(s, 11, "a view needs $ bytes, but its buffer has $", bytes, room, 0);
  status = hal_range_of(s, view->buffer, 0, bytes, &range);
  out->data = range.data;
  out->width = bits != 0 && bits % 8 == 0 ? bits / 8 : 1;
  out->count = bytes / out->width;
  return status;
}

/*@@ check_is_real */
static int check_is_real(uint32_t element_type) {
  return element_type == 0x21000020u || element_type == 0x21000040u;
}

/*@@ check_value */
static double check_value(uint32_t element_type, const unsigned char* from) {
  const vm_small_float* const format = vm_small_float_of(element_type);
  uint32_t code = 0;
  float single = 0;
  double value = 0;
  if (format != NULL) {
    memcpy(&code, from, format->bits / 8);
    return vm_small_value(format, code);
  }
  if (element_type == 0x21000040u) {
    memcpy(&value, from, sizeof value);
    return value;
  }
  memcpy(&single, from, sizeof single);
  return (double)single;
}

/*@@ check_expect_all_true */
static int check_expect_all_true(vm_state* s, vm_ref device, vm_ref object) {
  check_elements all = {NULL, 0, 1};
  int status = hal_check(s, object, &hal_view_type);
  if (status == 0) status = hal_check(s, device, &hal_device_type);
  if (status != 0) return status;
  const uint32_t type = hal_view_of(object)->element_type;
  const uint32_t bits = type & 0xFF;
  const uint32_t kind = type >> 24;
  const int is_integer =
      kind >= 0x10 && kind <= 0x12 && (bits == 8 || bits == 16 || bits == 32 || bits == 64);
  if (!is_integer && !check_is_real(type))
    return vm_fail(s, 3, "expect_all_true takes integers of 8, 16, 32 or 64 bits, f32 and f64");
  status = check_elements_of(s, device, object, &all);
  if (status != 0) return status;
  uint64_t zeros = 0;
  uint64_t first = 0;
  for (uint64_t i = 0; i < all.count; ++i) {
    const unsigned char* const from = all.data + i * all.width;
    uint64_t integer = 0;
    int holds = 0;
    if (is_integer) {
      memcpy(&integer, from, all.width);
      holds = integer != 0;
    } else {
      const double value = check_value(type, from);
      holds = value < 0 || value > 0 || isnan(value);
    }
    if (holds) continue;
    if (zeros++ == 0) first = i;
  }
  if (zeros == 0) return 0;
  return vm_fail_with(s, 9,
                      "expectation 'expect_all_true' does not hold: expected no element to be 0; $ of $ "
                      "elements are 0, the first is element $",
                      zeros, all.count, first);
}

/*@@ check_same_kind */
/* Whether element types and shapes are equal. */
static int check_same_kind(vm_ref left, vm_ref right) {
  const hal_view* const a = hal_view_of(left);
  const hal_view* const b = hal_view_of(right);
  int same = a->element_type == b->element_type && a->rank == b->rank;
  for (uint32_t i = 0; same && i < a->rank; ++i) same = a->shape[i] == b->shape[i];
  return same;
}

/*@@ check_expect_eq */
static int check_expect_eq(vm_state* s, vm_ref device, vm_ref left, vm_ref right) {
  check_elements ours = {NULL, 0, 1};
  check_elements theirs = {NULL, 0, 1};
  int status = check_elements_of(s, device, left, &ours);
  if (status == 0) status = check_elements_of(s, device, right, &theirs);
  if (status != 0) return status;
  if (!check_same_kind(left, right))
    return vm_fail(s, 9, "expectation 'expect_eq' does not hold: expected the same element type and shape");
  uint64_t misses = 0;
  uint64_t first = 0;
  for (uint64_t i = 0; i < ours.count; ++i) {
    if (memcmp(ours.data + i * ours.width, theirs.data + i * ours.width, ours.width) == 0) continue;
    if (misses++ == 0) first = i;
  }
  if (misses == 0) return 0;
  return vm_fail_with(s, 9,
                      "expectation 'expect_eq' does not hold: expected the same contents; $ of $ elements "
                      "differ, the first is element $",
                      misses, ours.count, first);
}

/*@@ check_is_near */
/* f64 is compared as f64, all other types as f32. */
static int check_is_near(uint32_t element_type, double left, double right, float absolute, float relative) {
  if (!(left < right) && !(left > right)) return isnan(left) == isnan(right);
  if (!isfinite(right)) return 0;
  if (element_type == 0x21000040u)
    return fabs(left - right) <= (double)absolute + (double)relative * fabs(right);
  return fabsf((float)left - (float)right) <= absolute + relative * fabsf((float)right);
}

/*@@ check_expect_almost_eq */
static int check_expect_almost_eq(vm_state* s, vm_ref device, vm_ref left, vm_ref right, float absolute,
                                  float relative) {
  check_elements ours = {NULL, 0, 1};
  check_elements theirs = {NULL, 0, 1};
  int status = hal_check(s, left, &hal_view_type);
  if (status == 0) status = hal_check(s, right, &hal_view_type);
  if (status != 0) return status;
  const uint32_t type = hal_view_of(left)->element_type;
  const int is_float = check_is_real(type) || vm_small_float_of(type) != NULL;
  if (type == hal_view_of(right)->element_type && !is_float)
    return vm_fail(s, 3, "expect_almost_eq takes floats of 64, 32, 16 and 8 bits; use expect_eq for others");
  status = check_elements_of(s, device, left, &ours);
  if (status == 0) status = check_elements_of(s, device, right, &theirs);
  if (status != 0) return status;
  if (!check_same_kind(left, right))
    return vm_fail(s, 9,
                   "expectation 'expect_almost_eq' does not hold: expected the same element type and shape");
  uint64_t misses = 0;
  uint64_t first = 0;
  for (uint64_t i = 0; i < ours.count; ++i) {
    if (check_is_near(type, check_value(type, ours.data + i * ours.width),
                      check_value(type, theirs.data + i * ours.width), absolute, relative))
      continue;
    if (misses++ == 0) first = i;
  }
  if (misses == 0) return 0;
  return vm_fail_with(s, 9,
                      "expectation 'expect_almost_eq' does not hold: $ of $ elements differ by more than is "
                      "allowed, the first is element $",
                      misses, ours.count, first);
}

/*@@ check_expect_almost_eq_old */
/* Of compilers that state no tolerance. */
static int check_expect_almost_eq_old(vm_state* s, vm_ref device, vm_ref left, vm_ref right) {
  const int is_small = left != NULL && left->type == &hal_view_type &&
                       vm_small_float_of(hal_view_of(left)->element_type) != NULL;
  return check_expect_almost_eq(s, device, left, right, is_small ? 0.001f : 0.0001f, 0.0f);
}
