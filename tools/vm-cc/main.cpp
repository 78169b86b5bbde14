// vm-cc: writes a module as C. Reads one file, writes a header, a source file, and with --main a program.
#include <filesystem>
#include <vector>

#include "aot/program.h"
#include "aot/translate.h"
#include "common/files.h"
#include "common/short_output.h"

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
}  // namespace flag

constexpr const Flag* kFlags[] = {&flag::output, &flag::runtime, &flag::main};
constexpr FlagGroup kGroups[] = {{"", kFlags}};

constexpr ToolDescription kTool = {
    "vm-cc",
    "vm-cc MODULE --output=FILE [--runtime=none|hal] [--main]",
    "Writes a module (.vmfb, or .vmasm text) as C11 that needs neither Halyard nor memory from the system, "
    "or "
    "with --runtime=hal as C11 that is a native module of Halyard. '-' "
    "as MODULE reads standard input. Runs no code of the module.",
    kGroups,
    "  vm-cc examples/fib.vmasm --main -o fib && cc -std=c11 -O2 fib.c fib_main.c -o fib\n"
    "  ./fib --function=fib --input=30\n"
    "  vm-cc model.vmfb --runtime=hal -o model && cc -std=c11 -O2 -shared -fPIC model*.c -o model.so\n"
    "  vm-run --module=./model.so --function=main --input=4xf32=1\n",
    kUsualExitCodes,
    "FILE"};

// The module's bytes; text is assembled.
Result<std::vector<uint8_t>> read_module(const std::string& path) {
  const FileContents file = TOOL_TRY(FileContents::open(path));
  if (!path.ends_with(".vmasm")) return std::vector(file.bytes().begin(), file.bytes().end());
  const Bytes module = TOOL_TRY(halyard::assemble(file.text(), path));
  const auto* const bytes = reinterpret_cast<const uint8_t*>(module.data());
  return std::vector(bytes, bytes + module.size());
}

Result<int> translate(const Flags& flags) {
  const std::vector<std::string>& inputs = flags.positional();
  if (inputs.size() != 1)
    return fail(HALYARD_INVALID_ARGUMENT, "expected one module, found {}; usage: {}", inputs.size(),
                kTool.usage);
  if (!flags.has(flag::output))
    return fail(HALYARD_INVALID_ARGUMENT, "no name for the files in C; add {}", flag::output.example);
  const bool is_hal = flags[flag::runtime] == "hal";
  if (!is_hal && flags[flag::runtime] != "none")
    return fail(HALYARD_INVALID_ARGUMENT, "{}={}: expected none or hal", flag::runtime, flags[flag::runtime]);
  if (is_hal && flags[flag::main])
    return fail(HALYARD_INVALID_ARGUMENT, "{} with {}=hal: such a module is no program; run it with vm-run",
                flag::main, flag::runtime);
  std::filesystem::path output = flags[flag::output];
  if (output.extension() == ".c") output.replace_extension();
  if (!output.has_filename())
    return fail(HALYARD_INVALID_ARGUMENT, "{}={}: expected the name of a file, found a folder; add a name",
                flag::output, flags[flag::output]);
  const std::vector<uint8_t> module = TOOL_TRY(read_module(inputs.front()));
  const aot::Options options = {.name = output.filename(),
                                .source = std::filesystem::path(inputs.front()).filename(),
                                .main = flags[flag::main]};
  const auto files = is_hal ? aot::translate_program(module, options) : aot::translate(module, options);
  if (!files)
    return fail(static_cast<halyard_status_code_t>(files.error().code), "'{}': {}", inputs.front(),
                files.error().text);
  for (const aot::File& file : *files) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(file.text.data());
    TOOL_TRY(write_file(output.parent_path() / file.name, false, {bytes, file.text.size()}));
  }
  return 0;
}

int run(int argc, const char* const* argv) {
  return run_with_short_output(kTool, flag::output, argc, argv, translate);
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) { return halyard::tools::run(argc, argv); }
