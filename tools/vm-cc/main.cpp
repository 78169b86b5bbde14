// vm-cc: writes a module as C, or as a module with machine code. Reads one file; writes a header, a source
// file, and with --main a program, or a module.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <vector>

#include "aot/program.h"
#include "aot/translate.h"
#include "common/files.h"
#include "common/module_file.h"
#include "common/short_output.h"
#include "common/standard_streams.h"
#include "emit/emit.h"
#include "parameter_files.h"

namespace halyard::tools {

namespace {

namespace flag {
constexpr Text output = {
    "output", "FILE",
    "The files to write: FILE.c and FILE.h, and with --main FILE_main.c. The last part of "
    "FILE is the prefix of the names in C. A '.c' at the end is left out. Also: -o FILE.",
    "--output=fib"};
constexpr Text runtime = {
    "runtime", "KIND",
    "What the C needs where it runs. none: memcpy and its like, and the functions of math.h that the program "
    "uses. hal: Halyard, to which the C is a native module; FILE.bin and FILE_data.S have its constants if "
    "they "
    "are large.",
    "--runtime=hal", "none"};
constexpr Toggle main = {"main",
                         "Also writes a program that takes --function=NAME and --input=VALUE, and prints the "
                         "results as vm-run does.",
                         "--main"};
constexpr List parameters = {
    "parameters", "[SCOPE=]FILE",
    "A file with parameters of a scope (.irpa, .gguf, .safetensors), which become constants of "
    "the program. May be repeated. Parameters that no file has are pointers that the caller of "
    "the program gives.",
    "--parameters=model=weights.irpa"};
constexpr Toggle no_plan = {
    "no_plan",
    "Keeps objects and allocation at run time, although sizes and lifetimes of the memory are known.",
    "--no-plan"};
constexpr Text checks = {
    "checks", "all|none",
    "Whether loads and stores of the program check the bounds of buffers. none: for modules that "
    "you trust; an access outside of a buffer is then undefined.",
    "--checks=none", "all"};
constexpr Number split = {
    "split", "N",
    "Moves the functions of bytecode to N more files, FILE_1.c to FILE_N.c, of about the same size, and adds "
    "FILE_internal.h. Compilers can translate the files at the same time.",
    "--split=4"};
constexpr Number devices = {
    "devices", "N",
    "The devices that the program sees. All are the one device of the program, which runs their "
    "work in one order.",
    "--devices=2", 1};
constexpr OptionalText report = {"report", "FILE.svg",
                                 "Prints the plan of the memory, and the statements and data of each "
                                 "function. With a value also writes a picture "
                                 "of the arena: time from left to right, addresses from bottom to top.",
                                 "--report=arena.svg"};
constexpr Text emit = {
    "emit", "KIND",
    "What to write. c: the program as C. vmfb: a module, FILE, whose portable kernels are machine code for "
    "the processors of --target; it needs no compiler where it runs. The library that compiles is a package "
    "of its own.",
    "--emit=vmfb", "c"};
constexpr List target = {
    "target", "PROCESSORS",
    "With --emit=vmfb: x86-64-v2, x86-64-v3, x86-64-v4, arm64 or riscv64, with features as +NAME; several "
    "with commas, or by repetition. The module takes the best one that the device has.",
    "--target=x86-64-v3,arm64"};
constexpr Size kernel_memory = {
    "kernel_memory", "SIZE",
    "With --emit=vmfb: memory of each running workgroup for buffers whose size is known at run time. A "
    "kernel "
    "that needs more fails with RESOURCE_EXHAUSTED. Without it, kernels with such buffers stay portable.",
    "--kernel_memory=1MiB"};
constexpr Toggle no_portable = {
    "no_portable",
    "With --emit=vmfb: leaves out portable kernels that were compiled. Without it, they run on devices that "
    "have none of the processors.",
    "--no-portable"};
}  // namespace flag

constexpr const Flag* kFlags[] = {&flag::output,     &flag::runtime, &flag::main,    &flag::parameters,
                                  &flag::no_plan,    &flag::checks,  &flag::devices, &flag::split,
                                  &flag::report,     &flag::emit,    &flag::target,  &flag::kernel_memory,
                                  &flag::no_portable};
constexpr FlagGroup kGroups[] = {{"", kFlags}};

constexpr ToolDescription kTool = {
    "vm-cc",
    "vm-cc MODULE --output=FILE [--runtime=none|hal] [--main] [--report] [--emit=vmfb --target=PROCESSORS]",
    "Writes a module (.vmfb, or .vmasm text) as C11 that needs neither Halyard nor memory from the system, "
    "or with --runtime=hal as C11 that is a native module of Halyard, or with --emit=vmfb as a module with "
    "machine code. '-' as MODULE reads standard input. Runs no code of the module.",
    kGroups,
    "  vm-cc examples/fib.vmasm --main -o fib && cc -std=c11 -O2 fib.c fib_main.c -o fib\n"
    "  ./fib --function=fib --input=30\n"
    "  vm-cc model.vmfb --runtime=hal -o model && cc -std=c11 -O2 -shared -fPIC model*.c -o model.so\n"
    "  vm-run --module=./model.so --function=main --input=4xf32=1\n"
    "  vm-cc model.vmfb --emit=vmfb --target=x86-64-v3,arm64 -o fast.vmfb\n",
    kUsualExitCodes,
    "FILE"};

// Of a workgroup, as libraries of kernels can state it: 65,535 pages.
constexpr uint64_t kMostKernelMemory = UINT64_C(65535) * 4096;

std::span<const uint8_t> bytes_of(const ModuleFile& file) {
  return {reinterpret_cast<const uint8_t*>(file.bytes().data()), file.bytes().size()};
}

Result<int> emit_module(const Flags& flags, const std::string& input) {
  for (const Flag* only_c : kFlags)
    if (flags.has(*only_c) && only_c != &flag::output && only_c != &flag::emit && only_c != &flag::target &&
        only_c != &flag::kernel_memory && only_c != &flag::no_portable && only_c != &flag::report)
      return fail(HALYARD_INVALID_ARGUMENT, "{} with {}=vmfb: the flag is for C; leave it out", *only_c,
                  flag::emit);
  const std::string output = flags[flag::output];
  if (output.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "no file for the module; add {}=FILE.vmfb", flag::output);
  std::error_code ignored;
  if (std::filesystem::equivalent(input, output, ignored))
    return fail(HALYARD_INVALID_ARGUMENT, "'{}' is the input; write the module to another file", output);
  aot::EmitOptions options = {.processors = {},
                              .dynamic_memory = TOOL_TRY(flags[flag::kernel_memory]).value_or(0),
                              .keep_portable = !flags[flag::no_portable]};
  if (options.dynamic_memory > kMostKernelMemory)
    return fail(HALYARD_INVALID_ARGUMENT, "{}={}: a workgroup has at most {} bytes of local memory",
                flag::kernel_memory, options.dynamic_memory, kMostKernelMemory);
  for (const std::string& list : flags[flag::target])
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      options.processors.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  if (options.processors.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "{}=vmfb without a processor; add {}", flag::emit,
                flag::target.example);
  if (const auto known = aot::check_processors(options.processors); !known)
    return fail(static_cast<halyard_status_code_t>(known.error().code), "{}: {}", flag::target,
                known.error().text);
  const ModuleFile module_file = TOOL_TRY(ModuleFile::open(input));
  const auto emitted = aot::emit(bytes_of(module_file), options);
  if (!emitted)
    return fail(static_cast<halyard_status_code_t>(emitted.error().code), "'{}': {}", input,
                emitted.error().text);
  TOOL_TRY(write_file(output, false, emitted->module));
  for (const std::string& refusal : emitted->refused) print_error("vm-cc: {}\n", refusal);
  if (flags[flag::report]) std::fputs(emitted->report.c_str(), stdout);
  return 0;
}

// The name of the files in C, which is in an #include and begins the names of functions and macros.
Result<> check_name(const std::string& name) {
  const auto ends_include = [](char c) { return c == '"' || c == '\\' || (c >= 0 && c < 0x20); };
  if (std::ranges::any_of(name, ends_include))
    return fail(HALYARD_INVALID_ARGUMENT,
                "{}: expected a name that an #include may have, without quotes, backslashes and control "
                "characters, found '{}'",
                flag::output, name);
  if (name == "vm")
    return fail(
        HALYARD_INVALID_ARGUMENT,
        "{}: names in C begin with that of the file, and 'vm' begins those of helpers; choose another",
        flag::output);
  return {};
}

Result<int> translate(const Flags& flags) {
  const std::vector<std::string>& inputs = flags.positional();
  if (inputs.size() != 1)
    return fail(HALYARD_INVALID_ARGUMENT, "expected one module, found {}; usage: {}", inputs.size(),
                kTool.usage);
  if (flags[flag::emit] == "vmfb") return emit_module(flags, inputs.front());
  if (flags[flag::emit] != "c")
    return fail(HALYARD_INVALID_ARGUMENT, "{}={}: expected c or vmfb", flag::emit, flags[flag::emit]);
  for (const Flag* only_module :
       {static_cast<const Flag*>(&flag::target), static_cast<const Flag*>(&flag::kernel_memory),
        static_cast<const Flag*>(&flag::no_portable)})
    if (flags.has(*only_module))
      return fail(HALYARD_INVALID_ARGUMENT, "{} without {}=vmfb: C is for any processor; add {}=vmfb",
                  *only_module, flag::emit, flag::emit);
  if (!flags.has(flag::output))
    return fail(HALYARD_INVALID_ARGUMENT, "no name for the files in C; add {}", flag::output.example);
  const bool is_hal = flags[flag::runtime] == "hal";
  if (!is_hal && flags[flag::runtime] != "none")
    return fail(HALYARD_INVALID_ARGUMENT, "{}={}: expected none or hal", flag::runtime, flags[flag::runtime]);
  if (is_hal && flags[flag::main])
    return fail(HALYARD_INVALID_ARGUMENT, "{} with {}=hal: such a module is no program; run it with vm-run",
                flag::main, flag::runtime);
  for (const Flag* only_none :
       {static_cast<const Flag*>(&flag::parameters), static_cast<const Flag*>(&flag::no_plan),
        static_cast<const Flag*>(&flag::checks), static_cast<const Flag*>(&flag::devices),
        static_cast<const Flag*>(&flag::report)})
    if (is_hal && flags.has(*only_none))
      return fail(HALYARD_INVALID_ARGUMENT,
                  "{} with {}=hal: the memory, the devices and the parameters of such a module are those of "
                  "the context where it runs; leave it out",
                  *only_none, flag::runtime);
  constexpr uint64_t kMaxDevices = 64;
  const uint64_t devices = TOOL_TRY(flags[flag::devices]);
  if (devices == 0 || devices > kMaxDevices)
    return fail(HALYARD_INVALID_ARGUMENT, "{}={}: expected 1 to {} devices", flag::devices, devices,
                kMaxDevices);
  constexpr uint64_t kMaxFiles = 999;
  const uint64_t split = TOOL_TRY(flags[flag::split]);
  if (flags.has(flag::split) && (split == 0 || split > kMaxFiles))
    return fail(HALYARD_INVALID_ARGUMENT, "{}={}: expected 1 to {} files", flag::split, split, kMaxFiles);
  std::filesystem::path output = flags[flag::output];
  if (output.extension() == ".c") output.replace_extension();
  if (!output.has_filename())
    return fail(HALYARD_INVALID_ARGUMENT, "{}={}: expected the name of a file, found a folder; add a name",
                flag::output, flags[flag::output]);
  TOOL_TRY(check_name(output.filename()));
  const ModuleFile module_file = TOOL_TRY(ModuleFile::open(inputs.front()));
  const std::span<const uint8_t> module = bytes_of(module_file);
  std::vector<std::pair<std::string, std::string>> named;
  for (const std::string& each : flags[flag::parameters]) {
    const size_t equals = each.find('=');
    if (equals == std::string::npos)
      named.emplace_back("", each);
    else
      named.emplace_back(each.substr(0, equals), each.substr(equals + 1));
  }
  const auto parameters = read_parameter_files(named);
  if (!parameters)
    return fail(static_cast<halyard_status_code_t>(parameters.error().code), "{}", parameters.error().text);
  const aot::Options options = {.name = output.filename(),
                                .source = std::filesystem::path(inputs.front()).filename(),
                                .main = flags[flag::main],
                                .planned = !flags[flag::no_plan],
                                .checks = flags[flag::checks] != "none",
                                .split = static_cast<uint32_t>(split),
                                .devices = static_cast<uint32_t>(devices),
                                .parameters = parameters->parameters};
  aot::Report report;
  const auto files =
      is_hal ? aot::translate_program(module, options) : aot::translate(module, options, &report);
  if (!files)
    return fail(static_cast<halyard_status_code_t>(files.error().code), "'{}': {}", inputs.front(),
                files.error().text);
  for (const aot::File& file : *files) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(file.text.data());
    TOOL_TRY(write_file(output.parent_path() / file.name, false, {bytes, file.text.size()}));
  }
  if (const std::optional<std::string> picture = flags[flag::report]) {
    std::fputs(report.text.c_str(), stdout);
    const auto* const bytes = reinterpret_cast<const uint8_t*>(report.picture.data());
    if (!picture->empty() && report.picture.empty())
      return fail(HALYARD_FAILED_PRECONDITION,
                  "{}={}: there is no plan to draw, because objects exist at run time", flag::report,
                  *picture);
    if (!picture->empty()) TOOL_TRY(write_file(*picture, false, {bytes, report.picture.size()}));
  }
  return 0;
}

int run(int argc, const char* const* argv) {
  return run_with_short_output(kTool, flag::output, argc, argv, translate);
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) { return halyard::tools::run(argc, argv); }
