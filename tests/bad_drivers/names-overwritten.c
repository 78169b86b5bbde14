/* The names of all functions are in one buffer, which the next question overwrites. */
#define BASE_DRIVER LOCAL_DRIVER
#include "wrapped.h"

HALYARD_DRIVER_NOTE("names-overwritten", "1.0", "local-sync,local-task");

static halyard_status_t executable_function_info(halyard_driver_executable_t executable, uint32_t function,
                                                 halyard_function_info_t* info) {
  static _Thread_local char name[64];
  halyard_status_t status = good.executable_function_info(executable, function, info);
  if (status || info->name.size > sizeof name) return status;
  memcpy(name, info->name.data, info->name.size);
  info->name.data = name;
  return NULL;
}

static void spoil(halyard_driver_table_t* table) {
  table->executable_function_info = executable_function_info;
}
