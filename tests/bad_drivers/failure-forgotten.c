/* Skips work whose wait has failed, but signals as if it had run. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("failure-forgotten", "1.0", "null");

typedef struct {
  halyard_completed_fn completed;
  void* user;
  uint32_t count;
  halyard_timepoint_t signals[];
} held_t;

static void make_signals(void* user, halyard_status_t status) {
  held_t* held = user;
  for (uint32_t i = 0; i < held->count; ++i) {
    const halyard_timepoint_t* point = &held->signals[i];
    uint64_t value = 0;
    halyard_status_t failure = good.semaphore_query(point->semaphore, &value);
    services->status_release(services->host, failure);
    /* Ignores semaphores that have failed or passed the value. */
    if (!failure && value < point->value) good.semaphore_signal(point->semaphore, point->value);
  }
  held->completed(held->user, status);
  free(held);
}

static halyard_status_t queue_submit(halyard_driver_device_t device, const halyard_submission_t* submission) {
  held_t* held = malloc(sizeof *held + submission->signal_count * sizeof(halyard_timepoint_t));
  held->completed = submission->completed;
  held->user = submission->completed_user;
  held->count = submission->signal_count;
  for (uint32_t i = 0; i < held->count; ++i) held->signals[i] = submission->signals[i];
  halyard_submission_t spoiled = *submission;
  spoiled.signal_count = 0;
  spoiled.completed = make_signals;
  spoiled.completed_user = held;
  halyard_status_t status = good.queue_submit(device, &spoiled);
  if (status) free(held);
  return status;
}

static void spoil(halyard_driver_table_t* table) { table->queue_submit = queue_submit; }
