// An arbitrary capture. If it can be read, it can be printed. Small executions are replayed on the null
// device, which runs none of its code. A complete capture reads the same if incomplete ones are accepted; an
// incomplete one is refused, or read up to its end.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "capture.h"
#include "fuzzing.h"
#include "hal/capture/capture_file.h"
#include "hal/capture/replay.h"
#include "hal/driver/driver_library.h"
#include "run_files.h"

using namespace halyard;
using namespace halyard::hal;

namespace {

constexpr uint64_t kMaxBytes = 1 << 16;  // in all buffers of a replayed execution
constexpr size_t kMaxBuffers = 64;

const Ref<Device>& null_device() {
  static const Ref<Device> device = [] {
    Result<Ref<DriverLibrary>> library = DriverLibrary::open(fuzz::run_file(HALYARD_NULL_DRIVER));
    if (!library) fuzz::finding(library.error().text());
    Result<Ref<Device>> opened = Device::open(*library, "null", "", {});
    if (!opened) fuzz::finding(opened.error().text());
    return *opened;
  }();
  return device;
}

void check_text(const Result<std::string>& text) {
  if (!text && text.error().code() != Code::RESOURCE_EXHAUSTED) fuzz::finding("it is read, but not printed");
  if (text && (text->empty() || text->back() != '\n')) fuzz::finding("what is printed does not end");
}

bool is_small(const CapturedExecution& execution) {
  if (execution.buffers.size() > kMaxBuffers) return false;
  uint64_t left = kMaxBytes;
  return std::ranges::all_of(execution.buffers, [&](const CapturedBuffer& buffer) {
    if (buffer.size > left) return false;
    left -= buffer.size;
    return true;
  });
}

Code replay(const CaptureFile& file, size_t execution) {
  Replay replay(file, null_device());
  const Result<ReplayResult> result = replay.execute(execution);
  if (!result) return result.error().code();
  const bool has_bytes = file.executions[execution].outcome == CapturedExecution::Outcome::done;
  if ((result->outcome != ReplayResult::Outcome::not_compared) != has_bytes)
    fuzz::finding("a replay is compared where there is nothing to compare with, or is not where there is");
  const Difference& difference = result->difference;
  if (result->outcome == ReplayResult::Outcome::differs &&
      (difference.length == 0 || difference.total < difference.length ||
       difference.buffer >= file.executions[execution].buffers.size() ||
       difference.offset + difference.length > file.executions[execution].buffers[difference.buffer].size))
    fuzz::finding("a difference that cannot be");
  return Code::OK;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Ref<Bytes> bytes = Bytes::copy({data, size});
  const Result<CaptureFile> file = read_capture(bytes, Incomplete::accept);
  const Result<CaptureFile> whole = read_capture(bytes, Incomplete::refuse);
  if (whole && !file) fuzz::finding("it can be read only where cuts are refused");
  if (!file) return 0;
  if (file->is_complete != whole.has_value()) fuzz::finding("a cut makes the difference, and there is none");
  if (!whole && whole.error().code() != Code::DATA_LOSS)
    fuzz::finding("a cut is not reported as a loss of data");

  check_text(c::capture_text(*file, {0, file->executions.size()}));
  check_text(c::capture_json(*file, {0, file->executions.size()}));
  for (size_t i = 0; i < file->executions.size(); ++i)
    if (is_small(file->executions[i]) && replay(*file, i) != replay(*file, i))
      fuzz::finding("the same execution ends in another way");

  const Result<CaptureFile> half = read_capture(Bytes::copy({data, size / 2}), Incomplete::accept);
  if (half && (half->is_complete || half->executions.size() > file->executions.size()))
    fuzz::finding("half a capture holds more than all of it");
  return 0;
}
