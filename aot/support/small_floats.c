/* Floats of 16 and 8 bits. */
#include "base.c"

/*@@ vm_small_float vm_small_float_of */
typedef struct vm_small_float {
  uint32_t type; /* the upper byte of the element type */
  uint32_t bits;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  uint32_t largest;  /* finite code, without the sign */
  uint32_t overflow; /* infinity; NaN in formats without one */
  uint32_t nan;
  int has_sign;
  int has_negative_zero;
} vm_small_float;

/* NULL if the elements have another type. */
static const vm_small_float* vm_small_float_of(uint32_t element_type) {
  static const vm_small_float all[] = {{0x21, 16, 5, 10, 15, 0x7BFF, 0x7C00, 0x7E00, 1, 1}, /* f16 */
                                       {0x22, 16, 8, 7, 127, 0x7F7F, 0x7F80, 0x7FC0, 1, 1}, /* bf16 */
                                       {0x24, 8, 5, 2, 15, 0x7B, 0x7C, 0x7E, 1, 1},         /* f8E5M2 */
                                       {0x25, 8, 4, 3, 7, 0x7E, 0x7F, 0x7F, 1, 1},          /* f8E4M3FN */
                                       {0x26, 8, 5, 2, 16, 0x7F, 0x80, 0x80, 1, 0},         /* f8E5M2FNUZ */
                                       {0x27, 8, 4, 3, 8, 0x7F, 0x80, 0x80, 1, 0},          /* f8E4M3FNUZ */
                                       {0x28, 8, 8, 0, 127, 0xFE, 0xFF, 0xFF, 0, 0}};       /* f8E8M0FNU */
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
    if (all[i].type == element_type >> 24 && all[i].bits == (element_type & 0xFF)) return &all[i];
  return NULL;
}

/*@@ vm_small_magnitude */
/* The value of a code without its sign, as if no code were infinity or NaN. */
static double vm_small_magnitude(const vm_small_float* format, uint32_t code) {
  const int exponent = (int)(code >> format->mantissa_bits);
  const uint32_t mantissa = code & ((1u << format->mantissa_bits) - 1);
  if (!format->has_sign) return ldexp(1.0, exponent - format->bias);
  if (exponent == 0) return ldexp((double)mantissa, 1 - format->bias - format->mantissa_bits);
  return ldexp((double)(mantissa + (1u << format->mantissa_bits)),
               exponent - format->bias - format->mantissa_bits);
}

/*@@ vm_small_value */
static double vm_small_value(const vm_small_float* format, uint32_t code) {
  const int width = format->exponent_bits + format->mantissa_bits;
  const uint32_t magnitude = code & ((1u << width) - 1);
  const int negative = format->has_sign && (code >> width & 1) != 0;
  if (!format->has_negative_zero && code == format->nan) return (double)NAN;
  if (magnitude > format->largest && (format->overflow == format->nan || magnitude != format->overflow))
    return copysign((double)NAN, negative ? -1.0 : 1.0);
  const double value = magnitude > format->largest ? (double)INFINITY : vm_small_magnitude(format, magnitude);
  return negative ? -value : value;
}

/*@@ vm_small_code */
/* The code of the nearest value, ties to even. */
static uint32_t vm_small_code(const vm_small_float* format, double value) {
  const uint32_t sign =
      format->has_negative_zero && signbit(value) ? 1u << (format->exponent_bits + format->mantissa_bits) : 0;
  const double magnitude = fabs(value);
  uint32_t low = 0;
  uint32_t high = format->largest + 1;
  if (isnan(value) || (!format->has_sign && value < 0)) return format->nan | sign;
  if (isinf(value)) return format->overflow | sign;
  /* The codes without signs are in the order of their values. */
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (vm_small_magnitude(format, middle) <= magnitude)
      low = middle;
    else
      high = middle;
  }
  const double below = magnitude - vm_small_magnitude(format, low);
  const double above = vm_small_magnitude(format, high) - magnitude;
  const uint32_t code = below > above || (below == above && (low & 1) != 0) ? high : low;
  if (code > format->largest) return format->overflow | sign;
  if (format->has_negative_zero) return code | sign;
  return code != 0 && format->has_sign && signbit(value)
             ? code | 1u << (format->exponent_bits + format->mantissa_bits)
             : code;
}
