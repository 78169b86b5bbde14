// --expected_output: whether results are what was expected. Specified by run-module-cli.md, section 5.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

// How far floating-point elements may be apart: absolute + relative * |expected|. NaN equals NaN.
struct Tolerance {
  double f16 = 0.001;
  double bf16 = 0.01;
  double f32 = 0.0001;
  double f64 = 0.0001;
  double relative = 1e-5;
};

// Compares results with texts like those of --input, one for each, whose types are characters of the calling
// convention; prints the outcome. Whether all are as expected. INVALID_ARGUMENT: more texts than results, or
// one that cannot be parsed.
Result<bool> compare_results(const std::vector<std::string>& texts, std::string_view types,
                             const std::vector<halyard_value_t>& results, halyard_device_t device,
                             const Tolerance& tolerance);

}  // namespace halyard::tools
