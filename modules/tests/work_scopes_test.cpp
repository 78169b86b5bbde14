// Calls that submit work at the same time.
#include "modules/work_scopes.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace halyard::modules {
namespace {

TEST(WorkScopes, AreRememberedWhileTheirCallLasts) {
  WorkScopes scopes;
  const Ref<WorkScope> first = make<WorkScope>();
  EXPECT_TRUE(first->unique());
  scopes.remember(*first);
  EXPECT_FALSE(first->unique());
  const Ref<WorkScope> second = make<WorkScope>();
  scopes.remember(*second);
  scopes.remember(*first);
  scopes.remember(*first);
  EXPECT_FALSE(first->unique());
  EXPECT_FALSE(second->unique());
}

TEST(WorkScopes, OfCallsOnSeveralThreads) {
  constexpr int kThreads = 4, kCalls = 2000;
  WorkScopes scopes;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int call = 0; call < kCalls; ++call) {
        const Ref<WorkScope> scope = make<WorkScope>();
        for (int submission = 0; submission < 3; ++submission) {
          scopes.remember(*scope);
          ASSERT_FALSE(scope->unique());
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace halyard::modules
