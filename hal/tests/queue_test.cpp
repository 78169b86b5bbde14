// Queue work: results, order, checks, lifetimes, and bridges between drivers.
#include "hal/queue/queue.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "base/bytes.h"
#include "hal/device/callback_scope.h"
#include "hal/device/sharing.h"
#include "hal/queue/wait.h"
#include "hal_test.h"

namespace halyard::hal {
namespace {

using Values = std::vector<uint8_t>;

class QueueTest : public FakeDriverTest {
 protected:
  const Ref<Device> device_ = open_fake_device();
};

// ---- Every operation, in the driver and emulated by the host ----

class QueueOperationTest : public FakeDriverTest, public testing::WithParamInterface<std::string> {
 protected:
  const Ref<Device> device_ = open_fake_device(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Paths, QueueOperationTest, testing::Values(std::string(), std::string("bare")),
                         [](const auto& test) {
                           return test.param.empty() ? std::string("complete") : test.param;
                         });

TEST_P(QueueOperationTest, Barrier) {
  const Ref<Fence> fence = make_fence(device_);
  EXPECT_OK(queue_barrier({*device_, kAnyQueue, nullptr, fence.get()}));
  EXPECT_OK(fence->query());
  EXPECT_OK(queue_barrier({*device_, 0, fence.get(), nullptr}));
}

TEST_P(QueueOperationTest, FillRepeatsThePattern) {
  const Ref<Buffer> buffer = make_buffer(*device_, Values(8, 9));
  EXPECT_OK(queue_fill({*device_}, *buffer, 0, 4, 0xFFFFFFFFFFFF0201, 2));
  EXPECT_EQ(bytes_of(*buffer), (Values{1, 2, 1, 2, 9, 9, 9, 9}));
  EXPECT_OK(queue_fill({*device_}, *buffer, 4, 4, 0x04030201, 4));
  EXPECT_EQ(bytes_of(*buffer), (Values{1, 2, 1, 2, 1, 2, 3, 4}));
  EXPECT_OK(queue_fill({*device_}, *buffer, 5, kWholeLength, 7, 1));
  EXPECT_EQ(bytes_of(*buffer), (Values{1, 2, 1, 2, 1, 7, 7, 7}));
}

TEST_P(QueueOperationTest, UpdateAndCopy) {
  const Ref<Buffer> allocation = make_buffer(*device_, Values(8));
  const Ref<Buffer> buffer = allocation->subspan(2, 6).value();
  EXPECT_OK(queue_update({*device_}, Values{1, 2, 3}, *buffer, 1));
  EXPECT_EQ(bytes_of(*allocation), (Values{0, 0, 0, 1, 2, 3, 0, 0}));
  const Ref<Buffer> target = make_buffer(*device_, Values(4));
  EXPECT_OK(queue_copy({*device_}, *buffer, 1, *target, 0, 3));
  EXPECT_EQ(bytes_of(*target), (Values{1, 2, 3, 0}));
  EXPECT_OK(queue_copy({*device_}, *buffer, 2, *target, 0, kWholeLength));
  EXPECT_EQ(bytes_of(*target), (Values{2, 3, 0, 0}));
}

TEST_P(QueueOperationTest, ReadAndWriteFiles) {
  Values bytes = {1, 2, 3, 4, 5};
  const Ref<File> file = File::from_memory(bytes, kRead | kWrite, nullptr);
  const Ref<Buffer> buffer = make_buffer(*device_, Values(4));
  EXPECT_OK(queue_read({*device_}, *file, 2, *buffer, 1, 3));
  EXPECT_EQ(bytes_of(*buffer), (Values{0, 3, 4, 5}));
  const Ref<Fence> fence = make_fence(device_);
  EXPECT_OK(queue_write({*device_, kAnyQueue, nullptr, fence.get()}, *buffer, 1, *file, 0, 2));
  EXPECT_OK(fence->query());
  EXPECT_EQ(bytes, (Values{3, 4, 3, 4, 5}));
}

TEST_P(QueueOperationTest, AReadSeesWhatItWaitedFor) {
  Values bytes = {1, 2, 3, 4};
  const Ref<File> file = File::from_memory(bytes, kRead, nullptr);
  const Ref<Buffer> buffer = make_buffer(*device_, Values(4));
  const auto [written, failed, seen] = make_fences<3>(device_);
  EXPECT_OK(queue_read({*device_, kAnyQueue, written.get(), seen.get()}, *file, 0, *buffer, 0, 4));
  EXPECT_EQ(seen->query().code(), Code::DEFERRED);
  bytes = {5, 6, 7, 8};
  EXPECT_OK(written->signal());
  EXPECT_OK(seen->query());
  EXPECT_EQ(bytes_of(*buffer), (Values{5, 6, 7, 8}));

  const auto [after, other] = make_fences<2>(device_);
  EXPECT_OK(queue_read({*device_, kAnyQueue, failed.get(), after.get()}, *file, 0, *buffer, 0, 4));
  failed->fail(Status(Code::ABORTED, "the writer fails"));
  EXPECT_EQ(after->query().code(), Code::ABORTED);
  EXPECT_FAILS(OUT_OF_RANGE, "4 bytes at offset 1",
               queue_read({*device_, kAnyQueue, other.get(), nullptr}, *file, 1, *buffer, 0, 4));
}

TEST_P(QueueOperationTest, AllocaAndDealloca) {
  const auto [allocated, freed] = make_fences<2>(device_);
  const Ref<Buffer> buffer =
      queue_alloca({*device_, kAnyQueue, nullptr, allocated.get()}, 0, 0, kPlainUsage, 12, 0).value();
  EXPECT_EQ(buffer->length(), 12u);
  EXPECT_OK(allocated->query());
  EXPECT_OK(queue_fill({*device_, kAnyQueue, allocated.get(), nullptr}, *buffer, 0, 12, 5, 1));
  EXPECT_EQ(bytes_of(*buffer), Values(12, 5));
  EXPECT_OK(
      queue_dealloca({*device_, kAnyQueue, allocated.get(), freed.get()}, *buffer, kDeallocaPreferOrigin));
  EXPECT_OK(freed->query());
  EXPECT_OK(queue_alloca({*device_}, 0, 0, 0, 0, 0));
}

TEST_P(QueueOperationTest, ExecuteWithAndWithoutSlots) {
  const Ref<Executable> executable = load_fake(device_, "add 1 2\n");
  const Ref<Buffer> direct = make_buffer(*device_, Values(4));
  const Ref<Buffer> bound = make_buffer(*device_, Values(16));
  const Ref<CommandBuffer> commands = record(device_, 0, 2);
  const uint32_t constants[] = {10, 20};
  const BufferRange on_buffer[] = {{direct.get(), 0, 0, 4}};
  const BufferRange on_slot[] = {{nullptr, 1, 4, 4}};
  EXPECT_OK(commands->dispatch({executable.get(), 0, {2, 3, 1}, constants, on_buffer, nullptr}));
  EXPECT_OK(commands->barrier(28, 13));
  EXPECT_OK(commands->dispatch({executable.get(), 0, {1, 1, 1}, constants, on_slot, nullptr}));
  EXPECT_OK(commands->finalize());
  const Binding table[] = {{}, {bound.get(), 4, 8}, {}};
  EXPECT_OK(queue_execute({*device_}, *commands, table));
  EXPECT_EQ(bytes_of(*direct), (Values{36, 0, 0, 0}));
  EXPECT_EQ(bytes_of(*bound), (Values{0, 0, 0, 0, 0, 0, 0, 0, 31, 0, 0, 0, 0, 0, 0, 0}));
  const Binding rest[] = {{}, {bound.get(), 8, kWholeLength}};
  EXPECT_OK(queue_execute({*device_}, *commands, rest));
  EXPECT_EQ(bytes_of(*bound), (Values{0, 0, 0, 0, 0, 0, 0, 0, 31, 0, 0, 0, 31, 0, 0, 0}));
}

TEST_P(QueueOperationTest, IndirectCountsAreReadWhenExecuted) {
  const Ref<Executable> executable = load_fake(device_, "add 1 0\n");
  const Ref<Buffer> counts = make_buffer(*device_, Values(16));
  const Ref<Buffer> sum = make_buffer(*device_, Values(4));
  const Ref<CommandBuffer> commands = record(device_);
  const BufferRange range = {counts.get(), 0, 4, 0};
  const BufferRange bindings[] = {{sum.get(), 0, 0, 4}};
  EXPECT_OK(commands->dispatch({executable.get(), 0, {}, {}, bindings, &range}));
  EXPECT_OK(commands->finalize());
  EXPECT_OK(queue_update({*device_}, Values{2, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0}, *counts, 4));
  EXPECT_OK(queue_execute({*device_}, *commands, {}));
  EXPECT_EQ(bytes_of(*sum), (Values{10, 0, 0, 0}));
}

// ---- Arguments ----

TEST_F(QueueTest, ZeroLengthOnlyChainsTheFences) {
  const Ref<Buffer> buffer = make_buffer(*device_, Values(4));
  const Ref<File> file = File::from_memory({}, kRead | kWrite, nullptr);
  const auto expect_barrier = [&](auto submit) {
    fake().reset();
    const Ref<Fence> fence = make_fence(device_);
    EXPECT_OK(submit(QueuePoint{*device_, kAnyQueue, nullptr, fence.get()}));
    EXPECT_OK(fence->query());
    EXPECT_EQ(fake_log(), "barrier\n");
  };
  expect_barrier([&](const QueuePoint& point) { return queue_fill(point, *buffer, 99, 0, 0, 3); });
  expect_barrier([&](const QueuePoint& point) { return queue_fill(point, *buffer, 4, kWholeLength, 0, 4); });
  expect_barrier([&](const QueuePoint& point) { return queue_update(point, {}, *buffer, 99); });
  expect_barrier([&](const QueuePoint& point) { return queue_copy(point, *buffer, 99, *buffer, 99, 0); });
  expect_barrier([&](const QueuePoint& point) { return queue_read(point, *file, 99, *buffer, 99, 0); });
  expect_barrier([&](const QueuePoint& point) { return queue_write(point, *buffer, 99, *file, 99, 0); });
}

TEST_F(QueueTest, ArgumentErrorsLeaveTheSignalFenceAlone) {
  const Ref<Buffer> buffer = make_buffer(*device_, Values(8));
  const Ref<Buffer> source =
      make_buffer(*device_, Values(8), HALYARD_USAGE_TRANSFER_SOURCE | HALYARD_USAGE_MAPPING_SCOPED);
  const Ref<Buffer> target =
      make_buffer(*device_, Values(8), HALYARD_USAGE_TRANSFER_TARGET | HALYARD_USAGE_MAPPING_SCOPED);
  Values bytes(4);
  const Ref<File> read_only = File::from_memory(bytes, kRead, nullptr);
  const Ref<File> write_only = File::from_memory(bytes, kWrite, nullptr);
  const Ref<Fence> failed = make_fence(device_);
  failed->fail(Status(Code::DATA_LOSS, "failed before"));
  const Ref<Fence> signal = make_fence(device_);
  const QueuePoint point = {*device_, kAnyQueue, failed.get(),
                            signal.get()};  // arguments are checked before the wait fence

  EXPECT_FAILS(INVALID_ARGUMENT, "1, 2 or 4 bytes, found 3", queue_fill(point, *buffer, 0, 6, 0, 3));
  EXPECT_FAILS(INVALID_ARGUMENT, "1, 2 or 4 bytes, found 8", queue_fill(point, *buffer, 0, 8, 0, 8));
  EXPECT_FAILS(INVALID_ARGUMENT, "4 bytes, found offset 2 and length 4",
               queue_fill(point, *buffer, 2, 4, 0, 4));
  EXPECT_FAILS(INVALID_ARGUMENT, "4 bytes, found offset 0 and length 6",
               queue_fill(point, *buffer, 0, 6, 0, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "", queue_fill(point, *buffer, 4, 8, 0, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "", queue_fill(point, *buffer, 12, kWholeLength, 0, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "", queue_fill(point, *buffer, UINT64_MAX - 3, 8, 0, 4));
  EXPECT_FAILS(PERMISSION_DENIED, "TRANSFER_TARGET", queue_fill(point, *source, 0, 8, 0, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "", queue_update(point, bytes, *buffer, 5));
  EXPECT_FAILS(PERMISSION_DENIED, "TRANSFER_TARGET", queue_update(point, bytes, *source, 0));
  EXPECT_FAILS(OUT_OF_RANGE, "copy source", queue_copy(point, *buffer, 4, *target, 0, 8));
  EXPECT_FAILS(OUT_OF_RANGE, "copy target", queue_copy(point, *buffer, 0, *target, 4, 8));
  EXPECT_FAILS(PERMISSION_DENIED, "TRANSFER_SOURCE", queue_copy(point, *target, 0, *buffer, 0, 4));
  EXPECT_FAILS(PERMISSION_DENIED, "TRANSFER_TARGET", queue_copy(point, *buffer, 0, *source, 0, 4));
  EXPECT_FAILS(INVALID_ARGUMENT, "do not overlap", queue_copy(point, *buffer, 0, *buffer, 2, 4));
  EXPECT_FAILS(PERMISSION_DENIED, "allows READ, found one that allows WRITE",
               queue_read(point, *write_only, 0, *buffer, 0, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "read 4 bytes at offset 2 of a file of 4 bytes",
               queue_read(point, *read_only, 2, *buffer, 0, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "read 4 bytes at offset 18446744073709551615 of a file of 4 bytes",
               queue_read(point, *read_only, UINT64_MAX, *buffer, 0, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "", queue_read(point, *read_only, 0, *buffer, 6, 4));
  EXPECT_FAILS(PERMISSION_DENIED, "allows WRITE, found one that allows READ",
               queue_write(point, *buffer, 0, *read_only, 0, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "write 8 bytes at offset 0 of a file of 4 bytes",
               queue_write(point, *buffer, 0, *write_only, 0, 8));
  EXPECT_FAILS(OUT_OF_RANGE, "", queue_write(point, *buffer, 6, *write_only, 0, 4));
  EXPECT_FAILS(UNIMPLEMENTED, "found pool 1", queue_alloca(point, 1, 0, 0, 4, 0));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "while allocating 18446744073709551615 bytes",
               queue_alloca(point, 0, 0, 0, UINT64_MAX, 0));
  EXPECT_EQ(signal->query().code(), Code::DEFERRED);
  EXPECT_EQ(fake_log(), "");
}

TEST_F(QueueTest, TransfersNeedAccessAndDeviceVisibleMemory) {
  const Ref<Buffer> constant = make_buffer(*device_, Values(8));
  constant->allocation().access = kRead;
  EXPECT_FAILS(PERMISSION_DENIED, "", queue_fill({*device_}, *constant, 0, 8, 0, 4));
  EXPECT_FAILS(PERMISSION_DENIED, "", queue_update({*device_}, Values(2), *constant, 0));
  const Ref<Buffer> host_only = make_buffer(*device_, Values(8));
  host_only->allocation().memory_type = HALYARD_MEMORY_HOST_LOCAL;
  EXPECT_FAILS(PERMISSION_DENIED, "DEVICE_VISIBLE", queue_fill({*device_}, *host_only, 0, 8, 0, 4));
  EXPECT_FAILS(PERMISSION_DENIED, "DEVICE_VISIBLE", queue_copy({*device_}, *host_only, 0, *constant, 0, 8));
}

TEST_F(QueueTest, CommandBuffersOfOtherDevicesAreRefused) {
  const Ref<Device> other = open_fake_device(open_fake_library());
  const Ref<CommandBuffer> commands = record(device_);
  EXPECT_OK(commands->finalize());
  EXPECT_FAILS(INVALID_ARGUMENT, "recorded for device", queue_execute({*other}, *commands, {}));
}

// ---- Execution ----

TEST_F(QueueTest, ExecuteChecksTheRecording) {
  const Ref<CommandBuffer> commands = record(device_);
  EXPECT_FAILS(FAILED_PRECONDITION, "being recorded", queue_execute({*device_}, *commands, {}));
  EXPECT_OK(commands->finalize());
  EXPECT_OK(queue_execute({*device_}, *commands, {}));
  EXPECT_OK(queue_execute({*device_}, *commands, {}));
  const Binding ignored[] = {{}, {}};
  EXPECT_OK(queue_execute({*device_}, *commands, ignored));

  const Ref<CommandBuffer> once = record(device_, kOneShot);
  EXPECT_OK(once->finalize());
  EXPECT_OK(queue_execute({*device_}, *once, {}));
  EXPECT_FAILS(FAILED_PRECONDITION, "one-shot command buffer was executed before",
               queue_execute({*device_}, *once, {}));

  const Ref<CommandBuffer> early = record(device_, kOneShot | kAllowInline);
  EXPECT_OK(early->finalize());
  const Ref<Fence> reached = make_fence(device_);
  EXPECT_OK(reached->signal());
  EXPECT_FAILS(INVALID_ARGUMENT, "no wait for a command buffer with ALLOW_INLINE_EXECUTION",
               queue_execute({*device_, kAnyQueue, reached.get(), nullptr}, *early, {}));
  EXPECT_OK(queue_execute({*device_}, *early, {}));
}

TEST_F(QueueTest, ExecuteChecksTheTable) {
  const Ref<CommandBuffer> commands = record(device_, 0, 4);
  EXPECT_OK(commands->fill({nullptr, 1, 4, 8}, 7, 4));
  EXPECT_OK(commands->finalize());
  const Ref<Buffer> allocation = make_buffer(*device_, Values(20));
  const Ref<Buffer> buffer = allocation->subspan(0, 16).value();
  const auto execute = [&](std::initializer_list<Binding> table) {
    return queue_execute({*device_}, *commands, std::vector(table));
  };
  EXPECT_FAILS(INVALID_ARGUMENT, "2 slots of a binding table, but was executed without one", execute({}));
  EXPECT_FAILS(OUT_OF_RANGE, "2 slots of a binding table, but the table has 1 entries",
               execute({{buffer.get(), 0, 16}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "found null; binding table slot 1", execute({{buffer.get(), 0, 16}, {}}));
  EXPECT_FAILS(OUT_OF_RANGE, "found an entry of 8 bytes at offset 0", execute({{}, {buffer.get(), 0, 8}}));
  EXPECT_FAILS(OUT_OF_RANGE, "binding table slot 1", execute({{}, {buffer.get(), 8, kWholeLength}}));
  EXPECT_FAILS(OUT_OF_RANGE, "binding table slot 1", execute({{}, {buffer.get(), 8, 12}}));
  EXPECT_FAILS(OUT_OF_RANGE, "binding table slot 1", execute({{}, {buffer.get(), 17, kWholeLength}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "multiples of 4 bytes, found offset", execute({{}, {buffer.get(), 2, 12}}));
  const Ref<Buffer> odd = allocation->subspan(1, 16).value();
  EXPECT_FAILS(INVALID_ARGUMENT, "multiples of 4 bytes, found offset", execute({{}, {odd.get(), 0, 16}}));
  EXPECT_OK(execute({{}, {odd.get(), 3, kWholeLength}}));  // byte 4 of the allocation
  const Ref<Buffer> storage =
      make_buffer(*device_, Values(16), HALYARD_USAGE_STORAGE | HALYARD_USAGE_MAPPING_SCOPED);
  EXPECT_FAILS(PERMISSION_DENIED, "binding table slot 1", execute({{}, {storage.get(), 0, 16}}));
  const Ref<Buffer> constant = make_buffer(*device_, Values(16));
  constant->allocation().access = kRead;
  EXPECT_FAILS(PERMISSION_DENIED, "binding table slot 1", execute({{}, {constant.get(), 0, 16}}));
  const Ref<Device> other = open_fake_device(open_fake_library());
  const Ref<Buffer> foreign = make_buffer(*other, Values(16));
  EXPECT_FAILS(INVALID_ARGUMENT, "binding table slot 1", execute({{}, {foreign.get(), 0, 16}}));
  EXPECT_EQ(fake_log(), "fill 8\n");
  EXPECT_OK(execute(
      {{}, {buffer.get(), 4, 12}, {}, {foreign.get(), 99, 99}}));  // entries of unused slots do not matter
}

// ---- Fences ----

TEST_F(QueueTest, WorkWaitsForItsFence) {
  const Ref<Buffer> buffer = make_buffer(*device_, Values(2));
  const auto [start, between, end] = make_fences<3>(device_);
  EXPECT_OK(queue_fill({*device_, kAnyQueue, between.get(), end.get()}, *buffer, 0, 1, 2, 1));
  EXPECT_OK(queue_fill({*device_, kAnyQueue, start.get(), between.get()}, *buffer, 0, 2, 1, 1));
  EXPECT_EQ(bytes_of(*buffer), (Values{0, 0}));
  EXPECT_EQ(end->query().code(), Code::DEFERRED);
  EXPECT_OK(start->signal());
  EXPECT_OK(end->query());
  EXPECT_EQ(bytes_of(*buffer), (Values{2, 1}));
}

TEST_F(QueueTest, AFailedWaitPassesThroughAndIsReturned) {
  const Ref<Buffer> buffer = make_buffer(*device_, Values(2));
  Values file_bytes(2, 9);
  const Ref<File> file = File::from_memory(file_bytes, kWrite, nullptr);
  const Ref<Fence> failed = make_fence(device_);
  failed->fail(Status(Code::DATA_LOSS, "lost"));
  const auto [first, second] = make_fences<2>(device_);
  EXPECT_FAILS(DATA_LOSS, "lost",
               queue_fill({*device_, kAnyQueue, failed.get(), first.get()}, *buffer, 0, 2, 1, 1));
  EXPECT_FAILS(DATA_LOSS, "lost",
               queue_write({*device_, kAnyQueue, first.get(), second.get()}, *buffer, 0, *file, 0, 2));
  EXPECT_FAILS(DATA_LOSS, "lost", second->query());
  EXPECT_EQ(bytes_of(*buffer), (Values{0, 0}));
  EXPECT_EQ(file_bytes, (Values{9, 9}));
}

TEST_F(QueueTest, ALaterFailureFailsTheFence) {
  const Ref<Buffer> buffer = make_buffer(*device_, Values(2));
  const auto [start, end] = make_fences<2>(device_);
  EXPECT_OK(queue_fill({*device_, kAnyQueue, start.get(), end.get()}, *buffer, 0, 2, 1, 1));
  start->fail(Status(Code::UNAVAILABLE, "never"));
  EXPECT_FAILS(UNAVAILABLE, "never", end->query());
}

TEST_F(QueueTest, FailureOfTheWork) {
  const Ref<Fence> fence = make_fence(device_);
  fake().fail_next(HALYARD_INTERNAL);
  EXPECT_FAILS(INTERNAL, "injected failure", queue_barrier({*device_, kAnyQueue, nullptr, fence.get()}));
  EXPECT_FAILS(INTERNAL, "injected failure", fence->query());

  const Ref<Device> queued = open_fake_device("queued");  // the call returns before the failure
  const Ref<Fence> later = make_fence(queued);
  fake().fail_next(HALYARD_INTERNAL);
  EXPECT_OK(queue_barrier({*queued, kAnyQueue, nullptr, later.get()}));
  EXPECT_EQ(later->query().code(), Code::DEFERRED);
  EXPECT_EQ(fake().run_ready(), 1u);
  EXPECT_FAILS(INTERNAL, "injected failure", later->query());
}

TEST_F(QueueTest, RefusedWorkTouchesNoFence) {
  const Ref<Fence> fence = make_fence(device_);
  fake().refuse_next(HALYARD_RESOURCE_EXHAUSTED);
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "injected refusal",
               queue_barrier({*device_, kAnyQueue, nullptr, fence.get()}));
  EXPECT_EQ(fence->query().code(), Code::DEFERRED);
  fake().refuse_next(HALYARD_RESOURCE_EXHAUSTED);
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "while allocating 8 bytes", queue_alloca({*device_}, 0, 0, 0, 8, 0));
}

// By the driver, or because the budget of the program is used up.
TEST_F(QueueTest, RefusedExecutionsCanBeRepeated) {
  const Ref<CommandBuffer> once = record(device_, kOneShot);
  EXPECT_OK(once->finalize());
  const auto nothing = make<Budget>(0);
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "queue work",
               queue_execute({*device_, kAnyQueue, nullptr, nullptr, nothing.get()}, *once, {}));
  fake().refuse_next(HALYARD_RESOURCE_EXHAUSTED);
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "injected refusal", queue_execute({*device_}, *once, {}));
  fake().fail_next(HALYARD_DATA_LOSS);
  EXPECT_FAILS(DATA_LOSS, "injected failure", queue_execute({*device_}, *once, {}));
  EXPECT_FAILS(FAILED_PRECONDITION, "executed before", queue_execute({*device_}, *once, {}));
}

TEST_F(QueueTest, RefusedDeallocasCanBeRepeated) {
  const Ref<Buffer> buffer = queue_alloca({*device_}, 0, 0, kPlainUsage, 8, 0).value();
  const auto nothing = make<Budget>(0);
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "queue work",
               queue_dealloca({*device_, kAnyQueue, nullptr, nullptr, nothing.get()}, *buffer, 0));
  fake().refuse_next(HALYARD_RESOURCE_EXHAUSTED);
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "injected refusal", queue_dealloca({*device_}, *buffer, 0));
  EXPECT_OK(buffer->map());
  buffer->allocation().unmap();
  EXPECT_FALSE(buffer->allocation().shared.ended);
  fake().fail_next(HALYARD_DATA_LOSS);
  EXPECT_FAILS(DATA_LOSS, "injected failure", queue_dealloca({*device_}, *buffer, 0));
  EXPECT_FAILS(FAILED_PRECONDITION, "deallocated before", queue_dealloca({*device_}, *buffer, 0));
  EXPECT_FALSE(expect_sharing(buffer->allocation()));
}

TEST_F(QueueTest, SignalOfAReachedFenceChangesNothing) {
  const Ref<Fence> fence = make_fence(device_);
  EXPECT_OK(fence->signal());
  EXPECT_OK(queue_barrier({*device_, kAnyQueue, nullptr, fence.get()}));
  EXPECT_OK(fence->query());
}

// ---- Lifetimes ----

TEST_F(QueueTest, WorkRetainsItsObjectsUntilItCompletes) {
  const Ref<Device> device = open_fake_device("queued");
  const Ref<Fence> end = make_fence(device);
  bool file_released = false;
  Values file_bytes = {5, 6};
  {
    const Ref<Buffer> buffer = make_buffer(*device, Values(8));
    const Ref<Buffer> other = make_buffer(*device, Values(8));
    const auto [first, second, third] = make_fences<3>(device);
    const Ref<CommandBuffer> commands = record(device, 0, 1);
    EXPECT_OK(commands->fill({nullptr, 0, 0, 8}, 1, 1));
    EXPECT_OK(commands->finalize());
    const Binding table[] = {{buffer.get(), 0, 8}};
    const Ref<File> file =
        File::from_memory(file_bytes, kRead, Bytes::borrow(file_bytes, [&] { file_released = true; }));
    EXPECT_OK(queue_execute({*device, kAnyQueue, nullptr, first.get()}, *commands, table));
    EXPECT_OK(queue_copy({*device, kAnyQueue, first.get(), second.get()}, *buffer, 0, *other, 0, 8));
    EXPECT_OK(queue_read({*device, kAnyQueue, second.get(), third.get()}, *file, 0, *other, 0, 2));
    EXPECT_OK(queue_update({*device, kAnyQueue, third.get(), end.get()}, Values{3}, *other, 4));
  }
  EXPECT_EQ(fake().live(FAKE_MEMORY), 2);
  EXPECT_EQ(fake().live(FAKE_LIST), 1);
  EXPECT_FALSE(file_released);
  EXPECT_EQ(fake().run_ready(), 4u);
  EXPECT_OK(end->query());
  EXPECT_EQ(fake_log(), "fill 8\ncopy 8\nupdate 2\nupdate 1\n");
  EXPECT_EQ(fake().live(FAKE_MEMORY), 0);
  EXPECT_EQ(fake().live(FAKE_LIST), 0);
  EXPECT_TRUE(file_released);
}

TEST_F(QueueTest, UpdateCapturesItsBytes) {
  const Ref<Device> device = open_fake_device("queued");
  const Ref<Buffer> buffer = make_buffer(*device, Values(70000));
  Values bytes(70000, 4);
  EXPECT_OK(queue_update({*device}, bytes, *buffer, 0));
  bytes.assign(70000, 5);
  fake().run_ready();
  EXPECT_EQ(bytes_of(*buffer), Values(70000, 4));
}

TEST_F(QueueTest, WorkCompletesOnAnotherThread) {
  const Ref<Device> device = open_fake_device("queued");
  const Ref<Buffer> buffer = make_buffer(*device, Values(4));
  Values bytes(4);
  const Ref<File> file = File::from_memory(bytes, kWrite, nullptr);
  const auto [filled, written] = make_fences<2>(device);
  EXPECT_OK(queue_fill({*device, kAnyQueue, nullptr, filled.get()}, *buffer, 0, 4, 6, 1));
  EXPECT_OK(queue_write({*device, kAnyQueue, filled.get(), written.get()}, *buffer, 0, *file, 0, 4));
  std::jthread worker([] { fake().run_ready(); });
  Fence* const fences[] = {written.get()};
  EXPECT_OK(await(fences, kWaitForever));
  EXPECT_EQ(bytes, Values(4, 6));
}

// A program is destroyed before its work completes, so the work has the last reference to the device.
TEST_F(QueueTest, ADeviceIsNotClosedByItsOwnCallback) {
  const size_t before = fake().closed_in_callbacks();
  const int64_t devices = fake().live(FAKE_DEVICE);
  const Ref<DriverLibrary> library = open_fake_library();
  {
    const Ref<Device> device = open_fake_device(library, "queued");
    const Ref<Fence> done = make_fence(device);
    EXPECT_OK(queue_barrier({*device, kAnyQueue, nullptr, done.get()}));
    EXPECT_OK(queue_barrier({*device}));
  }
  EXPECT_EQ(fake().live(FAKE_DEVICE), devices + 1);
  EXPECT_EQ(fake().run_ready(), 2u);
  await_outside_of_callbacks(*test_loop());
  EXPECT_EQ(fake().live(FAKE_DEVICE), devices);
  EXPECT_EQ(fake().closed_in_callbacks(), before);
}

// ---- Memory ----

TEST_F(QueueTest, AllocaGivesTheBufferAtOnce) {
  const Ref<Device> device = open_fake_device("queued");
  const auto [allocated, filled] = make_fences<2>(device);
  const Ref<Buffer> buffer =
      queue_alloca({*device, kAnyQueue, nullptr, allocated.get()}, 0, 0, kPlainUsage, 4, 0).value();
  EXPECT_EQ(buffer->length(), 4u);
  EXPECT_EQ(buffer->usage() & kPlainUsage, kPlainUsage);
  EXPECT_EQ(allocated->query().code(), Code::DEFERRED);
  uint8_t byte = 0;
  EXPECT_FAILS(FAILED_PRECONDITION, "no bytes", buffer->read(0, &byte, 1));
  EXPECT_OK(queue_fill({*device, kAnyQueue, allocated.get(), filled.get()}, *buffer, 0, 4, 3, 1));
  fake().run_ready();
  EXPECT_EQ(bytes_of(*buffer), Values(4, 3));
  EXPECT_OK(queue_dealloca({*device, kAnyQueue, filled.get(), nullptr}, *buffer, 0));
  fake().run_ready();
  EXPECT_FAILS(FAILED_PRECONDITION, "no bytes", buffer->read(0, &byte, 1));
  EXPECT_EQ(fake_log(), "alloca\nfill 4\ndealloca\n");
}

// A log counts the bytes while they exist, not from request to request.
TEST_F(QueueTest, MemoryIsLoggedWhereTheQueueHasIt) {
  const Ref<Device> device =
      Device::open(open_fake_library(), "fake", "queued", {}, true, test_loop()).value();
  const MemoryLog& log = *device->memory_log();
  const auto live = [&] {
    const auto points = log.report().points;
    return points.empty() ? 0 : points.back().bytes;
  };
  const auto [first, ended, second] = make_fences<3>(device);
  Ref<Buffer> a = queue_alloca({*device, kAnyQueue, nullptr, first.get()}, 0, 0, kPlainUsage, 100, 0).value();
  EXPECT_EQ(live(), 0u);
  fake().run_ready();
  EXPECT_EQ(live(), 100u);
  // Requested before the memory that it waits for is deallocated.
  Ref<Buffer> b =
      queue_alloca({*device, kAnyQueue, ended.get(), second.get()}, 0, 0, kPlainUsage, 50, 0).value();
  EXPECT_OK(queue_dealloca({*device, kAnyQueue, first.get(), ended.get()}, *a, 0));
  a = {};
  EXPECT_EQ(live(), 100u);
  fake().run_ready();
  EXPECT_EQ(live(), 50u);
  EXPECT_EQ(log.report().peak_bytes, 100u);
  b = {};  // without a dealloca
  EXPECT_EQ(live(), 0u);
  EXPECT_EQ(log.report().points.size(), 4u);
}

TEST_F(QueueTest, MemoryThatWasNeverAllocatedIsNotLogged) {
  const Ref<Device> device =
      Device::open(open_fake_library(), "fake", "queued", {}, true, test_loop()).value();
  const auto [never, made] = make_fences<2>(device);
  const Ref<Buffer> buffer =
      queue_alloca({*device, kAnyQueue, never.get(), made.get()}, 0, 0, kPlainUsage, 100, 0).value();
  EXPECT_OK(queue_dealloca({*device, kAnyQueue, made.get(), nullptr}, *buffer, 0));
  never->fail(Status(Code::ABORTED, "never"));
  fake().run_ready();
  EXPECT_TRUE(device->memory_log()->report().points.empty());
}

TEST_F(QueueTest, DeallocaIsABarrierForOtherMemory) {
  const Ref<Buffer> allocated = make_buffer(*device_, Values(4));
  const Ref<Buffer> indeterminate =
      queue_alloca({*device_}, 0, 0, kPlainUsage, 4, kAllocaIndeterminateLifetime).value();
  fake().reset();
  const Ref<Fence> fence = make_fence(device_);
  EXPECT_OK(queue_dealloca({*device_, kAnyQueue, nullptr, fence.get()}, *allocated, 0));
  EXPECT_OK(fence->query());
  EXPECT_OK(queue_dealloca({*device_}, *allocated, kDeallocaPreferOrigin));
  EXPECT_OK(queue_dealloca({*device_}, *indeterminate, 0));
  EXPECT_OK(queue_dealloca({*device_}, *indeterminate, 0));
  EXPECT_EQ(fake_log(), "barrier\nbarrier\nbarrier\nbarrier\n");
  EXPECT_EQ(bytes_of(*allocated), Values(4));
}

TEST_F(QueueTest, MemoryIsDeallocatedOnce) {
  const Ref<Buffer> buffer = queue_alloca({*device_}, 0, 0, 0, 8, 0).value();
  const Ref<Buffer> part = buffer->subspan(4, 4).value();
  EXPECT_OK(queue_dealloca({*device_}, *part, 0));
  EXPECT_FAILS(FAILED_PRECONDITION, "deallocated before", queue_dealloca({*device_}, *buffer, 0));
}

// The pointer is valid until it is unmapped, so the dealloca leaves the bytes to the end of the allocation.
TEST_F(QueueTest, DeallocaOfMappedMemoryIsABarrier) {
  const Ref<Buffer> mapped = queue_alloca({*device_}, 0, 0, kPlainUsage, 8, 0).value();
  const std::span<uint8_t> bytes = ASSERT_VALUE(mapped->map());
  EXPECT_EQ(ASSERT_VALUE(mapped->map()).data(), bytes.data());
  mapped->allocation().unmap();
  EXPECT_OK(queue_dealloca({*device_}, *mapped, 0));
  EXPECT_FAILS(FAILED_PRECONDITION, "deallocated before", queue_dealloca({*device_}, *mapped, 0));
  bytes[7] = 5;
  EXPECT_EQ(bytes_of(*mapped), (Values{0, 0, 0, 0, 0, 0, 0, 5}));
  mapped->allocation().unmap();
  EXPECT_EQ(fake_log(), "alloca\nbarrier\n");
  fake().reset();

  const Ref<Buffer> unmapped = queue_alloca({*device_}, 0, 0, kPlainUsage, 8, 0).value();
  EXPECT_OK(unmapped->map());
  unmapped->allocation().unmap();
  EXPECT_OK(queue_dealloca({*device_}, *unmapped, 0));
  EXPECT_EQ(fake_log(), "alloca\ndealloca\n");
}

TEST_F(QueueTest, DeallocaGoesToTheDeviceThatAllocated) {
  const Ref<Device> origin = open_fake_device("queued");
  const Ref<Device> other = open_fake_device();
  const Ref<Buffer> buffer = queue_alloca({*origin}, 0, 0, 0, 8, 0).value();
  EXPECT_OK(queue_dealloca({*other}, *buffer, kDeallocaPreferOrigin));
  EXPECT_EQ(fake().ready(), 2u);
  EXPECT_EQ(fake().run_ready(), 2u);
  EXPECT_EQ(fake_log(), "alloca\ndealloca\n");
}

TEST_F(QueueTest, WriteStagesMemoryThatTheHostCannotMap) {
  const Ref<Device> device = open_fake_device("opaque");
  const Ref<Buffer> buffer =
      Buffer::allocate(*device, kAnyQueue, HALYARD_MEMORY_DEVICE_LOCAL, HALYARD_USAGE_DEFAULT, 4).value();
  Values bytes(6);
  const Ref<File> file = File::from_memory(bytes, kWrite, nullptr);
  const auto [filled, written] = make_fences<2>(device);
  EXPECT_OK(queue_write({*device, kAnyQueue, filled.get(), written.get()}, *buffer, 1, *file, 2, 3));
  EXPECT_OK(queue_fill({*device, kAnyQueue, nullptr, filled.get()}, *buffer, 0, 4, 8, 1));
  EXPECT_OK(written->query());
  EXPECT_EQ(bytes, (Values{0, 0, 8, 8, 8, 0}));

  const auto [failed, never] = make_fences<2>(device);
  failed->fail(Status(Code::DATA_LOSS, "lost"));
  EXPECT_FAILS(DATA_LOSS, "lost",
               queue_write({*device, kAnyQueue, failed.get(), never.get()}, *buffer, 0, *file, 0, 1));
  EXPECT_FAILS(DATA_LOSS, "lost", never->query());
}

TEST_F(QueueTest, FlushIsAHint) { EXPECT_OK(queue_flush(*open_fake_device(), kAnyQueue)); }

// ---- Several drivers ----

class BridgeTest : public QueueTest {
 protected:
  const Ref<DriverLibrary> first_ = open_fake_library();
  const Ref<DriverLibrary> second_ = open_fake_library();
};

TEST_F(BridgeTest, WorkWaitsForAnotherDriver) {
  const Ref<Device> here = open_fake_device(first_);
  const Ref<Device> there = open_fake_device(second_);
  const Ref<Buffer> buffer = make_buffer(*here, Values(2));
  const Ref<Fence> start = make_fence(there);
  const Ref<Fence> end = make_fence(here);
  EXPECT_OK(queue_fill({*here, kAnyQueue, start.get(), end.get()}, *buffer, 0, 2, 1, 1));
  EXPECT_EQ(end->query().code(), Code::DEFERRED);
  EXPECT_OK(start->signal());
  EXPECT_OK(end->query());
  EXPECT_EQ(bytes_of(*buffer), (Values{1, 1}));
}

TEST_F(BridgeTest, WorkSignalsAnotherDriver) {
  const Ref<Device> here = open_fake_device(first_, "queued");
  const Ref<Device> there = open_fake_device(second_);
  const Ref<Fence> own = make_fence(here);
  const Ref<Fence> foreign = make_fence(there);
  Fence* const fences[] = {own.get(), foreign.get()};
  const Ref<Fence> both = Fence::join(fences).value();
  EXPECT_OK(queue_barrier({*here, kAnyQueue, nullptr, both.get()}));
  EXPECT_EQ(both->query().code(), Code::DEFERRED);
  EXPECT_EQ(fake().run_ready(), 1u);
  EXPECT_OK(both->query());
  EXPECT_OK(queue_barrier({*here, kAnyQueue, nullptr, both.get()}));  // reached already: no error
  fake().run_ready();
  EXPECT_OK(both->query());
}

TEST_F(BridgeTest, FailurePassesThrough) {
  const Ref<Device> here = open_fake_device(first_);
  const Ref<Device> there = open_fake_device(second_);
  const Ref<Fence> start = make_fence(there);
  const Ref<Fence> between = make_fence(here);
  const Ref<Fence> end = make_fence(there);
  EXPECT_OK(queue_barrier({*here, kAnyQueue, start.get(), between.get()}));
  EXPECT_OK(queue_barrier({*there, kAnyQueue, between.get(), end.get()}));
  start->fail(Status(Code::DATA_LOSS, "their loss"));
  EXPECT_FAILS(DATA_LOSS, "their loss", between->query());
  EXPECT_FAILS(DATA_LOSS, "their loss", end->query());
  // The fence failed before, so the work fails within the call, and its foreign signal fails too.
  const Ref<Fence> late = make_fence(there);
  EXPECT_FAILS(DATA_LOSS, "their loss", queue_barrier({*here, kAnyQueue, start.get(), late.get()}));
  EXPECT_FAILS(DATA_LOSS, "their loss", late->query());
}

TEST_F(BridgeTest, AllocaReturnsItsBufferBeforeTheForeignWait) {
  const Ref<Device> here = open_fake_device(first_);
  const Ref<Fence> start = make_fence(open_fake_device(second_));
  const Ref<Fence> end = make_fence(here);
  const Ref<Buffer> buffer =
      queue_alloca({*here, kAnyQueue, start.get(), end.get()}, 0, 0, kPlainUsage, 4, 0).value();
  EXPECT_EQ(buffer->length(), 4u);
  EXPECT_EQ(end->query().code(), Code::DEFERRED);
  EXPECT_OK(start->signal());
  EXPECT_OK(end->query());
}

TEST_F(BridgeTest, RefusedWorkLeavesNothingBehind) {
  const Ref<Device> here = open_fake_device(first_);
  const Ref<Fence> start = make_fence(open_fake_device(second_));
  fake().refuse_next(HALYARD_UNAVAILABLE);
  EXPECT_FAILS(UNAVAILABLE, "injected refusal", queue_barrier({*here, kAnyQueue, start.get(), nullptr}));
  EXPECT_OK(start->signal());
}

// Work alternates between two drivers, each submission waiting for the previous one: their calls must not
// nest.
TEST_F(BridgeTest, LongChainsBetweenDriversDoNotNest) {
  const Ref<Device> devices[] = {open_fake_device(first_), open_fake_device(second_)};
  const Ref<Fence> start = make_fence(devices[0]);
  Ref<Fence> last = start;
  for (int i = 1; i <= 500; ++i) {
    Ref<Fence> next = make_fence(devices[i % 2]);
    EXPECT_OK(queue_barrier({*devices[i % 2], kAnyQueue, last.get(), next.get()}));
    last = std::move(next);
  }
  EXPECT_OK(start->signal());
  EXPECT_OK(last->query());
}

}  // namespace
}  // namespace halyard::hal
