// vm-run: loads modules, opens devices, calls one function and prints its results. run-module-cli.md
// specifies flags and output, so commands for iree-run-module work.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <vector>

#include "common/convention.h"
#include "common/drivers.h"
#include "common/expectations.h"
#include "common/inputs.h"
#include "common/page_flags.h"
#include "common/printable.h"
#include "common/probe.h"
#include "common/profiled_calls.h"
#include "common/program.h"
#include "common/program_flags.h"
#include "common/ranks.h"
#include "common/standard_streams.h"
#include "common/tool.h"
#include "common/untrusted.h"
#include "compare.h"
#include "json.h"
#include "listing.h"
#include "outputs.h"
#include "print.h"
#include "profile_page.h"
#include "run_flags.h"
#include "stats.h"
#include "stop.h"
#include "tensors.h"

namespace halyard::tools {

namespace {

constexpr const Flag* kResultFlags[] = {&flag::output,
                                        &flag::expected_output,
                                        &flag::equality_mode,
                                        &flag::expected_f16_threshold,
                                        &flag::expected_bf16_threshold,
                                        &flag::expected_f32_threshold,
                                        &flag::expected_f64_threshold,
                                        &flag::expected_rtol,
                                        &flag::json_results,
                                        &flag::output_max_element_count};
constexpr const Flag* kRecordFlags[] = {&flag::capture,       &flag::print_statistics,     &flag::print_stats,
                                        &flag::trace_tensors, &flag::trace_tensors_folder, &flag::profile,
                                        &flag::diff};
constexpr const Flag* kListFlags[] = {&flag::list_drivers,         &flag::explain,
                                      &flag::list_devices,         &flag::dump_devices,
                                      &flag::dump_task_topologies, &flag::list_functions};

constexpr FlagGroup kGroups[] = {
    {"Program", kProgramFlags}, {"Loading and limits", kLoadingFlags},    {"Devices", kDeviceFlags},
    {"Ranks", kRankFlags},      {"From other runtimes", kForeignFlags},   {"Results", kResultFlags},
    {"Records", kRecordFlags},  {"Lists, instead of a call", kListFlags},
};

constexpr ExitCode kExitCodes[] = {
    {0, "Success; with --expected_output, all results are as expected."},
    {1,
     "A failure (standard error has the reason), a result that differs from the expected one, or a failed "
     "expectation of a test program (vm-check)."},
    {kInterrupted, "Stopped by Ctrl-C."},
    {kTerminated, "Stopped by SIGTERM."},
    {kHungUp, "Stopped by SIGHUP: the terminal was closed."},
};

constexpr ToolDescription kTool = {"vm-run",
                                   "vm-run --module=FILE [--function=NAME] [--device=URI] [--input=VALUE]...",
                                   "Runs a function of a compiled module and prints its results.",
                                   kGroups,
                                   "  vm-run --module=simple_mul.vmfb --device=local-sync "
                                   "--function=simple_mul --input=4xf32=1,2,3,4 --input=4xf32=2\n"
                                   "  vm-run --module=simple_mul.vmfb --list_functions\n"
                                   "  vm-run --list_drivers\n",
                                   kExitCodes};

using Clock = std::chrono::steady_clock;

// The clock of traces and memory logs.
uint64_t monotonic_ns() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
}

Result<Tolerance> tolerance(const Flags& flags) {
  Tolerance tolerance;
  tolerance.f16 = TOOL_TRY(flags[flag::expected_f16_threshold]);
  tolerance.bf16 = TOOL_TRY(flags[flag::expected_bf16_threshold]);
  tolerance.f32 = TOOL_TRY(flags[flag::expected_f32_threshold]);
  tolerance.f64 = TOOL_TRY(flags[flag::expected_f64_threshold]);
  tolerance.relative = TOOL_TRY(flags[flag::expected_rtol]);
  const EqualityMode mode = flags[flag::equality_mode];
  if (mode == EqualityMode::absolute || mode == EqualityMode::exact) tolerance.relative = 0;
  if (mode == EqualityMode::relative || mode == EqualityMode::exact)
    tolerance.f16 = tolerance.bf16 = tolerance.f32 = tolerance.f64 = 0;
  return tolerance;
}

// Prints, writes or compares the results. False if a comparison finds a difference.
Result<bool> print_results(const Flags& flags, const std::vector<Value>& results, std::string_view types,
                           const Device& device, const Tolerance& accepted, uint64_t limit) {
  if (flags.has(flag::expected_output))
    return compare_results(flags[flag::expected_output], types, results, device, accepted);
  if (flags.has(flag::output)) {
    TOOL_TRY(write_outputs(flags[flag::output], results, limit));
    return true;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Result<std::string> text = value_text(results[i], limit);
    if (!text) return fail(text.error().code, "result[{}]: {}", i, text.error().text);
    fmt::print("result[{}]: {}", i, *text);
  }
  return true;
}

// Waits for the device work of a call that has returned, until the time limit (0: none) has passed.
Result<> wait_for_work(const Call& call, const Fence& signal, Clock::time_point begin, uint64_t limit_ns) {
  if (limit_ns == 0) return check(signal.wait());
  const auto used = static_cast<uint64_t>((Clock::now() - begin) / std::chrono::nanoseconds(1));
  const uint64_t left_ms = limit_ns > used ? (limit_ns - used) / 1'000'000 + 1 : 0;
  Result<> reached = check(signal.wait(std::chrono::milliseconds(left_ms)));
  if (reached || reached.error().code != HALYARD_DEADLINE_EXCEEDED) return reached;
  call.cancel();
  return fail(HALYARD_DEADLINE_EXCEEDED,
              "the call has returned, but its work on a device took longer than the time limit of {} ms; "
              "raise the limit if it is too short",
              limit_ns / 1'000'000);
}

Result<std::vector<Value>> call_and_wait(const Program& program, const Function& function,
                                         const Arguments& arguments, size_t result_count, const Fence& signal,
                                         uint64_t limit_ns, Stop& stop) {
  const Phase phase(program, "call");
  const Call call = TOOL_TRY(Call::create(program.context));
  stop.enter(Stop::Stage::call, call.get());
  std::vector<Value> results(result_count);
  const Clock::time_point begin = Clock::now();
  Result<> done = check(call.invoke_with(function, arguments.values(), results));
  stop.enter(done ? Stop::Stage::device : Stop::Stage::end, call.get());
  if (!done) return std::unexpected(stop.explain(std::move(done).error()));
  if (signal) {
    done = wait_for_work(call, signal, begin, limit_ns);
    if (!done) {
      stop.enter(Stop::Stage::end);
      return std::unexpected(stop.explain(std::move(done).error()));
    }
  }
  stop.enter(Stop::Stage::after_call);
  return results;
}

Result<bool> call_and_print(const Flags& flags, const Program& program, const std::string& name, Stop& stop) {
  // Flags of the results are checked before the call, which may take long.
  const uint64_t limit = TOOL_TRY(flags[flag::output_max_element_count]);
  const Tolerance accepted = TOOL_TRY(tolerance(flags));
  const Function function = TOOL_TRY(program.context.find(name));
  const halyard_function_description_t description = TOOL_TRY(describe(program.modules.back(), name));
  if (flags.has(flag::output) && !flags.has(flag::expected_output))
    TOOL_TRY(check_outputs(flags[flag::output], description.result_count));
  const std::string types = TOOL_TRY(input_types(description));
  const Device device = program.device();
  Arguments arguments;
  {
    const Phase phase(program, "inputs");
    arguments = TOOL_TRY(given_inputs(flags, types, device));
  }

  if (!flags[flag::json_results]) fmt::print("EXEC @{}\n", printable(name));
  std::fflush(stdout);
  TOOL_TRY(check_inputs(description, types, arguments));
  Fence signal;
  if (description.is_async) signal = TOOL_TRY(add_fences(device, arguments));
  const auto limit_ns = static_cast<uint64_t>(TOOL_TRY(time_limit(flags)).count());
  std::optional<ProfiledCalls> profiled;
  const uint64_t begin_ns = monotonic_ns();
  if (program.is_profiled) {
    profiled.emplace(program, true);
    TOOL_TRY(profiled->begin());
  }
  const std::vector<Value> results =
      TOOL_TRY(call_and_wait(program, function, arguments, description.result_count, signal, limit_ns, stop));
  const Phase phase(program, "results");
  std::optional<ProfileReport> profile;
  const uint64_t end_ns = monotonic_ns();
  if (profiled) profile = TOOL_TRY(profiled->end(flags, name, 1));
  const bool has_page = profile && !profile_page(flags).empty();
  if (has_page) TOOL_TRY(write_profile_page(flags, program, name, *profile, begin_ns, end_ns));
  if (flags[flag::json_results]) {
    fmt::print("{}", TOOL_TRY(results_json(name, results, limit, profile ? profile_json(*profile) : Json())));
    return true;
  }
  const bool is_as_expected = TOOL_TRY(print_results(
      flags, results, convention_results(view(description.convention)), device, accepted, limit));
  if (!profile || has_page) return is_as_expected;
  std::fflush(stdout);
  print_error("{}", profile_table(*profile, profile_detail(flags)));
  return is_as_expected;
}

// Prints each failed expectation at once, because the call may fail later.
void print_failed(const Program& program, const halyard_failed_expectation_t& failed) {
  if (program.waiting) program.waiting->clear();
  const std::string line = "vm-run: expectation failed: " + FailedExpectation(failed).text() + "\n";
  std::fflush(stdout);
  print_error("{}", printable(line));
}

Result<int> vm_run(const Flags& flags) {
  TensorFiles tensors;  // outlives the program, which may write to it until destroyed
  Program program;
  size_t failed_expectations = 0;
  if (flags.has(flag::diff) && profile_page(flags).empty())
    return fail(HALYARD_INVALID_ARGUMENT, "{} shows errors on a page; add {}=FILE.html", flag::diff,
                flag::profile);
  program.is_profiled = flags.has(flag::profile);
  TOOL_TRY(make_instance(flags, program));
  program.waiting = Waiting::on_terminal();
  if (flags[flag::list_drivers]) {
    TOOL_TRY(flags[flag::explain]
                 ? explain_drivers(program.instance)
                 : list_drivers(program.instance, TOOL_TRY(probe_limit(flags, flag::timeout))));
    return 0;
  }
  if (const auto driver = flags[flag::list_devices]) {
    TOOL_TRY(list_devices(program.instance, *driver, TOOL_TRY(probe_limit(flags, flag::timeout))));
    return 0;
  }
  if (const auto driver = flags[flag::dump_devices]) {
    TOOL_TRY(dump_devices(program.instance, *driver, TOOL_TRY(probe_limit(flags, flag::timeout))));
    return 0;
  }
  if (flags[flag::dump_task_topologies]) {
    TOOL_TRY(dump_workers(flags));
    return 0;
  }
  Stop stop(program);
  TOOL_TRY(load_modules(flags, program));
  const Module main_module = program.modules.back();
  if (flags[flag::list_functions]) {
    TOOL_TRY(list_functions(main_module));
    return 0;
  }
  const std::string name = TOOL_TRY(chosen_function(flags, main_module));
  for (const List* const other : {&flag::output, &flag::expected_output})
    if (flags[flag::json_results] && flags.has(*other))
      return fail(HALYARD_INVALID_ARGUMENT, "found both {} and {}; remove one of them", flag::json_results,
                  *other);
  TOOL_TRY(tensors.begin(flags, program));
  program.expectation = [&](const halyard_failed_expectation_t& failed) {
    ++failed_expectations;
    print_failed(program, failed);
  };
  TOOL_TRY(open_devices(flags, program));
  TOOL_TRY(print_warnings(program, "vm-run"));
  TOOL_TRY(make_context(flags, program));
  const bool is_as_expected =
      TOOL_TRY(call_and_print(flags, program, name, stop)) && failed_expectations == 0;
  // Before the program is destroyed, because that may take a while.
  if (std::fflush(stdout) != 0)
    throw std::system_error(errno, std::generic_category());  // as fmt::print does
  if (program.trace) TOOL_TRY(program.trace.finish());
  if (flags[flag::print_statistics]) TOOL_TRY(print_statistics(program));
  if (program.phases) TOOL_TRY(print_stats(program));
  return is_as_expected ? 0 : 1;
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::tools::kTool, argc, argv, halyard::tools::vm_run);
}
