// Form: an integer as a sum of floors of iteration numbers, such as 4 * (i / 96 * 114 + i % 96). It describes
// indices that a coalesced loop computes from its one counter by quotients and remainders. Numbers are those
// without wrapping.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "vm/count/scalar.h"

namespace halyard::vm {

class Form {
 public:
  // The form of a linear scalar.
  static std::optional<Form> of(const Scalar& scalar);

  // No value: it would have too many terms, numbers that are too large, or be no such sum.
  std::optional<Form> plus(const Form& other, int64_t factor) const;
  std::optional<Form> times(int64_t factor) const;
  // Of the number, which is not negative, and a positive divisor.
  std::optional<Form> quotient(int64_t divisor) const;
  std::optional<Form> remainder(int64_t divisor) const;

  int64_t first() const { return constant_; }  // in the first iterations
  uint32_t dimensions() const;                 // along which it varies: bit d
  // The part that varies along these dimensions, from 0, and the rest.
  Form along(uint32_t dimensions) const;
  Form without(uint32_t dimensions) const;
  bool operator==(const Form&) const = default;

  // The number is the sum of `begin` and, for each step, a multiple of `stride` from 0 to `trips` - 1 times;
  // in all iterations together, each combination of multiples occurs.
  struct Step {
    int64_t stride = 0;
    uint64_t trips = 0;
  };
  struct Steps {
    int64_t begin = 0;
    size_t count = 0;
    std::array<Step, kMaxDimensions> steps = {};
  };
  // `trips`: of each dimension, all above 0. No value: not each combination occurs.
  std::optional<Steps> steps(const std::array<uint64_t, kMaxDimensions>& trips) const;

 private:
  // factor * floor(iteration / divisor)
  struct Term {
    int dimension = 0;
    int64_t divisor = 1;
    int64_t factor = 0;
    bool operator==(const Term&) const = default;
  };
  static constexpr size_t kMaxTerms = 12;

  bool add(const Term& term);

  int64_t constant_ = 0;
  size_t count_ = 0;
  // By dimension, then divisor; no factor is 0. Those behind the last are as at the start.
  std::array<Term, kMaxTerms> terms_ = {};
};

}  // namespace halyard::vm
