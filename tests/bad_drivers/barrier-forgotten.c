/* Starts the commands of a short list in order, each on a thread of its own, and ignores barriers. */
#include "copies.h"

HALYARD_DRIVER_NOTE("barrier-forgotten", "1.0", "null");

enum { FEW = 4 };

/* The list as a list of null, and a list for each of its few commands. */
typedef struct {
  halyard_driver_command_list_t whole;
  uint32_t count;
  halyard_driver_command_list_t each[FEW];
} list_t;

static halyard_status_t command_list_create(halyard_driver_device_t device,
                                            const halyard_command_list_args_t* args,
                                            halyard_driver_command_list_t* list) {
  list_t made = {NULL, 0, {NULL}};
  halyard_status_t status = good.command_list_create(device, args, &made.whole);
  if (status) return status;
  uint32_t transfers = 0;
  const halyard_command_t* command = args->commands;
  for (uint32_t i = 0; i < args->command_count; ++i) {
    const uint32_t kind = command->kind;
    if (kind >= HALYARD_COMMAND_FILL && kind <= HALYARD_COMMAND_COPY && transfers++ < FEW) {
      halyard_command_list_args_t one = *args;
      one.commands = command;
      one.command_count = 1;
      services->status_release(services->host,
                               good.command_list_create(device, &one, &made.each[made.count++]));
    }
    command = (const void*)((const char*)command + command->size);
  }
  if (transfers > FEW) {
    for (uint32_t i = 0; i < FEW; ++i) good.command_list_destroy(device, made.each[i]);
    made.count = 0;
  }
  *list = copied(&made, sizeof made);
  return NULL;
}

static void command_list_destroy(halyard_driver_device_t device, halyard_driver_command_list_t list) {
  list_t* it = (list_t*)list;
  for (uint32_t i = 0; i < it->count; ++i) good.command_list_destroy(device, it->each[i]);
  good.command_list_destroy(device, it->whole);
  free(it);
}

typedef struct {
  queued_t* from;
  halyard_driver_command_list_t list;
} part_t;

static void nobody(void* user, halyard_status_t status) {
  (void)user;
  services->status_release(services->host, status);
}

static void* run_part(void* user) {
  part_t* part = user;
  halyard_operation_t operation = part->from->operation;
  operation.execute.list = part->list;
  halyard_submission_t alone = part->from->submission;
  alone.wait_count = alone.signal_count = 0;
  alone.operation = &operation;
  alone.completed = nobody;
  services->status_release(services->host, good.queue_submit(part->from->device, &alone));
  return NULL;
}

/* The waits are over. */
static void run_parts(void* user, halyard_status_t failure) {
  queued_t* it = user;
  list_t* list = (list_t*)it->operation.execute.list;
  part_t parts[FEW];
  pthread_t threads[FEW];
  if (!failure) {
    for (uint32_t i = 0; i < list->count; ++i) {
      parts[i] = (part_t){it, list->each[i]};
      pthread_create(&threads[i], NULL, run_part, &parts[i]);
    }
    for (uint32_t i = 0; i < list->count; ++i) pthread_join(threads[i], NULL);
    it->submission.wait_count = 0;
    it->operation.kind = HALYARD_OPERATION_BARRIER;
  } else {
    it->operation.execute.list = list->whole; /* null skips it */
  }
  services->status_release(services->host, failure);
  void* const bindings = (void*)it->operation.execute.bindings;
  services->status_release(services->host, good.queue_submit(it->device, &it->submission));
  it->operation.kind = HALYARD_OPERATION_EXECUTE;
  it->operation.execute.bindings = bindings;
  destroy(it);
}

static halyard_status_t submit(halyard_driver_device_t device, const halyard_submission_t* submission) {
  const halyard_operation_t* operation = submission->operation;
  if (operation->kind != HALYARD_OPERATION_EXECUTE) return good.queue_submit(device, submission);
  list_t* list = (list_t*)operation->execute.list;
  halyard_submission_t changed = *submission;
  halyard_operation_t other = {.struct_size = sizeof other, .kind = HALYARD_OPERATION_EXECUTE};
  other.execute = operation->execute;
  other.execute.list = list->whole;
  changed.operation = &other;
  if (list->count < 2 || submission->extensions) return good.queue_submit(device, &changed);
  other.kind = HALYARD_OPERATION_BARRIER;
  changed.signal_count = 0;
  changed.completed = run_parts;
  changed.completed_user = copy_of(device, submission);
  return good.queue_submit(device, &changed);
}

static void spoil(halyard_driver_table_t* table) {
  table->command_list_create = command_list_create;
  table->command_list_destroy = command_list_destroy;
  table->queue_submit = submit;
}
