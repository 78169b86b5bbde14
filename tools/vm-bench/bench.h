// The state that all rows share: the loaded program with its open devices, and the measuring options.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agreement.h"
#include "benchmark_flags.h"
#include "calls.h"
#include "common/failure.h"
#include "common/files.h"
#include "common/flags.h"
#include "common/profile_report.h"
#include "common/program.h"
#include "common/progress.h"

namespace halyard::tools {

// The source of a module, from which it can be loaded again.
class ModuleSource {
 public:
  // Reads the file, or standard input for "-"; text is assembled.
  static Result<ModuleSource> open(const Flags& flags, const Instance& instance, const std::string& path);
  // Loads from memory or, if it is to be mapped, from the file. A native module is loaded once per instance.
  Result<Module> load(const Instance& instance, uint32_t options) const;
  bool is_native() const { return static_cast<bool>(native_); }

 private:
  std::string path_;
  Module native_;
  halyard_instance_t native_instance_ = nullptr;  // the instance that has the types of native_
  std::optional<FileContents> contents_;
  Bytes assembled_;
};

// The error text of rows that Ctrl-C has stopped; reports omit them.
inline constexpr const char* kStopped = "stopped";

// A function with its arguments.
struct Measured {
  Target target;
  Arguments arguments;
};

struct Bench {
  const Flags* flags = nullptr;
  BenchmarkOptions options;
  uint64_t batch = 1;
  uint64_t in_flight = 1;
  int threads = 1;
  double clock_cost = 0;  // seconds

  std::vector<ModuleSource> sources;
  Program program;  // without a context
  ContextOptions context_options;
  std::unique_ptr<Agreement> agreement;  // for several ranks; null: one rank
  std::vector<Measured> functions;

  Stop stop;
  Progress progress{"measuring"};
  std::vector<ProfileReport> profiles;  // --profile: of the functions with a row of warm calls
  std::vector<Failure> failures;        // of measured calls
  std::mutex failures_mutex;

  // The maximum of the ranks' times. All ranks get the same value, so they decide alike.
  Result<double> slowest(double seconds) const {
    if (!agreement) return seconds;
    return agreement->largest(seconds);
  }
  // Whether this process prints.
  bool reports() const { return !agreement || agreement->rank() == 0; }
  // Loads all modules again, in order, without verifying functions.
  Result<std::vector<Module>> load_again() const;
  Result<Context> make_context(const std::vector<Module>& modules) const;
  Result<std::unique_ptr<Caller>> make_caller(const Context& context, const Measured& function);

  // Returns the error text for the row. Records the failure for the end of the run, unless Ctrl-C caused it.
  std::string note(const Failure& failure);
};

// Creates the instance, loads the modules, opens the devices, and finds functions and arguments.
Result<> set_up(const Flags& flags, Bench& bench);

}  // namespace halyard::tools
