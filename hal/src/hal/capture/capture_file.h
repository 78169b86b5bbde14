// CaptureFile: executed command buffers with the bytes before and after, read from a file. The format:
// docs/captures.md, schemas/capture.fbs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "hal/command/command_list.h"

namespace halyard::hal {

inline constexpr uint32_t kCaptureVersion = 1;

// Bytes in consecutive pieces.
using CapturedBytes = std::vector<std::span<const uint8_t>>;

struct CapturedExecutable {
  std::string_view format;
  std::span<const uint8_t> data;
  std::vector<uint32_t> constants;
  std::vector<uint32_t> subgroup_sizes;
};

// A range of a buffer that commands access. The ranges of a buffer are sorted, do not overlap and are not
// adjacent.
struct CapturedRange {
  uint64_t offset = 0;  // bytes, within the allocation
  uint64_t length = 0;
  CapturedBytes before;
  CapturedBytes after;  // empty unless the execution completed
};
struct CapturedBuffer {
  std::string_view device;  // URI
  uint64_t size = 0;        // bytes
  uint32_t memory_type = 0;
  uint32_t usage = 0;
  uint32_t access = 0;
  std::vector<CapturedRange> ranges;
};

// An entry of the binding table.
struct CapturedEntry {
  uint32_t buffer = kNoBuffer;  // kNoBuffer: the entry is not used
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct CapturedExecution {
  std::string_view device;  // URI
  uint64_t affinity = 0;
  uint32_t mode = 0;
  std::vector<Command> commands;
  std::vector<CapturedEntry> entries;
  std::vector<CapturedBuffer> buffers;
  enum class Outcome : uint8_t {
    unknown,  // the capture ends before the outcome
    done,
    failed,
  };
  Outcome outcome = Outcome::unknown;
  Code code = Code::UNKNOWN;  // of a failed execution
  std::string_view message;
};

struct CaptureFile {
  Ref<Bytes> bytes;  // owns the bytes to which all views here point
  std::string_view made_by;
  bool is_complete = false;  // closed by its writer
  std::vector<CapturedExecutable> executables;
  std::vector<CapturedExecution> executions;
};

enum class Incomplete : uint8_t { refuse, accept };

// Reads and checks everything. Afterwards all numbers and ranges are valid, but a device may still refuse the
// commands. INVALID_ARGUMENT, with the place: not a capture, damaged, or of a newer version. DATA_LOSS: cut
// short, unless `incomplete` allows that; then the complete records before the cut are kept.
Result<CaptureFile> read_capture(Ref<Bytes> bytes, Incomplete incomplete);

}  // namespace halyard::hal
