/* Native modules through the embedding ABI, from C: functions of this program that a module imports, and a
 * shared library. */
#include <string.h>

#include "halyard/halyard.h"
#include "halyard/module.h"
#include "program.h"

/* What the program offers to its modules: an adder with a memory, kept in `user`. */
struct adder {
  int64_t sum;
  int released;
};

static int64_t add(void* state, int64_t value) { return ((struct adder*)state)->sum += value; }

static halyard_status_t length(const halyard_module_services_t* host, halyard_object_t buffer,
                               int64_t* result) {
  halyard_buffer_bytes_t bytes;
  const halyard_status_t wrong = host->buffer_bytes(buffer, &bytes);
  if (!wrong) *result = (int64_t)bytes.length;
  return wrong;
}

static halyard_status_t pick(void* state, halyard_module_call_t* call) {
  (void)state;
  const int32_t index = call->arguments[0].i32;
  if (index < 0 || (uint32_t)index >= call->spans[0])
    return halyard_status_create(HALYARD_OUT_OF_RANGE,
                                 "no such entry"); /* the host's own functions do as well */
  call->results[0].i64 = call->arguments[1 + index].i64;
  return NULL;
}

static void release(void* user) { ++((struct adder*)user)->released; }

static const halyard_module_export_t exports[] = {
    HALYARD_PLAIN("add", "0I_I", add, HALYARD_PLAIN_STATE),
    HALYARD_PLAIN("length", "0r_I", length, HALYARD_PLAIN_HOST | HALYARD_PLAIN_STATUS),
    HALYARD_FRAME("pick", "0iCID_I", pick),
};

static const char kText[] =
    "vm.module @program\n"
    "vm.import @app.add cconv \"0I_I\"\n"
    "vm.import @app.length cconv \"0r_I\"\n"
    "vm.import @app.pick cconv \"0iCID_I\"\n"
    "vm.export @twice\n"
    "vm.export @pick\n"
    "vm.export @length\n"
    "vm.func @twice(%i0:1: i64) -> (i64) {\n"
    "  %i2:3 = vm.call @app.add(%i0:1)\n"
    "  %i2:3 = vm.call @app.add(%i0:1)\n"
    "  vm.return %i2:3\n"
    "}\n"
    "vm.func @pick(%i0:1: i64, %i2: i32) -> (i64) {\n"
    "  %i4:5 = vm.const.i64 77\n"
    "  %i4:5 = vm.call.variadic @app.pick segments[65535, 2](%i2, %i0:1, %i4:5)\n"
    "  vm.return %i4:5\n"
    "}\n"
    "vm.func @length(%r0: !vm.buffer) -> (i64) {\n"
    "  %i0:1 = vm.call @app.length(%r0)\n"
    "  vm.return %i0:1\n"
    "}\n";

static halyard_context_t link_with(halyard_instance_t instance, halyard_module_t native) {
  const halyard_module_t modules[2] = {native, load_text(instance, kText)};
  halyard_context_t context = NULL;
  const halyard_context_options_t options = {
      .struct_size = sizeof options, .modules = modules, .module_count = 2};
  if (modules[1]) OK(halyard_context_create(instance, &options, &context));
  halyard_release(modules[1]);
  return context;
}

static void functions_of_the_program(halyard_instance_t instance) {
  struct adder adder = {0, 0};
  halyard_module_t native = NULL;
  {
    const halyard_module_definition_t definition = {.struct_size = sizeof definition,
                                                    .abi_version = HALYARD_MODULE_ABI_V1,
                                                    .name = "app",
                                                    .version = 9,
                                                    .export_size = sizeof exports[0],
                                                    .exports = exports,
                                                    .export_count = 3,
                                                    .user = &adder,
                                                    .release = release};
    if (!OK(halyard_module_create_native(instance, &definition, &native))) return;
  }
  halyard_module_info_t info = {.struct_size = sizeof info};
  if (OK(halyard_module_info(native, &info)))
    EXPECT(info.version == 9 && info.bytecode_version == 0 && info.function_count == 3 &&
           !info.needs_devices && info.name.size == 3 && memcmp(info.name.data, "app", 3) == 0);
  halyard_function_description_t function = {.struct_size = sizeof function};
  if (OK(halyard_module_function(native, 0, &function)))
    EXPECT(function.argument_count == 1 && function.result_count == 1 && !function.is_async &&
           memcmp(function.convention.data, "0I_I", function.convention.size) == 0);
  halyard_context_t context = link_with(instance, native);
  halyard_release(native);
  if (!context) return;

  halyard_value_t result = {0};
  halyard_value_t arguments[2] = {i64(21), i32(1)};
  if (OK(call_once(context, NULL, "twice", arguments, 1, &result, 1)))
    EXPECT(result.kind == HALYARD_VALUE_I64 && result.i64 == 42);
  if (OK(call_once(context, "app", "add", arguments, 1, &result, 1)))
    EXPECT(result.i64 == 63 && adder.sum == 63);
  if (OK(call_once(context, NULL, "pick", arguments, 2, &result, 1))) EXPECT(result.i64 == 77);
  arguments[1] = i32(2);
  FAILS(call_once(context, NULL, "pick", arguments, 2, &result, 1), HALYARD_OUT_OF_RANGE,
        "no such entry; in native");

  const halyard_module_services_t* const host = halyard_module_services();
  EXPECT(host->struct_size == sizeof *host);
  halyard_value_t buffer = {.kind = HALYARD_VALUE_OBJECT};
  if (OK(host->buffer_create(1234, 0, &buffer.object))) {
    if (OK(call_once(context, NULL, "length", &buffer, 1, &result, 1))) EXPECT(result.i64 == 1234);
    EXPECT(strcmp(halyard_object_type(buffer.object), "vm.buffer") == 0);
    halyard_release(buffer.object);
  }
  buffer = (halyard_value_t){.kind = HALYARD_VALUE_NULL};
  FAILS(call_once(context, NULL, "length", &buffer, 1, &result, 1), HALYARD_INVALID_ARGUMENT,
        "expected a vm.buffer, found null");
  EXPECT(adder.released == 0);
  halyard_release(context);
  EXPECT(adder.released == 1);
}

static void definitions_that_are_wrong(halyard_instance_t instance) {
  struct adder adder = {0, 0};
  halyard_module_t native = NULL;
  FAILS(halyard_module_create_native(instance, NULL, &native), HALYARD_INVALID_ARGUMENT, "null pointer");
  halyard_module_export_t bad = HALYARD_PLAIN("bad", "0CiD_v", add, 0);
  halyard_module_definition_t definition = {.struct_size = sizeof definition,
                                            .name = "app",
                                            .export_size = sizeof bad,
                                            .exports = &bad,
                                            .export_count = 1,
                                            .user = &adder,
                                            .release = release};
  FAILS(halyard_module_create_native(instance, &definition, &native), HALYARD_INCOMPATIBLE, "version 0");
  definition.abi_version = HALYARD_MODULE_ABI_V1;
  FAILS(halyard_module_create_native(instance, &definition, &native), HALYARD_INVALID_ARGUMENT,
        "in function 'bad' of native module 'app'");
  EXPECT(native == NULL && adder.released == 0);
}

static void shared_libraries(halyard_instance_t instance) {
  halyard_module_t native = NULL;
  FAILS(halyard_module_load_file(instance, "/none/x.so", HALYARD_MODULE_NATIVE, &native), HALYARD_NOT_FOUND,
        "/none/x.so");
  FAILS(halyard_module_load_file(instance, HALYARD_BUILD_DIR "/lib/libhalyard.so", HALYARD_MODULE_NATIVE,
                                 &native),
        HALYARD_NOT_FOUND, "not a Halyard native module");
  if (!OK(halyard_module_load_file(instance, HALYARD_BUILD_DIR "/examples/libtoolbox.so@7",
                                   HALYARD_MODULE_NATIVE, &native)))
    return;
  halyard_context_t context = NULL;
  const halyard_context_options_t options = {
      .struct_size = sizeof options, .modules = &native, .module_count = 1};
  halyard_value_t counter = {0};
  halyard_value_t result = {0};
  if (OK(halyard_context_create(instance, &options, &context)) &&
      OK(call_once(context, NULL, "counter.create", NULL, 0, &counter, 1))) {
    EXPECT(strcmp(halyard_object_type(counter.object), "toolbox.counter") == 0);
    if (OK(call_once(context, NULL, "counter.next", &counter, 1, &result, 1))) EXPECT(result.i64 == 7);
    if (OK(call_once(context, NULL, "counter.next", &counter, 1, &result, 1))) EXPECT(result.i64 == 8);
  }
  RELEASE(native, context);
  halyard_release(counter.object); /* it outlives what made it */
}

int main(void) {
  halyard_instance_t instance = NULL;
  const halyard_instance_options_t options = {
      .struct_size = sizeof options,
      .flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS};
  if (!OK(halyard_instance_create(&options, &instance))) return 1;
  functions_of_the_program(instance);
  definitions_that_are_wrong(instance);
  shared_libraries(instance);
  halyard_release(instance);
  return failures ? 1 : 0;
}
