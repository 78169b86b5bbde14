// The steps of a run: each command or operation that may write to a buffer, each tensor that the program
// shows to the host (hal.buffer_view.trace), and each result. A step keeps digests, not tensors.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace halyard::tools {

// 128 bits; equal bytes have equal digests. Not for adversaries.
struct Digest {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Digest&) const = default;
};
Digest digest_of(std::span<const uint8_t> bytes);

// A range of consecutive bytes.
struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
  bool empty() const { return begin >= end; }
  bool operator==(const Extent&) const = default;
};

// A range of a buffer that a step may write.
struct StepRange {
  uint32_t binding = 0;
  uint32_t buffer = 0;  // within the execution
  uint64_t offset = 0;  // bytes, within the buffer
  uint64_t size = 0;    // bytes
  Extent written;       // from the first to the last byte that changed, within the range
  Digest before;        // of the whole range
  Digest after;         // of `written`
};

// The order of a step in its run.
struct StepKey {
  uint64_t execution = 0;
  uint64_t command = 0;
  uint64_t number = 0;
  auto operator<=>(const StepKey&) const = default;
};

struct Step {
  enum class Kind : uint8_t { device, shown, result };
  Kind kind = Kind::device;
  StepKey key;
  std::string operation;  // "dispatch", "copy", ..., "trace", "result"
  std::string name;       // of the kernel, or a text
  std::string device;
  std::string place;
  std::string source;  // of the kernel: "model.mlir:12:5"
  std::array<uint32_t, 3> workgroups = {};
  std::string type;            // of shown tensors and results: "f32"
  std::vector<int64_t> shape;  // likewise
  std::vector<StepRange> ranges;

  bool is_dispatch() const { return operation == "dispatch"; }
  uint64_t written_bytes() const {
    uint64_t bytes = 0;
    for (const StepRange& range : ranges) bytes += range.written.size();
    return bytes;
  }
};

// Extends an extent that is not empty to multiples of `alignment` bytes of the buffer, within the range.
inline constexpr uint64_t kWordBytes = 4;
Extent aligned_extent(const StepRange& range, Extent extent, uint64_t alignment);

// From the first to the last byte that differs; empty if none does.
Extent changed_extent(std::span<const uint8_t> before, std::span<const uint8_t> after);

}  // namespace halyard::tools
