/* Statistics are counted once for all devices of the process. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("statistics-of-all", "1.0", "null");

enum { MOST = 64 };
static halyard_driver_device_t devices[MOST];

static halyard_status_t device_open(halyard_driver_instance_t instance,
                                    const halyard_device_open_args_t* args, halyard_driver_device_t* device) {
  halyard_status_t status = good.device_open(instance, args, device);
  for (int i = 0; !status && i < MOST; ++i)
    if (!devices[i]) {
      devices[i] = *device;
      break;
    }
  return status;
}

static void device_close(halyard_driver_device_t device) {
  for (int i = 0; i < MOST; ++i)
    if (devices[i] == device) devices[i] = NULL;
  good.device_close(device);
}

static halyard_status_t device_memory_statistics(halyard_driver_device_t device,
                                                 halyard_memory_statistics_t* statistics) {
  halyard_status_t status = good.device_memory_statistics(device, statistics);
  for (int i = 0; !status && i < MOST; ++i) {
    if (!devices[i] || devices[i] == device) continue;
    halyard_memory_statistics_t other = {.struct_size = sizeof other};
    status = good.device_memory_statistics(devices[i], &other);
    statistics->host_bytes_live += other.host_bytes_live;
    statistics->host_bytes_peak += other.host_bytes_peak;
    statistics->host_bytes_allocated += other.host_bytes_allocated;
    statistics->host_bytes_freed += other.host_bytes_freed;
  }
  return status;
}

static void spoil(halyard_driver_table_t* table) {
  table->device_open = device_open;
  table->device_close = device_close;
  table->device_memory_statistics = device_memory_statistics;
}
