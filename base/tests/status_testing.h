// Matchers for statuses and results: success, or a code with a part of the message; the value of a result
// that must be there.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace halyard {

inline Status status_of(const Status& status) { return status; }
template <typename T>
Status status_of(const Result<T>& result) {
  return result ? Status() : result.error();
}

template <typename T>
testing::AssertionResult succeeds(const T& result) {
  const Status status = status_of(result);
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.text();
}

template <typename T>
testing::AssertionResult fails_with(const T& result, Code code, std::string_view part_of_message) {
  const Status status = status_of(result);
  if (status.ok()) return testing::AssertionFailure() << "succeeded; expected " << name(code);
  const std::string text = status.text();
  if (status.code() != code) return testing::AssertionFailure() << text << "; expected " << name(code);
  if (text.find(part_of_message) == std::string::npos)
    return testing::AssertionFailure() << text << "; expected it to say \"" << part_of_message << '"';
  return testing::AssertionSuccess();
}

}  // namespace halyard

#define EXPECT_OK(...) EXPECT_TRUE(::halyard::succeeds((__VA_ARGS__)))
#define ASSERT_OK(...) ASSERT_TRUE(::halyard::succeeds((__VA_ARGS__)))
#define EXPECT_FAILS(code, part_of_message, ...) \
  EXPECT_TRUE(::halyard::fails_with((__VA_ARGS__), ::halyard::Code::code, part_of_message))

// The value of a result. A failure ends the test, as ASSERT_TRUE does, with the text of the failure.
#define ASSERT_VALUE(...) HALYARD_ASSERT_VALUE_COUNTED_(__COUNTER__, __VA_ARGS__)
#define HALYARD_ASSERT_VALUE_COUNTED_(counter, ...) HALYARD_ASSERT_VALUE_NAMED_(counter, __VA_ARGS__)
#define HALYARD_ASSERT_VALUE_NAMED_(counter, ...)               \
  ({                                                            \
    auto halyard_result_##counter = (__VA_ARGS__);              \
    ASSERT_TRUE(::halyard::succeeds(halyard_result_##counter)); \
    std::move(*halyard_result_##counter);                       \
  })
