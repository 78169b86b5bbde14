// Of the kit (halyard/driver.hpp): failures, statuses, structs that grow.
#ifndef HALYARD_DRIVER_FAILURE_HPP_
#define HALYARD_DRIVER_FAILURE_HPP_

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "halyard/driver.h"

namespace halyard::kit {

using Services = halyard_host_services_t;

inline std::string_view view(halyard_text_t text) {
  return {text.data ? text.data : "", text.data ? text.size : 0};
}

// Copies a struct to a struct of the other side, as far as both sides know its fields. The target keeps its
// struct_size, the first field [R11].
template <typename T>
void fill_sized(T& target, const T& source) {
  const uint32_t known = target.struct_size;
  if (known == sizeof(T)) {  // the usual case: both sides know the same fields
    target = source;
    target.struct_size = known;
  } else if (known > sizeof known) {
    std::memcpy(reinterpret_cast<char*>(&target) + sizeof known,
                reinterpret_cast<const char*>(&source) + sizeof known,
                std::min<size_t>(known, sizeof(T)) - sizeof known);
  }
}

// A copy of such a struct; fields that its writer did not know are zero.
template <typename T>
T copy_sized(const T& source) {
  T copy = {};
  std::memcpy(&copy, &source, std::min<size_t>(source.struct_size, sizeof(T)));
  return copy;
}

// `message`: what was expected, what was found, what to do [R51].
struct Failure {
  halyard_status_code_t code = HALYARD_UNKNOWN;
  std::string message;
};

// A value, or a Failure.
template <typename T = void>
class [[nodiscard]] Result {
 public:
  template <typename U = T>
    requires(std::convertible_to<U, T> && !std::same_as<std::remove_cvref_t<U>, Failure> &&
             !std::same_as<std::remove_cvref_t<U>, Result>)
  Result(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}
  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  Failure& failure() { return *std::get_if<1>(&state_); }
  const Failure& failure() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Failure> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure) : failure_(std::move(failure)) {}
  explicit operator bool() const { return !failure_; }
  Failure& failure() { return *failure_; }
  const Failure& failure() const { return *failure_; }

 private:
  std::optional<Failure> failure_;
};

template <typename T>
T value_of(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// A reference to a status of the host. Empty means success.
class Status {
 public:
  Status() = default;
  Status(const Services& services, halyard_status_code_t code, std::string_view message)
      : Status(services, services.status_create(services.host, code, message.data(), message.size())) {}
  Status(const Services& services, const Failure& failure)
      : Status(services, failure.code, failure.message) {}
  // Takes ownership of the reference.
  Status(const Services& services, halyard_status_t handle) : services_(&services), handle_(handle) {}
  Status(const Status& other)
      : services_(other.services_),
        handle_(other.handle_ ? services_->status_retain(services_->host, other.handle_) : nullptr) {}
  Status(Status&& other) noexcept
      : services_(other.services_), handle_(std::exchange(other.handle_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(services_, other.services_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Status() {
    if (handle_) services_->status_release(services_->host, handle_);
  }

  [[nodiscard]] halyard_status_t release() && { return std::exchange(handle_, nullptr); }
  explicit operator bool() const {
    return handle_ != nullptr;
  }  // "if (status)" reads "if there is a failure"

 private:
  const Services* services_ = nullptr;
  halyard_status_t handle_ = nullptr;
};

inline Status to_status(const Services&, Status status) { return status; }
// Converts a Result of the kit, or a std::expected whose error type has a function to_failure() in its
// namespace, to a Status.
template <typename R>
Status to_status(const Services& services, const R& result) {
  if (result) [[likely]]
    return {};
  if constexpr (requires { result.failure(); }) {
    return {services, result.failure()};
  } else {
    return {services, to_failure(result.error())};
  }
}

// Calls `body`, which returns a Result or a Status. Exceptions become statuses.
template <typename Body>
Status guarded(const Services& services, Body&& body) noexcept {
  try {
    return to_status(services, body());
  } catch (const std::bad_alloc&) {  // reported without allocating memory
    return {services, HALYARD_RESOURCE_EXHAUSTED, "out of host memory"};
  } catch (const std::exception& exception) {
    return {services, HALYARD_INTERNAL, exception.what()};
  }
}

// UNIMPLEMENTED: the chain has an unknown extension that must be understood [R13].
inline Result<> check_extensions(const halyard_extension_t* chain) {
  for (; chain; chain = chain->next)
    if (chain->must_understand)
      return Failure{HALYARD_UNIMPLEMENTED, "extension of kind " + std::to_string(chain->kind) +
                                                " is demanded; this driver knows none"};
  return {};
}

}  // namespace halyard::kit

// HALYARD_KIT_TRY(expression): the value of a Result; a failure is returned from the calling function. May be
// nested. Uses an extension of GCC and clang; the portable form is `if (!result) return
// std::move(result.failure());`.
#define HALYARD_KIT_TRY(...) HALYARD_KIT_TRY_COUNTED_(__COUNTER__, __VA_ARGS__)
#define HALYARD_KIT_TRY_COUNTED_(counter, ...) HALYARD_KIT_TRY_NAMED_(counter, __VA_ARGS__)
#define HALYARD_KIT_TRY_NAMED_(counter, ...)                                               \
  __extension__({                                                                          \
    auto halyard_kit_try_##counter = (__VA_ARGS__);                                        \
    if (!halyard_kit_try_##counter) return std::move(halyard_kit_try_##counter.failure()); \
    ::halyard::kit::value_of(std::move(halyard_kit_try_##counter));                        \
  })

#endif  // HALYARD_DRIVER_FAILURE_HPP_
