// What a test program says does not hold, through the module `check`, while a call of it runs.
#pragma once

#include <string>

#include "common/failure.h"

namespace halyard::tools {

// A copy of what the C ABI tells.
struct FailedExpectation {
  explicit FailedExpectation(const halyard_failed_expectation_t& failed);

  std::string function;  // "expect_eq"
  std::string message;   // lines
  std::string place;     // of the program; may be empty

  // "check.expect_eq at module.f+0000001A (f.mlir:3:5): expected ...", and more lines. Not safe to print.
  std::string text() const;
};

// Whom contexts tell of them.
struct ExpectationSink {
  halyard_expectation_fn function = nullptr;  // null: nobody, and the first one fails the call
  void* user = nullptr;
};

}  // namespace halyard::tools
