// Arguments and results of calls. C++ types stand for the kinds of the C ABI; Value holds any kind.
#ifndef HALYARD_CPP_VALUE_HPP_
#define HALYARD_CPP_VALUE_HPP_

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>

#include "halyard/cpp/handle.hpp"

namespace halyard::inline HALYARD_CPP_FORM {

// Anything that programs pass by reference. An empty Object is a null reference.
class Object : public Handle<halyard_object_t> {
 public:
  using Handle::Handle;
  // "hal.buffer_view", "vm.list"; "" for null. Lives as long as the object.
  std::string_view type() const noexcept { return get() ? view(halyard_object_type(get())) : ""; }
};

namespace detail {

template <typename T>
constexpr bool is_narrow_integer = std::is_integral_v<T> && (sizeof(T) < 4 || std::is_same_v<T, int32_t>);
template <typename T>
constexpr bool is_wide_integer =
    std::is_integral_v<T> && !is_narrow_integer<T> && (std::is_signed_v<T> || sizeof(T) == 4);

inline halyard_value_t null_value() noexcept { return halyard_value_t{}; }
inline halyard_value_t object_value(halyard_object_t object) noexcept {
  halyard_value_t value = {};
  value.kind = object ? HALYARD_VALUE_OBJECT : HALYARD_VALUE_NULL;
  value.object = object;
  return value;
}

// A kind for messages: "an i32"
inline const char* kind_text(uint32_t kind) noexcept {
  constexpr const char* kTexts[] = {"a null reference", "an i32",    "an i64", "an f32",
                                    "an f64",           "an object", "an i8",  "an i16"};
  return kind < std::size(kTexts) ? kTexts[kind] : "a value of an unknown kind";
}

}  // namespace detail

class Value;

// Types of arguments. Integers of up to 32 bits are passed as i32. uint32_t, which i32 may not hold, and
// int64_t are passed as i64. uint64_t must be cast by the caller. The call converts numbers if the conversion
// is exact, and else fails with INVALID_ARGUMENT.
template <typename T>
concept Argument = detail::is_narrow_integer<T> || detail::is_wide_integer<T> || std::is_same_v<T, float> ||
                   std::is_same_v<T, double> || std::is_base_of_v<Object, T> || std::is_same_v<T, Value> ||
                   std::is_same_v<T, std::nullptr_t>;

// Types of results. The kind must match exactly. Object and its derived classes may be null; their functions
// check the type of the object. Value accepts any kind.
template <typename T>
concept Returned = std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> || std::is_same_v<T, float> ||
                   std::is_same_v<T, double> || std::is_base_of_v<Object, T> || std::is_same_v<T, Value>;

// A value with its kind; owns its object. Has the size and layout of halyard_value_t.
class Value {
 public:
  Value() noexcept = default;  // a null reference
  Value(adopt_t, const halyard_value_t& value) noexcept : value_(value) {}
  template <Argument T>
    requires(!std::is_same_v<T, Value>)
  Value(const T& value) noexcept;
  Value(const Value& other) noexcept : value_(other.value_) { retain(); }
  Value(Value&& other) noexcept : value_(std::exchange(other.value_, {})) {}
  Value& operator=(Value other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Value() {
    if (value_.kind == HALYARD_VALUE_OBJECT) halyard_release(value_.object);
  }

  uint32_t kind() const noexcept { return value_.kind; }  // HALYARD_VALUE_*
  bool is_null() const noexcept {
    return value_.kind == HALYARD_VALUE_NULL || (value_.kind == HALYARD_VALUE_OBJECT && !value_.object);
  }
  // INVALID_ARGUMENT: the value is of another kind. An i8 or i16 is read as int32_t.
  template <Returned T>
  Result<T> as() const;
  // The object; empty if the value is a number or null.
  Object object() const noexcept {
    return Object(share, value_.kind == HALYARD_VALUE_OBJECT ? value_.object : nullptr);
  }
  const halyard_value_t& raw() const noexcept { return value_; }  // borrowed
  halyard_value_t release() noexcept { return std::exchange(value_, {}); }

 private:
  void retain() const noexcept {
    if (value_.kind == HALYARD_VALUE_OBJECT) halyard_retain(value_.object);
  }
  halyard_value_t value_ = {};
};
static_assert(sizeof(Value) == sizeof(halyard_value_t) && std::is_standard_layout_v<Value>);

// Converts to a value of the C ABI; its object is borrowed.
template <Argument T>
halyard_value_t to_value(const T& from) noexcept {
  halyard_value_t value = {};
  if constexpr (std::is_same_v<T, Value>) {
    value = from.raw();
  } else if constexpr (std::is_same_v<T, std::nullptr_t>) {
    value.kind = HALYARD_VALUE_NULL;
  } else if constexpr (std::is_base_of_v<Object, T>) {
    value = detail::object_value(from.get());
  } else if constexpr (std::is_same_v<T, float>) {
    value.kind = HALYARD_VALUE_F32;
    value.f32 = from;
  } else if constexpr (std::is_same_v<T, double>) {
    value.kind = HALYARD_VALUE_F64;
    value.f64 = from;
  } else if constexpr (detail::is_wide_integer<T>) {
    value.kind = HALYARD_VALUE_I64;
    value.i64 = static_cast<int64_t>(from);
  } else {
    value.kind = HALYARD_VALUE_I32;
    value.i32 = static_cast<int32_t>(from);
  }
  return value;
}

template <Argument T>
  requires(!std::is_same_v<T, Value>)
Value::Value(const T& value) noexcept : value_(to_value(value)) {
  retain();
}

namespace detail {

template <Returned T>
bool holds(const halyard_value_t& value) noexcept {
  if constexpr (std::is_same_v<T, int32_t>) return value.kind == HALYARD_VALUE_I32;
  if constexpr (std::is_same_v<T, int64_t>) return value.kind == HALYARD_VALUE_I64;
  if constexpr (std::is_same_v<T, float>) return value.kind == HALYARD_VALUE_F32;
  if constexpr (std::is_same_v<T, double>) return value.kind == HALYARD_VALUE_F64;
  if constexpr (std::is_base_of_v<Object, T>)
    return value.kind == HALYARD_VALUE_OBJECT || value.kind == HALYARD_VALUE_NULL;
  if constexpr (std::is_same_v<T, Value>) return true;
}
// Takes ownership of the value's reference, if there is one.
template <Returned T>
T take(const halyard_value_t& value) noexcept {
  if constexpr (std::is_same_v<T, int32_t>) return value.i32;
  if constexpr (std::is_same_v<T, int64_t>) return value.i64;
  if constexpr (std::is_same_v<T, float>) return value.f32;
  if constexpr (std::is_same_v<T, double>) return value.f64;
  if constexpr (std::is_base_of_v<Object, T>)
    return T(adopt, value.kind == HALYARD_VALUE_OBJECT ? value.object : nullptr);
  if constexpr (std::is_same_v<T, Value>) return Value(adopt, value);
}
template <Returned T>
const char* expected_text() noexcept {
  if constexpr (std::is_same_v<T, int32_t>) return "an i32";
  if constexpr (std::is_same_v<T, int64_t>) return "an i64";
  if constexpr (std::is_same_v<T, float>) return "an f32";
  if constexpr (std::is_same_v<T, double>) return "an f64";
  return "an object";
}

[[gnu::cold]] inline Error wrong_kind(const std::string& what, const char* expected, uint32_t found) {
  return Error(StatusCode::INVALID_ARGUMENT,
               what + " is " + kind_text(found) + ", but the program expects " + expected);
}

// The type of a call's results: void, the single type, or a tuple.
template <typename... R>
struct ReturnedBy {
  using type = std::tuple<R...>;
};
template <typename R>
struct ReturnedBy<R> {
  using type = R;
};
template <>
struct ReturnedBy<> {
  using type = void;
};
template <typename... R>
using ReturnedBy_t = typename ReturnedBy<R...>::type;

[[gnu::cold, gnu::noinline]] inline halyard_status_t wrong_result(halyard_value_t* results, size_t count,
                                                                  size_t wrong, const char* expected) {
  Error error = wrong_kind("result " + std::to_string(wrong), expected, results[wrong].kind);
  for (size_t i = 0; i < count; ++i) {
    const Value released(adopt, results[i]);
  }
  return error.release();
}

// Returns null, or a failure if results are of other kinds; releases the results then.
template <typename... R>
halyard_status_t check_results([[maybe_unused]] halyard_value_t* results) {
  size_t wrong = sizeof...(R), index = 0;
  const char* expected = nullptr;
  [[maybe_unused]] const auto check = [&](bool is_right, const char* text) {
    if (!is_right && wrong == sizeof...(R)) {
      wrong = index;
      expected = text;
    }
    ++index;
  };
  (check(holds<R>(results[index]), expected_text<R>()), ...);
  return wrong == sizeof...(R) ? nullptr : wrong_result(results, sizeof...(R), wrong, expected);
}
// Converts the results of a call to C++ values, and takes ownership of their objects.
template <typename... R>
std::tuple<R...> take_all([[maybe_unused]] halyard_value_t* results) noexcept {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::tuple<R...>(take<R>(results[I])...);
  }(std::index_sequence_for<R...>());
}
template <typename... R>
Result<ReturnedBy_t<R...>> take_results(halyard_value_t* results) {
  if (halyard_status_t status = check_results<R...>(results)) [[unlikely]]
    return fail<ReturnedBy_t<R...>>(Error::adopt(status));
  if constexpr (sizeof...(R) == 0) {
    return Result<void>();
  } else if constexpr (sizeof...(R) == 1) {
    return take<R...>(results[0]);
  } else {
    return take_all<R...>(results);
  }
}

inline const halyard_value_t* raw(std::span<const Value> values) noexcept {
  return reinterpret_cast<const halyard_value_t*>(values.data());
}
inline halyard_value_t* raw(std::span<Value> values) noexcept {
  return reinterpret_cast<halyard_value_t*>(values.data());
}

}  // namespace detail

template <Returned T>
Result<T> Value::as() const {
  const bool is_small = value_.kind == HALYARD_VALUE_I8 || value_.kind == HALYARD_VALUE_I16;
  if (!detail::holds<T>(value_) && !(std::is_same_v<T, int32_t> && is_small))
    return detail::fail<T>(detail::wrong_kind("the value", detail::expected_text<T>(), value_.kind));
  retain();
  return detail::take<T>(value_);
}

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_VALUE_HPP_
