/* Halyard native modules, ABI version 1: functions in C, or in anything that can be called like C, that
 * compiled programs import. Plain C11; needs only halyard/status.h, halyard/abi.h and halyard/value.h.
 *
 * A native module is a shared library of any name. It carries an ELF note (its identity, readable without
 * running it) and exports one function, halyard_module_negotiate; HALYARD_MODULE defines both. Or an embedder
 * passes the same definition to halyard_module_create_native (halyard/halyard.h), without a library.
 * docs/native-modules.md shows how to write one and states the contract.
 *
 * THE SHAPE, in the order in which a host uses it:
 *   note -> negotiate -> create_state for each context -> calls -> destroy_state. A library stays mapped
 * until the process ends.
 *
 * TWO KINDS OF FUNCTION. A plain function is a C function with the C types of its calling convention, called
 * through libffi: no glue to write, `{"hypot", "0FF_F", hypot}` is enough. A frame function gets its call as
 * a struct: for variable numbers of arguments and for functions that need more than one attempt.
 *
 * CALLING CONVENTIONS are texts: "0", arguments, "_", results; "v" for none. i: 32-bit integer, I: 64-bit
 * integer, f: float, F: double, r: reference to an object, C...D: any number of tuples of the types between
 * (only in arguments, only of frame functions). "0iI_F" takes an int32_t and an int64_t and returns a double.
 * An import links to the export with the same name and the same convention string. At most 256 arguments and
 * 256 results.
 *
 * DOES: describe functions, their state, their objects, and the services of the host. DOES NOT: devices; a
 * module can access buffers of the machine (vm.buffer) and lists, but no device buffers.
 *
 * OWNERSHIP. Argument objects are borrowed for the call: retain those to keep. Result objects are owned
 * references that the function gives away. A null reference is a null pointer, in both directions.
 *
 * GROWTH. As halyard/abi.h says. Arrays state the size of one element beside their count.
 *
 * THREADS. Functions are called on the thread that runs the program. Calls within one context are sequential
 * unless the embedder allows more; several contexts may call concurrently, each with its own state. All
 * services may be used from any thread. A function must not call into the context that called it.
 *
 * FAILURE. A status is null for success, else one made by services->status_create and given away. On failure
 * the host ignores the results. A C++ exception, or a longjmp, must not leave a function: the behaviour is
 * undefined.
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

/* ---- What the host offers ------------------------------------------------------------------------------ */

/* A type of object that the module has defined, as the host knows it. */
typedef struct halyard_type* halyard_type_t;

/* The right to end one wait of one call. Reference-counted, independently of the call. */
typedef struct halyard_wakeup* halyard_wakeup_t;

struct halyard_module_call;

/* The bytes of a vm.buffer. Frozen. */
typedef struct halyard_buffer_bytes {
  uint8_t* data;       /* at least 16-byte aligned if made by buffer_create; else any alignment */
  uint64_t length;     /* bytes */
  uint32_t is_mutable; /* 0: do not write to it; it may be on read-only pages */
  uint32_t reserved;
} halyard_buffer_bytes_t;

/* Valid until the process ends; the same for all modules. All services of version 1 are set. Functions with
 * an `out` object return an owned reference. They fail with INVALID_ARGUMENT for an object of the wrong type,
 * including null, and for an address that is null, and with RESOURCE_EXHAUSTED without memory. */
typedef struct halyard_module_services {
  uint32_t struct_size;
  uint32_t reserved;

  /* A new status owned by the caller. `message` is terminated text, copied, that says what was expected, what
   * was found and what to do. Never null. Code 0, 17 (DEFERRED is no failure) and numbers that are not codes
   * become UNKNOWN. */
  halyard_status_t (*status_create)(halyard_status_code_t code, const char* message);
  halyard_status_t (*status_retain)(halyard_status_t status);    /* another reference; null gives null */
  void (*status_release)(halyard_status_t status);               /* null is allowed */
  halyard_status_code_t (*status_code)(halyard_status_t status); /* HALYARD_OK for null */
  const char* (*status_message)(halyard_status_t status);        /* lives as long as the status */
  halyard_status_t (*status_note)(halyard_status_t status, const char* note); /* takes and gives ownership */

  void (*object_retain)(halyard_object_t object);  /* null is allowed */
  void (*object_release)(halyard_object_t object); /* null is allowed */
  /* "vm.buffer"; "" for null. Lives as long as the object. */
  const char* (*object_type)(halyard_object_t object);

  /* A zero-filled, mutable vm.buffer. `alignment` is 0 or a power of two (INVALID_ARGUMENT). */
  halyard_status_t (*buffer_create)(uint64_t length, uint32_t alignment, halyard_object_t* out);
  /* A vm.buffer over bytes of the caller, which must stay valid until `released` (may be null) is called with
   * `user`: once, on the thread that drops the last reference. Not called on failure. */
  halyard_status_t (*buffer_wrap)(void* data, uint64_t length, uint32_t is_mutable,
                                  void (*released)(void* user), void* user, halyard_object_t* out);
  /* The address of the bytes; valid as long as the buffer is held. */
  halyard_status_t (*buffer_bytes)(halyard_object_t buffer, halyard_buffer_bytes_t* bytes);

  /* An empty vm.list of values of one kind (I8, I16, I32, I64, F32, F64) or, with HALYARD_VALUE_NULL, of any
   * kind. Lists are not synchronized: one thread at a time. */
  halyard_status_t (*list_create)(uint32_t element_kind, halyard_object_t* out);
  halyard_status_t (*list_size)(halyard_object_t list, uint64_t* size);
  halyard_status_t (*list_resize)(halyard_object_t list, uint64_t size); /* new elements are zero or null */
  /* The element without conversion; an object is an owned reference. OUT_OF_RANGE. */
  halyard_status_t (*list_get)(halyard_object_t list, uint64_t index, halyard_value_t* value);
  /* Converts numbers to the list's kind as a program would; an object is borrowed. OUT_OF_RANGE. */
  halyard_status_t (*list_set)(halyard_object_t list, uint64_t index, const halyard_value_t* value);

  /* A new object of a type of the module that wraps the module's pointer. On failure `destroy` is not called.
   */
  halyard_status_t (*object_create)(halyard_type_t type, void* pointer, halyard_object_t* out);
  /* The pointer of an object of that type; borrowed, valid as long as the object is held. */
  halyard_status_t (*object_pointer)(halyard_type_t type, halyard_object_t object, void** pointer);

  /* Later services: a module that must run in an older host checks HALYARD_HAS_FIELD. */

  /* For a frame function that defers: sets call->deferred, and delays the next attempt until the wakeup is
   * used. Until then no thread is held. Returns an owned wakeup through `out`. Once for each attempt, on its
   * thread. FAILED_PRECONDITION: the program cannot wait for the results of this call, or this attempt
   * already waits. */
  halyard_status_t (*call_wait)(struct halyard_module_call* call, halyard_wakeup_t* out);
  /* Ends the wait. Any thread, at any time; no effect if repeated or if the call has ended or was dropped.
   * Never runs the next attempt itself. */
  void (*wakeup_wake)(halyard_wakeup_t wakeup);    /* null is allowed */
  void (*wakeup_release)(halyard_wakeup_t wakeup); /* null is allowed; ends no wait */
} halyard_module_services_t;

/* ---- Functions ----------------------------------------------------------------------------------------- */

/* Any function, cast. */
typedef void (*halyard_any_function_t)(void);

/* Flags of plain functions. */
enum {
  HALYARD_PLAIN_HOST = 1u << 0,   /* takes the host's services: const halyard_module_services_t* */
  HALYARD_PLAIN_STATE = 1u << 1,  /* takes the module's state: void* */
  HALYARD_PLAIN_STATUS = 1u << 2, /* returns halyard_status_t; all results through pointers */
};

/* PLAIN FUNCTIONS. Parameters, in this order:
 *   const halyard_module_services_t* with HALYARD_PLAIN_HOST;
 *   the state, void*, with HALYARD_PLAIN_STATE;
 *   an int32_t, int64_t, float, double or halyard_object_t for each i, I, f, F, r of the arguments;
 *   where results go through pointers, for each an int32_t*, int64_t*, float*, double* or halyard_object_t*.
 * Results: none is void, one is the return value, several go through pointers and the function returns void.
 * With HALYARD_PLAIN_STATUS the function returns a status, and every result, also a single one, goes through
 * a pointer. The pointed-to results are zero at first; on failure they are ignored. "0ii_i" int32_t
 * f(int32_t, int32_t) "0FF_FF"              void f(double, double, double*, double*) "0r_i", HOST|STATUS
 * halyard_status_t f(const halyard_module_services_t*, halyard_object_t, int32_t*) */

/* FRAME FUNCTIONS get one call. The host owns all arrays; they are valid for the call. */
typedef struct halyard_module_call {
  uint32_t struct_size;
  uint32_t resumed;        /* not 0: called again after it had deferred, with the same arguments */
  uint32_t deferred;       /* to be set: see below */
  uint32_t argument_count; /* tuples of spans counted value by value */
  uint32_t result_count;
  uint32_t span_count;
  const halyard_value_t* arguments; /* in the order of the convention; spans laid out in place */
  /* Of the convention's kinds, zero at first. Another kind of number is converted where nothing is lost; else
   * the call fails (INVALID_ARGUMENT). */
  halyard_value_t* results;
  const uint32_t* spans;  /* for each C...D, in order, the number of its tuples */
  const void* invocation; /* names the activity: the same for all attempts at one call */
  const halyard_module_services_t* services;
  const halyard_type_t* types; /* the module's types, in the order of its definition */
  /* Later fields: a module that must run in an older host checks HALYARD_HAS_FIELD. */
  uint32_t
      export_index; /* place of the function in the definition's exports: one C function can serve many */
  uint32_t reserved;
} halyard_module_call_t;

/* Returns null, or a failure. A function that cannot finish yet sets call->deferred to 1 and returns null: it
 * is called again, with call->resumed set, when the invocation is resumed, which may be at once or, if the
 * call is dropped, never. Use services->call_wait to wait for an event. A program must call such a function
 * with call.yieldable if it has results (UNIMPLEMENTED otherwise). */
typedef halyard_status_t (*halyard_frame_function_t)(void* state, halyard_module_call_t* call);

/* One function. Exactly one of `plain` and `frame` is not null. */
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
  void (*destroy)(void* pointer); /* when the last reference goes, on the thread that drops it; may be null */
} halyard_module_type_t;

/* Borrowed for the call, except the targets of `services` and `types`: the types live as long as the state.
 */
typedef struct halyard_module_state_args {
  uint32_t struct_size;
  uint32_t type_count;
  const halyard_module_services_t* services;
  void* user;                  /* of the definition */
  const char* argument;        /* the text after '@' in --module=library.so@argument; "" if there is none */
  const halyard_type_t* types; /* the module's types, in the order of its definition */
} halyard_module_state_args_t;

typedef struct halyard_module_definition {
  uint32_t struct_size;
  uint32_t abi_version; /* HALYARD_MODULE_ABI_V1; 0 is refused */
  const char* name;     /* as imports write it before the '.': letters, digits, '_', '$', '-' */
  uint32_t version;     /* of the module: programs may require a minimum */
  uint32_t export_size; /* sizeof(halyard_module_export_t) */
  const halyard_module_export_t* exports; /* a name may occur with several conventions */
  uint64_t export_count;
  void* user; /* for create_state; the state itself if there is no create_state */
  /* Creates the state of the module in one context. On failure *state is ignored and the context is not
   * created. May be null. */
  halyard_status_t (*create_state)(const halyard_module_state_args_t* args, void** state);
  /* Destroys a state of create_state, on the thread that drops the context. May be null. */
  void (*destroy_state)(void* state);
  /* Called once, when the module is no longer used, on the thread that drops its last reference. Not called
   * if creating the module fails. May be null. */
  void (*release)(void* user);
  const halyard_module_type_t* types;
  uint32_t type_count;
  uint32_t type_size; /* sizeof(halyard_module_type_t) */
} halyard_module_definition_t;

/* ---- The note ------------------------------------------------------------------------------------------ */

#define HALYARD_MODULE_NOTE_SECTION ".note.halyard.module"

/* The note's description. Fixed size for ever; a later note gets another type. Texts are zero-padded. */
typedef struct halyard_module_note {
  uint32_t abi_min; /* lowest and highest ABI version that the module speaks; 0 is always refused */
  uint32_t abi_max;
  uint32_t
      sanitizer;     /* HALYARD_SANITIZER_*: an instrumented module loads only into a host of the same kind */
  uint32_t reserved; /* 0 */
  char name[64];     /* the definition's name */
  char version[32];  /* the library's own version, for display */
} halyard_module_note_t;

/* The note's record in the file. */
typedef struct halyard_module_note_record {
  uint32_t owner_size;
  uint32_t description_size;
  uint32_t type;
  char owner[8];
  halyard_module_note_t description;
} halyard_module_note_record_t;

/* Once in a library, at file scope; part of HALYARD_MODULE. */
#define HALYARD_MODULE_NOTE(name_, version_)                                                             \
  HALYARD_NOTE_PLAIN_ __attribute__((                                                                    \
      used, aligned(4), section(HALYARD_MODULE_NOTE_SECTION))) static const halyard_module_note_record_t \
      halyard_module_note_record_ = {                                                                    \
          8,                                                                                             \
          sizeof(halyard_module_note_t),                                                                 \
          HALYARD_NOTE_TYPE_MODULE,                                                                      \
          HALYARD_NOTE_OWNER,                                                                            \
          {HALYARD_MODULE_ABI_V1, HALYARD_MODULE_ABI_V1, HALYARD_SANITIZER_KIND, 0, name_, version_}}

/* ---- Negotiation --------------------------------------------------------------------------------------- */

typedef struct halyard_module_request {
  uint32_t struct_size;
  uint32_t abi_min; /* versions that the host speaks */
  uint32_t abi_max;
  uint32_t sanitizer;       /* HALYARD_SANITIZER_* of the host */
  const char* host_version; /* for people */
  const halyard_module_services_t* services;
} halyard_module_request_t;

typedef struct halyard_module_reply {
  uint32_t struct_size; /* set by the host; the module writes no further */
  uint32_t reserved;
  const halyard_module_definition_t* definition; /* of the highest common version; static storage */
  char refusal[256];                             /* the reason, terminated, if the module returns 0 */
} halyard_module_reply_t;

/* The one exported function. Does not allocate, and may be called any number of times. Returns 1 with a
 * filled reply if there is a common version, 0 if the module refuses, with the reason in `refusal`. */
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

/* The reply of a module that supports one version: that of its definition. */
static inline int32_t halyard_module_offer(const halyard_module_request_t* request,
                                           halyard_module_reply_t* reply,
                                           const halyard_module_definition_t* definition) {
  const char refusal[] = "its definition is of a version of the module ABI that this host does not speak";
  size_t i;
  if (definition->abi_version >= request->abi_min && definition->abi_version <= request->abi_max) {
    reply->definition = definition;
    return 1;
  }
  for (i = 0; i < sizeof refusal; ++i) reply->refusal[i] = refusal[i];
  return 0;
}

/* Defines everything that a library needs, at file scope: HALYARD_MODULE("toolbox", "1.0", &definition) */
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
