// Status: success or an error, as a value. Null is success. An error has a code, a message, notes (innermost
// first) and possibly a cause. C++ code returns Result<T>; the handle halyard_status_t crosses libraries.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "halyard/status.h"

namespace halyard {

enum class Code : int32_t {
#define HALYARD_CODE_(number, name) name = number,
  HALYARD_STATUS_CODES(HALYARD_CODE_)
#undef HALYARD_CODE_
};

inline const char* name(Code code) { return halyard_status_code_name(static_cast<int32_t>(code)); }

// Converts an external code: 0, 17 and unknown numbers become UNKNOWN (spec rulings 5 and 11).
Code failure_code(uint32_t number);

// A shared, reference-counted error. A copy shares the error; `note` first copies a shared error, so other
// holders do not see the note. Threads must not use one Status object concurrently, but may use copies of it.
class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  [[gnu::cold]] Status(Code code, std::string message);
  Status(const Status& other) noexcept : error_(other.error_ ? retained(other.error_) : nullptr) {}
  Status(Status&& other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~Status() {
    if (error_) [[unlikely]]
      drop(error_);
  }

  // Takes or passes on ownership of one reference.
  static Status adopt(halyard_status_t handle) {
    Status status;
    status.error_ = handle;
    return status;
  }
  [[nodiscard]] halyard_status_t release() && { return std::exchange(error_, nullptr); }

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return !ok(); }  // "if (status)" reads "if there is an error"
  Code code() const;
  const std::string& message() const;  // without notes; empty for success
  // CODE; message; note; note... and the cause on a line of its own. "OK" for success.
  std::string text() const;

  Status note(std::string_view text) &&;  // appended after earlier notes; no effect on success
  Status caused_by(Status cause) &&;

 private:
  static halyard_status_t retained(halyard_status_t error) noexcept;
  static void drop(halyard_status_t error) noexcept;

  halyard_status_t error_ = nullptr;
};

template <typename T = void>
using Result = std::expected<T, Status>;

// fail(Code::NOT_FOUND, "no function '{}'", name): converts to any failed Result. Cold, so that the compiler
// moves error paths away from hot code in the instruction cache.
template <typename... Args>
[[gnu::cold, gnu::noinline]] std::unexpected<Status> fail(Code code, fmt::format_string<Args...> format,
                                                          Args&&... args) {
  return std::unexpected(Status(code, fmt::format(format, std::forward<Args>(args)...)));
}

// Adds a note to a failed result; passes success through.
template <typename T>
Result<T> with_note(Result<T> result, std::string_view text) {
  if (!result) result.error() = std::move(result.error()).note(text);
  return result;
}

inline Status to_status(Result<> result) { return result ? Status() : std::move(result.error()); }
inline Result<> to_result(Status status) {
  if (status) return std::unexpected(std::move(status));
  return {};
}

}  // namespace halyard

// HALYARD_TRY(expression): the value of a Result; a failure is returned from the calling function. May be
// nested.
#define HALYARD_TRY(...) HALYARD_TRY_COUNTED_(__COUNTER__, __VA_ARGS__)
#define HALYARD_TRY_COUNTED_(counter, ...) HALYARD_TRY_NAMED_(counter, __VA_ARGS__)
#define HALYARD_TRY_NAMED_(counter, ...)                                \
  ({                                                                    \
    auto halyard_try_##counter = (__VA_ARGS__);                         \
    if (!halyard_try_##counter) [[unlikely]]                            \
      return std::unexpected(std::move(halyard_try_##counter).error()); \
    ::halyard::internal::unwrap(std::move(halyard_try_##counter));      \
  })

namespace halyard::internal {
template <typename T>
T unwrap(std::expected<T, Status>&& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
}  // namespace halyard::internal
