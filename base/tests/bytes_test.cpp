// Mapped files: writes to a mapping stay in this process; without memory for a private mapping it is
// read-only. Streams are read whole. Copies and borrowed bytes.
#include "base/bytes.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "fixtures.h"
#include "halyard/abi.h"
#include "status_testing.h"

namespace halyard {
namespace {

class BytesTest : public testing::Test {
 public:
  void write(const std::string& content) { folder_.write("file", content); }
  std::string content() { return file_text(path_); }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "file";
};

TEST_F(BytesTest, WhatIsWrittenToAMappingIsNotWrittenToTheFile) {
  const std::string text(10000, 'a');
  write(text);
  const auto first = Bytes::map_file(path_);
  const auto second = Bytes::map_file(path_);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE((*first)->is_private());
  std::memset(const_cast<uint8_t*>((*first)->data()) + 4000, 'b', 200);
  EXPECT_EQ(content(), text);
  EXPECT_EQ(std::memcmp((*second)->data(), text.data(), text.size()), 0);
  EXPECT_EQ((*first)->data()[4100], 'b');
}

TEST_F(BytesTest, PrivateAreThoseThatNobodyElseHas) {
  const uint8_t somebodys[3] = {1, 2, 3};
  EXPECT_FALSE(Bytes::borrow(somebodys, {})->is_private());
  EXPECT_TRUE(Bytes::copy(somebodys)->is_private());
  EXPECT_TRUE(Bytes::own({1, 2, 3})->is_private());
  write("");
  const auto empty = ASSERT_VALUE(Bytes::map_file(path_));
  EXPECT_EQ(empty->size(), 0u);
}

TEST_F(BytesTest, LibrariesAreOnlyRead) {
  write(
      "\x7F"
      "ELF and more");
  const auto mapped = ASSERT_VALUE(Bytes::map_file(path_));
  EXPECT_FALSE(mapped->is_private());
}

// A process with a low memory limit can still map the file.
TEST_F(BytesTest, WithoutMemoryForAPrivateMappingItIsReadOnly) {
  if (HALYARD_SANITIZER_KIND != 0) GTEST_SKIP() << "sanitizers need the memory";
  if (std::getenv("HALYARD_EMULATED")) GTEST_SKIP() << "qemu does not obey setrlimit(RLIMIT_DATA)";
  constexpr uint64_t kSize = uint64_t{1} << 30;
  write("first bytes");
  std::filesystem::resize_file(path_, kSize);
  const auto maps = [&] {
    const rlimit limit = {uint64_t{256} << 20, uint64_t{256} << 20};
    if (setrlimit(RLIMIT_DATA, &limit) != 0) std::exit(2);
    const auto mapped = Bytes::map_file(path_);
    if (!mapped || (*mapped)->size() != kSize || std::memcmp((*mapped)->data(), "first bytes", 11) != 0)
      std::exit(3);
    std::exit((*mapped)->is_private() ? 4 : 0);
  };
  EXPECT_EXIT(maps(), testing::ExitedWithCode(0), "");
}

TEST_F(BytesTest, FilesOfFewBytes) {
  for (const std::string text : {"\x7F",
                                 "\x7F"
                                 "EL",
                                 "abc"}) {
    write(text);
    const auto mapped = ASSERT_VALUE(Bytes::map_file(path_));
    EXPECT_TRUE(mapped->is_private());
    EXPECT_EQ(std::string(mapped->data(), mapped->data() + mapped->size()), text);
  }
  EXPECT_EQ(Bytes::copy({})->size(), 0u);
}

// Files of the kernel have a size, but cannot be mapped.
TEST_F(BytesTest, AFileThatCannotBeMappedSaysWhy) {
  const std::string file = "/sys/kernel/mm/transparent_hugepage/enabled";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "the system has no such file";
  EXPECT_FAILS(UNAVAILABLE, "cannot map file '" + file + "'", Bytes::map_file(file));
}

TEST_F(BytesTest, StandardInput) {
  write("from the shell");
  const auto reads = [&] {
    if (!std::freopen(path_.c_str(), "rb", stdin)) std::exit(2);
    const auto bytes = Bytes::map_file("-");
    std::exit(bytes && (*bytes)->size() == 14 ? 0 : 3);
  };
  EXPECT_EXIT(reads(), testing::ExitedWithCode(0), "");
}

TEST_F(BytesTest, AStreamThatCannotBeRead) {
  const auto reads = [&] {
    if (!std::freopen(path_.c_str(), "wb", stdin)) std::exit(2);  // only for writing
    const auto bytes = Bytes::map_file("-");
    std::exit(!bytes && bytes.error().text().find("cannot read file 'standard input'") != std::string::npos
                  ? 0
                  : 3);
  };
  EXPECT_EXIT(reads(), testing::ExitedWithCode(0), "");
}

TEST_F(BytesTest, ASignalDoesNotEndAStream) {
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {};  // without SA_RESTART: read() returns EINTR
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const pthread_t reader = ::pthread_self();
  std::thread writer([&] {
    for (int i = 0; i < 20; ++i) {
      ::pthread_kill(reader, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(::write(ends[1], "whole", 5), 5);
    ::close(ends[1]);
  });
  const auto read = Bytes::map_file("/dev/fd/" + std::to_string(ends[0]));
  writer.join();
  ::close(ends[0]);
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(ASSERT_VALUE(read)->size(), 5u);
}

TEST_F(BytesTest, ACopyReportsItsProgress) {
  const std::vector<uint8_t> bytes((size_t{16} << 20) + 1, 7);
  std::vector<size_t> seen;
  const auto copied = ASSERT_VALUE(Bytes::copy(bytes, [&](size_t at) -> Result<> {
    seen.push_back(at);
    return {};
  }));
  EXPECT_EQ(seen, (std::vector<size_t>{size_t{16} << 20, bytes.size()}));
  EXPECT_EQ(copied->data()[bytes.size() - 1], 7);
  EXPECT_FAILS(CANCELLED, "enough",
               Bytes::copy(bytes, [](size_t) -> Result<> { return fail(Code::CANCELLED, "enough"); }));
  EXPECT_EQ(
      ASSERT_VALUE(Bytes::copy({}, [](size_t) -> Result<> { return fail(Code::CANCELLED, "none"); }))->size(),
      0u);
}

TEST_F(BytesTest, BorrowedBytesAreReleasedOnce) {
  const uint8_t somebodys[3] = {1, 2, 3};
  int released = 0;
  {
    const auto bytes = Bytes::borrow(somebodys, [&] { ++released; });
  }
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace halyard
