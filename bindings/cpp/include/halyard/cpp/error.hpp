// Failures: the status of a C function as an exception, or as the error of an `expected`.
#ifndef HALYARD_CPP_ERROR_HPP_
#define HALYARD_CPP_ERROR_HPP_

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "halyard/cpp/expected.hpp"
#include "halyard/halyard.h"

namespace halyard::inline HALYARD_CPP_FORM {

// The canonical codes: StatusCode::NOT_FOUND.
enum class StatusCode : halyard_status_code_t {
#define HALYARD_CPP_CODE_(number, name) name = number,
  HALYARD_STATUS_CODES(HALYARD_CPP_CODE_)
#undef HALYARD_CPP_CODE_
};

// A failure. Copies share one status. One thread at a time; copies may be destroyed on any thread.
class Error final : public std::exception {
 public:
  // Takes ownership of a status that is not null.
  [[gnu::cold, gnu::noinline]] static Error adopt(halyard_status_t failure) { return Error(failure); }
  Error(StatusCode code, const std::string& message)
      : Error(halyard_status_create(static_cast<halyard_status_code_t>(code), message.c_str())) {}
  Error(const Error& other) noexcept
      : std::exception(other), status_(halyard_status_retain(other.status_)), text_(other.text_) {}
  Error(Error&& other) noexcept
      : status_(std::exchange(other.status_, nullptr)), text_(std::move(other.text_)) {}
  Error& operator=(Error other) noexcept {
    std::swap(status_, other.status_);
    std::swap(text_, other.text_);
    return *this;
  }
  [[gnu::cold, gnu::noinline]] ~Error() override { halyard_status_release(status_); }

  StatusCode code() const noexcept { return static_cast<StatusCode>(halyard_status_code(status_)); }
  // The message without code and notes. Lives as long as the error.
  std::string_view message() const noexcept { return halyard_status_message(status_); }
  // "NOT_FOUND; message; note; ...". Lives as long as the error.
  const char* what() const noexcept override { return text_ ? text_.get() : halyard_status_message(status_); }
  halyard_status_t status() const noexcept { return status_; }  // borrowed
  // Gives up the status, for a C function that takes ownership; the error is empty afterwards.
  halyard_status_t release() noexcept { return std::exchange(status_, nullptr); }

 private:
  explicit Error(halyard_status_t failure) noexcept
      : status_(failure), text_(halyard_status_text(failure), [](char* text) { halyard_free(text); }) {}

  halyard_status_t status_;
  std::shared_ptr<char> text_;
};

// The result of a function that can fail; with exceptions, T itself.
#if HALYARD_CPP_EXCEPTIONS
template <typename T>
using Result = T;
#else
template <typename T>
using Result = expected<T, Error>;
#endif

namespace detail {

// All failures leave these headers through this function.
#if HALYARD_CPP_EXCEPTIONS
[[noreturn, gnu::cold, gnu::noinline]] inline void raise(Error error) { throw error; }
template <typename T>
[[noreturn]] Result<T> fail(Error error) {
  raise(std::move(error));
}
#else
template <typename T>
[[gnu::cold]] Result<T> fail(Error error) {
  return unexpected<Error>(std::move(error));
}
#endif
// Takes ownership of the status. Not inlined, because nearly every function of these headers has this path.
template <typename T>
[[gnu::cold, gnu::noinline]] Result<T> fail_with(halyard_status_t failure) {
  return fail<T>(Error::adopt(failure));
}

// Turns the status and the output of a C function into a Result.
template <typename Make>
auto finish(halyard_status_t status, Make&& make) -> Result<std::invoke_result_t<Make>> {
  if (status) [[unlikely]]
    return fail_with<std::invoke_result_t<Make>>(status);
  return std::forward<Make>(make)();
}
inline Result<void> finish(halyard_status_t status) {
  if (status) [[unlikely]]
    return fail_with<void>(status);
  return Result<void>();
}

// For C callbacks: calls `body`, which may throw or return a Result<void>, and converts its failure to a
// status.
template <typename Body>
halyard_status_t status_of(Body&& body) noexcept {
#if HALYARD_CPP_EXCEPTIONS
  try {
    std::forward<Body>(body)();
    return nullptr;
  } catch (Error& error) {
    return error.release();
  } catch (const std::bad_alloc&) {
    return halyard_status_create(HALYARD_RESOURCE_EXHAUSTED, "out of memory in a function of the embedder");
  } catch (const std::exception& error) {
    return halyard_status_create(HALYARD_UNKNOWN, error.what());
  } catch (...) {
    return halyard_status_create(HALYARD_UNKNOWN,
                                 "a function of the embedder has thrown an exception that is not a "
                                 "std::exception");
  }
#else
  Result<void> result = std::forward<Body>(body)();
  return result ? nullptr : result.error().release();
#endif
}

}  // namespace detail

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_ERROR_HPP_
