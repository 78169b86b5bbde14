// Of the kit (halyard/driver.hpp): failures, statuses, structs that grow, options of a URI.
#ifndef HALYARD_DRIVER_FAILURE_HPP_
#define HALYARD_DRIVER_FAILURE_HPP_

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "halyard/driver.h"

namespace halyard::kit {

using Services = halyard_host_services_t;

inline std::string_view view(halyard_text_t text) {
  return {text.data ? text.data : "", text.data ? text.size : 0};
}

// Fills a struct of the other side as far as both sides know it. Its first field says how far, and stays
// [R11].
template <typename T>
void fill_sized(T& target, const T& source) {
  constexpr size_t kSize = sizeof(uint32_t);
  const size_t size = std::min<size_t>(target.struct_size, sizeof(T));
  if (size > kSize)
    std::memcpy(reinterpret_cast<char*>(&target) + kSize, reinterpret_cast<const char*>(&source) + kSize,
                size - kSize);
}

// A copy of such a struct; what its writer did not know is zero.
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
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}
  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  Failure& failure() { return std::get<1>(state_); }

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

 private:
  std::optional<Failure> failure_;
};

// A reference to a status of the host's. Empty is success.
class Status {
 public:
  Status() = default;
  Status(const Services& services, const Failure& failure)
      : Status(services, services.status_create(services.host, failure.code, failure.message.data(),
                                                failure.message.size())) {}
  // Takes over the reference.
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

inline Status to_status(const Services& services, Result<> result) {
  return result ? Status() : Status(services, result.failure());
}
inline Status to_status(const Services&, Status status) { return status; }

// What `body`, which returns Result<> or Status, comes to. Nothing thrown gets out.
template <typename Body>
Status guarded(const Services& services, Body&& body) noexcept {
  const auto failed = [&](halyard_status_code_t code, const char* text) {  // without memory of our own
    return Status(services, services.status_create(services.host, code, text, std::strlen(text)));
  };
  try {
    return to_status(services, body());
  } catch (const std::bad_alloc&) {
    return failed(HALYARD_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::exception& exception) {
    return failed(HALYARD_INTERNAL, exception.what());
  }
}

// UNIMPLEMENTED where the chain holds an extension that must be understood [R13].
inline Result<> check_extensions(const halyard_extension_t* chain) {
  for (; chain; chain = chain->next)
    if (chain->must_understand)
      return Failure{HALYARD_UNIMPLEMENTED, "extension of kind " + std::to_string(chain->kind) +
                                                " is demanded; this driver knows none"};
  return {};
}

// The key=value pairs of "kind://path?key=value". Each known key is asked for once; finish() refuses the
// rest, naming the known ones.
class Options {
 public:
  explicit Options(const halyard_device_open_args_t& args) : args_(args), used_(args.option_count) {}

  // The option's text, or nothing.
  std::optional<std::string_view> text(std::string_view key) {
    known_.emplace_back(key);
    for (uint32_t i = 0; i < args_.option_count; ++i) {
      if (view(args_.options[i].key) != key) continue;
      used_[i] = true;
      return view(args_.options[i].value);
    }
    return std::nullopt;
  }
  // The option as a number from `least` to `most`.
  Result<uint64_t> number(std::string_view key, uint64_t otherwise, uint64_t least, uint64_t most) {
    const std::optional<std::string_view> given = text(key);
    if (!given) return otherwise;
    uint64_t value = 0;
    const char* const end = given->data() + given->size();
    const auto [last, error] = std::from_chars(given->data(), end, value);
    if (error != std::errc() || last != end || value < least || value > most)
      return Failure{HALYARD_INVALID_ARGUMENT, "option '" + std::string(key) + "' is '" +
                                                   std::string(*given) + "'; expected a number from " +
                                                   std::to_string(least) + " to " + std::to_string(most)};
    return value;
  }
  Result<> finish() const {
    for (uint32_t i = 0; i < args_.option_count; ++i) {
      if (used_[i]) continue;
      std::string names;
      for (const std::string& name : known_) names += (names.empty() ? "" : ", ") + name;
      return Failure{HALYARD_INVALID_ARGUMENT, "unknown option '" + std::string(view(args_.options[i].key)) +
                                                   "'; known: " + (names.empty() ? "none" : names)};
    }
    return {};
  }

 private:
  const halyard_device_open_args_t& args_;
  std::vector<std::string> known_;
  std::vector<bool> used_;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_FAILURE_HPP_
