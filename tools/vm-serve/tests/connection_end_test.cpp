// Clients that go while they are served, and a server that ends.
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
using testing_support::kLiveBody;
using testing_support::kPatience;
using testing_support::request;
using testing_support::small_json;

TEST(HttpConnection, TheCallOfAClientThatHasGoneIsCancelled) {
  const TemporaryFolder folder;
  Host host({.models = {{"endless", endless_model(folder)}}});
  const auto metrics = host.metrics.of_model("endless", "1");
  for (const bool is_unix : {false, true}) {
    Client client = host.connect(is_unix);
    client.send(endless_request());
    ASSERT_TRUE(becomes([&] { return metrics->running.load() == 1; }));
    const uint64_t before = metrics->cancelled.load();
    // A look at a client that is there changes nothing.
    for (int i = 0; i < 3; ++i) host.server->look_at_clients();
    EXPECT_FALSE(client.hears(milliseconds(50)));
    client.close();
    EXPECT_TRUE(becomes([&] {
      host.server->look_at_clients();
      return metrics->cancelled.load() == before + 1 && metrics->running.load() == 0;
    })) << is_unix;
  }
  EXPECT_EQ(metrics->cancelled.load(), 2u);
}

TEST(HttpConnection, AClientThatEndedOnlyItsSideIsAskedOnceAndAnswered) {
  const TemporaryFolder folder;
  Host host({.limits = {.body = 1 << 20, .connections = 64, .request = milliseconds(1500), .idle = kForever},
             .models = {{"endless", endless_model(folder)}}});
  const auto metrics = host.metrics.of_model("endless", "1");
  Client client = host.connect();
  client.send(endless_request());
  client.end();
  ASSERT_TRUE(becomes([&] { return metrics->running.load() == 1; }));
  host.server->look_at_clients();
  EXPECT_FALSE(client.hears(milliseconds(20))) << "the first look only counts";
  for (int i = 0; i < 4; ++i) {
    host.server->look_at_clients();
    std::this_thread::sleep_for(milliseconds(20));
  }
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 504u);
  EXPECT_EQ(answer.interim, 1);
  EXPECT_EQ(metrics->cancelled.load(), 0u);
}

// As long as earlier answers are on their way, a send would not tell whether the client has gone.
TEST(HttpConnection, AClientThatHasNotReadItsAnswersIsNotAsked) {
  const TemporaryFolder folder;
  Host host({.models = {{"endless", endless_model(folder)}}});
  Client client = host.connect(true);
  client.send(std::string(kLive) + endless_request());
  client.end();
  ASSERT_TRUE(becomes([&] { return host.metrics.of_model("endless", "1")->running.load() == 1; }));
  for (int i = 0; i < 4; ++i) host.server->look_at_clients();
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(client.heard(), "");
  EXPECT_FALSE(client.hears(milliseconds(50)));
  host.server->look_at_clients();
  EXPECT_TRUE(client.hears(kPatience));
  EXPECT_EQ(client.heard(), "HTTP/1.1 100 Continue\r\n\r\n");
}

TEST(HttpConnection, AClientOfHttp10GetsNoInterimAnswers) {
  const TemporaryFolder folder;
  Host host({.models = {{"endless", endless_model(folder)}}});
  Client client = host.connect();
  std::string text = endless_request();
  client.send(text.replace(text.find("HTTP/1.1"), 8, "HTTP/1.0"));
  client.end();
  ASSERT_TRUE(becomes([&] { return host.metrics.of_model("endless", "1")->running.load() == 1; }));
  for (int i = 0; i < 4; ++i) host.server->look_at_clients();
  EXPECT_FALSE(client.hears(milliseconds(50)));
}

TEST(HttpConnection, TooManyConnectionsAreClosed) {
  Host host({.limits = {.body = 1 << 20, .connections = 2, .request = kForever, .idle = kForever}});
  {
    Client one = host.connect(), two = host.connect(), three = host.connect();
    EXPECT_TRUE(three.is_closed());
    one.send(kLive);
    two.send(kLive);
    EXPECT_EQ(one.answer().status, 200u);
    EXPECT_EQ(two.answer().status, 200u);
    EXPECT_EQ(host.metrics.refused_connections.load(), 1u);
    EXPECT_EQ(host.metrics.accepted.load(), 2u);
  }
  ASSERT_TRUE(becomes([&] { return host.metrics.connections.load() == 0; }));
  EXPECT_EQ(host.ask(kLive).status, 200u) << "a place is free again";
}

TEST(HttpConnection, ADrainedServerClosesIdleConnectionsAndAnswersOthers) {
  const TemporaryFolder folder;
  Host host({.limits = {.body = 1 << 20, .connections = 64, .request = milliseconds(1500), .idle = kForever},
             .models = {{"endless", endless_model(folder)}}});
  Client idle = host.connect(), busy = host.connect(), reading = host.connect();
  idle.send(kLive);
  EXPECT_EQ(idle.answer().status, 200u);
  busy.send(endless_request());
  const std::string text = request(kInfer, "", small_json());
  reading.send(std::string_view(text).substr(0, text.size() - 5));
  ASSERT_TRUE(becomes([&] { return host.metrics.of_model("endless", "1")->running.load() == 1; }));
  std::atomic<bool> is_drained = false;
  host.server->drain([&] { is_drained = true; });
  EXPECT_TRUE(idle.is_closed());
  reading.send(std::string_view(text).substr(text.size() - 5));
  const Answer read = reading.answer(), answer = busy.answer();
  EXPECT_EQ(read.status, 200u);
  EXPECT_TRUE(read.closes());
  EXPECT_EQ(answer.status, 504u);
  EXPECT_TRUE(answer.closes()) << answer.head;
  busy.close();
  reading.close();
  EXPECT_TRUE(becomes([&] { return is_drained.load(); }));
}

TEST(HttpConnection, ARequestThatHasArrivedIsAnsweredAlthoughTheServerDrains) {
  Host host;
  Client client = host.connect();
  client.send(kLive);
  EXPECT_EQ(client.answer().status, 200u);
  // The first bytes of the next request have been read, or are in the socket.
  client.send("GET /v2/health/live HTTP/1.1\r\n");
  std::this_thread::sleep_for(milliseconds(50));
  host.server->drain([] {});
  client.send("Host: localhost\r\n\r\n");
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 200u);
  EXPECT_TRUE(answer.closes());
}

TEST(HttpConnection, ADrainingServerTakesNoConnections) {
  Host host;
  host.server->drain([] {});
  Client client = host.connect();
  client.send(kLive);
  EXPECT_TRUE(client.is_closed());
}

// The server begins to drain while it writes an answer that does not say so.
TEST(HttpConnection, AfterTheLastAnswerOnlyWhatIsThereIsAnswered) {
  constexpr size_t kCount = 1 << 20;  // more than the sockets hold
  const Binary binary = binary_of(kCount, true);
  for (const bool has_another : {false, true}) {
    Host host({.limits = {.body = 16 << 20, .connections = 8, .request = kForever, .idle = kForever}});
    Client client = host.connect(true);
    client.send(request(kInfer, binary.headers, binary.text()));
    if (has_another) client.send(kLive);
    ASSERT_TRUE(becomes([&] { return host.metrics.of_model("mul", "1")->succeeded.load() == 1; }));
    std::this_thread::sleep_for(milliseconds(50));
    host.server->drain([] {});
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, 200u);
    EXPECT_FALSE(answer.closes());
    if (has_another) {
      const Answer last = client.answer();
      EXPECT_EQ(last.body, kLiveBody);
      EXPECT_TRUE(last.closes());
    }
    EXPECT_TRUE(client.is_closed());
  }
}

// The bytes of a request may be on their way from the socket to the connection when the server begins to
// drain.
TEST(HttpConnection, NoRequestIsLostToTheBeginningOfTheEnd) {
  for (int i = 0; i < 40; ++i) {
    Host host;
    Client client = host.connect();
    client.send(kLive);
    ASSERT_EQ(client.answer().status, 200u);
    client.send(kLive);
    for (int turns = 0; turns < i % 20; ++turns) std::this_thread::yield();
    host.server->drain([] {});
    const Answer answer = client.answer();
    ASSERT_EQ(answer.status, 200u) << i;
    EXPECT_TRUE(client.is_closed());
  }
}

TEST(HttpConnection, TheEndOfTheServerEndsCallsAndLoading) {
  const TemporaryFolder folder;
  Host host({.models = {{"endless", endless_model(folder)}}, .has_control = true});
  Client client = host.connect();
  client.send(endless_request());
  ASSERT_TRUE(becomes([&] { return host.metrics.of_model("endless", "1")->running.load() == 1; }));
  // A loader that is busy until the connection has ended.
  std::atomic<bool> may_go_on = false;
  host.loader.post([&] { may_go_on.wait(false); });
  Client loading = host.connect();
  loading.send(request("POST /v2/repository/models/mul/unload", "", "{}"));
  EXPECT_FALSE(loading.hears(milliseconds(50)));
  host.server->close_all();
  // Whether an answer is on its way before the socket is closed is a matter of luck.
  for (Client* each : {&client, &loading}) {
    const Answer answer = each->answer();
    EXPECT_TRUE(answer.status == 0 || answer.body.find("the server ends") != std::string::npos)
        << answer.body;
    EXPECT_TRUE(each->is_closed());
  }
  EXPECT_TRUE(becomes([&] { return host.metrics.connections.load() == 0; }));
  may_go_on = true;
  may_go_on.notify_all();
}

}  // namespace
}  // namespace halyard::tools::serve
