// Agreement: the ranks of a measured program must make the same calls, because each call may wait for the
// other ranks. So decisions that depend on a time use the time of the slowest rank. The ranks exchange
// numbers over a separate channel, with a small program.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"
#include "common/program.h"

namespace halyard::tools {

class Agreement {
 public:
  // For the program's rank; the instance must exist. Every rank creates one.
  static Result<std::unique_ptr<Agreement>> make(const Flags& flags, const Program& program);

  uint32_t rank() const { return rank_; }
  uint32_t count() const { return count_; }
  // Each rank passes the same number of values; the result starts with those of rank 0. Waits for the other
  // ranks.
  Result<std::vector<double>> gather(std::span<const double> own);
  // The maximum over the ranks.
  Result<double> largest(double own);

 private:
  Agreement() = default;

  uint32_t rank_ = 0;
  uint32_t count_ = 1;
  Device device_;
  Function sum_;
};

// INVALID_ARGUMENT: flags with which the ranks would make different calls.
Result<> check_flags_for_ranks(const Flags& flags);

}  // namespace halyard::tools
