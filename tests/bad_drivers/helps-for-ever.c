/* device_help does not return before its timepoints are reached. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("helps-for-ever", "1.0", "null");

static void device_help(halyard_driver_device_t device, const halyard_semaphore_wait_args_t* args) {
  services->status_release(services->host, good.semaphore_wait(device, args));
}

static void spoil(halyard_driver_table_t* table) { table->device_help = device_help; }
