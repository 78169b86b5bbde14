// Programs with several ranks: replaces placeholders for the rank in flags, and marks lines with the rank.
#pragma once

#include <string>
#include <string_view>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

namespace flag {

inline constexpr Number rank = {
    "rank", "N",
    "The rank of this process in a program of several ranks. Default: the rank from the launcher (mpirun, "
    "srun), or else 0. With a launcher or a flag of this group, %r in values of flags stands for the rank, "
    "%n for the number of ranks, %l for the number of the process on this machine, and %% for a percent "
    "sign.",
    "--rank=0"};
inline constexpr Number rank_count = {
    "rank_count", "N", "The number of ranks. Default: the number from the launcher, or else 1.",
    "--rank_count=4"};
inline constexpr Text channel_provider = {
    "channel_provider", "FILE",
    "The library for collectives between ranks (halyard-channel-mpi.so). "
    "Default: the library for the launcher.",
    "--channel_provider=/opt/lib/halyard-channel-mpi.so"};
inline constexpr Duration channel_timeout = {
    "channel_timeout", "TIME",
    "The maximum time that a collective, or the start of the job, may wait for other ranks. The error names "
    "the missing ranks. Default: no limit.",
    "--channel_timeout=10s"};
// A flag of vm-run. JSON lines are not marked with the rank.
inline constexpr Toggle json_results = {
    "json", "Prints only one JSON document with the results: types, shapes, and elements as numbers.",
    "--json"};

}  // namespace flag

inline constexpr const Flag* kRankFlags[] = {&flag::rank, &flag::rank_count, &flag::channel_provider,
                                             &flag::channel_timeout};

// The rank of this process, from the flags, else from the launcher. INVALID_ARGUMENT: not numbers, or the
// rank is not below the count.
Result<halyard_launch_t> rank_of(const Flags& flags);

// Whether a launcher, a flag or the environment may make the process one of several ranks.
Result<bool> is_rank(const Flags& flags);

// If is_rank(), replaces the placeholders for the rank in the values of the flags. If there are several
// ranks, marks messages and, with `marks_lines`, the lines of standard output.
Result<> take_rank(Flags& flags, bool marks_lines);

// "rank 1: " if there are several ranks; else empty.
std::string_view rank_prefix();

// The handle for the context's options, if the flags name a provider or a rank; else empty: the provider is
// found when the program needs it.
Result<Channels> channels_of(const Flags& flags);

}  // namespace halyard::tools
