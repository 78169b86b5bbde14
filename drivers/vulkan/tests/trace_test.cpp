// The reports to a host that records a trace: the time and name of each command, before the submission
// completes; and no overhead without a trace.
#include "trace.h"

#include <algorithm>

#include "allocation_count.h"
#include "harness.h"

namespace halyard::vulkan_tests {
namespace {

// A span reported to a trace.
struct RecordedSpan {
  uint32_t kind = 0;
  uint64_t begin = 0, end = 0;
  char name[32] = {};  // shortened; a member, so that recording it allocates nothing
  const Completion* submission = nullptr;
  bool was_completed = false;  // whether the submission had completed by then
  uint32_t queue = 0;
};

class TraceTest : public VulkanTest {
 public:
  TraceTest() {
    spans_.reserve(1024);
    host_.trace([this](const halyard_trace_span_t& span) {
      RecordedSpan recorded = {.kind = span.kind,
                               .begin = span.begin_ns,
                               .end = span.end_ns,
                               .submission = static_cast<Completion*>(span.submission),
                               .queue = span.queue};
      if (span.name)
        std::copy_n(span.name, std::min(span.name_size, sizeof recorded.name - 1), recorded.name);
      recorded.was_completed = recorded.submission && recorded.submission->calls > 0;
      const std::lock_guard lock(mutex_);
      spans_.push_back(recorded);
    });
  }

  void SetUp() override {
    VulkanTest::SetUp();
    if (IsSkipped()) return;
    if (device_->queues().front().traits().timestamp_bits == 0) GTEST_SKIP() << "no timestamps here";
  }

  // Runs it and checks the reports: when the first command began, then a span for each name, in order, within
  // the time that the host saw.
  void expect_spans(const halyard_operation_t& work, const std::vector<std::string>& names) {
    Completion completion;
    (void)take_spans();
    const uint64_t before = kit::trace_time();
    ASSERT_OK(submit(work, {}, {}, completion));
    ASSERT_TRUE(is_done(completion));
    const uint64_t after = kit::trace_time();
    EXPECT_OK(completion.outcome);
    const std::vector<RecordedSpan> spans = take_spans();
    ASSERT_EQ(spans.size(), names.size() + 1);
    EXPECT_EQ(spans[0].kind, uint32_t{HALYARD_SPAN_BEGAN});
    EXPECT_EQ(spans[0].begin, spans[1].begin);
    EXPECT_GE(spans[0].begin, before);
    uint64_t last = spans[0].begin;
    for (size_t i = 0; i < spans.size(); ++i) {
      EXPECT_EQ(spans[i].submission, &completion);
      EXPECT_FALSE(spans[i].was_completed);
      EXPECT_EQ(spans[i].queue, 0u);
      if (i == 0) continue;
      EXPECT_EQ(spans[i].kind, uint32_t{HALYARD_SPAN_QUEUE});
      EXPECT_EQ(spans[i].name, names[i - 1]);
      EXPECT_GE(spans[i].begin, last);
      EXPECT_GE(spans[i].end, spans[i].begin);
      last = spans[i].end;
    }
    EXPECT_LE(last, after);
  }
  // The spans since the last call.
  std::vector<RecordedSpan> take_spans() {
    const std::lock_guard lock(mutex_);
    std::vector<RecordedSpan> spans = spans_;
    spans_.clear();
    return spans;
  }

 private:
  std::mutex mutex_;
  std::vector<RecordedSpan> spans_;
};

TEST_F(TraceTest, CommandsOfAList) {
  for (const Options& options : {Options{{"cache", ""}}, Options{{"cache", ""}, {"inline_completion", "0"}},
                                 Options{{"cache", ""}, {"validate", "1"}}}) {
    reopen(options);
    Executable loaded = device_code();
    Memory a = allocate(std::vector<uint32_t>(16, 1)), b = allocate(std::vector<uint32_t>(16, 2));
    Memory out = allocate(std::vector<uint32_t>(16, 0));
    const std::vector<uint8_t> bytes(64, 3);
    Recording recording;
    recording.begin_group("group")
        .fill(range(a, 1, 6), 5, 1)  // whole words and edges: one span
        .barrier()
        .update(bytes.data(), range(b, 0, 64))  // within the command buffer
        .barrier()
        .update(bytes.data(), range(b, 1, 7))  // through host memory
        .barrier()
        .copy(range(a, 0, 64), range(b, 0, 64))
        .barrier()
        .dispatch(dispatch(loaded, 1, {range(a, 0, 64), range(b, 0, 64), range(out, 0, 64)}, {}, 16))
        .dispatch(dispatch(loaded, 2, {range(out, 0, 64)}, {}, 0))  // empty: no span
        .barrier()
        .dispatch(dispatch(loaded, 2, {range(out, 0, 64)}, {}, 16))
        .end_group();
    const std::vector<std::string> names = {"fill", "update", "update", "copy", "add", "increment"};
    for (const bool one_shot : {false, true}) {
      List commands = finish(recording, 0, one_shot);
      for (int i = 0; i < (one_shot ? 1 : 3); ++i) expect_spans(execute_operation(commands), names);
    }
    EXPECT_EQ(words(out, 16)[4], 3u);
    EXPECT_TRUE(host_.log().empty()) << host_.log().front();
  }
}

TEST_F(TraceTest, OperationsOfAQueue) {
  Executable loaded = device_code();
  Memory a = allocate(std::vector<uint32_t>(16, 1)), b = allocate(std::vector<uint32_t>(16, 2));
  const uint32_t word = 7;
  const halyard_command_dispatch_t increment = dispatch(loaded, 2, {range(a, 0, 64)});
  expect_spans(fill_operation(range(a, 0, 4), 7, 4), {"fill"});
  expect_spans(update_operation(&word, range(a, 0, 4)), {"update"});
  expect_spans(copy_operation(range(a, 0, 64), range(b, 0, 64)), {"copy"});
  expect_spans(dispatch_operation(&increment), {"increment"});
  EXPECT_OK(run(barrier_operation()));
  EXPECT_OK(run(execute_operation(finish(Recording().barrier()))));
  EXPECT_TRUE(take_spans().empty());
}

TEST_F(TraceTest, ManyCommandsAndTables) {
  Executable loaded = device_code();
  Memory a = allocate(std::vector<uint32_t>(16, 0)), b = allocate(std::vector<uint32_t>(16, 0));
  Recording recording;
  for (int i = 0; i < 150; ++i) recording.dispatch(dispatch(loaded, 2, {slot(0, 0, 64)}, {}, 16)).barrier();
  List commands = finish(std::move(recording), 1);
  const std::vector<halyard_binding_t> tables[] = {{{a, 0, 64}}, {{b, 0, 64}}};
  const std::vector<std::string> names(150, "increment");
  for (int i = 0; i < 4; ++i) expect_spans(execute_operation(commands, tables[i % 2]), names);
  EXPECT_EQ(words(a, 1)[0], 300u);
}

// Many submissions in flight: a queue's spans are reported in its order, each before its submission
// completes.
TEST_F(TraceTest, ChainsAreInOrder) {
  Executable loaded = device_code();
  Memory memory = allocate(std::vector<uint32_t>(16, 0));
  List commands = finish(Recording().dispatch(dispatch(loaded, 2, {range(memory, 0, 64)}, {}, 16)));
  Semaphore chain = semaphore();
  std::vector<Completion> completions(40);
  EXPECT_OK(signal(chain, 1));
  for (uint64_t i = 0; i < completions.size(); ++i)
    EXPECT_OK(submit(execute_operation(commands), {{chain, i + 1}}, {{chain, i + 2}}, completions[i]));
  for (const Completion& completion : completions) EXPECT_TRUE(is_done(completion));
  const std::vector<RecordedSpan> spans = take_spans();
  ASSERT_EQ(spans.size(), 2 * completions.size());
  uint64_t last = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].submission, &completions[i / 2]);
    EXPECT_FALSE(spans[i].was_completed);
    EXPECT_GE(spans[i].begin, last);
    if (spans[i].kind == HALYARD_SPAN_QUEUE) last = spans[i].end;
  }
}

TEST_F(TraceTest, ALostDeviceReportsNothing) {
  Executable loaded = device_code();
  Memory memory = allocate(std::vector<uint32_t>{1});
  List commands = finish(Recording().dispatch(dispatch(loaded, 2, {range(memory, 0, 4)})));
  expect_spans(execute_operation(commands), {"increment"});
  accept_without_end();
  Completion stuck;
  EXPECT_OK(submit(execute_operation(commands), {}, {}, stuck));
  functions().QueueSubmit = [](VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
    return VK_ERROR_DEVICE_LOST;
  };
  EXPECT_CODE(ABORTED, run(execute_operation(commands)));
  stuck_waits_end();
  EXPECT_TRUE(is_done(stuck));
  EXPECT_TRUE(take_spans().empty());
}

TEST_F(TraceTest, WarmSubmissionsAllocateNothing) {
  if (!driver_tests::kCountsAllocations) GTEST_SKIP() << "allocations are not counted under a sanitizer";
  Executable loaded = device_code();
  Memory memory = allocate(std::vector<uint32_t>(16, 0));
  replace_vulkan();
  functions().GetQueryPoolResults = [](VkDevice, VkQueryPool, uint32_t, uint32_t, size_t size, void* data,
                                       VkDeviceSize, VkQueryResultFlags) {
    std::memset(data, 0, size);
    return VK_SUCCESS;
  };
  const halyard_operation_t work =
      execute_operation(finish(Recording().dispatch(dispatch(loaded, 2, {range(memory, 0, 64)}))));
  const Points none;
  Completion completion;
  for (int i = 0; i < 3; ++i) EXPECT_OK(submit(work, none, none, completion));
  (void)take_spans();
  const int64_t before = driver_tests::allocation_count().made;
  EXPECT_TRUE(submit(work, none, none, completion).ok());
  EXPECT_EQ(driver_tests::allocation_count().made - before, 0);
  EXPECT_EQ(take_spans().size(), 2u);
}

// Without a trace, no measuring functions are called.
class NoTraceTest : public VulkanTest {};

TEST_F(NoTraceTest, NothingIsMeasured) {
  auto& vk = functions();
  vk.CreateQueryPool = nullptr;
  vk.ResetQueryPool = nullptr;
  vk.GetQueryPoolResults = nullptr;
  vk.CmdWriteTimestamp = nullptr;
  vk.GetCalibratedTimestampsEXT = nullptr;
  const std::vector<const char*>& extensions = device_->features().extensions;
  EXPECT_TRUE(std::ranges::none_of(
      extensions, [](std::string_view name) { return name == VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME; }));
  Executable loaded = device_code();
  Memory memory = allocate(std::vector<uint32_t>{1, 1});
  List commands = finish(Recording()
                             .fill(range(memory, 0, 4), 7, 4)
                             .barrier()
                             .dispatch(dispatch(loaded, 2, {range(memory, 0, 8)}, {}, 2)));
  EXPECT_OK(run(execute_operation(commands)));
  EXPECT_EQ(words(memory, 2), (std::vector<uint32_t>{8, 2}));
}

TEST(VulkanTrace, OldHostsHaveNoTrace) {
  vulkan::Services services = {};
  services.trace_span = [](void*, const halyard_trace_span_t*) {};
  services.struct_size = sizeof services;
  EXPECT_NE(kit::trace_function(services), nullptr);
  services.struct_size = offsetof(vulkan::Services, trace_span);
  EXPECT_EQ(kit::trace_function(services), nullptr);
}

TEST(VulkanTrace, TicksBecomeTimes) {
  constexpr vulkan::ClockPoint kKnown = {.ticks = 1000, .time = 5'000'000'000};
  EXPECT_EQ(vulkan::time_of(1000, kKnown, 1, 64), 5'000'000'000u);
  EXPECT_EQ(vulkan::time_of(1100, kKnown, 1, 64), 5'000'000'100u);
  EXPECT_EQ(vulkan::time_of(900, kKnown, 1, 64), 4'999'999'900u);
  EXPECT_EQ(vulkan::time_of(1100, kKnown, 52.083, 64), 5'000'005'208u);
  EXPECT_EQ(vulkan::time_of(900, kKnown, 10, 64), 4'999'999'000u);
  // 36 bits: the count wraps forwards and backwards, and higher bits are ignored.
  constexpr uint64_t kTurn = uint64_t{1} << 36;
  constexpr vulkan::ClockPoint kLate = {.ticks = kTurn - 10, .time = 5'000'000'000};
  EXPECT_EQ(vulkan::time_of(20, kLate, 2, 36), 5'000'000'060u);
  EXPECT_EQ(vulkan::time_of(20 + 7 * kTurn, kLate, 2, 36), 5'000'000'060u);
  constexpr vulkan::ClockPoint kEarly = {.ticks = 10 + kTurn, .time = 5'000'000'000};
  EXPECT_EQ(vulkan::time_of(kTurn - 20, kEarly, 2, 36), 4'999'999'940u);
}

// A queue with a simulated clock and queries.
class ClockTest : public TraceTest {
 public:
  void SetUp() override {
    TraceTest::SetUp();
    if (IsSkipped()) return;
    real_ = device_->vk();
    functions().CmdWriteTimestamp = [](VkCommandBuffer, VkPipelineStageFlagBits, VkQueryPool, uint32_t) {};
    functions().GetQueryPoolResults = [](VkDevice, VkQueryPool, uint32_t, uint32_t, size_t size, void* data,
                                         VkDeviceSize, VkQueryResultFlags) {
      std::memcpy(data, ticks_.data(), size);
      return result_;
    };
    functions().GetCalibratedTimestampsEXT = [](VkDevice, uint32_t, const VkCalibratedTimestampInfoEXT*,
                                                uint64_t* times, uint64_t* deviation) {
      // The second reading is the best.
      ++calibrations_;
      *deviation = calibrations_ % 3 == 2 ? 10 : 100;
      times[0] = calibrations_ % 3 == 2 ? known_.ticks : 0;
      times[1] = calibrations_ % 3 == 2 ? known_.time : 0;
      return VK_SUCCESS;
    };
    result_ = VK_SUCCESS;
    calibrations_ = 0;
    features().limits.timestampPeriod = 2;
  }
  void TearDown() override {
    if (!IsSkipped()) functions() = real_;
    TraceTest::TearDown();
  }
  // Two commands with these ticks.
  std::vector<RecordedSpan> recorded(vulkan::QueueTrace& trace, uint64_t submit_time,
                                     std::vector<uint64_t> ticks) {
    vulkan::Timestamps timestamps(*device_);
    for (const char* name : {"first", "second"}) {
      EXPECT_TRUE(timestamps.before(VK_NULL_HANDLE, name, name));
      timestamps.after(VK_NULL_HANDLE);
    }
    ticks_ = std::move(ticks);
    trace.report(&timestamps, nullptr, submit_time);
    return take_spans();
  }

 protected:
  inline static std::vector<uint64_t> ticks_;
  inline static VkResult result_ = VK_SUCCESS;
  inline static int calibrations_ = 0;
  inline static vulkan::ClockPoint known_;
  vulkan::DeviceFunctions real_;
};

TEST_F(ClockTest, TimesAreTheHosts) {
  features().calibrated_timestamps = true;
  const uint64_t now = kit::trace_time();
  known_ = {1'000'000, now - 100'000};
  vulkan::QueueTrace trace(*device_, 3, 64);
  EXPECT_EQ(calibrations_, 3);
  const std::vector<RecordedSpan> spans =
      recorded(trace, now - 200'000, {1'000'000 - 40'000, 1'000'000, 1'000'010, 1'000'020});
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].begin, now - 180'000);
  EXPECT_EQ(spans[1].begin, now - 180'000);
  EXPECT_EQ(spans[1].end, now - 100'000);
  EXPECT_EQ(spans[2].begin, now - 100'000 + 20);
  EXPECT_EQ(spans[2].end, now - 100'000 + 40);
  EXPECT_EQ(spans[2].queue, 3u);
  EXPECT_STREQ(spans[2].name, "second");
  EXPECT_EQ(calibrations_, 3) << "a second has not passed";
}

TEST_F(ClockTest, SpansDoNotOverlapNorLeaveTheirSubmission) {
  features().calibrated_timestamps = true;
  const uint64_t now = kit::trace_time();
  known_ = {1'000'000, now - 100'000};
  vulkan::QueueTrace trace(*device_, 0, 64);
  std::vector<RecordedSpan> spans =
      recorded(trace, now - 150'000, {1'000, 1'000'000, 1'000'000 - 10, 1'000'020});
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].begin, now - 150'000) << "not before it was submitted";
  EXPECT_EQ(spans[1].end, now - 100'000);
  EXPECT_EQ(spans[2].begin, now - 100'000) << "where the one before it ends";
  EXPECT_EQ(spans[2].end, now - 100'000 + 40);
  spans = recorded(trace, now - 150'000, {1'000'000, 1'000'010, 1'000'030, uint64_t{1} << 62});
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].begin, now - 100'000 + 40) << "the next submission, too";
  EXPECT_EQ(spans[1].end, now - 100'000 + 40);
  EXPECT_EQ(spans[2].begin, now - 100'000 + 60);
  EXPECT_LE(spans[2].end, kit::trace_time()) << "not after it was seen done";
}

TEST_F(ClockTest, ClocksAreComparedAgain) {
  features().calibrated_timestamps = true;
  known_ = {1'000'000, kit::trace_time()};
  vulkan::QueueTrace trace(*device_, 0, 64);
  std::this_thread::sleep_for(std::chrono::milliseconds(1010));
  const uint64_t now = kit::trace_time();
  known_ = {77, now - 1000};
  const std::vector<RecordedSpan> spans = recorded(trace, now - 2000, {77, 78, 79, 80});
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(calibrations_, 6);
  EXPECT_EQ(spans[1].begin, now - 1000);
  EXPECT_EQ(spans[2].end, now - 1000 + 6);
}

TEST_F(ClockTest, WithoutACommonClockTheEndIsTheHostsTime) {
  features().calibrated_timestamps = false;
  vulkan::QueueTrace trace(*device_, 0, 36);
  const uint64_t submitted = kit::trace_time() - 1'000'000;
  const uint64_t before = kit::trace_time();
  const std::vector<RecordedSpan> spans = recorded(trace, submitted, {500, 600, 800, 1000});
  const uint64_t after = kit::trace_time();
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(calibrations_, 0);
  EXPECT_GE(spans[2].end, before);
  EXPECT_LE(spans[2].end, after);
  EXPECT_EQ(spans[1].begin, spans[2].end - 1000);
  EXPECT_EQ(spans[1].end, spans[2].end - 800);
  EXPECT_EQ(spans[2].begin, spans[2].end - 400);
}

TEST_F(ClockTest, UnwrittenQueriesReportNothing) {
  vulkan::QueueTrace trace(*device_, 0, 64);
  result_ = VK_NOT_READY;
  EXPECT_TRUE(recorded(trace, kit::trace_time(), {1, 2, 3, 4}).empty());
}

}  // namespace
}  // namespace halyard::vulkan_tests
