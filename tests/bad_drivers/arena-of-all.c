/* All devices allocate from one arena, which is cleared when one of them closes. */
#include "wrapped.h"

HALYARD_DRIVER_NOTE("arena-of-all", "1.0", "null");

typedef struct block {
  struct block* next;
  halyard_driver_memory_t memory;
  void* bytes;
  uint64_t size;
} block_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block_t* blocks;

static halyard_status_t memory_allocate(halyard_driver_device_t device,
                                        const halyard_memory_request_t* request,
                                        halyard_driver_memory_t* memory, halyard_memory_info_t* info) {
  halyard_status_t status = good.memory_allocate(device, request, memory, info);
  if (status) return status;
  block_t* block = calloc(1, sizeof *block);
  block->memory = *memory;
  block->size = request->size;
  status = good.memory_map(device, *memory, HALYARD_MAP_WRITE, 0, request->size, &block->bytes);
  if (!status) good.memory_unmap(device, *memory);  /* the bytes stay until the memory is freed */
  pthread_mutex_lock(&lock);
  block->next = blocks;
  blocks = block;
  pthread_mutex_unlock(&lock);
  return status;
}

static void memory_free(halyard_driver_device_t device, halyard_driver_memory_t memory) {
  pthread_mutex_lock(&lock);
  for (block_t** at = &blocks; *at; at = &(*at)->next)
    if ((*at)->memory == memory) {
      block_t* block = *at;
      *at = block->next;
      free(block);
      break;
    }
  pthread_mutex_unlock(&lock);
  good.memory_free(device, memory);
}

static void device_close(halyard_driver_device_t device) {
  pthread_mutex_lock(&lock);
  for (block_t* block = blocks; block; block = block->next)
    if (block->size) memset(block->bytes, 0, block->size);
  pthread_mutex_unlock(&lock);
  good.device_close(device);
}

static void spoil(halyard_driver_table_t* table) {
  table->memory_allocate = memory_allocate;
  table->memory_free = memory_free;
  table->device_close = device_close;
}
