// The header `traceparent`, and which requests are recorded.
#include "request_trace.h"

#include <gtest/gtest.h>

namespace halyard::tools::serve {
namespace {

TEST(TraceParent, AsW3cShowsIt) {
  const auto sampled = parse_trace_parent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  ASSERT_TRUE(sampled);
  EXPECT_EQ(sampled->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_TRUE(sampled->is_sampled);
  const auto other = parse_trace_parent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02");
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->is_sampled);
  // Of a later version the beginning counts.
  const auto later = parse_trace_parent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes");
  ASSERT_TRUE(later);
  EXPECT_TRUE(later->is_sampled);
}

TEST(TraceParent, Malformed) {
  for (const std::string_view text : {"", "00", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                      "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                                      "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                                      "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                                      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                                      "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
                                      "00-4bf92f3577b34da6a3ce929d0e0e473x-00f067aa0ba902b7-01",
                                      "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01"})
    EXPECT_FALSE(parse_trace_parent(text)) << text;
}

TEST(RequestTraces, WhichAreRecorded) {
  const auto created = Trace::create("");
  ASSERT_TRUE(created);
  const Trace& trace = *created;
  const TraceParent sampled{.trace_id = "", .is_sampled = true}, unsampled{};

  RequestTraces none({}, std::nullopt);
  EXPECT_FALSE(none.samples(sampled));
  RequestTraces all(trace, std::nullopt);
  EXPECT_TRUE(all.samples(std::nullopt) && all.samples(sampled) && all.samples(unsampled));
  EXPECT_FALSE(all.chooses());
  RequestTraces asked(trace, 0);
  EXPECT_TRUE(asked.samples(sampled));
  EXPECT_FALSE(asked.samples(unsampled) || asked.samples(std::nullopt));
  RequestTraces some(trace, 3);
  EXPECT_TRUE(some.chooses());
  int count = 0;
  for (int i = 0; i < 9; ++i) {
    count += some.samples(std::nullopt);
    EXPECT_TRUE(some.samples(sampled));
    EXPECT_FALSE(some.samples(unsampled));
  }
  EXPECT_EQ(count, 3);
}

}  // namespace
}  // namespace halyard::tools::serve
