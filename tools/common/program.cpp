// Creates modules, devices and the context from flags.
#include "common/program.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "common/device_uri.h"
#include "common/drivers.h"
#include "common/exit.h"
#include "common/printable.h"
#include "common/program_flags.h"
#include "common/progress.h"
#include "common/quantities.h"
#include "common/ranks.h"
#include "common/standard_streams.h"
#include "common/untrusted.h"

namespace halyard::tools {

namespace {

// Off if there is no compiler: functions are then interpreted without counting calls. Off for untrusted
// modules, because a compiler is more code for an attacker to find defects in.
JitMode jit_mode(const Flags& flags) {
  if (flags[flag::untrusted] && !flags.has(flag::jit)) return JitMode::off;
  const JitMode mode = flags[flag::jit];
  return mode == JitMode::hot && !find_compiler() ? JitMode::off : mode;
}

// The folder for compiled code; empty: no cache.
std::string jit_cache(const Flags& flags) {
  if (jit_mode(flags) == JitMode::off) return "";
  if (flags.has(flag::jit_cache)) return flags[flag::jit_cache];
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string folder = variable("XDG_CACHE_HOME"); folder.starts_with('/'))
    return folder + "/halyard/jit";
  const std::string home = variable("HOME");
  return home.starts_with('/') ? home + "/.cache/halyard/jit" : "";
}

// local-task, as in the reference tools, if a driver serves it, else local-sync. Only the notes of drivers
// are read, so only the chosen driver is loaded.
Result<std::string> default_device(const Instance& instance) {
  return TOOL_TRY(DriverSearch::of(instance)).serving("local-task") ? "local-task" : "local-sync";
}

// The option `workers` from the task flags; empty if none is given.
Result<std::string> worker_count(const Flags& flags) {
  if (flags.has(flag::task_topology_group_count))
    return std::to_string(TOOL_TRY(flags[flag::task_topology_group_count]));
  if (!flags.has(flag::task_topology_max_group_count)) return std::string();
  const uint64_t most = TOOL_TRY(flags[flag::task_topology_max_group_count]);
  return std::to_string(std::min<uint64_t>(most, std::max(std::thread::hardware_concurrency(), 1u)));
}

// The options of local devices from --jit, --allow_native, --untrusted and --executable_plugin, as keys and
// values.
std::vector<std::pair<std::string, std::string>> local_options(const Flags& flags, bool is_profiled) {
  const JitMode jit = jit_mode(flags);
  std::vector<std::pair<std::string, std::string>> options;
  options.emplace_back("jit", jit == JitMode::hot ? "auto" : jit == JitMode::always ? "always" : "off");
  if (const std::string folder = jit_cache(flags); !folder.empty()) options.emplace_back("jit_cache", folder);
  if (flags[flag::jit_math] == JitMath::fast) options.emplace_back("jit_math", "fast");
  if (is_profiled) options.emplace_back("profile", "1");
  if (flags[flag::allow_native] == YesNo::no || flags[flag::untrusted]) options.emplace_back("native", "0");
  for (const std::string& plugin : flags[flag::executable_plugin]) options.emplace_back("plugin", plugin);
  return options;
}

// The number counts from 1, as in the C ABI; 0 if no device is named.
Result<uint32_t> lead_device(const Flags& flags, size_t device_count) {
  if (!flags.has(flag::device_lead_allocator)) return 0u;
  const uint64_t place = TOOL_TRY(flags[flag::device_lead_allocator]);
  if (place >= device_count)
    return fail(HALYARD_INVALID_ARGUMENT, "{}={}: expected the index of a {}, counted from 0; there {} {}",
                flag::device_lead_allocator, place, flag::device, device_count == 1 ? "is" : "are",
                device_count);
  return static_cast<uint32_t>(place) + 1;
}

// hal.buffer_view.trace: prints a title, and each view on a separate line, to standard error.
void print_trace(Waiting* waiting, std::string_view key, std::span<const halyard_object_t> views) {
  if (waiting) waiting->clear();
  print_error("=== {} ===\n", printable(key));
  for (halyard_object_t each : views) {
    const Result<std::string> text = check(Tensor(share, each).text(kDefaultMaxElements));
    print_error("{}\n", text ? *text : text.error().line());
  }
}

}  // namespace

Program::~Program() {
  context = {};
  if (is_rank) return;
  bool compiles = instance && instance.compiling().value_or(0) > 0;
  for (const Device& device : devices) {
    const auto kernels = device.query("halyard.jit", "compiling");
    if (!kernels || kernels->value_or(0) == 0) continue;
    keep_until_exit(device.get());
    compiles = true;
  }
  // The end of an instance waits for its devices.
  if (compiles) keep_until_exit(instance.get());
  if (!skips_exit_handlers()) return;
  devices.clear();
  modules.clear();
  if (trace) static_cast<void>(trace.finish());
}

Phase::Phase(const Program& program, const char* name)
    : program_(program), name_(name), begin_(std::chrono::steady_clock::now()) {
  halyard_trace_begin(program.trace.get(), name);
  if (program.waiting) program.waiting->begin(name);
}

Phase::~Phase() {
  if (program_.waiting) program_.waiting->end();
  halyard_trace_end(program_.trace.get());
  if (program_.phases) program_.phases->push_back({name_, std::chrono::steady_clock::now() - begin_});
}

InstanceOptions instance_options(const Flags& flags) {
  const JitMode jit = jit_mode(flags);
  InstanceOptions options{.jit_cache = jit_cache(flags)};
  if (jit == JitMode::hot) options.flags |= HALYARD_INSTANCE_JIT_AUTO;
  if (jit == JitMode::always) options.flags |= HALYARD_INSTANCE_JIT_ALWAYS;
  if (flags[flag::jit_math] == JitMath::fast) options.flags |= HALYARD_INSTANCE_JIT_FAST_MATH;
  return options;
}

Result<> make_instance(const Flags& flags, Program& program) {
  TOOL_TRY(check_untrusted(flags));
  if (flags.has(flag::trace)) {
    const std::string path = flags[flag::trace];
    if (path.empty())
      return fail(HALYARD_INVALID_ARGUMENT, "{} needs the name of a file, such as {}", flag::trace,
                  flag::trace.example);
    program.trace = TOOL_TRY(Trace::create(path));
  }
  if (program.is_profiled && !program.trace) program.trace = TOOL_TRY(Trace::create(""));
  if (flags[flag::print_stats]) program.phases = std::make_unique<std::vector<Program::PhaseTime>>();
  InstanceOptions options = instance_options(flags);
  options.trace = program.trace;
  if (program.phases) options.flags |= HALYARD_INSTANCE_COUNT_OBJECTS;
  program.instance = TOOL_TRY(make_instance(flags, std::move(options)));
  program.is_rank = TOOL_TRY(is_rank(flags));
  return {};
}

Result<uint32_t> module_options(const Flags& flags) {
  // A library named on the command line is trusted unless another flag denies it.
  uint32_t options = flags[flag::untrusted] ? 0 : HALYARD_MODULE_NATIVE;
  if (flags[flag::verify] == Verify::eager) options |= HALYARD_MODULE_VERIFY_EAGERLY;
  if (flags[flag::module_mode] == ModuleMode::preload) options |= HALYARD_MODULE_PRELOAD;
  return options;
}

Result<Module> load_module(const Flags& flags, const Instance& instance, const std::string& path) {
  Result<Module> loaded = check(Module::load(instance, path, TOOL_TRY(module_options(flags))));
  if (loaded) return loaded;
  // The library gives the remedy in terms of the C ABI.
  constexpr std::string_view kRemedy = "allow it with HALYARD_MODULE_NATIVE";
  std::string& text = loaded.error().text;
  if (const size_t place = text.find(kRemedy); place != std::string::npos)
    text.replace(place, kRemedy.size(), fmt::format("remove {}", flag::untrusted));
  return loaded;
}

Result<std::vector<std::string>> module_paths(const Flags& flags) {
  std::vector<std::string> paths = flags[flag::module];
  if (paths.empty() && !flags.positional().empty())
    return fail(HALYARD_INVALID_ARGUMENT, "no module given: '{}' is not a flag; did you mean {}={}?",
                flags.positional().front(), flag::module, flags.positional().front());
  if (paths.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "no module given; name one with {}=FILE ('--help' shows examples)",
                flag::module);
  return paths;
}

Result<> load_modules(const Flags& flags, Program& program) {
  const Phase phase(program, "load modules");
  for (const std::string& path : TOOL_TRY(module_paths(flags)))
    program.modules.push_back(TOOL_TRY(load_module(flags, program.instance, path)));
  return {};
}

Result<> dump_workers(const Flags& flags) {
  std::string workers = TOOL_TRY(worker_count(flags));
  if (workers.empty()) workers = std::to_string(std::max(std::thread::hardware_concurrency(), 1u));
  fmt::print(
      "# local-task: at most {} worker threads, started when there is work for them, not bound to "
      "processors\n{}=local-task?workers={}\n",
      workers, flag::device, workers);
  return {};
}

Result<Device> open_device(const Flags& flags, const Program& program, const std::string& uri) {
  TOOL_TRY(check_drivers(flags));
  const auto local = local_options(flags, program.is_profiled);
  const std::string workers = TOOL_TRY(worker_count(flags));
  const DeviceUri parts(uri);
  std::vector<halyard_device_setting_t> settings;
  if (parts.is_local()) {  // only local devices run code in this process
    for (const auto& [key, value] : local) settings.push_back({key.c_str(), value.c_str()});
    if (parts.kind == "local-task" && !parts.has("workers") && !workers.empty())
      settings.push_back({"workers", workers.c_str()});
  } else if (program.is_profiled && parts.kind.starts_with("remote")) {
    settings.push_back({"profile", "1"});  // its local devices count at the server
  }
  for (const std::string_view key : {"jit", "jit_cache", "jit_math", "profile"})
    if (parts.has(key)) std::erase_if(settings, [&](const auto& setting) { return setting.key == key; });
  if (parts.kind == "vulkan") {
    if (!parts.has("validate") && flags[flag::vulkan_validation_layers])
      settings.push_back({"validate", "1"});
    if (!parts.has("robust") && flags.has(flag::vulkan_robust_buffer_access))
      settings.push_back({"robust", flags[flag::vulkan_robust_buffer_access] ? "1" : "0"});
  }
  return check(program.instance.open(uri, settings));
}

Result<> open_devices(const Flags& flags, Program& program) {
  const Phase phase(program, "open devices");
  std::vector<std::string> uris = flags[flag::device];
  if (uris.empty()) {
    bool needed = false;
    for (const Module& module : program.modules) needed = needed || TOOL_TRY(module.info()).needs_devices;
    if (needed) uris.push_back(TOOL_TRY(default_device(program.instance)));
  }
  for (const std::string& uri : uris) program.devices.push_back(TOOL_TRY(open_device(flags, program, uri)));
  return {};
}

Result<> print_warnings(const Program& program, std::string_view tool) {
  const auto is_vulkan = [](const Device& device) { return DeviceUri(device.uri()).kind == "vulkan"; };
  if (std::ranges::none_of(program.devices, is_vulkan)) return {};  // all warnings so far are about shaders
  for (const Module& module : program.modules) {
    const std::string text = TOOL_TRY(module.warnings());
    std::string_view lines = text;
    while (!lines.empty()) {
      const size_t end = std::min(lines.find('\n'), lines.size());
      print_error("{}: warning: {}\n", tool, printable(lines.substr(0, end)));
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
  }
  return {};
}

Result<ContextOptions> context_options(const Flags& flags, const Program& program) {
  return context_options(flags, program, flags[flag::parameters], TOOL_TRY(time_limit(flags)));
}

Result<ContextOptions> context_options(const Flags& flags, const Program& program,
                                       const std::vector<std::string>& parameters,
                                       std::chrono::nanoseconds limit) {
  ContextOptions options;
  options.devices = program.devices;
  for (const std::string& text : parameters) {
    const size_t equals = text.find('=');
    options.parameters.push_back({equals == std::string::npos ? "" : text.substr(0, equals),
                                  equals == std::string::npos ? text : text.substr(equals + 1)});
  }
  options.loader_settings = local_options(flags, program.is_profiled);
  if (flags[flag::parameter_mode] == ParameterMode::preload)
    options.flags |= HALYARD_CONTEXT_PRELOAD_PARAMETERS;
  options.tensor_pattern = program.tensor_pattern;
  options.tensor = program.tensor;
  options.expectation = program.expectation;
  if (program.warnings)
    options.warning = [warnings = program.warnings](const auto& warning) { warnings->take(warning); };
  options.trace = [waiting = program.waiting.get()](std::string_view key,
                                                    std::span<const halyard_object_t> views) {
    print_trace(waiting, key, views);
  };
  options.lead_device = TOOL_TRY(lead_device(flags, program.devices.size()));
  options.max_memory = TOOL_TRY(memory_limit(flags));
  options.max_time = limit;
  options.capture_path = flags[flag::capture];
  options.channels = TOOL_TRY(channels_of(flags));
  return options;
}

Result<Context> create_context(const Instance& instance, const std::vector<Module>& modules,
                               ContextOptions options) {
  options.modules = modules;
  const auto progress = std::make_shared<Progress>("reading parameters:");
  options.progress = [progress](uint64_t done, uint64_t total) {
    progress->show(0, 0, fmt::format("{} of {}", format_size(done), format_size(total)));
    return halyard::Result<void>();
  };
  Result<Context> made = check(Context::create(instance, std::move(options)));
  progress->clear();
  return made;
}

Result<> make_context(const Flags& flags, Program& program) {
  const Phase phase(program, "make context");
  program.context =
      TOOL_TRY(create_context(program.instance, program.modules, TOOL_TRY(context_options(flags, program))));
  return {};
}

Result<std::string> chosen_function(const Flags& flags, const Module& module) {
  // An empty name counts as none, because a script may pass "--function=$NAME".
  if (const std::string given = flags[flag::function]; !given.empty()) return given;
  std::vector<std::string> names;
  const halyard_module_info_t info = TOOL_TRY(module.info());
  for (uint32_t i = 0; i < info.function_count; ++i) {
    const halyard_function_description_t function = TOOL_TRY(module.function(i));
    const std::string_view name = view(function.name);
    if (!name.starts_with("__") && name.find('$') == std::string_view::npos) names.emplace_back(name);
  }
  if (names.size() == 1) return names.front();
  if (names.empty())
    return fail(HALYARD_INVALID_ARGUMENT,
                "module '{}' exports no function that can be called; 'vm-dump' shows its contents",
                view(info.name));
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return fail(HALYARD_INVALID_ARGUMENT, "module '{}' exports several functions: {}; select one with {}=NAME",
              view(info.name), list, flag::function);
}

// NOT_FOUND has no suggestion, because the context has looked up the name before and has made one.
Result<halyard_function_description_t> describe(const Module& module, std::string_view name) {
  const halyard_module_info_t info = TOOL_TRY(module.info());
  for (uint32_t i = 0; i < info.function_count; ++i) {
    const halyard_function_description_t function = TOOL_TRY(module.function(i));
    if (view(function.name) == name) return function;
  }
  return fail(HALYARD_NOT_FOUND, "no function '{}' in module '{}'", name, view(info.name));
}

Result<> print_statistics(const Program& program) {
  for (const auto& device : program.devices) {
    const halyard_memory_use_t use = TOOL_TRY(device.memory());
    std::string_view uri = device.uri();
    if (uri.ends_with("://")) uri.remove_suffix(3);
    print_error(
        "Device: {}\n[[ iree_hal_allocator_t memory statistics ]]\n"
        "  HOST_LOCAL: {:12}B peak / {:12}B allocated / {:12}B freed / {:12}B live\n"
        "DEVICE_LOCAL: {:12}B peak / {:12}B allocated / {:12}B freed / {:12}B live\n\n",
        printable(uri), use.host_peak, use.host_allocated, use.host_freed, use.host_live, use.device_peak,
        use.device_allocated, use.device_freed, use.device_live);
  }
  return {};
}

}  // namespace halyard::tools
