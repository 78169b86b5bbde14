/* A fill of single bytes that begins 5 bytes after a multiple of 64 writes one byte too many. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("fill-too-far", "1.0", "null");

static halyard_status_t command_list_create(halyard_driver_device_t device,
                                            const halyard_command_list_args_t* args,
                                            halyard_driver_command_list_t* list) {
  /* Never freed: it must live as long as the list. */
  static void* kept[1 << 16];
  static size_t count;
  char* commands = malloc(args->commands_size + 1);
  kept[__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) % (sizeof kept / sizeof kept[0])] = commands;
  if (args->commands_size) memcpy(commands, args->commands, args->commands_size);
  char* at = commands;
  for (uint32_t i = 0; i < args->command_count; ++i) {
    halyard_command_fill_t fill;
    memcpy(&fill.header, at, sizeof fill.header);
    if (fill.header.kind == HALYARD_COMMAND_FILL) {
      memcpy(&fill, at, sizeof fill);
      if (fill.pattern_size == 1 && fill.target.offset % 64 == 5) ++fill.target.length;
      memcpy(at, &fill, sizeof fill);
    }
    at += fill.header.size;
  }
  halyard_command_list_args_t spoiled = *args;
  spoiled.commands = (const void*)commands;
  return good.command_list_create(device, &spoiled, list);
}

static void spoil(halyard_driver_table_t* table) { table->command_list_create = command_list_create; }
