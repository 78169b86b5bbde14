// The queue of functions to compile: its order, its threads, and callers that wait for a function.
#include "vm/compile/compile_queue.h"

#include <gtest/gtest.h>

#include <set>

#include "base/status.h"
#include "vm/object/list.h"

namespace halyard::vm::test {
namespace {

// Records the functions that are compiled. A function in `blocked` waits until it is released.
class Functions final : public Compilable {
 public:
  void compile(uint32_t function, bool) noexcept override {
    std::unique_lock lock(mutex_);
    begun_.insert(function);
    threads_.insert(std::this_thread::get_id());
    changed_.notify_all();
    changed_.wait(lock, [&] { return !blocked_.contains(function); });
    order_.push_back(function);
  }
  void block(uint32_t function) {
    const std::lock_guard lock(mutex_);
    blocked_.insert(function);
  }
  void release(uint32_t function) {
    const std::lock_guard lock(mutex_);
    blocked_.erase(function);
    changed_.notify_all();
  }
  void wait_for_begin(uint32_t function) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.contains(function); });
  }
  std::vector<uint32_t> order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  size_t thread_count() {
    const std::lock_guard lock(mutex_);
    return threads_.size();
  }
  bool ran_on(std::thread::id thread) {
    const std::lock_guard lock(mutex_);
    return threads_.contains(thread);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<uint32_t> begun_;
  std::set<uint32_t> blocked_;
  std::set<std::thread::id> threads_;
  std::vector<uint32_t> order_;
};

struct CompileQueueTest : testing::Test {
  void add(CompileQueue& queue, uint32_t function, uint64_t priority = 0) {
    queue.add(owner, functions, {function, false, priority});
  }
  Functions functions;
  const Ref<List> owner = List::create({ValueType::i32, nullptr});
};

TEST_F(CompileQueueTest, TheHighestPriorityIsNext) {
  CompileQueue queue;
  functions.block(0);
  add(queue, 0);
  functions.wait_for_begin(0);
  add(queue, 1, 10);
  add(queue, 2, 30);
  add(queue, 3, 20);
  add(queue, 4, 30);
  EXPECT_EQ(queue.pending(), 5u);
  functions.release(0);
  queue.wait_until_idle();
  EXPECT_EQ(functions.order(), (std::vector<uint32_t>{0, 2, 4, 3, 1}));
  EXPECT_EQ(functions.thread_count(), 1u);
  EXPECT_EQ(queue.pending(), 0u);
}

TEST_F(CompileQueueTest, ModulesTakeTurns) {
  CompileQueue queue;
  Functions others;
  functions.block(0);
  add(queue, 0);
  functions.wait_for_begin(0);
  add(queue, 1);
  add(queue, 2);
  others.block(7);
  queue.add(owner, others, {7, false});
  functions.release(0);
  others.wait_for_begin(7);
  // The second function of the first module waits for the other module.
  EXPECT_EQ(functions.order(), (std::vector<uint32_t>{0, 1}));
  others.release(7);
  queue.wait_until_idle();
  EXPECT_EQ(functions.order(), (std::vector<uint32_t>{0, 1, 2}));
}

TEST_F(CompileQueueTest, SeveralThreads) {
  CompileQueue queue({}, 3);
  for (uint32_t i = 0; i < 3; ++i) functions.block(i);
  for (uint32_t i = 0; i < 3; ++i) add(queue, i);
  for (uint32_t i = 0; i < 3; ++i) functions.wait_for_begin(i);
  add(queue, 3);
  EXPECT_EQ(functions.thread_count(), 3u);
  for (uint32_t i = 0; i < 3; ++i) functions.release(i);
  queue.wait_until_idle();
  EXPECT_EQ(functions.order().size(), 4u);
  EXPECT_EQ(functions.thread_count(), 3u);
}

TEST_F(CompileQueueTest, AQueuedFunctionIsFinishedByItsCaller) {
  CompileQueue queue;
  functions.block(0);
  add(queue, 0);
  functions.wait_for_begin(0);
  add(queue, 1);
  queue.finish(functions, 1, nullptr);
  EXPECT_EQ(functions.order(), std::vector<uint32_t>{1});
  EXPECT_TRUE(functions.ran_on(std::this_thread::get_id()));
  queue.finish(functions, 1, nullptr);  // there is no such request
  EXPECT_EQ(functions.order(), std::vector<uint32_t>{1});
  functions.release(0);
  queue.wait_until_idle();
  EXPECT_EQ(functions.order(), (std::vector<uint32_t>{1, 0}));
}

TEST_F(CompileQueueTest, ARequestForLoopsIsNotFinished) {
  CompileQueue queue;
  functions.block(0);
  add(queue, 0);
  functions.wait_for_begin(0);
  queue.add(owner, functions, {1, true});
  queue.finish(functions, 1, nullptr);
  EXPECT_TRUE(functions.order().empty());
  functions.release(0);
}

TEST_F(CompileQueueTest, ARunningFunctionIsWaitedFor) {
  CompileQueue queue;
  functions.block(0);
  add(queue, 0);
  functions.wait_for_begin(0);
  std::thread release([&] { functions.release(0); });
  queue.finish(functions, 0, nullptr);
  EXPECT_EQ(functions.order(), std::vector<uint32_t>{0});
  release.join();
  EXPECT_FALSE(functions.ran_on(std::this_thread::get_id()));
}

TEST_F(CompileQueueTest, AStopRequestEndsTheWait) {
  CompileQueue queue;
  functions.block(0);
  add(queue, 0);
  functions.wait_for_begin(0);
  const auto stop = static_cast<uint32_t>(Code::CANCELLED);
  queue.finish(functions, 0, &stop);
  EXPECT_TRUE(functions.order().empty());
  functions.release(0);
}

TEST_F(CompileQueueTest, OwnersAreReleased) {
  {
    CompileQueue queue;
    functions.block(0);
    add(queue, 0);
    functions.wait_for_begin(0);
    add(queue, 1);
    EXPECT_FALSE(owner->unique());
    functions.release(0);
  }
  EXPECT_TRUE(owner->unique());
}

}  // namespace
}  // namespace halyard::vm::test
