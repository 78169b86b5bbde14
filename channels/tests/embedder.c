/* A program that uses MPI itself, and hosts programs of several ranks:
 *
 *   embedder single|funneled|serialized   initializes MPI with this level, which Halyard refuses to use
 *   embedder multiple                     runs a program on all ranks, and one on a communicator of its own
 */
#include <halyard/channels.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                        \
  do {                                                                           \
    if (!(condition)) {                                                          \
      fprintf(stderr, "embedder: line %d: expected %s\n", __LINE__, #condition); \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

static void ok(halyard_status_t status, int line) {
  if (!status) return;
  fprintf(stderr, "embedder: line %d: %s\n", line, halyard_status_message(status));
  exit(1);
}
#define OK(call) ok(call, __LINE__)

static void expect_failure(halyard_status_t status, int32_t code, const char* text) {
  EXPECT(status);
  if (halyard_status_code(status) != code || !strstr(halyard_status_message(status), text)) {
    fprintf(stderr, "embedder: expected '%s', found '%s'\n", text, halyard_status_message(status));
    exit(1);
  }
  halyard_status_release(status);
}

static halyard_instance_t instance;
static halyard_channels_t channels;

/* The sum over the ranks of the channel that the module's text names. */
static float sum_of(const char* path, float own) {
  FILE* const file = fopen(path, "rb");
  EXPECT(file);
  char text[1 << 16];
  const size_t size = fread(text, 1, sizeof text, file);
  fclose(file);
  void* bytes = NULL;
  size_t byte_count = 0;
  OK(halyard_assemble(text, size, NULL, &bytes, &byte_count));
  halyard_module_t module = NULL;
  OK(halyard_module_load_memory(instance, bytes, byte_count, 0, &module));
  halyard_device_t device = NULL;
  OK(halyard_device_open(instance, "local-sync", &device));
  halyard_context_options_t options = {.struct_size = sizeof options,
                                       .modules = &module,
                                       .module_count = 1,
                                       .devices = &device,
                                       .device_count = 1,
                                       .channels = channels};
  halyard_context_t context = NULL;
  OK(halyard_context_create(instance, &options, &context));
  halyard_function_t function = NULL;
  OK(halyard_context_find(context, NULL, "sum", &function));
  halyard_call_t call = NULL;
  OK(halyard_call_create(context, &call));
  const int64_t shape[] = {1};
  halyard_value_t value = {.kind = HALYARD_VALUE_OBJECT};
  OK(halyard_view_create(device, 0x21000020, shape, 1, &own, sizeof own, &value.object));
  halyard_value_t result = {0};
  OK(halyard_call_invoke(call, function, &value, 1, &result, 1));
  float sum = 0;
  OK(halyard_view_read(result.object, 0, &sum, sizeof sum));
  halyard_release(result.object);
  halyard_release(value.object);
  halyard_release(call);
  halyard_release(function);
  halyard_release(context);
  halyard_release(device);
  halyard_release(module);
  halyard_free(bytes);
  return sum;
}

int main(int argc, char** argv) {
  EXPECT(argc == 4); /* level, a program for all ranks, a program with the id "mine" */
  const char* const names[] = {"single", "funneled", "serialized", "multiple"};
  const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  int wanted = 0;
  while (strcmp(names[wanted], argv[1]) != 0) EXPECT(++wanted < 4);
  int level = 0;
  EXPECT(MPI_Init_thread(&argc, &argv, levels[wanted], &level) == MPI_SUCCESS);
  int rank = 0;
  int count = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  OK(halyard_instance_create(NULL, &instance));
  if (level != MPI_THREAD_MULTIPLE) {
    expect_failure(halyard_channels_create(NULL, &channels), HALYARD_FAILED_PRECONDITION,
                   "initialize it with MPI_Init_thread and MPI_THREAD_MULTIPLE");
    printf("rank %d: refused level %d\n", rank, level);
  } else {
    OK(halyard_channels_create(NULL, &channels));
    EXPECT(sum_of(argv[2], (float)(rank + 1)) == (float)(count * (count + 1)) / 2);
    /* The ranks of the same parity. */
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    OK(halyard_channels_import(channels, "mine", "MPI_Comm", (uint64_t)(uintptr_t)half));
    expect_failure(halyard_channels_import(channels, "mine", "MPI_Comm", (uint64_t)(uintptr_t)half),
                   HALYARD_ALREADY_EXISTS, "'mine'");
    expect_failure(halyard_channels_import(channels, "other", "int", 1), HALYARD_INVALID_ARGUMENT,
                   "'MPI_Comm'");
    expect_failure(halyard_channels_import(channels, "none", "MPI_Comm", (uint64_t)(uintptr_t)MPI_COMM_NULL),
                   HALYARD_INVALID_ARGUMENT, "MPI_COMM_NULL");
    MPI_Comm_free(&half);
    float expected = 0;
    for (int i = rank % 2; i < count; i += 2) expected += (float)(i + 1);
    EXPECT(sum_of(argv[3], (float)(rank + 1)) == expected);
    printf("rank %d: %g\n", rank, (double)expected);
    halyard_release(channels);
  }
  halyard_release(instance);
  /* MPI belongs to the program all the time. */
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(sum == count * (count - 1) / 2);
  EXPECT(MPI_Finalize() == MPI_SUCCESS);
  return 0;
}
