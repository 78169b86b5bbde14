// Each row is a constant with the name of its opcode, and the table names a constant for each row of
// opcodes.inc: an opcode without a form does not compile, and neither does a form without an opcode.
#include "aot/forms.h"

#include <iterator>

namespace halyard::aot {

namespace {

using Kind = Form::Kind;

namespace forms {
#define VALUE(op, expression) constexpr Form op = {Kind::value, expression, {}, {}, {}};
#define DO(op, effect) constexpr Form op = {Kind::statement, effect, {}, {}, {}};
#define GUARDED(op, condition, failure, effect) \
  constexpr Form op = {Kind::guarded, effect, condition, failure, {}};
#define TRY(op, call) constexpr Form op = {Kind::attempt, call, {}, {}, {}};
#define OWN(op, member) constexpr Form op = {Kind::own, {}, {}, {}, Form::Own::member};
#include "aot/forms.inc"
#undef VALUE
#undef DO
#undef GUARDED
#undef TRY
#undef OWN
}  // namespace forms

constexpr Form kForms[] = {
#define OP(set, byte, op, mnemonic, since, flags, operands) forms::op,
#include "vm/format/opcodes.inc"
#undef OP
};
static_assert(std::size(kForms) == vm::kOpCount);

}  // namespace

const Form& form_of(vm::Op op) { return kForms[static_cast<size_t>(op)]; }

}  // namespace halyard::aot
