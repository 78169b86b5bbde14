// vm-run: loads modules, opens devices, calls one function and prints its results. Flags and output are those
// of run-module-cli.md, so that a command written for iree-run-module works here.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <thread>
#include <vector>

#include "common/drivers.h"
#include "common/flags.h"
#include "common/printable.h"
#include "common/quantities.h"
#include "compare.h"
#include "inputs.h"
#include "listing.h"
#include "outputs.h"
#include "print.h"

namespace halyard::tools {

namespace {

// Flags of the reference tools that name what this runtime does by itself.
constexpr const char* kNoEffect =
    "Taken for the sake of commands written for other runtimes; without effect: workers run where the system "
    "puts them,\nnever spin, and give kernels the memory that these ask for.";

constexpr Flag kFlags[] = {
    {"module", FlagKind::list, "FILE",
     "A compiled module (.vmfb), its text (.vmasm), or a native module (.so, with an argument: "
     "library.so@TEXT); '-' reads\n"
     "standard input. Repeated: loaded in order, later ones may import from earlier ones; the last is the "
     "main module.",
     "--module=simple_mul.vmfb"},
    {"function", FlagKind::value, "NAME",
     "The exported function of the main module to call. May be left out where there is only one.",
     "--function=simple_mul"},
    {"input", FlagKind::list, "VALUE",
     "An argument: a number, a tensor as text (2x2xf32=1,2,3,4; one element fills the shape), @file.npy, "
     "+file.npy, *file.npy\n"
     "(all arrays), 2x2xf32=@file.bin, (null); a leading & passes the buffer. Once for each argument, in "
     "order.",
     "--input=4xf32=1,2,3,4"},
    {"device", FlagKind::list, "URI",
     "A device that the program may use: driver[://path][?key=value&...]. Repeated: in the order in which "
     "the program counts\n"
     "them. Left out: local-task where there is such a driver, else local-sync.",
     "--device=local-sync"},
    {"allow_native", FlagKind::value, "yes|no",
     "Whether local devices may run machine code that a module carries (yes, the default). It can do "
     "whatever "
     "this process\ncan: say no where the module's maker is not trusted.",
     "--allow-native=no"},
    {"executable_plugin", FlagKind::list, "FILE[&KEY=VALUE...]",
     "A library with functions that native executables import, for local devices. Repeated: asked in order.",
     "--executable_plugin=./ukernels.so"},
    {"task_topology_group_count", FlagKind::value, "N",
     "Worker threads of local-task devices whose URI does not say (local-task?workers=N).",
     "--task_topology_group_count=4"},
    {"task_topology_max_group_count", FlagKind::value, "N",
     "The same, but not more than there are processors for this process.",
     "--task_topology_max_group_count=8"},
    {"task_topology_mode", FlagKind::value, "MODE", kNoEffect, "--task_topology_mode=physical_cores"},
    {"task_topology_cpu_ids", FlagKind::value, "IDS", kNoEffect, "--task_topology_cpu_ids=0,1"},
    {"task_topology_nodes", FlagKind::value, "NODES", kNoEffect, "--task_topology_nodes=all"},
    {"task_topology_performance_level", FlagKind::value, "LEVEL", kNoEffect,
     "--task_topology_performance_level=high"},
    {"task_topology_distribution", FlagKind::value, "HOW", kNoEffect, "--task_topology_distribution=latency"},
    {"task_topology_favor", FlagKind::value, "WHAT", kNoEffect, "--task_topology_favor=latency"},
    {"task_worker_stack_size", FlagKind::value, "BYTES", kNoEffect, "--task_worker_stack_size=131072"},
    {"task_worker_spin_us", FlagKind::value, "TIME", kNoEffect, "--task_worker_spin_us=0"},
    {"task_worker_local_memory", FlagKind::value, "BYTES", kNoEffect, "--task_worker_local_memory=131072"},
    {"task_abort_on_failure", FlagKind::toggle, "", kNoEffect, "--task_abort_on_failure"},
    {"device_lead_allocator", FlagKind::value, "N",
     "Which device (counted from 0, in the order of --device) gives memory that several devices use, where "
     "the program leaves\n"
     "it open. Left out: the program's first choice whose memory all of them can use.",
     "--device_lead_allocator=1"},
    {"parameters", FlagKind::list, "[SCOPE=]FILE",
     "A file (.irpa, .gguf, .safetensors) with the parameters of a scope. Repeated: of several files of a "
     "scope, the first\n"
     "that has a name counts.",
     "--parameters=model=weights.irpa"},
    {"parameter_mode", FlagKind::value, "MODE",
     "file (the default) maps parameter files, which must not change then; preload reads them into memory.",
     "--parameter_mode=preload"},
    {"module_mode", FlagKind::value, "MODE",
     "preload (the default) reads modules into memory; mmap maps their files, which must not change then.",
     "--module_mode=mmap"},
    {"verify", FlagKind::value, "WHEN",
     "eager verifies every function when a module is loaded; lazy (the default) each when it is first "
     "called.",
     "--verify=eager"},
    {"max_memory", FlagKind::value, "SIZE",
     "What the program may take of memory, on the host and on devices together: 512MiB. No limit if left "
     "out.",
     "--max_memory=512MiB"},
    {"timeout", FlagKind::value, "TIME",
     "How long the call may take: 1.5s, 200ms. What runs on a device is not stopped. No limit if left out.",
     "--timeout=10s"},
    {"capture", FlagKind::value, "FILE",
     "Writes every command buffer that the program executes to FILE, with the bytes that it finds and "
     "leaves, "
     "for\n'hal-info replay'. Slower, and as large as the bytes are.",
     "--capture=run.hycap"},
    {"output", FlagKind::list, "WHERE",
     "Where a result goes: '-' prints it, nothing drops it, @file.npy or @file.bin writes it, +file appends. "
     "Once for each\nresult, in order; left out: all are printed.",
     "--output=@product.npy"},
    {"expected_output", FlagKind::list, "VALUE",
     "What a result must be, as text like that of --input, or (ignored). Once for each result. Prints the "
     "outcome instead of\nthe results; exit code 1 where one differs.",
     "--expected_output=4xf32=2,4,6,8"},
    {"equality_mode", FlagKind::value, "MODE",
     "How floating-point elements are compared: approximate (the default), absolute, relative, exact.",
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
    {"output_max_element_count", FlagKind::value, "N", "Elements printed of a tensor before '...' (1024).",
     "--output_max_element_count=16"},
    {"list_drivers", FlagKind::toggle, "", "Lists the drivers that load, and exits.", "--list_drivers"},
    {"explain", FlagKind::toggle, "",
     "With --list_drivers: every place and file that was looked at, and why it was taken or refused.",
     "--list_drivers --explain"},
    {"list_devices", FlagKind::optional_value, "DRIVER", "Lists devices, of one driver or of all, and exits.",
     "--list_devices=local-sync"},
    {"dump_devices", FlagKind::optional_value, "DRIVER",
     "Lists devices with their descriptions, of one driver or of all, and exits.",
     "--dump_devices=local-sync"},
    {"print_statistics", FlagKind::toggle, "",
     "What each device has given of memory, on standard error after the results.", "--print_statistics"},
    {"list_functions", FlagKind::toggle, "", "Lists the functions that the main module exports, and exits.",
     "--module=simple_mul.vmfb --list_functions"},
    kDriverFlag,
};

constexpr ToolDescription kTool = {"vm-run",
                                   "vm-run --module=FILE [--function=NAME] [--device=URI] [--input=VALUE]...",
                                   "Runs a function of a compiled module and prints its results.", kFlags,
                                   "  vm-run --module=simple_mul.vmfb --device=local-sync "
                                   "--function=simple_mul --input=4xf32=1,2,3,4 --input=4xf32=2\n"
                                   "  vm-run --module=simple_mul.vmfb --list_functions\n"
                                   "  vm-run --list_drivers\n"};

constexpr uint64_t kDefaultMaxElements = 1024;

// Everything that a run holds. Members go in reverse order: the call before the context, devices before the
// instance.
struct Run {
  Handle<halyard_instance_t> instance;
  std::vector<Handle<halyard_module_t>> modules;
  std::vector<Handle<halyard_device_t>> devices;
  Handle<halyard_context_t> context;
};

Result<> load_modules(const Flags& flags, Run& run) {
  const std::string mode = flags.value("module_mode", "preload");
  if (mode != "preload" && mode != "mmap")
    return fail(HALYARD_INVALID_ARGUMENT, "--module_mode={}: expected preload or mmap", mode);
  const std::string verify = flags.value("verify", "lazy");
  if (verify != "lazy" && verify != "eager")
    return fail(HALYARD_INVALID_ARGUMENT, "--verify={}: expected eager or lazy", verify);
  uint32_t options = 0;
  if (verify == "eager") options |= HALYARD_MODULE_VERIFY_EAGERLY;
  if (mode == "preload") options |= HALYARD_MODULE_PRELOAD;
  const std::vector<std::string> paths = flags.all("module");
  if (paths.empty())
    return fail(HALYARD_INVALID_ARGUMENT,
                "no module given; name one with --module=FILE ('vm-run --help' shows examples)");
  for (const std::string& path : paths) {
    Handle<halyard_module_t> module;
    TOOL_TRY(check(halyard_module_load_file(run.instance.get(), path.c_str(), options, module.out())));
    run.modules.push_back(std::move(module));
  }
  return {};
}

Result<halyard_module_info_t> info_of(halyard_module_t module) {
  halyard_module_info_t info = {};
  info.struct_size = sizeof info;
  TOOL_TRY(check(halyard_module_info(module, &info)));
  return info;
}

// The default stands for the reference tools' local-task; it is local-sync as long as no driver offers the
// former.
Result<std::string> default_device(halyard_instance_t instance) {
  halyard_driver_entry_t* entries = nullptr;
  size_t count = 0;
  TOOL_TRY(check(halyard_instance_drivers(instance, &entries, &count)));
  const Block<halyard_driver_entry_t> owned(entries);
  const bool has_task = std::any_of(entries, entries + count, [](const auto& entry) {
    return std::string_view(entry.name) == "local-task";
  });
  return has_task ? "local-task" : "local-sync";
}

// A number, or an error that names the flag.
Result<uint64_t> number(const Flags& flags, std::string_view name, uint64_t otherwise,
                        std::string_view example) {
  const std::string text = flags.value(name, std::to_string(otherwise));
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(HALYARD_INVALID_ARGUMENT, "--{}={}: expected a number, such as {}", name, text, example);
  return count;
}

// What the task flags make of the option `workers`; empty where none of them is given.
Result<std::string> worker_count(const Flags& flags) {
  if (flags.has("task_topology_group_count"))
    return std::to_string(TOOL_TRY(number(flags, "task_topology_group_count", 0, "4")));
  if (!flags.has("task_topology_max_group_count")) return std::string();
  const uint64_t most = TOOL_TRY(number(flags, "task_topology_max_group_count", 0, "8"));
  return std::to_string(std::min<uint64_t>(most, std::max(std::thread::hardware_concurrency(), 1u)));
}

Result<> open_devices(const Flags& flags, Run& run) {
  std::vector<std::string> uris = flags.all("device");
  if (uris.empty()) {
    bool needed = false;
    for (const auto& module : run.modules) needed = needed || TOOL_TRY(info_of(module.get())).needs_devices;
    if (needed) uris.push_back(TOOL_TRY(default_device(run.instance.get())));
  }
  const std::string native = flags.value("allow_native", "yes");
  if (native != "yes" && native != "no")
    return fail(HALYARD_INVALID_ARGUMENT, "--allow-native={}: expected yes or no", native);
  const std::vector<std::string> plugins = flags.all("executable_plugin");
  std::vector<halyard_device_setting_t> settings;
  if (native == "no") settings.push_back({"native", "0"});
  for (const std::string& plugin : plugins) settings.push_back({"plugin", plugin.c_str()});
  const size_t local_settings = settings.size();
  const std::string workers = TOOL_TRY(worker_count(flags));
  if (!workers.empty()) settings.push_back({"workers", workers.c_str()});  // the last: not all have them
  for (const std::string& uri : uris) {
    Handle<halyard_device_t> device;
    // What runs on other devices is not this process.
    size_t count = uri.starts_with("local-") ? local_settings : 0;
    if (uri.starts_with("local-task") && !uri.contains("workers=")) count = settings.size();
    TOOL_TRY(check(
        halyard_device_open_with(run.instance.get(), uri.c_str(), settings.data(), count, device.out())));
    run.devices.push_back(std::move(device));
  }
  return {};
}

// As the C ABI counts: from 1; 0 where none is named.
Result<uint32_t> lead_device(const Flags& flags, size_t device_count) {
  if (!flags.has("device_lead_allocator")) return 0u;
  const uint64_t place = TOOL_TRY(number(flags, "device_lead_allocator", 0, "0"));
  if (place >= device_count)
    return fail(HALYARD_INVALID_ARGUMENT,
                "--device_lead_allocator={}: there are {} devices, counted from 0; name one of them", place,
                device_count);
  return static_cast<uint32_t>(place) + 1;
}

// hal.buffer_view.trace: a title, then each view on a line of its own, to standard error.
void print_trace(void*, halyard_text_t key, const halyard_object_t* views, size_t count) {
  fmt::print(stderr, "=== {} ===\n", printable(view(key)));
  for (size_t i = 0; i < count; ++i) {
    char* text = nullptr;
    const Result<> done = check(halyard_view_text(views[i], kDefaultMaxElements, &text));
    const Block<char> owned(text);
    fmt::print(stderr, "{}\n", done ? text : done.error().line());
  }
}

Result<> make_context(const Flags& flags, Run& run) {
  std::vector<halyard_module_t> modules;
  for (const auto& module : run.modules) modules.push_back(module.get());
  std::vector<halyard_device_t> devices;
  for (const auto& device : run.devices) devices.push_back(device.get());
  std::vector<std::string> scopes;
  std::vector<std::string> paths;
  for (const std::string& parameters : flags.all("parameters")) {
    const size_t equals = parameters.find('=');
    scopes.push_back(equals == std::string::npos ? "" : parameters.substr(0, equals));
    paths.push_back(equals == std::string::npos ? parameters : parameters.substr(equals + 1));
  }
  std::vector<halyard_parameter_file_t> files;
  for (size_t i = 0; i < paths.size(); ++i) files.push_back({scopes[i].c_str(), paths[i].c_str()});
  halyard_context_options_t options = {};
  options.struct_size = sizeof options;
  options.modules = modules.data();
  options.module_count = modules.size();
  options.devices = devices.data();
  options.device_count = devices.size();
  options.parameters = files.data();
  options.parameter_count = files.size();
  const std::string mode = flags.value("parameter_mode", "file");
  if (mode != "file" && mode != "preload")
    return fail(HALYARD_INVALID_ARGUMENT, "--parameter_mode={}: expected file or preload", mode);
  if (mode == "preload") options.flags |= HALYARD_CONTEXT_PRELOAD_PARAMETERS;
  options.trace = print_trace;
  options.lead_device = TOOL_TRY(lead_device(flags, devices.size()));
  if (flags.has("max_memory"))
    options.max_memory = TOOL_TRY(parse_size("max_memory", flags.value("max_memory")));
  if (flags.has("timeout")) options.max_time_ns = TOOL_TRY(parse_duration("timeout", flags.value("timeout")));
  const std::string capture = flags.value("capture");
  if (flags.has("capture")) options.capture_path = capture.c_str();
  return check(halyard_context_create(run.instance.get(), &options, run.context.out()));
}

// The function asked for, or the only one that can be meant.
Result<std::string> chosen_function(const Flags& flags, halyard_module_t module) {
  if (flags.has("function")) return flags.value("function");
  std::vector<std::string> names;
  const halyard_module_info_t info = TOOL_TRY(info_of(module));
  for (uint32_t i = 0; i < info.function_count; ++i) {
    halyard_function_description_t function = {};
    function.struct_size = sizeof function;
    TOOL_TRY(check(halyard_module_function(module, i, &function)));
    const std::string_view name = view(function.name);
    if (!name.starts_with("__") && name.find('$') == std::string_view::npos) names.emplace_back(name);
  }
  if (names.size() == 1) return names.front();
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return fail(HALYARD_INVALID_ARGUMENT, "module '{}' exports {}; say which to call with --function=NAME",
              view(info.name),
              names.empty() ? "no function that can be called" : "several functions: " + list);
}

// The description of an export by name; NOT_FOUND comes from the context, which knows near names.
Result<halyard_function_description_t> describe(halyard_module_t module, std::string_view name) {
  const halyard_module_info_t info = TOOL_TRY(info_of(module));
  halyard_function_description_t function = {};
  for (uint32_t i = 0; i < info.function_count; ++i) {
    function.struct_size = sizeof function;
    TOOL_TRY(check(halyard_module_function(module, i, &function)));
    if (view(function.name) == name) return function;
  }
  return fail(HALYARD_NOT_FOUND, "no function '{}' exported by module '{}'", name, view(info.name));
}

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
  if (mode != "approximate" && mode != "absolute" && mode != "relative" && mode != "exact")
    return fail(HALYARD_INVALID_ARGUMENT,
                "--equality_mode={}: expected approximate, absolute, relative or exact", mode);
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

Result<bool> call_and_print(const Flags& flags, const Run& run, const std::string& name) {
  const uint64_t limit = TOOL_TRY(number(flags, "output_max_element_count", kDefaultMaxElements, "1024"));
  Handle<halyard_function_t> function;
  TOOL_TRY(check(halyard_context_find(run.context.get(), nullptr, name.c_str(), function.out())));
  const halyard_function_description_t description = TOOL_TRY(describe(run.modules.back().get(), name));
  std::string types = convention_arguments(view(description.convention));
  if (types.contains('C'))
    return fail(HALYARD_INVALID_ARGUMENT,
                "function '{}' takes a variable number of arguments; only modules can call it", name);
  if (description.is_async && types.size() >= 2) types.resize(types.size() - 2);
  const halyard_device_t device = run.devices.empty() ? nullptr : run.devices.front().get();
  Arguments arguments = TOOL_TRY(parse_inputs(flags.all("input"), types, device));

  fmt::print("EXEC @{}\n", printable(name));
  std::fflush(stdout);
  if (arguments.values().size() < types.size())
    return fail(HALYARD_INVALID_ARGUMENT,
                "expected {} arguments but passed {}; function '{}' takes one --input for each{}{}",
                types.size(), arguments.values().size(), name, description.declaration.size ? ": " : "",
                view(description.declaration));
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
  Handle<halyard_call_t> call;
  TOOL_TRY(check(halyard_call_create(run.context.get(), call.out())));
  std::vector<halyard_value_t> results(description.result_count);
  TOOL_TRY(check(halyard_call_invoke(call.get(), function.get(), arguments.values().data(),
                                     arguments.values().size(), results.data(), results.size())));
  Arguments owned;  // releases the results' objects
  for (const halyard_value_t& result : results) owned.add(result);
  if (signal) TOOL_TRY(check(halyard_fence_wait(signal.get(), UINT32_MAX)));
  return print_results(flags, results, convention_results(view(description.convention)), device, limit);
}

// One block for each device, as the reference tools print it.
Result<> print_statistics(const Run& run) {
  for (const auto& device : run.devices) {
    halyard_memory_use_t use = {};
    use.struct_size = sizeof use;
    TOOL_TRY(check(halyard_device_memory(device.get(), &use)));
    std::string_view uri = halyard_device_uri(device.get());
    if (uri.ends_with("://")) uri.remove_suffix(3);
    fmt::print(stderr,
               "Device: {}\n[[ iree_hal_allocator_t memory statistics ]]\n"
               "  HOST_LOCAL: {:12}B peak / {:12}B allocated / {:12}B freed / {:12}B live\n"
               "DEVICE_LOCAL: {:12}B peak / {:12}B allocated / {:12}B freed / {:12}B live\n\n",
               printable(uri), use.host_peak, use.host_allocated, use.host_freed, use.host_live,
               use.device_peak, use.device_allocated, use.device_freed, use.device_live);
  }
  return {};
}

Result<int> vm_run(const Flags& flags) {
  Run run;
  run.instance = TOOL_TRY(make_instance(flags));
  if (flags.on("list_drivers")) {
    TOOL_TRY(flags.on("explain") ? explain_drivers(run.instance.get()) : list_drivers(run.instance.get()));
    return 0;
  }
  if (flags.has("list_devices")) {
    TOOL_TRY(list_devices(run.instance.get(), flags.value("list_devices")));
    return 0;
  }
  if (flags.has("dump_devices")) {
    TOOL_TRY(dump_devices(run.instance.get(), flags.value("dump_devices")));
    return 0;
  }
  TOOL_TRY(load_modules(flags, run));
  const halyard_module_t main_module = run.modules.back().get();
  if (flags.on("list_functions")) {
    TOOL_TRY(list_functions(main_module));
    return 0;
  }
  const std::string name = TOOL_TRY(chosen_function(flags, main_module));
  TOOL_TRY(open_devices(flags, run));
  TOOL_TRY(make_context(flags, run));
  const bool is_as_expected = TOOL_TRY(call_and_print(flags, run, name));
  if (flags.on("print_statistics")) {
    std::fflush(stdout);
    TOOL_TRY(print_statistics(run));
  }
  return is_as_expected ? 0 : 1;
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::tools::kTool, argc, argv, halyard::tools::vm_run);
}
