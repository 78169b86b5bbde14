/* The ABI between the host and a compiler library: a note, a negotiation function, and a function table.
 * Plain C. The compiler reads decoded code (vm/decode/code.h), so both sides must be built from the same
 * tables; `code_format` identifies them. The ABI is not public, because both sides are installed together. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HALYARD_JIT_ABI = 9 };

/* The ELF note of a compiler library (halyard/abi.h), which identifies it before its code runs. Fixed
 * size. */
#define HALYARD_NOTE_TYPE_COMPILER 4u
#define HALYARD_JIT_NOTE_SECTION ".note.halyard.compiler"
typedef struct halyard_jit_note_t {
  uint32_t abi;            /* HALYARD_JIT_ABI */
  uint32_t code_format[2]; /* low and high half */
  char compiler[52];       /* name and version, for display; zero-padded */
} halyard_jit_note_t;

/* The note's record in the file. */
typedef struct halyard_jit_note_record_t {
  uint32_t owner_size;
  uint32_t description_size;
  uint32_t type;
  char owner[8];
  halyard_jit_note_t description;
} halyard_jit_note_record_t;

/* Other threads that may run pieces of a compiled loop. share() calls `body` for pieces from `first` up to
 * `last`, at most `most` at a time, so that each piece runs once, on this thread and on others, in any order
 * and at the same time. Few calls for many pieces take less time. It returns how many pieces have run: all,
 * or after a request in the word `stop`, which may be null, fewer, which are then the first ones. `body` must
 * not leave by an exception. */
typedef struct halyard_jit_sharing_t {
  uint64_t (*share)(const struct halyard_jit_sharing_t* sharing, uint64_t pieces, uint64_t most,
                    void (*body)(uint64_t first, uint64_t last, void* data), void* data,
                    const uint32_t* stop);
  /* Not 0: this thread has not run the function with these buffers before. Compiled code sets it to 0 when it
   * has prefetched what it reads. */
  uint64_t is_cold;
} halyard_jit_sharing_t;

/* The stack above the frame of a compiled function. The function calls itself in consecutive frames there. */
typedef struct halyard_jit_stack_t {
  const void* limit;                    /* frames must not extend past it */
  uint32_t* top;                        /* out: the values of the frame in which the interpreter continues */
  const halyard_jit_sharing_t* sharing; /* null: there are no other threads */
  /* Incremented for each loop nest that runs with all of its checks, because the comparison before it failed:
   * accesses may be out of bounds, buffers may overlap, or there are too many iterations. */
  uint64_t checked;
} halyard_jit_stack_t;

/* A compiled function. It runs from the numbered entry on, with the registers of a frame. It returns the
 * number of the word at which the interpreter continues, in the frame `stack->top`: the same frame or, if the
 * function has called itself, one above it. All frames then have the contents that the interpreter would have
 * stored. The function does not execute a word that fails: the interpreter executes that word and reports the
 * error. The function checks `stop` when a loop closes and at calls. Any thread; concurrent calls as the
 * program allows. */
typedef uint32_t (*halyard_jit_run_fn)(uint32_t* values, void** refs, const uint32_t* stop, uint8_t* globals,
                                       halyard_jit_stack_t* stack, uint32_t entry);
/* For recursive calls: this bit of `entry` marks one. It returns HALYARD_JIT_RETURNED after its results are
 * stored at the beginning of its values, 8 bytes each. */
#define HALYARD_JIT_CALLED 0x80000000u
#define HALYARD_JIT_RETURNED 0xFFFFFFFFu

/* The layout of host objects that compiled code accesses: offsets in bytes. */
typedef struct halyard_jit_layout_t {
  uint32_t object_type;
  uint32_t buffer_data;
  uint32_t buffer_length;
  uint32_t buffer_mutable_length;
  /* 64 bits: the number of bytes from the first on that may have been written since they were 0. Code that
   * tracks a buffer which it has allocated sets it to 0, and to the length before it writes. */
  uint32_t buffer_written;
  uint32_t list_element; /* the type of values that a list packs: one byte */
  uint32_t list_size;    /* 32 bits */
  uint32_t list_data;    /* the address of packed values */
  uint32_t frame_bytes;  /* size of a frame's header, which precedes its values; offsets in the header: */
  uint32_t frame_code;
  uint32_t frame_instance;
  uint32_t frame_call;
  uint32_t frame_caller_bytes;
  uint32_t code_words; /* the address of a function's words, in its code object */
} halyard_jit_layout_t;

/* The parts of the host that compiled code uses. They outlive all compiled code. */
typedef struct halyard_jit_host_t {
  size_t struct_size;
  void (*put_ref)(void** slot, void* object); /* takes ownership of `object`, releases the old contents */
  const void* buffer_type;                    /* the type of a buffer */
  const void* list_type;
  const void* const* helpers; /* by opcode: the function that the interpreter calls for it; may be null */
  size_t helper_count;
} halyard_jit_host_t;

/* A function to compile. Everything is borrowed for the call. Compiled code depends on nothing else, and on
 * no address except the addresses in its words. */
typedef struct halyard_jit_function_t {
  size_t struct_size;
  const char* name;  /* for display; not unique */
  const void* words; /* decoded code with entries and without fused instructions */
  size_t word_count;
  const uint16_t* lists;
  size_t list_count;
  uint32_t value_slots;
  uint32_t ref_slots;
  uint32_t entry_count;
  uint32_t global_bytes;
  uint32_t frame_bytes; /* the header and the values */
  uint32_t fast_math;   /* not 0: may reorder sums and use less exact vector functions */
  uint32_t own_calls;   /* not 0: may compile calls to this ordinal; the function then has no refs */
  uint32_t ordinal;
  uint32_t kept_nans;        /* the roundings that leave a signaling NaN unchanged (vm/compile/helpers.h) */
  const uint16_t* arguments; /* the register of each argument; pairs are marked */
  size_t argument_count;
  size_t result_count;
  const halyard_jit_layout_t* layout;
  uint32_t cached_only; /* not 0: taken from the cache, or not compiled */
} halyard_jit_function_t;

/* The result of a compilation. `handle` is passed to release() after the last call of `run`. */
typedef struct halyard_jit_code_t {
  size_t struct_size;
  halyard_jit_run_fn run;
  void* handle;
  uint64_t object_bytes;   /* size of the code and of the data that the cache keeps with it */
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
  const char* compiler; /* name and version, for display */
  /* Returns 1 and fills `code`. Returns 0 if the function stays interpreted; `reason` then has the reason,
   * zero-terminated and truncated to `reason_size` bytes. `cache` is a folder for compiled code; null: none.
   * Any thread. */
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

/* Exported as halyard_jit_negotiate. Returns 0 if refused; the reply has the reason. */
typedef int (*halyard_jit_negotiate_fn)(const halyard_jit_request_t* request, halyard_jit_reply_t* reply);

#ifdef __cplusplus
}
#endif
