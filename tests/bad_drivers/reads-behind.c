/* Treats an executable as zero-terminated text: reads one byte past its end. */
#define BASE_DRIVER LOCAL_DRIVER
#include "wrapped.h"

HALYARD_DRIVER_NOTE("reads-behind", "1.0", "local-sync,local-task");

static halyard_status_t executable_create(halyard_driver_device_t device,
                                          const halyard_executable_args_t* args,
                                          halyard_driver_executable_t* executable) {
  const volatile char* text = args->data;
  if (args->data_size > 0) (void)text[args->data_size];
  return good.executable_create(device, args, executable);
}

static void spoil(halyard_driver_table_t* table) { table->executable_create = executable_create; }
