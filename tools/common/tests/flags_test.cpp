// Flags: what is accepted, what their values are, and flag files.
#include "common/flags.h"

#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "fixtures.h"

namespace halyard::tools {
namespace {

enum class Speed { slow, fast };
constexpr Toggle kQuiet = {"be_quiet", "Says less.", "--be_quiet"};
constexpr Text kFile = {"file", "FILE", "A file.", "--file=a", "usual"};
constexpr List kNames = {"name", "NAME", "A name.", "--name=a"};
constexpr OptionalText kTrace = {"trace", "FILE", "Traces.", "--trace"};
constexpr Number kCount = {"count", "N", "How many.", "--count=3", 7};
constexpr Threshold kLimit = {"limit", "A limit.", "--limit=0.5", 0.25};
constexpr Size kRoom = {"room", "SIZE", "Room.", "--room=1MiB"};
constexpr Duration kTime = {"time", "TIME", "Time.", "--time=1s"};
constexpr Choice kSpeed = {"speed", "slow|fast", "How fast.", "--speed=fast", Speed::slow};
constexpr Text kPage = {"page", "text|FILE.html", "A page.", "--page=a.html"};
constexpr Ignored kOld = {"old_flag", "X", "--old_flag=1"};
constexpr const Flag* kFlags[] = {&kQuiet, &kFile, &kNames, &kTrace, &kCount, &kLimit,
                                  &kRoom,  &kTime, &kSpeed, &kPage,  &kOld};
constexpr FlagGroup kFlagGroups[] = {{"", kFlags}};
constexpr ToolDescription kFlagTool = {"tool", "tool", "A tool.", kFlagGroups, ""};

Result<Flags> parse_words(std::initializer_list<std::string> words) {
  std::vector<const char*> arguments = {"tool"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return Flags::parse(kFlagTool, static_cast<int>(arguments.size()), arguments.data());
}

void expect_wrong(std::initializer_list<std::string> words, std::string_view part) {
  const auto flags = parse_words(words);
  ASSERT_FALSE(flags) << part;
  EXPECT_NE(flags.error().text.find(part), std::string::npos) << flags.error().text << "; expected " << part;
}

TEST(FlagsTest, WithoutAnyTheDefaultsHold) {
  const Flags flags = parse_words({}).value();
  EXPECT_FALSE(flags[kQuiet]);
  EXPECT_EQ(flags[kFile], "usual");
  EXPECT_TRUE(flags[kNames].empty());
  EXPECT_EQ(flags[kTrace], std::nullopt);
  EXPECT_EQ(flags[kCount].value(), 7u);
  EXPECT_EQ(flags[kLimit].value(), 0.25);
  EXPECT_EQ(flags[kRoom].value(), std::nullopt);
  EXPECT_EQ(flags[kTime].value(), std::nullopt);
  EXPECT_EQ(flags[kSpeed], Speed::slow);
  EXPECT_FALSE(flags.has(kOld));
  EXPECT_TRUE(flags.positional().empty());
}

TEST(FlagsTest, TheLastValueCountsAndListsKeepAll) {
  const Flags flags = parse_words({"--file=a", "--name=x", "one", "--file=b", "--name=", "--be-quiet", "-",
                                   "--trace", "--old-flag=3"})
                          .value();
  EXPECT_EQ(flags[kFile], "b");
  EXPECT_EQ(flags[kNames], (std::vector<std::string>{"x", ""}));
  EXPECT_TRUE(flags[kQuiet]);
  EXPECT_EQ(flags[kTrace], "");
  EXPECT_TRUE(flags.has(kOld));
  EXPECT_EQ(flags.positional(), (std::vector<std::string>{"one", "-"}));
  EXPECT_EQ(parse_words({"--trace=t"}).value()[kTrace], "t");
  EXPECT_TRUE(parse_words({"-h"}).value().has(flag::help));
}

TEST(FlagsTest, TogglesTakeTruthValues) {
  for (const char* const yes : {"--be_quiet=true", "--be_quiet=1"})
    EXPECT_TRUE(parse_words({yes}).value()[kQuiet]) << yes;
  for (const char* const no : {"--be_quiet=false", "--be_quiet=0", "--be_quiet="})
    EXPECT_FALSE(parse_words({"--be_quiet", no}).value()[kQuiet]) << no;
  expect_wrong({"--be_quiet=yes"}, "expected true, 1, false or 0");
}

TEST(FlagsTest, NumbersAreWholeTexts) {
  EXPECT_EQ(parse_words({"--count=18446744073709551615"}).value()[kCount].value(), UINT64_MAX);
  for (const char* const text : {"", "x", "1x", "-1", "18446744073709551616"})
    EXPECT_FALSE(parse_words({std::string("--count=") + text}).value()[kCount]) << text;
  EXPECT_EQ(parse_words({"--limit=0"}).value()[kLimit].value(), 0);
  for (const char* const text : {"", "x", "1x", "-1", "nan"})
    EXPECT_FALSE(parse_words({std::string("--limit=") + text}).value()[kLimit]) << text;
  EXPECT_EQ(parse_words({"--room=2KiB"}).value()[kRoom].value(), 2048u);
  EXPECT_FALSE(parse_words({"--room=0"}).value()[kRoom]);
  EXPECT_EQ(parse_words({"--time=2ms"}).value()[kTime].value(), std::chrono::milliseconds(2));
  EXPECT_FALSE(parse_words({"--time=soon"}).value()[kTime]);
}

TEST(FlagsTest, ChoicesAreTheirWordsOrFiles) {
  EXPECT_EQ(parse_words({"--speed=fast"}).value()[kSpeed], Speed::fast);
  expect_wrong({"--speed=fasst"}, "expected slow or fast; did you mean 'fast'");
  expect_wrong({"--speed=3"}, "expected slow or fast");
  expect_wrong({"--speed="}, "expected slow or fast");
  EXPECT_EQ(parse_words({"--page=a.html"}).value()[kPage], "a.html");
  expect_wrong({"--page=.html"}, "expected text or FILE.html");
  expect_wrong({"--page=a.htm"}, "expected text or FILE.html");
  EXPECT_EQ(words_of("text|FILE.html|json"), (std::vector<std::string_view>{"text", "json"}));
}

TEST(FlagsTest, WhatIsNoFlagIsRefused) {
  expect_wrong({"-x"}, "unknown flag '-x'");
  expect_wrong({"--fil=a"}, "did you mean '--file'");
  expect_wrong({"--"}, "unknown flag '--'");
  expect_wrong({"--file"}, "needs a value in the same argument: --file=FILE");
  expect_wrong({"--name"}, "needs a value");
}

TEST(FlagsTest, FilesHaveAFlagALine) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("flags", "\xEF\xBB\xBF--file=a\r\n\n  # a comment\n\t--name=b \n--name=c d");
  const Flags flags = parse_words({"--flagfile=" + path, "--name=e"}).value();
  EXPECT_EQ(flags[kFile], "a");
  EXPECT_EQ(flags[kNames], (std::vector<std::string>{"b", "c d", "e"}));
  EXPECT_TRUE(parse_words({"--flagfile=" + folder.write("empty", "")}).value()[kNames].empty());
}

TEST(FlagsTest, FilesThatAreWrongSayWhere) {
  const TemporaryFolder folder;
  expect_wrong({"--flagfile=" + folder.write("bad", "--file=a\n--nmae=b\n")}, "bad:2: unknown flag '--nmae'");
  expect_wrong({"--flagfile=" + folder.write("wide", std::string("-\0-\0", 4))}, "has a zero byte at 1");
  expect_wrong({"--flagfile=" + (folder / "none").string()}, "cannot open flag file ");
  expect_wrong({"--flagfile=" + folder.path().string()}, "is a folder");
  const std::string self = (folder / "self").string();
  folder.write("self", "--flagfile=" + self);
  expect_wrong({"--flagfile=" + self}, "includes itself");
  for (int i = 0; i < 10; ++i)
    folder.write("deep" + std::to_string(i),
                 "--flagfile=" + (folder / ("deep" + std::to_string(i + 1))).string());
  expect_wrong({"--flagfile=" + (folder / "deep0").string()}, "more than 8 deep");
  // One file twice, but not within itself.
  const std::string name = folder.write("name", "--name=x");
  EXPECT_EQ(parse_words({"--flagfile=" + name, "--flagfile=" + name}).value()[kNames].size(), 2u);
}

TEST(FlagsTest, ValuesCanBeChanged) {
  Flags flags = parse_words({"--file=a", "--name=b"}).value();
  flags.change_values([](std::string value) { return value + "!"; });
  EXPECT_EQ(flags[kFile], "a!");
  EXPECT_EQ(flags.given(kNames), std::vector<std::string>{"b!"});
}

}  // namespace
}  // namespace halyard::tools
