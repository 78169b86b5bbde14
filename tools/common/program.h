// The program that the flags of program_flags.h describe: modules, devices, parameters, limits. Each step is
// a separate function, so that it can be measured. The functions are declared in call order.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"
#include "common/program_flags.h"
#include "common/waiting.h"
#include "common/warnings.h"

namespace halyard::tools {

// The number of printed elements of a tensor if no flag sets it.
inline constexpr uint64_t kDefaultMaxElements = 1024;

// All objects of a run. Members are destroyed in reverse order: the context before devices and modules, these
// before the instance.
struct Program {
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  // Does not wait for compile threads: keeps the objects that they use until the process exits (exit.h).
  // Finishes the trace. Contexts must have been destroyed.
  ~Program();

  Trace trace;               // --trace, or for a profile; may be null
  bool is_profiled = false;  // --profile; set before make_instance()
  struct PhaseTime {
    std::string_view name;
    std::chrono::nanoseconds time;
  };
  std::unique_ptr<std::vector<PhaseTime>> phases;  // --print_stats; else null
  std::unique_ptr<Waiting> waiting;                // shows phases that take long; may be null
  // Options of its contexts: the dispatches whose tensors are reported, and what is called for failed
  // expectations of a test program (empty: the first failure fails the call).
  std::string tensor_pattern;
  decltype(ContextOptions::tensor) tensor;
  decltype(ContextOptions::expectation) expectation;
  std::shared_ptr<Warnings> warnings = std::make_shared<Warnings>();  // of its contexts; null: not reported
  bool is_rank = false;  // may be one of several ranks: MPI needs exit handlers
  Instance instance;
  std::vector<Module> modules;
  std::vector<Device> devices;
  Context context;

  // The device of arguments and results; empty if there is none.
  Device device() const { return devices.empty() ? Device() : devices.front(); }
};

// The options for compilation from the flags.
InstanceOptions instance_options(const Flags& flags);

// Checks --untrusted, reads --trace and --print_stats, and creates the instance. Call it first.
Result<> make_instance(const Flags& flags, Program& program);

// A phase of a run, which lasts as long as this object. Creates a slice in the trace, a time in the
// statistics and, if the phase takes long, a line on the terminal.
class Phase {
 public:
  Phase(const Program& program, const char* name);
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
  ~Phase();

 private:
  const Program& program_;
  const char* const name_;
  const std::chrono::steady_clock::time_point begin_;
};

// --module_mode, --verify and --untrusted, converted to HALYARD_MODULE_*.
Result<uint32_t> module_options(const Flags& flags);
// Loads a file with these options. PERMISSION_DENIED: a native module, and --untrusted.
Result<Module> load_module(const Flags& flags, const Instance& instance, const std::string& path);

// The paths of --module; at least one.
Result<std::vector<std::string>> module_paths(const Flags& flags);

// Loads the modules of --module with load_module(). Precondition: the instance exists.
Result<> load_modules(const Flags& flags, Program& program);

// --dump_task_topologies: prints the workers of a local-task device to standard output.
Result<> dump_workers(const Flags& flags);

// Opens a device with the options that the flags have for its kind. Precondition: the instance exists.
Result<Device> open_device(const Flags& flags, const Program& program, const std::string& uri);

// Opens the devices of --device; without that flag, opens the default device if a module needs a device.
Result<> open_devices(const Flags& flags, Program& program);

// Prints warnings to standard error about device code that is likely to give wrong results on the open
// devices.
Result<> print_warnings(const Program& program, std::string_view tool);

// The options of contexts from the flags, except the modules. Any thread.
Result<ContextOptions> context_options(const Flags& flags, const Program& program);
// Uses these parameters, in the form of --parameters, instead of those of the flags. Uses this time limit for
// each call, including initializers (0: none), instead of time_limit().
Result<ContextOptions> context_options(const Flags& flags, const Program& program,
                                       const std::vector<std::string>& parameters,
                                       std::chrono::nanoseconds limit);
// Creates a context of these modules; shows how much of the parameters has been read. Any thread.
Result<Context> create_context(const Instance& instance, const std::vector<Module>& modules,
                               ContextOptions options);

// Creates the context from modules, devices and parameters; this runs the modules' initializers.
Result<> make_context(const Flags& flags, Program& program);

// The name in --function, or the name of the only callable function.
Result<std::string> chosen_function(const Flags& flags, const Module& module);

// The description of an export. The texts live as long as the module.
Result<halyard_function_description_t> describe(const Module& module, std::string_view name);

// Prints the memory statistics of each device to standard error, in the format of the reference tools.
Result<> print_statistics(const Program& program);

}  // namespace halyard::tools
