// A tool's manual page: roff for man(1), with the macros of man(7). The build defines HALYARD_TOOLS, the
// names of all tools.
#include <algorithm>

#include "common/documents.h"
#include "common/help.h"

namespace halyard::tools {

namespace {

// Escapes text for roff, so that no line is a request and no '-' becomes a hyphen.
std::string roff(std::string_view text) {
  std::string safe;
  bool starts_line = true;
  for (const char character : text) {
    if (starts_line && (character == '.' || character == '\'')) safe += "\\&";
    if (character == '\\') {
      safe += "\\e";
    } else if (character == '-') {
      safe += "\\-";
    } else if (character == '\'') {
      safe += "\\(aq";
    } else if (character == '"') {
      safe += "\\(dq";
    } else {
      safe += character;
    }
    starts_line = character == '\n';
  }
  return safe;
}

// The purpose of the tool, for NAME: the summary up to its first colon or full stop.
std::string purpose(std::string_view summary) {
  const size_t end = std::min(summary.find(": "), summary.find(". "));
  std::string text(summary.substr(0, std::min(end, summary.size())));
  if (text.ends_with('.')) text.pop_back();
  std::ranges::replace(text, '\n', ' ');
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

std::string upper(std::string_view text) {
  std::string letters(text);
  for (char& letter : letters)
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  return letters;
}

std::string other_tools(std::string_view name) {
  std::string text;
  std::string_view left = HALYARD_TOOLS;
  while (!left.empty()) {
    const std::string_view tool = left.substr(0, left.find(' '));
    left.remove_prefix(std::min(tool.size() + 1, left.size()));
    if (tool != name) text += fmt::format("{}.BR {} (1)", text.empty() ? "" : " ,\n", roff(tool));
  }
  return text + "\n";
}

constexpr std::string_view kEnvironment = R"(.SH ENVIRONMENT
.TP
.B HALYARD_DRIVER_PATH
Folders and files that are looked at for drivers before the installed ones, separated by colons.
.TP
.B NO_COLOR
No colours on a terminal, where it is set and not empty.
.TP
.B COLUMNS
How wide tables and help are, instead of what the terminal says.
)";

}  // namespace

std::string manual_page(const ToolDescription& tool) {
  std::string text = fmt::format(".TH {} 1 \"\" \"Halyard {}\" \"Halyard\"\n", roff(upper(tool.name)),
                                 roff(halyard_version()));
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(tool.name), roff(purpose(tool.summary)));
  text += fmt::format(".SH SYNOPSIS\n{}\n", roff(tool.usage));
  text += fmt::format(".SH DESCRIPTION\n{}\n", roff(tool.summary));
  text += ".SH OPTIONS\nIn names of options, \\(oq\\-\\(cq and \\(oq_\\(cq are equivalent.\n";
  for (const FlagGroup& group : all_groups(tool)) {
    const std::vector<const Flag*> flags = listed_flags(group);
    if (!group.title.empty() && !flags.empty()) text += fmt::format(".SS {}\n", roff(group.title));
    for (const Flag* const it : flags) {
      const Flag& flag = *it;
      text += fmt::format(".TP\n.B {}\n{}\n", roff(usage_of(flag)), roff(flag.help));
      if (!flag.example.empty()) text += fmt::format(".br\nExample: {}\n", roff(flag.example));
    }
  }
  text += fmt::format(".SH EXAMPLES\n.nf\n{}.fi\n", roff(tool.examples));
  text += ".SH EXIT STATUS\n";
  for (const ExitCode& exit : tool.exit_codes)
    text += fmt::format(".TP\n.B {}\n{}\n", exit.code, roff(exit.when));
  text += kEnvironment;
  text += fmt::format(".SH SEE ALSO\n{}", other_tools(tool.name));
  return text +
         fmt::format(".PP\nThe documents of Halyard are installed in share/doc/halyard; {} begins with {}.\n",
                     roff(tool.name), roff(document_of(tool.name)));
}

}  // namespace halyard::tools
