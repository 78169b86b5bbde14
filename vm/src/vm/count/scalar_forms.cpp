// Forms of results from those of operands.
#include "vm/count/scalar_forms.h"

#include <algorithm>

namespace halyard::vm {

namespace {

// Whether the value, or one that it was computed from, may be another one than its slopes or bounds tell,
// because a register that can have the numbers of `range` does not have them.
bool may_leave(const Scalar& scalar, const Bounds& range, const ScalarForms::Trips& trips) {
  if (!scalar.is_known || scalar.varies == 0) return false;
  if (scalar.may_wrap) return true;
  const Bounds bounds = bounds_of(scalar, trips);
  if (!bounds.is_known()) return scalar.is_linear && scalar.compare == Scalar::Compare::none;
  return bounds.low < range.low || bounds.high > range.high;
}

}  // namespace

void ScalarForms::follow(Op op, Bank from, Bank to, const Operands<Scalar>& in, const Trips& trips,
                         Scalar& result) {
  const Bounds range = range_of_result(op, from);
  result.may_wrap =
      may_leave(result, range_of_result(op, to), trips) ||
      std::ranges::any_of(in, [&](const Scalar& each) { return may_leave(each, range, trips); });
  if (result.is_linear || result.may_wrap || forms_.size() == kMaxForms) return;
  const std::optional<Form> form = form_of_result(op, in, trips);
  result.form = form ? static_cast<int32_t>(forms_.size()) : -1;
  if (form) forms_.push_back(*form);
}

std::optional<Form> ScalarForms::form_of(const Scalar& scalar) const {
  if (scalar.may_wrap) return {};
  return scalar.form >= 0 ? forms_[static_cast<size_t>(scalar.form)] : Form::of(scalar);
}

// Operands are without the immediate.
std::optional<Form> ScalarForms::form_of_result(Op op, const Operands<Scalar>& in, const Trips& trips) const {
  if (op == Op::select_i32 || op == Op::select_i64) {
    const Bounds condition = bounds_of(in[0], trips);
    return condition.is_constant() ? form_of(in[condition.low != 0 ? 1 : 2]) : std::nullopt;
  }
  const std::optional<Form> a = form_of(in[0]);
  const std::optional<Form> b = form_of(in[1]);
  if (!a) return {};
  const auto times = [](const Scalar& x, const std::optional<Form>& form_of_x, const Scalar& y,
                        const std::optional<Form>& form_of_y) -> std::optional<Form> {
    if (y.is_constant()) return form_of_x->times(y.value);
    return x.is_constant() && form_of_y ? form_of_y->times(x.value) : std::nullopt;
  };
  const auto divisor = [&] {
    return bounds_of(in[0], trips).is_known() && bounds_of(in[0], trips).low >= 0 && in[1].is_constant()
               ? in[1].value
               : 0;
  };
  switch (op) {
    case Op::add_i32:
    case Op::add_i64:
      return b ? a->plus(*b, 1) : b;
    case Op::sub_i32:
    case Op::sub_i64:
      return b ? a->plus(*b, -1) : b;
    case Op::mul_i32:
    case Op::mul_i64:
      return times(in[0], a, in[1], b);
    case Op::fma_i32:
    case Op::fma_i64: {
      const std::optional<Form> product = times(in[0], a, in[1], b);
      const std::optional<Form> c = form_of(in[2]);
      return product && c ? product->plus(*c, 1) : std::nullopt;
    }
    case Op::div_i32_s:
    case Op::div_i64_s:
    case Op::div_i32_u:
    case Op::div_i64_u:
      return divisor() > 0 ? a->quotient(divisor()) : std::nullopt;
    case Op::rem_i32_s:
    case Op::rem_i64_s:
    case Op::rem_i32_u:
    case Op::rem_i64_u:
      return divisor() > 0 ? a->remainder(divisor()) : std::nullopt;
    case Op::ext_i32_i64_s:
    case Op::ext_i32_i64_u:
    case Op::trunc_i64_i32:
      return a;
    default:
      return {};
  }
}

}  // namespace halyard::vm
