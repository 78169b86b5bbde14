// Only "-o" is short, as in compilers.
#include "common/short_output.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace halyard::tools {

namespace {

// Replaces the only short flag, "-o FILE" or "-oFILE", by its long form.
std::vector<std::string> with_long_flags(const Flag& output, int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = 0; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (i == 0 || !argument.starts_with("-o")) {
      arguments.emplace_back(argument);
    } else if (argument.size() > 2) {
      arguments.push_back(fmt::format("{}={}", output, argument.substr(2)));
    } else if (i + 1 < argc) {
      arguments.push_back(fmt::format("{}={}", output, argv[++i]));
    } else {
      arguments.push_back(output.text());  // without a value: the parser reports it
    }
  }
  return arguments;
}

}  // namespace

int run_with_short_output(const ToolDescription& tool, const Flag& output, int argc, const char* const* argv,
                          Result<int> (*body)(const Flags& flags)) {
  const std::vector<std::string> arguments = with_long_flags(output, argc, argv);
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  return run_tool(tool, static_cast<int>(pointers.size()), pointers.data(), body);
}

}  // namespace halyard::tools
