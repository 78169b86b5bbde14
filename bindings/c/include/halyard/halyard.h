/* Halyard's embedding ABI, version 1: load compiled modules, open devices, call functions. Plain C11; link
 * with libhalyard.
 *
 * STEP BY STEP
 *   1. halyard_instance_create: where drivers are looked for. Nothing is global; make as many as you like.
 *   2. halyard_device_open: "local-sync", "vulkan://0"; the driver's library is loaded now.
 *   3. halyard_module_load_file or _memory: a .vmfb, checked. Or a native module: a library, or functions of
 * your own with halyard_module_create_native.
 *   4. halyard_context_create: modules linked, `__init` run.
 *   5. halyard_context_find, halyard_call_create, halyard_call_invoke: call functions, again and again.
 *   6. halyard_release what you hold, in any order.
 *
 * HANDLES. Every handle but a status is a counted object: halyard_retain and halyard_release take any of
 * them. A function with an `out` handle returns a reference that the caller releases. Arguments are borrowed
 * for the call.
 *
 * ARGUMENTS. INVALID_ARGUMENT: a null handle or one of another kind, an array or an output at a null pointer
 * (unless the function says that it may be null), unknown flags, a field `reserved` that is not 0.
 *
 * STATUS. Every function that can fail returns a halyard_status_t: null for success, else an error to release
 * with halyard_status_release. Outputs are untouched on failure. Out of memory is RESOURCE_EXHAUSTED, or null
 * from functions that return text.
 *
 * THREADS. Instances, devices, modules, buffers, views and fences may be used by any thread at any time. A
 * context may be used by one call at a time unless the program allows more; a halyard_call_t by one thread at
 * a time. Halyard starts a thread only for a feature that needs one.
 *
 * GROWTH. Option and info structs start with struct_size, which the caller sets to sizeof (INVALID_ARGUMENT:
 * 0, or more than 4096); missing tail fields count as zero. Fields are only appended: of a struct that is
 * larger than this library's, later options must be 0 (UNIMPLEMENTED), and later fields of an info struct
 * become 0.
 *
 * Specified by: the module format, run-module-cli.md (texts of values), hal-semantics.md.
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

#define HALYARD_VERSION_MAJOR 0
#define HALYARD_VERSION_MINOR 1
/* As "1.2.3". Static storage. */
HALYARD_API const char* halyard_version(void);

/* The library that compiles bytecode for devices which are told to (docs/jit.md): its name with a version,
 * and its path; either may be null. Reads the library's note and loads nothing; both texts live as long as
 * the process. NOT_FOUND: none is installed, which is no fault; INCOMPATIBLE: it is of another build;
 * INVALID_ARGUMENT: its file is damaged. Any thread. */
HALYARD_API halyard_status_t halyard_compiler_find(const char** name, const char** path);

typedef struct halyard_compiler_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t functions;    /* that became native code, */
  uint64_t cached;       /* of those: that had been compiled before, and were in a cache */
  uint64_t refused;      /* that stay interpreted */
  uint64_t compile_ns;   /* wall time */
  uint64_t object_bytes; /* of the objects that hold the code */
} halyard_compiler_stats_t;
/* What the compiler has done in this process, for devices and instances; all zero where it has not been
 * opened. Opens nothing. Any thread. */
HALYARD_API halyard_status_t halyard_compiler_stats(halyard_compiler_stats_t* stats);

typedef struct halyard_instance* halyard_instance_t;
typedef struct halyard_device* halyard_device_t;
typedef struct halyard_module* halyard_module_t;
typedef struct halyard_context* halyard_context_t;
typedef struct halyard_function* halyard_function_t; /* an export of a module in a context */
typedef struct halyard_call* halyard_call_t;       /* one activity; reusable; a warm call allocates nothing */
typedef struct halyard_capture* halyard_capture_t; /* executed command buffers; does not change */
typedef struct halyard_replay* halyard_replay_t;   /* a capture on a device; one thread at a time */
typedef struct halyard_trace* halyard_trace_t;     /* a timeline of events; any thread */
typedef struct halyard_search* halyard_search_t;   /* a log of the search for drivers; does not change */
typedef struct halyard_channels*
    halyard_channels_t; /* one rank of a program (halyard/channels.h); any thread */

/* Any handle of this header but a status. Null is allowed. */
HALYARD_API void halyard_retain(void* handle);
HALYARD_API void halyard_release(void* handle);
/* Memory that a function of this header gave to the caller. Null is allowed. */
HALYARD_API void halyard_free(void* memory);

/* ---- Status -------------------------------------------------------------------------------------------- */

HALYARD_API halyard_status_t halyard_status_create(halyard_status_code_t code, const char* message);
HALYARD_API halyard_status_t halyard_status_retain(halyard_status_t status);
HALYARD_API void halyard_status_release(halyard_status_t status);
HALYARD_API halyard_status_code_t halyard_status_code(halyard_status_t status); /* HALYARD_OK for null */
HALYARD_API const char* halyard_status_message(halyard_status_t status); /* lives as long as the status */
/* "NOT_FOUND; message; note; ..." with cause and trace. Free it with halyard_free. */
HALYARD_API char* halyard_status_text(halyard_status_t status);

/* ---- Traces: what happened when ------------------------------------------------------------------------ */

/* Begins a trace, to be passed to instances. Replaces the file `path`; null or "": no file, only
 * halyard_trace_totals. The file is a Perfetto trace (ui.perfetto.dev, trace_processor; docs/traces.md):
 * functions of modules and what they import, queue work with flows from fence to fence, dispatches, memory.
 * Times are of CLOCK_MONOTONIC. NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE: the file cannot be created. */
HALYARD_API halyard_status_t halyard_trace_create(const char* path, halyard_trace_t* out);
/* Writes all buffered events; more may follow. The last release does the same. UNAVAILABLE,
 * RESOURCE_EXHAUSTED: some events could not be written, now or before. */
HALYARD_API halyard_status_t halyard_trace_finish(halyard_trace_t trace);
/* A slice of the calling thread for work of the caller; begin and end on the same thread. No effect for null.
 */
HALYARD_API void halyard_trace_begin(halyard_trace_t trace, const char* name);
HALYARD_API void halyard_trace_end(halyard_trace_t trace);
/* A track of its own, for work that is not one thread's, such as a request. 0 for null. Any thread. */
HALYARD_API uint64_t halyard_trace_track(halyard_trace_t trace, const char* name);
/* A slice that is over, of work of the caller, on such a track; times in nanoseconds of CLOCK_MONOTONIC.
 * Slices of one track do not overlap, but may nest: the outer one is given first. Any thread. No effect for
 * null. */
HALYARD_API void halyard_trace_span(halyard_trace_t trace, uint64_t track, const char* name,
                                    uint64_t begin_ns, uint64_t end_ns);

/* Self times of thread slices, in nanoseconds. Open slices do not count. */
typedef struct halyard_trace_totals {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t events;
  uint64_t phase_ns;   /* of halyard_trace_begin */
  uint64_t machine_ns; /* functions of modules */
  uint64_t import_ns;  /* native functions that they call, hal among them */
  uint64_t queue_ns;   /* submissions, from their creation to completion */
  uint64_t device_ns;  /* operations of devices */
  uint64_t wait_ns;    /* threads that waited */
} halyard_trace_totals_t;
HALYARD_API halyard_status_t halyard_trace_totals(halyard_trace_t trace, halyard_trace_totals_t* totals);

/* ---- Instance, drivers, devices ------------------------------------------------------------------------ */

enum {
  HALYARD_INSTANCE_NO_ENVIRONMENT = 1u << 0,     /* ignore $HALYARD_DRIVER_PATH */
  HALYARD_INSTANCE_NO_DEFAULT_FOLDERS = 1u << 1, /* neither the user's folder nor the one beside libhalyard */
  HALYARD_INSTANCE_COUNT_OBJECTS = 1u << 2,      /* for halyard_device_objects and halyard_instance_objects */
  HALYARD_INSTANCE_RUN_BY_EMBEDDER =
      1u << 3, /* halyard_instance_run runs its event loop; no thread is started */
  /* Functions of bytecode modules become native code (docs/jit.md), all of them when they are first called,
   * or those that turn out to be hot, on a thread of the instance that no call waits for and that has a low
   * priority. Not both. For kernels, devices have the option `jit`. The last release of the instance waits
   * for a function that is being compiled (halyard_instance_compiling). */
  HALYARD_INSTANCE_JIT_ALWAYS = 1u << 4,
  HALYARD_INSTANCE_JIT_AUTO = 1u << 5,
  /* With one of these two: sums of floats may be reordered, products be fused with sums, and vector functions
   * stand for exp and its like (docs/jit.md has the errors). Without effect alone. For kernels, devices have
   * the option `jit_math`. */
  HALYARD_INSTANCE_JIT_FAST_MATH = 1u << 6,
};

typedef struct halyard_instance_options {
  uint32_t struct_size;
  uint32_t flags;                      /* HALYARD_INSTANCE_* */
  const char* const* driver_libraries; /* paths of halyard-driver-NAME.so files, tried first */
  size_t driver_library_count;
  const char* const* driver_folders; /* then these folders */
  size_t driver_folder_count;
  halyard_trace_t trace; /* records its devices and contexts; may be null */
  /* A boost::asio::io_context that the embedder runs, instead of an event loop of the instance; no thread is
   * started. It must outlive the instance and all objects made with it. Null: none. */
  void* asio_context;
  uint32_t asio_version; /* BOOST_ASIO_VERSION of that context */
  uint32_t reserved;
  /* With HALYARD_INSTANCE_JIT_*: a folder in which compiled functions are kept and looked for; it is made
   * where it is missing, and not used where it is not the caller's own or others may write to it. Bounded at
   * 64 MiB; any number of processes. Null or "": none. For kernels, devices have the option `jit_cache`. */
  const char* jit_cache;
} halyard_instance_options_t;

/* `options` may be null. Reads the notes of the drivers found, without running their code. There is no
 * default device; halyard_instance_search lists the drivers without running any.
 *
 * Time limits of calls, and closing a device whose last reference was its own work, need an event loop. The
 * instance has one, whose thread starts on first use, unless the options name another. If the embedder stops
 * running it, time limits stop working.
 *
 * FAILED_PRECONDITION: asio_version is not the one that Halyard was built with (the message names both):
 * layouts differ between versions. INVALID_ARGUMENT: a context and HALYARD_INSTANCE_RUN_BY_EMBEDDER, or both
 * HALYARD_INSTANCE_JIT_*. HALYARD_INSTANCE_JIT_ALWAYS opens the compiler: it fails as halyard_compiler_find
 * does, and with UNAVAILABLE where LLVM is missing. With HALYARD_INSTANCE_JIT_AUTO everything is interpreted
 * where there is no compiler. */
HALYARD_API halyard_status_t halyard_instance_create(const halyard_instance_options_t* options,
                                                     halyard_instance_t* out);

/* Runs the ready handlers on the event loop of an instance made with HALYARD_INSTANCE_RUN_BY_EMBEDDER and
 * returns; if none is ready, waits up to `timeout_ns` nanoseconds (0: does not wait; negative: no limit).
 * *ran (may be null) is the number of handlers that ran. Any thread, also several concurrently.
 * FAILED_PRECONDITION: the instance was made otherwise. */
HALYARD_API halyard_status_t halyard_instance_run(halyard_instance_t instance, int64_t timeout_ns,
                                                  size_t* ran);
/* Makes running calls of halyard_instance_run return. Any thread. No effect on other instances. */
HALYARD_API void halyard_instance_interrupt_run(halyard_instance_t instance);

typedef struct halyard_driver_entry {
  const char* name;        /* "local-sync" */
  const char* description; /* one line */
  const char* library;     /* path */
} halyard_driver_entry_t;
/* Drivers that load, sorted by name. Loads all drivers into this process: one that crashes or hangs takes the
 * process with it. To avoid that, use halyard_instance_search, and try drivers with halyard_driver_probe in a
 * separate process. The array and its texts are one block for halyard_free. */
HALYARD_API halyard_status_t halyard_instance_drivers(halyard_instance_t instance,
                                                      halyard_driver_entry_t** out, size_t* count);

typedef struct halyard_device_entry {
  const char* uri; /* "local-sync://": what halyard_device_open takes */
  const char* name;
} halyard_device_entry_t;
/* Devices of one driver, which loads only that one, or of all (null or ""), which loads all as above.
 * NOT_FOUND: no such driver; the message names the available ones. */
HALYARD_API halyard_status_t halyard_instance_devices(halyard_instance_t instance, const char* driver,
                                                      halyard_device_entry_t** out, size_t* count);

typedef struct halyard_driver_candidate {
  const char* path;    /* an examined file */
  const char* drivers; /* comma-separated names; "" if the file could not be read */
  int32_t accepted;
  const char* reason; /* the reason of a refusal; "" if accepted */
} halyard_driver_candidate_t;
/* Every candidate file, in order, with the reason if it was refused. */
HALYARD_API halyard_status_t halyard_instance_candidates(halyard_instance_t instance,
                                                         halyard_driver_candidate_t** out, size_t* count);

/* `uri` is "driver[://path][?key=value&...]". Opening twice gives two logical devices. */
HALYARD_API halyard_status_t halyard_device_open(halyard_instance_t instance, const char* uri,
                                                 halyard_device_t* out);
typedef struct halyard_device_setting {
  const char* key;
  const char* value;
} halyard_device_setting_t;
/* The same with further options after those of the URI. Values may have any characters, and keys may be
 * repeated if the driver allows it ("plugin" of local devices). The device copies them. */
HALYARD_API halyard_status_t halyard_device_open_with(halyard_instance_t instance, const char* uri,
                                                      const halyard_device_setting_t* settings, size_t count,
                                                      halyard_device_t* out);
HALYARD_API const char* halyard_device_uri(halyard_device_t device); /* lives as long as the device */

typedef struct halyard_object_count {
  const char* type; /* "hal.buffer" */
  uint64_t live;    /* now */
  uint64_t made;    /* so far */
} halyard_object_count_t;
/* Counts of a device's objects by type, to find leaked references. One block for halyard_free.
 * FAILED_PRECONDITION: the instance was made without HALYARD_INSTANCE_COUNT_OBJECTS. */
HALYARD_API halyard_status_t halyard_device_objects(halyard_device_t device, halyard_object_count_t** out,
                                                    size_t* count);
/* The same for the buffers and lists ("vm.buffer", "vm.list") of programs, in all contexts of the instance.
 * Those that remain when its contexts are gone are held by results or by the embedder. */
HALYARD_API halyard_status_t halyard_instance_objects(halyard_instance_t instance,
                                                      halyard_object_count_t** out, size_t* count);

/* How many functions an instance with HALYARD_INSTANCE_JIT_AUTO is compiling or is about to; 0 without that
 * flag. The last release of the instance waits for the one being compiled. A process that is to end at once
 * keeps the instance and ends by _Exit: exit handlers must not run while something is compiled. For the
 * kernels of a device: halyard_device_query(device, "halyard.jit", "compiling", ...). Any thread. */
HALYARD_API halyard_status_t halyard_instance_compiling(halyard_instance_t instance, size_t* functions);

/* ---- How drivers are looked for ------------------------------------------------------------------------ */

/* The origin of a place. */
enum {
  HALYARD_ORIGIN_EMBEDDER = 0,     /* halyard_instance_options_t */
  HALYARD_ORIGIN_ENVIRONMENT = 1,  /* $HALYARD_DRIVER_PATH */
  HALYARD_ORIGIN_USER = 2,         /* the folder below $HOME */
  HALYARD_ORIGIN_INSTALLATION = 3, /* the folder beside libhalyard */
};

enum {
  HALYARD_SEARCH_ACCEPTED = 0, /* a folder that was read, or a driver that fits; loaded when it is needed */
  HALYARD_SEARCH_REFUSED = 1,  /* no driver for this host, or one that failed to load */
  HALYARD_SEARCH_SHADOWED = 2, /* earlier drivers serve all its kinds */
  HALYARD_SEARCH_SKIPPED = 3,  /* not examined: it does not exist, or was examined before */
};

typedef struct halyard_search_entry {
  uint32_t struct_size;
  uint32_t origin;      /* HALYARD_ORIGIN_* */
  uint32_t outcome;     /* HALYARD_SEARCH_* */
  uint32_t is_folder;   /* not 0: a folder; the entries of its files follow it */
  const char* path;     /* absolute; a skipped entry of $HALYARD_DRIVER_PATH: as given */
  const char* reason;   /* "CODE; reason"; "" if accepted */
  uint64_t other_files; /* of a folder: files in it that are not named halyard-driver-NAME.so */
  /* The contents of the file's note; "" and 0 if it could not be read. */
  const char* library; /* NAME */
  const char* version;
  const char* drivers; /* its kinds of device, separated by commas */
  const char* serves;  /* those that no earlier file has */
  uint32_t abi_min;    /* versions of the driver ABI */
  uint32_t abi_max;
  uint32_t sanitizer; /* HALYARD_SANITIZER_* (halyard/abi.h); 0: none */
  uint32_t loaded;    /* not 0: its code has run in this instance */
} halyard_search_entry_t;

/* The log of the search for drivers so far. Runs no code of a driver. */
HALYARD_API halyard_status_t halyard_instance_search(halyard_instance_t instance, halyard_search_t* out);
/* Entries in search order, from 0; OUT_OF_RANGE after the last. Texts live as long as the search. */
HALYARD_API halyard_status_t halyard_search_entry(halyard_search_t search, size_t index,
                                                  halyard_search_entry_t* entry);
/* "AddressSanitizer" for HALYARD_SANITIZER_ADDRESS, "no sanitizer" for 0. Static storage. */
HALYARD_API const char* halyard_sanitizer_name(uint32_t sanitizer);

/* Tries a driver, independently of instances: loads it, negotiates, initializes, lists its devices, opens and
 * closes each, shuts down. Returns the first failure; a device that cannot be opened is not a failure. A
 * driver that crashes or hangs does so in this process: try unknown drivers in a separate process. `step`
 * (may be null) is called on this thread before each step with its name: "load", "negotiate", "initialize",
 * "enumerate_devices", "device_open", "shutdown"; more names may come. */
typedef void (*halyard_step_fn)(void* user, const char* step);
HALYARD_API halyard_status_t halyard_driver_probe(const char* path, halyard_step_fn step, void* user);

/* ---- What a device is ---------------------------------------------------------------------------------- */

/* Bits of halyard_device_description_t.capabilities. */
enum {
  HALYARD_CAPABILITY_RUNS_IN_CALLER = 1u << 0,   /* work runs on the thread that makes it ready */
  HALYARD_CAPABILITY_UNIFIED_MEMORY = 1u << 1,   /* host and device memory are one */
  HALYARD_CAPABILITY_HOST_COHERENT = 1u << 2,    /* host-visible memory needs no flush */
  HALYARD_CAPABILITY_QUEUE_ALLOCA = 1u << 3,     /* supports allocation in queue order */
  HALYARD_CAPABILITY_SEMAPHORE_EXPORT = 1u << 4, /* semaphores as file descriptors */
  HALYARD_CAPABILITY_COLLECTIVES = 1u << 5,      /* collective commands */
};

typedef struct halyard_device_description {
  uint32_t struct_size;
  uint32_t capabilities; /* HALYARD_CAPABILITY_*; bits that are not named here may be set */
  uint64_t operations;   /* bit n: the queue operation halyard_operation_name(n) */
  uint32_t queue_count;  /* 1..64 */
  uint32_t reserved;
  uint64_t memory_alignment;   /* bytes: every allocation starts at a multiple of it */
  uint64_t maximum_allocation; /* bytes in one allocation */
  uint64_t
      import_alignment; /* bytes; alignment of host memory that is used without a copy; 0: always copied */
  const char* driver;   /* "local-sync" */
  const char* library;  /* path */
  const char* library_version; /* the driver's own */
} halyard_device_description_t;
/* Texts live as long as the device. */
HALYARD_API halyard_status_t halyard_device_describe(halyard_device_t device,
                                                     halyard_device_description_t* description);
/* "runs in caller" for bit 0, "alloca" for operation 1; null for unknown numbers. Static storage. */
HALYARD_API const char* halyard_capability_name(uint32_t bit);
HALYARD_API const char* halyard_operation_name(uint32_t operation);

/* The answer to hal.device.query: an integer, by category and key ("hal.device", "concurrency"). For an
 * unknown key *known and *value are 0, without an error. */
HALYARD_API halyard_status_t halyard_device_query(halyard_device_t device, const char* category,
                                                  const char* key, int32_t* known, int64_t* value);

/* How well executables fit a device. */
enum {
  HALYARD_FIT_NO = 0,        /* cannot run there */
  HALYARD_FIT_RECOMPILE = 1, /* must be recompiled */
  HALYARD_FIT_LOADABLE = 2,  /* runs after compilation, or more slowly */
  HALYARD_FIT_NATIVE = 3,    /* made for it */
};
typedef struct halyard_executable_fit {
  uint32_t struct_size;
  uint32_t fit;     /* HALYARD_FIT_* */
  char reason[256]; /* a reason for users; "" if native */
} halyard_executable_fit_t;
/* Grades an executable of this format ("vmvx-bytecode-fb") without loading it; with null `data`, the format
 * alone.
 */
HALYARD_API halyard_status_t halyard_device_judge(halyard_device_t device, const char* format,
                                                  const void* data, size_t size,
                                                  halyard_executable_fit_t* fit);

/* How a device can use memory of another one. */
enum {
  HALYARD_SHARING_NONE = 0,        /* the host copies it */
  HALYARD_SHARING_HOST_MEMORY = 1, /* imported without a copy, where the host can see it */
  HALYARD_SHARING_SAME_DRIVER = 2, /* as its own */
};
/* How `user` can use memory that `owner` allocates, by their properties: HALYARD_SHARING_*. Devices of two
 * instances never share a driver. */
HALYARD_API uint32_t halyard_device_sharing(halyard_device_t owner, halyard_device_t user);

/* Bytes of the device's allocations, without imports; all 0 if the driver does not count. */
typedef struct halyard_memory_use {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t host_live, host_peak, host_allocated, host_freed;
  uint64_t device_live, device_peak, device_allocated, device_freed;
} halyard_memory_use_t;
HALYARD_API halyard_status_t halyard_device_memory(halyard_device_t device, halyard_memory_use_t* use);
/* Frees memory that the device keeps for reuse. */
HALYARD_API halyard_status_t halyard_device_trim(halyard_device_t device);

/* ---- Modules ------------------------------------------------------------------------------------------- */

enum {
  HALYARD_MODULE_VERIFY_EAGERLY = 1u << 0, /* verify every function now, not when it is first called */
  HALYARD_MODULE_PRELOAD = 1u << 1,        /* read the file into memory: it may change or go afterwards */
  HALYARD_MODULE_NATIVE = 1u << 2, /* a file named x.so (or x.so.1) may be loaded as a native module */
};

/* A .vmfb archive, memory-mapped, or, if the name ends in ".vmasm", text that is assembled first. "-" reads
 * standard input; it and other files that are not regular ones are read into memory, up to 1 GiB
 * (RESOURCE_EXHAUSTED). Without PRELOAD the file must not change while the module lives: reading past the end
 * of a truncated file ends the process (SIGBUS). The file is never written: pages that kernels write to are
 * copied.
 *
 * With HALYARD_MODULE_NATIVE a shared library is loaded as a native module (halyard/module.h): its code runs
 * in this process. Without it is PERMISSION_DENIED, and a library under any other name is INVALID_ARGUMENT.
 * "library.so@text" gives it `text` as its argument. Its types are known to modules that are loaded after it.
 * It stays mapped until the process ends.
 */
HALYARD_API halyard_status_t halyard_module_load_file(halyard_instance_t instance, const char* path,
                                                      uint32_t flags, halyard_module_t* out);
/* The same from memory, which is copied. */
HALYARD_API halyard_status_t halyard_module_load_memory(halyard_instance_t instance, const void* data,
                                                        size_t size, uint32_t flags, halyard_module_t* out);

struct halyard_module_definition; /* halyard/module.h */
struct halyard_module_services;
/* A native module of the embedder's own: functions of this program that modules import. The definition is
 * copied; its functions, `user` and callbacks are used as long as the module lives, on the threads that call
 * into its contexts. INVALID_ARGUMENT, UNIMPLEMENTED, INCOMPATIBLE: an invalid definition, with the
 * function's name; ALREADY_EXISTS: a type of that name. */
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
  uint32_t needs_devices;    /* depends on, or imports from, `hal` */
  halyard_text_t name;
} halyard_module_info_t;
HALYARD_API halyard_status_t halyard_module_info(halyard_module_t module, halyard_module_info_t* info);

/* Warnings about likely wrong results of a module that loads and runs, one line each; "" for none, and for
 * native modules. So far: Vulkan shaders for targets without the 8- or 16-bit types of the functions'
 * tensors. *out is terminated; free it with halyard_free. `out_size` may be null. Any thread. */
HALYARD_API halyard_status_t halyard_module_warnings(halyard_module_t module, char** out, size_t* out_size);

typedef struct halyard_function_description {
  uint32_t struct_size;
  uint32_t argument_count; /* as the convention says; async functions include their two fences */
  uint32_t result_count;
  uint32_t is_async; /* the attribute iree.abi.model is coarse-fences: (..., wait fence, signal fence) */
  halyard_text_t name;
  halyard_text_t convention;  /* "0rr_r" */
  halyard_text_t declaration; /* the source's signature; may be empty */
} halyard_function_description_t;
/* OUT_OF_RANGE: index. Texts live as long as the module. */
HALYARD_API halyard_status_t halyard_module_function(halyard_module_t module, uint32_t index,
                                                     halyard_function_description_t* description);
/* The reflection attribute of that export with this key ("iree.benchmark"); empty if it has none.
 * OUT_OF_RANGE: index. The text lives as long as the module. */
HALYARD_API halyard_status_t halyard_module_function_attribute(halyard_module_t module, uint32_t index,
                                                               const char* key, halyard_text_t* value);

enum {
  HALYARD_PREPARE_VERIFY = 0, /* verifies every function; keeps nothing */
  HALYARD_PREPARE_DECODE =
      1, /* prepares every function to run, like its first call: verifies and decodes it */
};
/* Does the work now that a module loaded without VERIFY_EAGERLY defers to first calls. No effect on native
 * modules. INVALID_ARGUMENT: no such phase; or the verifier's error about the first invalid function. Any
 * thread. */
HALYARD_API halyard_status_t halyard_module_prepare(halyard_module_t module, uint32_t phase);

/* ---- Contexts ------------------------------------------------------------------------------------------ */

typedef struct halyard_parameter_file {
  const char* scope; /* "" for the unnamed one */
  const char* path;  /* .irpa, .gguf, .safetensors, or .safetensors.index.json, which stands for its files */
} halyard_parameter_file_t;

/* Called for hal.buffer_view.trace with readable views. */
typedef void (*halyard_trace_fn)(void* user, halyard_text_t key, const halyard_object_t* views,
                                 size_t view_count);

/* Progress in bytes. On the calling thread; a non-null status (taken over) ends the call with that failure.
 */
typedef halyard_status_t (*halyard_progress_fn)(void* user, uint64_t done, uint64_t total);

/* The bytes of one binding of a dispatch. Borrowed for the call. */
typedef struct halyard_traced_tensor {
  uint32_t struct_size;
  uint32_t binding;
  uint64_t dispatch; /* counted from 0, in the order in which they are executed */
  halyard_text_t function;
  const uint8_t* data;
  uint64_t size;
  uint32_t after; /* 0: before the dispatch; 1: after it, if changed */
  uint32_t reserved;
} halyard_traced_tensor_t;
/* Called for dispatches, on any thread, one at a time for dependent work. A non-null status (taken over)
 * fails the work. */
typedef halyard_status_t (*halyard_tensor_fn)(void* user, const halyard_traced_tensor_t* tensor);

/* A failed expectation of a test program (module `check`). Borrowed for the call. */
typedef struct halyard_failed_expectation {
  uint32_t struct_size;
  uint32_t reserved;
  halyard_text_t function; /* of `check`: "expect_eq" */
  halyard_text_t message;  /* lines: the first has the expected and actual value, others show tensors */
  halyard_text_t place;    /* of the program: "at module.function+0000001A (model.mlir:3:5)"; may be empty */
} halyard_failed_expectation_t;
/* Called on the thread that runs the call, which continues afterwards. */
typedef void (*halyard_expectation_fn)(void* user, const halyard_failed_expectation_t* failed);

/* What is likely to give wrong results although the program goes on. Borrowed for the call. */
typedef struct halyard_warning {
  uint32_t struct_size;
  uint32_t reserved;
  halyard_text_t text; /* a sentence without a newline; names in it are as in their file */
  halyard_text_t path; /* the parameter file that it is about */
} halyard_warning_t;
/* On the thread that runs the program; with HALYARD_CONTEXT_CONCURRENT_CALLS maybe on several at once. */
typedef void (*halyard_warning_fn)(void* user, const halyard_warning_t* warning);

enum {
  HALYARD_CONTEXT_PRELOAD_PARAMETERS = 1u << 0, /* read parameter files into memory, not when they are used */
  /* Two calls may run at the same time: programs without state, or whose state tolerates it. Without it the
   * second one is FAILED_PRECONDITION, at the price of one atomic operation for each call. A context for each
   * thread is the better way: it takes 55 us to make, and 25 to 50 KB. */
  HALYARD_CONTEXT_CONCURRENT_CALLS = 1u << 1,
  /* Calls are made for different users, who must not see each other's data, as of a server: all memory that
   * the program allocates is zero. Without it new memory may hold what the same context has left in it. */
  HALYARD_CONTEXT_SEPARATE_CALLS = 1u << 2,
};

typedef struct halyard_context_options {
  uint32_t struct_size;
  uint32_t reserved;
  const halyard_module_t* modules; /* later ones may import from earlier ones; the last is the main module */
  size_t module_count;
  const halyard_device_t* devices; /* in the order of hal.devices.get */
  size_t device_count;
  const halyard_parameter_file_t* parameters;
  size_t parameter_count;
  halyard_trace_fn trace;
  void* trace_user;
  /* Limits of programs; 0: the default. Exceeding one fails the call (RESOURCE_EXHAUSTED). */
  /* Bytes of the program's memory, on the host and on devices together: all its objects with their contents
   * and alignment padding, stacks, globals, recorded commands, and work in flight (docs/limits.md). Memory
   * inside drivers is estimated. Not charged: modules and their decoded code, allocations of native modules,
   * traces, memory kept for reuse. Objects that the embedder keeps stay charged. Default: no limit. */
  uint64_t max_memory;
  uint64_t max_stack; /* bytes of one call's stack; 8 MiB */
  /* Nanoseconds that one call may take, waits included (DEADLINE_EXCEEDED); 0: no limit. Each `__init` that
   * halyard_context_create runs is a call of its own. The instance's event loop measures the time. Work that
   * the call has submitted is stopped too, if the device supports it: `local` stops bytecode kernels at once
   * and native code between workgroups. A native function is not stopped. */
  uint64_t max_time_ns;
  /* The preferred device for memory that several devices use, where a program lets the host choose: its index
   * in `devices`, counted from 1. 0: the program's first choice whose memory all of them can use. */
  uint32_t lead_device;
  uint32_t flags; /* HALYARD_CONTEXT_* */
  /* A capture file with every command buffer that programs execute and its bytes before and after
   * (docs/captures.md). An existing file is replaced; the file is complete when the context is destroyed.
   * Null: none. Costs time and space for all these bytes. */
  const char* capture_path;
  /* Reports the buffers of dispatches whose function name matches (* and ? are wildcards), before and after.
   * Each of them then runs separately, with the time for reading. Null: none. Not together with capture_path
   * (INVALID_ARGUMENT). */
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
  /* Called for each failed expectation of a test program; a test passes if there is none. Null: the first one
   * fails the call (FAILED_PRECONDITION). */
  halyard_expectation_fn expectation;
  void* expectation_user;
  /* The rank that the program is, for hal.channel.create (halyard/channels.h). Null: what the launcher of the
   * process has made it, which is looked up when the program creates its first channel. */
  halyard_channels_t channels;
  /* Called once for each parameter that a program reads only the first part of, as one does that expects
   * another type or shape, or that is in the files of its scope more than once. May be called until the
   * context is destroyed. Null: nobody is told. */
  halyard_warning_fn warning;
  void* warning_user;
} halyard_context_options_t;

/* Links the modules and runs each `__init`. The built-in modules `hal`, `io_parameters`, `hal_inline`,
 * `hal_loader` and `check` come first if a module depends on them or imports from them. `hal_inline` and
 * `hal_loader` are for programs without devices: `hal_inline` has buffers in host memory, `hal_loader` runs
 * kernels in the call, on the first local device of the list or on one that it opens on first use. */
HALYARD_API halyard_status_t halyard_context_create(halyard_instance_t instance,
                                                    const halyard_context_options_t* options,
                                                    halyard_context_t* out);
/* An export of the main module, or of `module` if not null. NOT_FOUND names similar ones. */
HALYARD_API halyard_status_t halyard_context_find(halyard_context_t context, const char* module,
                                                  const char* name, halyard_function_t* out);

/* ---- Values and calls ---------------------------------------------------------------------------------- */

HALYARD_API halyard_status_t halyard_call_create(halyard_context_t context, halyard_call_t* out);
/* Runs to the end. Arguments are borrowed. Results are owned by the caller (objects: release).
 * INVALID_ARGUMENT: counts. */
HALYARD_API halyard_status_t halyard_call_invoke(halyard_call_t call, halyard_function_t function,
                                                 const halyard_value_t* arguments, size_t argument_count,
                                                 halyard_value_t* results, size_t result_count);

/* ---- Calls in steps
 * ----------------------------------------------------------------------------------------------------------
 *
 * A waiting call (for a fence, for a native function) holds no thread. Begin it; until it is done, resume it
 * when it is ready, on any thread, one at a time; then take its results. halyard_call_invoke does all that
 * and blocks while the call waits. */

enum {
  HALYARD_CALL_DONE = 0,
  HALYARD_CALL_READY = 1,   /* it has yielded: resume it at any time */
  HALYARD_CALL_WAITING = 2, /* resume it after the ready function was called, or at its deadline */
};

/* `arguments` are copied. FAILED_PRECONDITION: the handle still runs another call. A failure ends the call.
 */
HALYARD_API halyard_status_t halyard_call_begin(halyard_call_t call, halyard_function_t function,
                                                const halyard_value_t* arguments, size_t argument_count,
                                                uint32_t* state);
/* FAILED_PRECONDITION: nothing to resume, or it still waits. */
HALYARD_API halyard_status_t halyard_call_resume(halyard_call_t call, uint32_t* state);
/* What resuming would find now: READY, or WAITING, where it would fail. DONE: nothing is suspended. For
 * callers that may be told twice that a call is ready. */
HALYARD_API uint32_t halyard_call_state(halyard_call_t call);
/* After HALYARD_CALL_DONE, once: results owned by the caller. INVALID_ARGUMENT: count, which takes nothing;
 * FAILED_PRECONDITION: the call is not done, has failed, or its results were taken before. */
HALYARD_API halyard_status_t halyard_call_results(halyard_call_t call, halyard_value_t* results,
                                                  size_t result_count);
/* When a waiting call can be resumed without a wakeup, in nanoseconds of CLOCK_MONOTONIC; INT64_MAX: never.
 */
HALYARD_API int64_t halyard_call_deadline(halyard_call_t call);
/* A deadline for the next call of this handle, or for the suspended one, in nanoseconds of CLOCK_MONOTONIC:
 * the call fails with DEADLINE_EXCEEDED at that time, unless the context's max_time_ns comes first, and its
 * work on devices is stopped as with max_time_ns. INT64_MAX: no deadline. It is forgotten when that call
 * ends. Not while the call runs. FAILED_PRECONDITION: the context was made without an instance, so without an
 * event loop. */
HALYARD_API halyard_status_t halyard_call_set_deadline(halyard_call_t call, int64_t deadline_ns);
/* `ready` (null: none) is called whenever a wait ends, on the thread that ends it. It must not call functions
 * of this call, but notify the thread that resumes it. Set it before the call begins. */
HALYARD_API void halyard_call_on_ready(halyard_call_t call, void (*ready)(void* user), void* user);
/* Any thread. A running call fails with CANCELLED at its next branch or call; a waiting call, at once. Its
 * work on devices is stopped as with max_time_ns, including work left by finished calls of this handle. No
 * effect if there is neither. A native function is not interrupted. Releasing a waiting call cancels its work
 * in the same way. */
HALYARD_API void halyard_call_cancel(halyard_call_t call);
/* From now on halyard_call_cancel also counts for the next call of this handle, which then fails when it
 * begins: for callers that queue a call before another thread begins it. No effect while a call is suspended.
 */
HALYARD_API void halyard_call_arm(halyard_call_t call);
/* Whether the instance's trace records the next calls of this handle, with their work on devices; it does
 * unless this says otherwise. What a device reports of its own threads is recorded as long as work of any
 * recorded call is in flight. Not while a call is under way. No effect without a trace. */
HALYARD_API void halyard_call_trace(halyard_call_t call, int32_t is_traced);

/* ---- Objects ------------------------------------------------------------------------------------------- */

/* "hal.buffer_view", "vm.list". Lives as long as the object. */
HALYARD_API const char* halyard_object_type(halyard_object_t object);

typedef struct halyard_view_info {
  uint32_t struct_size;
  uint32_t element_type; /* HALYARD_ELEMENT_* */
  uint32_t encoding;     /* 1: dense row-major */
  uint32_t rank;
  const int64_t* shape; /* lives as long as the view */
  uint64_t byte_length; /* of its buffer range, whatever the shape needs: see halyard_view_byte_count */
} halyard_view_info_t;

/* A view of a new buffer of the device with a copy of the bytes; `data` null: zeros. `device` null: host
 * memory, for programs without devices. INVALID_ARGUMENT: shape and size disagree. */
HALYARD_API halyard_status_t halyard_view_create(halyard_device_t device, uint32_t element_type,
                                                 const int64_t* shape, size_t rank, const void* data,
                                                 size_t size, halyard_object_t* out);
/* INVALID_ARGUMENT: not a buffer view. */
HALYARD_API halyard_status_t halyard_view_info(halyard_object_t view, halyard_view_info_t* info);
/* Bytes of its elements: what shape and type need. Programs make views of any shape over any buffer; this and
 * every function that reads, maps, exports, prints or splits a view compares the two. OUT_OF_RANGE: the
 * buffer has fewer; INVALID_ARGUMENT: not a buffer view, or a shape without a size (negative, past 64 bits).
 */
HALYARD_API halyard_status_t halyard_view_byte_count(halyard_object_t view, uint64_t* bytes);
/* Copies bytes of the view's buffer range to the host. The work that produces them must be complete.
 * OUT_OF_RANGE: more than there are; as halyard_view_byte_count. */
HALYARD_API halyard_status_t halyard_view_read(halyard_object_t view, uint64_t offset, void* target,
                                               size_t size);
/* "2x2xf32=[1 2][3 4]", at most `max_elements` elements. Free it with halyard_free. */
HALYARD_API halyard_status_t halyard_view_text(halyard_object_t view, uint64_t max_elements, char** out);
/* The view's buffer. */
HALYARD_API halyard_status_t halyard_view_buffer(halyard_object_t view, halyard_object_t* out);

/* A new vm.list, which is empty: of one kind of number (HALYARD_VALUE_I8, _I16, _I32, _I64, _F32, _F64), or
 * with HALYARD_VALUE_NULL of anything, nulls and other lists too. For arguments of functions; lists are
 * shared with the program, and not synchronized: one thread at a time. INVALID_ARGUMENT: another kind. */
HALYARD_API halyard_status_t halyard_list_create(uint32_t element_kind, halyard_object_t* out);
/* Adds an element to the end, or replaces one. A number becomes one of the list's kind; floats are rounded.
 * An object is borrowed: the list takes a reference of its own. FAILED_PRECONDITION: an object for a list of
 * numbers; INVALID_ARGUMENT: a number that the list's kind cannot hold, an unknown kind of value, or not a
 * list; OUT_OF_RANGE: no such element; RESOURCE_EXHAUSTED: more than 2^28 elements. A failure changes
 * nothing. */
HALYARD_API halyard_status_t halyard_list_append(halyard_object_t list, const halyard_value_t* value);
HALYARD_API halyard_status_t halyard_list_set(halyard_object_t list, size_t index,
                                              const halyard_value_t* value);
/* Elements of a vm.list. get: the value's object, if any, is owned by the caller. */
HALYARD_API halyard_status_t halyard_list_size(halyard_object_t list, size_t* size);
HALYARD_API halyard_status_t halyard_list_get(halyard_object_t list, size_t index, halyard_value_t* value);
/* What the tools and the bindings for other languages take of lists within lists: levels, and elements in
 * all. */
#define HALYARD_LIST_MAX_DEPTH 256
#define HALYARD_LIST_MAX_ELEMENTS 1048576
/* Whether a walk through a list and the lists within it ends: a program can make a list that contains itself,
 * one that is a million levels deep, or one with 2^64 ways through it. For callers that follow lists of
 * programs which they do not trust. RESOURCE_EXHAUSTED: more than `max_depth` levels (a list without lists is
 * one), or more than `max_elements` elements, those of a list that is reached in several ways counted each
 * time. Looks at no more elements than that. */
HALYARD_API halyard_status_t halyard_list_check(halyard_object_t list, size_t max_depth, size_t max_elements);

/* A fence that is not reached, for the signal argument of async functions. */
HALYARD_API halyard_status_t halyard_fence_create(halyard_device_t device, halyard_object_t* out);
/* Blocks. `timeout_ms` UINT32_MAX: no limit. DEADLINE_EXCEEDED, or the failure of the work, with its cause.
 */
HALYARD_API halyard_status_t halyard_fence_wait(halyard_object_t fence, uint32_t timeout_ms);

/* ---- Tensors as text (run-module-cli.md, sections 3 and 4) --------------------------------------------- */

typedef struct halyard_tensor {
  uint32_t struct_size;
  uint32_t element_type;
  size_t rank;
  const int64_t* shape;
  size_t size; /* bytes */
  const void* data;
} halyard_tensor_t;
/* "2x3xf32=1,2,3,4,5,6" to host memory. Everything is one block that *out points to, for halyard_free. */
HALYARD_API halyard_status_t halyard_tensor_parse(halyard_text_t text, halyard_tensor_t** out);
/* Only "2x3xf32"; data is null and size is that of such a tensor. */
HALYARD_API halyard_status_t halyard_tensor_type_parse(halyard_text_t text, halyard_tensor_t** out);
/* "f32" for HALYARD_ELEMENT_F32; to be given to halyard_free. */
HALYARD_API char* halyard_element_type_text(uint32_t element_type);

/* ---- Assembler ----------------------------------------------------------------------------------------- */

typedef struct halyard_assemble_options {
  uint32_t struct_size;
  uint32_t bytecode_version; /* 15, 16, 17; 0: what the text says, else 17 */
  const char* file;          /* for messages; may be null */
} halyard_assemble_options_t;
/* .vmasm text to the bytes of a module. `options` may be null. To be given to halyard_free. */
HALYARD_API halyard_status_t halyard_assemble(const char* text, size_t size,
                                              const halyard_assemble_options_t* options, void** out,
                                              size_t* out_size);

/* ---- Inspecting modules, without running them; any thread. `data` is a .vmfb archive, borrowed for the call
 * (aligned to 8 bytes it is not copied). Types that this host does not have are no error. INVALID_ARGUMENT:
 * not a module, or a damaged one; RESOURCE_EXHAUSTED: the text would have more than 256 MiB.
 * ------------------------------------------------------------------------------------------------------------------
 */

enum {
  HALYARD_DISASSEMBLE_OFFSETS = 1u << 0, /* instructions begin with their pc: "[0000001A] " */
};
typedef struct halyard_disassemble_options {
  uint32_t struct_size;
  uint32_t flags; /* HALYARD_DISASSEMBLE_* */
} halyard_disassemble_options_t;
/* The module as .vmasm text, which halyard_assemble accepts: it gives the same bytecode, and the same text
 * again. ASCII, with a terminating 0 that *out_size does not count. A function that cannot run is printed as
 * bytes, with the reason. `options` and `out_size` may be null. *out is to be given to halyard_free. */
HALYARD_API halyard_status_t halyard_disassemble(const void* data, size_t size,
                                                 const halyard_disassemble_options_t* options, char** out,
                                                 size_t* out_size);

enum {
  HALYARD_DESCRIBE_TEXT = 0, /* for reading: at most 96 columns if names allow it; long lists are shortened */
  HALYARD_DESCRIBE_JSON = 1, /* for programs: everything, UTF-8; members are only added */
};
/* A description of the module: compiler release, requirements (versions of `hal`), exports, imports,
 * executables, sizes, and functions that cannot run. `out_size` may be null. *out ends in 0 and is to be
 * given to halyard_free. */
HALYARD_API halyard_status_t halyard_module_describe(const void* data, size_t size, uint32_t form, char** out,
                                                     size_t* out_size);

/* What the compiler makes of the module's functions, and of the bytecode kernels in it (docs/jit.md): for
 * each whether it becomes native code or why not, then LLVM's representation and the assembly for this
 * processor. Text for people; compiles, which takes tens of milliseconds a function, and keeps nothing.
 * `function`: only functions and kernels of this name, as the disassembly shows it; null: all. `out_size` may
 * be null. *out ends in 0 and is to be given to halyard_free. Fails as HALYARD_INSTANCE_JIT_ALWAYS does where
 * there is no compiler; NOT_FOUND: no function has the name. */
HALYARD_API halyard_status_t halyard_compiler_explain(const void* data, size_t size, const char* function,
                                                      char** out, size_t* out_size);

/* ---- Captures: files that contexts with a capture_path write (docs/captures.md) ------------------------ */

enum {
  HALYARD_CAPTURE_INCOMPLETE = 1u << 0, /* accept a file that is cut short */
};
/* Reads and checks a capture; the file must not change while it is held. NOT_FOUND, PERMISSION_DENIED;
 * INVALID_ARGUMENT: no capture, or a damaged one; DATA_LOSS: it is cut short. */
HALYARD_API halyard_status_t halyard_capture_open(const char* path, uint32_t flags, halyard_capture_t* out);

typedef struct halyard_capture_info {
  uint32_t struct_size;
  uint32_t is_complete;
  uint64_t execution_count;
  uint64_t executable_count;
} halyard_capture_info_t;
HALYARD_API halyard_status_t halyard_capture_info(halyard_capture_t capture, halyard_capture_info_t* info);

enum {
  HALYARD_EXECUTION_UNKNOWN = 0, /* the capture ends before it did */
  HALYARD_EXECUTION_DONE = 1,
  HALYARD_EXECUTION_FAILED = 2,
};
typedef struct halyard_captured_execution {
  uint32_t struct_size;
  uint32_t outcome; /* HALYARD_EXECUTION_* */
  uint64_t command_count;
  halyard_text_t device; /* URI */
} halyard_captured_execution_t;
/* By number, from 0, in the order in which they were submitted. OUT_OF_RANGE. Texts live as long as the
 * capture. */
HALYARD_API halyard_status_t halyard_capture_execution(halyard_capture_t capture, uint64_t number,
                                                       halyard_captured_execution_t* execution);

#define HALYARD_EVERY_EXECUTION UINT64_MAX
/* One execution, or all: commands, one per line, binding table, and touched ranges. `form` is
 * HALYARD_DESCRIBE_*. OUT_OF_RANGE; RESOURCE_EXHAUSTED: more than 256 MiB. `out_size` may be null. *out ends
 * in 0 and is to be given to halyard_free. */
HALYARD_API halyard_status_t halyard_capture_describe(halyard_capture_t capture, uint64_t number,
                                                      uint32_t form, char** out, size_t* out_size);

/* Executes captured command buffers again, on this device: only for trusted captures. */
HALYARD_API halyard_status_t halyard_replay_create(halyard_capture_t capture, halyard_device_t device,
                                                   halyard_replay_t* out);

enum {
  HALYARD_REPLAY_SAME = 0,
  HALYARD_REPLAY_DIFFERS = 1,
  HALYARD_REPLAY_NOT_COMPARED = 2, /* executed; the capture has no result of it */
};
#define HALYARD_REPLAY_NO_COMMAND UINT64_MAX
typedef struct halyard_replay_result {
  uint32_t struct_size;
  uint32_t outcome; /* HALYARD_REPLAY_* */
  /* The first difference; 0 if there is none. */
  uint32_t buffer;  /* as numbered in the execution's description */
  uint32_t shown;   /* bytes in `expected` and `found`: the first of `length`, at most 16 */
  uint64_t offset;  /* bytes, within the buffer */
  uint64_t length;  /* consecutive bytes that differ */
  uint64_t total;   /* bytes that differ in all buffers */
  uint64_t command; /* the last command that may write to the first of them; or HALYARD_REPLAY_NO_COMMAND */
  uint8_t expected[16]; /* as captured */
  uint8_t found[16];
} halyard_replay_result_t;
/* Creates the buffers with the captured bytes, runs one execution, and compares the results. Blocks.
 * OUT_OF_RANGE: no such execution. Returns failures of the device or of the captured work.
 */
HALYARD_API halyard_status_t halyard_replay_execute(halyard_replay_t replay, uint64_t number,
                                                    halyard_replay_result_t* result);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_HALYARD_H_ */
