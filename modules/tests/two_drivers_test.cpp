// Two drivers from two shared libraries: work of one waits for work of the other, and uses its memory without
// a copy.
#include <gtest/gtest.h>

#include <thread>

#include "hal/device/sharing.h"
#include "hal/queue/bridge.h"
#include "hal/queue/wait.h"
#include "kernels.h"
#include "modules/hal_functions.h"
#include "testing.h"

namespace halyard::modules {
namespace {

using Words = std::vector<int32_t>;
constexpr uint32_t kUsage = 0x3000C03;

class TwoDrivers : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    local = ASSERT_VALUE(open_device(GetParam()));
    null = ASSERT_VALUE(open_device("null"));
    ASSERT_NE(&local->library(), &null->library());
    const Ref<vm::Buffer> bytes = assembled_kernels();
    executable = ASSERT_VALUE(
        hal::Executable::create(local, hal::kAnyQueue, "vmvx-bytecode-fb", bytes->span(), bytes, {}));
  }

  static Ref<hal::Buffer> words(hal::Device& device, const Words& values) {
    return buffer_of(device, values, kUsage, 0x32);
  }
  static Ref<hal::Fence> fence(const Ref<hal::Device>& device) { return *hal::Fence::create(device); }
  static void expect_reached(const Ref<hal::Fence>& fence) {
    hal::Fence* const fences[] = {fence.get()};
    const Status status = hal::await(fences, hal::kWaitForever);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  static uint64_t allocated(const hal::Device& device) {
    const auto statistics = device.statistics();
    EXPECT_TRUE(statistics);
    return statistics->host_bytes_allocated + statistics->device_bytes_allocated;
  }

  // scale: word i = i * 3 + 1
  Ref<hal::CommandBuffer> record(hal::Buffer* target, uint32_t slot) {
    auto commands = *hal::CommandBuffer::create(local, 0, hal::kTransfer | hal::kDispatchCategory,
                                                hal::kAnyQueue, target ? 0 : slot + 1);
    const uint32_t constants[] = {3, 1};
    const hal::BufferRange bindings[] = {{target, slot, 0, 16}};
    const Result<> recorded = commands->dispatch({.executable = executable.get(),
                                                  .function = 1,
                                                  .workgroups = {4, 1, 1},
                                                  .constants = constants,
                                                  .bindings = bindings});
    EXPECT_TRUE(recorded) << recorded.error().text();
    EXPECT_TRUE(commands->finalize());
    return commands;
  }

  Ref<hal::Device> local;
  Ref<hal::Device> null;
  Ref<hal::Executable> executable;
};

TEST_P(TwoDrivers, DispatchesWriteTheOthersMemoryInPlace) {
  EXPECT_EQ(hal::sharing(*null, *local), hal::Sharing::host_memory);
  const Ref<hal::Buffer> target = words(*null, Words(4));
  const uint64_t before = allocated(*local);
  const Ref<hal::Fence> direct = fence(local);
  ASSERT_TRUE(
      hal::queue_execute({*local, hal::kAnyQueue, nullptr, direct.get()}, *record(target.get(), 0), {}));
  expect_reached(direct);
  EXPECT_EQ(contents_of<int32_t>(*target), (Words{1, 4, 7, 10}));

  ASSERT_TRUE(target->write(0, Words(4).data(), 16));
  const hal::Binding table[] = {{}, {}, {target.get(), 0, hal::kWholeLength}};
  const Ref<hal::Fence> slot = fence(null);  // signalled by the host
  ASSERT_TRUE(hal::queue_execute({*local, hal::kAnyQueue, nullptr, slot.get()}, *record(nullptr, 2), table));
  expect_reached(slot);
  EXPECT_EQ(contents_of<int32_t>(*target), (Words{1, 4, 7, 10}));
  EXPECT_EQ(allocated(*local), before) << "nothing is copied";
}

// Both occur first in the same command.
TEST_P(TwoDrivers, CommandsTellTwoBuffersOfTheOtherApart) {
  const Ref<hal::Buffer> from = words(*null, {1, 2, 3, 4});
  const Ref<hal::Buffer> to = words(*null, {5, 6, 7, 8});
  const Ref<hal::CommandBuffer> commands =
      *hal::CommandBuffer::create(local, 0, hal::kTransfer, hal::kAnyQueue, 0);
  ASSERT_TRUE(commands->copy({from.get(), 0, 0, 8}, {to.get(), 0, 4, 8}));
  ASSERT_TRUE(commands->finalize());
  const Ref<hal::Fence> done = fence(local);
  ASSERT_TRUE(hal::queue_execute({*local, hal::kAnyQueue, nullptr, done.get()}, *commands, {}));
  expect_reached(done);
  EXPECT_EQ(contents_of<int32_t>(*to), (Words{5, 1, 2, 8}));
  EXPECT_EQ(contents_of<int32_t>(*from), (Words{1, 2, 3, 4}));
}

// Slots of the other driver's buffers follow those of the binding table, whose number is any that the program
// gives.
TEST_P(TwoDrivers, AnyBindingCapacityLeavesSlotsForBuffersOfTheOther) {
  const Ref<hal::Buffer> first = words(*null, {1, 2});
  const Ref<hal::Buffer> second = words(*null, {3, 4});
  for (const uint32_t capacity : {UINT32_MAX, UINT32_MAX - 1, hal::kMaxSlots + 1, hal::kMaxSlots, 1u}) {
    const Ref<hal::CommandBuffer> commands =
        *hal::CommandBuffer::create(local, 0, hal::kTransfer, hal::kAnyQueue, capacity);
    ASSERT_TRUE(commands->fill({first.get(), 0, 8, hal::kWholeLength}, 0, 4)) << "nothing, but it has a slot";
    ASSERT_TRUE(commands->fill({second.get(), 0, 0, 8}, capacity, 4));
    ASSERT_TRUE(commands->fill({nullptr, 0, 0, 4}, 9, 4));
    ASSERT_TRUE(commands->finalize());
    EXPECT_LE(commands->slots().size(), hal::kMaxSlots + size_t{2});
    const hal::CommandList list = commands->list();
    EXPECT_EQ(list.buffers, std::vector<hal::Allocation*>{&second->allocation()});
    const Ref<hal::Fence> done = fence(local);
    const hal::Binding table[] = {{first.get(), 0, hal::kWholeLength}};
    ASSERT_OK(hal::queue_execute({*local, hal::kAnyQueue, nullptr, done.get()}, *commands, table));
    expect_reached(done);
    EXPECT_EQ(contents_of<int32_t>(*first), (Words{9, 2}));
    EXPECT_EQ(contents_of<int32_t>(*second), Words(2, static_cast<int32_t>(capacity)));
  }
}

TEST_P(TwoDrivers, BuffersOfTheOtherAreCharged) {
  const Ref<hal::Buffer> buffer = words(*null, {1, 2});
  const auto budget = make<Budget>(uint64_t{1} << 20);
  {
    const Ref<hal::CommandBuffer> commands =
        *hal::CommandBuffer::create(local, 0, hal::kTransfer, hal::kAnyQueue, UINT32_MAX, budget.get());
    EXPECT_FAILS(RESOURCE_EXHAUSTED, "a command buffer", commands->fill({buffer.get(), 0, 0, 8}, 0, 4));
  }
  EXPECT_EQ(budget->used(), 0u);
  const Ref<hal::CommandBuffer> commands =
      *hal::CommandBuffer::create(local, 0, hal::kTransfer, hal::kAnyQueue, 0, budget.get());
  const uint64_t before = budget->used();
  EXPECT_TRUE(commands->fill({buffer.get(), 0, 8, hal::kWholeLength}, 0, 4));  // retains the buffer
  EXPECT_GT(budget->used(), before);
}

TEST_P(TwoDrivers, CopiesInBothDirections) {
  const Ref<hal::Buffer> here = words(*local, {1, 2, 3, 4});
  const Ref<hal::Buffer> there = words(*null, {5, 6, 7, 8});
  const Ref<hal::Fence> first = fence(null);
  const Ref<hal::Fence> second = fence(local);
  ASSERT_TRUE(hal::queue_copy({*null, hal::kAnyQueue, nullptr, first.get()}, *here, 0, *there, 4, 8));
  ASSERT_TRUE(hal::queue_copy({*local, hal::kAnyQueue, first.get(), second.get()}, *there, 0, *here, 8, 8));
  expect_reached(second);
  EXPECT_EQ(contents_of<int32_t>(*there), (Words{5, 1, 2, 8}));
  EXPECT_EQ(contents_of<int32_t>(*here), (Words{1, 2, 5, 1}));
}

// All work is queued before any can run: the alloca's memory does not exist yet when the work that uses it on
// the other device is submitted.
TEST_P(TwoDrivers, WorkIsHeldUntilTheOthersAllocaHasGivenBytes) {
  const Ref<hal::Fence> start = fence(local);
  const Ref<hal::Fence> given = fence(null);
  const Ref<hal::Fence> done = fence(local);
  const Ref<hal::Fence> copied = fence(null);
  const Ref<hal::Buffer> target =
      *hal::queue_alloca({*null, hal::kAnyQueue, start.get(), given.get()}, 0, 0x32, kUsage, 16, 0);
  const Ref<hal::Buffer> result = words(*local, Words(4));
  ASSERT_TRUE(
      hal::queue_execute({*local, hal::kAnyQueue, given.get(), done.get()}, *record(target.get(), 0), {}));
  ASSERT_TRUE(
      hal::queue_copy({*local, hal::kAnyQueue, done.get(), copied.get()}, *target, 0, *result, 0, 16));
  EXPECT_EQ(copied->query().code(), Code::DEFERRED);
  ASSERT_TRUE(start->signal());
  expect_reached(copied);
  EXPECT_EQ(contents_of<int32_t>(*result), (Words{1, 4, 7, 10}));
}

TEST_P(TwoDrivers, FailureOfTheOtherReachesWorkThatIsHeld) {
  const Ref<hal::Fence> start = fence(local);
  const Ref<hal::Fence> given = fence(null);
  const Ref<hal::Fence> done = fence(local);
  const Ref<hal::Buffer> target =
      *hal::queue_alloca({*null, hal::kAnyQueue, start.get(), given.get()}, 0, 0x32, kUsage, 16, 0);
  ASSERT_TRUE(
      hal::queue_execute({*local, hal::kAnyQueue, given.get(), done.get()}, *record(target.get(), 0), {}));
  start->fail(Status(Code::DATA_LOSS, "the disk is gone"));
  hal::Fence* const fences[] = {done.get()};
  EXPECT_FAILS(DATA_LOSS, "the disk is gone", hal::await(fences, hal::kWaitForever));
}

// Memory that the other driver still uses is not freed; later uses are refused.
TEST_P(TwoDrivers, DeallocaOfSharedMemory) {
  const Ref<hal::Fence> given = fence(null);
  const Ref<hal::Buffer> shared =
      *hal::queue_alloca({*null, hal::kAnyQueue, nullptr, given.get()}, 0, 0x32, kUsage, 16, 0);
  expect_reached(given);
  const Ref<hal::CommandBuffer> commands = record(shared.get(), 0);
  ASSERT_TRUE(hal::queue_execute({*local}, *commands, {}));
  ASSERT_TRUE(hal::queue_dealloca({*null}, *shared, 0));
  const Ref<hal::Fence> again = fence(local);
  ASSERT_TRUE(hal::queue_execute({*local, hal::kAnyQueue, nullptr, again.get()}, *commands, {}));
  expect_reached(again);

  const Ref<hal::Buffer> gone = *hal::queue_alloca({*null}, 0, 0x32, kUsage, 16, 0);
  ASSERT_TRUE(hal::queue_dealloca({*null}, *gone, 0));
  EXPECT_FAILS(FAILED_PRECONDITION, "after its dealloca",
               hal::queue_execute({*local}, *record(gone.get(), 0), {}));
}

// The dealloca is queued while earlier work is held and has no handle yet.
TEST_P(TwoDrivers, DeallocaBehindWorkThatIsHeld) {
  const Ref<hal::Fence> start = fence(local);
  const Ref<hal::Fence> given = fence(null);
  const Ref<hal::Fence> done = fence(local);
  const Ref<hal::Fence> gone = fence(null);
  const Ref<hal::Buffer> target =
      *hal::queue_alloca({*null, hal::kAnyQueue, start.get(), given.get()}, 0, 0x32, kUsage, 16, 0);
  ASSERT_TRUE(
      hal::queue_execute({*local, hal::kAnyQueue, given.get(), done.get()}, *record(target.get(), 0), {}));
  ASSERT_TRUE(hal::queue_dealloca({*null, hal::kAnyQueue, done.get(), gone.get()}, *target, 0));
  ASSERT_TRUE(start->signal());
  expect_reached(gone);
}

// Submissions alternate between the devices, each waiting for the previous one, and the first for a final
// signal.
TEST_P(TwoDrivers, ChainsAcrossDriversAreQueuedBeforeTheyStart) {
  constexpr int kLength = 200;
  const Ref<hal::Buffer> buffers[] = {words(*local, {1}), words(*null, {0})};
  const Ref<hal::Device> devices[] = {local, null};
  const Ref<hal::Fence> start = fence(null);
  Ref<hal::Fence> last = start;
  for (int i = 0; i < kLength; ++i) {
    const Ref<hal::Fence> next = fence(devices[(i + 1) % 2]);
    ASSERT_TRUE(hal::queue_copy({*devices[i % 2], hal::kAnyQueue, last.get(), next.get()}, *buffers[i % 2], 0,
                                *buffers[(i + 1) % 2], 0, 4));
    last = next;
  }
  std::thread([&] { EXPECT_TRUE(start->signal()); }).join();
  expect_reached(last);
  EXPECT_EQ(contents_of<int32_t>(*buffers[1]), Words{1});
}

// The null driver can both import and export host memory, so either device can own it.
TEST_P(TwoDrivers, TheFirstDeviceWhoseMemoryAllCanUseIsChosen) {
  ModuleCaller hal(create_hal_module({.devices = {local, null}}));
  auto chosen =
      ASSERT_VALUE(hal.call("allocator.select", "0iiICrID_rI", {0x32, 3, 0, Entries{null, 4, local, 2}}));
  EXPECT_EQ(chosen[0].object(), null.get());
  EXPECT_FAILS(INVALID_ARGUMENT, "null",
               hal.status("allocator.select", "0iiICrID_rI", {0, 0, 0, Entries{null, 4, nullptr, 2}}));
}

INSTANTIATE_TEST_SUITE_P(Local, TwoDrivers, ::testing::Values("local-sync", "local-task"),
                         [](const auto& of) { return std::string(of.param).replace(5, 1, "_"); });

}  // namespace
}  // namespace halyard::modules
