/* What a compiler library may say beyond jit_abi.h: how it would compile a function, as text. For tools. */
#pragma once

#include "vm/decode/jit_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Takes text that the compiler lends for the call. */
typedef void (*halyard_jit_take_fn)(void* user, const char* text, size_t size);

typedef struct halyard_jit_explanation_t {
  size_t struct_size;
  void* user;
  halyard_jit_take_fn take_ir;       /* LLVM's representation after all passes; called once */
  halyard_jit_take_fn take_assembly; /* for this processor; called once, last */
} halyard_jit_explanation_t;

/* Exported as halyard_jit_explain. 1: both texts were given. 0: the function stays interpreted; `reason` says
 * why, as from compile(). No code is kept, and no cache is used. Any thread. */
typedef int (*halyard_jit_explain_fn)(const halyard_jit_function_t* function,
                                      const halyard_jit_explanation_t* explanation, char* reason,
                                      size_t reason_size);

#ifdef __cplusplus
}
#endif
