/* What a program in C can get wrong about structs, outputs, results, and how a context is put together: each
 * is a status that says what to do, never a crash and never silence.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "halyard/fence.h"
#include "halyard/memory.h"
#include "halyard/module.h"
#include "halyard/signature.h"
#include "program.h"

static halyard_instance_t instance;
static halyard_device_t device;

static halyard_module_t assemble(const char* text) {
  const halyard_module_t module = load_text(instance, text);
  if (!module) exit(1);
  return module;
}

static halyard_status_t link_all(const halyard_module_t* modules, size_t count, halyard_context_t* out) {
  const halyard_context_options_t options = {
      .struct_size = sizeof options, .modules = modules, .module_count = count};
  return halyard_context_create(instance, &options, out);
}

static const char kAdd[] =
    "vm.module @lib\nvm.export @add\n"
    "vm.func @add(%i0: i32, %i1: i32) -> (i32) {\n  %i0 = vm.add.i32 %i0, %i1\n  vm.return %i0\n}\n";
static const char kUser[] =
    "vm.module @user\nvm.import @lib.add cconv \"0ii_i\"\nvm.export @twice\n"
    "vm.func @twice(%i0: i32) -> (i32) {\n  %i0 = vm.call @lib.add(%i0, %i0)\n  vm.return %i0\n}\n";

/* ---- Structs */

struct newer_options {
  halyard_context_options_t known;
  uint64_t later[2];
};
struct newer_info {
  halyard_module_info_t known;
  uint64_t later;
};

static void sizes_of_structs(halyard_module_t module) {
  halyard_context_t context = NULL;
  halyard_instance_t made = NULL;
  struct newer_options options = {{.struct_size = 0, .modules = &module, .module_count = 1}, {0, 0}};
  FAILS(halyard_context_create(instance, &options.known, &context), HALYARD_INVALID_ARGUMENT,
        "struct_size is 0; set it to sizeof");
  options.known.struct_size = 0xDEADBEEF; /* never set */
  FAILS(halyard_context_create(instance, &options.known, &context), HALYARD_INVALID_ARGUMENT, "3735928559");
  options.known.struct_size = sizeof options;
  OK(halyard_context_create(instance, &options.known, &context)); /* later fields that ask for nothing */
  halyard_release(context);
  options.later[1] = 1;
  FAILS(halyard_context_create(instance, &options.known, &context), HALYARD_UNIMPLEMENTED, halyard_version());
  halyard_instance_options_t instances = {.struct_size = 0};
  FAILS(halyard_instance_create(&instances, &made), HALYARD_INVALID_ARGUMENT, "struct_size");
  void* bytes = NULL;
  char* text = NULL;
  size_t size = 0;
  halyard_assemble_options_t assembling = {.struct_size = 2};
  FAILS(halyard_assemble(kAdd, sizeof kAdd - 1, &assembling, &bytes, &size), HALYARD_INVALID_ARGUMENT,
        "struct_size is 2");
  OK(halyard_assemble(kAdd, sizeof kAdd - 1, NULL, &bytes, &size));
  halyard_disassemble_options_t disassembling = {.struct_size = 0};
  FAILS(halyard_disassemble(bytes, size, &disassembling, &text, NULL), HALYARD_INVALID_ARGUMENT,
        "struct_size");
  disassembling = (halyard_disassemble_options_t){.struct_size = sizeof disassembling, .flags = 1u << 9};
  FAILS(halyard_disassemble(bytes, size, &disassembling, &text, NULL), HALYARD_INVALID_ARGUMENT,
        "HALYARD_DISASSEMBLE_*");
  halyard_free(bytes);

  struct newer_info info = {.later = 7};
  FAILS(halyard_module_info(module, &info.known), HALYARD_INVALID_ARGUMENT, "struct_size");
  info.known.struct_size = sizeof info;
  OK(halyard_module_info(module, &info.known));
  EXPECT(info.later == 0 && info.known.struct_size == sizeof info && info.known.function_count == 1);
  info.known.struct_size = UINT32_MAX;
  FAILS(halyard_module_info(module, &info.known), HALYARD_INVALID_ARGUMENT, "struct_size");
  FAILS(halyard_module_info(module, NULL), HALYARD_INVALID_ARGUMENT, "null pointer");
}

/* ---- Outputs at a null pointer */

static void null_outputs(halyard_module_t module, halyard_context_t context) {
#define NULLS(call) FAILS(call, HALYARD_INVALID_ARGUMENT, "an address for the output")
  size_t size = 0;
  char* text = NULL;
  void* data = NULL;
  halyard_call_t call = NULL;
  halyard_object_t view = NULL;
  const float numbers[4] = {1, 2, 3, 4};
  const int64_t shape[] = {4};
  halyard_function_t function = find(context, "add");
  const halyard_value_t arguments[] = {i32(1), i32(2)};
  const halyard_module_definition_t native = {.struct_size = sizeof native,
                                              .abi_version = HALYARD_MODULE_ABI_V1,
                                              .name = "native",
                                              .export_size = sizeof(halyard_module_export_t)};
  OK(halyard_call_create(context, &call));
  OK(halyard_view_create(device, HALYARD_ELEMENT_F32, shape, 1, numbers, sizeof numbers, &view));
  NULLS(halyard_instance_create(NULL, NULL));
  NULLS(halyard_instance_drivers(instance, NULL, &size));
  NULLS(halyard_instance_devices(instance, "local-sync", NULL, &size));
  NULLS(halyard_instance_candidates(instance, NULL, NULL));
  NULLS(halyard_instance_search(instance, NULL));
  NULLS(halyard_instance_objects(instance, NULL, &size));
  NULLS(halyard_instance_compiling(instance, NULL));
  NULLS(halyard_device_objects(device, NULL, &size));
  NULLS(halyard_device_open(instance, "local-sync", NULL));
  NULLS(halyard_device_query(device, "hal.device", "concurrency", NULL, NULL));
  NULLS(halyard_module_load_file(instance, "x.vmfb", 0, NULL));
  NULLS(halyard_module_load_memory(instance, numbers, sizeof numbers, 0, NULL));
  NULLS(halyard_module_create_native(instance, &native, NULL));
  NULLS(halyard_module_warnings(module, NULL, &size));
  NULLS(halyard_module_function_attribute(module, 0, "x", NULL));
  NULLS(halyard_module_signature(module, 0, NULL));
  NULLS(halyard_function_signature(function, NULL));
  NULLS(halyard_context_create(instance, NULL, NULL));
  NULLS(halyard_context_find(context, NULL, "add", NULL));
  NULLS(halyard_call_create(context, NULL));
  NULLS(halyard_call_begin(call, function, arguments, 2, NULL));
  NULLS(halyard_call_resume(call, NULL));
  NULLS(halyard_view_create(device, HALYARD_ELEMENT_F32, shape, 1, numbers, sizeof numbers, NULL));
  NULLS(halyard_view_import(device, HALYARD_ELEMENT_F32, shape, 1, (void*)numbers, sizeof numbers, 0, NULL,
                            NULL, NULL, NULL));
  NULLS(halyard_view_part(view, 0, HALYARD_ELEMENT_F32, shape, 1, NULL));
  NULLS(halyard_view_map(view, HALYARD_VIEW_READ, NULL, &size));
  NULLS(halyard_view_map(view, HALYARD_VIEW_READ, &data, NULL));
  NULLS(halyard_view_text(view, 1, NULL));
  NULLS(halyard_view_buffer(view, NULL));
  NULLS(halyard_view_to_dlpack(view, 0, NULL));
  NULLS(halyard_view_to_dlpack_unversioned(view, 0, NULL));
  NULLS(halyard_list_create(HALYARD_VALUE_NULL, NULL));
  NULLS(halyard_list_size(view, NULL));
  NULLS(halyard_list_get(view, 0, NULL));
  NULLS(halyard_fence_create(device, NULL));
  NULLS(halyard_fence_join(NULL, 0, NULL));
  NULLS(halyard_fence_query(view, NULL));
  NULLS(halyard_trace_create(NULL, NULL));
  NULLS(halyard_tensor_parse((halyard_text_t){"4xf32", 5}, NULL));
  NULLS(halyard_tensor_type_parse((halyard_text_t){"4xf32", 5}, NULL));
  NULLS(halyard_assemble(kAdd, sizeof kAdd - 1, NULL, NULL, &size));
  NULLS(halyard_assemble(kAdd, sizeof kAdd - 1, NULL, &data, NULL));
  NULLS(halyard_disassemble(numbers, sizeof numbers, NULL, NULL, NULL));
  NULLS(halyard_module_describe(numbers, sizeof numbers, HALYARD_DESCRIBE_TEXT, NULL, NULL));
  NULLS(halyard_compiler_explain(numbers, sizeof numbers, NULL, NULL, NULL));
  NULLS(halyard_capture_open("x", 0, NULL));
  NULLS(halyard_replay_create(NULL, device, NULL));
#undef NULLS
  FAILS(halyard_view_read(view, 0, NULL, 4), HALYARD_INVALID_ARGUMENT,
        "4 bytes at `target`, found a null pointer");
  FAILS(halyard_disassemble(NULL, 4, NULL, &text, NULL), HALYARD_INVALID_ARGUMENT, "null pointer");
  FAILS(halyard_assemble(NULL, 4, NULL, &data, &size), HALYARD_INVALID_ARGUMENT, "null pointer");
  RELEASE(function, view, call);
}

/* Texts in arrays: a null one is told with its place. */
static void null_texts(halyard_module_t module) {
  halyard_instance_t made = NULL;
  halyard_device_t opened = NULL;
  halyard_context_t context = NULL;
  const char* const texts[] = {"/nowhere", NULL};
  halyard_instance_options_t instances = {
      .struct_size = sizeof instances, .driver_libraries = texts, .driver_library_count = 2};
  FAILS(halyard_instance_create(&instances, &made), HALYARD_INVALID_ARGUMENT, "driver_libraries[1] is null");
  instances = (halyard_instance_options_t){
      .struct_size = sizeof instances, .driver_folders = NULL, .driver_folder_count = 2};
  FAILS(halyard_instance_create(&instances, &made), HALYARD_INVALID_ARGUMENT, "array of 2 texts");
  const halyard_device_setting_t settings[] = {{"a", "b"}, {"c", NULL}};
  FAILS(halyard_device_open_with(instance, "local-sync", settings, 2, &opened), HALYARD_INVALID_ARGUMENT,
        "settings[1].value is null");
  const halyard_context_options_t options = {.struct_size = sizeof options,
                                             .modules = &module,
                                             .module_count = 1,
                                             .loader_settings = settings + 1,
                                             .loader_setting_count = 1};
  FAILS(halyard_context_create(instance, &options, &context), HALYARD_INVALID_ARGUMENT,
        "loader_settings[0].value is null");
}

/* ---- Values and results */

static void reserved_of_values(halyard_context_t context) {
  halyard_value_t result, arguments[] = {i32(1), i32(2)};
  arguments[1].reserved = 3;
  FAILS(call_once(context, NULL, "add", arguments, 2, &result, 1), HALYARD_INVALID_ARGUMENT,
        "argument 1 of 'add' has 0x3 in the field `reserved`");
  arguments[1].reserved = 0;
  OK(call_once(context, NULL, "add", arguments, 2, &result, 1));
  EXPECT(result.i32 == 3 && result.reserved == 0);
}

static void results_once(halyard_context_t context) {
  halyard_call_t call = NULL;
  uint32_t state = 9;
  const halyard_value_t arguments[] = {i32(1), i32(2)};
  halyard_value_t results[2];
  halyard_function_t function = find(context, "add");
  OK(halyard_call_create(context, &call));
  FAILS(halyard_call_results(call, results, 1), HALYARD_FAILED_PRECONDITION, "no call was begun");
  OK(halyard_call_begin(call, function, arguments, 2, &state));
  EXPECT(state == HALYARD_CALL_DONE);
  FAILS(halyard_call_results(call, results, 2), HALYARD_INVALID_ARGUMENT, "has 1 results");
  FAILS(halyard_call_results(call, NULL, 1), HALYARD_INVALID_ARGUMENT, "array of 1 values at `results`");
  OK(halyard_call_results(call, results, 1)); /* what failed took nothing */
  EXPECT(results[0].i32 == 3);
  FAILS(halyard_call_results(call, results, 1), HALYARD_FAILED_PRECONDITION, "were already taken");
  FAILS(halyard_call_results(call, NULL, 0), HALYARD_FAILED_PRECONDITION, "were already taken");
  OK(halyard_call_begin(call, function, arguments, 2, &state));
  OK(halyard_call_results(call, results, 1));
  FAILS(halyard_call_begin(call, function, arguments, 1, &state), HALYARD_INVALID_ARGUMENT, "");
  FAILS(halyard_call_results(call, results, 1), HALYARD_FAILED_PRECONDITION, "were already taken");
  OK(halyard_call_invoke(call, function, arguments, 2, results, 1));
  FAILS(halyard_call_results(call, results, 1), HALYARD_FAILED_PRECONDITION, "were already taken");
  RELEASE(function, call);

  halyard_module_t module = assemble(
      "vm.module @m\nvm.export @pause\nvm.func @pause() -> (i32) {\n  vm.yield ^bb1\n^bb1:\n"
      "  %i0 = vm.const.i32.zero\n  vm.return %i0\n}\n");
  halyard_context_t pausing = NULL;
  OK(link_all(&module, 1, &pausing));
  function = find(pausing, "pause");
  OK(halyard_call_create(pausing, &call));
  OK(halyard_call_begin(call, function, NULL, 0, &state));
  EXPECT(state == HALYARD_CALL_READY);
  FAILS(halyard_call_results(call, results, 1), HALYARD_FAILED_PRECONDITION, "until HALYARD_CALL_DONE");
  OK(halyard_call_resume(call, &state));
  OK(halyard_call_results(call, results, 1));
  RELEASE(call, function, pausing, module);
}

static halyard_status_t give_what_it_holds(void* state, halyard_module_call_t* call) {
  call->results[0] = *(const halyard_value_t*)state;
  return NULL;
}

/* A native function that gives another kind than its convention says. */
static void results_of_native_functions(void) {
  halyard_value_t held = {.kind = HALYARD_VALUE_I64, .i64 = 41}, result;
  const halyard_module_export_t exports[] = {HALYARD_FRAME("number", "0v_i", give_what_it_holds)};
  const halyard_module_definition_t definition = {.struct_size = sizeof definition,
                                                  .abi_version = HALYARD_MODULE_ABI_V1,
                                                  .name = "host",
                                                  .export_size = sizeof *exports,
                                                  .exports = exports,
                                                  .export_count = 1,
                                                  .user = &held};
  halyard_module_t native = NULL;
  OK(halyard_module_create_native(instance, &definition, &native));
  const halyard_context_t context = context_of(instance, native, NULL);
  OK(call_once(context, NULL, "number", NULL, 0, &result, 1)); /* nothing is lost */
  EXPECT(result.kind == HALYARD_VALUE_I32 && result.i32 == 41);
  held = (halyard_value_t){.kind = HALYARD_VALUE_F32, .f32 = 2.5f};
  FAILS(
      call_once(context, NULL, "number", NULL, 0, &result, 1), HALYARD_INVALID_ARGUMENT,
      "result 0 must be an i32, found f32 2.5, which it cannot hold exactly; in native function host.number");
  held = (halyard_value_t){.kind = HALYARD_VALUE_I32, .reserved = 1};
  FAILS(call_once(context, NULL, "number", NULL, 0, &result, 1), HALYARD_INVALID_ARGUMENT, "`reserved`");
  RELEASE(context, native);
}

/* ---- Contexts */

static void order_of_modules(halyard_module_t lib) {
  halyard_context_t context = NULL;
  halyard_module_t user = assemble(kUser);
  FAILS(link_all((halyard_module_t[]){user, lib}, 2, &context), HALYARD_INVALID_ARGUMENT,
        "module 'user' (modules[0]) imports from module 'lib' (modules[1]), which comes later; put it first");
  FAILS(link_all(&user, 1, &context), HALYARD_NOT_FOUND, "'lib'");
  OK(link_all((halyard_module_t[]){lib, user}, 2, &context));
  RELEASE(context, user);

  user = assemble("vm.module @user\nvm.import @lib.add cconv \"0iI_i\"\nvm.empty\n");
  FAILS(link_all((halyard_module_t[]){lib, user}, 2, &context), HALYARD_INCOMPATIBLE, "'0iI_i'");
  halyard_release(user);
}

/* A program that looks for a device when it is made and does not find one. */
static void no_devices(void) {
  halyard_context_t context = NULL;
  halyard_module_t module = assemble(
      "vm.module @m\nvm.import @hal.devices.count cconv \"0v_i\"\n"
      "vm.rodata[0] = \"no device\"\n"
      "vm.export @__init\nvm.func @__init() -> () {\n  %i0 = vm.call @hal.devices.count()\n"
      "  vm.cond_br %i0, ^bb1, ^bb2\n^bb1:\n  vm.return\n^bb2:\n  %i1 = vm.const.i32 18\n"
      "  vm.fail %i1, \"HAL device `__device_0` not found or unavailable\"\n}\n");
  FAILS(link_all(&module, 1, &context), HALYARD_INCOMPATIBLE, "the context has no devices");
  const halyard_context_options_t options = {.struct_size = sizeof options,
                                             .modules = &module,
                                             .module_count = 1,
                                             .devices = &device,
                                             .device_count = 1};
  OK(halyard_context_create(instance, &options, &context));
  RELEASE(context, module);
}

/* ---- Drivers */

static void refused_drivers(void) {
  halyard_instance_t made = NULL;
  halyard_device_t opened = NULL;
  char folder[] = "/tmp/halyard-misuse-XXXXXX", path[256];
  EXPECT(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/halyard-driver-broken.so", folder);
  FILE* file = fopen(path, "w");
  fputs("this is no library", file);
  fclose(file);
  const char* const folders[] = {folder};
  halyard_instance_options_t options = {
      .struct_size = sizeof options,
      .flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS,
      .driver_folders = folders,
      .driver_folder_count = 1};
  OK(halyard_instance_create(&options, &made));
  FAILS(halyard_device_open(made, "local-sync", &opened), HALYARD_NOT_FOUND, path);
  FAILS(halyard_device_open(made, "local-sync", &opened), HALYARD_NOT_FOUND, "ELF");
  halyard_release(made);

  /* Named as a file, it is of interest also where others serve. */
  const char* const libraries[] = {path};
  options = (halyard_instance_options_t){
      .struct_size = sizeof options, .driver_libraries = libraries, .driver_library_count = 1};
  OK(halyard_instance_create(&options, &made));
  FAILS(halyard_device_open(made, "gpu", &opened), HALYARD_NOT_FOUND, "halyard-driver-broken.so");
  OK(halyard_device_open(made, "local-sync", &opened));
  RELEASE(opened, made);
  unlink(path);
  rmdir(folder);
}

int main(void) {
  halyard_context_t context = NULL;
  OK(halyard_instance_create(NULL, &instance));
  if (!OK(halyard_device_open(instance, "local-sync", &device))) return 1;
  halyard_module_t lib = assemble(kAdd);
  if (!OK(link_all(&lib, 1, &context))) return 1;
  sizes_of_structs(lib);
  null_outputs(lib, context);
  null_texts(lib);
  reserved_of_values(context);
  results_once(context);
  results_of_native_functions();
  order_of_modules(lib);
  no_devices();
  refused_drivers();
  RELEASE(context, lib, device, instance);
  return failures != 0;
}
