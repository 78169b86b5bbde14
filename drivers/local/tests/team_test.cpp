// Teams: who takes part in work, and when work has ended.
#include "team.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace halyard::local_tests {
namespace {

using local::Role;
using local::Team;

class TeamTest : public testing::Test {
 protected:
  static constexpr unsigned kThreads = 4;
  TeamTest() { EXPECT_TRUE(pool_.start()); }
  // The team's last references may be given up by pool threads, so the pool ends first.
  Team::Owned team(uint64_t cost = local::kBrief) { return Team::create(pool_, nodes_, cost); }
  static void share(Team& team, uint32_t helpers, std::function<void(Role)> work) {
    team.share(
        helpers,
        [](void* data, Role role) noexcept { (*static_cast<std::function<void(Role)>*>(data))(role); },
        &work);
  }

  // Waits at most 100 ms.
  static void yield_until(const std::function<bool()>& is_true) {
    const auto begin = std::chrono::steady_clock::now();
    while (!is_true() && std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(100))
      std::this_thread::yield();
  }

  local::NodeCache nodes_;
  local::ThreadPool pool_{kThreads};
};

// A helper that leaves just when work comes is missed once, so not every round has all of them.
TEST_F(TeamTest, AllThreadsTakePartAtOnce) {
  const Team::Owned team = this->team();
  EXPECT_EQ(team->spare_threads(), kThreads);
  int rounds_of_all = 0;
  for (int round = 0; round < 100 && rounds_of_all < 50; ++round) {
    std::atomic<uint32_t> owners = 0, helpers = 0;
    share(*team, kThreads - 1, [&](Role role) {
      ++(role == Role::owner ? owners : helpers);
      yield_until([&] { return helpers == kThreads - 1; });
    });
    EXPECT_EQ(owners, 1u);
    EXPECT_LT(helpers, kThreads);
    rounds_of_all += helpers == kThreads - 1;
  }
  EXPECT_GT(rounds_of_all, 0);
}

TEST_F(TeamTest, NoMoreHelpersThanWanted) {
  const Team::Owned team = this->team();
  for (int round = 0; round < 200; ++round) {
    const uint32_t wanted = static_cast<uint32_t>(round) % kThreads;
    std::atomic<uint32_t> inside = 0, most = 0;
    share(*team, wanted, [&](Role) {
      const uint32_t now = ++inside;
      uint32_t before = most;
      while (before < now && !most.compare_exchange_weak(before, now)) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      --inside;
    });
    EXPECT_LE(most, wanted + 1);
    EXPECT_EQ(inside, 0u);
  }
}

// Every piece is done once, and all are done when share() returns.
TEST_F(TeamTest, WorkHasEndedWhenShareReturns) {
  for (int team_number = 0; team_number < 50; ++team_number) {
    const Team::Owned team = this->team(team_number % 2 ? local::kBrief : 0);
    for (int round = 0; round < 40; ++round) {
      std::vector<int> done(97);
      std::atomic<size_t> next = 0;
      share(*team, kThreads - 1, [&](Role) {
        for (size_t i; (i = next++) < done.size();) ++done[i];
      });
      EXPECT_EQ(done, std::vector<int>(97, 1));
    }
  }
}

// The thread that waits for a helper helps with the helper's loop, unless it sleeps already.
TEST_F(TeamTest, AnOwnerThatWaitsHelpsWithALoop) {
  const std::thread::id owner = std::this_thread::get_id();
  std::atomic<bool> has_helped = false;
  for (int round = 0; round < 100 && !has_helped; ++round) {
    const Team::Owned team = this->team();
    std::latch both(2);
    share(*team, 1, [&](Role role) {
      both.arrive_and_wait();  // the first work of a team always gets its helper
      if (role == Role::owner) return;
      share(*team, kThreads, [&](Role) {
        if (std::this_thread::get_id() == owner) has_helped = true;
        yield_until([&] { return has_helped.load(); });
      });
    });
  }
  EXPECT_TRUE(has_helped);
}

// There is room for few loops at a time; others run on their own thread.
TEST_F(TeamTest, LoopsWithoutRoomRunAlone) {
  const Team::Owned team = this->team();
  int depth = 0;
  std::function<void(Role)> nest = [&](Role role) {
    if (role == Role::helper || ++depth == 20) return;
    share(*team, 1, nest);
  };
  share(*team, 1, nest);
  EXPECT_EQ(depth, 20);
}

// While the pool's threads are busy, nobody waits for helpers that cannot start.
TEST_F(TeamTest, EndsWithoutHelpers) {
  struct Busy : local::Task {
    std::latch* begun;
    std::latch* end;
  };
  std::latch begun(kThreads), end(1);
  std::vector<Busy> tasks(kThreads);
  for (Busy& task : tasks) {
    task.begun = &begun;
    task.end = &end;
    task.run = [](local::Task& self, local::TaskList&) {
      std::latch& release = *static_cast<Busy&>(self).end;
      static_cast<Busy&>(self).begun->count_down();
      release.wait();
    };
    task.thread_pool = &pool_;
    pool_.post(task);
  }
  begun.wait();
  {
    const Team::Owned team = this->team();
    EXPECT_EQ(team->spare_threads(), 0u);
    int calls = 0;
    share(*team, 3, [&](Role) { ++calls; });
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(pool_.has_queued());  // helpers that have not started
  }
  EXPECT_FALSE(pool_.has_queued());
  end.count_down();
  while (pool_.idle_threads() != kThreads) std::this_thread::yield();  // the tasks are on this stack
}

// Helpers leave a team that has no work, and come back.
TEST_F(TeamTest, HelpersLeaveForOtherTasks) {
  struct Other : local::Task {
    std::latch done{1};
  };
  const Team::Owned team = this->team();
  const local::ThreadPool::KeepAwake keep_awake(pool_, true);
  int rounds_of_all = 0;
  for (int round = 0; round < 20; ++round) {
    std::atomic<uint32_t> inside = 0;
    share(*team, kThreads - 1, [&](Role) {
      ++inside;
      yield_until([&] { return inside == kThreads; });
    });
    rounds_of_all += inside == kThreads;
    std::vector<Other> others(kThreads);
    for (Other& other : others) {
      other.run = [](local::Task& self, local::TaskList&) { static_cast<Other&>(self).done.count_down(); };
      other.thread_pool = &pool_;
      pool_.post(other);
    }
    for (Other& other : others) other.done.wait();
    while (pool_.idle_threads() != kThreads) std::this_thread::yield();  // the tasks are on this stack
  }
  EXPECT_GT(rounds_of_all, 0);
}

// A task that notes on which thread it runs.
struct Noting : local::Task {
  explicit Noting(local::ThreadPool& pool) {
    run = [](local::Task& self, local::TaskList&) { static_cast<Noting&>(self).thread = gettid(); };
    thread_pool = &pool;
  }
  std::atomic<pid_t> thread = 0;
};

bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string stat(std::istreambuf_iterator<char>(file), {});
  return stat[stat.rfind(')') + 2] == 'S';
}

// After shared work a thread stays awake for the next call, but not for ever. Repeated, because this thread
// may get no processor meanwhile.
TEST(ThreadPool, StaysAwakeForAWhileAfterSharedWork) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "threads do not spin on one processor";
  local::ThreadPool pool(1);
  ASSERT_TRUE(pool.start());
  int awake = 0;
  for (int round = 0; round < 3000 && awake < 2; ++round) {
    Noting task(pool);
    {
      const local::ThreadPool::KeepAwake keep_awake(pool, true);
      pool.post(task);
      while (task.thread == 0 || pool.idle_threads() == 0) continue;
    }
    const local::Stopwatch watch(true);
    while (watch.elapsed() < local::kWorthWaking / 4) continue;
    awake += !is_asleep(task.thread);
    while (!is_asleep(task.thread)) std::this_thread::yield();
  }
  EXPECT_EQ(awake, 2);
}

}  // namespace
}  // namespace halyard::local_tests
