// Private folders when the system refuses: full disks, folders that are gone, paths without a parent.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <iterator>

#include "fixtures.h"
#include "halyard/private_folder.hpp"

namespace halyard {
namespace {

// In a child process, because limits hold for the whole process.
TEST(PrivateFolderFaults, AFileThatIsNotWrittenWholeIsNotThere) {
  const TemporaryFolder outside;
  const std::string path = outside / "cache";
  const auto writes = [&] {
    const PrivateFolder folder(path);
    const bool first = folder.write("entry", {"before"});
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit all = {};
    ::getrlimit(RLIMIT_FSIZE, &all);
    const rlimit few = {1000, all.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &few);
    const std::string large(600, 'x');
    const bool second = folder.write("entry", {large, large, "more"});
    const int error = errno;
    ::setrlimit(RLIMIT_FSIZE, &all);
    std::exit(first && !second && error == EFBIG && folder.read("entry", 1000) == "before" ? 0 : 1);
  };
  EXPECT_EXIT(writes(), testing::ExitedWithCode(0), "");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path), {}), 1) << "nothing unfinished is left";
}

TEST(PrivateFolderFaults, AFolderThatIsGoneTakesNothing) {
  const TemporaryFolder outside;
  const std::string path = outside / "cache";
  const PrivateFolder folder(path);
  EXPECT_EQ(folder.refusal(), "");
  std::filesystem::remove_all(path);
  EXPECT_FALSE(folder.write("entry", {"x"}));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(folder.read("entry", 100), std::nullopt);
}

TEST(PrivateFolderFaults, AFolderThatWasNeverThereIsLeftAlone) {
  const TemporaryFolder outside;
  const PrivateFolder folder(outside / "none", PrivateFolder::Missing::stays);
  EXPECT_EQ(folder.descriptor(), -1);
  folder.remove("entry");
  folder.touch("entry");
  EXPECT_FALSE(folder.write("entry", {"x"}));
  EXPECT_EQ(errno, EACCES);
  EXPECT_FALSE(std::filesystem::exists(outside / "none"));
}

TEST(PrivateFolderFaults, APathWithoutAParentIsInTheFolderOfTheProcess) {
  const TemporaryFolder outside;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(outside.path());
  const PrivateFolder folder("cache");
  std::filesystem::current_path(before);
  EXPECT_EQ(folder.refusal(), "");
  EXPECT_TRUE(std::filesystem::is_directory(outside / "cache"));
}

TEST(PrivateFolderFaults, AFileThatIsUsedIsYoung) {
  const TemporaryFolder outside;
  const PrivateFolder folder(outside / "cache");
  ASSERT_TRUE(folder.write("entry", {"x"}));
  const std::filesystem::path entry = outside / "cache" / "entry";
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(entry, now - std::chrono::hours(1));
  folder.touch("entry");
  EXPECT_GT(std::filesystem::last_write_time(entry), now - std::chrono::minutes(30));
  folder.touch("other");
  EXPECT_FALSE(std::filesystem::exists(outside / "cache" / "other"));
}

}  // namespace
}  // namespace halyard
