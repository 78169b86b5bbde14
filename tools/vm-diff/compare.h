// Compares the elements of two tensors.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "element.h"
#include "tolerance.h"

namespace halyard::tools {

// An element that differs.
struct Miss {
  uint64_t index = 0;
  std::string a;
  std::string b;
  double absolute = 0;  // infinite: NaN or infinity in one of them only
  double relative = 0;
  double ulps = 0;  // infinite, likewise
};

struct Comparison {
  uint64_t elements = 0;
  uint64_t different = 0;  // in their bits
  uint64_t beyond = 0;     // the tolerance
  double largest_absolute = 0;
  double largest_relative = 0;
  double largest_ulps = 0;
  uint64_t nan_a = 0;
  uint64_t nan_b = 0;
  uint64_t infinite_a = 0;
  uint64_t infinite_b = 0;
  // Elements by distance: [0] 0, [1] 1, [2] 2, [3] 3 to 4, [n] up to 2^(n-1). The last has those without one.
  std::vector<uint64_t> histogram;
  std::vector<Miss> worst;  // the largest errors first
};
inline constexpr size_t kNoDistance = 130;  // the last place of the histogram

// Compares `a` and `b`, which have equally many bytes. `counts`: whether an element counts, by its first
// byte and the following ones; empty: all do.
Comparison compare(const ElementKind& kind, std::span<const uint8_t> a, std::span<const uint8_t> b,
                   const std::vector<bool>& counts, const Tolerance& tolerance, size_t worst);

// "3 to 4": the distances of a place of the histogram.
std::string distance_text(size_t place);

}  // namespace halyard::tools
