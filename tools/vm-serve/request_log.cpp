// Makes the fields of the line.
#include "request_log.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

namespace halyard::tools::serve {

std::string address_text(const ClientSocket::endpoint_type& endpoint) {
  sockaddr_storage address = {};
  std::memcpy(&address, endpoint.data(), std::min<size_t>(endpoint.size(), sizeof address));
  char text[INET6_ADDRSTRLEN] = "";
  if (endpoint.size() >= sizeof(sockaddr_in) && address.ss_family == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &ip.sin_addr, text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(ip.sin_port));
  }
  if (endpoint.size() >= sizeof(sockaddr_in6) && address.ss_family == AF_INET6) {
    const auto& ip = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &ip.sin6_addr, text, sizeof text);
    return fmt::format("[{}]:{}", text, ntohs(ip.sin6_port));
  }
  return address.ss_family == AF_UNIX ? "unix" : "";
}

void log_request(Log& log, const RequestLine& line) {
  const double milliseconds = std::chrono::duration<double, std::milli>(line.time).count();
  std::vector<Log::Field> fields = {{"method", line.method},        {"target", line.target},
                                    {"client", line.client},        {"model", line.model},
                                    {"version", line.version},      {"trace_id", line.trace_id},
                                    {"status", line.status},        {"bytes", line.bytes},
                                    {"milliseconds", milliseconds}, {"answer", line.error}};
  std::erase_if(fields, [](const Log::Field& field) { return field.second == ""; });
  log.info("request", fields);
}

}  // namespace halyard::tools::serve
