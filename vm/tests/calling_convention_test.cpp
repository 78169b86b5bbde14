// Calling-convention strings: calling-convention.md, section 1.
#include "vm/module/calling_convention.h"

#include <gtest/gtest.h>

#include "module_builder.h"

namespace halyard::vm::test {
namespace {

// "arguments -> results"; a span is "C(types)", segment numbers follow '@' if they differ from the position.
std::string describe(const std::vector<ConventionItem>& items) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    text += items[i].type;
    if (items[i].type == 'C') text += '(' + items[i].span + ')';
    if (items[i].segment != i) text += '@' + std::to_string(items[i].segment);
  }
  return text;
}

TEST(Convention, Parses) {
  const struct {
    const char* text;
    const char* arguments;
    const char* results;
  } kStrings[] = {
      {"", "", ""},
      {"0", "", ""},
      {"0_", "", ""},
      {"0v", "", ""},
      {"0v_v", "", ""},
      {"0_v", "", ""},
      {"0i_", "i", ""},
      {"0i", "i", ""},
      {"0i_v", "i", ""},
      {"0v_iIfFr", "", "iIfFr"},
      {"0iIfFr_r", "iIfFr", "r"},
      {"0rIIiiCID_r", "rIIiiC(I)", "r"},
      {"0CrID_i", "C(rI)", "i"},
      {"0CiDCfD", "C(i)C(f)", ""},
      {"0rCiI", "rC(iI)", ""},  // an unterminated span extends to the end of the arguments
      {"0rCiI_r", "rC(iI)", "r"},
      {"0viv", "i@1", ""},  // a stray v is no argument, but counts among segment sizes
      {"0ivCivID_ivr", "iC(iI)@2", "ir@2"},
      {"0vv_vv", "", ""},
  };
  for (const auto& string : kStrings) {
    const auto convention = Convention::parse(string.text);
    ASSERT_TRUE(succeeds(convention)) << string.text;
    EXPECT_EQ(describe(convention->arguments), string.arguments) << string.text;
    EXPECT_EQ(describe(convention->results), string.results) << string.text;
  }
}

TEST(Convention, HasSpan) {
  EXPECT_TRUE(Convention::parse("0iCrD_v")->has_span);
  EXPECT_FALSE(Convention::parse("0ir_r")->has_span);
}

TEST(Convention, Refuses) {
  const struct {
    const char* text;
    Code code;
    const char* message;
  } kStrings[] = {
      {"1i_i", Code::UNIMPLEMENTED, "unknown version '1'"},
      {"i_i", Code::UNIMPLEMENTED, "unknown version 'i'"},
      {"_", Code::UNIMPLEMENTED, "unknown version '_'"},
      {"0x", Code::UNIMPLEMENTED, "unknown character 'x'"},
      {"0i_x", Code::UNIMPLEMENTED, "unknown character 'x'"},
      {"0iD", Code::UNIMPLEMENTED, "unknown character 'D'"},
      {"0i_i_i", Code::UNIMPLEMENTED, "unknown character '_'"},
      {"0CiqD", Code::UNIMPLEMENTED, "unknown character 'q' in a span"},
      {"0CiCiDD", Code::INVALID_ARGUMENT, "a span inside a span"},
      {"0v_CiD", Code::INVALID_ARGUMENT, "only allowed in arguments"},
      {"0CD", Code::INVALID_ARGUMENT, "a span without types"},
      {"0CvD", Code::INVALID_ARGUMENT, "a span without types"},
      {"0C", Code::INVALID_ARGUMENT, "a span without types"},
  };
  for (const auto& string : kStrings)
    EXPECT_TRUE(fails_with(Convention::parse(string.text), string.code, string.message)) << string.text;
}

}  // namespace
}  // namespace halyard::vm::test
