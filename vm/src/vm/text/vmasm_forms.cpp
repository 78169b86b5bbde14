#include "vm/text/vmasm_forms.h"

#include <algorithm>
#include <array>
#include <utility>

namespace halyard::vm {
namespace {

// The forms that differ from the generic one.
constexpr std::pair<Op, std::string_view> kSpecialForms[] = {
#define OP(set, byte, identifier, mnemonic, since, flags, operands)
#define TEXT(identifier, form) {Op::identifier, form},
#include "vm/format/opcodes.inc"
#undef TEXT
#undef OP
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
    if (!(kOps[i].flags & (MARKER | PREFIX))) mnemonics.emplace_back(kOps[i].mnemonic(), static_cast<Op>(i));
  std::ranges::sort(mnemonics);
  return mnemonics;
}

const std::vector<std::pair<std::string_view, Op>>& mnemonics() {
  static const auto& sorted =
      *new auto(make_mnemonics());  // never destroyed: other threads may still run at exit
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

bool is_implicit(std::string_view mnemonic) {
  return std::ranges::any_of(kOps, [&](const OpInfo& op) {
    return (op.flags & (MARKER | PREFIX)) != 0 && op.mnemonic() == mnemonic;
  });
}

std::vector<std::string_view> writable_mnemonics() {
  std::vector<std::string_view> names;
  for (const auto& [mnemonic, op] : mnemonics()) names.push_back(mnemonic);
  return names;
}

}  // namespace halyard::vm
