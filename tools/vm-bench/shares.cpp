// Uses a second instance, with a trace that only sums up times.
#include "shares.h"

#include "common/drivers.h"
#include "samples.h"

namespace halyard::tools {

namespace {

Result<> call_for_a_while(Caller& caller, const Bench& bench) {
  double seconds = 0;
  constexpr uint64_t kMaxCalls = 100;
  constexpr double kSeconds = 0.05;
  uint64_t calls = 0;
  const Clock::time_point begin = Clock::now();
  do {
    TOOL_TRY(caller.call_batch(bench.batch, bench.in_flight));
    ++calls;
    seconds = TOOL_TRY(bench.slowest(seconds_between(begin, Clock::now())));
  } while (calls < kMaxCalls && seconds < kSeconds);
  return {};
}

}  // namespace

Result<Shares> measure_shares(Bench& bench, const Measured& function) {
  const Flags& flags = *bench.flags;
  Program traced;
  traced.warnings = nullptr;  // the other contexts report the same warnings
  traced.trace = TOOL_TRY(Trace::create(""));
  traced.instance = TOOL_TRY(make_instance(flags, {.trace = traced.trace}));
  const uint32_t options = TOOL_TRY(module_options(flags));
  for (const ModuleSource& source : bench.sources)
    traced.modules.push_back(TOOL_TRY(source.load(traced.instance, options)));
  TOOL_TRY(open_devices(flags, traced));
  traced.context =
      TOOL_TRY(create_context(traced.instance, traced.modules, TOOL_TRY(context_options(flags, traced))));
  const Device device = traced.device();
  const Arguments arguments = TOOL_TRY(arguments_of(flags, function.target, device, bench.batch));
  const auto caller = TOOL_TRY(Caller::make(traced.context, function.target, arguments, device, bench.stop));
  TOOL_TRY(call_for_a_while(*caller, bench));

  const halyard_trace_totals_t before = TOOL_TRY(traced.trace.totals());
  const Clock::time_point begin = Clock::now();
  TOOL_TRY(call_for_a_while(*caller, bench));
  const double nanoseconds = seconds_between(begin, Clock::now()) * 1e9;
  const halyard_trace_totals_t after = TOOL_TRY(traced.trace.totals());
  const auto percent = [&](uint64_t halyard_trace_totals_t::* part) {
    return 100 * static_cast<double>(after.*part - before.*part) / nanoseconds;
  };
  return Shares{percent(&halyard_trace_totals_t::machine_ns), percent(&halyard_trace_totals_t::import_ns),
                percent(&halyard_trace_totals_t::device_ns)};
}

}  // namespace halyard::tools
