// Lanes, counters and flows of devices.
#include "hal/trace/device_trace.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "halyard/driver/operation_name.hpp"

namespace halyard::hal {

namespace {

const char* operation_name(uint32_t operation) {
  const char* const name = kit::operation_name(operation);
  return name ? name : "operation";
}

}  // namespace

bool TracedWork::is_recorded() const noexcept {
  switch (current_trace_choice()) {
    case TraceChoice::on:
      return true;
    case TraceChoice::off:
      return false;
    default:
      return !has_untraced.load(std::memory_order_relaxed) || in_flight.load(std::memory_order_relaxed) > 0;
  }
}

// Fences are reached a moment before a driver reports the work. Work that waits for something else may never
// be reported.
void TracedWork::settle() const noexcept {
  constexpr auto kMost = std::chrono::seconds(1);
  const auto begin = std::chrono::steady_clock::now();
  while (in_flight.load(std::memory_order_acquire) > 0 && std::chrono::steady_clock::now() - begin < kMost)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

DeviceTrace::DeviceTrace(Ref<Tracer> tracer, std::string_view uri, TracedWork& work, const MemoryLog& log)
    : tracer_(std::move(tracer)),
      work_(work),
      track_(tracer_->add_track(uri)),
      memory_(tracer_->add_counter("memory", track_)),
      allocations_(tracer_->add_track("allocations", track_)),
      log_(log) {
  source_ = tracer_->add_source({[this] { work_.settle(); }, [this] { report_peak(); }});
}

DeviceTrace::~DeviceTrace() {
  tracer_->remove_source(source_);
  report_peak();
}

void DeviceTrace::memory_changed(const MemoryLog::Change& change) noexcept {
  if (!work_.is_recorded()) return;
  tracer_->count(memory_, static_cast<int64_t>(change.live));
  if (change.is_end) return;
  const TraceArgument arguments[] = {{"bytes", nullptr, change.bytes},
                                     {"allocation", nullptr, change.number}};
  tracer_->instant_on(allocations_, TraceCategory::memory, change.maker, Tracer::now(), {}, arguments);
}

// What was alive at the peak, as events at its time, the largest first.
void DeviceTrace::report_peak() noexcept {
  try {
    const MemoryLog::Report report = log_.report();
    if (report.peak_bytes == reported_peak_) return;
    reported_peak_ = report.peak_bytes;
    constexpr size_t kMostGroups = 1'000;
    const Tracer::Track track = tracer_->add_track("alive at the peak", track_);
    for (size_t i = 0; i < std::min(report.alive.size(), kMostGroups); ++i) {
      const MemoryLog::Alive& alive = report.alive[i];
      const TraceArgument arguments[] = {{"bytes", nullptr, alive.bytes},
                                         {"count", nullptr, alive.count},
                                         {"peak", nullptr, report.peak_bytes}};
      tracer_->instant_on(track, TraceCategory::memory, alive.made_by, report.peak_time, {}, arguments);
    }
  } catch (const std::bad_alloc&) {  // the trace lacks the report
  }
}

uint32_t DeviceTrace::take_lane() noexcept {
  const std::lock_guard lock(mutex_);
  // If more submissions are in flight than there are lanes, slices overlap in the last lane.
  const auto lane = static_cast<uint32_t>(std::min(std::countr_one(taken_), 63));
  taken_ |= uint64_t{1} << lane;
  if (lanes_[lane] == 0) lanes_[lane] = tracer_->add_track("in flight", track_);
  return lane;
}

void DeviceTrace::leave_lane(uint32_t lane) noexcept {
  const std::lock_guard lock(mutex_);
  taken_ &= ~(uint64_t{1} << lane);
}

Tracer::Track DeviceTrace::queue_track(uint32_t queue) noexcept {
  const std::lock_guard lock(mutex_);
  Tracer::Track& track = queues_[queue % queues_.size()];
  if (track == 0) {
    std::array<char, 24> name = {};
    std::snprintf(name.data(), name.size(), "queue %u", queue);
    track = tracer_->add_track(name.data(), track_);
  }
  return track;
}

void DeviceTrace::device_span(const halyard_trace_span_t& span, uint64_t execution,
                              const CommandPlace& place) noexcept {
  TracedDispatch facts = {.execution = execution, .command = place.number};
  if (HALYARD_HAS_FIELD(&span, halyard_trace_span_t, code) &&
      (span.dispatch_workgroups != 0 || span.code != HALYARD_CODE_UNKNOWN)) {
    facts.workgroups = span.workgroups;
    facts.dispatch_workgroups = span.dispatch_workgroups;
    facts.operations = span.operations;
    facts.bytes_read = span.bytes_read;
    facts.bytes_written = span.bytes_written;
    facts.checked_loops = span.checked_loops;
    facts.known = span.known;
    facts.code = span.code;
    facts.threads = span.threads;
  }
  tracer_->dispatch(queue_track(span.queue), {span.name, span.name_size}, span.begin_ns, span.end_ns, facts,
                    {{{}, {}, place.source, place.text}});
}

struct WorkTrace::State {
  DeviceTrace& device;
  const uint32_t operation;
  const uint32_t lane;
  const uint64_t flow;  // leads here from the submission
  uint64_t submitted = 0;
  std::atomic<uint64_t> began{0};
  const TracedCommands* const commands;
  Flows waits = {};

  State(DeviceTrace& to, uint32_t kind, const TracedCommands* executed)
      : device(to), operation(kind), lane(to.take_lane()), flow(to.tracer().new_flow()), commands(executed) {
    device.work().in_flight.fetch_add(1, std::memory_order_relaxed);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    device.leave_lane(lane);
    device.work().in_flight.fetch_sub(1, std::memory_order_release);
  }
};

void WorkTrace::drop() noexcept { delete std::exchange(state_, nullptr); }

void WorkTrace::begin(DeviceTrace& device, uint32_t operation, const Flows& waits,
                      const TracedCommands* commands) noexcept {
  if (current_trace_choice() == TraceChoice::off) {
    device.work().has_untraced.store(true, std::memory_order_relaxed);
    return;
  }
  state_ = new (std::nothrow) State(device, operation, commands);
  if (!state_) return;
  state_->waits = waits;
  device.tracer().instant(TraceCategory::queue, operation_name(operation), {&state_->flow, 1});
  state_->submitted = Tracer::now();
}

void WorkTrace::span_reported(const halyard_trace_span_t& span) noexcept {
  if (!state_) return;
  if (span.kind == HALYARD_SPAN_BEGAN) {
    state_->began.store(span.begin_ns, std::memory_order_relaxed);
  } else if (span.kind == HALYARD_SPAN_QUEUE) {
    const bool has_command = HALYARD_HAS_FIELD(&span, halyard_trace_span_t, command);
    state_->device.device_span(span, execution(), has_command ? place_at(span.command) : CommandPlace());
  }
}

uint64_t WorkTrace::execution() const noexcept { return state_ ? state_->flow : 0; }

CommandPlace WorkTrace::place_at(const void* command) const noexcept {
  return state_ && state_->commands && command ? state_->commands->place_at(command) : CommandPlace();
}

// A fence's flow starts at the begin of the operation that signals it. The host does not know when the driver
// signals, and a waiter may start before this report.
void WorkTrace::end(const Flows& signals) noexcept {
  const std::unique_ptr<State> work(std::exchange(state_, nullptr));
  Tracer& tracer = work->device.tracer();
  const Tracer::Track track = work->device.lane_track(work->lane);
  const char* name = operation_name(work->operation);
  const uint64_t now = Tracer::now();
  const uint64_t began = work->began.load(std::memory_order_relaxed);
  const bool waited = began > work->submitted && !work->waits.view().empty();
  if (waited) tracer.span_on(track, TraceCategory::wait, "waiting", work->submitted, began, {&work->flow, 1});
  Flows flows;
  if (!waited) flows.add(work->flow);
  if (began != 0) flows.add(work->waits.view());
  flows.add(signals.view());
  tracer.span_on(track, TraceCategory::queue, name, waited ? began : work->submitted, now, flows.view());
  // If the driver does not report the start, the host only knows that the fences have been reached by now.
  if (began == 0 && !work->waits.view().empty())
    tracer.instant_on(track, TraceCategory::wait, "reached", now, work->waits.view());
}

}  // namespace halyard::hal
