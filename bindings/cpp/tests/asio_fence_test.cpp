// Waiting for fences on an io_context.
#include "asio_program.h"

namespace {

using namespace halyard;

struct AsioFence : testing::Test {
  net::io_context io;
  Program program;
  Fence fence = Fence::create(program.device);
};

TEST_F(AsioFence, IsAwaited) {
  bool awaited = false;
  const auto go = [&]() -> net::awaitable<void> {
    co_await async_wait(Fence(), net::use_awaitable);
    co_await async_wait(fence, net::use_awaitable);
    co_await async_wait(fence, net::use_awaitable);  // reached already
    awaited = true;
  };
  net::co_spawn(io, go(), net::detached);
  while (io.poll() != 0) {
  }
  EXPECT_FALSE(io.stopped());
  EXPECT_FALSE(awaited);
  std::thread([&] { fence.signal(); }).join();
  io.run();
  EXPECT_TRUE(awaited);
}

TEST_F(AsioFence, FailsWithItsFailure) {
  StatusCode code = StatusCode::OK;
  async_wait(io.get_executor(), fence, [&](std::exception_ptr error) { code = code_in(error); });
  fence.fail(Error(StatusCode::DATA_LOSS, "gone"));
  EXPECT_EQ(code, StatusCode::OK);  // the handler runs on the executor
  io.run();
  EXPECT_EQ(code, StatusCode::DATA_LOSS);
}

TEST_F(AsioFence, ThatIsNoneIsRefused) {
  StatusCode code = StatusCode::OK;
  const Tensor tensor = Tensor::create<float>(program.device, {1}, {1});
  async_wait(io.get_executor(), Fence(share, tensor.get()),
             [&](std::exception_ptr error) { code = code_in(error); });
  io.run();
  EXPECT_EQ(code, StatusCode::INVALID_ARGUMENT);
}

// The steps of an asynchronous function: begun at once, its result when the signal fence is reached.
TEST_F(AsioFence, OfAnAsynchronousFunction) {
  const Function echo = program.context.find("echo");
  auto call = AsyncCall::create(io.get_executor(), program.context);
  const Tensor tensor = Tensor::create<float>(program.device, {2}, {1, 2});
  const Fence signal = Fence::create(program.device);
  Tensor result;
  const auto go = [&]() -> net::awaitable<void> {
    result = co_await async_call<Tensor>(call, echo, arguments(tensor, fence, signal), net::use_awaitable);
    co_await async_wait(signal, net::use_awaitable);
  };
  net::co_spawn(io, go(), net::detached);
  io.poll();
  EXPECT_FALSE(result);
  fence.signal();
  io.run();
  EXPECT_EQ(result, tensor);
}

#if HALYARD_CPP_ASIO_CANCELS_
TEST_F(AsioFence, WaitIsCancelled) {
  StatusCode code = StatusCode::OK;
  net::cancellation_signal signal;
  async_wait(
      io.get_executor(), fence,
      net::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr error) { code = code_in(error); }));
  signal.emit(net::cancellation_type::terminal);
  io.run();
  EXPECT_EQ(code, StatusCode::CANCELLED);
  EXPECT_FALSE(fence.is_reached());
  fence.signal();
}
#endif

TEST_F(AsioFence, WaitEndsWithItsContext) {
  auto owned = std::make_shared<int>(0);
  {
    net::io_context going;
    async_wait(going.get_executor(), fence, [owned](std::exception_ptr) { ADD_FAILURE() << "called"; });
    EXPECT_EQ(owned.use_count(), 2);
  }
  EXPECT_EQ(owned.use_count(), 1);
  fence.signal();
}

}  // namespace
