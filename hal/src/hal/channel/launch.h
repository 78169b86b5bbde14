// What a launcher of processes (mpirun, srun) tells the processes that it starts, in their environment. Reads
// nothing else, so that it costs nothing where there is no launcher.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace halyard::hal {

struct Launch {
  std::string launcher;  // "openmpi", "mpich"; "slurm", whose processes either can be; empty: none
  uint32_t rank = 0;
  uint32_t count = 1;
  uint32_t local_rank = 0;  // among the processes of this machine; where the launcher does not say: rank
  uint32_t local_count = 1;
  std::string rank_variable;  // of the environment, which say rank and count; empty: none
  std::string count_variable;

  bool is_launched() const { return !launcher.empty(); }
};

// Any thread that does not race with setenv().
Launch detect_launch();

}  // namespace halyard::hal
