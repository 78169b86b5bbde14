// Work: one submission, from the host's call until it is told that all is done. It is held until its waits
// are reached, or promised by queues of its device; then issued; then in flight; then finished. Nodes are
// used again with the memory of their arrays, so that warm submissions allocate nothing.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "device.h"
#include "recorder.h"
#include "submission_log.h"
#include "timeline.h"

namespace halyard::vulkan {

// Semaphores of Vulkan's that a submission waits for, as vkQueueSubmit wants them.
struct DeviceWaits {
  std::vector<VkSemaphore> semaphores;
  std::vector<uint64_t> values;
  std::vector<VkPipelineStageFlags> stages;

  void add(VkSemaphore semaphore, uint64_t value) {
    semaphores.push_back(semaphore);
    values.push_back(value);
  }
  void clear() {
    semaphores.clear();
    values.clear();
  }
};

struct Work final : Due {
  struct Wait : Waiter {
    Work* owner = nullptr;
    Semaphore* semaphore = nullptr;
  };

  Instance* instance = nullptr;
  Device* device = nullptr;
  uint64_t affinity = 0;
  halyard_operation_t operation = {};
  Memory* transient = nullptr;  // an alloca's
  std::vector<Wait> waits;
  std::vector<halyard_timepoint_t> signals;
  std::vector<halyard_binding_t> table;
  halyard_completed_fn completed = nullptr;
  void* completed_user = nullptr;

  // While it is held.
  std::mutex mutex;
  size_t pending = 0;                  // waits that are not settled
  bool complete = false;               // all waits are listed
  bool claimed = false;                // somebody issues it or has done so
  HostStatus failure;                  // of the first wait that failed
  std::atomic<size_t> references = 0;  // one for each wait that is not settled, one for the work

  // In flight.
  uint64_t id = 0;  // among those of the device; 0: nothing was submitted for it
  uint64_t number = 0;
  uint64_t submit_time = 0;  // to the device, where there is a trace
  Work* next_in_flight = nullptr;
  Queue* queue = nullptr;
  RecordingUse recording;
  DeviceWaits device_waits;  // for other drivers, until it is submitted

  // Operation and signals, then the host is told. The work may be gone afterwards, and the device.
  static void finish(Work* work, HostStatus failure, DueList& due);
};

// What queue_submit does. Files are left to the host, which stages them.
inline constexpr uint64_t kOperationBits = 1u << HALYARD_OPERATION_BARRIER | 1u << HALYARD_OPERATION_ALLOCA |
                                           1u << HALYARD_OPERATION_DEALLOCA | 1u << HALYARD_OPERATION_FILL |
                                           1u << HALYARD_OPERATION_UPDATE | 1u << HALYARD_OPERATION_COPY |
                                           1u << HALYARD_OPERATION_DISPATCH | 1u << HALYARD_OPERATION_EXECUTE;

// As queue_submit in driver.h. What becomes due by it goes to `due`.
Result<> submit(Device& device, const halyard_submission_t& submission, DueList& due);

// What reports say of the work; whatever it names is there.
void describe(const Work& work, Submission& submission);

}  // namespace halyard::vulkan
