/* Passes the grid to the device as a count of invocations instead of workgroups, for kernels with several
 * invocations. */
#define BASE_DRIVER LOCAL_DRIVER
#include "dispatches.h"

HALYARD_DRIVER_NOTE("wrong-local-size", "1.0", "local-sync,local-task");

static void change(halyard_command_dispatch_t* dispatch) {
  halyard_function_info_t info = {.struct_size = sizeof info};
  services->status_release(services->host,
                           good.executable_function_info(dispatch->executable, dispatch->function, &info));
  if (info.name.size == strlen("spread") && memcmp(info.name.data, "spread", info.name.size) == 0)
    dispatch->workgroups[0] = (dispatch->workgroups[0] + 3) / 4;
}

static void spoil(halyard_driver_table_t* table) { table->command_list_create = command_list_create; }
