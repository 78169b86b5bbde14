// The host memory device: bytes, ranges, imports, and refused calls.
#include "hal/device/host_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "hal/command/command_buffer.h"
#include "hal/device/buffer.h"
#include "hal/device/executable.h"
#include "hal/device/external_memory.h"
#include "hal/queue/fence.h"
#include "hal/queue/queue.h"
#include "hal/view/buffer_view.h"
#include "status_testing.h"

namespace halyard::hal {
namespace {

constexpr uint32_t kType = HALYARD_MEMORY_DEVICE_LOCAL | HALYARD_MEMORY_HOST_VISIBLE;
constexpr uint32_t kUsage = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED;

class HostMemory : public ::testing::Test {
 protected:
  void SetUp() override { device = ASSERT_VALUE(open_host_memory()); }
  Ref<Buffer> allocate(uint64_t size) {
    return Buffer::allocate(*device, kAnyQueue, kType, kUsage, size).value();
  }

  Ref<Device> device;
};

TEST_F(HostMemory, IsVisibleToHostAndDevices) {
  const Ref<Buffer> buffer = allocate(13);
  EXPECT_EQ(buffer->length(), 13u);
  EXPECT_TRUE(buffer->check_memory_type(HALYARD_MEMORY_DEVICE_VISIBLE | HALYARD_MEMORY_HOST_COHERENT));
  EXPECT_TRUE(buffer->check_usage(HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_PERSISTENT));
  EXPECT_TRUE(buffer->is_mappable());
}

TEST_F(HostMemory, KeepsWrittenBytes) {
  for (const uint64_t size : {uint64_t{1}, uint64_t{64}, uint64_t{4096}, uint64_t{1} << 20}) {
    const Ref<Buffer> buffer = allocate(size);
    std::vector<uint8_t> bytes(size);
    std::iota(bytes.begin(), bytes.end(), uint8_t{1});
    ASSERT_TRUE(buffer->write(0, bytes.data(), size));
    std::vector<uint8_t> back(size);
    ASSERT_TRUE(buffer->read(0, back.data(), size));
    EXPECT_EQ(back, bytes);
    const std::span<uint8_t> mapped = ASSERT_VALUE(buffer->map());
    EXPECT_EQ(mapped.size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(mapped.data()) % 64, 0u);
    EXPECT_EQ(std::memcmp(mapped.data(), bytes.data(), size), 0);
    buffer->allocation().unmap();
  }
}

TEST_F(HostMemory, MayBeEmpty) {
  const Ref<Buffer> buffer = allocate(0);
  EXPECT_EQ(buffer->length(), 0u);
  const std::span<uint8_t> mapped = ASSERT_VALUE(buffer->map());
  EXPECT_EQ(mapped.size(), 0u);
  EXPECT_NE(mapped.data(), nullptr);
  buffer->allocation().unmap();
}

TEST_F(HostMemory, IsReused) {
  uint8_t* const first = allocate(100000)->map()->data();
  EXPECT_EQ(allocate(100000)->map()->data(), first);
  EXPECT_TRUE(device->trim());
}

TEST_F(HostMemory, RefusesSizesBeyondMemory) {
  for (const uint64_t size : {UINT64_MAX, uint64_t{1} << 46})
    EXPECT_FAILS(RESOURCE_EXHAUSTED, "", Buffer::allocate(*device, kAnyQueue, kType, kUsage, size));
}

TEST_F(HostMemory, ImportsAreNotCopied) {
  alignas(64) std::array<uint8_t, 8> bytes = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const uint32_t access : {uint32_t{kRead}, uint32_t{kAccessAll}}) {
    const Ref<Buffer> imported =
        ASSERT_VALUE(import_host(*device, kAnyQueue, kType, kUsage, access, bytes.data() + 1, 7, nullptr));
    EXPECT_EQ(ASSERT_VALUE(imported->map()).data(), bytes.data() + 1);
    imported->allocation().unmap();
    const uint8_t nine = 9;
    EXPECT_EQ(imported->write(0, &nine, 1).has_value(), access == kAccessAll);
  }
  EXPECT_EQ(bytes[1], 9);
}

TEST_F(HostMemory, RunsNothing) {
  EXPECT_FAILS(UNIMPLEMENTED, "semaphores", Fence::create(device));
  EXPECT_EQ(device->grade_executable("vmvx-bytecode-fb", nullptr, 0).grade, uint32_t{HALYARD_GRADE_NO});
  EXPECT_FAILS(NOT_FOUND, "", Executable::create(device, kAnyQueue, "vmvx-bytecode-fb", {}, nullptr, {}));
  EXPECT_FAILS(UNIMPLEMENTED, "command buffers",
               CommandBuffer::create(device, 0, kTransfer, kAnyQueue, 0).value()->finalize());
  EXPECT_FALSE(queue_fill({*device}, *allocate(8), 0, 8, 0, 4));
  EXPECT_TRUE(queue_barrier({*device}));
  EXPECT_FALSE(device->query_i64("hal.device", "concurrency").known);
}

}  // namespace
}  // namespace halyard::hal
