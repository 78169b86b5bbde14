// Headers whose body would be read in two ways are refused.
#include "request_head.h"

#include <gtest/gtest.h>

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

namespace halyard::tools::serve {
namespace {

namespace http = boost::beast::http;

// The header with these further lines, as Boost.Beast reads it.
class Parsed {
 public:
  explicit Parsed(std::string_view lines, std::string_view version = "1.1") {
    text_ = fmt_text(lines, version);
    boost::system::error_code error;
    parser_.eager(false);
    parser_.body_limit(boost::none);
    parser_.put(boost::asio::buffer(text_), error);
    is_read_ = !error && parser_.is_header_done();
  }
  const RequestHeader& header() const { return parser_.get(); }
  bool is_read() const { return is_read_; }

 private:
  static std::string fmt_text(std::string_view lines, std::string_view version) {
    return "POST /v2/models/m/infer HTTP/" + std::string(version) + "\r\n" + std::string(lines) + "\r\n";
  }
  std::string text_;
  http::request_parser<http::empty_body> parser_;
  bool is_read_ = false;
};

unsigned status_of(std::string_view lines, std::string_view version = "1.1") {
  const Parsed parsed(lines, version);
  if (!parsed.is_read()) return 0;  // the parser refuses it
  const auto head = read_head(parsed.header());
  if (head) return 200;
  EXPECT_TRUE(head.error().closes) << lines;
  EXPECT_FALSE(head.error().text.empty());
  return head.error().status;
}

// The contents of a header that is accepted.
RequestHead head_of(const Parsed& parsed) {
  const auto head = read_head(parsed.header());
  EXPECT_TRUE(head) << head.error().text;
  return head.value_or(RequestHead());
}

TEST(RequestHead, FormsOfTheBody) {
  const Parsed length("Host: h\r\nContent-Length: 7\r\n"),
      chunks("Host: h\r\nTransfer-Encoding: Chunked\r\n"), none("Host: h\r\n");
  EXPECT_EQ(head_of(length).length, 7u);
  EXPECT_FALSE(head_of(length).is_chunked);
  EXPECT_TRUE(head_of(chunks).is_chunked);
  EXPECT_EQ(head_of(chunks).length, 0u);
  EXPECT_EQ(head_of(none).length, 0u);
  EXPECT_FALSE(head_of(none).is_chunked);
  EXPECT_EQ(head_of(none).host, "h");
  EXPECT_FALSE(head_of(none).origin);
  EXPECT_FALSE(head_of(none).awaits_continue);
  EXPECT_TRUE(head_of(Parsed("Host: h\r\nExpect: 100-continue\r\n")).awaits_continue);
  EXPECT_FALSE(head_of(Parsed("Host: h\r\nExpect: 100-continue\r\n", "1.0")).awaits_continue);
  EXPECT_EQ(head_of(Parsed("Host: h\r\nOrigin: http://a\r\n")).origin, "http://a");
}

TEST(RequestHead, TransferEncodingsOtherThanChunkedAlone) {
  for (const char* value : {"gzip", "identity", "xchunked", "chunkedx", "chunked, identity", "\"chunked\"",
                            "chunked, chunked", "chunked;q=1", "chunked,", ",chunked", "", "chunked, gzip"})
    EXPECT_NE(status_of("Host: h\r\nTransfer-Encoding: " + std::string(value) + "\r\n"), 200u) << value;
  for (const char* value : {"gzip", "identity", "chunked, identity", "chunked, chunked"})
    EXPECT_EQ(status_of("Host: h\r\nTransfer-Encoding: " + std::string(value) + "\r\n"), 400u) << value;
  for (const char* value : {"gzip, chunked", "deflate,chunked", "identity, CHUNKED"})
    EXPECT_EQ(status_of("Host: h\r\nTransfer-Encoding: " + std::string(value) + "\r\n"), 501u) << value;
  const Parsed two("Host: h\r\nTransfer-Encoding: gzip, chunked\r\n");
  EXPECT_NE(read_head(two.header()).error().text.find("gzip, chunked"), std::string::npos);
  EXPECT_NE(status_of("Host: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), 200u);
  EXPECT_NE(status_of("Host: h\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), 200u);
  EXPECT_NE(status_of("Host: h\r\nTransfer-Encoding: gzip\r\nContent-Length: 3\r\n"), 200u);
  EXPECT_NE(status_of("Host: h\r\nContent-Length: 3\r\nTransfer-Encoding: gzip\r\n"), 200u);
  EXPECT_EQ(status_of("Transfer-Encoding: chunked\r\n", "1.0"), 400u);
}

// By the parser, or with 400.
bool is_refused(std::string_view lines) {
  const unsigned status = status_of(lines);
  return status == 0 || status == 400;
}

TEST(RequestHead, LengthsAreWholeNumbers) {
  EXPECT_EQ(status_of("Host: h\r\nContent-Length: 0\r\n"), 200u);
  for (const char* value : {"-1", "+5", "5,5", "5, 5", "5x", "0x5", "5.0", "", " ", "99999999999999999999"})
    EXPECT_TRUE(is_refused("Host: h\r\nContent-Length: " + std::string(value) + "\r\n")) << value;
  EXPECT_TRUE(is_refused("Host: h\r\nContent-Length: 5\r\nContent-Length: 5\r\n"));
}

TEST(RequestHead, HostsAndExpectations) {
  EXPECT_EQ(status_of(""), 400u);
  EXPECT_EQ(status_of("", "1.0"), 200u);
  EXPECT_EQ(status_of("Host: a\r\nHost: a\r\n"), 400u);
  EXPECT_EQ(status_of("Host: a\r\nOrigin: http://a\r\nOrigin: http://a\r\n"), 400u);
  EXPECT_EQ(status_of("Host: a\r\nExpect: 100-Continue\r\n"), 200u);
  EXPECT_EQ(status_of("Host: a\r\nExpect: 200-ok\r\n"), 417u);
}

unsigned status_of_form(std::string_view lines) {
  const Parsed parsed("Host: h\r\nContent-Length: 100\r\n" + std::string(lines));
  const auto form = body_form(parsed.header(), *read_head(parsed.header()), 1000);
  return form ? 200 : form.error().status;
}

TEST(RequestHead, FormsOfInference) {
  const auto form_of = [](std::string_view lines) {
    const Parsed parsed("Host: h\r\nContent-Length: 100\r\n" + std::string(lines));
    return *body_form(parsed.header(), *read_head(parsed.header()), 1000);
  };
  EXPECT_EQ(form_of("").coding, Coding::identity);
  EXPECT_FALSE(form_of("").json_size);
  EXPECT_EQ(form_of("Content-Encoding: GZIP\r\n").coding, Coding::gzip);
  EXPECT_EQ(form_of("Content-Encoding: deflate\r\n").coding, Coding::deflate);
  EXPECT_EQ(form_of("Inference-Header-Content-Length: 100\r\n").json_size, 100u);
  // Of the body as it is decoded.
  EXPECT_EQ(form_of("Content-Encoding: gzip\r\nInference-Header-Content-Length: 1000\r\n").json_size, 1000u);
  for (const char* size : {"101", "-1", "+1", "1x", "1 2", "", "0x1", "1e1", "99999999999999999999"})
    EXPECT_EQ(status_of_form("Inference-Header-Content-Length: " + std::string(size) + "\r\n"), 400u) << size;
  EXPECT_EQ(status_of_form("Inference-Header-Content-Length: 1\r\nInference-Header-Content-Length: 1\r\n"),
            400u);
  EXPECT_EQ(status_of_form("Content-Encoding: gzip\r\nInference-Header-Content-Length: 1001\r\n"), 400u);
  for (const char* coding : {"br", "gzip, gzip", "zstd", "gzipx", ""})
    EXPECT_EQ(status_of_form("Content-Encoding: " + std::string(coding) + "\r\n"), 415u) << coding;
  const Parsed several("Host: h\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip\r\n");
  const auto refused = body_form(several.header(), head_of(several), 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 415u);
  EXPECT_NE(refused.error().text.find("several Content-Encodings"), std::string::npos);
  const Parsed parsed("Host: h\r\nContent-Encoding: br\r\n");
  EXPECT_NE(body_form(parsed.header(), head_of(parsed), 1).error().text.find("'br'"), std::string::npos);
  EXPECT_EQ(body_form(parsed.header(), *read_head(parsed.header()), 1).error().headers,
            "Accept-Encoding: gzip, deflate\r\n");
}

}  // namespace
}  // namespace halyard::tools::serve
