// Time: idle connections, calls that take too long, and queues that are full.
#include "body.h"
#include "conversation.h"
#include "failing_models.h"
#include "fixtures.h"
#include "request_texts.h"

namespace halyard::tools::serve {
namespace {

using std::chrono::milliseconds;
using testing_support::Answer;
using testing_support::becomes;
using testing_support::Binary;
using testing_support::binary_of;
using testing_support::Client;
using testing_support::endless_model;
using testing_support::endless_request;
using testing_support::Host;
using testing_support::kForever;
using testing_support::kInfer;
using testing_support::kLive;
using testing_support::kPatience;
using testing_support::request;
using testing_support::small_json;

TEST(HttpConnection, AnIdleConnectionIsClosedAndABusyOneIsNot) {
  Host host(
      {.limits = {.body = 1 << 20, .connections = 64, .request = kForever, .idle = milliseconds(1000)}});
  Client client = host.connect();
  for (int i = 0; i < 3; ++i) {
    client.send(kLive);
    EXPECT_EQ(client.answer().status, 200u);
    std::this_thread::sleep_for(milliseconds(20));
  }
  const auto begin = Clock::now();
  EXPECT_TRUE(client.is_closed());
  EXPECT_GE(Clock::now() - begin, milliseconds(500));
  EXPECT_LT(Clock::now() - begin, kPatience / 2);
  // A header must come within the same time; a body has more.
  Client slow = host.connect();
  slow.send("GET /v2 HTTP/1.1\r\n");
  EXPECT_TRUE(slow.is_closed());
  Client body = host.connect();
  const std::string text = request(kInfer, "", small_json());
  body.send(std::string_view(text).substr(0, text.size() - 5));
  EXPECT_FALSE(body.hears(milliseconds(1200)));
  body.send(std::string_view(text).substr(text.size() - 5));
  EXPECT_EQ(body.answer().status, 200u);
}

TEST(HttpConnection, ACallThatTakesTooLongIsAnsweredSo) {
  const TemporaryFolder folder;
  Host host({.limits = {.body = 1 << 20, .connections = 64, .request = milliseconds(800), .idle = kForever},
             .models = {{"endless", endless_model(folder)}}});
  Client client = host.connect();
  client.send(endless_request());
  EXPECT_FALSE(client.hears(milliseconds(50)));
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 504u);
  EXPECT_NE(answer.body.find("the model did not answer in time"), std::string::npos) << answer.body;
  EXPECT_FALSE(answer.closes());
  client.send(request(kInfer, "", small_json()));
  EXPECT_EQ(client.answer().status, 200u) << "the connection and the thread go on";
}

TEST(HttpConnection, AFullQueueRefusesBeforeItReadsTheBody) {
  const TemporaryFolder folder;
  Host host({.queue = 1, .models = {{"endless", endless_model(folder)}}});
  Client running = host.connect(), waiting = host.connect();
  running.send(endless_request());
  const auto metrics = host.metrics.of_model("endless", "1");
  ASSERT_TRUE(becomes([&] { return metrics->running.load() == 1; }));
  waiting.send(endless_request());
  ASSERT_TRUE(becomes([&] { return metrics->queued.load() == 1; }));
  Client refused = host.connect();
  const std::string text = endless_request("Expect: 100-continue\r\n");
  refused.send(std::string_view(text).substr(0, text.size() - small_json().size()));
  const Answer answer = refused.answer();
  EXPECT_EQ(answer.status, 503u);
  EXPECT_EQ(answer.interim, 0);
}

TEST(HttpConnection, AQueueThatBecomesFullWhileABodyIsReadRefusesToo) {
  const TemporaryFolder folder;
  Host host({.queue = 1, .models = {{"endless", endless_model(folder)}}});
  const auto metrics = host.metrics.of_model("endless", "1");
  Client late = host.connect(), running = host.connect(), waiting = host.connect();
  const std::string text = endless_request();
  late.send(std::string_view(text).substr(0, text.size() - 5));
  EXPECT_FALSE(late.hears(milliseconds(50)));
  running.send(text);
  ASSERT_TRUE(becomes([&] { return metrics->running.load() == 1; }));
  waiting.send(text);
  ASSERT_TRUE(becomes([&] { return metrics->queued.load() == 1; }));
  late.send(std::string_view(text).substr(text.size() - 5));
  const Answer answer = late.answer();
  EXPECT_EQ(answer.status, 503u);
  EXPECT_FALSE(answer.closes());
  EXPECT_EQ(metrics->rejected.load(), 1u);
}

// What a client has sent or received at once does not let it be silent for longer.
TEST(HttpConnection, AClientThatStallsAfterABurstIsDisconnected) {
  Host host({.limits = {.body = 32 << 20, .connections = 8, .request = kForever, .idle = kForever}});
  Client sends = host.connect(), receives = host.connect(true);
  constexpr size_t kCount = 2 << 20;
  const Binary binary = binary_of(kCount, true);
  const std::string text = request(kInfer, binary.headers, binary.text());
  // At the slowest rate that is allowed, what is transferred takes longer than the test waits.
  constexpr std::chrono::seconds kLongest(60);
  constexpr size_t kBurst = (kLongest.count() + 30) * kMinRate;
  static_assert(kBurst < kCount * sizeof(float));
  receives.send(text);
  while (receives.heard().size() < kBurst) ASSERT_TRUE(receives.hears(kPatience));
  sends.send(std::string_view(text).substr(0, kBurst));
  const auto end = Clock::now() + kLongest;
  while (host.metrics.connections.load() > 0 && Clock::now() < end)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(host.metrics.connections.load(), 0);
  EXPECT_EQ(host.metrics.request_bytes.load(), 0);
}

// A wait whose time changes is begun anew, once.
TEST(HttpConnection, AnOpenConnectionTakesNoProcessor) {
  Host host;
  Client client = host.connect();
  const std::string text = request(kInfer, "", small_json());
  client.send(std::string_view(text).substr(0, text.size() - 5));
  EXPECT_FALSE(client.hears(milliseconds(50)));
  client.send(std::string_view(text).substr(text.size() - 5));
  EXPECT_EQ(client.answer().status, 200u);
  const auto used = [] {
    timespec time = {};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto before = used();
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_LT(used() - before, milliseconds(25));
}

}  // namespace
}  // namespace halyard::tools::serve
