// Wraps the values of the C ABI for tools: a status becomes a Failure, a handle a Handle<T>. Tools use only
// the C ABI of Halyard.
#pragma once

#include <fmt/core.h>

#include <cstdlib>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/brief.h"
#include "halyard/halyard.h"

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

struct FreeMemory {
  void operator()(void* memory) const { halyard_free(memory); }
};
template <typename T>
using Block = std::unique_ptr<T, FreeMemory>;  // memory allocated by the C ABI

// Takes ownership of the status.
inline Result<> check(halyard_status_t status) {
  if (!status) return {};
  const Block<char> whole(halyard_status_text(status));
  const halyard_status_code_t code = halyard_status_code(status);
  halyard_status_release(status);
  std::string_view text = whole.get();
  const std::string_view prefix = halyard_status_code_name(code);
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  if (text.starts_with("; ")) text.remove_prefix(2);
  return std::unexpected(Failure{.code = code, .text = std::string(text)});
}

// A reference to a counted object of the C ABI.
template <typename T>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T handle) : handle_(handle) {}
  Handle(const Handle& other) : handle_(other.handle_) { halyard_retain(handle_); }
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() { halyard_release(handle_); }
  T get() const { return handle_; }
  T* out() { return &handle_; }  // for `out` arguments; precondition: empty
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  T handle_ = nullptr;
};

inline std::string_view view(halyard_text_t text) { return {text.data, text.size}; }
inline halyard_text_t to_text(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace halyard::tools

// TOOL_TRY(expression): the value of a Result. If it is a failure, returns the failure from the calling
// function.
#define TOOL_TRY(...) TOOL_TRY_COUNTED_(__COUNTER__, __VA_ARGS__)
#define TOOL_TRY_COUNTED_(counter, ...) TOOL_TRY_NAMED_(counter, __VA_ARGS__)
#define TOOL_TRY_NAMED_(counter, ...)                                                       \
  ({                                                                                        \
    auto tool_try_##counter = (__VA_ARGS__);                                                \
    if (!tool_try_##counter) return std::unexpected(std::move(tool_try_##counter).error()); \
    ::halyard::tools::unwrap(std::move(tool_try_##counter));                                \
  })

namespace halyard::tools {
template <typename T>
T unwrap(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
}  // namespace halyard::tools
