#include "recording_side.h"

namespace halyard::tools {

Result<RunRecord> RecordingSide::record() {
  Recorder recorder;
  TOOL_TRY(run(recorder));
  return recorder.record();
}

Result<Kept> RecordingSide::keep(const RunRecord& record, const Wanted& wanted,
                                 std::vector<size_t>& unstable) {
  Recorder recorder(record, wanted);
  TOOL_TRY(run(recorder));
  unstable = recorder.unstable();
  return recorder.kept();
}

}  // namespace halyard::tools
