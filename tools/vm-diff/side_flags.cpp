// Removes the flags that a side gives from the common ones, and parses both together.
#include "side_flags.h"

#include <algorithm>
#include <set>
#include <utility>

namespace halyard::tools {

namespace {

// "--name=value": the name, spelled with '_'.
std::string name_of(std::string_view argument) {
  std::string name(argument.substr(0, argument.find('=')));
  std::ranges::replace(name.begin() + 2, name.end(), '-', '_');
  return name;
}

bool is_flag(std::string_view argument) { return argument.starts_with("--") && argument.size() > 2; }

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool has_begun = false;
  const auto end_word = [&] {
    if (std::exchange(has_begun, false)) words.push_back(std::exchange(word, {}));
  };
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      end_word();
      continue;
    }
    has_begun = true;
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word.push_back(text[++i]);
    } else {
      word.push_back(c);
    }
  }
  if (quote != 0) return fail(HALYARD_INVALID_ARGUMENT, "expected a closing {} in: {}", quote, text);
  end_word();
  return words;
}

Result<Flags> side_flags(const ToolDescription& tool, const std::vector<std::string>& arguments,
                         const List& side, const std::vector<std::string>& words,
                         std::span<const Flag* const> of_both) {
  std::set<std::string> replaced;
  for (const std::string& word : words) {
    if (!is_flag(word))
      return wrong_value(side, word,
                         "flags, each with its value in the same word, such as --device=local-sync");
    replaced.insert(name_of(word));
  }
  std::vector<const char*> all = {tool.name.data()};
  for (const std::string& word : words) all.push_back(word.c_str());
  const Flags own = TOOL_TRY(Flags::parse(tool, static_cast<int>(all.size()), all.data()));
  for (const Flag* const common : of_both)
    if (own.has(*common))
      return fail(HALYARD_INVALID_ARGUMENT, "{} is for both runs; pass it outside of {}", *common, side);
  all.resize(1);
  for (const std::string& argument : arguments)
    if (!is_flag(argument) || !replaced.contains(name_of(argument))) all.push_back(argument.c_str());
  for (const std::string& word : words) all.push_back(word.c_str());
  return Flags::parse(tool, static_cast<int>(all.size()), all.data());
}

}  // namespace halyard::tools
