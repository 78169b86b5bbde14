/* Host functions over tensors: a program calls functions of this process that take views and give views.
 *
 *   cc host_functions.c $(pkg-config --cflags --libs halyard) -lm -o host_functions && ./host_functions
 *
 * prints
 *
 *   in place: 2x3xf32=[0.268941 0.731059 0.5][0.5 0.731059 0.268941]
 *   the sum of each row: 2xf32=1.5 1.5
 *   refused: INVALID_ARGUMENT; sigmoid takes f32 elements, found i32; in native function host.sigmoid; ...
 */
#include <halyard/halyard.h>
#include <halyard/memory.h>
#include <halyard/module.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The program. A compiler writes such imports for functions that are declared and not defined. */
static const char kProgram[] =
    "vm.module @program\n"
    "vm.import @host.sigmoid cconv \"0r_v\"\n"
    "vm.import @host.row_sums cconv \"0r_r\"\n"
    "vm.export @run\n"
    "vm.func @run(%r0: !hal.buffer_view) -> (!hal.buffer_view) {\n"
    "  vm.call @host.sigmoid(%r0)\n"
    "  %r0 = vm.call @host.row_sums(%R0)\n"
    "  vm.return %R0\n"
    "}\n";

static void require(halyard_status_t status) {
  if (!status) return;
  char* text = halyard_status_text(status);
  fprintf(stderr, "%s\n", text);
  exit(1);
}

/* ---- The host functions. Plain ones with HALYARD_PLAIN_STATUS: arguments as the convention says, results
 * through pointers, and a status. Argument objects are borrowed; a result object is given away. */

/* A status with its own message; the caller of the program sees it with the place of the call. */
static halyard_status_t check_elements(const char* function, const halyard_view_info_t* info) {
  char message[128];
  if (info->element_type == HALYARD_ELEMENT_F32) return NULL;
  char* found = halyard_element_type_text(info->element_type);
  snprintf(message, sizeof message, "%s takes f32 elements, found %s", function, found ? found : "others");
  halyard_free(found);
  return halyard_status_create(HALYARD_INVALID_ARGUMENT, message);
}

/* "0r_v": writes to the tensor that it is given, without a copy. A null or another object is refused by
 * halyard_view_info. */
static halyard_status_t sigmoid(halyard_object_t tensor) {
  halyard_view_info_t info = {.struct_size = sizeof info};
  void* bytes;
  size_t size, i;
  halyard_status_t status = halyard_view_info(tensor, &info);
  if (!status) status = check_elements("sigmoid", &info);
  if (!status) status = halyard_view_map(tensor, HALYARD_VIEW_READ | HALYARD_VIEW_WRITE, &bytes, &size);
  if (status) return status;
  float* elements = bytes;
  for (i = 0; i < size / sizeof *elements; ++i) elements[i] = 1 / (1 + expf(-elements[i]));
  halyard_view_unmap(tensor);
  return NULL;
}

/* "0r_r", with HALYARD_PLAIN_STATE: the state is the device, where the result belongs. */
static halyard_status_t row_sums(void* state, halyard_object_t matrix, halyard_object_t* out) {
  halyard_view_info_t info = {.struct_size = sizeof info};
  void* bytes;
  size_t size;
  int64_t row, column;
  halyard_status_t status = halyard_view_info(matrix, &info);
  if (!status) status = check_elements("row_sums", &info);
  if (!status && info.rank != 2)
    status = halyard_status_create(HALYARD_INVALID_ARGUMENT, "row_sums takes a matrix");
  if (!status) status = halyard_view_map(matrix, HALYARD_VIEW_READ, &bytes, &size);
  if (status) return status;
  const float* elements = bytes;
  float* sums = calloc((size_t)info.shape[0] + 1, sizeof *sums);
  for (row = 0; sums && row < info.shape[0]; ++row)
    for (column = 0; column < info.shape[1]; ++column) sums[row] += elements[row * info.shape[1] + column];
  halyard_view_unmap(matrix);
  if (!sums) return halyard_status_create(HALYARD_RESOURCE_EXHAUSTED, "no memory for the sums");
  status = halyard_view_create(state, HALYARD_ELEMENT_F32, info.shape, 1, sums,
                               (size_t)info.shape[0] * sizeof *sums, out);
  free(sums);
  return status;
}

static const halyard_module_export_t kExports[] = {
    HALYARD_PLAIN("sigmoid", "0r_v", sigmoid, HALYARD_PLAIN_STATUS),
    HALYARD_PLAIN("row_sums", "0r_r", row_sums, HALYARD_PLAIN_STATE | HALYARD_PLAIN_STATUS)};

/* ---- The application */

static halyard_value_t object(halyard_object_t given) {
  return (halyard_value_t){.kind = HALYARD_VALUE_OBJECT, .object = given};
}

static void print(const char* what, halyard_object_t view) {
  char* text;
  require(halyard_view_text(view, 100, &text));
  printf("%s: %s\n", what, text);
  halyard_free(text);
}

int main(void) {
  halyard_instance_t instance;
  halyard_device_t device;
  halyard_module_t modules[2];
  halyard_context_t context;
  halyard_function_t run;
  halyard_call_t call;
  halyard_object_t tensor;
  halyard_value_t argument, result;
  void* bytes;
  size_t size;
  const int64_t shape[] = {2, 3};
  const float values[] = {-1, 1, 0, 0, 1, -1};
  const int32_t numbers[6] = {0};

  require(halyard_instance_create(NULL, &instance));
  require(halyard_device_open(instance, "local-sync", &device));

  /* The module of the host's, and the program, which imports from it: the host's comes first. */
  const halyard_module_definition_t host = {.struct_size = sizeof host,
                                            .abi_version = HALYARD_MODULE_ABI_V1,
                                            .name = "host",
                                            .export_size = sizeof *kExports,
                                            .exports = kExports,
                                            .export_count = sizeof kExports / sizeof *kExports,
                                            .user = device};
  require(halyard_module_create_native(instance, &host, &modules[0]));
  require(halyard_assemble(kProgram, sizeof kProgram - 1, NULL, &bytes, &size));
  require(halyard_module_load_memory(instance, bytes, size, 0, &modules[1]));
  halyard_free(bytes);
  const halyard_context_options_t options = {.struct_size = sizeof options,
                                             .modules = modules,
                                             .module_count = 2,
                                             .devices = &device,
                                             .device_count = 1};
  require(halyard_context_create(instance, &options, &context));
  require(halyard_context_find(context, NULL, "run", &run));
  require(halyard_call_create(context, &call));

  require(halyard_view_create(device, HALYARD_ELEMENT_F32, shape, 2, values, sizeof values, &tensor));
  argument = object(tensor);
  require(halyard_call_invoke(call, run, &argument, 1, &result, 1));
  print("in place", tensor);
  print("the sum of each row", result.object);
  halyard_release(result.object);
  halyard_release(tensor);

  require(halyard_view_create(device, HALYARD_ELEMENT_I32, shape, 2, numbers, sizeof numbers, &tensor));
  argument = object(tensor);
  halyard_status_t refused = halyard_call_invoke(call, run, &argument, 1, &result, 1);
  char* text = halyard_status_text(refused);
  printf("refused: %s\n", text);
  halyard_free(text);
  halyard_status_release(refused);
  halyard_release(tensor);

  halyard_release(call);
  halyard_release(run);
  halyard_release(context);
  halyard_release(modules[1]);
  halyard_release(modules[0]);
  halyard_release(device);
  halyard_release(instance);
  return 0;
}
