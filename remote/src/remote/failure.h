// Failures of connections: a status code and a message. Both the driver and the server convert them to their
// statuses.
#pragma once

#include <fmt/format.h>

#include <expected>
#include <string>
#include <utility>

#include "halyard/status.h"

namespace halyard::remote {

// `message`: what was expected, what was found, what to do.
struct Failure {
  halyard_status_code_t code = HALYARD_UNKNOWN;
  std::string message;
};

template <typename T = void>
using Result = std::expected<T, Failure>;

template <typename... Args>
std::unexpected<Failure> fail(halyard_status_code_t code, fmt::format_string<Args...> format,
                              Args&&... args) {
  return std::unexpected(Failure{code, fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace halyard::remote

// REMOTE_TRY(expression): the value of a Result; a failure is returned from the calling function.
#define REMOTE_TRY(...) REMOTE_TRY_COUNTED_(__COUNTER__, __VA_ARGS__)
#define REMOTE_TRY_COUNTED_(counter, ...) REMOTE_TRY_NAMED_(counter, __VA_ARGS__)
#define REMOTE_TRY_NAMED_(counter, ...)                                                         \
  __extension__({                                                                               \
    auto remote_try_##counter = (__VA_ARGS__);                                                  \
    if (!remote_try_##counter) return std::unexpected(std::move(remote_try_##counter).error()); \
    ::halyard::remote::unwrap(std::move(remote_try_##counter));                                 \
  })

namespace halyard::remote {
template <typename T>
T unwrap(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
}  // namespace halyard::remote
