/* The sample driver: a small complete driver with variants (one .c file each), each of which has one error.
 * Devices, by the path of their URI:
 *   ""            host-visible, coherent memory; 4 queues
 *   "slack"       host-visible memory that needs flush and invalidate
 *   "hidden"      memory that is not host-visible
 *   "unmapped"    memory whose bytes do not exist yet
 *   "sealed"      imports nothing
 *   "wide"        64 queues
 *   "broken-..."  invalid properties
 * Options: "label" only. Queries of category "sample" return counters of the instance (see device_query_i64).
 *
 * Before including this file, a variant defines SAMPLE_LIBRARY; if needed, SAMPLE_KINDS (by default the
 * same), SAMPLE_KIND_LIST, SAMPLE_NOTE, SAMPLE_NO_NOTE, SAMPLE_TABLE, SAMPLE_ABI_VERSION, SAMPLE_REFUSAL,
 * SAMPLE_NO_SYMBOL, SAMPLE_UNAVAILABLE; and statements that run in the named function: SAMPLE_IN_NEGOTIATE,
 * SAMPLE_IN_INITIALIZE, SAMPLE_IN_ENUMERATE, SAMPLE_IN_OPEN, SAMPLE_IN_SHUTDOWN. */
#ifndef HALYARD_TESTS_SAMPLE_H_
#define HALYARD_TESTS_SAMPLE_H_

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "halyard/driver.h"

#define SAMPLE_DEVICES 2
#ifndef SAMPLE_KINDS
#define SAMPLE_KINDS SAMPLE_LIBRARY
#endif
#ifndef SAMPLE_IN_NEGOTIATE
#define SAMPLE_IN_NEGOTIATE
#endif
#ifndef SAMPLE_IN_INITIALIZE
#define SAMPLE_IN_INITIALIZE
#endif
#ifndef SAMPLE_IN_ENUMERATE
#define SAMPLE_IN_ENUMERATE
#endif
#ifndef SAMPLE_IN_OPEN
#define SAMPLE_IN_OPEN
#endif
#ifndef SAMPLE_IN_SHUTDOWN
#define SAMPLE_IN_SHUTDOWN
#endif

struct halyard_driver_instance {
  const halyard_host_services_t* services;
  int64_t open_devices;
  int64_t live_memories;
  int64_t live_mappings;
  int64_t flushes;
  int64_t invalidates;
  int64_t trims;
  halyard_memory_request_t last_request;
  uint32_t last_map_access;
};

struct halyard_driver_device {
  struct halyard_driver_instance* instance;
  char path[32];
};

struct halyard_driver_memory {
  uint8_t* bytes;
  int imported;
};

static halyard_status_t failure(const struct halyard_driver_instance* instance, halyard_status_code_t code,
                                const char* text) {
  const halyard_host_services_t* services = instance->services;
  return services->status_create(services->host, code, text, strlen(text));
}

static int is(const struct halyard_driver_device* device, const char* path) {
  return strcmp(device->path, path) == 0;
}

static int equals(halyard_text_t text, const char* other) {
  return text.size == strlen(other) && memcmp(text.data, other, text.size) == 0;
}

static halyard_status_t sample_initialize(const halyard_driver_init_args_t* args,
                                          halyard_driver_instance_t* instance) {
  static const char line[] = "ready";
#ifdef SAMPLE_UNAVAILABLE
  return args->services->status_create(args->services->host, HALYARD_UNAVAILABLE, SAMPLE_UNAVAILABLE,
                                       sizeof SAMPLE_UNAVAILABLE - 1);
#endif
  SAMPLE_IN_INITIALIZE
  struct halyard_driver_instance* made = calloc(1, sizeof *made);
  made->services = args->services;
  args->services->log(args->services->host, HALYARD_LOG_INFO, line, sizeof line - 1);
  *instance = made;
  return NULL;
}

static void sample_shutdown(halyard_driver_instance_t* instance) {
  static const char line[] = "gone";
  if (!*instance) return;
  SAMPLE_IN_SHUTDOWN
  const halyard_host_services_t* services = (*instance)->services;
  services->log(services->host, HALYARD_LOG_INFO, line, sizeof line - 1);
  free(*instance);
  *instance = NULL;
}

#ifndef SAMPLE_KIND_LIST
#define SAMPLE_KIND_LIST {{SAMPLE_KINDS, "one sample"}}
#endif
static const halyard_driver_kind_t sample_kinds[] = SAMPLE_KIND_LIST;
#define SAMPLE_KIND_COUNT (sizeof sample_kinds / sizeof sample_kinds[0])

/* The struct_size of the first element is the distance between elements [R12]. */
static halyard_device_info_t* sample_info(halyard_device_info_t* infos, uint32_t i) {
  return (void*)((char*)infos + (size_t)i * infos->struct_size);
}

static halyard_status_t sample_enumerate_devices(halyard_driver_instance_t instance, uint32_t capacity,
                                                 halyard_device_info_t* infos, uint32_t* count) {
  static const char* const paths[SAMPLE_DEVICES] = {"", "slack"};
  (void)instance;
  SAMPLE_IN_ENUMERATE
  *count = SAMPLE_DEVICES * SAMPLE_KIND_COUNT;
  for (uint32_t i = 0; i < *count && i < capacity; ++i) {
    halyard_device_info_t* info = sample_info(infos, i);
    info->kind = sample_kinds[i / SAMPLE_DEVICES].name;
    info->path = paths[i % SAMPLE_DEVICES];
    info->name = i % SAMPLE_DEVICES == 0 ? "plain sample" : NULL;
  }
  return NULL;
}

static halyard_status_t sample_device_open(halyard_driver_instance_t instance,
                                           const halyard_device_open_args_t* args,
                                           halyard_driver_device_t* device) {
  SAMPLE_IN_OPEN
  if (equals(args->path, "nowhere") || args->path.size >= sizeof((*device)->path))
    return failure(instance, HALYARD_NOT_FOUND, "no such sample");
  for (uint32_t i = 0; i < args->option_count; ++i) {
    if (!equals(args->options[i].key, "label"))
      return failure(instance, HALYARD_INVALID_ARGUMENT, "unknown option; known is label");
  }
  struct halyard_driver_device* made = calloc(1, sizeof *made);
  made->instance = instance;
  if (args->path.size != 0) memcpy(made->path, args->path.data, args->path.size);
  ++instance->open_devices;
  *device = made;
  return NULL;
}

static void sample_device_close(halyard_driver_device_t device) {
  --device->instance->open_devices;
  free(device);
}

static halyard_status_t sample_device_properties(halyard_driver_device_t device,
                                                 halyard_device_properties_t* properties) {
  properties->capabilities = HALYARD_DEVICE_RUNS_IN_CALLER;
  properties->queue_count = is(device, "wide") ? 64 : is(device, "broken-queues") ? 65 : 4;
  properties->operations = 1u << HALYARD_OPERATION_BARRIER;
  if (!is(device, "broken-operations")) properties->operations |= 1u << HALYARD_OPERATION_EXECUTE;
  properties->memory_alignment = is(device, "broken-alignment") ? 48 : 64;
  properties->maximum_allocation = 1 << 20;
  properties->import_alignment = is(device, "sealed") ? 0 : 64;
  return is(device, "broken-device") ? failure(device->instance, HALYARD_UNAVAILABLE, "the device is lost")
                                     : NULL;
}

static halyard_status_t sample_device_query_i64(halyard_driver_device_t device, halyard_text_t category,
                                                halyard_text_t key, int32_t* known, int64_t* value) {
  const struct halyard_driver_instance* instance = device->instance;
  const struct {
    const char* key;
    int64_t value;
  } answers[] = {
      {"open_devices", instance->open_devices},
      {"live_memories", instance->live_memories},
      {"live_mappings", instance->live_mappings},
      {"flushes", instance->flushes},
      {"invalidates", instance->invalidates},
      {"trims", instance->trims},
      {"request_type", instance->last_request.memory_type},
      {"request_usage", instance->last_request.usage},
      {"request_affinity", (int64_t)instance->last_request.affinity},
      {"map_access", instance->last_map_access},
  };
  if (equals(category, "fail"))
    return failure(device->instance, HALYARD_INTERNAL, "this question always fails");
  for (size_t i = 0; equals(category, "sample") && i < sizeof answers / sizeof answers[0]; ++i) {
    if (!equals(key, answers[i].key)) continue;
    *known = 1;
    *value = answers[i].value;
  }
  return NULL;
}

static halyard_status_t sample_device_trim(halyard_driver_device_t device) {
  ++device->instance->trims;
  return NULL;
}

static halyard_status_t sample_device_memory_statistics(halyard_driver_device_t device,
                                                        halyard_memory_statistics_t* statistics) {
  statistics->host_bytes_live = (uint64_t)device->instance->live_memories;
  return NULL;
}

static void describe(halyard_driver_device_t device, const halyard_memory_request_t* request,
                     halyard_memory_info_t* info) {
  device->instance->last_request = *request;
  info->memory_type = request->memory_type;
  info->memory_type |= is(device, "hidden")  ? HALYARD_MEMORY_DEVICE_LOCAL
                       : is(device, "slack") ? HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_DEVICE_VISIBLE
                                             : HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_DEVICE_VISIBLE;
  info->usage = request->usage;
  info->size = is(device, "broken-size") ? request->size / 2 : request->size;
}

static halyard_status_t sample_memory_allocate(halyard_driver_device_t device,
                                               const halyard_memory_request_t* request,
                                               halyard_driver_memory_t* memory, halyard_memory_info_t* info) {
  if (request->usage & HALYARD_USAGE_SHARING_EXPORT)
    return failure(device->instance, HALYARD_INVALID_ARGUMENT, "no heap has SHARING_EXPORT");
  struct halyard_driver_memory* made = calloc(1, sizeof *made);
  made->bytes = calloc(1, request->size + 1);
  ++device->instance->live_memories;
  describe(device, request, info);
  *memory = made;
  return NULL;
}

static void sample_memory_free(halyard_driver_device_t device, halyard_driver_memory_t memory) {
  --device->instance->live_memories;
  if (!memory->imported) free(memory->bytes);
  free(memory);
}

static halyard_status_t sample_memory_map(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                          uint32_t access, uint64_t offset, uint64_t length, void** pointer) {
  (void)length;
  if (is(device, "unmapped"))
    return failure(device->instance, HALYARD_FAILED_PRECONDITION, "the memory is used before its alloca");
  device->instance->last_map_access = access;
  ++device->instance->live_mappings;
  *pointer = memory->bytes + offset;
  return NULL;
}

static void sample_memory_unmap(halyard_driver_device_t device, halyard_driver_memory_t memory) {
  (void)memory;
  --device->instance->live_mappings;
}

static halyard_status_t sample_memory_flush(halyard_driver_device_t device, halyard_driver_memory_t memory,
                                            uint64_t offset, uint64_t length) {
  (void)memory, (void)offset, (void)length;
  ++device->instance->flushes;
  return NULL;
}

static halyard_status_t sample_memory_invalidate(halyard_driver_device_t device,
                                                 halyard_driver_memory_t memory, uint64_t offset,
                                                 uint64_t length) {
  (void)memory, (void)offset, (void)length;
  ++device->instance->invalidates;
  return NULL;
}

static halyard_status_t sample_memory_import(halyard_driver_device_t device,
                                             const halyard_memory_request_t* request,
                                             const halyard_external_memory_t* external,
                                             halyard_driver_memory_t* memory, halyard_memory_info_t* info) {
  if (request->usage & HALYARD_USAGE_SHARING_EXPORT)
    return failure(device->instance, HALYARD_INVALID_ARGUMENT, "no heap has SHARING_EXPORT");
  struct halyard_driver_memory* made = calloc(1, sizeof *made);
  made->bytes = external->pointer;
  made->imported = 1;
  ++device->instance->live_memories;
  describe(device, request, info);
  *memory = made;
  return NULL;
}

static void sample_executable_grade(halyard_driver_device_t device, halyard_text_t format, const void* data,
                                    uint64_t data_size, halyard_executable_grade_t* grade) {
  static const struct {
    const char* format;
    uint32_t grade;
  } grades[] = {{"native", HALYARD_GRADE_NATIVE},
                {"loadable", HALYARD_GRADE_LOADABLE},
                {"old", HALYARD_GRADE_RECOMPILE}};
  (void)device, (void)data, (void)data_size;
  strcpy(grade->reason, "unknown format");
  for (size_t i = 0; i < sizeof grades / sizeof grades[0]; ++i) {
    if (!equals(format, grades[i].format)) continue;
    grade->grade = grades[i].grade;
    strcpy(grade->reason, grades[i].grade == HALYARD_GRADE_NATIVE ? "" : "made for another sample");
  }
}

/* Samples have no semaphores, executables, command lists or queues; drivers/fake.cpp has them. */
static halyard_status_t sample_semaphore_create(halyard_driver_device_t device, uint64_t initial,
                                                halyard_driver_semaphore_t* semaphore) {
  (void)initial, (void)semaphore;
  return failure(device->instance, HALYARD_UNIMPLEMENTED, "samples have no semaphores");
}
static halyard_status_t sample_executable_create(halyard_driver_device_t device,
                                                 const halyard_executable_args_t* args,
                                                 halyard_driver_executable_t* executable) {
  (void)args, (void)executable;
  return failure(device->instance, HALYARD_UNIMPLEMENTED, "samples have no executables");
}
static halyard_status_t sample_command_list_create(halyard_driver_device_t device,
                                                   const halyard_command_list_args_t* args,
                                                   halyard_driver_command_list_t* list) {
  (void)args, (void)list;
  return failure(device->instance, HALYARD_UNIMPLEMENTED, "samples have no command lists");
}
static halyard_status_t sample_queue_submit(halyard_driver_device_t device,
                                            const halyard_submission_t* submission) {
  (void)submission;
  return failure(device->instance, HALYARD_UNIMPLEMENTED, "samples have no queue");
}
/* Nobody can call the functions that need such a handle. */
static void unreachable(void) { abort(); }
#define SAMPLE_UNREACHABLE(name) .name = (__typeof__(((halyard_driver_table_t*)0)->name))unreachable

static const halyard_driver_table_t sample_table = {
    .struct_size = sizeof(halyard_driver_table_t),
    .initialize = sample_initialize,
    .shutdown = sample_shutdown,
    .enumerate_devices = sample_enumerate_devices,
    .device_open = sample_device_open,
    .device_close = sample_device_close,
    .device_properties = sample_device_properties,
    .device_query_i64 = sample_device_query_i64,
    .device_trim = sample_device_trim,
    .device_memory_statistics = sample_device_memory_statistics,
    .memory_allocate = sample_memory_allocate,
    .memory_free = sample_memory_free,
    .memory_map = sample_memory_map,
    .memory_unmap = sample_memory_unmap,
    .memory_flush = sample_memory_flush,
    .memory_invalidate = sample_memory_invalidate,
    .memory_import = sample_memory_import,
    .semaphore_create = sample_semaphore_create,
    SAMPLE_UNREACHABLE(semaphore_destroy),
    SAMPLE_UNREACHABLE(semaphore_query),
    SAMPLE_UNREACHABLE(semaphore_signal),
    SAMPLE_UNREACHABLE(semaphore_fail),
    SAMPLE_UNREACHABLE(semaphore_wait),
    SAMPLE_UNREACHABLE(semaphore_subscribe),
    SAMPLE_UNREACHABLE(semaphore_unsubscribe),
    .executable_grade = sample_executable_grade,
    .executable_create = sample_executable_create,
    SAMPLE_UNREACHABLE(executable_destroy),
    SAMPLE_UNREACHABLE(executable_function_count),
    SAMPLE_UNREACHABLE(executable_function_info),
    .command_list_create = sample_command_list_create,
    SAMPLE_UNREACHABLE(command_list_destroy),
    .queue_submit = sample_queue_submit};

#ifndef SAMPLE_TABLE
#define SAMPLE_TABLE sample_table
#endif
#ifndef SAMPLE_ABI_VERSION
#define SAMPLE_ABI_VERSION HALYARD_DRIVER_ABI_V1
#endif

/* A note with any versions and sanitizer. */
#define SAMPLE_NOTE_OF(abi_min, abi_max, sanitizer)                                                          \
  __attribute__((used, aligned(4), section(HALYARD_NOTE_SECTION))) static const halyard_driver_note_record_t \
      halyard_driver_note_record_ = {8,                                                                      \
                                     sizeof(halyard_driver_note_t),                                          \
                                     HALYARD_NOTE_TYPE,                                                      \
                                     HALYARD_NOTE_OWNER,                                                     \
                                     {abi_min, abi_max, sanitizer, 0, SAMPLE_LIBRARY, "1.2", SAMPLE_KINDS}}

#ifdef SAMPLE_NOTE
SAMPLE_NOTE;
/* No code of such a driver may run. */
__attribute__((constructor)) static void never(void) { abort(); }
#elif !defined(SAMPLE_NO_NOTE)
HALYARD_DRIVER_NOTE(SAMPLE_LIBRARY, "1.2", SAMPLE_KINDS);
#endif

#ifndef SAMPLE_NO_SYMBOL
HALYARD_DRIVER_EXPORT
#else
int32_t sample_negotiate(const halyard_driver_request_t* request, halyard_driver_reply_t* reply);
#define halyard_driver_negotiate sample_negotiate
#endif
int32_t halyard_driver_negotiate(const halyard_driver_request_t* request, halyard_driver_reply_t* reply) {
  (void)request;
  SAMPLE_IN_NEGOTIATE
#ifdef SAMPLE_REFUSAL
  strcpy(reply->refusal, SAMPLE_REFUSAL);
  return 0;
#endif
  reply->abi_version = SAMPLE_ABI_VERSION;
  reply->table = (const void*)&SAMPLE_TABLE;
  reply->kinds = sample_kinds;
  reply->kind_count = SAMPLE_KIND_COUNT;
  return 1;
}

#endif /* HALYARD_TESTS_SAMPLE_H_ */
