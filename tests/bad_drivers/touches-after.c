/* A list counts its submissions and decrements the count after `completed`, when the list may be destroyed.
 */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("touches-after", "1.0", "null");

typedef struct {
  halyard_driver_command_list_t good;
  void* reserved[4];
  uint64_t in_use;
} list_t;

typedef struct {
  halyard_completed_fn completed;
  void* user;
  list_t* list;
} held_t;

static halyard_status_t command_list_create(halyard_driver_device_t device,
                                            const halyard_command_list_args_t* args,
                                            halyard_driver_command_list_t* list) {
  list_t* made = calloc(1, sizeof *made);
  halyard_status_t status = good.command_list_create(device, args, &made->good);
  if (status) {
    free(made);
  } else {
    *list = (halyard_driver_command_list_t)made;
  }
  return status;
}

static void command_list_destroy(halyard_driver_device_t device, halyard_driver_command_list_t list) {
  good.command_list_destroy(device, ((list_t*)list)->good);
  free(list);
}

static void complete(void* user, halyard_status_t status) {
  held_t held = *(held_t*)user;
  free(user);
  held.completed(held.user, status);
  __atomic_fetch_sub(&held.list->in_use, 1, __ATOMIC_RELAXED);
}

static halyard_status_t queue_submit(halyard_driver_device_t device, const halyard_submission_t* submission) {
  if (submission->operation->kind != HALYARD_OPERATION_EXECUTE) return good.queue_submit(device, submission);
  list_t* list = (list_t*)submission->operation->execute.list;
  held_t* held = malloc(sizeof *held);
  *held = (held_t){submission->completed, submission->completed_user, list};
  halyard_operation_t operation = {.struct_size = sizeof operation, .kind = HALYARD_OPERATION_EXECUTE};
  operation.execute = submission->operation->execute;
  operation.execute.list = list->good;
  halyard_submission_t spoiled = *submission;
  spoiled.operation = &operation;
  spoiled.completed = complete;
  spoiled.completed_user = held;
  __atomic_fetch_add(&list->in_use, 1, __ATOMIC_RELAXED);
  halyard_status_t status = good.queue_submit(device, &spoiled);
  if (!status) return NULL;
  __atomic_fetch_sub(&list->in_use, 1, __ATOMIC_RELAXED);
  free(held);
  return status;
}

static void spoil(halyard_driver_table_t* table) {
  table->command_list_create = command_list_create;
  table->command_list_destroy = command_list_destroy;
  table->queue_submit = queue_submit;
}
