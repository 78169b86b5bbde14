// vm-run for small static builds (HALYARD_SMALL): runs one function of a compiled module on a linked driver.
// It has only the flags that a call needs; --help lists what is missing. The C ABI is unchanged.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "common/convention.h"
#include "common/failure.h"
#include "common/inputs.h"
#include "common/scalar.h"
#include "common/standard_streams.h"
#include "vm-run/print.h"

// Replaces the C++ library's handler, which prints the demangled name of an exception, because the demangler
// has 47 KB.
namespace __cxxabiv1 {
extern std::terminate_handler __terminate_handler;        // NOLINT(bugprone-reserved-identifier)
std::terminate_handler __terminate_handler = std::abort;  // NOLINT(bugprone-reserved-identifier)
}  // namespace __cxxabiv1

namespace halyard::tools {

namespace {

constexpr uint64_t kMaxElements = 1024;  // maximum number of printed elements of a tensor

constexpr char kHelp[] =
    "usage: vm-run --module=FILE [--module=FILE]... [--function=NAME] [--device=URI] "
    "[--input=VALUE]...\n\nRuns a function of a compiled module and prints its results.\n\n  --module=FILE   "
    " a compiled module (.vmfb); repeat it: later modules may import from earlier ones\n  --function=NAME  "
    "the function to call; optional if the last module exports only one\n  --device=URI     the device "
    "(local-sync); local-sync, local-task\n  --input=VALUE    an argument: a number, such as 5 or 2.5; a "
    "tensor, such as 2x2xf32=1,2,3,4 or 4xf32=0\n  --help           this text\n  --version        the "
    "version\n\nThis is the small vm-run of a static build. It leaves out: modules as text (.vmasm), native "
    "modules, machine code\nfor the system's loader, drivers in files, just-in-time compilation, kernels "
    "with vector instructions, the modules\ncheck, hal_inline, hal_loader and io_parameters, captures, "
    "traces, statistics, limits, JSON, arrays in files (.npy,\n.bin), comparison with expected results, and "
    "lists of drivers, devices and functions. The vm-run of an ordinary\nbuild has all of them.\n";

struct Options {
  std::vector<std::string> modules;
  std::string function;
  std::string device = "local-sync";
  std::vector<std::string> inputs;
};

Result<Options> read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = std::min(argument.find('='), argument.size());
    const std::string_view name = argument.substr(0, equals);
    const std::string value(argument.substr(std::min(equals + 1, argument.size())));
    if (equals == argument.size() || value.empty())
      return fail(HALYARD_INVALID_ARGUMENT, "expected --FLAG=VALUE, found '{}'; see --help", argument);
    if (name == "--module") {
      options.modules.push_back(value);
    } else if (name == "--function") {
      options.function = value;
    } else if (name == "--device") {
      options.device = value;
    } else if (name == "--input") {
      options.inputs.push_back(value);
    } else {
      return fail(HALYARD_INVALID_ARGUMENT,
                  "expected --module, --function, --device or --input, found '{}'; this small vm-run has no "
                  "other flags (see --help)",
                  name);
    }
  }
  if (options.modules.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "expected a module to run, found none; give --module=FILE");
  return options;
}

// The function of that name, or the only exported function.
Result<halyard_function_description_t> choose_function(const Module& module, std::string_view name) {
  const halyard_module_info_t info = TOOL_TRY(module.info());
  std::string names;
  size_t count = 0;
  halyard_function_description_t chosen = {};
  for (uint32_t i = 0; i < info.function_count; ++i) {
    const halyard_function_description_t function = TOOL_TRY(module.function(i));
    const std::string_view exported = view(function.name);
    if (!name.empty() && exported == name) return function;
    if (exported.starts_with("__") || exported.find('$') != std::string_view::npos) continue;
    names += (names.empty() ? "" : ", ") + std::string(exported);
    ++count;
    chosen = function;
  }
  if (!name.empty())
    return fail(HALYARD_NOT_FOUND, "no function '{}' in module '{}'; it exports {}", name, view(info.name),
                names.empty() ? "none" : names);
  if (count != 1)
    return fail(HALYARD_INVALID_ARGUMENT,
                "module '{}' exports {} functions; select one with --function=NAME{}{}", view(info.name),
                count, names.empty() ? "" : ": ", names);
  return chosen;
}

Result<Value> parse_number(const std::string& text, char type) {
  Result<Value> value = parse_scalar(text, type);
  if (value) return value;
  return fail(HALYARD_INVALID_ARGUMENT, "--input={}: expected a number, such as 5, for this argument", text);
}

Result<Value> parse_tensor(std::string_view text, const Device& device) {
  return TOOL_TRY(TOOL_TRY(TensorText::parse(text)).create(device));
}

Result<Arguments> parse_arguments(const std::vector<std::string>& texts, std::string_view types,
                                  const Device& device) {
  if (texts.size() != types.size())
    return fail(HALYARD_INVALID_ARGUMENT,
                "the function takes {} arguments, found {}; pass one --input for each", types.size(),
                texts.size());
  Arguments arguments;
  for (size_t i = 0; i < texts.size(); ++i)
    arguments.add(
        TOOL_TRY(types[i] == 'r' ? parse_tensor(texts[i], device) : parse_number(texts[i], types[i])));
  return arguments;
}

Result<> run(const Options& options) {
  const Instance instance = TOOL_TRY(
      Instance::create({.flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS}));
  const Device device = TOOL_TRY(instance.open(options.device));
  std::vector<Module> modules;
  for (const std::string& path : options.modules) modules.push_back(TOOL_TRY(Module::load(instance, path)));
  const Context context = TOOL_TRY(Context::create(instance, {.modules = modules, .devices = {device}}));
  const halyard_function_description_t chosen = TOOL_TRY(choose_function(modules.back(), options.function));
  const std::string name(view(chosen.name));
  const Function function = TOOL_TRY(context.find(name));
  Arguments arguments = TOOL_TRY(parse_arguments(options.inputs, TOOL_TRY(input_types(chosen)), device));
  Fence signal;
  if (chosen.is_async) signal = TOOL_TRY(add_fences(device, arguments));

  fmt::print("EXEC @{}\n", name);
  const Call call = TOOL_TRY(Call::create(context));
  std::vector<Value> values(chosen.result_count);
  TOOL_TRY(call.invoke_with(function, arguments.values(), values));
  TOOL_TRY(signal.wait());
  for (size_t i = 0; i < values.size(); ++i)
    fmt::print("result[{}]: {}", i, TOOL_TRY(value_text(values[i], kMaxElements)));
  if (std::fflush(stdout) != 0)
    return fail(HALYARD_UNAVAILABLE, "cannot write the results: {}", std::strerror(errno));
  return {};
}

int main_of(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help") return std::fputs(kHelp, stdout) < 0;
    if (argument == "--version") return std::printf("vm-run %s (small)\n", halyard_version()) < 0;
  }
  const Result<Options> options = read_options(argc, argv);
  const Result<> done = options ? run(*options) : std::unexpected(options.error());
  if (done) return 0;
  std::fflush(stdout);
  print_error("vm-run: {}\n", done.error().line());
  return done.error().exit_code;
}

}  // namespace
}  // namespace halyard::tools

int main(int argc, char** argv) { return halyard::tools::main_of(argc, argv); }
