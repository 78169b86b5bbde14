// The templates run with a number that writes a statement of C for each operation.
#include "aot/elementary.h"

#include <fmt/core.h>

#include <vector>

#include "vm/decode/elementary.h"

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
    Real real(*statements, fmt::format("t{}", statements->size()));
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
Real less(const Real& x, const Real& y, const Real& then, const Real& other) {
  // No branch, which keeps gcc from computing several elements at once.
  return Real::of(fmt::format("vm_if_less({}, {}, {}, {})", x.text(), y.text(), then.text(), other.text()), x,
                  y, then, other);
}
Real magnitude(const Real& x) { return Real::of(fmt::format("fabs({})", x.text()), x); }
Real copy_sign(const Real& x, const Real& y) {
  return Real::of(fmt::format("copysign({}, {})", x.text(), y.text()), x, y);
}

template <typename Function>
std::string part(std::string_view name, Function function) {
  Statements statements;
  const Real result = function(Real(statements, "wide"));
  // The templates compute powers that a short polynomial does not use.
  std::vector<bool> used(statements.size());
  used[result.index()] = true;
  for (size_t i = statements.size(); i-- > 0;)
    for (const size_t use : statements[i].uses) used[use] = used[use] || used[i];
  std::string text;
  for (size_t i = 0; i < statements.size(); ++i)
    if (used[i]) text += fmt::format("    const double t{} = {};\n", i, statements[i].expression);
  return fmt::format(
      "/*@@ {0} */\nstatic inline float {0}(float x)\n{{\n    const double wide = (double)x;\n{1}    return "
      "vm_unless_nan(x, (float){2});\n}}\n\n",
      name, text, result.text());
}

}  // namespace

std::string elementary_parts() {
  return part("vm_exp", vm::elementary::exponential<Real>) +
         part("vm_tanh", vm::elementary::hyperbolic_tangent<Real>) +
         part("vm_erf", vm::elementary::error_function<Real>);
}

}  // namespace halyard::aot
