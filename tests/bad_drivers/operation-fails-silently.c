/* Reports a failed operation as successful: signals are signalled, and `completed` gets success. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("operation-fails-silently", "1.0", "null");

typedef struct {
  halyard_completed_fn completed;
  void* user;
  uint32_t wait_count, signal_count;
  halyard_timepoint_t points[]; /* waits, then signals */
} held_t;

static int wait_has_failed(const held_t* held) {
  for (uint32_t i = 0; i < held->wait_count; ++i) {
    uint64_t value = 0;
    halyard_status_t failure = good.semaphore_query(held->points[i].semaphore, &value);
    services->status_release(services->host, failure);
    if (failure) return 1;
  }
  return 0;
}

static void finish(void* user, halyard_status_t status) {
  held_t* held = user;
  const int skipped = status && wait_has_failed(held);
  for (uint32_t i = 0; i < held->signal_count; ++i) {
    const halyard_timepoint_t* point = &held->points[held->wait_count + i];
    uint64_t value = 0;
    if (skipped) {
      good.semaphore_fail(point->semaphore, services->status_retain(services->host, status));
      continue;
    }
    halyard_status_t failure = good.semaphore_query(point->semaphore, &value);
    services->status_release(services->host, failure);
    if (!failure && value < point->value) good.semaphore_signal(point->semaphore, point->value);
  }
  if (!skipped) {
    services->status_release(services->host, status);
    status = NULL;
  }
  held->completed(held->user, status);
  free(held);
}

static halyard_status_t queue_submit(halyard_driver_device_t device, const halyard_submission_t* submission) {
  const uint32_t waits = submission->wait_count, signals = submission->signal_count;
  held_t* held = malloc(sizeof *held + (waits + signals) * sizeof(halyard_timepoint_t));
  held->completed = submission->completed;
  held->user = submission->completed_user;
  held->wait_count = waits;
  held->signal_count = signals;
  for (uint32_t i = 0; i < waits; ++i) held->points[i] = submission->waits[i];
  for (uint32_t i = 0; i < signals; ++i) held->points[waits + i] = submission->signals[i];
  halyard_submission_t spoiled = *submission;
  spoiled.signal_count = 0;
  spoiled.completed = finish;
  spoiled.completed_user = held;
  halyard_status_t status = good.queue_submit(device, &spoiled);
  if (status) free(held);
  return status;
}

static void spoil(halyard_driver_table_t* table) { table->queue_submit = queue_submit; }
