// Requests that load, unload and list models.
#include "control_request.h"
#include "conversation.h"
#include "request_texts.h"

namespace halyard::tools::serve {
namespace {

using testing_support::Answer;
using testing_support::becomes;
using testing_support::chunked;
using testing_support::Client;
using testing_support::Host;
using testing_support::kForever;
using testing_support::kInfer;
using testing_support::kLive;
using testing_support::kLiveBody;
using testing_support::packed;
using testing_support::request;
using testing_support::small_json;

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

TEST(HttpConnection, ContextsAreCountedAsLongAsTheyExist) {
  Host host({.has_control = true});
  const auto ask = [&](std::string_view verb) {
    return host.ask(request(fmt::format("POST /v2/repository/models/mul/{}", verb), "", "{}")).status;
  };
  const auto metrics = host.metrics.of_model("mul", "1");
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(host.ask(request(kInfer, "", small_json())).status, 200u);
    EXPECT_EQ(metrics->contexts.load(), 1);
    EXPECT_EQ(ask("unload"), 200u);
    EXPECT_TRUE(becomes([&] { return metrics->contexts.load() == 0; })) << metrics->contexts.load();
    EXPECT_EQ(ask("load"), 200u);
  }
}

// While the loader is busy, the memory of what waits for it is limited.
TEST(HttpConnection, RequestsThatWaitForTheLoaderAreLimited) {
  Host host({.limits = {.body = 1 << 20, .connections = 300, .request = kForever, .idle = kForever},
             .has_control = true});
  std::atomic<bool> may_go_on = false;
  host.loader.post([&] { may_go_on.wait(false); });
  const std::string unload = request("POST /v2/repository/models/mul/unload", "", "{}");
  constexpr size_t kMost = 256;
  std::vector<Client> waiting;
  for (size_t i = 0; i <= kMost; ++i) {
    waiting.push_back(host.connect());
    waiting.back().send(unload);
  }
  // Names that no model can have do not wait.
  const std::string name(129, 'n');
  const std::string load = request(fmt::format("POST /v2/repository/models/{}/load", name), "", "{}");
  EXPECT_EQ(host.ask(load).status, 404u);
  // One is more than may wait; which one depends on the order in which the server reads.
  Client* refused = nullptr;
  EXPECT_TRUE(becomes([&] {
    for (Client& each : waiting)
      if (each.hears(std::chrono::milliseconds(0))) refused = &each;
    return refused != nullptr;
  }));
  if (refused) {
    const Answer answer = refused->answer();
    EXPECT_EQ(answer.status, 503u);
    EXPECT_TRUE(answer.has("Retry-After: 1"));
  }
  may_go_on = true;
  may_go_on.notify_all();
  for (Client& each : waiting) {
    if (&each == refused) continue;
    const unsigned status = each.answer().status;
    EXPECT_TRUE(status == 200 || status == 404) << status;
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

}  // namespace
}  // namespace halyard::tools::serve
