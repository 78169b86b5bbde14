// Stops work through the word of its submission, and charges allocations of kernels to a budget.
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "native_harness.h"

namespace halyard::local_tests {
namespace {

constexpr char kLoop[] = "  vm.br ^bb1\n^bb1:\n  vm.br ^bb1\n^bb2:\n";
// A million recursive calls (%i0 counts down from 20), repeated forever: most of the time is in calls.
constexpr char kCalls[] =
    "  vm.br ^bb1\n^bb1:\n  %i9 = vm.const.i32 20\n  vm.call @tree(%i9)\n  vm.br ^bb1\n^bb2:\n";
constexpr char kTree[] = R"(
vm.func @tree(%i0: i32) -> () {
  %i1 = vm.const.i32 1
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i0 = vm.sub.i32 %i0, %i1
  vm.call @tree(%i0)
  vm.call @tree(%i0)
  vm.return
^bb2:
  vm.return
}
)";

using Stop = std::atomic<uint32_t>;
constexpr uint32_t kHasNoStopWord = offsetof(halyard_executable_args_t, stop);

class StopTest : public NativeTest {
 public:
  // Stops the work after a moment in which `is_there` has come true, and returns its result. The work must
  // not end before.
  Outcome stopped(
      const halyard_operation_t& operation, Code code = Code::CANCELLED,
      const std::function<bool()>& is_there = [] { return true; }) {
    Stop stop = 0;
    Completion completion;
    Semaphore signal = semaphore();
    std::thread stopper([&] {
      const auto hang = std::chrono::steady_clock::now() + std::chrono::seconds(120);
      do {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
      } while (!is_there() && std::chrono::steady_clock::now() < hang);
      EXPECT_EQ(completion.calls, 0) << "it has ended by itself";
      stop = static_cast<uint32_t>(code);
    });
    EXPECT_OK(submit_to(device_, operation, {}, {{signal, 1}}, completion, &stop));
    stopper.join();
    const Outcome outcome = this->outcome(completion);
    EXPECT_TRUE(has_code(outcome.code(), failure(signal))) << "its signal fails with the same code";
    return outcome;
  }
  Outcome stopped_dispatch(Executable executable, const Dispatch& d, Code code = Code::CANCELLED) {
    const halyard_command_dispatch_t recorded = command(executable, d);
    return stopped(dispatch_operation(&recorded), code);
  }
  void still_works() {
    Executable executable =
        load(kernel_on_binding("  %i10 = vm.const.i32 77\n"
                               "  %i12:13 = vm.ext.i32.i64.u %i0\n  vm.buffer.store.i32 %i10, %r3, %i12:13"));
    Memory memory = zeros(4);
    EXPECT_OK(dispatch(executable, {.x = 4, .bindings = {range(memory, 0, 16)}}));
    EXPECT_EQ(content<uint32_t>(memory, 4), std::vector<uint32_t>(4, 77));
  }
};
HALYARD_ON_EVERY_DEVICE_AND_COMPILED(StopTest);

// The functions of an executable are verified when it is loaded, and compiled if the device does so.
TEST_P(StopTest, LoadingAnExecutable) {
  const std::vector<uint8_t> data = assemble(kernel(""));
  Stop stop = 0;
  halyard_executable_args_t args = executable_args("vmvx-bytecode-fb", data, {});
  args.stop = reinterpret_cast<const uint32_t*>(&stop);
  Executable executable = nullptr;
  EXPECT_OK(create(args, &executable));
  for (const Code code : {Code::CANCELLED, Code::DEADLINE_EXCEEDED}) {
    stop = static_cast<uint32_t>(code);
    executable = nullptr;
    EXPECT_TRUE(has_code(code, create(args, &executable)));
    EXPECT_EQ(executable, nullptr);
  }
  args.struct_size = kHasNoStopWord;  // an older host
  EXPECT_OK(create(args, &executable));
}

TEST_P(StopTest, AKernelThatLoops) {
  Executable executable = load(kernel(kLoop));
  for (const Code code : {Code::CANCELLED, Code::DEADLINE_EXCEEDED}) {
    EXPECT_TRUE(fails_with(stopped_dispatch(executable, {.x = 3}, code), code, "stopped"));
    still_works();
  }
}

TEST_P(StopTest, AKernelThatCalls) {
  Executable executable = load(
      fmt::format("{}vm.export @k\n{}vm.func @k{}{}  vm.return\n}}\n", kHeader, kTree, kArguments, kCalls));
  EXPECT_CODE(CANCELLED, stopped_dispatch(executable, {}));
  still_works();
}

// With strides of 0, one element is a whole matrix of 2^64 or 2^63 elements.
TEST_P(StopTest, MicrokernelsWithoutEnd) {
  struct Case {
    const char* import;
    const char* call;
  };
  // %i12:13 is 0, %i14:15 is 1, %i16:17 is 2^32 - 1, %i18:19 is 2^31 - 1, %i20:21 is 512. {0} is a matrix: a
  // buffer, its offset and two strides of 0; {1} is a buffer with its offset and one stride.
  constexpr const char* kMatrix = "%r0, %i12:13, %i12:13, %i12:13";
  constexpr const char* kTiles = "%r0, %i12:13, %i12:13";
  for (const Case& c : {
           Case{"@vmvx.add.2d.f32 cconv \"0rIIIrIIIrIIIII_v\"",
                "@vmvx.add.2d.f32({0}, {0}, {0}, %i16:17, %i16:17)"},
           Case{"@vmvx.exp.2d.f32 cconv \"0rIIIrIIIII_v\"", "@vmvx.exp.2d.f32({0}, {0}, %i16:17, %i16:17)"},
           Case{"@vmvx.copy.2d.x8 cconv \"0rIIIrIIIII_v\"", "@vmvx.copy.2d.x8({0}, {0}, %i16:17, %i16:17)"},
           Case{"@vmvx.fill.2d.x32 cconv \"0irIIII_v\"", "@vmvx.fill.2d.x32(%i0, {1}, %i16:17, %i14:15)"},
           Case{"@vmvx.mmt4d cconv \"0rIIrIIrIIIIIiiii_v\"",
                "@vmvx.mmt4d({1}, {1}, {1}, %i18:19, %i20:21, %i20:21, %i9, %i9, %i9, %i9)"},
           // Without terms, by their number or by their size.
           Case{"@vmvx.mmt4d cconv \"0rIIrIIrIIIIIiiii_v\"",
                "@vmvx.mmt4d({1}, {1}, {1}, %i18:19, %i20:21, %i12:13, %i9, %i9, %i9, %i9)"},
           Case{"@vmvx.mmt4d cconv \"0rIIrIIrIIIIIiiii_v\"",
                "@vmvx.mmt4d({1}, {1}, {1}, %i18:19, %i20:21, %i20:21, %i9, %i9, %i12, %i9)"},
           Case{"@vmvx.pack cconv \"0rIIIrIIIIIIIIIIi_v\"",
                "@vmvx.pack({0}, {0}, %i16:17, %i20:21, %i16:17, %i20:21, %i14:15, %i14:15, %i12:13, %i9)"},
       }) {
    Executable executable = load(kernel(
        fmt::format(
            "  %i9 = vm.const.i32 1\n  %i12:13 = vm.const.i64.zero\n  %i14:15 = vm.const.i64 1\n  %i16:17 = "
            "vm.const.i64 4294967295\n  %i18:19 = vm.const.i64 2147483647\n  %i20:21 = vm.const.i64 512\n"
            "  vm.br ^bb1\n^bb1:\n  vm.call {}\n",
            fmt::format(fmt::runtime(c.call), kMatrix, kTiles)),
        fmt::format("vm.import {}\nvm.attr @k \"local_memory\" \"65536\"\n", c.import)));
    // A kernel that finishes starts again: fill has only 2^32 elements.
    EXPECT_CODE(CANCELLED, stopped_dispatch(executable, {.x = 1000000})) << c.import;
    still_works();
  }
}

TEST_P(StopTest, EndlessWorkgroups) {
  Executable executable = load(kernel(""));
  EXPECT_CODE(CANCELLED, stopped_dispatch(executable, {.x = UINT32_MAX, .y = UINT32_MAX, .z = UINT32_MAX}));
  still_works();
}

// Machine code is stopped between workgroups, not within one.
TEST_P(StopTest, WorkgroupsOfMachineCode) {
  for (const char* kind : kLibraryKinds) {
    Executable executable = load_native(kind, "rev6");
    EXPECT_CODE(
        CANCELLED,
        stopped_dispatch(executable, {.function = 1, .x = UINT32_MAX, .y = UINT32_MAX, .constants = {0, 0}}));
  }
  still_works();
}

TEST_P(StopTest, ListsOfCommands) {
  Executable executable = load(kernel(kLoop));
  Memory memory = allocate(std::vector<uint32_t>{1, 2});
  const halyard_command_dispatch_t loop = command(executable, {});
  Recording recording;
  recording.fill(range(memory, 0, 4), 5, 4)
      .barrier()
      .dispatch(loop)
      .barrier()
      .fill(range(memory, 4, 4), 6, 4);
  List list = finish(recording);
  std::atomic<bool> is_filled = false;
  host_.trace([&](const halyard_trace_span_t& span) {
    if (std::string_view(span.name, span.name_size) == "fill") is_filled = true;
  });
  EXPECT_CODE(CANCELLED,
              stopped(execute_operation(list, {}), Code::CANCELLED, [&] { return is_filled.load(); }));
  host_.trace([](const halyard_trace_span_t&) {});
  EXPECT_EQ(content<uint32_t>(memory, 2), (std::vector<uint32_t>{5, 2}))
      << "the command after it did not run";

  // Work that is stopped before it starts does not run.
  Recording quick;
  quick.fill(range(memory, 0, 4), 9, 4);
  List other = finish(quick);
  Stop stop = static_cast<uint32_t>(Code::CANCELLED);
  Completion completion;
  EXPECT_OK(submit_to(device_, execute_operation(other, {}), {}, {}, completion, &stop));
  EXPECT_CODE(CANCELLED, outcome(completion));
  EXPECT_EQ(content<uint32_t>(memory, 1)[0], 5u);
}

TEST_P(StopTest, OnlyItsOwnWork) {
  Executable executable = load(kernel(kLoop));
  const halyard_command_dispatch_t recorded = command(executable, {});
  const halyard_operation_t loop = dispatch_operation(&recorded);
  if (runs_in_caller()) {
    Stop first = 0;
    Stop second = 0;
    Completion first_done, second_done;
    std::thread one([&] { EXPECT_OK(submit_to(device_, loop, {}, {}, first_done, &first)); });
    std::thread two([&] { EXPECT_OK(submit_to(device_, loop, {}, {}, second_done, &second)); });
    first = static_cast<uint32_t>(Code::CANCELLED);
    one.join();
    EXPECT_EQ(second_done.calls, 0);
    second = static_cast<uint32_t>(Code::CANCELLED);
    two.join();
    return;
  }
  Stop stops[2] = {};
  Completion done[2];
  for (int i = 0; i < 2; ++i) {  // through a semaphore, because ready work starts on the submitting thread
    Semaphore start = semaphore();
    EXPECT_OK(submit_to(device_, loop, {{start, 1}}, {}, done[i], &stops[i]));
    EXPECT_OK(signal(start, 1));
  }
  stops[1] = static_cast<uint32_t>(Code::CANCELLED);
  EXPECT_CODE(CANCELLED, outcome(done[1]));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(done[0].calls, 0);
  stops[0] = static_cast<uint32_t>(Code::DEADLINE_EXCEEDED);
  EXPECT_CODE(DEADLINE_EXCEEDED, outcome(done[0]));
}

// An older host has no stop word.
TEST_P(StopTest, SubmissionsWithoutAStopWord) {
  Executable executable = load(kernel(""));
  const halyard_command_dispatch_t recorded = command(executable, {});
  const halyard_operation_t dispatch = dispatch_operation(&recorded);
  static const uint32_t stopped = static_cast<uint32_t>(Code::CANCELLED);
  Completion completion;
  completion.host = &host_;
  const halyard_submission_t submission = {.struct_size = offsetof(halyard_submission_t, stop),
                                           .affinity = 1,
                                           .operation = &dispatch,
                                           .completed = completed,
                                           .completed_user = &completion,
                                           .stop = &stopped};
  EXPECT_OK(host_.take(table_.queue_submit(device_, &submission)));
  EXPECT_OK(outcome(completion));
}

// ---- Allocations of kernels

struct Ledger {
  uint64_t limit = 1 << 20;
  std::mutex mutex;
  uint64_t used = 0;
  uint64_t most = 0;

  halyard_memory_budget_t budget() {
    return {.struct_size = sizeof(halyard_memory_budget_t),
            .user = this,
            .limit = limit,
            .take = [](void* user, uint64_t bytes) -> int32_t {
              auto& self = *static_cast<Ledger*>(user);
              const std::lock_guard lock(self.mutex);
              if (bytes > self.limit - self.used) return 0;
              self.used += bytes;
              self.most = std::max(self.most, self.used);
              return 1;
            },
            .give_back =
                [](void* user, uint64_t bytes) {
                  auto& self = *static_cast<Ledger*>(user);
                  const std::lock_guard lock(self.mutex);
                  self.used -= bytes;
                },
            .used =
                [](void* user) {
                  auto& self = *static_cast<Ledger*>(user);
                  const std::lock_guard lock(self.mutex);
                  return self.used;
                }};
  }
};

class KernelMemoryTest : public KernelTest {
 public:
  Executable load_charged(std::string_view source) {
    const std::vector<uint8_t> data = assemble(source);
    halyard_executable_args_t args = executable_args("vmvx-bytecode-fb", data, {});
    args.memory = &budget_;
    Executable executable = nullptr;
    EXPECT_OK(create(args, &executable));
    return executable;
  }
  void expect_nothing_after_destroying(Executable executable) {
    destroy(executable);
    EXPECT_EQ(ledger_.used, 0u);
  }

  Ledger ledger_;
  const halyard_memory_budget_t budget_ = ledger_.budget();
};
HALYARD_ON_EVERY_DEVICE_AND_COMPILED(KernelMemoryTest);

// Keeps a buffer of %i10:11 bytes.
std::string keeps(uint64_t bytes) {
  return KernelTest::kernel(fmt::format(
      "  %i10:11 = vm.const.i64 {}\n  %i9 = vm.const.i32.zero\n  %r3 = vm.buffer.alloc %i10:11, %i9\n"
      "  vm.global.store.ref %r3, .refs[0] : !vm.buffer\n",
      bytes));
}

TEST_P(KernelMemoryTest, IsChargedUntilTheExecutableIsDestroyed) {
  Executable executable = load_charged(keeps(100000));
  EXPECT_OK(dispatch(executable, {}));
  EXPECT_GE(ledger_.used, 100000u);
  EXPECT_LT(ledger_.used, 400000u);
  expect_nothing_after_destroying(executable);
}

TEST_P(KernelMemoryTest, PastTheLimit) {
  Executable executable = load_charged(keeps(2 << 20));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "1048576", dispatch(executable, {}));
  EXPECT_LE(ledger_.most, ledger_.limit);
  expect_nothing_after_destroying(executable);
}

// The executable requests the local memory of workgroups.
TEST_P(KernelMemoryTest, LocalMemory) {
  Executable executable = load_charged(KernelTest::kernel("", "vm.attr @k \"local_memory\" \"0x8000000\"\n"));
  EXPECT_CODE(RESOURCE_EXHAUSTED, dispatch(executable, {}));
  expect_nothing_after_destroying(executable);
}

}  // namespace
}  // namespace halyard::local_tests
