// Programs of several ranks: what stands for the rank in flags, and lines that say whose they are.
#pragma once

#include <string>
#include <string_view>

#include "common/failure.h"
#include "common/flags.h"
#include "halyard/channels.h"

namespace halyard::tools {

namespace flag {

inline constexpr Number rank = {
    "rank", "N",
    "The rank of this process in a program of several ranks. Without it: the launcher's (mpirun, srun), else "
    "0. Where there is\na launcher or a flag of this group, in values of flags %r stands for the rank, %n "
    "for the "
    "number of ranks, "
    "%l for the\nprocess's place among those of this machine, and %% for a percent sign.",
    "--rank=0"};
inline constexpr Number rank_count = {
    "rank_count", "N", "The number of ranks. Without it: the launcher's, else 1.", "--rank_count=4"};
inline constexpr Text channel_provider = {
    "channel_provider", "FILE",
    "The library that runs collectives between the ranks (halyard-channel-mpi.so). Without it: the one for "
    "the launcher.",
    "--channel_provider=/opt/lib/halyard-channel-mpi.so"};
inline constexpr Duration channel_timeout = {
    "channel_timeout", "TIME",
    "The longest time that a collective, or the start of the job, may wait for other ranks. The failure "
    "names those that have not arrived.\nWithout it there is no limit.",
    "--channel_timeout=10s"};
// Of vm-run. Lines of JSON are not marked with the rank.
inline constexpr Toggle json_results = {
    "json", "Prints the results as one JSON document, and nothing else: types, shapes, elements as numbers.",
    "--json"};

}  // namespace flag

inline constexpr const Flag* kRankFlags[] = {&flag::rank, &flag::rank_count, &flag::channel_provider,
                                             &flag::channel_timeout};

// The rank of this process, as the flags or else the launcher say. INVALID_ARGUMENT: no numbers, or a rank
// that is not below the count.
Result<halyard_launch_t> rank_of(const Flags& flags);

// Whether the process may join other ranks: a launcher, a flag or the environment says so.
Result<bool> is_rank(const Flags& flags);

// Puts the rank into the values of the flags, where is_rank(); and where there are several ranks, into
// messages and, with `marks_lines`, into the lines of standard output.
Result<> take_rank(Flags& flags, bool marks_lines);

// "rank 1: " where there are several ranks; else empty.
std::string_view rank_prefix();

// The handle for the context's options, where the flags name a provider or a rank; else empty: it is found
// when the program needs it.
Result<Handle<halyard_channels_t>> channels_of(const Flags& flags);

}  // namespace halyard::tools
