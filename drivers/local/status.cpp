// Converts failures for the host.
#include "status.h"

namespace halyard {

// Removes the code from the text, because it is passed separately.
kit::Failure to_failure(const Status& status) {
  const std::string text = status.text();
  std::string_view message = text;
  message.remove_prefix(std::string_view(name(status.code())).size());
  if (message.starts_with("; ")) message.remove_prefix(2);
  return {static_cast<halyard_status_code_t>(status.code()), std::string(message)};
}

}  // namespace halyard
