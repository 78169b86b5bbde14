// Replay: executes what a capture holds on a device, anew, and compares the bytes that come out with those
// that were captured.
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

// Where the bytes of an execution first differ from those captured.
struct Difference {
  uint32_t buffer = 0;
  uint64_t offset = 0;            // bytes, within the buffer
  uint64_t length = 0;            // bytes that differ one after another from there
  uint64_t total = 0;             // bytes that differ in all buffers
  std::vector<uint8_t> expected;  // those captured, at most kShownBytes of them
  std::vector<uint8_t> found;
  // The last command that may write to the first of them; absent where none may.
  std::optional<uint32_t> command;
};
inline constexpr size_t kShownBytes = 16;

struct ReplayResult {
  enum class Outcome : uint8_t {
    same,
    differs,
    not_compared,  // the capture has no bytes to compare with: it failed, or was cut short
  };
  Outcome outcome = Outcome::not_compared;
  Difference difference;
};

// On one device. One call at a time. What is replayed runs on the device: only for captures that are trusted.
class Replay {
 public:
  // Borrows the capture.
  Replay(const CaptureFile& capture, Ref<Device> device)
      : capture_(capture), device_(std::move(device)), executables_(capture.executables.size()) {}

  // Blocks. OUT_OF_RANGE: no such execution. Otherwise what the device, or the recording of the commands for
  // it, says.
  Result<ReplayResult> execute(size_t execution);

 private:
  Result<Ref<Executable>> executable(uint32_t number);

  const CaptureFile& capture_;
  Ref<Device> device_;
  std::vector<Ref<Executable>> executables_;  // made when first needed
};

}  // namespace halyard::hal
