// The text of --help.
#include "common/help.h"

#include <algorithm>

#include "common/colour.h"
#include "common/documents.h"

namespace halyard::tools {

std::string usage_of(const Flag& flag) {
  std::string text = flag.text();
  if (flag.kind == FlagKind::optional_value) return text + "[=" + std::string(flag.value) + "]";
  return flag.value.empty() ? text : text + "=" + std::string(flag.value);
}

Completion completion_of(std::string_view value) {
  if (value.contains('|')) return Completion::choices;
  if (value == "URI") return Completion::devices;
  return value.contains("FILE") ? Completion::files : Completion::none;
}

Completion completion_of(const Flag& flag) {
  return flag.name == "function" ? Completion::functions : completion_of(flag.value);
}

std::string help_text(const ToolDescription& tool) {
  constexpr size_t kWidest = 100;  // longer lines are hard to read
  constexpr size_t kIndent = 6;
  const size_t width = std::min(terminal_width(), kWidest);
  const std::string indent(kIndent, ' ');
  const auto title = [](std::string_view text) { return coloured(Colour::bold, text); };
  std::string text = fmt::format("{}\n\n{} {}\n", wrapped(tool.summary, 0, width), title("usage:"),
                                 wrapped(tool.usage, 7, width));
  for (const FlagGroup& group : all_groups(tool)) {
    const std::vector<const Flag*> flags = listed_flags(group);
    if (!group.title.empty() && !flags.empty())
      text += fmt::format("\n{}\n", title(fmt::format("{}:", group.title)));
    for (const Flag* const it : flags) {
      const Flag& flag = *it;
      text +=
          fmt::format("\n  {}\n{}{}\n", title(usage_of(flag)), indent, wrapped(flag.help, kIndent, width));
      if (!flag.example.empty()) text += fmt::format("{}example: {}\n", indent, flag.example);
    }
  }
  text += fmt::format("\n{}\n{}\n{}\n", title("examples:"), tool.examples, title("exit codes:"));
  for (const ExitCode& exit : tool.exit_codes)
    text += fmt::format("  {:<4}{}\n", exit.code, wrapped(exit.when, kIndent, width));
  return text +
         fmt::format("\n{}\n  {}\n", title("documents:"), wrapped(documents_text(tool.name), 2, width));
}

std::string help(const ToolDescription& tool, std::string_view form) {
  if (form == "man") return manual_page(tool);
  if (form == "bash") return bash_completion(tool);
  return form == "zsh" ? zsh_completion(tool) : help_text(tool);
}

}  // namespace halyard::tools
