// hal functions that act at once: devices, allocator, buffers, views, channels, files, executables.
#include <gtest/gtest.h>

#include <cstring>

#include "modules/hal_functions.h"
#include "testing.h"

namespace halyard::modules {
namespace {

constexpr int kDeviceLocal = 0x30;
constexpr int kSint32 = 0x11000020;

class HalHostFunctions : public ::testing::Test {
 protected:
  void SetUp() override {
    const Ref<hal::DriverRegistry> registry = open_registry();
    for (auto& device : devices) {
      device = ASSERT_VALUE(registry->open_device("local-sync"));
    }
    hal = std::make_unique<ModuleCaller>(create_hal_module(
        {.devices = {devices[0], devices[1]}, .trace = trace_sink(), .lead_allocator = lead_allocator()}));
    allocator = hal->object<hal::Allocator>("device.allocator", "0r_r", {devices[0]});
  }
  virtual TraceSink trace_sink() { return {}; }
  virtual std::optional<size_t> lead_allocator() { return {}; }

  Ref<hal::Buffer> allocate(uint64_t size) {
    return hal->object<hal::Buffer>("allocator.allocate", "0rIiiI_r",
                                    {allocator, kAny, kDeviceLocal, kDefaultUsage, size});
  }
  Ref<hal::BufferView> view(const Ref<hal::Buffer>& buffer, int type, Entries shape) {
    return hal->object<hal::BufferView>("buffer_view.create", "0rIIiiCID_r",
                                        {buffer, 0, buffer->length(), type, 1, std::move(shape)});
  }

  Ref<hal::Device> devices[2];
  std::unique_ptr<ModuleCaller> hal;
  Ref<hal::Allocator> allocator;
};

// ---- Devices ----

TEST_F(HalHostFunctions, DevicesAreCountedInTheOrderOfTheHost) {
  EXPECT_EQ(hal->number("devices.count", "0v_i", {}), 2);
  EXPECT_EQ(hal->object<hal::Device>("devices.get", "0i_r", {0}), devices[0]);
  EXPECT_EQ(hal->object<hal::Device>("devices.get", "0i_r", {1}), devices[1]);
  EXPECT_EQ(hal->object<hal::Device>("devices.get", "0i_r", {2}), nullptr);
  EXPECT_EQ(hal->object<hal::Device>("devices.get", "0i_r", {-1}), nullptr);
}

TEST_F(HalHostFunctions, TheAllocatorOfADeviceIsOneObject) {
  ASSERT_NE(allocator, nullptr);
  EXPECT_EQ(hal->object<hal::Allocator>("device.allocator", "0r_r", {devices[0]}), allocator);
  EXPECT_NE(hal->object<hal::Allocator>("device.allocator", "0r_r", {devices[1]}), allocator);
}

TEST_F(HalHostFunctions, QueriesAnswerKnownAndValue) {
  auto known = ASSERT_VALUE(
      hal->call("device.query.i64", "0rrr_iI", {devices[0], text_of("hal.device.id"), text_of("local-*")}));
  EXPECT_EQ(known[0].as_i32(), 1);
  EXPECT_EQ(known[1].as_i64(), 1);
  auto other = ASSERT_VALUE(
      hal->call("device.query.i64", "0rrr_iI", {devices[0], text_of("hal.device.id"), text_of("vulkan")}));
  EXPECT_EQ(other[0].as_i32(), 1);
  EXPECT_EQ(other[1].as_i64(), 0);
  auto unknown = ASSERT_VALUE(
      hal->call("device.query.i64", "0rrr_iI", {devices[0], text_of("no.such"), text_of("key")}));
  EXPECT_EQ(unknown[0].as_i32(), 0);
  EXPECT_EQ(unknown[1].as_i64(), 0);
  EXPECT_FAILS(INVALID_ARGUMENT, "null",
               hal->status("device.query.i64", "0rrr_iI", {devices[0], nullptr, text_of("key")}));
}

TEST_F(HalHostFunctions, ReferencesAreChecked) {
  EXPECT_FAILS(INVALID_ARGUMENT, "null", hal->status("device.allocator", "0r_r", {nullptr}));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a ", hal->status("device.allocator", "0r_r", {allocator}));
}

// ---- Allocator ----

TEST_F(HalHostFunctions, AllocateGivesTheLengthAskedFor) {
  const Ref<hal::Buffer> buffer = allocate(13);
  EXPECT_EQ(hal->number("buffer.length", "0r_I", {buffer}), 13);
  EXPECT_EQ(hal->number("buffer.length", "0r_I", {allocate(0)}), 0);
}

TEST_F(HalHostFunctions, AllocatePastMemoryNamesTheLength) {
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "while allocating 18446744073709551615 bytes",
               hal->status("allocator.allocate", "0rIiiI_r",
                           {allocator, kAny, kDeviceLocal, kDefaultUsage, int64_t{-1}}));
}

TEST_F(HalHostFunctions, AllocatePutsDefaultsForZero) {
  const auto buffer = hal->object<hal::Buffer>("allocator.allocate", "0rIiiI_r", {allocator, 0, 0, 0, 8});
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(buffer->usage() & 0xC03, 0xC03u);
  EXPECT_EQ(buffer->access(), 7u);
}

TEST_F(HalHostFunctions, SelectWithoutPolicyTakesTheFirst) {
  auto chosen = ASSERT_VALUE(hal->call("allocator.select", "0iiICrID_rI",
                                       {0x32, kDefaultUsage, 0, Entries{devices[1], 4, devices[0], 2}}));
  EXPECT_EQ(chosen[0].object(), devices[1].get());
  EXPECT_EQ(chosen[1].as_i64(), 4);
}

TEST_F(HalHostFunctions, SelectWithoutPolicyDoesNotLookAtTheOthers) {
  EXPECT_TRUE(hal->call("allocator.select", "0iiICrID_rI",
                        {0x32, kDefaultUsage, 0, Entries{devices[1], 4, nullptr, 2}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null",
               hal->status("allocator.select", "0iiICrID_rI",
                           {0x32, kDefaultUsage, 0, Entries{nullptr, 4, devices[1], 2}}));
  EXPECT_FAILS(
      INVALID_ARGUMENT, "expected a ",
      hal->status("allocator.select", "0iiICrID_rI", {0x32, kDefaultUsage, 0, Entries{allocator, 4}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "allocator.select",
               hal->status("allocator.select", "0iiICrID_rI", {0x32, kDefaultUsage, 0, Entries{}}));
}

class HalLeadAllocator : public HalHostFunctions {
  std::optional<size_t> lead_allocator() override { return 1; }
};

TEST_F(HalLeadAllocator, SelectTakesTheLeadWhereItIsACandidate) {
  auto chosen = ASSERT_VALUE(hal->call("allocator.select", "0iiICrID_rI",
                                       {0x32, kDefaultUsage, 0, Entries{devices[0], 4, devices[1], 2}}));
  EXPECT_EQ(chosen[0].object(), devices[1].get());
  EXPECT_EQ(chosen[1].as_i64(), 2);
  chosen = ASSERT_VALUE(
      hal->call("allocator.select", "0iiICrID_rI", {0x32, kDefaultUsage, 0, Entries{devices[0], 4}}));
  EXPECT_EQ(chosen[0].object(), devices[0].get());
  EXPECT_EQ(chosen[1].as_i64(), 4);
}

TEST_F(HalLeadAllocator, SelectTakesTheFirstOfEqualCandidates) {
  auto chosen = ASSERT_VALUE(
      hal->call("allocator.select", "0iiICrID_rI", {0, 0, 0, Entries{devices[1], 7, devices[1], 8}}));
  EXPECT_EQ(chosen[1].as_i64(), 7);
}

TEST_F(HalLeadAllocator, SelectLooksAt64Candidates) {
  Entries many{};
  for (int i = 0; i < 64; ++i) many.values.insert(many.values.end(), {Argument(devices[0]), Argument(i)});
  EXPECT_TRUE(hal->call("allocator.select", "0iiICrID_rI", {0, 0, 0, many}));
  many.values.insert(many.values.end(), {Argument(devices[1]), Argument(64)});
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "allocator.select has 65 candidates",
               hal->status("allocator.select", "0iiICrID_rI", {0, 0, 0, many}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null",
               hal->status("allocator.select", "0iiICrID_rI", {0, 0, 0, Entries{devices[1], 7, nullptr, 8}}));
}

// A policy that names a device that the context does not have.
class HalNoLeadAllocator : public HalHostFunctions {
  std::optional<size_t> lead_allocator() override { return 7; }
};

TEST_F(HalNoLeadAllocator, SelectTakesTheFirst) {
  auto chosen = ASSERT_VALUE(
      hal->call("allocator.select", "0iiICrID_rI", {0, 0, 0, Entries{devices[1], 7, devices[0], 8}}));
  EXPECT_EQ(chosen[0].object(), devices[1].get());
  EXPECT_EQ(chosen[1].as_i64(), 7);
}

// ---- allocator.import ----

class HalImport : public HalHostFunctions {
 protected:
  static constexpr const char* kImport = "0riIiirII_r";
  static constexpr int kImmutable = 0x80C03;

  // 128 bytes, `shift` bytes past a 64-byte boundary.
  Ref<vm::Buffer> source(bool is_mutable, size_t shift = 0) {
    void* memory = std::aligned_alloc(64, 256);
    for (int i = 0; i < 256; ++i) static_cast<uint8_t*>(memory)[i] = static_cast<uint8_t>(i);
    return vm::Buffer::wrap({static_cast<uint8_t*>(memory) + shift, 128}, is_mutable,
                            [memory] { std::free(memory); });
  }
};

TEST_F(HalImport, ConstantBytesAreAliasedAndKept) {
  Ref<vm::Buffer> bytes = source(false);
  const auto buffer = hal->object<hal::Buffer>("allocator.import", kImport,
                                               {allocator, 0, kAny, kDeviceLocal, kImmutable, bytes, 64, 64});
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(buffer->length(), 64u);
  EXPECT_EQ(buffer->access(), uint32_t{hal::kRead});
  bytes = nullptr;
  EXPECT_EQ(hal->number("buffer.load", "0rIi_i", {buffer, 0, 4}), 0x43424140);
  EXPECT_FAILS(PERMISSION_DENIED, "", hal->status("buffer.store", "0irIi_v", {1, buffer, 0, 4}));
}

TEST_F(HalImport, MinusOneIsTheWholeSource) {
  const auto buffer = hal->object<hal::Buffer>("allocator.import", kImport,
                                               {allocator, 0, kAny, 0x30, kImmutable, source(false), 0, -1});
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(buffer->length(), 128u);
  EXPECT_FAILS(INVALID_ARGUMENT, "128 bytes of the source, found 128 bytes at offset 64",
               hal->status("allocator.import", kImport,
                           {allocator, 1, kAny, 0x30, kImmutable, source(false), 64, -1}));
}

TEST_F(HalImport, RangesAndAccessAreCheckedEvenWhenOnlyTrying) {
  for (int only_try : {0, 1}) {
    EXPECT_FAILS(INVALID_ARGUMENT, "128 bytes of the source, found 65 bytes at offset 64",
                 hal->status("allocator.import", kImport,
                             {allocator, only_try, kAny, 0x30, kImmutable, source(false), 64, 65}));
    EXPECT_FAILS(
        INVALID_ARGUMENT, "128 bytes of the source",
        hal->status("allocator.import", kImport,
                    {allocator, only_try, kAny, 0x30, kImmutable, source(false), int64_t{-64}, 128}));
    EXPECT_FAILS(PERMISSION_DENIED, "SHARING_IMMUTABLE",
                 hal->status("allocator.import", kImport,
                             {allocator, only_try, kAny, 0x30, kDefaultUsage, source(false), 0, 64}));
  }
}

TEST_F(HalImport, MutableBytesCanBeWrittenByDevicesButNotDiscardedByTheHost) {
  const auto writable = hal->object<hal::Buffer>(
      "allocator.import", kImport, {allocator, 0, kAny, 0x30, kDefaultUsage, source(true), 0, 64});
  ASSERT_NE(writable, nullptr);
  EXPECT_EQ(writable->access(), uint32_t{hal::kRead | hal::kWrite});
  EXPECT_FAILS(PERMISSION_DENIED, "", hal->status("buffer.store", "0irIi_v", {1, writable, 0, 4}));
  const auto constant = hal->object<hal::Buffer>("allocator.import", kImport,
                                                 {allocator, 0, kAny, 0x30, kImmutable, source(true), 0, 64});
  ASSERT_NE(constant, nullptr);
  EXPECT_EQ(constant->access(), uint32_t{hal::kRead});
}

TEST_F(HalImport, WhatTheDeviceCannotImportIsNullWhenOnlyTrying) {
  EXPECT_EQ(hal->object<hal::Buffer>("allocator.import", kImport,
                                     {allocator, 1, kAny, 0x30, kImmutable, source(false, 4), 0, 64}),
            nullptr);
  EXPECT_FAILS(OUT_OF_RANGE, "64",
               hal->status("allocator.import", kImport,
                           {allocator, 0, kAny, 0x30, kImmutable, source(false, 4), 0, 64}));
}

// ---- Buffers ----

TEST_F(HalHostFunctions, AssertChecksLengthThenTypeThenUsageThenAllocator) {
  const Ref<hal::Buffer> buffer = allocate(16);
  const Ref<vm::Buffer> message = text_of("tensor");
  EXPECT_TRUE(
      hal->status("buffer.assert", "0rrrIii_v", {buffer, message, allocator, 16, 0x10, kDefaultUsage}).ok());
  EXPECT_FAILS(INVALID_ARGUMENT, "tensor: expected a buffer of at least 17 bytes, found 16",
               hal->status("buffer.assert", "0rrrIii_v", {buffer, message, nullptr, 17, 0x80, 0x1000}));
  EXPECT_FAILS(PERMISSION_DENIED, "tensor: expected a buffer with memory of type ",
               hal->status("buffer.assert", "0rrrIii_v", {buffer, message, nullptr, 16, 0x80, 0x1000}));
  EXPECT_FAILS(PERMISSION_DENIED, "tensor: expected a buffer with usage ",
               hal->status("buffer.assert", "0rrrIii_v", {buffer, message, nullptr, 16, 0x10, 0x1000}));
  EXPECT_FAILS(
      INVALID_ARGUMENT, "null",
      hal->status("buffer.assert", "0rrrIii_v", {buffer, message, nullptr, 16, 0x10, kDefaultUsage}));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a ",
               hal->status("buffer.assert", "0rrrIii_v", {buffer, message, buffer, 16, 0x10, kDefaultUsage}));
  EXPECT_FAILS(
      INVALID_ARGUMENT, "null",
      hal->status("buffer.assert", "0rrrIii_v", {buffer, nullptr, allocator, 16, 0x10, kDefaultUsage}));
}

TEST_F(HalHostFunctions, OwnersAreCountedOnTheAllocation) {
  const Ref<hal::Buffer> buffer = allocate(16);
  const auto part = hal->object<hal::Buffer>("buffer.subspan", "0rII_r", {buffer, 4, 8});
  EXPECT_EQ(hal->number("buffer.allocation.is_terminal", "0r_i", {buffer}), 1);
  EXPECT_TRUE(hal->status("buffer.allocation.preserve", "0r_v", {part}).ok());
  EXPECT_EQ(hal->number("buffer.allocation.is_terminal", "0r_i", {buffer}), 0);
  EXPECT_EQ(hal->number("buffer.allocation.discard", "0r_i", {buffer}), 0);
  EXPECT_EQ(hal->number("buffer.allocation.is_terminal", "0r_i", {part}), 1);
  EXPECT_EQ(hal->number("buffer.allocation.discard", "0r_i", {part}), 1);
  EXPECT_EQ(hal->number("buffer.allocation.is_terminal", "0r_i", {buffer}), 0) << "no owner is not one owner";
  EXPECT_EQ(hal->number("buffer.allocation.discard", "0r_i", {part}), 0) << "only from 1 to 0";
}

TEST_F(HalHostFunctions, Subspans) {
  const Ref<hal::Buffer> buffer = allocate(16);
  EXPECT_EQ(hal->object<hal::Buffer>("buffer.subspan", "0rII_r", {buffer, 0, 16}), buffer);
  EXPECT_EQ(hal->object<hal::Buffer>("buffer.subspan", "0rII_r", {buffer, 0, -1}), buffer);
  const auto rest = hal->object<hal::Buffer>("buffer.subspan", "0rII_r", {buffer, 6, -1});
  EXPECT_EQ(hal->number("buffer.length", "0r_I", {rest}), 10);
  EXPECT_EQ(hal->number("buffer.length", "0r_I",
                        {hal->object<hal::Buffer>("buffer.subspan", "0rII_r", {rest, 10, 0})}),
            0);
  EXPECT_TRUE(hal->status("buffer.store", "0irIi_v", {0x11223344, buffer, 8, 4}).ok());
  const auto inner = hal->object<hal::Buffer>("buffer.subspan", "0rII_r", {rest, 2, 4});
  EXPECT_EQ(hal->number("buffer.load", "0rIi_i", {inner, 0, 4}), 0x11223344);
  EXPECT_FAILS(OUT_OF_RANGE, "found 9 bytes at offset 8",
               hal->status("buffer.subspan", "0rII_r", {buffer, 8, 9}));
  EXPECT_FAILS(OUT_OF_RANGE, "at offset 17", hal->status("buffer.subspan", "0rII_r", {buffer, 17, 0}));
  EXPECT_FAILS(OUT_OF_RANGE, "", hal->status("buffer.subspan", "0rII_r", {buffer, int64_t{-1}, 2}));
}

TEST_F(HalHostFunctions, LoadsAndStoresOfUpToFourBytes) {
  const Ref<hal::Buffer> buffer = allocate(8);
  EXPECT_TRUE(hal->status("buffer.store", "0irIi_v", {int64_t{0xFFEEDDCC}, buffer, 0, 4}).ok());
  EXPECT_TRUE(hal->status("buffer.store", "0irIi_v", {0x01020304, buffer, 4, 4}).ok());
  EXPECT_EQ(hal->number("buffer.load", "0rIi_i", {buffer, 0, 1}), 0xCC) << "no sign extension";
  EXPECT_EQ(hal->number("buffer.load", "0rIi_i", {buffer, 1, 2}), 0xEEDD);
  EXPECT_EQ(hal->number("buffer.load", "0rIi_i", {buffer, 1, 3}), 0xFFEEDD);
  EXPECT_EQ(hal->number("buffer.load", "0rIi_i", {buffer, 3, 4}), 0x020304FF);
  EXPECT_EQ(hal->number("buffer.load", "0rIi_i", {buffer, 8, 0}), 0);
  EXPECT_TRUE(hal->status("buffer.store", "0irIi_v", {0, buffer, 1, 2}).ok());
  EXPECT_EQ(hal->number("buffer.load", "0rIi_i", {buffer, 0, 4}), static_cast<int32_t>(0xFF0000CCu));
  EXPECT_TRUE(hal->status("buffer.store", "0irIi_v", {0x77777777, buffer, 8, 0}).ok());
}

TEST_F(HalHostFunctions, LoadAndStoreErrors) {
  const Ref<hal::Buffer> buffer = allocate(8);
  EXPECT_FAILS(INVALID_ARGUMENT, "buffer.load of 5 bytes",
               hal->status("buffer.load", "0rIi_i", {buffer, 0, 5}));
  EXPECT_FAILS(INVALID_ARGUMENT, "buffer.load of 4294967295 bytes",
               hal->status("buffer.load", "0rIi_i", {buffer, 0, -1}));
  EXPECT_FAILS(OUT_OF_RANGE, "", hal->status("buffer.load", "0rIi_i", {buffer, 6, 4}));
  EXPECT_FAILS(OUT_OF_RANGE, "", hal->status("buffer.load", "0rIi_i", {buffer, -2, 4}));
  EXPECT_FAILS(INVALID_ARGUMENT, "buffer.store of 5 bytes",
               hal->status("buffer.store", "0irIi_v", {0, buffer, 0, 5}));
  EXPECT_FAILS(OUT_OF_RANGE, "within the 8 bytes of the buffer, found 4 bytes at offset 5",
               hal->status("buffer.store", "0irIi_v", {0, buffer, 5, 4}));
  EXPECT_FAILS(OUT_OF_RANGE, "within the 8 bytes",
               hal->status("buffer.store", "0irIi_v", {0, buffer, -1, 1}));
}

// ---- Buffer views ----

TEST_F(HalHostFunctions, ViewsHaveWhatTheyWereGiven) {
  const Ref<hal::Buffer> buffer = allocate(16);
  const Ref<hal::BufferView> made = view(buffer, kFloat32, {2, 3});
  EXPECT_EQ(hal->object<hal::Buffer>("buffer_view.buffer", "0r_r", {made}), buffer);
  EXPECT_EQ(hal->number("buffer_view.element_type", "0r_i", {made}), kFloat32);
  EXPECT_EQ(hal->number("buffer_view.encoding_type", "0r_i", {made}), 1);
  EXPECT_EQ(hal->number("buffer_view.rank", "0r_i", {made}), 2);
  EXPECT_EQ(hal->number("buffer_view.dim", "0ri_I", {made, 0}), 2);
  EXPECT_EQ(hal->number("buffer_view.dim", "0ri_I", {made, 1}), 3);
  EXPECT_EQ(hal->number("buffer_view.dim", "0ri_I", {made, 2}), 0) << "index = rank";
  EXPECT_EQ(hal->number("buffer_view.dim", "0ri_I", {made, -1}), 0);
  EXPECT_EQ(hal->number("buffer_view.rank", "0r_i", {view(buffer, kFloat32, {})}), 0);
}

TEST_F(HalHostFunctions, AViewOfAPartTakesASubspan) {
  const Ref<hal::Buffer> buffer = allocate(16);
  const auto part = hal->object<hal::BufferView>("buffer_view.create", "0rIIiiCID_r",
                                                 {buffer, 4, 8, kFloat32, 1, Entries{2}});
  ASSERT_NE(part, nullptr);
  EXPECT_NE(&part->buffer(), buffer.get());
  EXPECT_EQ(part->buffer().length(), 8u);
  EXPECT_FAILS(OUT_OF_RANGE, "found 9 bytes at offset 8",
               hal->status("buffer_view.create", "0rIIiiCID_r", {buffer, 8, 9, kFloat32, 1, Entries{2}}));
}

TEST_F(HalHostFunctions, AViewHasAtMost128Dimensions) {
  const Ref<hal::Buffer> buffer = allocate(4);
  EXPECT_NE(view(buffer, kFloat32, Entries(128, 1)), nullptr);
  EXPECT_FAILS(
      OUT_OF_RANGE, "at most 128 dimensions for a buffer view, found 129",
      hal->status("buffer_view.create", "0rIIiiCID_r", {buffer, 0, 4, kFloat32, 1, Entries(129, 1)}));
}

TEST_F(HalHostFunctions, ViewAssert) {
  const Ref<vm::Buffer> message = text_of("input0");
  const Ref<hal::BufferView> made = view(allocate(24), kInt32, {2, 3});
  const char* kAssert = "0rriiCID_v";
  EXPECT_TRUE(hal->status("buffer_view.assert", kAssert, {made, message, kInt32, 1, Entries{2, 3}}).ok());
  EXPECT_TRUE(hal->status("buffer_view.assert", kAssert, {made, message, kSint32, 1, Entries{2, 3}}).ok());
  EXPECT_FAILS(INVALID_ARGUMENT, "input0: expected encoding 00000002, found 00000001",
               hal->status("buffer_view.assert", kAssert, {made, message, kFloat32, 2, Entries{2}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "input0: expected element type f32 (21000020), found i32 (10000020)",
               hal->status("buffer_view.assert", kAssert, {made, message, kFloat32, 1, Entries{2}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "rank 2 instead of 1",
               hal->status("buffer_view.assert", kAssert, {made, message, kInt32, 1, Entries{2}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "dimension 1 is 3 instead of 4",
               hal->status("buffer_view.assert", kAssert, {made, message, kInt32, 1, Entries{2, 4}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null",
               hal->status("buffer_view.assert", kAssert, {nullptr, message, kInt32, 1, Entries{}}));
}

TEST_F(HalHostFunctions, TraceWithoutASinkChecksNothing) {
  EXPECT_TRUE(hal->status("buffer_view.trace", "0rCrD_v", {nullptr, Entries(200, nullptr)}).ok());
}

class HalTrace : public HalHostFunctions {
 protected:
  TraceSink trace_sink() override {
    return [this](std::string_view key, std::span<hal::BufferView* const> views) {
      traced.emplace_back(key, std::vector<hal::BufferView*>(views.begin(), views.end()));
    };
  }
  std::vector<std::pair<std::string, std::vector<hal::BufferView*>>> traced;
};

TEST_F(HalTrace, TheSinkGetsTitleAndViews) {
  const Ref<hal::BufferView> a = view(allocate(4), kInt32, {});
  const Ref<hal::BufferView> b = view(allocate(4), kInt32, {1});
  EXPECT_TRUE(hal->status("buffer_view.trace", "0rCrD_v", {text_of("key"), Entries{a, b}}).ok());
  EXPECT_TRUE(hal->status("buffer_view.trace", "0rCrD_v", {text_of(""), Entries{}}).ok());
  ASSERT_EQ(traced.size(), 2u);
  EXPECT_EQ(traced[0].first, "key");
  EXPECT_EQ(traced[0].second, (std::vector<hal::BufferView*>{a.get(), b.get()}));
  EXPECT_EQ(traced[1].first, "");
  EXPECT_TRUE(traced[1].second.empty());
}

TEST_F(HalTrace, Errors) {
  const Ref<hal::BufferView> a = view(allocate(4), kInt32, {});
  EXPECT_TRUE(hal->status("buffer_view.trace", "0rCrD_v", {text_of("k"), Entries(128, a)}).ok());
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "at most 128 buffer views",
               hal->status("buffer_view.trace", "0rCrD_v", {text_of("k"), Entries(129, a)}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null", hal->status("buffer_view.trace", "0rCrD_v", {nullptr, Entries{a}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "operand 1",
               hal->status("buffer_view.trace", "0rCrD_v", {text_of("k"), Entries{a, nullptr}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a ",
               hal->status("buffer_view.trace", "0rCrD_v", {text_of("k"), Entries{devices[0]}}));
}

// ---- Channels ----

TEST_F(HalHostFunctions, Channels) {
  const auto place = [&](const Ref<hal::Channel>& channel) {
    auto values = hal->call("channel.rank_and_count", "0r_ii", {channel});
    EXPECT_TRUE(values) << values.error().text();
    return std::pair((*values)[0].as_i32(), (*values)[1].as_i32());
  };
  // Without a launcher: a world of one rank. The same channel each time.
  const auto first = hal->object<hal::Channel>("channel.create", "0rIirrii_r",
                                               {devices[0], kAny, 0, nullptr, nullptr, -1, -1});
  const auto second = hal->object<hal::Channel>("channel.create", "0rIIrrii_r",
                                                {devices[0], kAny, 0, nullptr, nullptr, -1, -1});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first, second);
  EXPECT_EQ(place(first), std::pair(0, 1));
  // Several in one process are named with a rank and a count.
  const auto other = hal->object<hal::Channel>("channel.create", "0rIIrrii_r",
                                               {devices[0], kAny, 0, text_of("id"), text_of("group"), 1, 2});
  EXPECT_EQ(place(other), std::pair(1, 2));
  const auto part = hal->object<hal::Channel>("channel.split", "0riiI_r", {first, 0, 0, 0});
  EXPECT_EQ(place(part), std::pair(0, 1));
  EXPECT_EQ(hal->object<hal::Channel>("channel.split", "0riii_r", {first, -1, 0, 0}), nullptr);

  EXPECT_FAILS(NOT_FOUND, "channel id 'unknown' is unknown",
               hal->status("channel.create", "0rIIrrii_r",
                           {devices[0], kAny, 0, text_of("unknown"), nullptr, -1, -1}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null",
               hal->status("channel.create", "0rIIrrii_r", {nullptr, kAny, 0, nullptr, nullptr, -1, -1}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null", hal->status("channel.split", "0riii_r", {nullptr, 0, 0, 0}));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a ",
               hal->status("channel.split", "0riiI_r", {devices[0], 0, 0, 0}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null", hal->status("channel.rank_and_count", "0r_ii", {nullptr}));
}

// ---- Files and executables ----

TEST_F(HalHostFunctions, FilesOverHostBytes) {
  const Ref<vm::Buffer> bytes = bytes_of(std::vector<uint8_t>(16));
  const char* kFile = "0rIirIIi_r";
  const auto file =
      hal->object<hal::File>("ex.file.from_memory", kFile, {devices[0], kAny, 1, bytes, 4, 12, 0});
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->length(), 12u);
  EXPECT_EQ(file->access(), uint32_t{hal::kRead});
  EXPECT_EQ(file->bytes().data(), bytes->data() + 4);
  EXPECT_FAILS(PERMISSION_DENIED, "expected access READ",
               hal->status("ex.file.from_memory", kFile, {devices[0], kAny, 3, bytes, 0, 16, 0}));
  EXPECT_FAILS(OUT_OF_RANGE, "within the 16 bytes of the vm.buffer, found 9 bytes at offset 8",
               hal->status("ex.file.from_memory", kFile, {devices[0], kAny, 1, bytes, 8, 9, 0}));
  EXPECT_FAILS(OUT_OF_RANGE, "bytes of the vm.buffer",
               hal->status("ex.file.from_memory", kFile, {devices[0], kAny, 1, bytes, -8, 16, 0}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null",
               hal->status("ex.file.from_memory", kFile, {nullptr, kAny, 1, bytes, 0, 1, 0}));
}

TEST_F(HalHostFunctions, ExecutablesAreMadeForDevicesOfTheModule) {
  auto stranger = ASSERT_VALUE(open_device("local-sync"));
  const Ref<vm::Buffer> format = text_of("no-such-format");
  const Ref<vm::Buffer> data = bytes_of({1, 2, 3, 4});
  EXPECT_FAILS(NOT_FOUND, "not one of the 2 devices",
               hal->status("executable.create", "0rIrrr_r", {stranger, kAny, format, data, nullptr}));
  EXPECT_FAILS(NOT_FOUND, "not one of the 2 devices",
               hal->status("executable.create", "0rrrr_r", {stranger, format, data, nullptr}));
}

TEST_F(HalHostFunctions, ExecutableErrors) {
  const Ref<vm::Buffer> format = text_of("no-such-format");
  const Ref<vm::Buffer> data = bytes_of({1, 2, 3, 4});
  for (const char* convention : {"0rrrr_r", "0rIrrr_r"}) {
    const auto status = [&](const Argument& name, const Argument& contents, const Argument& constants) {
      std::vector<Argument> arguments = {devices[0], name, contents, constants};
      if (std::string_view(convention) == "0rIrrr_r") arguments.insert(arguments.begin() + 1, kAny);
      return hal->status("executable.create", convention, arguments);
    };
    EXPECT_FAILS(NOT_FOUND, "no-such-format", status(format, data, nullptr));
    EXPECT_FAILS(INVALID_ARGUMENT, "4 bytes each, found 3 bytes", status(format, data, bytes_of({1, 2, 3})));
    EXPECT_FAILS(NOT_FOUND, "no-such-format", status(format, data, devices[1]));  // another type: as null
    EXPECT_FAILS(INVALID_ARGUMENT, "null", status(nullptr, data, nullptr));
    EXPECT_FAILS(INVALID_ARGUMENT, "null", status(format, nullptr, nullptr));
    EXPECT_FAILS(INVALID_ARGUMENT, "", status(text_of("vmvx-bytecode-fb"), data, nullptr));
  }
}

}  // namespace
}  // namespace halyard::modules
