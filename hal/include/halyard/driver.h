/* Halyard driver ABI, version 1. Plain C11; needs only halyard/status.h and halyard/abi.h.
 *
 * A driver is one shared library `halyard-driver-NAME.so`. It carries an ELF note, from which the host reads
 * the driver's identity without running it. It exports one function, halyard_driver_negotiate, through which
 * host and driver agree on a version and the driver returns its function table. docs/driver-abi.md states the
 * contract as numbered rules; [Rn] below refers to them.
 *
 * ORDER OF USE:
 *   note -> negotiate -> initialize -> enumerate_devices -> device_open
 *   -> memory, semaphores, executables, command lists, queue_submit ... -> device_close -> shutdown
 * The library stays mapped after shutdown.
 *
 * A driver provides devices, memory, timeline semaphores, executables, command lists, and queue work.
 *
 * The host provides buffers and subspans, fences, buffer views, URIs, validation of requests, and lifetimes
 * of objects in flight, once for all drivers. A driver never repeats the host's checks [R40].
 *
 * HANDLES are opaque pointers that the driver creates and destroys on request. The host never dereferences a
 * handle and never passes it to another driver's library. The host keeps the objects of queued work until it
 * has got the `completed` callback of that work [R20, R21].
 *
 * GROWTH. Every struct that may grow starts with struct_size: the size in bytes that the writer of the struct
 * was compiled with. Readers use a field only if `struct_size >= HALYARD_FIELD_END(type, field)`; a missing
 * field counts as zero. New fields are only appended. Small structs without struct_size are frozen: text,
 * option, timepoint, range, binding, kind, the commands, and the members of halyard_operation_t's union
 * [R10-R13].
 *
 * THREADS. Any thread may call any function, concurrently, unless the comment of the function says otherwise.
 * The host destroys a handle only when no other call uses it. Drivers call the host only through its services
 * and callbacks [R30-R33]. A callback never closes a device and never calls shutdown [R31].
 *
 * FAILURE. A function returns null for success, else a status from services->status_create, which the host
 * releases. A failed function leaves its outputs unchanged [R50].
 */
#ifndef HALYARD_DRIVER_H_
#define HALYARD_DRIVER_H_

#include <stddef.h>
#include <stdint.h>

#include "halyard/abi.h"
#include "halyard/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Versions and growth ------------------------------------------------------------------------------- */

#define HALYARD_DRIVER_ABI_V1 1u

/* An extension, in a linked list. A driver skips unknown kinds, unless must_understand is not 0: then the
 * call fails with UNIMPLEMENTED, and the message names the kind. Version 1 defines none. */
typedef struct halyard_extension {
  uint32_t struct_size;
  uint32_t kind;
  uint32_t must_understand;
  uint32_t reserved;
  const struct halyard_extension* next;
} halyard_extension_t;

/* ---- The note ------------------------------------------------------------------------------------------ */

#define HALYARD_NOTE_SECTION ".note.halyard.driver"
#define HALYARD_NOTE_TYPE HALYARD_NOTE_TYPE_DRIVER

/* The note's description. Its size never changes; a later version of the note gets another type. Texts are
 * zero-padded. */
typedef struct halyard_driver_note {
  uint32_t abi_min; /* lowest and highest ABI version that the driver speaks; 0 is always refused */
  uint32_t abi_max;
  uint32_t sanitizer; /* HALYARD_SANITIZER_*: must be the host's, unless it is NONE */
  uint32_t reserved;  /* 0 */
  char library[32];   /* NAME of halyard-driver-NAME.so */
  char version[32];   /* the driver's own version, for display */
  char kinds[192]; /* driver names that users write in URIs, separated by commas: "local-sync,local-task" */
} halyard_driver_note_t;

/* The note's record in the file. */
typedef struct halyard_driver_note_record {
  uint32_t owner_size;
  uint32_t description_size;
  uint32_t type;
  char owner[8];
  halyard_driver_note_t description;
} halyard_driver_note_record_t;

/* Once in a driver, at file scope: HALYARD_DRIVER_NOTE("local", "1.0", "local-sync,local-task"); */
#define HALYARD_DRIVER_NOTE(library_, version_, kinds_)                                                     \
  HALYARD_NOTE_PLAIN_ __attribute__((                                                                       \
      used, aligned(4),                                                                                     \
      section(                                                                                              \
          HALYARD_NOTE_SECTION))) static const halyard_driver_note_record_t halyard_driver_note_record_ = { \
      8,                                                                                                    \
      sizeof(halyard_driver_note_t),                                                                        \
      HALYARD_NOTE_TYPE,                                                                                    \
      HALYARD_NOTE_OWNER,                                                                                   \
      {HALYARD_DRIVER_ABI_V1, HALYARD_DRIVER_ABI_V1, HALYARD_SANITIZER_KIND, 0, library_, version_, kinds_}}

/* ---- Host services ------------------------------------------------------------------------------------- */

enum { HALYARD_LOG_ERROR = 0, HALYARD_LOG_WARNING = 1, HALYARD_LOG_INFO = 2 };

enum {
  /* The waits of `submission` were reached and its operation began, at begin_ns. The span has no name. */
  HALYARD_SPAN_BEGAN = 0,
  /* The calling thread ran a dispatch, or its share of one. Reported at the end. */
  HALYARD_SPAN_THREAD = 1,
  /* A queue of the device ran work of `submission`. Spans of one queue do not overlap. */
  HALYARD_SPAN_QUEUE = 2,
};

/* Why one thread alone ran a dispatch. A driver may have further reasons; the host shows those that it knows.
 */
enum {
  HALYARD_SHARING_UNKNOWN = 0,
  HALYARD_SHARING_SHARED = 1,         /* several threads ran the dispatch */
  HALYARD_SHARING_ONE_THREAD = 2,     /* the device runs each dispatch on one thread */
  HALYARD_SHARING_SEQUENTIAL = 3,     /* the workgroups of this kernel run one after the other */
  HALYARD_SHARING_ONE_WORKGROUP = 4,  /* the dispatch has no second workgroup */
  HALYARD_SHARING_TOO_SHORT = 5,      /* waking threads was expected to cost more time than they save */
  HALYARD_SHARING_NO_IDLE_THREAD = 6, /* all other threads were busy */
};

/* How the function of a dispatch runs. */
enum {
  HALYARD_CODE_UNKNOWN = 0,
  HALYARD_CODE_NATIVE = 1,      /* as code of the processor or of the device, which the program contains */
  HALYARD_CODE_COMPILED = 2,    /* as machine code that the driver made of bytecode */
  HALYARD_CODE_INTERPRETED = 3, /* bytecode, interpreted */
  HALYARD_CODE_PROFILER = 4,    /* no dispatch: work that the driver does only because of the trace */
};

enum { HALYARD_SPAN_KNOWS_OPERATIONS = 1u << 0, HALYARD_SPAN_KNOWS_BYTES = 1u << 1 };

typedef struct halyard_trace_span {
  uint32_t struct_size;
  uint32_t kind;     /* HALYARD_SPAN_* */
  uint64_t begin_ns; /* of CLOCK_MONOTONIC */
  uint64_t end_ns;
  const char* name; /* for users: the function of an executable, "copy" */
  size_t name_size;
  void* submission; /* its completed_user, before `completed` is called; null for HALYARD_SPAN_THREAD until
                       0.3 */
  uint32_t queue;   /* HALYARD_SPAN_QUEUE: number of the queue, from 0 */
  uint32_t reserved;
  /* Since 0.2, for dispatches of HALYARD_SPAN_THREAD: whether several threads ran the dispatch, or why not
   * (HALYARD_SHARING_*), and how many threads were asked to run it. 0: unknown. */
  uint32_t sharing;
  uint32_t threads;
  /* Since 0.2, for dispatches. The workgroups that this span ran, and those of the whole dispatch, which may
   * have several spans; a thread that only helped in a workgroup has run 0. Both are 0: unknown. The pieces
   * of a fill that threads share count as workgroups. */
  uint64_t workgroups;
  uint64_t dispatch_workgroups;
  /* Of the whole dispatch, where `known` (HALYARD_SPAN_KNOWS_*) says so: its float operations; the bytes of
   * its bindings that it reads, and those that it writes, each byte once. */
  uint64_t operations;
  uint64_t bytes_read;
  uint64_t bytes_written;
  /* Loop nests that this span ran with a check of each access, although there is a faster version: accesses
   * may be out of bounds, buffers may overlap, or there are too many iterations. */
  uint64_t checked_loops;
  uint32_t known;
  uint32_t code; /* HALYARD_CODE_* */
  /* Why the function is interpreted; why its operations or bytes are not known; where it is in the source, as
   * the compiler recorded it. Copied by the host, at most 255 bytes of each; may be null. */
  const char* reason;
  size_t reason_size;
  const char* uncounted;
  size_t uncounted_size;
  const char* source;
  size_t source_size;
  /* Since 0.3. The command of the executed list: its address within `commands` of halyard_command_list_args,
   * from which the host knows the place in the program. The host only compares the address. Null: none, or
   * unknown. A span of HALYARD_SPAN_THREAD then names its submission too. */
  const void* command;
} halyard_trace_span_t;

/* Valid until `shutdown` of the last instance returns. All functions of version 1 are set. */
typedef struct halyard_host_services {
  uint32_t struct_size;
  uint32_t reserved;
  void* host; /* the first argument of the functions below */
  /* Returns a new status, owned by the caller; never null. `message` says what was expected, what was found
   * and what to do; it is copied. Code 0, code 17 (DEFERRED is no failure) and unknown codes become
   * UNKNOWN. */
  halyard_status_t (*status_create)(void* host, halyard_status_code_t code, const char* message,
                                    size_t message_size);
  /* Another reference to the same status; null gives null. */
  halyard_status_t (*status_retain)(void* host, halyard_status_t status);
  void (*status_release)(void* host, halyard_status_t status);               /* null is allowed */
  halyard_status_code_t (*status_code)(void* host, halyard_status_t status); /* HALYARD_OK for null */
  /* Zero-terminated text, valid as long as the status lives. */
  const char* (*status_message)(void* host, halyard_status_t status);
  /* Appends a note. Takes ownership of `status` and returns it; null gives null. */
  halyard_status_t (*status_note)(void* host, halyard_status_t status, const char* note, size_t note_size);
  /* Writes one line to the host's log. Any thread, but not a signal handler. */
  void (*log)(void* host, int32_t severity, const char* line, size_t line_size);
  /* Since 0.2. Reports a span; the host copies the span and its name. Null unless the host records a trace:
   * the driver checks this once, in `initialize`. Any thread [R36]. */
  void (*trace_span)(void* host, const halyard_trace_span_t* span);
} halyard_host_services_t;

/* ---- Handles ------------------------------------------------------------------------------------------- */

typedef struct halyard_driver_instance* halyard_driver_instance_t;
typedef struct halyard_driver_device* halyard_driver_device_t;
typedef struct halyard_driver_memory* halyard_driver_memory_t;
typedef struct halyard_driver_semaphore* halyard_driver_semaphore_t;
typedef struct halyard_driver_executable* halyard_driver_executable_t;
typedef struct halyard_driver_command_list* halyard_driver_command_list_t;

/* ---- Devices ------------------------------------------------------------------------------------------- */

/* One device that can be opened. Texts belong to the instance and live until its shutdown. */
typedef struct halyard_device_info {
  uint32_t struct_size;
  uint32_t reserved;
  const char* kind; /* one of the note's kinds: "vulkan" */
  const char* path; /* the URI's part after "kind://"; "" for the only device of its kind */
  const char* name; /* for display: "NVIDIA H200", "inline CPU" */
} halyard_device_info_t;

typedef struct halyard_option {
  halyard_text_t key;
  halyard_text_t value;
} halyard_option_t;

/* `kind` and `path` are those of the URI; an empty path means the default device of that kind. Options are
 * the URI's key=value pairs. An unknown key is INVALID_ARGUMENT; the message names that key and the known
 * ones. All pointers are borrowed for the call. */
typedef struct halyard_device_open_args {
  uint32_t struct_size;
  uint32_t option_count;
  halyard_text_t kind;
  halyard_text_t path;
  const halyard_option_t* options;
  const halyard_extension_t* extensions;
} halyard_device_open_args_t;

/* Device capability bits. */
enum {
  /* Work runs on the thread that makes it ready: in queue_submit, in semaphore_signal or semaphore_fail of
   * the host, or in work that the driver runs for another of its devices. */
  HALYARD_DEVICE_RUNS_IN_CALLER = 1u << 0,
  HALYARD_DEVICE_UNIFIED_MEMORY = 1u << 1, /* host and device memory are one */
  HALYARD_DEVICE_HOST_COHERENT = 1u << 2,  /* all HOST_VISIBLE memory is also HOST_COHERENT */
  HALYARD_DEVICE_QUEUE_ALLOCA = 1u << 3, /* implements ALLOCA and DEALLOCA; otherwise the host's pool does */
  HALYARD_DEVICE_SEMAPHORE_EXPORT = 1u << 4, /* semaphore_export and semaphore_import with file descriptors */
  HALYARD_DEVICE_COLLECTIVES = 1u << 5,      /* collective commands */
  /* Since 0.2. Kernels, and commands through slots, may write to memory imported without HALYARD_MAP_WRITE.
   * With HALYARD_MAP_PRIVATE they write to the bytes themselves, else to a copy that the driver makes
   * [R77]. */
  HALYARD_DEVICE_WRITES_CONSTANTS = 1u << 6,
  /* Since 0.2. The driver checks halyard_submission.stop while it runs work [R69]. */
  HALYARD_DEVICE_STOPS_WORK = 1u << 7,
};

typedef struct halyard_device_properties {
  uint32_t struct_size;
  uint32_t capabilities; /* HALYARD_DEVICE_* */
  uint32_t queue_count;  /* 1..64; bit n of an affinity is queue n */
  uint32_t reserved;
  uint64_t operations;         /* bit n: operation kind n (HALYARD_OPERATION_*) is implemented */
  uint64_t memory_alignment;   /* bytes, a power of two; alignment of every allocation */
  uint64_t maximum_allocation; /* bytes in one allocation */
  uint64_t import_alignment;   /* bytes; required alignment of imported host pointers; 0: no import */
  /* With SEMAPHORE_EXPORT: the kind and group of the device's descriptors. Devices of any driver can import
   * each other's descriptors if kind and group are equal [R110]. */
  uint32_t semaphore_fd_kind; /* HALYARD_SEMAPHORE_FD_* */
  uint32_t reserved2;
  uint8_t semaphore_fd_group[32]; /* OPAQUE of Vulkan: deviceUUID, then driverUUID */
} halyard_device_properties_t;

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* Memory types, usage and access: the numbers are the ecosystem's (docs/driver-abi.md, "Numbers"). */
enum {
  HALYARD_MEMORY_OPTIMAL = 0x01,
  HALYARD_MEMORY_HOST_VISIBLE = 0x02,
  HALYARD_MEMORY_HOST_COHERENT = 0x04,
  HALYARD_MEMORY_HOST_CACHED = 0x08,
  HALYARD_MEMORY_DEVICE_VISIBLE = 0x10,
  HALYARD_MEMORY_DEVICE_LOCAL = 0x30, /* includes DEVICE_VISIBLE */
  HALYARD_MEMORY_HOST_LOCAL = 0x46,   /* includes HOST_VISIBLE and HOST_COHERENT */
};
enum {
  HALYARD_USAGE_TRANSFER_SOURCE = 0x1,
  HALYARD_USAGE_TRANSFER_TARGET = 0x2,
  HALYARD_USAGE_TRANSFER = 0x3,
  HALYARD_USAGE_INDIRECT_PARAMETERS = 0x100,
  HALYARD_USAGE_UNIFORM_READ = 0x200,
  HALYARD_USAGE_STORAGE_READ = 0x400,
  HALYARD_USAGE_STORAGE_WRITE = 0x800,
  HALYARD_USAGE_STORAGE = 0xC00,
  HALYARD_USAGE_DEFAULT = 0xC03,
  HALYARD_USAGE_SHARING_EXPORT = 0x10000,
  HALYARD_USAGE_SHARING_REPLICATE = 0x20000,
  HALYARD_USAGE_SHARING_CONCURRENT = 0x40000,
  HALYARD_USAGE_SHARING_IMMUTABLE = 0x80000,
  HALYARD_USAGE_MAPPING_SCOPED = 0x1000000,
  HALYARD_USAGE_MAPPING_PERSISTENT = 0x2000000,
  HALYARD_USAGE_MAPPING_OPTIONAL = 0x4000000,
  HALYARD_USAGE_MAPPING_RANDOM = 0x8000000,
  HALYARD_USAGE_MAPPING_SEQUENTIAL_WRITE = 0x10000000,
};

/* The `owner` of a halyard_memory_request_t that writes every byte before anything reads one. The previous
 * contents of the memory do not matter. */
#define HALYARD_OWNER_WRITES_ALL UINT64_MAX

/* A request for memory. The host replaces type 0 by OPTIMAL and usage 0 by DEFAULT. */
typedef struct halyard_memory_request {
  uint32_t struct_size;
  uint32_t memory_type; /* required bits; with OPTIMAL, the other bits are only preferred */
  uint32_t usage;       /* required bits */
  uint32_t reserved;
  uint64_t affinity; /* queues that will use the memory; never 0 */
  uint64_t size;     /* bytes; 0 is allowed and gives a valid memory without bytes */
  /* Since 0.2. The program of one context, or 0. The contents of a new allocation are zero, or bytes that the
   * same owner left in the memory; an owner of 0 gets zeros only [R78]. */
  uint64_t owner;
} halyard_memory_request_t;

/* Properties of allocated memory; they include those requested (without OPTIMAL). */
typedef struct halyard_memory_info {
  uint32_t struct_size;
  uint32_t memory_type;
  uint32_t usage;
  uint32_t reserved;
  uint64_t size; /* bytes; at least the request's */
} halyard_memory_info_t;

enum {
  HALYARD_EXTERNAL_HOST_ALLOCATION = 1, /* `pointer` to `size` bytes of this process */
  HALYARD_EXTERNAL_OPAQUE_FD = 2, /* `fd`; import takes ownership on success, export creates a descriptor */
};

/* Since 0.3. Tells a version of a file from others: stat(2), before the file was mapped. */
typedef struct halyard_file_version {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t device;
  uint64_t inode;
  uint64_t size;
  int64_t modified_ns; /* st_mtim and st_ctim, in nanoseconds */
  int64_t changed_ns;
} halyard_file_version_t;

typedef struct halyard_external_memory {
  uint32_t struct_size;
  uint32_t kind; /* HALYARD_EXTERNAL_* */
  void* pointer;
  int32_t fd;
  /* HALYARD_MAP_READ, HALYARD_MAP_WRITE. Without WRITE the bytes may be on read-only pages. A driver must
   * then fail a kernel that writes to them with PERMISSION_DENIED, or give the kernel other memory [R77].
   * With HALYARD_MAP_PRIVATE kernels may write. */
  uint32_t access;
  uint64_t size; /* bytes */
  /* Since 0.3: the file whose bytes these are, from file_offset on, for drivers that keep facts about
   * contents; null: none, or unknown. A hint: kernels may have written to bytes with HALYARD_MAP_PRIVATE. */
  const halyard_file_version_t* file;
  uint64_t file_offset;
} halyard_external_memory_t;

enum {
  HALYARD_MAP_READ = 1,
  HALYARD_MAP_WRITE = 2,
  HALYARD_MAP_DISCARD = 4,
  /* Since 0.2, for imports without WRITE: constants of a program. The bytes are writable and private to this
   * process. The program's kernels may write to them; the host does not. */
  HALYARD_MAP_PRIVATE = 8,
};

/* Counts bytes of allocations, not of imports. Memory with all HOST_LOCAL bits counts as host memory, other
 * memory as device memory. */
typedef struct halyard_memory_statistics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t host_bytes_live, host_bytes_peak, host_bytes_allocated, host_bytes_freed;
  uint64_t device_bytes_live, device_bytes_peak, device_bytes_allocated, device_bytes_freed;
} halyard_memory_statistics_t;

/* ---- Semaphores ---------------------------------------------------------------------------------------- */

/* A value of a semaphore. The timepoint is reached when the semaphore's value is at least `value`. */
typedef struct halyard_timepoint {
  halyard_driver_semaphore_t semaphore;
  uint64_t value;
} halyard_timepoint_t;

#define HALYARD_WAIT_FOREVER INT64_MAX

typedef struct halyard_semaphore_wait_args {
  uint32_t struct_size;
  uint32_t any; /* 0: wait for all timepoints; else for any; a wait without timepoints succeeds */
  uint32_t timepoint_count;
  uint32_t reserved;
  const halyard_timepoint_t* timepoints;
  int64_t deadline_ns; /* of CLOCK_MONOTONIC; 0 polls; HALYARD_WAIT_FOREVER: no deadline */
} halyard_semaphore_wait_args_t;

/* Kinds of semaphore descriptors. */
enum {
  HALYARD_SEMAPHORE_FD_NONE = 0,
  HALYARD_SEMAPHORE_FD_OPAQUE = 1, /* only for its group: OPAQUE_FD of a Vulkan timeline semaphore */
};

/* Called once, when the value is reached (`status` is null) or the semaphore has failed (`status` is owned by
 * the callee). Runs on any thread, while no lock of the driver is held. It may submit work, signal and
 * subscribe. A slow subscriber may delay other callbacks, but must not delay work or waits [R88]. */
typedef void (*halyard_subscriber_fn)(void* user, halyard_status_t status);

/* ---- Memory limits ------------------------------------------------------------------------------------- */

/* Since 0.2. A program's memory limit, owned by the host. Any thread. */
typedef struct halyard_memory_budget {
  uint32_t struct_size;
  uint32_t reserved;
  void* user;     /* the first argument of the functions below */
  uint64_t limit; /* bytes, for messages */
  /* Returns 1 if the bytes were charged; give_back returns them. Returns 0 if they would exceed the limit;
   * nothing is charged then. */
  int32_t (*take)(void* user, uint64_t bytes);
  void (*give_back)(void* user, uint64_t bytes);
  uint64_t (*used)(void* user); /* bytes charged now, for messages */
} halyard_memory_budget_t;

/* ---- Executables --------------------------------------------------------------------------------------- */

enum {
  HALYARD_GRADE_NO = 0,        /* the device cannot run it */
  HALYARD_GRADE_RECOMPILE = 1, /* the device could run it after recompilation: newer format, other features */
  HALYARD_GRADE_LOADABLE = 2,  /* runs after the driver compiles it (source code), or more slowly [R90] */
  HALYARD_GRADE_NATIVE = 3,    /* compiled for this device */
};

typedef struct halyard_executable_grade {
  uint32_t struct_size;
  uint32_t grade;   /* HALYARD_GRADE_* */
  char reason[256]; /* for users; zero-terminated; empty for NATIVE */
} halyard_executable_grade_t;

typedef struct halyard_executable_args {
  uint32_t struct_size;
  uint32_t constant_count;
  halyard_text_t format; /* "vmvx-bytecode-fb" */
  /* Valid and unchanged until executable_destroy returns. Any alignment. Text is not zero-terminated
   * [R91]. */
  const void* data;
  uint64_t data_size;        /* bytes */
  const uint32_t* constants; /* executable-level constants; borrowed for the call */
  uint64_t affinity;         /* queues that will use the executable */
  const halyard_extension_t* extensions;
  /* Since 0.2. Null, or the budget for host memory that the kernels allocate while they run. Valid until
   * executable_destroy returns; the driver gives back all charges before that [R95]. */
  const halyard_memory_budget_t* memory;
  /* Since 0.2. Subgroup sizes for which the program declares to be compiled; each kernel is for one of them.
   * No sizes: the program declares none. Borrowed for the call [R96]. */
  const uint32_t* subgroup_sizes;
  uint32_t subgroup_size_count;
  uint32_t reserved;
  /* Since 0.2. Null, or a word that the host owns, valid for the call. A value other than 0 is a status code;
   * loading must then fail soon with that code. The word changes at most once, on any thread: read it with
   * relaxed atomic loads [R97]. */
  const uint32_t* stop;
} halyard_executable_args_t;

/* The executable does not declare this count: dispatches may have any number. */
#define HALYARD_COUNT_UNDECLARED UINT32_MAX

/* Functions are numbered from 0. Texts live as long as the executable. */
typedef struct halyard_function_info {
  uint32_t struct_size;
  uint32_t binding_count;     /* or HALYARD_COUNT_UNDECLARED */
  uint32_t constant_count;    /* 32-bit dispatch constants; or HALYARD_COUNT_UNDECLARED */
  uint32_t workgroup_size[3]; /* 0 if the executable does not declare it */
  uint64_t local_memory;      /* bytes of workgroup memory, static part */
  halyard_text_t name;        /* empty if the executable has no names */
  uint32_t flags;             /* HALYARD_FUNCTION_*; older drivers lack the field: 0 */
  uint32_t reserved;
  /* Since 0.3. Where it is in the source, as the compiler recorded it: "model.mlir:12:5"; may be empty. */
  halyard_text_t source;
} halyard_function_info_t;

/* Flags of functions whose constant_count is not exact. */
enum {
  /* constant_count is a maximum. The values of missing constants are undefined. */
  HALYARD_FUNCTION_FEWER_CONSTANTS = 1u << 0,
  /* The constants fill a range. More constants than constant_count are OUT_OF_RANGE. */
  HALYARD_FUNCTION_CONSTANT_RANGE = 1u << 1,
};

/* ---- Commands ------------------------------------------------------------------------------------------ */

/* A byte range that a command uses. A direct range is a range of `memory`. If `memory` is null, the range is
 * relative to entry `slot` of the binding table, which is passed at execution. The host checks direct ranges
 * when it records them, and ranges of slots when the list is submitted. Alignment requirements apply to the
 * sum of both offsets. Ranges of slots may overlap [R104]. */
typedef struct halyard_range {
  halyard_driver_memory_t memory;
  uint32_t slot;
  uint32_t reserved;
  uint64_t offset; /* bytes */
  uint64_t length; /* bytes; always explicit */
} halyard_range_t;

/* Kinds of commands. ORDER: numbers never change; new kinds are appended. */
enum {
  HALYARD_COMMAND_BARRIER = 1,
  HALYARD_COMMAND_FILL = 2,
  HALYARD_COMMAND_UPDATE = 3,
  HALYARD_COMMAND_COPY = 4,
  HALYARD_COMMAND_DISPATCH = 5,
  HALYARD_COMMAND_COLLECTIVE = 6,
  HALYARD_COMMAND_BEGIN_GROUP = 7,
  HALYARD_COMMAND_END_GROUP = 8,
};

/* The header of every command. The next command starts `size` bytes (a multiple of 8) after this one. For an
 * unknown kind, command_list_create fails with UNIMPLEMENTED and names the number. */
typedef struct halyard_command {
  uint32_t size;
  uint32_t kind;
} halyard_command_t;

/* All commands before the barrier complete, and their writes are visible, before any command after it starts.
 * Commands between two barriers may run in any order and concurrently. */
typedef struct halyard_command_barrier {
  halyard_command_t header;
  uint32_t source_stages;
  uint32_t target_stages;
} halyard_command_barrier_t;

typedef struct halyard_command_fill {
  halyard_command_t header;
  halyard_range_t target; /* offset and length are multiples of pattern_size */
  uint32_t pattern;       /* low pattern_size bytes, little endian */
  uint32_t pattern_size;  /* 1, 2 or 4 */
} halyard_command_fill_t;

typedef struct halyard_command_update {
  halyard_command_t header;
  const void* source; /* target.length bytes; valid as long as the list; any alignment */
  halyard_range_t target;
} halyard_command_update_t;

typedef struct halyard_command_copy {
  halyard_command_t header;
  halyard_range_t source;
  halyard_range_t target; /* same length; overlap, possible only through slots, gives an undefined result */
} halyard_command_copy_t;

typedef struct halyard_command_dispatch {
  halyard_command_t header;
  halyard_driver_executable_t executable;
  uint32_t function;       /* below the executable's function count */
  uint32_t flags;          /* HALYARD_DISPATCH_* */
  uint32_t workgroups[3];  /* number of workgroups; unused if indirect; with a 0 nothing runs */
  uint32_t constant_count; /* the function's count; may be less with HALYARD_FUNCTION_FEWER_CONSTANTS */
  uint32_t binding_count;  /* the function's count, if the executable declares it */
  uint32_t reserved;
  const uint32_t* constants;       /* valid as long as the list */
  const halyard_range_t* bindings; /* valid as long as the list */
  /* With HALYARD_DISPATCH_INDIRECT: 12 bytes with the workgroup counts x, y, z; offset a multiple of 4. */
  halyard_range_t indirect;
} halyard_command_dispatch_t;
enum { HALYARD_DISPATCH_INDIRECT = 1 };

typedef struct halyard_command_collective {
  halyard_command_t header;
  void* channel;      /* a channel of the host's channel provider */
  uint32_t operation; /* packed: kind, reduction, element type */
  uint32_t parameter;
  halyard_range_t send;
  halyard_range_t receive;
  uint64_t element_count;
} halyard_command_collective_t;

typedef struct halyard_command_begin_group {
  halyard_command_t header;
  halyard_text_t label; /* valid as long as the list */
} halyard_command_begin_group_t;

/* A finished, validated recording. */
typedef struct halyard_command_list_args {
  uint32_t struct_size;
  uint32_t one_shot; /* not 0: submitted at most once */
  uint64_t affinity; /* queues to which the list may be submitted */
  /* The commands and everything they point to: valid and unchanged until command_list_destroy returns. */
  const halyard_command_t* commands;
  uint64_t commands_size; /* bytes */
  uint32_t command_count;
  uint32_t binding_count; /* entries that a binding table needs: highest slot used + 1 */
  const halyard_extension_t* extensions;
} halyard_command_list_args_t;

/* ---- Queue work ---------------------------------------------------------------------------------------- */

/* Kinds of operations. ORDER: numbers never change; new kinds are appended. The number of a kind is its bit
 * in halyard_device_properties.operations. The host emulates missing operations: FILL, UPDATE, COPY and
 * DISPATCH as one-shot lists, READ and WRITE through staging buffers. */
enum {
  HALYARD_OPERATION_BARRIER = 0, /* mandatory: only waits and signals */
  HALYARD_OPERATION_ALLOCA = 1,  /* with HALYARD_DEVICE_QUEUE_ALLOCA */
  HALYARD_OPERATION_DEALLOCA = 2,
  HALYARD_OPERATION_FILL = 3,
  HALYARD_OPERATION_UPDATE = 4,
  HALYARD_OPERATION_COPY = 5,
  HALYARD_OPERATION_READ = 6,
  HALYARD_OPERATION_WRITE = 7,
  HALYARD_OPERATION_DISPATCH = 8,
  HALYARD_OPERATION_EXECUTE = 9, /* mandatory */
};

typedef struct halyard_binding {
  halyard_driver_memory_t memory; /* null for an unused slot */
  uint64_t offset;                /* bytes */
  uint64_t length;                /* bytes */
} halyard_binding_t;

/* ALLOCA: queue_submit fills *memory and *info before it returns. Later submissions may use the handle at
 * once. The bytes exist between this operation's signal and the wait of its DEALLOCA. DEALLOCA may free the
 * bytes, in queue order, or leave them to memory_free, which ends the handle. */
typedef struct halyard_operation_alloca {
  const halyard_memory_request_t* request; /* borrowed for the call */
  halyard_driver_memory_t* memory;
  halyard_memory_info_t* info;
} halyard_operation_alloca_t;
typedef struct halyard_operation_dealloca {
  halyard_driver_memory_t memory;
} halyard_operation_dealloca_t;
typedef struct halyard_operation_fill {
  halyard_range_t target; /* direct */
  uint32_t pattern;
  uint32_t pattern_size;
} halyard_operation_fill_t;
typedef struct halyard_operation_update {
  const void* source;     /* the host keeps the bytes until `completed` */
  halyard_range_t target; /* direct */
} halyard_operation_update_t;
typedef struct halyard_operation_copy {
  halyard_range_t source; /* direct */
  halyard_range_t target; /* direct */
} halyard_operation_copy_t;
typedef struct halyard_operation_transfer_file {
  int32_t fd; /* READ copies the file to the range, WRITE the range to the file. Borrowed until `completed` */
  uint32_t reserved;
  uint64_t file_offset;  /* bytes */
  halyard_range_t range; /* direct */
} halyard_operation_transfer_file_t;
typedef struct halyard_operation_dispatch {
  const halyard_command_dispatch_t* dispatch; /* direct ranges only; the host keeps it until `completed` */
} halyard_operation_dispatch_t;
typedef struct halyard_operation_execute {
  halyard_driver_command_list_t list;
  const halyard_binding_t* bindings; /* borrowed for the call */
  uint64_t binding_count;            /* at least the list's; the host has checked it */
} halyard_operation_execute_t;

/* struct_size covers the union members that the writer was compiled with: never copy more than that. */
typedef struct halyard_operation {
  uint32_t struct_size;
  uint32_t kind; /* HALYARD_OPERATION_* */
  union {
    halyard_operation_alloca_t alloca_;
    halyard_operation_dealloca_t dealloca;
    halyard_operation_fill_t fill;
    halyard_operation_update_t update;
    halyard_operation_copy_t copy;
    halyard_operation_transfer_file_t read;
    halyard_operation_transfer_file_t write;
    halyard_operation_dispatch_t dispatch;
    halyard_operation_execute_t execute;
  };
} halyard_operation_t;

/* Called exactly once for each accepted submission: after its work is complete and its signals are signalled
 * (`status` is null), or after it has failed (`status` is owned by the callee). The driver must not use the
 * submission's objects after it has begun this call. The callback may run before queue_submit returns, on any
 * thread, while no lock of the driver is held. Its order relative to subscribers of the same signals is
 * undefined. */
typedef void (*halyard_completed_fn)(void* user, halyard_status_t status);

/* One piece of queue work. When all waits are reached, the operation runs; then all signals are signalled. If
 * a wait or the operation fails, every semaphore in `signals` fails with the same status; after a failed wait
 * the operation does not run [R60-R65]. Waits and signals name semaphores of any device of this instance.
 * Arrays are borrowed for the call. */
typedef struct halyard_submission {
  uint32_t struct_size;
  uint32_t wait_count;
  uint32_t signal_count;
  uint32_t reserved;
  uint64_t affinity; /* queues that may run it; the host has masked them with the device's; never 0 */
  const halyard_timepoint_t* waits;
  const halyard_timepoint_t* signals;
  const halyard_operation_t* operation;
  halyard_completed_fn completed; /* never null */
  void* completed_user;
  const halyard_extension_t* extensions;
  /* Since 0.2. Null, or a word that the host owns, valid until `completed`. A value other than 0 is a status
   * code; the work must then fail as soon as possible with that code. The word changes at most once, at any
   * time, on any thread: read it with relaxed atomic loads [R69]. */
  const uint32_t* stop;
} halyard_submission_t;

/* ---- The table ----------------------------------------------------------------------------------------- */

typedef struct halyard_driver_init_args {
  uint32_t struct_size;
  uint32_t abi_version;                    /* the negotiated version */
  const halyard_host_services_t* services; /* valid until shutdown returns */
  const halyard_extension_t* extensions;
} halyard_driver_init_args_t;

/* Functions marked M are mandatory in version 1: the host refuses a driver that lacks one, and names all
 * missing ones. Other functions may be null: the host emulates them, or returns UNIMPLEMENTED and names the
 * function. */
typedef struct halyard_driver_table {
  uint32_t struct_size;
  uint32_t reserved;

  /* M. Creates an instance. The driver must not access hardware before this call, neither in negotiate nor in
   * a static constructor. UNAVAILABLE with the reason if a library or device is missing. May block. */
  halyard_status_t (*initialize)(const halyard_driver_init_args_t* args, halyard_driver_instance_t* instance);
  /* M. Destroys *instance, after all its devices are closed: joins its threads and sets *instance to null. A
   * null *instance has no effect. */
  void (*shutdown)(halyard_driver_instance_t* instance);
  /* M. Writes up to `capacity` infos, and the total number to *count. The host has set struct_size in each;
   * the stride is infos[0].struct_size. The order never changes. With capacity 0 only *count is written. */
  halyard_status_t (*enumerate_devices)(halyard_driver_instance_t instance, uint32_t capacity,
                                        halyard_device_info_t* infos, uint32_t* count);
  /* M. Creates a logical device. Opening the same path twice creates two. NOT_FOUND names the available
   * paths. May block. */
  halyard_status_t (*device_open)(halyard_driver_instance_t instance, const halyard_device_open_args_t* args,
                                  halyard_driver_device_t* device);
  /* M. Called after all work of the device is complete and all its handles are destroyed. May block. */
  void (*device_close)(halyard_driver_device_t device);
  /* M. Constant for the life of the device. */
  halyard_status_t (*device_properties)(halyard_driver_device_t device,
                                        halyard_device_properties_t* properties);
  /* M. Answers a query with one integer, by category and key (docs/spec/hal-semantics.md, "Device queries").
   * An unknown key sets *known to 0 and is not an error. The host itself answers "hal.executable.format", and
   * "hal.device.id" where the key, a pattern, matches the kind of the device. Since 0.2 it asks the driver
   * where the pattern does not match: 1 says that the device stands for one of a matching kind. */
  halyard_status_t (*device_query_i64)(halyard_driver_device_t device, halyard_text_t category,
                                       halyard_text_t key, int32_t* known, int64_t* value);
  /* Frees memory that the device keeps for reuse. */
  halyard_status_t (*device_trim)(halyard_driver_device_t device);
  halyard_status_t (*device_memory_statistics)(halyard_driver_device_t device,
                                               halyard_memory_statistics_t* statistics);

  /* M. RESOURCE_EXHAUSTED: out of memory. INVALID_ARGUMENT: no heap has the required bits; the message names
   * the bits. The host has compared the size with maximum_allocation. */
  halyard_status_t (*memory_allocate)(halyard_driver_device_t device, const halyard_memory_request_t* request,
                                      halyard_driver_memory_t* memory, halyard_memory_info_t* info);
  /* M. Frees memory of any origin (allocated, alloca, imported). Called after all work that uses it. */
  void (*memory_free)(halyard_driver_device_t device, halyard_driver_memory_t memory);
  /* M for devices with HOST_VISIBLE memory. *pointer is the address of byte `offset`, valid until
   * memory_unmap of the same memory. Mappings nest and may overlap. `access` is HALYARD_MAP_*.
   * FAILED_PRECONDITION: the bytes of an alloca do not exist, yet or any more. */
  halyard_status_t (*memory_map)(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                 uint32_t access, uint64_t offset, uint64_t length, void** pointer);
  void (*memory_unmap)(halyard_driver_device_t device, halyard_driver_memory_t memory);
  /* Required if memory is HOST_VISIBLE without HOST_COHERENT: flush after host writes, invalidate before host
   * reads. */
  halyard_status_t (*memory_flush)(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                   uint64_t offset, uint64_t length);
  halyard_status_t (*memory_invalidate)(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                        uint64_t offset, uint64_t length);
  /* The host keeps the external bytes until memory_free. UNIMPLEMENTED: the driver does not import this kind.
   * info->size is the request's size, which is at most the external size. */
  halyard_status_t (*memory_import)(halyard_driver_device_t device, const halyard_memory_request_t* request,
                                    const halyard_external_memory_t* external,
                                    halyard_driver_memory_t* memory, halyard_memory_info_t* info);
  halyard_status_t (*memory_export)(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                    uint32_t kind, halyard_external_memory_t* external);

  /* M. Creates a timeline semaphore with the value `initial`. */
  halyard_status_t (*semaphore_create)(halyard_driver_device_t device, uint64_t initial,
                                       halyard_driver_semaphore_t* semaphore);
  /* M. Called after all work, waits and subscriptions that name the semaphore. */
  void (*semaphore_destroy)(halyard_driver_device_t device, halyard_driver_semaphore_t semaphore);
  /* M. Reads the current value. For a failed semaphore: returns a new reference to its first failure and
   * leaves *value unchanged. Never blocks. */
  halyard_status_t (*semaphore_query)(halyard_driver_semaphore_t semaphore, uint64_t* value);
  /* M. Signals from the host. INVALID_ARGUMENT: `value` is not larger than the current value. On a failed
   * semaphore it has no effect and succeeds. May call subscribers of any device before it returns [R34]. */
  halyard_status_t (*semaphore_signal)(halyard_driver_semaphore_t semaphore, uint64_t value);
  /* M. Fails the timeline permanently; later failures are dropped. Takes ownership of `status`, which is not
   * null. */
  void (*semaphore_fail)(halyard_driver_semaphore_t semaphore, halyard_status_t status);
  /* M. Blocks the calling thread. DEADLINE_EXCEEDED at the deadline. If a semaphore has failed: its failure.
   * Failures are checked first, and end the wait without waiting for the other timepoints. */
  halyard_status_t (*semaphore_wait)(halyard_driver_device_t device,
                                     const halyard_semaphore_wait_args_t* args);
  /* M. Calls `subscriber` once; on this thread, before it returns, if the value is reached or the timeline
   * has failed. If subscribing fails, `subscriber` is never called. */
  halyard_status_t (*semaphore_subscribe)(halyard_driver_semaphore_t semaphore, uint64_t value,
                                          halyard_subscriber_fn subscriber, void* user);
  /* M. Removes the subscription of (subscriber, user). Returns 1 if it will not be called, 0 if it was called
   * or is being called. */
  int32_t (*semaphore_unsubscribe)(halyard_driver_semaphore_t semaphore, halyard_subscriber_fn subscriber,
                                   void* user);
  /* Creates a semaphore that follows an exported one. Takes ownership of the descriptor only on success.
   * INVALID_ARGUMENT: the descriptor is not of this device's kind and group. The host queries the semaphore,
   * waits for it, fails it and destroys it, but neither signals it nor subscribes to it [R111]. */
  halyard_status_t (*semaphore_import)(halyard_driver_device_t device, int32_t fd,
                                       halyard_driver_semaphore_t* semaphore);
  /* Creates a descriptor for one import; the caller closes it. The imported semaphore reaches each value when
   * this one does, but does not get its failures [R112]. UNIMPLEMENTED: this semaphore is imported. If the
   * semaphore has failed: its failure. */
  halyard_status_t (*semaphore_export)(halyard_driver_semaphore_t semaphore, int32_t* fd);

  /* M. Grades an executable without loading it; if `data` is null, grades the format alone. Never fails. */
  void (*executable_grade)(halyard_driver_device_t device, halyard_text_t format, const void* data,
                           uint64_t data_size, halyard_executable_grade_t* grade);
  /* M. NOT_FOUND: unknown format; names the known ones. INVALID_ARGUMENT: bad data. INCOMPATIBLE: compiled
   * for another device; names the missing features. May block for long. */
  halyard_status_t (*executable_create)(halyard_driver_device_t device, const halyard_executable_args_t* args,
                                        halyard_driver_executable_t* executable);
  void (*executable_destroy)(halyard_driver_device_t device, halyard_driver_executable_t executable); /* M */
  uint32_t (*executable_function_count)(halyard_driver_executable_t executable);                      /* M */
  /* M. OUT_OF_RANGE: no such function. */
  halyard_status_t (*executable_function_info)(halyard_driver_executable_t executable, uint32_t function,
                                               halyard_function_info_t* info);

  /* M. May translate the list to a form of the device. INCOMPATIBLE: the list dispatches a function that is
   * for another device, in an executable whose other functions run here [R96]. */
  halyard_status_t (*command_list_create)(halyard_driver_device_t device,
                                          const halyard_command_list_args_t* args,
                                          halyard_driver_command_list_t* list);
  void (*command_list_destroy)(halyard_driver_device_t device, halyard_driver_command_list_t list); /* M */

  /* M. Success means that the submission is accepted: `completed` will be called once, and later failures are
   * reported through the signals and `completed`. After a failure no signal has changed and `completed` is
   * not called. Blocks only on RUNS_IN_CALLER devices, and only for work, never for a wait: the driver keeps
   * work until its waits are reached. */
  halyard_status_t (*queue_submit)(halyard_driver_device_t device, const halyard_submission_t* submission);
  /* A hint to pass collected submissions on to the device. */
  halyard_status_t (*queue_flush)(halyard_driver_device_t device, uint64_t affinity);

  /* Returns 1 if the value is reached, or will be reached without any further call or submission, because the
   * work that signals it and everything that this work waits for is on the device. Otherwise, and for a
   * failed semaphore, returns 0. A null function counts as 0. Never blocks [R111]. */
  int32_t (*semaphore_underway)(halyard_driver_semaphore_t semaphore, uint64_t value);
  /* Runs pending work of the device, including its `completed` callbacks, on the calling thread, which is
   * about to block for the timepoints in `args` (their deadline is ignored). Returns when the wait is over,
   * when there is no suitable work, or after about 10 ms [R89]. Null: the device does not use waiting
   * threads. */
  void (*device_help)(halyard_driver_device_t device, const halyard_semaphore_wait_args_t* args);

  /* Copies bytes of memory to the host, or from the host, without a mapping, and returns when they are
   * copied: for memory in another process or machine, which a mapping would copy once more. The range is not
   * empty and lies within the memory; all work that uses it has completed. Null: the host maps the memory
   * [R79]. */
  halyard_status_t (*memory_read)(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                  uint64_t offset, uint64_t length, void* target);
  halyard_status_t (*memory_write)(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                   uint64_t offset, uint64_t length, const void* source);
} halyard_driver_table_t;

/* ---- Negotiation --------------------------------------------------------------------------------------- */

typedef struct halyard_driver_request {
  uint32_t struct_size;
  uint32_t abi_min; /* versions that the host speaks */
  uint32_t abi_max;
  uint32_t sanitizer;       /* HALYARD_SANITIZER_* of the host */
  const char* host_version; /* for display */
  const halyard_extension_t* extensions;
} halyard_driver_request_t;

typedef struct halyard_driver_kind {
  const char* name;        /* as in the note */
  const char* description; /* one line, for lists */
} halyard_driver_kind_t;

typedef struct halyard_driver_reply {
  uint32_t struct_size;                /* set by the host; the driver writes only that many bytes */
  uint32_t abi_version;                /* the highest common version */
  const halyard_driver_table_t* table; /* static storage */
  const halyard_driver_kind_t* kinds;  /* static storage */
  uint32_t kind_count;
  uint32_t reserved;
  char refusal[256]; /* zero-terminated reason, if the driver returns 0 */
} halyard_driver_reply_t;

/* The only exported function. It neither accesses hardware nor allocates, and may be called any number of
 * times. Returns 1 and fills the reply if there is a common version. Returns 0 if the driver refuses, with
 * the reason in `refusal`. */
typedef int32_t (*halyard_driver_negotiate_fn)(const halyard_driver_request_t* request,
                                               halyard_driver_reply_t* reply);
#define HALYARD_DRIVER_NEGOTIATE_SYMBOL "halyard_driver_negotiate"

#if defined(__GNUC__)
#define HALYARD_DRIVER_EXPORT __attribute__((visibility("default")))
#else
#define HALYARD_DRIVER_EXPORT
#endif
HALYARD_DRIVER_EXPORT int32_t halyard_driver_negotiate(const halyard_driver_request_t* request,
                                                       halyard_driver_reply_t* reply);

/* ---- Sizes of version 1: tie each recorded size to the last field it had; they never change ------------ */

#ifdef __cplusplus
#define HALYARD_STATIC_ASSERT_ static_assert
#else
#define HALYARD_STATIC_ASSERT_ _Static_assert
#endif
HALYARD_STATIC_ASSERT_(sizeof(halyard_driver_note_t) == 272, "the note never changes");
HALYARD_STATIC_ASSERT_(sizeof(halyard_driver_note_record_t) == 292, "the note never changes");
#if UINTPTR_MAX == UINT64_MAX
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_driver_table_t, queue_flush) == 8 + 36 * 8,
                       "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_submission_t, extensions) == 72, "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_command_dispatch_t, indirect) == 96, "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_device_properties_t, import_alignment) == 48,
                       "version 1 is frozen");
HALYARD_STATIC_ASSERT_(HALYARD_FIELD_END(halyard_host_services_t, log) == 72, "version 1 is frozen");
#endif
#undef HALYARD_STATIC_ASSERT_

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_DRIVER_H_ */
