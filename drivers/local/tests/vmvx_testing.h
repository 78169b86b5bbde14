// Shared by the tests of kernels: every instruction set of this processor as a test parameter, and comparison
// of floats by the number of floats between them.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "vmvx/kernels.h"

namespace halyard::local::vmvx {

class VmvxKernels : public testing::TestWithParam<std::string_view> {
 public:
  const Kernels& kernels() const { return *find_kernels(GetParam()); }
};
#define VMVX_FOR_EVERY_INSTRUCTION_SET(suite)                                              \
  INSTANTIATE_TEST_SUITE_P(InstructionSets, suite, testing::ValuesIn(instruction_sets()),  \
                           [](const testing::TestParamInfo<std::string_view>& parameter) { \
                             std::string name(parameter.param);                            \
                             std::erase(name, '-');                                        \
                             return name;                                                  \
                           })

// 0 if both are NaN.
inline int64_t steps_between(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (std::isnan(a) || std::isnan(b)) return INT64_MAX;
  const auto place = [](float value) {
    const auto bits = std::bit_cast<int32_t>(value);
    return static_cast<int64_t>(bits < 0 ? INT32_MIN - int64_t{bits} : bits);
  };
  return std::abs(place(a) - place(b));
}

}  // namespace halyard::local::vmvx
