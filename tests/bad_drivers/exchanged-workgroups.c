/* The second and the third dimension of a grid are exchanged when it is launched. */
#define BASE_DRIVER LOCAL_DRIVER
#include "dispatches.h"

HALYARD_DRIVER_NOTE("exchanged-workgroups", "1.0", "local-sync,local-task");

static void change(halyard_command_dispatch_t* dispatch) {
  const uint32_t y = dispatch->workgroups[1];
  dispatch->workgroups[1] = dispatch->workgroups[2];
  dispatch->workgroups[2] = y;
}

static void spoil(halyard_driver_table_t* table) { table->command_list_create = command_list_create; }
