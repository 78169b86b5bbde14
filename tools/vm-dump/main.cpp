// vm-dump: describes a module, disassembles it, or prints the compiler's output for it. Reads one file,
// prints one text.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/colour.h"
#include "common/files.h"
#include "common/printable.h"
#include "common/tool.h"

namespace halyard::tools {

enum class Output { summary, disassembly, json, native };

namespace flag {
constexpr Toggle disassemble = {
    "disassemble",
    "Prints the module as text (docs/vmasm.md) that vm-as can assemble. Also: -d, --output=disassembly.",
    "--disassemble"};
constexpr Toggle offsets = {
    "offsets", "With --disassemble: prints the pc before each instruction, as in messages.", "--offsets"};
constexpr Toggle json = {"json", "Prints the complete description as JSON. Also: --output=json.", "--json"};
constexpr Choice output = {"output", "metadata|disassembly|json",
                           "What to print; metadata, the default, is the summary.", "--output=disassembly",
                           Output::summary};
constexpr Toggle jit = {"jit",
                        "Prints for each function and bytecode kernel the result of the compiler "
                        "(docs/jit.md): the LLVM IR and the "
                        "assembly for this processor, or the reason why it stays interpreted.",
                        "--jit"};
constexpr Text function = {"function", "NAME", "With --jit: only functions and kernels of this name.",
                           "--function=main"};
}  // namespace flag

namespace {

constexpr const Flag* kFlags[] = {&flag::disassemble, &flag::offsets, &flag::json,
                                  &flag::output,      &flag::jit,     &flag::function};
constexpr FlagGroup kGroups[] = {{"", kFlags}};

constexpr ToolDescription kTool = {
    "vm-dump",
    "vm-dump FILE [--disassemble [--offsets] | --json | --jit [--function=NAME]]",
    "Describes a module (.vmfb, or .vmasm text): the releases that can have made it, its requirements, "
    "exports, executables and sizes; or prints it as text. '-' as FILE reads standard input. Runs no code of "
    "the module.",
    kGroups,
    "  vm-dump model.vmfb\n"
    "  vm-dump model.vmfb --disassemble > model.vmasm && vm-as model.vmasm -o same.vmfb\n"
    "  vm-dump model.vmfb --json | jq .made_by\n"
    "  vm-dump model.vmfb --jit --function=main\n",
    kUsualExitCodes,
    "FILE"};

Result<Output> wanted_output(const Flags& flags) {
  const Output output = flags[flag::output];
  const bool disassemble = flags[flag::disassemble] || output == Output::disassembly;
  const bool json = flags[flag::json] || output == Output::json;
  if (disassemble && json)
    return fail(HALYARD_INVALID_ARGUMENT, "the disassembly has no JSON form; choose {} or {}",
                flag::disassemble, flag::json);
  if (flags[flag::jit] && (disassemble || json))
    return fail(HALYARD_INVALID_ARGUMENT, "{} has its own output; choose {} or {}", flag::jit, flag::jit,
                json ? flag::json : flag::disassemble);
  if (flags.has(flag::function) && !flags[flag::jit])
    return fail(HALYARD_INVALID_ARGUMENT, "{} selects functions for {}; add {}", flag::function, flag::jit,
                flag::jit);
  if (flags[flag::offsets] && !disassemble)
    return fail(HALYARD_INVALID_ARGUMENT, "{} applies to the disassembly; add {}", flag::offsets,
                flag::disassemble);
  if (flags[flag::jit]) return Output::native;
  return disassemble ? Output::disassembly : json ? Output::json : Output::summary;
}

// A file with the extension ".vmasm" is text, and is assembled first.
Result<std::string> dump(const std::string& path, std::span<const uint8_t> file, Output output,
                         const Flags& flags) {
  std::span<const std::byte> module = std::as_bytes(file);
  Bytes assembled;
  if (path.ends_with(".vmasm")) {
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    assembled = TOOL_TRY(halyard::assemble(text, path));
    module = {assembled.data(), assembled.size()};
  }
  if (output == Output::disassembly)
    return check(disassemble(module, flags[flag::offsets] ? HALYARD_DISASSEMBLE_OFFSETS : 0));
  if (output == Output::native) {
    const std::string name = flags[flag::function];
    return check(explain_compilation(module, name.empty() ? nullptr : name.c_str()));
  }
  return check(
      halyard::describe(module, output == Output::json ? HALYARD_DESCRIBE_JSON : HALYARD_DESCRIBE_TEXT));
}

// Fits the summary to the width of the terminal: long lines continue below their second column. Titles are
// bold.
std::string for_terminal(std::string_view text) {
  const size_t width = terminal_width();
  std::string lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t first = std::min(line.find_first_not_of(' '), line.size());
    const size_t title = std::min(line.find("  ", first), line.size());
    const size_t second = std::min(line.find_first_not_of(' ', title), line.size());
    const bool has_columns = second < line.size() && second <= width / 2;
    const size_t indent = has_columns ? second : first + 4;
    const size_t kept = has_columns ? second : first;
    std::string fitted(line);
    if (line.size() > width)
      fitted = std::string(line.substr(0, kept)) + wrapped(line.substr(kept), indent, width);
    if (first == 0) fitted = coloured(Colour::bold, fitted.substr(0, title)) + fitted.substr(title);
    lines += fitted + "\n";
  }
  return lines;
}

Result<int> dump_file(const Flags& flags) {
  const std::vector<std::string>& inputs = flags.positional();
  if (inputs.size() != 1)
    return fail(HALYARD_INVALID_ARGUMENT, "expected one file, found {}; usage: {}", inputs.size(),
                kTool.usage);
  const Output output = TOOL_TRY(wanted_output(flags));
  const std::string& path = inputs.front();
  const FileContents file = TOOL_TRY(FileContents::open(path));
  Result<std::string> text = dump(path, file.bytes(), output, flags);
  if (!text) {
    if (!path.ends_with(".vmasm")) text.error().text += fmt::format("; dumping '{}'", path);
    return std::unexpected(std::move(text).error());
  }
  // The summary contains unchanged names, whose bytes could control a terminal; the other forms escape names.
  if (output == Output::summary) text = printable(*text);
  if (output == Output::summary && ::isatty(STDOUT_FILENO) == 1) text = for_terminal(*text);
  std::fwrite(text->data(), 1, text->size(), stdout);
  return 0;
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) {
  using namespace halyard::tools;
  std::vector<const char*> arguments(argv, argv + argc);
  for (const char*& argument : arguments)
    if (std::string_view(argument) == "-d") argument = flag::disassemble.example.data();
  return run_tool(kTool, static_cast<int>(arguments.size()), arguments.data(), dump_file);
}
