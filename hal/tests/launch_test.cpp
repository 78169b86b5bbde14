// The job that the variables of a launcher describe; variables that describe none.
#include "hal/channel/launch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace halyard::hal {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr const char* kAllVariables[] = {"OMPI_COMM_WORLD_RANK",
                                         "OMPI_COMM_WORLD_SIZE",
                                         "OMPI_COMM_WORLD_LOCAL_RANK",
                                         "OMPI_COMM_WORLD_LOCAL_SIZE",
                                         "PMI_RANK",
                                         "PMI_SIZE",
                                         "MPI_LOCALRANKID",
                                         "MPI_LOCALNRANKS",
                                         "SLURM_PROCID",
                                         "SLURM_NTASKS",
                                         "SLURM_LOCALID",
                                         "SLURM_NTASKS_PER_NODE",
                                         "SLURM_STEP_ID"};

class DetectLaunch : public testing::Test {
 protected:
  DetectLaunch() {
    for (const char* name : kAllVariables)
      if (const char* const value = std::getenv(name)) before_[name] = value;
  }
  ~DetectLaunch() override { set(before_); }

  static void set(const Variables& variables) {
    for (const char* name : kAllVariables) ::unsetenv(name);
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  static Launch detect(const Variables& variables) {
    set(variables);
    return detect_launch();
  }

 private:
  Variables before_;
};

TEST_F(DetectLaunch, EachLauncherIsKnown) {
  const Launch openmpi = detect({{"OMPI_COMM_WORLD_RANK", "3"},
                                 {"OMPI_COMM_WORLD_SIZE", "4"},
                                 {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(openmpi.launcher, "openmpi");
  EXPECT_EQ(openmpi.rank, 3u);
  EXPECT_EQ(openmpi.count, 4u);
  EXPECT_EQ(openmpi.local_rank, 1u);
  EXPECT_EQ(openmpi.local_count, 2u);
  EXPECT_EQ(openmpi.rank_variable, "OMPI_COMM_WORLD_RANK");
  const Launch mpich = detect({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}});
  EXPECT_EQ(mpich.launcher, "mpich");
  EXPECT_EQ(mpich.local_rank, 0u);
  EXPECT_EQ(mpich.local_count, 1u);
  const Variables slurm = {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}};
  EXPECT_EQ(detect(slurm).launcher, "slurm");
  EXPECT_EQ(detect(slurm).count_variable, "SLURM_NTASKS");
  // srun starts processes of MPICH, whose variables say more.
  Variables both = slurm;
  both.insert({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  EXPECT_EQ(detect(both).launcher, "mpich");
}

TEST_F(DetectLaunch, OtherVariablesDescribeNoJob) {
  EXPECT_FALSE(detect({}).is_launched());
  EXPECT_EQ(detect({}).count, 1u);
  EXPECT_FALSE(detect({{"PMI_RANK", "0"}}).is_launched()) << "the count is missing";
  EXPECT_FALSE(detect({{"PMI_SIZE", "2"}}).is_launched()) << "the rank is missing";
  EXPECT_FALSE(detect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}).is_launched()) << "the shell of salloc";
  for (const char* rank : {"", "x", "1x", " 1", "-1", "+1", "4294967296", "2", "3"})
    EXPECT_FALSE(detect({{"PMI_RANK", rank}, {"PMI_SIZE", "2"}}).is_launched()) << rank;
  for (const char* count : {"", "0", "1", "two", "2.0"})
    EXPECT_FALSE(detect({{"PMI_RANK", "1"}, {"PMI_SIZE", count}}).is_launched()) << count;
  // What a launcher says wrongly of this machine is not used.
  const Launch launch =
      detect({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "x"}, {"MPI_LOCALNRANKS", ""}});
  EXPECT_EQ(launch.local_rank, 1u);
  EXPECT_EQ(launch.local_count, 2u);
}

}  // namespace
}  // namespace halyard::hal
