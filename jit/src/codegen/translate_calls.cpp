// Recursive calls. The callee's frame is above the caller's, where the interpreter would put it. The rest of
// its header, and the caller's registers, are stored only if the callee leaves compiled code before it
// returns.
#include "codegen/translator.h"

namespace halyard::jit {

Value* Translator::bits_of(uint32_t at, uint16_t entry) {
  const auto reg = static_cast<uint16_t>(entry & vm::kRegisterMask);
  const std::span<const Form> forms = registers_.forms(at);
  if (!(entry & vm::kWideBit)) return forms[reg] == Form::f32 ? f32(reg) : i32(reg);
  return forms[reg] == Form::f64 && forms[reg + 1u] == Form::f64 ? f64(reg) : i64(reg);
}

void Translator::emit_own_call(const Word* word, uint32_t at) {
  const vm::CallSite& site = vm::call_site(word);
  const halyard_jit_layout_t& layout = *source_.layout;
  llvm::Type* const byte = b_.getInt8Ty();
  const auto offset = [&](Value* base, int64_t bytes) {
    return b_.CreateGEP(byte, base, b_.getInt64(static_cast<uint64_t>(bytes)));
  };
  require(may_continue(b_), at, nullptr);
  Value* const callee = offset(values(), source_.frame_bytes);
  Value* const end = offset(callee, int64_t{source_.frame_bytes} - layout.frame_bytes);
  require(b_.CreateICmpULE(end, b_.CreateLoad(b_.getPtrTy(), native_stack())), at, nullptr);
  for (size_t i = 0; i < own_calls_.arguments().size(); ++i) {
    const uint16_t to = own_calls_.arguments()[i];
    const auto from =
        static_cast<uint16_t>((source_.lists[site.arguments + i] & vm::kRegisterMask) | (to & vm::kWideBit));
    b_.CreateAlignedStore(bits_of(at, from), offset(callee, 4 * (to & vm::kRegisterMask)), llvm::Align(4));
  }
  // Other registers are zero, as far as code can observe that.
  for (uint32_t slot = 0; slot < source_.value_slots; ++slot)
    if (registers_.is_live(0, slot) && !own_calls_.is_argument(slot))
      b_.CreateAlignedStore(b_.getInt32(0), offset(callee, 4 * int64_t{slot}), llvm::Align(4));
  // Stores only the header fields that frames above this one read.
  Value* const own_frame = offset(values(), -int64_t{layout.frame_bytes});
  Value* const frame = offset(callee, -int64_t{layout.frame_bytes});
  b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), offset(own_frame, layout.frame_code)),
                 offset(frame, layout.frame_code));
  b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), offset(own_frame, layout.frame_instance)),
                 offset(frame, layout.frame_instance));
  Value* const null = llvm::ConstantPointerNull::get(b_.getPtrTy());
  Value* const globals = source_.global_bytes ? static_cast<Value*>(function_->getArg(3)) : null;
  llvm::CallInst* const returned =
      b_.CreateCall(function_, {callee, null, function_->getArg(2), globals, native_stack(),
                                b_.getInt32(HALYARD_JIT_CALLED | words_[0].a)});
  returned->setDoesNotThrow();

  BasicBlock* const next = BasicBlock::Create(context_, "", function_);
  BasicBlock* const left = BasicBlock::Create(context_, "left" + std::to_string(at), function_);
  b_.CreateCondBr(b_.CreateICmpEQ(returned, b_.getInt32(HALYARD_JIT_RETURNED)), next, left, likely());

  b_.SetInsertPoint(left);
  Value* const code = b_.CreateLoad(b_.getPtrTy(), offset(frame, layout.frame_code));
  Value* const words = b_.CreateLoad(b_.getPtrTy(), offset(code, layout.code_words));
  b_.CreateStore(offset(words, int64_t{at} * static_cast<int64_t>(sizeof(Word))),
                 offset(frame, layout.frame_call));
  b_.CreateStore(b_.getInt32(source_.frame_bytes), offset(frame, layout.frame_caller_bytes));
  const std::span<const Form> forms = registers_.forms(at);
  for (uint32_t slot = 0; slot < source_.value_slots; ++slot) store_slot(at, slot, forms);
  b_.CreateRet(returned);

  b_.SetInsertPoint(next);
  for (size_t i = 0; i < own_calls_.wide_results().size(); ++i) {
    const auto reg = static_cast<uint16_t>(source_.lists[site.results + i] & vm::kRegisterMask);
    Value* const address = offset(callee, static_cast<int64_t>(8 * i));
    if (own_calls_.wide_results()[i]) {
      set_pair(reg, b_.CreateAlignedLoad(b_.getInt64Ty(), address, llvm::Align(8)),
               f64_[reg] ? b_.CreateAlignedLoad(b_.getDoubleTy(), address, llvm::Align(8)) : nullptr);
    } else {
      set_single(reg, b_.CreateAlignedLoad(b_.getInt32Ty(), address, llvm::Align(8)),
                 f32_[reg] ? b_.CreateAlignedLoad(b_.getFloatTy(), address, llvm::Align(8)) : nullptr);
    }
  }
}

// Returns to the interpreter or, after a recursive call, to the caller.
void Translator::emit_return(const Word* word, uint32_t at) {
  BasicBlock* const to_itself = BasicBlock::Create(context_, "", function_);
  b_.CreateCondBr(is_called_, to_itself, exit_at(at));
  b_.SetInsertPoint(to_itself);
  const std::vector<uint16_t> registers = OwnCalls::returned(word, source_.lists);
  for (size_t i = 0; i < registers.size(); ++i)
    b_.CreateAlignedStore(bits_of(at, registers[i]),
                          b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), values(), 8 * i), llvm::Align(8));
  b_.CreateRet(b_.getInt32(HALYARD_JIT_RETURNED));
}

}  // namespace halyard::jit
