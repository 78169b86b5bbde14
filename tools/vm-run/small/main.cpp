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
    "usage: vm-run --module=FILE [--module=FILE]... [--function=NAME] [--device=URI] [--input=VALUE]...\n"
    "\n"
    "Runs a function of a compiled module and prints its results.\n"
    "\n"
    "  --module=FILE    a compiled module (.vmfb); with several, later ones may import from earlier ones\n"
    "  --function=NAME  the function to call; not needed if the last module exports one function only\n"
    "  --device=URI     the device (local-sync); local-sync, local-task\n"
    "  --input=VALUE    an argument: a number, such as 5 or 2.5; a tensor, such as 2x2xf32=1,2,3,4 or "
    "4xf32=0\n"
    "  --help           this text\n"
    "  --version        the version\n"
    "\n"
    "This is the small vm-run of a static build. It leaves out: modules as text (.vmasm), native modules, "
    "machine code\n"
    "for the system's loader, drivers in files, just-in-time compilation, kernels with vector instructions, "
    "the modules\n"
    "check, hal_inline, hal_loader and io_parameters, captures, traces, statistics, limits, JSON, arrays in "
    "files (.npy,\n"
    ".bin), comparison with expected results, and lists of drivers, devices and functions. The vm-run of an "
    "ordinary\n"
    "build has all of them.\n";

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
      return fail(
          HALYARD_INVALID_ARGUMENT,
          "expected --module, --function, --device or --input, found '{}'; this small vm-run has no other "
          "flags, see --help",
          name);
    }
  }
  if (options.modules.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "expected a module to run, found none; give --module=FILE");
  return options;
}

// The function of that name, or the only exported function.
Result<halyard_function_description_t> choose_function(halyard_module_t module, std::string_view name) {
  halyard_module_info_t info = {};
  info.struct_size = sizeof info;
  TOOL_TRY(check(halyard_module_info(module, &info)));
  std::string names;
  size_t count = 0;
  halyard_function_description_t chosen = {};
  for (uint32_t i = 0; i < info.function_count; ++i) {
    halyard_function_description_t function = {};
    function.struct_size = sizeof function;
    TOOL_TRY(check(halyard_module_function(module, i, &function)));
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
                "module '{}' exports {} functions; expected one, or its name with --function=NAME{}{}",
                view(info.name), count, names.empty() ? "" : ": ", names);
  return chosen;
}

Result<halyard_value_t> parse_number(const std::string& text, char type) {
  const Result<halyard_value_t> value = parse_scalar(text, type);
  if (value) return value;
  return fail(HALYARD_INVALID_ARGUMENT, "--input={}: expected a number, such as 5, for this argument", text);
}

Result<halyard_value_t> parse_tensor(std::string_view text, halyard_device_t device) {
  halyard_tensor_t* parsed = nullptr;
  TOOL_TRY(check(halyard_tensor_parse(to_text(text), &parsed)));
  const Block<halyard_tensor_t> tensor(parsed);
  halyard_value_t value = {};
  value.kind = HALYARD_VALUE_OBJECT;
  TOOL_TRY(check(halyard_view_create(device, tensor->element_type, tensor->shape, tensor->rank, tensor->data,
                                     tensor->size, &value.object)));
  return value;
}

Result<Arguments> parse_arguments(const std::vector<std::string>& texts, std::string_view types,
                                  halyard_device_t device) {
  if (texts.size() != types.size())
    return fail(HALYARD_INVALID_ARGUMENT,
                "the function takes {} arguments, found {}; give one --input for each", types.size(),
                texts.size());
  Arguments arguments;
  for (size_t i = 0; i < texts.size(); ++i)
    arguments.add(
        TOOL_TRY(types[i] == 'r' ? parse_tensor(texts[i], device) : parse_number(texts[i], types[i])));
  return arguments;
}

struct Program {
  Handle<halyard_instance_t> instance;
  std::vector<Handle<halyard_module_t>> modules;
  Handle<halyard_device_t> device;
  Handle<halyard_context_t> context;
};

Result<> load(const Options& options, Program& program) {
  halyard_instance_options_t none = {};
  none.struct_size = sizeof none;
  none.flags = HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS;
  TOOL_TRY(check(halyard_instance_create(&none, program.instance.out())));
  TOOL_TRY(check(halyard_device_open(program.instance.get(), options.device.c_str(), program.device.out())));
  std::vector<halyard_module_t> modules;
  for (const std::string& path : options.modules) {
    program.modules.emplace_back();
    TOOL_TRY(check(
        halyard_module_load_file(program.instance.get(), path.c_str(), 0, program.modules.back().out())));
    modules.push_back(program.modules.back().get());
  }
  const halyard_device_t device = program.device.get();
  halyard_context_options_t context = {};
  context.struct_size = sizeof context;
  context.modules = modules.data();
  context.module_count = modules.size();
  context.devices = &device;
  context.device_count = 1;
  return check(halyard_context_create(program.instance.get(), &context, program.context.out()));
}

Result<> run(const Options& options) {
  Program program;
  TOOL_TRY(load(options, program));
  const halyard_function_description_t chosen =
      TOOL_TRY(choose_function(program.modules.back().get(), options.function));
  const std::string name(view(chosen.name));
  Handle<halyard_function_t> function;
  TOOL_TRY(check(halyard_context_find(program.context.get(), nullptr, name.c_str(), function.out())));
  Arguments arguments =
      TOOL_TRY(parse_arguments(options.inputs, TOOL_TRY(input_types(chosen)), program.device.get()));
  Handle<halyard_object_t> signal;
  if (chosen.is_async) signal = TOOL_TRY(add_fences(program.device.get(), arguments));

  fmt::print("EXEC @{}\n", name);
  Handle<halyard_call_t> call;
  TOOL_TRY(check(halyard_call_create(program.context.get(), call.out())));
  std::vector<halyard_value_t> values(chosen.result_count);
  TOOL_TRY(check(halyard_call_invoke(call.get(), function.get(), arguments.values().data(),
                                     arguments.values().size(), values.data(), values.size())));
  Arguments results;
  for (const halyard_value_t& value : values) results.add(value);
  if (signal) TOOL_TRY(check(halyard_fence_wait(signal.get(), UINT32_MAX)));
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
