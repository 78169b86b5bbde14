// The folder of compiled images: what comes back, what is forgotten, and folders that are not used.
#include "front/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <string>

#include "fixtures.h"

namespace halyard::jit {
namespace {

Digest key(uint8_t number) {
  Digest made = {};
  made[0] = number;
  return made;
}

class CompiledCacheTest : public testing::Test {
 public:
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      found.insert(entry.path().filename());
    return found;
  }
  std::string only() const {
    const std::set<std::string> there = names();
    EXPECT_EQ(there.size(), 1u);
    return folder_ / *there.begin();
  }
  // Sets when a file was last used.
  static void age(const std::string& path, time_t seconds) {
    const timespec time = {::time(nullptr) - seconds, 0};
    const timespec times[2] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  std::string path_of(uint8_t number) const {
    return folder_ / (fmt::format("{:02x}", number) + std::string(62, '0') + ".object");
  }

  const TemporaryFolder outside_;
  const std::filesystem::path folder_ = outside_ / "cache";
};

TEST_F(CompiledCacheTest, KeepsImagesByTheirKeys) {
  const Cache cache(folder_);
  EXPECT_EQ(cache.refusal(), "");
  EXPECT_EQ(cache.find(key(1)), std::nullopt);
  cache.store(key(1), "one");
  cache.store(key(2), "");
  cache.store(key(1), "one again");
  EXPECT_EQ(cache.find(key(1)), "one again");
  EXPECT_EQ(cache.find(key(2)), "");
  EXPECT_EQ(Cache(folder_).find(key(1)), "one again");
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(CompiledCacheTest, DamagedEntriesAreRemoved) {
  const Cache cache(folder_);
  cache.store(key(1), "an image");
  const std::string whole = file_text(only());
  for (size_t size = 0; size < whole.size(); ++size) {
    outside_.write("cache/" + *names().begin(), whole.substr(0, size));
    EXPECT_EQ(cache.find(key(1)), std::nullopt) << size;
    EXPECT_TRUE(names().empty()) << size;
    cache.store(key(1), "an image");
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] + 1);
    outside_.write("cache/" + *names().begin(), changed);
    EXPECT_EQ(cache.find(key(1)), std::nullopt) << at;
    cache.store(key(1), "an image");
  }
  // The entry of another key, under this name.
  std::filesystem::rename(only(), path_of(2));
  EXPECT_EQ(cache.find(key(2)), std::nullopt);
}

TEST_F(CompiledCacheTest, FoldersOfOthersAreNotUsed) {
  std::filesystem::create_directory(folder_);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  const Cache cache(folder_);
  EXPECT_NE(cache.refusal().find("cache folder '" + folder_.string() + "' is not used"), std::string::npos)
      << cache.refusal();
  cache.store(key(1), "one");
  EXPECT_TRUE(names().empty());
  EXPECT_EQ(cache.find(key(1)), std::nullopt);
  const Cache none("/dev/null/cache");
  EXPECT_NE(none.refusal().find("cannot be opened"), std::string::npos) << none.refusal();
  none.store(key(1), "one");
  EXPECT_EQ(none.find(key(1)), std::nullopt);
}

TEST_F(CompiledCacheTest, TheLeastRecentlyUsedMakeRoom) {
  constexpr uint64_t kRoom = 4000;
  const std::string image(1000, 'x');  // three fit, with their headers
  const Cache cache(folder_, kRoom);
  for (const uint8_t number : {1, 2, 3}) {
    cache.store(key(number), image);
    age(path_of(number), 100 - number);
  }
  EXPECT_EQ(names().size(), 3u);
  EXPECT_EQ(cache.find(key(1)), image);  // 2 is now the oldest
  cache.store(key(4), image);
  EXPECT_EQ(cache.find(key(2)), std::nullopt);
  for (const uint8_t number : {1, 3, 4}) EXPECT_EQ(cache.find(key(number)), image) << int{number};
  cache.store(key(5), std::string(kRoom + 1, 'x'));  // larger than all the room
  EXPECT_EQ(cache.find(key(5)), std::nullopt);
  EXPECT_EQ(names().size(), 3u);
  cache.store(key(6), std::string(kRoom - 100, 'x'));
  EXPECT_EQ(names().size(), 1u);
}

TEST_F(CompiledCacheTest, TheRoomCanBeUsedUp) {
  constexpr uint64_t kHeader = 48;
  const Cache cache(folder_, 3 * (1000 + kHeader));
  for (const uint8_t number : {1, 2, 3}) cache.store(key(number), std::string(1000, 'x'));
  EXPECT_EQ(names().size(), 3u);
  EXPECT_EQ(std::filesystem::file_size(path_of(1)), 1000 + kHeader);
}

TEST_F(CompiledCacheTest, EntriesOfOneSecondAreToldApart) {
  const Cache cache(folder_, 2500);
  const std::string image(1000, 'x');
  const time_t now = ::time(nullptr);
  for (const uint8_t number : {1, 2}) {
    cache.store(key(number), image);
    const timespec time = {now - 100, 1000 - 100L * number};
    const timespec times[2] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, path_of(number).c_str(), times, 0), 0);
  }
  cache.store(key(3), image);
  EXPECT_EQ(cache.find(key(2)), std::nullopt);  // the older by 100 nanoseconds
  EXPECT_EQ(cache.find(key(1)), image);
}

// A process that has as many files open as it may: it neither keeps nor finds, and what is there stays.
TEST_F(CompiledCacheTest, WithoutDescriptorsNothingIsKept) {
  const Cache cache(folder_);
  cache.store(key(1), "one");
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  cache.store(key(2), "two");
  const bool found = cache.find(key(1)).has_value();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(found);
  EXPECT_EQ(cache.find(key(1)), "one");
  EXPECT_EQ(cache.find(key(2)), std::nullopt);
}

TEST_F(CompiledCacheTest, OnlyItsOwnFilesMakeRoom) {
  const Cache cache(folder_, 2000);
  cache.store(key(1), std::string(1000, 'x'));
  outside_.write("cache/notes.txt", std::string(5000, 'n'));
  outside_.write("cache/old.unfinished", "left by a process that ended");
  outside_.write("cache/new.unfinished", "being written");
  age(folder_ / "old.unfinished", 2 * 3600);
  std::filesystem::create_directory(folder_ / "folder.object");  // cannot be unlinked
  age(folder_ / "folder.object", 1000);
  cache.store(key(2), std::string(1000, 'x'));
  EXPECT_EQ(cache.find(key(1)), std::nullopt);
  EXPECT_EQ(cache.find(key(2)), std::string(1000, 'x'));
  EXPECT_TRUE(names().contains("notes.txt"));
  EXPECT_TRUE(names().contains("new.unfinished"));
  EXPECT_FALSE(names().contains("old.unfinished"));
  EXPECT_TRUE(names().contains("folder.object"));
}

}  // namespace
}  // namespace halyard::jit
