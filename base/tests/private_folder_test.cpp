// Files of caches: read again, and only where no other user could have written them.
#include "halyard/private_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "fixtures.h"

namespace halyard {
namespace {

constexpr uint64_t kMaxBytes = 1000;

class PrivateFolderTest : public testing::Test {
 public:
  std::string refusal() const { return PrivateFolder(folder_).refusal(); }
  std::optional<std::string> read() const { return PrivateFolder(folder_).read("entry", kMaxBytes); }
  void write(const std::string& content) const {
    EXPECT_TRUE(PrivateFolder(folder_).write("entry", {content}));
  }
  TemporaryFolder outside_;
  std::filesystem::path folder_ = outside_ / "new" / "cache";
};

TEST_F(PrivateFolderTest, IsMadeAndKeepsFiles) {
  EXPECT_FALSE(PrivateFolder(folder_, PrivateFolder::Missing::stays).refusal().empty());
  EXPECT_FALSE(std::filesystem::exists(outside_ / "new"));
  const PrivateFolder folder(folder_);
  EXPECT_EQ(folder.refusal(), "");
  struct stat info = {};
  ASSERT_EQ(stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_EQ(folder.read("entry", kMaxBytes), std::nullopt);
  EXPECT_TRUE(folder.write("entry", {"two ", "parts"}));
  EXPECT_EQ(folder.read("entry", kMaxBytes), "two parts");
  EXPECT_EQ(folder.read("entry", 9), "two parts");
  EXPECT_EQ(folder.read("entry", 8), std::nullopt) << "longer than the limit";
  EXPECT_TRUE(folder.write("entry", {}));
  EXPECT_EQ(folder.read("entry", kMaxBytes), "");
  folder.remove("entry");
  EXPECT_EQ(folder.read("entry", kMaxBytes), std::nullopt);
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "nothing unfinished is left";
}

TEST_F(PrivateFolderTest, WhatOthersCouldHaveWrittenIsNotRead) {
  write("mine");
  EXPECT_EQ(read(), "mine");
  const std::string entry = folder_ / "entry";
  for (const mode_t mode : {0620u, 0602u, 0666u}) {
    chmod(entry.c_str(), mode);
    EXPECT_EQ(read(), std::nullopt) << mode;
  }
  chmod(entry.c_str(), 0644);
  EXPECT_EQ(read(), "mine") << "others may read it";
  const std::string elsewhere = outside_ / "elsewhere";
  std::filesystem::rename(entry, elsewhere);
  ASSERT_EQ(symlink(elsewhere.c_str(), entry.c_str()), 0);
  EXPECT_EQ(read(), std::nullopt) << "a link";
  std::filesystem::remove(entry);
  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
  EXPECT_EQ(read(), std::nullopt) << "a pipe that nobody writes to";
  write("instead");
  EXPECT_EQ(read(), "instead");
  std::filesystem::remove(entry);
  std::filesystem::create_directory(entry);
  EXPECT_EQ(read(), std::nullopt) << "a folder";
  EXPECT_FALSE(PrivateFolder(folder_).write("entry", {"x"}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1)
      << "nothing unfinished is left";
  std::filesystem::remove(entry);
  if (geteuid() != 0) return;
  write("mine");
  ASSERT_EQ(chown(entry.c_str(), 65534, 65534), 0);
  EXPECT_EQ(read(), std::nullopt) << "another user's";
}

TEST_F(PrivateFolderTest, FoldersThatOthersMayWriteToAreRefused) {
  write("mine");
  for (const mode_t mode : {0720u, 0702u, 0777u}) {
    chmod(folder_.c_str(), mode);
    EXPECT_NE(refusal().find(folder_.string()), std::string::npos) << mode;
    EXPECT_EQ(read(), std::nullopt) << mode;
    EXPECT_FALSE(PrivateFolder(folder_).write("other", {"x"})) << mode;
  }
  chmod(folder_.c_str(), 0755);
  EXPECT_EQ(read(), "mine") << "others may look into it";
  const std::filesystem::path there = folder_;
  folder_ = outside_ / "link";
  std::filesystem::create_symlink(there, folder_);
  EXPECT_NE(refusal(), "") << "a link";
  folder_ = outside_ / "file";
  std::ofstream(folder_) << "in the way";
  EXPECT_NE(refusal(), "") << "a file";
  if (geteuid() != 0) return;
  folder_ = there;
  ASSERT_EQ(chown(folder_.c_str(), 65534, 65534), 0);
  EXPECT_NE(refusal(), "") << "another user's";
}

// What a process of the same number left behind is in nobody's way.
TEST_F(PrivateFolderTest, ManyWriteAtOnce) {
  const PrivateFolder folder(folder_);
  for (int i = 0; i < 100; ++i)
    std::ofstream(folder_ / (std::to_string(getpid()) + "-" + std::to_string(i) + ".unfinished")) << "old";
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int j = 0; j < 50; ++j) {
        const std::string content(100, static_cast<char>('a' + i));
        EXPECT_TRUE(folder.write("entry", {content}));
        const std::optional<std::string> found = folder.read("entry", kMaxBytes);
        ASSERT_TRUE(found);
        EXPECT_EQ(*found, std::string(100, found->front()));
      }
    });
}

}  // namespace
}  // namespace halyard
