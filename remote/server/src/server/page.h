// Page: GET /metrics, for Prometheus, and GET /healthz, for probes, over HTTP. Requests have no rights and no
// secrets: the numbers of the server, and that it lives.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

namespace halyard::device_server {

// Answers one request on a connected socket, then closes it. Requests that take longer than ten seconds, or
// have a head of more than 8 KiB, get no answer.
void answer_page(boost::asio::generic::stream_protocol::socket socket, std::function<std::string()> metrics);

}  // namespace halyard::device_server
