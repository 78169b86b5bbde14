// vm-dump: describes a module, disassembles it, or prints the compiler's output for it. Reads one file,
// prints one text.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "common/analysis.h"
#include "common/colour.h"
#include "common/module_file.h"
#include "common/page.h"
#include "common/page_diff.h"
#include "common/page_flags.h"
#include "common/printable.h"
#include "common/tool.h"
#include "dump_flags.h"
#include "memory.h"

namespace halyard::tools {

namespace {

constexpr const Flag* kFlags[] = {&flag::disassemble, &flag::offsets, &flag::json, &flag::output,
                                  &flag::memory,      &flag::html,    &flag::jit,  &flag::dump_function,
                                  &flag::dump_input,  &flag::diff};
constexpr FlagGroup kGroups[] = {{"", kFlags}};

constexpr ToolDescription kTool = {
    "vm-dump",
    "vm-dump FILE [--disassemble [--offsets] | --json | --memory [--json] | --html=FILE | --jit] "
    "[--function=NAME] [--input=SHAPE]...",
    "Describes a module (.vmfb, or .vmasm text): the releases that can have made it, its requirements, "
    "exports, executables and sizes; computes the memory that it needs; or prints it as text or as a page. "
    "'-' as FILE reads standard input. Runs no code of the module.",
    kGroups,
    "  vm-dump model.vmfb\n"
    "  vm-dump model.vmfb --disassemble > model.vmasm && vm-as model.vmasm -o same.vmfb\n"
    "  vm-dump model.vmfb --json | jq .made_by\n"
    "  vm-dump model.vmfb --memory --function=main --input=1x4xf32\n"
    "  vm-dump model.vmfb --html=model.html\n"
    "  vm-dump model.vmfb --jit --function=main\n",
    kUsualExitCodes,
    "FILE"};

// The output that the flags ask for, of which there is one; --json is a form of two of them.
Result<Output> wanted_output(const Flags& flags) {
  const Output output = flags[flag::output];
  const bool json = flags[flag::json] || output == Output::json;
  struct Asked {
    bool is_asked;
    Output output;
    const Flag& by;
  };
  const Asked asked[] = {
      {flags[flag::disassemble] || output == Output::disassembly, Output::disassembly, flag::disassemble},
      {json && !flags[flag::memory], Output::json, flag::json},
      {flags[flag::jit], Output::native, flag::jit},
      {flags[flag::memory], Output::memory, flag::memory},
      {flags.has(flag::html), Output::page, flag::html}};
  const Asked* found = nullptr;
  for (const Asked& each : asked) {
    if (!each.is_asked) continue;
    if (found)
      return fail(HALYARD_INVALID_ARGUMENT, "{} and {} are two outputs; choose one of them", found->by,
                  each.by);
    found = &each;
  }
  const Output wanted = found ? found->output : Output::summary;
  const bool is_analysis = wanted == Output::memory || wanted == Output::page;
  if (flags.has(flag::dump_function) && wanted != Output::native && !is_analysis)
    return fail(HALYARD_INVALID_ARGUMENT, "{} selects functions for {}, {} and {}; add one of them",
                flag::dump_function, flag::jit, flag::memory, flag::html);
  if (flags.has(flag::dump_input) && !is_analysis)
    return fail(HALYARD_INVALID_ARGUMENT, "{} applies to {} and {}; add one of them", flag::dump_input,
                flag::memory, flag::html);
  if (flags.has(flag::diff) && wanted != Output::page)
    return fail(HALYARD_INVALID_ARGUMENT, "{} shows errors on a page; add {}=FILE", flag::diff, flag::html);
  if (flags[flag::offsets] && wanted != Output::disassembly)
    return fail(HALYARD_INVALID_ARGUMENT, "{} applies to the disassembly; add {}", flag::offsets,
                flag::disassemble);
  return wanted;
}

Result<std::string> dump(const std::string& path, std::span<const std::byte> module, Output output,
                         const Flags& flags) {
  if (output == Output::disassembly)
    return check(disassemble(module, flags[flag::offsets] ? HALYARD_DISASSEMBLE_OFFSETS : 0));
  const std::string name = flags[flag::dump_function];
  if (output == Output::native)
    return check(explain_compilation(module, name.empty() ? nullptr : name.c_str()));
  if (output == Output::memory || output == Output::page) {
    Json analysis = TOOL_TRY(analyze_module(module, name, flags[flag::dump_input]));
    if (output == Output::page) {
      PageContents contents;
      contents.file = std::filesystem::path(path).filename().string();
      contents.analysis = std::move(analysis);
      if (flags.has(flag::diff)) contents.diff = TOOL_TRY(page_diff(flags[flag::diff]));
      TOOL_TRY(write_page(flags[flag::html], contents));
      return std::string();
    }
    return flags[flag::json] ? json_document(analysis, 3) : memory_text(analysis);
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
  const ModuleFile module = TOOL_TRY(ModuleFile::open(path));
  Result<std::string> text = dump(path, module.bytes(), output, flags);
  if (!text) {
    if (!path.ends_with(".vmasm")) text.error().text += fmt::format("; dumping '{}'", path);
    return std::unexpected(std::move(text).error());
  }
  // The summary contains unchanged names, whose bytes could control a terminal; the other forms escape names.
  if (output == Output::summary || output == Output::memory) text = printable(*text);
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
