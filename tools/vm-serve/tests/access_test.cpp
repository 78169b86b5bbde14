// Hosts and origins that are let in, and those that are not.
#include "access.h"

#include <gtest/gtest.h>

namespace halyard::tools::serve {
namespace {

unsigned status_of(const Access& access, bool is_loopback, std::string_view host,
                   std::optional<std::string_view> origin = std::nullopt, std::string_view authority = "") {
  RequestHead head;
  head.host = host;
  head.origin = origin;
  const auto refusal = refusal_of(access, is_loopback, head, authority);
  return refusal ? refusal->status : 200;
}

TEST(Access, Authorities) {
  for (const char* text :
       {"a", "a:1", "localhost:8080", "[::1]", "[::1]:80", "10.0.0.1:65535", "a_b.c-d", "z", "AZaz09"})
    EXPECT_TRUE(is_authority(text)) << text;
  for (const char* text : {"",         ":",    ":80",    "a:",  "a:x",    "a:123456", "a b",   "a/b",
                           "user@a",   "[::1", "[::1]x", "[]",  "[g::1]", "::1",      "a:1:2", "a,b",
                           "http://a", "a@b",  "a[b",    "a`b", "a{b",    "a/b",      "a\x7f"})
    EXPECT_FALSE(is_authority(text)) << text;
  EXPECT_TRUE(is_host("models.example.com"));
  EXPECT_FALSE(is_host("a:80"));
}

TEST(Access, LoopbackNames) {
  for (const char* text : {"localhost", "LocalHost:80", "localhost.", "a.localhost", "127.0.0.1",
                           "127.255.0.1:1", "[::1]:8080", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]"})
    EXPECT_TRUE(is_loopback_name(text)) << text;
  for (const char* text : {"x", "localhost.evil.example", "notlocalhost", "127.0.0.1.evil.example",
                           "128.0.0.1", "[::2]", "[::ffff:10.0.0.1]", "127.1.evil", "0.0.0.0", ".localhost"})
    EXPECT_FALSE(is_loopback_name(text)) << text;
}

TEST(Access, ALoopbackListenerTakesLoopbackNames) {
  EXPECT_EQ(status_of({}, true, "localhost:8080"), 200u);
  EXPECT_EQ(status_of({}, true, ""), 200u);  // of HTTP/1.0
  EXPECT_EQ(status_of({}, true, "evil.example:8080"), 421u);
  EXPECT_EQ(status_of({}, true, "localhost", std::nullopt, "evil.example"), 421u);
  EXPECT_EQ(status_of({}, false, "models.example.com"), 200u);
  EXPECT_EQ(status_of({}, false, "a b"), 400u);
  const Access one = {.hosts = {"models.example.com"}, .origins = {}};
  EXPECT_EQ(status_of(one, true, "Models.example.com:80"), 200u);
  EXPECT_EQ(status_of(one, true, "x.models.example.com"), 421u);
  EXPECT_EQ(status_of({.hosts = {"*"}, .origins = {}}, true, "evil.example"), 200u);
}

TEST(Access, PagesOfOtherOrigins) {
  EXPECT_EQ(status_of({}, false, "a", "http://a"), 200u);
  EXPECT_EQ(status_of({}, false, "a:80", "http://a"), 200u);
  EXPECT_EQ(status_of({}, false, "a", "https://a"), 200u);  // a proxy speaks TLS
  EXPECT_EQ(status_of({}, false, "a:8080", "http://A:8080"), 200u);
  for (const char* origin : {"http://b", "http://a:81", "http://a.b", "null", "", "http://", "a", "ftp://a",
                             "http://a/", "http://a@b"})
    EXPECT_EQ(status_of({}, false, "a", origin), 403u) << origin;
  const Access one = {.hosts = {}, .origins = {"https://b.example"}};
  EXPECT_EQ(status_of(one, false, "a", "https://b.example"), 200u);
  EXPECT_EQ(status_of(one, false, "a", "https://b.example.c"), 403u);
  EXPECT_EQ(status_of(one, false, "a", "http://b.example"), 403u);
  RequestHead head;
  head.host = "a";
  head.origin = "https://b.example";
  EXPECT_TRUE(is_shared(one, head));
  EXPECT_FALSE(is_shared({}, head));
  head.origin = "http://a";
  EXPECT_FALSE(is_shared(one, head));  // the page's own server: no headers
  EXPECT_TRUE(is_origin("https://b.example"));
  EXPECT_TRUE(is_origin("null"));
  EXPECT_FALSE(is_origin("b.example"));
  EXPECT_FALSE(is_origin("https://b.example/path"));
}

}  // namespace
}  // namespace halyard::tools::serve
