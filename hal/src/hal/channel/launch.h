// Reads the environment variables with which a launcher (mpirun, srun) describes the job to its processes.
// Reads nothing else, so that it costs nothing without a launcher.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace halyard::hal {

struct Launch {
  std::string launcher;  // "openmpi", "mpich", or "slurm", which may start processes of either; empty: none
  uint32_t rank = 0;
  uint32_t count = 1;
  uint32_t local_rank = 0;  // among the processes of this machine; if the launcher does not set it: rank
  uint32_t local_count = 1;
  std::string rank_variable;  // the names of the variables for rank and count; empty: none
  std::string count_variable;

  bool is_launched() const { return !launcher.empty(); }
};

// Must not race with setenv(); otherwise any thread.
Launch detect_launch();

}  // namespace halyard::hal
