// Parses and compares hosts and origins.
#include "access.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>

namespace halyard::tools::serve {

namespace {

constexpr std::string_view kAny = "*";

bool equals(std::string_view one, std::string_view two) {
  return boost::beast::iequals({one.data(), one.size()}, {two.data(), two.size()});
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Authority {
  std::string_view host;  // including the brackets of an IPv6 address
  std::string_view port;  // "": none
};

std::optional<Authority> parsed(std::string_view text) {
  Authority authority;
  size_t end = 0;
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    in6_addr address;
    const std::string inside(text.substr(1, end - 1));
    if (::inet_pton(AF_INET6, inside.c_str(), &address) != 1) return std::nullopt;
    ++end;
  } else {
    end = std::min(text.find(':'), text.size());
    const auto is_of_names = [](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
             c == '_';
    };
    if (end == 0 || !std::ranges::all_of(text.substr(0, end), is_of_names)) return std::nullopt;
  }
  authority.host = text.substr(0, end);
  if (end == text.size()) return authority;
  constexpr size_t kMaxDigits = 5;
  authority.port = text.substr(end + 1);
  if (text[end] != ':' || authority.port.empty() || authority.port.size() > kMaxDigits ||
      !std::ranges::all_of(authority.port, is_digit))
    return std::nullopt;
  return authority;
}

struct Origin {
  std::string_view scheme;
  Authority authority;
};

std::optional<Origin> parsed_origin(std::string_view text) {
  const size_t end = text.find("://");
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  const auto authority = parsed(text.substr(end + 3));
  if (!authority) return std::nullopt;
  return Origin{.scheme = text.substr(0, end), .authority = *authority};
}

// Whether the host is the same, and the port is the same or the default of the origin's scheme, because a
// proxy may handle TLS for the server.
bool is_same(const Origin& origin, const Authority& host) {
  const std::string_view usual = equals(origin.scheme, "https")  ? "443"
                                 : equals(origin.scheme, "http") ? "80"
                                                                 : "";
  const auto port_of = [&](const Authority& authority) {
    return authority.port.empty() ? usual : authority.port;
  };
  return !usual.empty() && equals(origin.authority.host, host.host) &&
         port_of(origin.authority) == port_of(host);
}

bool is_own(const RequestHead& head) {
  const auto origin = parsed_origin(*head.origin);
  const auto host = parsed(head.host);
  return origin && host && is_same(*origin, *host);
}

bool is_allowed(const std::vector<std::string>& allowed, std::string_view text) {
  return std::ranges::any_of(allowed,
                             [&](const std::string& each) { return each == kAny || equals(each, text); });
}

}  // namespace

bool is_authority(std::string_view text) { return parsed(text).has_value(); }

bool is_host(std::string_view text) {
  const auto authority = parsed(text);
  return authority && authority->port.empty();
}

bool is_origin(std::string_view text) { return text == "null" || parsed_origin(text).has_value(); }

bool is_loopback_name(std::string_view text) {
  const auto authority = parsed(text);
  if (!authority) return false;
  std::string_view host = authority->host;
  if (host.starts_with('[')) {
    const std::string inside(host.substr(1, host.size() - 2));
    in6_addr address;
    if (::inet_pton(AF_INET6, inside.c_str(), &address) != 1) return false;
    return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
  }
  in_addr address;
  if (::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1)
    return (ntohl(address.s_addr) >> 24) == 127;
  if (host.ends_with('.')) host.remove_suffix(1);
  constexpr std::string_view kLocal = "localhost", kBelow = ".localhost";
  return equals(host, kLocal) ||
         (host.size() > kBelow.size() && equals(host.substr(host.size() - kBelow.size()), kBelow));
}

std::optional<Refusal> refusal_of(const Access& access, bool is_loopback, const RequestHead& head,
                                  std::string_view authority) {
  constexpr size_t kMaxShown = 128;
  for (const std::string_view host : {head.host, authority}) {
    if (host.empty())
      continue;  // HTTP/1.0, or a client without a name for the server; pages always send Host
    const auto parts = parsed(host);
    if (!parts)
      return Refusal{.status = 400,
                     .text = fmt::format("Host is '{}'; expected a name or an address, and maybe a port",
                                         host.substr(0, kMaxShown)),
                     .headers = ""};
    if (is_loopback && !is_loopback_name(host) && !is_allowed(access.hosts, parts->host))
      return Refusal{
          .status = 421,
          .text = fmt::format("this server listens on a loopback address and accepts requests for localhost, "
                              "not for '{}'; allow this name with --allow_host={}",
                              host.substr(0, kMaxShown), parts->host.substr(0, kMaxShown)),
          .headers = "",
          .closes = false};
  }
  if (head.origin && !is_own(head) && !is_allowed(access.origins, *head.origin)) {
    const std::string_view shown = head.origin->substr(0, kMaxShown);
    return Refusal{
        .status = 403,
        .text = fmt::format("pages of '{}' may not use this server; allow them with --allow_origin={}", shown,
                            shown),
        .headers = "",
        .closes = false};
  }
  return std::nullopt;
}

bool is_shared(const Access& access, const RequestHead& head) {
  return head.origin && !is_own(head) && is_allowed(access.origins, *head.origin);
}

}  // namespace halyard::tools::serve
