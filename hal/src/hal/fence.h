// Semaphore: a driver's timeline as a shared object. Fence: a set of timepoints. Specified by
// hal-semantics.md, "Timelines", and rulings 9 to 12. Thread-safe; a fence is immutable once made.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "hal/device.h"

namespace halyard::hal {

class Semaphore final : public ObjectOf<Semaphore> {
 public:
  static const ObjectType kType;  // "hal.semaphore"

  static Result<Ref<Semaphore>> create(Ref<Device> device, uint64_t initial);

  Device& device() const { return *device_; }
  halyard_driver_semaphore_t handle() const { return handle_; }
  Result<uint64_t> query() const;   // the failure, if it has failed
  Result<> signal(uint64_t value);  // INVALID_ARGUMENT: already at or past it
  void fail(Status status);

  Semaphore(Ref<Device> device, halyard_driver_semaphore_t handle)
      : device_(std::move(device)), handle_(handle) {}
  ~Semaphore();

 private:
  Ref<Device> device_;
  halyard_driver_semaphore_t handle_;
};

struct Timepoint {
  Ref<Semaphore> semaphore;
  uint64_t value = 0;
};

class Fence final : public ObjectOf<Fence> {
 public:
  static const ObjectType kType;  // "hal.fence"

  // One timepoint: value 1 of a new semaphore of the device.
  static Result<Ref<Fence>> create(Ref<Device> device);
  // Union; for each semaphore the largest value. Null when there is no timepoint. Nulls are skipped.
  static Result<Ref<Fence>> join(std::span<Fence* const> fences);

  std::span<const Timepoint> timepoints() const { return timepoints_; }
  // OK: reached. DEFERRED: not yet. Otherwise the failure, which is looked for first (ruling 10).
  Status query() const;
  Result<> signal();  // INVALID_ARGUMENT: reached already
  void fail(const Status& status);

  explicit Fence(std::vector<Timepoint> timepoints) : timepoints_(std::move(timepoints)) {}

 private:
  std::vector<Timepoint> timepoints_;
};

inline constexpr uint32_t kWaitForever = 0xFFFFFFFFu;
inline constexpr size_t kMaximumAwaitedFences = 32;

// hal.fence.await: waits for all; nulls are reached. OK, DEADLINE_EXCEEDED (timeout), ABORTED (ruling 12:
// nothing can ever reach it), or the first failure, which is looked for first. Blocks the calling thread; 0
// polls. Nothing is locked or allocated here when all are reached. `timed_out` (may be null) tells a timeout
// from a failure with that code.
Status await(std::span<Fence* const> fences, uint32_t timeout_milliseconds, bool* timed_out = nullptr);

// Ruling 12 for a caller that is about to block without limit: ABORTED where nothing can ever reach the
// fences; or their failure.
Status check_reachable(std::span<Fence* const> fences);

// Calls `ended` once, on any thread and maybe before it returns: when all fences are reached or one has
// failed. It must neither block nor drop the object that is given, which stands for the watch: dropping that
// ends it.
Result<Ref<Object>> watch(std::span<Fence* const> fences, std::function<void()> ended);

}  // namespace halyard::hal
