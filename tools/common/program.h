// A program as the flags of program_flags.h name it: modules, devices, parameters, limits. The steps are
// functions of their own, in the order in which they are called, so that each can be measured.
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
#include "common/waiting.h"

namespace halyard::tools {

// Elements of a tensor that are printed where no flag says how many.
inline constexpr uint64_t kDefaultMaxElements = 1024;

// Everything that a run holds. Members go in reverse order: the call before the context, devices before the
// instance.
struct Program {
  Handle<halyard_trace_t> trace;  // --trace; may be null
  struct PhaseTime {
    std::string_view name;
    std::chrono::nanoseconds time;
  };
  std::unique_ptr<std::vector<PhaseTime>> phases;  // --print_stats; null: nobody wants to know
  std::unique_ptr<Waiting> waiting;                // shows phases that take long; may be null
  // What contexts show of dispatches, as in halyard_context_options_t; nothing without a function.
  std::string tensor_pattern;
  halyard_tensor_fn tensor = nullptr;
  void* tensor_user = nullptr;
  ExpectationSink expectations;
  Handle<halyard_instance_t> instance;
  std::vector<Handle<halyard_module_t>> modules;
  std::vector<Handle<halyard_device_t>> devices;
  Handle<halyard_context_t> context;
};

// --trace and --print_stats, and the instance. Before anything else.
Result<> make_instance(const Flags& flags, Program& program);

// What a tool does with a program, as a slice of its trace, a time of its statistics and, where it takes
// long, a line on the terminal, for as long as this lives.
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

// --module_mode and --verify, as HALYARD_MODULE_*.
Result<uint32_t> module_options(const Flags& flags);

// --module; at least one.
Result<std::vector<std::string>> module_paths(const Flags& flags);

// --module, --module_mode, --verify. The instance must be there.
Result<> load_modules(const Flags& flags, Program& program);

// --dump_task_topologies: the workers of a local-task device, on standard output.
Result<> dump_workers(const Flags& flags);

// --device and the flags that open devices; without --device, the default device where a module needs one.
Result<> open_devices(const Flags& flags, Program& program);

// On standard error, what is likely to give wrong results on the devices that are open.
Result<> print_warnings(const Program& program, std::string_view tool);

// What the flags say about contexts, but for their modules. Any thread.
class ContextOptions {
 public:
  // With the program's devices, which must live as long as this.
  static Result<std::unique_ptr<const ContextOptions>> of(const Flags& flags, const Program& program);
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
  halyard_context_options_t options_ = {};  // points to the above
};

// Modules, devices and parameters to one context; runs the modules' initialisers.
Result<> make_context(const Flags& flags, Program& program);

// The function asked for, or the only one that can be meant.
Result<std::string> chosen_function(const Flags& flags, halyard_module_t module);

// The description of an export; its texts live as long as the module.
Result<halyard_function_description_t> describe(halyard_module_t module, std::string_view name);

// What each device has given of memory, on standard error, as the reference tools print it.
Result<> print_statistics(const Program& program);

// A flag's number, or an error that names the flag.
Result<uint64_t> number(const Flags& flags, std::string_view name, uint64_t otherwise,
                        std::string_view example);

}  // namespace halyard::tools
