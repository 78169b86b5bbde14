/* Calls that leave no trace beside those that do, and slices of the embedder's own tracks. */

#include "program.h"

static const char kText[] =
    "vm.module @program\n"
    "vm.export @seven\n"
    "vm.func @seven() -> (i32) {\n  %i0 = vm.const.i32 7\n  vm.return %i0\n}\n";

static uint64_t events(halyard_trace_t trace) {
  halyard_trace_totals_t totals = {.struct_size = sizeof totals};
  OK(halyard_trace_totals(trace, &totals));
  return totals.events;
}

/* The events that a call adds. */
static uint64_t call_events(halyard_trace_t trace, halyard_call_t call, halyard_function_t function) {
  const uint64_t before = events(trace);
  halyard_value_t result = {0};
  OK(halyard_call_invoke(call, function, NULL, 0, &result, 1));
  EXPECT(result.i32 == 7);
  return events(trace) - before;
}

static void choices(halyard_trace_t trace, halyard_call_t call, halyard_call_t other,
                    halyard_function_t function) {
  const uint64_t traced = call_events(trace, call, function);
  EXPECT(traced >= 2); /* the begin and the end of a slice at least */
  halyard_call_trace(call, 0);
  EXPECT(call_events(trace, call, function) == 0);
  EXPECT(call_events(trace, call, function) == 0); /* until it is said otherwise */
  EXPECT(call_events(trace, other, function) == traced);
  halyard_call_trace(call, 1);
  EXPECT(call_events(trace, call, function) == traced);
  halyard_call_trace(NULL, 0);
}

static void tracks(halyard_trace_t trace) {
  const uint64_t before = events(trace);
  const uint64_t track = halyard_trace_track(trace, "requests");
  EXPECT(track != 0 && halyard_trace_track(trace, "requests") != track);
  halyard_trace_span(trace, track, "request", 1000, 2000);
  halyard_trace_span(trace, track, "call", 1200, 1800);
  EXPECT(events(trace) - before == 2);
  halyard_trace_span(trace, 0, "nowhere", 1000, 2000);
  halyard_trace_span(NULL, track, "nothing", 1000, 2000);
  EXPECT(halyard_trace_track(NULL, "nothing") == 0);
  EXPECT(events(trace) - before == 2);
}

struct seen {
  uint64_t machine;
  uint64_t others;
};

static void see(void* user, const halyard_trace_slice_t* slice) {
  struct seen* const seen = user;
  const uint64_t length = slice->end_ns - slice->begin_ns;
  EXPECT(slice->struct_size == sizeof *slice && slice->on_thread == 1 && slice->track != 0);
  EXPECT(slice->code == HALYARD_KERNEL_UNKNOWN && slice->known == 0 && slice->reason.size == 0);
  EXPECT(slice->self_ns <= length);
  if (slice->kind == HALYARD_SLICE_MACHINE && slice->name.size == strlen("program.seven") &&
      memcmp(slice->name.data, "program.seven", slice->name.size) == 0) {
    ++seen->machine;
  } else {
    ++seen->others;
  }
}

static void observers(halyard_trace_t trace, halyard_call_t call, halyard_function_t function) {
  struct seen seen = {0, 0};
  OK(halyard_trace_observe(trace, see, &seen));
  call_events(trace, call, function);
  call_events(trace, call, function);
  EXPECT(seen.machine == 2);
  EXPECT(seen.others == 0);
  OK(halyard_trace_observe(trace, NULL, NULL));
  call_events(trace, call, function);
  EXPECT(seen.machine == 2);
  FAILS(halyard_trace_observe(NULL, see, &seen), HALYARD_INVALID_ARGUMENT, "trace");
}

int main(void) {
  halyard_trace_t trace = NULL;
  halyard_instance_t instance = NULL;
  halyard_module_t module = NULL;
  halyard_context_t context = NULL;
  halyard_function_t function = NULL;
  halyard_call_t calls[2] = {NULL, NULL};
  if (!OK(halyard_trace_create(NULL, &trace))) return 1;
  const halyard_instance_options_t with_trace = {.struct_size = sizeof with_trace, .trace = trace};
  if (!OK(halyard_instance_create(&with_trace, &instance)) || !(module = load_text(instance, kText)))
    return 1;
  context = context_of(instance, module, NULL);
  if (context && OK(halyard_context_find(context, NULL, "seven", &function)) &&
      OK(halyard_call_create(context, &calls[0])) && OK(halyard_call_create(context, &calls[1]))) {
    choices(trace, calls[0], calls[1], function);
    tracks(trace);
    observers(trace, calls[0], function);
  }
  RELEASE(calls[0], calls[1], function, context, module, instance, trace);
  return failures != 0;
}
