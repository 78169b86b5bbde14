// The fixture of the tests of this driver: an open device of each kind.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "driver_test.h"

namespace halyard::local_tests {

using namespace driver_tests;  // outcomes, operations, ranges and slots by their short names

// The test parameter is the kind of device; with kCompiled behind it, kernels are compiled.
inline constexpr std::string_view kCompiled = "?jit=always";
class LocalTest : public DriverTest, public testing::TestWithParam<const char*> {
 public:
  // `workers`: of devices with workers, independent of the number of processors.
  explicit LocalTest(std::string_view kind = GetParam(), std::string_view workers = "3")
      : DriverTest(HALYARD_MEMORY_DEVICE_LOCAL, kind.starts_with("local-sync")),
        kind_(kind.substr(0, kind.find('?'))),
        compiles_(kind.ends_with(kCompiled)),
        workers_(workers) {
    EXPECT_OK(initialize());
    device_ = open();
  }
  ~LocalTest() override {
    close_device();
    shutdown();
  }

  bool runs_in_caller() const { return kind_ == "local-sync"; }
  halyard_driver_device_t open() { return open(kind_); }
  halyard_driver_device_t open(std::string_view kind, Options options = {}) {
    if (kind == "local-task") options.emplace_back("workers", workers_);
    if (compiles_) options.emplace_back("jit", "always");
    halyard_driver_device_t device = nullptr;
    EXPECT_OK(try_open(kind, "", options, &device));
    return device;
  }
  // Opens the device again, without anything that was created on it.
  void reopen(const Options& options) {
    close_device();
    device_ = open(kind_, options);
  }

  // Memory of 32-bit words that are 0.
  Memory zeros(size_t count) { return allocate(std::vector<uint32_t>(count, 0)); }
  // An alloca, whose memory is freed with the fixture.
  Memory queue_allocate(uint64_t size, const Points& waits, const Points& signals, Completion& completion) {
    Memory memory = nullptr;
    halyard_memory_info_t info = {.struct_size = sizeof info};
    halyard_operation_t result = operation(HALYARD_OPERATION_ALLOCA);
    const halyard_memory_request_t wanted = request(size);
    result.alloca_ = {&wanted, &memory, &info};
    EXPECT_OK(submit(result, waits, signals, completion));
    EXPECT_NE(memory, nullptr);
    EXPECT_EQ(info.size, size);
    if (memory) memories_.push_back(memory);
    return memory;
  }

  const std::string_view kind_;
  const bool compiles_;
  const std::string_view workers_;
};

// Instantiates the tests of a fixture for each kind of device: NAME/local_sync, NAME/local_task.
inline std::string name_of_kind(const testing::TestParamInfo<const char*>& kind) {
  return std::string_view(kind.param).starts_with("local-sync") ? "local_sync" : "local_task";
}
#define HALYARD_ON_EVERY_DEVICE(fixture_) \
  INSTANTIATE_TEST_SUITE_P(Devices, fixture_, testing::Values("local-sync", "local-task"), name_of_kind)
// The same, and once more with compiled kernels, if this build has the compiler.
#ifdef HALYARD_TEST_COMPILED
#define HALYARD_ON_EVERY_DEVICE_AND_COMPILED(fixture_) \
  HALYARD_ON_EVERY_DEVICE(fixture_);                   \
  INSTANTIATE_TEST_SUITE_P(Compiled, fixture_,         \
                           testing::Values("local-sync?jit=always", "local-task?jit=always"), name_of_kind)
#else
#define HALYARD_ON_EVERY_DEVICE_AND_COMPILED HALYARD_ON_EVERY_DEVICE
#endif

}  // namespace halyard::local_tests
