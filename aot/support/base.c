/* Parts of the C that vm-cc writes. A line of the form "@@ names" between slashes and asterisks begins a
 * part, and names what the part defines. A program gets the parts whose names it uses, and those that these
 * use. The text before the first part belongs to no program; it lets this file compile alone. A part uses
 * parts before it in this file, and in the files that this one includes. */
#include "support.h"

/*@@ vm_f32 */
static inline float vm_f32(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/*@@ vm_bits_f32 */
static inline uint32_t vm_bits_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/*@@ vm_f64 */
static inline double vm_f64(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/*@@ vm_bits_f64 */
static inline uint64_t vm_bits_f64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/*@@ vm_if_less */
/* x < y ? a : b */
static inline double vm_if_less(double x, double y, double a, double b) {
  const uint64_t mask = 0 - (uint64_t)(x < y);
  return vm_f64((vm_bits_f64(a) & mask) | (vm_bits_f64(b) & ~mask));
}

/*@@ vm_if_bit */
/* Bit i of x ? a : b */
static inline double vm_if_bit(double x, int i, double a, double b) {
  const uint64_t mask = 0 - (vm_bits_f64(x) >> i & 1);
  return vm_f64((vm_bits_f64(a) & mask) | (vm_bits_f64(b) & ~mask));
}

/*@@ vm_unless_nan */
/* The value, or x if it is a NaN, which becomes quiet. */
static inline float vm_unless_nan(float x, float value) {
  const uint32_t mask = 0 - (uint32_t)(x != x);
  return vm_f32((vm_bits_f32(x + x) & mask) | (vm_bits_f32(value) & ~mask));
}

/*@@ vm_unless_nans */
/* The value, or x or y if it is a NaN, which becomes quiet. */
static inline float vm_unless_nans(float x, float y, float value) {
  const uint32_t mask = 0 - (uint32_t)(x != x || y != y);
  return vm_f32((vm_bits_f32(x + y) & mask) | (vm_bits_f32(value) & ~mask));
}

/*@@ vm_pair */
static inline uint64_t vm_pair(uint32_t low, uint32_t high) { return low | (uint64_t)high << 32; }

/*@@ vm_split */
static inline void vm_split(uint64_t pair, uint32_t* low, uint32_t* high) {
  *low = (uint32_t)pair;
  *high = (uint32_t)(pair >> 32);
}

/*@@ vm_get_8 */
static inline uint32_t vm_get_8(const unsigned char* from) { return *from; }

/*@@ vm_get_16 */
static inline uint32_t vm_get_16(const unsigned char* from) {
  uint16_t value;
  memcpy(&value, from, sizeof value);
  return value;
}

/*@@ vm_get_32 */
static inline uint32_t vm_get_32(const unsigned char* from) {
  uint32_t value;
  memcpy(&value, from, sizeof value);
  return value;
}

/*@@ vm_get_64 */
static inline uint64_t vm_get_64(const unsigned char* from) {
  uint64_t value;
  memcpy(&value, from, sizeof value);
  return value;
}

/*@@ vm_set_8 */
static inline void vm_set_8(unsigned char* to, uint8_t value) { *to = value; }

/*@@ vm_set_16 */
static inline void vm_set_16(unsigned char* to, uint16_t value) { memcpy(to, &value, sizeof value); }

/*@@ vm_set_32 */
static inline void vm_set_32(unsigned char* to, uint32_t value) { memcpy(to, &value, sizeof value); }

/*@@ vm_set_64 */
static inline void vm_set_64(unsigned char* to, uint64_t value) { memcpy(to, &value, sizeof value); }

/*@@ vm_fail */
static int vm_fail(vm_state* s, int code, const char* message) {
  s->message = message;
  s->has_parts = 0;
  return code;
}

/*@@ vm_fail_in_parts */
/* Each '$' of the message stands for the next of `numbers`, each '@' for the next of `names`. */
static int vm_fail_in_parts(vm_state* s, int code, const char* message) {
  s->message = message;
  s->has_parts = 1;
  return code;
}

/*@@ vm_fail_with */
static int vm_fail_with(vm_state* s, int code, const char* message, uint64_t a, uint64_t b, uint64_t c) {
  s->numbers[0] = a;
  s->numbers[1] = b;
  s->numbers[2] = c;
  return vm_fail_in_parts(s, code, message);
}

/*@@ vm_program_failure */
/* Codes that are no failures become UNKNOWN. */
static int vm_program_failure(vm_state* s, uint32_t status, const char* message) {
  const uint32_t code = status & 31;
  return vm_fail(s, code == 0 || code == 17 || code > 18 ? 2 : (int)code, message);
}

/*@@ vm_too_deep */
static int vm_too_deep(vm_state* s) {
  return vm_fail_with(s, 8, "calls are nested deeper than $", VM_MAX_DEPTH, 0, 0);
}

/*@@ vm_stop */
/* Ends functions that return no status: all that are called from now on return at once. */
static void vm_stop(vm_state* s) {
  if (s->stopped != 0) return;
  (void)vm_too_deep(s);
  s->stopped = UINT32_MAX;
}

/*@@ vm_was_too_deep */
/* The status of the first of them. */
static int vm_was_too_deep(vm_state* s) {
  s->stopped = 0;
  return 8;
}

/*@@ vm_division_by_zero */
static int vm_division_by_zero(vm_state* s) { return vm_fail(s, 3, "integer division by zero"); }

/*@@ vm_globals */
static inline unsigned char* vm_globals(vm_state* s) { return (unsigned char*)s->globals; }

/*@@ vm_in_globals */
static inline int vm_in_globals(uint32_t offset, uint32_t size) {
  return (uint64_t)offset + size <= VM_GLOBAL_BYTES;
}

/*@@ vm_outside_globals */
static int vm_outside_globals(vm_state* s, uint32_t offset, uint32_t size) {
  return vm_fail_with(s, 11, "$ bytes at offset $ are not within the $ bytes of globals", size, offset,
                      VM_GLOBAL_BYTES);
}

/*@@ vm_lesser */
static inline uint64_t vm_lesser(uint64_t x, uint64_t y) { return x < y ? x : y; }

/*@@ vm_greater */
static inline uint64_t vm_greater(uint64_t x, uint64_t y) { return x > y ? x : y; }

/*@@ vm_most_sum */
/* The functions vm_most_* compute what numbers in a loop are at most. `limit` is the greatest number of the
 * type: the bound of what may wrap. Operands are bounds of numbers of the same type. */
static inline uint64_t vm_most_sum(uint64_t x, uint64_t y, uint64_t limit) {
  return x > limit - y ? limit : x + y;
}

/*@@ vm_most_product */
/* Without division, so products of large numbers have the limit. */
static inline uint64_t vm_most_product(uint64_t x, uint64_t y, uint64_t limit) {
  if (x == 0 || y == 0) return 0;
  return ((x | y) >> 32) != 0 || x * y > limit ? limit : x * y;
}

/*@@ vm_most_compared */
/* A number that is less than one that is at most y (strict), or not greater. `half` is the greatest number
 * that the comparison does not take for a negative one. */
static inline uint64_t vm_most_compared(uint64_t y, int strict, uint64_t half) {
  const uint64_t most = y < half ? y : half;
  return strict && most != 0 ? most - 1 : most;
}

/*@@ vm_most_below */
/* A number that is at most x and compared with y. */
static inline uint64_t vm_most_below(uint64_t x, uint64_t y, int strict, uint64_t half) {
  return x > half ? x : vm_lesser(x, vm_most_compared(y, strict, half));
}

/*@@ vm_most_counter */
/* A counter that begins with `first` and grows by at most `step`, which a comparison with `bound` allows:
 * of the counter before the step, or after it (is_late). */
static inline uint64_t vm_most_counter(uint64_t first, uint64_t bound, int strict, uint64_t step, int is_late,
                                       uint64_t half, uint64_t limit) {
  uint64_t last = vm_most_compared(bound, strict, half);
  if (!is_late) last = vm_most_sum(last, step, limit);
  const uint64_t most = vm_greater(first, last);
  /* Negative numbers would pass a signed comparison. */
  if (half != limit && vm_most_sum(most, is_late ? step : 0, limit) > half) return limit;
  return most;
}

/*@@ vm_divide_32 */
/* The smallest number divided by -1 wraps. */
static inline uint32_t vm_divide_32(uint32_t x, uint32_t y) {
  return y == UINT32_MAX ? 0 - x : (uint32_t)((int32_t)x / (int32_t)y);
}

/*@@ vm_divide_64 */
static inline uint64_t vm_divide_64(uint64_t x, uint64_t y) {
  return y == UINT64_MAX ? 0 - x : (uint64_t)((int64_t)x / (int64_t)y);
}

/*@@ vm_remainder_32 */
static inline uint32_t vm_remainder_32(uint32_t x, uint32_t y) {
  return y == UINT32_MAX ? 0 : (uint32_t)((int32_t)x % (int32_t)y);
}

/*@@ vm_remainder_64 */
static inline uint64_t vm_remainder_64(uint64_t x, uint64_t y) {
  return y == UINT64_MAX ? 0 : (uint64_t)((int64_t)x % (int64_t)y);
}

/*@@ vm_leading_zeros_32 */
static inline uint32_t vm_leading_zeros_32(uint32_t x) {
  uint32_t count = 32;
  while (x != 0) {
    x >>= 1;
    --count;
  }
  return count;
}

/*@@ vm_leading_zeros_64 */
static inline uint32_t vm_leading_zeros_64(uint64_t x) {
  uint32_t count = 64;
  while (x != 0) {
    x >>= 1;
    --count;
  }
  return count;
}

/*@@ vm_sign_extend_8 */
static inline uint32_t vm_sign_extend_8(uint32_t x) { return ((x & 0xFF) ^ 0x80) - 0x80; }

/*@@ vm_sign_extend_16 */
static inline uint32_t vm_sign_extend_16(uint32_t x) { return ((x & 0xFFFF) ^ 0x8000) - 0x8000; }

/*@@ vm_abs_f32 */
static inline float vm_abs_f32(float x) { return vm_f32(vm_bits_f32(x) & 0x7FFFFFFFu); }

/*@@ vm_abs_f64 */
static inline double vm_abs_f64(double x) { return vm_f64(vm_bits_f64(x) & UINT64_C(0x7FFFFFFFFFFFFFFF)); }

/*@@ vm_neg_f32 */
static inline float vm_neg_f32(float x) { return vm_f32(vm_bits_f32(x) ^ 0x80000000u); }

/*@@ vm_neg_f64 */
static inline double vm_neg_f64(double x) { return vm_f64(vm_bits_f64(x) ^ UINT64_C(0x8000000000000000)); }

/*@@ vm_round_even_f32 */
/* Halves to even, except that -0.5 becomes +0. */
static inline float vm_round_even_f32(float x) {
  const float away = roundf(x);
  if (fabsf(x - away) != 0.5f || fmodf(away, 2.0f) == 0.0f) return away;
  return away > 0.0f ? away - 1.0f : away + 1.0f;
}

/*@@ vm_round_even_f64 */
static inline double vm_round_even_f64(double x) {
  const double away = round(x);
  if (fabs(x - away) != 0.5 || fmod(away, 2.0) == 0.0) return away;
  return away > 0.0 ? away - 1.0 : away + 1.0;
}

/*@@ vm_to_i64_f32 */
/* Halves away from zero; the smallest number if the result does not fit. */
static inline uint64_t vm_to_i64_f32(float x) {
  const float away = roundf(x);
  if (away >= -9223372036854775808.0f && away < 9223372036854775808.0f) return (uint64_t)(int64_t)away;
  return UINT64_C(0x8000000000000000);
}

/*@@ vm_to_i64_f64 */
static inline uint64_t vm_to_i64_f64(double x) {
  const double away = round(x);
  if (away >= -9223372036854775808.0 && away < 9223372036854775808.0) return (uint64_t)(int64_t)away;
  return UINT64_C(0x8000000000000000);
}

/*@@ vm_to_u64 */
/* Negative values wrap; values that are too large give 2^63, or 0 from 2^64 on. */
static inline uint64_t vm_to_u64(float x) {
  const float limit = 9223372036854775808.0f;
  const float away = roundf(x);
  if (!(away >= limit)) return vm_to_i64_f32(x);
  return away - limit < limit ? (uint64_t)(int64_t)(away - limit) ^ UINT64_C(0x8000000000000000) : 0;
}
