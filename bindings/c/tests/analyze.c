/* The analysis of a function with inputs as text: the shapes that it uses, and inputs that do not fit. */
#include "program.h"

static const char kText[] =
    "vm.module @m\n"
    "vm.export @declared\n"
    "vm.attr @declared \"iree.abi.declaration\" \"sync func @declared(%x: tensor<?x4xf32>, %n: i32, %any: "
    "tensor<*xi8>, %list: !util.list<?>) -> ()\"\n"
    "vm.func @declared(%r0: !vm.buffer, %i0: i32, %r1: !vm.buffer, %r2: !vm.buffer) -> () {\n  vm.return\n}\n"
    "vm.export @plain\n"
    "vm.func @plain(%r0: !vm.buffer, %i0: f32) -> () {\n  vm.return\n}\n"
    "vm.export @later\n"
    "vm.attr @later \"iree.abi.model\" \"coarse-fences\"\n"
    "vm.func @later(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.buffer) -> () {\n  vm.return\n}\n"
    "vm.export @few\n"
    "vm.attr @few \"iree.abi.model\" \"coarse-fences\"\n"
    "vm.func @few(%r0: !vm.buffer) -> () {\n  vm.return\n}\n"
    "vm.export @contradicted\n"
    "vm.attr @contradicted \"iree.abi.declaration\" \"sync func @contradicted(%a: i32, %b: i32) -> ()\"\n"
    "vm.func @contradicted(%i0: i32) -> () {\n  vm.return\n}\n";

static void* module;
static size_t module_size;

static halyard_status_t analyze(const char* function, const char* const* inputs, size_t count, char** text) {
  halyard_analyze_options_t options = {
      .struct_size = sizeof options, .function = function, .inputs = inputs, .input_count = count};
  *text = NULL;
  return halyard_module_analyze(module, module_size, &options, text, NULL);
}

static void takes(const char* function, const char* const* inputs, size_t count, const char* part) {
  char* text = NULL;
  if (!OK(analyze(function, inputs, count, &text))) return;
  EXPECT(strstr(text, part) != NULL);
  if (!strstr(text, part)) fprintf(stderr, "  expected '%s' in %s\n", part, text);
  halyard_free(text);
}
#define TAKES(function, part, ...)                    \
  takes(function, (const char* const[]){__VA_ARGS__}, \
        sizeof((const char* const[]){__VA_ARGS__}) / sizeof(char*), part)
#define REFUSES(function, part, ...)                                                  \
  do {                                                                                \
    char* none = NULL;                                                                \
    FAILS(analyze(function, (const char* const[]){__VA_ARGS__},                       \
                  sizeof((const char* const[]){__VA_ARGS__}) / sizeof(char*), &none), \
          HALYARD_INVALID_ARGUMENT, part);                                            \
    EXPECT(!none);                                                                    \
  } while (0)

int main(void) {
  if (!OK(halyard_assemble(kText, strlen(kText), NULL, &module, &module_size))) return 1;
  char* text = NULL;
  if (OK(analyze(NULL, NULL, 0, &text))) {
    EXPECT(strstr(text, "\"name\": \"declared\"") && strstr(text, "\"name\": \"contradicted\""));
    halyard_free(text);
  }
  TAKES("declared", "\"name\": \"declared\"", "2x4xf32");
  TAKES("declared", "\"name\": \"declared\"", "?x4xf32", "5", "3xi8", "");
  TAKES("declared", "\"name\": \"declared\"", "", "", "", "");
  TAKES("declared", "\"name\": \"declared\"", "2x?xf32", "-5");
  TAKES("plain", "\"name\": \"plain\"", "f32", "-2.5e3");
  TAKES("plain", "\"name\": \"plain\"", "0x1xbf16", "7");
  TAKES("later", "\"name\": \"later\"", "4xi4"); /* fences are no inputs */
  TAKES("few", "\"name\": \"few\"", "4xi4");
  TAKES("contradicted", "\"name\": \"contradicted\"", "5");

  REFUSES("declared", "input 0 has 1 dimensions; the function expects 2", "4xf32");
  REFUSES("declared", "dimension 1 of input 0 is 5; the function expects 4", "2x5xf32");
  REFUSES("declared", "input 0 is '2x4', without an element type", "2x4");
  REFUSES("declared", "input 0 is '2', without an element type", "2");
  REFUSES("declared", "whose size is no number", "2yx4xf32");
  REFUSES("declared", "whose size is no number", "?2x4xf32");
  REFUSES("declared", "whose size is no number", "99999999999999999999x4xf32");
  REFUSES("declared", "whose element type 'q7' is not known", "2x4xq7");
  REFUSES("declared", "whose element type '' is not known", "2x4x");
  REFUSES("declared", "whose element type '-1x4xf32' is not known", "-1x4xf32");
  REFUSES("declared", "input 1 is 'x'; the function expects a number there", "", "x");
  REFUSES("declared", "input 1 is '5x'; the function expects", "", "5x");
  REFUSES("declared", "input 1 is '5.5.5'", "", "5.5.5");
  REFUSES(
      "declared",
      "input 1 is '99999999999999999999999999999999999999999999999999999999999999999999999999999999999"
      "9999999999999999x'",
      "",
      "999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999x");
  REFUSES("declared", "found 5 inputs; function 'declared' has 4", "", "", "", "", "");
  REFUSES("later", "found 2 inputs; function 'later' has 1", "", "");
  REFUSES("few", "found 2 inputs; function 'few' has 1", "", "");
  halyard_free(module);
  return failures != 0;
}
