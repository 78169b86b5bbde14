// The native module `io_parameters` on local devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "hal/queue/fence.h"
#include "hal/queue/wait.h"
#include "irpa_builder.h"
#include "modules/parameters.h"
#include "testing.h"
#include "vm/object/list.h"

namespace halyard::modules {
namespace {

constexpr int kHostVisible = 0x32;
constexpr const char* kLoad = "0rIrrrIiirrr_r";
constexpr const char* kGather = "0rIrrrrrrr_v";

using Contents = std::vector<uint8_t>;

// One span of a call.
struct Piece {
  std::string key;
  uint64_t parameter_offset;
  uint64_t buffer_offset;
  uint64_t length;
};

// The three tables of a call.
struct Tables {
  explicit Tables(const std::vector<Piece>& pieces) {
    std::vector<uint8_t> table, keys, data;
    const auto put = [](std::vector<uint8_t>& to, const auto value) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
      to.insert(to.end(), bytes, bytes + sizeof value);
    };
    for (const Piece& piece : pieces) {
      put(table, static_cast<uint32_t>(keys.size()));
      put(table, static_cast<uint32_t>(piece.key.size()));
      keys.insert(keys.end(), piece.key.begin(), piece.key.end());
      put(data, piece.parameter_offset);
      put(data, piece.buffer_offset);
      put(data, piece.length);
    }
    key_table = bytes_of(table);
    key_data = bytes_of(keys);
    spans = bytes_of(data);
  }
  Ref<vm::Buffer> key_table, key_data, spans;
};

class IoParameters : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    device = ASSERT_VALUE(open_device(GetParam()));
    Contents large(3 << 20);
    for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<uint8_t>(i * 7);
    IrpaBuilder archive;
    archive.data("a", {1, 2, 3, 4, 5, 6, 7, 8})
        .data("b", {11, 12, 13, 14})
        .data("large", large)
        .splat("s1", 64, {7})
        .splat("s2", 64, {1, 2})
        .splat("s4", 64, {1, 2, 3, 4})
        .splat("s8", 3 << 20, {1, 2, 3, 4, 5, 6, 7, 8})
        .splat("s16", 64, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
        .splat("same", 64, {9, 9, 9, 9, 9, 9, 9, 9})
        .data("twice", {1, 2})
        .data("twice", {3, 4});
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string path = ::testing::TempDir() + test->name() + "_" + GetParam();
    std::replace(path.begin() + static_cast<ptrdiff_t>(::testing::TempDir().size()), path.end(), '/', '_');
    path += ".irpa";
    const Contents bytes = archive.bytes();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    auto scopes = ASSERT_VALUE(load_parameters(std::vector<ParameterFile>{{"model", path}}));
    io = std::make_unique<ModuleCaller>(create_io_parameters_module(
        scopes, {}, {},
        [this](std::string_view text, std::string_view /*path*/) { warnings.emplace_back(text); }));
    done = fence();
  }

  Ref<hal::Fence> fence() { return hal::Fence::create(device).value(); }
  Status await(const Ref<hal::Fence>& fence) {
    hal::Fence* awaited = fence.get();
    return hal::await({&awaited, 1}, 10000);
  }
  Ref<hal::Buffer> buffer(uint64_t size) {
    auto allocated = hal::Buffer::allocate(*device, hal::kAnyQueue, kHostVisible, 0x3000C03, size);
    EXPECT_TRUE(allocated);
    const Contents zeros(size);
    EXPECT_TRUE((*allocated)->write(0, zeros.data(), size));
    return *allocated;
  }
  Contents contents(const Ref<hal::Buffer>& buffer) {
    Contents bytes(buffer->length());
    auto read = buffer->read(0, bytes.data(), bytes.size());
    EXPECT_TRUE(read) << read.error().text();
    return bytes;
  }
  Status gather(const Ref<hal::Buffer>& target, const std::vector<Piece>& pieces,
                std::string_view scope = "model", const Argument& wait = nullptr) {
    const Tables tables(pieces);
    return io->status(
        "gather", kGather,
        {device, kAny, wait, done, text_of(scope), target, tables.key_table, tables.key_data, tables.spans});
  }
  Result<std::vector<Ref<hal::Buffer>>> load(const std::vector<Piece>& pieces, int usage = 0x3000C03) {
    const Tables tables(pieces);
    auto results = io->call("load", kLoad,
                            {device, kAny, nullptr, done, text_of("model"), kAny, kHostVisible, usage,
                             tables.key_table, tables.key_data, tables.spans});
    if (!results) return std::unexpected(results.error());
    auto* list = cast<vm::List>((*results)[0].object());
    std::vector<Ref<hal::Buffer>> buffers;
    for (uint32_t i = 0; i < list->size(); ++i)
      buffers.push_back(Ref<hal::Buffer>::share(cast<hal::Buffer>(list->get_ref(i).value())));
    return buffers;
  }

  Ref<hal::Device> device;
  std::unique_ptr<ModuleCaller> io;
  Ref<hal::Fence> done;
  std::vector<std::string> warnings;
};

// A program that expects another type or shape reads as many bytes as these have.
TEST_P(IoParameters, TheFirstPartAloneGivesOneWarning) {
  const auto loaded = ASSERT_VALUE(load({{"a", 0, 0, 4}}));
  ASSERT_TRUE(await(done).ok());
  EXPECT_EQ(contents(loaded[0]), (Contents{1, 2, 3, 4}));
  ASSERT_EQ(warnings.size(), 1u);
  for (const char* part : {"'a'", "has 8 bytes", "the first 4"})
    EXPECT_NE(warnings[0].find(part), std::string::npos) << warnings[0];
  done = fence();
  ASSERT_TRUE(load({{"a", 0, 0, 2}}));
  ASSERT_TRUE(await(done).ok());
  EXPECT_EQ(warnings.size(), 1u) << "once for each parameter";
  done = fence();
  const auto target = buffer(16);
  ASSERT_TRUE(gather(target, {{"b", 0, 0, 2}, {"s4", 0, 4, 8}}).ok());
  ASSERT_TRUE(await(done).ok());
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_NE(warnings[1].find("'b'"), std::string::npos);
  EXPECT_NE(warnings[2].find("'s4' has 64 bytes"), std::string::npos);
}

TEST_P(IoParameters, PartsThatAreMeantGiveNoWarning) {
  ASSERT_TRUE(load({{"a", 0, 0, 8}, {"b", 2, 0, 2}}));
  ASSERT_TRUE(await(done).ok());
  done = fence();
  ASSERT_TRUE(load({{"a", 0, 0, 4}, {"a", 4, 0, 4}}));
  ASSERT_TRUE(await(done).ok());
  done = fence();
  ASSERT_TRUE(gather(buffer(16), {{"b", 0, 0, 0}}).ok());
  ASSERT_TRUE(await(done).ok());
  EXPECT_EQ(warnings, std::vector<std::string>());
}

// Work of a device may change the bytes of the keys during the call: here, the first warning does.
TEST_P(IoParameters, KeysThatChangeDuringTheCall) {
  Contents keys = {'b', 'a'};
  ParameterScopes scopes;
  auto scope = make<ParameterScope>();
  std::vector<std::pair<std::string, Parameter>> entries;
  const Ref<Bytes> bytes = Bytes::own({1, 2, 3, 4});
  for (const char* key : {"a", "b"}) {
    Parameter parameter;
    parameter.length = 4;
    parameter.bytes = bytes->span();
    parameter.keep = bytes;
    entries.emplace_back(key, parameter);
  }
  ASSERT_TRUE(scope->add("file.irpa", std::move(entries)));
  scopes["model"] = scope;
  std::vector<std::string> reported;
  ModuleCaller changing(
      create_io_parameters_module(scopes, {}, {}, [&](std::string_view text, std::string_view path) {
        std::ranges::fill(keys, '?');
        reported.push_back(fmt::format("{}: {}", path, text));
      }));
  const Tables tables({{"b", 0, 0, 2}, {"a", 0, 2, 2}});
  const Ref<vm::Buffer> data = vm::Buffer::wrap({keys.data(), keys.size()}, true, [] {});
  const auto target = buffer(4);
  const Status status = changing.status(
      "gather", kGather,
      {device, kAny, nullptr, done, text_of("model"), target, tables.key_table, data, tables.spans});
  ASSERT_TRUE(status.ok()) << status.text();
  ASSERT_TRUE(await(done).ok());
  EXPECT_EQ(contents(target), (Contents{1, 2, 1, 2}));
  ASSERT_EQ(reported.size(), 2u);
  EXPECT_TRUE(reported[0].starts_with("file.irpa: parameter 'b' has 4 bytes")) << reported[0];
  EXPECT_TRUE(reported[1].starts_with("file.irpa: parameter 'a' has 4 bytes")) << reported[1];
}

TEST_P(IoParameters, ANameThatIsThereTwiceGivesAWarning) {
  const auto loaded = ASSERT_VALUE(load({{"twice", 0, 0, 2}}));
  ASSERT_TRUE(await(done).ok());
  EXPECT_EQ(contents(loaded[0]), (Contents{1, 2}));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("'twice'"), std::string::npos) << warnings[0];
}

TEST_P(IoParameters, WhatCannotBeReadIsRefusedWhenItIsLoaded) {
  auto scope = make<ParameterScope>();
  Parameter strange;
  strange.trouble = "its type 99 is unknown";
  ASSERT_TRUE(scope->add("f.gguf", std::vector<std::pair<std::string, Parameter>>{{"strange", strange}}));
  ParameterScopes scopes;
  scopes["model"] = scope;
  io = std::make_unique<ModuleCaller>(create_io_parameters_module(scopes));
  EXPECT_FAILS(UNIMPLEMENTED, "'strange' cannot be read: its type 99", load({{"strange", 0, 0, 0}}));
}

TEST_P(IoParameters, TheModuleHasThreeFunctions) {
  EXPECT_EQ(io->module().name(), "io_parameters");
  EXPECT_EQ(io->module().version(), 0u);
  EXPECT_TRUE(io->module().resolve("load", kLoad));
  EXPECT_TRUE(io->module().resolve("gather", kGather));
  EXPECT_TRUE(io->module().resolve("scatter", kGather));
  EXPECT_EQ(io->module().exports().size(), 3u);
}

TEST_P(IoParameters, GatherPutsEachPieceInItsPlace) {
  const auto target = buffer(16);
  const Status status =
      gather(target, {{"a", 2, 1, 3}, {"b", 0, 8, 4}, {"s2", 2, 4, 4}, {"s1", 0, 15, 1}, {"a", 8, 16, 0}});
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_TRUE(await(done).ok());
  EXPECT_EQ(contents(target), (Contents{0, 3, 4, 5, 1, 2, 1, 2, 11, 12, 13, 14, 0, 0, 0, 7}));
}

TEST_P(IoParameters, GatherOfManyPieces) {
  const auto target = buffer(100);
  std::vector<Piece> pieces;
  for (uint64_t i = 0; i < 100; ++i) pieces.push_back({"a", i % 8, i, 1});
  ASSERT_TRUE(gather(target, pieces).ok());
  EXPECT_TRUE(await(done).ok());
  const Contents bytes = contents(target);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(bytes[i], i % 8 + 1) << i;
}

TEST_P(IoParameters, GatherStartsAfterItsWaitFence) {
  const auto target = buffer(8);
  const auto first = fence();
  ASSERT_TRUE(gather(target, {{"a", 0, 0, 4}, {"b", 0, 4, 4}}, "model", first).ok());
  EXPECT_EQ(done->query().code(), Code::DEFERRED);
  EXPECT_EQ(contents(target), Contents(8));
  EXPECT_TRUE(first->signal());
  EXPECT_TRUE(await(done).ok());
  EXPECT_EQ(contents(target), (Contents{1, 2, 3, 4, 11, 12, 13, 14}));
}

TEST_P(IoParameters, AFailedWaitFenceFailsTheSignalFence) {
  const auto target = buffer(8);
  const auto first = fence();
  first->fail(Status(Code::DATA_LOSS, "lost"));
  (void)gather(target, {{"a", 0, 0, 4}, {"b", 0, 4, 4}}, "model", first);
  EXPECT_EQ(await(done).code(), Code::DATA_LOSS);
  EXPECT_EQ(contents(target), Contents(8));
}

TEST_P(IoParameters, WithoutSpansOnlyTheFencesAreChained) {
  ASSERT_TRUE(gather(buffer(4), {}).ok());
  EXPECT_TRUE(await(done).ok());
  done = fence();
  auto loaded = ASSERT_VALUE(load({}));
  EXPECT_TRUE(loaded.empty());
  EXPECT_TRUE(await(done).ok());
  done = fence();
  const Tables none({});
  EXPECT_TRUE(io->status("scatter", kGather,
                         {device, kAny, nullptr, done, buffer(4), text_of("model"), none.key_table,
                          none.key_data, none.spans})
                  .ok());
  EXPECT_TRUE(await(done).ok());
}

TEST_P(IoParameters, SplatsOfEverySizeFromAnyOffset) {
  for (const uint64_t size : {1, 2, 4, 8, 16}) {
    const std::string key = "s" + std::to_string(size);
    for (const uint64_t offset : {0, 1, 3, 16}) {
      for (const uint64_t length : {1, 5, 32}) {
        const auto target = buffer(40);
        done = fence();
        const Status status = gather(target, {{key, offset, 3, length}});
        ASSERT_TRUE(status.ok()) << status.text();
        EXPECT_TRUE(await(done).ok());
        const Contents bytes = contents(target);
        for (uint64_t i = 0; i < 40; ++i) {
          const uint64_t place = i - 3 + offset;
          const uint8_t value = static_cast<uint8_t>(size == 1    ? 7
                                                     : size == 16 ? place % 16
                                                                  : place % size + 1);
          EXPECT_EQ(bytes[i], i >= 3 && i < 3 + length ? value : 0)
              << key << " from " << offset << " byte " << i;
        }
      }
    }
  }
}

// A fill needs an aligned place in the allocation, not in the part of it.
TEST_P(IoParameters, SplatsInPartsOfABuffer) {
  for (const uint64_t begin : {1, 2, 4}) {
    for (const uint64_t place : {0, 1, 2, 3}) {
      const auto whole = buffer(32);
      const Ref<hal::Buffer> part = ASSERT_VALUE(whole->subspan(begin, 24));
      done = fence();
      const Status status = gather(part, {{"s4", 0, place, 16}});
      ASSERT_TRUE(status.ok()) << status.text();
      EXPECT_TRUE(await(done).ok());
      Contents expected(32);
      for (uint64_t i = 0; i < 16; ++i) expected[begin + place + i] = static_cast<uint8_t>(i % 4 + 1);
      EXPECT_EQ(contents(whole), expected) << begin << " " << place;
    }
  }
}

TEST_P(IoParameters, LargeDataAndLargeSplats) {
  const uint64_t size = (3 << 20) - 5;
  const auto target = buffer(size);
  ASSERT_TRUE(gather(target, {{"large", 5, 0, size}}).ok());
  EXPECT_TRUE(await(done).ok());
  Contents bytes = contents(target);
  for (const uint64_t i : {uint64_t{0}, uint64_t{1} << 20, uint64_t{2} << 20, size - 1})
    EXPECT_EQ(bytes[i], static_cast<uint8_t>((i + 5) * 7)) << i;
  done = fence();
  ASSERT_TRUE(gather(target, {{"s8", 3, 0, size}}).ok());
  EXPECT_TRUE(await(done).ok());
  bytes = contents(target);
  for (const uint64_t i : {uint64_t{0}, uint64_t{1} << 20, (uint64_t{2} << 20) + 1, size - 1})
    EXPECT_EQ(bytes[i], (i + 3) % 8 + 1) << i;
}

// Ruling 19.
TEST_P(IoParameters, LoadGivesBuffersOfExactlyTheLength) {
  auto loaded = ASSERT_VALUE(load({{"a", 1, 0, 6}, {"s4", 4, 0, 8}, {"same", 0, 0, 3}, {"b", 4, 0, 0}}));
  EXPECT_TRUE(await(done).ok());
  ASSERT_EQ(loaded.size(), 4u);
  EXPECT_EQ(contents(loaded[0]), (Contents{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(contents(loaded[1]), (Contents{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(contents(loaded[2]), (Contents{9, 9, 9}));
  EXPECT_EQ(loaded[3]->length(), 0u);
}

TEST_P(IoParameters, ConstantsMayLieInTheFile) {
  auto loaded = ASSERT_VALUE(load({{"a", 0, 0, 8}, {"b", 1, 0, 3}, {"s1", 0, 0, 4}}, 0x3080C03));
  EXPECT_TRUE(await(done).ok());
  EXPECT_EQ(contents(loaded[0]), (Contents{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(contents(loaded[1]), (Contents{12, 13, 14}));
  EXPECT_EQ(contents(loaded[2]), (Contents{7, 7, 7, 7}));
  EXPECT_EQ(loaded[0]->access(), uint32_t{hal::kRead}) << "the file itself";
}

TEST_P(IoParameters, LoadTakesNoBufferOffset) {
  EXPECT_FAILS(OUT_OF_RANGE, "buffer offset 4", load({{"a", 0, 0, 4}, {"a", 0, 4, 4}}));
  EXPECT_EQ(done->query().code(), Code::OUT_OF_RANGE) << "an error fails the signal fence";
}

TEST_P(IoParameters, WhatIsMissingIsNamed) {
  EXPECT_FAILS(NOT_FOUND, "no parameter 'largo'", gather(buffer(8), {{"largo", 0, 0, 4}}));
  EXPECT_EQ(done->query().code(), Code::NOT_FOUND);
  done = fence();
  EXPECT_FAILS(NOT_FOUND, "did you mean 'large'?", gather(buffer(8), {{"largo", 0, 0, 4}}));
  EXPECT_FAILS(NOT_FOUND, "scope 'other'", gather(buffer(8), {{"a", 0, 0, 4}}, "other"));
  EXPECT_FAILS(NOT_FOUND, "'model'", gather(buffer(8), {{"a", 0, 0, 4}}, "other"));
}

TEST_P(IoParameters, ScopesThatAreThereAreListed) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string path = ::testing::TempDir() + test->name();
  std::replace(path.begin() + static_cast<ptrdiff_t>(::testing::TempDir().size()), path.end(), '/', '_');
  path += ".irpa";
  const Contents bytes = IrpaBuilder().data("a", {1}).bytes();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const auto scopes = ASSERT_VALUE(load_parameters(std::vector<ParameterFile>{{"one", path}, {"two", path}}));
  ModuleCaller both(create_io_parameters_module(scopes));
  const Tables tables({{"a", 0, 0, 1}});
  EXPECT_FAILS(NOT_FOUND, "scope 'three', only for 'one', 'two'",
               both.status("gather", kGather,
                           {device, kAny, nullptr, nullptr, text_of("three"), buffer(8), tables.key_table,
                            tables.key_data, tables.spans}));
}

// Compilers that know of no usage give 0.
TEST_P(IoParameters, WithoutAUsageTheBufferHasTheUsual) {
  const auto loaded = ASSERT_VALUE(load({{"a", 0, 0, 8}}, 0));
  ASSERT_TRUE(await(done).ok());
  EXPECT_EQ(loaded[0]->length(), 8u);
  const uint32_t usual = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_TRANSFER_TARGET;
  EXPECT_EQ(loaded[0]->usage() & usual, usual);
}

// What a program may not write can lie in the file, but a length of 0 and a splat cannot.
TEST_P(IoParameters, ConstantsOfNoLengthAndSplatsHaveTheirOwnMemory) {
  const auto loaded = ASSERT_VALUE(load({{"b", 4, 0, 0}, {"s8", 8, 0, 16}, {"s4", 1, 0, 7}}, 0x3080C03));
  ASSERT_TRUE(await(done).ok());
  EXPECT_EQ(loaded[0]->length(), 0u);
  EXPECT_EQ(contents(loaded[1]), (Contents{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(contents(loaded[2]), (Contents{2, 3, 4, 1, 2, 3, 4}));
}

TEST_P(IoParameters, ANullScopeIsTheEmptyOne) {
  const Tables tables({{"a", 0, 0, 4}});
  const auto call = [&](ModuleCaller& module) {
    return module.status("gather", kGather,
                         {device, kAny, nullptr, nullptr, nullptr, buffer(8), tables.key_table,
                          tables.key_data, tables.spans});
  };
  EXPECT_FAILS(NOT_FOUND, "no parameters for scope ''", call(*io));
  ModuleCaller none(create_io_parameters_module({}));
  EXPECT_FAILS(NOT_FOUND, "no parameters for scope", call(none));
}

TEST_P(IoParameters, RangesAreCheckedBeforeAnythingIsWritten) {
  const auto target = buffer(8);
  EXPECT_FAILS(OUT_OF_RANGE, "8 bytes of parameter 'a', found 3 bytes at offset 6",
               gather(target, {{"b", 0, 0, 4}, {"a", 6, 4, 3}}));
  EXPECT_FAILS(OUT_OF_RANGE, "bytes of parameter '",
               gather(target, {{"b", 0, 0, 4}, {"a", UINT64_MAX, 4, 3}}));
  EXPECT_FAILS(OUT_OF_RANGE, "gathering parameter 'a'", gather(target, {{"b", 0, 0, 4}, {"a", 0, 6, 4}}));
  EXPECT_FAILS(OUT_OF_RANGE, "gathering parameter 'a'",
               gather(target, {{"b", 0, 0, 4}, {"a", 0, UINT64_MAX, 4}}));
  EXPECT_EQ(contents(target), Contents(8));
}

// Files that end where the data of their last parameter ends, at the end of a page and within one.
std::vector<uint8_t> safetensors(const Contents& last) {
  std::string header =
      fmt::format(R"({{"last":{{"dtype":"U8","shape":[{0}],"data_offsets":[0,{0}]}}}})", last.size());
  const uint64_t length = header.size();
  std::vector<uint8_t> file(sizeof length + header.size() + last.size());
  std::memcpy(file.data(), &length, sizeof length);
  std::ranges::copy(header, file.begin() + sizeof length);
  std::ranges::copy(last, file.end() - static_cast<ptrdiff_t>(last.size()));
  return file;
}
std::vector<uint8_t> irpa(const Contents& last) { return IrpaBuilder().data("last", last).bytes(); }

TEST_P(IoParameters, ReadsUpToTheEndOfAFileAndNoFurther) {
  constexpr uint64_t kPage = 4096;
  const auto file_of = [](bool is_irpa, const Contents& last) {
    return is_irpa ? irpa(last) : safetensors(last);
  };
  for (const bool is_irpa : {true, false}) {
    for (const uint64_t past_a_page : {0, 1, 63}) {
      // The length for which the file ends there.
      uint64_t size = 2 * kPage;
      while (file_of(is_irpa, Contents(size)).size() % kPage != past_a_page) ++size;
      Contents last(size);
      for (size_t i = 0; i < size; ++i) last[i] = static_cast<uint8_t>(i * 11 + 1);
      const std::vector<uint8_t> whole = file_of(is_irpa, last);
      ASSERT_EQ(whole.back(), last.back());
      const std::string path =
          fmt::format("{}end_{}.{}", ::testing::TempDir(), GetParam(), is_irpa ? "irpa" : "safetensors");
      const auto write = [&](size_t length) {
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(whole.data()), static_cast<std::streamsize>(length));
      };
      for (const ParameterMode mode : {ParameterMode::file, ParameterMode::preload}) {
        SCOPED_TRACE(fmt::format("{}, {} past a page, mode {}", path, past_a_page, static_cast<int>(mode)));
        write(whole.size() - 1);
        EXPECT_FALSE(load_parameters(std::vector<ParameterFile>{{"model", path}}, mode));
        write(whole.size());
        auto scopes = ASSERT_VALUE(load_parameters(std::vector<ParameterFile>{{"model", path}}, mode));
        io = std::make_unique<ModuleCaller>(create_io_parameters_module(scopes));
        for (const uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{3}, kPage, size}) {
          SCOPED_TRACE(length);
          const auto begin = static_cast<ptrdiff_t>(size - length);
          const Contents expected(last.begin() + begin, last.end());
          const auto target = buffer(length);
          done = fence();
          ASSERT_TRUE(gather(target, {{"last", size - length, 0, length}}).ok());
          ASSERT_TRUE(await(done).ok());
          EXPECT_EQ(contents(target), expected);
          done = fence();
          const auto loaded = ASSERT_VALUE(load({{"last", size - length, 0, length}}));
          ASSERT_TRUE(await(done).ok());
          EXPECT_EQ(contents(loaded[0]), expected);
          done = fence();
          EXPECT_FAILS(OUT_OF_RANGE, "bytes of parameter '",
                       gather(target, {{"last", size - length + 1, 0, length}}));
        }
      }
    }
  }
}

TEST_P(IoParameters, TablesAreChecked) {
  const Tables tables({{"a", 0, 0, 4}, {"b", 0, 4, 4}});
  const auto call = [&](const Ref<vm::Buffer>& key_table, const Ref<vm::Buffer>& key_data,
                        const Ref<vm::Buffer>& spans) {
    return io->status(
        "gather", kGather,
        {device, kAny, nullptr, nullptr, text_of("model"), buffer(8), key_table, key_data, spans});
  };
  EXPECT_TRUE(call(tables.key_table, tables.key_data, tables.spans).ok());
  EXPECT_FAILS(INVALID_ARGUMENT, "spans of 24 bytes each",
               call(tables.key_table, tables.key_data, bytes_of(Contents(25))));
  EXPECT_FAILS(INVALID_ARGUMENT, "a key of 8 bytes for each of",
               call(bytes_of(Contents(15)), tables.key_data, tables.spans));
  EXPECT_FAILS(OUT_OF_RANGE, "key 1", call(tables.key_table, bytes_of({'a'}), tables.spans));
  EXPECT_FAILS(OUT_OF_RANGE, "key 0",
               call(bytes_of({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0}),
                    tables.key_data, tables.spans));
  EXPECT_FAILS(INVALID_ARGUMENT, "null", call(nullptr, tables.key_data, tables.spans));
}

TEST_P(IoParameters, ScatterFindsNoParameterThatCanBeWritten) {
  const auto scatter = [&](const std::vector<Piece>& pieces) {
    const Tables tables(pieces);
    return io->status("scatter", kGather,
                      {device, kAny, nullptr, done, buffer(8), text_of("model"), tables.key_table,
                       tables.key_data, tables.spans});
  };
  EXPECT_FAILS(PERMISSION_DENIED, "reading only", scatter({{"a", 0, 0, 4}}));
  EXPECT_EQ(done->query().code(), Code::PERMISSION_DENIED);
  EXPECT_FAILS(PERMISSION_DENIED, "splat", scatter({{"s1", 0, 0, 4}}));
  EXPECT_FAILS(OUT_OF_RANGE, "bytes of parameter '", scatter({{"a", 0, 0, 9}}));
  EXPECT_FAILS(OUT_OF_RANGE, "scattering parameter 'a'", scatter({{"a", 0, 6, 4}}));
  EXPECT_FAILS(NOT_FOUND, "none", scatter({{"none", 0, 0, 4}}));
}

INSTANTIATE_TEST_SUITE_P(Local, IoParameters, ::testing::Values("local-sync"));

}  // namespace
}  // namespace halyard::modules
