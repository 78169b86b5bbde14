/* What a program in C can get wrong: each is a status with the right words, never a crash and never silence.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "halyard/fence.h"
#include "halyard/memory.h"
#include "program.h"

static const char kText[] =
    "vm.module @m\n"
    "vm.export @f\nvm.attr @f \"iree.abi.declaration\" \"sync func @f(%count: i32, %x: f32) -> (%y: i32)\"\n"
    "vm.func @f(%i0: i32, %i1: f32) -> (i32) {\n  vm.return %i0\n}\n"
    "vm.export @wide\nvm.func @wide(%i0:1: i64, %i2:3: f64) -> (i64, f64) {\n  vm.return %i0:1, %i2:3\n}\n"
    "vm.export @object\nvm.func @object(%r0: !vm.buffer) -> () {\n  vm.return\n}\n"
    "vm.export @spin\nvm.func @spin() -> () {\n  vm.br ^bb1\n^bb1:\n  vm.br ^bb1\n^bb2:\n  vm.return\n}\n";

static halyard_instance_t instance;
static halyard_device_t device;
static halyard_module_t module;
static halyard_context_t context;

static void kinds_of_scalars(void) {
  halyard_call_t call = NULL;
  halyard_function_t f = find(context, "f"), wide = find(context, "wide"), object = find(context, "object");
  halyard_value_t result, both[2];
  OK(halyard_call_create(context, &call));
#define CALL(function, a, b)                                                                          \
  halyard_call_invoke(call, function, (halyard_value_t[]){a, b}, 2, (function) == f ? &result : both, \
                      (function) == f ? 1 : 2)
  OK(CALL(f, i32(7), f32(1)));
  EXPECT(result.i32 == 7);
  OK(CALL(f, i64(-5), f64(0.5))); /* nothing is lost */
  EXPECT(result.i32 == -5);
  OK(CALL(f, f32(2), i32(16777216)));
  EXPECT(result.i32 == 2);
  FAILS(CALL(f, f32(2.5f), f32(1)), HALYARD_INVALID_ARGUMENT,
        "argument 0 ('%count') of 'f' must be an i32, found f32 2.5");
  FAILS(CALL(f, i64(5000000000), f32(1)), HALYARD_INVALID_ARGUMENT, "i64 5000000000");
  FAILS(CALL(f, i32(1), i32(16777217)), HALYARD_INVALID_ARGUMENT, "argument 1 ('%x')");
  FAILS(CALL(f, i32(1), f64(0.1)), HALYARD_INVALID_ARGUMENT, "f64 0.1");
  FAILS(CALL(f, f64(1e300), f32(1)), HALYARD_INVALID_ARGUMENT, "an i32");
  FAILS(CALL(f, ((halyard_value_t){.kind = HALYARD_VALUE_NULL}), f32(1)), HALYARD_INVALID_ARGUMENT, "null");
  FAILS(CALL(f, ((halyard_value_t){.kind = 99}), f32(1)), HALYARD_INVALID_ARGUMENT, "kind 99");
  OK(CALL(wide, i32(-1), f32(0.5f)));
  EXPECT(both[0].i64 == -1 && both[1].f64 == 0.5);
  OK(CALL(wide, f64(-9223372036854775808.0), i64(1)));
  EXPECT(both[0].i64 == INT64_MIN);
  FAILS(CALL(wide, f64(9223372036854775808.0), f64(1)), HALYARD_INVALID_ARGUMENT, "an i64");
  FAILS(CALL(wide, i64(0), i64(INT64_MAX)), HALYARD_INVALID_ARGUMENT, "an f64");
  const halyard_value_t number = i32(1);
  FAILS(halyard_call_invoke(call, object, &number, 1, NULL, 0), HALYARD_INVALID_ARGUMENT,
        "an object or null, found i32 1");
  const halyard_value_t null = {.kind = HALYARD_VALUE_NULL};
  OK(halyard_call_invoke(call, object, &null, 1, NULL, 0));
  RELEASE(object, wide, f, call);
}

static void wrong_handles(void) {
  halyard_call_t call = NULL;
  halyard_function_t function = NULL;
  halyard_device_t opened = NULL;
  halyard_context_t made = NULL;
  halyard_module_info_t info = {.struct_size = sizeof info};
  uint32_t state;
  size_t count;
  halyard_device_entry_t* entries;
  FAILS(halyard_call_create(NULL, &call), HALYARD_INVALID_ARGUMENT, "expected a context, found null");
  FAILS(halyard_call_create((halyard_context_t)module, &call), HALYARD_INVALID_ARGUMENT, "found a module");
  FAILS(halyard_context_find((halyard_context_t)device, NULL, "f", &function), HALYARD_INVALID_ARGUMENT,
        "found a device");
  FAILS(halyard_call_invoke(NULL, NULL, NULL, 0, NULL, 0), HALYARD_INVALID_ARGUMENT, "expected a call");
  OK(halyard_call_create(context, &call));
  FAILS(halyard_call_invoke(call, NULL, NULL, 0, NULL, 0), HALYARD_INVALID_ARGUMENT, "expected a function");
  FAILS(halyard_call_begin(call, (halyard_function_t)call, NULL, 0, &state), HALYARD_INVALID_ARGUMENT,
        "found a call");
  function = find(context, "f");
  FAILS(halyard_call_invoke(call, function, NULL, 2, NULL, 1), HALYARD_INVALID_ARGUMENT,
        "array of 2 values at `arguments`");
  const halyard_value_t arguments[] = {i32(1), f32(1)};
  FAILS(halyard_call_invoke(call, function, arguments, 2, NULL, 1), HALYARD_INVALID_ARGUMENT,
        "array of 1 values at `results`");
  FAILS(halyard_module_info((halyard_module_t)context, &info), HALYARD_INVALID_ARGUMENT,
        "expected a module, found a context");
  FAILS(halyard_device_open(NULL, "local-sync", &opened), HALYARD_INVALID_ARGUMENT, "expected an instance");
  FAILS(halyard_device_open_with(instance, "local-sync", NULL, 3, &opened), HALYARD_INVALID_ARGUMENT,
        "3 settings");
  FAILS(halyard_instance_devices((halyard_instance_t)module, NULL, &entries, &count),
        HALYARD_INVALID_ARGUMENT, "instance");
  halyard_context_options_t options = {.struct_size = sizeof options, .modules = NULL, .module_count = 1};
  FAILS(halyard_context_create(instance, &options, &made), HALYARD_INVALID_ARGUMENT, "array of 1 modules");
  const halyard_module_t modules[] = {module, (halyard_module_t)device};
  options.modules = modules;
  options.module_count = 2;
  FAILS(halyard_context_create(instance, &options, &made), HALYARD_INVALID_ARGUMENT, "modules[1]");
  options.module_count = 1;
  options.device_count = 2;
  FAILS(halyard_context_create(instance, &options, &made), HALYARD_INVALID_ARGUMENT, "array of 2 devices");
  const halyard_device_t devices[] = {device, NULL};
  options.devices = devices;
  FAILS(halyard_context_create(instance, &options, &made), HALYARD_INVALID_ARGUMENT, "devices[1]");
  EXPECT(strcmp(halyard_device_uri(NULL), "") == 0 && strcmp(halyard_object_type(NULL), "") == 0);
  EXPECT(halyard_call_deadline(NULL) == INT64_MAX &&
         halyard_device_sharing(NULL, device) == HALYARD_SHARING_NONE);
  halyard_call_cancel(NULL);
  halyard_call_on_ready(NULL, NULL, NULL);
  halyard_instance_interrupt_run(NULL);
  halyard_trace_begin(NULL, "x");
  halyard_trace_end((halyard_trace_t)module);
  RELEASE(function, call);
}

static void flags_and_reserved_fields(void) {
  halyard_instance_t made = NULL;
  halyard_module_t loaded = NULL;
  halyard_context_t linked = NULL;
  halyard_instance_options_t instances = {.struct_size = sizeof instances, .flags = 1u << 20};
  FAILS(halyard_instance_create(&instances, &made), HALYARD_INVALID_ARGUMENT, "HALYARD_INSTANCE_*");
  instances.flags = 0;
  instances.reserved = 1;
  FAILS(halyard_instance_create(&instances, &made), HALYARD_INVALID_ARGUMENT, "`reserved`");
  FAILS(halyard_module_load_memory(instance, kText, sizeof kText, 1u << 9, &loaded), HALYARD_INVALID_ARGUMENT,
        "HALYARD_MODULE_*");
  FAILS(halyard_module_load_memory(instance, NULL, 8, 0, &loaded), HALYARD_INVALID_ARGUMENT, "null pointer");
  halyard_context_options_t contexts = {
      .struct_size = sizeof contexts, .modules = &module, .module_count = 1, .flags = 1u << 30};
  FAILS(halyard_context_create(instance, &contexts, &linked), HALYARD_INVALID_ARGUMENT, "HALYARD_CONTEXT_*");
  contexts.flags = 0;
  contexts.reserved = 5;
  FAILS(halyard_context_create(instance, &contexts, &linked), HALYARD_INVALID_ARGUMENT, "`reserved`");
}

/* A library of code is loaded only where that is allowed, and only under a library's name. */
static void native_libraries(void) {
  halyard_module_t loaded = NULL;
  char path[] = "/tmp/halyard-boundary-XXXXXX", command[4096];
  FAILS(halyard_module_load_file(instance, HALYARD_BUILD_DIR "/examples/libtoolbox.so", 0, &loaded),
        HALYARD_PERMISSION_DENIED, "HALYARD_MODULE_NATIVE");
  OK(halyard_module_load_file(instance, HALYARD_BUILD_DIR "/examples/libtoolbox.so", HALYARD_MODULE_NATIVE,
                              &loaded));
  halyard_release(loaded);
  EXPECT(mkdtemp(path) != NULL);
  snprintf(command, sizeof command, "cp '%s' '%s/x.vmfb'", HALYARD_BUILD_DIR "/examples/libtoolbox.so", path);
  EXPECT(system(command) == 0);
  snprintf(command, sizeof command, "%s/x.vmfb", path);
  FAILS(halyard_module_load_file(instance, command, HALYARD_MODULE_NATIVE, &loaded), HALYARD_INVALID_ARGUMENT,
        "shared library (ELF)");
  unlink(command);
  rmdir(path);
}

static void* spin(void* argument) {
  halyard_status_t* status = argument;
  halyard_call_t call = NULL;
  halyard_function_t function = find(context, "spin");
  OK(halyard_call_create(context, &call));
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  OK(halyard_call_set_deadline(call, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + 300000000));
  /* It may itself come while the other thread is in its call. */
  while (halyard_status_code(*status = halyard_call_invoke(call, function, NULL, 0, NULL, 0)) ==
         HALYARD_FAILED_PRECONDITION)
    halyard_status_release(*status);
  RELEASE(function, call);
  return NULL;
}

static void two_calls_at_once(void) {
  pthread_t thread;
  halyard_status_t ended = NULL, refused = NULL;
  halyard_call_t call = NULL;
  halyard_function_t function = find(context, "f");
  const halyard_value_t arguments[] = {i32(1), f32(1)};
  halyard_value_t result;
  OK(halyard_call_create(context, &call));
  EXPECT(pthread_create(&thread, NULL, spin, &ended) == 0);
  while (!refused) refused = halyard_call_invoke(call, function, arguments, 2, &result, 1);
  FAILS(refused, HALYARD_FAILED_PRECONDITION, "'spin'");
  pthread_join(thread, NULL);
  FAILS(ended, HALYARD_DEADLINE_EXCEEDED, "deadline");
  OK(halyard_call_invoke(call, function, arguments, 2, &result, 1)); /* and now it may */
  RELEASE(function, call);
}

static int reached;
static halyard_status_code_t code;
static void on_reached(void* user, halyard_status_t status) {
  EXPECT(user == &reached);
  code = halyard_status_code(status);
  ++reached;
}

static void fences(void) {
  halyard_object_t a = NULL, b = NULL, both = NULL;
  uint32_t is_reached = 7;
  OK(halyard_fence_create(device, &a));
  OK(halyard_fence_create(device, &b));
  OK(halyard_fence_join((halyard_object_t[]){a, NULL, b}, 3, &both));
  OK(halyard_fence_query(both, &is_reached));
  EXPECT(is_reached == 0);
  OK(halyard_fence_on_reached(both, on_reached, &reached));
  FAILS(halyard_fences_wait((halyard_object_t[]){a, b}, 2, 1), HALYARD_DEADLINE_EXCEEDED, "");
  OK(halyard_fence_signal(a));
  FAILS(halyard_fence_signal(a), HALYARD_INVALID_ARGUMENT, "");
  EXPECT(reached == 0);
  OK(halyard_fence_signal(b));
  OK(halyard_fences_wait((halyard_object_t[]){a, NULL, b}, 3, 1000));
  OK(halyard_fence_query(both, &is_reached));
  EXPECT(is_reached == 1 && reached == 1 && code == HALYARD_OK);
  OK(halyard_fence_on_reached(both, on_reached, &reached)); /* at once */
  EXPECT(reached == 2);
  RELEASE(both, b, a);

  OK(halyard_fence_create(device, &a));
  OK(halyard_fence_on_reached(a, on_reached, &reached));
  halyard_status_t failure = halyard_status_create(HALYARD_DATA_LOSS, "the camera is gone");
  OK(halyard_fence_fail(a, failure));
  halyard_status_release(failure);
  EXPECT(reached == 3 && code == HALYARD_DATA_LOSS);
  FAILS(halyard_fence_query(a, &is_reached), HALYARD_DATA_LOSS, "the camera is gone");
  FAILS(halyard_fence_wait(a, 1000), HALYARD_DATA_LOSS, "the camera is gone");
  FAILS(halyard_fence_fail(a, NULL), HALYARD_INVALID_ARGUMENT, "success");
  FAILS(halyard_fence_on_reached(a, NULL, NULL), HALYARD_INVALID_ARGUMENT, "null");
  FAILS(halyard_fence_query((halyard_object_t)device, &is_reached), HALYARD_INVALID_ARGUMENT, "hal.fence");
  FAILS(halyard_fences_wait(NULL, 2, 0), HALYARD_INVALID_ARGUMENT, "2 fences");
  FAILS(halyard_fences_wait((halyard_object_t[33]){0}, 33, 0), HALYARD_INVALID_ARGUMENT, "33 fences");
  OK(halyard_fences_wait(NULL, 0, 0));
  OK(halyard_fence_join(NULL, 0, &both));
  EXPECT(both == NULL);
  halyard_release(a);
}

int main(void) {
  OK(halyard_instance_create(NULL, &instance));
  if (!OK(halyard_device_open(instance, "local-sync", &device)) || !(module = load_text(instance, kText)))
    return 1;
  context = context_of(instance, module, NULL);
  if (!context) return 1;
  kinds_of_scalars();
  wrong_handles();
  flags_and_reserved_fields();
  native_libraries();
  two_calls_at_once();
  fences();
  RELEASE(context, module, device, instance);
  return failures != 0;
}
