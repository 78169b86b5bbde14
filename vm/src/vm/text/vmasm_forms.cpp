#include "vm/text/vmasm_forms.h"

#include <algorithm>
#include <array>
#include <utility>

namespace halyard::vm {
namespace {

// Only what differs from the generic form: the operands that are read, in encoding order, with commas.
constexpr std::pair<Op, std::string_view> kSpecialForms[] = {
    {Op::global_store_i32, "$1, $0"},
    {Op::global_store_i64, "$1, $0"},
    {Op::global_store_f32, "$1, $0"},
    {Op::global_store_f64, "$1, $0"},
    {Op::global_load_ref, "$0 : $1"},
    {Op::global_store_ref, "$2, $0 : $1"},
    {Op::global_load_indirect_ref, "$0 : $1"},
    {Op::global_store_indirect_ref, "$0 : $1, $2"},
    {Op::list_alloc, "$1_:_$l0"},
    {Op::list_get_ref, "$0, $1 : $2"},
    {Op::select_i32, "$0_?_$1_:_$2"},
    {Op::select_i64, "$0_?_$1_:_$2"},
    {Op::select_f32, "$0_?_$1_:_$2"},
    {Op::select_f64, "$0_?_$1_:_$2"},
    {Op::select_ref, "$0_?_$2_:_$3_->_$1"},
    {Op::switch_i32, "$0~[$2] else $1"},
    {Op::switch_i64, "$0~[$2] else $1"},
    {Op::switch_f32, "$0~[$2] else $1"},
    {Op::switch_f64, "$0~[$2] else $1"},
    {Op::switch_ref, "$0~[$3] else $2_->_$1"},
    {Op::cast_any_ref, "$0_:_$t_->_$1"},
    {Op::buffer_store_i8, "$2, $0, $1"},
    {Op::buffer_store_i16, "$2, $0, $1"},
    {Op::buffer_store_i32, "$2, $0, $1"},
    {Op::buffer_store_i64, "$2, $0, $1"},
    {Op::buffer_store_f32, "$2, $0, $1"},
    {Op::buffer_store_f64, "$2, $0, $1"},
    {Op::br, "$e0"},
    {Op::break_, "$e0"},
    {Op::yield, "$e0"},
    {Op::cond_br, "$0, $e1, $e3"},
    {Op::cond_break, "$0, $e1"},
    {Op::br_table, "$0 { default~: $e1~$3 }"},
    {Op::call, "$0~$s~($1)"},
    {Op::call_variadic, "$0 segments~[$1]~($2)"},
    {Op::call_yieldable, "$0~$s~($1) -> $b2~($r3)"},
    {Op::call_variadic_yieldable, "$0 segments~[$1]~($2) -> $b3~($r4)"},
};

std::array<std::string, kOpCount> make_forms() {
  std::array<std::string, kOpCount> forms;
  for (size_t i = 0; i < kOpCount; ++i) {
    for (size_t operand = 0; operand < kOps[i].operand_count; ++operand) {
      if (kOps[i].operands[operand].writes) continue;
      if (!forms[i].empty()) forms[i] += ", ";
      forms[i] += "$" + std::to_string(operand);
    }
  }
  for (const auto& [op, form] : kSpecialForms) forms[static_cast<size_t>(op)] = form;
  return forms;
}

std::vector<std::pair<std::string_view, Op>> make_mnemonics() {
  std::vector<std::pair<std::string_view, Op>> mnemonics;
  for (size_t i = 0; i < kOpCount; ++i)
    if (!(kOps[i].flags & (MARKER | PREFIX))) mnemonics.emplace_back(kOps[i].mnemonic, static_cast<Op>(i));
  std::ranges::sort(mnemonics);
  return mnemonics;
}

const std::vector<std::pair<std::string_view, Op>>& mnemonics() {
  static const auto& sorted = *new auto(make_mnemonics());  // never destroyed: threads may be at work at exit
  return sorted;
}

}  // namespace

const std::string& text_form(Op op) {
  static const auto& forms = *new auto(make_forms());  // likewise
  return forms[static_cast<size_t>(op)];
}

bool is_last_list(Op op, std::string_view rest) {
  return rest.size() == 4 && rest.starts_with(", $") && rest[3] >= '0' && rest[3] <= '9' &&
         info(op).operands[static_cast<size_t>(rest[3] - '0')].kind == OperandKind::reg_list;
}

Op op_by_mnemonic(std::string_view mnemonic) {
  const auto found =
      std::ranges::lower_bound(mnemonics(), mnemonic, {}, &std::pair<std::string_view, Op>::first);
  return found != mnemonics().end() && found->first == mnemonic ? found->second : Op::kCount;
}

std::vector<std::string_view> writable_mnemonics() {
  std::vector<std::string_view> names;
  for (const auto& [mnemonic, op] : mnemonics()) names.push_back(mnemonic);
  return names;
}

}  // namespace halyard::vm
