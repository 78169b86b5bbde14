// Bodies of requests to the repository API.
#include "control_request.h"

#include <gtest/gtest.h>

namespace halyard::tools::serve {
namespace {

TEST(ControlRequest, Index) {
  const auto parsed = [](std::string_view body) {
    return parse_control_request(Endpoint::repository_index, body);
  };
  for (const char* body :
       {"", " \r\n", "{}", R"({"ready":false})", R"({"repository_name":"x","more":[1]})"}) {
    ASSERT_TRUE(parsed(body)) << body;
    EXPECT_FALSE(parsed(body)->only_ready) << body;
  }
  EXPECT_TRUE(parsed(R"({"ready":true})")->only_ready);
  for (const char* body : {"[]", "1", "{", "\xff", R"({"ready":1})", R"({"ready":null})", "{}{}"})
    EXPECT_FALSE(parsed(body)) << body;
}

TEST(ControlRequest, LoadTakesNothingFromTheClient) {
  const auto parsed = [](std::string_view body) {
    return parse_control_request(Endpoint::repository_load, body);
  };
  for (const char* body : {"", "{}", R"({"parameters":{}})", R"({"parameters":{"other":"config"}})"})
    EXPECT_TRUE(parsed(body)) << body;
  for (const char* body :
       {R"({"parameters":{"config":"{}"}})", R"({"parameters":{"file:1/model.vmfb":"AA=="}})",
        R"({"parameters":[]})", "null"}) {
    ASSERT_FALSE(parsed(body)) << body;
    EXPECT_NE(parsed(body).error().text.find("expected"), std::string::npos) << body;
  }
  EXPECT_TRUE(
      parse_control_request(Endpoint::repository_unload, R"({"parameters":{"unload_dependents":true}})"));
}

}  // namespace
}  // namespace halyard::tools::serve
