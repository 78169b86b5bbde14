// Calls that wait, and calls that are stopped. A waiting invocation blocks no thread, can be resumed on any
// thread, and leaves no state when it is interrupted. Specified by verifier-and-execution.md, section 6.
#include <malloc.h>

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <thread>

#include "machine_testing.h"
#include "vm/object/buffer.h"

namespace halyard::vm::test {
namespace {

using namespace std::chrono_literals;

// Gates that programs wait for until a test opens them.
struct Gates {
  std::mutex mutex;
  bool open = false;
  std::vector<Wakeup> waiting;
  std::atomic<int> attempts = 0;

  void open_all() {
    std::vector<Wakeup> woken;
    {
      const std::lock_guard lock(mutex);
      open = true;
      woken.swap(waiting);
    }
    for (const Wakeup& each : woken) each.wake();
  }
};

Result<int32_t> pass(Gates& gates, CallContext& call, int32_t value, int32_t milliseconds) {
  const std::lock_guard lock(gates.mutex);
  ++gates.attempts;
  if (gates.open) return value;
  if (call.resumed() && milliseconds > 0) return -value;  // the deadline has passed
  Deadline deadline;
  if (milliseconds > 0) deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
  gates.waiting.push_back(call.wait(deadline));
  return 0;
}

constexpr const char* kText = R"(
vm.module @program
vm.import @gate.pass cconv "0ii_i"
vm.global.i32 mutable @turns
vm.func @through(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  vm.call.yieldable @gate.pass(%i0, %i1) -> ^bb1(%i0)
^bb1:
  %i1 = vm.const.i32 1
  %i0 = vm.add.i32 %i0, %i1
  vm.return %i0
}
vm.func @impatient(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 5
  vm.call.yieldable @gate.pass(%i0, %i1) -> ^bb1(%i0)
^bb1:
  vm.return %i0
}
vm.func @caller(%i0: i32) -> (i32) {
  %i1 = vm.call @through(%i0)
  %i1 = vm.add.i32 %i1, %i0
  vm.return %i1
}
vm.func @endless(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 1
  vm.br ^bb1
^bb1:
  %i0 = vm.add.i32 %i0, %i1
  vm.global.store.i32 %i0, @turns
  vm.br ^bb1
^bb2:
  vm.return %i0
}
vm.func @deep(%i0: i32) -> (i32) {
  %i1 = vm.call @deep(%i0)
  vm.return %i1
}
vm.func @holds(%r0: !test.thing) -> () {
  %r1 = vm.assign.ref %r0
  %i0 = vm.const.i32.zero
  vm.call.yieldable @gate.pass(%i0, %i0) -> ^bb1(%i0)
^bb1:
  vm.discard.refs %r0, %r1
  vm.return
}
vm.func @allocates(%i0:1: i64) -> (!vm.buffer) {
  %i2 = vm.const.i32 16
  %r0 = vm.buffer.alloc %i0:1, %i2
  vm.return %R0
}
vm.func @lists(%i0: i32) -> (!vm.list<i64>) {
  %r0 = vm.list.alloc %i0 : !vm.list<i64>
  vm.list.resize %r0, %i0
  vm.return %R0
}
)";

void add_gate(Machine& machine, Gates& gates) {
  machine.add_native("gate", {{"pass", convention_of<&pass>, bind<&pass>}}, &gates);
  machine.add(kText);
}
struct GateMachine : Machine {
  explicit GateMachine(Gates& gates, Limits limits = {}) : Machine(std::move(limits)) {
    add_gate(*this, gates);
  }
};

class Wait : public testing::Test {
 protected:
  Callable find(const std::string& name) { return *machine_.find(name); }
  Result<Outcome> begin(Invocation& invocation, const std::string& name, const Values& arguments) {
    return invocation.begin(find(name), arguments);
  }

  Gates gates_;
  GateMachine machine_{gates_};
};

TEST_F(Wait, BlocksTheCallerOnlyWhereItAskedForThat) {
  std::thread opener([&] {
    while (gates_.attempts == 0) std::this_thread::sleep_for(1ms);
    gates_.open_all();
  });
  machine_.expect("through", {i32(41)}, {i32(42)});
  opener.join();
  EXPECT_EQ(gates_.attempts, 2);
}

TEST_F(Wait, IsResumedByWhoeverLikes) {
  Invocation invocation(machine_.context);
  std::atomic<int> calls = 0;
  invocation.set_ready_hook({[](void* user) { ++*static_cast<std::atomic<int>*>(user); }, &calls});
  const Values arguments = {i32(41)};
  auto outcome = invocation.begin(find("caller"), arguments);
  ASSERT_EQ(outcome, Outcome::waiting);
  EXPECT_FAILS(FAILED_PRECONDITION, "", invocation.resume());
  EXPECT_EQ(calls, 0);
  gates_.open_all();
  EXPECT_EQ(calls, 1);
  Values results(1);
  std::thread other([&] {
    outcome = invocation.resume();
    invocation.take_results(results);
  });
  other.join();
  ASSERT_EQ(outcome, Outcome::done);
  EXPECT_EQ(results[0].as_i32(), 83);
}

TEST_F(Wait, GoesOnAtTheDeadline) {
  machine_.expect("impatient", {i32(7)}, {i32(-7)});
  Invocation invocation(machine_.context);
  ASSERT_EQ(begin(invocation, "impatient", {i32(7)}), Outcome::waiting);
  ASSERT_TRUE(invocation.wait_deadline().has_value());
  std::this_thread::sleep_until(*invocation.wait_deadline());
  EXPECT_EQ(invocation.resume(), Outcome::done);
}

// A wakeup of a finished wait has no effect on the next one.
TEST_F(Wait, LateWakeupsAreForgotten) {
  Invocation invocation(machine_.context);
  ASSERT_EQ(begin(invocation, "through", {i32(1)}), Outcome::waiting);
  invocation.drop();
  std::vector<Wakeup> late = std::move(gates_.waiting);
  gates_.waiting.clear();
  ASSERT_EQ(begin(invocation, "through", {i32(1)}), Outcome::waiting);
  late[0].wake();
  EXPECT_FALSE(invocation.resume());
  gates_.open_all();
  EXPECT_EQ(invocation.resume(), Outcome::done);
}

TEST_F(Wait, DroppedCallsReleaseWhatTheyHold) {
  {
    Invocation invocation(machine_.context);
    ASSERT_EQ(begin(invocation, "holds", {machine_.thing()}), Outcome::waiting);
  }
  gates_.open_all();  // there are no waiters any more
  EXPECT_EQ(machine_.alive, 0);
}

TEST_F(Wait, InterruptsWaits) {
  Invocation invocation(machine_.context);
  std::atomic<bool> ready = false;
  invocation.set_ready_hook({[](void* user) { *static_cast<std::atomic<bool>*>(user) = true; }, &ready});
  {
    ASSERT_EQ(begin(invocation, "holds", {machine_.thing()}), Outcome::waiting);
  }
  invocation.interrupt(Code::CANCELLED);
  EXPECT_TRUE(ready);
  EXPECT_FAILS(CANCELLED, "", invocation.resume());
  EXPECT_EQ(machine_.alive, 0);
  gates_.open_all();
  EXPECT_EQ(begin(invocation, "through", {i32(1)}), Outcome::done) << "it can be used again";
}

// Calls a function that does not end; `stop` is called by another thread.
Result<> call_and_stop(const Machine& machine, Invocation& invocation, const std::string& name,
                       const std::function<void()>& stop) {
  const Callable callee = *machine.find(name);
  invocation.arm();  // on a busy machine it may be stopped before it begins
  std::thread stopper([&] {
    std::this_thread::sleep_for(20ms);
    stop();
  });
  Values results(1);
  const Values arguments = {i32(0)};
  Result<> done = invocation.call(callee, arguments, results);
  stopper.join();
  return done;
}

TEST_F(Wait, InterruptsLoopsAndCallsFromAnotherThread) {
  for (const char* name : {"endless", "deep"}) {
    GateMachine machine(gates_, {.stack_bytes = uint64_t{1} << 33});
    Invocation invocation(machine.context);
    const auto done =
        call_and_stop(machine, invocation, name, [&] { invocation.interrupt(Code::CANCELLED); });
    EXPECT_FAILS(CANCELLED, "", done) << name;
  }
}

TEST_F(Wait, InterruptsStopTheWorkOfTheCall) {
  Invocation invocation(machine_.context);
  ASSERT_EQ(begin(invocation, "holds", {machine_.thing()}), Outcome::waiting);
  const Ref<WorkScope> work = Ref<WorkScope>::share(&invocation.work_scope());
  EXPECT_EQ(&invocation.work_scope(), work.get()) << "one for all that it submits";
  EXPECT_EQ(stop_code(work->stop_word()), Code::OK);
  invocation.interrupt(Code::DEADLINE_EXCEEDED);
  invocation.interrupt(Code::CANCELLED);
  EXPECT_EQ(stop_code(work->stop_word()), Code::DEADLINE_EXCEEDED) << "the first one";
  EXPECT_EQ(&invocation.work_scope(), work.get()) << "what the call still submits is stopped as well";
  EXPECT_FALSE(invocation.resume());

  gates_.open_all();
  ASSERT_EQ(begin(invocation, "through", {i32(1)}), Outcome::done);
  EXPECT_NE(&invocation.work_scope(), work.get()) << "the next call has its own";
  EXPECT_FALSE(invocation.work_scope().is_stopped());
}

TEST_F(Wait, WorkOfAnInterruptedCallThatSubmitsForTheFirstTimeIsStopped) {
  Invocation invocation(machine_.context);
  ASSERT_EQ(begin(invocation, "holds", {machine_.thing()}), Outcome::waiting);
  invocation.interrupt(Code::CANCELLED);
  EXPECT_TRUE(invocation.work_scope().is_stopped());
}

TEST_F(Wait, DroppedCallsCancelTheirWork) {
  for (const bool drops : {true, false}) {
    Ref<WorkScope> work;
    {
      Invocation invocation(machine_.context);
      ASSERT_EQ(begin(invocation, "holds", {machine_.thing()}), Outcome::waiting);
      work = Ref<WorkScope>::share(&invocation.work_scope());
      if (drops) invocation.drop();
    }
    EXPECT_EQ(stop_code(work->stop_word()), Code::CANCELLED);
  }
}

// Unfinished work of a finished call continues.
TEST_F(Wait, FinishedCallsLeaveTheirWorkAlone) {
  gates_.open_all();
  Ref<WorkScope> work;
  {
    Invocation invocation(machine_.context);
    ASSERT_EQ(begin(invocation, "through", {i32(1)}), Outcome::done);
    work = Ref<WorkScope>::share(&invocation.work_scope());
  }
  EXPECT_FALSE(work->is_stopped());
}

// Like kernels run.
void expect_stop_by_a_word_of_other_work(const Machine& machine, const std::string& name) {
  WorkScope scope;
  Invocation invocation(machine.context);
  invocation.set_stop(scope.stop_word());
  const auto done = call_and_stop(machine, invocation, name, [&] { scope.stop(Code::DEADLINE_EXCEEDED); });
  EXPECT_FAILS(DEADLINE_EXCEEDED, "work on a device was stopped", done) << name;
}

TEST_F(Wait, StopsByAWordOfOtherWork) {
  for (const char* name : {"endless", "deep"}) {
    GateMachine machine(gates_, {.stack_bytes = uint64_t{1} << 33});
    expect_stop_by_a_word_of_other_work(machine, name);
  }
}

// The loop that takes samples reads the word of other work at calls and samples only.
TEST_F(Wait, StopsByAWordOfOtherWorkWhileSamplesAreTaken) {
  for (const char* name : {"endless", "deep"}) {
    Machine machine({.stack_bytes = uint64_t{1} << 33});
    machine.queue = std::make_shared<CompileQueue>(Sampling{.hot = UINT32_MAX});
    add_gate(machine, gates_);
    expect_stop_by_a_word_of_other_work(machine, name);
    gates_.open_all();
    Invocation next(machine.context);
    Values results(1);
    EXPECT_OK(next.call(*machine.find("through"), Values{i32(1)}, results));
  }
}

TEST(TimeLimit, StopsLoopsAndWaits) {
  Gates gates;
  GateMachine machine(gates, {.time = 20ms});
  machine.expect_failure("endless", {i32(0)}, Code::DEADLINE_EXCEEDED);
  machine.expect_failure("through", {i32(0)}, Code::DEADLINE_EXCEEDED, "20 ms");
  gates.open_all();
  // In time, but perhaps not always on a busy machine.
  const Callable callee = *machine.find("through");
  Invocation invocation(machine.context);
  Values results(1);
  bool is_done = false;
  for (int turn = 0; turn < 1000 && !is_done; ++turn)
    is_done = invocation.call(callee, Values{i32(1)}, results).has_value();
  ASSERT_TRUE(is_done);
  EXPECT_EQ(results[0].as_i32(), 2);
}

TEST(TimeLimit, OfOneCall) {
  Gates gates;
  GateMachine machine(gates, {.time = 1h});
  Invocation invocation(machine.context);
  const Values arguments = {i32(0)};
  Values results(1);
  for (const char* name : {"endless", "through"}) {  // a loop, and a wait
    const Callable callee = *machine.find(name);
    results.resize(callee.convention.results.size());
    ASSERT_TRUE(invocation.set_deadline(Clock::now() + 20ms));
    EXPECT_FAILS(DEADLINE_EXCEEDED, "", invocation.call(callee, arguments, results)) << name;
  }
  // A call that is already suspended.
  ASSERT_EQ(*invocation.begin(*machine.find("through"), arguments), Outcome::waiting);
  ASSERT_TRUE(invocation.set_deadline(Clock::now() - 1ms));
  Result<Outcome> ended = invocation.resume();
  while (!ended && ended.error().code() == Code::FAILED_PRECONDITION)
    ended = invocation.resume();  // still waiting
  EXPECT_FAILS(DEADLINE_EXCEEDED, "", ended);
  // Reset at the end of the call.
  gates.open_all();
  results.resize(1);
  const Values one = {i32(1)};
  std::this_thread::sleep_for(30ms);
  EXPECT_TRUE(invocation.call(*machine.find("through"), one, results));
}

TEST(TimeLimit, WorkOfACallDoesNotStopAtTheLimitOfAnEarlierOne) {
  Gates gates;
  gates.open_all();
  GateMachine machine(gates, {.time = 1h});
  Invocation invocation(machine.context);
  const Values one = {i32(1)};
  Values results(1);
  const Callable callee = *machine.find("through");
  ASSERT_TRUE(invocation.call(callee, one, results));
  const Ref<WorkScope> first = Ref<WorkScope>::share(&invocation.work_scope());
  ASSERT_TRUE(invocation.call(callee, one, results));
  EXPECT_NE(&invocation.work_scope(), first.get());

  // The same with a deadline of the call itself.
  Machine unlimited;
  EXPECT_FALSE(Invocation(unlimited.context).set_deadline(Clock::now())) << "nobody measures it";
  unlimited.context = Context::create({}, {}, Loop::create());
  add_gate(unlimited, gates);
  Invocation other(unlimited.context);
  const Callable through = *unlimited.find("through");
  ASSERT_TRUE(other.call(through, one, results));
  const Ref<WorkScope> shared = Ref<WorkScope>::share(&other.work_scope());
  ASSERT_TRUE(other.call(through, one, results));
  EXPECT_EQ(&other.work_scope(), shared.get()) << "without limits one will do";
  ASSERT_TRUE(other.set_deadline(Clock::now() + 1h));
  ASSERT_TRUE(other.call(through, one, results));
  EXPECT_NE(&other.work_scope(), shared.get());
}

// Calls `quick` of module m in the context of the caller.
struct Nested {
  Context* context;
  Result<> inner;
};
Status call_back(NativeCall& call) {
  auto& nested = *static_cast<Nested*>(call.state);
  const Callable callee = *nested.context->find("m", "quick");
  Values none;
  nested.inner = Invocation(Ref<Context>::share(nested.context)).call(callee, none, none);
  return {};
}

TEST(ConcurrentCalls, AreRefusedByNameWhereOnlyOneMayRun) {
  Limits limits;
  limits.concurrent_calls = false;
  Machine machine(limits);
  Nested nested{machine.context.get(), {}};
  machine.add_native("nest", {{"call", "0v_v", &call_back, nullptr}}, &nested);
  machine.add(R"(
vm.module @m
vm.import @nest.call cconv "0v_v"
vm.func @outer() -> () {
  vm.call @nest.call()
  vm.return
}
vm.func @quick() -> () {
  vm.return
}
)");
  machine.expect("outer", {}, {});
  for (const char* name : {"'quick'", "'outer'"}) EXPECT_FAILS(FAILED_PRECONDITION, name, nested.inner);
  machine.expect("quick", {}, {});  // the context is available again
}

TEST(MemoryLimit, CountsBuffersListsGlobalsAndStacks) {
  Gates gates;
  const auto budget = make<Budget>(1 << 20);
  {
    GateMachine machine(gates, {.memory = budget});
    const uint64_t before = budget->used();
    EXPECT_EQ(before, block_bytes(4)) << "the globals";
    machine.expect_failure("allocates", {i64(1 << 20)}, Code::RESOURCE_EXHAUSTED);
    machine.expect_failure("lists", {i32(1 << 17)}, Code::RESOURCE_EXHAUSTED);
    machine.expect_failure("deep", {i32(0)}, Code::RESOURCE_EXHAUSTED);
    EXPECT_EQ(budget->used(), before);
    {
      const auto buffer = ASSERT_VALUE(machine.call("allocates", {i64(1 << 19)}));
      EXPECT_EQ(budget->used(), before + block_bytes(1 << 19) + block_bytes(sizeof(Buffer)));
      machine.expect_failure("allocates", {i64(1 << 19)}, Code::RESOURCE_EXHAUSTED);
      EXPECT_TRUE(machine.call("lists", {i32(1000)}));
    }
    EXPECT_EQ(budget->used(), before);
  }
  EXPECT_EQ(budget->used(), 0u);
}

TEST(MemoryLimit, WhatOutlivesTheContextStaysCharged) {
  Gates gates;
  const auto budget = make<Budget>(1 << 20);
  Values kept;
  {
    GateMachine machine(gates, {.memory = budget});
    auto results = ASSERT_VALUE(machine.call("allocates", {i64(1000)}));
    kept = std::move(results);
  }
  EXPECT_EQ(budget->used(), block_bytes(1000) + block_bytes(sizeof(Buffer)));
  kept.clear();
  EXPECT_EQ(budget->used(), 0u);
}

// ---- Many calls at the same time

// A queue of invocations that can be resumed, processed by threads.
struct ReadyQueue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Invocation*> ready;
  size_t done = 0;
  size_t total = 0;

  void run() {
    std::unique_lock lock(mutex);
    while (done < total) {
      if (ready.empty()) {
        changed.wait(lock);
        continue;
      }
      Invocation* invocation = ready.front();
      ready.pop_front();
      lock.unlock();
      const auto outcome = invocation->resume();
      lock.lock();
      if (outcome && *outcome == Outcome::done && ++done == total) changed.notify_all();
      if (!outcome) ADD_FAILURE() << outcome.error().text();
    }
  }
};

struct Job {
  std::optional<Invocation> invocation;
  ReadyQueue* queue = nullptr;
};

TEST_F(Wait, TenThousandAtOnceOnTwoThreads) {
  constexpr int kCount = 10000;
  const Callable callee = find("caller");
  ReadyQueue queue;
  queue.total = kCount;
  std::vector<Job> jobs(kCount);
  gates_.waiting.reserve(kCount);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr bool kMeasured = false;
#else
  constexpr bool kMeasured = true;
#endif
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < kCount; ++i) {
    Job& job = jobs[static_cast<size_t>(i)];
    job.queue = &queue;
    job.invocation.emplace(machine_.context);
    job.invocation->set_ready_hook({[](void* user) {
                                      auto* woken = static_cast<Job*>(user);
                                      const std::lock_guard lock(woken->queue->mutex);
                                      woken->queue->ready.push_back(&*woken->invocation);
                                      woken->queue->changed.notify_one();
                                    },
                                    &job});
    const Values arguments = {i32(i)};
    ASSERT_EQ(*job.invocation->begin(callee, arguments), Outcome::waiting);
  }
  const size_t each = (mallinfo2().uordblks - before) / kCount + sizeof(Job);
  if (kMeasured) {
    RecordProperty("bytes_per_waiting_invocation", static_cast<int>(each));
    EXPECT_LE(each, 4096u);
  }
  std::thread first([&] { queue.run(); });
  std::thread second([&] { queue.run(); });
  gates_.open_all();
  first.join();
  second.join();
  for (int i = 0; i < kCount; ++i) {
    Values results(1);
    jobs[static_cast<size_t>(i)].invocation->take_results(results);
    ASSERT_EQ(results[0].as_i32(), 2 * i + 1);
  }
  if (kMeasured) std::printf("%zu bytes for each waiting invocation\n", each);
}

// ---- waits inside of a native function

struct Sitting {
  bool interrupts = false;  // before the wait begins
};

Result<int32_t> sit(Sitting& sitting, CallContext& call, int32_t milliseconds) {
  if (sitting.interrupts) call.invocation().interrupt(Code::CANCELLED);
  const Wakeup wakeup = call.invocation().begin_wait(Clock::now() + std::chrono::milliseconds(milliseconds));
  HALYARD_TRY(call.invocation().block_on_wait());
  return milliseconds;
}

TEST(BlockingWait, EndsAtItsDeadlineOrWithTheInterruption) {
  Sitting sitting;
  Machine machine;
  machine.add_native("chair", {{"sit", convention_of<&sit>, bind<&sit>}}, &sitting);
  machine.expect("chair.sit", {i32(5)}, {i32(5)});
  sitting.interrupts = true;
  machine.expect_failure("chair.sit", {i32(600000)}, Code::CANCELLED);
}

// ---- calls that do not begin

TEST(Beginning, WrongArgumentsComeBeforeAnInterruption) {
  const Machine machine("vm.module @m\nvm.func @f(%i0: i32) -> (i32) {\n  vm.return %i0\n}\n");
  const Callable callee = ASSERT_VALUE(machine.find("f"));
  Invocation invocation(machine.context);
  for (const bool is_right : {true, false}) {
    invocation.arm();
    invocation.interrupt(Code::CANCELLED);
    const Values arguments = is_right ? Values{i32(1)} : Values{};
    const auto begun = invocation.begin(callee, arguments);
    EXPECT_TRUE(fails_with(begun, is_right ? Code::CANCELLED : Code::INVALID_ARGUMENT, "")) << is_right;
  }
}

TEST(Beginning, ADeadlineNeedsAnEventLoop) {
  const Machine machine("vm.module @m\nvm.func @f() -> () {\n  vm.return\n}\n");
  if (machine.context->loop()) GTEST_SKIP() << "contexts of tests have a loop";
  Invocation invocation(machine.context);
  EXPECT_FAILS(FAILED_PRECONDITION, "needs an event loop", invocation.set_deadline(Clock::now()));
}

}  // namespace
}  // namespace halyard::vm::test
