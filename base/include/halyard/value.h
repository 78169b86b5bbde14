/* Values that cross Halyard's C ABIs: between an embedder and a program (halyard/halyard.h), and between a
 * program and a native module (halyard/module.h). Plain C11.
 *
 * An object is a value that programs pass by reference: a buffer, list, view, fence, or object of a native
 * module. Objects are reference-counted. Each function documents who owns its objects.
 */
#ifndef HALYARD_VALUE_H_
#define HALYARD_VALUE_H_

#include <stdint.h>

typedef struct halyard_object* halyard_object_t;

/* Kinds. Numbers never change. */
enum {
  HALYARD_VALUE_NULL = 0, /* a null reference */
  HALYARD_VALUE_I32 = 1,
  HALYARD_VALUE_I64 = 2,
  HALYARD_VALUE_F32 = 3,
  HALYARD_VALUE_F64 = 4,
  HALYARD_VALUE_OBJECT = 5,
  HALYARD_VALUE_I8 = 6, /* only as elements of lists */
  HALYARD_VALUE_I16 = 7,
};

/* Frozen: 16 bytes. */
typedef struct halyard_value {
  uint32_t kind; /* HALYARD_VALUE_* */
  uint32_t reserved;
  union {
    int32_t i32; /* also i8 and i16 */
    int64_t i64;
    float f32;
    double f64;
    halyard_object_t object;
  };
} halyard_value_t;

#endif /* HALYARD_VALUE_H_ */
