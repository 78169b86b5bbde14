// Expression: an integer of a program before it runs: a polynomial in symbols, such as the dimensions of its
// inputs. A value that is no polynomial (a quotient, a maximum, an element of a tensor) is a symbol of its
// own. Polynomials do not wrap; a coefficient that would overflow makes the whole expression a symbol.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halyard::analysis {

class Symbols;

class Expression {
 public:
  using Product = std::vector<uint32_t>;  // symbols, sorted; a square has its symbol twice
  struct Term {
    Product product;  // empty: the constant
    int64_t factor;   // not 0
    bool operator==(const Term&) const = default;
  };

  Expression() = default;  // 0
  Expression(int64_t value) {
    if (value != 0) terms_.push_back({{}, value});
  }
  static Expression symbol(uint32_t symbol) {
    Expression made;
    made.terms_.push_back({{symbol}, 1});
    return made;
  }

  std::optional<int64_t> constant() const {
    if (terms_.empty()) return 0;
    if (terms_.size() == 1 && terms_.front().product.empty()) return terms_.front().factor;
    return std::nullopt;
  }
  bool is(int64_t value) const { return constant() == value; }
  const std::vector<Term>& terms() const { return terms_; }  // sorted by product
  bool operator==(const Expression&) const = default;

 private:
  friend class Symbols;
  std::vector<Term> terms_;
};

// The symbols of an analysis, and arithmetic, which may need new ones.
class Symbols {
 public:
  // The symbol with this text, such as "input0[1]".
  Expression named(std::string_view text, bool is_non_negative);
  // A symbol that differs from all others; `origin` says where its value comes from.
  Expression fresh(std::string_view origin, bool is_non_negative = false);

  Expression add(const Expression& a, const Expression& b) { return sum(a, b, 1); }
  Expression subtract(const Expression& a, const Expression& b) { return sum(a, b, -1); }
  Expression multiply(const Expression& a, const Expression& b);
  // Rounds toward 0. `b` is not 0.
  Expression divide(const Expression& a, const Expression& b);
  Expression remainder(const Expression& a, const Expression& b);
  // The operand rounded down to a multiple of `unit`, a power of two: a & -unit.
  Expression round_down(const Expression& a, int64_t unit);
  Expression smaller(const Expression& a, const Expression& b);
  Expression larger(const Expression& a, const Expression& b);
  // A symbol for any other function.
  Expression function(std::string_view name, const std::vector<Expression>& arguments, bool is_non_negative);

  // Whether the value cannot be negative, because all factors are positive and no symbol can be negative.
  bool is_non_negative(const Expression& a) const;
  // -1, 0 or 1 if the sign of a - b is the same for all values of the symbols.
  std::optional<int> compare(const Expression& a, const Expression& b);
  bool is_at_least(const Expression& a, const Expression& b) { return is_non_negative(subtract(a, b)); }

  std::string text(const Expression& a) const;  // "4*input0[0] + 64"
  // Origins of the fresh symbols in the expression, and of those inside its functions: "u1 = an element of
  // ...".
  void list_origins(const Expression& a, std::map<std::string, std::string>& origins) const;
  // Grows with the time and memory that the arithmetic has taken.
  uint64_t work() const { return work_; }
  // Whether an element of a tensor, or something else that no shape determines, is in it.
  bool depends_on_data(const Expression& a) const;

 private:
  static constexpr size_t kMaxTerms = 32;
  static constexpr size_t kMaxDegree = 8;
  static constexpr size_t kMaxText = 400;

  struct Symbol {
    std::string text;
    std::string origin;  // of a fresh one
    bool is_non_negative = false;
    std::vector<uint32_t> inside;  // the symbols of a function's arguments
  };
  Expression sum(const Expression& a, const Expression& b, int64_t sign);
  Expression opaque(std::string text, bool is_non_negative, const std::vector<Expression>& parts);
  std::string atom_text(const Expression& a) const;

  std::vector<Symbol> symbols_;
  std::map<std::string, uint32_t, std::less<>> numbers_;
  uint32_t fresh_ = 0;
  mutable uint64_t work_ = 0;
};

}  // namespace halyard::analysis
