// Agreement: the ranks of a program that is measured under a launcher must make the same calls, since each
// call may wait for the others. So what follows from a time follows from the slowest rank's. The ranks
// exchange numbers over a channel of their own, with a small program.
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
  // For the program's rank; its instance must exist. Every rank makes one.
  static Result<std::unique_ptr<Agreement>> make(const Flags& flags, const Program& program);

  uint32_t rank() const { return rank_; }
  uint32_t count() const { return count_; }
  // Each rank gives as many numbers; the result has those of rank 0 first. Waits for the other ranks.
  Result<std::vector<double>> gather(std::span<const double> own);
  // The largest of what the ranks give.
  Result<double> largest(double own);

 private:
  Agreement() = default;

  uint32_t rank_ = 0;
  uint32_t count_ = 1;
  Handle<halyard_device_t> device_;
  Handle<halyard_channels_t> channels_;
  Handle<halyard_context_t> context_;
  Handle<halyard_function_t> function_;
  Handle<halyard_call_t> call_;
};

// INVALID_ARGUMENT: flags with which each rank would go its own way.
Result<> check_flags_for_ranks(const Flags& flags);

}  // namespace halyard::tools
