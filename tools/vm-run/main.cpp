// vm-run: loads modules, opens devices, calls one function and prints its results. Flags and output are those
// of run-module-cli.md, so that a command written for iree-run-module works here.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "common/convention.h"
#include "common/drivers.h"
#include "common/flags.h"
#include "common/inputs.h"
#include "common/printable.h"
#include "common/probe.h"
#include "common/program.h"
#include "common/program_flags.h"
#include "common/quantities.h"
#include "common/ranks.h"
#include "common/standard_streams.h"
#include "compare.h"
#include "json.h"
#include "listing.h"
#include "outputs.h"
#include "print.h"
#include "stats.h"
#include "stop.h"
#include "tensors.h"

namespace halyard::tools {

namespace {

constexpr Flag kResultFlags[] = {
    {"output", FlagKind::list, "WHERE",
     "Where a result goes: '-' prints it, nothing drops it, @file.npy or @file.bin writes it, +file appends. "
     "Once for each\nresult, in order; left out: all are printed.",
     "--output=@product.npy"},
    {"expected_output", FlagKind::list, "VALUE",
     "What a result must be, as text like that of --input, or (ignored). Once for each result. Prints the "
     "outcome instead of\nthe results; exit code 1 where one differs.",
     "--expected_output=4xf32=2,4,6,8"},
    {"equality_mode", FlagKind::value, "approximate|absolute|relative|exact",
     "How floating-point elements are compared; approximate, the default, takes what is within either limit.",
     "--equality_mode=exact"},
    {"expected_f16_threshold", FlagKind::value, "X",
     "How far f16 elements may be from what is expected (0.001).", "--expected_f16_threshold=0.01"},
    {"expected_bf16_threshold", FlagKind::value, "X", "The same for bf16 (0.01).",
     "--expected_bf16_threshold=0.1"},
    {"expected_f32_threshold", FlagKind::value, "X", "The same for f32 (0.0001).",
     "--expected_f32_threshold=0.001"},
    {"expected_f64_threshold", FlagKind::value, "X", "The same for f64 (0.0001).",
     "--expected_f64_threshold=0.001"},
    {"expected_rtol", FlagKind::value, "X",
     "How much further they may be, as a share of what is expected (0.00001).", "--expected_rtol=0.001"},
    {"json", FlagKind::toggle, "",
     "Prints the results as one JSON document, and nothing else: types, shapes, elements as numbers.",
     "--json"},
    {"output_max_element_count", FlagKind::value, "N", "Elements printed of a tensor before '...' (1024).",
     "--output_max_element_count=16"},
};

constexpr Flag kRecordFlags[] = {
    {"capture", FlagKind::value, "FILE",
     "Writes every command buffer that the program executes to FILE, with the bytes that it finds and "
     "leaves, "
     "for\n'hal-info replay'. Slower, and as large as the bytes are.",
     "--capture=program.hycap"},
    {"print_statistics", FlagKind::toggle, "",
     "What each device has given of memory, on standard error after the results.", "--print_statistics"},
    {"print_stats", FlagKind::toggle, "",
     "What the run took, on standard error after the results: time by phase, memory of each device, and "
     "which "
     "objects were still there\nwhen everything else had been released.",
     "--print_stats"},
    {"trace_tensors", FlagKind::value, "PATTERN",
     "Writes what dispatches read and wrote as npy files, of those whose function matches (* and ? are "
     "wildcards). Each runs on\nits own then, and the files are as large as the buffers.",
     "--trace_tensors='*matmul*'"},
    {"trace_tensors_folder", FlagKind::value, "FOLDER", "Where to (tensors).",
     "--trace_tensors_folder=/tmp/tensors"},
};

constexpr Flag kListFlags[] = {
    {"list_drivers", FlagKind::toggle, "",
     "Lists the drivers that work, and exits. Each is tried in a process of its own, for at most "
     "--timeout\n(10s); "
     "standard error says which do not work, and why.",
     "--list_drivers"},
    {"explain", FlagKind::toggle, "",
     "With --list_drivers: every place and file that was looked at, and why it was taken or refused.",
     "--list_drivers --explain"},
    {"list_devices", FlagKind::optional_value, "DRIVER", "Lists devices, of one driver or of all, and exits.",
     "--list_devices=local-sync"},
    {"dump_devices", FlagKind::optional_value, "DRIVER",
     "Lists devices with their descriptions, of one driver or of all, and exits.",
     "--dump_devices=local-sync"},
    {"dump_task_topologies", FlagKind::toggle, "",
     "Says how many workers a local-task device has, and exits; they are not bound to processors.",
     "--dump_task_topologies"},
    {"list_functions", FlagKind::toggle, "", "Lists the functions that the main module exports, and exits.",
     "--module=simple_mul.vmfb --list_functions"},
};

constexpr FlagGroup kGroups[] = {
    {"Program", kProgramFlags},
    {"Loading and limits", kLoadingFlags},
    {"Devices", kDeviceFlags},
    {"Ranks", kRankFlags},
    {"From other runtimes", kForeignFlags},
    {"Results", kResultFlags},
    {"Records", kRecordFlags},
    {"Lists, instead of a call", kListFlags},
};

constexpr ExitCode kExitCodes[] = {
    {0, "Success; with --expected_output, every result is what was expected."},
    {1,
     "A failure, which standard error tells; a result that is not what was expected; or an expectation of a "
     "test program that does not hold (vm-check)."},
    {kInterrupted, "The run was stopped by Ctrl-C."},
    {kTerminated, "It was stopped by SIGTERM."},
    {kHungUp, "It was stopped by SIGHUP: its terminal is gone."},
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

Result<double> threshold(const Flags& flags, std::string_view name, double otherwise) {
  if (!flags.has(name)) return otherwise;
  const std::string text = flags.value(name);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(value >= 0))
    return fail(HALYARD_INVALID_ARGUMENT, "--{}={}: expected a number that is not negative, such as 0.001",
                name, text);
  return value;
}

Result<Tolerance> tolerance(const Flags& flags) {
  Tolerance tolerance;
  tolerance.f16 = TOOL_TRY(threshold(flags, "expected_f16_threshold", tolerance.f16));
  tolerance.bf16 = TOOL_TRY(threshold(flags, "expected_bf16_threshold", tolerance.bf16));
  tolerance.f32 = TOOL_TRY(threshold(flags, "expected_f32_threshold", tolerance.f32));
  tolerance.f64 = TOOL_TRY(threshold(flags, "expected_f64_threshold", tolerance.f64));
  tolerance.relative = TOOL_TRY(threshold(flags, "expected_rtol", tolerance.relative));
  const std::string mode = flags.value("equality_mode", "approximate");
  if (mode == "absolute" || mode == "exact") tolerance.relative = 0;
  if (mode == "relative" || mode == "exact")
    tolerance.f16 = tolerance.bf16 = tolerance.f32 = tolerance.f64 = 0;
  return tolerance;
}

// Whether they are what was expected, if something was.
Result<bool> print_results(const Flags& flags, const std::vector<halyard_value_t>& results,
                           std::string_view types, halyard_device_t device, uint64_t limit) {
  if (flags.has("expected_output"))
    return compare_results(flags.all("expected_output"), types, results, device, TOOL_TRY(tolerance(flags)));
  if (flags.has("output")) {
    TOOL_TRY(write_outputs(flags.all("output"), results, limit));
    return true;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Result<std::string> text = value_text(results[i], limit);
    if (!text) return fail(text.error().code, "result[{}]: {}", i, text.error().text);
    fmt::print("result[{}]: {}", i, *text);
  }
  return true;
}

// Waits for the work of a call that has returned, for what is left of the time limit (0: none).
Result<> wait_for_work(halyard_call_t call, halyard_object_t signal, Clock::time_point begin,
                       uint64_t limit_ns) {
  constexpr auto kMostMs = uint64_t{UINT32_MAX} - 1;
  if (limit_ns == 0) return check(halyard_fence_wait(signal, UINT32_MAX));
  const auto used = static_cast<uint64_t>((Clock::now() - begin) / std::chrono::nanoseconds(1));
  const uint64_t left_ms = std::min(limit_ns > used ? (limit_ns - used) / 1'000'000 + 1 : 0, kMostMs);
  Result<> reached = check(halyard_fence_wait(signal, static_cast<uint32_t>(left_ms)));
  if (reached || reached.error().code != HALYARD_DEADLINE_EXCEEDED) return reached;
  halyard_call_cancel(call);
  return fail(
      HALYARD_DEADLINE_EXCEEDED,
      "the call had returned, and its work on a device took longer than its time limit of {} ms; raise it "
      "where that is too short",
      limit_ns / 1'000'000);
}

Result<Arguments> call_and_wait(const Program& program, halyard_function_t function,
                                const Arguments& arguments, size_t result_count, halyard_object_t signal,
                                uint64_t limit_ns, Stop& stop) {
  const Phase phase(program, "call");
  Handle<halyard_call_t> call;
  TOOL_TRY(check(halyard_call_create(program.context.get(), call.out())));
  stop.enter(Stop::Stage::call, call.get());
  std::vector<halyard_value_t> values(result_count);
  const Clock::time_point begin = Clock::now();
  Result<> done = check(halyard_call_invoke(call.get(), function, arguments.values().data(),
                                            arguments.values().size(), values.data(), values.size()));
  stop.enter(done ? Stop::Stage::device : Stop::Stage::end, call.get());
  if (!done) return std::unexpected(stop.explain(std::move(done).error()));
  Arguments results;
  for (const halyard_value_t& value : values) results.add(value);
  if (signal) {
    done = wait_for_work(call.get(), signal, begin, limit_ns);
    if (!done) {
      stop.enter(Stop::Stage::end);
      return std::unexpected(stop.explain(std::move(done).error()));
    }
  }
  stop.enter(Stop::Stage::after_call);
  return results;
}

Result<Arguments> inputs_of(const Flags& flags, const Program& program, std::string_view types,
                            halyard_device_t device) {
  const Phase phase(program, "inputs");
  if (!flags.has("inputs_from")) return parse_inputs(flags.all("input"), types, device);
  if (flags.has("input"))
    return fail(
        HALYARD_INVALID_ARGUMENT,
        "--input and --inputs_from are both given; expected one of them to say what the arguments are");
  return parse_inputs(TOOL_TRY(arrays_in(flags.value("inputs_from"))), types, device, "inputs_from");
}

Result<bool> call_and_print(const Flags& flags, const Program& program, const std::string& name, Stop& stop) {
  const uint64_t limit = TOOL_TRY(number(flags, "output_max_element_count", kDefaultMaxElements, "1024"));
  Handle<halyard_function_t> function;
  TOOL_TRY(check(halyard_context_find(program.context.get(), nullptr, name.c_str(), function.out())));
  const halyard_function_description_t description = TOOL_TRY(describe(program.modules.back().get(), name));
  const std::string types = TOOL_TRY(input_types(description));
  const halyard_device_t device = program.devices.empty() ? nullptr : program.devices.front().get();
  Arguments arguments = TOOL_TRY(inputs_of(flags, program, types, device));

  if (!flags.on("json")) fmt::print("EXEC @{}\n", printable(name));
  std::fflush(stdout);
  TOOL_TRY(check_inputs(description, types, arguments));
  Handle<halyard_object_t> signal;
  if (description.is_async) {  // wait for nothing, signal a new fence
    arguments.add({});
    TOOL_TRY(check(halyard_fence_create(device, signal.out())));
    halyard_value_t fence = {};
    fence.kind = HALYARD_VALUE_OBJECT;
    fence.object = signal.get();
    halyard_retain(fence.object);
    arguments.add(fence);
  }
  uint64_t limit_ns = 0;
  if (flags.has("timeout")) limit_ns = TOOL_TRY(parse_duration("timeout", flags.value("timeout")));
  const Arguments results = TOOL_TRY(call_and_wait(program, function.get(), arguments,
                                                   description.result_count, signal.get(), limit_ns, stop));
  const Phase phase(program, "results");
  if (flags.on("json")) {
    fmt::print("{}", TOOL_TRY(results_json(name, results.values(), limit)));
    return true;
  }
  return print_results(flags, results.values(), convention_results(view(description.convention)), device,
                       limit);
}

struct FailedExpectations {
  const Program& program;
  size_t count = 0;
};

// Counts expectations that fail, and tells each when it does: what comes after it may fail the call.
void print_failed(void* user, const halyard_failed_expectation_t* failed) {
  auto& known = *static_cast<FailedExpectations*>(user);
  ++known.count;
  if (known.program.waiting) known.program.waiting->clear();
  const std::string line = "vm-run: expectation failed: " + FailedExpectation(*failed).text() + "\n";
  std::fflush(stdout);
  print_error("{}", printable(line));
}

Result<int> vm_run(const Flags& flags) {
  TensorFiles tensors;  // outlives the program, which may still write when it goes
  Program program;
  FailedExpectations failed{program};
  TOOL_TRY(make_instance(flags, program));
  program.waiting = Waiting::on_terminal();
  if (flags.on("list_drivers")) {
    TOOL_TRY(flags.on("explain") ? explain_drivers(program.instance.get())
                                 : list_drivers(program.instance, TOOL_TRY(probe_limit(flags))));
    return 0;
  }
  if (flags.has("list_devices")) {
    TOOL_TRY(list_devices(program.instance, flags.value("list_devices"), TOOL_TRY(probe_limit(flags))));
    return 0;
  }
  if (flags.has("dump_devices")) {
    TOOL_TRY(dump_devices(program.instance, flags.value("dump_devices"), TOOL_TRY(probe_limit(flags))));
    return 0;
  }
  if (flags.on("dump_task_topologies")) {
    TOOL_TRY(dump_workers(flags));
    return 0;
  }
  Stop stop(program);
  TOOL_TRY(load_modules(flags, program));
  const halyard_module_t main_module = program.modules.back().get();
  if (flags.on("list_functions")) {
    TOOL_TRY(list_functions(main_module));
    return 0;
  }
  const std::string name = TOOL_TRY(chosen_function(flags, main_module));
  for (const char* other : {"output", "expected_output"})
    if (flags.on("json") && flags.has(other))
      return fail(HALYARD_INVALID_ARGUMENT, "--json and --{} are both given; expected one of them", other);
  TOOL_TRY(tensors.begin(flags, program));
  program.expectations = {print_failed, &failed};
  TOOL_TRY(open_devices(flags, program));
  TOOL_TRY(print_warnings(program, "vm-run"));
  TOOL_TRY(make_context(flags, program));
  const bool is_as_expected = TOOL_TRY(call_and_print(flags, program, name, stop)) && failed.count == 0;
  // Giving back what a large program holds may take a while.
  if (std::fflush(stdout) != 0)
    throw std::system_error(errno, std::generic_category());  // as fmt::print does
  if (program.trace) TOOL_TRY(check(halyard_trace_finish(program.trace.get())));
  if (flags.on("print_statistics")) TOOL_TRY(print_statistics(program));
  if (program.phases) TOOL_TRY(print_stats(program));
  return is_as_expected ? 0 : 1;
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::tools::kTool, argc, argv, halyard::tools::vm_run);
}
