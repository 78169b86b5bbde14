// Arithmetic of polynomials, and their text.
#include "analysis/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace halyard::analysis {

Expression Symbols::opaque(std::string text, bool is_non_negative, const std::vector<Expression>& parts) {
  work_ += 100;
  if (text.size() > kMaxText) return fresh("an expression that is too long to print", is_non_negative);
  if (const auto known = numbers_.find(text); known != numbers_.end())
    return Expression::symbol(known->second);
  const auto number = static_cast<uint32_t>(symbols_.size());
  std::set<uint32_t> inside;
  for (const Expression& part : parts)
    for (const Expression::Term& term : part.terms()) inside.insert(term.product.begin(), term.product.end());
  numbers_.emplace(text, number);
  symbols_.push_back({std::move(text), {}, is_non_negative, {inside.begin(), inside.end()}});
  return Expression::symbol(number);
}

Expression Symbols::named(std::string_view text, bool is_non_negative) {
  return opaque(std::string(text.substr(0, kMaxText)), is_non_negative, {});
}

Expression Symbols::fresh(std::string_view origin, bool is_non_negative) {
  work_ += 100;
  const auto number = static_cast<uint32_t>(symbols_.size());
  symbols_.push_back({fmt::format("u{}", ++fresh_), std::string(origin), is_non_negative, {}});
  return Expression::symbol(number);
}

Expression Symbols::sum(const Expression& a, const Expression& b, int64_t sign) {
  work_ += a.terms_.size() + b.terms_.size();
  Expression made;
  auto left = a.terms_.begin();
  auto right = b.terms_.begin();
  bool overflows = false;
  const auto add = [&](const Expression::Product& product, int64_t x, int64_t y) {
    int64_t factor = 0;
    int64_t signed_y = 0;
    overflows = overflows || __builtin_mul_overflow(y, sign, &signed_y) ||
                __builtin_add_overflow(x, signed_y, &factor);
    if (factor != 0) made.terms_.push_back({product, factor});
  };
  while (left != a.terms_.end() || right != b.terms_.end()) {
    if (right == b.terms_.end() || (left != a.terms_.end() && left->product < right->product)) {
      add(left->product, left->factor, 0);
      ++left;
    } else if (left == a.terms_.end() || right->product < left->product) {
      add(right->product, 0, right->factor);
      ++right;
    } else {
      add(left->product, left->factor, right->factor);
      ++left;
      ++right;
    }
  }
  if (overflows || made.terms_.size() > kMaxTerms)
    return opaque(fmt::format("({} {} {})", text(a), sign < 0 ? '-' : '+', atom_text(b)),
                  sign > 0 && is_non_negative(a) && is_non_negative(b), {a, b});
  return made;
}

Expression Symbols::multiply(const Expression& a, const Expression& b) {
  work_ += 8 * (a.terms_.size() + 1) * (b.terms_.size() + 1);
  std::map<Expression::Product, int64_t> sums;
  bool overflows = a.terms_.size() * b.terms_.size() > kMaxTerms * kMaxTerms;
  for (const Expression::Term& x : a.terms_) {
    for (const Expression::Term& y : b.terms_) {
      if (overflows) break;
      Expression::Product product;
      std::ranges::merge(x.product, y.product, std::back_inserter(product));
      int64_t factor = 0;
      int64_t& sum = sums[product];
      overflows = __builtin_mul_overflow(x.factor, y.factor, &factor) ||
                  __builtin_add_overflow(sum, factor, &sum) || product.size() > kMaxDegree;
    }
  }
  Expression made;
  for (const auto& [product, factor] : sums)
    if (factor != 0) made.terms_.push_back({product, factor});
  if (overflows || made.terms_.size() > kMaxTerms)
    return opaque(fmt::format("({} * {})", atom_text(a), atom_text(b)),
                  is_non_negative(a) && is_non_negative(b), {a, b});
  return made;
}

Expression Symbols::divide(const Expression& a, const Expression& b) {
  const std::optional<int64_t> x = a.constant();
  const std::optional<int64_t> y = b.constant();
  if (x && y && *y != 0 && !(*x == INT64_MIN && *y == -1)) return *x / *y;
  if (b.is(1)) return a;
  if (a == b && !a.is(0)) return 1;
  if (y && *y > 1) {
    Expression made = a;
    if (std::ranges::all_of(made.terms_, [&](const auto& term) { return term.factor % *y == 0; })) {
      for (Expression::Term& term : made.terms_) term.factor /= *y;
      return made;
    }
  }
  return opaque(fmt::format("({} / {})", atom_text(a), atom_text(b)),
                is_non_negative(a) && is_non_negative(b), {a, b});
}

Expression Symbols::remainder(const Expression& a, const Expression& b) {
  const std::optional<int64_t> x = a.constant();
  const std::optional<int64_t> y = b.constant();
  if (x && y && *y != 0 && *y != -1) return *x % *y;
  if (y && *y > 0 && std::ranges::all_of(a.terms_, [&](const auto& term) { return term.factor % *y == 0; }))
    return 0;
  return opaque(fmt::format("({} % {})", atom_text(a), atom_text(b)), is_non_negative(a), {a, b});
}

Expression Symbols::round_down(const Expression& a, int64_t unit) {
  if (unit <= 1) return a;
  Expression whole;
  Expression rest;
  for (const Expression::Term& term : a.terms_)
    (term.factor % unit == 0 ? whole : rest).terms_.push_back(term);
  if (const auto constant = rest.constant()) return add(whole, *constant & -unit);
  int64_t left = 0;
  for (const Expression::Term& term : rest.terms_)
    if (term.product.empty()) left = term.factor & (unit - 1);
  for (const Expression::Term& term : rest.terms_) {
    if (!term.product.empty() || term.factor == left) continue;
    const int64_t units = term.factor - left;  // whole units, of any sign
    return add(add(whole, units), round_down(subtract(rest, units), unit));
  }
  if (left == unit - 1) {
    const Expression inner = subtract(rest, left);
    return add(whole,
               opaque(fmt::format("align({}, {})", text(inner), unit), is_non_negative(inner), {inner}));
  }
  return add(whole,
             opaque(fmt::format("round_down({}, {})", text(rest), unit), is_non_negative(rest), {rest}));
}

Expression Symbols::smaller(const Expression& a, const Expression& b) {
  if (is_at_least(b, a)) return a;
  if (is_at_least(a, b)) return b;
  return opaque(fmt::format("min({}, {})", text(a), text(b)), is_non_negative(a) && is_non_negative(b),
                {a, b});
}

Expression Symbols::larger(const Expression& a, const Expression& b) {
  if (is_at_least(a, b)) return a;
  if (is_at_least(b, a)) return b;
  return opaque(fmt::format("max({}, {})", text(a), text(b)), is_non_negative(a) || is_non_negative(b),
                {a, b});
}

Expression Symbols::function(std::string_view name, const std::vector<Expression>& arguments,
                             bool is_non_negative) {
  std::string written(name);
  written += '(';
  for (size_t i = 0; i < arguments.size(); ++i) written += (i == 0 ? "" : ", ") + text(arguments[i]);
  return opaque(written + ")", is_non_negative, arguments);
}

bool Symbols::is_non_negative(const Expression& a) const {
  return std::ranges::all_of(a.terms_, [&](const Expression::Term& term) {
    return term.factor > 0 && std::ranges::all_of(term.product, [&](uint32_t symbol) {
             return symbols_[symbol].is_non_negative;
           });
  });
}

std::optional<int> Symbols::compare(const Expression& a, const Expression& b) {
  const Expression difference = subtract(a, b);
  if (const auto constant = difference.constant()) return *constant < 0 ? -1 : (*constant > 0 ? 1 : 0);
  // A constant of at least 1 makes the sign sure.
  if (is_non_negative(subtract(difference, 1))) return 1;
  if (is_non_negative(subtract(subtract(b, a), 1))) return -1;
  return std::nullopt;
}

std::string Symbols::atom_text(const Expression& a) const {
  const bool is_simple = a.terms_.size() <= 1 && (a.constant().has_value() || a.terms_.front().factor == 1);
  return is_simple ? text(a) : "(" + text(a) + ")";
}

std::string Symbols::text(const Expression& a) const {
  work_ += 20 * a.terms_.size();
  if (a.terms_.empty()) return "0";
  std::string written;
  // The terms with most symbols first, the constant last.
  for (auto term = a.terms_.rbegin(); term != a.terms_.rend(); ++term) {
    const bool is_negative = term->factor < 0;
    if (!written.empty()) {
      written += is_negative ? " - " : " + ";
    } else if (is_negative) {
      written += '-';
    }
    const uint64_t size =
        is_negative ? 0 - static_cast<uint64_t>(term->factor) : static_cast<uint64_t>(term->factor);
    std::string factors;
    if (size != 1 || term->product.empty()) factors = fmt::format("{}", size);
    for (const uint32_t symbol : term->product)
      factors += (factors.empty() ? "" : "*") + symbols_[symbol].text;
    written += factors;
  }
  return written;
}

void Symbols::list_origins(const Expression& a, std::map<std::string, std::string>& origins) const {
  std::vector<uint32_t> open;
  std::set<uint32_t> seen;
  for (const Expression::Term& term : a.terms_)
    open.insert(open.end(), term.product.begin(), term.product.end());
  while (!open.empty()) {
    const uint32_t next = open.back();
    open.pop_back();
    if (!seen.insert(next).second) continue;
    const Symbol& symbol = symbols_[next];
    if (!symbol.origin.empty()) origins.emplace(symbol.text, symbol.origin);
    open.insert(open.end(), symbol.inside.begin(), symbol.inside.end());
  }
}

bool Symbols::depends_on_data(const Expression& a) const {
  std::map<std::string, std::string> origins;
  list_origins(a, origins);
  return !origins.empty();
}

}  // namespace halyard::analysis
