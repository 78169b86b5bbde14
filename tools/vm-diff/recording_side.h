// A side whose steps a recorder sees while they run.
#pragma once

#include <vector>

#include "common/failure.h"
#include "recorder.h"
#include "side.h"

namespace halyard::tools {

class RecordingSide : public Side {
 public:
  using Side::Side;
  Result<RunRecord> record() final;
  Result<Kept> keep(const RunRecord& record, const Wanted& wanted, std::vector<size_t>& unstable) final;

 private:
  virtual Result<> run(Recorder& recorder) const = 0;
};

}  // namespace halyard::tools
