// Header fields that determine where a body ends.
#include "request_head.h"

#include <fmt/format.h>

#include <boost/beast/core/string.hpp>
#include <charconv>

#include "trimmed.h"

namespace halyard::tools::serve {

namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

constexpr size_t kMaxShown = 64;  // bytes of an invalid value in a message

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

bool equals(std::string_view one, std::string_view two) {
  return beast::iequals({one.data(), one.size()}, {two.data(), two.size()});
}

// Parses decimal digits only.
std::optional<uint64_t> as_size(std::string_view text) {
  uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return size;
}

template <typename... Args>
std::unexpected<Refusal> refuse(unsigned status, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(
      Refusal{.status = status, .text = fmt::format(format, std::forward<Args>(args)...), .headers = ""});
}

// If the last coding is not `chunked`, the end of the body is unknown; otherwise the coding is only
// unsupported.
std::unexpected<Refusal> wrong_transfer_encoding(std::string_view value) {
  const std::string_view last = trimmed(value.substr(value.rfind(',') + 1));
  const std::string_view first = trimmed(value.substr(0, value.find(',')));
  const bool has_end = equals(last, "chunked") && !equals(first, "chunked");
  return refuse(has_end ? 501 : 400, "the header has 'Transfer-Encoding: {}'; expected only 'chunked'{}",
                value.substr(0, kMaxShown),
                has_end ? ", and for a compressed body 'Content-Encoding: gzip' or 'deflate'" : "");
}

}  // namespace

std::expected<RequestHead, Refusal> read_head(const RequestHeader& header) {
  RequestHead head;
  const auto count = [&](http::field field) { return header.count(field); };
  if (const size_t encodings = count(http::field::transfer_encoding); encodings > 0) {
    const std::string_view value = view_of(header[http::field::transfer_encoding]);
    if (encodings > 1) return refuse(400, "the header has Transfer-Encoding {} times", encodings);
    if (!equals(value, "chunked")) return wrong_transfer_encoding(value);
    if (count(http::field::content_length) > 0)
      return refuse(400, "the header has both Content-Length and Transfer-Encoding; expected one of them");
    if (header.version() < 11)
      return refuse(400, "the header has Transfer-Encoding, which HTTP/1.0 lacks; expected Content-Length");
    head.is_chunked = true;
  } else if (const size_t lengths = count(http::field::content_length); lengths > 0) {
    const std::string_view value = view_of(header[http::field::content_length]);
    const auto length = as_size(value);
    if (lengths > 1) return refuse(400, "the header has Content-Length {} times", lengths);
    if (!length)
      return refuse(400, "Content-Length is '{}'; expected a number of bytes", value.substr(0, kMaxShown));
    head.length = *length;
  }

  if (const size_t hosts = count(http::field::host); hosts > 1 || (hosts == 0 && header.version() >= 11))
    return refuse(400, "expected one Host in the header, found none or several");
  head.host = view_of(header[http::field::host]);
  if (count(http::field::origin) > 1) return refuse(400, "the header has several Origins");
  if (count(http::field::origin) == 1) head.origin = view_of(header[http::field::origin]);

  if (count(http::field::expect) > 0 && header.version() >= 11) {
    const std::string_view value = view_of(header[http::field::expect]);
    if (count(http::field::expect) > 1 || !equals(value, "100-continue"))
      return refuse(417, "the header has 'Expect: {}'; expected '100-continue'", value.substr(0, kMaxShown));
    head.awaits_continue = true;
  }
  return head;
}

std::expected<BodyForm, Refusal> body_form(const RequestHeader& header, const RequestHead& head,
                                           uint64_t most) {
  BodyForm form;
  if (const size_t encodings = header.count(http::field::content_encoding); encodings > 0) {
    const std::string_view value = view_of(header[http::field::content_encoding]);
    const auto coding = encodings == 1 ? coding_named(value) : std::nullopt;
    if (!coding)
      return std::unexpected(
          Refusal{.status = 415,
                  .text = encodings > 1
                              ? "the header has several Content-Encodings; expected gzip or deflate once"
                              : fmt::format("the body has the Content-Encoding '{}'; expected gzip, deflate "
                                            "or none",
                                            value.substr(0, kMaxShown)),
                  .headers = "Accept-Encoding: gzip, deflate\r\n",
                  .closes = false});
    form.coding = *coding;
  }
  constexpr const char* kHeaderSize = "Inference-Header-Content-Length";
  if (const size_t sizes = header.count(kHeaderSize); sizes > 0) {
    const std::string_view value = view_of(header[kHeaderSize]);
    form.json_size = as_size(value);
    const bool has_length = !head.is_chunked && form.coding == Coding::identity;
    if (!form.json_size || sizes > 1 || *form.json_size > (has_length ? head.length : most))
      return std::unexpected(Refusal{
          .status = 400,
          .text =
              fmt::format("{} is '{}'{}; expected the size of the JSON object, at most the size of the body",
                          kHeaderSize, value.substr(0, kMaxShown), sizes > 1 ? " and occurs twice" : ""),
          .headers = "",
          .closes = false});
  }
  return form;
}

}  // namespace halyard::tools::serve
