/* A later failure of a semaphore replaces the first one in queries. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("later-failure", "1.0", "null");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  halyard_driver_semaphore_t semaphore;
  halyard_status_t status;
} last; /* of the semaphore that failed last */

static void forget(void) {
  services->status_release(services->host, last.status);
  last.semaphore = NULL;
  last.status = NULL;
}

static void semaphore_fail(halyard_driver_semaphore_t semaphore, halyard_status_t status) {
  pthread_mutex_lock(&lock);
  forget();
  last.semaphore = semaphore;
  last.status = services->status_retain(services->host, status);
  pthread_mutex_unlock(&lock);
  good.semaphore_fail(semaphore, status);
}

static halyard_status_t semaphore_query(halyard_driver_semaphore_t semaphore, uint64_t* value) {
  halyard_status_t failure = good.semaphore_query(semaphore, value);
  pthread_mutex_lock(&lock);
  if (failure && semaphore == last.semaphore) {
    services->status_release(services->host, failure);
    failure = services->status_retain(services->host, last.status);
  }
  pthread_mutex_unlock(&lock);
  return failure;
}

static void semaphore_destroy(halyard_driver_device_t device, halyard_driver_semaphore_t semaphore) {
  pthread_mutex_lock(&lock);
  if (semaphore == last.semaphore) forget();
  pthread_mutex_unlock(&lock);
  good.semaphore_destroy(device, semaphore);
}

static void spoil(halyard_driver_table_t* table) {
  table->semaphore_fail = semaphore_fail;
  table->semaphore_query = semaphore_query;
  table->semaphore_destroy = semaphore_destroy;
}
