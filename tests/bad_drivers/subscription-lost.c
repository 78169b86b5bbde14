/* Subscribing checks the value before it adds the subscriber to the list: a signal in between is lost. There
 * is time for one, so that every run of the test loses some. */
#include <unistd.h>

#include "wrapped.h"

HALYARD_DRIVER_NOTE("subscription-lost", "1.0", "null");

static int is_over(halyard_driver_semaphore_t semaphore, uint64_t value) {
  uint64_t now = 0;
  halyard_status_t failure = good.semaphore_query(semaphore, &now);
  services->status_release(services->host, failure);
  return failure || now >= value;
}

static halyard_status_t semaphore_subscribe(halyard_driver_semaphore_t semaphore, uint64_t value,
                                            halyard_subscriber_fn subscriber, void* user) {
  if (is_over(semaphore, value)) return good.semaphore_subscribe(semaphore, value, subscriber, user);
  for (int i = 0; i < 4; ++i) {
    usleep(500);
    /* It is added for the next signal, and there is no other. */
    if (is_over(semaphore, value)) return NULL;
  }
  return good.semaphore_subscribe(semaphore, value, subscriber, user);
}

static void spoil(halyard_driver_table_t* table) { table->semaphore_subscribe = semaphore_subscribe; }
