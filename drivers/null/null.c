// The null driver: the smallest complete Halyard driver, written to be read, copied and changed (see
// README.md).
//
// One device whose memory is the host's. Queue work runs at once on the thread that submits it, or, when it
// has to wait, on the thread that makes the last thing it waits for happen. It runs no executables. Three
// ideas carry it:
// - One lock in each instance guards all that changes: timelines, kept work, statistics.
// - Work that is not due is kept in a list. A subscription is kept work too: it waits, does nothing, tells
// the host.
// - What becomes due under the lock is run after the lock is given back. So no callback of the host runs
// under it
//   [R32], and a long chain of work is a loop, not a recursion.
// [Rn] is a rule of docs/driver-abi.md; everything else is said in halyard/driver.h, whose order this file
// follows.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "halyard/driver.h"

HALYARD_DRIVER_NOTE("null", "1.0",
                    "null");  // library, version, kinds: readable without running anything [R1]

typedef halyard_status_t status_t;
typedef halyard_driver_instance_t instance_t;
typedef halyard_driver_device_t device_t;
typedef halyard_driver_memory_t memory_t;
typedef halyard_driver_semaphore_t semaphore_t;
typedef halyard_driver_executable_t executable_t;
typedef halyard_driver_command_list_t command_list_t;

struct halyard_driver_instance {
  const halyard_host_services_t* services;
  pthread_mutex_t lock;
  pthread_cond_t changed;  // some timeline moved or failed
  struct work* kept;       // newest first
};

struct halyard_driver_device {
  instance_t instance;
  halyard_memory_statistics_t statistics;  // under the lock
};

struct halyard_driver_memory {
  _Atomic(unsigned char*) bytes;  // null before alloca's turn has come and after dealloca's
  uint64_t size;
  bool imported;  // the bytes belong to the host
};

struct halyard_driver_semaphore {
  instance_t instance;
  uint64_t value;    // under the lock
  status_t failure;  // under the lock: the first one; null while there is none
};

struct halyard_driver_command_list {
  const halyard_command_t* commands;  // the host keeps them [R101]
  uint32_t count;
};

typedef struct work {  // a submission, with copies of all that queue_submit only borrowed [R61]
  struct work* next;
  instance_t instance;
  device_t device;  // null for a subscription
  halyard_operation_t operation;
  memory_t allocated;  // alloca: what to give bytes to
  halyard_completed_fn completed;
  void* completed_user;
  status_t failure;  // of a wait
  uint32_t wait_count, signal_count;
  halyard_timepoint_t* waits;
  halyard_timepoint_t* signals;
} work_t;

enum {
  ALIGNMENT = 64,  // bytes
  MEMORY_TYPE = HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_HOST_CACHED | HALYARD_MEMORY_DEVICE_LOCAL,
  MEMORY_USAGE = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED | HALYARD_USAGE_MAPPING_PERSISTENT |
                 HALYARD_USAGE_MAPPING_RANDOM,
  OPERATIONS = 1 << HALYARD_OPERATION_BARRIER | 1 << HALYARD_OPERATION_ALLOCA |
               1 << HALYARD_OPERATION_DEALLOCA | 1 << HALYARD_OPERATION_FILL | 1 << HALYARD_OPERATION_UPDATE |
               1 << HALYARD_OPERATION_COPY | 1 << HALYARD_OPERATION_EXECUTE
};

// ---- Failure and growth ----

// A message says what was expected, what was found and what to do [R51].
__attribute__((format(printf, 3, 4))) static status_t fail(instance_t instance, halyard_status_code_t code,
                                                           const char* format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  return instance->services->status_create(instance->services->host, code, message, strlen(message));
}

static status_t no_memory_for(instance_t instance, const char* what) {
  return fail(instance, HALYARD_RESOURCE_EXHAUSTED, "null: the process has no memory left for %s", what);
}

static status_t retain(instance_t instance, status_t status) {
  return instance->services->status_retain(instance->services->host, status);
}

static void release(instance_t instance, status_t status) {
  instance->services->status_release(instance->services->host, status);
}

// Copies all but the first field, as far as both sides know the struct; the target's first field says how far
// that side does, and stays [R11].
static void answer(void* target, const void* source, uint32_t source_size) {
  uint32_t size;
  memcpy(&size, target, sizeof(size));
  if (size > source_size) size = source_size;
  memcpy((char*)target + sizeof(size), (const char*)source + sizeof(size), size - sizeof(size));
}

// This driver understands no extension, so it may skip all but those that must be understood [R13].
static const halyard_extension_t* demanded(const halyard_extension_t* extension) {
  while (extension && !extension->must_understand) extension = extension->next;
  return extension;
}

static status_t check_extensions(instance_t instance, const halyard_extension_t* extensions) {
  const halyard_extension_t* extension = demanded(extensions);
  if (!extension) return NULL;
  return fail(instance, HALYARD_UNIMPLEMENTED,
              "null: extension kind %u must be understood; known: none; update me", extension->kind);
}

static bool equal(halyard_text_t text, const char* other) {
  return text.size == strlen(other) && memcmp(text.data, other, text.size) == 0;
}

static int shown(halyard_text_t text) { return text.size < 100 ? (int)text.size : 100; }  // for "%.*s"

// ---- Instance and devices ----

// A driver for hardware looks for it here, and answers UNAVAILABLE with the reason where there is none.
static status_t initialize(const halyard_driver_init_args_t* args, instance_t* instance) {
  struct halyard_driver_instance unmade = {.services = args->services};
  status_t status = check_extensions(&unmade, args->extensions);
  if (status) return status;
  instance_t made = calloc(1, sizeof(*made));
  if (!made) return no_memory_for(&unmade, "an instance");
  made->services = args->services;
  pthread_mutex_init(&made->lock, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);  // the clock of deadlines [R85]
  pthread_cond_init(&made->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  *instance = made;
  return NULL;
}

static void shutdown_instance(instance_t* instance) {
  if (!instance || !*instance) return;
  pthread_cond_destroy(&(*instance)->changed);
  pthread_mutex_destroy(&(*instance)->lock);
  free(*instance);
  *instance = NULL;
}

static status_t enumerate_devices(instance_t instance, uint32_t capacity, halyard_device_info_t* infos,
                                  uint32_t* count) {
  (void)instance;
  const halyard_device_info_t info = {.kind = "null", .path = "", .name = "null device in host memory"};
  // With several devices: element i is at infos[0].struct_size * i bytes, which may differ from sizeof [R12].
  if (capacity > 0) answer(infos, &info, sizeof(info));
  *count = 1;
  return NULL;
}

static status_t device_open(instance_t instance, const halyard_device_open_args_t* args, device_t* device) {
  status_t status = check_extensions(instance, args->extensions);
  if (status) return status;
  if (args->path.size > 0) {
    return fail(instance, HALYARD_NOT_FOUND,
                "null: no device '%.*s'; the only one is null://, with an empty path", shown(args->path),
                args->path.data);
  }
  if (args->option_count > 0) {
    return fail(instance, HALYARD_INVALID_ARGUMENT,
                "null: unknown option '%.*s'; known options: none; remove it", shown(args->options[0].key),
                args->options[0].key.data);
  }
  device_t made = calloc(1, sizeof(*made));
  if (!made) return no_memory_for(instance, "a device");
  made->instance = instance;
  *device = made;
  return NULL;
}

static void device_close(device_t device) { free(device); }

static uint64_t physical_memory(void) {
  return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static status_t device_properties(device_t device, halyard_device_properties_t* properties) {
  (void)device;
  const halyard_device_properties_t known = {
      .capabilities = HALYARD_DEVICE_RUNS_IN_CALLER | HALYARD_DEVICE_UNIFIED_MEMORY |
                      HALYARD_DEVICE_HOST_COHERENT | HALYARD_DEVICE_QUEUE_ALLOCA,
      .queue_count = 1,
      .operations = OPERATIONS,
      .memory_alignment = ALIGNMENT,
      .maximum_allocation = physical_memory(),
      .import_alignment = 1};
  answer(properties, &known, sizeof(known));
  return NULL;
}

static status_t device_query_i64(device_t device, halyard_text_t category, halyard_text_t key, int32_t* known,
                                 int64_t* value) {
  (void)device;
  *known = (equal(category, "hal.device") || equal(category, "hal.dispatch")) && equal(key, "concurrency");
  *value = *known;  // one queue, one thing at a time
  return NULL;
}

static status_t device_memory_statistics(device_t device, halyard_memory_statistics_t* statistics) {
  pthread_mutex_lock(&device->instance->lock);
  answer(statistics, &device->statistics, sizeof(device->statistics));
  pthread_mutex_unlock(&device->instance->lock);
  return NULL;
}

// ---- Memory ----

// A handle that has no bytes yet.
static status_t make_memory(device_t device, const halyard_memory_request_t* request, memory_t* memory) {
  const unsigned missing = request->memory_type & ~(unsigned)(MEMORY_TYPE | HALYARD_MEMORY_OPTIMAL);
  if (missing && !(request->memory_type & HALYARD_MEMORY_OPTIMAL)) {
    return fail(
        device->instance, HALYARD_INVALID_ARGUMENT,
        "null: memory type 0x%x wanted, the only heap has 0x%x; ask without 0x%x, or with OPTIMAL (0x1)",
        request->memory_type, (unsigned)MEMORY_TYPE, missing);
  }
  memory_t made = calloc(1, sizeof(*made));
  if (!made) return no_memory_for(device->instance, "a memory handle");
  made->size = request->size;
  *memory = made;
  return NULL;
}

// Writes the outputs; last of all, because a failure leaves them untouched [R50].
static void hand_out(memory_t made, const halyard_memory_request_t* request, memory_t* memory,
                     halyard_memory_info_t* info) {
  const halyard_memory_info_t given = {
      .memory_type = MEMORY_TYPE, .usage = request->usage | MEMORY_USAGE, .size = made->size};
  answer(info, &given, sizeof(given));
  *memory = made;
}

static void count(device_t device, uint64_t allocated, uint64_t freed) {
  pthread_mutex_lock(&device->instance->lock);
  halyard_memory_statistics_t* now = &device->statistics;
  now->host_bytes_allocated += allocated;
  now->host_bytes_freed += freed;
  now->host_bytes_live += allocated - freed;
  if (now->host_bytes_peak < now->host_bytes_live) now->host_bytes_peak = now->host_bytes_live;
  pthread_mutex_unlock(&device->instance->lock);
}

static status_t give_bytes(device_t device, memory_t memory) {
  const uint64_t units = memory->size / ALIGNMENT + 1;  // at least one: memory of 0 bytes has an address too
  void* bytes = memory->size <= physical_memory() ? aligned_alloc(ALIGNMENT, units * ALIGNMENT) : NULL;
  if (!bytes) {
    return fail(device->instance, HALYARD_RESOURCE_EXHAUSTED,
                "null: cannot get %" PRIu64 " bytes from the process; free memory or ask for less",
                memory->size);
  }
  atomic_store(&memory->bytes, bytes);
  count(device, memory->size, 0);
  return NULL;
}

static status_t take_bytes(device_t device, memory_t memory) {
  void* bytes = atomic_exchange(&memory->bytes, NULL);
  if (!bytes || memory->imported) return NULL;
  free(bytes);
  count(device, 0, memory->size);
  return NULL;
}

static status_t memory_allocate(device_t device, const halyard_memory_request_t* request, memory_t* memory,
                                halyard_memory_info_t* info) {
  memory_t made = NULL;
  status_t status = make_memory(device, request, &made);
  if (!status) status = give_bytes(device, made);
  if (!status) hand_out(made, request, memory, info);
  if (status) free(made);
  return status;
}

static void memory_free(device_t device, memory_t memory) {
  take_bytes(device, memory);
  free(memory);
}

static status_t memory_import(device_t device, const halyard_memory_request_t* request,
                              const halyard_external_memory_t* external, memory_t* memory,
                              halyard_memory_info_t* info) {
  if (external->kind != HALYARD_EXTERNAL_HOST_ALLOCATION) {
    return fail(device->instance, HALYARD_UNIMPLEMENTED,
                "null: external memory of kind %u; can import kind %d", external->kind,
                HALYARD_EXTERNAL_HOST_ALLOCATION);
  }
  memory_t made = NULL;
  status_t status = make_memory(device, request, &made);
  if (status) return status;
  made->imported = true;
  atomic_store(&made->bytes, external->pointer);
  hand_out(made, request, memory, info);
  return NULL;
}

// Null and *status for queue-allocated memory before its alloca or after its dealloca [R73].
static unsigned char* find_bytes(device_t device, memory_t memory, uint64_t offset, status_t* status) {
  unsigned char* bytes = atomic_load(&memory->bytes);
  if (bytes) return bytes + offset;
  *status =
      fail(device->instance, HALYARD_FAILED_PRECONDITION,
           "null: queue-allocated memory is used before its alloca or after its dealloca; wait for alloca's "
           "signal, and let dealloca wait for the last use");
  return NULL;
}

static status_t memory_map(device_t device, memory_t memory, uint32_t access, uint64_t offset,
                           uint64_t length, void** pointer) {
  (void)access, (void)length;  // the host has checked them [R40]
  status_t status = NULL;
  void* bytes = find_bytes(device, memory, offset, &status);
  if (bytes) *pointer = bytes;
  return status;
}

static void memory_unmap(device_t device, memory_t memory) { (void)device, (void)memory; }

// ---- Timelines: moving and waiting ----

static void deliver(instance_t instance, work_t* due);  // gives back the lock; below, "Queue work"

// Under the lock: whether all timepoints are reached (any: one of them) or one has failed. Failure is looked
// for before anything else, and *failure is another reference to it [R84].
static bool is_over(const halyard_timepoint_t* timepoints, uint32_t timepoint_count, bool any,
                    status_t* failure) {
  uint32_t reached = 0;
  for (uint32_t i = 0; i < timepoint_count; ++i) {
    semaphore_t semaphore = timepoints[i].semaphore;
    if (semaphore->failure) return *failure = retain(semaphore->instance, semaphore->failure), true;
    reached += semaphore->value >= timepoints[i].value;
  }
  return reached == timepoint_count || (any && reached > 0);
}

// Under the lock: to `value`, or to failure with another reference to `failure`. Whether that changed
// anything: what has failed stays failed, and time does not go back [R80, R81]. Kept work whose waits are
// over goes to *due.
static bool advance(semaphore_t semaphore, uint64_t value, status_t failure, work_t** due) {
  instance_t instance = semaphore->instance;
  if (semaphore->failure || (!failure && value <= semaphore->value)) return false;
  if (!failure) semaphore->value = value;
  semaphore->failure = retain(instance, failure);
  pthread_cond_broadcast(&instance->changed);
  for (work_t** link = &instance->kept; *link;) {
    work_t* work = *link;
    if (is_over(work->waits, work->wait_count, false, &work->failure)) {
      *link = work->next;
      work->next = *due;
      *due = work;
    } else {
      link = &work->next;
    }
  }
  return true;
}

static status_t semaphore_create(device_t device, uint64_t initial, semaphore_t* semaphore) {
  semaphore_t made = calloc(1, sizeof(*made));
  if (!made) return no_memory_for(device->instance, "a semaphore");
  made->instance = device->instance;
  made->value = initial;
  *semaphore = made;
  return NULL;
}

static void semaphore_destroy(device_t device, semaphore_t semaphore) {
  release(device->instance, semaphore->failure);
  free(semaphore);
}

static status_t semaphore_query(semaphore_t semaphore, uint64_t* value) {
  pthread_mutex_lock(&semaphore->instance->lock);
  status_t failure = retain(semaphore->instance, semaphore->failure);
  if (!failure) *value = semaphore->value;
  pthread_mutex_unlock(&semaphore->instance->lock);
  return failure;
}

static status_t semaphore_signal(semaphore_t semaphore, uint64_t value) {
  instance_t instance = semaphore->instance;
  work_t* due = NULL;
  status_t status = NULL;
  pthread_mutex_lock(&instance->lock);
  if (!advance(semaphore, value, NULL, &due) && !semaphore->failure) {
    status = fail(instance, HALYARD_INVALID_ARGUMENT,
                  "null: signal of %" PRIu64 ", expected more than %" PRIu64, value, semaphore->value);
  }
  deliver(instance, due);
  return status;
}

static void semaphore_fail(semaphore_t semaphore, status_t status) {
  instance_t instance = semaphore->instance;
  work_t* due = NULL;
  pthread_mutex_lock(&instance->lock);
  advance(semaphore, 0, status, &due);
  deliver(instance, due);
  release(instance, status);
}

static bool wait_for_change(instance_t instance, int64_t deadline_ns) {  // false: the deadline has passed
  if (deadline_ns == HALYARD_WAIT_FOREVER) return pthread_cond_wait(&instance->changed, &instance->lock) == 0;
  const struct timespec deadline = {.tv_sec = deadline_ns / 1000000000, .tv_nsec = deadline_ns % 1000000000};
  return pthread_cond_timedwait(&instance->changed, &instance->lock, &deadline) == 0;
}

static status_t semaphore_wait(device_t device, const halyard_semaphore_wait_args_t* args) {
  instance_t instance = device->instance;
  status_t status = NULL;
  pthread_mutex_lock(&instance->lock);
  bool in_time = true, over = false;
  while (!(over = is_over(args->timepoints, args->timepoint_count, args->any != 0, &status)) && in_time) {
    in_time = wait_for_change(instance, args->deadline_ns);
  }
  pthread_mutex_unlock(&instance->lock);
  if (over) return status;
  return fail(instance, HALYARD_DEADLINE_EXCEEDED,
              "null: %s of %u timepoints not reached at the deadline; wait longer", args->any ? "any" : "all",
              args->timepoint_count);
}

// ---- Executables ----

static void executable_grade(device_t device, halyard_text_t format, const void* data, uint64_t data_size,
                             halyard_executable_grade_t* grade) {
  (void)device, (void)data, (void)data_size;
  halyard_executable_grade_t no = {.grade = HALYARD_GRADE_NO};
  snprintf(no.reason, sizeof(no.reason), "null runs no executables, so no '%.*s'", shown(format),
           format.data);
  answer(grade, &no, sizeof(no));
}

static status_t executable_create(device_t device, const halyard_executable_args_t* args,
                                  executable_t* executable) {
  (void)executable;
  return fail(
      device->instance, HALYARD_NOT_FOUND,
      "null: unknown executable format '%.*s'; known formats: none; use another device, such as local-sync",
      shown(args->format), args->format.data);
}

// Mandatory, but never called while executable_create makes none.
static void executable_destroy(device_t device, executable_t executable) { (void)device, (void)executable; }
static uint32_t executable_function_count(executable_t executable) { return (void)executable, 0; }
static status_t executable_function_info(executable_t executable, uint32_t function,
                                         halyard_function_info_t* info) {
  return (void)executable, (void)function, (void)info, NULL;
}

// ---- Commands ----

static const halyard_command_t* next_command(const halyard_command_t* command) {
  const void* next = (const char*)command + command->size;
  return next;
}

static status_t command_list_create(device_t device, const halyard_command_list_args_t* args,
                                    command_list_t* list) {
  status_t status = check_extensions(device->instance, args->extensions);
  if (status) return status;
  const halyard_command_t* command = args->commands;
  for (uint32_t i = 0; i < args->command_count; ++i, command = next_command(command)) {
    const uint32_t kind = command->kind;
    if (kind >= HALYARD_COMMAND_BARRIER && kind <= HALYARD_COMMAND_COPY) continue;
    if (kind == HALYARD_COMMAND_BEGIN_GROUP || kind == HALYARD_COMMAND_END_GROUP) continue;
    return fail(
        device->instance, HALYARD_UNIMPLEMENTED,
        "null: command %u is of kind %u%s; expected barrier, fill, update, copy, group; use another device",
        i, kind, kind == HALYARD_COMMAND_DISPATCH ? " (dispatch)" : "");
  }
  command_list_t made = malloc(sizeof(*made));
  if (!made) return no_memory_for(device->instance, "a command list");
  *made = (struct halyard_driver_command_list){args->commands, args->command_count};
  *list = made;
  return NULL;
}

static void command_list_destroy(device_t device, command_list_t list) {
  (void)device;
  free(list);
}

// The bytes of a range: direct, or through a slot of the binding table. Null and *status as find_bytes.
static unsigned char* resolve(device_t device, const halyard_range_t* range,
                              const halyard_binding_t* bindings, status_t* status) {
  if (range->memory) return find_bytes(device, range->memory, range->offset, status);
  const halyard_binding_t* slot = &bindings[range->slot];
  return find_bytes(device, slot->memory, slot->offset + range->offset, status);
}

// Writes `bytes` over the target as often as they fit: a fill's pattern (little endian, as the machine is),
// or a whole source, once.
static status_t write_range(device_t device, const halyard_range_t* target, const halyard_binding_t* bindings,
                            const void* bytes, uint64_t size) {
  status_t status = NULL;
  unsigned char* to = resolve(device, target, bindings, &status);
  for (uint64_t done = 0; to && done < target->length; done += size) memmove(to + done, bytes, size);
  return status;
}

static status_t copy_range(device_t device, const halyard_range_t* source, const halyard_range_t* target,
                           const halyard_binding_t* bindings) {
  status_t status = NULL;
  const void* from = resolve(device, source, bindings, &status);
  return from ? write_range(device, target, bindings, from, target->length) : status;
}

static status_t run_command(device_t device, const halyard_command_t* command,
                            const halyard_binding_t* bindings) {
  const void* body = command;
  const halyard_command_fill_t* fill = body;
  const halyard_command_update_t* update = body;
  const halyard_command_copy_t* copy = body;
  switch (command->kind) {
    case HALYARD_COMMAND_FILL:
      return write_range(device, &fill->target, bindings, &fill->pattern, fill->pattern_size);
    case HALYARD_COMMAND_UPDATE:
      return write_range(device, &update->target, bindings, update->source, update->target.length);
    case HALYARD_COMMAND_COPY:
      return copy_range(device, &copy->source, &copy->target, bindings);
    default:
      return NULL;  // barriers: one command ends before the next begins anyway; groups: nobody looks
  }
}

static status_t run_commands(device_t device, const halyard_operation_execute_t* it) {
  status_t status = NULL;
  const halyard_command_t* command = it->list->commands;
  for (uint32_t i = 0; i < it->list->count && !status; ++i, command = next_command(command)) {
    status = run_command(device, command, it->bindings);
  }
  return status;
}

// ---- Queue work and subscriptions ----

static status_t perform(const work_t* work) {
  device_t device = work->device;
  const halyard_operation_t* it = &work->operation;
  switch (it->kind) {
    case HALYARD_OPERATION_ALLOCA:
      return give_bytes(device, work->allocated);
    case HALYARD_OPERATION_DEALLOCA:
      return take_bytes(device, it->dealloca.memory);
    case HALYARD_OPERATION_FILL:
      return write_range(device, &it->fill.target, NULL, &it->fill.pattern, it->fill.pattern_size);
    case HALYARD_OPERATION_UPDATE:
      return write_range(device, &it->update.target, NULL, it->update.source, it->update.target.length);
    case HALYARD_OPERATION_COPY:
      return copy_range(device, &it->copy.source, &it->copy.target, NULL);
    case HALYARD_OPERATION_EXECUTE:
      return run_commands(device, &it->execute);
    default:
      return NULL;  // a barrier; what is unknown was refused by queue_submit
  }
}

// Gives back the lock; then runs what is due and what becomes due by that: does the operation, unless a wait
// has failed [R62], makes or fails the signals, tells the host [R63]. From then on nothing that was named is
// touched [R65].
static void deliver(instance_t instance, work_t* due) {
  pthread_mutex_unlock(&instance->lock);
  while (due) {
    work_t* work = due;
    due = work->next;
    status_t failure = work->failure ? work->failure : perform(work);
    if (work->signal_count > 0) {
      pthread_mutex_lock(&instance->lock);
      for (uint32_t i = 0; i < work->signal_count; ++i) {
        advance(work->signals[i].semaphore, work->signals[i].value, failure,
                &due);  // no change is no error [R64]
      }
      pthread_mutex_unlock(&instance->lock);
    }
    work->completed(work->completed_user, failure);
    free(work);
  }
}

// One allocation: the work, its waits, its signals, its binding table. Null: no memory.
static work_t* make_work(instance_t instance, device_t device, const halyard_submission_t* from) {
  const bool executes = from->operation->kind == HALYARD_OPERATION_EXECUTE;
  const size_t waits_size = from->wait_count * sizeof(halyard_timepoint_t);
  const size_t signals_size = from->signal_count * sizeof(halyard_timepoint_t);
  const size_t table_size = executes ? from->operation->execute.binding_count * sizeof(halyard_binding_t) : 0;
  work_t* work = calloc(1, sizeof(work_t) + waits_size + signals_size + table_size);
  if (!work) return NULL;
  work->instance = instance;
  work->device = device;
  work->completed = from->completed;
  work->completed_user = from->completed_user;
  work->wait_count = from->wait_count;
  work->signal_count = from->signal_count;
  work->waits = (halyard_timepoint_t*)(work + 1);
  work->signals = work->waits + work->wait_count;
  halyard_binding_t* table = (halyard_binding_t*)(work->signals + work->signal_count);
  if (waits_size) memcpy(work->waits, from->waits, waits_size);
  if (signals_size) memcpy(work->signals, from->signals, signals_size);
  if (table_size) memcpy(table, from->operation->execute.bindings, table_size);
  work->operation.struct_size = sizeof(work->operation);
  answer(&work->operation, from->operation, from->operation->struct_size);
  if (executes) work->operation.execute.bindings = table;
  return work;
}

// Runs the work on this thread if it is due; keeps it otherwise. Never blocks for a wait [R60].
static void start(work_t* work) {
  instance_t instance = work->instance;
  pthread_mutex_lock(&instance->lock);
  const bool due = is_over(work->waits, work->wait_count, false, &work->failure);
  if (!due) {
    work->next = instance->kept;
    instance->kept = work;
  }
  deliver(instance, due ? work : NULL);
}

static status_t queue_submit(device_t device, const halyard_submission_t* submission) {
  const halyard_operation_t* operation = submission->operation;
  status_t status = check_extensions(device->instance, submission->extensions);
  if (status) return status;
  if (operation->kind >= 31 || !(OPERATIONS >> operation->kind & 1)) {
    return fail(device->instance, HALYARD_UNIMPLEMENTED,
                "null: queue operation %u is not among those offered (0x%x)", operation->kind,
                (unsigned)OPERATIONS);
  }
  work_t* work = make_work(device->instance, device, submission);
  if (!work) return no_memory_for(device->instance, "a submission");
  if (operation->kind == HALYARD_OPERATION_ALLOCA) {
    const halyard_operation_alloca_t* it = &operation->alloca_;
    status = make_memory(device, &it->request, &work->allocated);
    if (status) return free(work), status;
    hand_out(work->allocated, &it->request, it->memory, it->info);
  }
  start(work);  // accepted: later failure is told through the signals and `completed`
  return NULL;
}

// A subscription is work that waits for one timepoint, does nothing, signals nothing, and tells the host.
static status_t semaphore_subscribe(semaphore_t semaphore, uint64_t value, halyard_subscriber_fn subscriber,
                                    void* user) {
  const halyard_operation_t nothing = {.struct_size = sizeof(nothing), .kind = HALYARD_OPERATION_BARRIER};
  const halyard_timepoint_t wait = {semaphore, value};
  work_t* work = make_work(semaphore->instance, NULL,
                           &(halyard_submission_t){.wait_count = 1,
                                                   .waits = &wait,
                                                   .operation = &nothing,
                                                   .completed = subscriber,
                                                   .completed_user = user});
  if (!work) return no_memory_for(semaphore->instance, "a subscription");
  start(work);
  return NULL;
}

static int32_t semaphore_unsubscribe(semaphore_t semaphore, halyard_subscriber_fn subscriber, void* user) {
  pthread_mutex_lock(&semaphore->instance->lock);
  work_t** link = &semaphore->instance->kept;
  while (*link && ((*link)->device || (*link)->waits[0].semaphore != semaphore ||
                   (*link)->completed != subscriber || (*link)->completed_user != user)) {
    link = &(*link)->next;
  }
  work_t* found = *link;
  if (found) *link = found->next;
  pthread_mutex_unlock(&semaphore->instance->lock);
  free(found);
  return found != NULL;
}

// ---- The table and negotiation ----

// Null, because there is nothing to do or to offer: trim, flush, invalidate, exports, semaphore import.
static const halyard_driver_table_t table = {.struct_size = sizeof(halyard_driver_table_t),
                                             .initialize = initialize,
                                             .shutdown = shutdown_instance,
                                             .enumerate_devices = enumerate_devices,
                                             .device_open = device_open,
                                             .device_close = device_close,
                                             .device_properties = device_properties,
                                             .device_query_i64 = device_query_i64,
                                             .device_memory_statistics = device_memory_statistics,
                                             .memory_allocate = memory_allocate,
                                             .memory_free = memory_free,
                                             .memory_map = memory_map,
                                             .memory_unmap = memory_unmap,
                                             .memory_import = memory_import,
                                             .semaphore_create = semaphore_create,
                                             .semaphore_destroy = semaphore_destroy,
                                             .semaphore_query = semaphore_query,
                                             .semaphore_signal = semaphore_signal,
                                             .semaphore_fail = semaphore_fail,
                                             .semaphore_wait = semaphore_wait,
                                             .semaphore_subscribe = semaphore_subscribe,
                                             .semaphore_unsubscribe = semaphore_unsubscribe,
                                             .executable_grade = executable_grade,
                                             .executable_create = executable_create,
                                             .executable_destroy = executable_destroy,
                                             .executable_function_count = executable_function_count,
                                             .executable_function_info = executable_function_info,
                                             .command_list_create = command_list_create,
                                             .command_list_destroy = command_list_destroy,
                                             .queue_submit = queue_submit};

static const halyard_driver_kind_t kinds[] = {{"null", "Moves bytes in host memory, runs no executables"}};

// There is one version so far, so the ranges have it in common or nothing; a host that says 0 speaks none
// [R6].
int32_t halyard_driver_negotiate(const halyard_driver_request_t* request, halyard_driver_reply_t* reply) {
  halyard_driver_reply_t filled = {
      .abi_version = HALYARD_DRIVER_ABI_V1, .table = &table, .kinds = kinds, .kind_count = 1};
  const bool grown = HALYARD_HAS_FIELD(request, halyard_driver_request_t, extensions);
  if (request->abi_min > HALYARD_DRIVER_ABI_V1 || request->abi_max < HALYARD_DRIVER_ABI_V1) {
    filled = (halyard_driver_reply_t){0};
    snprintf(
        filled.refusal, sizeof(filled.refusal),
        "this null driver speaks driver ABI %u to %u, the host %u to %u; install a driver made for that host",
        HALYARD_DRIVER_ABI_V1, HALYARD_DRIVER_ABI_V1, request->abi_min, request->abi_max);
  } else if (grown && demanded(request->extensions)) {
    filled = (halyard_driver_reply_t){0};
    snprintf(filled.refusal, sizeof(filled.refusal),
             "the host demands extension kind %u, this driver knows none",
             demanded(request->extensions)->kind);
  }
  answer(reply, &filled, sizeof(filled));
  return filled.table != NULL;
}
