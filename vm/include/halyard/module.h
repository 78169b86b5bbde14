/* Halyard native modules, ABI version 1: functions that compiled programs import, written in C or callable
 * like C. Plain C11; needs only halyard/status.h, halyard/abi.h and halyard/value.h.
 *
 * A native module is a shared library of any name. It carries an ELF note, from which the host reads the
 * module's identity without running it, and exports one function, halyard_module_negotiate; HALYARD_MODULE
 * defines both. An embedder can instead pass the same definition to halyard_module_create_native
 * (halyard/halyard.h), without a library. docs/native-modules.md states the contract and shows how to write a
 * module.
 *
 * ORDER OF USE:
 *   note -> negotiate -> create_state for each context -> calls -> destroy_state
 * A library stays mapped until the process ends.
 *
 * KINDS OF FUNCTIONS. A plain function is a C function with the C types of its calling convention. The host
 * calls it through libffi, so it needs no glue: `{"hypot", "0FF_F", hypot}`. A frame function gets its call
 * as a struct, because it takes a variable number of arguments or needs more than one attempt.
 *
 * CALLING CONVENTIONS are texts: "0", arguments, "_", results. v: none, i: 32-bit integer, I: 64-bit integer,
 * f: float, F: double, r: reference to an object. C...D is a span: any number of tuples of the types between
 * C and D, only in arguments and only of frame functions. "0iI_F" takes an int32_t and an int64_t and returns
 * a double. An import links to the export with the same name and the same convention string. At most 256
 * arguments and 256 results.
 *
 * A module can access buffers of the program (vm.buffer) and lists, and calls functions of modules that were
 * loaded before it, which it declares as imports. Devices and device buffers are objects that it passes on.
 *
 * OWNERSHIP. Argument objects are borrowed for the call: retain an object to keep it. Result objects are
 * references that the caller owns. A null reference is a null pointer, in both directions.
 *
 * GROWTH. See halyard/abi.h. Arrays state the size of one element beside their count.
 *
 * THREADS. The host calls functions on the thread that runs the program. Calls within one context are
 * sequential unless the embedder allows concurrent calls. Several contexts may call concurrently, each with
 * its own state. Any thread may use the services. A function must not call into the context that called it,
 * except through its imports.
 *
 * FAILURE. A function returns null for success, else a status from services->status_create, which the caller
 * owns. After a failure the host ignores the results. If a C++ exception or a longjmp leaves a function, the
 * behaviour is undefined.
 */
#ifndef HALYARD_MODULE_H_
#define HALYARD_MODULE_H_

#include <stddef.h>
#include <stdint.h>

#include "halyard/abi.h"
#include "halyard/status.h"
#include "halyard/value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HALYARD_MODULE_ABI_V1 1u

/* ---- Host services ------------------------------------------------------------------------------------- */

/* The host's handle of an object type that the module has defined. */
typedef struct halyard_type* halyard_type_t;

/* Ends one wait of one call. Reference-counted, independently of the call. */
typedef struct halyard_wakeup* halyard_wakeup_t;

struct halyard_module_call;
struct halyard_import_call;

/* The room for data that a call keeps between two attempts (call_keep). Frozen. */
typedef struct halyard_kept {
  halyard_object_t* objects;
  void* bytes; /* aligned to 16 bytes */
  uint32_t object_count;
  uint32_t byte_count;
} halyard_kept_t;

/* The bytes of a vm.buffer. Frozen. */
typedef struct halyard_buffer_bytes {
  uint8_t* data;       /* aligned to at least 16 bytes if made by buffer_create; else any alignment */
  uint64_t length;     /* bytes */
  uint32_t is_mutable; /* 0: do not write, because the bytes may be on read-only pages */
  uint32_t reserved;
} halyard_buffer_bytes_t;

/* Valid until the process ends; the same for all modules. All services of version 1 are set. A function with
 * an `out` object returns an owned reference. INVALID_ARGUMENT: an object is null or of the wrong type, or a
 * pointer is null. RESOURCE_EXHAUSTED: out of memory. */
typedef struct halyard_module_services {
  uint32_t struct_size;
  uint32_t reserved;

  /* Returns a new status, owned by the caller; never null. `message` is zero-terminated, says what was
   * expected, what was found and what to do, and is copied. Code 0, code 17 (DEFERRED is no failure) and
   * unknown codes become UNKNOWN. */
  halyard_status_t (*status_create)(halyard_status_code_t code, const char* message);
  halyard_status_t (*status_retain)(halyard_status_t status);    /* another reference; null gives null */
  void (*status_release)(halyard_status_t status);               /* null is allowed */
  halyard_status_code_t (*status_code)(halyard_status_t status); /* HALYARD_OK for null */
  const char* (*status_message)(halyard_status_t status);        /* lives as long as the status */
  /* Appends a note. Takes ownership of `status` and returns it. */
  halyard_status_t (*status_note)(halyard_status_t status, const char* note);

  void (*object_retain)(halyard_object_t object);  /* null is allowed */
  void (*object_release)(halyard_object_t object); /* null is allowed */
  /* The name of the object's type, "vm.buffer"; "" for null. Lives as long as the object. */
  const char* (*object_type)(halyard_object_t object);

  /* Creates a zero-filled, mutable vm.buffer. `alignment` is 0 or a power of two, else INVALID_ARGUMENT. */
  halyard_status_t (*buffer_create)(uint64_t length, uint32_t alignment, halyard_object_t* out);
  /* Creates a vm.buffer over the caller's bytes. The bytes must stay valid until `released` (may be null) is
   * called with `user`: once, on the thread that drops the last reference. Not called on failure. */
  halyard_status_t (*buffer_wrap)(void* data, uint64_t length, uint32_t is_mutable,
                                  void (*released)(void* user), void* user, halyard_object_t* out);
  /* The address of the bytes, valid as long as a reference to the buffer is held. */
  halyard_status_t (*buffer_bytes)(halyard_object_t buffer, halyard_buffer_bytes_t* bytes);

  /* Creates an empty vm.list for values of one kind (I8, I16, I32, I64, F32, F64) or, with
   * HALYARD_VALUE_NULL, of any kind. Lists are not synchronized: one thread at a time. */
  halyard_status_t (*list_create)(uint32_t element_kind, halyard_object_t* out);
  halyard_status_t (*list_size)(halyard_object_t list, uint64_t* size);
  halyard_status_t (*list_resize)(halyard_object_t list, uint64_t size); /* new elements are zero or null */
  /* Reads an element without conversion; an object is an owned reference. OUT_OF_RANGE: no such element. */
  halyard_status_t (*list_get)(halyard_object_t list, uint64_t index, halyard_value_t* value);
  /* Converts numbers to the list's kind as a program would. Borrows an object. OUT_OF_RANGE: no element. */
  halyard_status_t (*list_set)(halyard_object_t list, uint64_t index, const halyard_value_t* value);

  /* Creates an object of a type of the module, over the module's pointer. A failure calls no `destroy`. */
  halyard_status_t (*object_create)(halyard_type_t type, void* pointer, halyard_object_t* out);
  /* Returns the pointer of an object of that type; valid as long as a reference to the object is held. */
  halyard_status_t (*object_pointer)(halyard_type_t type, halyard_object_t object, void** pointer);

  /* Services added after version 1: a module that supports older hosts checks HALYARD_HAS_FIELD. */

  /* Called by a frame function that defers. Sets call->deferred, and delays the next attempt until
   * wakeup_wake is called; no thread is blocked meanwhile. `out` is an owned wakeup. Call it once for each
   * attempt, on the thread of the attempt. FAILED_PRECONDITION: the program cannot wait for the results of
   * this call, or this attempt already waits. */
  halyard_status_t (*call_wait)(struct halyard_module_call* call, halyard_wakeup_t* out);
  /* Ends the wait, but never runs the next attempt itself. Any thread, at any time. No effect if repeated, or
   * if the call has ended or was dropped. */
  void (*wakeup_wake)(halyard_wakeup_t wakeup);    /* null is allowed */
  void (*wakeup_release)(halyard_wakeup_t wakeup); /* null is allowed; does not end the wait */

  /* Services of frame functions, on the thread of the attempt. INVALID_ARGUMENT: `call` is null, or no call
   * of a frame function in a context. */

  /* Calls a function that the module imports. If it waits, import_call->deferred is not 0: the caller then
   * sets call->deferred, returns null, and makes the same call again at its next attempt, with
   * HALYARD_CALL_RESUMED. NOT_FOUND: the import is optional, and nothing provides it. INVALID_ARGUMENT: the
   * counts or kinds of values do not fit the convention. UNIMPLEMENTED: the import has results that it waits
   * for, and the call does not allow that (HALYARD_CALL_MAY_WAIT). Other failures are those of the
   * function. */
  halyard_status_t (*import_call)(struct halyard_module_call* call, struct halyard_import_call* import_call);
  /* Whether something provides the import. */
  uint32_t (*import_is_resolved)(const struct halyard_module_call* call, uint32_t import);
  /* Makes room for data of a call that defers, zeroed and valid until the attempt ends: the function stores
   * what its next attempt needs, and owned references. Several rooms form a stack. The host releases the
   * objects if the call is dropped. */
  halyard_status_t (*call_keep)(struct halyard_module_call* call, uint32_t object_count, uint32_t byte_count,
                                halyard_kept_t* kept);
  /* Takes the room that was made last, whose objects the caller then owns; valid until the next call_keep or
   * import_call. FAILED_PRECONDITION: there is none. */
  halyard_status_t (*call_take)(struct halyard_module_call* call, halyard_kept_t* kept);
  /* Returns the failure of a call whose word `stop` is not 0: CANCELLED or DEADLINE_EXCEEDED. */
  halyard_status_t (*call_stopped)(const struct halyard_module_call* call);
} halyard_module_services_t;

/* ---- Functions ----------------------------------------------------------------------------------------- */

/* Any function pointer, after a cast. */
typedef void (*halyard_any_function_t)(void);

/* Flags of plain functions. */
enum {
  HALYARD_PLAIN_HOST = 1u << 0,   /* takes the host's services: const halyard_module_services_t* */
  HALYARD_PLAIN_STATE = 1u << 1,  /* takes the module's state: void* */
  HALYARD_PLAIN_STATUS = 1u << 2, /* returns halyard_status_t; returns all results through pointers */
};

/* PLAIN FUNCTIONS take these parameters, in this order:
 *   const halyard_module_services_t*, with HALYARD_PLAIN_HOST;
 *   void*, the state, with HALYARD_PLAIN_STATE;
 *   int32_t, int64_t, float, double or halyard_object_t for each i, I, f, F, r of the arguments;
 *   int32_t*, int64_t*, float*, double* or halyard_object_t* for each result that is returned through a
 *   pointer.
 * A function without results returns void. A single result is the return value. Several results are returned
 * through pointers, and the function returns void. With HALYARD_PLAIN_STATUS the function returns a status,
 * and every result is returned through a pointer. The host sets the results to zero before the call, and
 * ignores them after a failure.
 *   "0ii_i"               int32_t f(int32_t, int32_t)
 *   "0FF_FF"              void f(double, double, double*, double*)
 *   "0r_i", HOST|STATUS   halyard_status_t f(const halyard_module_services_t*, halyard_object_t, int32_t*) */

/* The call of a FRAME FUNCTION. The host owns all arrays; they are valid for the call. */
typedef struct halyard_module_call {
  uint32_t struct_size;
  uint32_t resumed;        /* not 0: a further attempt, after the call was deferred; same arguments */
  uint32_t deferred;       /* set by the function: see halyard_frame_function_t */
  uint32_t argument_count; /* counts each value of a span's tuples */
  uint32_t result_count;
  uint32_t span_count;
  const halyard_value_t* arguments; /* in the order of the convention, including the values of spans */
  /* Preset to the convention's kinds, and zero. The host converts numbers of another kind if the conversion
   * is exact; else the call fails with INVALID_ARGUMENT. */
  halyard_value_t* results;
  const uint32_t* spans;  /* the number of tuples of each span, in order */
  const void* invocation; /* identifies the invocation: the same for all attempts at one call */
  const halyard_module_services_t* services;
  const halyard_type_t* types; /* the module's types, in the order of its definition */
  /* Fields added after version 1: a module that supports older hosts checks HALYARD_HAS_FIELD. */
  uint32_t export_index; /* index in the definition's exports, so that one C function can serve several */
  uint32_t reserved;
  /* Becomes other than 0 when the call should end, because it was cancelled or its time is over. A function
   * that runs long reads it now and then, and returns services->call_stopped(call). Another thread may write
   * it. Never null. */
  const volatile uint32_t* stop;
  const struct halyard_program_call* program; /* halyard/program.h; null: the module is no program */
} halyard_module_call_t;

/* Returns null for success, or a failure. A function that cannot finish yet sets call->deferred to 1 and
 * returns null. The host calls it again, with call->resumed set, when the invocation is resumed: perhaps at
 * once, or never if the call is dropped. To wait for an event, use services->call_wait. If such a function
 * has results, a program must call it with call.yieldable (else UNIMPLEMENTED). */
typedef halyard_status_t (*halyard_frame_function_t)(void* state, halyard_module_call_t* call);

/* Flags of import_call. */
enum {
  HALYARD_CALL_RESUMED = 1u << 0,  /* a further attempt at a call that was deferred; same arguments */
  HALYARD_CALL_MAY_WAIT = 1u << 1, /* the caller can wait for results; without results it always can */
  /* The caller can wait for results of programs (bytecode, or halyard/program.h), which wait in any call. */
  HALYARD_CALL_MAY_WAIT_FOR_PROGRAM = 1u << 2,
};

/* A call of an import. The caller owns all arrays. */
typedef struct halyard_import_call {
  uint32_t struct_size;
  uint32_t import;         /* index in the definition's imports */
  uint32_t flags;          /* HALYARD_CALL_* */
  uint32_t deferred;       /* set by the host: the function waits, and has no results yet */
  uint32_t argument_count; /* counts each value of a span's tuples */
  uint32_t result_count;
  uint32_t span_count;
  uint32_t reserved;
  const halyard_value_t* arguments; /* in the order of the convention, of its kinds; objects are borrowed */
  halyard_value_t* results;         /* written on success; objects are references that the caller owns */
  const uint32_t* spans;            /* the number of tuples of each span, in order */
  /* Where the program calls, for messages of the function, such as "at m.f+0000001A"; null: unknown. */
  const char* place;
} halyard_import_call_t;

/* A text that tools and bindings read, for example about a function's tensors. Frozen. */
typedef struct halyard_module_attribute {
  const char* key;
  const char* value;
} halyard_module_attribute_t;

typedef struct halyard_module_attributes {
  const halyard_module_attribute_t* list;
  uint64_t count;
} halyard_module_attributes_t; /* frozen */

/* One exported function. Either `plain` or `frame` is null, but not both. */
typedef struct halyard_module_export {
  const char* name;       /* letters, digits, '_', '$', '-', '.' */
  const char* convention; /* "0ii_i" */
  halyard_any_function_t plain;
  halyard_frame_function_t frame;
  uint32_t flags; /* HALYARD_PLAIN_*; 0 for frame functions */
  uint32_t reserved;
} halyard_module_export_t;

/* {HALYARD_PLAIN("hypot", "0FF_F", hypot, 0), HALYARD_FRAME("sum", "0CID_I", sum)} */
#define HALYARD_PLAIN(name, convention, function, flags) \
  {name, convention, (halyard_any_function_t)(function), NULL, flags, 0}
#define HALYARD_FRAME(name, convention, function) {name, convention, NULL, function, 0, 0}

/* ---- Modules ------------------------------------------------------------------------------------------- */

/* A type of object that programs can hold: "!module.name" in their type tables. */
typedef struct halyard_module_type {
  const char* name;               /* with the module's name: "module.name" */
  void (*destroy)(void* pointer); /* called on the thread that drops the last reference; may be null */
} halyard_module_type_t;

/* A function of another module: "module.function". It links to an export with the same name and the same
 * convention; without a convention (null or ""), to the last export of that name. */
typedef struct halyard_module_import {
  const char* name;
  const char* convention;
  uint32_t flags; /* HALYARD_IMPORT_OPTIONAL */
  uint32_t reserved;
} halyard_module_import_t;
enum {
  HALYARD_IMPORT_OPTIONAL = 1u << 0, /* may be missing (import_is_resolved) */
};

/* A module that must be loaded before. */
typedef struct halyard_module_dependency {
  const char* name;
  uint32_t minimum_version;
  uint32_t flags; /* HALYARD_DEPENDENCY_* */
} halyard_module_dependency_t;
enum {
  HALYARD_DEPENDENCY_VERSIONED = 1u << 0, /* minimum_version is required */
  HALYARD_DEPENDENCY_OPTIONAL = 1u << 1,  /* the module may be missing */
};

/* Borrowed for the call, except the targets of `services` and `types`. `types` live as long as the state. */
typedef struct halyard_module_state_args {
  uint32_t struct_size;
  uint32_t type_count;
  const halyard_module_services_t* services;
  void* user;                  /* `user` of the definition */
  const char* argument;        /* the text after '@' in "library.so@text"; "" if there is none */
  const halyard_type_t* types; /* the module's types, in the order of its definition */
} halyard_module_state_args_t;

typedef struct halyard_module_definition {
  uint32_t struct_size;
  uint32_t abi_version; /* HALYARD_MODULE_ABI_V1; 0 is refused */
  const char* name;     /* the part of an import's name before '.': letters, digits, '_', '$', '-' */
  uint32_t version;     /* version of the module; programs may require a minimum */
  uint32_t export_size; /* sizeof(halyard_module_export_t) */
  const halyard_module_export_t* exports; /* several exports may have one name and different conventions */
  uint64_t export_count;
  void* user; /* passed to create_state; without create_state, the state itself */
  /* Creates the module's state in one context. After a failure *state is ignored and the context is not
   * created. May be null. */
  halyard_status_t (*create_state)(const halyard_module_state_args_t* args, void** state);
  /* Destroys a state from create_state, on the thread that drops the context. May be null. */
  void (*destroy_state)(void* state);
  /* Called once, on the thread that drops the last reference to the module. Not called if creating the module
   * fails. May be null. */
  void (*release)(void* user);
  const halyard_module_type_t* types;
  uint32_t type_count;
  uint32_t type_size; /* sizeof(halyard_module_type_t) */
  /* Fields added after version 1. A module with imports refuses hosts without services->import_call, because
   * they ignore its imports. If the module exports "__init" ("0v_v"), the host calls it when the imports are
   * linked, and "__deinit" before the context ends. */
  const halyard_module_import_t* imports;
  uint32_t import_count;
  uint32_t import_size; /* sizeof(halyard_module_import_t) */
  const halyard_module_dependency_t* dependencies;
  uint32_t dependency_count;
  uint32_t dependency_size;                             /* sizeof(halyard_module_dependency_t) */
  halyard_module_attributes_t attributes;               /* of the module */
  const halyard_module_attributes_t* export_attributes; /* of each export, in order; null: none */
  const struct halyard_program* program; /* halyard/program.h; null: the module is no program */
} halyard_module_definition_t;

/* ---- The note ------------------------------------------------------------------------------------------ */

#define HALYARD_MODULE_NOTE_SECTION ".note.halyard.module"

/* The note's description. Its size never changes; a later version of the note gets another type. Texts are
 * zero-padded. */
typedef struct halyard_module_note {
  uint32_t abi_min; /* lowest and highest ABI version that the module supports; 0 is always refused */
  uint32_t abi_max;
  uint32_t sanitizer; /* HALYARD_SANITIZER_*: must be the host's, unless it is NONE */
  uint32_t reserved;  /* 0 */
  char name[64];      /* the definition's name */
  char version[32];   /* the library's own version, for display */
} halyard_module_note_t;

/* The note's record in the file. */
typedef struct halyard_module_note_record {
  uint32_t owner_size;
  uint32_t description_size;
  uint32_t type;
  char owner[8];
  halyard_module_note_t description;
} halyard_module_note_record_t;

/* Defines the note of a library, once, at file scope. HALYARD_MODULE contains it. */
/* clang-format off */
#define HALYARD_MODULE_NOTE(name_, version_)                                                   \
  HALYARD_NOTE_PLAIN_                                                                          \
  __attribute__((used, aligned(4), section(HALYARD_MODULE_NOTE_SECTION)))                      \
  static const halyard_module_note_record_t halyard_module_note_record_ = {                    \
      8, sizeof(halyard_module_note_t), HALYARD_NOTE_TYPE_MODULE, HALYARD_NOTE_OWNER,          \
      {HALYARD_MODULE_ABI_V1, HALYARD_MODULE_ABI_V1, HALYARD_SANITIZER_KIND, 0, name_, version_}}
/* clang-format on */

/* ---- Negotiation --------------------------------------------------------------------------------------- */

typedef struct halyard_module_request {
  uint32_t struct_size;
  uint32_t abi_min; /* versions that the host supports */
  uint32_t abi_max;
  uint32_t sanitizer;       /* HALYARD_SANITIZER_* of the host */
  const char* host_version; /* for display */
  const halyard_module_services_t* services;
} halyard_module_request_t;

typedef struct halyard_module_reply {
  uint32_t struct_size; /* set by the host; the module writes only that many bytes */
  uint32_t reserved;
  const halyard_module_definition_t* definition; /* of the highest common version; static storage */
  char refusal[256];                             /* zero-terminated reason, if the module returns 0 */
} halyard_module_reply_t;

/* The only exported function. Does not allocate, and may be called any number of times. Returns 1 and fills
 * the reply if there is a common version. Returns 0 if the module refuses, with the reason in `refusal`. */
typedef int32_t (*halyard_module_negotiate_fn)(const halyard_module_request_t* request,
                                               halyard_module_reply_t* reply);
#define HALYARD_MODULE_NEGOTIATE_SYMBOL "halyard_module_negotiate"

#if defined(__GNUC__)
#define HALYARD_MODULE_EXPORT __attribute__((visibility("default")))
#else
#define HALYARD_MODULE_EXPORT
#endif
HALYARD_MODULE_EXPORT int32_t halyard_module_negotiate(const halyard_module_request_t* request,
                                                       halyard_module_reply_t* reply);

/* Implements negotiation for a module that supports only the version of its definition. */
static inline int32_t halyard_module_offer(const halyard_module_request_t* request,
                                           halyard_module_reply_t* reply,
                                           const halyard_module_definition_t* definition) {
  const char refusal[] = "its definition uses a version of the module ABI that this host does not support";
  size_t i;
  if (definition->abi_version >= request->abi_min && definition->abi_version <= request->abi_max) {
    reply->definition = definition;
    return 1;
  }
  for (i = 0; i < sizeof refusal; ++i) reply->refusal[i] = refusal[i];
  return 0;
}

/* Defines the note and the exported function, at file scope: HALYARD_MODULE("toolbox", "1.0", &definition) */
#define HALYARD_MODULE(name_, version_, definition_)                                                         \
  HALYARD_MODULE_NOTE(name_, version_);                                                                      \
  int32_t halyard_module_negotiate(const halyard_module_request_t* request, halyard_module_reply_t* reply) { \
    return halyard_module_offer(request, reply, definition_);                                                \
  }

/* ---- Sizes of version 1: tie each recorded size to the last field it had; they never change ------------ */

#ifdef __cplusplus
#define HALYARD_STATIC_ASSERT_ static_assert
#else
#define HALYARD_STATIC_ASSERT_ _Static_assert
#endif
HALYARD_STATIC_ASSERT_(sizeof(halyard_module_note_t) == 112, "the note never changes");
HALYARD_STATIC_ASSERT_(sizeof(halyard_module_note_record_t) == 132, "the note never changes");
#if UINTPTR_MAX == UINT64_MAX
HALYARD_STATIC_ASSERT_(sizeof(halyard_value_t) == 16, "values are frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_module_services_t, object_pointer) == 8 + 19 * 8,
                       "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_module_definition_t, type_size) == 88,
                       "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_module_export_t, reserved) == 40, "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_module_type_t, destroy) == 16, "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_module_call_t, types) == 72, "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_module_state_args_t, types) == 40, "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_module_request_t, services) == 32, "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_module_reply_t, refusal) == 272, "version 1 is frozen");
#endif
#undef HALYARD_STATIC_ASSERT_

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_MODULE_H_ */
