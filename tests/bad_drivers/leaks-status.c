/* A query retains the failure once too often. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("leaks-status", "1.0", "null");

static halyard_status_t semaphore_query(halyard_driver_semaphore_t semaphore, uint64_t* value) {
  return services->status_retain(services->host, good.semaphore_query(semaphore, value));
}

static void spoil(halyard_driver_table_t* table) { table->semaphore_query = semaphore_query; }
