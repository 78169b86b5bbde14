// Flags of a tool. Each flag is declared once, as a constant whose type determines the type of the value:
// `flags[flag::timeout]`. A misspelt flag, or a value used as the wrong type, does not compile. Help, manual
// pages and completions (help.h) are generated from the same constants.
//
// The grammar is the one that users of iree-run-module type (run-module-cli.md, section 1): --name=value in
// one argument, switches as --name, lists by repetition, --flagfile=FILE. In names '-' and '_' are
// equivalent. General command line libraries do not fit, because they take the next argument as a value
// ("--name value").
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

enum class FlagKind { toggle, value, list, optional_value };

// The description of a flag for help. Declarations use the types below.
struct Flag {
  FlagKind kind;
  std::string_view name;  // "list_drivers"
  // The text after '=': a word in capitals, "FILE"; or a list of the possible values, "yes|no", where all
  // other values are errors. Empty for a toggle.
  std::string_view value;
  std::string_view help;     // one or two sentences; a newline counts as a blank
  std::string_view example;  // a complete flag: "--device=local-sync"
  bool is_listed = true;     // by help, manual page and completions

  std::string text() const { return "--" + std::string(name); }
  // The value in the example: "local-sync".
  constexpr std::string_view example_value() const { return example.substr(example.find('=') + 1); }
};

// bool.
struct Toggle : Flag {
  constexpr Toggle(std::string_view name, std::string_view help, std::string_view example)
      : Flag{FlagKind::toggle, name, "", help, example} {}
};

// A flag with a value. All types below have this constructor.
struct ValueFlag : Flag {
  constexpr ValueFlag(std::string_view name, std::string_view value, std::string_view help,
                      std::string_view example)
      : Flag{FlagKind::value, name, value, help, example} {}
};

// Accepted for command lines of other programs, and without effect, so it is not listed.
struct Ignored : Flag {
  constexpr Ignored(std::string_view name, std::string_view value, std::string_view example)
      : Flag{value.empty() ? FlagKind::toggle : FlagKind::list, name, value, "", example, false} {}
};

// std::string: the last given value, or a default.
struct Text : ValueFlag {
  constexpr Text(std::string_view name, std::string_view value, std::string_view help,
                 std::string_view example, std::string_view text = "")
      : ValueFlag(name, value, help, example), otherwise(text) {}
  std::string_view otherwise;
};

// std::optional<std::string>: "" if the flag is given without a value.
struct OptionalText : Flag {
  constexpr OptionalText(std::string_view name, std::string_view value, std::string_view help,
                         std::string_view example)
      : Flag{FlagKind::optional_value, name, value, help, example} {}
};

// std::vector<std::string>: all given values, in order.
struct List : Flag {
  constexpr List(std::string_view name, std::string_view value, std::string_view help,
                 std::string_view example)
      : Flag{FlagKind::list, name, value, help, example} {}
};

// Result<uint64_t>.
struct Number : ValueFlag {
  constexpr Number(std::string_view name, std::string_view value, std::string_view help,
                   std::string_view example, uint64_t number = 0)
      : ValueFlag(name, value, help, example), otherwise(number) {}
  uint64_t otherwise;
};

// Result<double>: at least 0.
struct Threshold : ValueFlag {
  constexpr Threshold(std::string_view name, std::string_view help, std::string_view example, double number)
      : ValueFlag(name, "X", help, example), otherwise(number) {}
  double otherwise;
};

// Result<std::optional<uint64_t>>: bytes.
struct Size : ValueFlag {
  using ValueFlag::ValueFlag;
};

// Result<std::optional<std::chrono::nanoseconds>>.
struct Duration : ValueFlag {
  using ValueFlag::ValueFlag;
};

// An enumeration or a number. Its values correspond to the words in `value`, in order, starting with `least`.
template <typename T>
struct Choice : ValueFlag {
  constexpr Choice(std::string_view name, std::string_view value, std::string_view help,
                   std::string_view example, T chosen, T first = T{})
      : ValueFlag(name, value, help, example), otherwise(chosen), least(first) {}
  T otherwise;
  T least;
};

namespace flag {
inline constexpr OptionalText help = {
    "help", "man|bash|zsh",
    "Prints this and exits; with a value, the same as a manual page or as completions for a shell.",
    "--help=bash"};
inline constexpr Toggle version = {
    "version",
    "Prints the versions of the tool and of its library, and how the library was built, and exits.",
    "--version"};
}  // namespace flag

// A group of flags with a title for --help. A tool with a single group has no title.
struct FlagGroup {
  std::string_view title;
  std::span<const Flag* const> flags;
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
  std::string_view summary;  // one paragraph; the text before its first colon or full stop is the purpose
  std::span<const FlagGroup> groups;
  std::string_view examples;  // complete commands, one per line
  std::span<const ExitCode> exit_codes = kUsualExitCodes;
  std::string_view arguments = "";  // arguments other than flags, in the form of Flag::value
};

// The tool's groups, followed by the group of flags that every tool has.
std::vector<FlagGroup> all_groups(const ToolDescription& tool);

// The flags of a group that help lists.
std::vector<const Flag*> listed_flags(const FlagGroup& group);

// The begin of a choice that stands for files: "FILE.html" for all whose names end in ".html".
inline constexpr std::string_view kFileChoice = "FILE";
// {"yes", "no"} for "yes|no"; {} for "FILE".
std::vector<std::string_view> choices_of(std::string_view value);
// The same without choices that stand for files.
std::vector<std::string_view> words_of(std::string_view value);

class Flags {
 public:
  // INVALID_ARGUMENT: an unknown flag (with a suggestion), a missing value, or a value that is not a choice.
  // Otherwise an error of reading a flag file.
  static Result<Flags> parse(const ToolDescription& tool, int argc, const char* const* argv);

  // The value of a flag, or its default. INVALID_ARGUMENT: not a number; the message names the flag.
  bool operator[](const Toggle& flag) const;
  std::string operator[](const Text& flag) const;
  std::optional<std::string> operator[](const OptionalText& flag) const;
  std::vector<std::string> operator[](const List& flag) const { return given(flag); }
  Result<uint64_t> operator[](const Number& flag) const;
  Result<double> operator[](const Threshold& flag) const;
  Result<std::optional<uint64_t>> operator[](const Size& flag) const;
  Result<std::optional<std::chrono::nanoseconds>> operator[](const Duration& flag) const;
  template <typename T>
  T operator[](const Choice<T>& flag) const {
    const std::optional<size_t> place = chosen(flag);
    return place ? static_cast<T>(static_cast<size_t>(flag.least) + *place) : flag.otherwise;
  }

  // Whether the flag was given.
  bool has(const Flag& flag) const { return !given(flag).empty(); }
  // The texts as given, for messages and other programs.
  std::vector<std::string> given(const Flag& flag) const;
  const std::vector<std::string>& positional() const { return positional_; }
  // Replaces every value of a flag by change(value).
  void change_values(const std::function<std::string(std::string)>& change) {
    for (auto& [name, values] : values_)
      for (std::string& value : values) value = change(std::move(value));
  }

 private:
  Result<> add(const ToolDescription& tool, std::string_view argument, std::vector<std::string>& files);
  Result<> add_file(const ToolDescription& tool, const std::string& path, std::vector<std::string>& files);
  std::optional<std::string> last(const Flag& flag) const;
  std::optional<size_t> chosen(const Flag& flag) const;

  std::map<std::string_view, std::vector<std::string>> values_;  // by Flag::name
  std::vector<std::string> positional_;
};

// For a tool whose arguments are all flags. INVALID_ARGUMENT: another argument; the message ends with what it
// may have been meant for: "the driver is given as --driver=FILE".
Result<> check_only_flags(const Flags& flags, std::string_view meant, const Flag& flag);

// Creates the message that a value of this flag is wrong.
std::unexpected<Failure> wrong_value(const Flag& flag, std::string_view value, std::string_view expected);

}  // namespace halyard::tools

// Formats a flag in a message: "--name".
template <std::derived_from<halyard::tools::Flag> T>
struct fmt::formatter<T> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const T& flag, Context& context) const {
    return std::ranges::copy(flag.text(), context.out()).out;
  }
};
