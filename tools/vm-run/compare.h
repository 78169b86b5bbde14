// --expected_output: compares results with expected ones. Specified by run-module-cli.md, section 5.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

// The maximum difference of floating-point elements and numbers: absolute + relative * |expected|. NaN equals
// NaN.
struct Tolerance {
  double f16 = 0.001;
  double bf16 = 0.01;
  double f32 = 0.0001;
  double f64 = 0.0001;
  double relative = 1e-5;
};

// Compares each result with a text in the form of --input, and prints the outcome. `types` are characters of
// the calling convention. Returns whether all results match. INVALID_ARGUMENT: more texts than results, or a
// text cannot be parsed.
Result<bool> compare_results(const std::vector<std::string>& texts, std::string_view types,
                             const std::vector<Value>& results, const Device& device,
                             const Tolerance& tolerance);

}  // namespace halyard::tools
