// Replay: executes a capture again on a device, and compares the resulting bytes with the captured bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "hal/capture/capture_file.h"
#include "hal/capture/tensor_trace.h"
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

// Replaces the code of a captured executable, for example by code for another device. Functions are found by
// their names; a function whose name the code lacks, by its number.
struct Substitute {
  std::string format;
  Ref<Bytes> code;
  std::vector<uint32_t> constants;  // of the captured executable if empty
};

struct ReplayOptions {
  std::map<uint32_t, Substitute> substitutes;  // by number of the executable
  Ref<TensorTrace> tensors;                    // executes the commands; null: no trace
};

// A part of an execution: its first `end` commands. Bytes that later commands may write are not compared.
inline constexpr size_t kAllCommands = SIZE_MAX;

struct ReplayTimes {
  uint64_t count = 0;
  std::chrono::nanoseconds fastest{0};
  std::chrono::nanoseconds median{0};
  std::chrono::nanoseconds total{0};
};

// Replays on one device, one call at a time. Only for trusted captures, because Replay runs the captured
// code.
class Replay {
 public:
  // Borrows the capture.
  Replay(const CaptureFile& capture, Ref<Device> device, ReplayOptions options = {})
      : capture_(capture),
        device_(std::move(device)),
        options_(std::move(options)),
        executables_(capture.executables.size()) {}

  // Blocks. OUT_OF_RANGE: no such execution or command. Other errors come from the device or from recording
  // the commands.
  Result<ReplayResult> execute(size_t execution, size_t end = kAllCommands);

  // Executes the commands [begin, end) repeatedly, at least once, until `at_least` has passed. Commands
  // before are executed once. The time of each is from submission to completion. Blocks.
  Result<ReplayTimes> measure(size_t execution, size_t begin, size_t end, std::chrono::nanoseconds at_least);

  // Captures one command to a new file: executes the commands before it, and then this command with a
  // capture. So the file has the command's inputs, and the outputs that this device computes.
  // INVALID_ARGUMENT: the command touches no bytes. Blocks.
  Result<> cut(size_t execution, size_t command, const std::string& path);

 private:
  struct Prepared;
  Result<Ref<Executable>> executable(uint32_t number);
  Result<Prepared> prepare(size_t execution, size_t begin, size_t end);
  Result<Ref<CommandBuffer>> record(const Prepared& prepared, size_t begin, size_t end, uint32_t mode);
  Result<> run(const Prepared& prepared, CommandBuffer& commands);

  const CaptureFile& capture_;
  Ref<Device> device_;
  ReplayOptions options_;
  std::vector<Ref<Executable>> executables_;  // created on first use
};

}  // namespace halyard::hal
