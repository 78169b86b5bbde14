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

/* ---- A handle that is used again while its call runs */

static const char kAgain[] =
    "vm.module @again\n"
    "vm.dependency @check 0\n"
    "vm.import @check.expect_true cconv \"0i_v\"\n"
    "vm.export @one\n"
    "vm.export @many\n"
    "vm.func @one(%i0: i32) -> (i32) {\n"
    "  %i1 = vm.const.i32.zero\n"
    "  vm.call @check.expect_true(%i1)\n"
    "  vm.return %i0\n"
    "}\n"
    "vm.func @many(%i0: i32, %i1: i32) -> (i32, i32, i32, i32, i32, i32, i32, i32) {\n"
    "  vm.return %i0, %i0, %i0, %i0, %i1, %i1, %i1, %i1\n"
    "}\n";

typedef struct {
  halyard_call_t call;
  halyard_function_t many;
  const char* expected; /* part of the message of a refused call */
  int count;
} again_t;

/* Called while `one` runs: each use of its handle is refused. */
static void use_again(void* user, const halyard_failed_expectation_t* failed) {
  again_t* again = user;
  const halyard_value_t arguments[] = {i32(1), i32(2)};
  halyard_value_t results[8];
  uint32_t state = 0;
  EXPECT(failed->struct_size >= sizeof *failed);
  if (++again->count > 1) return;
  FAILS(halyard_call_invoke(again->call, again->many, arguments, 2, results, 8), HALYARD_FAILED_PRECONDITION,
        again->expected);
  FAILS(halyard_call_begin(again->call, again->many, arguments, 2, &state), HALYARD_FAILED_PRECONDITION,
        again->expected);
  FAILS(halyard_call_resume(again->call, &state), HALYARD_FAILED_PRECONDITION, "'one'");
  FAILS(halyard_call_results(again->call, results, 8), HALYARD_FAILED_PRECONDITION, "not done");
}

/* The refused calls change neither the results of the call that runs nor the memory after them. */
static void used_again(halyard_instance_t instance, uint32_t flags) {
  enum { kAfter = 14 };
  const halyard_module_t module = load_text(instance, kAgain);
  again_t again = {0};
  const halyard_context_options_t options = {.struct_size = sizeof options,
                                             .modules = &module,
                                             .module_count = 1,
                                             .flags = flags,
                                             .expectation = use_again,
                                             .expectation_user = &again};
  halyard_context_t context = NULL;
  if (!OK(halyard_context_create(instance, &options, &context))) return;
  const halyard_function_t one = find(context, "one");
  again.many = find(context, "many");
  OK(halyard_call_create(context, &again.call));
  const halyard_value_t argument = i32(7);
  halyard_value_t results[1 + kAfter] = {0};
  for (int i = 1; i <= kAfter; ++i) results[i] = i64(i);
  again.expected = "a call that has not ended";
  OK(halyard_call_invoke(again.call, one, &argument, 1, results, 1));
  EXPECT(again.count == 1 && results[0].kind == HALYARD_VALUE_I32 && results[0].i32 == 7);
  for (int i = 1; i <= kAfter; ++i) EXPECT(results[i].kind == HALYARD_VALUE_I64 && results[i].i64 == i);

  uint32_t state = HALYARD_CALL_WAITING;
  again.count = 0;
  again.expected = "'one'";
  results[0] = i32(0);
  OK(halyard_call_begin(again.call, one, &argument, 1, &state));
  EXPECT(again.count == 1 && state == HALYARD_CALL_DONE);
  OK(halyard_call_results(again.call, results, 1));
  EXPECT(results[0].i32 == 7);
  RELEASE(again.call, again.many, one, context, module);
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

  used_again(instance, 0);
  used_again(instance, HALYARD_CONTEXT_CONCURRENT_CALLS);
  RELEASE(module, instance);
  return failures != 0;
}
