// What the log has of each request.
#include "conversation.h"
#include "failing_models.h"
#include "fixtures.h"
#include "request_texts.h"

namespace halyard::tools::serve {
namespace {

using testing_support::failing_model;
using testing_support::Host;
using testing_support::kInfer;
using testing_support::kSmallData;
using testing_support::request;
using testing_support::small_json;

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

}  // namespace
}  // namespace halyard::tools::serve
