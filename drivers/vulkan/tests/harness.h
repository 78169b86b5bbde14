// The driver's host in tests: services that count statuses and keep the log, an open device, owned handles,
// and short functions for submissions. Tests use the function table, except where noted.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "device.h"
#include "driver_calls.h"
#include "halyard/driver.h"
#include "recording.h"

namespace halyard::vulkan_tests {

// The result of a call.
struct Outcome {
  halyard_status_code_t code = HALYARD_OK;
  std::string message;
  bool ok() const { return code == HALYARD_OK; }
};

class Host;

struct Completion {
  Host* host = nullptr;
  std::atomic<int> calls = 0;
  Outcome outcome;
};

// A span reported to a trace.
struct RecordedSpan {
  uint32_t kind = 0;
  uint64_t begin = 0, end = 0;
  char name[32] = {};  // shortened; a member, so that recording it allocates nothing
  Completion* submission = nullptr;
  bool was_completed = false;  // whether the submission had completed by then
  uint32_t queue = 0;
};

class Host {
 public:
  Host();
  ~Host() { EXPECT_EQ(live_, 0) << "references to statuses that nobody released"; }
  Host(const Host&) = delete;

  const halyard_host_services_t& services() const { return services_; }
  Outcome take(halyard_status_t status);  // takes ownership of a reference
  halyard_status_t give(halyard_status_code_t code,
                        std::string_view message);  // a status that the driver will own
  std::vector<std::string> log() const;
  // Drivers that are initialized from now on report a trace.
  void record_trace();
  std::vector<RecordedSpan> take_spans();  // since the last call

 private:
  halyard_host_services_t services_ = {};
  std::atomic<int> live_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> log_;
  std::vector<RecordedSpan> spans_;
};

using namespace driver_tests;  // operations, ranges and slots by their short names

inline testing::AssertionResult is_ok(const Outcome& outcome) {
  if (outcome.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << static_cast<int>(outcome.code) << ": " << outcome.message;
}
inline testing::AssertionResult has_code(halyard_status_code_t code, const Outcome& outcome) {
  if (outcome.code == code) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected " << static_cast<int>(code) << ", found "
                                     << static_cast<int>(outcome.code) << ": " << outcome.message;
}
#define EXPECT_OK(...) EXPECT_TRUE(::halyard::vulkan_tests::is_ok(__VA_ARGS__))
#define EXPECT_CODE(code, ...) EXPECT_TRUE(::halyard::vulkan_tests::has_code(HALYARD_##code, __VA_ARGS__))

// A file that the build creates from the shaders of these tests.
std::vector<uint8_t> kernel_file(const std::string& name);

using Options = std::vector<std::pair<std::string, std::string>>;

// An open device. The test is skipped if there is no Vulkan device. The pipeline cache is off unless a test
// sets its folder.
class VulkanTest : public testing::Test, public driver_tests::Handles {
 public:
  using Points = std::vector<halyard_timepoint_t>;

  void SetUp() override;
  void TearDown() override;
  void reopen(const Options& options);
  Outcome try_open(std::string_view path, const Options& options, halyard_driver_device_t* device);
  // Submissions complete at once without doing anything. Returns the device's functions, for further changes.
  vulkan::DeviceFunctions& replace_vulkan();

  // ---- Handles, destroyed with the fixture

  Memory allocate(uint64_t size, uint32_t type = HALYARD_MEMORY_DEVICE_LOCAL | HALYARD_MEMORY_HOST_LOCAL);
  Memory allocate(const std::vector<uint32_t>& words);
  uint8_t* bytes(Memory memory);
  std::vector<uint32_t> words(Memory memory, size_t count);
  Semaphore semaphore();
  Outcome load(std::string_view format, const std::vector<uint8_t>& data, Executable* executable,
               const std::vector<uint32_t>& constants = {}, const std::vector<uint32_t>& subgroup_sizes = {});
  Executable executable(std::string_view format, const std::vector<uint8_t>& data,
                        const std::vector<uint32_t>& constants = {});
  void forget(Memory memory) { std::erase(memories_, memory); }

  // ---- Recordings. Bindings and constants live as long as the fixture.

  using Recording = driver_tests::Recording;
  halyard_command_dispatch_t dispatch(Executable executable, uint32_t function,
                                      std::vector<halyard_range_t> bindings,
                                      std::vector<uint32_t> constants = {}, uint32_t x = 1);
  List list(Recording recording, uint32_t slots = 0, bool one_shot = false);
  Outcome try_list(const Recording& recording);

  // ---- Queue work

  using Completion = vulkan_tests::Completion;
  Outcome submit(const halyard_operation_t& operation, const Points& waits, const Points& signals,
                 Completion& completion, uint64_t affinity = 1);
  // Runs ready work to completion.
  Outcome run(const halyard_operation_t& operation);
  static bool is_done(const Completion& completion);
  Outcome wait(Semaphore semaphore, uint64_t value, int64_t deadline_ns = HALYARD_WAIT_FOREVER);

  Host host_;
  const halyard_driver_table_t& table_ = table();
  halyard_driver_instance_t instance_ = nullptr;
  halyard_driver_device_t device_ = nullptr;

 private:
  void close();

  std::vector<Memory> memories_;
  std::vector<Semaphore> semaphores_;
  std::vector<Executable> executables_;
  std::vector<List> lists_;
  std::vector<std::unique_ptr<Recording>> recordings_;
  std::vector<std::unique_ptr<std::vector<halyard_range_t>>> bindings_;
  std::vector<std::unique_ptr<std::vector<uint32_t>>> constants_;
};

}  // namespace halyard::vulkan_tests
