// The comparison of two sides: both run once for the digests of their steps; then again, as often as needed,
// for the tensors of the steps that differ. So memory holds at most `hold` bytes of tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "align.h"
#include "common/failure.h"
#include "compare.h"
#include "side.h"
#include "tolerance.h"
#include "typing.h"

namespace halyard::tools {

// A tensor that differs.
struct TensorDifference {
  uint32_t binding = 0;
  Typed type;
  std::vector<int64_t> shape;
  // The index, in the tensor, of the first compared element; indices of the comparison count from there.
  int64_t first = 0;
  Comparison comparison;
  uint64_t size_a = 0;  // bytes written
  uint64_t size_b = 0;
  bool is_comparable() const { return size_a == size_b; }
  bool is_beyond() const { return !is_comparable() || comparison.beyond > 0; }
};

// A pair of steps whose written bytes differ.
struct StepDifference {
  Pair pair;
  std::vector<TensorDifference> tensors;
  size_t inputs = 0;                     // ranges whose bytes before the step are known for both
  std::vector<uint32_t> changed_inputs;  // bindings whose bytes differed before the step
  bool is_beyond() const {
    for (const TensorDifference& tensor : tensors)
      if (tensor.is_beyond()) return true;
    return false;
  }
};

struct Diff {
  RunRecord a;
  RunRecord b;
  Alignment alignment;
  std::vector<StepDifference> differences;  // in the order of the steps
  std::optional<size_t> first_beyond;       // in `differences`
  // Steps whose bytes differ between two runs of the same side.
  std::vector<size_t> unstable_a;
  std::vector<size_t> unstable_b;
  size_t runs = 1;  // of each side

  size_t beyond() const;
};

struct DiffOptions {
  Tolerances tolerances;
  GivenTypes types;
  size_t worst = 5;
  uint64_t hold = 0;  // bytes
  // Gets the bytes of each comparable tensor of a step beyond tolerance; may be empty. `place` is the step's
  // in `a`.
  std::function<Result<>(const Step& step, size_t place, const TensorDifference& tensor,
                         std::span<const uint8_t> a, std::span<const uint8_t> b)>
      keep;
};

Result<Diff> diff(Side& a, Side& b, const DiffOptions& options);

}  // namespace halyard::tools
