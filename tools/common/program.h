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

#include "common/expectations.h"
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

  Handle<halyard_trace_t> trace;  // --trace; may be null
  struct PhaseTime {
    std::string_view name;
    std::chrono::nanoseconds time;
  };
  std::unique_ptr<std::vector<PhaseTime>> phases;  // --print_stats; else null
  std::unique_ptr<Waiting> waiting;                // shows phases that take long; may be null
  // The dispatches whose tensors contexts report, as in halyard_context_options_t. Null function: none.
  std::string tensor_pattern;
  halyard_tensor_fn tensor = nullptr;
  void* tensor_user = nullptr;
  ExpectationSink expectations;
  std::shared_ptr<Warnings> warnings = std::make_shared<Warnings>();  // of its contexts; null: not reported
  bool is_rank = false;  // may be one of several ranks: MPI needs exit handlers
  Handle<halyard_instance_t> instance;
  std::vector<Handle<halyard_module_t>> modules;
  std::vector<Handle<halyard_device_t>> devices;
  Handle<halyard_context_t> context;
};

// Reads --trace and --print_stats, and creates the instance. Call it first.
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

Result<halyard_module_info_t> info_of(halyard_module_t module);

// --module_mode and --verify, converted to HALYARD_MODULE_*.
Result<uint32_t> module_options(const Flags& flags);

// The paths of --module; at least one.
Result<std::vector<std::string>> module_paths(const Flags& flags);

// Loads the modules of --module according to --module_mode and --verify. Precondition: the instance exists.
Result<> load_modules(const Flags& flags, Program& program);

// --dump_task_topologies: prints the workers of a local-task device to standard output.
Result<> dump_workers(const Flags& flags);

// Opens the devices of --device; without that flag, opens the default device if a module needs a device.
Result<> open_devices(const Flags& flags, Program& program);

// Prints warnings to standard error about device code that is likely to give wrong results on the open
// devices.
Result<> print_warnings(const Program& program, std::string_view tool);

// The options of contexts from the flags, except the modules. Any thread.
class ContextOptions {
 public:
  // Uses the program's devices, which must outlive this object.
  static Result<std::unique_ptr<ContextOptions>> of(const Flags& flags, const Program& program);
  // Uses these parameters, in the form of --parameters, instead of those of the flags. Uses this time limit
  // for each call, including initializers (0: none), instead of --timeout.
  static Result<std::unique_ptr<ContextOptions>> of(const Flags& flags, const Program& program,
                                                    const std::vector<std::string>& parameters,
                                                    std::chrono::nanoseconds limit);
  void separate_calls() { options_.flags |= HALYARD_CONTEXT_SEPARATE_CALLS; }
  Result<> create(halyard_instance_t instance, const std::vector<Handle<halyard_module_t>>& modules,
                  halyard_context_t* out, ExpectationSink expectations = {}) const;

 private:
  ContextOptions() = default;

  std::vector<halyard_device_t> devices_;
  std::vector<std::string> scopes_;
  std::vector<std::string> paths_;
  std::vector<halyard_parameter_file_t> files_;
  std::vector<std::pair<std::string, std::string>> local_options_;
  std::vector<halyard_device_setting_t> local_settings_;
  std::string capture_;
  std::string tensor_pattern_;
  Handle<halyard_channels_t> channels_;
  halyard_context_options_t options_ = {};  // points to the members above
};

// Creates the context from modules, devices and parameters; this runs the modules' initializers.
Result<> make_context(const Flags& flags, Program& program);

// The name in --function, or the name of the only callable function.
Result<std::string> chosen_function(const Flags& flags, halyard_module_t module);

// The description of an export. The texts live as long as the module.
Result<halyard_function_description_t> describe(halyard_module_t module, std::string_view name);

// Prints the memory statistics of each device to standard error, in the format of the reference tools.
Result<> print_statistics(const Program& program);

}  // namespace halyard::tools
