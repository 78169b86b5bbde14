// One side of the comparison: a program and its call, or a capture on a device, which can be run repeatedly.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/failure.h"
#include "step.h"

namespace halyard::tools {

// The bytes of a range after a step, and which of them the step has changed.
struct KeptRange {
  Extent extent;               // within the range of the step
  std::vector<uint8_t> bytes;  // of the extent
  std::vector<bool> changed;   // by byte; empty: all
};

// For steps by their index: for each range the extent to keep; an empty one is not kept.
using Wanted = std::map<size_t, std::vector<Extent>>;
using Kept = std::map<size_t, std::vector<KeptRange>>;

struct RunRecord {
  std::vector<Step> steps;  // in the order of their keys
};

class Side {
 public:
  explicit Side(std::string description) : description_(std::move(description)) {}
  virtual ~Side() = default;
  // Runs and records the steps.
  virtual Result<RunRecord> record() = 0;
  // Runs again, and keeps ranges of the steps of `record`. `unstable` gets the steps whose bytes differ from
  // the record.
  virtual Result<Kept> keep(const RunRecord& record, const Wanted& wanted, std::vector<size_t>& unstable) = 0;
  const std::string& description() const { return description_; }

 private:
  const std::string description_;
};

}  // namespace halyard::tools
