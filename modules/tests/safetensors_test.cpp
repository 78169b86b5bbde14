// The reader of .safetensors files: the header, hostile input.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "modules/parameter_archive.h"
#include "testing.h"

namespace halyard::modules {
namespace {

std::vector<uint8_t> file_of(std::string_view header, size_t data_size) {
  const uint64_t size = header.size();
  std::vector<uint8_t> bytes(sizeof size + header.size());
  std::memcpy(bytes.data(), &size, sizeof size);
  std::ranges::copy(header, bytes.begin() + sizeof size);
  for (size_t i = 0; i < data_size; ++i) bytes.push_back(static_cast<uint8_t>(i));
  return bytes;
}
Result<ParameterEntries> read(std::vector<uint8_t> bytes) {
  return read_safetensors(Bytes::own(std::move(bytes)), "m.safetensors");
}

constexpr std::string_view kExample = R"( {"__metadata__": {"format": "pt", "deep": [1, {"a": []}, "]"]},
  "layer/w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
  "quoted\"n": {"data_offsets" : [24 ,26 ], "shape":[], "dtype":"I16"}, "none": {"data_offsets": [3,3]} }   )";

TEST(Safetensors, NamesAndBytes) {
  const auto entries = ASSERT_VALUE(read(file_of(kExample, 26)));
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].first, "layer/w");
  EXPECT_EQ(entries[0].second.length, 24u);
  EXPECT_EQ(entries[0].second.bytes[7], 7);
  EXPECT_EQ(entries[1].first, "quoted\"n") << "names are JSON strings";
  EXPECT_EQ(entries[0].second.type, "F32 [2, 3]");
  EXPECT_EQ(entries[1].second.length, 2u);
  EXPECT_EQ(entries[1].second.bytes[0], 24);
  EXPECT_EQ(entries[2].second.length, 0u);
}

// Members that a later version of the format may have, of any kind, before and after the known ones.
TEST(Safetensors, UnknownMembersAreSkipped) {
  const auto entries = ASSERT_VALUE(read(
      file_of(R"({"t": {"new": [1, [2], {"dtype": 3}], "dtype": "U8", "more": {"shape": [7]}, "shape": [2],
                   "data_offsets": [0, 2], "last": 5}})",
              2)));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].second.type, "U8 [2]");
}

TEST(Safetensors, ShapesOfManyDimensions) {
  const auto with_dimensions = [](size_t count) {
    std::string shape;
    for (size_t i = 0; i < count; ++i) shape += i == 0 ? "1" : ", 1";
    return read(file_of(
        fmt::format(R"({{"t": {{"dtype": "U8", "shape": [{}], "data_offsets": [0, 1]}}}})", shape), 1));
  };
  EXPECT_OK(with_dimensions(64));
  EXPECT_FAILS(INVALID_ARGUMENT, "more than 64 dimensions", with_dimensions(65));
  EXPECT_FAILS(INVALID_ARGUMENT, "has a shape with elements",
               read(file_of(R"({"t": {"dtype": "U8", "shape": [1.5], "data_offsets": [0, 1]}})", 1)));
}

TEST(Safetensors, NothingInIt) {
  const auto entries = ASSERT_VALUE(read(file_of("{}", 0)));
  EXPECT_TRUE(entries.empty());
}

TEST(Safetensors, Errors) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "invalid JSON"},
      {"[]", "expected an object"},
      {"7", "expected an object"},
      {"{", "invalid JSON"},
      {"{\"a", "invalid JSON"},
      {"{\"a\\", "invalid JSON"},
      {"{\"a\" 1}", "invalid JSON"},
      {"{\"a\": 1}", "'a' is not an object"},
      {"{\"a\": []}", "'a' is not an object"},
      {"{\"a\": {}}", "no data_offsets"},
      {"{\"a\": {\"data_offsets\": 4}}", "not a list of numbers"},
      {"{\"a\": {\"data_offsets\": {}}}", "not a list of numbers"},
      {"{\"a\": {\"data_offsets\": [-1, 4]}}", "whole numbers"},
      {"{\"a\": {\"data_offsets\": [0.0, 4]}}", "whole numbers"},
      {"{\"a\": {\"data_offsets\": [0, 4e0]}}", "whole numbers"},
      {"{\"a\": {\"data_offsets\": [[0, 4]]}}", "whole numbers"},
      {"{\"a\": {\"data_offsets\": [0, \"4\"]}}", "whole numbers"},
      {"{\"a\": {\"data_offsets\": [0, 99999999999999999999]}}", "whole numbers"},
      {"{\"a\": {\"data_offsets\": [0, 4, 8]}}", "has 3 data_offsets"},
      {"{\"a\": {\"data_offsets\": [0]}}", "has 1 data_offsets"},
      {"{\"a\": {\"data_offsets\": [0, 9]}}", "'a' is at [0, 9) of 8 bytes"},
      {"{\"a\": {\"data_offsets\": [5, 4]}}", "'a' is at [5, 4)"},
      {"{\"a\": {\"dtype\": 7, \"data_offsets\": [0, 4]}}", "dtype that is not a string"},
      {"{\"a\": {\"shape\": \"4\", \"data_offsets\": [0, 4]}}", "not a list of numbers"},
      {"{\"a\": {\"shape\": , \"data_offsets\": [0, 4]}}", "invalid JSON"},
      {"{\"a\": {\"data_offsets\": [0, 4]},}", "invalid JSON"},
      {"{} x", "invalid JSON"},
      {"{}{}", "invalid JSON"},
      {std::string_view("{}\0 x", 5), "invalid JSON"},
      {std::string_view("{}\0", 3), "invalid JSON"},
      {std::string_view("\0{}", 3), "invalid JSON"},
      {"{\"\xFF\": {\"data_offsets\": [0, 4]}}", "invalid JSON"},
      {"{\"\\ud800\": {\"data_offsets\": [0, 4]}}", "invalid JSON"},
      {"{\"__metadata__\": {}, \"__metadata__\": {}}", "twice"},
      {"{\"a\": {\"data_offsets\": [0, 4], \"data_offsets\": [4, 8]}}", "'a' has data_offsets twice"},
      {"{\"a\": {\"dtype\": \"U8\", \"dtype\": \"F32\", \"data_offsets\": [4, 8]}}", "'a' has dtype twice"},
      {"{\"a\": {\"data_offsets\": [0, 4]}, \"a\": {\"data_offsets\": [4, 8]}}", "the name 'a'"},
      {"{\"a\": {\"data_offsets\": [0, 4]}, \"\\u0061\": {\"data_offsets\": [4, 8]}}", "the name 'a'"},
  };
  for (const auto& [header, part] : cases) {
    const auto entries = read(file_of(header, 8));
    EXPECT_FAILS(INVALID_ARGUMENT, part, entries) << header;
    EXPECT_FAILS(INVALID_ARGUMENT, "m.safetensors", entries) << header;
  }
  std::string nested = "{\"__metadata__\": ";
  nested.append(100000, '[');
  EXPECT_FAILS(INVALID_ARGUMENT, "nested", read(file_of(nested, 8)));
}

std::string tensor(std::string_view type, std::string_view shape, size_t size) {
  return fmt::format(R"({{"a": {{"dtype": "{}", "shape": {}, "data_offsets": [0, {}]}}}})", type, shape,
                     size);
}

TEST(Safetensors, TheBytesAreThoseOfTypeAndShape) {
  const std::tuple<std::string_view, std::string_view, size_t> right[] = {
      {"BOOL", "[3]", 3},    {"U8", "[3]", 3},      {"I8", "[3]", 3},
      {"F8_E4M3", "[3]", 3}, {"F8_E5M2", "[3]", 3}, {"F8_E8M0", "[3]", 3},
      {"I16", "[3]", 6},     {"U16", "[3]", 6},     {"F16", "[3]", 6},
      {"BF16", "[3]", 6},    {"I32", "[3]", 12},    {"U32", "[3]", 12},
      {"F32", "[3]", 12},    {"C64", "[3]", 24},    {"F64", "[3]", 24},
      {"I64", "[3]", 24},    {"U64", "[3]", 24},    {"F4", "[2, 3]", 3},
      {"F6_E2M3", "[4]", 3}, {"F6_E3M2", "[4]", 3}, {"F32", "[]", 4},
      {"F32", "[0, 7]", 0},  {"F32", "[2, 2]", 16}, {"F64", "[18446744073709551615, 4, 0]", 0},
  };
  for (const auto& [type, shape, size] : right) {
    EXPECT_TRUE(read(file_of(tensor(type, shape, size), 64))) << type << shape;
    for (const size_t other : {size + 1, size - 1, 2 * size + 8})
      if (other <= 64) {
        const auto entries = read(file_of(tensor(type, shape, other), 64));
        EXPECT_FAILS(INVALID_ARGUMENT, "'a' has ", entries) << type << shape << other;
        EXPECT_FAILS(INVALID_ARGUMENT, type, entries) << type << shape << other;
      }
  }
  EXPECT_FAILS(INVALID_ARGUMENT, "64 bits", read(file_of(tensor("F32", "[18446744073709551615, 2]", 4), 64)));
  const auto wraps = read(file_of(tensor("F64", "[4611686018427387904, 4]", 0), 64));  // 2^64 elements
  ASSERT_FALSE(wraps);
  EXPECT_FAILS(INVALID_ARGUMENT, "12 bits", read(file_of(tensor("F4", "[3]", 2), 64)));
}

TEST(Safetensors, UnknownTypesAreTheirBytes) {
  const auto entries = ASSERT_VALUE(read(file_of(tensor("F2_NEW", "[8]", 5), 5)));
  EXPECT_EQ(entries[0].second.length, 5u);
  EXPECT_EQ(entries[0].second.type, "F2_NEW [8]");
}

TEST(Safetensors, NamesAreJsonStrings) {
  const std::pair<std::string_view, std::string_view> names[] = {
      {R"(\u0077)", "w"},
      {R"(\u0077x)", "wx"},
      {R"(gr\u00f6\u00dfe)", "größe"},
      {"größe", "größe"},
      {R"(\ud83d\ude00)", "😀"},
      {R"(a\/b\\c\"d)", "a/b\\c\"d"},
      {R"(\n\t\u0000)", {"\n\t\0", 3}},
      {"", ""},
  };
  for (const auto& [text, name] : names) {
    const auto entries =
        ASSERT_VALUE(read(file_of(fmt::format("{{\"{}\": {{\"data_offsets\": [0, 1]}}}}", text), 1)));
    EXPECT_EQ(entries[0].first, name) << text;
  }
}

TEST(Safetensors, HolesAndOverlapsAreTheFilesMatter) {
  const auto entries = ASSERT_VALUE(read(file_of(
      R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}, "b": {"dtype": "U8", "shape": [2], "data_offsets": [5, 7]}})",
      32)));
  EXPECT_EQ(entries[0].second.bytes[0], 2);
  EXPECT_EQ(entries[1].second.bytes[0], 5);
}

// A type or a shape alone says nothing about the bytes, and neither does a type without a name.
TEST(Safetensors, TypesAndShapesAlone) {
  const auto entries = ASSERT_VALUE(read(file_of(R"({"t": {"dtype": "F32", "data_offsets": [0, 3]},
      "s": {"shape": [7], "data_offsets": [0, 3]}, "e": {"dtype": "", "shape": [7], "data_offsets": [0, 3]}})",
                                                 3)));
  ASSERT_EQ(entries.size(), 3u);
  for (const auto& [name, parameter] : entries) EXPECT_EQ(parameter.length, 3u) << name;
  EXPECT_EQ(entries[0].second.type, "");
  EXPECT_EQ(entries[1].second.type, "");
  EXPECT_EQ(entries[2].second.type, " [7]");
}

TEST(Safetensors, LongHeaders) {
  std::vector<uint8_t> bytes(8 + 100'000'001, ' ');
  const uint64_t size = 100'000'001;
  std::memcpy(bytes.data(), &size, sizeof size);
  bytes[8] = '{';
  bytes[9] = '}';
  EXPECT_FAILS(INVALID_ARGUMENT, "at most 100000000", read(bytes));
  bytes.pop_back();
  bytes[0] -= 1;
  EXPECT_OK(read(std::move(bytes)));
}

TEST(Safetensors, CutOffAnywhere) {
  const std::vector<uint8_t> whole = file_of(kExample, 26);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(read({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)})) << size;
}

}  // namespace
}  // namespace halyard::modules
