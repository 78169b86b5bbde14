/* An optional function of a compiler library beyond jit_abi.h: explains, as text, how it compiles a function.
 * For tools. */
#pragma once

#include "vm/decode/jit_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Receives text, which is valid during the call. */
typedef void (*halyard_jit_take_fn)(void* user, const char* text, size_t size);

typedef struct halyard_jit_explanation_t {
  size_t struct_size;
  void* user;
  halyard_jit_take_fn take_ir;       /* LLVM IR after all passes; called once */
  halyard_jit_take_fn take_assembly; /* for this processor; called once, last */
} halyard_jit_explanation_t;

/* Exported as halyard_jit_explain. Returns 1 if both texts were passed. Returns 0 if the function stays
 * interpreted, with the reason as from compile(). Keeps no code and uses no cache. Any thread. */
typedef int (*halyard_jit_explain_fn)(const halyard_jit_function_t* function,
                                      const halyard_jit_explanation_t* explanation, char* reason,
                                      size_t reason_size);

#ifdef __cplusplus
}
#endif
