// Statuses of the host as failures in messages.
#pragma once

#include <string>
#include <utility>

#include "base/status.h"
#include "remote/failure.h"

namespace halyard::device_server {

// The code and the whole text of a status.
inline remote::Failure to_wire(const Status& status) {
  std::string text = status.text();
  const std::string prefix = std::string(name(status.code())) + "; ";
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
  return {static_cast<halyard_status_code_t>(status.code()), std::move(text)};
}

}  // namespace halyard::device_server
