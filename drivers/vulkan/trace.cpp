// Queries, clocks and spans.
#include "trace.h"

#include <algorithm>

#include "device.h"
#include "halyard/driver/trace.hpp"

namespace halyard::vulkan {

Timestamps::Timestamps(Device& device) : device_(device), vk_(device.vk()) {}

Timestamps::~Timestamps() {
  for (const VkQueryPool pool : pools_) vk_.DestroyQueryPool(device_.handle(), pool, nullptr);
}

Result<> Timestamps::before(VkCommandBuffer commands, std::string_view name, const void* command) {
  const auto query = static_cast<uint32_t>(2 * named_.size());
  if (query / kQueriesInPool == pools_.size()) {
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = kQueriesInPool};
    VkQueryPool pool = VK_NULL_HANDLE;
    pools_.reserve(pools_.size() + 1);
    HALYARD_KIT_TRY(check(vk_.CreateQueryPool(device_.handle(), &info, nullptr, &pool), "vkCreateQueryPool"));
    pools_.push_back(pool);
    vk_.ResetQueryPool(device_.handle(), pool, 0, kQueriesInPool);
  }
  ticks_.resize(std::max<size_t>(ticks_.size(), query + 2));
  named_.push_back({name, command});
  vk_.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, pools_[query / kQueriesInPool],
                        query % kQueriesInPool);
  return {};
}

void Timestamps::after(VkCommandBuffer commands) {
  const auto query = static_cast<uint32_t>(2 * named_.size() - 1);
  vk_.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pools_[query / kQueriesInPool],
                        query % kQueriesInPool);
}

std::span<const uint64_t> Timestamps::take() {
  const auto count = static_cast<uint32_t>(2 * named_.size());
  bool written = true;
  for (uint32_t first = 0; first < count; first += kQueriesInPool) {
    const VkQueryPool pool = pools_[first / kQueriesInPool];
    const uint32_t part = std::min(count - first, kQueriesInPool);
    written &=
        vk_.GetQueryPoolResults(device_.handle(), pool, 0, part, part * sizeof(uint64_t), &ticks_[first],
                                sizeof(uint64_t), VK_QUERY_RESULT_64_BIT) == VK_SUCCESS;
    vk_.ResetQueryPool(device_.handle(), pool, 0, part);
  }
  return {ticks_.data(), written ? count : 0};
}

uint64_t time_of(uint64_t ticks, const ClockPoint& known, double period, uint32_t bits) {
  // The closer of the two candidates: before `known` or after it.
  const uint32_t unused = 64 - bits;
  const auto distance = static_cast<int64_t>((ticks - known.ticks) << unused) >> unused;
  return known.time + static_cast<uint64_t>(static_cast<int64_t>(static_cast<double>(distance) * period));
}

QueueTrace::QueueTrace(Device& device, uint32_t position, uint32_t bits)
    : device_(device),
      position_(position),
      bits_(bits),
      period_(static_cast<double>(device.features().limits.timestampPeriod)) {
  calibrate(kit::trace_time());
}

// Takes the reading with the shortest time between the two clocks, because the thread may be interrupted
// between them.
void QueueTrace::calibrate(uint64_t now) {
  constexpr int kReadings = 3;
  calibrated_ = false;
  calibration_time_ = now;
  if (!device_.features().calibrated_timestamps) return;
  const VkCalibratedTimestampInfoEXT clocks[] = {
      {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, .timeDomain = VK_TIME_DOMAIN_DEVICE_EXT},
      {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT,
       .timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT}};
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < kReadings; ++i) {
    uint64_t read[2] = {};
    uint64_t deviation = 0;
    if (device_.vk().GetCalibratedTimestampsEXT(device_.handle(), std::size(clocks), clocks, read,
                                                &deviation) != VK_SUCCESS)
      return;
    if (deviation >= least) continue;
    least = deviation;
    known_ = {read[0], read[1]};
  }
  calibrated_ = true;
}

void QueueTrace::report(Timestamps* timestamps, void* submission, uint64_t submit_time) noexcept {
  constexpr uint64_t kCalibrationAge = 1'000'000'000;  // nanoseconds; clocks drift
  if (!timestamps || timestamps->named().empty()) return;
  const uint64_t now = kit::trace_time();
  const std::span<const uint64_t> ticks = timestamps->take();
  if (ticks.empty()) return;
  if (now - calibration_time_ > kCalibrationAge) calibrate(now);
  // Without calibration, the last command is assumed to end when the host sees it.
  const ClockPoint known = calibrated_ ? known_ : ClockPoint{ticks.back(), now};

  // The command ran between submission and now, even if the clocks disagree.
  const auto host_time = [&](uint64_t tick) {
    return std::clamp(std::max(time_of(tick, known, period_, bits_), last_end_), submit_time, now);
  };
  const Instance& instance = device_.instance();
  halyard_trace_span_t span = {};
  span.struct_size = sizeof span;
  span.submission = submission;
  span.queue = position_;
  for (size_t i = 0; i < timestamps->named().size(); ++i) {
    span.begin_ns = host_time(ticks[2 * i]);
    if (i == 0) {
      span.kind = HALYARD_SPAN_BEGAN;
      instance.trace_span(instance.services().host, &span);
    }
    span.kind = HALYARD_SPAN_QUEUE;
    span.end_ns = std::max(span.begin_ns, host_time(ticks[2 * i + 1]));
    const Timestamps::Named& named = timestamps->named()[i];
    span.name = named.name.data();
    span.name_size = named.name.size();
    span.command = named.command;
    instance.trace_span(instance.services().host, &span);
    last_end_ = span.end_ns;
  }
}

}  // namespace halyard::vulkan
