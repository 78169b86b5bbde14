/* What a function takes and gives, as data: kinds, element types, shapes, names. Plain C11; the functions are
 * libhalyard's.
 *
 * A signature is read once from the function's calling convention, which is exact, and from its declaration
 * (attribute iree.abi.declaration), which compilers write for people: element types, shapes and names come
 * from it. Without a declaration, or where it contradicts the convention, they are unknown. Reading the
 * entries of a signature allocates nothing.
 *
 *   halyard_signature_t signature;
 *   halyard_value_description_t x = {.struct_size = sizeof x};
 *   halyard_function_signature(function, &signature);
 *   halyard_signature_argument(signature, 0, &x); // HALYARD_KIND_TENSOR, HALYARD_ELEMENT_F32, {-1, 4}, "x"
 */
#ifndef HALYARD_SIGNATURE_H_
#define HALYARD_SIGNATURE_H_

#include "halyard/halyard.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct halyard_signature* halyard_signature_t; /* does not change; any thread; holds its module */

/* Numbers never change; more may come. */
enum {
  HALYARD_KIND_OBJECT = 0, /* an object or null; `type` says of which type, if that is known */
  HALYARD_KIND_SCALAR = 1, /* a number */
  HALYARD_KIND_TENSOR = 2, /* a view (hal.buffer_view) */
  HALYARD_KIND_BUFFER = 3, /* a buffer of a device (hal.buffer) */
  HALYARD_KIND_BYTES = 4,  /* a buffer of the program (vm.buffer) */
  HALYARD_KIND_LIST = 5,   /* vm.list */
  HALYARD_KIND_FENCE = 6,  /* hal.fence */
  HALYARD_KIND_SPAN = 7,   /* any number of tuples of values: only modules can call such a function */
};

#define HALYARD_DIMENSION_DYNAMIC (-1)  /* in a shape: any size */
#define HALYARD_RANK_UNKNOWN UINT32_MAX /* a tensor of any shape */

typedef struct halyard_value_description {
  uint32_t struct_size;
  uint32_t kind; /* HALYARD_KIND_* */
  /* Of its halyard_value_t: HALYARD_VALUE_I32, _I64, _F32, _F64 or _OBJECT; of a span HALYARD_VALUE_NULL. */
  uint32_t value_kind;
  /* HALYARD_ELEMENT_*, of a tensor's elements, or of the number as declared, which may be narrower than its
   * value_kind; HALYARD_ELEMENT_NONE: unknown, or neither. */
  uint32_t element_type;
  uint32_t rank; /* of a tensor: dimensions in `shape`, or HALYARD_RANK_UNKNOWN; 0 for other kinds */
  uint32_t reserved;
  const int64_t* shape; /* sizes, or HALYARD_DIMENSION_DYNAMIC */
  halyard_text_t name;  /* "input0"; may be empty */
  halyard_text_t type;  /* as declared, "tensor<?x4xf32>"; may be empty */
} halyard_value_description_t;

/* The signature of an export, by its index in the module. OUT_OF_RANGE: index; UNIMPLEMENTED,
 * INVALID_ARGUMENT: its convention is not one that this host knows. */
HALYARD_API halyard_status_t halyard_module_signature(halyard_module_t module, uint32_t index,
                                                      halyard_signature_t* out);
HALYARD_API halyard_status_t halyard_function_signature(halyard_function_t function,
                                                        halyard_signature_t* out);

/* Texts and shapes of the following functions live as long as the signature. */

/* Name, counts and declaration. */
HALYARD_API halyard_status_t halyard_signature_describe(halyard_signature_t signature,
                                                        halyard_function_description_t* description);
/* Arguments and results, from 0; OUT_OF_RANGE after the last. The last two arguments of an asynchronous
 * function are its fences: wait, signal. */
HALYARD_API halyard_status_t halyard_signature_argument(halyard_signature_t signature, size_t index,
                                                        halyard_value_description_t* description);
HALYARD_API halyard_status_t halyard_signature_result(halyard_signature_t signature, size_t index,
                                                      halyard_value_description_t* description);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_SIGNATURE_H_ */
