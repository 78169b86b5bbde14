/* The embedding ABI from C: each step of halyard.h's list, values of every kind, and what fails. */
#include <stdlib.h>
#include <string.h>

#include "halyard/halyard.h"
#include "program.h"

static const char kText[] =
    "vm.module @embedded version 4\n"
    "vm.rodata[0] = \"bytes\"\n"
    "vm.export @mix\n"
    "vm.export @pass\n"
    "vm.export @list\n"
    "vm.attr @mix \"iree.abi.declaration\" \"sync func @mix\"\n"
    "vm.func @mix(%i0:1: i64, %i2:3: f64, %i4: i32, %i5: f32) -> (f32, i32, f64, i64) {\n"
    "  %i6 = vm.const.i32 1\n"
    "  %i4 = vm.add.i32 %i4, %i6\n"
    "  vm.return %i5, %i4, %i2:3, %i0:1\n"
    "}\n"
    "vm.func @pass(%r0: !vm.ref<?>) -> (!vm.ref<?>) {\n"
    "  vm.return %R0\n"
    "}\n"
    "vm.func @list() -> (!vm.list<!vm.opaque>) {\n"
    "  %i0 = vm.const.i32 2\n"
    "  %i1 = vm.const.i32 0\n"
    "  %r0 = vm.list.alloc %i0 : !vm.list<!vm.opaque>\n"
    "  vm.list.resize %r0, %i0\n"
    "  vm.list.set.i32 %r0, %i1, %i0\n"
    "  vm.return %R0\n"
    "}\n";

static void call_with_values(halyard_context_t context) {
  halyard_function_t mix = NULL;
  halyard_call_t call = NULL;
  if (!OK(halyard_context_find(context, NULL, "mix", &mix)) || !OK(halyard_call_create(context, &call)))
    return;
  halyard_value_t arguments[4] = {
      {.kind = HALYARD_VALUE_I64}, {.kind = HALYARD_VALUE_F64}, i32(41), {.kind = HALYARD_VALUE_F32}};
  arguments[0].i64 = INT64_C(0x1234567890);
  arguments[1].f64 = -2.5;
  arguments[3].f32 = 1.5f;
  halyard_value_t results[4] = {{0}};
  for (int turn = 0; turn < 3; ++turn) {
    if (!OK(halyard_call_invoke(call, mix, arguments, 4, results, 4))) break;
    EXPECT(results[0].kind == HALYARD_VALUE_F32 && results[0].f32 == 1.5f);
    EXPECT(results[1].kind == HALYARD_VALUE_I32 && results[1].i32 == 42);
    EXPECT(results[2].kind == HALYARD_VALUE_F64 && results[2].f64 == -2.5);
    EXPECT(results[3].kind == HALYARD_VALUE_I64 && results[3].i64 == INT64_C(0x1234567890));
  }
  FAILS(halyard_call_invoke(call, mix, arguments, 3, results, 4), HALYARD_INVALID_ARGUMENT,
        "expected 4 arguments");
  FAILS(halyard_call_invoke(call, mix, arguments, 4, results, 3), HALYARD_INVALID_ARGUMENT, "results");
  halyard_function_t none = NULL;
  FAILS(halyard_context_find(context, NULL, "mixx", &none), HALYARD_NOT_FOUND, "did you mean 'mix'");
  FAILS(halyard_context_find(context, "elsewhere", "mix", &none), HALYARD_NOT_FOUND, "elsewhere");
  EXPECT(none == NULL);
  RELEASE(call, mix);
}

static void views_pass_through(halyard_context_t context, halyard_device_t device) {
  halyard_object_t view = NULL;
  const int64_t shape[2] = {2, 2};
  const float data[4] = {1, 2, 3, 4.5f};
  halyard_tensor_t* type = NULL;
  if (!OK(halyard_tensor_type_parse((halyard_text_t){"2x2xf32", 7}, &type)) ||
      !OK(halyard_view_create(device, type->element_type, shape, 2, data, sizeof data, &view)))
    return;
  FAILS(halyard_view_create(device, type->element_type, shape, 2, data, 4, &view), HALYARD_INVALID_ARGUMENT,
        "16 bytes");
  halyard_value_t argument = {.kind = HALYARD_VALUE_OBJECT, .object = view};
  halyard_value_t result = {0};
  if (OK(call_once(context, NULL, "pass", &argument, 1, &result, 1))) {
    EXPECT(result.kind == HALYARD_VALUE_OBJECT && result.object == view);
    char* text = NULL;
    if (OK(halyard_view_text(result.object, 1024, &text))) EXPECT(strcmp(text, "2x2xf32=[1 2][3 4.5]") == 0);
    halyard_free(text);
    halyard_view_info_t info = {.struct_size = sizeof info};
    if (OK(halyard_view_info(result.object, &info)))
      EXPECT(info.rank == 2 && info.shape[1] == 2 && info.byte_length == 16 &&
             info.element_type == type->element_type);
    float third = 0;
    if (OK(halyard_view_read(result.object, 12, &third, sizeof third))) EXPECT(third == 4.5f);
    FAILS(halyard_view_read(result.object, 16, &third, sizeof third), HALYARD_OUT_OF_RANGE, "range");
    halyard_object_t buffer = NULL;
    if (OK(halyard_view_buffer(result.object, &buffer))) {
      EXPECT(strcmp(halyard_object_type(buffer), "hal.buffer") == 0);
      FAILS(halyard_view_info(buffer, &info), HALYARD_INVALID_ARGUMENT,
            "expected a hal.buffer_view, found a hal.buffer");
    }
    RELEASE(buffer, result.object);
  }
  halyard_object_t fence = NULL;
  if (OK(halyard_fence_create(device, &fence)))
    FAILS(halyard_fence_wait(fence, 0), HALYARD_DEADLINE_EXCEEDED, "");
  halyard_release(fence);
  halyard_free(type);
  halyard_release(view);
}

static void lists(halyard_context_t context) {
  halyard_value_t result = {0};
  if (OK(call_once(context, NULL, "list", NULL, 0, &result, 1))) {
    size_t size = 0;
    if (OK(halyard_list_size(result.object, &size))) EXPECT(size == 2);
    halyard_value_t element = {0};
    if (OK(halyard_list_get(result.object, 0, &element)))
      EXPECT(element.kind == HALYARD_VALUE_I32 && element.i32 == 2);
    if (OK(halyard_list_get(result.object, 1, &element))) EXPECT(element.kind == HALYARD_VALUE_NULL);
    FAILS(halyard_list_get(result.object, 2, &element), HALYARD_OUT_OF_RANGE, "2");
    halyard_release(result.object);
  }
}

int main(void) {
  halyard_instance_t instance = NULL;
  halyard_device_t device = NULL;
  halyard_module_t module = NULL;
  halyard_context_t context = NULL;
  void* bytes = NULL;
  size_t size = 0;
  const char* library = HALYARD_BUILD_DIR "/lib/halyard/drivers/halyard-driver-local.so";
  halyard_instance_options_t options = {
      .struct_size = sizeof options,
      .flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS,
      .driver_libraries = &library,
      .driver_library_count = 1};
  if (!OK(halyard_instance_create(&options, &instance))) return 1;

  halyard_driver_entry_t* drivers = NULL;
  size_t driver_count = 0;
  if (OK(halyard_instance_drivers(instance, &drivers, &driver_count)))
    EXPECT(driver_count >= 1 && strcmp(drivers[0].name, "local-sync") == 0 &&
           strcmp(drivers[0].library, library) == 0);
  halyard_free(drivers);
  FAILS(halyard_device_open(instance, "null", &device), HALYARD_NOT_FOUND, "local-sync");
  if (!OK(halyard_device_open(instance, "local-sync", &device))) return 1;
  EXPECT(strcmp(halyard_device_uri(device), "local-sync://") == 0);

  FAILS(halyard_assemble("vm.modul @x\n", 12, NULL, &bytes, &size), HALYARD_INVALID_ARGUMENT, ":1");
  if (!OK(halyard_assemble(kText, strlen(kText), NULL, &bytes, &size))) return 1;
  FAILS(halyard_module_load_memory(instance, bytes, size / 2, 0, &module), HALYARD_INVALID_ARGUMENT, "");
  if (!OK(halyard_module_load_memory(instance, bytes, size, HALYARD_MODULE_VERIFY_EAGERLY, &module)))
    return 1;
  halyard_free(bytes); /* it was copied */

  halyard_module_info_t info = {.struct_size = sizeof info};
  if (OK(halyard_module_info(module, &info)))
    EXPECT(info.version == 4 && info.bytecode_version == 17 && info.function_count == 3 &&
           !info.needs_devices && info.name.size == 8 && memcmp(info.name.data, "embedded", 8) == 0);
  halyard_function_description_t mix = {.struct_size = sizeof mix};
  if (OK(halyard_module_function(module, 0, &mix)))
    EXPECT(mix.argument_count == 4 && mix.result_count == 4 && !mix.is_async &&
           memcmp(mix.convention.data, "0IFif_fiFI", mix.convention.size) == 0 && mix.declaration.size == 14);
  FAILS(halyard_module_function(module, 3, &mix), HALYARD_OUT_OF_RANGE, "exports 3");
  halyard_module_info_t unsized = {0};
  FAILS(halyard_module_info(module, &unsized), HALYARD_INVALID_ARGUMENT, "struct_size");

  halyard_context_options_t linked = {.struct_size = sizeof linked,
                                      .modules = &module,
                                      .module_count = 1,
                                      .devices = &device,
                                      .device_count = 1};
  FAILS(halyard_context_create(instance, NULL, &context), HALYARD_INVALID_ARGUMENT, "module");
  if (!OK(halyard_context_create(instance, &linked, &context))) return 1;

  /* A context keeps what it needs. */
  RELEASE(module, instance);
  call_with_values(context);
  views_pass_through(context, device);
  lists(context);
  RELEASE(device, context);
  return failures ? 1 : 0;
}
