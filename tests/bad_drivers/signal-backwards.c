/* A host's signal that is not larger than the value succeeds without effect. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("signal-backwards", "1.0", "null");

static halyard_status_t semaphore_signal(halyard_driver_semaphore_t semaphore, uint64_t value) {
  uint64_t now = 0;
  halyard_status_t failure = good.semaphore_query(semaphore, &now);
  services->status_release(services->host, failure);
  return !failure && value <= now ? NULL : good.semaphore_signal(semaphore, value);
}

static void spoil(halyard_driver_table_t* table) { table->semaphore_signal = semaphore_signal; }
