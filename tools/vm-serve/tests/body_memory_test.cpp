// Memory that bodies and documents take is reserved, and given back.
#include "conversation.h"
#include "request_texts.h"

namespace halyard::tools::serve {
namespace {

using testing_support::Answer;
using testing_support::becomes;
using testing_support::Binary;
using testing_support::binary_of;
using testing_support::chunked;
using testing_support::Client;
using testing_support::Host;
using testing_support::HostOptions;
using testing_support::json_of;
using testing_support::kInfer;
using testing_support::kLive;
using testing_support::packed;
using testing_support::request;
using testing_support::small_json;

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

}  // namespace
}  // namespace halyard::tools::serve
