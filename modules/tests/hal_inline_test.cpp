// hal_inline: the table, and every function of it.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "base/cpu_features.h"
#include "hal/queue/queue.h"
#include "hal/queue/wait.h"
#include "modules/hal_inline_functions.h"
#include "modules/hal_inline_module.h"
#include "testing.h"
#include "vm/object/list.h"

namespace halyard::modules {
namespace {

struct BufferPair {
  Ref<hal::Buffer> buffer;
  Ref<vm::Buffer> storage;
};

class HalInline : public ::testing::Test {
 protected:
  void SetUp() override { create({}); }
  void create(HalInlineOptions options) {
    hal = std::make_unique<ModuleCaller>(create_hal_inline_module(std::move(options)));
  }

  BufferPair pair_of(const Result<std::vector<vm::Variant>>& results) {
    if (!results) {
      ADD_FAILURE() << results.error().text();
      return {};
    }
    return {Ref<hal::Buffer>::share(cast<hal::Buffer>((*results)[0].object())),
            Ref<vm::Buffer>::share(cast<vm::Buffer>((*results)[1].object()))};
  }
  BufferPair allocate(int alignment, uint64_t size) {
    return pair_of(hal->call("buffer.allocate", "0iI_rr", {alignment, size}));
  }
  Ref<vm::Buffer> storage(const Ref<hal::Buffer>& buffer) {
    return hal->object<vm::Buffer>("buffer.storage", "0r_r", {buffer});
  }

  std::unique_ptr<ModuleCaller> hal;
};

// ---- The table

TEST_F(HalInline, HasTheFunctionsOfVersion0) {
  EXPECT_EQ(hal->module().name(), "hal_inline");
  EXPECT_EQ(hal->module().version(), 0u);
  std::set<std::string_view> names;
  for (const HalSignature& signature : hal_inline_signatures()) {
    EXPECT_TRUE(names.insert(signature.name).second) << signature.name;
    EXPECT_EQ(signature.until, kHalInlineVersion);
    EXPECT_TRUE(hal->module().resolve(signature.name, signature.convention)) << signature.name;
    EXPECT_TRUE(hal->module().resolve(signature.name, "")) << signature.name;
    EXPECT_FAILS(INCOMPATIBLE, signature.convention, hal->module().resolve(signature.name, "0iiiiiiii_I"));
  }
  EXPECT_EQ(names.size(), 15u);
  EXPECT_EQ(hal->module().exports().size(), 15u);
}

TEST_F(HalInline, RefsAreCheckedByEveryFunction) {
  const Ref<Object> other = vm::List::create({});
  struct Call {
    const char* name;
    const char* convention;
    std::vector<Argument> arguments;  // the tested argument is replaced
    size_t ref;
  };
  const Ref<vm::Buffer> bytes = bytes_of({1, 2, 3, 4});
  const Ref<hal::Buffer> buffer = allocate(0, 16).buffer;
  const auto view = hal->object<hal::BufferView>("buffer_view.create", "0rIIiiCID_r",
                                                 {buffer, 0, 16, kInt32, 1, Entries{4}});
  const std::vector<Call> calls = {
      {"buffer.allocate.initialized", "0irII_rr", {0, bytes, 0, 4}, 1},
      {"buffer.wrap", "0rII_r", {bytes, 0, 4}, 0},
      {"buffer.subspan", "0rII_r", {buffer, 0, 4}, 0},
      {"buffer.length", "0r_I", {buffer}, 0},
      {"buffer.storage", "0r_r", {buffer}, 0},
      {"buffer_view.create", "0rIIiiCID_r", {buffer, 0, 4, kInt32, 1, Entries{1}}, 0},
      {"buffer_view.assert", "0rriiCID_v", {view, bytes, kInt32, 1, Entries{4}}, 0},
      {"buffer_view.assert", "0rriiCID_v", {view, bytes, kInt32, 1, Entries{4}}, 1},
      {"buffer_view.buffer", "0r_r", {view}, 0},
      {"buffer_view.element_type", "0r_i", {view}, 0},
      {"buffer_view.encoding_type", "0r_i", {view}, 0},
      {"buffer_view.rank", "0r_i", {view}, 0},
      {"buffer_view.dim", "0ri_I", {view, 0}, 0},
      {"device.query.i64", "0rr_iI", {bytes, bytes}, 0},
      {"device.query.i64", "0rr_iI", {bytes, bytes}, 1},
  };
  std::set<std::string_view> called = {"buffer.allocate", "buffer_view.trace"};  // no refs; any refs
  for (const Call& call : calls) {
    called.insert(call.name);
    EXPECT_TRUE(hal->status(call.name, call.convention, call.arguments).ok()) << call.name;
    std::vector<Argument> arguments = call.arguments;
    arguments[call.ref] = nullptr;
    EXPECT_FAILS(INVALID_ARGUMENT, "null", hal->status(call.name, call.convention, arguments));
    arguments[call.ref] = other;
    EXPECT_FAILS(INVALID_ARGUMENT, "expected a ", hal->status(call.name, call.convention, arguments));
  }
  for (const HalSignature& signature : hal_inline_signatures())
    EXPECT_TRUE(called.contains(signature.name)) << signature.name << " is not called here";
}

// ---- Buffers

TEST_F(HalInline, AllocateGivesABufferAndItsBytes) {
  const BufferPair made = allocate(64, 12);
  EXPECT_EQ(hal->number("buffer.length", "0r_I", {made.buffer}), 12);
  EXPECT_EQ(made.storage->length(), 12u);
  EXPECT_TRUE(made.storage->is_mutable());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(made.storage->data()) % 64, 0u);
  std::memcpy(made.storage->data(), "hello world", 12);
  char text[12] = {};
  ASSERT_TRUE(made.buffer->read(0, text, 12));
  EXPECT_STREQ(text, "hello world");
  EXPECT_EQ(storage(made.buffer)->data(), made.storage->data());
}

TEST_F(HalInline, AllocateTakesAnyAlignmentThatIsOne) {
  for (const int alignment : {0, 1, 2, 16, 64, 128, 4096, 65536}) {
    const BufferPair made = allocate(alignment, 100);
    EXPECT_EQ(made.buffer->length(), 100u);
    EXPECT_EQ(made.storage->length(), 100u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(made.storage->data()) % std::max(alignment, 64), 0u) << alignment;
    EXPECT_EQ(storage(made.buffer)->data(), made.storage->data());
    EXPECT_EQ(storage(made.buffer)->length(), 100u);
  }
  EXPECT_FAILS(INVALID_ARGUMENT, "24", hal->status("buffer.allocate", "0iI_rr", {24, 8}));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "131072", hal->status("buffer.allocate", "0iI_rr", {1 << 17, 8}));
}

TEST_F(HalInline, AllocateTakesAnySizeThatThereIs) {
  EXPECT_EQ(allocate(64, 0).buffer->length(), 0u);
  EXPECT_EQ(allocate(64, 0).storage->length(), 0u);
  for (const int alignment : {0, 4096})
    for (const uint64_t size : {UINT64_MAX, uint64_t{1} << 46})
      EXPECT_FAILS(RESOURCE_EXHAUSTED, "bytes", hal->status("buffer.allocate", "0iI_rr", {alignment, size}));
}

TEST_F(HalInline, MemoryIsChargedUntilNothingNamesIt) {
  const Ref<Budget> budget = make<Budget>(10000);
  create({.memory = budget});
  BufferPair made = allocate(64, 4000);
  EXPECT_GE(budget->used(), 4000u);
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "10000", hal->status("buffer.allocate", "0iI_rr", {64, 8000}));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "a device buffer", hal->status("buffer.allocate", "0iI_rr", {65536, 1}));
  made.buffer = nullptr;
  EXPECT_GE(budget->used(), 4000u) << "the storage has it";
  made.storage = nullptr;
  EXPECT_EQ(budget->used(), 0u);
}

TEST_F(HalInline, StorageKeepsTheMemory) {
  BufferPair made = allocate(64, 1000);
  Ref<vm::Buffer> again = storage(made.buffer);
  std::memset(made.storage->data(), 7, 1000);
  made = {};
  hal.reset();  // nor does it need the module
  EXPECT_EQ(again->data()[999], 7);
  std::memset(again->data(), 8, 1000);
}

TEST_F(HalInline, ABufferKeepsTheMemory) {
  BufferPair made = allocate(4096, 1000);
  std::memset(made.storage->data(), 7, 1000);
  made.storage = nullptr;
  uint8_t last = 0;
  ASSERT_TRUE(made.buffer->read(999, &last, 1));
  EXPECT_EQ(last, 7);
}

TEST_F(HalInline, AllocateInitializedCopiesTheRange) {
  const Ref<vm::Buffer> source = bytes_of({1, 2, 3, 4, 5}, true);
  const BufferPair made = pair_of(hal->call("buffer.allocate.initialized", "0irII_rr", {128, source, 1, 3}));
  EXPECT_EQ(made.buffer->length(), 3u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(made.storage->data()) % 128, 0u);
  source->data()[1] = 99;
  EXPECT_EQ(std::vector<uint8_t>(made.storage->data(), made.storage->data() + 3),
            (std::vector<uint8_t>{2, 3, 4}));
  EXPECT_TRUE(made.storage->is_mutable());
  const BufferPair empty = pair_of(hal->call("buffer.allocate.initialized", "0irII_rr", {0, source, 5, 0}));
  EXPECT_EQ(empty.buffer->length(), 0u);
  for (const auto& [offset, length] : {std::pair<int64_t, int64_t>{3, 3}, {6, 0}, {-1, 1}, {0, -1}})
    EXPECT_FAILS(OUT_OF_RANGE, "within the 5 bytes",
                 hal->status("buffer.allocate.initialized", "0irII_rr", {0, source, offset, length}));
  EXPECT_FAILS(INVALID_ARGUMENT, "power of two",
               hal->status("buffer.allocate.initialized", "0irII_rr", {3, source, 0, 1}));
}

TEST_F(HalInline, WrapMakesABufferOfTheSameBytes) {
  Ref<vm::Buffer> source = bytes_of({1, 2, 3, 4, 5}, true);
  const auto buffer = hal->object<hal::Buffer>("buffer.wrap", "0rII_r", {source, 1, 3});
  EXPECT_EQ(buffer->length(), 3u);
  source->data()[1] = 42;
  const Ref<vm::Buffer> bytes = storage(buffer);
  EXPECT_EQ(bytes->data(), source->data() + 1);
  EXPECT_TRUE(bytes->is_mutable());
  source = nullptr;
  uint8_t first = 0;
  ASSERT_TRUE(buffer->read(0, &first, 1)) << "it keeps the bytes";
  EXPECT_EQ(first, 42);
}

TEST_F(HalInline, WrapOfConstantsIsReadOnly) {
  const auto buffer = hal->object<hal::Buffer>("buffer.wrap", "0rII_r", {bytes_of({1, 2, 3}), 0, 3});
  EXPECT_FALSE(storage(buffer)->is_mutable());
  const uint8_t zero = 0;
  EXPECT_FAILS(PERMISSION_DENIED, "READ", buffer->write(0, &zero, 1).error());
}

TEST_F(HalInline, WrapChecksItsRange) {
  const Ref<vm::Buffer> source = bytes_of({1, 2, 3, 4, 5});
  EXPECT_EQ(hal->object<hal::Buffer>("buffer.wrap", "0rII_r", {source, 5, 0})->length(), 0u);
  EXPECT_EQ(
      hal->object<hal::Buffer>("buffer.wrap", "0rII_r", {vm::Buffer::wrap({}, true, {}), 0, 0})->length(),
      0u);
  for (const auto& [offset, length] : {std::pair<int64_t, int64_t>{3, 3}, {6, 0}, {-1, 1}, {0, -1}})
    EXPECT_FAILS(OUT_OF_RANGE, "within the 5 bytes",
                 hal->status("buffer.wrap", "0rII_r", {source, offset, length}));
}

TEST_F(HalInline, SubspansAreRangesOfTheSameBytes) {
  const BufferPair made = allocate(64, 16);
  const auto part = hal->object<hal::Buffer>("buffer.subspan", "0rII_r", {made.buffer, 5, 7});
  EXPECT_EQ(hal->number("buffer.length", "0r_I", {part}), 7);
  EXPECT_EQ(storage(part)->data(), made.storage->data() + 5);
  EXPECT_EQ(storage(part)->length(), 7u);
  EXPECT_EQ(hal->object<hal::Buffer>("buffer.subspan", "0rII_r", {made.buffer, 0, 16}), made.buffer);
  const auto rest = hal->object<hal::Buffer>("buffer.subspan", "0rII_r", {part, 3, -1});
  EXPECT_EQ(storage(rest)->data(), made.storage->data() + 8);
  EXPECT_EQ(rest->length(), 4u);
  EXPECT_FAILS(OUT_OF_RANGE, "found 7 bytes at offset 10",
               hal->status("buffer.subspan", "0rII_r", {made.buffer, 10, 7}));
  EXPECT_FAILS(OUT_OF_RANGE, "at offset 17", hal->status("buffer.subspan", "0rII_r", {made.buffer, 17, 0}));
}

TEST_F(HalInline, StorageOfADeviceThatSharesMemory) {
  auto device = ASSERT_VALUE(open_device("local-sync"));
  auto buffer = ASSERT_VALUE(hal::Buffer::allocate(*device, hal::kAnyQueue, 0x32, 0x3000C03, 8));
  Ref<vm::Buffer> bytes = storage(buffer);
  std::memset(bytes->data(), 3, 8);
  uint64_t value = 0;
  ASSERT_TRUE(buffer->read(0, &value, 8));
  EXPECT_EQ(value, 0x0303030303030303u);
  buffer->allocation().usage = HALYARD_USAGE_DEFAULT;
  EXPECT_FAILS(PERMISSION_DENIED, "MAPPING_SCOPED", hal->status("buffer.storage", "0r_r", {buffer}));
  buffer->allocation().memory_type = HALYARD_MEMORY_DEVICE_LOCAL;
  EXPECT_FAILS(PERMISSION_DENIED, "HOST_VISIBLE", hal->status("buffer.storage", "0r_r", {buffer}));
}

// ---- Views

TEST_F(HalInline, ViewsAreAsInHal) {
  const BufferPair made = allocate(64, 32);
  const auto view = hal->object<hal::BufferView>("buffer_view.create", "0rIIiiCID_r",
                                                 {made.buffer, 8, 24, kFloat32, 1, Entries{2, 3}});
  EXPECT_EQ(hal->number("buffer_view.element_type", "0r_i", {view}), kFloat32);
  EXPECT_EQ(hal->number("buffer_view.encoding_type", "0r_i", {view}), 1);
  EXPECT_EQ(hal->number("buffer_view.rank", "0r_i", {view}), 2);
  EXPECT_EQ(hal->number("buffer_view.dim", "0ri_I", {view, 1}), 3);
  EXPECT_EQ(hal->number("buffer_view.dim", "0ri_I", {view, 2}), 0);
  const auto part = hal->object<hal::Buffer>("buffer_view.buffer", "0r_r", {view});
  EXPECT_EQ(part->length(), 24u);
  EXPECT_EQ(storage(part)->data(), made.storage->data() + 8);
  const Ref<vm::Buffer> name = text_of("tensor");
  EXPECT_TRUE(hal->status("buffer_view.assert", "0rriiCID_v", {view, name, kFloat32, 1, Entries{2, 3}}).ok());
  EXPECT_FAILS(INVALID_ARGUMENT, "tensor: expected shape",
               hal->status("buffer_view.assert", "0rriiCID_v", {view, name, kFloat32, 1, Entries{2, 4}}));
  EXPECT_FAILS(
      OUT_OF_RANGE, "found 25 bytes at offset 8",
      hal->status("buffer_view.create", "0rIIiiCID_r", {made.buffer, 8, 25, kFloat32, 1, Entries{}}));
  EXPECT_EQ(*view->text(10), "2x3xf32=" + (*view->text(10)).substr(8));
}

TEST_F(HalInline, TraceReachesTheSink) {
  const BufferPair made = allocate(64, 4);
  const auto view = hal->object<hal::BufferView>("buffer_view.create", "0rIIiiCID_r",
                                                 {made.buffer, 0, 4, kInt32, 1, Entries{1}});
  EXPECT_TRUE(hal->status("buffer_view.trace", "0rCrD_v", {nullptr, Entries{nullptr}}).ok()) << "no sink";
  std::string seen;
  create({.trace = [&](std::string_view key, std::span<hal::BufferView* const> views) {
    seen = std::string(key) + std::to_string(views.size());
    EXPECT_EQ(views[0], view.get());
  }});
  EXPECT_TRUE(hal->status("buffer_view.trace", "0rCrD_v", {text_of("title"), Entries{view, view}}).ok());
  EXPECT_EQ(seen, "title2");
  EXPECT_FAILS(INVALID_ARGUMENT, "operand 1",
               hal->status("buffer_view.trace", "0rCrD_v", {text_of("title"), Entries{view, nullptr}}));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "129",
               hal->status("buffer_view.trace", "0rCrD_v", {text_of("title"), Entries(129, view)}));
}

// ---- Queries

TEST_F(HalInline, OnlyTheProcessorIsKnown) {
  const auto ask = [&](std::string_view category, std::string_view key) {
    auto answer = hal->call("device.query.i64", "0rr_iI", {text_of(category), text_of(key)});
    EXPECT_TRUE(answer);
    return std::pair((*answer)[0].as_i32(), (*answer)[1].as_i64());
  };
  EXPECT_EQ(ask("hal.device.id", "*"), std::pair(0, int64_t{0}));
  EXPECT_EQ(ask("hal.cpu", "no-such-feature"), std::pair(0, int64_t{0}));
#if defined(__x86_64__)
  for (const char* feature : {"sse3", "avx2", "avx512f", "xop"})
    EXPECT_EQ(ask("hal.cpu", feature), std::pair(1, int64_t{*cpu_feature(feature)})) << feature;
#endif
}

// The driver `null` frees the bytes of this buffer in its dealloca.
TEST_F(HalInline, StorageOutlivesADealloca) {
  constexpr uint64_t kSize = 64 << 20;
  const Ref<hal::Device> null = ASSERT_VALUE(open_device("null"));
  const Ref<hal::Fence> made = ASSERT_VALUE(hal::Fence::create(null));
  const Ref<hal::Fence> gone = ASSERT_VALUE(hal::Fence::create(null));
  const Ref<hal::Buffer> buffer = ASSERT_VALUE(
      hal::queue_alloca({*null, hal::kAnyQueue, nullptr, made.get()}, 0, 0x32, 0x1000003, kSize, 0));
  hal::Fence* const first[] = {made.get()};
  ASSERT_TRUE(hal::await(first, hal::kWaitForever).ok());
  const Ref<vm::Buffer> bytes = storage(buffer);
  ASSERT_NE(bytes, nullptr);
  ASSERT_OK(hal::queue_dealloca({*null, hal::kAnyQueue, nullptr, gone.get()}, *buffer, 0));
  hal::Fence* const second[] = {gone.get()};
  ASSERT_TRUE(hal::await(second, hal::kWaitForever).ok());
  bytes->data()[kSize - 1] = 7;
  EXPECT_EQ(bytes->data()[kSize - 1], 7);
}

}  // namespace
}  // namespace halyard::modules
