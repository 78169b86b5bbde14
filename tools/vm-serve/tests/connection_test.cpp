// Connections of HTTP in this process: where requests end, which are refused and how, time limits, and the
// end of a connection on either side.
#include "connection.h"

#include <zlib.h>

#include <random>

#include "control_request.h"
#include "conversation.h"
#include "documents.h"
#include "fixtures.h"

namespace halyard::tools::serve {
namespace {

using std::chrono::milliseconds;
using testing_support::Answer;
using testing_support::Client;
using testing_support::Host;
using testing_support::HostOptions;
using testing_support::kForever;
using testing_support::kPatience;

constexpr std::string_view kLive = "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kLiveBody = "{\"live\":true}\n";
constexpr size_t kMostSkipped = 256 << 10;  // of the body of a request that is refused

std::string request(std::string_view line, std::string_view headers, std::string_view body) {
  return fmt::format("{} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n{}", line, headers,
                     body.size(), body);
}
std::string chunked(std::string_view line, std::string_view headers, std::string_view body, size_t piece) {
  std::string text =
      fmt::format("{} HTTP/1.1\r\nHost: localhost\r\n{}Transfer-Encoding: chunked\r\n\r\n", line, headers);
  for (; !body.empty(); body.remove_prefix(std::min(piece, body.size())))
    text += fmt::format("{:x}\r\n{}\r\n", std::min(piece, body.size()), body.substr(0, piece));
  return text + "0\r\n\r\n";
}

constexpr std::string_view kInfer = "POST /v2/models/mul/infer";

// An inference request with these numbers, times 2 each.
std::string json_of(std::string_view numbers, std::string_view twos, size_t count, size_t padding = 0) {
  const auto input = [&](std::string_view name, std::string_view data) {
    return fmt::format(R"({{"name":"{}","datatype":"FP32","shape":[{}],"data":[{}]}})", name, count, data);
  };
  return R"({"inputs":[)" + input("input0", numbers) + "," + input("input1", twos) + "]}" +
         std::string(padding, ' ');
}
const std::string& small_json() {
  static const std::string text = json_of("1,2.5", "2,2", 2);
  return text;
}
constexpr std::string_view kSmallData = R"("data":[2,5])";

// The same with binary tensors. `count` elements, i and 2.
struct Binary {
  std::string json, bytes, headers;
  std::string text() const { return json + bytes; }
};
Binary binary_of(size_t count, bool binary_output = false) {
  Binary made;
  const auto input = [&](std::string_view name) {
    return fmt::format(
        R"({{"name":"{}","datatype":"FP32","shape":[{}],"parameters":{{"binary_data_size":{}}}}})", name,
        count, 4 * count);
  };
  made.json = R"({"inputs":[)" + input("input0") + "," + input("input1") + "]" +
              (binary_output ? R"(,"parameters":{"binary_data_output":true})" : "") + "}";
  for (const bool is_second : {false, true})
    for (size_t i = 0; i < count; ++i) {
      const float value = is_second ? 2.0f : static_cast<float>(i % 1000);
      made.bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  made.headers = fmt::format("Inference-Header-Content-Length: {}\r\n", made.json.size());
  return made;
}

std::string packed(std::string_view bytes, bool is_gzip = true) {
  z_stream stream = {};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, is_gzip ? 15 + 16 : 15, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string made(::deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(made.data());
  stream.avail_out = static_cast<uInt>(made.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  made.resize(stream.total_out);
  ::deflateEnd(&stream);
  return made;
}
std::string unpacked(std::string_view bytes) {
  z_stream stream = {};
  EXPECT_EQ(::inflateInit2(&stream, 15 + 32), Z_OK);
  std::string made(8 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(made.data());
  stream.avail_out = static_cast<uInt>(made.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  made.resize(stream.total_out);
  ::inflateEnd(&stream);
  return made;
}

// A model that takes as long as it is let: the loop of the product without its step.
std::string endless_model(const TemporaryFolder& folder) {
  std::string text = file_text(HALYARD_SOURCE_DIR "/examples/inline_mul.vmasm");
  const std::string step = "vm.add.i64 %i14:15, %i12:13";
  const size_t at = text.find(step);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, step.size(), "vm.add.i64 %i14:15, %i10:11");
  return folder.write("endless.vmasm", text);
}
// A model whose calls fail, by no fault of the request.
std::string failing_model(const TemporaryFolder& folder) {
  std::string text = file_text(HALYARD_SOURCE_DIR "/examples/inline_mul.vmasm");
  const std::string end = "vm.return %R7";
  const size_t at = text.find(end);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, end.size(), "%i0 = vm.const.i32 13\n  vm.fail %i0, \"it fails\"");
  return folder.write("failing.vmasm", text);
}
std::string endless_request(std::string_view headers = "") {
  return request("POST /v2/models/endless/infer", headers, small_json());
}

bool becomes(const auto& condition) {
  const auto end = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// ---- Where requests end

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

// ---- Bodies of requests that are refused before they are read

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

TEST(HttpConnection, ARefusedBodyThatBreaksOffOrIsMalformedEndsTheConnection) {
  Host host;
  {
    Client client = host.connect();
    client.send("POST /v2/none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
    client.end();
    EXPECT_TRUE(client.is_closed()) << "nobody waits for the answer";
  }
  Client client = host.connect();
  client.send("POST /v2/none HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n" +
              std::string(kLive));
  EXPECT_TRUE(client.is_closed());
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

// ---- Bodies of inference requests

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

// ---- Memory

TEST(HttpConnection, RequestsThatNeedMoreMemoryThanThereIsAreRefused) {
  Host host({.memory = 50000});
  const Binary large = binary_of(20000), small = binary_of(3000);
  const std::string text = json_of("1,2.5", "2,2", 2, 60000);
  for (const std::string& each :
       {request(kInfer, large.headers, large.text()), request(kInfer, "", text),
        chunked(kInfer, "", text, 5000), request(kInfer, "Content-Encoding: gzip\r\n", packed(text)),
        chunked(kInfer, large.headers, large.text(), 9000)}) {
    Client client = host.connect();
    client.send(each);
    const Answer answer = client.answer();
    EXPECT_EQ(answer.status, 503u);
    EXPECT_TRUE(answer.has("Retry-After: 1"));
    EXPECT_EQ(answer.body, error_document(kNoRoom)) << "it is refused before it is called";
    client.close();
    EXPECT_TRUE(becomes([&] { return host.metrics.request_bytes.load() == 0; }));
  }
  EXPECT_EQ(host.ask(request(kInfer, small.headers, small.text().substr(0, small.text().size()))).status,
            503u)
      << "24,000 bytes of arguments, and 12,000 of results with their text";
  EXPECT_EQ(host.ask(request(kInfer, "", small_json())).status, 200u);
}

TEST(HttpConnection, AJsonObjectThatComesWithItsHeaderIsReservedToo) {
  Host host({.memory = small_json().size() - 1});
  const Answer answer = host.ask(request(kInfer, "", small_json()));
  EXPECT_EQ(answer.status, 503u);
  EXPECT_EQ(answer.body, error_document(kNoRoom));
}

// The copy of a text without a length grows; what it has left behind is given back.
TEST(HttpConnection, AGrowingTextTakesWhatItsTwoLastCopiesTake) {
  const std::string body = json_of("1,2.5", "2,2", 2, 200 << 10);
  Host enough({.memory = (128 + 256 + 20) << 10}), short_of({.memory = (128 + 256 - 1) << 10});
  EXPECT_EQ(enough.ask(chunked(kInfer, "", body, 9000)).status, 200u);
  EXPECT_EQ(short_of.ask(chunked(kInfer, "", body, 9000)).status, 503u);
}

TEST(HttpConnection, LargeDocumentsAreReserved) {
  // The text of metrics grows with the models, each of which has 3 KiB.
  HostOptions options{.memory = 70000};
  for (int i = 0; i < 40; ++i)
    options.models.emplace_back(fmt::format("model{}", i), HALYARD_SOURCE_DIR "/examples/inline_mul.vmasm");
  Host host(options);
  const Answer answer = host.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(answer.status, 503u) << answer.body.size();
  EXPECT_EQ(host.ask(kLive).status, 200u);
  // Small ones are not, so that a server without memory says how it is.
  Host full({.memory = 1});
  EXPECT_EQ(full.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200u);
}

// ---- Pages of other origins, compressed answers, the log

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

TEST(HttpConnection, TheLogHasALineForEachRequest) {
  Host host;
  host.server->logs_requests = true;
  testing::internal::CaptureStderr();
  const std::string long_path = "/v2/models/" + std::string(500, 'm');
  EXPECT_EQ(
      host.ask_and_end(
              fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n"
                          "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n",
                          long_path))
          .status,
      404u);
  EXPECT_EQ(host.ask_and_end(request(kInfer, "", small_json())).status, 200u);
  EXPECT_EQ(host.ask_and_end("ABCDEFGHIJKLMNOPQRSTUVW / HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 405u);
  EXPECT_EQ(
      host.ask_and_end(request(kInfer, "", R"({"inputs":[{"name":")" + std::string(1000, 'n') + "\"}]}"))
          .status,
      400u);
  host.log.flush();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("\"target\":\"" + long_path.substr(0, 256) + "\""), std::string::npos) << log;
  EXPECT_NE(log.find("\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\""), std::string::npos) << log;
  EXPECT_NE(log.find("\"model\":\"mul\",\"version\":\"1\",\"status\":200"), std::string::npos) << log;
  EXPECT_NE(log.find("\"method\":\"ABCDEFGHIJKLMNOP\","), std::string::npos) << log;
  EXPECT_NE(log.find("\"client\":\"127.0.0.1:"), std::string::npos) << log;
  // The beginning of an error is there, of an answer nothing.
  const size_t answer = log.find("\"status\":400");
  ASSERT_NE(answer, std::string::npos);
  const size_t begin = log.find("\"answer\":\"", answer);
  ASSERT_NE(begin, std::string::npos) << log;
  std::string text = log.substr(begin, log.find('\n', begin) - begin);
  for (size_t at = 0; (at = text.find("\\\"", at)) != std::string::npos; ++at) text.erase(at, 1);
  EXPECT_EQ(text.size(), std::string_view("\"answer\":\"").size() + 512 + std::string_view("\"}").size())
      << text;
  EXPECT_EQ(log.find(kSmallData), std::string::npos);
}

TEST(HttpConnection, WithoutALogOnlyFailuresOfTheServerAreLogged) {
  const TemporaryFolder folder;
  Host host({.models = {{"failing", failing_model(folder)}}});
  testing::internal::CaptureStderr();
  EXPECT_EQ(host.ask_and_end("GET /v2/none HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 404u);
  host.log.flush();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(host.ask_and_end(request("POST /v2/models/failing/infer", "", small_json())).status, 500u);
  host.log.flush();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("\"status\":500"), std::string::npos) << log;
  EXPECT_NE(log.find("it fails"), std::string::npos) << log;
}

// ---- The repository

TEST(HttpConnection, ModelsAreLoadedAndUnloadedWhereClientsMay) {
  Host host({.has_control = true});
  const auto ask = [&](std::string_view path, std::string_view body = "{}", std::string_view headers = "") {
    return host.ask(request(fmt::format("POST /v2/repository/{}", path), headers, body));
  };
  EXPECT_NE(ask("index").body.find("\"READY\""), std::string::npos);
  EXPECT_EQ(ask("models/mul/unload").status, 200u);
  EXPECT_EQ(host.ask(request(kInfer, "", small_json())).status, 404u);
  EXPECT_EQ(ask("models/mul/load").status, 200u);
  EXPECT_EQ(host.ask(request(kInfer, "", small_json())).status, 200u);
  EXPECT_EQ(ask("models/none/load").status, 404u);
  EXPECT_EQ(ask("models/mul/load", "{").status, 400u);
  EXPECT_EQ(ask("index", packed("{}"), "Content-Encoding: gzip\r\n").status, 200u);
  EXPECT_EQ(ask("index", "{}", "Content-Encoding: br\r\n").status, 415u);
  // The connection goes on behind each.
  {
    Client chunks = host.connect();
    chunks.send(chunked("POST /v2/repository/index", "", "{}", 1) + std::string(kLive) + std::string(kLive));
    EXPECT_EQ(chunks.answer().status, 200u);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(chunks.answer().body, kLiveBody);
  }
  Client client = host.connect();
  for (const std::string_view body : {"", "{}", "{"}) {
    client.send(request("POST /v2/repository/index", "", body));
    client.send(kLive);
    EXPECT_EQ(client.answer().status, body == "{" ? 400u : 200u) << body;
    EXPECT_EQ(client.answer().body, kLiveBody) << body;
  }
}

TEST(HttpConnection, ControlOfTheRepositoryHasALimitOfItsOwn) {
  Host host({.has_control = true});
  const auto padded = [](size_t size) { return "{}" + std::string(size - 2, ' '); };
  constexpr std::string_view kIndex = "POST /v2/repository/index";
  const std::string says = fmt::format("the body is larger than {} bytes", kMaxControlBody);
  for (const size_t more : {size_t{0}, size_t{1}}) {
    const std::string body = padded(kMaxControlBody + more);
    for (const std::string& text : {request(kIndex, "", body), chunked(kIndex, "", body, 9000),
                                    request(kIndex, "Content-Encoding: gzip\r\n", packed(body))}) {
      const Answer answer = host.ask(text);
      EXPECT_EQ(answer.status, more == 0 ? 200u : 413u);
      if (more == 1) {
        EXPECT_NE(answer.body.find(says), std::string::npos) << answer.body;
      }
    }
  }
}

TEST(HttpConnection, ALargeRequestOfTheRepositoryIsRefusedBeforeItsBody) {
  Host host({.has_control = true});
  Client client = host.connect();
  client.send(
      fmt::format("POST /v2/repository/index HTTP/1.1\r\nHost: localhost\r\nExpect: "
                  "100-continue\r\nContent-Length: {}\r\n\r\n",
                  kMaxControlBody + 1));
  const Answer answer = client.answer();
  EXPECT_EQ(answer.status, 413u);
  EXPECT_EQ(answer.interim, 0);
}

TEST(HttpConnection, WithoutControlOnlyTheIndexIsAnswered) {
  Host host;
  EXPECT_EQ(host.ask(request("POST /v2/repository/index", "", "{}")).status, 200u);
  for (const std::string_view verb : {"load", "unload"}) {
    const Answer answer = host.ask(request(fmt::format("POST /v2/repository/models/mul/{}", verb), "", "{}"));
    EXPECT_EQ(answer.status, 403u);
    EXPECT_NE(answer.body.find(kNoControl), std::string::npos) << answer.body;
  }
}

// ---- Time

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

// ---- Clients that go, and a server that ends

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
