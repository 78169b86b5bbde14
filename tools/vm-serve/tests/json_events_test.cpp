// The JSON reader takes what nlohmann's parser takes, and reports the same values.
#include "json_events.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "common/json.h"

namespace halyard::tools::serve {
namespace {

// Builds the value again.
class Builder {
 public:
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_unsigned(uint64_t value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_float(double value) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }
  bool start_object() { return open(Json::object()); }
  bool start_array() { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(size_t position, std::string_view why) {
    where = position;
    reason = why;
    return false;
  }

  Json root;
  size_t where = 0;
  std::string reason;

 private:
  Json* place(Json value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    Json& within = *open_.back();
    if (within.is_array()) {
      within.push_back(std::move(value));
      return &within.back();
    }
    return &(within[key_] = std::move(value));
  }
  bool add(Json value) { return place(std::move(value)) != nullptr; }
  bool open(Json value) {
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<Json*> open_;
  std::string key_;
};

void expect_same(const std::string& text) {
  Builder builder;
  const bool is_good = JsonReader(text, builder).run();
  ASSERT_EQ(is_good, Json::accept(text)) << text << ": " << builder.reason;
  if (is_good) {
    EXPECT_EQ(builder.root, Json::parse(text)) << text;
  } else {
    EXPECT_LE(builder.where, text.size()) << text;
    EXPECT_FALSE(builder.reason.empty()) << text;
  }
}

const std::vector<std::string> kTexts = {
    // Values and places of blanks.
    "null", "true", "false", "0", "\"\"", "[]", "{}", " \t\r\n[ 1 , 2 ] \n",
    "{ \"a\" : { \"b\" : [ ] } , \"c\" : 1 }", "[[[[]]],[[{}]]]", "\xEF\xBB\xBF[1]",
    // Numbers: every form, the edges of 64 bits, what is rounded, too large and too small.
    "-0", "-1", "10", "1.5", "-2.25e3", "1E+2", "1e-2", "0.0", "0e0", "18446744073709551615",
    "18446744073709551616", "-9223372036854775808", "-9223372036854775809", "1e308", "1e309", "-1e309",
    "1e-400", "4.9e-324", "0.1", "123456789012345678901234567890",
    // Strings: escapes, surrogates, every length of UTF-8.
    R"("\"\\\/\b\f\n\r\t")", R"("\u0041\u00e9\u20ac\uD83D\uDE00")",
    "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"", R"({"\u0061":1})",
    "\"\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF\"",
    // What is no JSON.
    "", " ", "nul", "nulll", "True", "[1,]", "[,1]", "[1 2]", "[1", "]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
    "{a:1}", "{1:1}", "{\"a\" 1}", "{\"a\":1", "[1}", "{\"a\":1]", "1 2", "01", "-", "-a", "1.", ".5", "1e",
    "1e+", "+1", "0x10", "NaN", "Infinity", "'a'", "\"", "\"a", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
    R"("\uD83D")", R"("\uD83D\u0041")", R"("\uDE00")", R"("\uD83Dx")", "\"\n\"", "\"\x80\"", "\"\xC3\"",
    "\"\xC0\xAF\"", "\"\xE0\x80\xAF\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"", "\"\xF5\x80\x80\x80\"",
    "\"\xE2\x82", "[1]]", "[1]x", "/* c */ 1", "\x01"};

TEST(JsonEvents, TheSameAsNlohmann) {
  for (const std::string& text : kTexts) expect_same(text);
}

TEST(JsonEvents, TheSameAsNlohmannForBrokenTexts) {
  std::mt19937 random(7);
  constexpr std::string_view kBytes = "{}[]\",:\\u0189eE+-. tfn\x01\x80\xC3\xE2";
  for (int round = 0; round < 20000; ++round) {
    std::string text = kTexts[random() % kTexts.size()];
    for (unsigned change = random() % 3; change <= 2; ++change) {
      const char byte = kBytes[random() % kBytes.size()];
      const size_t at = random() % (text.size() + 1);
      if (random() % 2 == 0 || at == text.size()) {
        text.insert(at, 1, byte);
      } else {
        text[at] = byte;
      }
    }
    expect_same(text);
    if (HasFailure()) return;
  }
}

TEST(JsonEvents, TheSignOfZeroIsKept) {
  Builder builder;
  EXPECT_TRUE(JsonReader("-0", builder).run());
  EXPECT_TRUE(builder.root.is_number_float() && std::signbit(builder.root.get<double>()));
}

TEST(JsonEvents, SaysWhere) {
  Builder builder;
  EXPECT_FALSE(JsonReader("{\"a\": [1, x]}", builder).run());
  EXPECT_EQ(builder.where, 10u);
  EXPECT_EQ(builder.reason, "syntax error");
}

}  // namespace
}  // namespace halyard::tools::serve
