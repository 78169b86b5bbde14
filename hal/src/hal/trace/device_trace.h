// Reports a device's work, memory and fences to the tracer. The device has a track, with lanes for
// submissions in flight and a counter of its memory. Exists only while tracing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>

#include "base/trace_choice.h"
#include "base/tracer.h"
#include "hal/trace/memory_log.h"
#include "halyard/driver.h"

namespace halyard::hal {

// The flows of one trace event. Flows beyond the capacity are dropped.
class Flows {
 public:
  void add(uint64_t flow) {
    if (count_ < flows_.size()) flows_[count_++] = flow;
  }
  void add(std::span<const uint64_t> flows) {
    for (const uint64_t flow : flows) add(flow);
  }
  std::span<const uint64_t> view() const { return std::span(flows_).first(count_); }

 private:
  std::array<uint64_t, 32> flows_;
  size_t count_ = 0;
};

// Drivers report events of their own threads without the call that caused them. Once some calls are not
// recorded, these events are recorded only while work of recorded calls is in flight. Thread-safe.
struct TracedWork {
  std::atomic<uint64_t> in_flight = 0;
  std::atomic<bool> has_untraced = false;

  // Whether to record events of the calling thread now.
  bool is_recorded() const noexcept;
  // Waits until no work is in flight, at most 1 s.
  void settle() const noexcept;
};

// The place of a command: its number in its recording, from 1 (0: unknown), the place in the program that
// recorded it, and its function.
struct CommandPlace {
  uint64_t number = 0;
  std::string_view text;
  std::string_view source;  // where the function of a dispatch is in the source; may be empty
};
// A recording that knows its commands by the addresses that drivers see.
class TracedCommands {
 public:
  virtual CommandPlace place_at(const void* command) const noexcept = 0;

 protected:
  ~TracedCommands() = default;
};

// Thread-safe.
class DeviceTrace {
 public:
  // `work` and `log` must outlive this object.
  DeviceTrace(Ref<Tracer> tracer, std::string_view uri, TracedWork& work, const MemoryLog& log);
  ~DeviceTrace();

  Tracer& tracer() const { return *tracer_; }
  TracedWork& work() const { return work_; }
  // Called for one change at a time, in the order of changes.
  void memory_changed(const MemoryLog::Change& change) noexcept;
  // Records a slice of an operation, as measured by the device. `execution` is the number of its submission.
  void device_span(const halyard_trace_span_t& span, uint64_t execution, const CommandPlace& place) noexcept;

  // Slices of one lane never overlap, because a lane belongs to one submission at a time.
  static constexpr uint32_t kLanes = 64;
  uint32_t take_lane() noexcept;
  void leave_lane(uint32_t lane) noexcept;
  Tracer::Track lane_track(uint32_t lane) const { return lanes_[lane]; }

 private:
  void report_peak() noexcept;
  Tracer::Track queue_track(uint32_t queue) noexcept;

  const Ref<Tracer> tracer_;
  TracedWork& work_;
  const Tracer::Track track_;
  const Tracer::Track memory_;
  const Tracer::Track allocations_;
  const MemoryLog& log_;
  uint64_t source_ = 0;
  uint64_t reported_peak_ = 0;  // bytes
  std::mutex mutex_;            // guards the members below
  uint64_t taken_ = 0;
  std::array<Tracer::Track, kLanes> lanes_ = {};
  std::array<Tracer::Track, 64> queues_ = {};
};

// Traces one submission, from its creation to its completion. Its slices are the wait for its fences, if the
// driver reports when the wait ends, and the operation. Flows lead to it from the submitting call and from
// the work that signals the fences it waits for.
class WorkTrace {
 public:
  WorkTrace() = default;
  WorkTrace(const WorkTrace&) = delete;
  WorkTrace& operator=(const WorkTrace&) = delete;
  ~WorkTrace() {
    if (state_) [[unlikely]]
      drop();
  }

  // Called before the driver receives the submission. `device` may be null (no trace). `wait` may be null;
  // its flows_of() is called only while tracing. `commands` (may be null) are those that it executes, which
  // live until it is completed.
  template <typename Fence>
  void trace_submit(DeviceTrace* device, uint32_t operation, const Fence* wait,
                    const TracedCommands* commands) noexcept {
    if (device) [[unlikely]]
      begin(*device, operation, flows_of(wait), commands);
  }
  void trace_submit(DeviceTrace* device, uint32_t operation) noexcept {
    if (device) [[unlikely]]
      begin(*device, operation, {}, nullptr);
  }
  // Records a span that the driver reports before completion.
  void span_reported(const halyard_trace_span_t& span) noexcept;
  // The number of this submission in the order of submissions; 0: it is not traced.
  uint64_t execution() const noexcept;
  CommandPlace place_at(const void* command) const noexcept;
  // Called at completion, before or after its signals. `signal` may be null.
  template <typename Fence>
  void trace_done(const Fence* signal) noexcept {
    if (state_) [[unlikely]]
      end(flows_of(signal));
  }
  void trace_done() noexcept {
    if (state_) [[unlikely]]
      end({});
  }

 private:
  struct State;

  void begin(DeviceTrace& device, uint32_t operation, const Flows& waits,
             const TracedCommands* commands) noexcept;
  void end(const Flows& signals) noexcept;
  void drop() noexcept;  // for refused work, which is not shown

  State* state_ = nullptr;  // owned
};

}  // namespace halyard::hal
