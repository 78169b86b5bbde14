// Why a tool cannot continue. Tools use Halyard through its C++ binding, whose errors become failures here.
#pragma once

#include <fmt/core.h>

#include <expected>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/brief.h"
#include "halyard/halyard.hpp"

namespace halyard::tools {

// Why a tool cannot continue: a code, and a text that says what was expected, what was found and what to do.
struct Failure {
  halyard_status_code_t code = HALYARD_UNKNOWN;
  std::string text;   // without the code
  int exit_code = 1;  // of a tool that ends with this failure

  // A line for people; long quotations are shortened.
  std::string line() const { return std::string(halyard_status_code_name(code)) + "; " + brief(text); }
};

template <typename T = void>
using Result = std::expected<T, Failure>;

template <typename... Args>
std::unexpected<Failure> fail(halyard_status_code_t code, fmt::format_string<Args...> format,
                              Args&&... args) {
  return std::unexpected(Failure{.code = code, .text = fmt::format(format, std::forward<Args>(args)...)});
}

// The failure that the binding reports: its code, and its message with all notes.
[[gnu::cold, gnu::noinline]] inline Failure failure_of(const Error& error) {
  const halyard_status_code_t code = halyard_status_code(error.status());
  std::string_view text = error.what();
  const std::string_view prefix = halyard_status_code_name(code);
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  if (text.starts_with("; ")) text.remove_prefix(2);
  return {.code = code, .text = std::string(text)};
}

// How TOOL_TRY passes a failure on; not inlined, because it is in every function.
[[gnu::cold, gnu::noinline]] inline std::unexpected<Failure> pass_on(Failure& failure) {
  return std::unexpected(std::move(failure));
}
[[gnu::cold, gnu::noinline]] inline std::unexpected<Failure> pass_on(const Error& error) {
  return std::unexpected(failure_of(error));
}

// Takes ownership of the status.
inline Result<> check(halyard_status_t status) {
  if (status) return pass_on(Error::adopt(status));
  return {};
}
template <typename T>
Result<T> check(expected<T, Error> result) {
  if (!result) return pass_on(result.error());
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return *std::move(result);
  }
}

}  // namespace halyard::tools

// TOOL_TRY(expression): the value of a Result, or of an `expected` of the binding. If it is a failure,
// returns the failure from the calling function.
#define TOOL_TRY(...) TOOL_TRY_COUNTED_(__COUNTER__, __VA_ARGS__)
#define TOOL_TRY_COUNTED_(counter, ...) TOOL_TRY_NAMED_(counter, __VA_ARGS__)
#define TOOL_TRY_NAMED_(counter, ...)                                                      \
  ({                                                                                       \
    auto tool_try_##counter = (__VA_ARGS__);                                               \
    if (!tool_try_##counter) return ::halyard::tools::pass_on(tool_try_##counter.error()); \
    ::halyard::tools::unwrap(std::move(tool_try_##counter));                               \
  })

namespace halyard::tools {
template <typename Outcome>
auto unwrap(Outcome&& result) -> typename std::remove_cvref_t<Outcome>::value_type {
  if constexpr (!std::is_void_v<typename std::remove_cvref_t<Outcome>::value_type>)
    return *std::forward<Outcome>(result);
}
}  // namespace halyard::tools
