/* Halyard's embedding ABI, version 1: load compiled modules, open devices, call functions. Plain C11; link
 * with libhalyard.
 *
 * STEP BY STEP
 *   1. halyard_instance_create: defines where drivers are searched. Nothing is global.
 *   2. halyard_device_open: "local-sync", "vulkan://0". Loads the driver's library.
 *   3. halyard_module_load_file or _memory: loads and checks a .vmfb; _file also loads native modules.
 *      halyard_module_create_native makes a native module of the embedder's own functions.
 *   4. halyard_context_create: links modules and runs their `__init`.
 *   5. halyard_context_find, halyard_call_create, halyard_call_invoke: call functions, any number of times.
 *   6. halyard_release: releases the handles, in any order.
 *
 * HANDLES. Every handle except a status is a reference-counted object, for halyard_retain and
 * halyard_release. A function with an `out` handle returns a reference that the caller releases. Arguments
 * are borrowed for the call.
 *
 * ARGUMENTS. INVALID_ARGUMENT: a handle is null or of another kind; an array or an output is a null pointer
 * (unless the function says that it may be null); a flag is unknown; a `reserved` field is not 0.
 *
 * STATUS. Every function that can fail returns a halyard_status_t: null for success, else an error that the
 * caller releases with halyard_status_release. A failed function leaves its outputs unchanged. Out of memory
 * is RESOURCE_EXHAUSTED, or null from a function that returns text.
 *
 * THREADS. Any thread may use instances, devices, modules, buffers, views and fences, at any time. One call
 * at a time may use a context, unless it has HALYARD_CONTEXT_CONCURRENT_CALLS. One thread at a time may use a
 * halyard_call_t. Halyard starts a thread only for a feature that needs one.
 *
 * GROWTH. Option and info structs start with struct_size, which the caller sets to sizeof (INVALID_ARGUMENT:
 * 0, or more than 4096). Fields are only appended. Fields that the caller's struct lacks count as zero. If
 * the caller's struct is larger than the library's, the additional option fields must be 0 (else
 * UNIMPLEMENTED), and the additional info fields are set to 0.
 *
 * Specified by: the module format, docs/spec/run-module-cli.md (texts of values), docs/spec/hal-semantics.md.
 */
#ifndef HALYARD_HALYARD_H_
#define HALYARD_HALYARD_H_

#include <stddef.h>
#include <stdint.h>

#include "halyard/element_type.h"
#include "halyard/status.h"
#include "halyard/value.h"

#if defined(__GNUC__)
#define HALYARD_API __attribute__((visibility("default")))
#else
#define HALYARD_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header, and of everything that is built with it. */
#define HALYARD_VERSION_MAJOR 0
#define HALYARD_VERSION_MINOR 2
#define HALYARD_VERSION_PATCH 0
/* "1.2.3". Static storage. */
HALYARD_API const char* halyard_version(void);

/* Facts about this library. Texts are in static storage. */
typedef struct halyard_build {
  uint32_t struct_size;
  uint32_t sanitizer;      /* HALYARD_SANITIZER_* (halyard/abi.h) */
  uint32_t driver_abi_min; /* the versions of halyard/driver.h that it speaks */
  uint32_t driver_abi_max;
  uint32_t module_abi_min; /* the versions of halyard/module.h */
  uint32_t module_abi_max;
  const char* version;   /* halyard_version() */
  const char* compiler;  /* "g++ 12.2.0" */
  const char* type;      /* "Release" */
  const char* processor; /* "x86_64" */
} halyard_build_t;
HALYARD_API halyard_status_t halyard_build_describe(halyard_build_t* build);

/* Finds the library that compiles bytecode for devices and instances with JIT options (docs/jit.md). `name`
 * gets its name and version, `path` its path; either may be null. Reads only the library's ELF note, and
 * loads nothing. Both texts live as long as the process. NOT_FOUND: none is installed, which is a valid
 * installation; INCOMPATIBLE: it is of another build; INVALID_ARGUMENT: its file is damaged. Any thread. */
HALYARD_API halyard_status_t halyard_compiler_find(const char** name, const char** path);

typedef struct halyard_compiler_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t functions;    /* functions that became native code */
  uint64_t cached;       /* those of `functions` that were found in a cache */
  uint64_t refused;      /* functions that stay interpreted */
  uint64_t compile_ns;   /* wall time */
  uint64_t object_bytes; /* size of the objects that hold the code */
} halyard_compiler_stats_t;
/* Reads what the compiler has done in this process, for all devices and instances. All zero if the compiler
 * has not been opened; this function does not open it. Any thread. */
HALYARD_API halyard_status_t halyard_compiler_stats(halyard_compiler_stats_t* stats);

typedef struct halyard_instance* halyard_instance_t;
typedef struct halyard_device* halyard_device_t;
typedef struct halyard_module* halyard_module_t;
typedef struct halyard_context* halyard_context_t;
typedef struct halyard_function* halyard_function_t; /* an export of a module in a context */
typedef struct halyard_call* halyard_call_t;         /* a reusable invocation; later calls do not allocate */
typedef struct halyard_capture* halyard_capture_t;   /* executed command buffers; immutable */
typedef struct halyard_replay* halyard_replay_t;     /* a capture on a device; one thread at a time */
typedef struct halyard_trace* halyard_trace_t;       /* a timeline of events; any thread */
typedef struct halyard_search* halyard_search_t;     /* a log of the search for drivers; immutable */
typedef struct halyard_channels* halyard_channels_t; /* a rank (halyard/channels.h); any thread */

/* For every handle of this header except a status. Null is allowed. */
HALYARD_API void halyard_retain(void* handle);
HALYARD_API void halyard_release(void* handle);
/* Frees memory that a function of this header has given to the caller. Null is allowed. */
HALYARD_API void halyard_free(void* memory);

/* ---- Status -------------------------------------------------------------------------------------------- */

/* Creates an error, owned by the caller; never null. `message` is zero-terminated and copied. */
HALYARD_API halyard_status_t halyard_status_create(halyard_status_code_t code, const char* message);
HALYARD_API halyard_status_t halyard_status_retain(halyard_status_t status);    /* null gives null */
HALYARD_API void halyard_status_release(halyard_status_t status);               /* null is allowed */
HALYARD_API halyard_status_code_t halyard_status_code(halyard_status_t status); /* HALYARD_OK for null */
HALYARD_API const char* halyard_status_message(halyard_status_t status); /* lives as long as the status */
/* "NOT_FOUND; message; note; ..." with cause and stack trace. Free it with halyard_free. */
HALYARD_API char* halyard_status_text(halyard_status_t status);

/* ---- Traces -------------------------------------------------------------------------------------------- */

/* Begins a trace, for halyard_instance_options_t.trace. Writes the file `path` and replaces an existing file;
 * null or "": no file, only halyard_trace_totals. The file is a Perfetto trace (ui.perfetto.dev,
 * trace_processor; docs/traces.md): functions of modules and their imports, queue work with flows from fence
 * to fence, dispatches, memory. Times are of CLOCK_MONOTONIC. NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE: the
 * file cannot be created. */
HALYARD_API halyard_status_t halyard_trace_create(const char* path, halyard_trace_t* out);
/* Waits until the work in flight is reported, at most 1 s for each device, and writes all buffered events;
 * more events may follow. The last release writes them too. UNAVAILABLE, RESOURCE_EXHAUSTED: some events were
 * lost, now or before. */
HALYARD_API halyard_status_t halyard_trace_finish(halyard_trace_t trace);
/* A slice on the calling thread, for work of the caller. Begin and end it on the same thread. No effect if
 * `trace` is null. */
HALYARD_API void halyard_trace_begin(halyard_trace_t trace, const char* name);
HALYARD_API void halyard_trace_end(halyard_trace_t trace);
/* Creates a track for work that does not belong to one thread, such as a request. 0 for null. Any thread. */
HALYARD_API uint64_t halyard_trace_track(halyard_trace_t trace, const char* name);
/* Adds a finished slice of the caller's work to such a track; times in nanoseconds of CLOCK_MONOTONIC. Slices
 * of one track must not overlap, but may nest: add the outer slice first. Any thread. No effect for null. */
HALYARD_API void halyard_trace_span(halyard_trace_t trace, uint64_t track, const char* name,
                                    uint64_t begin_ns, uint64_t end_ns);

/* Self times of slices of threads, in nanoseconds. Slices that are still open do not count. */
typedef struct halyard_trace_totals {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t events;
  uint64_t phase_ns;   /* slices from halyard_trace_begin */
  uint64_t machine_ns; /* functions of modules */
  uint64_t import_ns;  /* native functions that modules call, including hal */
  uint64_t queue_ns;   /* submissions, from creation to completion */
  uint64_t device_ns;  /* operations of devices */
  uint64_t wait_ns;    /* threads blocked in waits */
} halyard_trace_totals_t;
HALYARD_API halyard_status_t halyard_trace_totals(halyard_trace_t trace, halyard_trace_totals_t* totals);

/* Kinds of slices of halyard_trace_observe. */
enum {
  HALYARD_SLICE_PHASE = 0,   /* from halyard_trace_begin and halyard_trace_span; compilation of a function */
  HALYARD_SLICE_MACHINE = 1, /* a function of a module */
  HALYARD_SLICE_IMPORT = 2,  /* a native function that a module calls */
  HALYARD_SLICE_QUEUE = 3,   /* a submission, from its start to its completion */
  HALYARD_SLICE_DEVICE = 4,  /* a dispatch, fill, update or copy */
  HALYARD_SLICE_WAIT = 5,    /* a thread, or a submission, waits */
};
/* How the function of a dispatch ran. */
enum {
  HALYARD_KERNEL_UNKNOWN = 0,     /* or no dispatch */
  HALYARD_KERNEL_NATIVE = 1,      /* code of the processor or of the device, which the program contains */
  HALYARD_KERNEL_COMPILED = 2,    /* machine code that the driver made of bytecode */
  HALYARD_KERNEL_INTERPRETED = 3, /* bytecode, interpreted */
  HALYARD_KERNEL_PROFILER = 4,    /* no dispatch: work that the driver does only because of the trace */
};
enum { HALYARD_SLICE_KNOWS_OPERATIONS = 1u << 0, HALYARD_SLICE_KNOWS_BYTES = 1u << 1 };

/* A finished slice. Texts are valid during the call. */
typedef struct halyard_trace_slice {
  uint32_t struct_size;
  uint32_t kind;      /* HALYARD_SLICE_* */
  uint64_t track;     /* number of the thread, or of a queue or lane of a device */
  uint32_t on_thread; /* 1: the track is a thread */
  uint32_t code;      /* of a dispatch: HALYARD_KERNEL_* */
  uint64_t begin_ns;  /* of CLOCK_MONOTONIC */
  uint64_t end_ns;
  uint64_t self_ns; /* without the slices nested in it on the same track */
  halyard_text_t name;
  /* Of dispatches, whose slices are one for each thread that took part; 0 if the device does not report it.
   * The workgroups of this slice, those of the whole dispatch, and the threads that were asked to run it. */
  uint64_t workgroups;
  uint64_t dispatch_workgroups;
  uint32_t threads;
  /* Of the whole dispatch, where `known` (HALYARD_SLICE_KNOWS_*) says so: its float operations (fma counts
   * 2); the bytes of its bindings that it reads, and those that it writes, each byte once. Local devices
   * report them with the option `profile=1`. */
  uint32_t known;
  uint64_t operations;
  uint64_t bytes_read;
  uint64_t bytes_written;
  uint64_t checked_loops;    /* loop nests of compiled code that this slice ran with a check of each access */
  halyard_text_t reason;     /* why the function is interpreted, or empty */
  halyard_text_t uncounted;  /* why operations or bytes are not known, or empty */
  halyard_text_t source;     /* where the function is in the source, as the compiler recorded it, or empty */
  halyard_text_t not_shared; /* why one thread ran all of it, or empty */
  /* Of work of a device, if its driver reports it: a number that grows with each submission; the command of
   * the submission's list, from 1 (0: an operation of the queue); and the place in the program that recorded
   * the command: "at module.f+0000001A (f.mlir:3:5)", or empty. */
  uint64_t execution;
  uint64_t command;
  halyard_text_t place;
} halyard_trace_slice_t;
typedef void (*halyard_slice_fn)(void* user, const halyard_trace_slice_t* slice);
/* Calls `observe` for each slice that is buffered from now on: those of one thread in the order of their
 * ends, one call at a time, on any thread, at the latest in halyard_trace_finish and halyard_trace_totals. It
 * must not call functions of the trace, nor block. A null `observe` ends this, after the work in flight is
 * reported (at most 1 s for each device is waited for); afterwards it is not called.
 * INVALID_ARGUMENT: `trace` is null. */
HALYARD_API halyard_status_t halyard_trace_observe(halyard_trace_t trace, halyard_slice_fn observe,
                                                   void* user);

/* ---- Instance, drivers, devices ------------------------------------------------------------------------ */

enum {
  HALYARD_INSTANCE_NO_ENVIRONMENT = 1u << 0,     /* ignore $HALYARD_DRIVER_PATH */
  HALYARD_INSTANCE_NO_DEFAULT_FOLDERS = 1u << 1, /* ignore the user's folder and the one beside libhalyard */
  HALYARD_INSTANCE_COUNT_OBJECTS = 1u << 2,      /* for halyard_device_objects and halyard_instance_objects */
  HALYARD_INSTANCE_RUN_BY_EMBEDDER = 1u << 3,    /* halyard_instance_run runs the event loop, not a thread */
  /* Compile functions of bytecode modules to native code (docs/jit.md). ALWAYS compiles each function when it
   * is first called. AUTO compiles hot functions on a low-priority thread of the instance, for which no call
   * waits. ALWAYS and AUTO exclude each other. Kernels are controlled by the device option `jit`. The last
   * release of the instance waits until the function being compiled is finished
   * (halyard_instance_compiling). */
  HALYARD_INSTANCE_JIT_ALWAYS = 1u << 4,
  HALYARD_INSTANCE_JIT_AUTO = 1u << 5,
  /* With ALWAYS or AUTO: compiled code may reorder sums of floats, fuse products with sums, and replace
   * functions like exp by vector functions (errors: docs/jit.md). No effect without ALWAYS or AUTO. Kernels
   * are controlled by the device option `jit_math`. */
  HALYARD_INSTANCE_JIT_FAST_MATH = 1u << 6,
};

typedef struct halyard_instance_options {
  uint32_t struct_size;
  uint32_t flags;                      /* HALYARD_INSTANCE_* */
  const char* const* driver_libraries; /* paths of halyard-driver-NAME.so files, searched first */
  size_t driver_library_count;
  const char* const* driver_folders; /* searched next */
  size_t driver_folder_count;
  halyard_trace_t trace; /* records devices and contexts of the instance; may be null */
  /* Null, or a boost::asio::io_context that the embedder runs and that replaces the instance's event loop;
   * the instance then starts no thread. The io_context must outlive the instance and all its objects. */
  void* asio_context;
  uint32_t asio_version; /* BOOST_ASIO_VERSION of that context */
  uint32_t reserved;
  /* With HALYARD_INSTANCE_JIT_*: a folder for compiled functions; null or "": none. It is created if missing,
   * and ignored if another user owns it or may write to it. Limited to 64 MiB; any number of processes may
   * share it. Kernels are controlled by the device option `jit_cache`. */
  const char* jit_cache;
} halyard_instance_options_t;

/* Creates an instance. `options` may be null. Reads the ELF notes of the drivers found, without running their
 * code. There is no default device; halyard_instance_search lists the drivers without running any.
 *
 * Two features need an event loop: time limits of calls, and closing a device whose last reference was held
 * by its own work. The instance has an event loop, whose thread starts on first use, unless the options
 * select a loop that the embedder runs. Time limits work only while the embedder runs that loop.
 *
 * FAILED_PRECONDITION: asio_version differs from the version that Halyard was built with, so layouts may
 * differ; the message names both. INVALID_ARGUMENT: both asio_context and HALYARD_INSTANCE_RUN_BY_EMBEDDER,
 * or both HALYARD_INSTANCE_JIT_ALWAYS and _AUTO. HALYARD_INSTANCE_JIT_ALWAYS opens the compiler: the function
 * then also fails like halyard_compiler_find, and with UNAVAILABLE if LLVM is missing. With
 * HALYARD_INSTANCE_JIT_AUTO and no compiler, everything is interpreted. */
HALYARD_API halyard_status_t halyard_instance_create(const halyard_instance_options_t* options,
                                                     halyard_instance_t* out);

/* Runs the ready handlers of the event loop of an instance made with HALYARD_INSTANCE_RUN_BY_EMBEDDER, and
 * returns. If no handler is ready, waits up to `timeout_ns` nanoseconds (0: does not wait; negative: no
 * limit). *ran (may be null) gets the number of handlers that ran. Any thread; several threads may run
 * concurrently. FAILED_PRECONDITION: the instance was made without that flag. */
HALYARD_API halyard_status_t halyard_instance_run(halyard_instance_t instance, int64_t timeout_ns,
                                                  size_t* ran);
/* Makes all running halyard_instance_run calls of the instance return. Any thread. */
HALYARD_API void halyard_instance_interrupt_run(halyard_instance_t instance);

typedef struct halyard_driver_entry {
  const char* name;        /* "local-sync" */
  const char* description; /* one line */
  const char* library;     /* path */
} halyard_driver_entry_t;
/* Drivers that load successfully, sorted by name. Loads all drivers into this process: a driver that crashes
 * or hangs takes the process with it. To avoid that, list drivers with halyard_instance_search, and try each
 * one with halyard_driver_probe in a separate process. The array and its texts are one block: free it with
 * halyard_free. */
HALYARD_API halyard_status_t halyard_instance_drivers(halyard_instance_t instance,
                                                      halyard_driver_entry_t** out, size_t* count);

typedef struct halyard_device_entry {
  const char* uri; /* "local-sync://", for halyard_device_open */
  const char* name;
} halyard_device_entry_t;
/* Devices of one driver; loads only that driver. If `driver` is null or "": devices of all drivers; loads all
 * drivers, like halyard_instance_drivers. NOT_FOUND: no such driver; the message names the available ones. */
HALYARD_API halyard_status_t halyard_instance_devices(halyard_instance_t instance, const char* driver,
                                                      halyard_device_entry_t** out, size_t* count);

typedef struct halyard_driver_candidate {
  const char* path;    /* an examined file */
  const char* drivers; /* comma-separated names; "" if the file could not be read */
  int32_t accepted;
  const char* reason; /* why the file was refused; "" if accepted */
} halyard_driver_candidate_t;
/* All examined files, in order of the search. */
HALYARD_API halyard_status_t halyard_instance_candidates(halyard_instance_t instance,
                                                         halyard_driver_candidate_t** out, size_t* count);

/* Opens a device. `uri` is "driver[://path][?key=value&...]". Opening a URI twice gives two logical devices.
 * INVALID_ARGUMENT: not a URI; NOT_FOUND: no such driver; the message names the available ones and the
 * reasons of the refused ones. Also returns failures of the driver. */
HALYARD_API halyard_status_t halyard_device_open(halyard_instance_t instance, const char* uri,
                                                 halyard_device_t* out);
typedef struct halyard_device_setting {
  const char* key;
  const char* value;
} halyard_device_setting_t;
/* Like halyard_device_open, with further options after those of the URI. Values may contain any characters.
 * Keys may be repeated if the driver allows it ("plugin" of local devices). Keys and values are copied. */
HALYARD_API halyard_status_t halyard_device_open_with(halyard_instance_t instance, const char* uri,
                                                      const halyard_device_setting_t* settings, size_t count,
                                                      halyard_device_t* out);
HALYARD_API const char* halyard_device_uri(halyard_device_t device); /* lives as long as the device */

typedef struct halyard_object_count {
  const char* type; /* "hal.buffer" */
  uint64_t live;    /* objects that exist now */
  uint64_t made;    /* objects created so far */
} halyard_object_count_t;
/* Counts a device's objects by type, to find leaked references. The array is one block: free it with
 * halyard_free. FAILED_PRECONDITION: the instance was made without HALYARD_INSTANCE_COUNT_OBJECTS. */
HALYARD_API halyard_status_t halyard_device_objects(halyard_device_t device, halyard_object_count_t** out,
                                                    size_t* count);
/* Counts the buffers and lists of programs ("vm.buffer", "vm.list") in all contexts of the instance. Objects
 * that remain after its contexts are destroyed are held by results or by the embedder. */
HALYARD_API halyard_status_t halyard_instance_objects(halyard_instance_t instance,
                                                      halyard_object_count_t** out, size_t* count);

/* The number of functions that an instance with HALYARD_INSTANCE_JIT_AUTO is compiling or has queued for
 * compilation; 0 without that flag. The last release of the instance waits for the function being compiled. A
 * process that must end at once keeps the instance and calls _Exit, because exit handlers must not run during
 * a compilation. For kernels of a device, use halyard_device_query(device, "halyard.jit", "compiling", ...).
 * Any thread. */
HALYARD_API halyard_status_t halyard_instance_compiling(halyard_instance_t instance, size_t* functions);

/* ---- The search for drivers ---------------------------------------------------------------------------- */

/* Where a searched path comes from. */
enum {
  HALYARD_ORIGIN_EMBEDDER = 0,     /* halyard_instance_options_t */
  HALYARD_ORIGIN_ENVIRONMENT = 1,  /* $HALYARD_DRIVER_PATH */
  HALYARD_ORIGIN_USER = 2,         /* the folder below $HOME */
  HALYARD_ORIGIN_INSTALLATION = 3, /* the folder beside libhalyard */
};

enum {
  HALYARD_SEARCH_ACCEPTED = 0, /* a folder that was read, or a suitable driver; loaded on first use */
  HALYARD_SEARCH_REFUSED = 1,  /* not a driver for this host, or failed to load */
  HALYARD_SEARCH_SHADOWED = 2, /* earlier drivers provide all its kinds */
  HALYARD_SEARCH_SKIPPED = 3,  /* not examined, because it does not exist or was examined before */
};

typedef struct halyard_search_entry {
  uint32_t struct_size;
  uint32_t origin;      /* HALYARD_ORIGIN_* */
  uint32_t outcome;     /* HALYARD_SEARCH_* */
  uint32_t is_folder;   /* not 0: a folder; entries of its files follow */
  const char* path;     /* absolute; for a skipped entry of $HALYARD_DRIVER_PATH as given there */
  const char* reason;   /* "CODE; reason"; "" if accepted */
  uint64_t other_files; /* number of files in the folder that are not named halyard-driver-NAME.so */
  /* The contents of the file's ELF note; "" and 0 if it could not be read. */
  const char* library; /* NAME */
  const char* version;
  const char* drivers; /* the driver's kinds, separated by commas */
  const char* serves;  /* the kinds that no earlier file provides */
  uint32_t abi_min;    /* versions of the driver ABI */
  uint32_t abi_max;
  uint32_t sanitizer; /* HALYARD_SANITIZER_* (halyard/abi.h); 0: none */
  uint32_t loaded;    /* not 0: this instance has run code of the driver */
} halyard_search_entry_t;

/* Takes a snapshot of the log of the search. Runs no code of a driver. */
HALYARD_API halyard_status_t halyard_instance_search(halyard_instance_t instance, halyard_search_t* out);
/* Reads an entry, in search order, from 0; OUT_OF_RANGE after the last. Texts live as long as the search. */
HALYARD_API halyard_status_t halyard_search_entry(halyard_search_t search, size_t index,
                                                  halyard_search_entry_t* entry);
/* "AddressSanitizer" for HALYARD_SANITIZER_ADDRESS, "no sanitizer" for 0. Static storage. */
HALYARD_API const char* halyard_sanitizer_name(uint32_t sanitizer);

/* Tries a driver, without an instance: loads it, negotiates, initializes, lists its devices, opens and closes
 * each device, shuts down. Returns the first failure; a device that cannot be opened does not count as one.
 * If the driver crashes or hangs, so does this process: try unknown drivers in a separate process. `step`
 * (may be null) is called on this thread before each step with its name: "load", "negotiate", "initialize",
 * "enumerate_devices", "device_open", "shutdown"; later versions may add names. */
typedef void (*halyard_step_fn)(void* user, const char* step);
HALYARD_API halyard_status_t halyard_driver_probe(const char* path, halyard_step_fn step, void* user);

/* ---- Properties of devices ----------------------------------------------------------------------------- */

/* Bits of halyard_device_description_t.capabilities. */
enum {
  HALYARD_CAPABILITY_RUNS_IN_CALLER = 1u << 0,   /* work runs on the thread that makes it ready */
  HALYARD_CAPABILITY_UNIFIED_MEMORY = 1u << 1,   /* host and device memory are one */
  HALYARD_CAPABILITY_HOST_COHERENT = 1u << 2,    /* host-visible memory needs no flush */
  HALYARD_CAPABILITY_QUEUE_ALLOCA = 1u << 3,     /* supports allocation in queue order */
  HALYARD_CAPABILITY_SEMAPHORE_EXPORT = 1u << 4, /* semaphores as file descriptors */
  HALYARD_CAPABILITY_COLLECTIVES = 1u << 5,      /* collective commands */
  /* kernels and commands may write to constants of the program */
  HALYARD_CAPABILITY_WRITES_CONSTANTS = 1u << 6,
  HALYARD_CAPABILITY_STOPS_WORK = 1u << 7, /* work ends soon after its call is cancelled or has timed out */
};

typedef struct halyard_device_description {
  uint32_t struct_size;
  uint32_t capabilities; /* HALYARD_CAPABILITY_*; unnamed bits may be set */
  uint64_t operations;   /* bit n: the queue operation halyard_operation_name(n) */
  uint32_t queue_count;  /* 1..64 */
  uint32_t reserved;
  uint64_t memory_alignment;   /* bytes; alignment of every allocation */
  uint64_t maximum_allocation; /* bytes in one allocation */
  uint64_t import_alignment;   /* bytes; host memory aligned to it needs no copy; 0: always copied */
  const char* driver;          /* "local-sync" */
  const char* library;         /* path */
  const char* library_version; /* the driver's own version */
} halyard_device_description_t;
/* Texts live as long as the device. */
HALYARD_API halyard_status_t halyard_device_describe(halyard_device_t device,
                                                     halyard_device_description_t* description);
/* "runs in caller" for bit 0, "alloca" for operation 1; null for unknown numbers. Static storage. */
HALYARD_API const char* halyard_capability_name(uint32_t bit);
HALYARD_API const char* halyard_operation_name(uint32_t operation);

/* Asks the device for an integer, by category and key ("hal.device", "concurrency"), like hal.device.query.
 * An unknown key sets *known and *value to 0 and is not an error. */
HALYARD_API halyard_status_t halyard_device_query(halyard_device_t device, const char* category,
                                                  const char* key, int32_t* known, int64_t* value);

/* Whether a device can run an executable. */
enum {
  HALYARD_FIT_NO = 0,        /* the device cannot run it */
  HALYARD_FIT_RECOMPILE = 1, /* it must be recompiled */
  HALYARD_FIT_LOADABLE = 2,  /* runs after the driver compiles it, or more slowly */
  HALYARD_FIT_NATIVE = 3,    /* compiled for the device */
};
typedef struct halyard_executable_fit {
  uint32_t struct_size;
  uint32_t fit;     /* HALYARD_FIT_* */
  char reason[256]; /* for users; "" if native */
} halyard_executable_fit_t;
/* Grades an executable of this format ("vmvx-bytecode-fb") without loading it; if `data` is null, grades the
 * format alone. */
HALYARD_API halyard_status_t halyard_device_judge(halyard_device_t device, const char* format,
                                                  const void* data, size_t size,
                                                  halyard_executable_fit_t* fit);

/* How a device uses memory of another device. */
enum {
  HALYARD_SHARING_NONE = 0,        /* the host copies the memory */
  HALYARD_SHARING_HOST_MEMORY = 1, /* imports host-visible memory without a copy */
  HALYARD_SHARING_SAME_DRIVER = 2, /* uses it like its own memory */
};
/* How `user` can use memory that `owner` allocates, judging by their properties: HALYARD_SHARING_*. Devices
 * of two instances never share a driver. */
HALYARD_API uint32_t halyard_device_sharing(halyard_device_t owner, halyard_device_t user);

/* Bytes of the device's allocations, without imports; all 0 if the driver does not count them. */
typedef struct halyard_memory_use {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t host_live, host_peak, host_allocated, host_freed;
  uint64_t device_live, device_peak, device_allocated, device_freed;
} halyard_memory_use_t;
HALYARD_API halyard_status_t halyard_device_memory(halyard_device_t device, halyard_memory_use_t* use);
/* What programs have allocated on the device over time, as JSON, UTF-8 (docs/profiling.md): `peak_bytes`,
 * `peak_ns` (CLOCK_MONOTONIC), `alive` at the peak with `bytes`, `count` and `made_by`, and `points`, pairs
 * of time and bytes. Later versions only add members. Memory of a queue counts from the time when its alloca
 * has run until its dealloca has run; other memory from its allocation until it is freed. `out_size` may be
 * null. *out is zero-terminated; free it with halyard_free. FAILED_PRECONDITION: the instance has no trace
 * and does not count objects. */
HALYARD_API halyard_status_t halyard_device_memory_log(halyard_device_t device, char** out, size_t* out_size);
/* Frees memory that the device keeps for reuse. */
HALYARD_API halyard_status_t halyard_device_trim(halyard_device_t device);

/* ---- Modules ------------------------------------------------------------------------------------------- */

enum {
  HALYARD_MODULE_VERIFY_EAGERLY = 1u << 0, /* verify all functions now instead of at their first call */
  HALYARD_MODULE_PRELOAD = 1u << 1,        /* read the file into memory; it may change or vanish afterwards */
  HALYARD_MODULE_NATIVE = 1u << 2,         /* allow native modules: files named x.so or x.so.1 */
};

/* Loads a module. A .vmfb archive is memory-mapped; a file whose name ends in ".vmasm" is text, which is
 * assembled. "-" is standard input. Standard input, and any other file that is not a regular file, is read
 * into memory, up to 1 GiB (RESOURCE_EXHAUSTED). Without PRELOAD the file must not change while the module
 * lives: if it is truncated, a read past its end kills the process (SIGBUS). The file is never written: pages
 * that kernels write to are copied. NOT_FOUND, PERMISSION_DENIED: the file; INVALID_ARGUMENT: not a module,
 * or damaged.
 *
 * With HALYARD_MODULE_NATIVE a shared library is loaded as a native module (halyard/module.h), whose code
 * runs in this process; without the flag it is PERMISSION_DENIED. A library that is not named x.so or x.so.1
 * is INVALID_ARGUMENT. "library.so@text" passes the argument `text` to the library. Modules that are loaded
 * later know its types. The library stays mapped until the process ends.
 */
HALYARD_API halyard_status_t halyard_module_load_file(halyard_instance_t instance, const char* path,
                                                      uint32_t flags, halyard_module_t* out);
/* Loads a module from memory; the bytes are copied. */
HALYARD_API halyard_status_t halyard_module_load_memory(halyard_instance_t instance, const void* data,
                                                        size_t size, uint32_t flags, halyard_module_t* out);

struct halyard_module_definition; /* halyard/module.h */
struct halyard_module_services;
/* Creates a native module of the embedder's own functions, which other modules can import. The definition is
 * copied. Its functions, `user` and callbacks are used as long as the module lives, on the threads that call
 * into its contexts. INVALID_ARGUMENT, UNIMPLEMENTED, INCOMPATIBLE: the definition is invalid; the message
 * names the function. ALREADY_EXISTS: a type of that name exists. */
HALYARD_API halyard_status_t halyard_module_create_native(halyard_instance_t instance,
                                                          const struct halyard_module_definition* definition,
                                                          halyard_module_t* out);
/* The services for native modules: buffers, lists, objects. Static storage. */
HALYARD_API const struct halyard_module_services* halyard_module_services(void);

typedef struct halyard_module_info {
  uint32_t struct_size;
  uint32_t version;
  uint32_t bytecode_version; /* 15, 16, 17; 0: a native module */
  uint32_t function_count;   /* exports */
  uint32_t needs_devices;    /* not 0: depends on or imports from `hal` */
  halyard_text_t name;
} halyard_module_info_t;
HALYARD_API halyard_status_t halyard_module_info(halyard_module_t module, halyard_module_info_t* info);

/* Warnings about a module that loads and runs but probably gives wrong results: one line each; "" for none,
 * and for native modules. The only warning so far: Vulkan shaders for targets that lack the 8- or 16-bit
 * types of the functions' tensors. *out is zero-terminated; free it with halyard_free. `out_size` may be
 * null. Any thread. */
HALYARD_API halyard_status_t halyard_module_warnings(halyard_module_t module, char** out, size_t* out_size);

typedef struct halyard_function_description {
  uint32_t struct_size;
  uint32_t argument_count; /* of the convention; for async functions including the two fences */
  uint32_t result_count;
  uint32_t is_async; /* not 0: iree.abi.model is coarse-fences: (..., wait fence, signal fence) */
  halyard_text_t name;
  halyard_text_t convention;  /* "0rr_r" */
  halyard_text_t declaration; /* the signature in the source; may be empty */
} halyard_function_description_t;
/* OUT_OF_RANGE: no such index. Texts live as long as the module. */
HALYARD_API halyard_status_t halyard_module_function(halyard_module_t module, uint32_t index,
                                                     halyard_function_description_t* description);
/* Reads the export's reflection attribute with this key ("iree.benchmark"); empty if it has none.
 * OUT_OF_RANGE: no such index. The text lives as long as the module. */
HALYARD_API halyard_status_t halyard_module_function_attribute(halyard_module_t module, uint32_t index,
                                                               const char* key, halyard_text_t* value);

enum {
  HALYARD_PREPARE_VERIFY = 0, /* verifies every function; keeps nothing */
  HALYARD_PREPARE_DECODE = 1, /* verifies and decodes every function, like its first call */
};
/* Does work that a module loaded without VERIFY_EAGERLY otherwise does at first calls. No effect on native
 * modules. INVALID_ARGUMENT: no such phase, or the verifier's error about the first invalid function. Any
 * thread. */
HALYARD_API halyard_status_t halyard_module_prepare(halyard_module_t module, uint32_t phase);

/* ---- Contexts ------------------------------------------------------------------------------------------ */

typedef struct halyard_parameter_file {
  const char* scope; /* "" for the unnamed scope */
  const char* path;  /* .irpa, .gguf, .safetensors, or .safetensors.index.json, an index of several files */
} halyard_parameter_file_t;

/* Called for hal.buffer_view.trace; the views are readable. */
typedef void (*halyard_trace_fn)(void* user, halyard_text_t key, const halyard_object_t* views,
                                 size_t view_count);

/* Reports progress in bytes, on the calling thread. A status other than null ends the call with that failure;
 * the library takes ownership of it. */
typedef halyard_status_t (*halyard_progress_fn)(void* user, uint64_t done, uint64_t total);

/* The bytes of one binding of a dispatch, or of one range of another step. Valid during the callback. */
typedef struct halyard_traced_tensor {
  uint32_t struct_size;
  uint32_t binding;
  uint64_t dispatch; /* number of the dispatch in order of execution, from 0 */
  halyard_text_t function;
  const uint8_t* data;
  uint64_t size;
  uint32_t after; /* 0: before the dispatch; 1: after it, if the bytes changed */
  uint32_t reserved;
  /* Set with HALYARD_CONTEXT_TRACE_STEPS only, else null and 0. Each range of a step is then reported once,
   * after the step: `data` has its bytes after the step, `before` as many from before it, and `after` is 0 if
   * they are equal. `dispatch` counts all steps; `function` is `operation` for steps without a function. */
  const uint8_t* before;
  uint64_t execution;       /* the submission, counted from 0 in the order of the program */
  uint64_t command;         /* within the execution, from 0 */
  halyard_text_t operation; /* "dispatch", "fill", "update", "copy", "collective", "read" */
  halyard_text_t device;    /* URI; empty for programs without devices */
  halyard_text_t place; /* of the step in the program: "at module.f+0000001A (f.mlir:3:5)"; may be empty */
  uint32_t workgroups[3];
  uint32_t buffer;       /* number of the allocation within the execution */
  uint64_t offset;       /* bytes, within the allocation */
  halyard_text_t source; /* where the function is in the source: "f.mlir:12:5"; may be empty */
} halyard_traced_tensor_t;
/* Called for dispatches, on any thread; calls for dependent work are sequential. A status other than null
 * fails the work; the library takes ownership of it. */
typedef halyard_status_t (*halyard_tensor_fn)(void* user, const halyard_traced_tensor_t* tensor);

/* A failed expectation of a test program (module `check`). Valid during the callback. */
typedef struct halyard_failed_expectation {
  uint32_t struct_size;
  uint32_t reserved;
  halyard_text_t function; /* the function of `check`: "expect_eq" */
  halyard_text_t message;  /* several lines: first the expected and the actual value, then tensors */
  halyard_text_t place;    /* where: "at module.function+0000001A (model.mlir:3:5)"; may be empty */
} halyard_failed_expectation_t;
/* Called on the thread that runs the call; the call continues afterwards. */
typedef void (*halyard_expectation_fn)(void* user, const halyard_failed_expectation_t* failed);

/* A reason why results are probably wrong although the program continues. Valid during the callback. */
typedef struct halyard_warning {
  uint32_t struct_size;
  uint32_t reserved;
  halyard_text_t text; /* a sentence without a newline; names are spelled as in their file */
  halyard_text_t path; /* the parameter file concerned */
} halyard_warning_t;
/* Called on the thread that runs the program; with HALYARD_CONTEXT_CONCURRENT_CALLS several threads may call
 * at once. */
typedef void (*halyard_warning_fn)(void* user, const halyard_warning_t* warning);

enum {
  HALYARD_CONTEXT_PRELOAD_PARAMETERS = 1u << 0, /* read parameter files into memory now, not on use */
  /* Several calls may run at once, for programs without state or whose state allows it. Without the flag the
   * second call is FAILED_PRECONDITION; the check costs one atomic operation a call. A context for each
   * thread is better: creating one takes 55 us and 25 to 50 KB. */
  HALYARD_CONTEXT_CONCURRENT_CALLS = 1u << 1,
  /* Calls are made for different users, as in a server, who must not see each other's data: all memory that
   * the program allocates is zero. Without the flag, new memory may hold what the same context left in it. */
  HALYARD_CONTEXT_SEPARATE_CALLS = 1u << 2,
  /* `tensor` gets every step of the program that can write to a buffer of a device: dispatches, the other
   * commands of command buffers, and the operations fill, update, copy and read of queues. `tensor_pattern`
   * selects dispatches only. Each step runs separately. */
  HALYARD_CONTEXT_TRACE_STEPS = 1u << 3,
};

typedef struct halyard_context_options {
  uint32_t struct_size;
  uint32_t reserved;
  const halyard_module_t* modules; /* a module may import from earlier ones; the last is the main module */
  size_t module_count;
  const halyard_device_t* devices; /* in the order of hal.devices.get */
  size_t device_count;
  const halyard_parameter_file_t* parameters;
  size_t parameter_count;
  halyard_trace_fn trace;
  void* trace_user;
  /* Limits of programs; 0: the default. A call that exceeds a limit fails (RESOURCE_EXHAUSTED). */

  /* Bytes of the program's memory, on the host and on devices together; default: no limit. Counted: all
   * objects of the program with their contents and alignment padding, stacks, globals, recorded commands, and
   * work in flight (docs/limits.md). Memory inside drivers is estimated. Objects that the embedder keeps stay
   * counted. Not counted: modules and their decoded code, allocations of native modules, traces, memory kept
   * for reuse. */
  uint64_t max_memory;
  uint64_t max_stack; /* bytes of one call's stack; default: 8 MiB */
  /* Nanoseconds that one call may take, including waits (DEADLINE_EXCEEDED); 0: no limit. Each `__init` that
   * halyard_context_create runs counts as a call. The instance's event loop measures the time. Work that the
   * call has submitted is stopped too, if the device supports it: `local` stops bytecode kernels at once and
   * native code between workgroups. A native function is not stopped. */
  uint64_t max_time_ns;
  /* The preferred device for memory that several devices use, if the program leaves the choice to the host:
   * the index of the device in `devices`, counted from 1. 0: the first of the program's devices whose memory
   * all of them can use. */
  uint32_t lead_device;
  uint32_t flags; /* HALYARD_CONTEXT_* */
  /* A capture file: every command buffer that programs execute, with its bytes before and after
   * (docs/captures.md). Copying all these bytes costs time and space. An existing file is replaced. The file
   * is complete when the context is destroyed. Null: no capture. */
  const char* capture_path;
  /* Reports the buffers of dispatches whose function name matches (wildcards: * and ?), before and after each
   * dispatch, to `tensor`. Each of these dispatches runs separately, and the reading takes time. Null: none.
   * Excludes capture_path (INVALID_ARGUMENT). Work that is in flight when the context is destroyed is not
   * reported from then on. The destruction waits while `tensor` runs on another thread, so do not release the
   * last handle under a lock that `tensor` takes. */
  const char* tensor_pattern;
  halyard_tensor_fn tensor;
  void* tensor_user;
  /* Called while parameter files are read into memory (HALYARD_CONTEXT_PRELOAD_PARAMETERS); may be null. */
  halyard_progress_fn progress;
  void* progress_user;
  /* Settings, as for halyard_device_open_with, of the "local-sync" device that the built-in module
   * `hal_loader` opens if `devices` has no local device; for example `native` and `plugin`. Copied. */
  const halyard_device_setting_t* loader_settings;
  size_t loader_setting_count;
  /* Called for each failed expectation of a test program; a test passes if there is none. Null: the first
   * failed expectation fails the call (FAILED_PRECONDITION). */
  halyard_expectation_fn expectation;
  void* expectation_user;
  /* The program's rank, for hal.channel.create (halyard/channels.h). Null: the rank that the launcher has
   * given to this process, which is read when the program creates its first channel. */
  halyard_channels_t channels;
  /* Called once for each parameter that a program reads only in part, from its beginning: because the program
   * expects another type or shape, or because the files of its scope contain the parameter more than once.
   * May be called until the context is destroyed. Null: no warnings. */
  halyard_warning_fn warning;
  void* warning_user;
} halyard_context_options_t;

/* Creates a context: links the modules and runs each `__init`. The built-in modules `hal`, `io_parameters`,
 * `hal_inline`, `hal_loader` and `check` are linked first, if a module depends on or imports from them.
 * `hal_inline` and `hal_loader` serve programs without devices: `hal_inline` provides buffers in host memory;
 * `hal_loader` runs kernels during the call, on the first local device in `devices` or on a device that it
 * opens on first use. NOT_FOUND: a module, import or parameter file is missing; INCOMPATIBLE: the signatures
 * of an import and its export differ. Also returns failures of `__init`. */
HALYARD_API halyard_status_t halyard_context_create(halyard_instance_t instance,
                                                    const halyard_context_options_t* options,
                                                    halyard_context_t* out);
/* Finds an export of `module`; null: of the main module. NOT_FOUND names similar exports. */
HALYARD_API halyard_status_t halyard_context_find(halyard_context_t context, const char* module,
                                                  const char* name, halyard_function_t* out);

/* ---- Values and calls ---------------------------------------------------------------------------------- */

/* Creates a handle for calls in this context, one call at a time. It keeps the context alive. */
HALYARD_API halyard_status_t halyard_call_create(halyard_context_t context, halyard_call_t* out);
/* Runs a function to its end. Arguments are borrowed. The caller owns the results: release their objects.
 * INVALID_ARGUMENT: wrong number of arguments or results. FAILED_PRECONDITION: the handle still runs another
 * call. */
HALYARD_API halyard_status_t halyard_call_invoke(halyard_call_t call, halyard_function_t function,
                                                 const halyard_value_t* arguments, size_t argument_count,
                                                 halyard_value_t* results, size_t result_count);

/* ---- Calls in steps ------------------------------------------------------------------------------------ */

/* A call that waits (for a fence, for a native function) holds no thread. Begin it; until it is done, resume
 * it whenever it is ready, on any thread, one at a time; then take its results. halyard_call_invoke does all
 * of this, and blocks while the call waits. */

enum {
  HALYARD_CALL_DONE = 0,
  HALYARD_CALL_READY = 1,   /* the call has yielded: resume it at any time */
  HALYARD_CALL_WAITING = 2, /* resume it after the ready callback was called, or at its deadline */
};

/* Begins a call. `arguments` are copied. FAILED_PRECONDITION: the handle still runs another call. A failure
 * ends the call. */
HALYARD_API halyard_status_t halyard_call_begin(halyard_call_t call, halyard_function_t function,
                                                const halyard_value_t* arguments, size_t argument_count,
                                                uint32_t* state);
/* FAILED_PRECONDITION: no call to resume, or the call still waits. */
HALYARD_API halyard_status_t halyard_call_resume(halyard_call_t call, uint32_t* state);
/* The state of the call. READY: halyard_call_resume would continue it. WAITING: halyard_call_resume would
 * fail. DONE: no call is suspended. For callers that may be notified twice that a call is ready. */
HALYARD_API uint32_t halyard_call_state(halyard_call_t call);
/* Takes the results, once, after HALYARD_CALL_DONE; the caller owns them. INVALID_ARGUMENT: wrong
 * result_count; the results can still be taken. FAILED_PRECONDITION: the call is not done, has failed, or its
 * results were taken. */
HALYARD_API halyard_status_t halyard_call_results(halyard_call_t call, halyard_value_t* results,
                                                  size_t result_count);
/* The time at which a waiting call can be resumed without a wakeup, in nanoseconds of CLOCK_MONOTONIC;
 * INT64_MAX: never. */
HALYARD_API int64_t halyard_call_deadline(halyard_call_t call);
/* Sets a deadline for the suspended call of this handle, or else for its next call, in nanoseconds of
 * CLOCK_MONOTONIC. At the deadline the call fails with DEADLINE_EXCEEDED, and its work on devices is stopped
 * as with max_time_ns. The context's max_time_ns may end the call earlier. The deadline applies to one call.
 * INT64_MAX: no deadline. Must not be called while the call runs. FAILED_PRECONDITION: the context was made
 * without an instance, so it has no event loop. */
HALYARD_API halyard_status_t halyard_call_set_deadline(halyard_call_t call, int64_t deadline_ns);
/* Sets the callback that is called whenever a wait ends, on the thread that ends it; null: none. It must not
 * call functions of this call, but notify the thread that resumes the call. Set before halyard_call_begin. */
HALYARD_API void halyard_call_on_ready(halyard_call_t call, void (*ready)(void* user), void* user);
/* Cancels the call. A running call fails with CANCELLED at its next branch or call, a waiting call at once.
 * Work on devices is stopped as with max_time_ns, including work left by finished calls of this handle. No
 * effect if there is neither a call nor work. A native function is not interrupted. Releasing a waiting call
 * cancels its work likewise. Any thread. */
HALYARD_API void halyard_call_cancel(halyard_call_t call);
/* Lets halyard_call_cancel also cancel the next call of this handle: if it is called before the next call
 * begins, that call fails when it begins. For callers that queue a call for another thread. No effect while a
 * call is suspended. */
HALYARD_API void halyard_call_arm(halyard_call_t call);
/* Selects whether the instance's trace records the next calls of this handle and their work on devices;
 * default: it does. Events that a device reports from its own threads are recorded while work of any recorded
 * call is in flight. Must not be called between begin and end of a call. No effect without a trace. */
HALYARD_API void halyard_call_trace(halyard_call_t call, int32_t is_traced);

/* ---- Objects ------------------------------------------------------------------------------------------- */

/* The type of the object: "hal.buffer_view", "vm.list". Lives as long as the object. */
HALYARD_API const char* halyard_object_type(halyard_object_t object);

typedef struct halyard_view_info {
  uint32_t struct_size;
  uint32_t element_type; /* HALYARD_ELEMENT_* */
  uint32_t encoding;     /* 1: dense row-major */
  uint32_t rank;
  const int64_t* shape; /* lives as long as the view */
  uint64_t byte_length; /* of the view's buffer range; may differ from halyard_view_byte_count */
} halyard_view_info_t;

/* Creates a view of a new buffer of the device, with a copy of `data` (null: zeros). If `device` is null the
 * buffer is in host memory, for programs without devices. INVALID_ARGUMENT: shape and size disagree. */
HALYARD_API halyard_status_t halyard_view_create(halyard_device_t device, uint32_t element_type,
                                                 const int64_t* shape, size_t rank, const void* data,
                                                 size_t size, halyard_object_t* out);
/* INVALID_ARGUMENT: not a buffer view. */
HALYARD_API halyard_status_t halyard_view_info(halyard_object_t view, halyard_view_info_t* info);
/* The number of bytes that the view's shape and type need. Programs can make a view of any shape over any
 * buffer, so this function, and every function that reads, maps, exports, prints or splits a view, compares
 * this number with the size of the buffer range. OUT_OF_RANGE: the range has fewer bytes; INVALID_ARGUMENT:
 * not a buffer view, or the shape has no size (negative, or more than 64 bits). */
HALYARD_API halyard_status_t halyard_view_byte_count(halyard_object_t view, uint64_t* bytes);
/* Copies bytes of the view's buffer range to the host. The work that produces them must be complete. Where
 * the host cannot map the memory, as on most GPUs, a queue of its device copies them, and the call blocks
 * until the copy is complete. OUT_OF_RANGE: the range has fewer bytes; PERMISSION_DENIED: neither the host
 * nor a copy may read the buffer. Also fails like halyard_view_byte_count. */
HALYARD_API halyard_status_t halyard_view_read(halyard_object_t view, uint64_t offset, void* target,
                                               size_t size);
/* "2x2xf32=[1 2][3 4]", at most `max_elements` elements, read as by halyard_view_read. Free it with
 * halyard_free. */
HALYARD_API halyard_status_t halyard_view_text(halyard_object_t view, uint64_t max_elements, char** out);
/* The view's buffer. */
HALYARD_API halyard_status_t halyard_view_buffer(halyard_object_t view, halyard_object_t* out);

/* Creates an empty vm.list, for arguments of functions: for one kind of number (HALYARD_VALUE_I8, _I16, _I32,
 * _I64, _F32, _F64), or with HALYARD_VALUE_NULL for all kinds of values, including nulls and lists. The
 * program shares the list. Not synchronized: one thread at a time. INVALID_ARGUMENT: another element kind. */
HALYARD_API halyard_status_t halyard_list_create(uint32_t element_kind, halyard_object_t* out);
/* Appends or replaces an element. A number is converted to the list's kind; floats are rounded. The list
 * takes its own reference to an object. FAILED_PRECONDITION: an object for a list of numbers;
 * INVALID_ARGUMENT: a number that the list's kind cannot represent, an unknown kind of value, or not a list;
 * OUT_OF_RANGE: no such element; RESOURCE_EXHAUSTED: more than 2^28 elements. A failure changes nothing. */
HALYARD_API halyard_status_t halyard_list_append(halyard_object_t list, const halyard_value_t* value);
HALYARD_API halyard_status_t halyard_list_set(halyard_object_t list, size_t index,
                                              const halyard_value_t* value);
/* Size and elements of a vm.list. The caller owns an object in *value. OUT_OF_RANGE: no such element. */
HALYARD_API halyard_status_t halyard_list_size(halyard_object_t list, size_t* size);
HALYARD_API halyard_status_t halyard_list_get(halyard_object_t list, size_t index, halyard_value_t* value);
/* The limits that the tools and the other language bindings pass to halyard_list_check. */
#define HALYARD_LIST_MAX_DEPTH 256
#define HALYARD_LIST_MAX_ELEMENTS 1048576
/* Checks that a walk through a list and its nested lists ends, for callers that walk lists of untrusted
 * programs. A program can make a list that contains itself, that is a million levels deep, or that has 2^64
 * paths. RESOURCE_EXHAUSTED: more than `max_depth` levels (a list without lists has one level), or more than
 * `max_elements` elements (the elements of a list count once for each path to the list). Visits at most
 * `max_elements` elements. */
HALYARD_API halyard_status_t halyard_list_check(halyard_object_t list, size_t max_depth, size_t max_elements);

/* Creates a fence that is not reached, for the signal argument of async functions. */
HALYARD_API halyard_status_t halyard_fence_create(halyard_device_t device, halyard_object_t* out);
/* Blocks until the fence is reached. `timeout_ms` UINT32_MAX: no limit. DEADLINE_EXCEEDED: timeout. If the
 * fence has failed, returns its failure, with its cause. */
HALYARD_API halyard_status_t halyard_fence_wait(halyard_object_t fence, uint32_t timeout_ms);

/* ---- Tensors as text (docs/spec/run-module-cli.md, sections 3 and 4) ---------------------------------- */

typedef struct halyard_tensor {
  uint32_t struct_size;
  uint32_t element_type; /* HALYARD_ELEMENT_* */
  size_t rank;
  const int64_t* shape;
  size_t size; /* bytes */
  const void* data;
} halyard_tensor_t;
/* Parses "2x3xf32=1,2,3,4,5,6" into host memory. *out is one block: free it with halyard_free.
 * INVALID_ARGUMENT, OUT_OF_RANGE: not a tensor; RESOURCE_EXHAUSTED: too large. */
HALYARD_API halyard_status_t halyard_tensor_parse(halyard_text_t text, halyard_tensor_t** out);
/* Parses "2x3xf32". `data` is null; `size` is that of such a tensor. Free *out with halyard_free. */
HALYARD_API halyard_status_t halyard_tensor_type_parse(halyard_text_t text, halyard_tensor_t** out);
/* "f32" for HALYARD_ELEMENT_F32. Free it with halyard_free. */
HALYARD_API char* halyard_element_type_text(uint32_t element_type);

/* ---- Assembler ----------------------------------------------------------------------------------------- */

typedef struct halyard_assemble_options {
  uint32_t struct_size;
  uint32_t bytecode_version; /* 15, 16, 17; 0: the version stated in the text, else 17 */
  const char* file;          /* for messages; may be null */
} halyard_assemble_options_t;
/* Assembles .vmasm text to a module. `options` may be null. Free *out with halyard_free. INVALID_ARGUMENT,
 * OUT_OF_RANGE, UNIMPLEMENTED: an error in the text; the message names file and line. */
HALYARD_API halyard_status_t halyard_assemble(const char* text, size_t size,
                                              const halyard_assemble_options_t* options, void** out,
                                              size_t* out_size);

/* ---- Inspection of modules ----------------------------------------------------------------------------- */

/* These functions run no code of the module. `data` is a .vmfb archive, borrowed for the call (not copied if
 * aligned to 8 bytes). Types that this host lacks are not an error. INVALID_ARGUMENT: not a module, or
 * damaged; RESOURCE_EXHAUSTED: the text would exceed 256 MiB. Any thread. */

enum {
  HALYARD_DISASSEMBLE_OFFSETS = 1u << 0, /* print the pc before each instruction: "[0000001A] " */
};
typedef struct halyard_disassemble_options {
  uint32_t struct_size;
  uint32_t flags; /* HALYARD_DISASSEMBLE_* */
} halyard_disassemble_options_t;
/* Prints the module as .vmasm text. halyard_assemble turns the text into the same bytecode, whose disassembly
 * is the same text. ASCII, zero-terminated; *out_size excludes the terminator. A function that cannot run is
 * printed as bytes, with the reason. `options` and `out_size` may be null. Free *out with halyard_free. */
HALYARD_API halyard_status_t halyard_disassemble(const void* data, size_t size,
                                                 const halyard_disassemble_options_t* options, char** out,
                                                 size_t* out_size);

enum {
  HALYARD_DESCRIBE_TEXT = 0, /* for people: up to 96 columns if names fit; long lists are shortened */
  HALYARD_DESCRIBE_JSON = 1, /* for programs: complete, UTF-8; later versions only add members */
};
/* Describes the module: compiler release, requirements (versions of `hal`), exports, imports, executables,
 * sizes, and functions that cannot run. `out_size` may be null. *out is zero-terminated; free it with
 * halyard_free. */
HALYARD_API halyard_status_t halyard_module_describe(const void* data, size_t size, uint32_t form, char** out,
                                                     size_t* out_size);

typedef struct halyard_analyze_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* function; /* null: all exports */
  /* The arguments of `function` without its fences, as text: "1x4xf32" for a tensor, where "?" is any size;
   * "5" for a number; "" for an unknown one. Null: all are unknown. */
  const char* const* inputs;
  size_t input_count;
} halyard_analyze_options_t;
/* Computes what the functions do with devices, from their bytecode: memory at the peak, allocations,
 * dispatches and the tensors between them (docs/vm-dump.md). Sizes that depend on unknown dimensions are
 * expressions. The text is JSON, UTF-8; later versions only add members. `options` and `out_size` may be
 * null. *out is zero-terminated; free it with halyard_free. NOT_FOUND: no such function; INVALID_ARGUMENT: an
 * input does not fit its argument, or inputs without a function. */
HALYARD_API halyard_status_t halyard_module_analyze(const void* data, size_t size,
                                                    const halyard_analyze_options_t* options, char** out,
                                                    size_t* out_size);

/* Explains what the compiler does with the module's functions and bytecode kernels (docs/jit.md). For each:
 * whether it becomes native code or why not, its LLVM IR, and its assembly for this processor. Text for
 * people. Compiles, which takes tens of milliseconds a function, and keeps nothing. `function` selects
 * functions and kernels by their name in the disassembly; null: all. `out_size` may be null. *out is
 * zero-terminated; free it with halyard_free. Without a compiler, fails like HALYARD_INSTANCE_JIT_ALWAYS.
 * NOT_FOUND: no function has the name. */
HALYARD_API halyard_status_t halyard_compiler_explain(const void* data, size_t size, const char* function,
                                                      char** out, size_t* out_size);

/* ---- Captures: files written by contexts with a capture_path (docs/captures.md) ------------------------ */

enum {
  HALYARD_CAPTURE_INCOMPLETE = 1u << 0, /* accept a truncated file */
};
/* Reads and checks a capture. The file must not change while the handle lives. NOT_FOUND, PERMISSION_DENIED;
 * INVALID_ARGUMENT: not a capture, or damaged; DATA_LOSS: the file is truncated. */
HALYARD_API halyard_status_t halyard_capture_open(const char* path, uint32_t flags, halyard_capture_t* out);

typedef struct halyard_capture_info {
  uint32_t struct_size;
  uint32_t is_complete;
  uint64_t execution_count;
  uint64_t executable_count;
} halyard_capture_info_t;
HALYARD_API halyard_status_t halyard_capture_info(halyard_capture_t capture, halyard_capture_info_t* info);

enum {
  HALYARD_EXECUTION_UNKNOWN = 0, /* the capture ends before the execution ended */
  HALYARD_EXECUTION_DONE = 1,
  HALYARD_EXECUTION_FAILED = 2,
};
typedef struct halyard_captured_execution {
  uint32_t struct_size;
  uint32_t outcome; /* HALYARD_EXECUTION_* */
  uint64_t command_count;
  halyard_text_t device; /* URI */
} halyard_captured_execution_t;
/* Reads an execution by its number, from 0, in order of submission. OUT_OF_RANGE: no such number. Texts live
 * as long as the capture. */
HALYARD_API halyard_status_t halyard_capture_execution(halyard_capture_t capture, uint64_t number,
                                                       halyard_captured_execution_t* execution);

#define HALYARD_EVERY_EXECUTION UINT64_MAX
/* Describes one execution, or HALYARD_EVERY_EXECUTION: commands (one a line), binding table, and touched
 * ranges. `form` is HALYARD_DESCRIBE_*. OUT_OF_RANGE: no such number; RESOURCE_EXHAUSTED: more than 256 MiB.
 * `out_size` may be null. *out is zero-terminated; free it with halyard_free. */
HALYARD_API halyard_status_t halyard_capture_describe(halyard_capture_t capture, uint64_t number,
                                                      uint32_t form, char** out, size_t* out_size);

/* Prepares to execute captured command buffers on this device: only for trusted captures. */
HALYARD_API halyard_status_t halyard_replay_create(halyard_capture_t capture, halyard_device_t device,
                                                   halyard_replay_t* out);

/* Code to execute instead of that of a captured executable, for example for another device. Functions are
 * found by their names; a function whose name this code lacks, by its number. */
typedef struct halyard_replay_executable {
  uint64_t number; /* of the captured executable, from 0 */
  halyard_text_t format;
  const void* data; /* copied */
  size_t size;
} halyard_replay_executable_t;
typedef struct halyard_replay_options {
  uint32_t struct_size;
  uint32_t reserved;
  const halyard_replay_executable_t* executables;
  size_t executable_count;
  /* Reports each step, as with HALYARD_CONTEXT_TRACE_STEPS: `execution` counts replayed executions, `buffer`
   * is the number in the execution's description. Null: none. */
  halyard_tensor_fn tensor;
  void* tensor_user;
} halyard_replay_options_t;
/* The same with options, which may be null. OUT_OF_RANGE: no such executable. */
HALYARD_API halyard_status_t halyard_replay_create_with(halyard_capture_t capture, halyard_device_t device,
                                                        const halyard_replay_options_t* options,
                                                        halyard_replay_t* out);

enum {
  HALYARD_REPLAY_SAME = 0,
  HALYARD_REPLAY_DIFFERS = 1,
  HALYARD_REPLAY_NOT_COMPARED = 2, /* executed; the capture has no result to compare with */
};
#define HALYARD_REPLAY_NO_COMMAND UINT64_MAX
typedef struct halyard_replay_result {
  uint32_t struct_size;
  uint32_t outcome; /* HALYARD_REPLAY_* */
  /* The first difference; 0 if there is none. */
  uint32_t buffer;  /* its number in the execution's description */
  uint32_t shown;   /* bytes in `expected` and `found`: the first ones of `length`, at most 16 */
  uint64_t offset;  /* bytes, within the buffer */
  uint64_t length;  /* consecutive bytes that differ */
  uint64_t total;   /* bytes that differ in all buffers */
  uint64_t command; /* last command that may write to the first differing byte; HALYARD_REPLAY_NO_COMMAND */
  uint8_t expected[16]; /* captured bytes */
  uint8_t found[16];
} halyard_replay_result_t;
/* Creates the buffers with the captured bytes, runs one execution, and compares the results. Blocks.
 * OUT_OF_RANGE: no such execution. Also returns failures of the device and of the captured work. */
HALYARD_API halyard_status_t halyard_replay_execute(halyard_replay_t replay, uint64_t number,
                                                    halyard_replay_result_t* result);
#define HALYARD_EVERY_COMMAND UINT64_MAX
/* The same for the commands up to `command`. Bytes that later commands may write are not compared.
 * OUT_OF_RANGE: no such command. */
HALYARD_API halyard_status_t halyard_replay_execute_to(halyard_replay_t replay, uint64_t number,
                                                       uint64_t command, halyard_replay_result_t* result);

typedef struct halyard_replay_times {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t count;
  uint64_t fastest_ns; /* from submission to completion */
  uint64_t median_ns;
  uint64_t total_ns;
} halyard_replay_times_t;
/* Executes all commands of an execution, or one, repeatedly until `at_least_ns` has passed, once more to warm
 * up. Commands before the one are executed once. Nothing is compared. Blocks. */
HALYARD_API halyard_status_t halyard_replay_measure(halyard_replay_t replay, uint64_t number,
                                                    uint64_t command, uint64_t at_least_ns,
                                                    halyard_replay_times_t* times);
/* Writes a capture of one command: its executable, its inputs, which the commands before it compute on the
 * device of the replay, and its outputs there. An existing file is replaced. Blocks. INVALID_ARGUMENT: the
 * command touches no bytes. */
HALYARD_API halyard_status_t halyard_replay_cut(halyard_replay_t replay, uint64_t number, uint64_t command,
                                                const char* path);
/* Copies bytes of a captured buffer, from before an execution or, with `after`, from after it. OUT_OF_RANGE:
 * no such execution or buffer, or bytes that the capture does not have. */
HALYARD_API halyard_status_t halyard_capture_read(halyard_capture_t capture, uint64_t number, uint32_t buffer,
                                                  uint64_t offset, uint32_t after, void* target, size_t size);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_HALYARD_H_ */
