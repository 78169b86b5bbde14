// Programs of queue work, made of bytes: they allocate, fill, update, copy, read and write files, record and
// execute command buffers, wait for gates that the host opens, fails or drops, on one device or several. What
// each does to the bytes is computed a second time, without a device. A program has the same outcome on all
// drivers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hal/device/device.h"

namespace halyard::modules {

struct QueueOutcome {
  std::vector<Code> codes;     // of the calls, in their order
  std::vector<uint8_t> bytes;  // of all buffers and files in the end
  std::string defect;          // where the devices and the computation differ; empty: nowhere
  size_t operations = 0;       // submitted work

  bool operator==(const QueueOutcome&) const = default;
};

// Buffers and work are spread over the devices.
QueueOutcome run_queue_program(std::span<const uint8_t> program, std::span<const Ref<hal::Device>> devices);

}  // namespace halyard::modules
