// Replay: executes a capture again on a device, and compares the resulting bytes with the captured bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "hal/capture/capture_file.h"
#include "hal/device/device.h"
#include "hal/device/executable.h"

namespace halyard::hal {

// The first difference between the bytes of an execution and the captured bytes.
struct Difference {
  uint32_t buffer = 0;
  uint64_t offset = 0;            // bytes, within the buffer
  uint64_t length = 0;            // consecutive bytes that differ from there
  uint64_t total = 0;             // bytes that differ in all buffers
  std::vector<uint8_t> expected;  // the captured bytes, at most kShownBytes
  std::vector<uint8_t> found;
  // The last command that may write to the first differing byte; absent if there is none.
  std::optional<uint32_t> command;
};
inline constexpr size_t kShownBytes = 16;

struct ReplayResult {
  enum class Outcome : uint8_t {
    same,
    differs,
    not_compared,  // the capture has no result: the execution failed, or the file was cut short
  };
  Outcome outcome = Outcome::not_compared;
  Difference difference;
};

// Replays on one device, one call at a time. Only for trusted captures, because Replay runs the captured
// code.
class Replay {
 public:
  // Borrows the capture.
  Replay(const CaptureFile& capture, Ref<Device> device)
      : capture_(capture), device_(std::move(device)), executables_(capture.executables.size()) {}

  // Blocks. OUT_OF_RANGE: no such execution. Other errors come from the device or from recording the
  // commands.
  Result<ReplayResult> execute(size_t execution);

 private:
  Result<Ref<Executable>> executable(uint32_t number);

  const CaptureFile& capture_;
  Ref<Device> device_;
  std::vector<Ref<Executable>> executables_;  // created on first use
};

}  // namespace halyard::hal
