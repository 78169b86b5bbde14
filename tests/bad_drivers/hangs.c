/* A wait ignores its deadline. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("hangs", "1.0", "null");

static halyard_status_t semaphore_wait(halyard_driver_device_t device,
                                       const halyard_semaphore_wait_args_t* args) {
  halyard_semaphore_wait_args_t spoiled = *args;
  spoiled.deadline_ns = HALYARD_WAIT_FOREVER;
  return good.semaphore_wait(device, &spoiled);
}

static void spoil(halyard_driver_table_t* table) { table->semaphore_wait = semaphore_wait; }
