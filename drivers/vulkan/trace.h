// Reports when the device executed each command, to a host that records a trace. Timestamps are written
// around the commands of a command buffer; when its submission completes, they are read, converted to the
// host's clock and reported. Without a trace there are no queries, commands or memory for this.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "loader.h"

namespace halyard::vulkan {

class Device;

// The timestamps of one command buffer: one before and one after each named command. The host resets the
// queries before each submission, because transfer-only queues cannot.
class Timestamps {
 public:
  explicit Timestamps(Device& device);
  Timestamps(const Timestamps&) = delete;
  Timestamps& operator=(const Timestamps&) = delete;
  ~Timestamps();

  // Called when the command buffer is encoded again.
  void clear() { named_.clear(); }
  // All commands between the two calls form one span. `name` must live as long as the command buffer.
  // `command` (may be null) is that of the host.
  Result<> before(VkCommandBuffer commands, std::string_view name, const void* command);
  void after(VkCommandBuffer commands);

  struct Named {
    std::string_view name;
    const void* command;
  };
  std::span<const Named> named() const { return named_; }
  // Called when the device has completed the command buffer. Returns two ticks for each span, valid until the
  // next call; empty: the device did not write them.
  std::span<const uint64_t> take();

 private:
  static constexpr uint32_t kQueriesInPool = 128;

  Device& device_;
  const DeviceFunctions& vk_;
  std::vector<VkQueryPool> pools_;
  std::vector<Named> named_;
  std::vector<uint64_t> ticks_;  // sized when encoded
};

// One reading of both clocks.
struct ClockPoint {
  uint64_t ticks = 0;
  uint64_t time = 0;  // CLOCK_MONOTONIC
};

// The host's time at the device time `ticks`. A tick is `period` nanoseconds. Ticks are counted with `bits`
// bits and wrap, so `known` must be close.
uint64_t time_of(uint64_t ticks, const ClockPoint& known, double period, uint32_t bits);

// The trace of one queue. The caller ensures that only one thread reports at a time, in the queue's order.
class QueueTrace {
 public:
  // `bits`: the valid bits of the queue's timestamps, at least one.
  QueueTrace(Device& device, uint32_t position, uint32_t bits);

  // Reports work that has completed but is not finished. `timestamps` may be null; `submission` names the
  // work to the host, and `submit_time` is CLOCK_MONOTONIC.
  void report(Timestamps* timestamps, void* submission, uint64_t submit_time) noexcept;

 private:
  void calibrate(uint64_t now);

  Device& device_;
  const uint32_t position_;
  const uint32_t bits_;
  const double period_;
  bool calibrated_ = false;  // false: spans use the times at which the host saw the completion
  ClockPoint known_;
  uint64_t calibration_time_ = 0;  // CLOCK_MONOTONIC
  uint64_t last_end_ = 0;          // end of the last span: spans of a queue do not overlap
};

}  // namespace halyard::vulkan
