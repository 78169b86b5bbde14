// List instructions, for lists that pack values of the instruction's type. All other cases, and indices past
// the end, leave compiled code, because the interpreter converts values and reports errors.
#include "codegen/translator.h"
#include "vm/object/variant.h"

namespace halyard::jit {

using vm::ValueType;

namespace {

// The type of the elements that the instruction reads or writes; `none` if it accesses no element.
ValueType element_type(Op op) {
  switch (op) {
    case Op::list_get_i32:
    case Op::list_set_i32:
      return ValueType::i32;
    case Op::list_get_i64:
    case Op::list_set_i64:
      return ValueType::i64;
    case Op::list_get_f32:
    case Op::list_set_f32:
      return ValueType::f32;
    case Op::list_get_f64:
    case Op::list_set_f64:
      return ValueType::f64;
    default:
      return ValueType::none;
  }
}

}  // namespace

Translator::ListParts& Translator::use_list(uint16_t ref) {
  ListParts& parts = lists_[ref];
  if (parts.size) return parts;
  parts.data = b_.CreateAlloca(b_.getPtrTy());
  parts.size = b_.CreateAlloca(b_.getInt64Ty());
  parts.is_list = b_.CreateAlloca(b_.getInt1Ty());
  return parts;
}

void Translator::note_lists(const Word* word) {
  if (word->op >= vm::kOpCount) return;
  const Op op = static_cast<Op>(word->op);
  const ValueType type = element_type(op);
  if (type == ValueType::none && op != Op::list_size) return;
  ListParts& parts = use_list(word->a);
  Value*& count = parts.counts[static_cast<size_t>(type)];
  if (type != ValueType::none && !count) count = b_.CreateAlloca(b_.getInt64Ty());
}

void Translator::clear_list(uint32_t ref) {
  const ListParts& parts = lists_[ref];
  if (!parts.size) return;
  b_.CreateStore(llvm::ConstantPointerNull::get(b_.getPtrTy()), parts.data);
  b_.CreateStore(b_.getInt64(0), parts.size);
  b_.CreateStore(b_.getFalse(), parts.is_list);
  for (Value* const count : parts.counts)
    if (count) b_.CreateStore(b_.getInt64(0), count);
}

void Translator::load_list(uint32_t ref) {
  const halyard_jit_layout_t& layout = *source_.layout;
  const ListParts& parts = lists_[ref];
  clear_list(ref);
  if_it_holds(ref, host_type(kListType), [&](Value* object) {
    Value* const size = b_.CreateZExt(member(object, layout.list_size, b_.getInt32Ty()), b_.getInt64Ty());
    Value* const packs = member(object, layout.list_element, b_.getInt8Ty());
    b_.CreateStore(member(object, layout.list_data, b_.getPtrTy()), parts.data);
    b_.CreateStore(size, parts.size);
    b_.CreateStore(b_.getTrue(), parts.is_list);
    for (size_t type = 0; type < parts.counts.size(); ++type) {
      if (!parts.counts[type]) continue;
      Value* const same = b_.CreateICmpEQ(packs, b_.getInt8(static_cast<uint8_t>(type)));
      b_.CreateStore(b_.CreateSelect(same, size, b_.getInt64(0)), parts.counts[type]);
    }
  });
}

// The address of the element, after a check that it exists and has this type.
Value* Translator::list_element(const Word* word, uint32_t at, llvm::Type* type) {
  const ListParts& parts = lists_[word->a];
  Value* const count = parts.counts[static_cast<size_t>(element_type(static_cast<Op>(word->op)))];
  Value* const index = b_.CreateZExt(i32(word->b), b_.getInt64Ty());
  require(b_.CreateICmpULT(index, b_.CreateLoad(b_.getInt64Ty(), count)), at, kCheck);
  return b_.CreateInBoundsGEP(type, b_.CreateLoad(b_.getPtrTy(), parts.data), index);
}

bool Translator::emit_list(Op op, const Word* word, uint32_t at) {
  const auto load = [&](llvm::Type* type) {
    Value* const address = list_element(word, at, type);
    set(word->c, b_.CreateAlignedLoad(type, address, llvm::Align(1)));
    return true;
  };
  const auto store = [&](Value* value) {
    b_.CreateAlignedStore(value, list_element(word, at, value->getType()), llvm::Align(1));
    return true;
  };
  switch (op) {
    case Op::list_size:
      require(b_.CreateLoad(b_.getInt1Ty(), lists_[word->a].is_list), at, nullptr);
      set(word->b, b_.CreateTrunc(b_.CreateLoad(b_.getInt64Ty(), lists_[word->a].size), b_.getInt32Ty()));
      return true;
    case Op::list_get_i32:
      return load(b_.getInt32Ty());
    case Op::list_get_i64:
      return load(b_.getInt64Ty());
    case Op::list_get_f32:
      return load(b_.getFloatTy());
    case Op::list_get_f64:
      return load(b_.getDoubleTy());
    case Op::list_set_i32:
      return store(maybe_hidden(i32(word->c)));
    case Op::list_set_i64:
      return store(maybe_hidden(i64(word->c)));
    case Op::list_set_f32:
      return store(number_or_bits(at, word->c));
    case Op::list_set_f64:
      return store(wide_number_or_bits(at, word->c));
    default:
      return false;
  }
}

}  // namespace halyard::jit
