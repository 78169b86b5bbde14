/* One thread runs all work and all callbacks, including subscribers: one that waits for later work blocks it
 * for ever. Work that null does at once (alloca, refusals) is unchanged. */
#include "copies.h"

HALYARD_DRIVER_NOTE("callbacks-on-the-queue", "1.0", "null");

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_changed = PTHREAD_COND_INITIALIZER;
static queued_t *queue_first, **queue_last = &queue_first;
static int queue_started, queue_busy;

static int can_be_queued(const halyard_submission_t* submission) {
  const uint32_t kind = submission->operation->kind;
  return (kind == HALYARD_OPERATION_BARRIER || kind == HALYARD_OPERATION_EXECUTE) && !submission->extensions;
}

static void* queue_thread(void* unused) {
  (void)unused;
  pthread_mutex_lock(&queue_lock);
  for (;;) {
    queue_busy = 0;
    pthread_cond_broadcast(&queue_changed);
    while (!queue_first) pthread_cond_wait(&queue_changed, &queue_lock);
    queued_t* it = queue_first;
    queue_first = it->next;
    if (!queue_first) queue_last = &queue_first;
    queue_busy = 1;
    pthread_mutex_unlock(&queue_lock);
    services->status_release(services->host, good.queue_submit(it->device, &it->submission));
    destroy(it);
    pthread_mutex_lock(&queue_lock);
  }
  return NULL;
}

static halyard_status_t queue_submit(halyard_driver_device_t device, const halyard_submission_t* submission) {
  if (!can_be_queued(submission)) return good.queue_submit(device, submission);
  queued_t* it = copy_of(device, submission);
  pthread_mutex_lock(&queue_lock);
  if (!queue_started) {
    pthread_t thread;
    queue_started = pthread_create(&thread, NULL, queue_thread, NULL) == 0;
    pthread_detach(thread);
  }
  *queue_last = it;
  queue_last = &it->next;
  pthread_cond_broadcast(&queue_changed);
  pthread_mutex_unlock(&queue_lock);
  return NULL;
}

static void device_close(halyard_driver_device_t device) {
  pthread_mutex_lock(&queue_lock);
  while (queue_first || queue_busy) pthread_cond_wait(&queue_changed, &queue_lock);
  pthread_mutex_unlock(&queue_lock);
  good.device_close(device);
}

static halyard_status_t device_properties(halyard_driver_device_t device,
                                          halyard_device_properties_t* properties) {
  halyard_status_t status = good.device_properties(device, properties);
  if (!status) properties->capabilities &= ~(uint32_t)HALYARD_DEVICE_RUNS_IN_CALLER;
  return status;
}

static void spoil(halyard_driver_table_t* table) {
  table->queue_submit = queue_submit;
  table->device_close = device_close;
  table->device_properties = device_properties;
}
