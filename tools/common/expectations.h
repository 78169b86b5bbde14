// Failed expectations, which the module `check` reports during a call of a test program.
#pragma once

#include <string>

#include "common/failure.h"

namespace halyard::tools {

// A copy of the C ABI's record.
struct FailedExpectation {
  explicit FailedExpectation(const halyard_failed_expectation_t& failed);

  std::string function;  // "expect_eq"
  std::string message;   // lines
  std::string place;     // in the program; may be empty

  // "check.expect_eq at module.f+0000001A (f.mlir:3:5): expected ...", and more lines. Not made printable.
  std::string text() const;
};

}  // namespace halyard::tools
