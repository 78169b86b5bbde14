// The null driver: the smallest complete Halyard driver, written to be read, copied and changed (see README.md).
//
// One device whose memory is the host's. Queue work runs at once on the thread that submits it, or, when it has to
// wait, on the thread that makes the last thing it waits for happen. It runs no executables. Three ideas carry it:
// - One lock in each instance guards all that changes: timelines, kept work, statistics.
// - A waiter hangs in its semaphore: a subscriber of the host, or one wait of kept work.
// - What becomes due under the lock is collected in a list and run after the lock is given back: no callback of the
//   host runs under it [R32], and a long chain of work is a loop, not a recursion.
// [Rn] is a rule of docs/driver-abi.md; everything else is said in halyard/driver.h, whose order this file follows.
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

HALYARD_DRIVER_NOTE("null", "1.0", "null");  // library, version, kinds: readable without running anything [R1]

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
  uint64_t value;          // this and what follows: under the lock
  status_t failure;        // the first one; null while there is none
  struct waiter* waiters;  // lowest value first, so that those to be released are always in front
};

struct halyard_driver_command_list {
  const halyard_command_t* commands;  // the host keeps them [R101]
  uint32_t command_count;
};

typedef struct waiter {
  struct waiter* next;
  semaphore_t semaphore;
  uint64_t value;
  struct work* work;                 // not null: one wait of this work, and part of its allocation
  halyard_subscriber_fn subscriber;  // else: whom to call, with `user` and `failure`
  void* user;
  status_t failure;
} waiter_t;

typedef struct work {  // a submission, with copies of all that queue_submit only borrowed [R61]
  device_t device;
  halyard_operation_t operation;
  memory_t allocated;  // alloca: what to give bytes to
  halyard_completed_fn completed;
  void* completed_user;
  status_t failure;  // of a wait
  uint32_t waits_left, wait_count, signal_count;
  waiter_t* waiters;
  halyard_timepoint_t* signals;
} work_t;

enum {
  ALIGNMENT = 64,  // bytes
  MEMORY_TYPE = HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_HOST_CACHED | HALYARD_MEMORY_DEVICE_LOCAL,
  MEMORY_USAGE = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED | HALYARD_USAGE_MAPPING_PERSISTENT |
                 HALYARD_USAGE_MAPPING_RANDOM,
  OPERATIONS = 1 << HALYARD_OPERATION_BARRIER | 1 << HALYARD_OPERATION_ALLOCA | 1 << HALYARD_OPERATION_DEALLOCA |
               1 << HALYARD_OPERATION_FILL | 1 << HALYARD_OPERATION_UPDATE | 1 << HALYARD_OPERATION_COPY |
               1 << HALYARD_OPERATION_EXECUTE,
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

// Copies a struct but for its first field, as far as both sides know it; that field says how far the target's does [R11].
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
  return extension ? fail(instance, HALYARD_UNIMPLEMENTED, "null: extension %u is demanded, none is known; update it",
                          extension->kind)
                   : NULL;
}

static bool equal(halyard_text_t text, const char* other) {
  return text.size == strlen(other) && memcmp(text.data, other, text.size) == 0;
}

static int shown(halyard_text_t text) { return text.size < 100 ? (int)text.size : 100; }  // for "%.*s"

// ---- Instance and devices ----

static void shutdown_instance(instance_t* instance) {
  if (!instance || !*instance) return;
  pthread_cond_destroy(&(*instance)->changed);
  pthread_mutex_destroy(&(*instance)->lock);
  free(*instance);
  *instance = NULL;
}

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
    return fail(instance, HALYARD_NOT_FOUND, "null: no device '%.*s'; the only one is null://, with an empty path",
                shown(args->path), args->path.data);
  }
  if (args->option_count > 0) {
    return fail(instance, HALYARD_INVALID_ARGUMENT, "null: unknown option '%.*s'; known options: none; remove it",
                shown(args->options[0].key), args->options[0].key.data);
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
      .capabilities = HALYARD_DEVICE_RUNS_IN_CALLER | HALYARD_DEVICE_UNIFIED_MEMORY | HALYARD_DEVICE_HOST_COHERENT |
                      HALYARD_DEVICE_QUEUE_ALLOCA,
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
static status_t make_memory(device_t device, const halyard_memory_request_t* request, uint64_t size, memory_t* memory) {
  const unsigned missing = request->memory_type & ~(unsigned)(MEMORY_TYPE | HALYARD_MEMORY_OPTIMAL);
  if (missing && !(request->memory_type & HALYARD_MEMORY_OPTIMAL)) {
    return fail(device->instance, HALYARD_INVALID_ARGUMENT,
                "null: memory type 0x%x wanted, the only heap has 0x%x; ask without 0x%x, or with OPTIMAL (0x1)",
                request->memory_type, (unsigned)MEMORY_TYPE, missing);
  }
  memory_t made = calloc(1, sizeof(*made));
  if (!made) return no_memory_for(device->instance, "a memory handle");
  made->size = size;
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

static status_t give_bytes(device_t device, memory_t memory) {
  const uint64_t units = memory->size / ALIGNMENT + 1;  // at least one: memory of 0 bytes has an address too
  void* bytes = memory->size <= physical_memory() ? aligned_alloc(ALIGNMENT, units * ALIGNMENT) : NULL;
  if (!bytes) {
    return fail(device->instance, HALYARD_RESOURCE_EXHAUSTED,
                "null: cannot get %" PRIu64 " bytes from the process; free memory or ask for less", memory->size);
  }
  atomic_store(&memory->bytes, bytes);
  pthread_mutex_lock(&device->instance->lock);
  halyard_memory_statistics_t* now = &device->statistics;
  now->host_bytes_allocated += memory->size;
  now->host_bytes_live += memory->size;
  if (now->host_bytes_peak < now->host_bytes_live) now->host_bytes_peak = now->host_bytes_live;
  pthread_mutex_unlock(&device->instance->lock);
  return NULL;
}

static void take_bytes(device_t device, memory_t memory) {
  void* bytes = atomic_exchange(&memory->bytes, NULL);
  if (!bytes || memory->imported) return;
  free(bytes);
  pthread_mutex_lock(&device->instance->lock);
  device->statistics.host_bytes_freed += memory->size;
  device->statistics.host_bytes_live -= memory->size;
  pthread_mutex_unlock(&device->instance->lock);
}

static void memory_free(device_t device, memory_t memory) {
  take_bytes(device, memory);
  free(memory);
}

static status_t memory_allocate(device_t device, const halyard_memory_request_t* request, memory_t* memory,
                                halyard_memory_info_t* info) {
  memory_t made = NULL;
  status_t status = make_memory(device, request, request->size, &made);
  if (!status) status = give_bytes(device, made);
  if (status) return free(made), status;
  hand_out(made, request, memory, info);
  return NULL;
}

static status_t memory_import(device_t device, const halyard_memory_request_t* request,
                              const halyard_external_memory_t* external, memory_t* memory,
                              halyard_memory_info_t* info) {
  if (external->kind != HALYARD_EXTERNAL_HOST_ALLOCATION) {
    return fail(device->instance, HALYARD_UNIMPLEMENTED, "null: external memory of kind %u; can import kind %d",
                external->kind, HALYARD_EXTERNAL_HOST_ALLOCATION);
  }
  memory_t made = NULL;
  status_t status = make_memory(device, request, external->size, &made);
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
  *status = fail(device->instance, HALYARD_FAILED_PRECONDITION,
                 "null: queue-allocated memory used before its alloca or after its dealloca; wait for alloca's signal, "
                 "and let dealloca wait for the last use");
  return NULL;
}

static status_t memory_map(device_t device, memory_t memory, uint32_t access, uint64_t offset, uint64_t length,
                           void** pointer) {
  (void)access, (void)length;  // the host has checked them [R40]
  status_t status = NULL;
  void* bytes = find_bytes(device, memory, offset, &status);
  if (bytes) *pointer = bytes;
  return status;
}

static void memory_unmap(device_t device, memory_t memory) { (void)device, (void)memory; }

// ---- Timelines ----

typedef struct due {  // waiters that are due, in the order in which they became so
  waiter_t* first;
  waiter_t** end;
} due_t;

static void deliver(instance_t instance, due_t* due);  // below, "Queue work"

// Under the lock, as all that follows up to semaphore_create.
static void hang(waiter_t* waiter) {
  waiter_t** link = &waiter->semaphore->waiters;
  while (*link && (*link)->value <= waiter->value) link = &(*link)->next;
  waiter->next = *link;
  *link = waiter;
}

// The first waiter with these three, taken out of its semaphore; null: there is none.
static waiter_t* unhang(semaphore_t semaphore, work_t* work, halyard_subscriber_fn subscriber, void* user) {
  waiter_t** link = &semaphore->waiters;
  while (*link && ((*link)->work != work || (*link)->subscriber != subscriber || (*link)->user != user)) {
    link = &(*link)->next;
  }
  waiter_t* waiter = *link;
  if (waiter) *link = waiter->next;
  return waiter;
}

// One wait is over. Whether that makes the work due: all are reached, or this one has failed; then none of the others
// matters any more [R62].
static bool makes_due(work_t* work, status_t failure) {
  if (!failure) return --work->waits_left == 0;
  work->failure = retain(work->device->instance, failure);
  for (uint32_t i = 0; i < work->wait_count && work->waiters[i].semaphore; ++i) {
    unhang(work->waiters[i].semaphore, work, NULL, NULL);
  }
  return true;
}

static void release_waiters(semaphore_t semaphore, due_t* due) {
  while (semaphore->waiters && (semaphore->failure || semaphore->waiters->value <= semaphore->value)) {
    waiter_t* waiter = semaphore->waiters;
    semaphore->waiters = waiter->next;
    if (waiter->work && !makes_due(waiter->work, semaphore->failure)) continue;
    if (!waiter->work) waiter->failure = retain(semaphore->instance, semaphore->failure);
    waiter->next = NULL;
    *due->end = waiter;
    due->end = &waiter->next;
  }
}

// To `value`, or to failure with another reference to `failure`. Whether that changed anything: what has failed stays
// failed, and time does not go back [R80, R81].
static bool advance(semaphore_t semaphore, uint64_t value, status_t failure, due_t* due) {
  if (semaphore->failure || (!failure && value <= semaphore->value)) return false;
  if (!failure) semaphore->value = value;
  semaphore->failure = retain(semaphore->instance, failure);
  pthread_cond_broadcast(&semaphore->instance->changed);
  release_waiters(semaphore, due);
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
  device->instance->services->status_release(device->instance->services->host, semaphore->failure);
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
  due_t due = {NULL, &due.first};
  status_t status = NULL;
  pthread_mutex_lock(&instance->lock);
  if (!advance(semaphore, value, NULL, &due) && !semaphore->failure) {
    status = fail(instance, HALYARD_INVALID_ARGUMENT, "null: signalled %" PRIu64 ", expected more than %" PRIu64 " (now)",
                  value, semaphore->value);
  }
  deliver(instance, &due);
  return status;
}

static void semaphore_fail(semaphore_t semaphore, status_t status) {
  instance_t instance = semaphore->instance;
  due_t due = {NULL, &due.first};
  pthread_mutex_lock(&instance->lock);
  advance(semaphore, 0, status, &due);
  deliver(instance, &due);
  instance->services->status_release(instance->services->host, status);
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
  for (bool in_time = true; !status; in_time = wait_for_change(instance, args->deadline_ns)) {
    uint32_t reached = 0;
    for (uint32_t i = 0; i < args->timepoint_count && !status; ++i) {
      const halyard_timepoint_t* timepoint = &args->timepoints[i];
      status = retain(instance, timepoint->semaphore->failure);  // looked for before anything else [R84]
      reached += timepoint->semaphore->value >= timepoint->value;
    }
    if (status || reached == args->timepoint_count || (args->any && reached)) break;
    if (!in_time) {
      status = fail(instance, HALYARD_DEADLINE_EXCEEDED,
                    "null: %u of %u timepoints reached at the deadline, expected %s; look for what signals the rest",
                    reached, args->timepoint_count, args->any ? "one" : "all");
      break;
    }
  }
  pthread_mutex_unlock(&instance->lock);
  return status;
}

static status_t semaphore_subscribe(semaphore_t semaphore, uint64_t value, halyard_subscriber_fn subscriber,
                                    void* user) {
  instance_t instance = semaphore->instance;
  waiter_t* waiter = malloc(sizeof(*waiter));
  if (!waiter) return no_memory_for(instance, "a subscription");
  *waiter = (waiter_t){.semaphore = semaphore, .value = value, .subscriber = subscriber, .user = user};
  due_t due = {NULL, &due.first};
  pthread_mutex_lock(&instance->lock);
  hang(waiter);
  release_waiters(semaphore, &due);  // it may be due already
  deliver(instance, &due);
  return NULL;
}

static int32_t semaphore_unsubscribe(semaphore_t semaphore, halyard_subscriber_fn subscriber, void* user) {
  pthread_mutex_lock(&semaphore->instance->lock);
  waiter_t* waiter = unhang(semaphore, NULL, subscriber, user);
  pthread_mutex_unlock(&semaphore->instance->lock);
  free(waiter);
  return waiter != NULL;
}

// ---- Executables ----

static void executable_grade(device_t device, halyard_text_t format, const void* data, uint64_t data_size,
                             halyard_executable_grade_t* grade) {
  (void)device, (void)data, (void)data_size;
  halyard_executable_grade_t no = {.grade = HALYARD_GRADE_NO};
  snprintf(no.reason, sizeof(no.reason), "null runs no executables, so no '%.*s'", shown(format), format.data);
  answer(grade, &no, sizeof(no));
}

static status_t executable_create(device_t device, const halyard_executable_args_t* args, executable_t* executable) {
  (void)executable;
  return fail(device->instance, HALYARD_NOT_FOUND,
              "null: unknown executable format '%.*s'; known formats: none; use another device, such as local-sync",
              shown(args->format), args->format.data);
}

// Mandatory, but never called while executable_create makes none.
static void executable_destroy(device_t device, executable_t executable) { (void)device, (void)executable; }
static uint32_t executable_function_count(executable_t executable) { return (void)executable, 0; }
static status_t executable_function_info(executable_t executable, uint32_t function, halyard_function_info_t* info) {
  return (void)executable, (void)function, (void)info, NULL;
}

// ---- Commands ----

static const halyard_command_t* next_command(const halyard_command_t* command) {
  const void* next = (const char*)command + command->size;
  return next;
}

static status_t command_list_create(device_t device, const halyard_command_list_args_t* args, command_list_t* list) {
  status_t status = check_extensions(device->instance, args->extensions);
  if (status) return status;
  const halyard_command_t* command = args->commands;
  for (uint32_t i = 0; i < args->command_count; ++i, command = next_command(command)) {
    const uint32_t kind = command->kind;
    if (kind >= HALYARD_COMMAND_BARRIER && kind <= HALYARD_COMMAND_COPY) continue;
    if (kind == HALYARD_COMMAND_BEGIN_GROUP || kind == HALYARD_COMMAND_END_GROUP) continue;
    const char* name = kind == HALYARD_COMMAND_DISPATCH ? "dispatch" : "command unknown here";
    return fail(device->instance, HALYARD_UNIMPLEMENTED,
                "null: command %u is a %s (kind %u); expected barrier, fill, update, copy, group; use another device", i,
                name, kind);
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
static unsigned char* resolve(device_t device, const halyard_range_t* range, const halyard_binding_t* bindings,
                              status_t* status) {
  if (range->memory) return find_bytes(device, range->memory, range->offset, status);
  const halyard_binding_t* slot = &bindings[range->slot];
  return find_bytes(device, slot->memory, slot->offset + range->offset, status);
}

// Writes `bytes` over the target as often as they fit: a fill's pattern (little endian, as the machine is), or a whole
// source, once.
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

static status_t run_command(device_t device, const halyard_command_t* command, const halyard_binding_t* bindings) {
  const void* body = command;
  const halyard_command_fill_t* fill = body;
  const halyard_command_update_t* update = body;
  const halyard_command_copy_t* copy = body;
  switch (command->kind) {
    case HALYARD_COMMAND_FILL: return write_range(device, &fill->target, bindings, &fill->pattern, fill->pattern_size);
    case HALYARD_COMMAND_UPDATE:
      return write_range(device, &update->target, bindings, update->source, update->target.length);
    case HALYARD_COMMAND_COPY: return copy_range(device, &copy->source, &copy->target, bindings);
    default: return NULL;  // barriers: one command ends before the next begins anyway; groups: nobody to show them to
  }
}

static status_t run_commands(device_t device, const halyard_operation_execute_t* it) {
  status_t status = NULL;
  const halyard_command_t* command = it->list->commands;
  for (uint32_t i = 0; i < it->list->command_count && !status; ++i, command = next_command(command)) {
    status = run_command(device, command, it->bindings);
  }
  return status;
}

// ---- Queue work ----

static status_t perform(const work_t* work) {
  device_t device = work->device;
  const halyard_operation_t* it = &work->operation;
  switch (it->kind) {
    case HALYARD_OPERATION_ALLOCA: return give_bytes(device, work->allocated);
    case HALYARD_OPERATION_DEALLOCA: return take_bytes(device, it->dealloca.memory), NULL;
    case HALYARD_OPERATION_FILL:
      return write_range(device, &it->fill.target, NULL, &it->fill.pattern, it->fill.pattern_size);
    case HALYARD_OPERATION_UPDATE:
      return write_range(device, &it->update.target, NULL, it->update.source, it->update.target.length);
    case HALYARD_OPERATION_COPY: return copy_range(device, &it->copy.source, &it->copy.target, NULL);
    case HALYARD_OPERATION_EXECUTE: return run_commands(device, &it->execute);
    default: return NULL;  // a barrier; what is unknown was refused by queue_submit
  }
}

// Does the operation, unless a wait has failed; makes or fails the signals; tells the host [R63]. From then on nothing
// that the submission named is touched, not even the device [R65].
static void run(work_t* work, due_t* due) {
  instance_t instance = work->device->instance;
  status_t failure = work->failure ? work->failure : perform(work);
  pthread_mutex_lock(&instance->lock);
  for (uint32_t i = 0; i < work->signal_count; ++i) {
    advance(work->signals[i].semaphore, work->signals[i].value, failure, due);  // no change is no error [R64]
  }
  pthread_mutex_unlock(&instance->lock);
  work->completed(work->completed_user, failure);
  free(work);
}

// Gives back the lock; then runs what is due, and what becomes due by that.
static void deliver(instance_t instance, due_t* due) {
  pthread_mutex_unlock(&instance->lock);
  while (due->first) {
    waiter_t* waiter = due->first;
    due->first = waiter->next;
    if (!due->first) due->end = &due->first;
    if (waiter->work) {
      run(waiter->work, due);  // frees the waiter too
    } else {
      waiter->subscriber(waiter->user, waiter->failure);
      free(waiter);
    }
  }
}

// One allocation: the work, its waiters, its signals, its binding table. Null: no memory.
static work_t* make_work(device_t device, const halyard_submission_t* submission) {
  const halyard_operation_t* operation = submission->operation;
  const bool executes = operation->kind == HALYARD_OPERATION_EXECUTE;
  // One more waiter than waits, for work that waits for nothing: see start().
  const size_t waiters_size = (submission->wait_count + 1) * sizeof(waiter_t);
  const size_t signals_size = submission->signal_count * sizeof(halyard_timepoint_t);
  const size_t bindings_size = executes ? operation->execute.binding_count * sizeof(halyard_binding_t) : 0;
  work_t* work = calloc(1, sizeof(work_t) + waiters_size + signals_size + bindings_size);
  if (!work) return NULL;
  char* rest = (char*)(work + 1);
  *work = (work_t){.device = device, .operation.struct_size = sizeof(halyard_operation_t), ... };
  return work;
}
