// A value or an error, for programs compiled without exceptions: std::expected if the standard library has it
// (C++23), else a class with the same interface. HALYARD_CPP_EXCEPTIONS selects how functions fail.
#ifndef HALYARD_CPP_EXPECTED_HPP_
#define HALYARD_CPP_EXPECTED_HPP_

#include <cstdlib>
#include <memory>
#include <type_traits>
#include <utility>
#include <version>

// 1: functions that fail throw halyard::Error. 0: they return expected<T, Error>. A program may define it as
// 0 to use `expected` although exceptions are enabled.
#ifndef HALYARD_CPP_EXCEPTIONS
#ifdef __cpp_exceptions
#define HALYARD_CPP_EXCEPTIONS 1
#else
#define HALYARD_CPP_EXCEPTIONS 0
#endif
#endif

// 202211: with and_then and the other monadic functions.
#if defined(__cpp_lib_expected) && __cpp_lib_expected >= 202211L
#define HALYARD_CPP_STD_EXPECTED_ 1
#include <expected>
#else
#define HALYARD_CPP_STD_EXPECTED_ 0
#endif

// Functions of both forms have the same names and different types. Each form has its own inline namespace, so
// that files compiled differently can be linked into one program, and users write halyard::Tensor.
#if HALYARD_CPP_EXCEPTIONS
#define HALYARD_CPP_FORM with_exceptions
#elif HALYARD_CPP_STD_EXPECTED_
#define HALYARD_CPP_FORM with_std_expected
#else
#define HALYARD_CPP_FORM with_expected
#endif

namespace halyard::inline HALYARD_CPP_FORM {

#if HALYARD_CPP_STD_EXPECTED_
using std::expected;
using std::unexpected;
#else

// Like std::unexpected.
template <typename E>
class unexpected {
 public:
  explicit unexpected(E error) : error_(std::move(error)) {}
  const E& error() const& noexcept { return error_; }
  E& error() & noexcept { return error_; }
  E&& error() && noexcept { return std::move(error_); }

 private:
  E error_;
};

// Like std::expected, with its most used functions. value() of an error terminates the program.
template <typename T, typename E>
class expected {
 public:
  using value_type = T;
  using error_type = E;

  expected()
    requires std::is_default_constructible_v<T>
      : has_value_(true) {
    std::construct_at(&value_);
  }
  template <typename U = T>
    requires(std::is_constructible_v<T, U> && !std::is_same_v<std::remove_cvref_t<U>, expected> &&
             !std::is_same_v<std::remove_cvref_t<U>, unexpected<E> >)
  expected(U&& value) : has_value_(true) {
    std::construct_at(&value_, std::forward<U>(value));
  }
  expected(unexpected<E> failure) : has_value_(false) {
    std::construct_at(&error_, std::move(failure).error());
  }
  expected(const expected& other)
    requires std::is_copy_constructible_v<T>
      : has_value_(other.has_value_) {
    if (has_value_) {
      std::construct_at(&value_, other.value_);
    } else {
      std::construct_at(&error_, other.error_);
    }
  }
  expected(expected&& other) noexcept(std::is_nothrow_move_constructible_v<T> &&
                                      std::is_nothrow_move_constructible_v<E>)
      : has_value_(other.has_value_) {
    if (has_value_) {
      std::construct_at(&value_, std::move(other.value_));
    } else {
      std::construct_at(&error_, std::move(other.error_));
    }
  }
  // Creates the new value before it destroys the old one, so that a failed move or copy changes nothing.
  expected& operator=(expected other) noexcept {
    static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_constructible_v<E>);
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
  }
  ~expected() {
    if (has_value_) {
      std::destroy_at(&value_);
    } else {
      std::destroy_at(&error_);
    }
  }

  bool has_value() const noexcept { return has_value_; }
  explicit operator bool() const noexcept { return has_value_; }
  T& operator*() & noexcept { return value_; }
  const T& operator*() const& noexcept { return value_; }
  T&& operator*() && noexcept { return std::move(value_); }
  T* operator->() noexcept { return &value_; }
  const T* operator->() const noexcept { return &value_; }
  T& value() & { return checked().value_; }
  const T& value() const& { return checked().value_; }
  T&& value() && { return std::move(checked().value_); }
  E& error() & noexcept { return error_; }
  const E& error() const& noexcept { return error_; }
  E&& error() && noexcept { return std::move(error_); }
  template <typename U>
  T value_or(U&& other) const& {
    return has_value_ ? value_ : static_cast<T>(std::forward<U>(other));
  }
  template <typename U>
  T value_or(U&& other) && {
    return has_value_ ? std::move(value_) : static_cast<T>(std::forward<U>(other));
  }

  template <typename F>
  auto and_then(F&& next) && {
    return then(std::move(*this), std::forward<F>(next));
  }
  template <typename F>
  auto and_then(F&& next) const& {
    return then(*this, std::forward<F>(next));
  }
  template <typename F>
  auto transform(F&& change) && {
    return changed(std::move(*this), std::forward<F>(change));
  }
  template <typename F>
  auto transform(F&& change) const& {
    return changed(*this, std::forward<F>(change));
  }
  template <typename F>
  expected or_else(F&& recover) && {
    return has_value_ ? std::move(*this) : std::forward<F>(recover)(std::move(error_));
  }
  template <typename F>
  expected or_else(F&& recover) const& {
    return has_value_ ? *this : std::forward<F>(recover)(error_);
  }

 private:
  template <typename Self, typename F>
  static auto then(Self&& self, F&& next) {
    using Next = std::remove_cvref_t<decltype(std::forward<F>(next)(*std::forward<Self>(self)))>;
    if (self.has_value_) return Next(std::forward<F>(next)(*std::forward<Self>(self)));
    return Next(unexpected<E>(std::forward<Self>(self).error()));
  }
  template <typename Self, typename F>
  static auto changed(Self&& self, F&& change) {
    using U = std::remove_cv_t<decltype(std::forward<F>(change)(*std::forward<Self>(self)))>;
    using Changed = expected<U, E>;
    if (!self.has_value_) return Changed(unexpected<E>(std::forward<Self>(self).error()));
    if constexpr (std::is_void_v<U>) {
      std::forward<F>(change)(*std::forward<Self>(self));
      return Changed();
    } else {
      return Changed(std::forward<F>(change)(*std::forward<Self>(self)));
    }
  }
  expected& checked() & {
    if (!has_value_) std::abort();
    return *this;
  }
  const expected& checked() const& {
    if (!has_value_) std::abort();
    return *this;
  }

  union {
    T value_;
    E error_;
  };
  bool has_value_;
};

template <typename E>
class expected<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  expected() noexcept : has_value_(true) {}
  expected(unexpected<E> failure) : has_value_(false) {
    std::construct_at(&error_, std::move(failure).error());
  }
  expected(const expected& other) : has_value_(other.has_value_) {
    if (!has_value_) std::construct_at(&error_, other.error_);
  }
  expected(expected&& other) noexcept : has_value_(other.has_value_) {
    if (!has_value_) std::construct_at(&error_, std::move(other.error_));
  }
  expected& operator=(expected other) noexcept {
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
  }
  ~expected() {
    if (!has_value_) std::destroy_at(&error_);
  }

  bool has_value() const noexcept { return has_value_; }
  explicit operator bool() const noexcept { return has_value_; }
  void operator*() const noexcept {}
  void value() const {
    if (!has_value_) std::abort();
  }
  E& error() & noexcept { return error_; }
  const E& error() const& noexcept { return error_; }
  E&& error() && noexcept { return std::move(error_); }

  template <typename F>
  auto and_then(F&& next) const {
    using Next = std::remove_cvref_t<std::invoke_result_t<F> >;
    if (has_value_) return Next(std::forward<F>(next)());
    return Next(unexpected<E>(error_));
  }
  template <typename F>
  expected or_else(F&& recover) const {
    return has_value_ ? *this : std::forward<F>(recover)(error_);
  }

 private:
  union {
    E error_;
  };
  bool has_value_;
};
#endif

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_EXPECTED_HPP_
