// Traces in the C ABI.
#include "base/tracer.h"
#include "handles.h"

using namespace halyard;
using namespace halyard::c;

halyard_status_t halyard_trace_create(const char* path, halyard_trace_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    *out = give<halyard_trace_t>(HALYARD_TRY(Tracer::create(std::string(view(path)))));
    return {};
  });
}

halyard_status_t halyard_trace_finish(halyard_trace_t trace) {
  return guarded([&]() -> Result<> { return HALYARD_TRY(checked<Tracer>(trace))->finish(); });
}

void halyard_trace_begin(halyard_trace_t trace, const char* name) {
  if (const Result<Tracer*> known = checked<Tracer>(trace)) (*known)->begin(TraceCategory::phase, view(name));
}

void halyard_trace_end(halyard_trace_t trace) {
  if (const Result<Tracer*> known = checked<Tracer>(trace)) (*known)->end();
}

uint64_t halyard_trace_track(halyard_trace_t trace, const char* name) {
  const Result<Tracer*> known = checked<Tracer>(trace);
  return known ? (*known)->add_track(view(name)) : 0;
}

void halyard_trace_span(halyard_trace_t trace, uint64_t track, const char* name, uint64_t begin_ns,
                        uint64_t end_ns) {
  const Result<Tracer*> known = checked<Tracer>(trace);
  if (known && track != 0) (*known)->span_on(track, TraceCategory::phase, view(name), begin_ns, end_ns);
}

namespace {

static_assert(HALYARD_SLICE_WAIT == static_cast<int>(TraceCategory::wait));

halyard_text_t text(std::string_view text) { return {text.data(), text.size()}; }

halyard_trace_slice_t slice_of(const TracedSlice& traced) {
  halyard_trace_slice_t slice = {};
  slice.struct_size = sizeof slice;
  slice.kind = static_cast<uint32_t>(traced.category);
  slice.track = traced.track;
  slice.on_thread = traced.is_of_thread ? 1 : 0;
  slice.begin_ns = traced.begin;
  slice.end_ns = traced.end;
  slice.self_ns = traced.self;
  slice.name = text(traced.name);
  if (const TracedDispatch* const dispatch = traced.dispatch) {
    slice.code = dispatch->code;
    slice.workgroups = dispatch->workgroups;
    slice.dispatch_workgroups = dispatch->dispatch_workgroups;
    slice.threads = dispatch->threads;
    slice.known = dispatch->known;
    slice.operations = dispatch->operations;
    slice.bytes_read = dispatch->bytes_read;
    slice.bytes_written = dispatch->bytes_written;
    slice.checked_loops = dispatch->checked_loops;
    slice.execution = dispatch->execution;
    slice.command = dispatch->command;
    if (dispatch->not_shared) slice.not_shared = text(dispatch->not_shared);
  }
  slice.reason = text(traced.texts[0]);
  slice.uncounted = text(traced.texts[1]);
  slice.source = text(traced.texts[2]);
  slice.place = text(traced.texts[3]);
  return slice;
}

}  // namespace

halyard_status_t halyard_trace_observe(halyard_trace_t trace, halyard_slice_fn observe, void* user) {
  return guarded([&]() -> Result<> {
    Tracer* const tracer = HALYARD_TRY(checked<Tracer>(trace));
    if (!observe) {
      tracer->settle();
      tracer->observe({});
      return {};
    }
    tracer->observe([observe, user](const TracedSlice& traced) {
      const halyard_trace_slice_t slice = slice_of(traced);
      observe(user, &slice);
    });
    return {};
  });
}

halyard_status_t halyard_trace_totals(halyard_trace_t trace, halyard_trace_totals_t* totals) {
  return guarded([&]() -> Result<> {
    const Tracer::Totals now = HALYARD_TRY(checked<Tracer>(trace))->totals();
    const auto time = [&](TraceCategory category) { return now.nanoseconds[static_cast<size_t>(category)]; };
    halyard_trace_totals_t given = {};
    given.events = now.events;
    given.phase_ns = time(TraceCategory::phase);
    given.machine_ns = time(TraceCategory::machine);
    given.import_ns = time(TraceCategory::import);
    given.queue_ns = time(TraceCategory::queue);
    given.device_ns = time(TraceCategory::device);
    given.wait_ns = time(TraceCategory::wait);
    return fill_info(totals, given, "totals");
  });
}
