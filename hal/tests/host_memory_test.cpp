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

namespace halyard::hal {
namespace {

constexpr uint32_t kType = HALYARD_MEMORY_DEVICE_LOCAL | HALYARD_MEMORY_HOST_VISIBLE;
constexpr uint32_t kUsage = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED;

class HostMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_host_memory();
    ASSERT_TRUE(opened) << opened.error().text();
    device = *opened;
  }
  Ref<Buffer> allocate(uint64_t size) {
    auto made = Buffer::allocate(*device, kAnyQueue, kType, kUsage, size);
    EXPECT_TRUE(made) << made.error().text();
    return made ? *made : nullptr;
  }
  static void expect_refused(const Status& status, const char* what) {
    EXPECT_EQ(status.code(), Code::UNIMPLEMENTED) << status.text();
    EXPECT_NE(status.text().find(what), std::string::npos) << status.text();
  }

  Ref<Device> device;
};

TEST_F(HostMemory, IsWhereTheHostAndDevicesSeeIt) {
  const Ref<Buffer> buffer = allocate(13);
  EXPECT_EQ(buffer->length(), 13u);
  EXPECT_TRUE(buffer->check_memory_type(HALYARD_MEMORY_DEVICE_VISIBLE | HALYARD_MEMORY_HOST_COHERENT));
  EXPECT_TRUE(buffer->check_usage(HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_PERSISTENT));
  EXPECT_TRUE(buffer->is_mappable());
}

TEST_F(HostMemory, KeepsWhatIsWritten) {
  for (const uint64_t size : {uint64_t{1}, uint64_t{64}, uint64_t{4096}, uint64_t{1} << 20}) {
    const Ref<Buffer> buffer = allocate(size);
    std::vector<uint8_t> bytes(size);
    std::iota(bytes.begin(), bytes.end(), uint8_t{1});
    ASSERT_TRUE(buffer->write(0, bytes.data(), size));
    std::vector<uint8_t> back(size);
    ASSERT_TRUE(buffer->read(0, back.data(), size));
    EXPECT_EQ(back, bytes);
    auto mapped = buffer->map();
    ASSERT_TRUE(mapped) << mapped.error().text();
    EXPECT_EQ(mapped->size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(mapped->data()) % 64, 0u);
    EXPECT_EQ(std::memcmp(mapped->data(), bytes.data(), size), 0);
    buffer->allocation().unmap();
  }
}

TEST_F(HostMemory, MayBeEmpty) {
  const Ref<Buffer> buffer = allocate(0);
  EXPECT_EQ(buffer->length(), 0u);
  auto mapped = buffer->map();
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->size(), 0u);
  EXPECT_NE(mapped->data(), nullptr);
  buffer->allocation().unmap();
}

TEST_F(HostMemory, IsUsedAgain) {
  uint8_t* const first = allocate(100000)->map()->data();
  EXPECT_EQ(allocate(100000)->map()->data(), first);
  EXPECT_TRUE(device->trim());
}

TEST_F(HostMemory, EndsWhereMemoryDoes) {
  auto made = Buffer::allocate(*device, kAnyQueue, kType, kUsage, UINT64_MAX);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::RESOURCE_EXHAUSTED) << made.error().text();
  made = Buffer::allocate(*device, kAnyQueue, kType, kUsage, uint64_t{1} << 46);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::RESOURCE_EXHAUSTED) << made.error().text();
}

TEST_F(HostMemory, OfSomebodyElseIsNotCopied) {
  alignas(64) std::array<uint8_t, 8> bytes = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const uint32_t access : {uint32_t{kRead}, uint32_t{kAccessAll}}) {
    auto imported = import_host(*device, kAnyQueue, kType, kUsage, access, bytes.data() + 1, 7, nullptr);
    ASSERT_TRUE(imported) << imported.error().text();
    auto mapped = (*imported)->map();
    ASSERT_TRUE(mapped) << mapped.error().text();
    EXPECT_EQ(mapped->data(), bytes.data() + 1);
    (*imported)->allocation().unmap();
    const uint8_t nine = 9;
    const Result<> written = (*imported)->write(0, &nine, 1);
    EXPECT_EQ(written.has_value(), access == kAccessAll);
  }
  EXPECT_EQ(bytes[1], 9);
}

TEST_F(HostMemory, RunsNothing) {
  auto fence = Fence::create(device);
  ASSERT_FALSE(fence);
  expect_refused(fence.error(), "semaphores");
  EXPECT_EQ(device->grade_executable("vmvx-bytecode-fb", nullptr, 0).grade, uint32_t{HALYARD_GRADE_NO});
  auto executable = Executable::create(device, kAnyQueue, "vmvx-bytecode-fb", {}, nullptr, {});
  ASSERT_FALSE(executable);
  EXPECT_EQ(executable.error().code(), Code::NOT_FOUND) << executable.error().text();
  auto commands = CommandBuffer::create(device, 0, kTransfer, kAnyQueue, 0);
  ASSERT_TRUE(commands);
  const Result<> finalized = (*commands)->finalize();
  ASSERT_FALSE(finalized);
  expect_refused(finalized.error(), "command buffers");
  const Ref<Buffer> buffer = allocate(8);
  const Result<> filled = queue_fill({*device}, *buffer, 0, 8, 0, 4);
  ASSERT_FALSE(filled);
  EXPECT_TRUE(queue_barrier({*device}));
  EXPECT_FALSE(device->query_i64("hal.device", "concurrency").known);
}

}  // namespace
}  // namespace halyard::hal
