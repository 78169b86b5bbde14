// What the device tells a host that records a trace: when it did each command. Timestamps are written around
// the commands of a command buffer; when its submission is done they are read, brought to the host's clock
// and told. Without a trace there is none of this: no query, no command, no memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "loader.h"

namespace halyard::vulkan {

class Device;
struct Work;

// The timestamps of one command buffer: one before and one after each command that has a name. Queries are
// ready to be written whenever the command buffer is not in flight; the host sees to that, since queues that
// only transfer cannot.
class Timestamps {
 public:
  explicit Timestamps(Device& device);
  Timestamps(const Timestamps&) = delete;
  Timestamps& operator=(const Timestamps&) = delete;
  ~Timestamps();

  // The command buffer is recorded anew.
  void clear() { names_.clear(); }
  // What is recorded between the two is one span. `name` must live as long as the recording.
  Result<> before(VkCommandBuffer commands, std::string_view name);
  void after(VkCommandBuffer commands);

  std::span<const std::string_view> names() const { return names_; }
  // The device is done with the command buffer: two ticks for each name, until the next call. Empty: the
  // device did not write them.
  std::span<const uint64_t> take();

 private:
  static constexpr uint32_t kQueriesInPool = 128;

  Device& device_;
  const DeviceFunctions& vk_;
  std::vector<VkQueryPool> pools_;
  std::vector<std::string_view> names_;
  std::vector<uint64_t> ticks_;  // has its size from the recording on
};

// One reading of two clocks.
struct ClockPoint {
  uint64_t ticks = 0;
  uint64_t time = 0;  // CLOCK_MONOTONIC
};

// The host's time when the device's clock showed `ticks`. A tick is `period` nanoseconds; of a tick `bits`
// are counted, then it begins at 0 again: `known` must be near.
uint64_t time_of(uint64_t ticks, const ClockPoint& known, double period, uint32_t bits);

// What one queue tells. The caller sees to it that one thread at a time does so, in the queue's order.
class QueueTrace {
 public:
  // `bits` of the queue's timestamps count, at least one.
  QueueTrace(Device& device, uint32_t position, uint32_t bits);

  // The work has been submitted, is done and has not been finished.
  void tell(const Work& work) noexcept;

 private:
  void calibrate(uint64_t now);

  Device& device_;
  const uint32_t position_;
  const uint32_t bits_;
  const double period_;
  bool calibrated_ = false;  // else times are those between which the host saw the work
  ClockPoint known_;
  uint64_t calibration_time_ = 0;  // CLOCK_MONOTONIC
  uint64_t last_end_ = 0;          // of what was told: a queue's spans do not overlap
};

}  // namespace halyard::vulkan
