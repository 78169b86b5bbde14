/* No bug: executables are slow to load, as if the device compiled them. */
#define BASE_DRIVER LOCAL_DRIVER
#include <unistd.h>

#include "wrapped.h"

HALYARD_DRIVER_NOTE("slow-to-load", "1.0", "local-sync,local-task");

static halyard_status_t executable_create(halyard_driver_device_t device,
                                          const halyard_executable_args_t* args,
                                          halyard_driver_executable_t* executable) {
  usleep(10000);
  return good.executable_create(device, args, executable);
}

static void spoil(halyard_driver_table_t* table) { table->executable_create = executable_create; }
