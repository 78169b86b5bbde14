// Failure on both sides of the boundary. Inside the driver code returns Result<>, whose error is a code and a
// text; the host knows only statuses of its own, which its services make. HostStatus owns one of those;
// guarded() turns what a function returns, or throws, into one.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <exception>
#include <expected>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "halyard/driver.h"

namespace halyard::vulkan {

using Services = halyard_host_services_t;

enum class Code : int32_t {
#define HALYARD_CODE_(number, name) name = number,
  HALYARD_STATUS_CODES(HALYARD_CODE_)
#undef HALYARD_CODE_
};

struct Error {
  Code code;
  std::string message;
};

template <typename T = void>
using Result = std::expected<T, Error>;

// fail(Code::NOT_FOUND, "no device '{}'", name) as the value of any failing Result.
template <typename... Args>
std::unexpected<Error> fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

// A shared reference to a status of the host's. Empty is success.
class HostStatus {
 public:
  HostStatus() = default;
  HostStatus(const Services& services, const Error& error);  // the same failure, told to the host
  HostStatus(const HostStatus& other)
      : services_(other.services_),
        handle_(other.handle_ ? services_->status_retain(services_->host, other.handle_) : nullptr) {}
  HostStatus(HostStatus&& other) noexcept
      : services_(other.services_), handle_(std::exchange(other.handle_, nullptr)) {}
  HostStatus& operator=(HostStatus other) noexcept {
    std::swap(services_, other.services_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~HostStatus() {
    if (handle_) services_->status_release(services_->host, handle_);
  }

  static HostStatus adopt(const Services& services, halyard_status_t handle);
  [[nodiscard]] halyard_status_t release() && { return std::exchange(handle_, nullptr); }
  explicit operator bool() const { return handle_ != nullptr; }  // "if (status)" reads "if there is an error"

 private:
  const Services* services_ = nullptr;
  halyard_status_t handle_ = nullptr;
};

inline HostStatus to_host(const Services& services, const Result<>& result) {
  return result ? HostStatus() : HostStatus(services, result.error());
}
inline HostStatus to_host(const Services&, HostStatus status) { return status; }
HostStatus out_of_memory(const Services& services);
HostStatus unexpected_exception(const Services& services, std::string_view what);

// What `body` (returning Result<> or HostStatus) comes to. No exception leaves the driver.
template <typename Body>
HostStatus guarded(const Services& services, Body&& body) noexcept {
  try {
    return to_host(services, body());
  } catch (const std::bad_alloc&) {
    return out_of_memory(services);
  } catch (const std::exception& exception) {
    return unexpected_exception(services, exception.what());
  }
}

// UNIMPLEMENTED where the chain holds an extension that must be understood: version 1 defines none.
Result<> check_extensions(const halyard_extension_t* chain);

inline std::string_view view(halyard_text_t text) { return {text.data, text.size}; }

}  // namespace halyard::vulkan

// HALYARD_TRY(expression): the value of a Result, or return its error from the calling function. May be
// nested.
#define HALYARD_TRY(...) HALYARD_TRY_COUNTED_(__COUNTER__, __VA_ARGS__)
#define HALYARD_TRY_COUNTED_(counter, ...) HALYARD_TRY_NAMED_(counter, __VA_ARGS__)
#define HALYARD_TRY_NAMED_(counter, ...)                                \
  ({                                                                    \
    auto halyard_try_##counter = (__VA_ARGS__);                         \
    if (!halyard_try_##counter) [[unlikely]]                            \
      return std::unexpected(std::move(halyard_try_##counter).error()); \
    ::halyard::vulkan::unwrap(std::move(halyard_try_##counter));        \
  })

namespace halyard::vulkan {
template <typename T>
T unwrap(std::expected<T, Error>&& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
}  // namespace halyard::vulkan
