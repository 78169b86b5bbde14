// Ranks: from flags and from the launcher's variables, in values of flags and before lines.
#include "common/ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "in_child.h"

namespace halyard::tools {
namespace {

constexpr List kRankNames = {"name", "NAME", "A name.", "--name=a"};
constexpr const Flag* kRankOwnFlags[] = {&kRankNames};
constexpr FlagGroup kRankGroups[] = {{"", kRankOwnFlags}, {"Ranks", kRankFlags}};
constexpr ToolDescription kRankTool = {"tool", "tool", "A tool.", kRankGroups, ""};

Flags ranks_of(const std::vector<const char*>& words) {
  std::vector<const char*> arguments = {"tool"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  return Flags::parse(kRankTool, static_cast<int>(arguments.size()), arguments.data()).value();
}

class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                             "PMI_RANK", "SLURM_PROCID", "HALYARD_CHANNEL_PROVIDER"})
      ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }
  static void launch(const char* rank, const char* count, const char* local) {
    ::setenv("OMPI_COMM_WORLD_RANK", rank, 1);
    ::setenv("OMPI_COMM_WORLD_SIZE", count, 1);
    ::setenv("OMPI_COMM_WORLD_LOCAL_RANK", local, 1);
  }
};

TEST_F(Ranks, ComeFromFlagsBeforeTheLauncher) {
  EXPECT_EQ(rank_of(ranks_of({}))->rank, 0u);
  EXPECT_EQ(rank_of(ranks_of({}))->count, 1u);
  const Flags both = ranks_of({"--rank=2", "--rank_count=4"});
  EXPECT_EQ(rank_of(both)->rank, 2u);
  EXPECT_EQ(rank_of(both)->count, 4u);
  EXPECT_EQ(rank_of(both)->local_rank, 2u) << "without a launcher all ranks are on this machine";
  launch("5", "8", "1");
  EXPECT_EQ(rank_of(ranks_of({}))->rank, 5u);
  EXPECT_EQ(rank_of(ranks_of({}))->count, 8u);
  EXPECT_EQ(rank_of(ranks_of({}))->local_rank, 1u);
  EXPECT_EQ(rank_of(both)->rank, 2u);
  EXPECT_EQ(rank_of(both)->local_rank, 1u) << "the launcher knows the machine";
}

TEST_F(Ranks, WrongNumbersAreRefused) {
  const std::pair<std::vector<const char*>, const char*> cases[] = {
      {{"--rank=1"}, "found rank 1 of 1; give both --rank and --rank_count"},
      {{"--rank=4", "--rank_count=4"}, "found rank 4 of 4"},
      {{"--rank_count=0"}, "found rank 0 of 0"},
      {{"--rank=2147483648", "--rank_count=4"}, "2147483648"},
      {{"--rank=0", "--rank_count=2147483648"}, "2147483648"},
      {{"--rank=x"}, "--rank"},
  };
  for (const auto& [words, part] : cases) {
    const Result<halyard_launch_t> rank = rank_of(ranks_of(words));
    ASSERT_FALSE(rank) << part;
    EXPECT_NE(rank.error().text.find(part), std::string::npos) << rank.error().text;
    Flags flags = ranks_of(words);
    EXPECT_FALSE(take_rank(flags, false)) << part;
    EXPECT_FALSE(channels_of(flags)) << part;
  }
}

TEST_F(Ranks, ArePossibleWithALauncherAFlagOrAProvider) {
  EXPECT_FALSE(*is_rank(ranks_of({})));
  for (const char* word : {"--rank=0", "--rank_count=1", "--channel_provider=x.so", "--channel_timeout=1s"})
    EXPECT_TRUE(*is_rank(ranks_of({word}))) << word;
  ::setenv("HALYARD_CHANNEL_PROVIDER", "x.so", 1);
  EXPECT_TRUE(*is_rank(ranks_of({})));
  ::unsetenv("HALYARD_CHANNEL_PROVIDER");
  launch("0", "1", "0");
  EXPECT_TRUE(*is_rank(ranks_of({})));
}

// The values of --name after take_rank().
std::vector<std::string> taken_names(Flags flags) {
  EXPECT_TRUE(take_rank(flags, false));
  return flags[kRankNames];
}

TEST_F(Ranks, StandForPlaceholders) {
  EXPECT_EQ(taken_names(ranks_of({"--name=%r of %n%%"})), std::vector<std::string>{"%r of %n%%"})
      << "without ranks a percent sign is a character";
  launch("0", "1", "7");
  EXPECT_EQ(taken_names(ranks_of({"--name=%r.%n.%l", "--name=%%r", "--name=%", "--name=100%", "--name=%x%y",
                                  "--name=%%%r%", "--name="})),
            (std::vector<std::string>{"0.1.7", "%r", "%", "100%", "%x%y", "%0%", ""}));
}

TEST_F(Ranks, MarkMessagesAndLines) {
  EXPECT_EQ(in_child([] {
              Flags flags = ranks_of({"--rank=1", "--rank_count=2", "--name=%r%n%l"});
              EXPECT_TRUE(take_rank(flags, false));
              return std::string(rank_prefix()) + flags[kRankNames][0];
            }),
            "rank 1: 121");
  EXPECT_EQ(in_child([] {
              Flags flags = ranks_of({"--rank=1", "--rank_count=2"});
              std::printf("before\n");
              EXPECT_TRUE(take_rank(flags, true));
              std::printf("one ");
              std::fflush(stdout);
              std::printf("line\n\nand\nmore");
              std::fclose(stdout);
              return std::string();
            }),
            "before\nrank 1: one line\nrank 1: \nrank 1: and\nrank 1: more\n");
  EXPECT_EQ(in_child([] {
              Flags flags = ranks_of({"--rank=0", "--rank_count=1"});
              EXPECT_TRUE(take_rank(flags, true));
              std::printf("line\n");
              return std::string(rank_prefix());
            }),
            "line\n")
      << "one rank marks nothing";
}

TEST_F(Ranks, LinesThatCannotBeWrittenAreAnError) {
  EXPECT_EQ(in_child([] {
              Flags flags = ranks_of({"--rank=1", "--rank_count=2"});
              EXPECT_TRUE(take_rank(flags, true));
              const int full = ::open("/dev/full", O_WRONLY);
              ::dup2(full, STDOUT_FILENO);
              ::close(full);
              std::printf("lost\n");
              const bool failed = std::ferror(stdout) || std::fflush(stdout) != 0;
              std::printf("also lost");
              const bool failed_to_close = std::fclose(stdout) != 0;
              return std::string(failed ? "failed" : "") + (failed_to_close ? ", failed to close" : "");
            }),
            "failed, failed to close");
}

TEST_F(Ranks, ChannelsNeedAFlag) {
  const Result<Channels> none = channels_of(ranks_of({}));
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  const Result<Channels> missing = channels_of(ranks_of({"--channel_provider=/nonexistent/provider.so"}));
  if (missing) {
    EXPECT_TRUE(*missing) << "a handle, whose provider is opened when the program needs it";
  } else {
    EXPECT_NE(missing.error().text.find("/nonexistent/provider.so"), std::string::npos);
  }
  const Result<Channels> wrong = channels_of(ranks_of({"--channel_timeout=soon"}));
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text.find("--channel_timeout"), std::string::npos) << wrong.error().text;
}

}  // namespace
}  // namespace halyard::tools
