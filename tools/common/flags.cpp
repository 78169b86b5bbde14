// Parses flags.
#include "common/flags.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>

#include "common/files.h"
#include "common/quantities.h"
#include "text/suggest.h"

namespace halyard::tools {

namespace {

constexpr List kFlagFile = {
    "flagfile", "FILE",
    "Reads flags from FILE, one a line; empty lines and lines that start with # are skipped.",
    "--flagfile=flags.txt"};

constexpr const Flag* kCommonFlags[] = {&kFlagFile, &flag::help, &flag::version};

std::string normalised(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

constexpr FlagGroup kCommonGroup = {"Every tool", kCommonFlags};

const Flag* find_flag(const ToolDescription& tool, std::string_view name) {
  for (const FlagGroup& group : all_groups(tool))
    for (const Flag* const flag : group.flags)
      if (normalised(flag->name) == name) return flag;
  return nullptr;
}

// "; did you mean 'near'?" or "".
std::string suggestion(const std::string& name, const std::vector<std::string>& names) {
  return did_you_mean(name, std::vector<std::string_view>(names.begin(), names.end()));
}

std::string near_flag(const ToolDescription& tool, std::string_view name) {
  std::vector<std::string> names;
  for (const FlagGroup& group : all_groups(tool))
    for (const Flag* const flag : group.flags) names.push_back(flag->text());
  return suggestion("--" + std::string(name), names);
}

// "a, b or c".
std::string list_of(const std::vector<std::string_view>& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 < choices.size() ? ", " : " or ", choices[i]);
  return text;
}

// Checks that the value is one of the choices, if the declaration lists choices.
Result<> check_choice(const Flag& flag, std::string_view name, const std::string& value) {
  const std::vector<std::string_view> choices = choices_of(flag.value);
  if (choices.empty() || std::ranges::find(choices, value) != choices.end()) return {};
  // "FILE.html" stands for every file with this extension.
  for (const std::string_view choice : choices)
    if (choice.starts_with(kFileChoice) && value.size() > choice.size() - kFileChoice.size() &&
        value.ends_with(choice.substr(kFileChoice.size())))
      return {};
  const bool is_word =
      !value.empty() && !(value[0] >= '0' && value[0] <= '9');  // suggestions for numbers are pointless
  return fail(HALYARD_INVALID_ARGUMENT, "--{}={}: expected {}{}", name, value, list_of(choices),
              !is_word ? "" : suggestion(value, {choices.begin(), choices.end()}));
}

// The value of a toggle. An empty value is false, because a script may pass "--json=$JSON".
Result<bool> truth_of(std::string_view name, std::string_view value) {
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0" || value.empty()) return false;
  return fail(HALYARD_INVALID_ARGUMENT, "--{}={}: expected true, 1, false or 0", name, value);
}

}  // namespace

std::vector<FlagGroup> all_groups(const ToolDescription& tool) {
  std::vector<FlagGroup> groups(tool.groups.begin(), tool.groups.end());
  groups.push_back(kCommonGroup);
  return groups;
}

std::vector<const Flag*> listed_flags(const FlagGroup& group) {
  std::vector<const Flag*> flags;
  std::ranges::copy_if(group.flags, std::back_inserter(flags), &Flag::is_listed);
  return flags;
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

std::vector<std::string_view> words_of(std::string_view value) {
  std::vector<std::string_view> words = choices_of(value);
  std::erase_if(words, [](std::string_view choice) { return choice.starts_with(kFileChoice); });
  return words;
}

Result<Flags> Flags::parse(const ToolDescription& tool, int argc, const char* const* argv) {
  Flags flags;
  std::vector<std::string> files;  // the flag files being read; each contains the next
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
  if (flag == &kFlagFile) return add_file(tool, value, files);
  std::vector<std::string>& values = values_[flag->name];
  if (flag->kind == FlagKind::toggle) {
    values.emplace_back(TOOL_TRY(truth_of(name, has_value ? value : "true")) ? "true" : "false");
  } else {
    values.push_back(value);
  }
  return {};
}

Result<> Flags::add_file(const ToolDescription& tool, const std::string& path,
                         std::vector<std::string>& files) {
  constexpr size_t kDeepest = 8;
  if (std::ranges::find(files, path) != files.end() || files.size() == kDeepest)
    return fail(
        HALYARD_INVALID_ARGUMENT,
        "flag file '{}' includes itself, or flag files include each other more than {} deep; remove {} "
        "from one of them",
        path, kDeepest, kFlagFile);
  const FileContents file = TOOL_TRY(FileContents::open(path, "flag file "));
  files.push_back(path);
  std::string_view rest = file.text();
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // written by editors on Windows
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  if (rest.contains('\0'))
    return fail(HALYARD_INVALID_ARGUMENT,
                "flag file '{}' has a zero byte at {}, so it is not text, or is UTF-16; save it as UTF-8",
                path, file.text().find('\0'));
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

std::vector<std::string> Flags::given(const Flag& flag) const {
  const auto found = values_.find(flag.name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

std::optional<std::string> Flags::last(const Flag& flag) const {
  const auto found = values_.find(flag.name);
  if (found == values_.end()) return std::nullopt;
  return found->second.back();
}

// The index of the word in the declaration; parse() has refused all other words.
std::optional<size_t> Flags::chosen(const Flag& flag) const {
  const std::optional<std::string> word = last(flag);
  if (!word) return std::nullopt;
  const std::vector<std::string_view> words = choices_of(flag.value);
  return static_cast<size_t>(std::ranges::find(words, *word) - words.begin());
}

bool Flags::operator[](const Toggle& flag) const { return last(flag) == "true"; }

std::string Flags::operator[](const Text& flag) const {
  return last(flag).value_or(std::string(flag.otherwise));
}

std::optional<std::string> Flags::operator[](const OptionalText& flag) const { return last(flag); }

Result<uint64_t> Flags::operator[](const Number& flag) const {
  const std::optional<std::string> text = last(flag);
  if (!text) return flag.otherwise;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size())
    return wrong_value(flag, *text, fmt::format("a number, such as {}", flag.example_value()));
  return number;
}

Result<double> Flags::operator[](const Threshold& flag) const {
  const std::optional<std::string> text = last(flag);
  if (!text) return flag.otherwise;
  double number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size() || !(number >= 0))
    return wrong_value(flag, *text,
                       fmt::format("a number that is not negative, such as {}", flag.example_value()));
  return number;
}

Result<std::optional<uint64_t>> Flags::operator[](const Size& flag) const {
  const std::optional<std::string> text = last(flag);
  if (!text) return std::nullopt;
  const std::optional<uint64_t> bytes = parse_size(*text);
  if (!bytes) return wrong_value(flag, *text, "a size above 0 such as 4096, 64KiB, 512MiB or 2GiB");
  return bytes;
}

Result<std::optional<std::chrono::nanoseconds>> Flags::operator[](const Duration& flag) const {
  const std::optional<std::string> text = last(flag);
  if (!text) return std::nullopt;
  const std::optional<std::chrono::nanoseconds> time = parse_duration(*text);
  if (!time) return wrong_value(flag, *text, "a time above 0 such as 1.5s, 200ms or 2min");
  return time;
}

Result<> check_only_flags(const Flags& flags, std::string_view meant, const Flag& flag) {
  if (flags.positional().empty()) return {};
  return fail(HALYARD_INVALID_ARGUMENT, "'{}' is no flag; {} given as {}={}", flags.positional().front(),
              meant, flag, flag.value);
}

std::unexpected<Failure> wrong_value(const Flag& flag, std::string_view value, std::string_view expected) {
  return fail(HALYARD_INVALID_ARGUMENT, "{}={}: expected {}", flag, value, expected);
}

}  // namespace halyard::tools
