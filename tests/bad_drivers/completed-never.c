/* `completed` of work whose wait failed after it was submitted is not called. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("completed-never", "1.0", "null");

typedef struct {
  halyard_completed_fn completed;
  void* user;
  int submitted;
} held_t;

static void complete(void* user, halyard_status_t status) {
  held_t* held = user;
  if (status && held->submitted) {
    services->status_release(services->host, status);
  } else {
    held->completed(held->user, status);
  }
}

static halyard_status_t queue_submit(halyard_driver_device_t device, const halyard_submission_t* submission) {
  static held_t all[1 << 16]; /* more than the suite submits in one case that fails work */
  static size_t count;
  held_t* held = &all[__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) % (sizeof all / sizeof all[0])];
  *held = (held_t){submission->completed, submission->completed_user, 0};
  halyard_submission_t spoiled = *submission;
  spoiled.completed = complete;
  spoiled.completed_user = held;
  halyard_status_t status = good.queue_submit(device, &spoiled);
  held->submitted = 1;
  return status;
}

static void spoil(halyard_driver_table_t* table) { table->queue_submit = queue_submit; }
