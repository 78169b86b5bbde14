/* Functions have lost their names, so that no case can dispatch one. */
#define BASE_DRIVER LOCAL_DRIVER
#include "wrapped.h"

HALYARD_DRIVER_NOTE("nameless", "1.0", "local-sync,local-task");

static halyard_status_t executable_function_info(halyard_driver_executable_t executable, uint32_t function,
                                                 halyard_function_info_t* info) {
  halyard_status_t status = good.executable_function_info(executable, function, info);
  if (!status) info->name.size = 0;
  return status;
}

static void spoil(halyard_driver_table_t* table) {
  table->executable_function_info = executable_function_info;
}
