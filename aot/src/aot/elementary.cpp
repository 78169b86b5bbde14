// The templates run with a number that writes a statement of C for each operation.
#include "aot/elementary.h"

#include <fmt/core.h>

#include <vector>

#include "vm/elementary/functions.h"

namespace halyard::aot {

namespace {

struct Statement {
  std::string expression;
  std::vector<size_t> uses;  // the statements whose variables it reads
};
using Statements = std::vector<Statement>;

class Real {
 public:
  Real(double value) : text_(fmt::format("{:a}", value)) {}  // hexadecimal: exact
  Real(Statements& statements, std::string text) : statements_(&statements), text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  size_t index() const { return index_; }

  // A variable with the value of the expression, of which at least one operand is not a constant.
  template <typename... Operands>
  static Real of(std::string expression, const Operands&... operands) {
    Statements* statements = nullptr;
    Statement made = {.expression = std::move(expression), .uses = {}};
    const auto add = [&](const Real& operand) {
      if (operand.statements_) statements = operand.statements_;
      if (operand.is_variable_) made.uses.push_back(operand.index_);
    };
    (add(operands), ...);
    Real real(*statements,
              fmt::format("t{}", statements->size()));  // NOLINT(clang-analyzer-core.CallAndMessage)
    real.is_variable_ = true;
    real.index_ = statements->size();
    statements->push_back(std::move(made));
    return real;
  }

  friend Real operator+(const Real& x, const Real& y) { return binary(x, '+', y); }
  friend Real operator-(const Real& x, const Real& y) { return binary(x, '-', y); }
  friend Real operator*(const Real& x, const Real& y) { return binary(x, '*', y); }
  friend Real operator/(const Real& x, const Real& y) { return binary(x, '/', y); }

 private:
  static Real binary(const Real& x, char op, const Real& y) {
    return of(fmt::format("{} {} {}", x.text_, op, y.text_), x, y);
  }

  Statements* statements_ = nullptr;
  std::string text_;
  bool is_variable_ = false;
  size_t index_ = 0;
};

Real power_of_two(const Real& nearest) {
  return Real::of(fmt::format("vm_f64((vm_bits_f64({}) + 1023) << 52)", nearest.text()), nearest);
}
Real exponent(const Real& x) {
  return Real::of(fmt::format("(double)((int64_t)(vm_bits_f64({}) >> 52) - 1023)", x.text()), x);
}
Real bit(const Real& nearest, unsigned i, const Real& then, const Real& other) {
  return Real::of(fmt::format("vm_if_bit({}, {}, {}, {})", nearest.text(), i, then.text(), other.text()),
                  nearest, then, other);
}
Real less(const Real& x, const Real& y, const Real& then, const Real& other) {
  // No branch, which keeps gcc from computing several elements at once.
  return Real::of(fmt::format("vm_if_less({}, {}, {}, {})", x.text(), y.text(), then.text(), other.text()), x,
                  y, then, other);
}
Real magnitude(const Real& x) { return Real::of(fmt::format("fabs({})", x.text()), x); }
Real copy_sign(const Real& x, const Real& y) {
  return Real::of(fmt::format("copysign({}, {})", x.text(), y.text()), x, y);
}

// The statements that compute the result, and at the end its text.
template <typename... Arguments>
std::pair<std::string, std::string> body(Real (*function)(const Arguments&...), Statements& statements,
                                         const Arguments&... arguments) {
  const Real result = function(arguments...);
  // The templates compute powers that a short polynomial does not use.
  std::vector<bool> used(statements.size());
  used[result.index()] = true;
  for (size_t i = statements.size(); i-- > 0;)
    for (const size_t use : statements[i].uses) used[use] = used[use] || used[i];
  std::string text;
  for (size_t i = 0; i < statements.size(); ++i)
    if (used[i]) text += fmt::format("    const double t{} = {};\n", i, statements[i].expression);
  return {text, result.text()};
}

std::string unary(std::string_view name, Real (*function)(const Real&)) {
  Statements statements;
  const auto [text, result] = body(function, statements, Real(statements, "wide"));
  return fmt::format(
      "/*@@ vm_{0} */\nstatic inline float vm_{0}(float x)\n{{\n    const double wide = (double)x;\n{1}    "
      "return "
      "vm_unless_nan(x, (float){2});\n}}\n\n",
      name, text, result);
}

std::string binary(std::string_view name, Real (*function)(const Real&, const Real&), bool one) {
  Statements statements;
  const auto [text, result] =
      body(function, statements, Real(statements, "wide_x"), Real(statements, "wide_y"));
  return fmt::format(
      "/*@@ vm_{0} */\nstatic inline float vm_{0}(float x, float y)\n{{\n    const double wide_x = "
      "(double)x, wide_y = "
      "(double)y;\n{1}    return {3}vm_unless_nans(x, y, (float){2});\n}}\n\n",
      name, text, result, one ? "x == 1.0f || y == 0.0f ? 1.0f : " : "");
}

}  // namespace

std::string elementary_parts() {
  std::string parts;
#define UNARY(name, function) parts += unary(#name, vm::elementary::function<Real>);
#define BINARY(name, in_c, function, one) parts += binary(#name, vm::elementary::function<Real>, one);
#include "vm/elementary/functions.inc"
#undef UNARY
#undef BINARY
  return parts;
}

}  // namespace halyard::aot
