// The reader of .safetensors files: the header, hostile input.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

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
  "quoted\"n": {"data_offsets" : [24 ,26 ], "shape":[], "dtype":"I8"}, "none": {"data_offsets": [3,3]} }   )";

TEST(Safetensors, NamesAndBytes) {
  const auto entries = read(file_of(kExample, 26));
  ASSERT_TRUE(entries) << entries.error().text();
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].first, "layer/w");
  EXPECT_EQ((*entries)[0].second.length, 24u);
  EXPECT_EQ((*entries)[0].second.bytes[7], 7);
  EXPECT_EQ((*entries)[1].first, "quoted\\\"n") << "escapes stay as they are";
  EXPECT_EQ((*entries)[1].second.length, 2u);
  EXPECT_EQ((*entries)[1].second.bytes[0], 24);
  EXPECT_EQ((*entries)[2].second.length, 0u);
}

TEST(Safetensors, NothingInIt) {
  const auto entries = read(file_of("{}", 0));
  ASSERT_TRUE(entries) << entries.error().text();
  EXPECT_TRUE(entries->empty());
}

TEST(Safetensors, Errors) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "expected '{'"},
      {"[]", "expected '{'"},
      {"{", "expected '\"'"},
      {"{\"a", "does not end"},
      {"{\"a\\", "does not end"},
      {"{\"a\" 1}", "expected ':'"},
      {"{\"a\": 1}", "expected '{'"},
      {"{\"a\": {}}", "no data_offsets"},
      {"{\"a\": {\"data_offsets\": 4}}", "expected '['"},
      {"{\"a\": {\"data_offsets\": [-1, 4]}}", "expected a number"},
      {"{\"a\": {\"data_offsets\": [0, 99999999999999999999]}}", "expected a number"},
      {"{\"a\": {\"data_offsets\": [0, 4, 8]}}", "expected ']'"},
      {"{\"a\": {\"data_offsets\": [0, 9]}}", "'a' is at [0, 9) of 8 bytes"},
      {"{\"a\": {\"data_offsets\": [5, 4]}}", "'a' is at [5, 4)"},
      {"{\"a\": {\"shape\": , \"data_offsets\": [0, 4]}}", "expected a value"},
      {"{\"a\": {\"data_offsets\": [0, 4]},}", "expected '\"'"},
      {"{} x", "after the end"},
  };
  for (const auto& [header, part] : cases) {
    const auto entries = read(file_of(header, 8));
    ASSERT_FALSE(entries) << header;
    expect_failure(entries.error(), Code::INVALID_ARGUMENT, part);
    expect_failure(entries.error(), Code::INVALID_ARGUMENT, "m.safetensors");
  }
  std::string nested = "{\"__metadata__\": ";
  nested.append(100000, '[');
  const auto deep = read(file_of(nested, 8));
  ASSERT_FALSE(deep);
  expect_failure(deep.error(), Code::INVALID_ARGUMENT, "nested");
}

TEST(Safetensors, CutOffAnywhere) {
  const std::vector<uint8_t> whole = file_of(kExample, 26);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(read({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)})) << size;
}

}  // namespace
}  // namespace halyard::modules
