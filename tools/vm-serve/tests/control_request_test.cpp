// Bodies of requests to the repository API.
#include "control_request.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <string>

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

// However deep a body is nested, the stack of the thread suffices.
TEST(ControlRequest, DeepNestingIsRefused) {
  const auto nested = [](size_t levels) {
    return R"({"ready":)" + std::string(levels, '[') + std::string(levels, ']') + "}";
  };
  const auto refuse = [](void* body) -> void* {
    const auto parsed =
        parse_control_request(Endpoint::repository_index, *static_cast<const std::string*>(body));
    EXPECT_FALSE(parsed);
    if (!parsed) *static_cast<std::string*>(body) = parsed.error().text;
    return nullptr;
  };
  for (const size_t levels : {size_t{1}, size_t{50}, (kMaxControlBody - 10) / 2}) {
    std::string text = nested(levels);
    ASSERT_LE(text.size(), kMaxControlBody);
    pthread_attr_t attributes;
    ASSERT_EQ(::pthread_attr_init(&attributes), 0);
    ASSERT_EQ(::pthread_attr_setstacksize(&attributes, 512 << 10), 0);
    pthread_t thread;
    ASSERT_EQ(::pthread_create(&thread, &attributes, refuse, &text), 0);
    ASSERT_EQ(::pthread_join(thread, nullptr), 0);
    ::pthread_attr_destroy(&attributes);
    EXPECT_NE(text.find("expected"), std::string::npos) << text;
    EXPECT_LT(text.size(), 200u);
  }
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
