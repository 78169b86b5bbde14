// Collects the steps that a run reports, or keeps the bytes of some of them. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "common/failure.h"
#include "side.h"
#include "step.h"

namespace halyard::tools {

class Recorder {
 public:
  // Records.
  Recorder() = default;
  // Keeps the ranges of `wanted`, steps of `record`. All are borrowed.
  Recorder(const RunRecord& record, const Wanted& wanted);

  // A range of a step of a device; the sink of contexts and replays.
  void take(const halyard_traced_tensor_t& tensor);
  // A tensor of the host: one of a trace, or a result.
  Result<> take(Step::Kind kind, std::string_view name, uint64_t place, const Tensor& tensor);
  // The steps, sorted.
  RunRecord record();
  Kept kept() { return std::move(kept_); }
  // Steps whose bytes differ from those of `record`, or that it has and this run has not.
  std::vector<size_t> unstable() const;

 private:
  void take_range(Step& step, StepRange range, std::span<const uint8_t> before,
                  std::span<const uint8_t> after);

  std::mutex mutex_;  // guards all below
  std::map<StepKey, Step> steps_;
  uint64_t shown_ = 0;
  uint64_t last_execution_ = 0;
  const RunRecord* known_ = nullptr;
  const Wanted* wanted_ = nullptr;
  std::map<StepKey, size_t> places_;  // of known_
  Kept kept_;
};

}  // namespace halyard::tools
