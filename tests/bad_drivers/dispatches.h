/* Changes the dispatches of lists when the lists are created. A variant defines `change`. */
#ifndef HALYARD_TESTS_DISPATCHES_H_
#define HALYARD_TESTS_DISPATCHES_H_

#include "wrapped.h"

static void change(halyard_command_dispatch_t* dispatch);

/* A copy of the commands, modified by `change`. Never freed, because it must outlive the list. */
static halyard_status_t command_list_create(halyard_driver_device_t device,
                                            const halyard_command_list_args_t* args,
                                            halyard_driver_command_list_t* list) {
  static char* kept; /* all copies, linked */
  char* block = malloc(args->commands_size + sizeof(char*));
  char* commands = block + sizeof(char*);
  char* before = __atomic_exchange_n(&kept, block, __ATOMIC_RELAXED);
  memcpy(block, &before, sizeof before);
  if (args->commands_size) memcpy(commands, args->commands, args->commands_size);
  char* at = commands;
  for (uint32_t i = 0; i < args->command_count; ++i) {
    halyard_command_dispatch_t dispatch;
    memcpy(&dispatch.header, at, sizeof dispatch.header);
    if (dispatch.header.kind == HALYARD_COMMAND_DISPATCH) {
      memcpy(&dispatch, at, sizeof dispatch);
      change(&dispatch);
      memcpy(at, &dispatch, sizeof dispatch);
    }
    at += dispatch.header.size;
  }
  halyard_command_list_args_t spoiled = *args;
  spoiled.commands = (const void*)commands;
  return good.command_list_create(device, &spoiled, list);
}

#endif /* HALYARD_TESTS_DISPATCHES_H_ */
