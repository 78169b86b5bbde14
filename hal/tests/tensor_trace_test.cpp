// The end of a trace of tensors, before, during and after calls of its sink.
#include "hal/capture/tensor_trace.h"

#include <atomic>
#include <latch>
#include <thread>

#include "hal/queue/wait.h"
#include "hal_test.h"

namespace halyard::hal {
namespace {

using Bytes = std::vector<uint8_t>;

class TensorTraceTest : public FakeDriverTest {
 protected:
  Ref<TensorTrace> trace_to(TensorTrace::Sink sink) {
    return make<TensorTrace>("*", std::move(sink), TracedSteps::all);
  }
  // Fills a new buffer when `wait` is reached; null: now.
  Ref<Buffer> fill(TensorTrace& trace, Fence* wait, Fence* signal) {
    Ref<Buffer> target = make_buffer(*device, Bytes(4, 9));
    const Ref<CommandBuffer> commands = record(device);
    EXPECT_OK(commands->fill({target.get(), 0, 0, 4}, 7, 1));
    EXPECT_OK(commands->finalize());
    EXPECT_OK(trace.execute({*device, kAnyQueue, wait, signal}, *commands, {}));
    return target;
  }
  static Status await_one(Fence* fence) { return await({&fence, 1}, 60000); }

  const Ref<Device> device = open_fake_device();
};

TEST_F(TensorTraceTest, WorkInFlightGoesOnWithoutTheSink) {
  int calls = 0;
  const Ref<TensorTrace> trace = trace_to([&](const TracedTensor&) -> Result<> {
    ++calls;
    return {};
  });
  const auto [ready, done] = make_fences<2>(device);
  const Ref<Buffer> target = fill(*trace, ready.get(), done.get());
  trace->end();
  EXPECT_OK(ready->signal());
  EXPECT_OK(await_one(done.get()));
  EXPECT_EQ(bytes_of(*target), Bytes(4, 7));
  EXPECT_EQ(calls, 0);
}

TEST_F(TensorTraceTest, TheEndWaitsForTheSink) {
  std::latch begun(1);
  std::atomic<bool> has_left = false;
  const Ref<TensorTrace> trace = trace_to([&](const TracedTensor&) -> Result<> {
    begun.count_down();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    has_left = true;
    return {};
  });
  const Ref<Fence> done = make_fence(device);
  std::thread worker([&] { fill(*trace, nullptr, done.get()); });
  begun.wait();
  trace->end();
  EXPECT_TRUE(has_left);
  worker.join();
  EXPECT_OK(await_one(done.get()));
}

TEST_F(TensorTraceTest, TheSinkMayEndTheTrace) {
  int calls = 0;
  Ref<TensorTrace> trace;
  trace = trace_to([&](const TracedTensor&) -> Result<> {
    ++calls;
    trace->end();
    return {};
  });
  for (int i = 0; i < 2; ++i) {
    const Ref<Fence> done = make_fence(device);
    fill(*trace, nullptr, done.get());
    EXPECT_OK(await_one(done.get()));
  }
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace halyard::hal
