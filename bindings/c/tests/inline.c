/* Programs without devices, from C: no device is opened, and nothing else is needed. */
#include <string.h>

#include "halyard/halyard.h"
#include "program.h"

#if defined(__aarch64__)
#define NATIVE_FORMAT "embedded-elf-arm_64"
#elif defined(__riscv)
#define NATIVE_FORMAT "embedded-elf-riscv_64"
#else
#define NATIVE_FORMAT "embedded-elf-x86_64"
#endif

/* @support asks hal_loader whether it runs machine code; @letters gives a buffer of hal_inline and shows it.
 */
static const char kText[] =
    "vm.module @program\n"
    "vm.import @hal_inline.buffer.allocate.initialized cconv \"0irII_rr\"\n"
    "vm.import @hal_inline.buffer_view.create cconv \"0rIIiiCID_r\"\n"
    "vm.import @hal_inline.buffer_view.trace cconv \"0rCrD_v\"\n"
    "vm.import @hal_loader.executable.query_support cconv \"0r_i\"\n"
    "vm.rodata[0] = \"" NATIVE_FORMAT
    "\"\n"
    "vm.rodata[1] = \"abcd\"\n"
    "vm.export @support\n"
    "vm.export @letters\n"
    "vm.func @support() -> (i32) {\n"
    "  %r0 = vm.const.ref.rodata 0\n"
    "  %i0 = vm.call @hal_loader.executable.query_support(%R0)\n"
    "  vm.return %i0\n"
    "}\n"
    "vm.func @letters() -> (!hal.buffer_view) {\n"
    "  %i0 = vm.const.i32 64\n"
    "  %i1 = vm.const.i32 0x10000008\n"
    "  %i2 = vm.const.i32 1\n"
    "  %i4:5 = vm.const.i64.zero\n"
    "  %i6:7 = vm.const.i64 4\n"
    "  %r0 = vm.const.ref.rodata 1\n"
    "  %r1, %r2 = vm.call @hal_inline.buffer.allocate.initialized(%i0, %r0, %i4:5, %i6:7)\n"
    "  %r3 = vm.call.variadic @hal_inline.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, "
    "1](%r1, %i4:5, %i6:7, %i1, %i2, %i6:7)\n"
    "  vm.call.variadic @hal_inline.buffer_view.trace segments[65535, 1](%r0, %r3)\n"
    "  vm.discard.refs %r0, %r1, %r2\n"
    "  vm.return %R3\n"
    "}\n";

static halyard_instance_t new_instance(void) {
  const char* const drivers = HALYARD_BUILD_DIR "/lib/halyard/drivers";
  halyard_instance_options_t options = {
      .struct_size = sizeof options,
      .flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS,
      .driver_folders = &drivers,
      .driver_folder_count = 1};
  halyard_instance_t instance = NULL;
  OK(halyard_instance_create(&options, &instance));
  return instance;
}

static halyard_value_t host_view(uint32_t type, const void* data, int64_t count) {
  halyard_value_t value = {.kind = HALYARD_VALUE_OBJECT};
  OK(halyard_view_create(NULL, type, &count, 1, data, (size_t)count * 4, &value.object));
  return value;
}

/* Runs a function of an example, whose result is a view, and reads `size` bytes of that. With a device where
 * `uri` is not null; then the program uses one. */
static void run_example(const char* path, const char* uri, const char* name, const halyard_value_t* arguments,
                        size_t count, void* result, size_t size) {
  const halyard_instance_t instance = new_instance();
  halyard_device_t device = NULL;
  halyard_module_t module = NULL;
  halyard_context_t context = NULL;
  halyard_module_info_t info = {.struct_size = sizeof info};
  halyard_value_t view = {0};
  OK(halyard_module_load_file(instance, path, 0, &module));
  OK(halyard_module_info(module, &info));
  EXPECT(info.needs_devices == (uri != NULL));
  if (uri) OK(halyard_device_open(instance, uri, &device));
  halyard_context_options_t options = {.struct_size = sizeof options,
                                       .modules = &module,
                                       .module_count = 1,
                                       .devices = &device,
                                       .device_count = uri ? 1 : 0};
  if (OK(halyard_context_create(instance, &options, &context)) &&
      OK(call_once(context, NULL, name, arguments, count, &view, 1))) {
    /* The result outlives everything else. */
    RELEASE(context, module, device, instance);
    OK(halyard_view_read(view.object, 0, result, size));
  }
  halyard_release(view.object);
}

static void traced(void* user, halyard_text_t key, const halyard_object_t* views, size_t count) {
  uint8_t letters[4] = {0};
  if (OK(halyard_view_read(views[0], 0, letters, 4)))
    *(int*)user = key.size == 4 && count == 1 && memcmp(key.data, letters, 4) == 0;
}

/* What @support answers in a context with these options. */
static int32_t support(halyard_instance_t instance, halyard_context_options_t options) {
  halyard_module_t module = load_text(instance, kText);
  halyard_context_t context = NULL;
  halyard_value_t result = {.i32 = -1};
  options.struct_size = sizeof options;
  options.modules = &module;
  options.module_count = 1;
  if (OK(halyard_context_create(instance, &options, &context)))
    OK(call_once(context, NULL, "support", NULL, 0, &result, 1));
  RELEASE(context, module);
  return result.i32;
}

int main(void) {
  const float left[3] = {1, 2, 3};
  const float right[3] = {10, 0.5f, -1};
  float product[3] = {0};
  halyard_value_t arguments[2] = {host_view(0x21000020, left, 3), host_view(0x21000020, right, 3)};
  run_example(HALYARD_SOURCE_DIR "/examples/inline_mul.vmasm", NULL, "mul", arguments, 2, product,
              sizeof product);
  EXPECT(product[0] == 10 && product[1] == 1 && product[2] == -3);
  RELEASE(arguments[0].object, arguments[1].object);

  /* A program with a device takes such views, too. */
  const float eight[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float squares[8] = {0};
  arguments[0] = arguments[1] = host_view(0x21000020, eight, 8);
  run_example(HALYARD_SOURCE_DIR "/examples/elementwise_mul.vmasm", "local-sync", "mul", arguments, 2,
              squares, sizeof squares);
  EXPECT(squares[0] == 1 && squares[7] == 64);
  halyard_release(arguments[0].object);

  const int32_t numbers[6] = {1, 2, 3, 4, 5, 6};
  int32_t scaled[6] = {0};
  arguments[0] = host_view(0x10000020, numbers, 6);
  arguments[1] = (halyard_value_t){.kind = HALYARD_VALUE_I32};
  arguments[1].i32 = 7;
  run_example(HALYARD_SOURCE_DIR "/examples/inline_dispatch.vmasm", NULL, "scale", arguments, 2, scaled,
              sizeof scaled);
  EXPECT(scaled[0] == 7 && scaled[5] == 42);

  /* Views of the host are views as others are, and shapes are checked. */
  char* text = NULL;
  if (OK(halyard_view_text(arguments[0].object, 10, &text))) EXPECT(strcmp(text, "6xi32=1 2 3 4 5 6") == 0);
  halyard_free(text);
  const int64_t five = 5;
  FAILS(halyard_view_create(NULL, 0x10000020, &five, 1, numbers, 24, &arguments[1].object),
        HALYARD_INVALID_ARGUMENT, "20 bytes");
  halyard_release(arguments[0].object);
  halyard_object_t fence = NULL;
  FAILS(halyard_fence_create(NULL, &fence), HALYARD_INVALID_ARGUMENT, "a fence needs a device");

  /* Where kernels run: on a device that is opened behind the scenes, with the settings given; or on a local
   * one of the list, with its own. */
  const halyard_instance_t instance = new_instance();
  const halyard_device_setting_t no_native = {"native", "0"};
  EXPECT(support(instance, (halyard_context_options_t){0}) == 1);
  EXPECT(support(instance,
                 (halyard_context_options_t){.loader_settings = &no_native, .loader_setting_count = 1}) == 0);
  halyard_device_t devices[2] = {NULL, NULL};
  if (OK(halyard_device_open(instance, "null", &devices[0])) &&
      OK(halyard_device_open(instance, "local-task?native=0", &devices[1]))) {
    EXPECT(support(instance, (halyard_context_options_t){.devices = devices, .device_count = 2}) == 0);
    EXPECT(support(instance, (halyard_context_options_t){.devices = devices, .device_count = 1}) == 1);
  }
  RELEASE(devices[0], devices[1]);

  /* The memory limit holds, and the trace function is called. */
  halyard_module_t module = load_text(instance, kText);
  int has_traced = 0;
  halyard_context_options_t options = {.struct_size = sizeof options,
                                       .modules = &module,
                                       .module_count = 1,
                                       .trace = traced,
                                       .trace_user = &has_traced};
  halyard_context_t context = NULL;
  halyard_value_t letters = {0};
  if (OK(halyard_context_create(instance, &options, &context)))
    OK(call_once(context, NULL, "letters", NULL, 0, &letters, 1));
  EXPECT(has_traced);
  RELEASE(letters.object, context);
  options.max_memory = 3;
  if (OK(halyard_context_create(instance, &options, &context)))
    FAILS(call_once(context, NULL, "letters", NULL, 0, &letters, 1), HALYARD_RESOURCE_EXHAUSTED, "");
  halyard_release(context);

  /* Only hal_loader needs an instance. */
  options.max_memory = 0;
  if (OK(halyard_context_create(NULL, &options, &context))) {
    if (OK(call_once(context, NULL, "letters", NULL, 0, &letters, 1))) halyard_release(letters.object);
    FAILS(call_once(context, NULL, "support", NULL, 0, &letters, 1), HALYARD_FAILED_PRECONDITION, "instance");
  }
  RELEASE(context, module, instance);
  return failures != 0;
}
