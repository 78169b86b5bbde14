/* What the compiler library and its code generator say to each other. Plain C; both are of one build, which
 * HALYARD_JIT_CODEGEN_ABI confirms. */
#pragma once

#include "vm/compile/jit_explain.h"
#include "vm/decode/jit_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HALYARD_JIT_CODEGEN_ABI = 1 };

/* Gives the bytes of an image (shared/image.h) for a function without addresses (front/plain_function.h), and
 * returns 1. 0: the function stays interpreted; `reason` says why, cut to `reason_size` bytes and ended with
 * a zero. Any thread; none waits for another. */
typedef int (*halyard_jit_generate_fn)(const halyard_jit_function_t* function, void* user,
                                       halyard_jit_take_fn take, char* reason, size_t reason_size);

typedef struct halyard_jit_codegen_t {
  uint32_t abi; /* HALYARD_JIT_CODEGEN_ABI */
  halyard_jit_generate_fn generate;
  halyard_jit_explain_fn explain;
} halyard_jit_codegen_t;

/* Exported as halyard_jit_codegen. */
typedef const halyard_jit_codegen_t* (*halyard_jit_codegen_fn)(void);

#ifdef __cplusplus
}
#endif
