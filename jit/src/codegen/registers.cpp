// Data-flow analyses over decoded code, iterated to a fixed point: backwards for liveness, forwards for forms
// and constants.
#include "codegen/registers.h"

#include <algorithm>

namespace halyard::jit {

using vm::Bank;
using vm::DecodedOp;
using vm::Op;
using vm::Word;

namespace {

bool is(const Word* word, DecodedOp op) { return word->op == static_cast<uint16_t>(op); }

Form form_of(Bank bank) {
  switch (bank) {
    case Bank::f32:
      return Form::f32;
    case Bank::i64:
      return Form::i64;
    case Bank::f64:
      return Form::f64;
    default:
      return Form::i32;
  }
}

void write_single(std::span<Form> forms, uint32_t slot, Form form) {
  if ((slot ^ 1u) < forms.size() && is_pair(forms[slot ^ 1u])) forms[slot ^ 1u] = Form::i32;
  forms[slot] = form;
}

// The form of a slot at a join of two paths. If one path did not write the slot, the form of the other path
// applies.
Form merged(Form a, Form b) {
  if (a == b || b == Form::frame) return a;
  return a == Form::frame ? b : Form::i32;
}

}  // namespace

Registers::Registers(std::span<const Word> words, std::span<const uint16_t> lists, uint32_t slots,
                     const OwnCalls& own_calls)
    : words_(words),
      lists_(lists),
      slots_(slots),
      own_calls_(own_calls),
      stride_((slots + 63) / 64),
      live_(words.size() * stride_),
      forms_(words.size() * slots),
      constants_(words.size() * slots),
      single_((slots + 1) / 2),
      pair_((slots + 1) / 2),
      float_(slots),
      double_(slots) {
  for (uint32_t at = 0; at < words.size(); at += vm::word_count(words[at])) starts_.push_back(at);
  find_uses();
  spread_floats();
  find_live();
  find_forms();
  find_constants();
}

void Registers::note(uint32_t slot, Bank bank) {
  (vm::is_wide(bank) ? pair_ : single_)[slot / 2] = true;
  if (bank == Bank::f32) float_[slot] = true;
  if (bank == Bank::f64) double_[slot] = true;
}

// If one register of a move holds a float, the other one does too. Without this rule the float would be
// converted to bits and back.
void Registers::spread_floats() {
  const auto join = [](std::vector<bool>& holds, uint16_t a, uint16_t b) {
    if (holds[a] == holds[b]) return false;
    holds[a] = holds[b] = true;
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t at : starts_) {
      const Word* const word = &words_[at];
      if (is(word, DecodedOp::move_32)) changed |= join(float_, word->a, word->b);
      if (is(word, DecodedOp::move_64)) changed |= join(double_, word->a, word->b);
    }
  }
}

void Registers::note_own_call(const Word* word) {
  const vm::CallSite& site = vm::call_site(word);
  for (size_t i = 0; i < own_calls_.arguments().size(); ++i)
    note(lists_[site.arguments + i] & vm::kRegisterMask,
         own_calls_.arguments()[i] & vm::kWideBit ? Bank::i64 : Bank::i32);
  for (size_t i = 0; i < own_calls_.wide_results().size(); ++i)
    note(lists_[site.results + i] & vm::kRegisterMask, own_calls_.wide_results()[i] ? Bank::i64 : Bank::i32);
}

void Registers::note_return(const Word* word) {
  for (const uint16_t reg : OwnCalls::returned(word, lists_.data()))
    note(reg & vm::kRegisterMask, reg & vm::kWideBit ? Bank::i64 : Bank::i32);
}

void Registers::find_uses() {
  for (const uint32_t at : starts_) {
    const Word* const word = &words_[at];
    if (is(word, DecodedOp::move_32) || is(word, DecodedOp::move_64)) {
      const Bank bank = is(word, DecodedOp::move_32) ? Bank::i32 : Bank::i64;
      note(word->a, bank);
      note(word->b, bank);
    }
    if (own_calls_.is_call(word)) note_own_call(word);
    if (own_calls_ && OwnCalls::returns(word)) note_return(word);
    if (word->op >= vm::kOpCount) continue;
    const vm::OpInfo& op = vm::info(static_cast<Op>(word->op));
    if (!vm::is_compiled(static_cast<Op>(word->op)) || word->op == static_cast<uint16_t>(Op::discard_refs))
      continue;
    size_t index = 0;
    for (size_t i = 0; i < op.operand_count; ++i) {
      if (op.operands[i].kind != vm::OperandKind::reg) continue;
      const uint16_t reg = vm::field(word, index++);
      if (op.operands[i].bank != Bank::ref && op.operands[i].bank != Bank::none)
        note(reg, op.operands[i].bank);
    }
  }
}

// Passes the registers of a call to `visit`. Only for recursive calls the types of arguments and results are
// known, and so whether they are pairs.
template <typename Visit>
void Registers::for_each_value(const Word* word, Visit visit) const {
  if (!own_calls_.is_call(word)) return vm::for_each_value(word, lists_, visit);
  const vm::CallSite& site = vm::call_site(word);
  const auto each = [&](uint32_t entry, bool wide, bool writes) {
    const uint32_t reg = entry & vm::kRegisterMask;
    visit(reg, writes);
    if (wide) visit(reg + 1u, writes);
  };
  for (size_t i = 0; i < own_calls_.arguments().size(); ++i)
    each(lists_[site.arguments + i], (own_calls_.arguments()[i] & vm::kWideBit) != 0, false);
  for (size_t i = 0; i < own_calls_.wide_results().size(); ++i)
    each(lists_[site.results + i], own_calls_.wide_results()[i], true);
}

void Registers::find_live() {
  if (stride_ == 0) return;
  std::vector<uint64_t> now(stride_);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = starts_.size(); i-- > 0;) {
      const uint32_t at = starts_[i];
      std::ranges::fill(now, 0);
      vm::for_each_successor(words_, at, [&](uint32_t next) {
        for (size_t k = 0; k < stride_; ++k) now[k] |= live_[next * stride_ + k];
      });
      const auto visit = [&](bool wanted) {
        for_each_value(&words_[at], [&](uint32_t slot, bool writes) {
          if (slot >= slots_ || writes != wanted) return;
          const uint64_t bit = uint64_t{1} << (slot % 64);
          now[slot / 64] = writes ? now[slot / 64] & ~bit : now[slot / 64] | bit;
        });
      };
      visit(true);
      visit(false);
      uint64_t* const before = &live_[at * stride_];
      if (std::equal(now.begin(), now.end(), before)) continue;
      std::ranges::copy(now, before);
      changed = true;
    }
  }
}

void Registers::write_forms(const Word* word, std::span<Form> forms) const {
  if (is(word, DecodedOp::enter_compiled)) return;
  if (is(word, DecodedOp::move_32)) {
    const Form from = forms[word->a];
    return write_single(forms, word->b, from == Form::f32 ? Form::f32 : Form::i32);
  }
  if (is(word, DecodedOp::move_64)) {
    const Form from = forms[word->a] == Form::f64 && forms[word->a + 1u] == Form::f64 ? Form::f64 : Form::i64;
    forms[word->b] = forms[word->b + 1u] = from;
    return;
  }
  if (own_calls_.is_call(word)) {
    for (size_t i = 0; i < own_calls_.wide_results().size(); ++i) {
      const uint32_t reg = lists_[vm::call_site(word).results + i] & vm::kRegisterMask;
      if (own_calls_.wide_results()[i]) {
        forms[reg] = forms[reg + 1u] = Form::i64;
      } else {
        write_single(forms, reg, Form::i32);
      }
    }
    return;
  }
  if (word->op >= vm::kOpCount) return;
  const vm::OpInfo& op = vm::info(static_cast<Op>(word->op));
  if (!vm::is_compiled(static_cast<Op>(word->op))) return;
  size_t index = 0;
  for (size_t i = 0; i < op.operand_count; ++i) {
    const vm::Operand& operand = op.operands[i];
    if (operand.kind != vm::OperandKind::reg) continue;
    const uint16_t reg = vm::field(word, index++);
    if (!operand.writes || operand.bank == Bank::ref) continue;
    const Form form = form_of(operand.bank);
    if (is_pair(form)) {
      forms[reg] = forms[reg + 1u] = form;
    } else {
      write_single(forms, reg, form);
    }
  }
}

// An instruction that is not compiled ends compiled code: all live registers are stored to the frame, and the
// next entry loads them from the frame.
void Registers::find_forms() {
  if (slots_ == 0) return;
  std::vector<Form> now(slots_);
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t at : starts_) {
      const std::span<const Form> before = forms(at);
      std::ranges::copy(before, now.begin());
      const Word* const word = &words_[at];
      const bool leaves = word->op < vm::kOpCount && !vm::is_compiled(static_cast<Op>(word->op));
      if (!own_calls_.is_call(word) &&
          (leaves || is(word, DecodedOp::call_import) || is(word, DecodedOp::copy_ref)))
        continue;
      write_forms(word, now);
      vm::for_each_successor(words_, at, [&](uint32_t next) {
        for (uint32_t slot = 0; slot < slots_; ++slot) {
          Form& form = forms_[size_t{next} * slots_ + slot];
          const Form both = merged(form, now[slot]);
          changed |= both != form;
          form = both;
        }
      });
    }
  }
}

void Registers::write_constants(const Word* word, std::span<Known> known) const {
  const auto put = [&](uint32_t slot, uint32_t bits) { known[slot] = {Known::one, bits}; };
  if (is(word, DecodedOp::move_32)) {
    known[word->b] = known[word->a];
    return;
  }
  if (is(word, DecodedOp::move_64)) {
    const Known low = known[word->a];
    const Known high = known[word->a + 1u];
    known[word->b] = low;
    known[word->b + 1u] = high;
    return;
  }
  switch (word->op < vm::kOpCount ? static_cast<Op>(word->op) : Op::kCount) {
    case Op::const_i32:
    case Op::const_f32:
      return put(word->a, word->wide());
    case Op::const_i32_zero:
    case Op::const_f32_zero:
      return put(word->a, 0);
    case Op::const_i64:
    case Op::const_f64:
      put(word->a, word[1].low());
      return put(word->a + 1u, word[1].wide());
    case Op::const_i64_zero:
    case Op::const_f64_zero:
      put(word->a, 0);
      return put(word->a + 1u, 0);
    default:
      break;
  }
  vm::for_each_value(word, lists_, [&](uint32_t slot, bool writes) {
    if (writes && slot < slots_) known[slot] = {Known::varies, 0};
  });
  if (!is(word, DecodedOp::call_import) && word->op != static_cast<uint16_t>(Op::call)) return;
  // A result may be a pair.
  const vm::CallSite& site = vm::call_site(word);
  for (uint32_t i = 0; i < site.result_count; ++i) {
    const uint16_t result = lists_[site.results + i];
    if (result & vm::kRefBit) continue;
    for (uint32_t slot = result; slot < std::min<uint32_t>(result + 2u, slots_); ++slot)
      known[slot] = {Known::varies, 0};
  }
}

void Registers::find_constants() {
  if (slots_ == 0) return;
  for (uint32_t slot = 0; slot < slots_; ++slot) constants_[slot] = {Known::varies, 0};
  std::vector<Known> now(slots_);
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t at : starts_) {
      std::copy_n(&constants_[size_t{at} * slots_], slots_, now.begin());
      write_constants(&words_[at], now);
      vm::for_each_successor(words_, at, [&](uint32_t next) {
        for (uint32_t slot = 0; slot < slots_; ++slot) {
          Known& known = constants_[size_t{next} * slots_ + slot];
          if (now[slot].state == Known::unreached || known == now[slot] || known.state == Known::varies)
            continue;
          known = known.state == Known::unreached ? now[slot] : Known{Known::varies, 0};
          changed = true;
        }
      });
    }
  }
}

}  // namespace halyard::jit
