/* What a module's functions are, and making them ready, from C. */
#include "program.h"

static const char kText[] =
    "vm.module @prepared\n"
    "vm.export @good\n"
    "vm.attr @good \"iree.benchmark\" \"entry\"\n"
    "vm.func @good() -> (i32) {\n"
    "  %i0 = vm.const.i32 3\n"
    "  vm.return %i0\n"
    "}\n";
/* Its second function names an instruction that there is not: found when it is verified. */
static const char kBroken[] =
    "vm.module @broken\n"
    "vm.export @good\n"
    "vm.export @bad\n"
    "vm.func @good() -> () {\n"
    "  vm.return\n"
    "}\n"
    "vm.func @bad() -> () {\n"
    "  .bytes 79FFFF\n"
    "  .blocks 1\n"
    "}\n";

int main(void) {
  halyard_instance_t instance = NULL;
  if (!OK(halyard_instance_create(NULL, &instance))) return 1;
  halyard_module_t module = load_text(instance, kText);
  halyard_module_t broken = load_text(instance, kBroken);
  if (!module || !broken) return 1;

  halyard_text_t value = {0};
  if (OK(halyard_module_function_attribute(module, 0, "iree.benchmark", &value)))
    EXPECT(value.size == 5 && memcmp(value.data, "entry", 5) == 0);
  if (OK(halyard_module_function_attribute(module, 0, "iree.bench", &value))) EXPECT(value.size == 0);
  FAILS(halyard_module_function_attribute(module, 1, "iree.benchmark", &value), HALYARD_OUT_OF_RANGE,
        "exports 1");

  for (int turn = 0; turn < 2; ++turn) {
    OK(halyard_module_prepare(module, HALYARD_PREPARE_VERIFY));
    OK(halyard_module_prepare(module, HALYARD_PREPARE_DECODE));
    FAILS(halyard_module_prepare(broken, HALYARD_PREPARE_VERIFY), HALYARD_INVALID_ARGUMENT, "broken.bad");
    FAILS(halyard_module_prepare(broken, HALYARD_PREPARE_DECODE), HALYARD_INVALID_ARGUMENT, "broken.bad");
  }
  FAILS(halyard_module_prepare(module, 2), HALYARD_INVALID_ARGUMENT, "HALYARD_PREPARE_VERIFY");

  RELEASE(module, broken, instance);
  return failures != 0;
}
