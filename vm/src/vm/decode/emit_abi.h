/* The interface between vm-cc and the library that compiles kernels ahead of time: a note, and one exported
 * function. Plain C. The library reads decoded code (vm/decode/code.h), so both sides must be built from the
 * same tables; `code_format` identifies them. Not public, because both sides are installed together. */
#pragma once

#include "vm/decode/jit_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HALYARD_EMIT_ABI = 2 };

/* The note of the library is a halyard_jit_note_record_t, of this type and in this section, with
 * HALYARD_EMIT_ABI. */
#define HALYARD_NOTE_TYPE_EMITTER 5u
#define HALYARD_EMIT_NOTE_SECTION ".note.halyard.emitter"

/* A constant of the executable. `object` is its address in decoded words. */
typedef struct halyard_emit_constant_t {
  const void* object;
  const void* data;
  uint64_t size;
} halyard_emit_constant_t;

/* A function that the executable imports, by its ordinal in decoded words. */
typedef struct halyard_emit_import_t {
  const char* name; /* with the module's: "vmvx.mmt4d" */
  const char* convention;
} halyard_emit_import_t;

typedef struct halyard_emit_kernel_t {
  const char* name;
  /* Decoded with entries and without fused instructions. `layout` is ignored. The arguments are those of a
   * kernel in bytecode (exec-vmvx.md, section 2). */
  halyard_jit_function_t function;
  uint32_t binding_count;
  uint32_t constant_count;
  uint32_t local_memory; /* bytes */
} halyard_emit_kernel_t;

/* An executable to compile for one processor. Everything is borrowed for the call. */
typedef struct halyard_emit_request_t {
  size_t struct_size;
  uint64_t code_format;
  const char* name;      /* of the library, for display */
  const char* triple;    /* as LLVM names the target */
  const char* processor; /* as LLVM names it */
  const char* features;  /* beyond those of the processor, as LLVM writes them: "+a,+b" */
  const halyard_emit_kernel_t* kernels;
  size_t kernel_count;
  const halyard_emit_constant_t* constants;
  size_t constant_count;
  const halyard_emit_import_t* imports;
  size_t import_count;
  const void* buffer_type; /* the address of the type of a buffer in decoded words */
  /* Local memory for the buffers of a kernel whose number of bytes is known at run time; 0: kernels with such
   * buffers are not compiled. */
  uint64_t dynamic_memory;
} halyard_emit_request_t;

typedef void (*halyard_emit_take_fn)(void* user, const char* bytes, size_t size);

/* Passes the bytes of a library of kernels (exec-cpu-library.md, sections 3, 5 and 9) to the callback, and
 * returns 1. Returns 0 if a kernel is not compiled; `reason` then says which and why, zero-terminated and
 * truncated to `reason_size` bytes. The same request gives the same bytes. One thread at a time. */
typedef int (*halyard_emit_fn)(const halyard_emit_request_t* request, void* user, halyard_emit_take_fn take,
                               char* reason, size_t reason_size);
/* Exported as halyard_emit. */

#ifdef __cplusplus
}
#endif
