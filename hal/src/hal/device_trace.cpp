// Lanes, counters and flows of devices.
#include "hal/device_trace.h"

#include <bit>
#include <new>
#include <string>
#include <utility>

#include "hal/device.h"
#include "hal/fence.h"

namespace halyard::hal {

namespace {

const char* operation_name(uint32_t operation) {
  switch (operation) {
    case HALYARD_OPERATION_BARRIER:
      return "barrier";
    case HALYARD_OPERATION_ALLOCA:
      return "alloca";
    case HALYARD_OPERATION_DEALLOCA:
      return "dealloca";
    case HALYARD_OPERATION_FILL:
      return "fill";
    case HALYARD_OPERATION_UPDATE:
      return "update";
    case HALYARD_OPERATION_COPY:
      return "copy";
    case HALYARD_OPERATION_READ:
      return "read";
    case HALYARD_OPERATION_WRITE:
      return "write";
    case HALYARD_OPERATION_DISPATCH:
      return "dispatch";
    case HALYARD_OPERATION_EXECUTE:
      return "execute";
    default:
      return "operation";
  }
}

// The same number for the same value of the same semaphore; others hardly ever meet.
uint64_t flow_of(const Timepoint& timepoint) {
  uint64_t number = timepoint.semaphore->trace_number() * 0x9E3779B97F4A7C15u + timepoint.value;
  number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9u;
  number = (number ^ number >> 27) * 0x94D049BB133111EBu;
  return number ^ number >> 31;
}

// Adds the flows of a fence; of one for which there is no memory they are left out.
template <size_t N>
void add_flows(InlineVector<uint64_t, N>& flows, const Fence* fence) noexcept {
  if (!fence) return;
  try {
    for (const Timepoint& timepoint : fence->timepoints()) flows.push_back(flow_of(timepoint));
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

DeviceTrace::DeviceTrace(Ref<Tracer> tracer, std::string_view uri)
    : tracer_(std::move(tracer)),
      track_(tracer_->add_track(uri)),
      memory_(tracer_->add_counter("memory", track_)) {}

void DeviceTrace::allocated(uint64_t bytes) noexcept {
  const auto size = static_cast<int64_t>(bytes);
  tracer_->count(memory_, bytes_.fetch_add(size, std::memory_order_relaxed) + size);
}

void DeviceTrace::freed(uint64_t bytes) noexcept {
  const auto size = static_cast<int64_t>(bytes);
  tracer_->count(memory_, bytes_.fetch_sub(size, std::memory_order_relaxed) - size);
}

uint32_t DeviceTrace::take_lane() noexcept {
  const std::lock_guard lock(mutex_);
  // More than there are lanes in flight: the last one has slices that overlap.
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

void DeviceTrace::device_span(const halyard_trace_span_t& span) noexcept {
  tracer_->span_on(queue_track(span.queue), TraceCategory::device, {span.name, span.name_size}, span.begin_ns,
                   span.end_ns);
}

WorkTrace::~WorkTrace() {
  if (device_) device_->leave_lane(lane_);
}

void WorkTrace::trace_submit(Device& device, uint32_t operation, const Fence* wait) noexcept {
  DeviceTrace* trace = device.trace();
  if (!trace) return;
  operation_ = operation;
  lane_ = trace->take_lane();
  flow_ = trace->tracer().new_flow();
  add_flows(waits_, wait);
  device_ = trace;
  trace->tracer().instant(TraceCategory::queue, operation_name(operation), {&flow_, 1});
  submitted_ = Tracer::now();
}

void WorkTrace::told(const halyard_trace_span_t& span) noexcept {
  if (span.kind == HALYARD_SPAN_BEGAN) {
    began_.store(span.begin_ns, std::memory_order_relaxed);
  } else if (span.kind == HALYARD_SPAN_QUEUE && device_) {
    device_->device_span(span);
  }
}

void WorkTrace::trace_done(const Fence* signal) noexcept {
  if (!device_) return;
  DeviceTrace& trace = *std::exchange(device_, nullptr);
  Tracer& tracer = trace.tracer();
  const Tracer::Track track = trace.lane_track(lane_);
  const uint64_t began = began_.load(std::memory_order_relaxed);
  const uint64_t now = Tracer::now();
  std::span<const uint64_t> flows = {&flow_, 1};
  // The driver may have begun before it told us where.
  if (began > submitted_ && waits_.size() != 0) {
    tracer.span_on(track, TraceCategory::wait, "waiting", submitted_, began, flows);
    flows = waits_;
  } else {
    try {
      waits_.push_back(flow_);
      flows = waits_;
    } catch (const std::bad_alloc&) {  // the flow alone
    }
  }
  tracer.span_on(track, TraceCategory::queue, operation_name(operation_),
                 began > submitted_ ? began : submitted_, now, flows);
  InlineVector<uint64_t, 4> signals;
  add_flows(signals, signal);
  if (signals.size() != 0) tracer.instant_on(track, TraceCategory::queue, "signal", now, signals);
  trace.leave_lane(lane_);
}

void trace_fence(const Fence& fence, const char* event) noexcept {
  for (const Timepoint& timepoint : fence.timepoints()) {
    DeviceTrace* trace = timepoint.semaphore->device().trace();
    if (!trace) continue;
    const uint64_t flow = flow_of(timepoint);
    trace->tracer().instant(TraceCategory::wait, event, {&flow, 1});
  }
}

}  // namespace halyard::hal
