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
