// Calls on an io_context: tokens, executors, waiting, cancellation, deadlines, failures, the end of the
// context.
#include <algorithm>
#include <future>

#include "asio_program.h"

namespace {

using namespace halyard;

struct AsioCall : testing::Test {
  net::io_context io;
  Program program{HALYARD_CONTEXT_CONCURRENT_CALLS};
  Function add = program.context.find("add");
  Function wait = program.context.find("wait");
  Function spin = program.context.find("spin");
  AsyncCall call = AsyncCall::create(io.get_executor(), program.context);
  Fence never = Fence::create(program.device);
};

TEST_F(AsioCall, CompletesWithAnyToken) {
  int handled = 0;
  async_call<float>(call, add, arguments(1.0f, 2.0f), [&](std::exception_ptr error, float sum) {
    EXPECT_FALSE(error);
    EXPECT_EQ(sum, 3.0f);
    ++handled;
  });
  EXPECT_EQ(handled, 0);  // not in the function that starts it
  run(io);
  EXPECT_EQ(handled, 1);

  std::future<float> future = async_call<float>(call, add, arguments(2.0f, 2.0f), net::use_future);
  run(io);
  EXPECT_EQ(future.get(), 4.0f);

  const auto go = [&]() -> net::awaitable<void> {
    const float sum = co_await async_call<float>(call, add, arguments(2.0f, 3.0f), net::use_awaitable);
    EXPECT_EQ(sum, 5.0f);
    const auto mixed = co_await async_call<float, int32_t, double, int64_t>(
        call, program.context.find("mix"), arguments(int64_t{5}, 2.0, 3, 4.0f), net::use_awaitable);
    EXPECT_EQ(mixed, std::tuple(4.0f, 3, 2.0, int64_t{5}));
    co_await async_call<>(call, program.context.find("none"), arguments(), net::use_awaitable);
    std::vector<Value> values, results(1);
    values.push_back(1.0f);
    values.push_back(7.0f);
    co_await async_call_into(call, add, values, results, net::use_awaitable);
    EXPECT_EQ(results[0].as<float>(), 8.0f);
    ++handled;
  };
  net::co_spawn(io, go(), net::detached);
  io.run();
  EXPECT_EQ(handled, 2);
}

TEST_F(AsioCall, BeginsWhereItIsStarted) {
  call.begin_here(true);
  int handled = 0;
  net::post(io, [&] {
    async_call<float>(call, add, arguments(1.0f, 2.0f), [&](std::exception_ptr error, float sum) {
      EXPECT_FALSE(error);
      EXPECT_EQ(sum, 3.0f);
      ++handled;
      // The next one may begin in the handler.
      async_call<float>(call, add, arguments(3.0f, 4.0f), [&](std::exception_ptr, float next) {
        EXPECT_EQ(next, 7.0f);
        ++handled;
      });
    });
    EXPECT_EQ(handled, 2);
  });
  run(io);

  // What waits goes on as always.
  bool is_cancelled = false;
  net::post(io, [&] {
    async_call<int32_t>(call, wait, arguments(never, -1),
                        [&](std::exception_ptr error, int32_t) { is_cancelled = error != nullptr; });
    EXPECT_FALSE(is_cancelled);
    net::post(io, [&] { call.cancel(); });
  });
  run(io);
  EXPECT_TRUE(is_cancelled);

  call.begin_here(false);
  async_call<float>(call, add, arguments(1.0f, 2.0f), [&](std::exception_ptr, float) { ++handled; });
  EXPECT_EQ(handled, 2);
  io.run();
  EXPECT_EQ(handled, 3);
}

TEST_F(AsioCall, RunsAndCompletesWhereItShould) {
  net::thread_pool pool(1);
  net::io_context other;
  auto on_pool =
      BasicAsyncCall<net::thread_pool::executor_type>::create(pool.get_executor(), program.context);
  std::thread::id ran, completed;
  const Module native =
      NativeModule("native").add("note", [&] { ran = std::this_thread::get_id(); }).create(program.instance);
  const Context context = Context::create(program.instance, {.modules = {native}});
  auto noting = AsyncCall::create(pool.get_executor(), context);
  async_call<>(noting, context.find("note"), arguments(),
               net::bind_executor(other, [&](std::exception_ptr error) {
                 EXPECT_FALSE(error);
                 completed = std::this_thread::get_id();
               }));
  other.run();  // has work until then
  EXPECT_EQ(completed, std::this_thread::get_id());
  EXPECT_NE(ran, std::this_thread::get_id());
  EXPECT_NE(ran, std::thread::id());
  EXPECT_EQ(async_call<float>(on_pool, add, arguments(1.0f, 1.0f), net::use_future).get(), 2.0f);
  // A strand, behind a type-erased executor.
  auto on_strand = AsyncCall::create(net::make_strand(pool), program.context);
  EXPECT_EQ(async_call<float>(on_strand, add, arguments(1.0f, 2.0f), net::use_future).get(), 3.0f);
  EXPECT_EQ(on_strand.get_executor(), on_strand.core()->executor());
  pool.join();
}

TEST_F(AsioCall, WaitsWithoutAThread) {
  const Fence fence = Fence::create(program.device);
  std::optional<int32_t> code;
  async_call<int32_t>(call, wait, arguments(fence, -1), [&](std::exception_ptr error, int32_t result) {
    EXPECT_FALSE(error);
    code = result;
  });
  EXPECT_EQ(io.poll(), 1u);  // begun
  EXPECT_EQ(io.poll(), 0u);
  EXPECT_FALSE(io.stopped());  // it is work
  EXPECT_FALSE(code);
  std::thread([&] { fence.signal(); }).join();
  io.run();
  EXPECT_EQ(code, 0);
}

// The program's own time limit of a wait is a timer.
TEST_F(AsioCall, WaitsUntilTheProgramsLimit) {
  const auto begun = Call::Clock::now();
  std::optional<int32_t> code;
  for (int turn = 0; turn < 2; ++turn) {
    async_call<int32_t>(call, wait, arguments(never, 20), [&](std::exception_ptr error, int32_t result) {
      EXPECT_FALSE(error);
      code = result;
    });
    run(io);
    EXPECT_EQ(code, static_cast<int32_t>(StatusCode::DEADLINE_EXCEEDED));
  }
  EXPECT_GE(Call::Clock::now() - begun, 40ms);
}

TEST_F(AsioCall, IsCancelledAtAnyTime) {
  StatusCode code = StatusCode::OK;
  std::string text;
  const auto note = [&](std::exception_ptr error, auto...) { code = code_in(error, &text); };
  async_call<float>(call, add, arguments(1.0f, 1.0f), note);
  call.cancel();  // queued
  run(io);
  EXPECT_EQ(code, StatusCode::CANCELLED) << text;
  async_call<float>(call, add, arguments(1.0f, 1.0f), note);
  run(io);
  EXPECT_EQ(code, StatusCode::OK) << text;

  async_call<int32_t>(call, wait, arguments(never, -1), note);
  io.poll();
  call.cancel();  // waiting
  run(io);
  EXPECT_EQ(code, StatusCode::CANCELLED);

  code = StatusCode::OK;
  async_call<>(call, spin, arguments(), note);
  std::thread runner([&] { io.run(); });
  std::this_thread::sleep_for(20ms);
  call.cancel();  // running
  runner.join();
  io.restart();
  EXPECT_EQ(code, StatusCode::CANCELLED);
  call.cancel();  // nothing

  code = StatusCode::OK;
  {
    AsyncCall gone = AsyncCall::create(io.get_executor(), program.context);
    async_call<int32_t>(gone, wait, arguments(never, -1), note);
    io.poll();
  }
  io.run();
  EXPECT_EQ(code, StatusCode::CANCELLED);  // its handler is called nevertheless
}

// However a cancellation and the beginning of a call meet, an endless one ends.
TEST_F(AsioCall, IsCancelledWhileItBegins) {
  auto guard = net::make_work_guard(io);
  std::thread runner([&] { io.run(); });
  for (int turn = 0; turn < 2000; ++turn) {
    std::future<void> future = async_call<>(call, spin, arguments(), net::use_future);
    const auto until = Call::Clock::now() + std::chrono::microseconds(turn % 50);
    while (Call::Clock::now() < until) {
    }
    call.cancel();
    ASSERT_EQ(code_of([&] { future.get(); }), StatusCode::CANCELLED);
  }
  guard.reset();
  runner.join();
}

#if HALYARD_CPP_ASIO_CANCELS_
TEST_F(AsioCall, IsCancelledThroughASlot) {
  StatusCode code = StatusCode::OK;
  const auto note = [&](std::exception_ptr error, auto...) { code = code_in(error); };
  net::cancellation_signal signal;
  for (const Fence& fence : {never, Fence()}) {
    async_call<int32_t>(call, wait, arguments(fence, -1), net::bind_cancellation_slot(signal.slot(), note));
    io.poll();
    EXPECT_EQ(signal.slot().has_handler(), static_cast<bool>(fence));  // the other one is done
    signal.emit(net::cancellation_type::partial);
    run(io);
    EXPECT_EQ(code, fence ? StatusCode::CANCELLED : StatusCode::OK);
  }
}
#endif

TEST_F(AsioCall, HasADeadline) {
  for (const bool spins : {false, true}) {
    StatusCode code = StatusCode::OK;
    std::string text;
    call.expires_after(20ms);
    if (spins) {
      async_call<>(call, spin, arguments(), [&](std::exception_ptr error) { code = code_in(error, &text); });
    } else {
      async_call<int32_t>(call, wait, arguments(never, -1),
                          [&](std::exception_ptr error, int32_t) { code = code_in(error, &text); });
    }
    run_on(io, 2);
    io.restart();
    EXPECT_EQ(code, StatusCode::DEADLINE_EXCEEDED);
    EXPECT_NE(text.find("deadline"), std::string::npos) << text;
  }
  // It is for one call, and ends with it.
  call.expires_at(Call::Clock::now() + 1h);
  EXPECT_EQ(async_call<float>(call, add, arguments(1.0f, 1.0f), net::use_future).wait_for(0s),
            std::future_status::timeout);
  io.run();  // does not wait for the timer
  io.restart();
  call.expires_after(1ms);
  async_call<float>(call, add, arguments(1.0f, 1.0f), [](std::exception_ptr error, float) {
    EXPECT_TRUE(code_in(error) == StatusCode::OK || code_in(error) == StatusCode::DEADLINE_EXCEEDED);
  });
  run(io);
  std::this_thread::sleep_for(5ms);
  std::future<float> next = async_call<float>(call, add, arguments(1.0f, 1.0f), net::use_future);
  io.run();
  EXPECT_EQ(next.get(), 2.0f);
}

TEST_F(AsioCall, FailsWithWhatIsWrong) {
  std::string text;
  StatusCode code = StatusCode::OK;
  const auto note = [&](std::exception_ptr error, auto...) { code = code_in(error, &text); };
  async_call<float>(call, add, arguments(1.0f), note);
  run(io);
  EXPECT_EQ(code, StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(text.find("expected 2 arguments"), std::string::npos) << text;
  async_call<int32_t>(call, add, arguments(1.0f, 1.0f), note);
  run(io);
  EXPECT_NE(text.find("result 0 is an f32"), std::string::npos) << text;
  async_call<>(call, add, arguments(1.0f, 1.0f), note);
  run(io);
  EXPECT_EQ(code, StatusCode::INVALID_ARGUMENT);

  async_call<int32_t>(call, wait, arguments(never, 5),
                      [](std::exception_ptr error, int32_t) { EXPECT_FALSE(error); });
  async_call<float>(call, add, arguments(1.0f, 1.0f), note);  // beside it
  io.run();
  EXPECT_EQ(code, StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(text.find("still runs another call"), std::string::npos) << text;
}

// A handler starts the next call on the same handle.
TEST_F(AsioCall, IsUsedAgainAndAgain) {
  int left = 1000;
  std::function<void()> next = [&] {
    async_call<float>(call, add, arguments(static_cast<float>(left), 1.0f),
                      [&](std::exception_ptr error, float sum) {
                        EXPECT_FALSE(error);
                        EXPECT_EQ(sum, static_cast<float>(left) + 1.0f);
                        if (--left > 0) next();
                      });
  };
  next();
  run_on(io, 2);
  EXPECT_EQ(left, 0);
}

// An io_context that goes takes calls that wait along: handlers are destroyed, not called.
TEST_F(AsioCall, EndsWithItsContext) {
  auto owned = std::make_shared<int>(0);
  const Fence fence = Fence::create(program.device);
  {
    net::io_context going;
    auto waiting = std::make_shared<AsyncCall>(AsyncCall::create(going.get_executor(), program.context));
    auto queued = std::make_shared<AsyncCall>(AsyncCall::create(going.get_executor(), program.context));
    // The handlers own what they belong to.
    async_call<int32_t>(*waiting, wait, arguments(fence, -1),
                        [owned, waiting](std::exception_ptr, int32_t) { ADD_FAILURE() << "called"; });
    going.poll();
    async_call<float>(*queued, add, arguments(1.0f, 1.0f),
                      [owned, queued](std::exception_ptr, float) { ADD_FAILURE() << "called"; });
    waiting.reset();
    queued.reset();
    EXPECT_EQ(owned.use_count(), 3);
  }
  EXPECT_EQ(owned.use_count(), 1);
  fence.signal();
}

// An older Boost is refused by the compiler (tests/test_embedding.py).
#if !defined(HALYARD_STANDALONE_ASIO) && BOOST_ASIO_VERSION >= 102600
TEST(AsioInstance, RunsOnTheContext) {
  net::io_context io;
  const Program program(0, on_context(io));
  const Call call = Call::create(program.context);
  auto guard = net::make_work_guard(io);
  std::thread runner([&] { io.run(); });
  call.set_deadline(Call::Clock::now() + 20ms);
  EXPECT_EQ(code_of([&] { call.invoke<>(program.context.find("spin")); }), StatusCode::DEADLINE_EXCEEDED);
  guard.reset();
  io.stop();
  runner.join();
}
#endif

// Thousands of calls that wait at once, woken from another thread, on two threads.
TEST_F(AsioCall, ManyAtOnce) {
  constexpr int kCalls = 2000;
  const Fence gate = Fence::create(program.device);
  std::vector<AsyncCall> calls;
  std::atomic<int> done = 0;
  for (int i = 0; i < kCalls; ++i) calls.push_back(AsyncCall::create(io.get_executor(), program.context));
  for (AsyncCall& each : calls)
    async_call<int32_t>(each, wait, arguments(gate, -1), [&](std::exception_ptr error, int32_t code) {
      if (!error && code == 0) ++done;
    });
  std::thread opener([&] {
    std::this_thread::sleep_for(5ms);
    gate.signal();
  });
  run_on(io, 2);
  opener.join();
  EXPECT_EQ(done, kCalls);
}

}  // namespace
