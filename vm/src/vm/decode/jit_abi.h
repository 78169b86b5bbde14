/* What the host and a compiler library say to each other: a note, one function that negotiates, and a table.
 * Plain C. The compiler reads decoded code (vm/decode/code.h), so both sides must have been built from the
 * same tables: `code_format` says which. Nothing here is public; the two are installed together. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HALYARD_JIT_ABI = 4 };

/* The note of a compiler library (halyard/abi.h): what it is, before any of its code runs. Fixed size. */
#define HALYARD_NOTE_TYPE_COMPILER 4u
#define HALYARD_JIT_NOTE_SECTION ".note.halyard.compiler"
typedef struct halyard_jit_note_t {
  uint32_t abi;            /* HALYARD_JIT_ABI */
  uint32_t code_format[2]; /* low and high half */
  char compiler[52];       /* name and version, for people; padded with zeros */
} halyard_jit_note_t;

/* The note's record in the file. */
typedef struct halyard_jit_note_record_t {
  uint32_t owner_size;
  uint32_t description_size;
  uint32_t type;
  char owner[8];
  halyard_jit_note_t description;
} halyard_jit_note_record_t;

/* The stack above the frame that a compiled function runs with: it calls itself there, in frames that lie
 * one after another. */
typedef struct halyard_jit_stack_t {
  const void* limit; /* no frame may end behind this */
  uint32_t* top;     /* out: the values of the frame that the interpreter goes on with */
} halyard_jit_stack_t;

/* A compiled function. Runs from the numbered entry on with the registers of a frame and returns the number
 * of the word at which the interpreter goes on, in the frame `stack->top`: that one or, where the function
 * has called itself, one above it. The frames then hold what the interpreter would have put there. It takes
 * no word that fails: the interpreter executes that word itself, and so gives the error. `stop` is looked at
 * where a loop closes and at calls. Any thread, as often as the program allows. */
typedef uint32_t (*halyard_jit_run_fn)(uint32_t* values, void** refs, const uint32_t* stop, uint8_t* globals,
                                       halyard_jit_stack_t* stack, uint32_t entry);
/* Between calls of a function to itself: the bit of `entry` that says so, and what it returns once its
 * results stand at the beginning of its values, 8 bytes each. */
#define HALYARD_JIT_CALLED 0x80000000u
#define HALYARD_JIT_RETURNED 0xFFFFFFFFu

/* Where the host's objects keep what compiled code looks at: offsets in bytes. */
typedef struct halyard_jit_layout_t {
  uint32_t object_type;
  uint32_t buffer_data;
  uint32_t buffer_length;
  uint32_t buffer_mutable_length;
  uint32_t list_element; /* the type of values that a list packs: one byte */
  uint32_t list_size;    /* 32 bits */
  uint32_t list_data;    /* the address of packed values */
  uint32_t frame_bytes;  /* the header of a frame, which lies before its values; offsets in it: */
  uint32_t frame_code;
  uint32_t frame_instance;
  uint32_t frame_call;
  uint32_t frame_caller_bytes;
  uint32_t code_words; /* where a function's code keeps the address of its words */
} halyard_jit_layout_t;

/* The parts of the host that compiled code uses. They live as long as any code does. */
typedef struct halyard_jit_host_t {
  size_t struct_size;
  void (*put_ref)(void** slot, void* object); /* takes over a reference, releases what was there */
  const void* buffer_type;                    /* the type of a buffer */
  const void* list_type;
  const void* const* helpers; /* by opcode: the function that the interpreter calls for it, or null */
  size_t helper_count;
} halyard_jit_host_t;

/* A function to compile. All of it is borrowed, during the call. Compiled code depends on nothing else, and
 * on no address but those of its words. */
typedef struct halyard_jit_function_t {
  size_t struct_size;
  const char* name;  /* for people; not unique */
  const void* words; /* decoded code with entries, nothing of it fused */
  size_t word_count;
  const uint16_t* lists;
  size_t list_count;
  uint32_t value_slots;
  uint32_t ref_slots;
  uint32_t entry_count;
  uint32_t global_bytes;
  uint32_t frame_bytes; /* the header and the values */
  uint32_t fast_math;   /* not 0: sums may be reordered, and vector functions may be less exact */
  uint32_t own_calls;   /* not 0: calls to this ordinal may be compiled; then the function has no refs */
  uint32_t ordinal;
  uint32_t kept_nans;        /* which roundings leave a signaling NaN as it is (vm/compile/helpers.h) */
  const uint16_t* arguments; /* the register of each argument; of pairs with a mark */
  size_t argument_count;
  size_t result_count;
  const halyard_jit_layout_t* layout;
} halyard_jit_function_t;

/* What it became. `handle` goes back to release(), after the last call of `run`. */
typedef struct halyard_jit_code_t {
  size_t struct_size;
  halyard_jit_run_fn run;
  void* handle;
  uint64_t object_bytes;   /* size of the code, and what the cache keeps with it */
  uint32_t cached;         /* not 0: it came from the cache */
  char cache_refusal[256]; /* why the cache folder was not used; otherwise empty */
} halyard_jit_code_t;

/* Counters of all calls of compile() in this process. */
typedef struct halyard_jit_stats_t {
  size_t struct_size;
  uint64_t functions;   /* compiled, including those from the cache */
  uint64_t cached;      /* from the cache */
  uint64_t refused;     /* not supported by the compiler */
  uint64_t nanoseconds; /* time spent in compile(), of all threads together */
  uint64_t object_bytes;
} halyard_jit_stats_t;

typedef struct halyard_jit_table_t {
  size_t struct_size;
  const char* compiler; /* name and version, for people */
  /* 1: `code` is filled in. 0: the function stays interpreted; `reason` says why, cut to `reason_size` bytes
   * and ended with a zero. `cache` is a folder for compiled code; null: none. Any thread. */
  int (*compile)(const halyard_jit_function_t* function, const halyard_jit_host_t* host, const char* cache,
                 halyard_jit_code_t* code, char* reason, size_t reason_size);
  void (*release)(void* handle);
  void (*stats)(halyard_jit_stats_t* stats); /* any thread */
} halyard_jit_table_t;

typedef struct halyard_jit_request_t {
  size_t struct_size;
  uint32_t abi; /* HALYARD_JIT_ABI of the host */
  uint64_t code_format;
} halyard_jit_request_t;

typedef struct halyard_jit_reply_t {
  size_t struct_size;
  const halyard_jit_table_t* table; /* lives as long as the process */
  char refusal[256];
} halyard_jit_reply_t;

/* Exported as halyard_jit_negotiate. 0: refused, and the reply says why. */
typedef int (*halyard_jit_negotiate_fn)(const halyard_jit_request_t* request, halyard_jit_reply_t* reply);

#ifdef __cplusplus
}
#endif
