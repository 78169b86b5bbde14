// Shared by the tests of the HAL's host side: devices of the fake driver, and buffers.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/status.h"
#include "fake_driver.h"
#include "hal/command/command_buffer.h"
#include "hal/device/buffer.h"
#include "hal/device/device.h"
#include "hal/device/executable.h"
#include "hal/driver/driver_library.h"
#include "hal/queue/fence.h"
#include "status_testing.h"

namespace halyard::hal {

// A new instance of the fake driver. Handles of two instances must not be mixed.
Ref<DriverLibrary> open_fake_library();
// A device of a shared instance; `path` as in fake_driver.h.
Ref<Device> open_fake_device(const std::string& path = "");
Ref<Device> open_fake_device(Ref<DriverLibrary> library, const std::string& path = "");

// The loop that closes the devices of these tests; await_outside_of_callbacks(*test_loop()) waits for that.
const Ref<Loop>& test_loop();

const FakeControls& fake();
std::string fake_log();  // operations run since reset()

// Resets the fake driver, and checks that the test destroys every handle.
class FakeDriverTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

 private:
  int64_t live_[FAKE_HANDLE_KINDS] = {};
};

constexpr uint32_t kPlainType = 0;
constexpr uint32_t kMapped = HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_DEVICE_VISIBLE;
constexpr uint32_t kPlainUsage =
    HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED | HALYARD_USAGE_INDIRECT_PARAMETERS;

// A buffer with these bytes, created on the host's timeline.
Ref<Buffer> make_buffer(Device& device, const std::vector<uint8_t>& bytes, uint32_t usage = kPlainUsage);
std::vector<uint8_t> bytes_of(const Buffer& buffer);
// An executable of the fake driver; `text` as in drivers/fake.cpp.
Ref<Executable> load_fake(const Ref<Device>& device, std::string_view text);
constexpr uint32_t kTransfersAndDispatches = kTransfer | kDispatchCategory;
Ref<CommandBuffer> record(const Ref<Device>& device, uint32_t mode = 0, uint32_t capacity = 0,
                          uint32_t categories = kTransfersAndDispatches);

Ref<Fence> make_fence(const Ref<Device>& device);
template <size_t kCount>
std::array<Ref<Fence>, kCount> make_fences(const Ref<Device>& device) {
  std::array<Ref<Fence>, kCount> fences;
  for (Ref<Fence>& fence : fences) fence = make_fence(device);
  return fences;
}

}  // namespace halyard::hal
