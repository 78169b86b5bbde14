// .npy files: what numpy and others write comes back; hostile files are refused with a reason.
#include "common/npy.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fixtures.h"

namespace halyard::tools {
namespace {

// A file of this version with a header and data.
std::string npy(std::string_view header, std::string_view data, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(header.size() >> 8 * i);
  return file + std::string(header) + std::string(data);
}
std::string header_of(std::string_view descr, std::string_view shape, std::string_view order = "False") {
  return fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}", descr, order, shape);
}

class NpyTest : public testing::Test {
 public:
  Result<Array> read(std::string_view content) {
    NpyFile file = NpyFile::open(folder_.write("array.npy", content)).value();
    return file.next();
  }
  void expect_error(std::string_view content, std::string_view part) {
    const Result<Array> array = read(content);
    ASSERT_FALSE(array) << part;
    EXPECT_NE(array.error().text.find(part), std::string::npos)
        << array.error().text << "; expected " << part;
    EXPECT_NE(array.error().text.find("array.npy'"), std::string::npos) << array.error().text;
  }
  static std::string bytes(const Array& array) { return {array.bytes.begin(), array.bytes.end()}; }

  const TemporaryFolder folder_;
};

TEST_F(NpyTest, EveryVersionAndSpelling) {
  for (const int version : {1, 2, 3}) {
    const auto array = read(npy(header_of("'<u2'", "(2,)"), "abcd", version));
    ASSERT_TRUE(array) << version << array.error().text;
    EXPECT_EQ(array->type_text(), "2xui16");
    EXPECT_EQ(bytes(*array), "abcd");
  }
  for (const std::string_view header : {
           "{'descr': '|u1', 'fortran_order': False, 'shape': (2L, 1L)}",    // Python 2
           "{ \"shape\" :(2,1),\n'fortran_order':False , 'descr':u'u1', }",  // any order, quotes, blanks
           "{'descr': b'uint8', 'fortran_order': False, 'shape': (2, 1,), }  \n",
       }) {
    const auto array = read(npy(header, "xy"));
    ASSERT_TRUE(array) << header << array.error().text;
    EXPECT_EQ(array->type_text(), "2x1xui8") << header;
  }
  const auto scalar = read(npy(header_of("'<f8'", "()"), "12345678"));
  ASSERT_TRUE(scalar);
  EXPECT_EQ(scalar->type_text(), "f64");
  const auto empty = read(npy(header_of("'<f4'", "(3, 0)"), ""));
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->type_text(), "3x0xf32");
}

TEST_F(NpyTest, OtherOrdersBecomeLittleEndianAndC) {
  EXPECT_EQ(bytes(read(npy(header_of("'>u2'", "(2,)"), "badc")).value()), "abcd");
  EXPECT_EQ(bytes(read(npy(header_of("'>c8'", "(1,)"), "dcbahgfe")).value()), "abcdefgh");
  EXPECT_EQ(bytes(read(npy(header_of("'>u1'", "(2,)"), "ab")).value()), "ab");
  EXPECT_EQ(bytes(read(npy(header_of("'|u1'", "(2, 3)", "True"), "adbecf")).value()), "abcdef");
  EXPECT_EQ(bytes(read(npy(header_of("'<u2'", "(2, 2)", "True"), "aabbccdd")).value()), "aaccbbdd");
  EXPECT_EQ(bytes(read(npy(header_of("'>u2'", "(2, 2)", "True"), "12345678")).value()), "21654387");
  EXPECT_EQ(bytes(read(npy(header_of("'|u1'", "(3,)", "True"), "abc")).value()), "abc");
  EXPECT_EQ(bytes(read(npy(header_of("'|u1'", "(0, 3)", "True"), "")).value()), "");
}

TEST_F(NpyTest, TypesWithoutACodeAreOpaqueOrNamed) {
  EXPECT_EQ(read(npy(header_of("'|V3'", "(2,)"), "abcdef"))->type_name, "*24");
  EXPECT_EQ(read(npy(header_of("'bfloat16'", "(1,)"), "ab"))->type_name, "bf16");
  EXPECT_EQ(read(npy(header_of("'|b1'", "(1,)"), "a"))->type_name, "i1");
  EXPECT_EQ(read(npy(header_of("'?'", "(1,)"), "a"))->type_name, "i1");
  EXPECT_TRUE(npy_holds("f32", "f32"));
  EXPECT_TRUE(npy_holds("si32", "i32"));
  EXPECT_TRUE(npy_holds("ui32", "i32"));
  EXPECT_TRUE(npy_holds("*16", "bf16"));
  EXPECT_FALSE(npy_holds("*16", "f16"));
  EXPECT_FALSE(npy_holds("*8", "bf16"));
  EXPECT_FALSE(npy_holds("si64", "i32"));
  EXPECT_FALSE(npy_holds("xi32", "i32"));
  EXPECT_FALSE(npy_holds("i1", "ui8"));
  EXPECT_FALSE(npy_holds("f32", "nothing"));
}

TEST_F(NpyTest, HeadersThatCannotBeRead) {
  for (const std::string_view header : {
           "",
           "{",
           "{}",
           "{'descr'}",
           "{'descr': }",
           "{'descr': '<f4}",
           "{descr: '<f4'}",
           "{'descr': [('x', '<f4'",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'fortran_order': False, 'shape': (1,)}",
           "{'descr': '<f4', 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}",
           "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
           "{'descr': '', 'fortran_order': False, 'shape': (1,)}",
           "{'descr': u",
           "{'descr': 7}",
       })
    expect_error(npy(header, "abcd"), "header that cannot be read");
}

TEST_F(NpyTest, TypesOfNoTensorSayWhy) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"[('x', '<f4'), ('y', [('z', '<f4')])]", "a structure of several fields"},
      {"'<U5'", "text"},
      {"'|S5'", "text"},
      {"'a5'", "text"},
      {"'|O'", "Python objects"},
      {"'<M8[ns]'", "times"},
      {"'<m8[s]'", "times"},
      {"'<f16'", "floats of a width"},
      {"'<c32'", "floats of a width"},
      {"'<i3'", "no equivalent element type"},
      {"'|V0'", "no equivalent element type"},
      {"'|V32'", "no equivalent element type"},
      {"'|V99999999999'", "no equivalent element type"},
      {"'V'", "no equivalent element type"},
      {"'<'", "no equivalent element type"},
      {"'<=>|'", "no equivalent element type"},
  };
  for (const auto& [descr, part] : cases) expect_error(npy(header_of(descr, "(1,)"), "abcd"), part);
}

TEST_F(NpyTest, FilesThatEndEarlyOrAreNoArrays) {
  const std::string whole = npy(header_of("'<f4'", "(2,)"), "abcdefgh");
  for (size_t size = 0; size < whole.size(); ++size) {
    const Result<Array> array = read(std::string_view(whole).substr(0, size));
    ASSERT_FALSE(array) << size;
    const bool is_npy = size == 0 || size >= 6;
    EXPECT_EQ(array.error().code, is_npy ? HALYARD_OUT_OF_RANGE : HALYARD_INVALID_ARGUMENT) << size;
  }
  expect_error("PK\3\4", "is not an npy file");
  for (const int version : {0, 4, 255}) expect_error(npy("", "", version), "expected 1.0, 2.0 or 3.0");
  std::string minor = whole;
  minor[7] = 1;
  expect_error(minor, "npy version 1.1");
  std::string large = npy("", "", 2);
  large[10] = 1;  // 16 MiB of header
  large[11] = 1;
  expect_error(large, "expected at most 1048576");
  // More than there is, and more than there can be.
  expect_error(npy(header_of("'<f4'", "(1000000000000,)"), "abcd"), "cut off");
  EXPECT_FALSE(read(npy(header_of("'<f8'", "(9223372036854775807, 9223372036854775807)"), "abcd")));
}

TEST_F(NpyTest, ArraysFollowEachOther) {
  const std::string one = npy(header_of("'|u1'", "(1,)"), "a"), two = npy(header_of("'|u1'", "(2,)"), "bc");
  NpyFile file = NpyFile::open(folder_.write("two.npy", one + two)).value();
  EXPECT_FALSE(file.at_end());
  EXPECT_EQ(bytes(file.next().value()), "a");
  EXPECT_FALSE(file.at_end());
  EXPECT_EQ(bytes(file.next().value()), "bc");
  EXPECT_TRUE(file.at_end());
  const Result<Array> third = file.next();
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, HALYARD_OUT_OF_RANGE);
}

TEST_F(NpyTest, WhatIsWrittenIsRead) {
  const std::pair<std::string, std::vector<int64_t>> cases[] = {
      {"f32", {}},       {"si8", {3}}, {"ui64", {1, 2}}, {"cf64", {1}},
      {"i1", {2, 1, 1}}, {"*24", {1}}, {"f16", {0}}};
  for (const auto& [type, shape] : cases) {
    const auto header = npy_header(type, shape);
    ASSERT_TRUE(header) << type;
    EXPECT_EQ(header->size() % 64, 0u);
    std::string file(header->begin(), header->end());
    file += std::string(64, 'x');
    const auto array = read(file);
    ASSERT_TRUE(array) << type << array.error().text;
    EXPECT_EQ(array->type_name, type);
    EXPECT_EQ(array->shape, shape);
  }
  for (const char* const none : {"i4", "*0", "*12", "*x", "text", ""}) {
    const auto header = npy_header(none, {1});
    ASSERT_FALSE(header) << none;
    EXPECT_EQ(header.error().code, HALYARD_UNIMPLEMENTED);
  }
}

}  // namespace
}  // namespace halyard::tools
