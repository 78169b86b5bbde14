/* Signatures: kinds, element types, shapes and names of a function's arguments and results. Plain C11; link
 * with libhalyard.
 *
 * A signature combines two sources, which are read once. The calling convention of the function is exact. The
 * declaration (attribute iree.abi.declaration), which compilers write for people, provides element types,
 * shapes and names. They are unknown without a declaration, and if the declaration contradicts the
 * convention. Reading the entries of a signature does not allocate.
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

typedef struct halyard_signature* halyard_signature_t; /* immutable; any thread; keeps its module alive */

/* Numbers never change; later versions may add some. */
enum {
  HALYARD_KIND_OBJECT = 0, /* an object or null; `type` names its type if known */
  HALYARD_KIND_SCALAR = 1, /* a number */
  HALYARD_KIND_TENSOR = 2, /* a view (hal.buffer_view) */
  HALYARD_KIND_BUFFER = 3, /* a buffer of a device (hal.buffer) */
  HALYARD_KIND_BYTES = 4,  /* a buffer of the program (vm.buffer) */
  HALYARD_KIND_LIST = 5,   /* vm.list */
  HALYARD_KIND_FENCE = 6,  /* hal.fence */
  HALYARD_KIND_SPAN = 7,   /* any number of tuples of values; only modules can call such a function */
};

#define HALYARD_DIMENSION_DYNAMIC (-1)  /* in a shape: any size */
#define HALYARD_RANK_UNKNOWN UINT32_MAX /* a tensor of any shape */

typedef struct halyard_value_description {
  uint32_t struct_size;
  uint32_t kind; /* HALYARD_KIND_* */
  /* The `kind` of the halyard_value_t: HALYARD_VALUE_I32, _I64, _F32, _F64 or _OBJECT; for spans
   * HALYARD_VALUE_NULL. */
  uint32_t value_kind;
  /* HALYARD_ELEMENT_*: for a tensor the type of its elements; for a number its declared type, which may be
   * narrower than value_kind. HALYARD_ELEMENT_NONE if unknown, and for other kinds. */
  uint32_t element_type;
  uint32_t rank; /* for a tensor: dimensions in `shape`, or HALYARD_RANK_UNKNOWN; 0 for other kinds */
  uint32_t reserved;
  const int64_t* shape; /* sizes, or HALYARD_DIMENSION_DYNAMIC */
  halyard_text_t name;  /* "input0"; may be empty */
  halyard_text_t type;  /* as declared, "tensor<?x4xf32>"; may be empty */
} halyard_value_description_t;

/* The signature of an export, by its index in the module. OUT_OF_RANGE: no such index; UNIMPLEMENTED,
 * INVALID_ARGUMENT: this host does not know the calling convention. */
HALYARD_API halyard_status_t halyard_module_signature(halyard_module_t module, uint32_t index,
                                                      halyard_signature_t* out);
HALYARD_API halyard_status_t halyard_function_signature(halyard_function_t function,
                                                        halyard_signature_t* out);

/* Texts and shapes of the following functions live as long as the signature. */

/* Reads name, counts and declaration. */
HALYARD_API halyard_status_t halyard_signature_describe(halyard_signature_t signature,
                                                        halyard_function_description_t* description);
/* Reads an argument or a result, by index from 0; OUT_OF_RANGE after the last. The last two arguments of an
 * asynchronous function are its wait fence and its signal fence. */
HALYARD_API halyard_status_t halyard_signature_argument(halyard_signature_t signature, size_t index,
                                                        halyard_value_description_t* description);
HALYARD_API halyard_status_t halyard_signature_result(halyard_signature_t signature, size_t index,
                                                      halyard_value_description_t* description);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_SIGNATURE_H_ */
