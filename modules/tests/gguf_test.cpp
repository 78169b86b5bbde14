// The reader of .gguf files: versions, alignment, tensor types, hostile input.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "modules/parameter_archive.h"
#include "testing.h"

namespace halyard::modules {
namespace {

// A file, field by field.
struct File {
  std::vector<uint8_t> bytes;

  template <typename T>
  File& add(T value) {
    const auto* first = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
    return *this;
  }
  File& u32(uint32_t value) { return add(value); }
  File& u64(uint64_t value) { return add(value); }
  File& text(std::string_view value) {
    u64(value.size());
    bytes.insert(bytes.end(), value.begin(), value.end());
    return *this;
  }
  File& tensor(std::string_view name, std::initializer_list<uint64_t> shape, uint32_t type, uint64_t offset) {
    text(name).u32(static_cast<uint32_t>(shape.size()));
    for (const uint64_t dimension : shape) u64(dimension);
    return u32(type).u64(offset);
  }
  File& data(size_t alignment, size_t size) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(i));
    return *this;
  }
};
File header(uint32_t version, uint64_t tensors, uint64_t pairs) {
  return File().u32(0x46554747).u32(version).u64(tensors).u64(pairs);
}
// A pair of every kind, among them the alignment.
File example(uint32_t version = 3) {
  File file = header(version, 2, 5);
  file.text("name").u32(8).text("a model");
  file.text("flag").u32(7).add(uint8_t{1});
  file.text("words").u32(9).u32(8).u64(2).text("a").text("b");
  file.text("general.alignment").u32(4).u32(64);
  file.text("numbers").u32(9).u32(6).u64(3).u32(1).u32(2).u32(3);
  file.tensor("layer/weights", {2, 3}, 0, 0).tensor("blocks", {32, 2}, 8, 64);
  return file.data(64, 64 + 2 * 34);
}

Result<ParameterEntries> read(const File& file) { return read_gguf(Bytes::own(file.bytes), "m.gguf"); }

TEST(Gguf, TensorsAreTheirBlocks) {
  for (const uint32_t version : {2u, 3u}) {
    const auto entries = ASSERT_VALUE(read(example(version)));
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].first, "layer/weights");
    EXPECT_EQ(entries[0].second.length, 24u);
    EXPECT_EQ(entries[0].second.bytes[5], 5);
    EXPECT_EQ(entries[1].first, "blocks");
    EXPECT_EQ(entries[1].second.length, 68u);
    EXPECT_EQ(entries[1].second.bytes[0], 64);
  }
}

TEST(Gguf, SizesByType) {
  const std::pair<uint32_t, uint64_t> sizes[] = {
      {0, 1024}, {1, 512},  {2, 144},  {3, 160},  {6, 176},  {7, 192},  {8, 272},   {9, 320},   {10, 84},
      {11, 110}, {12, 144}, {13, 176}, {14, 210}, {15, 292}, {16, 66},  {17, 74},   {18, 98},   {19, 50},
      {20, 144}, {21, 110}, {22, 82},  {23, 136}, {24, 256}, {25, 512}, {26, 1024}, {27, 2048}, {28, 2048},
      {29, 56},  {30, 512}, {34, 54},  {35, 66},  {39, 136}, {40, 144}, {41, 36},   {42, 72}};
  for (const auto& [type, size] : sizes) {
    const auto entries = ASSERT_VALUE(read(header(3, 1, 0).tensor("t", {256}, type, 0).data(32, 2048)));
    EXPECT_EQ(entries[0].second.length, size) << type;
    EXPECT_TRUE(entries[0].second.type.ends_with(" [256]")) << entries[0].second.type;
    EXPECT_EQ(entries[0].second.trouble, "");
  }
}

// They were I8, I16 and I32 before they were types with blocks of 256.
TEST(Gguf, FormerMeaningsOfTypes) {
  for (const auto& [type, size] : {std::pair<uint32_t, uint64_t>{16, 1}, {17, 2}, {18, 4}}) {
    const auto entries = ASSERT_VALUE(read(header(3, 1, 0).tensor("t", {4, 3}, type, 0).data(32, 64)));
    EXPECT_EQ(entries[0].second.length, 12 * size) << type;
    EXPECT_EQ(entries[0].second.type, fmt::format("I{} [4, 3]", 8 * size));
  }
}

// They refuse neither the file nor the other tensors.
TEST(Gguf, TypesWithoutAKnownSize) {
  for (const uint32_t type : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 1000u}) {
    const auto entries =
        ASSERT_VALUE(read(header(3, 2, 0).tensor("t", {7, 3}, type, 0).tensor("u", {2}, 0, 32).data(32, 64)));
    EXPECT_NE(entries[0].second.trouble.find(std::to_string(type)), std::string::npos);
    EXPECT_EQ(entries[1].second.length, 8u);
    EXPECT_EQ(entries[1].second.trouble, "");
  }
}

TEST(Gguf, NothingInIt) {
  const auto entries = ASSERT_VALUE(read(header(3, 0, 0)));
  EXPECT_TRUE(entries.empty());
  const auto scalar =
      ASSERT_VALUE(read(header(3, 2, 0).tensor("s", {}, 0, 0).tensor("e", {0, 7}, 0, 4).data(32, 4)));
  EXPECT_EQ(scalar[0].second.length, 4u);
  EXPECT_EQ(scalar[1].second.length, 0u);
}

// Metadata may end the file; a tensor may have 16 dimensions.
TEST(Gguf, UpToTheBounds) {
  const auto numbers = [](uint64_t count) {
    return header(3, 0, 1).text("numbers").u32(9).u32(4).u64(count).u32(1).u32(2).u32(3);
  };
  EXPECT_OK(read(numbers(3)));
  EXPECT_FAILS(OUT_OF_RANGE, "an array of 4 values of 4 bytes but 12 bytes are left", read(numbers(4)));
  const auto tensor = [](uint32_t rank) {
    File file = header(3, 1, 0).text("t").u32(rank);
    for (uint32_t i = 0; i < rank; ++i) file.u64(1);
    return file.u32(0).u64(0).data(32, 32);
  };
  EXPECT_EQ(ASSERT_VALUE(read(tensor(16)))[0].second.length, 4u);
  EXPECT_FAILS(INVALID_ARGUMENT, "tensor 't' has 17 dimensions, expected at most 16", read(tensor(17)));
}

TEST(Gguf, Errors) {
  const auto expect = [](const File& file, Code code, std::string_view part) {
    const auto entries = read(file);
    ASSERT_FALSE(entries) << part;
    EXPECT_TRUE(fails_with(entries.error(), code, part));
    EXPECT_TRUE(fails_with(entries.error(), code, "m.gguf"));
  };
  constexpr uint64_t kHuge = UINT64_C(1) << 63;
  expect(File().u32(7), Code::INVALID_ARGUMENT, "letters GGUF");
  expect(header(1, 0, 0), Code::UNIMPLEMENTED, "version 1");
  expect(header(4, 0, 0), Code::UNIMPLEMENTED, "version 4");
  expect(header(3, kHuge, 0), Code::INVALID_ARGUMENT, "tensors");
  expect(header(3, 0, kHuge), Code::INVALID_ARGUMENT, "metadata pairs");
  expect(header(3, 0, 1).text("general.alignment").u32(4).u32(48), Code::INVALID_ARGUMENT, "power of two");
  expect(header(3, 0, 1).text("general.alignment").u32(5).u32(32), Code::INVALID_ARGUMENT, "kind 5");
  expect(header(3, 0, 1).text("kind").u32(13).u64(0), Code::INVALID_ARGUMENT, "kind 13");
  expect(header(3, 0, 1).text("nested").u32(9).u32(9).u64(0), Code::INVALID_ARGUMENT, "kind 9");
  expect(header(3, 0, 1).text("long").u32(9).u32(4).u64(kHuge), Code::OUT_OF_RANGE, "array");
  for (const uint32_t version : {1u, 2u, 3u})
    expect(File().u32(0x46554747).u32(__builtin_bswap32(version)).u64(0).u64(0), Code::UNIMPLEMENTED,
           "big-endian");
  expect(header(3, 0, 2).text("general.alignment").u32(4).u32(64).text("general.alignment").u32(4).u32(32),
         Code::INVALID_ARGUMENT, "twice");
  for (const uint32_t version : {4u, 0x1000u})  // of no file that there is, in either order of bytes
    expect(File().u32(0x46554747).u32(__builtin_bswap32(version)).u64(0).u64(0), Code::UNIMPLEMENTED,
           "expected 2 or 3");
  expect(header(3, 2, 0).tensor("t", {1}, 0, 0).tensor("t", {1}, 0, 32).data(32, 64), Code::INVALID_ARGUMENT,
         "the name 't'");
  expect(header(3, 1, 0).tensor("t", {16, 2}, 8, 0).data(32, 64), Code::INVALID_ARGUMENT, "rows of 16");
  expect(header(3, 1, 0).tensor("t", {}, 8, 0).data(32, 64), Code::INVALID_ARGUMENT, "blocks of 32");
  expect(header(3, 1, 0).tensor("t", {1}, 99, kHuge).data(32, 64), Code::OUT_OF_RANGE, "'t'");
  expect(header(3, 1, 0).tensor("t", {33}, 2, 0).data(32, 64), Code::INVALID_ARGUMENT, "blocks of 32");
  expect(header(3, 1, 0).tensor("t", {kHuge, 4}, 0, 0).data(32, 64), Code::INVALID_ARGUMENT,
         "2^64 elements or more");
  expect(header(3, 1, 0).tensor("t", {kHuge}, 0, 0).data(32, 64), Code::INVALID_ARGUMENT,
         "2^64 bytes or more");
  expect(header(3, 1, 0).tensor("t", {16}, 0, 4).data(32, 64), Code::OUT_OF_RANGE, "'t'");
  expect(header(3, 1, 0).tensor("t", {1}, 0, kHuge).data(32, 64), Code::OUT_OF_RANGE, "'t'");
}

TEST(Gguf, CutOffAnywhere) {
  const File whole = example();
  for (size_t size = 0; size < whole.bytes.size(); ++size) {
    File cut;
    cut.bytes.assign(whole.bytes.begin(), whole.bytes.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(read(cut)) << size;
  }
}

}  // namespace
}  // namespace halyard::modules
