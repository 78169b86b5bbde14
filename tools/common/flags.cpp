// Parsing of flags, the text of --help, and the frame of a tool's main.
#include "common/flags.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <system_error>

#include "common/printable.h"

namespace halyard::tools {

namespace {

constexpr int kFlagFileDepth = 8;  // flag files that name flag files

constexpr Flag kCommonFlags[] = {
    {"flagfile", FlagKind::list, "FILE",
     "Reads flags from FILE, one a line; empty lines and lines that start with # are skipped.",
     "--flagfile=flags.txt"},
    {"help", FlagKind::toggle, "", "Prints this and exits.", "--help"},
};

std::string normalised(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

constexpr FlagGroup kCommonGroup = {"Every tool", kCommonFlags};

std::vector<FlagGroup> groups_of(const ToolDescription& tool) {
  std::vector<FlagGroup> groups(tool.groups.begin(), tool.groups.end());
  groups.push_back(kCommonGroup);
  return groups;
}

const Flag* find_flag(const ToolDescription& tool, std::string_view name) {
  for (const FlagGroup& group : groups_of(tool))
    for (const Flag& flag : group.flags)
      if (normalised(flag.name) == name) return &flag;
  return nullptr;
}

std::string suggestion(const ToolDescription& tool, const std::string& name) {
  std::vector<std::string> names;
  for (const FlagGroup& group : groups_of(tool))
    for (const Flag& flag : group.flags) names.push_back("--" + std::string(flag.name));
  std::vector<const char*> candidates;
  for (const std::string& candidate : names) candidates.push_back(candidate.c_str());
  const Block<char> text(halyard_did_you_mean(("--" + name).c_str(), candidates.data(), candidates.size()));
  return text.get();
}

std::string usage_of(const Flag& flag) {
  std::string text = "--" + std::string(flag.name);
  if (flag.kind == FlagKind::optional_value) return text + "[=" + std::string(flag.value) + "]";
  return flag.value.empty() ? text : text + "=" + std::string(flag.value);
}

}  // namespace

Result<Flags> Flags::parse(const ToolDescription& tool, int argc, const char* const* argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) TOOL_TRY(flags.add(tool, argv[i], 0));
  return flags;
}

Result<> Flags::add(const ToolDescription& tool, std::string_view argument, int depth) {
  if (!argument.starts_with("--")) {
    positional_.emplace_back(argument);
    return {};
  }
  const std::string_view body = argument.substr(2);
  const size_t equals = body.find('=');
  const std::string_view name = body.substr(0, equals);
  const bool has_value = equals != std::string_view::npos;
  const std::string value(has_value ? body.substr(equals + 1) : std::string_view());
  const Flag* flag = find_flag(tool, normalised(name));
  if (!flag)
    return fail(HALYARD_INVALID_ARGUMENT, "flag '--{}' not recognized{}; '{} --help' lists the flags", name,
                suggestion(tool, std::string(name)), tool.name);
  if (!has_value && (flag->kind == FlagKind::value || flag->kind == FlagKind::list))
    return fail(HALYARD_INVALID_ARGUMENT,
                "flag '--{}' needs a value in the same argument: --{}={}; for example {}", name, name,
                flag->value, flag->example);
  if (flag->name == "flagfile") return add_file(tool, value, depth + 1);
  std::vector<std::string>& values = values_[normalised(flag->name)];
  if (flag->kind == FlagKind::toggle) {
    values.emplace_back(!has_value || value == "true" || value == "1" ? "true" : "false");
  } else {
    values.push_back(value);
  }
  return {};
}

Result<> Flags::add_file(const ToolDescription& tool, const std::string& path, int depth) {
  if (depth > kFlagFileDepth)
    return fail(HALYARD_INVALID_ARGUMENT, "flag file '{}': flag files nest deeper than {}", path,
                kFlagFileDepth);
  if (std::filesystem::is_directory(path))
    return fail(HALYARD_INVALID_ARGUMENT, "flag file '{}' is a folder", path);
  std::ifstream file(path);
  if (!file) return fail(HALYARD_NOT_FOUND, "cannot open flag file '{}': {}", path, std::strerror(errno));
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    const size_t last = line.find_last_not_of(" \t\r");
    Result<> added = add(tool, line.substr(first, last - first + 1), depth);
    if (!added) return fail(added.error().code, "{}:{}: {}", path, number, added.error().text);
  }
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

std::string help_text(const ToolDescription& tool) {
  std::string text = fmt::format("{}\n\nusage: {}\n", tool.summary, tool.usage);
  for (const FlagGroup& group : groups_of(tool)) {
    if (!group.title.empty()) text += fmt::format("\n{}:\n", group.title);
    for (const Flag& flag : group.flags) {
      text += fmt::format("\n  {}\n      ", usage_of(flag));
      for (const char character : flag.help)
        text += character == '\n' ? "\n      " : std::string(1, character);
      if (!flag.example.empty()) text += fmt::format("\n      example: {}", flag.example);
      text += "\n";
    }
  }
  return text + fmt::format("\nexamples:\n{}", tool.examples);
}

int run_tool(const ToolDescription& tool, int argc, const char* const* argv,
             Result<int> (*body)(const Flags& flags)) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of writing, reported below
  const auto report = [&](const Failure& failure) {
    std::fflush(stdout);
    const bool colour = ::isatty(STDERR_FILENO) == 1;
    fmt::print(stderr, "{}{}:{} {}\n", colour ? "\x1b[1;31m" : "", tool.name, colour ? "\x1b[0m" : "",
               printable(failure.line()));
    return failure.exit_code;
  };
  int code = 0;
  try {
    Result<Flags> flags = Flags::parse(tool, argc, argv);
    if (!flags) return report(flags.error());
    if (flags->on("help")) {
      const std::string text = help_text(tool);
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else {
      const Result<int> done = body(*flags);
      code = done ? *done : report(done.error());
    }
  } catch (const std::system_error& error) {  // how fmt::print tells
    return report(
        {HALYARD_UNAVAILABLE, fmt::format("could not write all of standard output: {}", error.what())});
  } catch (const std::bad_alloc&) {
    return report({HALYARD_RESOURCE_EXHAUSTED, "not enough memory for what was asked; are the sizes right?"});
  } catch (const std::exception& exception) {
    return report({HALYARD_INTERNAL, exception.what()});
  }
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return report(
        {HALYARD_UNAVAILABLE, fmt::format("could not write all of standard output: {}",
                                          errno ? std::strerror(errno) : "an earlier write failed")});
  return code;
}

}  // namespace halyard::tools
