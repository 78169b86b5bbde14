/* Element types of views. Plain C11; includes nothing.
 *
 * A number is `numerical type << 24 | bits per element`; a complex element counts the bits of both parts.
 * These are the types that compilers and DLPack use. Views may have other types, such as 2-bit integers
 * (0x10000002). The comment beside each type is its text, as halyard_element_type_text returns it. Numbers
 * never change.
 *
 * Specified by docs/spec/hal-types.md, "Element types".
 */
#ifndef HALYARD_ELEMENT_TYPE_H_
#define HALYARD_ELEMENT_TYPE_H_

enum {
  HALYARD_ELEMENT_NONE = 0,

  HALYARD_ELEMENT_OPAQUE8 = 0x00000008,  /* *8 */
  HALYARD_ELEMENT_OPAQUE16 = 0x00000010, /* *16 */
  HALYARD_ELEMENT_OPAQUE32 = 0x00000020, /* *32 */
  HALYARD_ELEMENT_OPAQUE64 = 0x00000040, /* *64 */

  HALYARD_ELEMENT_BOOL = 0x13000008, /* i1: one byte, 0 or 1 */

  /* Integers without signedness: programs interpret them as signed or unsigned. Printed as signed. */
  HALYARD_ELEMENT_I4 = 0x10000004,  /* i4: two in a byte */
  HALYARD_ELEMENT_I8 = 0x10000008,  /* i8 */
  HALYARD_ELEMENT_I16 = 0x10000010, /* i16 */
  HALYARD_ELEMENT_I32 = 0x10000020, /* i32 */
  HALYARD_ELEMENT_I64 = 0x10000040, /* i64 */

  HALYARD_ELEMENT_SI4 = 0x11000004,  /* si4 */
  HALYARD_ELEMENT_SI8 = 0x11000008,  /* si8 */
  HALYARD_ELEMENT_SI16 = 0x11000010, /* si16 */
  HALYARD_ELEMENT_SI32 = 0x11000020, /* si32 */
  HALYARD_ELEMENT_SI64 = 0x11000040, /* si64 */

  HALYARD_ELEMENT_UI4 = 0x12000004,  /* ui4 */
  HALYARD_ELEMENT_UI8 = 0x12000008,  /* ui8 */
  HALYARD_ELEMENT_UI16 = 0x12000010, /* ui16 */
  HALYARD_ELEMENT_UI32 = 0x12000020, /* ui32 */
  HALYARD_ELEMENT_UI64 = 0x12000040, /* ui64 */

  HALYARD_ELEMENT_F16 = 0x21000010,  /* f16 */
  HALYARD_ELEMENT_F32 = 0x21000020,  /* f32 */
  HALYARD_ELEMENT_F64 = 0x21000040,  /* f64 */
  HALYARD_ELEMENT_BF16 = 0x22000010, /* bf16 */

  HALYARD_ELEMENT_CF64 = 0x23000040,  /* cf64: complex, two f32 */
  HALYARD_ELEMENT_CF128 = 0x23000080, /* cf128: complex, two f64 */

  HALYARD_ELEMENT_F8E5M2 = 0x24000008,     /* f8E5M2 */
  HALYARD_ELEMENT_F8E4M3FN = 0x25000008,   /* f8E4M3FN */
  HALYARD_ELEMENT_F8E5M2FNUZ = 0x26000008, /* f8E5M2FNUZ */
  HALYARD_ELEMENT_F8E4M3FNUZ = 0x27000008, /* f8E4M3FNUZ */
  HALYARD_ELEMENT_F8E8M0FNU = 0x28000008,  /* f8E8M0FNU */
};

#endif /* HALYARD_ELEMENT_TYPE_H_ */
