/* `completed` of work that was skipped is called a second time. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("completed-twice", "1.0", "null");

typedef struct {
  halyard_completed_fn completed;
  void* user;
} held_t;

static void complete(void* user, halyard_status_t status) {
  held_t* held = user;
  const int failed = status != NULL;
  held->completed(held->user, status);
  if (failed) held->completed(held->user, NULL);
  free(held);
}

static halyard_status_t queue_submit(halyard_driver_device_t device, const halyard_submission_t* submission) {
  held_t* held = malloc(sizeof *held);
  *held = (held_t){submission->completed, submission->completed_user};
  halyard_submission_t spoiled = *submission;
  spoiled.completed = complete;
  spoiled.completed_user = held;
  halyard_status_t status = good.queue_submit(device, &spoiled);
  if (status) free(held);
  return status;
}

static void spoil(halyard_driver_table_t* table) { table->queue_submit = queue_submit; }
