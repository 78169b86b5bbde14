// Work: one submission, from the host's call to its completion. It is held until its waits are reached, or
// promised by queues of its device; then issued, in flight and finished. Nodes are reused with the memory of
// their arrays, so that warm submissions allocate nothing.
#pragma once

#include <memory>
#include <vector>

#include "command_encoder.h"
#include "device.h"
#include "halyard/driver/waiting.hpp"
#include "submission_log.h"
#include "timeline.h"

namespace halyard::vulkan {

// Vulkan semaphores that a submission waits for, in the form of vkQueueSubmit.
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

struct Work final : Task, kit::Held<Work, Semaphore, TaskList> {
  Instance* instance = nullptr;
  Device* device = nullptr;
  uint64_t affinity = 0;
  halyard_operation_t operation = {};
  Memory* transient = nullptr;  // of an alloca, else null
  std::vector<Wait> waits;
  std::vector<halyard_timepoint_t> signals;
  std::vector<halyard_binding_t> table;
  halyard_completed_fn completed = nullptr;
  void* completed_user = nullptr;

  // In flight.
  uint64_t id = 0;  // among the device's submissions; 0: nothing was submitted
  uint64_t number = 0;
  uint64_t submit_time = 0;  // CLOCK_MONOTONIC in nanoseconds
  Work* next_in_flight = nullptr;
  Queue* queue = nullptr;
  EncodedCommands encoded;
  DeviceWaits device_waits;  // for other drivers, until submission

  // Copies the submission and starts to wait. May free the work before it returns.
  void begin(const halyard_submission_t& submission, TaskList& ready);
  // Runs the operation, signals, then notifies the host. May free the work, and the device, before it
  // returns.
  void finish(Status failure, TaskList& ready);

  // Called once by kit::Held: when the waits are over, and when no reference is left.
  void on_ready(TaskList& ready) { ready.push_work(*this); }
  void dispose() { instance->works.give(std::unique_ptr<Work>(this)); }

 private:
  void issue(TaskList& ready);
};

// As queue_submit in driver.h. Tasks that become ready are added to `ready`.
Result<> submit(Device& device, const halyard_submission_t& submission, TaskList& ready);

// Describes the work for reports. The objects that it uses must exist.
void describe(const Work& work, LoggedSubmission& submission);

}  // namespace halyard::vulkan
