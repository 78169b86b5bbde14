// Expected durations of commands and their sums, in nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "estimate.h"
#include "halyard/driver.h"
#include "partial_fills.h"

namespace halyard::local {

uint64_t cost_of(const halyard_command_t& command);
// The number of pieces that may run in parallel: the workgroups of a dispatch, the pieces of a fill. 1 if the
// number is unknown, if the kernel is sequential, and for other commands.
uint64_t pieces_of(const halyard_command_t& command);
// Bytes of a piece of a fill; the last one may have fewer. Divisible by the size of every pattern.
inline constexpr uint64_t kFillPiece = 128 << 10;
// The cost of writing, copying or reading `length` bytes.
uint64_t bytes_cost(uint64_t length);
uint64_t dispatch_cost(const halyard_command_dispatch_t& dispatch);

// The total cost of commands or workgroups that can run in parallel.
struct Load {
  uint64_t cost = 0;     // of all pieces
  uint64_t longest = 0;  // of the most expensive piece
  uint64_t pieces = 0;

  // `fills`: of the list; may be null.
  void add(const halyard_command_t& command, const PartialFills* fills);
  // The time that `threads` threads save, if all of them are awake.
  uint64_t saving(uint32_t threads) const {
    const uint64_t shared = std::max(longest, cost / threads) + kWorthHelping;
    return pieces > 1 && cost > shared ? cost - shared : 0;
  }
};

}  // namespace halyard::local
