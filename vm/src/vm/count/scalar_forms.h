// ScalarForms: the forms of scalars that are not linear, and which scalars are other numbers than they seem
// because a register wraps. Needed only to tell which bytes a kernel certainly overwrites.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "vm/count/form.h"
#include "vm/count/instructions.h"
#include "vm/count/scalar.h"

namespace halyard::vm {

class ScalarForms {
 public:
  using Trips = std::array<uint64_t, kMaxDimensions>;

  void clear() { forms_.clear(); }
  // Completes a result that varies. `from` is the bank of the operands, `to` that of the result.
  void follow(Op op, Bank from, Bank to, const Operands<Scalar>& in, const Trips& trips, Scalar& result);
  // No value: it has none, or it may wrap.
  std::optional<Form> form_of(const Scalar& scalar) const;

 private:
  std::optional<Form> form_of_result(Op op, const Operands<Scalar>& in, const Trips& trips) const;

  static constexpr size_t kMaxForms = 1 << 16;
  std::vector<Form> forms_;
};

}  // namespace halyard::vm
