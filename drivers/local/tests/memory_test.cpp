// Memory on the host's timeline: allocation, mapping, import, statistics. Alloca and dealloca:
// queue_test.cpp.
#include "harness.h"

namespace halyard::local_tests {
namespace {

class MemoryTest : public LocalTest {
 public:
  // Stores the results in `memory_` and `info_`. The fixture does not free the memory.
  Outcome try_allocate(const halyard_memory_request_t& wanted) {
    memory_ = nullptr;
    info_ = {.struct_size = sizeof info_};
    return host_.take(table_.memory_allocate(device_, &wanted, &memory_, &info_));
  }
  Outcome import(void* pointer, uint64_t size, Memory* memory,
                 uint32_t kind = HALYARD_EXTERNAL_HOST_ALLOCATION) {
    const halyard_memory_request_t wanted = request(size);
    const halyard_external_memory_t external = {.struct_size = sizeof external,
                                                .kind = kind,
                                                .pointer = pointer,
                                                .fd = -1,
                                                .access = HALYARD_MAP_READ | HALYARD_MAP_WRITE,
                                                .size = size};
    halyard_memory_info_t info = {.struct_size = sizeof info};
    Outcome outcome = host_.take(table_.memory_import(device_, &wanted, &external, memory, &info));
    if (outcome.ok()) {
      EXPECT_EQ(info.size, size);
      EXPECT_EQ(info.memory_type, 0x36u);
    }
    return outcome;
  }

  Memory memory_ = nullptr;
  halyard_memory_info_t info_ = {};
};
HALYARD_ON_EVERY_DEVICE(MemoryTest);

TEST_P(MemoryTest, UnknownTypesAreRefusedUnlessOptional) {
  constexpr uint32_t kUnknown = 0x40000000;
  EXPECT_FAILS(INVALID_ARGUMENT, "0x40000000",
               try_allocate(request(10, kUnknown | HALYARD_MEMORY_DEVICE_LOCAL)));
  EXPECT_EQ(memory_, nullptr);
  EXPECT_OK(try_allocate(request(10, kUnknown | HALYARD_MEMORY_OPTIMAL)));
  EXPECT_EQ(info_.memory_type & kUnknown, 0u);
  table_.memory_free(device_, memory_);
}

TEST_P(MemoryTest, IsAlignedAndWritable) {
  for (const uint64_t size : {0, 1, 63, 64, 65, 127, 128, 129, 4095, 4096, 100000, 5000000}) {
    Memory memory = allocate(size);
    ASSERT_NE(memory, nullptr);
    uint8_t* start = bytes(memory);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(start) % 64, 0u) << size;
    std::memset(start, 0xAB, size);
  }
}

TEST_P(MemoryTest, GrantsRequestedAndImpliedBits) {
  struct Case {
    uint32_t type, usage, granted_type, granted_usage;
  };
  for (const Case& c : {Case{0x30, 0xC03, 0x36, 0xB000C03}, Case{0x31, 0x400, 0x36, 0xB000403},
                        Case{0x56, 0x9000C03, 0x56, 0xB000C03}, Case{0x01, 0x1, 0x36, 0xB000003},
                        Case{0x08, 0x80C03, 0x0E, 0xB080C03}}) {
    halyard_memory_request_t wanted = request(10, c.type);
    wanted.usage = c.usage;
    ASSERT_TRUE(try_allocate(wanted).ok());
    EXPECT_EQ(info_.memory_type, c.granted_type) << c.type;
    EXPECT_EQ(info_.usage, c.granted_usage) << c.usage;
    EXPECT_EQ(info_.size, 10u);
    table_.memory_free(device_, memory_);
  }
}

TEST_P(MemoryTest, SizesBeyondMemoryAreExhausted) {
  for (const uint64_t size : {UINT64_MAX, UINT64_MAX - 63, uint64_t{1} << 63, uint64_t{1} << 48}) {
    EXPECT_CODE(RESOURCE_EXHAUSTED, try_allocate(request(size)));
    EXPECT_EQ(memory_, nullptr);
  }
}

TEST_P(MemoryTest, SizesBeyondTheRestAreExhausted) {
  const halyard_device_properties_t properties = this->properties();
  allocate(1000);
  EXPECT_CODE(RESOURCE_EXHAUSTED, try_allocate(request(properties.maximum_allocation - 999)));
}

TEST_P(MemoryTest, MapsTheSameBytesAnyNumberOfTimes) {
  Memory memory = allocate(std::vector<uint8_t>{1, 2, 3, 4});
  void* first = nullptr;
  void* second = nullptr;
  EXPECT_OK(host_.take(table_.memory_map(device_, memory, HALYARD_MAP_READ, 1, 3, &first)));
  EXPECT_OK(host_.take(table_.memory_map(device_, memory, HALYARD_MAP_WRITE, 3, 1, &second)));
  EXPECT_EQ(*static_cast<uint8_t*>(first), 2);
  *static_cast<uint8_t*>(second) = 9;
  EXPECT_EQ(static_cast<uint8_t*>(first)[2], 9);
  table_.memory_unmap(device_, memory);
  table_.memory_unmap(device_, memory);
}

TEST_P(MemoryTest, ImportsAlignedHostMemory) {
  alignas(64) uint8_t storage[256] = {5, 6, 7};
  Memory memory = nullptr;
  EXPECT_OK(import(storage, sizeof storage, &memory));
  EXPECT_EQ(bytes(memory), storage);
  EXPECT_OK(run(fill_operation(range(memory, 1, 2), 0xEE, 1)));
  EXPECT_OK(run(dealloca_operation(memory))) << "no effect on memory that alloca did not make";
  EXPECT_EQ(storage[0], 5);
  EXPECT_EQ(storage[2], 0xEE);
  EXPECT_EQ(bytes(memory), storage);
  table_.memory_free(device_, memory);
  EXPECT_EQ(statistics().device_bytes_allocated, 0u);

  Memory none = nullptr;
  EXPECT_CODE(OUT_OF_RANGE, import(storage + 16, 64, &none));
  EXPECT_CODE(INVALID_ARGUMENT, import(nullptr, 64, &none));
  EXPECT_CODE(UNIMPLEMENTED, import(storage, 64, &none, HALYARD_EXTERNAL_OPAQUE_FD));
  EXPECT_EQ(none, nullptr);
}

TEST_P(MemoryTest, ExportsItsBytesToOtherDevices) {
  Memory memory = allocate(std::vector<uint8_t>{1, 2, 3, 4});
  halyard_external_memory_t external = {.struct_size = sizeof external};
  EXPECT_OK(host_.take(table_.memory_export(device_, memory, HALYARD_EXTERNAL_HOST_ALLOCATION, &external)));
  EXPECT_EQ(external.kind, unsigned{HALYARD_EXTERNAL_HOST_ALLOCATION});
  EXPECT_EQ(external.pointer, bytes(memory));
  EXPECT_EQ(external.fd, -1);
  EXPECT_EQ(external.access, unsigned{HALYARD_MAP_READ | HALYARD_MAP_WRITE});
  EXPECT_EQ(external.size, 4u);

  for (const char* kind : {"local-sync", "local-task"}) {
    halyard_driver_device_t other = open(kind);
    const halyard_memory_request_t wanted = request(4);
    halyard_memory_info_t info = {.struct_size = sizeof info};
    Memory same = nullptr;
    EXPECT_OK(host_.take(table_.memory_import(other, &wanted, &external, &same, &info)));
    void* there = nullptr;
    EXPECT_OK(host_.take(table_.memory_map(other, same, HALYARD_MAP_READ, 0, 4, &there)));
    EXPECT_EQ(there, bytes(memory));
    table_.memory_unmap(other, same);
    if (kind == kind_) {
      std::swap(device_, other);
      EXPECT_OK(run(fill_operation(range(same, 1, 2), 9, 1)));
      std::swap(device_, other);
      EXPECT_EQ(content<uint8_t>(memory, 4), (std::vector<uint8_t>{1, 9, 9, 4}));
    }
    table_.memory_free(other, same);
    table_.device_close(other);
  }
}

TEST_P(MemoryTest, ExportsOnlyExistingBytes) {
  Memory memory = allocate(4);
  halyard_external_memory_t external = {.struct_size = sizeof external, .pointer = this};
  EXPECT_FAILS(UNIMPLEMENTED, "kind 2",
               host_.take(table_.memory_export(device_, memory, HALYARD_EXTERNAL_OPAQUE_FD, &external)));
  Semaphore start = semaphore();
  Completion made;
  Memory later = queue_allocate(4, {{start, 1}}, {}, made);
  EXPECT_CODE(FAILED_PRECONDITION,
              host_.take(table_.memory_export(device_, later, HALYARD_EXTERNAL_HOST_ALLOCATION, &external)));
  EXPECT_EQ(external.pointer, this) << "untouched on failure";
  EXPECT_OK(signal(start, 1));
  EXPECT_OK(outcome(made));

  // Read-only bytes stay unchanged.
  alignas(64) static const uint8_t constants[64] = {};
  Memory imported = import_memory(constants, sizeof constants, HALYARD_MAP_READ);
  EXPECT_OK(host_.take(table_.memory_export(device_, imported, HALYARD_EXTERNAL_HOST_ALLOCATION, &external)));
  EXPECT_EQ(external.pointer, constants);
  EXPECT_EQ(external.access, unsigned{HALYARD_MAP_READ});
}

TEST_P(MemoryTest, IsCounted) {
  Memory first = allocate(100);
  allocate(50);
  ASSERT_TRUE(try_allocate(request(7, HALYARD_MEMORY_HOST_LOCAL)).ok());
  destroy(first);
  allocate(10);

  const halyard_memory_statistics_t counted = statistics();
  EXPECT_EQ(counted.device_bytes_live, 60u);
  EXPECT_EQ(counted.device_bytes_peak, 150u);
  EXPECT_EQ(counted.device_bytes_allocated, 160u);
  EXPECT_EQ(counted.device_bytes_freed, 100u);
  EXPECT_EQ(counted.host_bytes_live, 7u);
  EXPECT_EQ(counted.host_bytes_peak, 7u);
  table_.memory_free(device_, memory_);
  EXPECT_EQ(statistics().host_bytes_live, 0u);
  EXPECT_EQ(statistics().host_bytes_freed, 7u);
}

// For any sequence of sizes, live allocations never overlap.
TEST_P(MemoryTest, NeverOverlaps) {
  struct Block {
    Memory memory;
    uint64_t size;
    uint8_t mark;
  };
  std::vector<Block> live;
  uint32_t random = 1;
  const auto next = [&] { return random = random * 1664525 + 1013904223, random >> 8; };
  for (int step = 0; step < 2000; ++step) {
    if (!live.empty() && next() % 5 < 2) {
      const size_t victim = next() % live.size();
      const Block block = live[victim];
      const uint8_t* start = bytes(block.memory);
      for (uint64_t i = 0; i < block.size; ++i) ASSERT_EQ(start[i], block.mark);
      table_.memory_free(device_, block.memory);
      live.erase(live.begin() + static_cast<ptrdiff_t>(victim));
      if (step % 100 == 0) {
        EXPECT_OK(host_.take(table_.device_trim(device_)));
      }
    } else {
      const uint64_t size = next() % (1u << (next() % 14));
      ASSERT_TRUE(try_allocate(request(size)).ok());
      const auto mark = static_cast<uint8_t>(step);
      std::memset(bytes(memory_), mark, size);
      live.push_back({memory_, size, mark});
    }
  }
  for (const Block& block : live) table_.memory_free(device_, block.memory);
  EXPECT_EQ(statistics().device_bytes_live, 0u);
}

}  // namespace
}  // namespace halyard::local_tests
