/* Programs as native modules: what C that was translated from a module of bytecode needs beside
 * halyard/module.h, so that it behaves as the bytecode does. `vm-cc --runtime=hal` writes such C; nobody
 * needs this header for a module of their own. Plain C11.
 *
 * A definition with a `program` has globals and constants, which the host creates as it does for bytecode.
 * Its functions are frame functions, which get a halyard_program_call_t. They may wait wherever a call of
 * bytecode may, and their failures carry no note of a native function.
 *
 * GROWTH. See halyard/abi.h.
 */
#ifndef HALYARD_PROGRAM_H_
#define HALYARD_PROGRAM_H_

#include "halyard/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A constant, which programs see as a read-only vm.buffer. It is in memory that the process may write, of
 * this module alone, because work on devices may write to constants. Frozen. */
typedef struct halyard_program_constant {
  void* data; /* any alignment; lives as long as the module */
  uint64_t length;
} halyard_program_constant_t;

typedef struct halyard_program {
  uint32_t struct_size;
  uint32_t global_bytes;   /* zero in each new context */
  uint32_t global_objects; /* null in each new context */
  uint32_t type_count;
  /* The types that the program names, as modules name them: "i32", "!vm.buffer", "!hal.fence", "!vm.opaque".
   */
  const char* const* types;
  const halyard_program_constant_t* constants;
  uint32_t constant_count;
  uint32_t flags; /* HALYARD_PROGRAM_* */
} halyard_program_t;

enum {
  HALYARD_PROGRAM_LEGACY_FLOATS = 1u << 0, /* lists convert floats as bytecode 15 does: to 0 */
};

/* The instructions of the machine that create objects or check more than a bound. Statuses and messages are
 * those of the instructions. `type` is an index in the program's types. Objects that are arguments are
 * borrowed; results are references that the caller owns. Offsets and lengths of buffers count bytes, except
 * where `width` is given: then elements of that many bytes. */
typedef struct halyard_program_services {
  uint32_t struct_size;
  uint32_t reserved;
  /* vm.fail: a number that is no failure becomes UNKNOWN. */
  halyard_status_t (*fail)(uint32_t code, const char* message);
  halyard_status_t (*division_by_zero)(const halyard_module_call_t* call);
  halyard_status_t (*global_out_of_range)(const halyard_module_call_t* call, uint32_t offset, uint32_t size);
  halyard_status_t (*global_object_out_of_range)(const halyard_module_call_t* call, uint32_t ordinal);
  /* Calls must not nest so deep that the stack of the calling thread grows below this address. */
  uintptr_t (*stack_end)(void);
  /* RESOURCE_EXHAUSTED: the stack of the program, or of this thread, is too small. */
  halyard_status_t (*too_deep)(const halyard_module_call_t* call);

  /* Null if the object may be used as `type`; null objects always may. */
  halyard_status_t (*type_check)(const halyard_module_call_t* call, uint32_t type, halyard_object_t object);

  /* The bytes of a buffer, as services->buffer_bytes; zeroes for other objects. */
  void (*buffer_span)(halyard_object_t object, halyard_buffer_bytes_t* bytes);
  /* The failure of a load or store of element `offset`; null if it would succeed. */
  halyard_status_t (*buffer_load)(const halyard_module_call_t* call, halyard_object_t buffer, uint64_t offset,
                                  uint32_t width);
  halyard_status_t (*buffer_store)(const halyard_module_call_t* call, halyard_object_t buffer,
                                   uint64_t offset, uint32_t width);
  halyard_status_t (*buffer_alloc)(const halyard_module_call_t* call, uint64_t length, uint32_t alignment,
                                   halyard_object_t* out);
  halyard_status_t (*buffer_clone)(const halyard_module_call_t* call, halyard_object_t source,
                                   uint64_t offset, uint64_t length, uint32_t alignment,
                                   halyard_object_t* out);
  halyard_status_t (*buffer_length)(const halyard_module_call_t* call, halyard_object_t buffer,
                                    uint64_t* length);
  halyard_status_t (*buffer_copy)(const halyard_module_call_t* call, halyard_object_t source,
                                  uint64_t source_offset, halyard_object_t target, uint64_t target_offset,
                                  uint64_t length);
  halyard_status_t (*buffer_compare)(const halyard_module_call_t* call, halyard_object_t lhs,
                                     uint64_t lhs_offset, halyard_object_t rhs, uint64_t rhs_offset,
                                     uint64_t length, uint32_t* equal);
  halyard_status_t (*buffer_fill)(const halyard_module_call_t* call, halyard_object_t buffer, uint64_t offset,
                                  uint64_t length, uint64_t pattern,
                                  uint32_t width); /* width: 1, 2, 4 or 8 */
  halyard_status_t (*buffer_hash)(const halyard_module_call_t* call, halyard_object_t buffer, uint64_t offset,
                                  uint64_t length, uint64_t* hash);

  halyard_status_t (*list_alloc)(const halyard_module_call_t* call, uint32_t type, uint32_t capacity,
                                 halyard_object_t* out);
  halyard_status_t (*list_reserve)(const halyard_module_call_t* call, halyard_object_t list,
                                   uint32_t capacity);
  halyard_status_t (*list_size)(const halyard_module_call_t* call, halyard_object_t list, uint32_t* size);
  halyard_status_t (*list_resize)(const halyard_module_call_t* call, halyard_object_t list, uint32_t size);
  /* `kind`: HALYARD_VALUE_I32, I64, F32 or F64; the value is its bits. */
  halyard_status_t (*list_get)(const halyard_module_call_t* call, halyard_object_t list, uint32_t index,
                               uint32_t kind, uint64_t* bits);
  halyard_status_t (*list_set)(const halyard_module_call_t* call, halyard_object_t list, uint32_t index,
                               uint32_t kind, uint64_t bits);
  /* Null if the element has another type. `moves` not 0: the element becomes null. */
  halyard_status_t (*list_get_object)(const halyard_module_call_t* call, halyard_object_t list,
                                      uint32_t index, uint32_t type, uint32_t moves, halyard_object_t* out);
  halyard_status_t (*list_set_object)(const halyard_module_call_t* call, halyard_object_t list,
                                      uint32_t index, halyard_object_t object);
} halyard_program_services_t;

/* The part of a call that only programs have (halyard_module_call_t.program). Valid for the call. */
typedef struct halyard_program_call {
  uint32_t struct_size;
  uint32_t global_bytes;
  const halyard_program_services_t* services;
  uint8_t* globals; /* of the context; aligned to 16 bytes */
  halyard_object_t* global_objects;
  const halyard_object_t* constants; /* vm.buffers, in the program's order */
  uint64_t stack_bytes;              /* the limit of the context for the registers of nested calls */
} halyard_program_call_t;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_PROGRAM_H_ */
