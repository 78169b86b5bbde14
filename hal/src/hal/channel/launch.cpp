// One row for each launcher, with the variables that it sets.
#include "hal/channel/launch.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace halyard::hal {

namespace {

struct Variables {
  const char* launcher;
  const char* rank;
  const char* count;
  const char* local_rank;   // may be missing
  const char* local_count;  // may be missing
  const char* marks;        // must be set too; null: none
};
constexpr Variables kLaunchers[] = {
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr},
    {"mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr},
    // The shell of salloc has the other variables too, but no step.
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE", "SLURM_STEP_ID"},
};

std::optional<uint32_t> number(const char* variable) {
  const char* const text = std::getenv(variable);
  if (!text) return {};
  const std::string_view all = text;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (error != std::errc() || end != all.data() + all.size()) return {};
  return value;
}

}  // namespace

Launch detect_launch() {
  for (const Variables& known : kLaunchers) {
    const std::optional<uint32_t> rank = number(known.rank);
    const std::optional<uint32_t> count = number(known.count);
    if (!rank || !count || *rank >= *count || (known.marks && !std::getenv(known.marks))) continue;
    Launch launch = {known.launcher, *rank, *count, *rank, *count, known.rank, known.count};
    if (const std::optional<uint32_t> local = number(known.local_rank)) launch.local_rank = *local;
    if (const std::optional<uint32_t> local = number(known.local_count)) launch.local_count = *local;
    return launch;
  }
  return {};
}

}  // namespace halyard::hal
