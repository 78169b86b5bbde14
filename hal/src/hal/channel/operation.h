// The packed operation of a collective, as programs give it: unpacked, checked, and measured. Specified by
// hal-types.md, "Collectives".
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

// Without pointers, number and callback. INVALID_ARGUMENT: numbers that are not defined, a reduction for a
// kind without one or none for a kind with one, a rank that is not in the channel, elements that cannot be
// divided among the ranks.
Result<halyard_collective_t> unpack(uint32_t operation, uint32_t parameter, uint64_t element_count,
                                    const Place& place);

// Bytes that this rank reads and writes; 0: none.
struct CollectiveSizes {
  uint64_t send = 0;
  uint64_t receive = 0;
};
// `send_length` and `receive_length` are the bytes of the ranges that the program gives. Programs count the
// elements of an all_gather in what a rank sends or, as compilers do, in what it receives: the ranges tell
// which. Sets element_count to what a rank sends. INVALID_ARGUMENT: more than 64 bits.
Result<CollectiveSizes> sizes_of(halyard_collective_t& collective, const Place& place, uint64_t send_length,
                                 uint64_t receive_length);

// INVALID_ARGUMENT: the ranges, at these addresses in one memory, overlap in a way that the kind does not
// allow.
Result<> check_overlap(const halyard_collective_t& collective, const Place& place,
                       const CollectiveSizes& sizes, uint64_t send, uint64_t receive);

}  // namespace halyard::hal
