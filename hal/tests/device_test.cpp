// Devices: opening, queries, allocation, import and lifetimes.
#include "hal/device/device.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/bytes.h"
#include "hal/device/buffer.h"
#include "hal/device/external_memory.h"
#include "halyard/wildcards.hpp"
#include "sample_drivers.h"

namespace halyard::hal {
namespace {

class DeviceTest : public testing::Test {
 protected:
  const Ref<Device> device_ = sample_device();
};
using DeviceQueriesTest = DeviceTest;
using DeviceMemoryTest = DeviceTest;
using AllocatorTest = DeviceTest;

TEST_F(DeviceTest, OpensAndCloses) {
  auto library = DriverLibrary::open(sample_path("sample")).value();
  auto watcher = sample_device("", library);
  auto device = Device::open(library, "sample", "slack", {{"label", "x"}}).value();
  EXPECT_EQ(device->id(), "sample");
  EXPECT_EQ(device->path(), "slack");
  EXPECT_EQ(device->uri(), "sample://slack");
  EXPECT_EQ(device->properties().queue_count, 4u);
  EXPECT_TRUE(device->has_operation(HALYARD_OPERATION_EXECUTE));
  EXPECT_FALSE(device->has_operation(HALYARD_OPERATION_FILL));
  EXPECT_FALSE(device->has_operation(64));
  EXPECT_EQ(seen(*watcher, "open_devices"), 2);
  device = nullptr;
  EXPECT_EQ(seen(*watcher, "open_devices"), 1);
}

TEST_F(DeviceTest, KeepsItsDriver) {
  std::vector<std::string> lines;
  auto library = DriverLibrary::open(sample_path("sample"), [&](int32_t, std::string_view line) {
                   lines.emplace_back(line);
                 }).value();
  auto device = Device::open(std::move(library), "sample", "", {}).value();
  auto buffer = Buffer::allocate(*device, kAnyQueue, 0, 0, 16).value();
  device = nullptr;
  EXPECT_EQ(lines.size(), 1u);
  buffer = nullptr;
  EXPECT_EQ(lines.size(), 2u);
}

TEST_F(DeviceTest, FailuresToOpen) {
  auto library = DriverLibrary::open(sample_path("sample")).value();
  EXPECT_FAILS(NOT_FOUND, "no such sample; while opening device 'sample://nowhere'",
               Device::open(library, "sample", "nowhere", {}));
  EXPECT_FAILS(INVALID_ARGUMENT, "known is label",
               Device::open(library, "sample", "", {{"label", ""}, {"colour", "red"}}));
  EXPECT_FAILS(UNAVAILABLE, "the device is lost", Device::open(library, "sample", "broken-device", {}));
  EXPECT_FAILS(INTERNAL, "65 queues; expected 1 to 64", Device::open(library, "sample", "broken-queues", {}));
  EXPECT_FAILS(INTERNAL, "memory alignment of 48", Device::open(library, "sample", "broken-alignment", {}));
  EXPECT_FAILS(INTERNAL, "expected barrier and execute",
               Device::open(library, "sample", "broken-operations", {}));
  EXPECT_EQ(seen(*sample_device("", library), "open_devices"), 1);
}

TEST_F(DeviceTest, Queues) {
  EXPECT_EQ(device_->queues(0), 0xFu);
  EXPECT_EQ(device_->queues(kAnyQueue), 0xFu);
  EXPECT_EQ(device_->queues(0x2), 0x2u);
  EXPECT_EQ(device_->queues(0x16), 0x6u);
  EXPECT_EQ(device_->queues(0x10), 0xFu);
  EXPECT_EQ(sample_device("wide")->queues(0), UINT64_MAX);
  EXPECT_EQ(sample_device("wide")->queues(uint64_t{1} << 63), uint64_t{1} << 63);
}

TEST_F(DeviceQueriesTest, IdPatterns) {
  const auto answer = device_->query_i64("hal.device.id", "sam*");
  EXPECT_TRUE(answer.known);
  EXPECT_EQ(answer.value, 1);
  EXPECT_TRUE(device_->query_i64("hal.device.id", "local*").known);
  EXPECT_EQ(device_->query_i64("hal.device.id", "local*").value, 0);
  EXPECT_EQ(device_->query_i64("hal.device.id", "").value, 0);
}

TEST_F(DeviceQueriesTest, ExecutableFormats) {
  for (const auto& [format, value] : std::vector<std::pair<const char*, int64_t>>{
           {"native", 1}, {"loadable", 1}, {"old", 0}, {"other", 0}, {"", 0}}) {
    const auto answer = device_->query_i64("hal.executable.format", format);
    EXPECT_TRUE(answer.known) << format;
    EXPECT_EQ(answer.value, value) << format;
  }
  EXPECT_EQ(device_->grade_executable("native", nullptr, 0).grade, uint32_t{HALYARD_GRADE_NATIVE});
  EXPECT_EQ(device_->grade_executable("native", nullptr, 0).reason, "");
  EXPECT_EQ(device_->grade_executable("old", "x", 1).reason, "made for another sample");
}

TEST_F(DeviceQueriesTest, QueriesOfTheDriver) {
  EXPECT_TRUE(device_->query_i64("sample", "trims").known);
  EXPECT_FALSE(device_->query_i64("sample", "Trims").known);
  EXPECT_FALSE(device_->query_i64("sample ", "trims").known);
  EXPECT_FALSE(device_->query_i64("hal.device", "concurrency").known);
  EXPECT_EQ(device_->query_i64("hal.device", "concurrency").value, 0);
  EXPECT_FALSE(device_->query_i64("fail", "").known);
  EXPECT_FALSE(device_->query_i64("hal.device.Id", "sample").known);
}

TEST(Patterns, Wildcards) {
  const std::pair<const char*, const char*> matching[] = {{"local-sync", "local-sync"},
                                                          {"local*", "local-sync"},
                                                          {"*", "local-sync"},
                                                          {"**", "x"},
                                                          {"*sync", "local-sync"},
                                                          {"l*-*c", "local-sync"},
                                                          {"local?sync", "local-sync"},
                                                          {"*aab", "aaaaab"},
                                                          {"a*b*c", "a-b-b-c"},
                                                          {"", ""},
                                                          {"*", ""}};
  for (const auto& [pattern, id] : matching) EXPECT_TRUE(matches_device_id(pattern, id)) << pattern;
  EXPECT_FALSE(matches_device_id("?", ""));
  for (const char* pattern : {"local", "", "local-sync?", "Local*", "*task", "l*x"})
    EXPECT_FALSE(matches_device_id(pattern, "local-sync")) << pattern;
}

TEST(Patterns, AtMostSixteenWildcards) {
  EXPECT_TRUE(matches_device_id(std::string(16, '*'), "vulkan"));
  EXPECT_FALSE(matches_device_id(std::string(17, '*'), "vulkan"));
  EXPECT_FALSE(matches_device_id(std::string(11, '*') + "??????", "vulkan"));
  EXPECT_TRUE(matches_device_id(std::string(10, '*') + "??????", "vulkan"));
}

TEST_F(DeviceMemoryTest, Defaults) {
  auto buffer = Buffer::allocate(*device_, 0, 0, 0, 24).value();
  EXPECT_EQ(seen(*device_, "request_type"), HALYARD_MEMORY_OPTIMAL);
  EXPECT_EQ(seen(*device_, "request_usage"), HALYARD_USAGE_DEFAULT);
  EXPECT_EQ(seen(*device_, "request_affinity"), 0xF);
  EXPECT_EQ(buffer->length(), 24u);
  EXPECT_EQ(buffer->offset(), 0u);
  EXPECT_EQ(buffer->usage(), uint32_t{HALYARD_USAGE_DEFAULT});
  EXPECT_EQ(buffer->memory_type(), HALYARD_MEMORY_HOST_LOCAL | uint32_t{HALYARD_MEMORY_DEVICE_VISIBLE});
  EXPECT_EQ(buffer->access(), uint32_t{kAccessAll});
  EXPECT_EQ(&buffer->device(), device_.get());
  EXPECT_EQ(buffer->allocation().origin_affinity, 0xFu);
  EXPECT_FALSE(buffer->allocation().queue_ordered);
}

TEST_F(DeviceMemoryTest, PassesOnTheRequest) {
  auto buffer =
      Buffer::allocate(*device_, 0x4, HALYARD_MEMORY_DEVICE_LOCAL, HALYARD_USAGE_TRANSFER_SOURCE, 0).value();
  EXPECT_EQ(seen(*device_, "request_type"), HALYARD_MEMORY_DEVICE_LOCAL);
  EXPECT_EQ(seen(*device_, "request_usage"), HALYARD_USAGE_TRANSFER_SOURCE);
  EXPECT_EQ(seen(*device_, "request_affinity"), 0x4);
  EXPECT_EQ(buffer->length(), 0u);
}

TEST_F(DeviceMemoryTest, FailuresToAllocate) {
  EXPECT_FAILS(INVALID_ARGUMENT, "no heap has SHARING_EXPORT; while allocating 7 bytes",
               Buffer::allocate(*device_, 0, 0, HALYARD_USAGE_SHARING_EXPORT, 7));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "while allocating 1048577 bytes",
               Buffer::allocate(*device_, 0, 0, 0, (1 << 20) + 1));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "while allocating 18446744073709551615 bytes",
               Buffer::allocate(*device_, 0, 0, 0, UINT64_MAX));
  EXPECT_OK(Buffer::allocate(*device_, 0, 0, 0, 1 << 20));
  auto broken = sample_device("broken-size");
  EXPECT_FAILS(INTERNAL, "gave 4 bytes; asked for 8", Buffer::allocate(*broken, 0, 0, 0, 8));
  EXPECT_EQ(seen(*device_, "live_memories"), 0);
  EXPECT_EQ(seen(*broken, "live_memories"), 0);
}

TEST_F(DeviceMemoryTest, ImportsHostBytes) {
  bool released = false;
  alignas(64) uint8_t bytes[128] = {};
  bytes[70] = 3;
  Ref<Bytes> keep = Bytes::borrow(bytes, [&] { released = true; });
  auto buffer = import_host(*device_, 0, 0, HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED, kRead,
                            bytes + 64, 64, keep)
                    .value();
  keep = nullptr;
  EXPECT_EQ(buffer->length(), 64u);
  EXPECT_EQ(buffer->access(), uint32_t{kRead});
  uint8_t byte = 0;
  EXPECT_OK(buffer->read(6, &byte, 1));
  EXPECT_EQ(byte, 3);
  EXPECT_FALSE(released);
  buffer = nullptr;
  EXPECT_TRUE(released);
  EXPECT_EQ(seen(*device_, "live_memories"), 0);
}

TEST_F(DeviceMemoryTest, FailuresToImport) {
  alignas(64) uint8_t bytes[128] = {};
  EXPECT_FAILS(OUT_OF_RANGE, "a multiple of 64 bytes",
               import_host(*device_, 0, 0, 0, kRead, bytes + 8, 64, nullptr));
  EXPECT_FAILS(UNIMPLEMENTED, "memory_import",
               import_host(*sample_device("sealed"), 0, 0, 0, kRead, bytes, 64, nullptr));
  EXPECT_FAILS(INVALID_ARGUMENT, "no heap has SHARING_EXPORT; while importing 64 bytes of host memory",
               import_host(*device_, 0, 0, HALYARD_USAGE_SHARING_EXPORT, kRead, bytes, 64, nullptr));
  EXPECT_EQ(seen(*device_, "live_memories"), 0);
}

TEST_F(DeviceMemoryTest, TrimAndStatistics) {
  EXPECT_OK(device_->trim());
  EXPECT_EQ(seen(*device_, "trims"), 1);
  auto buffer = Buffer::allocate(*device_, 0, 0, 0, 4).value();
  EXPECT_EQ(device_->statistics().value().host_bytes_live, 1u);
}

TEST_F(AllocatorTest, IsOneObject) {
  auto first = device_->allocator();
  EXPECT_EQ(first, device_->allocator());
  EXPECT_STREQ(first->type()->name, "hal.allocator");
  EXPECT_EQ(cast<Allocator>(first.get()), first.get());
  EXPECT_EQ(&first->device(), device_.get());
}

TEST_F(AllocatorTest, KeepsTheDevice) {
  auto library = DriverLibrary::open(sample_path("sample")).value();
  auto watcher = sample_device("", library);
  auto device = sample_device("slack", library);
  auto allocator = device->allocator();
  auto other = device->allocator();
  device = nullptr;
  other = nullptr;
  EXPECT_EQ(seen(*watcher, "open_devices"), 2);
  EXPECT_EQ(Buffer::allocate(allocator->device(), 0, 0, 0, 8).value()->length(), 8u);
  EXPECT_EQ(allocator, allocator->device().allocator());
  allocator = nullptr;
  EXPECT_EQ(seen(*watcher, "open_devices"), 1);
}

TEST_F(AllocatorTest, IsRecreatedAfterItsLastUser) {
  device_->allocator() = nullptr;
  EXPECT_EQ(&device_->allocator()->device(), device_.get());
}

TEST_F(AllocatorTest, TakenAndDroppedByManyThreads) {
  auto library = DriverLibrary::open(sample_path("sample")).value();
  auto watcher = sample_device("", library);
  auto device = sample_device("slack", library);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([device] {
      for (int round = 0; round < 2000; ++round) {
        Ref<Allocator> allocator = device->allocator();
        const Ref<Allocator> copy = allocator;
        allocator = nullptr;
        if (&copy->device() != device.get()) std::abort();
      }
    });
  }
  device = nullptr;
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  EXPECT_EQ(seen(*watcher, "open_devices"), 1);
}

}  // namespace
}  // namespace halyard::hal
