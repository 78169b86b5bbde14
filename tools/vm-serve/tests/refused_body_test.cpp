// Bodies of requests that are refused before they are read.
#include "conversation.h"
#include "request_texts.h"

namespace halyard::tools::serve {
namespace {

using testing_support::Answer;
using testing_support::chunked;
using testing_support::Client;
using testing_support::Host;
using testing_support::kForever;
using testing_support::kLive;
using testing_support::kLiveBody;
using testing_support::kMostSkipped;
using testing_support::request;

TEST(HttpConnection, ASmallBodyOfARefusedRequestIsSkipped) {
  Host host;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{9000}, kMostSkipped}) {
    const std::string body(size, 'x');
    for (const bool is_chunked : {false, true}) {
      if (is_chunked && size == kMostSkipped) continue;  // the end of the chunks comes behind as many bytes
      Client client = host.connect();
      client.send(is_chunked ? chunked("POST /v2/none", "", body, 5000) : request("POST /v2/none", "", body));
      client.send(kLive);
      const Answer answer = client.answer();
      EXPECT_EQ(answer.status, 404u);
      EXPECT_FALSE(answer.closes()) << size << is_chunked;
      EXPECT_EQ(client.answer().body, kLiveBody) << size << is_chunked;
    }
  }
}

TEST(HttpConnection, ALargeBodyOfARefusedRequestIsNotReadAndEndsTheConnection) {
  Host host;
  const std::string body(kMostSkipped + 1, 'x');
  {
    // The answer comes before the body: the server does not wait for what it would have to skip.
    Client client = host.connect();
    const std::string whole = request("POST /v2/none", "", body);
    client.send(std::string_view(whole).substr(0, whole.size() - body.size()));
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, 404u);
    EXPECT_TRUE(answer.closes());
    client.send(body);
    client.send(kLive);
    client.end();
    EXPECT_TRUE(client.is_closed()) << "the next request is not answered";
  }
  // The end of chunks is not known. What is read is at most a piece more than the limit.
  Client client = host.connect();
  client.send(chunked("POST /v2/none", "", std::string(kMostSkipped + (128 << 10), 'x'), 60000));
  client.send(kLive);
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 404u);
  EXPECT_TRUE(answer.closes());
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpConnection, ARefusedBodyThatBreaksOffOrIsMalformedEndsTheConnectionAfterTheAnswer) {
  Host host;
  {
    Client client = host.connect();
    client.send("POST /v2/none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
    client.end();
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, 404u);
    EXPECT_TRUE(answer.closes());
    EXPECT_TRUE(client.is_closed());
  }
  const struct {
    std::string_view line;
    unsigned status;
  } cases[] = {{"POST /v2/none", 404},
               {"GET /v2", 200},
               {"POST /v2/models/none/infer", 404},
               {"POST /v2/models/mul/infer", 400}};
  for (const auto& [line, status] : cases) {
    Client client = host.connect();
    client.send(fmt::format("{} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n{}",
                            line, kLive));
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, status) << line;
    EXPECT_TRUE(answer.closes()) << line;
    EXPECT_TRUE(client.is_closed()) << "what follows is no request: " << line;
  }
}

TEST(HttpConnection, ARefusedBodyInChunksAboveTheLimitEndsTheConnection) {
  Host host({.limits = {.body = 1000, .connections = 64, .request = kForever, .idle = kForever}});
  Client client = host.connect();
  client.send(chunked("POST /v2/none", "", std::string(2000, 'x'), 300));
  client.send(kLive);
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 404u);
  EXPECT_TRUE(answer.closes());
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpConnection, ABodyThatTheClientHoldsBackIsNotAskedForIfTheRequestIsRefused) {
  Host host;
  Client client = host.connect();
  client.send(
      "POST /v2/none HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 404u);
  EXPECT_EQ(answer.interim, 0);
  EXPECT_TRUE(answer.closes()) << "whether the body comes is not known";
  EXPECT_TRUE(client.is_closed());
  // Also if the request has no body to hold back.
  Client other = host.connect();
  other.send("GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n");
  const Answer none = other.answer();
  EXPECT_EQ(none.status, 200u);
  EXPECT_EQ(none.interim, 0);
}

TEST(HttpConnection, ABodyThatTheClientHoldsBackIsNotWaitedForIfItsJsonTextIsEmpty) {
  Host host;
  Client client = host.connect();
  client.send(
      "POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Inference-Header-Content-Length: 0\r\nContent-Length: 8\r\n\r\n");
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 400u);
  EXPECT_EQ(answer.interim, 0);
  EXPECT_TRUE(answer.closes()) << "whether the body comes is not known";
  EXPECT_TRUE(client.is_closed());
}

}  // namespace
}  // namespace halyard::tools::serve
