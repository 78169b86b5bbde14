// Unpacks, checks and measures the packed operation of a collective of a program. Specified by hal-types.md,
// "Collectives".
#pragma once

#include <cstdint>

#include "base/status.h"
#include "halyard/channel.h"

namespace halyard::hal {

// A rank's place in a channel.
struct Place {
  uint32_t rank = 0;
  uint32_t count = 1;
};

// The result has no pointers, number or callback. INVALID_ARGUMENT: undefined numbers, a reduction for a kind
// without one, no reduction for a kind with one, a rank outside the channel, or elements that cannot be
// divided among the ranks.
Result<halyard_collective_t> unpack(uint32_t operation, uint32_t parameter, uint64_t element_count,
                                    const Place& place);

// Bytes that this rank reads (send) and writes (receive); 0: none.
struct CollectiveSizes {
  uint64_t send = 0;
  uint64_t receive = 0;
};
// `send_length` and `receive_length` are the bytes of the program's ranges. Programs count the elements of an
// all_gather as sent by a rank or, as compilers do, as received: the lengths determine which. Sets
// element_count to the elements that a rank sends. INVALID_ARGUMENT: more than 64 bits.
Result<CollectiveSizes> sizes_of(halyard_collective_t& collective, const Place& place, uint64_t send_length,
                                 uint64_t receive_length);

// INVALID_ARGUMENT: the ranges, at these addresses in one memory, overlap where the kind does not allow it.
Result<> check_overlap(const halyard_collective_t& collective, const Place& place,
                       const CollectiveSizes& sizes, uint64_t send, uint64_t receive);

}  // namespace halyard::hal
