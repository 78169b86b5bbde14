// .npy files: headers of all versions and styles, element types, orders of bytes and elements, damaged files.
// tests/test_inputs.py has the same as a user types it.
#include "common/npy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "fixtures.h"

namespace halyard::tools {
namespace {

std::string little_endian_text(size_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

// A file of this version with this header.
std::string file_of(std::string_view header, std::string_view data, int version = 1) {
  return fmt::format("\x93NUMPY{}", std::string{static_cast<char>(version), '\0'}) +
         little_endian_text(header.size(), version == 1 ? 2 : 4) + std::string(header) + std::string(data);
}

std::string header_of(std::string_view descr, std::string_view shape, std::string_view fortran = "False") {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr, fortran, shape);
}

std::string counting(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(i);
  return bytes;
}

class Npy : public testing::Test {
 protected:
  NpyFile open(const std::string& contents) {
    Result<NpyFile> file = NpyFile::open(folder_.write("a.npy", contents));
    EXPECT_TRUE(file);
    return *std::move(file);
  }
  Result<Array> only(const std::string& contents) { return open(contents).next(); }

  // The type and the bytes of the only array, as text.
  std::string text_of(const std::string& contents) {
    const Result<Array> array = only(contents);
    if (!array) return array.error().text;
    std::string text = array->type_text() + " =";
    for (const uint8_t byte : array->bytes) text += fmt::format(" {}", byte);
    return text;
  }

  void refuses(halyard_status_code_t code, std::string_view part, const std::string& contents) {
    const Result<Array> array = only(contents);
    ASSERT_FALSE(array) << contents;
    EXPECT_EQ(array.error().code, code) << array.error().text;
    EXPECT_NE(array.error().text.find(part), std::string::npos) << array.error().text;
  }

  TemporaryFolder folder_;
};

TEST_F(Npy, ElementTypes) {
  struct Case {
    const char* descr;
    const char* expected;
  };
  // Three elements; the bytes count from 0.
  const Case cases[] = {
      {"|i1", "3xsi8 = 0 1 2"},
      {"i1", "3xsi8 = 0 1 2"},
      {">u1", "3xui8 = 0 1 2"},
      {"?", "3xi1 = 0 1 2"},
      {"|b1", "3xi1 = 0 1 2"},
      {"bool", "3xi1 = 0 1 2"},
      {"<i2", "3xsi16 = 0 1 2 3 4 5"},
      {"=i2", "3xsi16 = 0 1 2 3 4 5"},
      {">i2", "3xsi16 = 1 0 3 2 5 4"},
      {"<f2", "3xf16 = 0 1 2 3 4 5"},
      {"float16", "3xf16 = 0 1 2 3 4 5"},
      {"bfloat16", "3xbf16 = 0 1 2 3 4 5"},
      {">u4", "3xui32 = 3 2 1 0 7 6 5 4 11 10 9 8"},
      {">c8", "3xcf64 = 3 2 1 0 7 6 5 4 11 10 9 8 15 14 13 12 19 18 17 16 23 22 21 20"},
      {"V1", "3x*8 = 0 1 2"},
      {"|V2", "3x*16 = 0 1 2 3 4 5"},
      {">V2", "3x*16 = 0 1 2 3 4 5"},
      {"float8_e5m2", "3xf8E5M2 = 0 1 2"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(text_of(file_of(header_of(each.descr, "(3,)"), counting(24))), each.expected) << each.descr;
  EXPECT_EQ(only(file_of(header_of("V31", "(2,)"), counting(62)))->type_name, "*248");
  for (const char* descr : {"V0", "V32", "Vx", "V2x", "V", "<i3", "i", "<", "b", "f8x", "xf8", "i1 "})
    refuses(HALYARD_INVALID_ARGUMENT, fmt::format("dtype '{}'", descr),
            file_of(header_of(descr, "(1,)"), counting(64)));
}

TEST_F(Npy, ReasonsAgainstATypeSayWhatToDo) {
  const std::pair<const char*, const char*> cases[] = {
      {"<U5", "text"},          {"|S3", "text"},       {"a", "text"},      {"|O", "Python objects"},
      {"<M8[ns]", "times"},     {">m8", "times"},      {"<f16", "floats"}, {"<c4", "floats"},
      {"<i3", "no equivalent"}, {"<", "no equivalent"}};
  for (const auto& [descr, part] : cases)
    refuses(HALYARD_INVALID_ARGUMENT, part, file_of(header_of(descr, "(1,)"), counting(64)));
  refuses(
      HALYARD_INVALID_ARGUMENT, "dtype '[('x', [('y', '<f4')])]', a structure of several fields",
      file_of("{'descr': [('x', [('y', '<f4')])], 'fortran_order': False, 'shape': (1,), }", counting(64)));
}

TEST_F(Npy, HeadersOfAllStyles) {
  const char* const headers[] = {
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1), }",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1)}",
      "{\"descr\":\"|u1\",\"fortran_order\":False,\"shape\":(2,1,),}",
      "  {  'shape' :\n( 2L ,\t1L ) , b'fortran_order' : False , u'descr' : u'|u1' , }   \n",
      "{'shape': (2, 1), 'descr': b\"|u1\", 'fortran_order': True}",
  };
  for (const char* header : headers) {
    for (const int version : {1, 2, 3})
      EXPECT_EQ(text_of(file_of(header, counting(2), version)), "2x1xui8 = 0 1") << header;
  }
  EXPECT_EQ(text_of(file_of(header_of("|u1", "()"), counting(1))), "ui8 = 0");
  EXPECT_EQ(text_of(file_of(header_of("|u1", "(0,)"), "")), "0xui8 =");
  EXPECT_EQ(text_of(file_of(header_of("|u1", "(3, 0)", "True"), "")), "3x0xui8 =");
}

TEST_F(Npy, HeadersThatAreNoneAreRefused) {
  const char* const headers[] = {
      "",
      "{",
      "{}",
      "{'descr': '|u1', 'fortran_order': False}",
      "{'descr': '|u1', 'shape': (2,)}",
      "{'fortran_order': False, 'shape': (2,)}",
      "'descr': '|u1', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)",
      "{'descr': '|u1' 'fortran_order': False, 'shape': (2,)}",
      "{'descr' '|u1', 'fortran_order': False, 'shape': (2,)}",
      "{descr: '|u1', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '|u1, 'fortran_order': False, 'shape': (2,)}",
      "{'descr': \"|u1', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': u, 'fortran_order': False, 'shape': (2,)}",
      "{'descr': u",
      "{'descr': '|u1', 'fortran_order': 0, 'shape': (2,)}",
      "{'descr': '|u1', 'fortran_order': TrueFalse, 'shape': (2,)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': 2}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': [2]}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2,}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (-2,)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2 1)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2LL,)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (,)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), 'more': 1}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), 'more':}",
      "{'descr': x|u1x, 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), 'shape': (2,)}",
      "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '|u1', 'fortran_order': False, 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)} x",
      "{'descr': [('x', '<f4'), 'fortran_order': False, 'shape': (2,)}",
  };
  for (const char* header : headers) {
    SCOPED_TRACE(header);
    refuses(HALYARD_INVALID_ARGUMENT, "has an npy header that cannot be read", file_of(header, counting(64)));
  }
}

TEST_F(Npy, TheOrderOfElements) {
  const auto fortran = [&](std::string_view shape, std::string_view descr, size_t bytes) {
    return text_of(file_of(header_of(descr, shape, "True"), counting(bytes)));
  };
  EXPECT_EQ(text_of(file_of(header_of("|u1", "(2, 3)"), counting(6))), "2x3xui8 = 0 1 2 3 4 5");
  EXPECT_EQ(fortran("(2, 3)", "|u1", 6), "2x3xui8 = 0 2 4 1 3 5");
  EXPECT_EQ(fortran("(2, 2)", "<u2", 8), "2x2xui16 = 0 1 4 5 2 3 6 7");
  EXPECT_EQ(fortran("(2, 2)", ">u2", 8), "2x2xui16 = 1 0 5 4 3 2 7 6");
  EXPECT_EQ(fortran("(2, 2)", "|V3", 12), "2x2x*24 = 0 1 2 6 7 8 3 4 5 9 10 11");
  EXPECT_EQ(fortran("(2, 2, 2)", "|u1", 8), "2x2x2xui8 = 0 4 2 6 1 5 3 7");
  EXPECT_EQ(fortran("(2, 1, 3)", "|u1", 6), "2x1x3xui8 = 0 2 4 1 3 5");
  EXPECT_EQ(fortran("(4,)", "|u1", 4), "4xui8 = 0 1 2 3");
}

TEST_F(Npy, VersionsAndSizesOfHeaders) {
  const std::string header = header_of("|u1", "(2,)");
  for (const int version : {0, 4, 255})
    refuses(HALYARD_INVALID_ARGUMENT, fmt::format("npy version {}.0; expected 1.0, 2.0 or 3.0", version),
            file_of(header, counting(2), version));
  std::string minor = file_of(header, counting(2));
  minor[7] = 1;
  refuses(HALYARD_INVALID_ARGUMENT, "npy version 1.1", minor);
  const std::string blanks((1 << 20) - header.size(), ' ');
  EXPECT_EQ(text_of(file_of(blanks + header, counting(2), 2)), "2xui8 = 0 1");
  refuses(HALYARD_INVALID_ARGUMENT, "header of 1048577 bytes; expected at most 1048576",
          file_of(" " + blanks + header, counting(2), 2));
  // All four bytes of the length count.
  EXPECT_EQ(text_of(file_of(std::string(0x1234, ' ') + header, counting(2), 3)), "2xui8 = 0 1");
}

TEST_F(Npy, FilesThatAreCutOff) {
  const std::string header = header_of("|u1", "(2,)");
  for (const int version : {1, 2}) {
    const std::string whole = file_of(header, counting(2), version);
    for (size_t size = 1; size < 6; ++size)
      refuses(HALYARD_INVALID_ARGUMENT, "is not an npy file", whole.substr(0, size));
    for (size_t size = 6; size < whole.size() - 2; ++size)
      refuses(HALYARD_OUT_OF_RANGE, "ends within the npy header", whole.substr(0, size));
    for (size_t size = whole.size() - 2; size < whole.size(); ++size)
      refuses(HALYARD_OUT_OF_RANGE, "ends within an array of 2xui8 (2 bytes)", whole.substr(0, size));
  }
  refuses(HALYARD_OUT_OF_RANGE, "has no further array", "");
}

TEST_F(Npy, SeveralArrays) {
  NpyFile file =
      open(file_of(header_of("|u1", "(2,)"), counting(2)) + file_of(header_of("<i2", "()"), counting(2), 2));
  EXPECT_EQ(file.next()->type_text(), "2xui8");
  EXPECT_FALSE(file.at_end());
  EXPECT_EQ(file.next()->type_text(), "si16");
  EXPECT_TRUE(file.at_end());
  EXPECT_EQ(file.next().error().code, HALYARD_OUT_OF_RANGE);
}

std::string header_text(const std::string& type, const std::vector<int64_t>& shape) {
  const Result<std::vector<uint8_t>> header = npy_header(type, shape);
  return header ? std::string(header->begin(), header->end()) : header.error().text;
}

TEST_F(Npy, WrittenHeaders) {
  const std::pair<std::vector<int64_t>, const char*> shapes[] = {
      {{}, "()"}, {{3}, "(3,)"}, {{2, 3}, "(2, 3)"}, {{1, 0, 4}, "(1, 0, 4)"}};
  for (const auto& [shape, text] : shapes) {
    const std::string header = header_text("f32", shape);
    EXPECT_EQ(header.size() % 64, 0u);
    EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    EXPECT_EQ(header.substr(8, 2), little_endian_text(header.size() - 10, 2));
    std::string start = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}", text);
    EXPECT_EQ(header.substr(10, start.size()), start);
    EXPECT_EQ(header.find_first_not_of(' ', 10 + start.size()), header.size() - 1);
    EXPECT_EQ(header.back(), '\n');
  }
  // No more than needed, and a long one.
  EXPECT_EQ(header_text("f32", {3}).size(), 128u);
  EXPECT_EQ(header_text("f32", std::vector<int64_t>(100, 7)).size(), 384u);
  const std::string longest = header_text("f32", std::vector<int64_t>(5000, 7));
  EXPECT_EQ(longest.size() % 64, 0u);
  EXPECT_EQ(longest.substr(8, 2), little_endian_text(longest.size() - 10, 2));
  EXPECT_EQ(text_of(header_text("ui8", std::vector<int64_t>(8, 1)) + "x"), "1x1x1x1x1x1x1x1xui8 = 120");
  const std::pair<const char*, const char*> types[] = {
      {"i8", "'|i1'"},  {"si8", "'|i1'"},  {"ui8", "'|u1'"},  {"i1", "'|b1'"},    {"i16", "'<i2'"},
      {"i64", "'<i8'"}, {"ui32", "'<u4'"}, {"f64", "'<f8'"},  {"f16", "'<f2'"},   {"bf16", "'<V2'"},
      {"*8", "'|V1'"},  {"*24", "'|V3'"},  {"cf64", "'<c8'"}, {"f8E5M2", "'|V1'"}};
  for (const auto& [type, descr] : types)
    EXPECT_NE(header_text(type, {1}).find(descr), std::string::npos) << type << header_text(type, {1});
  for (const char* type : {"i4", "*0", "*7", "*12", "*", "x", ""})
    EXPECT_EQ(npy_header(type, {1}).error().code, HALYARD_UNIMPLEMENTED) << type;
}

TEST_F(Npy, DeclaredTypes) {
  const std::pair<const char*, const char*> same[] = {{"f32", "f32"},   {"si32", "i32"}, {"ui32", "i32"},
                                                      {"si32", "si32"}, {"i1", "i1"},    {"*16", "bf16"},
                                                      {"*8", "f8E5M2"}, {"ui8", "i8"}};
  for (const auto& [type, declared] : same) EXPECT_TRUE(npy_holds(type, declared)) << type << declared;
  const std::pair<const char*, const char*> others[] = {
      {"f32", "i32"}, {"si32", "ui32"}, {"si32", "i64"}, {"si132", "i32"}, {"xi32", "i32"},
      {"si1", "i1"},  {"*8", "bf16"},   {"*16", "f16"},  {"i32", "si32"},  {"bf16", "*16"}};
  for (const auto& [type, declared] : others) EXPECT_FALSE(npy_holds(type, declared)) << type << declared;
}

}  // namespace
}  // namespace halyard::tools
