// Semaphores belong to one driver; a fence is a set of their values.
#include "hal/queue/fence.h"

#include <fmt/format.h>

#include <boost/container/small_vector.hpp>
#include <unordered_map>

#include "base/atomics.h"
#include "base/c_boundary.h"
#include "hal/device/pooled.h"
#include "hal/driver/driver_memory.h"

namespace halyard::hal {

const ObjectType Semaphore::kType = {"hal.semaphore", &Semaphore::destroy};
const ObjectType Fence::kType = pooled_object_type<Fence>("hal.fence");

// ---- Semaphore ----

Result<Ref<Semaphore>> Semaphore::create(Ref<Device> device, uint64_t initial, Budget* memory) {
  // Created before the handle, which it then owns.
  Device& home = *device;
  Ref<Semaphore> semaphore = make_pooled<Semaphore>(home, std::move(device));
  HALYARD_TRY(semaphore->charge_.start(
      memory, NodePool::footprint(sizeof(Semaphore)) + driver_memory::kSemaphore, "a semaphore"));
  const Device& on = semaphore->device();
  halyard_driver_semaphore_t handle = nullptr;
  if (halyard_status_t status = on.table().semaphore_create(on.handle(), initial, &handle))
    return std::unexpected(Status::adopt(status));
  HALYARD_TRY(on.check_given(handle, "semaphore_create"));
  semaphore->handle_ = handle;
  if (DeviceTrace* trace = on.trace()) semaphore->trace_number_ = trace->tracer().new_flow();
  return semaphore;
}

Ref<Device> Semaphore::leave() {
  drop_imports();
  if (handle_) device_->table().semaphore_destroy(device_->handle(), handle_);
  return std::move(device_);
}

void Semaphore::drop_holder() {
  // As in reference counting: if the count is one, this holder is the only one.
  if (holders_.load(std::memory_order_acquire) == 1 || fetch_sub(holders_, 1, std::memory_order_acq_rel) == 1)
    destroy_pooled(this);
}

void Semaphore::destroy(Object* object) {
  auto* semaphore = static_cast<Semaphore*>(object);
  if (semaphore->holders_.load(std::memory_order_acquire) > 1) {
    const Result<uint64_t> value = semaphore->query();
    const uint64_t awaited = semaphore->awaited_.load(std::memory_order_relaxed);
    if (value && *value < awaited) {
      Status abandoned = out_of_memory();
      static_cast<void>(outcome_of([&]() -> Result<> {
        abandoned = Status(
            Code::ABORTED,
            fmt::format(
                "value {} of a semaphore of device '{}' (now {}) will never be reached: nothing that could "
                "signal it is left; keep its fence until it is signalled, or fail it",
                awaited, semaphore->device_->uri(), *value));
        return {};
      }));
      semaphore->fail(std::move(abandoned));
    }
  }
  semaphore->drop_holder();
}

Awaited::Awaited(Semaphore& semaphore, uint64_t value) : semaphore_(&semaphore) {
  fetch_add(semaphore.holders_, 1, std::memory_order_relaxed);
  uint64_t known = semaphore.awaited_.load(std::memory_order_relaxed);
  while (known < value && !compare_exchange(semaphore.awaited_, known, value, std::memory_order_relaxed)) {
  }
}

Result<uint64_t> Semaphore::query() const {
  uint64_t value = 0;
  if (halyard_status_t status = device_->table().semaphore_query(handle_, &value))
    return std::unexpected(Status::adopt(status));
  return value;
}

Result<> Semaphore::signal(uint64_t value) {
  Status status = Status::adopt(device_->table().semaphore_signal(handle_, value));
  if (status.code() != Code::INVALID_ARGUMENT) return to_result(std::move(status));
  return std::unexpected(
      Status(Code::INVALID_ARGUMENT,
             fmt::format("expected a value larger than the semaphore's, found {}; signal each value once",
                         value))
          .caused_by(std::move(status)));
}

void Semaphore::fail(Status status) { device_->table().semaphore_fail(handle_, std::move(status).release()); }

// ---- Fence ----

namespace {

constexpr size_t kMaxTimepoints = 65534;

// The timepoints of several fences, one for each semaphore: the largest value. Few timepoints are searched;
// many have a map from the semaphore to the index.
class JoinedTimepoints {
 public:
  void add(const Timepoint& timepoint) {
    const size_t i = find(*timepoint.semaphore);
    if (i == timepoints_.size()) {
      timepoints_.push_back(timepoint);
    } else if (timepoints_[i].value < timepoint.value) {
      timepoints_[i].value = timepoint.value;
    }
  }
  size_t size() const { return timepoints_.size(); }
  Timepoints take() { return std::move(timepoints_); }

 private:
  static constexpr size_t kMaxSearched = 16;

  // The index of the semaphore's timepoint; size() if there is none, in which case add() appends one.
  size_t find(Semaphore& semaphore) {
    if (timepoints_.size() < kMaxSearched) {
      size_t i = 0;
      while (i < timepoints_.size() && timepoints_[i].semaphore.get() != &semaphore) ++i;
      return i;
    }
    if (indices_.empty())
      for (size_t i = 0; i < timepoints_.size(); ++i) indices_.emplace(timepoints_[i].semaphore.get(), i);
    return indices_.try_emplace(&semaphore, timepoints_.size()).first->second;
  }

  Timepoints timepoints_;
  std::unordered_map<Semaphore*, size_t> indices_;
};

}  // namespace

Result<Ref<Fence>> Fence::create(Ref<Device> device, Budget* memory) {
  Device& home = *device;
  Ref<Semaphore> semaphore = HALYARD_TRY(Semaphore::create(std::move(device), 0, memory));
  Ref<Fence> fence = make_pooled<Fence>(home, Timepoint{std::move(semaphore), 1});
  HALYARD_TRY(fence->charge_.start(memory, NodePool::footprint(sizeof(Fence)), "a fence"));
  return fence;
}

Result<Ref<Fence>> Fence::of(Timepoints&& timepoints, Budget* memory) {
  Device& home = timepoints[0].semaphore->device();
  // The array grows by doubling.
  const uint64_t array = timepoints.size() > 1 ? block_bytes(2 * timepoints.size() * sizeof(Timepoint)) : 0;
  Ref<Fence> fence = make_pooled<Fence>(home, std::move(timepoints));
  HALYARD_TRY(fence->charge_.start(memory, NodePool::footprint(sizeof(Fence)) + array, "a fence"));
  return fence;
}

Result<Ref<Fence>> Fence::join(std::span<Fence* const> fences, Budget* memory) {
  Charge joining;
  if (memory) [[unlikely]] {
    constexpr uint64_t kEach = 3 * sizeof(Timepoint) + 64;  // both arrays during growth, and the map
    uint64_t count = 0;
    for (const Fence* fence : fences) count += fence ? fence->timepoints_.size() : 0;
    HALYARD_TRY(
        joining.start(memory, std::min<uint64_t>(count, 2 * kMaxTimepoints) * kEach, "joining fences"));
  }
  JoinedTimepoints joined;
  for (Fence* fence : fences) {
    if (!fence) continue;
    for (const Timepoint& timepoint : fence->timepoints_) joined.add(timepoint);
    if (joined.size() > kMaxTimepoints)
      return halyard::fail(Code::OUT_OF_RANGE,
                           "joined fence has {} timepoints or more; expected at most {}; join fewer fences",
                           joined.size(), kMaxTimepoints);
  }
  if (joined.size() == 0) return Ref<Fence>();
  joining = {};
  return of(joined.take(), memory);
}

Status Fence::query() const {
  const Timepoint* unreached = nullptr;
  for (const Timepoint& timepoint : timepoints_) {
    const Result<uint64_t> value = timepoint.semaphore->query();
    if (!value) return value.error();
    if (*value < timepoint.value && !unreached) unreached = &timepoint;
  }
  if (!unreached) return {};
  return Status(Code::DEFERRED, "fence is not reached yet");
}

// Signals all timepoints, including those after one that is already reached.
Result<> Fence::signal() {
  Result<> first;
  trace_fence(*this, "signal");
  for (const Timepoint& timepoint : timepoints_) {
    Result<> result = timepoint.semaphore->signal(timepoint.value);
    if (!result && first) first = std::move(result);
  }
  return first;
}

void Fence::fail(const Status& status) {
  for (const Timepoint& timepoint : timepoints_) timepoint.semaphore->fail(status);
}

namespace {

// A hash of a semaphore and value; collisions are unlikely.
uint64_t flow_of(const Timepoint& timepoint) {
  uint64_t number = timepoint.semaphore->trace_number() * 0x9E3779B97F4A7C15u + timepoint.value;
  number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9u;
  number = (number ^ number >> 27) * 0x94D049BB133111EBu;
  return number ^ number >> 31;
}

}  // namespace

Flows flows_of(const Fence* fence) noexcept {
  Flows flows;
  if (!fence) return flows;
  for (const Timepoint& timepoint : fence->timepoints()) flows.add(flow_of(timepoint));
  return flows;
}

void trace_fence(const Fence& fence, const char* event) noexcept {
  for (const Timepoint& timepoint : fence.timepoints()) {
    DeviceTrace* trace = timepoint.semaphore->device().trace();
    if (!trace || !trace->work().is_recorded()) continue;
    const uint64_t flow = flow_of(timepoint);
    trace->tracer().instant(TraceCategory::wait, event, {&flow, 1});
  }
}

}  // namespace halyard::hal
