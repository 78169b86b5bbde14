// Bodies of inference requests, of any length, in any form and in any pieces.
#include "conversation.h"
#include "request_texts.h"

namespace halyard::tools::serve {
namespace {

using std::chrono::milliseconds;
using testing_support::Answer;
using testing_support::Binary;
using testing_support::binary_of;
using testing_support::chunked;
using testing_support::Client;
using testing_support::Host;
using testing_support::json_of;
using testing_support::kForever;
using testing_support::kInfer;
using testing_support::kLive;
using testing_support::kLiveBody;
using testing_support::kPatience;
using testing_support::kSmallData;
using testing_support::packed;
using testing_support::request;
using testing_support::small_json;

TEST(HttpConnection, BodiesOfAnyLengthInAnyForm) {
  Host host;
  // The second is longer than what is read with the header, the last than a piece.
  for (const size_t padding : {size_t{0}, size_t{20000}, size_t{600000}}) {
    const std::string body = json_of("1,2.5", "2,2", 2, padding);
    for (const auto& [text, name] :
         {std::pair(request(kInfer, "", body), "length"),
          std::pair(chunked(kInfer, "", body, 70000), "chunks"),
          std::pair(chunked(kInfer, "", body, padding > 0 ? 1000 : 1), "small chunks"),
          std::pair(request(kInfer, "Content-Encoding: gzip\r\n", packed(body)), "gzip"),
          std::pair(request(kInfer, "Content-Encoding: deflate\r\n", packed(body, false)), "deflate"),
          std::pair(chunked(kInfer, "Content-Encoding: gzip\r\n", packed(body), 7), "both")}) {
      Client client = host.connect();
      client.send(text);
      client.send(kLive);
      const Answer answer = client.answer();
      EXPECT_EQ(answer.status, 200u) << name << padding << answer.body;
      EXPECT_NE(answer.body.find(kSmallData), std::string::npos) << name << padding;
      EXPECT_FALSE(answer.closes());
      EXPECT_EQ(client.answer().body, kLiveBody) << name << padding;
    }
  }
}

TEST(HttpConnection, BinaryTensorsOfAnyLengthInAnyForm) {
  Host host;
  for (const size_t count : {size_t{0}, size_t{3}, size_t{5000}, size_t{100000}}) {
    const Binary binary = binary_of(count, true);
    const std::string body = binary.text();
    for (const auto& text :
         {request(kInfer, binary.headers, body), chunked(kInfer, binary.headers, body, 70000),
          request(kInfer, binary.headers + "Content-Encoding: gzip\r\n", packed(body)),
          chunked(kInfer, binary.headers + "Content-Encoding: deflate\r\n", packed(body, false), 999)}) {
      Client client = host.connect();
      client.send(text);
      client.send(kLive);
      const Answer answer = client.answer();
      ASSERT_EQ(answer.status, 200u) << count << answer.body;
      const std::string bytes = answer.body.substr(answer.body.size() - 4 * count);
      EXPECT_TRUE(
          answer.has(fmt::format("Inference-Header-Content-Length: {}", answer.body.size() - bytes.size())));
      EXPECT_TRUE(answer.has("Content-Type: application/octet-stream"));
      for (size_t i = 0; i < count; ++i) {
        float value = 0;
        std::memcpy(&value, bytes.data() + 4 * i, sizeof value);
        ASSERT_EQ(value, 2.0f * static_cast<float>(i % 1000)) << i;
      }
      EXPECT_EQ(client.answer().body, kLiveBody);
    }
  }
}

TEST(HttpConnection, TheJsonObjectAndTheTensorsMayComeInAnyPieces) {
  Host host;
  const Binary binary = binary_of(3000, true);
  const std::string text = request(kInfer, binary.headers, binary.text());
  const size_t head = text.find("\r\n\r\n") + 4;
  // The header alone; a part of the object; all of it; a part of the tensors.
  for (const size_t first : {head, head + 10, head + binary.json.size(), head + binary.json.size() + 100}) {
    Client client = host.connect();
    client.send(std::string_view(text).substr(0, first));
    EXPECT_FALSE(client.hears(milliseconds(30)));
    client.send(std::string_view(text).substr(first));
    EXPECT_EQ(client.answer().status, 200u) << first - head;
    client.send(kLive);
    EXPECT_EQ(client.answer().body, kLiveBody);
  }
}

TEST(HttpConnection, SizesThatDoNotAgreeAreRefused) {
  Host host;
  const Binary binary = binary_of(3);
  const std::string body = binary.text(), gzip = binary.headers + "Content-Encoding: gzip\r\n";
  const struct {
    std::string text;
    std::string_view says;
    bool closes;
  } cases[] = {
      {request(kInfer, binary.headers, body + "x"),
       "25 bytes follow the JSON object, but the inputs' binary_data_size add up to 24", false},
      {request(kInfer, binary.headers, body.substr(0, body.size() - 1)), "23 bytes follow the JSON object",
       false},
      {request(kInfer, "", binary.json), "no Inference-Header-Content-Length", false},
      {chunked(kInfer, "", binary.json, 100), "no Inference-Header-Content-Length", false},
      {chunked(kInfer, binary.headers, body + "x", 50), "more bytes follow the JSON object than", false},
      {chunked(kInfer, binary.headers, body.substr(0, body.size() - 1), 50), "shorter than its header states",
       true},
      {request(kInfer, gzip, packed(body + "x")), "more bytes follow the JSON object than", false},
      {request(kInfer, gzip, packed(body.substr(0, body.size() - 1))), "shorter than its header states",
       true},
      {request(kInfer, gzip, packed(binary.json.substr(0, 20))), "shorter than its header states", true},
      {request(kInfer, gzip, packed(body) + "x"), "cannot be decoded according to its Content-Encoding",
       true},
      {request(kInfer, gzip, packed(body).substr(0, packed(body).size() - 1)),
       "cannot be decoded according to its Content-Encoding", true},
      {request(kInfer, "Content-Encoding: gzip\r\n", packed(small_json()).substr(0, 30)),
       "cannot be decoded according to its Content-Encoding", true},
      {request(kInfer, "Content-Encoding: gzip\r\n", small_json()),
       "cannot be decoded according to its Content-Encoding", true},
      {request(kInfer, "Content-Encoding: gzip\r\n", ""),
       "cannot be decoded according to its Content-Encoding", true},
  };
  for (const auto& [text, says, closes] : cases) {
    Client client = host.connect();
    client.send(text);
    client.send(kLive);
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, 400u) << says;
    EXPECT_NE(answer.body.find(says), std::string::npos) << answer.body << "\n  " << says;
    EXPECT_EQ(answer.closes(), closes) << says;
    if (closes) {
      EXPECT_TRUE(client.is_closed()) << says;
    } else {
      EXPECT_EQ(client.answer().body, kLiveBody) << says;
    }
  }
}

TEST(HttpConnection, ABodyThatBreaksOffIsRefused) {
  Host host;
  const Binary binary = binary_of(3000);
  const std::string whole = request(kInfer, binary.headers, binary.text()),
                    parts = chunked(kInfer, "", small_json(), 20),
                    gzip = request(kInfer, "Content-Encoding: gzip\r\n", packed(small_json()));
  for (const std::string& text : {request(kInfer, "", small_json()), whole, parts, gzip}) {
    Client client = host.connect();
    client.send(std::string_view(text).substr(0, text.size() - 6));
    client.end();
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, 400u);
    EXPECT_TRUE(answer.closes());
    EXPECT_NE(answer.body.find("the body is malformed, or shorter than its header states"), std::string::npos)
        << answer.body;
  }
  Client client = host.connect();
  client.send(
      "POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
  EXPECT_EQ(client.answer().status, 400u);
}

TEST(HttpConnection, TheLimitOfABodyIsExact) {
  const size_t most = small_json().size() + 1000;
  Host host({.limits = {.body = most, .connections = 64, .request = kForever, .idle = kForever}});
  for (const size_t more : {size_t{0}, size_t{1}}) {
    const std::string body = json_of("1,2.5", "2,2", 2, 1000 + more);
    ASSERT_EQ(body.size(), most + more);
    const unsigned status = more == 0 ? 200 : 413;
    EXPECT_EQ(host.ask(request(kInfer, "", body)).status, status);
    for (const std::string& text :
         {chunked(kInfer, "", body, 500), request(kInfer, "Content-Encoding: gzip\r\n", packed(body))}) {
      Client client = host.connect();
      client.send(text);
      const Answer answer = client.answer();
      EXPECT_EQ(answer.status, status) << more;
      EXPECT_EQ(answer.closes(), more == 1);
      if (more == 1) {
        EXPECT_NE(answer.body.find(fmt::format("larger than {} bytes", most)), std::string::npos)
            << answer.body;
      }
    }
  }
  // Tensors whose sizes add up to more than a body may have, in a body without a length.
  const Binary binary = binary_of(1000);
  const Answer answer = host.ask(chunked(kInfer, binary.headers, binary.text().substr(0, most - 10), 500));
  EXPECT_EQ(answer.status, 413u);
  EXPECT_NE(answer.body.find(fmt::format("the inputs have 8000 bytes; the server accepts at most {}", most)),
            std::string::npos)
      << answer.body;
}

TEST(HttpConnection, AClientThatWaitsIsToldToContinueOnce) {
  Host host;
  const Binary binary = binary_of(3000);
  for (const auto& [headers, body] :
       {std::pair(std::string(), small_json()), std::pair(binary.headers, binary.text())}) {
    const std::string text = request(kInfer, headers + "Expect: 100-continue\r\n", body);
    Client client = host.connect();
    client.send(std::string_view(text).substr(0, text.size() - body.size()));
    ASSERT_TRUE(client.hears(kPatience));
    EXPECT_EQ(client.heard(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(body);
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, 200u);
    EXPECT_EQ(answer.interim, 1);
    EXPECT_FALSE(answer.closes());
    client.send(kLive);
    EXPECT_EQ(client.answer().interim, 0) << "only for the request that waits";
  }
  // The body has come with the header: nobody waits.
  Client client = host.connect();
  client.send(request(kInfer, "Expect: 100-continue\r\n", small_json()));
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.interim, 0);
  EXPECT_FALSE(answer.closes());
}

TEST(HttpConnection, JsonAndBinaryInputsMayBeMixed) {
  Host host;
  const std::string_view twos("\0\0\0\x40\0\0\0\x40", 8);
  const std::string json =
      R"({"inputs":[{"name":"input1","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}},)"
      R"({"name":"input0","datatype":"FP32","shape":[2],"data":[1,2.5]}]})";
  const Answer answer = host.ask(request(
      kInfer, fmt::format("Inference-Header-Content-Length: {}\r\n", json.size()), json + std::string(twos)));
  EXPECT_EQ(answer.status, 200u);
  EXPECT_NE(answer.body.find(kSmallData), std::string::npos) << answer.body;
}

TEST(HttpConnection, RequestsThatAreNoneAreRefusedAndTheConnectionGoesOn) {
  Host host;
  const struct {
    std::string headers, body;
    unsigned status;
    std::string_view line;
  } cases[] = {
      {"Content-Encoding: br\r\n", small_json(), 415, "Accept-Encoding: gzip, deflate"},
      {"Inference-Header-Content-Length: 1x\r\n", small_json(), 400, ""},
      {"Inference-Header-Content-Length: 9999\r\n", small_json(), 400, ""},
      {"", "{", 400, ""},
      {"", "", 400, ""},
      {"", R"({"inputs":[]})", 400, ""},
  };
  const auto metrics = host.metrics.of_model("mul", "1");
  for (const auto& [headers, body, status, line] : cases) {
    Client client = host.connect();
    client.send(request(kInfer, headers, body));
    client.send(kLive);
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, status) << headers << body;
    EXPECT_TRUE(line.empty() || answer.has(line)) << answer.head;
    EXPECT_EQ(client.answer().body, kLiveBody) << headers << body;
  }
  EXPECT_EQ(metrics->failed.load(), 3u) << "those with a header that names a readable body";
}

}  // namespace
}  // namespace halyard::tools::serve
