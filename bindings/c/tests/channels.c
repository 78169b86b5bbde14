/* Channels as an embedder uses them: ranks that are threads of this process run a program of examples/, each
 * in a context of its own; what is refused. */
#define _GNU_SOURCE
#include "halyard/channels.h"

#include <pthread.h>
#include <stdlib.h>

#include "check.h"

enum { kRanks = 3, kElements = 5 };

static halyard_instance_t instance;
static halyard_module_t module;

typedef struct rank {
  halyard_channels_t channels;
  uint32_t number;
  float sum[kElements];
} rank_t;

static char* read_text(const char* path, size_t* size) {
  FILE* const file = fopen(path, "rb");
  EXPECT(file);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  EXPECT(fseek(file, 0, SEEK_SET) == 0);
  char* const text = malloc(*size);
  EXPECT(fread(text, 1, *size, file) == *size);
  fclose(file);
  return text;
}

static void* run(void* argument) {
  rank_t* const rank = argument;
  halyard_device_t device = NULL;
  OK(halyard_device_open(instance, rank->number % 2 ? "local-task" : "local-sync", &device));
  halyard_context_options_t options = {.struct_size = sizeof options,
                                       .modules = &module,
                                       .module_count = 1,
                                       .devices = &device,
                                       .device_count = 1,
                                       .channels = rank->channels};
  halyard_context_t context = NULL;
  OK(halyard_context_create(instance, &options, &context));
  halyard_function_t function = NULL;
  OK(halyard_context_find(context, NULL, "sum", &function));
  halyard_call_t call = NULL;
  OK(halyard_call_create(context, &call));
  for (int round = 0; round < 3; ++round) {
    float elements[kElements];
    for (int i = 0; i < kElements; ++i) elements[i] = (float)(i * 10 + (int)rank->number + round);
    const int64_t shape[] = {kElements};
    halyard_value_t value = {.kind = HALYARD_VALUE_OBJECT};
    OK(halyard_view_create(device, 0x21000020, shape, 1, elements, sizeof elements, &value.object));
    halyard_value_t result = {0};
    OK(halyard_call_invoke(call, function, &value, 1, &result, 1));
    OK(halyard_view_read(result.object, 0, rank->sum, sizeof rank->sum));
    for (int i = 0; i < kElements; ++i)
      EXPECT(rank->sum[i] == (float)(kRanks * (i * 10 + round) + 0 + 1 + 2));
    RELEASE(result.object, value.object);
  }
  RELEASE(call, function, context, device);
  return NULL;
}

int main(void) {
  OK(halyard_instance_create(NULL, &instance));
  size_t size = 0;
  char* const text = read_text(HALYARD_SOURCE_DIR "/examples/collectives/all_reduce.vmasm", &size);
  void* bytes = NULL;
  size_t byte_count = 0;
  OK(halyard_assemble(text, size, NULL, &bytes, &byte_count));
  OK(halyard_module_load_memory(instance, bytes, byte_count, 0, &module));
  free(text);

  halyard_channels_t channels[kRanks] = {NULL};
  OK(halyard_channels_create_local(kRanks, channels));
  pthread_t threads[kRanks];
  rank_t ranks[kRanks];
  for (uint32_t i = 0; i < kRanks; ++i) {
    halyard_channels_world_t world = {.struct_size = sizeof world};
    OK(halyard_channels_world(channels[i], &world));
    EXPECT(world.rank == i && world.count == kRanks && world.description);
    ranks[i].channels = channels[i];
    ranks[i].number = i;
    EXPECT(pthread_create(&threads[i], NULL, run, &ranks[i]) == 0);
  }
  for (int i = 0; i < kRanks; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);

  OK(halyard_channels_set_timeout(channels[0], 1000000));
  FAILS(halyard_channels_import(channels[0], "mine", "MPI_Comm", 1), HALYARD_UNIMPLEMENTED,
        "takes no communicators");
  for (int i = 0; i < kRanks; ++i) halyard_release(channels[i]);
  halyard_channels_t none = NULL;
  FAILS(halyard_channels_create_local(0, &none), HALYARD_INVALID_ARGUMENT, "1 to 65535 ranks");
  FAILS(halyard_channels_create_local(65536, &none), HALYARD_INVALID_ARGUMENT, "a count of 65536");
  EXPECT(!none);

  /* Without a launcher this process is the only rank. */
  unsetenv("OMPI_COMM_WORLD_RANK");
  unsetenv("PMI_RANK");
  unsetenv("HALYARD_CHANNEL_PROVIDER");
  halyard_launch_t launch = {.struct_size = sizeof launch};
  OK(halyard_launch_detect(&launch));
  if (!launch.is_launched) {
    EXPECT(launch.rank == 0 && launch.count == 1 && launch.launcher[0] == 0);
    halyard_channels_options_t options = {.struct_size = sizeof options, .rank = 1, .rank_count = 2};
    FAILS(halyard_channels_create(&options, &none), HALYARD_FAILED_PRECONDITION,
          "expected to be rank 1 of 2");
    options.rank = 0;
    FAILS(halyard_channels_create(&options, &none), HALYARD_FAILED_PRECONDITION, "mpirun -n 2");
    options.rank = options.rank_count = -1;
    options.library = "/nowhere/provider.so";
    FAILS(halyard_channels_create(&options, &none), HALYARD_NOT_FOUND, "/nowhere/provider.so");
    options.library = "";
    options.rank_count = 1;
    options.timeout_ns = 1000000;
    OK(halyard_channels_create(&options, &none));
    halyard_release(none);
    none = NULL;
    options.rank = 1;
    options.rank_count = -1;
    FAILS(halyard_channels_create(&options, &none), HALYARD_FAILED_PRECONDITION,
          "expected to be rank 1 of -1");
    OK(halyard_channels_create(NULL, &none));
    halyard_release(none);
  }
  halyard_release(module);
  halyard_free(bytes);
  halyard_release(instance);
  return failures != 0;
}
