/* The timelines of all devices are in one list; a device that closes fails all of them. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("timelines-of-all", "1.0", "null");

enum { MOST = 4096 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static halyard_driver_semaphore_t timelines[MOST];

/* Puts `now` into the entry that has `before`. */
static void replace(halyard_driver_semaphore_t before, halyard_driver_semaphore_t now) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MOST; ++i)
    if (timelines[i] == before) {
      timelines[i] = now;
      break;
    }
  pthread_mutex_unlock(&lock);
}

static halyard_status_t semaphore_create(halyard_driver_device_t device, uint64_t initial,
                                         halyard_driver_semaphore_t* semaphore) {
  halyard_status_t status = good.semaphore_create(device, initial, semaphore);
  if (!status) replace(NULL, *semaphore);
  return status;
}

static void semaphore_destroy(halyard_driver_device_t device, halyard_driver_semaphore_t semaphore) {
  replace(semaphore, NULL);
  good.semaphore_destroy(device, semaphore);
}

static void device_close(halyard_driver_device_t device) {
  static const char closed[] = "the device was closed";
  for (int i = 0; i < MOST; ++i)
    if (timelines[i])
      good.semaphore_fail(
          timelines[i], services->status_create(services->host, HALYARD_ABORTED, closed, sizeof closed - 1));
  good.device_close(device);
}

static void spoil(halyard_driver_table_t* table) {
  table->semaphore_create = semaphore_create;
  table->semaphore_destroy = semaphore_destroy;
  table->device_close = device_close;
}
