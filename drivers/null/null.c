// The null driver: the smallest complete Halyard driver, written to be read, copied and changed (README.md).
// One device in host memory, without executables. Work runs at once on the thread that submits it or, if it
// has to wait, on the thread that signals its last wait. The design:
// - One lock in each instance guards all mutable state: timelines, kept work, statistics.
// - A list contains work that is not ready, and subscriptions: work that only notifies the host.
// - Work that becomes ready under the lock runs after the lock is released. So no callback of the host runs
//   under it [R32], and a long chain of work is a loop, not a recursion.
// [Rn] is a rule of docs/driver-abi.md. halyard/driver.h specifies the functions.
#define _GNU_SOURCE  // pthread_cond_clockwait
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "halyard/driver.h"

HALYARD_DRIVER_NOTE("null", "1.0", "null");  // library, version, kinds [R1]

typedef halyard_status_t status_t;
typedef halyard_driver_instance_t instance_t;
typedef halyard_driver_device_t device_t;
typedef halyard_driver_memory_t memory_t;
typedef halyard_driver_semaphore_t semaphore_t;
typedef halyard_driver_executable_t executable_t;
typedef halyard_driver_command_list_t command_list_t;
typedef halyard_memory_request_t request_t;
typedef halyard_memory_info_t info_t;
typedef halyard_range_t range_t;
typedef halyard_binding_t binding_t;
typedef halyard_timepoint_t timepoint_t;
typedef halyard_submission_t submission_t;
typedef halyard_text_t text_t;

struct halyard_driver_instance {
  const halyard_host_services_t* services;
  pthread_mutex_t lock;
  pthread_cond_t changed;  // a timeline has advanced or failed
  struct work* kept;       // work, newest first, then subscriptions
};
struct halyard_driver_device {
  instance_t instance;
  halyard_memory_statistics_t statistics;  // under the lock
};
struct halyard_driver_memory {
  _Atomic(char*) bytes;  // null before the alloca has run and after the dealloca
  uint64_t size;
  _Atomic(void*) block;   // the bytes, until their last use ends; null if they belong to the host
  _Atomic uint32_t uses;  // of the block: one until its dealloca, and one for each mapping [R72]
};
struct halyard_driver_command_list {
  const halyard_command_t* commands;  // owned by the host [R101]
  uint32_t count;
};
struct halyard_driver_semaphore {
  device_t device;
  uint64_t value;    // under the lock
  status_t failure;  // under the lock: the first failure, or null
};
typedef struct work {  // a submission, with copies of borrowed data [R61], or a subscription
  struct work* next;
  device_t device;
  submission_t submission;  // affinity 0, which the host never submits, marks a subscription
  halyard_operation_t operation;
  memory_t allocated;  // alloca: the memory that gets bytes
  status_t failure;    // of the waits
} work_t;

enum {
  ALIGNMENT = 64,  // bytes
  MEMORY_TYPE = HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_HOST_CACHED | HALYARD_MEMORY_DEVICE_LOCAL,
  MEMORY_USAGE = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED | HALYARD_USAGE_MAPPING_PERSISTENT |
                 HALYARD_USAGE_MAPPING_RANDOM,
  // Fill, update and copy are not offered as operations, so the host records them as command lists.
  OPERATIONS = 1 << HALYARD_OPERATION_BARRIER | 1 << HALYARD_OPERATION_ALLOCA |
               1 << HALYARD_OPERATION_DEALLOCA | 1 << HALYARD_OPERATION_EXECUTE
};
static const uint64_t kMaxAllocation = (uint64_t)1 << 38;  // bytes

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

static status_t retain(instance_t i, status_t s) { return i->services->status_retain(i->services->host, s); }

// Returns zeroed memory, unless an earlier step has failed. Null: *status has the reason.
static void* make(instance_t instance, size_t size, status_t* status) {
  if (*status) return NULL;
  void* made = calloc(1, size);
  if (!made) *status = fail(instance, HALYARD_RESOURCE_EXHAUSTED, "null: no memory for %zu bytes", size);
  return made;
}

// Copies the fields that both sides know. The target's first field is its size, and is kept [R11].
static void answer(void* target, const void* source, uint32_t source_size) {
  uint32_t size;
  memcpy(&size, target, sizeof(size));
  if (size > source_size) size = source_size;
  memcpy((char*)target + sizeof(size), (const char*)source + sizeof(size), size - sizeof(size));
}

// This driver supports no extension, so it skips optional extensions and refuses the others [R13].
static status_t check_extensions(instance_t instance, const halyard_extension_t* extension) {
  while (extension && !extension->must_understand) extension = extension->next;
  if (!extension) return NULL;
  return fail(instance, HALYARD_UNIMPLEMENTED, "null: extension %u required, none is known", extension->kind);
}

// ---- Instance and devices ----
// A driver for hardware looks for it here, and returns UNAVAILABLE with the reason if there is none.
static status_t initialize(const halyard_driver_init_args_t* args, instance_t* instance) {
  struct halyard_driver_instance unmade = {.services = args->services};
  status_t status = check_extensions(&unmade, args->extensions);
  instance_t made = make(&unmade, sizeof(*made), &status);
  if (!made) return status;
  made->services = args->services;
  pthread_mutex_init(&made->lock, NULL);
  pthread_cond_init(&made->changed, NULL);
  *instance = made;
  return NULL;
}

static void shutdown(instance_t* instance) {
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
  if (capacity > 0) answer(infos, &info, sizeof(info));  // the next one is infos->struct_size bytes on [R12]
  *count = 1;
  return NULL;
}

static status_t device_open(instance_t instance, const halyard_device_open_args_t* args, device_t* device) {
  status_t status = check_extensions(instance, args->extensions);
  if (!status && args->path.size > 0) {
    status = fail(instance, HALYARD_NOT_FOUND, "null: no device '%.*s'; the only one is null://",
                  (int)args->path.size, args->path.data);
  } else if (!status && args->option_count > 0) {
    status = fail(instance, HALYARD_INVALID_ARGUMENT, "null: unknown option '%.*s'; known: none; remove it",
                  (int)args->options[0].key.size, args->options[0].key.data);
  }
  device_t made = make(instance, sizeof(*made), &status);
  if (!made) return status;
  made->instance = instance;
  *device = made;
  return NULL;
}
static void device_close(device_t device) { free(device); }

static status_t device_properties(device_t device, halyard_device_properties_t* properties) {
  (void)device;
  const halyard_device_properties_t known = {
      .capabilities = HALYARD_DEVICE_RUNS_IN_CALLER | HALYARD_DEVICE_UNIFIED_MEMORY |
                      HALYARD_DEVICE_HOST_COHERENT | HALYARD_DEVICE_QUEUE_ALLOCA,
      .queue_count = 1,
      .operations = OPERATIONS,
      .memory_alignment = ALIGNMENT,
      .maximum_allocation = kMaxAllocation,
      .import_alignment = 1};
  answer(properties, &known, sizeof(known));
  return NULL;
}

static bool equal(text_t a, const char* b) { return a.size == strlen(b) && !memcmp(a.data, b, a.size); }

static status_t device_query_i64(device_t device, text_t category, text_t key, int32_t* known,
                                 int64_t* value) {
  (void)device;
  *known = (equal(category, "hal.device") || equal(category, "hal.dispatch")) && equal(key, "concurrency");
  *value = *known;  // one queue, one operation at a time
  return NULL;
}

static status_t device_memory_statistics(device_t device, halyard_memory_statistics_t* statistics) {
  pthread_mutex_lock(&device->instance->lock);
  answer(statistics, &device->statistics, sizeof(device->statistics));
  pthread_mutex_unlock(&device->instance->lock);
  return NULL;
}

// ---- Memory ----
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
  void* bytes = memory->size <= kMaxAllocation ? aligned_alloc(ALIGNMENT, units * ALIGNMENT) : NULL;
  if (!bytes)
    return fail(device->instance, HALYARD_RESOURCE_EXHAUSTED,
                "null: the process cannot get %" PRIu64 " bytes; free memory or ask for less", memory->size);
  atomic_store(&memory->uses, 1);
  atomic_store(&memory->block, bytes);
  atomic_store(&memory->bytes, memset(bytes, 0, memory->size));  // no bytes of earlier owners [R78]
  count(device, memory->size, 0);
  return NULL;
}

static void end_use(device_t device, memory_t memory) {
  if (atomic_fetch_sub(&memory->uses, 1) != 1) return;
  void* block = atomic_exchange(&memory->block, NULL);
  if (block) count(device, 0, memory->size);
  free(block);
}

static status_t take_bytes(device_t device, memory_t memory) {
  if (atomic_exchange(&memory->bytes, NULL)) end_use(device, memory);
  return NULL;
}

// Creates a handle: with bytes if `now`, with `imported` bytes, or, for alloca, without bytes.
static status_t make_memory(device_t device, const request_t* request, bool now, void* imported,
                            memory_t* memory, info_t* info) {
  status_t status = NULL;
  const uint32_t missing = request->memory_type & ~(uint32_t)MEMORY_TYPE;
  if (missing && !(request->memory_type & HALYARD_MEMORY_OPTIMAL))
    status = fail(device->instance, HALYARD_INVALID_ARGUMENT,
                  "null: no heap has memory type bits 0x%x; ask without, or with OPTIMAL (0x1)", missing);
  memory_t made = make(device->instance, sizeof(*made), &status);
  if (!made) return status;
  made->size = request->size;
  atomic_store(&made->bytes, imported);
  if (now && (status = give_bytes(device, made))) return free(made), status;
  const info_t given = {
      .memory_type = MEMORY_TYPE, .usage = request->usage | MEMORY_USAGE, .size = request->size};
  answer(info, &given, sizeof(given));  // outputs are written last: a failure leaves them untouched [R50]
  *memory = made;
  return NULL;
}

static status_t memory_allocate(device_t device, const request_t* request, memory_t* memory, info_t* info) {
  return make_memory(device, request, true, NULL, memory, info);
}

static void memory_free(device_t device, memory_t memory) {
  take_bytes(device, memory);
  free(memory);
}

static status_t memory_import(device_t device, const request_t* request,
                              const halyard_external_memory_t* external, memory_t* memory, info_t* info) {
  if (external->kind == HALYARD_EXTERNAL_HOST_ALLOCATION)
    return make_memory(device, request, false, external->pointer, memory, info);
  return fail(device->instance, HALYARD_UNIMPLEMENTED,
              "null: external memory of kind %u, expected a host allocation", external->kind);
}

// The address of a range: direct, or through a slot of the binding table.
static status_t resolve(device_t device, const range_t* range, const binding_t* table, void** address) {
  const binding_t direct = {.memory = range->memory};
  const binding_t* it = range->memory ? &direct : &table[range->slot];
  char* bytes = atomic_load(&it->memory->bytes);
  if (!bytes)
    return fail(device->instance, HALYARD_FAILED_PRECONDITION,
                "null: memory used before its alloca or after its dealloca; wait for alloca's signal");
  *address = bytes + it->offset + range->offset;
  return NULL;
}

static status_t memory_map(device_t device, memory_t memory, uint32_t access, uint64_t offset,
                           uint64_t length, void** pointer) {
  (void)access, (void)length;  // the host has checked both [R40]
  atomic_fetch_add(&memory->uses, 1);  // before the bytes are looked at: a dealloca that runs now keeps them
  status_t status = resolve(device, &(range_t){.memory = memory, .offset = offset}, NULL, pointer);
  if (status) end_use(device, memory);
  return status;
}
static void memory_unmap(device_t device, memory_t memory) { end_use(device, memory); }

static void executable_grade(device_t device, text_t format, const void* data, uint64_t data_size,
                             halyard_executable_grade_t* grade) {
  (void)device, (void)data, (void)data_size;
  halyard_executable_grade_t no = {.grade = HALYARD_GRADE_NO};
  snprintf(no.reason, sizeof(no.reason), "null runs nothing, so no '%.*s'", (int)format.size, format.data);
  answer(grade, &no, sizeof(no));
}

static status_t executable_create(device_t device, const halyard_executable_args_t* args,
                                  executable_t* executable) {
  (void)executable;
  return fail(device->instance, HALYARD_NOT_FOUND, "null: format '%.*s' is unknown; known formats: none",
              (int)args->format.size, args->format.data);
}

// Mandatory, but never called, because executable_create creates no executables.
static void executable_destroy(device_t device, executable_t executable) { (void)device, (void)executable; }
static uint32_t executable_function_count(executable_t executable) { return (void)executable, 0; }
static status_t executable_function_info(executable_t executable, uint32_t function,
                                         halyard_function_info_t* info) {
  return (void)executable, (void)function, (void)info, NULL;
}

// ---- Commands ----
static const void* next_command(const halyard_command_t* it) { return (const char*)it + it->size; }

static status_t command_list_create(device_t device, const halyard_command_list_args_t* args,
                                    command_list_t* list) {
  status_t status = check_extensions(device->instance, args->extensions);
  const halyard_command_t* command = args->commands;
  for (uint32_t i = 0; i < args->command_count && !status; ++i, command = next_command(command)) {
    const uint32_t kind = command->kind;
    if (kind >= HALYARD_COMMAND_BARRIER && kind <= HALYARD_COMMAND_COPY) continue;
    if (kind == HALYARD_COMMAND_BEGIN_GROUP || kind == HALYARD_COMMAND_END_GROUP) continue;
    status =
        fail(device->instance, HALYARD_UNIMPLEMENTED, "null: command %u has kind %u%s, expected 1-4, 7 or 8",
             i, kind, kind == HALYARD_COMMAND_DISPATCH ? " (dispatch)" : "");
  }
  command_list_t made = make(device->instance, sizeof(*made), &status);
  if (!made) return status;
  *made = (struct halyard_driver_command_list){args->commands, args->command_count};
  *list = made;
  return NULL;
}
static void command_list_destroy(device_t device, command_list_t list) { (void)device, free(list); }

// Fills the range with copies of `bytes`: a repeated pattern (little endian), or a source once.
static status_t write_range(device_t device, const range_t* range, const binding_t* table, const void* bytes,
                            uint64_t size) {
  void* to = NULL;
  status_t status = resolve(device, range, table, &to);
  for (uint64_t i = 0; !status && i < range->length; i += size) memmove((char*)to + i, bytes, size);
  return status;
}

static status_t copy_range(device_t device, const range_t* from, const range_t* to, const binding_t* table) {
  void* source = NULL;
  status_t status = resolve(device, from, table, &source);
  return status ? status : write_range(device, to, table, source, to->length);
}

static status_t run_command(device_t device, const halyard_command_t* command, const binding_t* table) {
  const void* body = command;
  const halyard_command_fill_t* fill = body;
  const halyard_command_update_t* update = body;
  const halyard_command_copy_t* copy = body;
  if (command->kind == HALYARD_COMMAND_FILL)
    return write_range(device, &fill->target, table, &fill->pattern, fill->pattern_size);
  if (command->kind == HALYARD_COMMAND_UPDATE)
    return write_range(device, &update->target, table, update->source, update->target.length);
  if (command->kind == HALYARD_COMMAND_COPY) return copy_range(device, &copy->source, &copy->target, table);
  return NULL;  // barrier: commands run one after the other anyway; group: ignored
}

// ---- Queue work and timelines ----
static status_t perform(device_t device, const work_t* work) {
  const halyard_operation_t* it = &work->operation;
  if (it->kind == HALYARD_OPERATION_ALLOCA) return give_bytes(device, work->allocated);
  if (it->kind == HALYARD_OPERATION_DEALLOCA) return take_bytes(device, it->dealloca.memory);
  if (it->kind != HALYARD_OPERATION_EXECUTE) return NULL;  // a barrier; other kinds were refused
  status_t status = NULL;
  const halyard_command_t* command = it->execute.list->commands;
  for (uint32_t i = 0; i < it->execute.list->count && !status; ++i, command = next_command(command)) {
    status = run_command(device, command, it->execute.bindings);
  }
  return status;
}

// Called under the lock: whether all timepoints (any: one) are reached or, checked first, one failed [R84].
static bool is_over(const timepoint_t* points, uint32_t count, bool any, status_t* failure) {
  uint32_t reached = 0;
  for (uint32_t i = 0; i < count && !*failure; ++i) {
    *failure = retain(points[i].semaphore->device->instance, points[i].semaphore->failure);
    reached += points[i].semaphore->value >= points[i].value;
  }
  return *failure || reached == count || (any && reached > 0);
}

// Adds work at the front, subscriptions at the end: they are called after work that is ready with them [R88].
static void move_to(work_t** from, work_t** to) {
  work_t* work = *from;
  *from = work->next;
  while (work->submission.affinity == 0 && *to) to = &(*to)->next;
  work->next = *to;
  *to = work;
}

// Called under the lock. Advances to `value`, or fails. Returns whether anything changed: a failed semaphore
// stays failed, and values never decrease [R80, R81]. Moves kept work whose waits are over to *ready.
static bool advance(semaphore_t semaphore, uint64_t value, status_t failure, work_t** ready) {
  instance_t instance = semaphore->device->instance;
  if (semaphore->failure || (!failure && value <= semaphore->value)) return false;
  if (!failure) semaphore->value = value;
  semaphore->failure = retain(instance, failure);
  pthread_cond_broadcast(&instance->changed);
  for (work_t** link = &instance->kept; *link;) {
    if (is_over((*link)->submission.waits, (*link)->submission.wait_count, false, &(*link)->failure)) {
      move_to(link, ready);
    } else {
      link = &(*link)->next;
    }
  }
  return true;
}

// Releases the lock, then runs ready work and work that becomes ready: the operation, unless a wait failed
// [R62]; then the signals; then `completed` [R63]. After that no object of the submission is used [R65].
static void deliver(instance_t instance, work_t* ready) {
  pthread_mutex_unlock(&instance->lock);
  for (work_t* work = ready; work; work = ready) {
    ready = work->next;
    const submission_t* it = &work->submission;
    status_t failure = work->failure ? work->failure : perform(work->device, work);
    pthread_mutex_lock(&instance->lock);
    for (uint32_t i = 0; i < it->signal_count; ++i) {
      advance(it->signals[i].semaphore, it->signals[i].value, failure, &ready);  // may have no effect [R64]
    }
    pthread_mutex_unlock(&instance->lock);
    it->completed(it->completed_user, failure);
    free(work);
  }
}

// Copies a submission with its arrays into one allocation. Null: *status has the reason.
static work_t* make_work(device_t device, const submission_t* from, status_t* status) {
  const halyard_operation_execute_t* execute = &from->operation->execute;
  const uint64_t slots = from->operation->kind == HALYARD_OPERATION_EXECUTE ? execute->binding_count : 0;
  const uint32_t waits = from->wait_count, count = waits + from->signal_count;
  const size_t size = sizeof(work_t) + count * sizeof(timepoint_t) + slots * sizeof(binding_t);
  work_t* work = make(device->instance, size, status);
  if (!work) return NULL;
  timepoint_t* points = (timepoint_t*)(work + 1);
  binding_t* table = (binding_t*)(points + count);
  for (uint32_t i = 0; i < count; ++i) points[i] = i < waits ? from->waits[i] : from->signals[i - waits];
  for (uint64_t i = 0; i < slots; ++i) table[i] = execute->bindings[i];
  work->device = device;
  work->submission.struct_size = sizeof(work->submission);
  answer(&work->submission, from, from->struct_size);
  work->submission.waits = points;
  work->submission.signals = points + waits;
  work->operation.struct_size = sizeof(work->operation);
  answer(&work->operation, from->operation, from->operation->struct_size);
  if (slots > 0) work->operation.execute.bindings = table;
  return work;
}

// Runs the work on this thread if it is ready, otherwise keeps it. Never blocks for a wait [R60].
static void start(work_t* work) {
  instance_t instance = work->device->instance;
  work_t* ready = NULL;
  pthread_mutex_lock(&instance->lock);
  const bool now = is_over(work->submission.waits, work->submission.wait_count, false, &work->failure);
  move_to(&work, now ? &ready : &instance->kept);
  deliver(instance, ready);
}

static status_t queue_submit(device_t device, const submission_t* submission) {
  const halyard_operation_t* it = submission->operation;
  status_t status = check_extensions(device->instance, submission->extensions);
  if (!status && (it->kind > HALYARD_OPERATION_EXECUTE || !(OPERATIONS >> it->kind & 1))) {
    status = fail(device->instance, HALYARD_UNIMPLEMENTED,
                  "null: operation %u is not among those offered, 0x%x", it->kind, (unsigned)OPERATIONS);
  }
  work_t* work = make_work(device, submission, &status);
  if (work && it->kind == HALYARD_OPERATION_ALLOCA) {
    status = make_memory(device, it->alloca_.request, false, NULL, &work->allocated, it->alloca_.info);
    if (!status) *it->alloca_.memory = work->allocated;
  }
  if (!work || status) return free(work), status;
  start(work);  // accepted: later failures go to the signals and `completed`
  return NULL;
}

static status_t semaphore_create(device_t device, uint64_t initial, semaphore_t* semaphore) {
  status_t status = NULL;
  semaphore_t made = make(device->instance, sizeof(*made), &status);
  if (!made) return status;
  made->device = device;
  made->value = initial;
  *semaphore = made;
  return NULL;
}

static void semaphore_destroy(device_t device, semaphore_t semaphore) {
  device->instance->services->status_release(device->instance->services->host, semaphore->failure);
  free(semaphore);
}

static status_t semaphore_query(semaphore_t semaphore, uint64_t* value) {
  pthread_mutex_lock(&semaphore->device->instance->lock);
  status_t failure = retain(semaphore->device->instance, semaphore->failure);
  if (!failure) *value = semaphore->value;
  pthread_mutex_unlock(&semaphore->device->instance->lock);
  return failure;
}

static status_t semaphore_signal(semaphore_t semaphore, uint64_t value) {
  instance_t instance = semaphore->device->instance;
  work_t* ready = NULL;
  status_t status = NULL;
  pthread_mutex_lock(&instance->lock);
  if (!advance(semaphore, value, NULL, &ready) && !semaphore->failure) {
    status = fail(instance, HALYARD_INVALID_ARGUMENT, "null: signalled %" PRIu64 ", expected above %" PRIu64,
                  value, semaphore->value);
  }
  deliver(instance, ready);
  return status;
}

static void semaphore_fail(semaphore_t semaphore, status_t status) {
  instance_t instance = semaphore->device->instance;
  work_t* ready = NULL;
  pthread_mutex_lock(&instance->lock);
  advance(semaphore, 0, status, &ready);
  deliver(instance, ready);
  instance->services->status_release(instance->services->host, status);
}

static status_t semaphore_wait(device_t device, const halyard_semaphore_wait_args_t* args) {
  instance_t instance = device->instance;
  const struct timespec deadline = {args->deadline_ns / 1000000000, args->deadline_ns % 1000000000};
  status_t status = NULL;
  bool over = false;
  int late = 0;  // "for ever" ends in 292 years
  pthread_mutex_lock(&instance->lock);
  while (!(over = is_over(args->timepoints, args->timepoint_count, args->any, &status)) && !late) {
    late = pthread_cond_clockwait(&instance->changed, &instance->lock, CLOCK_MONOTONIC, &deadline);
  }
  pthread_mutex_unlock(&instance->lock);
  if (over) return status;
  return fail(instance, HALYARD_DEADLINE_EXCEEDED,
              "null: expected %s of %u timepoints by the deadline; wait longer", args->any ? "one" : "all",
              args->timepoint_count);
}

// A subscription is work that waits for one timepoint and only notifies the host.
static status_t semaphore_subscribe(semaphore_t semaphore, uint64_t value, halyard_subscriber_fn subscriber,
                                    void* user) {
  const halyard_operation_t nothing = {.struct_size = sizeof(nothing), .kind = HALYARD_OPERATION_BARRIER};
  const timepoint_t wait = {semaphore, value};
  submission_t submission = {sizeof(submission), .wait_count = 1, .waits = &wait, .operation = &nothing};
  submission.completed = subscriber;
  submission.completed_user = user;
  status_t status = NULL;
  work_t* work = make_work(semaphore->device, &submission, &status);
  if (work) start(work);
  return status;
}

static int32_t semaphore_unsubscribe(semaphore_t semaphore, halyard_subscriber_fn subscriber, void* user) {
  pthread_mutex_lock(&semaphore->device->instance->lock);
  work_t *found = NULL, **link = &semaphore->device->instance->kept;
  for (; (found = *link); link = &found->next) {
    const submission_t* it = &found->submission;
    if (it->affinity != 0 || it->waits[0].semaphore != semaphore) continue;
    if (it->completed == subscriber && it->completed_user == user) break;
  }
  if (found) *link = found->next;
  pthread_mutex_unlock(&semaphore->device->instance->lock);
  free(found);
  return found != NULL;
}

// ---- The table and negotiation ----
// Null, because there is nothing to do or to offer: trim, flush, invalidate, exports, semaphore import.
// clang-format off
#define ENTRY(name) .name = name
static const halyard_driver_table_t table = {
    .struct_size = sizeof(halyard_driver_table_t), ENTRY(initialize), ENTRY(shutdown),
    ENTRY(enumerate_devices), ENTRY(device_open), ENTRY(device_close), ENTRY(device_properties),
    ENTRY(device_query_i64), ENTRY(device_memory_statistics), ENTRY(memory_allocate), ENTRY(memory_free),
    ENTRY(memory_map), ENTRY(memory_unmap), ENTRY(memory_import), ENTRY(semaphore_create),
    ENTRY(semaphore_destroy), ENTRY(semaphore_query), ENTRY(semaphore_signal), ENTRY(semaphore_fail),
    ENTRY(semaphore_wait), ENTRY(semaphore_subscribe), ENTRY(semaphore_unsubscribe), ENTRY(executable_grade),
    ENTRY(executable_create), ENTRY(executable_destroy), ENTRY(executable_function_count),
    ENTRY(executable_function_info), ENTRY(command_list_create), ENTRY(command_list_destroy),
    ENTRY(queue_submit)};
// clang-format on
static const halyard_driver_kind_t kinds[] = {{"null", "Moves bytes in host memory, runs no executables"}};

// There is one version so far: either both ranges contain it, or they do not overlap. 0 is no version [R6].
int32_t halyard_driver_negotiate(const halyard_driver_request_t* request, halyard_driver_reply_t* reply) {
  const uint32_t only = HALYARD_DRIVER_ABI_V1;
  halyard_driver_reply_t filled = {.abi_version = only, .table = &table, .kinds = kinds, .kind_count = 1};
  char* refusal = filled.refusal;
  if (request->abi_min > only || request->abi_max < only) {
    snprintf(refusal, sizeof(filled.refusal), "driver null speaks driver ABI %u to %u, the host %u to %u; %s",
             only, only, request->abi_min, request->abi_max, "install the driver made for this host");
  } else if (HALYARD_HAS_FIELD(request, halyard_driver_request_t, extensions)) {
    for (const halyard_extension_t* it = request->extensions; it; it = it->next) {
      if (it->must_understand) snprintf(refusal, sizeof(filled.refusal), "extension %u is unknown", it->kind);
    }
  }
  answer(reply, &filled, sizeof(filled));
  return refusal[0] == 0;
}
