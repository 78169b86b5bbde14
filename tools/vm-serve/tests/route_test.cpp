// Paths and methods.
#include "route.h"

#include <gtest/gtest.h>

namespace halyard::tools::serve {
namespace {

TEST(Route, PathsOfTheProtocol) {
  struct Case {
    std::string_view method, target;
    Endpoint endpoint;
    std::string_view model, version;
  };
  for (const Case& each : {
           Case{"GET", "/", Endpoint::page, "", ""},
           Case{"GET", "/v2", Endpoint::server_metadata, "", ""},
           Case{"GET", "/v2/", Endpoint::server_metadata, "", ""},
           Case{"GET", "/v2?x=/y", Endpoint::server_metadata, "", ""},
           Case{"HEAD", "/v2", Endpoint::server_metadata, "", ""},
           Case{"GET", "http://host:80/v2", Endpoint::server_metadata, "", ""},
           Case{"GET", "http://host", Endpoint::page, "", ""},
           Case{"GET", "/metrics", Endpoint::metrics, "", ""},
           Case{"GET", "/v2/health/live", Endpoint::live, "", ""},
           Case{"GET", "/v2/health/ready", Endpoint::ready, "", ""},
           Case{"GET", "/v2/models", Endpoint::models, "", ""},
           Case{"GET", "/v2/models/m", Endpoint::model_metadata, "m", ""},
           Case{"GET", "/v2/models/m%2E1", Endpoint::model_metadata, "m.1", ""},
           Case{"GET", "/v2/models/m/versions/3", Endpoint::model_metadata, "m", "3"},
           Case{"GET", "/v2/models/m/ready", Endpoint::model_ready, "m", ""},
           Case{"GET", "/v2/models/m/versions/3/ready", Endpoint::model_ready, "m", "3"},
           Case{"POST", "/v2/models/m/infer", Endpoint::infer, "m", ""},
           Case{"POST", "/v2/models/m/versions/3/infer", Endpoint::infer, "m", "3"},
           Case{"POST", "/v2/models/versions/infer", Endpoint::infer, "versions", ""},
           Case{"GET", "/v2/models/m/config", Endpoint::model_config, "m", ""},
           Case{"GET", "/v2/models/m/versions/3/config", Endpoint::model_config, "m", "3"},
           Case{"GET", "/v2/models/m/page", Endpoint::model_page, "m", ""},
           Case{"GET", "/v2/models/m/versions/3/page", Endpoint::model_page, "m", "3"},
           Case{"GET", "/v2/models/stats", Endpoint::statistics, "", ""},
           Case{"GET", "/v2/models/m/stats", Endpoint::statistics, "m", ""},
           Case{"GET", "/v2/models/m/versions/3/stats", Endpoint::statistics, "m", "3"},
           Case{"POST", "/v2/repository/index", Endpoint::repository_index, "", ""},
           Case{"POST", "/v2/repository/models/m/load", Endpoint::repository_load, "m", ""},
           Case{"POST", "/v2/repository/models/m/unload", Endpoint::repository_unload, "m", ""},
       }) {
    const Route route = route_of(each.method, each.target);
    EXPECT_EQ(route.status, 200u) << each.target;
    EXPECT_EQ(route.endpoint, each.endpoint) << each.target;
    EXPECT_EQ(route.model, each.model) << each.target;
    EXPECT_EQ(route.version, each.version) << each.target;
    EXPECT_EQ(route.is_head, each.method == "HEAD");
  }
}

TEST(Route, Refusals) {
  EXPECT_EQ(route_of("GET", "/v1").status, 404u);
  EXPECT_EQ(route_of("GET", "/v2/models/m/versions").status, 404u);
  EXPECT_EQ(route_of("GET", "/v2/models/m/versions/").status, 404u);
  EXPECT_EQ(route_of("GET", "/v2/models//ready").status, 404u);
  EXPECT_EQ(route_of("GET", "/v2/models/m/other").status, 404u);
  EXPECT_EQ(route_of("GET", "/v2/models/m/ready/more").status, 404u);
  EXPECT_EQ(route_of("GET", "/v2/V2").status, 404u);
  EXPECT_EQ(route_of("GET", "/a/b/c/d/e/f/g/h/i/j").status, 404u);
  EXPECT_EQ(route_of("GET", "*").status, 400u);
  for (const char* target : {"/v2/models/m#ready", "/#", "/v2?a=%zz", "/v2?a=%4", "/v2?%00", "x://h/v2",
                             "http://", "http:///v2", "://h/v2", "v2", "", "http://h#f"})
    EXPECT_EQ(route_of("GET", target).status, 400u) << target;
  EXPECT_EQ(route_of("GET", "/v2/models/m/ready?a=%41&b").status, 200u);
  EXPECT_EQ(route_of("GET", "https://h:1?a").endpoint, Endpoint::page);
  EXPECT_EQ(route_of("GET", "http://h:1/v2").authority, "h:1");
  EXPECT_EQ(route_of("GET", "/v2/models/%zz").status, 400u);
  EXPECT_EQ(route_of("GET", "/v2/models/%4").status, 400u);
  EXPECT_EQ(route_of("GET", "/v2/models/a%00b").status, 400u);
  EXPECT_EQ(route_of("GET", "/v2/models/a%0Ab").status, 400u);
  EXPECT_EQ(route_of("GET", "/v2/models/a%1Fb").status, 400u);
  EXPECT_EQ(route_of("GET", "/v2/models/a%7Fb").status, 400u);
  EXPECT_EQ(route_of("GET", "/v2/models/a%20b").model, "a b");
  EXPECT_EQ(route_of("GET", "/v2/models/a%7E%ff").model, "a~\xff");
  EXPECT_EQ(route_of("GET", "/v2/repository/index").allow, "POST");
  EXPECT_EQ(route_of("POST", "/v2/models/stats").status, 405u);
  EXPECT_EQ(route_of("POST", "/v2/repository/models//load").status, 404u);
  EXPECT_EQ(route_of("POST", "/v2/repository/models/m/versions/1/load").status, 404u);
  EXPECT_EQ(route_of("GET", "/v2/models/m/infer").status, 405u);
  EXPECT_EQ(route_of("GET", "/v2/models/m/infer").allow, "POST");
  EXPECT_EQ(route_of("POST", "/v2").status, 405u);
  EXPECT_EQ(route_of("DELETE", "/v2/models/m").allow, "GET, HEAD");
}

TEST(Route, RefusalsOfHeadHaveNoBodyEither) {
  for (const char* target :
       {"/v1", "/a/b/c/d/e/f/g/h/i/j", "*", "/v2?a=%zz", "/v2/models/%zz", "/v2/repository/index"}) {
    EXPECT_TRUE(route_of("HEAD", target).is_head) << target;
    EXPECT_FALSE(route_of("GET", target).is_head) << target;
  }
}

TEST(Route, Names) {
  EXPECT_TRUE(is_name("bert-base_v1.5"));
  EXPECT_TRUE(is_name("azAZ09"));
  EXPECT_TRUE(is_name(std::string(128, 'a')));
  for (const char outside : {'@', '[', '`', '{', '/', ':', '\x7f'})
    EXPECT_FALSE(is_name(std::string(1, outside))) << outside;
  EXPECT_FALSE(is_name(""));
  EXPECT_FALSE(is_name("."));
  EXPECT_FALSE(is_name("..x"));
  EXPECT_FALSE(is_name("a/b"));
  EXPECT_FALSE(is_name("a b"));
  EXPECT_FALSE(is_name(std::string(129, 'a')));
}

}  // namespace
}  // namespace halyard::tools::serve
