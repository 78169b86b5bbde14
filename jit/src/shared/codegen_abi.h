/* The interface between the compiler library and its code generator. Plain C. Both must be of one build,
 * which HALYARD_JIT_CODEGEN_ABI confirms. */
#pragma once

#include "vm/compile/jit_explain.h"
#include "vm/decode/jit_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HALYARD_JIT_CODEGEN_ABI = 1 };

/* Passes the bytes of an image (shared/image.h) for a function without addresses (front/plain_function.h) to
 * the callback, and returns 1. Returns 0 if the function stays interpreted; `reason` then has the reason,
 * zero-terminated and truncated to `reason_size` bytes. Any thread; threads do not wait for each other. */
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
