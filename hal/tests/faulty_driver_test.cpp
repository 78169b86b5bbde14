// A driver that gives invalid answers, or reports success without effect. Errors that the host detects name
// the device or driver, and the function.
#include "faulty_device.h"
#include "hal/channel/channel.h"
#include "hal/channel/local_world.h"
#include "hal/command/command_buffer.h"
#include "hal/device/executable.h"
#include "hal/device/external_memory.h"
#include "hal/queue/fence.h"
#include "hal/queue/queue.h"
#include "hal/queue/wait.h"
#include "sample_drivers.h"

namespace halyard::hal {
namespace {

class FaultyDeviceTest : public FaultyDriverTest {
 protected:
  void SetUp() override {
    FaultyDriverTest::SetUp();
    device = ASSERT_VALUE(open());
  }
  void TearDown() override {
    device = nullptr;
    FaultyDriverTest::TearDown();
  }
  Result<Ref<Buffer>> allocate() { return Buffer::allocate(*device, kAnyQueue, kMapped, kPlainUsage, 16); }

  Ref<Device> device;
};

using FaultyOpenTest = FaultyDriverTest;

TEST_F(FaultyOpenTest, MissingInstance) {
  inject(FAULTY_initialize, FAULTY_UNTOUCHED);
  EXPECT_FAILS(INTERNAL, "gave no instance", open());
}

TEST_F(FaultyOpenTest, MissingDevice) {
  inject(FAULTY_device_open, FAULTY_UNTOUCHED);
  EXPECT_FAILS(INTERNAL, "'faulty://'", open());
}

TEST_F(FaultyOpenTest, InvalidProperties) {
  const char* const expected[] = {"memory alignment of 0", "memory alignment of 3", "0 queues", "65 queues",
                                  "operations 0x0",        "import alignment of 3"};
  for (int32_t how = 0; how < 6; ++how) {
    inject(FAULTY_device_properties, FAULTY_NONSENSE, how);
    EXPECT_FAILS(INTERNAL, expected[how], open());
    EXPECT_FAILS(INTERNAL, "'faulty://'", open());
  }
  inject(FAULTY_device_properties, FAULTY_UNTOUCHED);
  EXPECT_FAILS(INTERNAL, "'faulty://'", open());
}

// Properties are queried once, so later answers of the driver have no effect.
TEST_F(FaultyDeviceTest, PropertiesThatChange) {
  inject(FAULTY_device_properties, FAULTY_NONSENSE, 2);
  EXPECT_OK(allocate());
  EXPECT_GT(device->queues(kAnyQueue), 0u);
  EXPECT_EQ(faulty().calls(FAULTY_device_properties), 1);
}

TEST_F(FaultyDeviceTest, InvalidListsOfDevices) {
  const DriverLibrary& library = device->library();
  for (const int32_t how : {0, 3}) {  // always one more than the capacity; an impossible number
    inject(FAULTY_enumerate_devices, FAULTY_NONSENSE, how);
    EXPECT_FAILS(INTERNAL, "halyard-driver-faulty.so", library.enumerate());
  }
  inject(FAULTY_enumerate_devices, FAULTY_NONSENSE, 1);
  const auto nameless = library.enumerate();
  EXPECT_OK(nameless);
  EXPECT_EQ(nameless->at(0).kind, "");
  inject(FAULTY_enumerate_devices, FAULTY_NONSENSE, 2);
  EXPECT_OK(library.enumerate());
  inject(FAULTY_enumerate_devices, FAULTY_UNTOUCHED);
  const auto none = library.enumerate();
  EXPECT_OK(none);
  EXPECT_TRUE(none->empty());
}

TEST_F(FaultyDeviceTest, MemoryUnlikeTheRequest) {
  const char* const expected[] = {"15 bytes; asked for 16", "memory of type NONE", "memory for NONE"};
  std::vector<uint8_t> bytes(256);
  auto* const aligned = bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
  for (int32_t how = 0; how < 3; ++how) {
    inject(FAULTY_memory_allocate, FAULTY_NONSENSE, how);
    EXPECT_FAILS(INTERNAL, expected[how], allocate());
    EXPECT_FAILS(INTERNAL, "(memory_allocate)", allocate());
    inject(FAULTY_memory_import, FAULTY_NONSENSE, how);
    const auto import = [&] {
      return import_host(*device, kAnyQueue, kMapped, kPlainUsage, kAccessAll, aligned, 16, nullptr);
    };
    EXPECT_FAILS(INTERNAL, expected[how], import());
    EXPECT_FAILS(INTERNAL, "'faulty://'", import());
    inject(FAULTY_queue_submit, FAULTY_NONSENSE, how);
    const auto alloca_ = [&] { return queue_alloca({*device}, 0, kMapped, kPlainUsage, 16, 0); };
    EXPECT_FAILS(INTERNAL, expected[how], alloca_());
    EXPECT_FAILS(INTERNAL, "'faulty://'", alloca_());
  }
  // Preferences need not be fulfilled.
  inject(FAULTY_memory_allocate, FAULTY_NONSENSE, 1);
  EXPECT_OK(Buffer::allocate(*device, kAnyQueue, kMapped | HALYARD_MEMORY_OPTIMAL, kPlainUsage, 16));
}

TEST_F(FaultyDeviceTest, MissingHandles) {
  inject(FAULTY_memory_allocate, FAULTY_UNTOUCHED);
  EXPECT_FAILS(INTERNAL, "memory_allocate", allocate());
  inject(FAULTY_semaphore_create, FAULTY_UNTOUCHED);
  EXPECT_FAILS(INTERNAL, "semaphore_create", Semaphore::create(device, 0));
  EXPECT_FAILS(INTERNAL, "'faulty://'", Fence::create(device));
  inject(FAULTY_queue_submit, FAULTY_UNTOUCHED);
  EXPECT_FAILS(INTERNAL, "alloca", queue_alloca({*device}, 0, kMapped, kPlainUsage, 16, 0));
  inject(FAULTY_command_list_create, FAULTY_UNTOUCHED);
  const Ref<CommandBuffer> commands = *CommandBuffer::create(device, 0, kTransfer, kAnyQueue, 0);
  EXPECT_FAILS(INTERNAL, "command_list_create", commands->finalize());
  inject(FAULTY_memory_map, FAULTY_UNTOUCHED);
  const Result<Ref<Buffer>> buffer = allocate();
  ASSERT_TRUE(buffer);
  uint32_t word = 0;
  EXPECT_FAILS(INTERNAL, "memory_map", (*buffer)->read(0, &word, sizeof word));
  EXPECT_FAILS(INTERNAL, "'faulty://'", (*buffer)->write(0, &word, sizeof word));
}

TEST_F(FaultyDeviceTest, FinalizeCanBeRepeated) {
  const Ref<CommandBuffer> commands =
      ASSERT_VALUE(CommandBuffer::create(device, 0, kTransfer | kDispatchCategory, kAnyQueue, 0));
  EXPECT_OK(commands->barrier(1, 1));
  inject(FAULTY_command_list_create, FAULTY_REFUSE, HALYARD_RESOURCE_EXHAUSTED, 1);
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "injected fault", commands->finalize());
  EXPECT_OK(commands->barrier(1, 1));
  EXPECT_OK(commands->finalize());
  EXPECT_EQ(commands->command_count(), 2u);
  EXPECT_EQ(faulty().live(FAULTY_LIST), 1);
}

// Debug groups that are open are repeated in each piece.
TEST_F(FaultyDeviceTest, PiecesAreCharged) {
  const Ref<Buffer> buffer = ASSERT_VALUE(allocate());
  const Ref<Channel> channel = ASSERT_VALUE(Channel::open(LocalWorld::create(1)->provider(0), {}));
  const auto budget = make<Budget>(uint64_t{1} << 20);
  const Ref<CommandBuffer> commands = ASSERT_VALUE(
      CommandBuffer::create(device, 0, kTransfer | kDispatchCategory, kAnyQueue, 0, budget.get()));
  constexpr int kGroups = 1000;
  for (int i = 0; i < kGroups; ++i) EXPECT_OK(commands->begin_debug_group("g"));
  CommandBuffer::Collective collective;
  collective.channel = channel.get();
  collective.operation = HALYARD_COLLECTIVE_BROADCAST | HALYARD_COLLECTIVE_SINT_32 << 16;
  collective.send = collective.receive = {buffer.get(), 0, 0, 4};
  collective.element_count = 1;
  for (int round = 0; round < 100; ++round) {
    EXPECT_OK(commands->fill({buffer.get(), 0, 4, 4}, 0, 4));
    EXPECT_OK(commands->barrier(1, 1));
    EXPECT_OK(commands->collective(collective));
    EXPECT_OK(commands->barrier(1, 1));
  }
  for (int i = 0; i < kGroups; ++i) EXPECT_OK(commands->end_debug_group());
  const uint64_t charged = budget->used();
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "a command buffer", commands->finalize());
  EXPECT_EQ(budget->used(), charged);
}

// Each list of the driver fails once.
TEST_F(FaultyDeviceTest, FinalizeWithCollectivesCanBeRepeated) {
  const Ref<Buffer> buffer = ASSERT_VALUE(allocate());
  const Ref<Channel> channel = ASSERT_VALUE(Channel::open(LocalWorld::create(1)->provider(0), {}));
  constexpr int kRounds = 3;
  const auto budget = make<Budget>(uint64_t{1} << 20);
  const Ref<CommandBuffer> commands = ASSERT_VALUE(
      CommandBuffer::create(device, 0, kTransfer | kDispatchCategory, kAnyQueue, 0, budget.get()));
  CommandBuffer::Collective collective;
  collective.channel = channel.get();
  collective.operation = HALYARD_COLLECTIVE_BROADCAST | HALYARD_COLLECTIVE_SINT_32 << 16;
  collective.send = {buffer.get(), 0, 0, 4};
  collective.receive = {buffer.get(), 0, 0, 4};
  collective.element_count = 1;
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_OK(commands->fill({buffer.get(), 0, 4, 4}, 0, 4));
    EXPECT_OK(commands->barrier(1, 1));
    EXPECT_OK(commands->collective(collective));
    EXPECT_OK(commands->barrier(1, 1));
  }
  const uint64_t charged = budget->used();
  for (int at = 1; at <= kRounds; ++at) {
    inject(FAULTY_command_list_create, FAULTY_REFUSE, HALYARD_RESOURCE_EXHAUSTED, at);
    EXPECT_FAILS(RESOURCE_EXHAUSTED, "injected fault", commands->finalize());
    EXPECT_EQ(commands->state(), CommandBuffer::State::recording);
    EXPECT_EQ(faulty().live(FAULTY_LIST), 0);
    EXPECT_EQ(budget->used(), charged);
  }
  EXPECT_OK(commands->finalize());
  EXPECT_EQ(faulty().live(FAULTY_LIST), kRounds);
  ASSERT_EQ(commands->pieces().size(), size_t{2 * kRounds});
  for (uint32_t i = 0; i < commands->pieces().size(); ++i) {
    const CommandBuffer::Piece& piece = commands->pieces()[i];
    EXPECT_EQ(piece.list != nullptr, i % 2 == 0) << i;
    EXPECT_EQ(piece.collective_count, i % 2) << i;
    if (i % 2 == 1) {
      EXPECT_EQ(piece.first_collective, i / 2) << i;
    }
  }
}

TEST_F(FaultyDeviceTest, InvalidGrades) {
  const uint8_t data[] = {1, 2, 3, 4};
  const auto create = [&] { return Executable::create(device, kAnyQueue, "vmvx", data, nullptr, {}); };
  inject(FAULTY_executable_grade, FAULTY_NONSENSE, 0);  // an unterminated reason
  EXPECT_FAILS(NOT_FOUND, std::string(256, 'x'), create());
  inject(FAULTY_executable_grade, FAULTY_NONSENSE, 2);  // a reason that is not text
  EXPECT_FAILS(NOT_FOUND, "'vmvx'", create());
  inject(FAULTY_executable_grade, FAULTY_UNTOUCHED);
  EXPECT_FAILS(NOT_FOUND, "'vmvx'", create());
}

void executables_that_cannot_be(const Ref<Device>& device) {
  const uint8_t data[] = {'a', 'd', 'd', ' ', '1', ' ', '1'};
  const auto create = [&] { return Executable::create(device, kAnyQueue, "fake", data, nullptr, {}); };
  EXPECT_OK(create());
  inject(FAULTY_executable_create, FAULTY_UNTOUCHED);
  EXPECT_FAILS(INTERNAL, "executable_create", create());
  inject(FAULTY_executable_function_count, FAULTY_NONSENSE);
  EXPECT_FAILS(INTERNAL, "executable_function_count", create());
  for (const int32_t how : {0, 1}) {  // a null name, a name longer than memory
    inject(FAULTY_executable_function_info, FAULTY_NONSENSE, how);
    EXPECT_FAILS(INTERNAL, "executable_function_info", create());
  }
  inject(FAULTY_executable_function_info, FAULTY_NONSENSE,
         2);  // arbitrary bytes are a valid name
  EXPECT_OK(create());
  inject(FAULTY_executable_function_info, FAULTY_UNTOUCHED);
  EXPECT_OK(create());
}

// With the fake driver, because the null driver has no executables.
TEST_F(FaultyOpenTest, InvalidExecutables) {
  wrap_driver(sample_path("fake"), "fake");
  {
    const Ref<Device> device = *open();
    executables_that_cannot_be(device);
  }
}
TEST_F(FaultyDeviceTest, InvalidCodes) {
  for (const int32_t code : {0, 17, 99, -5}) {
    inject(FAULTY_memory_allocate, FAULTY_REFUSE, code);
    EXPECT_FAILS(UNKNOWN, "injected fault", allocate());
  }
}

// The signals of failed work fail, even if the driver forgets them.
TEST_F(FaultyDeviceTest, FailuresWithoutFailedSignals) {
  const Ref<Fence> done = make_fence(device);
  inject(FAULTY_queue_submit, FAULTY_COMPLETE_ONLY, HALYARD_DATA_LOSS);
  static_cast<void>(queue_barrier({*device, kAnyQueue, nullptr, done.get()}));
  EXPECT_FAILS(DATA_LOSS, "injected fault", done->query());
}

// After the loss of a device everything fails, including waiting work; its objects can be released and the
// device opened again.
TEST_F(FaultyDeviceTest, ALostDevice) {
  const Ref<Buffer> buffer = *allocate();
  const auto [start, later] = make_fences<2>(device);
  ASSERT_TRUE(queue_fill({*device, kAnyQueue, start.get(), later.get()}, *buffer, 0, 16, 1, 4));
  const Ref<Fence> done = make_fence(device);
  inject(FAULTY_queue_submit, FAULTY_LOSE_DEVICE, 0, faulty().calls(FAULTY_queue_submit) + 1);
  static_cast<void>(queue_barrier({*device, kAnyQueue, nullptr, done.get()}));
  for (const Ref<Fence>& fence : {start, later, done})
    EXPECT_FAILS(UNAVAILABLE, "injected fault", await(std::vector{fence.get()}, kWaitForever));
  EXPECT_FAILS(UNAVAILABLE, "injected fault", allocate());
  EXPECT_FAILS(UNAVAILABLE, "injected fault", Fence::create(device));
  EXPECT_FAILS(UNAVAILABLE, "injected fault", queue_barrier({*device}));
  faulty().reset();
  EXPECT_OK(open());
}

// Unreachable waits fail, and release all work that depends on them.
TEST_F(FaultyDeviceTest, WorkWhoseWaitIsDropped) {
  const Ref<Fence> last = make_fence(device);
  {
    const Ref<Buffer> buffer = *allocate();
    Ref<Fence> start = make_fence(device);
    const Ref<Fence> middle = make_fence(device);
    ASSERT_TRUE(queue_fill({*device, kAnyQueue, start.get(), middle.get()}, *buffer, 0, 16, 1, 4));
    ASSERT_TRUE(queue_barrier({*device, kAnyQueue, middle.get(), last.get()}));
    EXPECT_FAILS(DEFERRED, "", last->query());
    start = nullptr;
    EXPECT_FAILS(ABORTED, "value 1", last->query());
  }
  EXPECT_FAILS(ABORTED, "'faulty://'", last->query());
  EXPECT_EQ(faulty().live(FAULTY_MEMORY), 0);
}

// The same across drivers: for a bridge, and for work held for memory that does not exist yet.
TEST_F(FaultyDeviceTest, WorkOfAnotherDriverWhoseWaitIsDropped) {
  const Ref<Device> other = *open();  // a separate instance
  const auto [bridged, held] = make_fences<2>(other);
  const Ref<Buffer> result = *Buffer::allocate(*other, kAnyQueue, kMapped, kPlainUsage, 16);
  {
    const Ref<Fence> start = make_fence(device);
    ASSERT_TRUE(queue_barrier({*other, kAnyQueue, start.get(), bridged.get()}));
    const Ref<Buffer> promised =
        *queue_alloca({*device, kAnyQueue, start.get(), nullptr}, 0, kMapped, kPlainUsage, 16, 0);
    ASSERT_TRUE(queue_copy({*other, kAnyQueue, start.get(), held.get()}, *promised, 0, *result, 0, 16));
  }
  EXPECT_FAILS(ABORTED, "value 1", bridged->query());
  EXPECT_FAILS(ABORTED, "value 1", held->query());
}

// A reached semaphore does not fail when it is destroyed while work that waited for it is still in flight.
TEST_F(FaultyDeviceTest, ReachedWaitsMayBeDestroyed) {
  const auto [open_end, done] = make_fences<2>(device);
  {
    const Ref<Fence> reached = make_fence(device);
    ASSERT_TRUE(reached->signal());
    Fence* const both[] = {reached.get(), open_end.get()};
    ASSERT_TRUE(queue_barrier({*device, kAnyQueue, Fence::join(both)->get(), done.get()}));
  }
  EXPECT_FAILS(DEFERRED, "", done->query());
  ASSERT_TRUE(open_end->signal());
  EXPECT_OK(done->query());
}

}  // namespace
}  // namespace halyard::hal
