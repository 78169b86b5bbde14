// A warm call allocates nothing: neither these headers nor Asio nor libhalyard. Counted by replacing operator
// new for the process, libhalyard included.
#include <cstdlib>
#include <new>

#include "asio_program.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 takes the library's inlined operator new for another one than this.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace {
std::atomic<uint64_t> allocations = 0;
}

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto to = static_cast<size_t>(alignment);
  if (void* memory = std::aligned_alloc(to, (size + to - 1) / to * to)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

using namespace halyard;
constexpr int kWarm = 100;
constexpr int kCounted = 1000;

struct AsioAllocation : testing::Test {
  net::io_context io;
  Program program;
  Function add = program.context.find("add");
  Function pass = program.context.find("pass");
  Function wait = program.context.find("wait");
  Tensor tensor = Tensor::create<float>(program.device, {2}, {1, 2});

  // Calls one after the other, from handlers.
  template <typename Executor>
  uint64_t count_callbacks(BasicAsyncCall<Executor>& call) {
    struct Chain {
      BasicAsyncCall<Executor>& call;
      const Function& add;
      int left = kWarm + kCounted;
      uint64_t before = 0;
      uint64_t after = 0;
      void next() {
        async_call<float>(call, add, arguments(1.0f, 2.0f), [this](std::exception_ptr error, float sum) {
          EXPECT_FALSE(error);
          EXPECT_EQ(sum, 3.0f);
          if (--left == kCounted) before = allocations;
          if (left == 0) after = allocations;
          if (left > 0) next();
        });
      }
    } chain{call, add};
    chain.next();
    run(io);
    return chain.after - chain.before;
  }
};

TEST_F(AsioAllocation, TheCountCounts) {
  const uint64_t before = allocations;
  const Tensor another = Tensor::create<float>(program.device, {2}, {1, 2});
  std::make_unique<int>(1);
  EXPECT_GT(allocations, before);
}

TEST_F(AsioAllocation, NoneForCallbacks) {
  auto plain = BasicAsyncCall<net::io_context::executor_type>::create(io.get_executor(), program.context);
  EXPECT_EQ(count_callbacks(plain), 0u);
  auto erased = AsyncCall::create(io.get_executor(), program.context);
  EXPECT_EQ(count_callbacks(erased), 0u);
}

TEST_F(AsioAllocation, NoneForCoroutines) {
  auto call = AsyncCall::create(io.get_executor(), program.context);
  uint64_t before = 0, after = 0;
  const auto go = [&]() -> net::awaitable<void> {
    for (int i = 0; i < kWarm + kCounted; ++i) {
      if (i == kWarm) before = allocations;
      const Tensor same = co_await async_call<Tensor>(call, pass, arguments(tensor), net::use_awaitable);
      if (!(same == tensor)) ADD_FAILURE();
    }
    after = allocations;
  };
  net::co_spawn(io, go(), net::detached);
  io.run();
  EXPECT_EQ(after - before, 0u);
}

// Calls that wait, and are woken by a thread that does not run the io_context; with a deadline each.
TEST_F(AsioAllocation, NoneForCallsThatWait) {
  auto call = AsyncCall::create(io.get_executor(), program.context);
  // Several waits at once, so that libhalyard keeps memory for as many: below, the other thread may still
  // hold the last wait when the next begins.
  std::vector<AsyncCall> several;
  const Fence start = Fence::create(program.device);
  for (int i = 0; i < 4; ++i) {
    several.push_back(AsyncCall::create(io.get_executor(), program.context));
    async_call<int32_t>(several.back(), wait, arguments(start, -1),
                        [](std::exception_ptr error, int32_t code) {
                          EXPECT_FALSE(error);
                          EXPECT_EQ(code, 0);
                        });
  }
  EXPECT_EQ(io.poll(), several.size());  // begun
  start.signal();
  run(io);

  std::vector<Fence> fences;
  for (int i = 0; i < kWarm + kCounted; ++i) fences.push_back(Fence::create(program.device));
  std::atomic<int> begun = 0;
  std::thread signaller([&] {
    for (int i = 0; i < kWarm + kCounted; ++i) {
      while (begun <= i) std::this_thread::yield();
      fences[static_cast<size_t>(i)].signal();
    }
  });
  uint64_t before = 0, after = 0;
  const auto go = [&]() -> net::awaitable<void> {
    for (int i = 0; i < kWarm + kCounted; ++i) {
      if (i == kWarm) before = allocations;
      call.expires_after(1h);
      // Begins before the signaller goes on, as this thread does both.
      net::post(io, [&] { ++begun; });
      const int32_t code = co_await async_call<int32_t>(
          call, wait, arguments(fences[static_cast<size_t>(i)], -1), net::use_awaitable);
      if (code != 0) ADD_FAILURE() << code;
    }
    after = allocations;
  };
  net::co_spawn(io, go(), net::detached);
  io.run();
  signaller.join();
  EXPECT_EQ(after - before, 0u);
}

}  // namespace

#endif
