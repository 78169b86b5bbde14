// vm-as: assembles text to a module. Reads one file, writes one file.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "common/files.h"
#include "common/short_output.h"

namespace halyard::tools {

namespace {

namespace flag {
constexpr Text output = {
    "output", "FILE",
    "The file for the module. '-', or no flag: standard output, unless it is a terminal. Also: -o FILE.",
    "--output=fib.vmfb", kStandard};
constexpr Choice<uint32_t> bytecode_version = {"bytecode_version",
                                               "15|16|17",
                                               "The bytecode version to write. Default: the version that the "
                                               "text states, else 17. Instructions that the "
                                               "version does not have are errors.",
                                               "--bytecode-version=15",
                                               0,
                                               15};
}  // namespace flag

constexpr const Flag* kFlags[] = {&flag::output, &flag::bytecode_version};
constexpr FlagGroup kGroups[] = {{"", kFlags}};

constexpr ToolDescription kTool = {"vm-as",
                                   "vm-as INPUT.vmasm [--output=FILE] [--bytecode-version=15|16|17]",
                                   "Assembles a program in text form (docs/vmasm.md) to a module (.vmfb). "
                                   "'-' as input reads standard input.",
                                   kGroups,
                                   "  vm-as examples/fib.vmasm --output=fib.vmfb\n"
                                   "  vm-as fib.vmasm -o fib.vmfb --bytecode-version=15\n"
                                   "  vm-as - < fib.vmasm > fib.vmfb\n",
                                   kUsualExitCodes,
                                   "FILE"};

Result<> write_module(const std::string& path, const void* data, size_t size) {
  if (path == kStandard) {
    std::fwrite(data, 1, size, stdout);  // run_tool() checks standard output
    return {};
  }
  return write_file(path, false, {static_cast<const uint8_t*>(data), size});
}

Result<int> assemble(const Flags& flags) {
  const std::vector<std::string>& inputs = flags.positional();
  if (inputs.size() != 1)
    return fail(HALYARD_INVALID_ARGUMENT, "expected one input file, found {}; usage: {}", inputs.size(),
                kTool.usage);
  const std::string& input = inputs.front();
  const std::string output = flags[flag::output];
  if (output == kStandard && ::isatty(STDOUT_FILENO) == 1)
    return fail(HALYARD_INVALID_ARGUMENT,
                "a module is binary and standard output is a terminal; name a file: {}=FILE", flag::output);
  std::error_code ignored;
  if (output != kStandard && std::filesystem::equivalent(input, output, ignored))
    return fail(HALYARD_INVALID_ARGUMENT, "'{}' is the input; write the module to another file", output);

  const FileContents file = TOOL_TRY(FileContents::open(input));
  const std::string_view text = file.text();
  const std::string name = input == kStandard ? "<stdin>" : input;
  // Without the flag the version is 0: the text may set it.
  const Bytes module = TOOL_TRY(halyard::assemble(text, name, flags[flag::bytecode_version]));
  TOOL_TRY(write_module(output, module.data(), module.size()));
  return 0;
}

int run(int argc, const char* const* argv) {
  return run_with_short_output(kTool, flag::output, argc, argv, assemble);
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) { return halyard::tools::run(argc, argv); }
