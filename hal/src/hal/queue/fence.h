// Semaphore: a driver's timeline as a shared object. Fence: a set of timepoints. Specified by
// hal-semantics.md, "Timelines", and rulings 9 to 12. Thread-safe; a fence is immutable.
#pragma once

#include <atomic>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"
#include "hal/device/device.h"

namespace halyard::hal {

// A holder of a Ref may signal the semaphore; a waiter holds an Awaited. If the last Ref is dropped while
// waiters wait for values not yet reached, nothing can signal those values any more. The semaphore then fails
// (ABORTED), so that the waiters and the objects that they hold are released.
class Semaphore final : public Object {
 public:
  static const ObjectType kType;  // "hal.semaphore"

  // `memory` (may be null) is charged. RESOURCE_EXHAUSTED. INTERNAL: the driver returned invalid values.
  static Result<Ref<Semaphore>> create(Ref<Device> device, uint64_t initial, Budget* memory = nullptr);

  Device& device() const { return *device_; }
  halyard_driver_semaphore_t handle() const { return handle_; }
  Result<uint64_t> query() const;   // if the semaphore has failed, the failure
  Result<> signal(uint64_t value);  // INVALID_ARGUMENT: the value is already reached
  void fail(Status status);
  uint64_t trace_number() const { return trace_number_; }  // number in traces; 0: not traced

  // A semaphore of the other driver's device that follows this one (hal/queue/semaphore_fd.h), created on
  // first use. It can be waited for and failed, but not signalled.
  Result<Ref<Semaphore>> imported_by(Device& device);

  explicit Semaphore(Ref<Device> device) : Object(&kType), device_(std::move(device)) {}
  Ref<Device> leave();  // called by the last holder

 private:
  friend class Awaited;
  struct Imports;
  Result<Ref<Semaphore>> import(Device& device) const;
  void drop_imports();
  static void destroy(Object* object);  // called when the last Ref is dropped
  void drop_holder();                   // drops one holder

  Ref<Device> device_;
  halyard_driver_semaphore_t handle_ = nullptr;
  uint64_t trace_number_ = 0;
  std::atomic<uint32_t> holders_{1};        // one for all Refs, one for each Awaited
  std::atomic<uint64_t> awaited_{0};        // the largest value for which a waiter waits
  std::atomic<Imports*> imports_{nullptr};  // null for most semaphores
  Charge charge_;
};

// Keeps a semaphore alive for a waiter for `value`.
class Awaited {
 public:
  Awaited() = default;
  Awaited(Semaphore& semaphore, uint64_t value);
  Awaited(Awaited&& other) noexcept : semaphore_(std::exchange(other.semaphore_, nullptr)) {}
  Awaited& operator=(Awaited other) noexcept {
    std::swap(semaphore_, other.semaphore_);
    return *this;
  }
  ~Awaited() {
    if (semaphore_) semaphore_->drop_holder();
  }
  Semaphore& semaphore() const { return *semaphore_; }  // precondition: not empty

 private:
  Semaphore* semaphore_ = nullptr;
};

struct Timepoint {
  Ref<Semaphore> semaphore;
  uint64_t value = 0;
};

using Timepoints = boost::container::small_vector<Timepoint, 1>;

// Whether the driver of the device has made the semaphore.
inline bool is_of_driver(const Timepoint& timepoint, const Device& device) {
  return &timepoint.semaphore->device().library() == &device.library();
}

class Fence final : public ObjectOf<Fence> {
 public:
  static const ObjectType kType;  // "hal.fence"

  // `memory` (may be null) is charged by each of these: RESOURCE_EXHAUSTED.
  // A fence with one timepoint: value 1 of a new semaphore of the device.
  static Result<Ref<Fence>> create(Ref<Device> device, Budget* memory = nullptr);
  // The union of the timepoints, with the largest value of each semaphore. Null if there are no timepoints.
  // Null fences are skipped.
  static Result<Ref<Fence>> join(std::span<Fence* const> fences, Budget* memory = nullptr);
  static Result<Ref<Fence>> of(Timepoints&& timepoints, Budget* memory = nullptr);  // at least one

  std::span<const Timepoint> timepoints() const { return timepoints_; }
  // OK: reached. DEFERRED: not reached yet. Otherwise the failure, which takes precedence (ruling 10).
  Status query() const;
  Result<> signal();                // INVALID_ARGUMENT: already reached
  void fail(const Status& status);  // fails all its semaphores

  explicit Fence(Timepoints&& timepoints) : timepoints_(std::move(timepoints)) {}
  explicit Fence(Timepoint timepoint) { timepoints_.push_back(std::move(timepoint)); }
  Device& device() const { return timepoints_[0].semaphore->device(); }  // the device of the first timepoint
  Ref<Device> leave() { return Ref<Device>::share(&device()); }

 private:
  Timepoints timepoints_;
  Charge charge_;
};

// The flows of the fence's timepoints; empty for null.
Flows flows_of(const Fence* fence) noexcept;
// Records that the calling thread waited for a fence or signalled it, with flows from or to the work.
void trace_fence(const Fence& fence, const char* event) noexcept;

}  // namespace halyard::hal
