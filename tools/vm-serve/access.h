// Decides which requests are answered. A page in a browser can send requests to a server on the same machine:
// with its own origin or, after DNS rebinding (it changes the address of its name), with its own name as
// Host.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "request_head.h"

namespace halyard::tools::serve {

struct Access {
  // Names and addresses that a listener on a loopback address accepts as Host, in addition to loopback names;
  // "*": any.
  std::vector<std::string> hosts;
  // Origins of pages that may send requests, in addition to the server's own ("https://example.com"); "*":
  // any.
  std::vector<std::string> origins;
};

// Whether the text is a host with an optional port and nothing else: "localhost:8080", "[::1]", "10.0.0.1".
bool is_authority(std::string_view text);
// Whether the text is a host without a port.
bool is_host(std::string_view text);
// Whether the authority, with any port, names this machine's loopback interface: localhost, its subdomains,
// 127.0.0.0/8 and ::1.
bool is_loopback_name(std::string_view authority);
// Whether the text is an origin in the form that browsers send: a scheme and a host, without a path. "null"
// is an origin.
bool is_origin(std::string_view text);

// Why the request is refused; nullopt if it is not. 400: Host, or the host of the request target, `authority`
// ("": none), is malformed. 421: a loopback listener does not accept that host. 403: the page has another
// origin.
std::optional<Refusal> refusal_of(const Access& access, bool is_loopback, const RequestHead& head,
                                  std::string_view authority);
// Whether a page of the request's origin, which is not the server's, may read the response.
bool is_shared(const Access& access, const RequestHead& head);

}  // namespace halyard::tools::serve
