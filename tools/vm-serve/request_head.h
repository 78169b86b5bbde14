// What the header of a request says about the form of its body. It is read whole, or the request is refused:
// two readers of one connection must never disagree about where a request ends.
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
  uint64_t length = 0;  // of the body as it is sent, if it is not chunked
  bool awaits_continue = false;
  std::string_view host;
  std::optional<std::string_view> origin;
};

// Why a request is not answered; the connection is closed behind it where its end is not certain.
struct Refusal {
  unsigned status = 400;
  std::string text;
  std::string headers;  // further ones of the answer, each with its line end
  bool closes = true;
};

// 400: no Host or several, several lengths, a length beside chunks, a length that is no number, a
// Transfer-Encoding that does not end in `chunked` or stands in HTTP/1.0; 501: another transfer coding; 417:
// an expectation other than 100-continue. All of them close the connection. The texts live as long as the
// header.
std::expected<RequestHead, Refusal> read_head(const RequestHeader& header);

// How the body of an inference request is to be read.
struct BodyForm {
  Coding coding = Coding::identity;
  std::optional<uint64_t> json_size;  // bytes of the decoded body; without it all of it is JSON
};

// 415: another Content-Encoding than gzip, deflate and identity; 400: an Inference-Header-Content-Length that
// is no number, stands twice, or is larger than the body may be.
std::expected<BodyForm, Refusal> body_form(const RequestHeader& header, const RequestHead& head,
                                           uint64_t most);

}  // namespace halyard::tools::serve
