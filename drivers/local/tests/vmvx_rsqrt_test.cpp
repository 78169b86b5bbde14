// Roots of rows that repeat numbers, which kernels compute once: every instruction set against the plain
// loops.
#include <limits>
#include <vector>

#include "vmvx/flush_denormals.h"
#include "vmvx_testing.h"

namespace halyard::local::vmvx {
namespace {

class VmvxRsqrt : public VmvxKernels {};
VMVX_FOR_EVERY_INSTRUCTION_SET(VmvxRsqrt);

std::vector<float> roots(const Kernels& kernels, const std::vector<float>& in, uint64_t columns) {
  std::vector<float> out(in.size(), -7);
  const FlushDenormals flush;
  kernels.unary[static_cast<size_t>(Unary::rsqrt_f32)](
      {reinterpret_cast<const uint8_t*>(in.data()), columns, 1},
      {reinterpret_cast<uint8_t*>(out.data()), columns, 1}, {in.size() / columns, columns});
  return out;
}

TEST_P(VmvxRsqrt, RepeatedNumbersHaveTheirOwnRoots) {
  using Limits = std::numeric_limits<float>;
  const float numbers[] = {
      0, 4, 4, 0.25f, -0.0f, 0, Limits::quiet_NaN(), Limits::quiet_NaN(), 2, Limits::infinity(), -1, 9};
  for (const uint64_t columns : {1, 3, 16, 33, 64, 128})
    for (const uint64_t repeated : {uint64_t{1}, uint64_t{15}, uint64_t{16}, uint64_t{17}, columns}) {
      std::vector<float> in;
      for (uint64_t i = 0; i < 12 * columns; ++i) in.push_back(numbers[i / repeated % std::size(numbers)]);
      const std::vector<float> found = roots(kernels(), in, columns);
      const std::vector<float> expected = roots(scalar_kernels(), in, columns);
      for (size_t i = 0; i < in.size(); ++i)
        ASSERT_EQ(steps_between(found[i], expected[i]), 0)
            << GetParam() << ": " << columns << " columns, " << repeated << " equal, at " << i << " of "
            << in[i];
    }
}

}  // namespace
}  // namespace halyard::local::vmvx
