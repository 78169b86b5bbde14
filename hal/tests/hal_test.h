// Shared by the tests of the HAL's host side: devices of the fake driver, buffers, and expectations about
// statuses.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/status.h"
#include "fake_driver.h"
#include "hal/device/buffer.h"
#include "hal/device/device.h"
#include "hal/driver/driver_library.h"

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
constexpr uint32_t kPlainUsage =
    HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED | HALYARD_USAGE_INDIRECT_PARAMETERS;

// A buffer with these bytes, created on the host's timeline.
Ref<Buffer> make_buffer(Device& device, const std::vector<uint8_t>& bytes, uint32_t usage = kPlainUsage);
std::vector<uint8_t> bytes_of(const Buffer& buffer);

inline Status status_of(const Status& status) { return status; }
template <typename T>
Status status_of(const Result<T>& result) {
  return result ? Status() : result.error();
}

template <typename T>
void expect_failure(const T& result, Code code, const std::string& text, const char* file, int line) {
  const testing::ScopedTrace trace(file, line, "status");
  const Status status = status_of(result);
  EXPECT_STREQ(name(status.code()), name(code)) << status.text();
  EXPECT_NE(status.text().find(text), std::string::npos) << "expected '" << text << "' in: " << status.text();
}
template <typename T>
void expect_ok(const T& result, const char* file, int line) {
  const testing::ScopedTrace trace(file, line, "status");
  EXPECT_EQ(status_of(result).text(), "OK");
}

}  // namespace halyard::hal

// Expects this code and this part of the text.
#define EXPECT_FAILS(code, text, ...) \
  ::halyard::hal::expect_failure((__VA_ARGS__), ::halyard::Code::code, text, __FILE__, __LINE__)
#define EXPECT_OK(...) ::halyard::hal::expect_ok((__VA_ARGS__), __FILE__, __LINE__)
