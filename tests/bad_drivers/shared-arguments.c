/* A kernel object stores its constants; a submitting thread sets them and then launches it. Two threads use
 * the same storage concurrently: a thread launches only after another one has set its constants, where there
 * is one. */
#include <unistd.h>

#define BASE_DRIVER LOCAL_DRIVER
#include "wrapped.h"

HALYARD_DRIVER_NOTE("shared-arguments", "1.0", "local-sync,local-task");

enum { MOST = 16 };
static uint32_t launches;
static uint32_t places[MOST]; /* of any kernel: the cases that check use two constants */

typedef struct {
  halyard_driver_command_list_t good;
  halyard_command_list_args_t args;
  int is_one_dispatch;
} list_t;

static halyard_status_t command_list_create(halyard_driver_device_t device,
                                            const halyard_command_list_args_t* args,
                                            halyard_driver_command_list_t* list) {
  list_t* made = calloc(1, sizeof *made);
  halyard_status_t status = good.command_list_create(device, args, &made->good);
  if (status) {
    free(made);
    return status;
  }
  made->args = *args;
  made->is_one_dispatch = args->command_count == 1 && args->commands->kind == HALYARD_COMMAND_DISPATCH;
  *list = (halyard_driver_command_list_t)made;
  return NULL;
}

static void command_list_destroy(halyard_driver_device_t device, halyard_driver_command_list_t list) {
  good.command_list_destroy(device, ((list_t*)list)->good);
  free(list);
}

typedef struct {
  halyard_command_dispatch_t dispatch;
  uint32_t constants[MOST];
  halyard_driver_device_t device;
  halyard_driver_command_list_t list;
  halyard_completed_fn completed;
  void* user;
} launch_t;

static void complete(void* user, halyard_status_t status) {
  launch_t* launch = user;
  good.command_list_destroy(launch->device, launch->list);
  launch->completed(launch->user, status);
  free(launch);
}

static halyard_status_t queue_submit(halyard_driver_device_t device, const halyard_submission_t* submission) {
  if (submission->operation->kind != HALYARD_OPERATION_EXECUTE) return good.queue_submit(device, submission);
  const list_t* list = (const list_t*)submission->operation->execute.list;
  halyard_operation_t operation = {.struct_size = sizeof operation, .kind = HALYARD_OPERATION_EXECUTE};
  operation.execute = submission->operation->execute;
  operation.execute.list = list->good;
  halyard_submission_t changed = *submission;
  changed.operation = &operation;
  const halyard_command_dispatch_t* dispatch = (const void*)list->args.commands;
  if (!list->is_one_dispatch || dispatch->constant_count > MOST || submission->wait_count > 0)
    return good.queue_submit(device, &changed);
  /* Set the arguments ... */
  for (uint32_t i = 0; i < dispatch->constant_count; ++i)
    __atomic_store_n(&places[i], dispatch->constants[i], __ATOMIC_RELAXED);
  const uint32_t own = __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 20 && __atomic_load_n(&launches, __ATOMIC_RELAXED) == own; ++i) usleep(1000);
  /* ... and launch the kernel with the stored arguments. */
  launch_t* launch = calloc(1, sizeof *launch);
  launch->dispatch = *dispatch;
  launch->dispatch.header.size = sizeof launch->dispatch;
  for (uint32_t i = 0; i < MOST; ++i) launch->constants[i] = __atomic_load_n(&places[i], __ATOMIC_RELAXED);
  launch->dispatch.constants = launch->constants;
  launch->device = device;
  launch->completed = submission->completed;
  launch->user = submission->completed_user;
  halyard_command_list_args_t args = list->args;
  args.commands = &launch->dispatch.header;
  args.commands_size = sizeof launch->dispatch;
  halyard_status_t status = good.command_list_create(device, &args, &launch->list);
  if (status) {
    free(launch);
    return status;
  }
  operation.execute.list = launch->list;
  changed.completed = complete;
  changed.completed_user = launch;
  return good.queue_submit(device, &changed);
}

static void spoil(halyard_driver_table_t* table) {
  table->command_list_create = command_list_create;
  table->command_list_destroy = command_list_destroy;
  table->queue_submit = queue_submit;
}
