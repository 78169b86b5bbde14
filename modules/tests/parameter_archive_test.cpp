// The reader of .irpa archives: valid and damaged archives, hostile input.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "fixtures.h"
#include "irpa_builder.h"
#include "modules/parameters.h"
#include "testing.h"

namespace halyard::modules {
namespace {

Result<ParameterEntries> read(std::vector<uint8_t> bytes) {
  return read_irpa(Bytes::own(std::move(bytes)), "file.irpa");
}

void set_u64(std::vector<uint8_t>& bytes, size_t offset, uint64_t value) {
  std::memcpy(&bytes[offset], &value, 8);
}

std::vector<uint8_t> bytes_of(const Parameter& parameter) {
  return {parameter.bytes.begin(), parameter.bytes.end()};
}

IrpaBuilder example() {
  IrpaBuilder builder;
  builder.data("a", {1, 2, 3, 4, 5, 6, 7, 8})
      .skip("gone")
      .data("layer/b", {9, 10})
      .splat("s", 64, {0xAB, 0xCD});
  return builder;
}
constexpr size_t kFirstEntry = 96;

TEST(Irpa, DataAndSplatsInTheOrderOfTheFile) {
  auto entries = ASSERT_VALUE(read(example().bytes()));
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].first, "a");
  EXPECT_EQ(entries[0].second.length, 8u);
  EXPECT_EQ(bytes_of(entries[0].second), (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_TRUE(entries[0].second.pattern.empty());
  EXPECT_EQ(entries[1].first, "layer/b");
  EXPECT_EQ(bytes_of(entries[1].second), (std::vector<uint8_t>{9, 10}));
  EXPECT_EQ(entries[2].first, "s");
  EXPECT_EQ(entries[2].second.length, 64u);
  EXPECT_EQ(entries[2].second.pattern, (std::vector<uint8_t>{0xAB, 0xCD}));
  EXPECT_TRUE(entries[2].second.bytes.empty());
}

// The next entry begins at the next multiple of 16, which may be where this one ends.
TEST(Irpa, EntriesOfEverySize) {
  for (uint64_t size = 60; size <= 64; ++size) {
    std::vector<uint8_t> bytes = IrpaBuilder().skip("gone").data("a", {1, 2}).bytes();
    std::memcpy(&bytes[kFirstEntry], &size, sizeof size);
    auto entries = ASSERT_VALUE(read(bytes));
    ASSERT_EQ(entries.size(), 1u) << size;
    EXPECT_EQ(entries[0].first, "a");
    EXPECT_EQ(bytes_of(entries[0].second), (std::vector<uint8_t>{1, 2}));
  }
}

// Kernels may write to parameters in memory: an entry that lies over the archive's own tables changes nothing
// that was read from them.
TEST(Irpa, WhatWasReadDoesNotChangeWithTheBytes) {
  std::vector<uint8_t> archive = example().bytes();
  constexpr size_t kStorageOffset = 72, kStorageSize = 80;
  set_u64(archive, kStorageOffset, 0);
  set_u64(archive, kStorageSize, archive.size());
  set_u64(archive, kFirstEntry + 60, 0);
  set_u64(archive, kFirstEntry + 68, archive.size());
  const Ref<Bytes> file = Bytes::own(archive);
  const auto entries = ASSERT_VALUE(read_irpa(file, "file.irpa"));
  const Parameter& whole = entries[0].second;
  ASSERT_EQ(whole.bytes.data(), file->data());
  ASSERT_EQ(whole.bytes.size(), file->size());
  std::memset(const_cast<uint8_t*>(whole.bytes.data()), 0xFF, whole.bytes.size());
  EXPECT_EQ(entries[0].first, "a");
  EXPECT_EQ(entries[1].first, "layer/b");
  EXPECT_EQ(entries[1].second.length, 2u);
  EXPECT_EQ(entries[2].first, "s");
  EXPECT_EQ(entries[2].second.length, 64u);
  EXPECT_EQ(entries[2].second.pattern, (std::vector<uint8_t>{0xAB, 0xCD}));
}

TEST(Irpa, BytesStayWithTheEntries) {
  Result<ParameterEntries> entries = read(example().bytes());
  ASSERT_TRUE(entries);
  const Parameter parameter = std::move((*entries)[0].second);
  entries = ParameterEntries();
  EXPECT_EQ(bytes_of(parameter), (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Irpa, NoEntries) {
  auto entries = ASSERT_VALUE(read(IrpaBuilder().bytes()));
  EXPECT_TRUE(entries.empty());
}

TEST(Irpa, EntriesNeedNoAlignmentOfTheirData) {
  auto entries = ASSERT_VALUE(read(IrpaBuilder().data("a", {1, 2, 3}, 1).data("b", {4, 5}, 1).bytes()));
  EXPECT_EQ(bytes_of(entries[1].second), (std::vector<uint8_t>{4, 5}));
}

TEST(Irpa, NamesAreBytes) {
  const std::string name("\0\xFF/.", 4);
  auto entries = ASSERT_VALUE(read(IrpaBuilder().data(name, {1}).data("", {2}).bytes()));
  EXPECT_EQ(entries[0].first, name);
  EXPECT_EQ(entries[1].first, "");
}

// Ruling 17.
TEST(Irpa, PatternsOfAPowerOfTwo) {
  for (size_t size : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 32, 64, 128}) {
    auto entries = read(IrpaBuilder().splat("s", 32, std::vector<uint8_t>(size, 7)).bytes());
    if (size == 1 || size == 2 || size == 4 || size == 8 || size == 16) {
      ASSERT_TRUE(entries) << entries.error().text();
      EXPECT_EQ((*entries)[0].second.pattern.size(), size);
    } else {
      EXPECT_FAILS(INVALID_ARGUMENT, fmt::format("pattern of {} bytes", size), entries) << size;
    }
  }
}

// Ruling 18: segments of a linked header are relative to it.
TEST(Irpa, LinkedHeaders) {
  std::vector<uint8_t> first = IrpaBuilder().data("head", {1}).bytes();
  first.resize(first.size() + 24);
  std::vector<uint8_t> archive = IrpaBuilder().data("head", {1}).bytes(first.size());
  archive.resize(first.size());
  const auto second = IrpaBuilder().data("linked", {2, 3}).splat("s", 4, {5}).bytes();
  archive.insert(archive.end(), second.begin(), second.end());
  auto entries = ASSERT_VALUE(read(archive));
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[1].first, "linked");
  EXPECT_EQ(bytes_of(entries[1].second), (std::vector<uint8_t>{2, 3}));
  EXPECT_EQ(entries[2].second.pattern, (std::vector<uint8_t>{5}));
}

TEST(Irpa, ALinkLeadsToAHeaderWithinTheFile) {
  const uint64_t size = example().bytes().size();
  EXPECT_FAILS(OUT_OF_RANGE, fmt::format("the next header is {} bytes ahead", size),
               read(example().bytes(size)));
  EXPECT_FAILS(OUT_OF_RANGE, "byte 16", read(example().bytes(UINT64_MAX)));
  EXPECT_FAILS(INVALID_ARGUMENT, "byte 8: expected an .irpa archive", read(example().bytes(8)));
}

TEST(Irpa, MagicAndVersion) {
  auto bytes = example().bytes();
  bytes[3] = 'X';
  EXPECT_FAILS(INVALID_ARGUMENT, "'file.irpa', byte 0: expected an .irpa archive", read(bytes).error());
  bytes = example().bytes();
  bytes[6] = 1;
  EXPECT_FAILS(UNIMPLEMENTED, "version 0.1, expected 0.0", read(bytes).error());
  bytes = example().bytes();
  bytes[4] = 1;
  EXPECT_FAILS(UNIMPLEMENTED, "version 1.0, expected 0.0", read(bytes).error());
  bytes = example().bytes();
  set_u64(bytes, 8, 87);
  EXPECT_FAILS(INVALID_ARGUMENT, "87", read(bytes).error());
}

TEST(Irpa, SegmentsLieWithinTheFile) {
  for (const auto& [offset, what] : {std::pair{40, "entry segment"}, std::pair{56, "metadata segment"},
                                     std::pair{72, "storage segment"}}) {
    for (const uint64_t value : {uint64_t{1} << 20, UINT64_MAX, UINT64_MAX - 7}) {
      for (const int field : {offset, offset + 8}) {
        auto bytes = example().bytes();
        set_u64(bytes, static_cast<size_t>(field), value);
        auto entries = read(bytes);
        EXPECT_FAILS(OUT_OF_RANGE, what, entries) << what;
        EXPECT_FAILS(OUT_OF_RANGE, fmt::format("byte {}", offset), entries) << what;
      }
    }
  }
}

TEST(Irpa, EntriesLieWithinTheirSegments) {
  const auto changed = [](size_t offset, uint64_t value) {
    auto bytes = example().bytes();
    set_u64(bytes, kFirstEntry + offset, value);
    return read(bytes).error();
  };
  EXPECT_FAILS(OUT_OF_RANGE, "byte 96: entry 0 of 4 states a size of 59 bytes", changed(0, 59));
  EXPECT_FAILS(INVALID_ARGUMENT, "entry 'a' of type 2 has 60 bytes, expected at least 76", changed(0, 60));
  EXPECT_FAILS(OUT_OF_RANGE, "entry 0", changed(0, UINT64_MAX));
  EXPECT_FAILS(OUT_OF_RANGE, "name of an entry", changed(20, 1000));
  EXPECT_FAILS(OUT_OF_RANGE, "name of an entry", changed(28, 1000));
  EXPECT_FAILS(OUT_OF_RANGE, "metadata of an entry", changed(36, UINT64_MAX));
  EXPECT_FAILS(OUT_OF_RANGE, "data of an entry", changed(60, UINT64_MAX));
  EXPECT_FAILS(OUT_OF_RANGE, "data of an entry", changed(68, 1000));
}

TEST(Irpa, MoreEntriesThanThereIsRoomFor) {
  auto bytes = example().bytes();
  set_u64(bytes, 32, 5);
  EXPECT_FAILS(OUT_OF_RANGE, "entry 4 of 5", read(bytes).error());
  set_u64(bytes, 32, UINT64_MAX);
  EXPECT_FAILS(INVALID_ARGUMENT, "18446744073709551615 entries", read(bytes).error());
}

TEST(Irpa, KindsOfEntries) {
  EXPECT_FAILS(UNIMPLEMENTED, "entry 'e' refers to another file",
               read(IrpaBuilder().external("e").bytes()).error());
  auto bytes = example().bytes();
  bytes[kFirstEntry + 8] = 4;
  EXPECT_FAILS(INVALID_ARGUMENT, "entry 'a' has type 4", read(bytes).error());
}

// Overlapping headers that share one table of entries, or one long name, must not cost more than linear time.
TEST(Irpa, SharedTablesEnd) {
  std::vector<uint8_t> archive;
  for (int i = 0; i < 2000; ++i) {
    auto header = IrpaBuilder().bytes(i < 1999 ? 96 : 0);
    header.resize(96);
    const auto left = static_cast<uint64_t>(1999 - i) * 96;
    set_u64(header, 32, 2000);
    set_u64(header, 40, left);
    set_u64(header, 48, 2000 * 64 + left);
    archive.insert(archive.end(), header.begin(), header.end());
  }
  archive.resize(archive.size() + 2000 * 64 + 2000 * 96);
  auto entries = read(archive);
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().code() == Code::INVALID_ARGUMENT || entries.error().code() == Code::OUT_OF_RANGE,
            true);
}

TEST(Irpa, SharedNamesEnd) {
  IrpaBuilder builder;
  const std::string name(400, 'n');
  for (int i = 0; i < 10; ++i) builder.skip(i == 0 ? name : "");
  auto bytes = builder.bytes();
  for (size_t i = 0; i < 10; ++i) {
    set_u64(bytes, kFirstEntry + 64 * i + 20, 0);
    set_u64(bytes, kFirstEntry + 64 * i + 28, name.size());
  }
  EXPECT_FAILS(INVALID_ARGUMENT, "names of all entries", read(bytes).error());
}

TEST(Irpa, CutOffAnywhere) {
  const std::vector<uint8_t> whole =
      IrpaBuilder().data("a", {1, 2, 3, 4}).splat("s", 8, {1}).data("b", {5, 6}).bytes();
  ASSERT_TRUE(read(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    auto entries = read({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)});
    ASSERT_FALSE(entries) << size;
    EXPECT_EQ(entries.error().code(), size < 4 ? Code::INVALID_ARGUMENT : Code::OUT_OF_RANGE)
        << entries.error().text();
  }
}

// All ranges read from a modified file lie within it.
TEST(Irpa, EveryBitFlipped) {
  const std::vector<uint8_t> whole = example().bytes();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::vector<uint8_t> changed = whole;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const Ref<Bytes> file = Bytes::own(std::move(changed));
    auto entries = read_irpa(file, "file.irpa");
    if (!entries) {
      EXPECT_TRUE(entries.error().text().contains("'file.irpa', byte ")) << entries.error().text();
      continue;
    }
    EXPECT_LE(entries->size(), 4u);
    for (const auto& [key, parameter] : *entries) {
      if (!parameter.pattern.empty()) continue;
      EXPECT_EQ(parameter.length, parameter.bytes.size());
      EXPECT_GE(parameter.bytes.data(), file->data());
      EXPECT_LE(parameter.bytes.data() + parameter.bytes.size(), file->data() + file->size());
    }
  }
}

// ---- Files and scopes ----

class ParameterFiles : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::vector<uint8_t>& bytes) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    const std::string path = ::testing::TempDir() + test->name() + "_" + name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path;
  }
};

TEST_F(ParameterFiles, ScopesKeepTheirFilesApart) {
  const std::string a = write("a.irpa", IrpaBuilder().data("k", {1}).bytes());
  const std::string b = write("b.irpa", IrpaBuilder().data("k", {2, 3}).bytes());
  auto scopes = ASSERT_VALUE(load_parameters(std::vector<ParameterFile>{{"x", a}, {"", b}}));
  ASSERT_EQ(scopes.size(), 2u);
  EXPECT_EQ(scopes.find("x")->second->find("k").parameter->length, 1u);
  EXPECT_EQ(scopes.find("")->second->find("k").parameter->length, 2u);
  EXPECT_EQ(scopes.find("x")->second->find("K").parameter, nullptr) << "names are compared exactly";
}

TEST_F(ParameterFiles, TheFirstOfANameCounts) {
  const std::string a = write("a.irpa", IrpaBuilder().data("k", {1}).data("k", {1, 1}).bytes());
  const std::string b = write("b.irpa", IrpaBuilder().data("k", {2, 3}).data("other", {4}).bytes());
  auto scopes = ASSERT_VALUE(load_parameters(std::vector<ParameterFile>{{"x", a}, {"x", b}}));
  const ParameterScope& scope = *scopes.find("x")->second;
  EXPECT_EQ(scope.find("k").parameter->length, 1u);
  EXPECT_EQ(scope.find("k").parameter->other,
            fmt::format("'{}' contains it twice; the first one is used", a));
  EXPECT_EQ(scope.find("other").parameter->other, "");
  EXPECT_EQ(scope.keys(), (std::vector<std::string_view>{"k", "other"}));
}

TEST_F(ParameterFiles, ANameInTwoFiles) {
  const std::string a = write("a.irpa", IrpaBuilder().data("k", {1}).bytes());
  const std::string b = write("b.irpa", IrpaBuilder().data("k", {2, 3}).bytes());
  auto scopes = ASSERT_VALUE(load_parameters(std::vector<ParameterFile>{{"x", a}, {"x", b}}));
  const Parameter* found = scopes.find("x")->second->find("k").parameter;
  EXPECT_EQ(found->length, 1u);
  EXPECT_EQ(found->other, fmt::format("'{}' and '{}' contain it; the first one is used", a, b));
}

std::vector<uint8_t> bytes_of_text(std::string_view text) { return {text.begin(), text.end()}; }

std::vector<uint8_t> bytes_of_safetensors(std::string_view header, const std::vector<uint8_t>& data) {
  const uint64_t size = header.size();
  std::vector<uint8_t> bytes(sizeof size);
  std::memcpy(bytes.data(), &size, sizeof size);
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}
std::vector<uint8_t> safetensors(std::string_view name) {
  const std::string header =
      fmt::format(R"({{"{}": {{"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}}})", name);
  std::vector<uint8_t> bytes(8);
  bytes[0] = static_cast<uint8_t>(header.size());
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), {7, 8});
  return bytes;
}

TEST_F(ParameterFiles, FilesThatAreSomethingElse) {
  const auto expect = [&](const char* name, std::string_view contents, std::string_view is,
                          std::string_view advice) {
    const std::string path = write(name, bytes_of_text(contents));
    auto scopes = load_parameters(std::vector<ParameterFile>{{"", path}});
    ASSERT_FALSE(scopes) << contents;
    for (const std::string_view part : {is, advice, std::string_view(path)})
      EXPECT_FAILS(INVALID_ARGUMENT, part, scopes.error());
  };
  constexpr std::string_view kPointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  for (const char* name : {"l.safetensors", "l.gguf", "l.irpa", "l.safetensors.index.json"}) {
    expect(name, kPointer, "Git LFS pointer", "git lfs pull");
    expect(name, " <!DOCTYPE HTML><html>", "HTML", "download");
    expect(name, "\xEF\xBB\xBF\n<HTML lang=en>", "HTML", "download");
    expect(name, "<?xml version='1.0'?><Error/>", "XML", "download");
    expect(name, std::string_view("PK\3\4\x14\0\x08\x08......", 14), "zip archive", "convert");
    expect(name, "\x1F\x8B\x08......", "gzip", "unpack");
    expect(name, "\x93NUMPY\1.....", ".npy", "convert");
    expect(name, "", "empty", "again");
  }
  expect("a.safetensors", "GGUF\3.......", ".gguf file", "name that ends in .gguf");
  expect("a.gguf", "IRPA............", ".irpa archive", "name that ends in .irpa");
  expect("b.safetensors", "{\"error\": \"no such model\"}", "JSON", ".safetensors.index.json");
  const std::vector<uint8_t> other = safetensors("w");
  expect("c.gguf", {reinterpret_cast<const char*>(other.data()), other.size()}, ".safetensors file",
         "name that ends in .safetensors");
  // What is right is not looked at.
  std::vector<uint8_t> right = safetensors("w");
  EXPECT_TRUE(load_parameters(std::vector<ParameterFile>{{"", write("r.safetensors", right)}}));
}

TEST_F(ParameterFiles, AnIndexStandsForItsShards) {
  const std::string one = write("one.safetensors", safetensors("w")),
                    two = write("two.safetensors", safetensors("v"));
  const auto name = [](const std::string& path) { return path.substr(path.find_last_of('/') + 1); };
  const std::string index =
      write("model.safetensors.index.json",
            bytes_of_text(
                fmt::format(R"({{"metadata": {{"total_size": 4}}, "weight_map": {{"w": "{}", "v": "{}"}}}})",
                            name(one), name(two))));
  for (const ParameterMode mode : {ParameterMode::file, ParameterMode::preload}) {
    auto scopes = ASSERT_VALUE(load_parameters(std::vector<ParameterFile>{{"m", index}}, mode));
    EXPECT_EQ(scopes.find("m")->second->keys(), (std::vector<std::string_view>{"v", "w"}));
    EXPECT_EQ(scopes.find("m")->second->find("v").parameter->bytes[1], 8);
  }

  const auto expect = [&](std::string_view text, Code code, std::string_view part) {
    const std::string path = write("bad.safetensors.index.json", bytes_of_text(text));
    auto scopes = load_parameters(std::vector<ParameterFile>{{"", path}});
    ASSERT_FALSE(scopes) << text;
    EXPECT_TRUE(fails_with(scopes.error(), code, part));
    EXPECT_TRUE(fails_with(scopes.error(), code, path));
  };
  const auto map = [](std::string_view members) {
    return fmt::format(R"({{"weight_map": {{{}}}}})", members);
  };
  expect(map(R"("w": "missing.safetensors")"), Code::NOT_FOUND, "missing.safetensors");
  for (const char* outside : {"../one.safetensors", "/etc/one.safetensors", "a/../../one.safetensors", "",
                              "x\\u0000.safetensors", "."})
    expect(map(fmt::format(R"("w": "{}")", outside)), Code::INVALID_ARGUMENT, "tensor 'w'");
  // A tensor that lies in the other file, beside one that the index does not name.
  const std::string both =
      write("both.safetensors",
            bytes_of_safetensors(R"({"w": {"data_offsets": [0, 1]}, "v": {"data_offsets": [0, 1]},
                                                          "more": {"data_offsets": [0, 1]}})",
                                 {1}));
  expect(map(fmt::format(R"("w": "{}", "v": "{}")", name(both), name(two))), Code::INVALID_ARGUMENT,
         fmt::format("tensor 'v' is assigned to '{}', but '{}' contains it", name(two), name(both)));
  expect(map(R"("w": "one.gguf")"), Code::INVALID_ARGUMENT, ".safetensors file");
  expect(map(R"("w": 7)"), Code::INVALID_ARGUMENT, "not a string");
  expect(map(fmt::format(R"("w": "{}", "v": "{}")", name(two), name(one))), Code::INVALID_ARGUMENT,
         "belong to one model");
  expect(map(fmt::format(R"("w": "{}", "u": "{}")", name(one), name(one))), Code::INVALID_ARGUMENT,
         "'u' is assigned to");
  expect(map(fmt::format(R"("w": "{}", "\u0077": "{}")", name(one), name(two))), Code::INVALID_ARGUMENT,
         "twice");
  expect("{}", Code::INVALID_ARGUMENT, "weight_map");
  expect("[]", Code::INVALID_ARGUMENT, "weight_map");
  expect(R"({"weight_map": 7})", Code::INVALID_ARGUMENT, "weight_map");
  expect(R"({"weight_map": {}, "weight_map": {}})", Code::INVALID_ARGUMENT, "twice");
  expect(R"({"weight_map": {)", Code::INVALID_ARGUMENT, "invalid JSON");
}

TEST_F(ParameterFiles, OnlyNamesOfJsonAreThoseOfAnIndex) {
  const std::string notes = write("model.safetensors.index.txt", bytes_of_text("notes"));
  EXPECT_FAILS(UNIMPLEMENTED, notes, load_parameters(std::vector<ParameterFile>{{"", notes}}));
}

TEST_F(ParameterFiles, PreloadingTellsHowFarItIsAndCanBeStopped) {
  const std::string a = write("a.irpa", IrpaBuilder().data("a", {1, 2, 3}).bytes());
  const std::string b = write("b.irpa", IrpaBuilder().data("b", {4, 5}).bytes());
  const std::vector<ParameterFile> files = {{"x", a}, {"y", b}};
  std::vector<std::pair<uint64_t, uint64_t>> told;
  auto scopes = ASSERT_VALUE(
      load_parameters(files, ParameterMode::preload, [&](uint64_t done, uint64_t total) -> Result<> {
        told.emplace_back(done, total);
        return {};
      }));
  EXPECT_EQ(scopes.find("y")->second->find("b").parameter->bytes[0], 4);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_LT(told[0].first, told[1].first);
  EXPECT_EQ(told[1].first, told[1].second);
  EXPECT_FAILS(CANCELLED, "enough",
               load_parameters(files, ParameterMode::preload, [](uint64_t, uint64_t) -> Result<> {
                 return fail(Code::CANCELLED, "enough");
               }));
  // A file that is no archive, although it can be copied.
  const std::string bad = write("bad.irpa", {1, 2, 3});
  EXPECT_FAILS(INVALID_ARGUMENT, bad,
               load_parameters(std::vector<ParameterFile>{{"", bad}}, ParameterMode::preload));
}

TEST_F(ParameterFiles, TheExtensionSaysTheFormat) {
  const std::string upper = write("A.IRPA", IrpaBuilder().data("k", {1}).bytes());
  EXPECT_TRUE(load_parameters(std::vector<ParameterFile>{{"", upper}}));
  for (const char* name : {"a.gguf", "a.SafeTensors"}) {
    auto scopes = load_parameters(std::vector<ParameterFile>{{"", write(name, {'I', 'R', 'P', 'A'})}});
    ASSERT_FALSE(scopes) << name;
    EXPECT_NE(scopes.error().code(), Code::UNIMPLEMENTED) << scopes.error().text();
  }
  for (const char* name : {"a.bin", "irpa", "a.irpa.txt"}) {
    const std::string path = write(name, IrpaBuilder().data("k", {1}).bytes());
    auto scopes = load_parameters(std::vector<ParameterFile>{{"", path}});
    EXPECT_FAILS(UNIMPLEMENTED, ".irpa, .gguf or .safetensors", scopes) << name;
    EXPECT_FAILS(UNIMPLEMENTED, path, scopes) << name;
  }
}

TEST_F(ParameterFiles, AMissingFile) {
  EXPECT_FAILS(NOT_FOUND, "/no/such/file.irpa",
               load_parameters(std::vector<ParameterFile>{{"", "/no/such/file.irpa"}}));
}

TEST_F(ParameterFiles, ABadFileIsNamed) {
  const std::string path = write("bad.irpa", {'I', 'R', 'P', 'X'});
  EXPECT_FAILS(INVALID_ARGUMENT, path, load_parameters(std::vector<ParameterFile>{{"", path}}));
}

TEST_F(ParameterFiles, ArchivesOfTheFixtures) {
  const std::string params = fixtures() / "exec/params/";
  if (!std::ifstream(params + "main.irpa")) GTEST_SKIP() << "no fixtures at " << params;
  const auto load = [&](const char* name) {
    return load_parameters(std::vector<ParameterFile>{{"", params + name}});
  };
  auto main = ASSERT_VALUE(load("main.irpa"));
  const ParameterScope& scope = *main.find("")->second;
  EXPECT_EQ(scope.keys(), (std::vector<std::string_view>{"a", "b", "s1", "s4", "s8"}));
  EXPECT_EQ(scope.find("a").parameter->length, 32u) << "the first of two";
  EXPECT_EQ(scope.find("s8").parameter->pattern,
            (std::vector<uint8_t>{0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}));
  auto linked = ASSERT_VALUE(load("linked.irpa"));
  EXPECT_EQ(linked.find("")->second->keys(), (std::vector<std::string_view>{"head", "linked"}));
  EXPECT_FAILS(INVALID_ARGUMENT, "", load("bad_magic.irpa").error());
  EXPECT_FAILS(UNIMPLEMENTED, "version 0.1", load("minor.irpa").error());
}

}  // namespace
}  // namespace halyard::modules
