// Waits between drivers by semaphore descriptors, and cases without them.
#include "hal/queue/semaphore_fd.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "hal/queue/queue.h"
#include "hal_test.h"

namespace halyard::hal {
namespace {

using Values = std::vector<uint8_t>;

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

class SemaphoreFdTest : public FakeDriverTest {
 protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    (void)fake();  // opens descriptors that stay open
    descriptors_ = open_descriptors();
    there_ = open_fake_device(first_, "passing");
    here_ = open_fake_device(second_, "passing");
  }
  void TearDown() override {
    there_ = here_ = nullptr;
    EXPECT_EQ(open_descriptors(), descriptors_);
    FakeDriverTest::TearDown();
  }
  // Ready work of `device` that signals the returned fence.
  static Ref<Fence> start_work(const Ref<Device>& device) {
    Ref<Fence> fence = make_fence(device);
    EXPECT_OK(queue_barrier({*device, kAnyQueue, nullptr, fence.get()}));
    EXPECT_EQ(fake().ready(), 1u);
    return fence;
  }
  // Starts work of the other device, and submits work to `here` that waits for it. Returns the fences of
  // both.
  std::pair<Ref<Fence>, Ref<Fence>> start_both(const Ref<Device>& here) {
    std::pair fences(start_work(there_), make_fence(here));
    EXPECT_OK(queue_barrier({*here, kAnyQueue, fences.first.get(), fences.second.get()}));
    return fences;
  }

  const Ref<DriverLibrary> first_ = open_fake_library();
  const Ref<DriverLibrary> second_ = open_fake_library();
  Ref<Device> there_, here_;
  size_t descriptors_ = 0;
};

TEST_F(SemaphoreFdTest, WorkWaitsForADescriptor) {
  const Ref<Buffer> buffer = make_buffer(*here_, Values(2));
  const Ref<Fence> start = start_work(there_);
  const Ref<Fence> end = make_fence(here_);
  EXPECT_OK(queue_fill({*here_, kAnyQueue, start.get(), end.get()}, *buffer, 0, 2, 7, 1));
  EXPECT_EQ(fake().exported(), 1u);
  EXPECT_EQ(fake().imported(), 1u);
  EXPECT_EQ(fake().ready(), 1u);  // the work of the other device; the new work waits for it
  EXPECT_EQ(fake().run_ready(), 2u);
  EXPECT_OK(end->query());
  EXPECT_EQ(bytes_of(*buffer), (Values{7, 7}));
  // A reached semaphore needs no descriptor.
  EXPECT_OK(queue_barrier({*here_, kAnyQueue, start.get(), make_fence(here_).get()}));
  EXPECT_EQ(fake().run_ready(), 1u);
  EXPECT_EQ(fake().exported(), 1u);
}

// One import serves any number of waits on a timeline.
TEST_F(SemaphoreFdTest, ASemaphoreIsImportedOnceByADevice) {
  const Ref<Semaphore> timeline = Semaphore::create(there_, 0).value();
  for (const uint64_t value : {1, 2, 3}) {
    Timepoints timepoints;
    timepoints.push_back({timeline, value});
    const Ref<Fence> start = Fence::of(std::move(timepoints)).value();
    const Ref<Fence> ends[] = {make_fence(here_), make_fence(here_)};
    EXPECT_OK(queue_barrier({*there_, kAnyQueue, nullptr, start.get()}));
    for (const Ref<Fence>& end : ends) EXPECT_OK(queue_barrier({*here_, kAnyQueue, start.get(), end.get()}));
    EXPECT_EQ(fake().ready(), 1u);
    EXPECT_EQ(fake().run_ready(), 3u);
    for (const Ref<Fence>& end : ends) EXPECT_OK(end->query());
    EXPECT_EQ(fake().imported(), 1u);
  }
}

// The host sees the signal before the importing device does.
TEST_F(SemaphoreFdTest, WorkWaitsForALateDescriptor) {
  const auto [start, end] = start_both(here_);
  fake().hold_back(1);
  EXPECT_EQ(fake().run_ready(), 1u);
  EXPECT_OK(start->query());
  EXPECT_EQ(end->query().code(), Code::DEFERRED);
  fake().hold_back(0);
  EXPECT_EQ(fake().run_ready(), 1u);
  EXPECT_OK(end->query());
}

TEST_F(SemaphoreFdTest, AFailureArrivesWithItsCause) {
  const auto [start, end] = start_both(here_);
  EXPECT_EQ(fake().imported(), 1u);
  fake().fail_next(HALYARD_DATA_LOSS);
  fake().run_ready();
  EXPECT_FAILS(DATA_LOSS, "injected failure", start->query());
  EXPECT_FAILS(DATA_LOSS, "injected failure", end->query());
}

TEST_F(SemaphoreFdTest, AFailureOfTheHostArrivesBeforeTheSignal) {
  const auto [start, end] = start_both(here_);
  start->fail(Status(Code::CANCELLED, "no longer wanted"));
  fake().run_ready();
  EXPECT_FAILS(CANCELLED, "no longer wanted", end->query());
}

// The host uses a bridge instead of a descriptor, with the same result, in this test and the next two.
TEST_F(SemaphoreFdTest, BridgedWithoutWorkUnderWay) {
  const Ref<Fence> start = make_fence(there_);
  const Ref<Fence> end = make_fence(here_);
  EXPECT_OK(queue_barrier({*here_, kAnyQueue, start.get(), end.get()}));
  EXPECT_EQ(fake().exported(), 0u);
  EXPECT_OK(start->signal());
  EXPECT_EQ(fake().run_ready(), 1u);
  EXPECT_OK(end->query());
}

TEST_F(SemaphoreFdTest, BridgedIfDescriptorsAreIncompatible) {
  for (const char* path : {"apart", "queued"}) {
    const Ref<Device> apart = open_fake_device(second_, path);
    EXPECT_FALSE(can_pass(*there_, *apart));
    EXPECT_FALSE(can_pass(*apart, *there_));
    const auto [start, end] = start_both(apart);
    EXPECT_EQ(fake().exported(), 0u);
    EXPECT_EQ(fake().run_ready(), 2u);
    EXPECT_OK(end->query());
  }
  EXPECT_TRUE(can_pass(*there_, *here_));
}

TEST_F(SemaphoreFdTest, BridgedIfADescriptorIsRefused) {
  for (void (*refuse)(int32_t) : {fake().refuse_export, fake().refuse_import}) {
    refuse(HALYARD_RESOURCE_EXHAUSTED);
    const auto [start, end] = start_both(here_);
    EXPECT_EQ(fake().imported(), 0u);
    EXPECT_EQ(fake().run_ready(), 2u);
    EXPECT_OK(end->query());
  }
}

// The driver leaves a descriptor that it refuses open, because the host closes it.
TEST_F(SemaphoreFdTest, ImportsRefuseOtherFiles) {
  const halyard_driver_table_t& table = first_->table();
  halyard_driver_semaphore_t imported = nullptr;
  const int32_t file = ::memfd_create("no semaphore", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_FAILS(INVALID_ARGUMENT, "not a semaphore",
               Status::adopt(table.semaphore_import(there_->handle(), file, &imported)));
  EXPECT_EQ(imported, nullptr);
  EXPECT_EQ(::close(file), 0);
}

TEST_F(SemaphoreFdTest, RefusedWorkLeavesNothingBehind) {
  const Ref<Fence> start = start_work(there_);
  fake().refuse_next(HALYARD_UNAVAILABLE);
  EXPECT_FAILS(UNAVAILABLE, "injected refusal", queue_barrier({*here_, kAnyQueue, start.get(), nullptr}));
  EXPECT_EQ(fake().imported(), 1u);
  fake().run_ready();
  EXPECT_OK(start->query());
}

}  // namespace
}  // namespace halyard::hal
