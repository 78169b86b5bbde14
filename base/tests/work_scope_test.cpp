// The stop word of work, and the choice of calls that are traced.
#include "base/work_scope.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/trace_choice.h"
#include "base/tracer.h"

namespace halyard {
namespace {

TEST(WorkScopeTest, KeepsTheFirstCode) {
  const auto scope = make<WorkScope>();
  EXPECT_FALSE(scope->is_stopped());
  EXPECT_EQ(stop_code(scope->stop_word()), Code::OK);
  scope->stop(Code::CANCELLED);
  scope->stop(Code::DEADLINE_EXCEEDED);
  EXPECT_TRUE(scope->is_stopped());
  EXPECT_EQ(stop_code(scope->stop_word()), Code::CANCELLED);
  EXPECT_EQ(stop_code(nullptr), Code::OK);
}

TEST(WorkScopeTest, EndsAtTheLastTimeThatWasSet) {
  using namespace std::chrono_literals;
  const auto loop = Loop::create();
  const auto scope = make<WorkScope>();
  scope->stop_at(loop, Loop::Clock::now() + 1h);
  EXPECT_FALSE(scope->is_stopped());
  scope->stop_at(loop, Loop::Clock::now() + 1ms);
  const auto limit = Loop::Clock::now() + 60s;
  while (!scope->is_stopped() && Loop::Clock::now() < limit) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(stop_code(scope->stop_word()), Code::DEADLINE_EXCEEDED);
}

TEST(WorkScopeTest, TheErrorSaysWhy) {
  const auto text = [](Code code) {
    const Status status = stopped_work(code);
    EXPECT_EQ(status.code(), code);
    return status.text();
  };
  EXPECT_NE(text(Code::DEADLINE_EXCEEDED).find("longer than its time limit"), std::string::npos);
  EXPECT_NE(text(Code::CANCELLED).find("its call was cancelled"), std::string::npos);
  EXPECT_EQ(text(Code::ABORTED).find("because"), std::string::npos);
}

TEST(TraceChoiceTest, IsThatOfTheInnermostCallThatHasOne) {
  EXPECT_EQ(current_trace_choice(), TraceChoice::unset);
  {
    const TraceChoiceScope off(TraceChoice::off);
    EXPECT_EQ(current_trace_choice(), TraceChoice::off);
    {
      const TraceChoiceScope none(TraceChoice::unset);
      EXPECT_EQ(current_trace_choice(), TraceChoice::off);
      const TraceChoiceScope on(TraceChoice::on);
      EXPECT_EQ(current_trace_choice(), TraceChoice::on);
      std::thread([] { EXPECT_EQ(current_trace_choice(), TraceChoice::unset); }).join();
    }
    EXPECT_EQ(current_trace_choice(), TraceChoice::off);
  }
  EXPECT_EQ(current_trace_choice(), TraceChoice::unset);
}

TEST(TraceScopeTest, WithoutATracerIsNothing) {
  const Ref<Tracer> tracer = *Tracer::create("");
  {
    const TraceScope none(nullptr, TraceCategory::phase, "none");
    const TraceScope one(tracer.get(), TraceCategory::phase, "one");
  }
  EXPECT_EQ(tracer->totals().events, 2u);
}

}  // namespace
}  // namespace halyard
