// What is made of the table of a tool: no text of it becomes a request of roff or code of a shell.
// tests/test_help.py has the tools themselves.
#include "common/help.h"

#include <gtest/gtest.h>

#include "common/page.h"

namespace halyard::tools {
namespace {

#define EXPECT_PART(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

constexpr Text kOdd = {"odd", "VALUE",
                       "Says 'a:b' in [brackets] and \\ too.\n.TH begins no page.\n'nor does this.",
                       "--odd='x'"};
constexpr Choice kChosen = {"chosen", "this|that", "One of two.", "--chosen=this", 0};
constexpr const Flag* kHelpFlags[] = {&kOdd, &kChosen};
constexpr FlagGroup kHelpGroups[] = {{"Odd", kHelpFlags}};
constexpr ToolDescription kHelpTool = {"vm-odd", "vm-odd [flags]", "Odd things: it does them. All of them.",
                                       kHelpGroups, "  vm-odd --odd=1\n"};

TEST(Help, TextsAreNoRequestsOfRoff) {
  const std::string page = manual_page(kHelpTool);
  EXPECT_PART(page, "\n\\&.TH begins no page.");
  EXPECT_PART(page, "\n\\&\\(aqnor does this.");
  EXPECT_PART(page, "\\e too.");
  EXPECT_PART(page, "odd things") << "the purpose begins with a small letter";
  EXPECT_EQ(page.find("\n.TH begins"), std::string::npos);
}

TEST(Help, TextsAreNoCodeOfAShell) {
  const std::string zsh = zsh_completion(kHelpTool);
  EXPECT_PART(zsh, "Says '\\''a\\:b'\\'' in \\[brackets\\] and \\\\ too");
  EXPECT_PART(zsh, "value:(this that)");
  const std::string bash = bash_completion(kHelpTool);
  EXPECT_PART(bash, "--chosen) candidates=(--chosen=this --chosen=that) ;;");
  EXPECT_PART(bash, "complete -o default -F _halyard_vm_odd vm-odd");
}

TEST(Page, DataEndsNoElement) {
  PageContents contents;
  contents.file = "</script><b>&amp;";
  const std::string page = page_text(contents);
  EXPECT_PART(page, "\\u003c/script\\u003e\\u003cb\\u003e\\u0026amp;");
  EXPECT_EQ(page.find("</script><b>&amp;"), std::string::npos);
}

}  // namespace
}  // namespace halyard::tools
