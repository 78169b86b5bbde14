// Formats header lines.
#include "response.h"

#include <fmt/chrono.h>

#include <algorithm>

namespace halyard::tools::serve {

namespace {

// "Sun, 06 Nov 1994 08:49:37 GMT", formatted once a second in each thread.
std::string_view date_of(std::chrono::system_clock::time_point now) {
  thread_local std::time_t last = 0;
  thread_local std::string text;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  if (seconds != last || text.empty()) {
    text = fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(seconds));
    last = seconds;
  }
  return text;
}

}  // namespace

std::string_view reason_of(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

size_t Response::content_length() const {
  size_t size = body.size();
  for (const auto& part : tail) size += part.size();
  return size;
}

std::string Response::head(std::chrono::system_clock::time_point now) const {
  const fmt::format_int code(status), length(content_length());
  std::string text;
  text.reserve(192 + headers.size());
  const auto add = [&](const auto&... parts) { (text.append(std::string_view(parts)), ...); };
  add("HTTP/1.1 ", std::string_view(code.data(), code.size()), " ", reason_of(status));
  add("\r\nServer: halyard\r\nDate: ", date_of(now), "\r\nContent-Type: ", content_type);
  add("\r\nContent-Length: ", std::string_view(length.data(), length.size()), "\r\n", headers);
  add(closes ? "Connection: close\r\n\r\n" : "\r\n");
  return text;
}

Response error_response(unsigned status, std::string_view text) {
  Response response{.status = status, .body = error_document(text.substr(0, kMaxErrorText))};
  if (status == 503) response.headers = "Retry-After: 1\r\n";
  return response;
}

std::string without_folders(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    const bool begins =
        text.front() == '/' && (plain.empty() || std::string_view("'\"( =:").contains(plain.back()));
    const size_t end = begins ? std::min(text.find_first_of("'\" :;,)"), text.size()) : 1;
    const std::string_view part = text.substr(0, end);
    plain += begins ? part.substr(part.rfind('/') + 1) : part;
    text.remove_prefix(end);
  }
  return plain;
}

unsigned status_of_request(halyard_status_code_t code) {
  switch (code) {
    case HALYARD_NOT_FOUND:
      return 404;
    case HALYARD_RESOURCE_EXHAUSTED:
      return 413;
    case HALYARD_UNAVAILABLE:
      return 503;
    default:
      return 400;
  }
}

unsigned status_of_call(halyard_status_code_t code) {
  switch (code) {
    // The codes that programs return for arguments that do not match each other.
    case HALYARD_INVALID_ARGUMENT:
    case HALYARD_OUT_OF_RANGE:
      return 400;
    case HALYARD_DEADLINE_EXCEEDED:
      return 504;
    case HALYARD_UNAVAILABLE:
      return 503;
    default:
      return 500;
  }
}

}  // namespace halyard::tools::serve
