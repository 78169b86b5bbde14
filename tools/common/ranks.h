// Programs of several ranks: what stands for the rank in flags, and lines that say whose they are.
#pragma once

#include <string>
#include <string_view>

#include "common/failure.h"
#include "common/flags.h"
#include "halyard/channels.h"

namespace halyard::tools {

inline constexpr Flag kRankFlags[] = {
    {"rank", FlagKind::value, "N",
     "The rank of this process in a program of several ranks. Left out: what the launcher (mpirun, srun) says, "
     "else 0. In the\nvalues of flags %r stands for it, %n for the number of ranks, and %l for its place among "
     "the processes of this machine.",
     "--rank=0"},
    {"rank_count", FlagKind::value, "N", "The number of ranks. Left out: what the launcher says, else 1.",
     "--rank_count=4"},
    {"channel_provider", FlagKind::value, "FILE",
     "The library that carries collectives between the ranks (halyard-channel-mpi.so). Left out: the one for "
     "the launcher.",
     "--channel_provider=/opt/lib/halyard-channel-mpi.so"},
    {"channel_timeout", FlagKind::value, "TIME",
     "How long a collective may wait for other ranks: 10s. The failure names those that have not come. No limit "
     "if left out.",
     "--channel_timeout=10s"},
};

// The rank of this process, as the flags or else the launcher say. INVALID_ARGUMENT: no numbers, or a rank
// that is not below the count.
Result<halyard_launch_t> rank_of(const Flags& flags);

// Puts the rank into the values of the flags; and where there are several ranks, into messages and, unless a
// program reads them, into the lines of standard output.
Result<> take_rank(Flags& flags);

// "rank 1: " where there are several ranks; else empty.
std::string_view rank_prefix();

// The handle for the context's options, where the flags name a provider or a rank; else empty: it is found
// when the program needs it.
Result<Handle<halyard_channels_t>> channels_of(const Flags& flags);

}  // namespace halyard::tools
