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
 * them. A function that gives a handle through an `out` pointer gives a reference that the caller releases.
 * Arguments are borrowed for the call.
 *
 * STATUS. Every function that can fail returns a halyard_status_t: null for success, else an error to release
 * with halyard_status_release. Outputs are untouched on failure. Where the host has no memory that is
 * RESOURCE_EXHAUSTED, and null where a function returns text.
 *
 * THREADS. Instances, devices, modules, buffers, views and fences may be used by any thread at any time. A
 * context may be used by one call at a time unless the program allows more; a halyard_call_t by one thread at
 * a time. Halyard starts no thread that is not asked for.
 *
 * GROWTH. Option and info structs start with struct_size, which the caller sets to sizeof; missing tail
 * fields count as zero. Fields are only appended.
 *
 * Specified by: the module format, run-module-cli.md (texts of values), hal-semantics.md.
 */
#ifndef HALYARD_HALYARD_H_
#define HALYARD_HALYARD_H_

#include <stddef.h>
#include <stdint.h>

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
/* "0.1.0". Static storage. */
HALYARD_API const char* halyard_version(void);

/* The library that compiles bytecode for devices which are told to (docs/jit.md): its name with a version, and its
 * path; either may be null. Opens it; both live as long as the process. NOT_FOUND: none is installed, which is
 * no fault; UNAVAILABLE: what it needs is missing; INCOMPATIBLE: it is of another build. Any thread. */
HALYARD_API halyard_status_t halyard_compiler_find(const char** name, const char** path);

typedef struct halyard_instance* halyard_instance_t;
typedef struct halyard_device* halyard_device_t;
typedef struct halyard_module* halyard_module_t;
typedef struct halyard_context* halyard_context_t;
typedef struct halyard_function* halyard_function_t; /* an export of a module in a context */
typedef struct halyard_call* halyard_call_t;       /* one activity; reusable, a warm one allocates nothing */
typedef struct halyard_capture* halyard_capture_t; /* executed command buffers; does not change */
typedef struct halyard_replay* halyard_replay_t;   /* a capture on a device; one thread at a time */
typedef struct halyard_trace* halyard_trace_t;     /* what happened when; any thread */
typedef struct halyard_search* halyard_search_t;   /* how drivers were looked for; does not change */

/* Any handle of this header but a status. Null is allowed. */
HALYARD_API void halyard_retain(void* handle);
HALYARD_API void halyard_release(void* handle);
/* Memory that a function of this header gave to the caller. Null is allowed. */
HALYARD_API void halyard_free(void* memory);

/* ---- Status
 * -------------------------------------------------------------------------------------------------------------
 */

HALYARD_API halyard_status_t halyard_status_create(halyard_status_code_t code, const char* message);
HALYARD_API halyard_status_t halyard_status_retain(halyard_status_t status);
HALYARD_API void halyard_status_release(halyard_status_t status);
HALYARD_API halyard_status_code_t halyard_status_code(halyard_status_t status); /* HALYARD_OK for null */
HALYARD_API const char* halyard_status_message(halyard_status_t status); /* lives as long as the status */
/* "NOT_FOUND; message; note; ..." with cause and trace. To be given to halyard_free. */
HALYARD_API char* halyard_status_text(halyard_status_t status);

/* ---- Traces: what happened when
 * ------------------------------------------------------------------------------------------- */

/* Begins a trace, to be given to instances. `path` is the file, which is replaced; null or "": nothing is
 * written, only halyard_trace_totals tells. The file is a Perfetto trace (ui.perfetto.dev, trace_processor;
 * docs/traces.md): functions of modules and what they import, queue work with flows from fence to fence,
 * dispatches, memory. Times are of CLOCK_MONOTONIC. NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE: the file
 * cannot be made. */
HALYARD_API halyard_status_t halyard_trace_create(const char* path, halyard_trace_t* out);
/* Writes what is still kept; more may follow. Without it, the last release does. UNAVAILABLE,
 * RESOURCE_EXHAUSTED: not all could be written, now or before. */
HALYARD_API halyard_status_t halyard_trace_finish(halyard_trace_t trace);
/* A slice of the calling thread, around what the caller does; each begin has its end on the same thread. Null
 * is allowed, and nothing happens. */
HALYARD_API void halyard_trace_begin(halyard_trace_t trace, const char* name);
HALYARD_API void halyard_trace_end(halyard_trace_t trace);

/* Times in nanoseconds; each slice of a thread without those within it. Slices that are still open do not
 * count. */
typedef struct halyard_trace_totals {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t events;
  uint64_t phase_ns;   /* of halyard_trace_begin */
  uint64_t machine_ns; /* functions of modules */
  uint64_t import_ns;  /* native functions that they call, hal among them */
  uint64_t queue_ns;   /* submissions, from when they were made until they were done */
  uint64_t device_ns;  /* what devices did */
  uint64_t wait_ns;    /* threads that waited */
} halyard_trace_totals_t;
HALYARD_API halyard_status_t halyard_trace_totals(halyard_trace_t trace, halyard_trace_totals_t* totals);

/* ---- Instance, drivers, devices
 * ------------------------------------------------------------------------------------------- */

enum {
  HALYARD_INSTANCE_NO_ENVIRONMENT = 1u << 0,     /* do not look at $HALYARD_DRIVER_PATH */
  HALYARD_INSTANCE_NO_DEFAULT_FOLDERS = 1u << 1, /* neither the user's folder nor the one beside libhalyard */
  HALYARD_INSTANCE_COUNT_OBJECTS = 1u << 2,      /* for halyard_device_objects and halyard_instance_objects */
  HALYARD_INSTANCE_RUN_BY_EMBEDDER =
      1u << 3, /* halyard_instance_run runs its event loop; no thread is started */
};

typedef struct halyard_instance_options {
  uint32_t struct_size;
  uint32_t flags;                      /* HALYARD_INSTANCE_* */
  const char* const* driver_libraries; /* paths of halyard-driver-NAME.so files, looked at first */
  size_t driver_library_count;
  const char* const* driver_folders; /* then these folders */
  size_t driver_folder_count;
  halyard_trace_t trace; /* of all that its devices and contexts do; may be null */
  /* A boost::asio::io_context that the embedder runs, instead of an event loop of the instance; no thread is
   * started. It must outlive the instance and all that was made with it. Null: none. */
  void* asio_context;
  uint32_t asio_version; /* BOOST_ASIO_VERSION of that context */
  uint32_t reserved;
} halyard_instance_options_t;

/* `options` may be null. Reads the notes of the drivers that are found; no code of one runs yet. There is no
 * default device: which drivers there are, halyard_instance_search says without running any.
 *
 * Time limits of calls, and closing a device whose last user was its own work, need an event loop. The
 * instance has one, whose thread starts when it is first needed, unless the options say who runs it. An
 * embedder that stops running it stops time limits, too.
 *
 * FAILED_PRECONDITION: asio_version is not the one that Halyard was built with (the message names both):
 * layouts differ between versions. INVALID_ARGUMENT: a context and HALYARD_INSTANCE_RUN_BY_EMBEDDER. */
HALYARD_API halyard_status_t halyard_instance_create(const halyard_instance_options_t* options,
                                                     halyard_instance_t* out);

/* Runs what is due on the event loop of an instance made with HALYARD_INSTANCE_RUN_BY_EMBEDDER, and returns
 * then; where nothing is due, waits for it for up to `timeout_ns` nanoseconds (0: does not wait; negative:
 * without limit). *ran (may be null) is how many handlers ran. Any thread, also several at once.
 * FAILED_PRECONDITION: the instance was made otherwise. */
HALYARD_API halyard_status_t halyard_instance_run(halyard_instance_t instance, int64_t timeout_ns,
                                                  size_t* ran);
/* Makes calls of halyard_instance_run that are under way return. Any thread. No effect on other instances. */
HALYARD_API void halyard_instance_interrupt_run(halyard_instance_t instance);

typedef struct halyard_driver_entry {
  const char* name;        /* "local-sync" */
  const char* description; /* one line */
  const char* library;     /* path */
} halyard_driver_entry_t;
/* Drivers that load, sorted by name. Loads every one into this process: a driver that crashes or hangs as it
 * is loaded takes the process with it. Who cannot rule that out asks halyard_instance_search, and tries
 * drivers with halyard_driver_probe in a process of their own. The array and its texts are one block for
 * halyard_free. */
HALYARD_API halyard_status_t halyard_instance_drivers(halyard_instance_t instance,
                                                      halyard_driver_entry_t** out, size_t* count);

typedef struct halyard_device_entry {
  const char* uri; /* "local-sync://": what halyard_device_open takes */
  const char* name;
} halyard_device_entry_t;
/* Devices of one driver, or of all (null or ""), which are loaded as above; one by name loads no other.
 * NOT_FOUND: no such driver; the message names those there are. */
HALYARD_API halyard_status_t halyard_instance_devices(halyard_instance_t instance, const char* driver,
                                                      halyard_device_entry_t** out, size_t* count);

typedef struct halyard_driver_candidate {
  const char* path;    /* a file that was looked at */
  const char* drivers; /* comma-separated names; "" where the file could not be read */
  int32_t accepted;
  const char* reason; /* why not; "" where accepted */
} halyard_driver_candidate_t;
/* Every file that was considered, in order, with the reason where it was refused. */
HALYARD_API halyard_status_t halyard_instance_candidates(halyard_instance_t instance,
                                                         halyard_driver_candidate_t** out, size_t* count);

/* `uri` is "driver[://path][?key=value&...]". Opening twice gives two logical devices. */
HALYARD_API halyard_status_t halyard_device_open(halyard_instance_t instance, const char* uri,
                                                 halyard_device_t* out);
typedef struct halyard_device_setting {
  const char* key;
  const char* value;
} halyard_device_setting_t;
/* The same with more options than the URI's, which come first: with values of any characters, and keys that
 * may be repeated where the driver allows that ("plugin" of local devices). A device keeps copies. */
HALYARD_API halyard_status_t halyard_device_open_with(halyard_instance_t instance, const char* uri,
                                                      const halyard_device_setting_t* settings, size_t count,
                                                      halyard_device_t* out);
HALYARD_API const char* halyard_device_uri(halyard_device_t device); /* lives as long as the device */

typedef struct halyard_object_count {
  const char* type; /* "hal.buffer" */
  uint64_t live;    /* now */
  uint64_t made;    /* so far */
} halyard_object_count_t;
/* How many objects of each type there are of a device, for who looks for what keeps them. One block for
 * halyard_free. FAILED_PRECONDITION: the instance was made without HALYARD_INSTANCE_COUNT_OBJECTS. */
HALYARD_API halyard_status_t halyard_device_objects(halyard_device_t device, halyard_object_count_t** out,
                                                    size_t* count);
/* The same for the buffers and lists ("vm.buffer", "vm.list") that programs have made, in every context of
 * the instance. What is there when its contexts are gone is kept by results, or by the embedder. */
HALYARD_API halyard_status_t halyard_instance_objects(halyard_instance_t instance,
                                                      halyard_object_count_t** out, size_t* count);

/* ---- How drivers are looked for
 * ------------------------------------------------------------------------------------------- */

/* Who named a place. */
enum {
  HALYARD_ORIGIN_EMBEDDER = 0,     /* halyard_instance_options_t */
  HALYARD_ORIGIN_ENVIRONMENT = 1,  /* $HALYARD_DRIVER_PATH */
  HALYARD_ORIGIN_USER = 2,         /* the folder below $HOME */
  HALYARD_ORIGIN_INSTALLATION = 3, /* the folder beside libhalyard */
};

enum {
  HALYARD_SEARCH_ACCEPTED = 0, /* a folder that was read, or a driver that fits; loaded when it is needed */
  HALYARD_SEARCH_REFUSED = 1,  /* no driver for this host, or one that failed to load */
  HALYARD_SEARCH_SHADOWED = 2, /* a driver all of whose kinds an earlier one has */
  HALYARD_SEARCH_SKIPPED = 3,  /* not looked at: nothing is there, or it was looked at before */
};

typedef struct halyard_search_entry {
  uint32_t struct_size;
  uint32_t origin;    /* HALYARD_ORIGIN_* */
  uint32_t outcome;   /* HALYARD_SEARCH_* */
  uint32_t is_folder; /* not 0: a folder; the entries of its files follow it */
  const char* path; /* absolute; an entry of $HALYARD_DRIVER_PATH that is not looked at: as it stands there */
  const char* reason;   /* "CODE; why"; "" where accepted */
  uint64_t other_files; /* of a folder: files in it that are not named halyard-driver-NAME.so */
  /* What the file says of itself, read without running any of it; "" and 0 where it could not be read. */
  const char* library; /* NAME */
  const char* version;
  const char* drivers; /* its kinds of device, separated by commas */
  const char* serves;  /* those of them that no earlier file has */
  uint32_t abi_min;    /* versions of the driver ABI */
  uint32_t abi_max;
  uint32_t sanitizer; /* HALYARD_SANITIZER_* (halyard/abi.h); 0: none */
  uint32_t loaded;    /* not 0: code of it has run in this instance */
} halyard_search_entry_t;

/* What the search for drivers has looked at so far, with what is known now. Runs no code of a driver. */
HALYARD_API halyard_status_t halyard_instance_search(halyard_instance_t instance, halyard_search_t* out);
/* Entries in the order in which they were tried, from 0; OUT_OF_RANGE behind the last. Texts live as long as
 * the search. */
HALYARD_API halyard_status_t halyard_search_entry(halyard_search_t search, size_t index,
                                                  halyard_search_entry_t* entry);
/* "AddressSanitizer" for HALYARD_SANITIZER_ADDRESS, "no sanitizer" for 0. Static storage. */
HALYARD_API const char* halyard_sanitizer_name(uint32_t sanitizer);

/* Tries one driver out, apart from every instance: loads it, negotiates, initializes, lists its devices,
 * opens and closes each, shuts down. The first failure is returned; a device that cannot be opened is none.
 * What crashes or hangs does so here: whoever does not know the driver does this in a process of its own.
 * `step` (may be null) is called on this thread before each step with its name: "load", "negotiate",
 * "initialize", "enumerate_devices", "device_open", "shutdown"; more names may come. */
typedef void (*halyard_step_fn)(void* user, const char* step);
HALYARD_API halyard_status_t halyard_driver_probe(const char* path, halyard_step_fn step, void* user);

/* ---- What a device is
 * ------------------------------------------------------------------------------------------- */

/* Bits of halyard_device_description_t.capabilities. */
enum {
  HALYARD_CAPABILITY_RUNS_IN_CALLER = 1u << 0,   /* work is done on the thread that makes it due */
  HALYARD_CAPABILITY_UNIFIED_MEMORY = 1u << 1,   /* host and device memory are one */
  HALYARD_CAPABILITY_HOST_COHERENT = 1u << 2,    /* what the host can see needs no flush */
  HALYARD_CAPABILITY_QUEUE_ALLOCA = 1u << 3,     /* allocates in queue order by itself */
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
  uint64_t import_alignment;   /* bytes; memory of the host that is used without a copy starts at a multiple
                                  of it; 0: it always is copied */
  const char* driver;          /* "local-sync" */
  const char* library;         /* path */
  const char* library_version; /* the driver's own */
} halyard_device_description_t;
/* Texts live as long as the device. */
HALYARD_API halyard_status_t halyard_device_describe(halyard_device_t device,
                                                     halyard_device_description_t* description);
/* "runs in caller" for bit 0, "alloca" for operation 1; null where this version has no name for it. Static
 * storage. */
HALYARD_API const char* halyard_capability_name(uint32_t bit);
HALYARD_API const char* halyard_operation_name(uint32_t operation);

/* What programs ask with hal.device.query: an integer, by category and key ("hal.device", "concurrency").
 * *known is 0 where the device does not know the key: no error, *value is 0. */
HALYARD_API halyard_status_t halyard_device_query(halyard_device_t device, const char* category,
                                                  const char* key, int32_t* known, int64_t* value);

/* How well executables fit a device. */
enum {
  HALYARD_FIT_NO = 0,        /* cannot run there */
  HALYARD_FIT_RECOMPILE = 1, /* could, compiled again */
  HALYARD_FIT_LOADABLE = 2,  /* runs, after translation or in a slower way */
  HALYARD_FIT_NATIVE = 3,    /* made for it */
};
typedef struct halyard_executable_fit {
  uint32_t struct_size;
  uint32_t fit;     /* HALYARD_FIT_* */
  char reason[256]; /* for people; "" where native */
} halyard_executable_fit_t;
/* Judges an executable of this format ("vmvx-bytecode-fb") without loading it; `data` null: the format alone.
 */
HALYARD_API halyard_status_t halyard_device_judge(halyard_device_t device, const char* format,
                                                  const void* data, size_t size,
                                                  halyard_executable_fit_t* fit);

/* How a device uses memory of another one. */
enum {
  HALYARD_SHARING_NONE = 0,        /* the host copies it */
  HALYARD_SHARING_HOST_MEMORY = 1, /* imported without a copy, where the host can see it */
  HALYARD_SHARING_SAME_DRIVER = 2, /* as its own */
};
/* What `user` can have of memory that `owner` allocates, by their properties: HALYARD_SHARING_*. Devices
 * of two instances have no driver in common. */
HALYARD_API uint32_t halyard_device_sharing(halyard_device_t owner, halyard_device_t user);

/* Bytes of the device's allocations, imports not counted; all 0 where the driver does not count. */
typedef struct halyard_memory_use {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t host_live, host_peak, host_allocated, host_freed;
  uint64_t device_live, device_peak, device_allocated, device_freed;
} halyard_memory_use_t;
HALYARD_API halyard_status_t halyard_device_memory(halyard_device_t device, halyard_memory_use_t* use);
/* Gives back memory that the device keeps for reuse. */
HALYARD_API halyard_status_t halyard_device_trim(halyard_device_t device);

/* ---- Modules
 * ----------------------------------------------------------------------------------------------------------------
 */

enum {
  HALYARD_MODULE_VERIFY_EAGERLY = 1u << 0, /* verify every function now, not when it is first called */
  HALYARD_MODULE_PRELOAD = 1u << 1,        /* read the file into memory: it may change or go afterwards */
};

/* A .vmfb archive, memory-mapped, or, where the name ends in ".vmasm", text that is assembled first. "-"
 * reads standard input; it and other files that are not regular ones are read into memory, up to 1 GiB
 * (RESOURCE_EXHAUSTED). Without PRELOAD the file must not change while the module lives: where it is cut off,
 * reading what is gone ends the process (SIGBUS). Nothing is ever written to it: kernels may write to
 * constants, whose pages are then this process's own.
 *
 * A shared library is loaded as a native module (halyard/module.h); "library.so@text" gives it `text` as its
 * argument. Its types are known to modules that are loaded after it. It stays mapped until the process ends.
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
 * into contexts with it. INVALID_ARGUMENT, UNIMPLEMENTED, INCOMPATIBLE: what is wrong with the definition,
 * with the function's name; ALREADY_EXISTS: a type of that name. */
HALYARD_API halyard_status_t halyard_module_create_native(halyard_instance_t instance,
                                                          const struct halyard_module_definition* definition,
                                                          halyard_module_t* out);
/* What native modules may ask of their host: buffers, lists, objects. Static storage. */
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

/* What is likely to give wrong results although the module loads and runs, found by looking at it: a sentence
 * for each, and a newline behind each; "" where there is nothing, as for native modules. So far: Vulkan
 * shaders for targets without the 8- or 16-bit types of the functions' tensors. *out ends in 0 and is to be
 * given to halyard_free; `out_size` may be null. Any thread. */
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
/* The reflection attribute of that export with this key ("iree.benchmark"); without text where it has none.
 * OUT_OF_RANGE: index. The text lives as long as the module. */
HALYARD_API halyard_status_t halyard_module_function_attribute(halyard_module_t module, uint32_t index,
                                                               const char* key, halyard_text_t* value);

enum {
  HALYARD_PREPARE_VERIFY = 0, /* verifies every function; keeps nothing */
  HALYARD_PREPARE_DECODE = 1, /* makes every function ready to run, as its first call would: verifies and
                                 decodes those that are not yet */
};
/* Does now what a module loaded without VERIFY_EAGERLY leaves to the first calls. A native module has nothing
 * to prepare. INVALID_ARGUMENT: no such phase; or what the verifier says of the first function that cannot
 * run. Any thread. */
HALYARD_API halyard_status_t halyard_module_prepare(halyard_module_t module, uint32_t phase);

/* ---- Contexts
 * ----------------------------------------------------------------------------------------------------------------
 */

typedef struct halyard_parameter_file {
  const char* scope; /* "" for the unnamed one */
  const char* path;  /* .irpa, .gguf, .safetensors */
} halyard_parameter_file_t;

/* Called for hal.buffer_view.trace with views that can be read. */
typedef void (*halyard_trace_fn)(void* user, halyard_text_t key, const halyard_object_t* views,
                                 size_t view_count);

/* How many bytes of how many are there. On the thread that made the call; a status that is not null (taken
 * over) ends it with that failure. */
typedef halyard_status_t (*halyard_progress_fn)(void* user, uint64_t done, uint64_t total);

/* The bytes of one binding of a dispatch. Borrowed for the call. */
typedef struct halyard_traced_tensor {
  uint32_t struct_size;
  uint32_t binding;
  uint64_t dispatch; /* counted from 0, in the order in which they are executed */
  halyard_text_t function;
  const uint8_t* data;
  uint64_t size;
  uint32_t after; /* 0: before the dispatch; 1: after it, and not as it was before */
  uint32_t reserved;
} halyard_traced_tensor_t;
/* Called for dispatches on whichever thread has the bytes, one at a time for work that waits for one another.
 * A status that is not null (taken over) fails the work. */
typedef halyard_status_t (*halyard_tensor_fn)(void* user, const halyard_traced_tensor_t* tensor);

/* An expectation of a test program, stated through the module `check`, that does not hold. Borrowed for the
 * call. */
typedef struct halyard_failed_expectation {
  uint32_t struct_size;
  uint32_t reserved;
  halyard_text_t function; /* of `check`: "expect_eq" */
  halyard_text_t message;  /* lines: the first says what was expected and found, others show tensors */
  halyard_text_t place;    /* of the program: "at module.function+0000001A (model.mlir:3:5)"; may be empty */
} halyard_failed_expectation_t;
/* Called on the thread that runs the call, which goes on afterwards. */
typedef void (*halyard_expectation_fn)(void* user, const halyard_failed_expectation_t* failed);

enum {
  HALYARD_CONTEXT_PRELOAD_PARAMETERS = 1u << 0, /* read parameter files into memory, not when they are used */
};

typedef struct halyard_context_options {
  uint32_t struct_size;
  uint32_t reserved;
  const halyard_module_t* modules; /* later ones may import from earlier ones; the last is the main module */
  size_t module_count;
  const halyard_device_t* devices; /* in the order in which programs count them */
  size_t device_count;
  const halyard_parameter_file_t* parameters;
  size_t parameter_count;
  halyard_trace_fn trace;
  void* trace_user;
  /* Limits of what programs may take; 0: the default. Passing one fails the call (RESOURCE_EXHAUSTED). */
  /* Bytes that the program may take, on the host and on devices together: all objects that it makes with what
   * they hold and what alignment wastes, stacks, globals, recorded commands, and work that is not done yet
   * (docs/limits.md). What drivers keep for it is estimated. Not charged: modules and their decoded code,
   * what native modules allocate, traces, what is kept for reuse. Objects that the embedder keeps stay
   * charged. No limit. */
  uint64_t max_memory;
  uint64_t max_stack; /* bytes of one call's stack; 8 MiB */
  /* Nanoseconds that one call may take, waits included (DEADLINE_EXCEEDED); 0: no limit. The instance's event
   * loop measures it. What the call has submitted to devices is stopped too, as far as the device can:
   * `local` stops bytecode kernels at once and machine code between workgroups. A native function is not
   * stopped. */
  uint64_t max_time_ns;
  /* Which device gives memory for several: its place in `devices`, counted from 1, preferred wherever a
   * program lets the host choose. 0: the program's first choice whose memory all of them can use. */
  uint32_t lead_device;
  uint32_t flags; /* HALYARD_CONTEXT_* */
  /* A file that gets every command buffer that programs execute, with the bytes that it finds and leaves
   * (docs/captures.md); replaced if it is there, whole once the context is gone. Null: none. Takes the time
   * and the space that the bytes take. */
  const char* capture_path;
  /* Shows what is in the buffers of dispatches whose function's name matches (* and ? are wildcards), before
   * and after: each then runs on its own, and all that takes the time that reading takes. Null: none. Not
   * together with capture_path (INVALID_ARGUMENT). */
  const char* tensor_pattern;
  halyard_tensor_fn tensor;
  void* tensor_user;
  /* Called while parameter files are read into memory (HALYARD_CONTEXT_PRELOAD_PARAMETERS); may be null. */
  halyard_progress_fn progress;
  void* progress_user;
  /* Settings, as for halyard_device_open_with, of the device "local-sync" that the built-in module
   * `hal_loader` opens where no device of the list is a local one; those of `native` and `plugin`, say.
   * Copied. */
  const halyard_device_setting_t* loader_settings;
  size_t loader_setting_count;
  /* Told of each failed expectation of a test program: a test is a call that fails none. Null: the first one
   * fails the call (FAILED_PRECONDITION). */
  halyard_expectation_fn expectation;
  void* expectation_user;
} halyard_context_options_t;

/* Links the modules and runs each `__init`. The built-in modules `hal`, `io_parameters`, `hal_inline`,
 * `hal_loader` and `check` come first where a module depends on them or imports from them. `hal_inline` and
 * `hal_loader` are for programs that use no device and need none given: the one has its buffers in memory of
 * the host, the other runs kernels in the call, by the first local device of the list, or by one that it
 * opens when a program first asks. */
HALYARD_API halyard_status_t halyard_context_create(halyard_instance_t instance,
                                                    const halyard_context_options_t* options,
                                                    halyard_context_t* out);
/* An export of the main module, or of `module` where not null. NOT_FOUND names near ones. */
HALYARD_API halyard_status_t halyard_context_find(halyard_context_t context, const char* module,
                                                  const char* name, halyard_function_t* out);

/* ---- Values and calls
 * -----------------------------------------------------------------------------------------------------------
 */

HALYARD_API halyard_status_t halyard_call_create(halyard_context_t context, halyard_call_t* out);
/* Runs to the end. Arguments are borrowed. Results are owned by the caller (objects: release).
 * INVALID_ARGUMENT: counts. */
HALYARD_API halyard_status_t halyard_call_invoke(halyard_call_t call, halyard_function_t function,
                                                 const halyard_value_t* arguments, size_t argument_count,
                                                 halyard_value_t* results, size_t result_count);

/* ---- Calls in steps
 * ----------------------------------------------------------------------------------------------------------
 *
 * A call that waits (for a fence, for a native function) needs no thread. Begin it; while it is not done,
 * resume it when it is ready, on any thread, one at a time; take its results. halyard_call_invoke does all
 * that and blocks where the call waits. */

enum {
  HALYARD_CALL_DONE = 0,
  HALYARD_CALL_READY = 1,   /* it has yielded: resume it whenever you like */
  HALYARD_CALL_WAITING = 2, /* resume it once the ready function has been called, or its deadline has come */
};

/* `arguments` are copied. FAILED_PRECONDITION: the call is not done with another. On a failure it is over. */
HALYARD_API halyard_status_t halyard_call_begin(halyard_call_t call, halyard_function_t function,
                                                const halyard_value_t* arguments, size_t argument_count,
                                                uint32_t* state);
/* FAILED_PRECONDITION: nothing to resume, or it still waits. */
HALYARD_API halyard_status_t halyard_call_resume(halyard_call_t call, uint32_t* state);
/* After HALYARD_CALL_DONE, once: results owned by the caller. INVALID_ARGUMENT: count. */
HALYARD_API halyard_status_t halyard_call_results(halyard_call_t call, halyard_value_t* results,
                                                  size_t result_count);
/* When a waiting call goes on by itself, in nanoseconds of CLOCK_MONOTONIC; INT64_MAX: never. */
HALYARD_API int64_t halyard_call_deadline(halyard_call_t call);
/* `ready` (null: none) is called each time when a wait ends, on the thread that ends it, and must not call
 * functions of this call: it hands the call to whoever resumes it. Set it before the call begins. */
HALYARD_API void halyard_call_on_ready(halyard_call_t call, void (*ready)(void* user), void* user);
/* Any thread: what is under way fails with CANCELLED at its next branch or call, or out of its wait, and its
 * work on devices is stopped, as with max_time_ns, also what finished calls of this handle have left there.
 * Without effect where nothing is. A native function is not interrupted. Releasing a call that waits cancels
 * its work in the same way. */
HALYARD_API void halyard_call_cancel(halyard_call_t call);

/* ---- Objects
 * --------------------------------------------------------------------------------------------------------------------
 */

/* "hal.buffer_view", "vm.list". Lives as long as the object. */
HALYARD_API const char* halyard_object_type(halyard_object_t object);

typedef struct halyard_view_info {
  uint32_t struct_size;
  uint32_t element_type; /* hal-types.md, "Element types" */
  uint32_t encoding;     /* 1: dense row-major */
  uint32_t rank;
  const int64_t* shape; /* lives as long as the view */
  uint64_t byte_length; /* of its buffer range */
} halyard_view_info_t;

/* A view of a new buffer of the device with a copy of the bytes; `data` null: zeros. `device` null: memory of
 * the host, for programs that use no device. INVALID_ARGUMENT: shape and size disagree. */
HALYARD_API halyard_status_t halyard_view_create(halyard_device_t device, uint32_t element_type,
                                                 const int64_t* shape, size_t rank, const void* data,
                                                 size_t size, halyard_object_t* out);
/* INVALID_ARGUMENT: not a buffer view. */
HALYARD_API halyard_status_t halyard_view_info(halyard_object_t view, halyard_view_info_t* info);
/* Copies bytes of the view to the host. The work that makes them must be done. OUT_OF_RANGE. */
HALYARD_API halyard_status_t halyard_view_read(halyard_object_t view, uint64_t offset, void* target,
                                               size_t size);
/* "2x2xf32=[1 2][3 4]", at most `max_elements` elements. To be given to halyard_free. */
HALYARD_API halyard_status_t halyard_view_text(halyard_object_t view, uint64_t max_elements, char** out);
/* The view's buffer. */
HALYARD_API halyard_status_t halyard_view_buffer(halyard_object_t view, halyard_object_t* out);

/* Elements of a vm.list. get: the value's object, if any, is owned by the caller. */
HALYARD_API halyard_status_t halyard_list_size(halyard_object_t list, size_t* size);
HALYARD_API halyard_status_t halyard_list_get(halyard_object_t list, size_t index, halyard_value_t* value);

/* A fence that is not reached, for the signal argument of async functions. */
HALYARD_API halyard_status_t halyard_fence_create(halyard_device_t device, halyard_object_t* out);
/* Blocks. `timeout_ms` UINT32_MAX: no limit. DEADLINE_EXCEEDED; or the failure of the work, with its cause.
 */
HALYARD_API halyard_status_t halyard_fence_wait(halyard_object_t fence, uint32_t timeout_ms);

/* ---- Tensors as text (run-module-cli.md, sections 3 and 4)
 * ---------------------------------------------------------------------- */

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
/* Only "2x3xf32"; data is null and size is what such a tensor holds. */
HALYARD_API halyard_status_t halyard_tensor_type_parse(halyard_text_t text, halyard_tensor_t** out);
/* "f32" for its number; to be given to halyard_free. */
HALYARD_API char* halyard_element_type_text(uint32_t element_type);

/* "; did you mean 'x'?" for the candidate nearest to `word`, or "" where none is near; to be given to
 * halyard_free. */
HALYARD_API char* halyard_did_you_mean(const char* word, const char* const* candidates, size_t count);
/* The text as a string of JSON, with its quotes; bytes that are not UTF-8 become U+FFFD. To be given to
 * halyard_free. */
HALYARD_API char* halyard_json_quote(halyard_text_t text);

/* ---- Assembler
 * ------------------------------------------------------------------------------------------------------------------
 */

typedef struct halyard_assemble_options {
  uint32_t struct_size;
  uint32_t bytecode_version; /* 15, 16, 17; 0: what the text says, else 17 */
  const char* file;          /* for messages; may be null */
} halyard_assemble_options_t;
/* .vmasm text to the bytes of a module. `options` may be null. To be given to halyard_free. */
HALYARD_API halyard_status_t halyard_assemble(const char* text, size_t size,
                                              const halyard_assemble_options_t* options, void** out,
                                              size_t* out_size);

/* ---- Looking into modules. Nothing of the module runs; any thread. `data` is a .vmfb archive, borrowed for
 * the call (aligned to 8 bytes it is not copied). Types that this host does not have are no error.
 * INVALID_ARGUMENT: not a module, or a damaged one; RESOURCE_EXHAUSTED: the text would have more than 256
 * MiB.
 * ------------------------------------------------------------------------------------------------------------------
 */

enum {
  HALYARD_DISASSEMBLE_OFFSETS = 1u << 0, /* instructions begin with their pc: "[0000001A] " */
};
typedef struct halyard_disassemble_options {
  uint32_t struct_size;
  uint32_t flags; /* HALYARD_DISASSEMBLE_* */
} halyard_disassemble_options_t;
/* The module as .vmasm text, which halyard_assemble takes back: the same bytecode, and the same text again.
 * ASCII, with a terminating 0 that *out_size does not count. A function that cannot run stands in it as
 * bytes, with the reason. `options` and `out_size` may be null. *out is to be given to halyard_free. */
HALYARD_API halyard_status_t halyard_disassemble(const void* data, size_t size,
                                                 const halyard_disassemble_options_t* options, char** out,
                                                 size_t* out_size);

enum {
  HALYARD_DESCRIBE_TEXT =
      0, /* for people: at most 96 columns where names allow it; long lists are cut short */
  HALYARD_DESCRIBE_JSON = 1, /* for programs: everything, UTF-8; members are only added */
};
/* What the module is: who made it, what it needs (of `hal`: which versions), its exports, imports,
 * executables and sizes, and which functions cannot run. `out_size` may be null. *out ends in 0 and is to be
 * given to halyard_free. */
HALYARD_API halyard_status_t halyard_module_describe(const void* data, size_t size, uint32_t form, char** out,
                                                     size_t* out_size);

/* ---- Captures: files that contexts with a capture_path write (docs/captures.md)
 * ------------------------------------------------------------------------------------------------------------------
 */

enum {
  HALYARD_CAPTURE_INCOMPLETE = 1u << 0, /* of a file that is cut short, take what is there */
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
/* One execution, or every one: its commands, one a line, its binding table, and what they touch. `form` is
 * HALYARD_DESCRIBE_*. OUT_OF_RANGE; RESOURCE_EXHAUSTED: more than 256 MiB. `out_size` may be null. *out ends
 * in 0 and is to be given to halyard_free. */
HALYARD_API halyard_status_t halyard_capture_describe(halyard_capture_t capture, uint64_t number,
                                                      uint32_t form, char** out, size_t* out_size);

/* Executes captured command buffers again, on this device: only for captures that are trusted. */
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
  /* What follows says where bytes differ first, and is 0 where none do. */
  uint32_t buffer;      /* as numbered in the execution's description */
  uint32_t shown;       /* bytes in `expected` and `found`: the first of `length`, at most 16 */
  uint64_t offset;      /* bytes, within the buffer */
  uint64_t length;      /* bytes that differ one after another */
  uint64_t total;       /* bytes that differ in all buffers */
  uint64_t command;     /* the last that may write to the first of them; or HALYARD_REPLAY_NO_COMMAND */
  uint8_t expected[16]; /* as captured */
  uint8_t found[16];
} halyard_replay_result_t;
/* Makes the buffers with the captured bytes, executes one execution, compares what it leaves. Blocks.
 * OUT_OF_RANGE: no such execution. A failure of the device, or of what the capture asks of it, is returned.
 */
HALYARD_API halyard_status_t halyard_replay_execute(halyard_replay_t replay, uint64_t number,
                                                    halyard_replay_result_t* result);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_HALYARD_H_ */
