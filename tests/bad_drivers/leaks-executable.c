/* Leaks the resources of an executable. */
#define BASE_DRIVER LOCAL_DRIVER
#include "wrapped.h"

HALYARD_DRIVER_NOTE("leaks-executable", "1.0", "local-sync,local-task");

static void executable_destroy(halyard_driver_device_t device, halyard_driver_executable_t handle) {
  (void)device, (void)handle;
}

static void spoil(halyard_driver_table_t* table) { table->executable_destroy = executable_destroy; }
