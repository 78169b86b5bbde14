/* Calls that are cancelled before they begin, and what resuming a suspended one would find. */

#include "halyard/fence.h"
#include "program.h"

static const char kText[] =
    "vm.module @program\nvm.dependency @hal 7\n"
    "vm.import @hal.fence.await cconv \"0iICrD_i\"\n"
    "vm.export @seven\n"
    "vm.func @seven() -> (i32) {\n  %i0 = vm.const.i32 7\n  vm.return %i0\n}\n"
    "vm.export @wait\n"
    "vm.func @wait(%r0: !hal.fence) -> (i32) {\n"
    "  %i0 = vm.const.i32 -1\n  %i2:3 = vm.const.i64.zero\n"
    "  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i0, %i2:3, %r0) -> ^bb1(%i1)\n"
    "^bb1:\n  vm.return %i1\n}\n";

static halyard_status_t seven(halyard_call_t call, halyard_function_t function) {
  halyard_value_t result = {0};
  const halyard_status_t status = halyard_call_invoke(call, function, NULL, 0, &result, 1);
  if (!status) EXPECT(result.i32 == 7);
  return status;
}

static void armed_calls(halyard_call_t call, halyard_function_t function) {
  halyard_call_cancel(call); /* not armed: no effect */
  OK(seven(call, function));
  halyard_call_arm(call);
  OK(seven(call, function));
  halyard_call_cancel(call); /* it has ended */
  OK(seven(call, function));
  halyard_call_arm(call);
  halyard_call_cancel(call);
  FAILS(seven(call, function), HALYARD_CANCELLED, "cancelled");
  OK(seven(call, function)); /* one call only */
  halyard_call_arm(call);
  halyard_call_cancel(call);
  halyard_call_arm(call); /* anew */
  OK(seven(call, function));
  halyard_call_arm(NULL);
}

static void states(halyard_call_t call, halyard_function_t function, halyard_device_t device) {
  halyard_value_t fence = {.kind = HALYARD_VALUE_OBJECT};
  halyard_value_t result = {0};
  uint32_t state = HALYARD_CALL_DONE;
  if (!OK(halyard_fence_create(device, &fence.object))) return;
  EXPECT(halyard_call_state(call) == HALYARD_CALL_DONE);
  OK(halyard_call_begin(call, function, &fence, 1, &state));
  EXPECT(state == HALYARD_CALL_WAITING && halyard_call_state(call) == HALYARD_CALL_WAITING);
  halyard_call_arm(call); /* suspended: no effect */
  OK(halyard_fence_signal(fence.object));
  EXPECT(halyard_call_state(call) == HALYARD_CALL_READY);
  OK(halyard_call_resume(call, &state));
  EXPECT(state == HALYARD_CALL_DONE && halyard_call_state(call) == HALYARD_CALL_DONE);
  OK(halyard_call_results(call, &result, 1));
  EXPECT(result.i32 == 0);
  EXPECT(halyard_call_state(NULL) == HALYARD_CALL_DONE);
  halyard_release(fence.object);
}

int main(void) {
  halyard_instance_t instance = NULL;
  halyard_device_t device = NULL;
  halyard_module_t module = NULL;
  halyard_context_t context = NULL;
  halyard_function_t functions[2] = {NULL, NULL};
  halyard_call_t call = NULL;
  if (!OK(halyard_instance_create(NULL, &instance)) ||
      !OK(halyard_device_open(instance, "local-sync", &device)) || !(module = load_text(instance, kText)))
    return 1;
  context = context_of(instance, module, device);
  if (context && OK(halyard_context_find(context, NULL, "seven", &functions[0])) &&
      OK(halyard_context_find(context, NULL, "wait", &functions[1])) &&
      OK(halyard_call_create(context, &call))) {
    armed_calls(call, functions[0]);
    states(call, functions[1], device);
  }
  RELEASE(call, functions[0], functions[1], context, module, device, instance);
  return failures != 0;
}
