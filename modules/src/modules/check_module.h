// The native module `check`, with which test programs check their results. Specified by check-module.md.
#pragma once

#include <functional>
#include <string_view>

#include "base/budget.h"
#include "base/object.h"
#include "vm/module/native_module.h"

namespace halyard::modules {

struct FailedExpectation {
  std::string_view function;  // "expect_eq"
  std::string_view message;   // lines; the first contains the expected and the actual value
  std::string_view place;     // in the program: "at module.function+0000001A (model.mlir:3:5)"; may be empty
};
// Called on the thread of the invocation, which continues afterwards.
using ExpectationSink = std::function<void(const FailedExpectation&)>;

struct CheckOptions {
  ExpectationSink failed;  // empty: a failed expectation fails the call (FAILED_PRECONDITION)
  Ref<Budget> memory;      // charged for copies to the host; null: not charged
};

inline constexpr uint32_t kCheckVersion = 0;

Ref<vm::NativeModule> create_check_module(CheckOptions options);

}  // namespace halyard::modules
