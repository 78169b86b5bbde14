/* Leaks memory. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("leaks-memory", "1.0", "null");

static void memory_free(halyard_driver_device_t device, halyard_driver_memory_t handle) {
  (void)device, (void)handle;
}

static void spoil(halyard_driver_table_t* table) { table->memory_free = memory_free; }
