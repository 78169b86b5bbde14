// Whose requests are answered. A page in a browser can send requests to a server on the same machine: with
// its own origin, or, after it has changed what its name resolves to (DNS rebinding), with its own name as
// Host.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "request_head.h"

namespace halyard::tools::serve {

struct Access {
  // Names and addresses that a listener on a loopback address takes as Host beside its own; "*": any.
  std::vector<std::string> hosts;
  // Origins of pages that may send requests beside the server's own ("https://example.com"); "*": any.
  std::vector<std::string> origins;
};

// Whether the text is a host with an optional port, and nothing else: "localhost:8080", "[::1]", "10.0.0.1".
bool is_authority(std::string_view text);
// The same without a port.
bool is_host(std::string_view text);
// Whether it names this machine's loopback interface, whatever the port: localhost, its subdomains,
// 127.0.0.0/8 and ::1.
bool is_loopback_name(std::string_view authority);
// Whether the text is an origin as browsers write it: a scheme and a host, without a path. "null" is one.
bool is_origin(std::string_view text);

// Why the request is not answered. 400: Host, or the host in the path `authority` ("": there is none), is
// malformed. 421: a loopback listener does not take that host. 403: the page is of another origin.
std::optional<Refusal> refusal_of(const Access& access, bool is_loopback, const RequestHead& head,
                                  std::string_view authority);
// Whether the answer may be read by a page of the request's origin that is not the server's own.
bool is_shared(const Access& access, const RequestHead& head);

}  // namespace halyard::tools::serve
