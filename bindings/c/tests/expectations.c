/* Expectations of test programs (the module `check`) from C: told to the context's function where it has one,
 * which the program goes on after; else the first one fails the call. */
#include <stdio.h>
#include <string.h>

#include "halyard/halyard.h"
#include "program.h"

static const char kText[] =
    "vm.module @tests\n"
    "vm.dependency @check 0\n"
    "vm.import @check.expect_true cconv \"0i_v\"\n"
    "vm.import @check.expect_false cconv \"0i_v\"\n"
    "vm.export @fails\n"
    "vm.export @passes\n"
    "vm.func @fails(%i0: i32) -> (i32) {\n"
    "  %i1 = vm.const.i32.zero\n"
    "  vm.call @check.expect_true(%i1)\n"
    "  vm.call @check.expect_false(%i0)\n"
    "  vm.return %i0\n"
    "}\n"
    "vm.func @passes() -> () {\n"
    "  %i0 = vm.const.i32.zero\n"
    "  vm.call @check.expect_false(%i0)\n"
    "  vm.return\n"
    "}\n";

typedef struct {
  int count;
  char functions[2][32];
  char messages[2][128];
  char places[2][128];
} reports_t;

static void copy(char* to, size_t size, halyard_text_t text) {
  snprintf(to, size, "%.*s", (int)text.size, text.data);
}

static void tell(void* user, const halyard_failed_expectation_t* failed) {
  reports_t* reports = user;
  EXPECT(failed->struct_size >= sizeof *failed);
  if (reports->count < 2) {
    copy(reports->functions[reports->count], sizeof reports->functions[0], failed->function);
    copy(reports->messages[reports->count], sizeof reports->messages[0], failed->message);
    copy(reports->places[reports->count], sizeof reports->places[0], failed->place);
  }
  ++reports->count;
}

static halyard_status_t invoke(halyard_instance_t instance, halyard_context_options_t options,
                               const char* name, int32_t* number) {
  halyard_context_t context = NULL;
  halyard_status_t status = halyard_context_create(instance, &options, &context);
  const halyard_value_t argument = i32(5);
  halyard_value_t result = {0};
  if (!status) status = call_once(context, NULL, name, &argument, number != NULL, &result, number != NULL);
  if (!status && number) *number = result.i32;
  halyard_release(context);
  return status;
}

int main(void) {
  halyard_instance_t instance = NULL;
  if (!OK(halyard_instance_create(NULL, &instance))) return 1;
  const halyard_module_t module = load_text(instance, kText);
  if (!module) return 1;

  reports_t reports = {0};
  halyard_context_options_t options = {.struct_size = sizeof options,
                                       .modules = &module,
                                       .module_count = 1,
                                       .expectation = tell,
                                       .expectation_user = &reports};
  int32_t number = 0;
  OK(invoke(instance, options, "fails", &number));
  EXPECT(number == 5 && reports.count == 2);
  EXPECT(strcmp(reports.functions[0], "expect_true") == 0 &&
         strcmp(reports.functions[1], "expect_false") == 0);
  EXPECT(strcmp(reports.messages[0], "expected a value other than 0, found 0") == 0);
  EXPECT(strcmp(reports.messages[1], "expected 0, found 5") == 0);
  EXPECT(strstr(reports.places[0], "at tests.fails+") == reports.places[0]);
  EXPECT(strcmp(reports.places[0], reports.places[1]) != 0);
  OK(invoke(instance, options, "passes", NULL));
  EXPECT(reports.count == 2);

  /* Without the function; and from a program that was compiled when the struct had no such field. */
  options.expectation = NULL;
  FAILS(invoke(instance, options, "fails", &number), HALYARD_FAILED_PRECONDITION,
        "'expect_true' does not hold: expected a value other than 0, found 0");
  OK(invoke(instance, options, "passes", NULL));
  options.expectation = tell;
  options.struct_size = offsetof(halyard_context_options_t, expectation);
  FAILS(invoke(instance, options, "fails", &number), HALYARD_FAILED_PRECONDITION, "'expect_true'");
  EXPECT(reports.count == 2);

  RELEASE(module, instance);
  return failures != 0;
}
