// Connections of HTTP: where requests end, which of them are none, and when the connection ends after one.
#include "conversation.h"
#include "request_texts.h"

namespace halyard::tools::serve {
namespace {

using testing_support::Answer;
using testing_support::becomes;
using testing_support::Client;
using testing_support::Host;
using testing_support::json_of;
using testing_support::kInfer;
using testing_support::kLive;
using testing_support::kLiveBody;
using testing_support::request;

TEST(HttpConnection, StaysOpenUntilTheClientEndsIt) {
  Host host;
  for (const bool is_unix : {false, true}) {
    Client client = host.connect(is_unix);
    for (int i = 0; i < 3; ++i) {
      client.send(kLive);
      const Answer answer = client.answer();
      EXPECT_EQ(answer.status, 200u);
      EXPECT_EQ(answer.body, kLiveBody);
      EXPECT_EQ(answer.head.find("Connection:"), std::string::npos) << answer.head;
    }
    client.end();
    EXPECT_TRUE(client.is_closed());
  }
}

TEST(HttpConnection, EndsIfTheClientAsksForIt) {
  Host host;
  Client client = host.connect();
  client.send("GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  client.send(kLive);
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 200u);
  EXPECT_TRUE(answer.closes());
  EXPECT_TRUE(client.is_closed()) << "the second request is not answered";
}

TEST(HttpConnection, Http10ClosesUnlessItIsAskedNotTo) {
  Host host;
  {
    Client client = host.connect();
    client.send("GET /v2/health/live HTTP/1.0\r\n\r\n");
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, 200u);
    EXPECT_TRUE(answer.closes());
    EXPECT_FALSE(answer.has("Connection: keep-alive"));
    EXPECT_TRUE(client.is_closed());
  }
  Client client = host.connect();
  for (int i = 0; i < 2; ++i) {
    client.send("GET /v2/health/live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, 200u);
    EXPECT_TRUE(answer.has("Connection: keep-alive"));
    EXPECT_FALSE(answer.closes());
  }
}

TEST(HttpConnection, RequestsThatAreSentTogetherAreAnsweredInOrder) {
  Host host;
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += request(kInfer, "", json_of(fmt::format("{},0", i), "2,2", 2)) + std::string(kLive);
  for (const size_t piece : {text.size(), size_t{97}}) {
    Client client = host.connect();
    for (size_t at = 0; at < text.size(); at += piece) client.send(std::string_view(text).substr(at, piece));
    for (int i = 0; i < 20; ++i) {
      EXPECT_NE(client.answer().body.find(fmt::format("\"data\":[{},0]", 2 * i)), std::string::npos) << i;
      EXPECT_EQ(client.answer().body, kLiveBody);
    }
  }
}

TEST(HttpConnection, HeadIsAnsweredWithTheHeaderAlone) {
  Host host;
  Client client = host.connect();
  client.send("HEAD /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Answer head = client.answer(true);
  client.send("GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Answer whole = client.answer();
  EXPECT_EQ(head.status, 200u);
  EXPECT_EQ(whole.status, 200u);
  EXPECT_TRUE(head.has(fmt::format("Content-Length: {}", whole.body.size()))) << head.head;
}

TEST(HttpConnection, ARefusalOfHeadHasNoBodyEither) {
  Host host;
  for (const std::string_view target : {"/none", "/%zz", "*", "/a/b/c/d/e/f/g/h/i/j", "/v2/models/none",
                                        "/v2/models/mul/infer", "/v2/repository/index"}) {
    Client client = host.connect();
    client.send(fmt::format("HEAD {} HTTP/1.1\r\nHost: localhost\r\n\r\n", target));
    const Answer head = client.answer(true);
    EXPECT_GE(head.status, 400u) << target;
    EXPECT_FALSE(head.closes()) << target;
    client.send(kLive);
    const Answer next = client.answer();
    EXPECT_EQ(next.status, 200u) << target;
    EXPECT_EQ(next.body, kLiveBody) << target;
  }
}

TEST(HttpConnection, HeadersThatAreNoneAreRefusedAndEndTheConnection) {
  Host host;
  const struct {
    std::string text;
    unsigned status;
  } cases[] = {
      {"GET\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost localhost\r\n\r\n", 400},
      {"GET / HTTP/3.0\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nLong: " + std::string(20000, 'x') + "\r\n\r\n", 431},
      {fmt::format("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", (1 << 20) + 1), 413},
  };
  for (const auto& [text, status] : cases) {
    Client client = host.connect();
    client.send(text + std::string(kLive));
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, status) << text.substr(0, 60);
    EXPECT_TRUE(answer.closes());
    EXPECT_NE(answer.body.find("the header is not valid HTTP/1.1"), std::string::npos) << answer.body;
    EXPECT_TRUE(client.is_closed());
  }
}

TEST(HttpConnection, AHeaderThatDoesNotArriveIsNotAnswered) {
  Host host;
  for (const std::string_view text : {"", "GET /v2 HT", "GET /v2 HTTP/1.1\r\nHost: local"}) {
    Client client = host.connect();
    client.send(text);
    client.end();
    EXPECT_TRUE(client.is_closed()) << text;
  }
  // The client has gone with bytes unread, which resets the connection.
  Client client = host.connect();
  client.send("GET /v2 HT");
  client.close();
  EXPECT_TRUE(becomes([&] { return host.metrics.connections.load() == 0; }));
}

TEST(HttpConnection, ATransferThatIsDoubtfulIsTheLast) {
  Host host;
  Client client = host.connect();
  client.send("POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n" +
              std::string(kLive));
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 400u);
  EXPECT_TRUE(answer.closes());
  EXPECT_TRUE(client.is_closed());
}

}  // namespace
}  // namespace halyard::tools::serve
