// Arguments from the texts of --input, without devices: numbers, tensors, arrays and bytes of files.
// tests/test_inputs.py has the same as a user types it.
#include "common/inputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/program_flags.h"
#include "fixtures.h"

namespace halyard::tools {
namespace {

constexpr FlagGroup kInputGroups[] = {{"Program", kProgramFlags}};
constexpr ToolDescription kInputTool = {"tool", "tool", "A tool.", kInputGroups, ""};

std::string shown(const Value& value) {
  switch (value.kind()) {
    case HALYARD_VALUE_I32:
      return fmt::format("i32 {}", value.as<int32_t>().value());
    case HALYARD_VALUE_I64:
      return fmt::format("i64 {}", value.as<int64_t>().value());
    case HALYARD_VALUE_F32:
      return fmt::format("f32 {}", value.as<float>().value());
    case HALYARD_VALUE_F64:
      return fmt::format("f64 {}", value.as<double>().value());
    case HALYARD_VALUE_NULL:
      return "null";
    default:
      break;
  }
  const auto text = Tensor(share, value.object().get()).text(100);
  return text ? *text : "buffer";
}

// The arguments, one a line, or the message.
std::string given(const std::vector<std::string>& texts, std::string_view types,
                  Described described = Described::input) {
  const Result<Arguments> arguments = parse_inputs(texts, types, Device(), flag::input, described);
  if (!arguments) return arguments.error().text;
  std::string all;
  for (size_t i = 0; i < arguments->values().size(); ++i)
    all += (i == 0 ? "" : "\n") + shown(arguments->values()[i]) +
           (arguments->origin(i) == Arguments::Origin::array ? " (array)" : "");
  return all;
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Inputs, NumbersHaveTheTypesOfTheFunction) {
  EXPECT_EQ(given({"5", "-6", "2.5", "-0.25"}, "iIfF"), "i32 5\ni64 -6\nf32 2.5\nf64 -0.25");
  EXPECT_EQ(given({"0x1F"}, "i"), "i32 31");
  EXPECT_EQ(given({}, "ii"), "") << "fewer are for the call to refuse";
  const std::pair<const char*, const char*> kinds[] = {
      {"i", "an integer of 32 bits"}, {"I", "an integer of 64 bits"}, {"f", "a number"}, {"F", "a number"}};
  for (const auto& [type, expectation] : kinds) {
    EXPECT_HAS(given({"five"}, type),
               fmt::format("--input=five: input 0 of the function: expected {}", expectation));
    EXPECT_HAS(given({" "}, type), fmt::format("empty text; expected {}", expectation));
  }
  EXPECT_HAS(given({"1", "x"}, "ii"), "input 1 of the function");
  EXPECT_HAS(given({"x"}, "i", Described::result), "result 0 of the function");
  EXPECT_HAS(given({""}, "r"), "empty text; expected a tensor");
}

TEST(Inputs, BlanksAndOnePairOfQuotesAreRemoved) {
  for (const char* text : {" 5\t", "'5'", "\"5\"", " ' 5 ' ", "\r\n5\n"})
    EXPECT_EQ(given({text}, "i"), "i32 5") << text;
  for (const char* text : {"'5", "5'", "'5\"", "''5''", "'", "5 5"})
    EXPECT_HAS(given({text}, "i"), "expected an integer") << text;
  for (const char* text : {"", " ", "''", "\"\"", "' '"})
    EXPECT_HAS(given({text}, "i"), "empty text") << text;
}

TEST(Inputs, OneMoreThanTheFunctionHasIsRefused) {
  EXPECT_EQ(given({"1", "2"}, "i"), "--input=2: the function has 1 input, and this is one more; remove it");
  EXPECT_HAS(given({"1", "2", "3"}, "ii"), "the function has 2 inputs, and this is one more");
  EXPECT_HAS(given({"1"}, ""), "the function has 0 inputs");
  EXPECT_HAS(given({"1"}, "", Described::result), "the function has 0 results");
}

TEST(Inputs, NothingIsZeroOfTheType) {
  for (const char* none : {"(null)", "(ignored)"})
    EXPECT_EQ(given({none, none, none, none, none}, "iIfFr"), "i32 0\ni64 0\nf32 0\nf64 0\nnull") << none;
}

TEST(Inputs, TensorsAsTextAndTheirBuffers) {
  EXPECT_EQ(given({"2xi32=1,2", "3xf32=7"}, "rr"), "2xi32=1 2\n3xf32=7 7 7");
  EXPECT_EQ(given({"&2xi32=1,2"}, "r"), "buffer");
  EXPECT_HAS(given({"2xi32=1,2,3"}, "r"), "input 0 of the function");
  EXPECT_HAS(given({"5"}, "r"), "input 0 of the function");
  EXPECT_EQ(given({"2xi32="}, "r"), "2xi32=0 0") << "no elements are zeros";
}

class InputFiles : public testing::Test {
 protected:
  // An .npy file of vectors of bytes.
  static std::string array(std::string_view bytes, int64_t count = -1) {
    const std::string header = fmt::format("{{'descr': '|u1', 'fortran_order': False, 'shape': ({},), }}\n",
                                           count < 0 ? static_cast<int64_t>(bytes.size()) : count);
    return fmt::format("\x93NUMPY{}", std::string{'\1', '\0'}) + static_cast<char>(header.size()) + '\0' +
           header + std::string(bytes);
  }
  const TemporaryFolder folder_;
  const std::string two_ = folder_.write("two.npy", array("\1\2") + array("\3"));
  const std::string raw_ = folder_.write("raw.bin", "\1\2\3\4\5");
};

TEST_F(InputFiles, OneArrayTheNextOneOrAll) {
  EXPECT_EQ(given({"@" + two_}, "r"), "2xui8=1 2 (array)");
  EXPECT_EQ(given({"@" + two_, "+" + two_}, "rr"), "2xui8=1 2 (array)\n1xui8=3 (array)");
  EXPECT_EQ(given({"@" + two_, "@" + two_}, "rr"), "2xui8=1 2 (array)\n2xui8=1 2 (array)")
      << "from the start";
  EXPECT_EQ(given({"*" + two_}, "rr"), "2xui8=1 2 (array)\n1xui8=3 (array)");
  EXPECT_EQ(given({"7", "*" + two_, "8"}, "irri"), "i32 7\n2xui8=1 2 (array)\n1xui8=3 (array)\ni32 8");
  EXPECT_EQ(given({"&@" + two_}, "r"), "buffer (array)");
  EXPECT_HAS(given({"@" + two_, "+" + two_, "+" + two_}, "rrr"), "input 2 of the function");
}

TEST_F(InputFiles, WhatDoesNotContinueAFileIsRefused) {
  const std::string other = folder_.write("other.npy", array("\1"));
  EXPECT_HAS(given({"+" + two_}, "r"),
             "continues the npy file that was opened last, which is none; write '@" + two_);
  EXPECT_HAS(given({"@" + other, "+" + two_}, "rr"), "which is '" + other + "'; write");
  EXPECT_HAS(given({"*/nonexistent.npy"}, "r"), "--input=*/nonexistent.npy");
  EXPECT_HAS(given({"@/nonexistent.npy"}, "r"), "/nonexistent.npy");
  EXPECT_HAS(given({"*" + two_}, "r"), "the file has more arrays than the function has inputs (1)");
  EXPECT_HAS(given({"*" + two_}, "r", Described::result), "more arrays than the function has results (1)");
  EXPECT_HAS(given({"*" + two_}, "ri"),
             "input 1 of the function is an integer of 32 bits, such as 5 or 0x1F, not a tensor");
  EXPECT_HAS(given({"*" + raw_}, "r"), raw_);
}

TEST_F(InputFiles, BytesOfADeclaredType) {
  EXPECT_EQ(given({"2xi8=@" + raw_}, "r"), "2xi8=1 2");
  EXPECT_EQ(given({"2xi8=@" + raw_, "3xi8=+" + raw_}, "rr"), "2xi8=1 2\n3xi8=3 4 5");
  EXPECT_EQ(given({"2xi8=@" + raw_, "2xi8=@" + raw_}, "rr"), "2xi8=1 2\n2xi8=1 2");
  EXPECT_EQ(given({"5xi8=+" + raw_}, "r"), "5xi8=1 2 3 4 5") << "from the start, if it was not read before";
  EXPECT_EQ(given({"&2xi8=@" + raw_}, "r"), "buffer");
  EXPECT_HAS(given({"6xi8=@" + raw_}, "r"), "has 5 bytes from byte 0 on, but 6xi8 needs 6");
  EXPECT_HAS(given({"2xi8=@" + raw_, "4xi8=+" + raw_}, "rr"), "has 3 bytes from byte 2 on, but 4xi8 needs 4");
  EXPECT_HAS(given({"2xi8=@/nonexistent"}, "r"), "/nonexistent");
  EXPECT_HAS(given({"2xwhat=@" + raw_}, "r"), "input 0 of the function");
  EXPECT_HAS(given({"1xi8=@" + folder_.write("named.npy", "no npy")}, "r"), "has the name of an npy file");
}

TEST_F(InputFiles, ADeclaredTypeMustBeThatOfTheArray) {
  EXPECT_EQ(given({"2xui8=@" + two_, "1xui8=+" + two_}, "rr"), "2xui8=1 2\n1xui8=3");
  for (const char* type : {"3xui8", "2xi16", "1x2xui8"})
    EXPECT_HAS(given({std::string(type) + "=@" + two_}, "r"), "is an npy file of") << type;
  EXPECT_HAS(given({"2xui8=@" + two_, "2xui8=+" + two_}, "rr"), "but the declared type is 2xui8");
}

TEST_F(InputFiles, OfAFolderAreSortedByNumbers) {
  const std::filesystem::path arrays = folder_ / "arrays";
  std::filesystem::create_directory(arrays);
  const char* const names[] = {"a.npy",   "a.npy.npy", "a2.npy",     "a002b.npy", "a9.npy",
                               "a10.npy", "a10b2.npy", "a10b10.npy", "a11.npy",   "a100.npy",
                               "ab.npy",  "b.npy",     "b1.npy"};
  for (size_t i = std::size(names); i-- > 0;) folder_.write(std::string("arrays/") + names[i], array("\1"));
  folder_.write("arrays/notes.txt", "no array");
  std::string sorted;
  const std::vector<std::string> texts = arrays_in(arrays).value();
  for (const std::string& text : texts) sorted += text.substr(arrays.string().size() + 2) + " ";
  EXPECT_EQ(sorted,
            "a.npy a.npy.npy a2.npy a002b.npy a9.npy a10.npy a10b2.npy a10b10.npy a11.npy a100.npy ab.npy "
            "b.npy b1.npy ");
  EXPECT_HAS(arrays_in(folder_ / "nothing").error().text, "cannot read the folder");
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_HAS(arrays_in(folder_ / "empty").error().text, "the folder has no file that ends in .npy");
}

TEST_F(InputFiles, ComeFromOneFlag) {
  const std::filesystem::path arrays = folder_ / "arrays";
  std::filesystem::create_directory(arrays);
  folder_.write("arrays/0.npy", array("\1"));
  const auto read = [&](const std::vector<std::string>& words) {
    std::vector<const char*> line = {"tool"};
    for (const std::string& word : words) line.push_back(word.c_str());
    const Flags flags = Flags::parse(kInputTool, static_cast<int>(line.size()), line.data()).value();
    const Result<Arguments> arguments = given_inputs(flags, "r", Device());
    return arguments ? fmt::format("{} arguments", arguments->values().size()) : arguments.error().text;
  };
  EXPECT_EQ(read({"--inputs_from=" + arrays.string()}), "1 arguments");
  EXPECT_EQ(read({"--input=1xi8=1"}), "1 arguments");
  EXPECT_HAS(read({"--input=1xi8=1", "--inputs_from=" + arrays.string()}),
             "found both --input and --inputs_from");
  folder_.write("arrays/1.npy", array("\1"));
  EXPECT_HAS(read({"--inputs_from=" + arrays.string()}), "--inputs_from=*" + (arrays / "1.npy").string());
}

TEST(Inputs, MissingOnesAreNamed) {
  halyard_function_description_t function = {};
  function.name = {"f", 1};
  EXPECT_TRUE(check_inputs(function, "", Arguments()));
  const Result<> none = check_inputs(function, "ii", Arguments());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text, "expected 2 arguments, found 0; function 'f' takes one --input for each");
  function.declaration = {"f(a, b)", 7};
  EXPECT_HAS(check_inputs(function, "ii", Arguments()).error().text, "for each: f(a, b)");
  Arguments one;
  one.add(Value(1));
  EXPECT_TRUE(check_inputs(function, "i", one));
}

}  // namespace
}  // namespace halyard::tools
