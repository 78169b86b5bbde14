// Session::send(), for the files that define the session.
#pragma once

#include "server/session.h"

namespace halyard::device_server {

// `build(message)` returns the body.
template <typename Build>
void Session::send(Build build, remote::Bytes data) {
  remote::Message message;
  const auto body = build(message);
  const remote::Bytes bytes = message.to_client(body);
  shared_.counts.sent_bytes.fetch_add(bytes.size() + data.size(), std::memory_order_relaxed);
  stream_->send(bytes, data);
}

// The code and the whole text of a status.
inline remote::Failure to_wire(const Status& status) {
  std::string text = status.text();
  const std::string prefix = std::string(name(status.code())) + "; ";
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
  return {static_cast<halyard_status_code_t>(status.code()), std::move(text)};
}

}  // namespace halyard::device_server
