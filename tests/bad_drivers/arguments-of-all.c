/* The n-th list of every device keeps the constants of its dispatch in the same place. */
#define BASE_DRIVER LOCAL_DRIVER
#include "wrapped.h"

HALYARD_DRIVER_NOTE("arguments-of-all", "1.0", "local-sync,local-task");

enum { MOST = 64, LISTS = 1 << 14, DEVICES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t places[LISTS][MOST];
static struct {
  halyard_driver_device_t device;
  uint32_t lists;
} counts[DEVICES];

static uint32_t* place_of_next(halyard_driver_device_t device) {
  uint32_t number = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < DEVICES; ++i)
    if (!counts[i].device || counts[i].device == device) {
      counts[i].device = device;
      number = counts[i].lists++ % LISTS;
      break;
    }
  pthread_mutex_unlock(&lock);
  return places[number];
}

/* A list of one dispatch; it is never freed, because it must outlive the driver's list. */
static halyard_status_t command_list_create(halyard_driver_device_t device,
                                            const halyard_command_list_args_t* args,
                                            halyard_driver_command_list_t* list) {
  const halyard_command_dispatch_t* dispatch = (const void*)args->commands;
  if (args->command_count != 1 || dispatch->header.kind != HALYARD_COMMAND_DISPATCH ||
      dispatch->constant_count > MOST)
    return good.command_list_create(device, args, list);
  static halyard_command_dispatch_t* kept;
  halyard_command_dispatch_t* own = malloc(sizeof *own + sizeof kept);
  halyard_command_dispatch_t* before = __atomic_exchange_n(&kept, own, __ATOMIC_RELAXED);
  memcpy((void*)(own + 1), &before, sizeof before);
  *own = *dispatch;
  own->header.size = sizeof *own;
  uint32_t* place = place_of_next(device);
  if (own->constant_count) memcpy(place, own->constants, own->constant_count * sizeof *place);
  own->constants = place;
  halyard_command_list_args_t spoiled = *args;
  spoiled.commands = &own->header;
  spoiled.commands_size = sizeof *own;
  return good.command_list_create(device, &spoiled, list);
}

static void spoil(halyard_driver_table_t* table) { table->command_list_create = command_list_create; }
