// Many threads submit concurrently, on one device, on two, and across two drivers, while some work fails:
// every waiter gets the result, and nothing leaks. Also a test for ThreadSanitizer.
#include <array>
#include <atomic>
#include <ostream>
#include <thread>

#include "faulty_device.h"
#include "hal/queue/fence.h"
#include "hal/queue/queue.h"
#include "hal/queue/wait.h"

namespace halyard::hal {
namespace {

constexpr int kThreads = 6;
constexpr int kRounds = 40;
constexpr uint32_t kMaxMs = 100000;  // ms: detects hangs

struct Kind {
  const char* name;
  bool one_driver;
  bool late;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class FaultThreads : public FaultyDriverTest, public testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override {
    FaultyDriverTest::SetUp();
    faulty().be_late(GetParam().late ? 1 : 0);
    here = ASSERT_VALUE(open());
    const Ref<DriverLibrary> library =
        GetParam().one_driver ? Ref<DriverLibrary>::share(const_cast<DriverLibrary*>(&here->library()))
                              : ASSERT_VALUE(DriverLibrary::open(
                                    HALYARD_BUILD_DIR "/lib/halyard/drivers/halyard-driver-null.so"));
    there = ASSERT_VALUE(
        Device::open(library, GetParam().one_driver ? "faulty" : "null", "", {}, false, test_loop()));
  }
  void TearDown() override {
    here = there = nullptr;
    FaultyDriverTest::TearDown();
  }

  enum class Start : uint8_t { signalled, failed, dropped };

  // Submits work to both devices in turn. Returns the result of the last work.
  Result<> chain(Start how) {
    Ref<Fence> start = HALYARD_TRY(Fence::create(here));
    const Ref<Buffer> mine = HALYARD_TRY(Buffer::allocate(*here, kAnyQueue, kMapped, kPlainUsage, 64));
    const Ref<Fence> given = HALYARD_TRY(Fence::create(there));
    const Ref<Buffer> theirs = HALYARD_TRY(
        queue_alloca({*there, kAnyQueue, start.get(), given.get()}, 0, kMapped, kPlainUsage, 64, 0));
    const Ref<Fence> filled = HALYARD_TRY(Fence::create(here));
    HALYARD_TRY(queue_fill({*here, kAnyQueue, given.get(), filled.get()}, *mine, 0, 64, 7, 4));
    const Ref<Fence> copied = HALYARD_TRY(Fence::create(there));
    HALYARD_TRY(queue_copy({*there, kAnyQueue, filled.get(), copied.get()}, *mine, 0, *theirs, 0, 64));
    const Ref<Fence> done = HALYARD_TRY(Fence::create(here));
    Fence* const both[] = {copied.get(), shared.get()};
    const Ref<Fence> joined = HALYARD_TRY(Fence::join(both));
    HALYARD_TRY(queue_barrier({*here, kAnyQueue, joined.get(), done.get()}));
    HALYARD_TRY(queue_dealloca({*there, kAnyQueue, done.get(), nullptr}, *theirs, 0));
    if (how == Start::signalled) signal(*start);
    if (how == Start::failed) start->fail(Status(Code::CANCELLED, "the test has failed it"));
    start = nullptr;
    Fence* const awaited[] = {done.get(), filled.get(), copied.get()};
    return to_result(await(awaited, kMaxMs));
  }
  // Fails the fence if the driver refuses the signal.
  static void signal(Fence& fence) {
    if (Result<> signalled = fence.signal(); !signalled) fence.fail(signalled.error());
  }

  void run_threads(Start how_first) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([this, i, how_first] {
        for (int round = 0; round < kRounds; ++round) {
          const Start how = (i + round) % 3 == 0 ? how_first : Start::signalled;
          const Status status = to_status(chain(how));
          const std::string text = status.text();
          const bool is_injected = text.find("injected fault") != std::string::npos;
          if (status.ok()) {
            EXPECT_EQ(how, Start::signalled);
            ++succeeded;
          } else if (!is_injected && how == Start::failed) {
            EXPECT_NE(text.find("the test has failed it"), std::string::npos) << text;
          } else if (!is_injected && how == Start::dropped) {
            EXPECT_EQ(status.code(), Code::ABORTED) << text;
          } else {
            EXPECT_TRUE(is_injected) << text;
          }
        }
      });
    std::thread([this] { signal(*shared); }).join();
    for (std::thread& thread : threads) thread.join();
  }

  Ref<Device> here;
  Ref<Device> there;
  Ref<Fence> shared;  // all threads wait for it
  std::atomic<int> succeeded = 0;
};

TEST_P(FaultThreads, NothingFails) {
  shared = *Fence::create(there);
  run_threads(Start::signalled);
  shared = nullptr;
  EXPECT_EQ(succeeded, kThreads * kRounds);
}

TEST_P(FaultThreads, FencesFailAndAreDropped) {
  for (const Start how : {Start::failed, Start::dropped}) {
    shared = *Fence::create(there);
    run_threads(how);
    shared = nullptr;
  }
  EXPECT_GT(succeeded, 0);
}

TEST_P(FaultThreads, SomeWorkFails) {
  const std::array faults = {
      std::pair(FAULTY_queue_submit, FAULTY_REFUSE),        std::pair(FAULTY_queue_submit, FAULTY_FAIL_WORK),
      std::pair(FAULTY_semaphore_subscribe, FAULTY_REFUSE), std::pair(FAULTY_semaphore_create, FAULTY_REFUSE),
      std::pair(FAULTY_semaphore_signal, FAULTY_REFUSE),    std::pair(FAULTY_memory_import, FAULTY_REFUSE)};
  for (const auto& [function, kind] : faults) {
    faulty().inject(function, FAULTY_NOTHING, 0, 0);
    shared = *Fence::create(there);
    inject(function, kind, HALYARD_RESOURCE_EXHAUSTED, -7);
    run_threads(Start::failed);
    shared = nullptr;
  }
}

TEST_P(FaultThreads, TheDeviceIsLostAmongThem) {
  shared = *Fence::create(there);
  inject(FAULTY_queue_submit, FAULTY_LOSE_DEVICE, 0,
         faulty().calls(FAULTY_queue_submit) + kThreads * kRounds / 2);
  run_threads(Start::failed);
  shared = nullptr;
  EXPECT_EQ(faulty().injected(), 1);
}

INSTANTIATE_TEST_SUITE_P(All, FaultThreads,
                         testing::Values(Kind{"one_driver", true, false}, Kind{"two_drivers", false, false},
                                         Kind{"one_driver_late", true, true},
                                         Kind{"two_drivers_late", false, true}),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace halyard::hal
