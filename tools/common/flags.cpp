// Parsing of flags, and the frame of a tool's main.
#include "common/flags.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include "common/colour.h"
#include "common/files.h"
#include "common/help.h"
#include "common/printable.h"
#include "common/probe.h"
#include "common/ranks.h"
#include "common/standard_streams.h"
#include "common/suggest.h"

namespace halyard::tools {

namespace {

constexpr Flag kCommonFlags[] = {
    {"flagfile", FlagKind::list, "FILE",
     "Reads flags from FILE, one a line; empty lines and lines that start with # are skipped.",
     "--flagfile=flags.txt"},
    {"help", FlagKind::optional_value, "man|bash|zsh",
     "Prints this and exits; with a value, the same as a manual page or as completions for a shell.",
     "--help=bash"},
};

std::string normalised(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

constexpr FlagGroup kCommonGroup = {"Every tool", kCommonFlags};

const Flag* find_flag(const ToolDescription& tool, std::string_view name) {
  for (const FlagGroup& group : all_groups(tool))
    for (const Flag& flag : group.flags)
      if (normalised(flag.name) == name) return &flag;
  return nullptr;
}

// "; did you mean 'near'?" or nothing.
std::string suggestion(const std::string& name, const std::vector<std::string>& names) {
  return did_you_mean(name, std::vector<std::string_view>(names.begin(), names.end()));
}

std::string near_flag(const ToolDescription& tool, std::string_view name) {
  std::vector<std::string> names;
  for (const FlagGroup& group : all_groups(tool))
    for (const Flag& flag : group.flags) names.push_back("--" + std::string(flag.name));
  return suggestion("--" + std::string(name), names);
}

// "a, b or c".
std::string list_of(const std::vector<std::string_view>& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 < choices.size() ? ", " : " or ", choices[i]);
  return text;
}

// Whether the value is one of those that there are, where the table names them.
Result<> check_choice(const Flag& flag, std::string_view name, const std::string& value) {
  const std::vector<std::string_view> choices = choices_of(flag.value);
  if (choices.empty() || std::ranges::find(choices, value) != choices.end()) return {};
  const bool is_word = !value.empty() && !(value[0] >= '0' && value[0] <= '9');  // no number is like another
  return fail(HALYARD_INVALID_ARGUMENT, "--{}={}: expected {}{}", name, value, list_of(choices),
              !is_word ? "" : suggestion(value, {choices.begin(), choices.end()}));
}

// Results that are not, or not all, where they should be.
Failure cannot_print(int error) {
  return {HALYARD_UNAVAILABLE,
          fmt::format("cannot write all of standard output: {}; what is there is incomplete",
                      error ? std::strerror(error) : "an earlier write failed")};
}

}  // namespace

std::vector<FlagGroup> all_groups(const ToolDescription& tool) {
  std::vector<FlagGroup> groups(tool.groups.begin(), tool.groups.end());
  groups.push_back(kCommonGroup);
  return groups;
}

std::vector<std::string_view> choices_of(std::string_view value) {
  std::vector<std::string_view> choices;
  if (!value.contains('|')) return choices;
  while (true) {
    const size_t size = value.find('|');
    choices.push_back(value.substr(0, size));
    if (size == std::string_view::npos) return choices;
    value.remove_prefix(size + 1);
  }
}

Result<Flags> Flags::parse(const ToolDescription& tool, int argc, const char* const* argv) {
  Flags flags;
  std::vector<std::string> files;  // those that are being read, each named by the one before
  for (int i = 1; i < argc; ++i) TOOL_TRY(flags.add(tool, argv[i], files));
  return flags;
}

Result<> Flags::add(const ToolDescription& tool, std::string_view argument, std::vector<std::string>& files) {
  if (argument == "-h") argument = "--help";
  if (!argument.starts_with('-') || argument == kStandard) {
    positional_.emplace_back(argument);
    return {};
  }
  if (!argument.starts_with("--"))
    return fail(HALYARD_INVALID_ARGUMENT,
                "unknown flag '{}': flags are --NAME or --NAME=VALUE; '{} --help' lists them", argument,
                tool.name);
  const std::string_view body = argument.substr(2);
  const size_t equals = body.find('=');
  const std::string_view name = body.substr(0, equals);
  const bool has_value = equals != std::string_view::npos;
  const std::string value(has_value ? body.substr(equals + 1) : std::string_view());
  const Flag* flag = find_flag(tool, normalised(name));
  if (!flag)
    return fail(HALYARD_INVALID_ARGUMENT, "unknown flag '--{}'{}; '{} --help' lists the flags", name,
                near_flag(tool, name), tool.name);
  if (!has_value && (flag->kind == FlagKind::value || flag->kind == FlagKind::list))
    return fail(HALYARD_INVALID_ARGUMENT,
                "flag '--{}' needs a value in the same argument: --{}={}; for example {}", name, name,
                flag->value, flag->example);
  if (has_value) TOOL_TRY(check_choice(*flag, name, value));
  if (flag->name == "flagfile") return add_file(tool, value, files);
  std::vector<std::string>& values = values_[normalised(flag->name)];
  if (flag->kind == FlagKind::toggle) {
    values.emplace_back(!has_value || value == "true" || value == "1" ? "true" : "false");
  } else {
    values.push_back(value);
  }
  return {};
}

Result<> Flags::add_file(const ToolDescription& tool, const std::string& path,
                         std::vector<std::string>& files) {
  constexpr size_t kDeepest = 8;
  if (std::ranges::find(files, path) != files.end() || files.size() == kDeepest)
    return fail(HALYARD_INVALID_ARGUMENT,
                "flag file '{}' is named by itself, or by files that name each other more than {} deep; take "
                "--flagfile out of one",
                path, kDeepest);
  const FileContents file = TOOL_TRY(FileContents::open(path, "flag file "));
  files.push_back(path);
  std::string_view rest = file.text();
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    const size_t last = line.find_last_not_of(" \t\r");
    Result<> added = add(tool, line.substr(first, last - first + 1), files);
    if (!added) return fail(added.error().code, "{}:{}: {}", path, number, added.error().text);
  }
  files.pop_back();
  return {};
}

bool Flags::on(std::string_view name) const {
  const auto found = values_.find(name);
  return found != values_.end() && found->second.back() == "true";
}

std::string Flags::value(std::string_view name, std::string_view otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string(otherwise) : found->second.back();
}

std::vector<std::string> Flags::all(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

namespace {

bool runs_ranks(const ToolDescription& tool) {
  for (const FlagGroup& group : tool.groups)
    for (const Flag& flag : group.flags)
      if (flag.name == "rank") return true;
  return false;
}

}  // namespace

int run_tool(const ToolDescription& tool, int argc, const char* const* argv,
             Result<int> (*body)(const Flags& flags)) {
  occupy_standard_descriptors();
  if (argc == 3 && std::strcmp(argv[1], kProbeArgument) == 0) return probe_main(argv[2]);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of writing, reported below
  const auto report = [&](const Failure& failure) {
    std::fflush(stdout);
    print_error("{} {}{}\n", coloured(Colour::error, fmt::format("{}:", tool.name), STDERR_FILENO), rank_prefix(),
                printable(failure.line()));
    return failure.exit_code;
  };
  int code = 0;
  try {
    Result<Flags> flags = Flags::parse(tool, argc, argv);
    if (!flags) return report(flags.error());
    if (flags->has("help")) {
      const std::string text = help(tool, flags->value("help"));
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else {
      if (runs_ranks(tool))
        if (const Result<> taken = take_rank(*flags); !taken) return report(taken.error());
      const Result<int> done = body(*flags);
      code = done ? *done : report(done.error());
    }
  } catch (const std::system_error& error) {
    if (std::ferror(stdout)) return report(cannot_print(error.code().value()));
    return report({code_of_errno(error.code().value()), error.what()});
  } catch (const std::bad_alloc&) {
    return report({HALYARD_RESOURCE_EXHAUSTED, "not enough memory for what was asked; are the sizes right?"});
  } catch (const std::exception& exception) {
    return report({HALYARD_INTERNAL, exception.what()});
  }
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) return report(cannot_print(errno));
  return code;
}

}  // namespace halyard::tools
