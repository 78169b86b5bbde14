// What clients send as Accept-Encoding, and what they get.
#include "accept_encoding.h"

#include <gtest/gtest.h>

namespace halyard::tools::serve {
namespace {

TEST(AcceptEncoding, Choices) {
  struct Case {
    const char* header;
    Coding coding;
  };
  for (const Case& each : {
           Case{"", Coding::identity},
           Case{"gzip", Coding::gzip},
           Case{"GZip", Coding::gzip},
           Case{"deflate", Coding::deflate},
           Case{"gzip, deflate, br, zstd", Coding::gzip},
           Case{"deflate, gzip", Coding::gzip},
           Case{"deflate, gzip;q=0.5", Coding::deflate},
           Case{"deflate;q=0.501 , gzip ; q=0.5", Coding::deflate},
           Case{"gzip;q=0", Coding::identity},
           Case{"gzip;q=0.000, deflate", Coding::deflate},
           Case{"identity", Coding::identity},
           Case{"identity;q=1, gzip;q=0.5", Coding::identity},
           Case{"identity;q=0.5, gzip;q=1.0", Coding::gzip},
           Case{"identity;q=0.5, gzip;q=0.5", Coding::gzip},
           Case{"identity;q=0.5, gzip;q=0.499", Coding::identity},
           Case{"identity;q=0.5, gzip;q=0.4, deflate;q=0.6", Coding::deflate},
           Case{"*", Coding::gzip},
           Case{"gzip;q=0, *", Coding::deflate},
           Case{"*;q=0", Coding::identity},
           Case{"br", Coding::identity},
       })
    EXPECT_EQ(chosen_coding(each.header), each.coding) << each.header;
}

TEST(AcceptEncoding, MalformedItemsDoNotCount) {
  for (const char* header :
       {",", ";", "gzip;", "gzip;q", "gzip;q=", "gzip;q=2", "gzip;q=1.5", "gzip;q=0.0001", "gzip;q=0.1234",
        "gzip;q=1.0000", "gzip;q=-1", "gzip;x=1", "gzip;q=0.x", "gzip deflate", "=", "gzip;q=1;q=1"})
    EXPECT_EQ(chosen_coding(header), std::string_view(header) == "gzip;" ? Coding::gzip : Coding::identity)
        << header;
  EXPECT_EQ(chosen_coding("gzip;q=x, deflate"), Coding::deflate);
  EXPECT_EQ(chosen_coding(std::string(100000, ',')), Coding::identity);
}

}  // namespace
}  // namespace halyard::tools::serve
