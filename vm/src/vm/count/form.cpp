// Sums, quotients and steps of forms.
#include "vm/count/form.h"

#include <algorithm>
#include <span>
#include <utility>

namespace halyard::vm {

namespace {

constexpr int64_t kMaxNumber = int64_t{1} << 40;  // of divisors and factors, so that sums of products fit

bool product_fits(int64_t a, int64_t b, int64_t& product) {
  return !__builtin_mul_overflow(a, b, &product) && product > -kMaxNumber && product < kMaxNumber;
}

}  // namespace

bool Form::add(const Term& term) {
  const auto end = terms_.begin() + static_cast<ptrdiff_t>(count_);
  const auto key = [](const Term& each) { return std::pair(each.dimension, each.divisor); };
  const auto at = std::lower_bound(terms_.begin(), end, term,
                                   [&](const Term& a, const Term& b) { return key(a) < key(b); });
  if (at != end && key(*at) == key(term)) {
    at->factor += term.factor;
    if (at->factor == 0) {
      std::move(at + 1, end, at);
      terms_[--count_] = {};
      return true;
    }
    return at->factor > -kMaxNumber && at->factor < kMaxNumber;
  }
  if (count_ == kMaxTerms) return false;
  std::move_backward(at, end, end + 1);
  *at = term;
  ++count_;
  return true;
}

std::optional<Form> Form::of(const Scalar& scalar) {
  if (!scalar.is_known || !scalar.is_linear || scalar.compare != Scalar::Compare::none) return {};
  Form form;
  int64_t ignored = 0;
  if (!product_fits(scalar.value, 1, ignored)) return {};
  form.constant_ = scalar.value;
  for (int d = 0; d < kMaxDimensions; ++d) {
    const int64_t slope = scalar.slope[static_cast<size_t>(d)];
    if (!(scalar.varies >> d & 1) || slope == 0) continue;
    if (!product_fits(slope, 1, ignored) || !form.add({d, 1, slope})) return {};
  }
  return form;
}

uint32_t Form::dimensions() const {
  uint32_t all = 0;
  for (const Term& term : std::span(terms_).first(count_)) all |= 1u << term.dimension;
  return all;
}

Form Form::along(uint32_t dimensions) const {
  Form part;
  for (const Term& term : std::span(terms_).first(count_))
    if (dimensions >> term.dimension & 1) part.terms_[part.count_++] = term;
  return part;
}

Form Form::without(uint32_t dimensions) const {
  Form part = along(~dimensions);
  part.constant_ = constant_;
  return part;
}

std::optional<Form> Form::times(int64_t factor) const {
  if (factor == 0) return Form();
  Form result = *this;
  if (!product_fits(constant_, factor, result.constant_)) return {};
  for (Term& term : std::span(result.terms_).first(count_))
    if (!product_fits(term.factor, factor, term.factor)) return {};
  return result;
}

std::optional<Form> Form::plus(const Form& other, int64_t factor) const {
  const std::optional<Form> addend = other.times(factor);
  if (!addend) return {};
  Form result = *this;
  if (!product_fits(constant_ + addend->constant_, 1, result.constant_)) return {};
  for (const Term& term : std::span(addend->terms_).first(addend->count_))
    if (!result.add(term)) return {};
  return result;
}

std::optional<Form> Form::quotient(int64_t divisor) const {
  const std::span<const Term> terms = std::span(terms_).first(count_);
  Form result;
  if (constant_ % divisor == 0 &&
      std::ranges::all_of(terms, [&](const Term& term) { return term.factor % divisor == 0; })) {
    result = *this;
    result.constant_ /= divisor;
    for (Term& term : std::span(result.terms_).first(count_)) term.factor /= divisor;
    return result;
  }
  if (constant_ != 0 || count_ == 0 || count_ > 2) return {};
  // c * floor(i / p), or c * (floor(i / p) - m * floor(i / (p * m))), which is c * (i / p % m). With c * n
  // for the divisor, the quotient is floor(i / (p * n)), or if n divides m, (i / (p * n)) % (m / n).
  const Term& low = terms[0];
  if (low.factor <= 0 || divisor % low.factor != 0) return {};
  const int64_t rest = divisor / low.factor;
  Term quotient = {low.dimension, 0, 1};
  if (!product_fits(low.divisor, rest, quotient.divisor)) return {};
  result.add(quotient);
  if (count_ == 1) return result;
  const Term& high = terms[1];
  if (high.dimension != low.dimension || high.factor % low.factor != 0 || high.divisor % low.divisor != 0)
    return {};
  const int64_t modulus = high.divisor / low.divisor;
  if (high.factor / low.factor != -modulus || modulus % rest != 0) return {};
  result.add({low.dimension, high.divisor, -(modulus / rest)});
  return result;
}

std::optional<Form> Form::remainder(int64_t divisor) const {
  const std::optional<Form> whole = quotient(divisor);
  return whole ? plus(*whole, -divisor) : std::nullopt;
}

// With divisors p < q < r that divide each other, i is made of the digits i / p % (q / p), i / q % (r / q)
// and i / r. Each combination of them occurs if r divides the number of iterations.
std::optional<Form::Steps> Form::steps(const std::array<uint64_t, kMaxDimensions>& trips) const {
  Steps steps = {.begin = constant_};
  for (size_t i = 0; i < count_;) {
    const int dimension = terms_[i].dimension;
    int64_t stride = 0;
    for (; i < count_ && terms_[i].dimension == dimension; ++i) {
      const int64_t divisor = terms_[i].divisor;
      stride += terms_[i].factor;
      const bool is_last = i + 1 == count_ || terms_[i + 1].dimension != dimension;
      const int64_t next =
          is_last ? static_cast<int64_t>(trips[static_cast<size_t>(dimension)]) : terms_[i + 1].divisor;
      if (next <= 0 || next % divisor != 0 || steps.count == steps.steps.size()) return {};
      const int64_t digits = next / divisor;
      if (stride != 0 && digits > 1) steps.steps[steps.count++] = {stride, static_cast<uint64_t>(digits)};
      if (!product_fits(stride, digits, stride)) return {};
    }
  }
  return steps;
}

}  // namespace halyard::vm
