// Flags of a tool, from one table: parsing, suggestions, and all that is told about them (help.h). The
// grammar is the one that users of iree-run-module type (run-module-cli.md, section 1): --name=value in one
// argument, switches as --name, lists by repetition, --flagfile=FILE. In names '-' and '_' are the same. That
// grammar is why this is not a general command line library: "--name value" does not take the next argument
// as its value.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

enum class FlagKind { toggle, value, list, optional_value };

struct Flag {
  std::string_view name;  // "list_drivers"
  FlagKind kind;
  // What stands after '=': a word in capitals, "FILE"; or the values that there are, "yes|no", and then
  // others are errors. Empty for a toggle.
  std::string_view value;
  std::string_view help;     // one or two sentences; a newline counts as a blank
  std::string_view example;  // a whole flag: "--device=local-sync"
};

// Flags that belong together, with a title for --help; without one where a tool has a single group.
struct FlagGroup {
  std::string_view title;
  std::span<const Flag> flags;
};

struct ExitCode {
  int code;
  std::string_view when;
};

inline constexpr ExitCode kUsualExitCodes[] = {
    {0, "Success."},
    {1, "A failure; standard error says which."},
};

struct ToolDescription {
  std::string_view name;     // "vm-run"
  std::string_view usage;    // "vm-run --module=FILE [flags]"
  std::string_view summary;  // one paragraph; up to its first colon or full stop it says what the tool does
  std::span<const FlagGroup> groups;
  std::string_view examples;  // whole commands, one per line
  std::span<const ExitCode> exit_codes = kUsualExitCodes;
  std::string_view arguments = "";  // what arguments that are no flags are, in the form of Flag::value
};

// The tool's groups, and behind them the flags that every tool has.
std::vector<FlagGroup> all_groups(const ToolDescription& tool);

// {"yes", "no"} of "yes|no"; nothing of "FILE".
std::vector<std::string_view> choices_of(std::string_view value);

class Flags {
 public:
  // INVALID_ARGUMENT: an unknown flag (with a suggestion), a missing value, or one that is not among the
  // choices; or what reading a flag file gives.
  static Result<Flags> parse(const ToolDescription& tool, int argc, const char* const* argv);

  bool has(std::string_view name) const { return values_.contains(name); }
  bool on(std::string_view name) const;  // a toggle that was set last
  std::string value(std::string_view name, std::string_view otherwise = "") const;  // the last one given
  std::vector<std::string> all(std::string_view name) const;
  const std::vector<std::string>& positional() const { return positional_; }
  // Replaces every value of a flag by change(value).
  void change_values(const std::function<std::string(std::string)>& change) {
    for (auto& [name, values] : values_)
      for (std::string& value : values) value = change(std::move(value));
  }

 private:
  Result<> add(const ToolDescription& tool, std::string_view argument, std::vector<std::string>& files);
  Result<> add_file(const ToolDescription& tool, const std::string& path, std::vector<std::string>& files);

  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> positional_;
};

// What every tool's main does around `body`: flags, --help, errors on standard error as "tool: CODE;
// message", exit codes, and a check that standard output could be written.
int run_tool(const ToolDescription& tool, int argc, const char* const* argv,
             Result<int> (*body)(const Flags& flags));

}  // namespace halyard::tools
