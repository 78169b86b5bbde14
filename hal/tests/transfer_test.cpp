// Work on buffers of another driver without shared memory: work on one buffer goes to its device, copies go
// through the host, and other work fails with the reason.
#include "hal/queue/transfer.h"

#include "hal/device/sharing.h"
#include "hal/queue/queue.h"
#include "hal_test.h"

namespace halyard::hal {
namespace {

using Values = std::vector<uint8_t>;

class TransferTest : public FakeDriverTest {
 protected:
  void TearDown() override {
    first_ = second_ = nullptr;
    FakeDriverTest::TearDown();
  }

  Ref<DriverLibrary> first_ = open_fake_library();
  Ref<DriverLibrary> second_ = open_fake_library();
};

TEST_F(TransferTest, WorkOnOneBufferGoesToItsDevice) {
  const Ref<Device> here = open_fake_device(first_);
  const Ref<Device> there = open_fake_device(second_);
  EXPECT_EQ(sharing(*here, *there), Sharing::none);
  EXPECT_EQ(sharing(*here, *here), Sharing::same_driver);
  const Ref<Buffer> buffer = make_buffer(*there, Values(4));
  const Ref<Fence> end = make_fence(here);
  EXPECT_OK(queue_fill({*here, kAnyQueue, nullptr, end.get()}, *buffer, 0, 2, 7, 1));
  EXPECT_OK(queue_update({*here}, Values{8}, *buffer, 2));
  EXPECT_OK(queue_copy({*here}, *buffer, 0, *buffer, 3, 1));
  EXPECT_EQ(bytes_of(*buffer), (Values{7, 7, 8, 7}));
  EXPECT_OK(end->query());
}

TEST_F(TransferTest, CopiesWaitAndSignalAcrossDrivers) {
  const Ref<Device> here = open_fake_device(first_);
  const Ref<Device> there = open_fake_device(second_, "queued");
  const Ref<Buffer> source = make_buffer(*there, Values{0, 0, 0, 0});
  const Ref<Buffer> target = make_buffer(*here, Values(6));
  const auto [filled, end] = make_fences<2>(there);
  EXPECT_OK(queue_fill({*there, kAnyQueue, nullptr, filled.get()}, *source, 0, 4, 5, 1));
  EXPECT_OK(queue_copy({*here, kAnyQueue, filled.get(), end.get()}, *source, 1, *target, 2, 3));
  EXPECT_EQ(end->query().code(), Code::DEFERRED);
  EXPECT_EQ(bytes_of(*target), Values(6));
  EXPECT_EQ(fake().run_ready(), 1u);
  EXPECT_EQ(bytes_of(*target), (Values{0, 0, 5, 5, 5, 0}));
  EXPECT_OK(end->query());
}

// The buffer's own device copies between memory that the host can map and memory that it cannot map.
TEST_F(TransferTest, MemoryThatTheHostCannotMapIsStaged) {
  const Ref<Device> here = open_fake_device(first_, "opaque");
  const Ref<Device> there = open_fake_device(second_, "opaque");
  const Ref<Buffer> source = Buffer::allocate(*here, kAnyQueue, 0, HALYARD_USAGE_DEFAULT, 8).value();
  const Ref<Buffer> target = Buffer::allocate(*there, kAnyQueue, 0, HALYARD_USAGE_DEFAULT, 8).value();
  const Ref<Buffer> back =
      Buffer::allocate(*there, kAnyQueue, HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_DEVICE_VISIBLE,
                       kPlainUsage, 8)
          .value();
  const auto [start, filled] = make_fences<2>(here);
  const Ref<Fence> copied = make_fence(there);
  const Ref<Fence> end = make_fence(here);
  EXPECT_OK(queue_fill({*here, kAnyQueue, start.get(), filled.get()}, *source, 0, 8, 0x0201, 2));
  EXPECT_OK(queue_copy({*here, kAnyQueue, filled.get(), copied.get()}, *source, 0, *target, 0, 8));
  EXPECT_OK(queue_copy({*there, kAnyQueue, copied.get(), end.get()}, *target, 1, *back, 0, 7));
  EXPECT_EQ(end->query().code(), Code::DEFERRED);
  EXPECT_OK(start->signal());
  EXPECT_OK(end->query());
  EXPECT_EQ(bytes_of(*back->subspan(0, 7).value()), (Values{2, 1, 2, 1, 2, 1, 2}));
}

TEST_F(TransferTest, FailuresReachTheSignal) {
  const Ref<Device> here = open_fake_device(first_);
  const Ref<Device> there = open_fake_device(second_, "opaque");
  const Ref<Buffer> source = make_buffer(*here, Values{1, 2});
  const Ref<Buffer> target = Buffer::allocate(*there, kAnyQueue, 0, HALYARD_USAGE_DEFAULT, 2).value();
  {
    const auto [start, end] = make_fences<2>(here);
    EXPECT_OK(queue_copy({*here, kAnyQueue, start.get(), end.get()}, *source, 0, *target, 0, 2));
    start->fail(Status(Code::DATA_LOSS, "lost before"));
    EXPECT_FAILS(DATA_LOSS, "lost before", end->query());
  }
  {
    const Ref<Fence> end = make_fence(here);
    fake().fail_next(HALYARD_ABORTED);  // of the part on the target's device
    (void)queue_copy({*here, kAnyQueue, nullptr, end.get()}, *source, 0, *target, 0, 2);
    EXPECT_EQ(end->query().code(), Code::ABORTED);
  }
  {
    const Ref<Fence> end = make_fence(here);
    fake().refuse_next(HALYARD_UNAVAILABLE);
    (void)queue_copy({*here, kAnyQueue, nullptr, end.get()}, *source, 0, *target, 0, 2);
    EXPECT_FAILS(UNAVAILABLE, "injected refusal", end->query());
  }
}

TEST_F(TransferTest, RecordingsRefuseForeignBuffers) {
  const Ref<Device> here = open_fake_device(first_);
  const Ref<Device> there = open_fake_device(second_);
  const Ref<Buffer> foreign = make_buffer(*there, Values(8));
  EXPECT_FAILS(INVALID_ARGUMENT, "shares no memory", record(here)->fill({foreign.get(), 0, 0, 8}, 1, 1));
}

}  // namespace
}  // namespace halyard::hal
