// Answers to pages of other origins, and compressed ones.
#include "control_request.h"
#include "conversation.h"
#include "request_texts.h"

namespace halyard::tools::serve {
namespace {

using testing_support::Answer;
using testing_support::Client;
using testing_support::Host;
using testing_support::kInfer;
using testing_support::kLiveBody;
using testing_support::request;
using testing_support::small_json;
using testing_support::unpacked;

TEST(HttpConnection, PagesOfAllowedOriginsMayUseIt) {
  Host host({.access = {.hosts = {}, .origins = {"https://a.example"}}});
  const auto ask = [&](std::string_view method, std::string_view origin) {
    return host.ask(
        fmt::format("{} /v2/health/live HTTP/1.1\r\nHost: localhost\r\nOrigin: {}\r\n\r\n", method, origin));
  };
  const Answer preflight = ask("OPTIONS", "https://a.example");
  EXPECT_EQ(preflight.status, 200u);
  EXPECT_TRUE(preflight.has("Access-Control-Allow-Methods: GET, HEAD, POST"));
  EXPECT_TRUE(preflight.has("Access-Control-Allow-Origin: https://a.example"));
  const Answer allowed = ask("GET", "https://a.example");
  EXPECT_EQ(allowed.body, kLiveBody);
  EXPECT_TRUE(allowed.has("Access-Control-Allow-Origin: https://a.example"));
  EXPECT_TRUE(allowed.has("Vary: Origin"));
  EXPECT_FALSE(allowed.has("Access-Control-Max-Age: 600"));
  const Answer other = ask("GET", "https://b.example");
  EXPECT_EQ(other.status, 403u);
  EXPECT_EQ(other.head.find("Access-Control"), std::string::npos);
  const Answer own = ask("GET", "http://localhost");
  EXPECT_EQ(own.status, 200u);
  EXPECT_EQ(own.head.find("Access-Control"), std::string::npos);
  EXPECT_EQ(ask("OPTIONS", "http://localhost").status, 405u);
}

// The text of an error has no reserved memory, so its size does not depend on what the client sends.
TEST(HttpConnection, AnErrorQuotesOnlyTheBeginningOfALongName) {
  Host host;
  std::string name;
  for (int i = 0; i < 100000; ++i) name += "\\u0001";  // six bytes of JSON in the answer as well
  const std::string bodies[] = {
      fmt::format(R"({{"inputs":[{{"name":"{}","datatype":"FP32","shape":[1],"data":[1]}}]}})", name),
      fmt::format(R"({{"inputs":[{{"name":"input0","datatype":"{}","shape":[1],"data":[1]}}]}})", name),
      fmt::format(R"({{"inputs":[],"outputs":[{{"name":"{}"}}]}})", name)};
  for (const std::string& body : bodies) {
    const Answer answer = host.ask(request(kInfer, "", body));
    EXPECT_EQ(answer.status, 400u);
    EXPECT_NE(answer.body.find("\\u0001"), std::string::npos) << answer.body.substr(0, 200);
    EXPECT_LT(answer.body.size(), size_t{16} << 10);
    EXPECT_TRUE(answer.body.ends_with("\"}\n"));
  }
}

TEST(HttpConnection, OnlyOtherAddressesTakeAnyName) {
  Host host;
  for (const bool is_loopback : {true, false}) {
    Client client = host.connect(false, is_loopback);
    client.send("GET /v2/health/live HTTP/1.1\r\nHost: a.example\r\n\r\n");
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, is_loopback ? 421u : 200u);
    EXPECT_FALSE(answer.closes());
  }
}

TEST(HttpConnection, LargeAnswersAreCompressedForClientsThatAskForIt) {
  Host host;
  const auto page = [&](std::string_view headers, std::string_view method = "GET") {
    Client client = host.connect();
    client.send(fmt::format("{} / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", method, headers));
    return client.answer(method == "HEAD");
  };
  const Answer plain = page("");
  EXPECT_TRUE(plain.has("Vary: Accept-Encoding"));
  EXPECT_EQ(plain.head.find("Content-Encoding"), std::string::npos);
  for (const std::string_view headers :
       {"Accept-Encoding: gzip\r\n", "Accept-Encoding: br\r\nAccept-Encoding: gzip\r\n",
        "Accept-Encoding: gzip;q=0.5, br\r\n"}) {
    const Answer answer = page(headers);
    EXPECT_TRUE(answer.has("Content-Encoding: gzip")) << headers;
    EXPECT_TRUE(answer.has("Vary: Accept-Encoding"));
    EXPECT_EQ(unpacked(answer.body), plain.body);
  }
  EXPECT_EQ(page("Accept-Encoding: br\r\n").body, plain.body);
  EXPECT_EQ(page("Accept-Encoding: gzip\r\n", "HEAD").head.find("Content-Encoding"), std::string::npos);
  // Small answers and errors stay as they are.
  const Answer small =
      host.ask("GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n");
  EXPECT_EQ(small.body, kLiveBody);
  EXPECT_FALSE(small.has("Vary: Accept-Encoding"));
  const std::string name(3000, 'n');
  const Answer error = host.ask(
      fmt::format("GET /v2/models/{} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n", name));
  EXPECT_EQ(error.status, 404u);
  EXPECT_EQ(error.head.find("Content-Encoding"), std::string::npos);
}

TEST(HttpConnection, AnswersAreCompressedFromOneKibibyteOn) {
  Host host;
  const auto answer = [&](size_t id) {
    std::string body = small_json();
    body.insert(1, fmt::format("\"id\":\"{}\",", std::string(id, 'i')));
    return host.ask(request(kInfer, "Accept-Encoding: gzip\r\n", body));
  };
  const size_t others = answer(1).body.size() - 1;
  ASSERT_LT(others, 1000u);
  EXPECT_FALSE(answer(1023 - others).has("Vary: Accept-Encoding"));
  const Answer exact = answer(1024 - others);
  EXPECT_TRUE(exact.has("Vary: Accept-Encoding"));
  EXPECT_EQ(unpacked(exact.body).size(), 1024u);
}

}  // namespace
}  // namespace halyard::tools::serve
