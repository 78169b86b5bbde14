// The native module `check`, through which test programs state their expectations. Specified by
// check-module.md.
#pragma once

#include <functional>
#include <string_view>

#include "base/budget.h"
#include "base/object.h"
#include "vm/module/native_module.h"

namespace halyard::modules {

struct FailedExpectation {
  std::string_view function;  // "expect_eq"
  std::string_view message;   // lines; the first has the expected and the actual value
  std::string_view place;     // of the program: "at module.function+0000001A (model.mlir:3:5)"; may be empty
};
// Called on the thread of the invocation, which continues afterwards.
using ExpectationSink = std::function<void(const FailedExpectation&)>;

struct CheckOptions {
  ExpectationSink failed;  // empty: an expectation that fails fails the call (FAILED_PRECONDITION)
  Ref<Budget> memory;      // copies for the host are charged to it; null: not charged
};

inline constexpr uint32_t kCheckVersion = 0;

Ref<vm::NativeModule> create_check_module(CheckOptions options);

}  // namespace halyard::modules
