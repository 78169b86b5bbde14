// Sharing among workers: the workgroups of one dispatch, and commands without a barrier between them. The
// kernels run long enough for sharing.
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include "allocation_count.h"
#include "estimate.h"
#include "kernels.h"

namespace halyard::local_tests {
namespace {

// %i9: the number of the workgroup; %r3: the first binding; then about 200 instructions without effect.
constexpr std::string_view kSlow =
    "  %i9 = vm.const.i32.zero\n  %r3 = vm.list.get.ref %r2, %i9 : !vm.buffer\n"
    "  %i9 = vm.mul.i32 %i2, %i7\n  %i9 = vm.add.i32 %i9, %i1\n  %i9 = vm.mul.i32 %i9, %i6\n"
    "  %i9 = vm.add.i32 %i9, %i0\n  %i12:13 = vm.ext.i32.i64.u %i9\n"
    "  %i10 = vm.const.i32 1\n  %i11 = vm.const.i32 100\n  vm.br ^bb1\n"
    "^bb1:\n  %i11 = vm.sub.i32 %i11, %i10\n  vm.cond_br %i11, ^bb1, ^bb2\n^bb2:\n";

std::string_view name_of(const halyard_trace_span_t& span) { return {span.name, span.name_size}; }

// Records the threads that run kernels while it exists.
class KernelThreads {
 public:
  explicit KernelThreads(Host& host) : host_(host) {
    host_.trace([this](const halyard_trace_span_t& span) {
      if (name_of(span) != "k") return;
      const std::lock_guard lock(mutex_);
      spans_.insert(std::this_thread::get_id());
    });
  }
  KernelThreads(const KernelThreads&) = delete;
  KernelThreads& operator=(const KernelThreads&) = delete;
  ~KernelThreads() {
    host_.trace([](const halyard_trace_span_t&) {});
  }

  struct Count {
    size_t spans = 0;
    size_t threads = 0;
  };
  // The count since the last call.
  Count take() {
    const std::lock_guard lock(mutex_);
    const auto spans = std::exchange(spans_, {});
    return {spans.size(), std::set(spans.begin(), spans.end()).size()};
  }

 private:
  Host& host_;
  std::mutex mutex_;
  std::multiset<std::thread::id> spans_;
};

class BatchTest : public KernelTest {
 public:
  explicit BatchTest(const char* kind = "local-task", std::string_view workers = "3")
      : KernelTest(kind, workers) {}

  // Runs a kernel with a word of the memory for each workgroup.
  Outcome run_on(Memory memory, uint32_t workgroups, Executable executable) {
    return dispatch(executable, {.x = workgroups, .bindings = {range(memory, 0, 4 * workgroups)}});
  }
  static std::string slow_kernel(std::string_view body, std::string_view directives = "") {
    return kernel(std::string(kSlow) + std::string(body), directives);
  }
  // Stores how many calls there have been. A global counts the calls of one instance of the module, and each
  // worker has an instance of its own.
  static std::string kernel_that_counts_calls() {
    return slow_kernel(
        "  %i14 = vm.global.load.i32 @calls\n  %i14 = vm.add.i32 %i14, %i10\n"
        "  vm.global.store.i32 %i14, @calls\n  vm.buffer.store.i32 %i14, %r3, %i12:13",
        "vm.global.i32 private mutable @calls\n");
  }
};

// Adds one to the workgroup's word.
constexpr std::string_view kCount =
    "  %i14 = vm.buffer.load.i32 %r3, %i12:13\n  %i14 = vm.add.i32 %i14, %i10\n"
    "  vm.buffer.store.i32 %i14, %r3, %i12:13";

// The same, but workgroups from `first` on fail afterwards.
std::string failing_from(uint32_t first) {
  return BatchTest::slow_kernel(fmt::format(
      "{}\n  %i15 = vm.const.i32 {}\n  %i16 = vm.cmp.lt.i32.u %i9, %i15\n  vm.cond_br %i16, ^bb3, ^bb4\n"
      "^bb4:\n  %i17 = vm.const.i32 9\n  vm.fail %i17, \"too far\"\n^bb3:",
      kCount, first));
}

TEST_F(BatchTest, EveryWorkgroupRunsOnce) {
  Executable executable = load(slow_kernel(kCount));
  for (const auto& [x, y, z] : {std::array{3000u, 1u, 1u}, std::array{1u, 1u, 2999u}, std::array{7u, 5u, 90u},
                                std::array{2u, 1500u, 1u}, std::array{1u, 2u, 1u}, std::array{3u, 1u, 1u}}) {
    const uint32_t total = x * y * z;
    Memory memory = zeros(total + 1);
    for (uint32_t round = 1; round <= 5; ++round) {
      EXPECT_OK(dispatch(executable, {.x = x, .y = y, .z = z, .bindings = {range(memory, 0, 4 * total)}}));
      std::vector<uint32_t> expected(total, round);
      expected.push_back(0);
      ASSERT_EQ(content<uint32_t>(memory, total + 1), expected) << x << "x" << y << "x" << z;
    }
  }
}

TEST_F(BatchTest, IndirectDispatchesAreShared) {
  Executable executable = load(slow_kernel(kCount));
  Memory memory = zeros(4000);
  Memory counts = allocate(std::vector<uint32_t>{2000, 1, 2});
  const halyard_range_t indirect = range(counts, 0, 12);
  EXPECT_OK(dispatch(executable, {.bindings = {range(memory, 0, 16000)}, .indirect = &indirect}));
  EXPECT_EQ(content<uint32_t>(memory, 4000), std::vector<uint32_t>(4000, 1));
}

// The number of ones is the number of workers that took part.
TEST_F(BatchTest, SeveralWorkersTakePart) {
  const std::string source = kernel_that_counts_calls();
  constexpr uint32_t kWorkgroups = 20000;
  Memory memory = zeros(kWorkgroups);
  // Repeated, because sometimes the other threads get no processor before all work is done.
  EXPECT_TRUE(comes_true([&] {
    Executable executable = load(source);
    EXPECT_OK(run_on(memory, kWorkgroups, executable));
    const std::vector<uint32_t> calls = content<uint32_t>(memory, kWorkgroups);
    const auto workers = std::ranges::count(calls, 1u);
    EXPECT_GE(workers, 1);
    EXPECT_LE(workers, 3);
    return workers > 1;
  }));
}

class TwoWorkersTest : public BatchTest {
 public:
  TwoWorkersTest() : BatchTest("local-task", "2") {}
};

// One thread runs the first workgroups and the other one the last, in whatever parts. Repeated, because
// sometimes the other thread gets no processor before all work is done.
TEST_F(TwoWorkersTest, EachRunsOneEndOfADispatch) {
  const std::string source = kernel_that_counts_calls();
  constexpr uint32_t kWorkgroups = 20000;
  Memory memory = zeros(kWorkgroups);
  EXPECT_TRUE(comes_true([&] {
    Executable executable = load(source);
    EXPECT_OK(run_on(memory, kWorkgroups, executable));
    std::vector<uint32_t> calls = content<uint32_t>(memory, kWorkgroups);
    auto other = calls.begin();
    for (uint32_t call = 1; other != calls.end() && *other == call; ++call) ++other;
    std::sort(other, calls.end());
    for (uint32_t call = 1; const uint32_t of_other : std::span(other, calls.end()))
      EXPECT_EQ(of_other, call++);
    return other != calls.begin() && other != calls.end();
  }));
}

// No thread measures the first workgroup while the others are idle; this would add a span on that thread.
// Repeated, because sometimes the other threads get no processor, or have not yet ended the previous run.
TEST_F(BatchTest, TheFirstRunOfAKernelIsSharedFromItsFirstWorkgroup) {
  const std::string source = slow_kernel(kCount);
  constexpr uint32_t kWorkgroups = 20000;
  Memory memory = zeros(kWorkgroups);
  KernelThreads kernels(host_);
  EXPECT_TRUE(comes_true([&] {
    Executable executable = load(source);
    EXPECT_OK(run_on(memory, kWorkgroups, executable));
    const auto [spans, threads] = kernels.take();
    return threads > 1 && spans == threads;
  }));
}

TEST_F(BatchTest, WorkersHaveTheirOwnLocalMemory) {
  Executable executable = load(
      kernel("  %i14:15 = vm.const.i64.zero\n  vm.buffer.store.i32 %i0, %r0, %i14:15\n" + std::string(kSlow) +
                 "  %i14:15 = vm.const.i64.zero\n  %i16 = vm.buffer.load.i32 %r0, %i14:15\n"
                 "  vm.buffer.store.i32 %i16, %r3, %i12:13",
             "vm.attr @k \"local_memory\" \"4096\"\n"));
  constexpr uint32_t kWorkgroups = 5000;
  Memory memory = zeros(kWorkgroups);
  EXPECT_OK(run_on(memory, kWorkgroups, executable));
  const std::vector<uint32_t> ids = content<uint32_t>(memory, kWorkgroups);
  for (uint32_t i = 0; i < kWorkgroups; ++i) ASSERT_EQ(ids[i], i);
}

// The reported failure is the one that a single thread would report, even if another workgroup fails earlier
// in time. All workgroups before it have run.
TEST_F(BatchTest, TheFirstFailureInOrderIsReported) {
  Executable executable = load(failing_from(777));
  constexpr uint32_t kWorkgroups = 3000;
  for (int round = 0; round < 20; ++round) {
    Memory memory = zeros(kWorkgroups);
    EXPECT_FAILS(FAILED_PRECONDITION, "workgroup 777,0,0 of 3000,1,1",
                 run_on(memory, kWorkgroups, executable));
    const std::vector<uint32_t> calls = content<uint32_t>(memory, kWorkgroups);
    EXPECT_EQ(std::vector<uint32_t>(calls.begin(), calls.begin() + 778), std::vector<uint32_t>(778, 1));
    EXPECT_EQ(std::ranges::count_if(calls, [](uint32_t n) { return n > 1; }), 0);
  }
}

// More simultaneous dispatches of one executable than workers. They compete for helpers, and all complete.
TEST_F(BatchTest, DispatchesCompeteForWorkers) {
  Executable executable = load(slow_kernel(kCount));
  constexpr uint32_t kDispatches = 12, kWorkgroups = 1000;
  Semaphore start = semaphore();
  struct Piece {
    Memory memory;
    Dispatch described;
    halyard_command_dispatch_t recorded;
    Completion completion;
  };
  std::vector<Piece> pieces(kDispatches);
  for (Piece& piece : pieces) {
    piece.memory = zeros(kWorkgroups);
    piece.described = {.x = kWorkgroups, .bindings = {range(piece.memory, 0, 4 * kWorkgroups)}};
    piece.recorded = command(executable, piece.described);
    const halyard_operation_t work = dispatch_operation(&piece.recorded);
    EXPECT_OK(submit(work, {{start, 1}}, {}, piece.completion));
  }
  EXPECT_OK(signal(start, 1));
  for (Piece& piece : pieces) {
    EXPECT_OK(outcome(piece.completion));
    EXPECT_EQ(content<uint32_t>(piece.memory, kWorkgroups), std::vector<uint32_t>(kWorkgroups, 1));
  }
}

// Barriers order the dispatches of a list, regardless of the number of threads.
TEST_F(BatchTest, BarriersHoldBetweenSharedDispatches) {
  Executable executable = load(slow_kernel(kCount));
  constexpr uint32_t kWorkgroups = 2000;
  Memory first = zeros(kWorkgroups);
  Memory second = zeros(kWorkgroups);
  const Dispatch on_first = {.x = kWorkgroups, .bindings = {range(first, 0, 4 * kWorkgroups)}};
  const Dispatch on_second = {.x = kWorkgroups, .bindings = {range(second, 0, 4 * kWorkgroups)}};
  Recording recording;
  recording.dispatch(command(executable, on_first))
      .barrier()
      .copy(range(first, 0, 4 * kWorkgroups), range(second, 0, 4 * kWorkgroups))
      .barrier()
      .dispatch(command(executable, on_second))
      .dispatch(command(executable, on_first));
  List list = finish(recording);
  for (uint32_t round = 0; round < 5; ++round) {
    EXPECT_OK(run(execute_operation(list, {})));
    EXPECT_EQ(content<uint32_t>(first, kWorkgroups), std::vector<uint32_t>(kWorkgroups, 2 * round + 2));
    EXPECT_EQ(content<uint32_t>(second, kWorkgroups), std::vector<uint32_t>(kWorkgroups, 2 * round + 2));
  }
}

// Each thread waits here for the others, so the test only passes if the work runs in parallel.
class Meeting {
 public:
  explicit Meeting(size_t expected) : expected_(expected) {}
  void come() {
    std::unique_lock lock(mutex_);
    there_.insert(std::this_thread::get_id());
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(5), [&] { return there_.size() == expected_; });
  }
  size_t size() const { return there_.size(); }

 private:
  const size_t expected_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::thread::id> there_;
};

// A list of dispatches separated by barriers, about 45 us each: too short to wake a thread for one.
class SmallWorkTest : public BatchTest {
 public:
  void SetUp() override {
    BatchTest::SetUp();
    executable_ = load(slow_kernel(kCount));
    memory_ = zeros(kMaxWorkgroups);
    constexpr uint32_t kMeasured = 1000;
    std::atomic<uint64_t> taken = 0;  // nanoseconds, sum over all threads
    host_.trace([&](const halyard_trace_span_t& span) {
      if (name_of(span) == "k") taken += span.end_ns - span.begin_ns;
    });
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < 10; ++round) {
      taken = 0;
      EXPECT_OK(run_on(memory_, kMeasured, executable_));
      least = std::min<uint64_t>(least, taken);
    }
    host_.trace([](const halyard_trace_span_t&) {});
    workgroups_ = static_cast<uint32_t>(std::clamp<uint64_t>(45'000 * kMeasured / least, 2, kMaxWorkgroups));
  }

  // The number of threads that take part in each round.
  std::vector<size_t> threads_of(uint32_t dispatches, uint32_t rounds) {
    Recording recording;
    const Dispatch small = {.x = workgroups_, .bindings = {range(memory_, 0, 4 * workgroups_)}};
    for (uint32_t i = 0; i < dispatches; ++i) recording.dispatch(command(executable_, small)).barrier();
    List list = finish(recording);
    KernelThreads kernels(host_);
    std::vector<size_t> counts;
    for (uint32_t round = 0; round < rounds; ++round) {
      EXPECT_OK(run(execute_operation(list, {})));
      counts.push_back(kernels.take().threads);
    }
    return counts;
  }

 private:
  static constexpr uint32_t kMaxWorkgroups = 1 << 16;
  Executable executable_;
  Memory memory_;
  uint32_t workgroups_ = 0;
};

TEST_F(SmallWorkTest, StaysOnOneThread) {
  // A run that another program interrupts appears long, so a few of the 400 may be shared, and on a busy
  // machine many; a driver that shares each of them fails.
  EXPECT_TRUE(comes_true([&] { return std::ranges::count(threads_of(2, 400), 1u) >= 200; }));
}

// The same dispatches, but enough of them that waking a thread pays off.
TEST_F(SmallWorkTest, IsSharedIfThereIsMuchOfIt) {
  EXPECT_TRUE(comes_true([&] { return std::ranges::max(threads_of(60, 50)) > 1; }));
}

TEST_F(BatchTest, CommandsWithoutBarriersRunInParallel) {
  // The duration is unknown, so helpers are requested.
  Executable executable = load(slow_kernel(kCount));
  Memory words = zeros(3);
  Memory large = allocate(uint64_t{12} << 20);
  std::vector<Dispatch> dispatches;
  Recording of_dispatches, of_fills;
  for (uint64_t i = 0; i < 3; ++i) dispatches.push_back({.bindings = {range(words, 4 * i, 4)}});
  for (uint64_t i = 0; i < 3; ++i) {
    of_dispatches.dispatch(command(executable, dispatches[i]));
    of_fills.fill(range(large, i << 22, 4 << 20), 7, 4);
  }
  uint32_t counted = 0;
  for (const auto& [recording, name] : {std::pair{&of_dispatches, "k"}, {&of_fills, "fill"}}) {
    List list = finish(*recording);
    // Repeated, because a thread that has just ended other work may still count as busy.
    EXPECT_TRUE(comes_true([&] {
      Meeting meeting(3);
      host_.trace([&](const halyard_trace_span_t& span) {
        if (name_of(span) == name) meeting.come();
      });
      EXPECT_OK(run(execute_operation(list, {})));
      counted += recording == &of_dispatches;
      return meeting.size() == 3;
    })) << name;
  }
  EXPECT_EQ(content<uint32_t>(words, 3), std::vector<uint32_t>(3, counted));
  EXPECT_EQ(content<uint32_t>(large, 3 << 20), std::vector<uint32_t>(3 << 20, 7));
}

// Large commands, each of which starts after the previous one has ended.
TEST_F(BatchTest, NothingPassesABarrier) {
  Memory memory = allocate(uint64_t{4} << 20);
  std::vector<uint32_t> words(6 << 19);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i >> 19);
  Memory source = allocate(words);
  Recording recording;
  for (uint64_t i = 0; i < 6; ++i) {
    const halyard_range_t from = range(source, i << 21, 2 << 20);
    recording.copy(from, range(memory, 0, 2 << 20)).copy(from, range(memory, 2 << 20, 2 << 20));
    recording.begin_group("parts nothing").end_group().barrier();
  }
  std::mutex mutex;
  std::vector<std::pair<uint64_t, uint64_t>> times;
  host_.trace([&](const halyard_trace_span_t& span) {
    if (name_of(span) != "copy") return;
    const std::lock_guard lock(mutex);
    times.emplace_back(span.begin_ns, span.end_ns);
  });
  EXPECT_OK(run(execute_operation(finish(recording), {})));
  EXPECT_EQ(content<uint32_t>(memory, 1 << 20), std::vector<uint32_t>(1 << 20, 5));
  ASSERT_EQ(times.size(), 12u);
  std::ranges::sort(times);
  for (size_t i = 2; i < times.size(); i += 2) {
    EXPECT_GE(times[i].first, times[i - 2].second);
    EXPECT_GE(times[i].first, times[i - 1].second);
  }
}

// More commands than fit in a batch, of every kind, each with its own bytes.
TEST_F(BatchTest, EveryCommandIsDoneOnce) {
  constexpr uint32_t kRows = 90, kColumns = 300;
  Executable executable = load(slow_kernel(kCount));
  Memory memory = zeros(kRows * kColumns);
  Memory counts = allocate(std::vector<uint32_t>{kColumns, 1, 1});
  const halyard_range_t indirect = range(counts, 0, 12);
  const std::vector<uint32_t> sevens(kColumns, 7);
  Memory source = allocate(sevens);
  std::vector<Dispatch> dispatches;
  dispatches.reserve(kRows);
  Recording recording;
  for (uint32_t row = 0; row < kRows; ++row) {
    const halyard_range_t target = range(memory, uint64_t{4} * row * kColumns, 4 * kColumns);
    switch (row % 6) {
      case 0:
        recording.fill(target, 7, 4);
        break;
      case 1:
        recording.update(sevens.data(), target);
        break;
      case 2:
        recording.copy(range(source, 0, 4 * kColumns), target);
        break;
      case 3:
        recording.dispatch(
            command(executable, dispatches.emplace_back(Dispatch{.x = kColumns, .bindings = {target}})));
        break;
      case 4:
        recording.dispatch(command(
            executable, dispatches.emplace_back(Dispatch{.bindings = {target}, .indirect = &indirect})));
        break;
      default:
        recording.dispatch(
            command(executable, dispatches.emplace_back(Dispatch{.x = 0, .bindings = {target}})));
    }
  }
  List list = finish(recording);
  for (uint32_t round = 1; round <= 10; ++round) {
    EXPECT_OK(run(execute_operation(list, {})));
    std::vector<uint32_t> expected;
    for (uint32_t row = 0; row < kRows; ++row) {
      const uint32_t by_kind[] = {7, 7, 7, round, round, 0};
      expected.insert(expected.end(), kColumns, by_kind[row % 6]);
    }
    ASSERT_EQ(content<uint32_t>(memory, kRows * kColumns), expected) << round;
  }
}

// Several commands fail: the first one in the list is reported, and those before it have run.
TEST_F(BatchTest, TheFirstFailingCommandIsReported) {
  Executable counting = load(slow_kernel(kCount));
  Executable failing = load(failing_from(100));
  constexpr uint32_t kCommands = 20, kWorkgroups = 400, kFirst = 7;
  std::vector<Dispatch> dispatches;
  dispatches.reserve(kCommands);
  Memory memory = zeros(kCommands * kWorkgroups);
  Recording recording;
  for (uint32_t i = 0; i < kCommands; ++i) {
    // The sizes differ, so that each message names another size.
    dispatches.push_back(
        {.x = kWorkgroups - i, .bindings = {range(memory, uint64_t{4} * i * kWorkgroups, 4 * kWorkgroups)}});
    const bool fails = i >= kFirst && i % 2 == kFirst % 2;
    recording.dispatch(command(fails ? failing : counting, dispatches.back()));
  }
  List list = finish(recording);
  for (uint32_t round = 1; round <= 10; ++round) {
    EXPECT_FAILS(FAILED_PRECONDITION, "workgroup 100,0,0 of 393,1,1", run(execute_operation(list, {})));
    const std::vector<uint32_t> calls = content<uint32_t>(memory, kCommands * kWorkgroups);
    for (uint32_t i = 0; i < kFirst; ++i)
      for (uint32_t x = 0; x < kWorkgroups - i; ++x) ASSERT_EQ(calls[i * kWorkgroups + x], round) << i;
  }
}

// After all workers have taken part once. Repeated, because a worker may take part for the first time in any
// round; a driver that allocates in each round fails.
TEST_F(BatchTest, AWarmBatchAllocatesNothing) {
  if (!driver_tests::kCountsAllocations) GTEST_SKIP() << "under a sanitizer";
  Executable executable = load(slow_kernel(kCount));
  Memory memory = zeros(2000);
  std::vector<Dispatch> dispatches;
  Recording recording;
  for (uint64_t i = 0; i < 20; ++i)
    dispatches.push_back({.x = 100, .bindings = {range(memory, 400 * i, 400)}});
  for (const Dispatch& d : dispatches) recording.dispatch(command(executable, d));
  const halyard_operation_t work = execute_operation(finish(recording), {});
  EXPECT_OK(run(work));
  EXPECT_TRUE(comes_true([&] {
    const int64_t before = driver_tests::allocation_count().made;
    EXPECT_OK(run(work));
    return driver_tests::allocation_count().made == before;
  }));
}

// The reports of traces about the threads of dispatches.
class SharingTraceTest : public BatchTest {
 public:
  explicit SharingTraceTest(const char* kind = "local-task", std::string_view workers = "2")
      : BatchTest(kind, workers) {}

  struct Report {
    uint32_t sharing = HALYARD_SHARING_UNKNOWN;
    uint32_t threads = 0;
    bool operator==(const Report&) const = default;
  };
  // Runs the dispatch and returns the reports of its spans of this name.
  template <typename Run>
  std::vector<Report> reports_of(std::string_view name, Run run) {
    std::mutex mutex;
    std::vector<Report> reports;
    uint64_t workgroups = 0;
    std::set<uint64_t> whole;
    host_.trace([&](const halyard_trace_span_t& span) {
      if (name_of(span) != name) return;
      const std::lock_guard lock(mutex);
      reports.push_back({span.sharing, span.threads});
      workgroups += span.workgroups;
      whole.insert(span.dispatch_workgroups);
    });
    EXPECT_OK(run());
    host_.trace([](const halyard_trace_span_t&) {});
    // However many spans there are, the dispatch or fill is counted once.
    EXPECT_EQ(whole, std::set<uint64_t>{workgroups});
    return reports;
  }
  // The report of the first span.
  Report report_of(Executable executable, uint32_t workgroups, Memory memory) {
    const std::vector<Report> reports =
        reports_of("k", [&] { return run_on(memory, workgroups, executable); });
    return reports.empty() ? Report() : reports.front();
  }
};

TEST_F(SharingTraceTest, OneWorkgroup) {
  const Report one = {HALYARD_SHARING_ONE_WORKGROUP, 1};
  EXPECT_EQ(report_of(load(slow_kernel(kCount)), 1, zeros(1)), one);
}

// The duration of a kernel that has not run yet is unknown, so all idle threads are asked.
TEST_F(SharingTraceTest, Shared) {
  EXPECT_TRUE(comes_true([&] {
    return report_of(load(slow_kernel(kCount)), 3000, zeros(3000)) == Report{HALYARD_SHARING_SHARED, 2};
  }));
}

TEST_F(SharingTraceTest, TooShort) {
  Executable executable = load(slow_kernel(kCount));
  Memory memory = zeros(2);
  EXPECT_TRUE(comes_true([&] {  // the first runs measure the kernel
    return report_of(executable, 2, memory) == Report{HALYARD_SHARING_TOO_SHORT, 1};
  }));
}

// The trace blocks one of the two workers until the other has run the dispatch.
TEST_F(SharingTraceTest, NoIdleThread) {
  Memory memory = zeros(3000);
  Executable blocking = load(slow_kernel(kCount));
  Executable executable = load(slow_kernel(kCount));
  std::mutex mutex;
  std::condition_variable changed;
  int spans = 0;
  Report second;
  host_.trace([&](const halyard_trace_span_t& span) {
    if (name_of(span) != "k") return;
    std::unique_lock lock(mutex);
    changed.notify_all();
    if (++spans == 2) second = {span.sharing, span.threads};
    changed.wait_for(lock, std::chrono::seconds(120), [&] { return spans >= 2; });
  });
  const Dispatch one = {.x = 1, .bindings = {range(memory, 0, 4)}};
  const Dispatch many = {.x = 3000, .bindings = {range(memory, 0, 12000)}};
  const halyard_command_dispatch_t first_command = command(blocking, one);
  const halyard_command_dispatch_t second_command = command(executable, many);
  Completion first_done, second_done;
  EXPECT_OK(submit(dispatch_operation(&first_command), {}, {}, first_done));
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(120), [&] { return spans == 1; }));
  }
  EXPECT_OK(submit(dispatch_operation(&second_command), {}, {}, second_done));
  EXPECT_OK(outcome(first_done));
  EXPECT_OK(outcome(second_done));
  EXPECT_EQ(second, (Report{HALYARD_SHARING_NO_IDLE_THREAD, 1}));
  host_.trace([](const halyard_trace_span_t&) {});
}

// A fill that is alone is shared in pieces.
TEST_F(SharingTraceTest, AFill) {
  Memory memory = allocate(uint64_t{8} << 20);
  for (const uint32_t size : {1u, 2u, 4u}) {
    const uint32_t pattern = 0x11223344u + size;
    const uint64_t length = (uint64_t{7} << 20) + 4 * uint64_t{size};
    Recording recording;
    recording.fill(range(memory, 4, length), pattern, size);
    List list = finish(recording);
    EXPECT_TRUE(comes_true([&] {
      return reports_of("fill", [&] { return run(execute_operation(list, {})); }) ==
             std::vector<Report>(2, {HALYARD_SHARING_SHARED, 2});
    }));
    const std::vector<uint8_t> found = content<uint8_t>(memory, 8 << 20);
    for (uint64_t i = 0; i < length; ++i)
      ASSERT_EQ(found[4 + i], static_cast<uint8_t>(pattern >> (8 * (i % size)))) << size << ' ' << i;
    EXPECT_EQ(found[3], 0);
    EXPECT_EQ(found[4 + length], 0);
  }
}

#ifdef HALYARD_TEST_COMPILED
// The only workgroup multiplies matrices: C[y][x] += A[y][k] * B[k][x]. A second binding has A and B.
constexpr const char* kProduct = R"(
  %i10 = vm.const.i32 1
  %r4 = vm.list.get.ref %r2, %i10 : !vm.buffer
  %i0:1 = vm.const.i64 4096
  %i2:3 = vm.const.i64 64
  %i4:5 = vm.const.i64 1
  %i6:7 = vm.const.i64 262144
  %i12:13 = vm.const.i64.zero
  vm.br ^bb1
^bb1:
  %i10 = vm.cmp.lt.i64.s %i12:13, %i0:1
  vm.cond_br %i10, ^bb2, ^bb9
^bb2:
  %i14:15 = vm.const.i64.zero
  vm.br ^bb3
^bb3:
  %i10 = vm.cmp.lt.i64.s %i14:15, %i2:3
  vm.cond_br %i10, ^bb4, ^bb8
^bb4:
  %i16:17 = vm.const.i64.zero
  vm.br ^bb5
^bb5:
  %i10 = vm.cmp.lt.i64.s %i16:17, %i2:3
  vm.cond_br %i10, ^bb6, ^bb7
^bb6:
  %i18:19 = vm.fma.i64 %i12:13, %i2:3, %i16:17
  %i20 = vm.buffer.load.f32 %r4, %i18:19
  %i18:19 = vm.fma.i64 %i16:17, %i2:3, %i14:15
  %i18:19 = vm.add.i64 %i18:19, %i6:7
  %i21 = vm.buffer.load.f32 %r4, %i18:19
  %i18:19 = vm.fma.i64 %i12:13, %i2:3, %i14:15
  %i22 = vm.buffer.load.f32 %r3, %i18:19
  %i22 = vm.fma.f32 %i20, %i21, %i22
  vm.buffer.store.f32 %i22, %r3, %i18:19
  %i16:17 = vm.add.i64 %i16:17, %i4:5
  vm.br ^bb5
^bb7:
  %i14:15 = vm.add.i64 %i14:15, %i4:5
  vm.br ^bb3
^bb8:
  %i12:13 = vm.add.i64 %i12:13, %i4:5
  vm.br ^bb1
^bb9:
)";

class CompiledSharingTraceTest : public SharingTraceTest {
 public:
  CompiledSharingTraceTest() : SharingTraceTest("local-task?jit=always") {
    // Small integers, so that every sum is exact.
    for (size_t i = 0; i < factors_.size(); ++i) factors_[i] = static_cast<float>(i * 37 % 11);
    from_ = allocate(factors_);
  }

  Dispatch product() {
    return {
        .bindings = {range(product_, 0, 4 * kMatrixRows * kColumns), range(from_, 0, 4 * factors_.size())}};
  }
  void expect_product(float calls) {
    const std::vector<float> found = content<float>(product_, kMatrixRows * kColumns);
    for (size_t y = 0; y < kMatrixRows; ++y) {
      for (size_t x = 0; x < kColumns; ++x) {
        float expected = 0;
        for (size_t k = 0; k < kColumns; ++k)
          expected += factors_[y * kColumns + k] * factors_[(kMatrixRows + k) * kColumns + x];
        ASSERT_EQ(found[y * kColumns + x], calls * expected) << y << ' ' << x;
      }
    }
  }

  static constexpr size_t kMatrixRows = 4096, kColumns = 64;
  Executable executable_ = load(kernel_on_binding(kProduct, "vm.type f32\n"));
  Memory product_ = zeros(kMatrixRows * kColumns);
  std::vector<float> factors_ = std::vector<float>((kMatrixRows + kColumns) * kColumns);
  Memory from_;
};

TEST_F(CompiledSharingTraceTest, RowsOfOneWorkgroup) {
  float calls = 0;
  EXPECT_TRUE(comes_true([&] {
    ++calls;
    return reports_of("k", [&] { return dispatch(executable_, product()); }) ==
           std::vector<Report>(2, {HALYARD_SHARING_SHARED, 2});
  }));
  expect_product(calls);
}

// The other thread has a fill to run, and helps with the rest of the rows.
TEST_F(CompiledSharingTraceTest, RowsOfOneWorkgroupBesideAFill) {
  Memory other = allocate(uint64_t{64} << 10);
  const Dispatch dispatched = product();
  Recording recording;
  recording.dispatch(command(executable_, dispatched));
  recording.fill(range(other, 0, 64 << 10), 0x11223344u, 4);
  List list = finish(recording);
  float calls = 0;
  EXPECT_TRUE(comes_true([&] {
    ++calls;
    return reports_of("k", [&] { return run(execute_operation(list, {})); }) ==
           std::vector<Report>(2, {HALYARD_SHARING_SHARED, 2});
  }));
  expect_product(calls);
}
#endif

class OneThreadTraceTest : public SharingTraceTest {
 public:
  OneThreadTraceTest() : SharingTraceTest("local-task", "1") {}
};
TEST_F(OneThreadTraceTest, OfAWorker) {
  EXPECT_EQ(report_of(load(slow_kernel(kCount)), 3000, zeros(3000)), (Report{HALYARD_SHARING_ONE_THREAD, 1}));
}

class CallerTraceTest : public SharingTraceTest {
 public:
  CallerTraceTest() : SharingTraceTest("local-sync") {}
};
TEST_F(CallerTraceTest, OfTheCaller) {
  EXPECT_EQ(report_of(load(slow_kernel(kCount)), 3000, zeros(3000)), (Report{HALYARD_SHARING_ONE_THREAD, 1}));
}

// The durations are those of the first grid; other grids, and large ones, have none.
TEST(WorkgroupCosts, AreOfTheFirstSmallGrid) {
  local::WorkgroupCosts costs;
  EXPECT_FALSE(costs.are_for(0));
  EXPECT_FALSE(costs.are_for(local::WorkgroupCosts::kMost + 1));
  EXPECT_TRUE(costs.are_for(3));
  EXPECT_TRUE(costs.are_for(3));
  EXPECT_FALSE(costs.are_for(4));
  EXPECT_FALSE(costs.of(2).is_known());
  costs.of(2).learn(500);
  costs.of(2).learn(700);
  EXPECT_EQ(costs.of(2).value(), 500U) << "the shorter of the last two";
  EXPECT_FALSE(costs.of(1).is_known());
}

}  // namespace
}  // namespace halyard::local_tests
