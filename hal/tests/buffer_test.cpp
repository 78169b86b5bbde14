// Buffers: ranges, permissions, host access, lifetimes of allocations.
#include "hal/device/buffer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "hal/device/external_memory.h"
#include "sample_drivers.h"

namespace halyard::hal {
namespace {

constexpr uint32_t kUsage = HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED;

class BufferTest : public testing::Test {
 protected:
  static Ref<Buffer> allocate(Device& device, uint64_t size) {
    return Buffer::allocate(device, kAnyQueue, 0, kUsage, size).value();
  }
  Ref<Buffer> allocate(uint64_t size) { return allocate(*device_, size); }

  // Neither reads nor writes are possible.
  static void expect_no_access(Buffer& buffer, Code code, std::string_view message) {
    uint32_t value = 0;
    EXPECT_TRUE(fails_with(buffer.read(0, &value, 4), code, message));
    EXPECT_TRUE(fails_with(buffer.write(0, &value, 4), code, message));
  }

  const Ref<Device> device_ = sample_device();
};

TEST(BitTexts, NamesAndOtherBits) {
  const std::pair<uint32_t, const char*> memory_types[] = {{0, "NONE"},
                                                           {0x30, "DEVICE_LOCAL"},
                                                           {0x46, "HOST_LOCAL"},
                                                           {0x12, "HOST_VISIBLE|DEVICE_VISIBLE"},
                                                           {0x56, "HOST_LOCAL|DEVICE_VISIBLE"},
                                                           {0x31, "DEVICE_LOCAL|OPTIMAL"},
                                                           {0x100, "0x100"},
                                                           {0x20, "0x20"}};
  for (const auto& [bits, text] : memory_types) EXPECT_EQ(memory_type_text(bits), text);
  EXPECT_EQ(usage_text(0xC03), "TRANSFER|DISPATCH_STORAGE");
  EXPECT_EQ(usage_text(HALYARD_USAGE_MAPPING_SCOPED), "MAPPING_SCOPED");
  EXPECT_EQ(usage_text(0x40000002), "TRANSFER_TARGET|0x40000000");
  EXPECT_EQ(usage_text(0x80401), "TRANSFER_SOURCE|DISPATCH_STORAGE_READ|SHARING_IMMUTABLE");
  EXPECT_EQ(access_text(kAccessAll), "ALL");
  EXPECT_EQ(access_text(kRead | kWrite), "READ|WRITE");
  EXPECT_EQ(access_text(kDiscardWrite), "DISCARD_WRITE");
}

TEST_F(BufferTest, SubspanOfEverythingIsTheSameObject) {
  auto buffer = allocate(16);
  EXPECT_EQ(buffer->subspan(0, 16).value(), buffer);
  EXPECT_EQ(buffer->subspan(0, kWholeLength).value(), buffer);
  auto part = buffer->subspan(4, 8).value();
  EXPECT_NE(part, buffer);
  EXPECT_EQ(part->subspan(0, 8).value(), part);
}

TEST_F(BufferTest, SubspansReferToTheAllocation) {
  auto buffer = allocate(16);
  auto part = buffer->subspan(4, 8).value();
  auto inner = part->subspan(2, kWholeLength).value();
  EXPECT_EQ(inner->offset(), 6u);
  EXPECT_EQ(inner->length(), 6u);
  EXPECT_EQ(&inner->allocation(), &buffer->allocation());
  EXPECT_EQ(inner->usage(), buffer->usage());
  EXPECT_EQ(inner->memory_type(), buffer->memory_type());
  EXPECT_EQ(inner->access(), buffer->access());
  buffer = nullptr;
  part = nullptr;
  const uint32_t value = 0x11223344;
  EXPECT_OK(inner->write(1, &value, 4));
  EXPECT_EQ(seen(*device_, "live_memories"), 1);
  inner = nullptr;
  EXPECT_EQ(seen(*device_, "live_memories"), 0);
}

TEST_F(BufferTest, SubspanRanges) {
  auto part = allocate(32)->subspan(8, 16).value();
  EXPECT_EQ(part->subspan(16, 0).value()->length(), 0u);
  EXPECT_EQ(part->subspan(16, kWholeLength).value()->length(), 0u);
  EXPECT_EQ(part->subspan(5, 0).value()->offset(), 13u);
  const std::pair<uint64_t, uint64_t> outside[] = {
      {17, 0}, {17, kWholeLength},  {0, 17},         {16, 1},
      {1, 16}, {8, UINT64_MAX - 4}, {UINT64_MAX, 1}, {UINT64_MAX, 2}};
  for (const auto& [offset, length] : outside) {
    EXPECT_FAILS(OUT_OF_RANGE, fmt::format("found {} bytes at offset {}", length, offset),
                 part->subspan(offset, length));
  }
}

TEST_F(BufferTest, EmptyBuffers) {
  auto buffer = allocate(0);
  EXPECT_EQ(buffer->length(), 0u);
  EXPECT_EQ(buffer->subspan(0, kWholeLength).value(), buffer);
  EXPECT_OK(buffer->read(0, nullptr, 0));
  EXPECT_OK(buffer->write(0, nullptr, 0));
  uint8_t byte = 0;
  EXPECT_FAILS(OUT_OF_RANGE, "within the 0 bytes of the buffer, found 1 bytes at offset 0",
               buffer->read(0, &byte, 1));
}

TEST_F(BufferTest, ReadsAndWrites) {
  auto buffer = allocate(8);
  const uint8_t bytes[] = {1, 2, 3, 4};
  EXPECT_OK(buffer->write(4, bytes, 4));
  EXPECT_EQ(seen(*device_, "map_access"), HALYARD_MAP_WRITE | HALYARD_MAP_DISCARD);
  uint8_t back[8];
  EXPECT_OK(buffer->read(0, back, 8));
  EXPECT_EQ(seen(*device_, "map_access"), HALYARD_MAP_READ);
  const uint8_t expected[] = {0, 0, 0, 0, 1, 2, 3, 4};
  EXPECT_EQ(std::memcmp(back, expected, 8), 0);
  auto part = buffer->subspan(5, 3).value();
  EXPECT_OK(part->read(1, back, 2));
  EXPECT_EQ(back[0], 3);
  EXPECT_EQ(back[1], 4);
  EXPECT_EQ(seen(*device_, "live_mappings"), 0);
  EXPECT_EQ(seen(*device_, "flushes"), 0);
  EXPECT_EQ(seen(*device_, "invalidates"), 0);
}

TEST_F(BufferTest, AccessOutsideOfTheBuffer) {
  auto part = allocate(16)->subspan(4, 4).value();
  uint8_t byte = 0;
  for (const auto& [offset, length] : std::vector<std::pair<uint64_t, uint64_t>>{
           {4, 1}, {5, 0}, {0, 5}, {3, 2}, {UINT64_MAX, 1}, {1, UINT64_MAX}, {2, kWholeLength}}) {
    EXPECT_FAILS(OUT_OF_RANGE, "within the 4 bytes", part->check_range(offset, length));
    EXPECT_FAILS(OUT_OF_RANGE, "within the 4 bytes", part->read(offset, &byte, length));
    EXPECT_FAILS(OUT_OF_RANGE, "within the 4 bytes", part->write(offset, &byte, length));
  }
  EXPECT_OK(part->check_range(0, 4));
  EXPECT_OK(part->check_range(4, 0));
}

TEST_F(BufferTest, NonCoherentMemoryIsFlushedAndInvalidated) {
  auto device = sample_device("slack");
  auto buffer = allocate(*device, 8);
  uint32_t value = 5;
  EXPECT_OK(buffer->write(0, &value, 4));
  EXPECT_EQ(seen(*device, "flushes"), 1);
  EXPECT_EQ(seen(*device, "invalidates"), 0);
  EXPECT_OK(buffer->read(0, &value, 4));
  EXPECT_EQ(seen(*device, "flushes"), 1);
  EXPECT_EQ(seen(*device, "invalidates"), 1);
}

TEST_F(BufferTest, MemoryThatTheHostCannotMap) {
  auto device = sample_device("hidden");
  auto buffer = allocate(*device, 8);
  expect_no_access(*buffer, Code::PERMISSION_DENIED, "type HOST_VISIBLE, found DEVICE_LOCAL");
}

TEST_F(BufferTest, UsageWithoutMapping) {
  auto buffer = Buffer::allocate(*device_, kAnyQueue, 0, HALYARD_USAGE_DEFAULT, 8).value();
  expect_no_access(*buffer, Code::PERMISSION_DENIED, "usage MAPPING_SCOPED, found TRANSFER|DISPATCH_STORAGE");
}

TEST_F(BufferTest, AccessThatIsNotAllowed) {
  alignas(64) uint8_t bytes[64] = {9};
  auto buffer = import_host(*device_, kAnyQueue, 0, kUsage, kRead | kWrite, bytes, 64, nullptr).value();
  uint8_t byte = 0;
  EXPECT_OK(buffer->read(0, &byte, 1));
  EXPECT_EQ(byte, 9);
  EXPECT_FAILS(PERMISSION_DENIED, "DISCARD_WRITE, found one that allows READ|WRITE",
               buffer->write(0, &byte, 1));
  EXPECT_OK(buffer->check_access(kRead | kWrite));
  EXPECT_FAILS(PERMISSION_DENIED, "DISCARD", buffer->check_access(kDiscard));
}

TEST_F(BufferTest, Checks) {
  auto buffer = allocate(8);
  EXPECT_OK(buffer->check_memory_type(HALYARD_MEMORY_DEVICE_VISIBLE));
  EXPECT_OK(buffer->check_memory_type(0));
  EXPECT_FAILS(PERMISSION_DENIED, "DEVICE_LOCAL, found HOST_LOCAL|DEVICE_VISIBLE",
               buffer->check_memory_type(HALYARD_MEMORY_DEVICE_LOCAL));
  EXPECT_OK(buffer->check_usage(HALYARD_USAGE_DEFAULT));
  EXPECT_FAILS(PERMISSION_DENIED, "DISPATCH_INDIRECT_PARAMETERS",
               buffer->check_usage(HALYARD_USAGE_INDIRECT_PARAMETERS));
}

TEST_F(BufferTest, BytesThatDoNotExistYet) {
  auto device = sample_device("unmapped");
  auto buffer = allocate(*device, 8);
  expect_no_access(*buffer, Code::FAILED_PRECONDITION, "before its alloca");
}

TEST_F(BufferTest, OneOwnerAtFirst) { EXPECT_EQ(allocate(8)->allocation().owners.load(), 1); }

}  // namespace
}  // namespace halyard::hal
