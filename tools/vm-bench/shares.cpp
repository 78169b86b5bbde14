// Uses a second instance, with a trace that only sums up times.
#include "shares.h"

#include "common/drivers.h"
#include "common/profiled_calls.h"
#include "samples.h"

namespace halyard::tools {

namespace {

constexpr double kShortly = 0.05;  // seconds

// Returns the number of calls.
Result<uint64_t> call_for_a_while(Caller& caller, const Bench& bench, double least_seconds) {
  double seconds = 0;
  constexpr uint64_t kMaxCalls = 100;
  uint64_t calls = 0;
  const Clock::time_point begin = Clock::now();
  do {
    TOOL_TRY(caller.call_batch(bench.batch, bench.in_flight));
    ++calls;
    seconds = TOOL_TRY(bench.slowest(seconds_between(begin, Clock::now())));
  } while (calls < kMaxCalls && seconds < least_seconds && !bench.stop.asked_for());
  return calls;
}

// A program with a trace.
struct Traced {
  Program program;
  Arguments arguments;
  std::unique_ptr<Caller> caller;
};

Result<std::unique_ptr<Traced>> make_traced(Bench& bench, const Measured& function, bool is_profiled) {
  const Flags& flags = *bench.flags;
  auto traced = std::make_unique<Traced>();
  Program& program = traced->program;
  program.warnings = nullptr;  // the other contexts report the same warnings
  program.is_profiled = is_profiled;
  program.trace = TOOL_TRY(Trace::create(""));
  InstanceOptions options = is_profiled ? instance_options(flags) : InstanceOptions();
  options.trace = program.trace;
  program.instance = TOOL_TRY(make_instance(flags, std::move(options)));
  const uint32_t module_flags = TOOL_TRY(module_options(flags));
  for (const ModuleSource& source : bench.sources)
    program.modules.push_back(TOOL_TRY(source.load(program.instance, module_flags)));
  TOOL_TRY(open_devices(flags, program));
  program.context =
      TOOL_TRY(create_context(program.instance, program.modules, TOOL_TRY(context_options(flags, program))));
  traced->arguments = TOOL_TRY(arguments_of(flags, function.target, program.device(), bench.batch));
  traced->caller = TOOL_TRY(
      Caller::make(program.context, function.target, traced->arguments, program.device(), bench.stop));
  TOOL_TRY(call_for_a_while(*traced->caller, bench, kShortly));
  return traced;
}

}  // namespace

Result<Shares> measure_shares(Bench& bench, const Measured& function) {
  const std::unique_ptr<Traced> traced = TOOL_TRY(make_traced(bench, function, false));
  const Trace& trace = traced->program.trace;
  const halyard_trace_totals_t before = TOOL_TRY(trace.totals());
  const Clock::time_point begin = Clock::now();
  TOOL_TRY(call_for_a_while(*traced->caller, bench, kShortly));
  const double nanoseconds = seconds_between(begin, Clock::now()) * 1e9;
  const halyard_trace_totals_t after = TOOL_TRY(trace.totals());
  const auto percent = [&](uint64_t halyard_trace_totals_t::* part) {
    return 100 * static_cast<double>(after.*part - before.*part) / nanoseconds;
  };
  return Shares{percent(&halyard_trace_totals_t::machine_ns), percent(&halyard_trace_totals_t::import_ns),
                percent(&halyard_trace_totals_t::device_ns)};
}

Result<ProfileReport> measure_profile(Bench& bench, const Measured& function) {
  const std::unique_ptr<Traced> traced = TOOL_TRY(make_traced(bench, function, true));
  ProfiledCalls profiled(traced->program, false);
  TOOL_TRY(profiled.begin());
  const uint64_t calls = TOOL_TRY(call_for_a_while(*traced->caller, bench, bench.options.min_time));
  return profiled.end(*bench.flags, function.target.name, calls);
}

}  // namespace halyard::tools
