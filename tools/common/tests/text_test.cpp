// Texts of tools: quantities with units, JSON, and what makes untrusted or long text safe to print.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include "common/brief.h"
#include "common/colour.h"
#include "common/contents.h"
#include "common/convention.h"
#include "common/device_uri.h"
#include "common/json.h"
#include "common/printable.h"
#include "common/quantities.h"
#include "common/scalar.h"
#include "common/table.h"
#include "common/xml.h"

namespace halyard::tools {
namespace {

TEST(Quantities, SizesAreAboveZeroAndExact) {
  const std::pair<std::string_view, uint64_t> good[] = {{"1", 1},
                                                        {"4096", 4096},
                                                        {"4096B", 4096},
                                                        {"64KiB", 65536},
                                                        {"0.5KiB", 512},
                                                        {"1.5GiB", 1610612736},
                                                        {"2KB", 2000},
                                                        {"3MB", 3000000},
                                                        {"4GB", 4000000000},
                                                        {"1MiB", 1048576},
                                                        {"0.1", 1},
                                                        {"1e3", 1000},
                                                        {"9000000000000000000", 9000000000000000000u},
                                                        {"8999999999999999999B", 8999999999999999999u}};
  for (const auto& [text, bytes] : good) EXPECT_EQ(parse_size(text), bytes) << text;
  for (const std::string_view text : {"",
                                      "0",
                                      "0KiB",
                                      "-1",
                                      "+1",
                                      "KiB",
                                      "1kib",
                                      "1 KiB",
                                      " 1",
                                      "1KiB ",
                                      "1TiB",
                                      "nan",
                                      "inf",
                                      "infKiB",
                                      "9000000000000000001",
                                      "9000000000000010000",
                                      "99999999999999999999",
                                      "1e300",
                                      "9e9GiB",
                                      "0x10",
                                      "1s"})
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
}

TEST(Quantities, Durations) {
  using namespace std::chrono_literals;
  const std::pair<std::string_view, std::chrono::nanoseconds> good[] = {
      {"1", 1s},    {"1.5s", 1500ms}, {"200ms", 200ms}, {"10us", 10us},
      {"7ns", 7ns}, {"2min", 2min},   {"0.1ns", 1ns}};
  for (const auto& [text, time] : good) EXPECT_EQ(parse_duration(text), time) << text;
  for (const std::string_view text : {"", "0s", "-1s", "1h", "1MiB", "1e300s", "999999999999min", "s"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

TEST(Quantities, SizesAsText) {
  const std::pair<uint64_t, std::string_view> cases[] = {{0, "0 bytes"},
                                                         {1, "1 byte"},
                                                         {64, "64 bytes"},
                                                         {1023, "1023 bytes"},
                                                         {1024, "1 KiB"},
                                                         {1536, "1.5 KiB"},
                                                         {uint64_t{1} << 40, "1 TiB"},
                                                         {UINT64_MAX, "16.0 EiB"}};
  for (const auto& [bytes, text] : cases) EXPECT_EQ(format_size(bytes), text);
}

TEST(Printable, ControlsAndBadBytesAreShown) {
  EXPECT_EQ(printable("plain\ntext ~"), "plain\ntext ~");
  EXPECT_EQ(printable("\x1b[31m\r\t\x7f"), "\\x1B[31m\\x0D\\x09\\x7F");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\xC2\\x9B31m");  // the control character of eight bits
  EXPECT_EQ(printable("\xC2\xA9 \xE2\x82\xAC"), "\xC2\xA9 \xE2\x82\xAC");
  EXPECT_EQ(printable("\xFF\xE2\x82"), "\\xFF\\xE2\\x82");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(xml("<a b=\"c\">&\n\x01"), "&lt;a b=&quot;c&quot;&gt;&amp;&#10;\\x01");
}

TEST(Brief, OnlyLongQuotationsAreCut) {
  EXPECT_EQ(brief("it can't read 'a file': it's gone"), "it can't read 'a file': it's gone");
  const std::string longest(256, 'x'), more(257, 'x');
  EXPECT_EQ(brief("'" + longest + "' is long"), "'" + longest + "' is long");
  const std::string cut = std::string(128, 'x') + "...(65 bytes left out)..." + std::string(64, 'x');
  EXPECT_EQ(brief("'" + more + "' is long"), "'" + cut + "' is long");
  EXPECT_EQ(brief("'" + more + "'s is long'"),
            "'" + std::string(128, 'x') + "...(75 bytes left out)..." + std::string(54, 'x') + "'s is long'");
  EXPECT_EQ(brief("'" + more), "'" + more);  // the quotation does not end
  EXPECT_EQ(brief("but --input=" + more + " is long"), "but --input=" + cut + " is long");
  EXPECT_EQ(brief("--input=" + more + ": no"), "--input=" + cut + ": no");
  EXPECT_EQ(brief("see --x=" + more + "\nand"), "see --x=" + cut + "\nand");
  EXPECT_EQ(brief("-- or --= or --x: no flags"), "-- or --= or --x: no flags");
  EXPECT_EQ(brief(""), "");
}

TEST(Brief, CharactersStayWhole) {
  std::string euros;
  for (int i = 0; i < 100; ++i) euros += "\xE2\x82\xAC";
  const std::string text = brief("'" + euros + "'");
  EXPECT_EQ(text, printable(text));
  EXPECT_NE(text.find("bytes left out"), std::string::npos);
  const std::string no_characters = brief("'" + std::string(300, '\x80') + "'");  // continuation bytes alone
  EXPECT_LT(no_characters.size(), 260u);
  const std::string whole = brief(std::string(5000, 'y'));
  EXPECT_EQ(whole, std::string(3000, 'y') + "...(1500 bytes left out)..." + std::string(500, 'y'));
}

TEST(Wrapped, LinesFitAndLongWordsGetTheirOwn) {
  EXPECT_EQ(wrapped("one two three", 2, 9), "one two\n  three");
  EXPECT_EQ(wrapped("  one\n\n two  ", 0, 80), "one two");
  EXPECT_EQ(wrapped("a-very-long-word b", 1, 5), "a-very-long-word\n b");
  EXPECT_EQ(wrapped(" \n ", 4, 10), "");
}

TEST(TerminalWidth, IsThatOfColumnsIfItIsANumber) {
  const std::pair<const char*, size_t> cases[] = {{"120", 120},
                                                  {"7", 40},
                                                  {"0", 100},
                                                  {"80x", 100},
                                                  {"", 100},
                                                  {"-5", 100},
                                                  {"99999999999999999999999", 100}};
  for (const auto& [columns, width] : cases) {
    ::setenv("COLUMNS", columns, 1);
    EXPECT_EQ(terminal_width(-1), width) << columns;
  }
  ::unsetenv("COLUMNS");
  EXPECT_EQ(terminal_width(-1), 100u);
}

TEST(Table, ColumnsAlignAndLongRowsBreak) {
  ::setenv("COLUMNS", "40", 1);
  EXPECT_EQ(table({"name", "what"}, {{"a", "short"}, {"longer", std::string(50, 'x')}, {"\x1b", ""}}),
            "name    what\na       short\nlonger\n    " + std::string(50, 'x') + "\n\\x1B\n");
  ::unsetenv("COLUMNS");
  EXPECT_EQ(table({"only"}, {}), "only\n");
}

TEST(Json, NumbersAreWholeShortOrText) {
  EXPECT_EQ(json_line(json_number(1.0)), "1");
  EXPECT_EQ(json_line(json_number(-0.0)), "-0.0");
  EXPECT_EQ(json_line(json_number(0.1F)), "0.1");
  EXPECT_EQ(json_line(json_number(0.1)), "0.1");
  EXPECT_EQ(json_line(json_number(9007199254740992.0)), "9007199254740992");
  EXPECT_EQ(json_line(json_number(1e300)), "1e+300");
  EXPECT_EQ(json_line(json_number(std::nan(""))), "\"nan\"");
  EXPECT_EQ(json_line(json_number(-std::numeric_limits<float>::infinity())), "\"-inf\"");
  EXPECT_EQ(json_line(json_rounded(1.23456, 2)), "1.23");
}

TEST(Json, LinesAndDocuments) {
  const Json value = {{"a", {1, 2}}, {"b", Json::object()}, {"c\x1b\xFF", "\xE2\x82\xAC"}};
  EXPECT_EQ(json_line(value), R"({"a": [1, 2], "b": {}, "c\u001b\ufffd": "\u20ac"})");
  EXPECT_EQ(json_document(value, 1),
            "{\n  \"a\": [1, 2],\n  \"b\": {},\n  \"c\\u001b\\ufffd\": \"\\u20ac\"\n}\n");
  EXPECT_EQ(json_document({{"a", {1}}}), "{\n  \"a\": [\n    1\n  ]\n}\n");
}

TEST(Json, WhatGoogleBenchmarkWritesIsRead) {
  EXPECT_EQ(
      json_line(parse_json(R"({"a": NaN, "b": [-NaN, Infinity, -Infinity], "NaN\"": "NaN\\"} rest)").value()),
      R"({"a": null, "b": [null, null, null], "NaN\"": "NaN\\"})");
}

TEST(Json, WhatIsNoJsonIsAnError) {
  for (const std::string_view text :
       {"", "{", "[1,", "{\"a\" 1}", "\"\\", "\"\xFF\"", "nul", "1e999", "-1e999", "[1e999]", "--1"}) {
    const Result<Json> parsed = parse_json(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, HALYARD_INVALID_ARGUMENT);
    EXPECT_NE(parsed.error().text.find("invalid JSON"), std::string::npos) << parsed.error().text;
    EXPECT_EQ(parsed.error().text.find("json.exception"), std::string::npos) << parsed.error().text;
  }
}

TEST(DeviceUris, HaveKindPathAndOptions) {
  const DeviceUri bare("  local-sync\n");
  EXPECT_EQ(bare.kind, "local-sync");
  EXPECT_TRUE(bare.is_local());
  EXPECT_TRUE(bare.options.empty());
  const DeviceUri whole("local-task://group/0?threads=4&pin&empty=&=x");
  EXPECT_EQ(whole.kind, "local-task");
  EXPECT_EQ(whole.path, "group/0");
  ASSERT_EQ(whole.options.size(), 4u);
  EXPECT_EQ(whole.options[0].second, "4");
  EXPECT_EQ(whole.options[1].second, std::nullopt);
  EXPECT_EQ(whole.options[2].second, "");
  EXPECT_EQ(whole.options[3].first, "");
  EXPECT_TRUE(whole.has("pin"));
  EXPECT_FALSE(whole.has("pi"));
  EXPECT_EQ(DeviceUri("vulkan:").kind, "vulkan");
  EXPECT_FALSE(DeviceUri("vulkan:").is_local());
  EXPECT_EQ(DeviceUri("").kind, "");
  EXPECT_EQ(DeviceUri(" \t ").kind, "");
  EXPECT_EQ(DeviceUri("?a://b").path, "");
  EXPECT_EQ(DeviceUri("x://").path, "");
}

TEST(Conventions, ArgumentsAndResults) {
  EXPECT_EQ(convention_arguments("0rIf_r"), "rIf");
  EXPECT_EQ(convention_results("0rIf_rr"), "rr");
  EXPECT_EQ(convention_arguments("0v_v"), "");
  EXPECT_EQ(convention_results("0v_v"), "");
  EXPECT_EQ(convention_arguments("0ii"), "ii");
  EXPECT_EQ(convention_results("0ii"), "");
  EXPECT_EQ(convention_arguments(""), "");
}

TEST(Conventions, AsynchronousFunctionsTakeTheirFencesThemselves) {
  const auto types = [](std::string_view convention, bool is_async) {
    halyard_function_description_t function = {};
    function.name = {"f", 1};
    function.convention = {convention.data(), convention.size()};
    function.is_async = is_async;
    return input_types(function);
  };
  EXPECT_EQ(types("0rrr_r", false).value(), "rrr");
  EXPECT_EQ(types("0rrr_r", true).value(), "r");
  EXPECT_EQ(types("0r_r", true).value(), "r");  // no fences to leave out
  const auto variadic = types("0rCiD_r", false);
  ASSERT_FALSE(variadic);
  EXPECT_NE(variadic.error().text.find("variable number"), std::string::npos) << variadic.error().text;
}

TEST(Scalars, OneNumberOfItsType) {
  EXPECT_EQ(parse_scalar("-5", 'i').value().raw().i32, -5);
  EXPECT_EQ(parse_scalar("18446744073709551615", 'I').value().raw().i64, -1);
  EXPECT_EQ(parse_scalar("2.5", 'f').value().raw().f32, 2.5F);
  EXPECT_EQ(parse_scalar("2.5", 'F').value().raw().f64, 2.5);
  for (const std::string_view text : {"", "1 2", "[1]", "1,2", "x", "1\n"})
    for (const char type : {'i', 'I', 'f', 'F', 'r'}) EXPECT_FALSE(parse_scalar(text, type)) << text;
  EXPECT_FALSE(parse_scalar("18446744073709551616", 'I'));
  EXPECT_FALSE(parse_scalar("1", 'r'));
}

TEST(Elements, OfATensorsText) {
  EXPECT_EQ(elements_of("2x2xf32=[1 2][3 4]"), (std::vector<std::string_view>{"1", "2", "3", "4"}));
  EXPECT_EQ(elements_of("f32=7"), std::vector<std::string_view>{"7"});
  EXPECT_TRUE(elements_of("0xf32=").empty());
}

}  // namespace
}  // namespace halyard::tools
