/* Leaks the resources of a command list. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("leaks-list", "1.0", "null");

static void command_list_destroy(halyard_driver_device_t device, halyard_driver_command_list_t handle) {
  (void)device, (void)handle;
}

static void spoil(halyard_driver_table_t* table) { table->command_list_destroy = command_list_destroy; }
