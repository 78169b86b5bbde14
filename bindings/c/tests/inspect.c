/* Looking into modules from C: text and back, descriptions, and what fails. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "halyard/halyard.h"

static const char kText[] =
    "vm.module @inspected version 4 bytecode 16\n"
    "vm.type !nobody.has.this\n"
    "vm.import @hal.devices.count cconv \"0v_i\"\n"
    "vm.rodata[0] = e\"a \\\"string\\\"\"\n"
    "vm.export @count\n"
    "vm.func @count() -> (i32) {\n"
    "  %i0 = vm.call @hal.devices.count()\n"
    "  vm.return %i0\n"
    "}\n";

/* A function of f16, and a shader that knows no type of 16 bits; the capability comes last. */
static const char kNarrow[] =
    "vm.module @narrow\n"
    "vm.rodata[0] = 0302230700000100000000000100000000000000%s\n"
    "vm.export @half\n"
    "vm.attr @half \"iree.abi.declaration\" \"sync func @half(%%input0: tensor<5xf16>)\"\n"
    "vm.func @half() -> () {\n"
    "  vm.return\n"
    "}\n";

/* The warnings about it, to be freed; null where that failed. */
static char* warnings_with(halyard_instance_t instance, const char* capability) {
  char source[1024];
  snprintf(source, sizeof source, kNarrow, capability);
  void* data = NULL;
  size_t size = 0;
  halyard_module_t module = NULL;
  char* text = NULL;
  size_t text_size = 0;
  if (!OK(halyard_assemble(source, strlen(source), NULL, &data, &size))) return NULL;
  if (OK(halyard_module_load_memory(instance, data, size, 0, &module)) &&
      OK(halyard_module_warnings(module, &text, &text_size)))
    EXPECT(text_size == strlen(text));
  halyard_release(module);
  halyard_free(data);
  return text;
}

static void test_warnings(void) {
  halyard_instance_options_t options = {.struct_size = sizeof options};
  halyard_instance_t instance = NULL;
  if (!OK(halyard_instance_create(&options, &instance))) return;
  char* text = warnings_with(instance, "1100020001000000");
  EXPECT(text && strstr(text, "'half' has tensors of f16") && strchr(text, '\n') == text + strlen(text) - 1);
  halyard_free(text);
  text = warnings_with(instance, "1100020051110000"); /* StorageBuffer16BitAccess */
  EXPECT(text && !*text);
  halyard_free(text);
  halyard_release(instance);
}

int main(void) {
  test_warnings();
  void* module = NULL;
  size_t size = 0;
  if (!OK(halyard_assemble(kText, strlen(kText), NULL, &module, &size))) return 1;

  char* text = NULL;
  size_t text_size = 0;
  if (OK(halyard_disassemble(module, size, NULL, &text, &text_size))) {
    EXPECT(strcmp(text, kText) == 0);
    EXPECT(text_size == strlen(kText));
    halyard_free(text);
  }
  halyard_disassemble_options_t options = {.struct_size = sizeof options,
                                           .flags = HALYARD_DISASSEMBLE_OFFSETS};
  if (OK(halyard_disassemble(module, size, &options, &text, NULL))) {
    EXPECT(strstr(text, "[00000001]   %i0 = vm.call @hal.devices.count()\n") != NULL);
    halyard_free(text);
  }
  /* A caller that knows of no fields. */
  options.struct_size = sizeof options.struct_size;
  if (OK(halyard_disassemble(module, size, &options, &text, NULL))) {
    EXPECT(strcmp(text, kText) == 0);
    halyard_free(text);
  }
  if (OK(halyard_module_describe(module, size, HALYARD_DESCRIBE_TEXT, &text, &text_size))) {
    EXPECT(strstr(text, "IREE 3.10\n") != NULL);
    EXPECT(strstr(text, "count() -> (i32)\n") != NULL);
    EXPECT(text_size == strlen(text));
    halyard_free(text);
  }
  if (OK(halyard_module_describe(module, size, HALYARD_DESCRIBE_JSON, &text, NULL))) {
    EXPECT(strstr(text, "\"made_by\": \"IREE 3.10\"") != NULL);
    EXPECT(strstr(text, "\"types\": [\"!nobody.has.this\"]") != NULL);
    halyard_free(text);
  }

  halyard_analyze_options_t of = {.struct_size = sizeof of};
  if (OK(halyard_module_analyze(module, size, NULL, &text, &text_size))) {
    EXPECT(strstr(text, "\"name\": \"count\"") != NULL);
    EXPECT(strstr(text, "\"peaks\": [{\"bytes\": 0") != NULL);
    EXPECT(text_size == strlen(text));
    halyard_free(text);
  }
  text = NULL;
  of.function = "cuont";
  FAILS(halyard_module_analyze(module, size, &of, &text, NULL), HALYARD_NOT_FOUND, "count");
  const char* inputs[] = {"4xf32"};
  of.inputs = inputs;
  of.input_count = 1;
  of.function = NULL;
  FAILS(halyard_module_analyze(module, size, &of, &text, NULL), HALYARD_INVALID_ARGUMENT, "function");
  of.function = "count";
  FAILS(halyard_module_analyze(module, size, &of, &text, NULL), HALYARD_INVALID_ARGUMENT, "1 inputs");
  of.inputs = NULL;
  FAILS(halyard_module_analyze(module, size, &of, &text, NULL), HALYARD_INVALID_ARGUMENT, "inputs");

  FAILS(halyard_module_describe(module, size, 2, &text, NULL), HALYARD_INVALID_ARGUMENT, "");
  FAILS(halyard_module_describe(module, size - 1, HALYARD_DESCRIBE_TEXT, &text, NULL),
        HALYARD_INVALID_ARGUMENT, "");
  FAILS(halyard_disassemble(module, 12, NULL, &text, NULL), HALYARD_INVALID_ARGUMENT, "");
  FAILS(halyard_disassemble(NULL, 0, NULL, &text, NULL), HALYARD_INVALID_ARGUMENT, "");
  EXPECT(text == NULL);
  /* Memory that is not aligned is as good. */
  char shifted[4096];
  if (size < sizeof shifted) {
    memcpy(shifted + 1, module, size);
    if (OK(halyard_disassemble(shifted + 1, size, NULL, &text, NULL))) {
      EXPECT(strcmp(text, kText) == 0);
      halyard_free(text);
    }
  }
  halyard_free(module);
  return failures != 0;
}
