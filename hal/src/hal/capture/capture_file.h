// CaptureFile: executed command buffers with the bytes that they found and left, as read from a file.
// The format: docs/captures.md, schemas/capture.fbs.
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

// Bytes in pieces, one after another.
using CapturedBytes = std::vector<std::span<const uint8_t>>;

struct CapturedExecutable {
  std::string_view format;
  std::span<const uint8_t> data;
  std::vector<uint32_t> constants;
};

// What commands touch of a buffer. Ranges of a buffer are in order and neither overlap nor touch.
struct CapturedRange {
  uint64_t offset = 0;  // bytes, within the allocation
  uint64_t length = 0;
  CapturedBytes before;
  CapturedBytes after;  // empty unless the execution is done
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
  uint32_t buffer = kNoBuffer;  // not used
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
    unknown,  // the capture ends before
    done,
    failed,
  };
  Outcome outcome = Outcome::unknown;
  Code code = Code::UNKNOWN;  // of a failed one
  std::string_view message;
};

struct CaptureFile {
  Ref<Bytes> bytes;  // what everything here points into
  std::string_view made_by;
  bool is_complete = false;  // closed by whoever wrote it
  std::vector<CapturedExecutable> executables;
  std::vector<CapturedExecution> executions;
};

enum class Incomplete : uint8_t { refuse, accept };

// Reads and checks everything; numbers and ranges in it can be relied on afterwards, but not that a device
// takes the commands. INVALID_ARGUMENT: no capture, or a damaged one, or of a newer version; says where.
// DATA_LOSS: it is cut short, unless that is accepted: then the whole records before the cut count.
Result<CaptureFile> read_capture(Ref<Bytes> bytes, Incomplete incomplete);

}  // namespace halyard::hal
