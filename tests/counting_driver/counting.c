/* A counting driver: it wraps another one, the file COUNTED_FILE, forwards all calls, and reports at the end
 * how many byte ranges the host imported, and how many copies it made, as operations or in command lists. Its
 * kinds are those of the other driver, COUNTED_KINDS; its name is COUNTED_NAME. Built by test_vulkan.py. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>

#include "halyard/driver.h"

HALYARD_DRIVER_NOTE(COUNTED_NAME, "1.0", COUNTED_KINDS);

static halyard_driver_table_t counted, own;
static atomic_int imports, copies;

static halyard_status_t memory_import(halyard_driver_device_t device, const halyard_memory_request_t* request,
                                      const halyard_external_memory_t* external,
                                      halyard_driver_memory_t* memory, halyard_memory_info_t* info) {
  ++imports;
  return counted.memory_import(device, request, external, memory, info);
}

static halyard_status_t command_list_create(halyard_driver_device_t device,
                                            const halyard_command_list_args_t* args,
                                            halyard_driver_command_list_t* list) {
  const char* at = (const char*)args->commands;
  for (uint32_t i = 0; i < args->command_count; ++i) {
    const halyard_command_t* command = (const halyard_command_t*)at;
    if (command->kind == HALYARD_COMMAND_COPY || command->kind == HALYARD_COMMAND_UPDATE) ++copies;
    at += command->size;
  }
  return counted.command_list_create(device, args, list);
}

static halyard_status_t queue_submit(halyard_driver_device_t device, const halyard_submission_t* submission) {
  const uint32_t kind = submission->operation->kind;
  if (kind == HALYARD_OPERATION_COPY || kind == HALYARD_OPERATION_UPDATE) ++copies;
  return counted.queue_submit(device, submission);
}

__attribute__((destructor)) static void tell(void) {
  fprintf(stderr, "%s: %d imports, %d copies\n", COUNTED_NAME, (int)imports, (int)copies);
}

int32_t halyard_driver_negotiate(const halyard_driver_request_t* request, halyard_driver_reply_t* reply) {
  void* library = dlopen(COUNTED_FILE, RTLD_NOW | RTLD_LOCAL);
  halyard_driver_negotiate_fn negotiate =
      library ? (halyard_driver_negotiate_fn)dlsym(library, HALYARD_DRIVER_NEGOTIATE_SYMBOL) : 0;
  if (!negotiate) {
    snprintf(reply->refusal, sizeof reply->refusal, "%s", dlerror());
    return 0;
  }
  if (!negotiate(request, reply)) return 0;
  counted = own = *reply->table;
  own.memory_import = memory_import;
  own.command_list_create = command_list_create;
  own.queue_submit = queue_submit;
  reply->table = &own;
  return 1;
}
