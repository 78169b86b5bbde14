// The header fields that determine the form of a request's body. Doubtful requests are refused, because two
// readers of one connection must never disagree about where a request ends.
#pragma once

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "decoder.h"

namespace halyard::tools::serve {

using RequestHeader = boost::beast::http::header<true, boost::beast::http::fields>;

struct RequestHead {
  bool is_chunked = false;
  uint64_t length = 0;  // of the body as sent, if it is not chunked
  bool awaits_continue = false;
  std::string_view host;
  std::optional<std::string_view> origin;
};

// Why a request is refused. If the end of the request is not certain, the connection is closed after the
// response.
struct Refusal {
  unsigned status = 400;
  std::string text;
  std::string headers;  // additional header lines of the response, each with its line end
  bool closes = true;
};

// 400: no Host or several, several lengths, a length and chunks, a length that is not a number, a
// Transfer-Encoding that does not end in `chunked` or is in HTTP/1.0. 501: another transfer coding. 417: an
// expectation other than 100-continue. All of them close the connection. The texts live as long as the
// header.
std::expected<RequestHead, Refusal> read_head(const RequestHeader& header);

// How to read the body of an inference request.
struct BodyForm {
  Coding coding = Coding::identity;
  std::optional<uint64_t> json_size;  // size in the decoded body; nullopt: the whole body is JSON
};

// 415: a Content-Encoding other than gzip, deflate and identity. 400: an Inference-Header-Content-Length that
// is not a number, is repeated, or exceeds the limit of the body.
std::expected<BodyForm, Refusal> body_form(const RequestHeader& header, const RequestHead& head,
                                           uint64_t most);

}  // namespace halyard::tools::serve
