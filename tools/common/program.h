// A program as the flags of program_flags.h name it: modules, devices, parameters, limits. The steps are
// functions of their own, in the order in which they are called, so that each can be measured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

// Elements of a tensor that are printed where no flag says how many.
inline constexpr uint64_t kDefaultMaxElements = 1024;

// Everything that a run holds. Members go in reverse order: the call before the context, devices before the
// instance.
struct Program {
  Handle<halyard_trace_t> trace;  // --trace; may be null
  Handle<halyard_instance_t> instance;
  std::vector<Handle<halyard_module_t>> modules;
  std::vector<Handle<halyard_device_t>> devices;
  Handle<halyard_context_t> context;
};

// --trace, and the instance. Before anything else.
Result<> make_instance(const Flags& flags, Program& program);

// What a tool does with a program, as a slice of its trace, for as long as this lives.
class Phase {
 public:
  Phase(const Program& program, const char* name) : trace_(program.trace.get()) {
    halyard_trace_begin(trace_, name);
  }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
  ~Phase() { halyard_trace_end(trace_); }

 private:
  const halyard_trace_t trace_;
};

// --module, --module_mode, --verify. The instance must be there.
Result<> load_modules(const Flags& flags, Program& program);

// --device and the flags that open devices; without --device, the default device where a module needs one.
Result<> open_devices(const Flags& flags, Program& program);

// Modules, devices and parameters to one context; runs the modules' initialisers.
Result<> make_context(const Flags& flags, Program& program);

// The function asked for, or the only one that can be meant.
Result<std::string> chosen_function(const Flags& flags, halyard_module_t module);

// The description of an export; its texts live as long as the module.
Result<halyard_function_description_t> describe(halyard_module_t module, std::string_view name);

// A flag's number, or an error that names the flag.
Result<uint64_t> number(const Flags& flags, std::string_view name, uint64_t otherwise,
                        std::string_view example);

}  // namespace halyard::tools
