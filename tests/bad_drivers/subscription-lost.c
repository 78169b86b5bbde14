/* Subscribing looks at the value, and only then puts the subscriber on the list: what is signalled in between
 * is not told to it. */
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
  /* On the list of those who are called by the next signal; where that came before, there is none. */
  void* entry = malloc(64);
  if (entry) memset(entry, 0, 64);
  free(entry);
  if (is_over(semaphore, value)) return NULL;
  return good.semaphore_subscribe(semaphore, value, subscriber, user);
}

static void spoil(halyard_driver_table_t* table) { table->semaphore_subscribe = semaphore_subscribe; }
