/* The name of a device is freed when a device is opened. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("device-names-freed", "1.0", "null");

static char* name;

static halyard_status_t enumerate_devices(halyard_driver_instance_t instance, uint32_t capacity,
                                          halyard_device_info_t* infos, uint32_t* count) {
  halyard_status_t status = good.enumerate_devices(instance, capacity, infos, count);
  if (!status && capacity > 0) infos->name = name = name ? name : strdup("memory of the host");
  return status;
}

static halyard_status_t device_open(halyard_driver_instance_t instance,
                                    const halyard_device_open_args_t* args, halyard_driver_device_t* device) {
  free(name);
  name = NULL;
  return good.device_open(instance, args, device);
}

static void spoil(halyard_driver_table_t* table) {
  table->enumerate_devices = enumerate_devices;
  table->device_open = device_open;
}
