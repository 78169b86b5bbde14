// Translator: translates one function. Every register becomes a variable for each form in which it is used;
// LLVM promotes the variables to values. An instruction that would fail, or that is not compiled, leaves the
// function: live registers are stored to the frame, and the interpreter continues with that instruction.
// translate_ops.cpp translates the instructions.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/own_buffers.h"
#include "codegen/own_calls.h"
#include "codegen/registers.h"
#include "codegen/stop_word.h"
#include "codegen/translate.h"
#include "codegen/written_buffers.h"
#include "shared/symbols.h"

namespace halyard::jit {

using llvm::BasicBlock;
using llvm::Value;
using vm::Bank;
using vm::DecodedOp;
using vm::Op;
using vm::Word;

class Translator {
 public:
  Translator(const halyard_jit_function_t& function, llvm::Module& module, llvm::StringRef features)
      : source_(function),
        features_(features),
        words_(static_cast<const Word*>(function.words), function.word_count),
        own_calls_(function),
        registers_(words_, {function.lists, function.list_count}, function.value_slots, own_calls_),
        own_buffers_(words_, {function.lists, function.list_count}, function.ref_slots),
        module_(module),
        context_(module.getContext()),
        b_(context_) {
    llvm::Type* const pointer = b_.getPtrTy();
    auto* const type = llvm::FunctionType::get(
        b_.getInt32Ty(), {pointer, pointer, pointer, pointer, pointer, b_.getInt32Ty()}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kFunction, module);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    function_->setDSOLocal(true);
    // A host built with -fsanitize=function reads a type from the 8 bytes before a function that it calls,
    // but code may begin at the start of its mapping. 16 bytes keep the function aligned.
    function_->setPrefixData(llvm::ConstantAggregateZero::get(llvm::ArrayType::get(b_.getInt64Ty(), 2)));
    for (unsigned i : {0u, 1u}) function_->addParamAttr(i, llvm::Attribute::NoAlias);
    for (uint32_t at = 0; at < words_.size(); at += vm::word_count(words_[at]))
      loads_floats_ |= loads_float(&words_[at]);
  }

  void run() {
    find_blocks();
    BasicBlock* const first = BasicBlock::Create(context_, "first", function_, block_order_.front());
    b_.SetInsertPoint(first);
    make_variables();
    emit_entries();
    name_tracked_buffers();
    for (uint32_t at = 0; at < words_.size(); at += vm::word_count(words_[at])) emit_word(at);
    // Unreachable blocks may lack a terminator.
    for (BasicBlock& block : *function_)
      if (!block.getTerminator()) new llvm::UnreachableInst(context_, &block);
  }

 private:
  // ---- blocks

  void find_blocks() {
    std::vector<bool> leads(words_.size());
    leads[0] = true;
    for (uint32_t at = 0; at < words_.size(); at += vm::word_count(words_[at])) {
      const Word* const word = &words_[at];
      const uint32_t next = at + vm::word_count(*word);
      if (is(word, DecodedOp::enter_compiled)) leads[at] = true;
      if (is(word, Op::br) || is(word, Op::cond_br) || is(word, Op::br_table))
        vm::for_each_successor(words_, at, [&](uint32_t target) { leads[target] = true; });
      if ((leaves(word) || is(word, Op::br) || is(word, Op::cond_br) || is(word, Op::br_table)) &&
          next < words_.size())
        leads[next] = true;
    }
    blocks_.resize(words_.size());
    for (uint32_t at = 0; at < words_.size(); ++at) {
      if (!leads[at]) continue;
      blocks_[at] = BasicBlock::Create(context_, "w" + std::to_string(at), function_);
      block_order_.push_back(blocks_[at]);
    }
  }

  static bool is(const Word* word, Op op) { return word->op == static_cast<uint16_t>(op); }
  static bool is(const Word* word, DecodedOp op) { return word->op == static_cast<uint16_t>(op); }
  // Whether the instruction leaves compiled code.
  bool leaves(const Word* word) const {
    if (word->op < vm::kOpCount)
      return !vm::is_compiled(static_cast<Op>(word->op)) && !own_calls_.is_call(word);
    return !is(word, DecodedOp::move_32) && !is(word, DecodedOp::move_64) && !is(word, DecodedOp::move_ref) &&
           !is(word, DecodedOp::enter_compiled);
  }

  static bool loads_float(const Word* word) {
    switch (word->op < vm::kOpCount ? static_cast<Op>(word->op) : Op::kCount) {
      case Op::buffer_load_f32:
      case Op::buffer_load_f64:
      case Op::global_load_f32:
      case Op::global_load_f64:
      case Op::global_load_indirect_f32:
      case Op::global_load_indirect_f64:
      case Op::list_get_f32:
      case Op::list_get_f64:
        return true;
      default:
        return false;
    }
  }

  // ---- variables

  void make_variables() {
    const uint32_t slots = source_.value_slots;
    i32_.resize(slots);
    f32_.resize(slots);
    i64_.resize(slots);
    f64_.resize(slots);
    for (uint32_t slot = 0; slot < slots; ++slot) {
      const bool has_pair = registers_.has_pair(slot) && slot + (slot % 2 == 0 ? 1u : 0u) < slots;
      if (registers_.has_single(slot) || !has_pair) {
        i32_[slot] = b_.CreateAlloca(b_.getInt32Ty());
        if (registers_.holds_float(slot)) f32_[slot] = b_.CreateAlloca(b_.getFloatTy());
      }
      if (!has_pair || slot % 2 != 0) continue;
      i64_[slot] = b_.CreateAlloca(b_.getInt64Ty());
      if (registers_.holds_double(slot)) f64_[slot] = b_.CreateAlloca(b_.getDoubleTy());
    }
    buffers_.resize(source_.ref_slots);
    lists_.resize(source_.ref_slots);
    for (uint32_t at = 0; at < words_.size(); at += vm::word_count(words_[at])) {
      note_buffers(&words_[at]);
      note_lists(&words_[at]);
    }
  }

  // Records registers that need buffer parts: the buffer operands of instructions, and both registers of
  // moves.
  void note_buffers(const Word* word) {
    if (leaves(word)) return;
    if (is(word, DecodedOp::move_ref)) {
      use_buffer(word->a);
      use_buffer(word->b);
    }
    if (word->op >= vm::kOpCount) return;
    const vm::OpInfo& op = vm::info(static_cast<Op>(word->op));
    for (size_t i = 0; i < op.operand_count; ++i)
      if (op.operands[i].kind == vm::OperandKind::reg && op.operands[i].bank == Bank::ref &&
          op.operands[i].name() == "buffer")
        use_buffer(vm::field(word, 0));
  }
  void use_buffer(uint16_t ref) {
    BufferParts& parts = buffers_[ref];
    if (parts.data) return;
    parts.data = b_.CreateAlloca(b_.getPtrTy());
    parts.length = b_.CreateAlloca(b_.getInt64Ty());
    parts.mutable_length = b_.CreateAlloca(b_.getInt64Ty());
    parts.is_buffer = b_.CreateAlloca(b_.getInt1Ty());
  }

  Value* i32(uint16_t slot) { return b_.CreateLoad(b_.getInt32Ty(), i32_[slot]); }
  Value* f32(uint16_t slot) { return b_.CreateLoad(b_.getFloatTy(), f32_[slot]); }
  Value* i64(uint16_t slot) { return b_.CreateLoad(b_.getInt64Ty(), i64_[slot]); }
  Value* f64(uint16_t slot) { return b_.CreateLoad(b_.getDoubleTy(), f64_[slot]); }

  void set_single(uint32_t slot, Value* bits, Value* number) {
    b_.CreateStore(bits, i32_[slot]);
    if (f32_[slot]) b_.CreateStore(number ? number : as_float(bits), f32_[slot]);
    const uint32_t pair = slot & ~1u;
    if (!i64_[pair]) return;
    Value* const low = b_.CreateZExt(i32(static_cast<uint16_t>(pair)), b_.getInt64Ty());
    Value* const high = b_.CreateZExt(i32(static_cast<uint16_t>(pair + 1)), b_.getInt64Ty());
    Value* const both = b_.CreateOr(low, b_.CreateShl(high, 32));
    b_.CreateStore(both, i64_[pair]);
    if (f64_[pair]) b_.CreateStore(as_float(both), f64_[pair]);
  }
  void set_pair(uint32_t slot, Value* bits, Value* number) {
    b_.CreateStore(bits, i64_[slot]);
    if (f64_[slot]) b_.CreateStore(number ? number : as_float(bits), f64_[slot]);
    if (!i32_[slot]) return;
    Value* const low = b_.CreateTrunc(bits, b_.getInt32Ty());
    Value* const high = b_.CreateTrunc(b_.CreateLShr(bits, 32), b_.getInt32Ty());
    b_.CreateStore(low, i32_[slot]);
    b_.CreateStore(high, i32_[slot + 1]);
    if (f32_[slot]) b_.CreateStore(as_float(low), f32_[slot]);
    if (f32_[slot + 1]) b_.CreateStore(as_float(high), f32_[slot + 1]);
  }
  // Sets a float or double from bits, which were computed partly from bits that are opaque to LLVM.
  void set_bits_of_float(uint16_t slot, Value* bits) {
    const bool wide = bits->getType()->isIntegerTy(64);
    Value* const number = b_.CreateBitCast(bits, wide ? b_.getDoubleTy() : b_.getFloatTy());
    if (wide) return set_pair(slot, bits, number);
    set_single(slot, bits, number);
  }
  void set(uint16_t slot, Value* value) {
    llvm::Type* const type = value->getType();
    if (type->isFloatTy()) return set_single(slot, b_.CreateBitCast(value, b_.getInt32Ty()), value);
    if (type->isDoubleTy()) return set_pair(slot, b_.CreateBitCast(value, b_.getInt64Ty()), value);
    if (type->isIntegerTy(64)) return set_pair(slot, value, nullptr);
    if (!type->isIntegerTy(32)) value = b_.CreateZExt(value, b_.getInt32Ty());
    set_single(slot, value, nullptr);
  }

  // ---- entries and exits

  Value* values() { return function_->getArg(0); }
  Value* refs() { return function_->getArg(1); }
  Value* slot_address(uint32_t slot) {
    return b_.CreateConstInBoundsGEP1_64(b_.getInt32Ty(), values(), slot);
  }
  Value* native_stack() { return function_->getArg(4); }
  Value* top_address() {
    return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), native_stack(), offsetof(halyard_jit_stack_t, top));
  }
  Value* ref_address(uint32_t ref) { return b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), refs(), ref); }

  void emit_entries() {
    BasicBlock* const nowhere = BasicBlock::Create(context_, "nowhere", function_);
    Value* entry = function_->getArg(5);
    if (own_calls_) {
      is_called_ = b_.CreateICmpSLT(entry, b_.getInt32(0));
      entry = b_.CreateAnd(entry, ~HALYARD_JIT_CALLED);
    }
    llvm::SwitchInst* const entries = b_.CreateSwitch(entry, nowhere);
    new llvm::UnreachableInst(context_, nowhere);
    for (uint32_t at = 0; at < words_.size(); at += vm::word_count(words_[at])) {
      if (!is(&words_[at], DecodedOp::enter_compiled)) continue;
      BasicBlock* const block =
          BasicBlock::Create(context_, "entry" + std::to_string(words_[at].a), function_);
      entries->addCase(b_.getInt32(words_[at].a), block);
      b_.SetInsertPoint(block);
      load_frame(at);
      for (uint32_t ref = 0; ref < source_.ref_slots; ++ref)
        if (own_buffers_.is_fresh(at, ref)) set_written(ref, 0);
      b_.CreateBr(blocks_[at]);
    }
  }

  // ---- buffers whose writes are known (written_buffers.h)

  void name_tracked_buffers() {
    TrackedBuffers tracked{.type = host_type(kBufferType),
                           .type_offset = source_.layout->object_type,
                           .written_offset = source_.layout->buffer_written};
    for (uint32_t ref = 0; ref < source_.ref_slots; ++ref)
      if (own_buffers_.is_tracked(ref)) tracked.registers.push_back(ref);
    tracked.add_to(*function_);
  }
  // Whether the interpreter, which continues at `at`, may write to a tracked buffer.
  bool may_be_written_after(uint32_t at) const {
    for (uint32_t ref = 0; ref < source_.ref_slots; ++ref)
      if (own_buffers_.is_tracked(ref) && own_buffers_.may_be_interpreted_write(at, ref)) return true;
    return false;
  }
  // Returns from one block for all such places, which notes that the tracked buffers are written.
  void leave_noted(uint32_t at) {
    BasicBlock* const from = b_.GetInsertBlock();
    if (!noted_place_) {
      BasicBlock* const noted = BasicBlock::Create(context_, "noted", function_);
      b_.SetInsertPoint(noted);
      noted_place_ = b_.CreatePHI(b_.getInt32Ty(), 0);
      for (uint32_t ref = 0; ref < source_.ref_slots; ++ref)
        if (own_buffers_.is_tracked(ref))
          if_it_holds(ref, host_type(kBufferType), [&](Value*) { set_written(ref, UINT64_MAX); });
      b_.CreateRet(noted_place_);
      b_.SetInsertPoint(from);
    }
    b_.CreateBr(noted_place_->getParent());
    noted_place_->addIncoming(b_.getInt32(at), from);
  }
  // Sets the number of written bytes of the buffer that the register holds.
  void set_written(uint32_t ref, uint64_t bytes) {
    Value* const object = b_.CreateLoad(b_.getPtrTy(), ref_address(ref));
    b_.CreateStore(b_.getInt64(bytes),
                   b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), object, source_.layout->buffer_written));
  }

  void load_frame(uint32_t at) {
    for (uint32_t slot = 0; slot < source_.value_slots; ++slot) {
      if (load_constant(at, slot)) continue;
      if (registers_.is_live(at, slot) && i32_[slot]) {
        b_.CreateStore(b_.CreateAlignedLoad(b_.getInt32Ty(), slot_address(slot), llvm::Align(4)), i32_[slot]);
        if (f32_[slot])
          b_.CreateStore(b_.CreateAlignedLoad(b_.getFloatTy(), slot_address(slot), llvm::Align(4)),
                         f32_[slot]);
      }
      if (!i64_[slot] || !(registers_.is_live(at, slot) || registers_.is_live(at, slot + 1))) continue;
      b_.CreateStore(b_.CreateAlignedLoad(b_.getInt64Ty(), slot_address(slot), llvm::Align(8)), i64_[slot]);
      if (f64_[slot])
        b_.CreateStore(b_.CreateAlignedLoad(b_.getDoubleTy(), slot_address(slot), llvm::Align(8)),
                       f64_[slot]);
    }
    for (uint32_t ref = 0; ref < buffers_.size(); ++ref) {
      if (buffers_[ref].data) load_buffer(ref);
      if (lists_[ref].size) load_list(ref);
    }
  }

  // If the register has a known constant, sets it instead of loading it from the frame, so that LLVM knows
  // the constant too.
  bool load_constant(uint32_t at, uint32_t slot) {
    const std::optional<uint32_t> low = registers_.constant(at, slot);
    if (!low) return false;
    if (i32_[slot]) {
      b_.CreateStore(b_.getInt32(*low), i32_[slot]);
      if (f32_[slot]) b_.CreateStore(opaque(b_.getFloatTy(), *low), f32_[slot]);
    }
    if (!i64_[slot]) return slot % 2 == 0 || i32_[slot];
    const std::optional<uint32_t> high = registers_.constant(at, slot + 1);
    if (!high) return false;
    const uint64_t both = *low | uint64_t{*high} << 32;
    b_.CreateStore(b_.getInt64(both), i64_[slot]);
    if (f64_[slot]) b_.CreateStore(opaque(b_.getDoubleTy(), both), f64_[slot]);
    return true;
  }

  struct BufferParts {
    Value* data = nullptr;  // variables
    Value* length = nullptr;
    Value* mutable_length = nullptr;
    Value* is_buffer = nullptr;
  };

  Value* member(Value* object, uint32_t offset, llvm::Type* type) {
    return b_.CreateLoad(type, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), object, offset));
  }
  // Executes the code that `body` emits only if the register holds an object of the type.
  void if_it_holds(uint32_t ref, Value* type, auto&& body) {
    Value* const object = b_.CreateLoad(b_.getPtrTy(), ref_address(ref));
    BasicBlock* const look = BasicBlock::Create(context_, "", function_);
    BasicBlock* const load = BasicBlock::Create(context_, "", function_);
    BasicBlock* const done = BasicBlock::Create(context_, "", function_);
    b_.CreateCondBr(b_.CreateIsNotNull(object), look, done);
    b_.SetInsertPoint(look);
    Value* const found = member(object, source_.layout->object_type, b_.getPtrTy());
    b_.CreateCondBr(b_.CreateICmpEQ(found, type), load, done);
    b_.SetInsertPoint(load);
    body(object);
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
  }
  // Loads the parts of the buffer in the register. An object that is not a buffer has no bytes, so every
  // access leaves compiled code.
  void load_buffer(uint32_t ref) {
    const halyard_jit_layout_t& layout = *source_.layout;
    const BufferParts& parts = buffers_[ref];
    clear_buffer(ref);
    if_it_holds(ref, host_type(kBufferType), [&](Value* object) {
      b_.CreateStore(member(object, layout.buffer_data, b_.getPtrTy()), parts.data);
      b_.CreateStore(member(object, layout.buffer_length, b_.getInt64Ty()), parts.length);
      b_.CreateStore(member(object, layout.buffer_mutable_length, b_.getInt64Ty()), parts.mutable_length);
      b_.CreateStore(b_.getTrue(), parts.is_buffer);
    });
  }
  void clear_buffer(uint32_t ref) {
    const BufferParts& parts = buffers_[ref];
    if (!parts.data) return;
    b_.CreateStore(llvm::ConstantPointerNull::get(b_.getPtrTy()), parts.data);
    b_.CreateStore(b_.getInt64(0), parts.length);
    b_.CreateStore(b_.getInt64(0), parts.mutable_length);
    b_.CreateStore(b_.getFalse(), parts.is_buffer);
  }

  Value* host_type(const char* name) { return module_.getOrInsertGlobal(name, b_.getInt8Ty()); }

  // ---- lists (translate_lists.cpp)

  // The parts of a list that packs values. No compiled instruction changes the size of a list.
  struct ListParts {
    Value* data = nullptr;  // variables; null if nothing accesses the list
    Value* size = nullptr;
    Value* is_list = nullptr;
    // By ValueType: the size if the list packs values of that type, else 0.
    std::array<Value*, 8> counts = {};
  };
  void note_lists(const Word* word);
  ListParts& use_list(uint16_t ref);
  void load_list(uint32_t ref);
  void clear_list(uint32_t ref);
  Value* list_element(const Word* word, uint32_t at, llvm::Type* type);
  bool emit_list(Op op, const Word* word, uint32_t at);
  // Forgets the buffer or list in the register.
  void clear_parts(uint32_t ref) {
    clear_buffer(ref);
    clear_list(ref);
  }

  // ---- recursive calls (translate_calls.cpp)

  void emit_own_call(const Word* word, uint32_t at);
  void emit_return(const Word* word, uint32_t at);
  // The bits that the register has at `at`, from its current form.
  Value* bits_of(uint32_t at, uint16_t reg);

  // The block that returns to the interpreter, which continues with the instruction at `at`.
  BasicBlock* exit_at(uint32_t at) {
    BasicBlock*& block = exits_[at];
    if (block) return block;
    block = BasicBlock::Create(context_, "exit" + std::to_string(at), function_);
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(block);
    const std::span<const Form> forms = registers_.forms(at);
    for (uint32_t slot = 0; slot < source_.value_slots; ++slot) store_slot(at, slot, forms);
    if (own_calls_) b_.CreateStore(values(), top_address());
    if (may_be_written_after(at))
      leave_noted(at);
    else
      b_.CreateRet(b_.getInt32(at));
    return block;
  }
  void store_slot(uint32_t at, uint32_t slot, std::span<const Form> forms) {
    const Form form = forms[slot];
    // If paths with different forms of the pair meet here, the bits of the two slots are valid.
    const bool pair = form != Form::frame && (!i32_[slot] || (is_pair(form) && forms[slot ^ 1u] == form));
    if (pair) {
      if (slot % 2 != 0 || !(registers_.is_live(at, slot) || registers_.is_live(at, slot + 1))) return;
      const auto reg = static_cast<uint16_t>(slot);
      b_.CreateAlignedStore(form == Form::f64 ? f64(reg) : i64(reg), slot_address(slot), llvm::Align(8));
      return;
    }
    if (form == Form::frame || !registers_.is_live(at, slot)) return;
    const auto reg = static_cast<uint16_t>(slot);
    b_.CreateAlignedStore(form == Form::f32 ? f32(reg) : i32(reg), slot_address(slot), llvm::Align(4));
  }

  // Continues if the condition is true, and otherwise leaves compiled code.
  void require(Value* condition, uint32_t at, const char* kind) {
    BasicBlock* const next = BasicBlock::Create(context_, "", function_);
    BasicBlock* const exit = exit_at(at);
    llvm::BranchInst* const branch = b_.CreateCondBr(condition, next, exit, likely());
    if (kind) branch->setMetadata(kind, llvm::MDNode::get(context_, {}));
    b_.SetInsertPoint(next);
  }
  llvm::MDNode* likely() { return llvm::MDBuilder(context_).createBranchWeights(1u << 20, 1); }

  // The edge from a branch to its target. A backward edge closes a loop, and checks the stop word.
  BasicBlock* edge(uint32_t at, uint32_t target) {
    if (target > at) return blocks_[target];
    BasicBlock* const block = BasicBlock::Create(context_, "", function_);
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(block);
    require(may_continue(b_), at, kStop);
    b_.CreateBr(blocks_[target]);
    return block;
  }

  // ---- instructions

  void emit_word(uint32_t at) {
    if (blocks_[at]) {
      if (BasicBlock* const before = b_.GetInsertBlock(); before && !before->getTerminator() && at != 0)
        b_.CreateBr(blocks_[at]);
      b_.SetInsertPoint(blocks_[at]);
    }
    const Word* const word = &words_[at];
    if (own_calls_.is_call(word)) return emit_own_call(word, at);
    if (own_calls_ && OwnCalls::returns(word)) return emit_return(word, at);
    if (leaves(word)) {
      b_.CreateBr(exit_at(at));
      return;
    }
    if (word->op >= vm::kOpCount) return emit_inner(word);
    emit_op(static_cast<Op>(word->op), word, at);
  }

  void emit_inner(const Word* word) {
    switch (static_cast<DecodedOp>(word->op)) {
      case DecodedOp::move_32: {
        Value* const number = f32_[word->a] ? f32(word->a) : nullptr;
        return set_single(word->b, i32(word->a), number);
      }
      case DecodedOp::move_64: {
        Value* const number = f64_[word->a] ? f64(word->a) : nullptr;
        return set_pair(word->b, i64(word->a), number);
      }
      case DecodedOp::move_ref: {
        Value* const object = b_.CreateLoad(b_.getPtrTy(), ref_address(word->a));
        b_.CreateStore(llvm::ConstantPointerNull::get(b_.getPtrTy()), ref_address(word->a));
        put_ref(word->b, object);
        const BufferParts& from = buffers_[word->a];
        const BufferParts& to = buffers_[word->b];
        b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), from.data), to.data);
        b_.CreateStore(b_.CreateLoad(b_.getInt64Ty(), from.length), to.length);
        b_.CreateStore(b_.CreateLoad(b_.getInt64Ty(), from.mutable_length), to.mutable_length);
        b_.CreateStore(b_.CreateLoad(b_.getInt1Ty(), from.is_buffer), to.is_buffer);
        if (word->a != word->b) clear_parts(word->a);
        if (lists_[word->b].size) load_list(word->b);
        return;
      }
      default:
        return;  // enter_compiled
    }
  }

  void put_ref(uint32_t ref, Value* object) {
    auto* const type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getPtrTy()}, false);
    llvm::CallInst* const call =
        b_.CreateCall(module_.getOrInsertFunction(kPutRef, type), {ref_address(ref), object});
    call->setDoesNotThrow();
  }

  void emit_op(Op op, const Word* word, uint32_t at);
  bool emit_integer(Op op, const Word* word);
  bool emit_float(Op op, const Word* word);
  bool emit_conversion(Op op, const Word* word);
  bool emit_buffer(Op op, const Word* word, uint32_t at);
  bool emit_division(Op op, const Word* word, uint32_t at);
  bool emit_global(Op op, const Word* word, uint32_t at);
  void emit_load(const Word* word, uint32_t at, llvm::Type* type, int extend);
  void emit_store(const Word* word, uint32_t at, llvm::Type* type, Value* value);
  Value* element(const Word* word, uint32_t at, Value* length, uint32_t size);
  void emit_division(Value* x, Value* y, bool is_signed, bool remainder, uint16_t result, uint32_t at);
  Value* rounded(Op op, llvm::Intrinsic::ID id, Value* x);
  Value* to_i64(Value* number);
  // Marks a sum, difference or product of floats as reorderable and fusible, if fast math is on.
  Value* arithmetic(Value* value);
  void add_vector_forms(Op op, llvm::CallInst* call);
  Value* helper(Op op, llvm::Type* result, llvm::ArrayRef<Value*> arguments);
  Value* function_of(Op op, llvm::ArrayRef<Value*> arguments);
  Value* opaque(llvm::Type* type, uint64_t bits);
  // The same bits, made opaque to LLVM (opaque()).
  Value* hidden(Value* bits) { return b_.CreateXor(bits, opaque(bits->getType(), 0)); }
  // The float, or double, with these bits.
  Value* as_float(Value* bits) {
    return b_.CreateBitCast(hidden(bits),
                            bits->getType()->isIntegerTy(32) ? b_.getFloatTy() : b_.getDoubleTy());
  }
  // Bits to be stored in memory, from which they may be loaded as a float.
  Value* maybe_hidden(Value* bits) { return loads_floats_ ? hidden(bits) : bits; }
  // The value of a slot, in its current form, for a store of a float. Bits that were combined from two slots
  // are stored as bits, not converted to a float.
  Value* number_or_bits(uint32_t at, uint16_t slot) {
    return registers_.forms(at)[slot] == Form::i32 ? maybe_hidden(i32(slot)) : f32(slot);
  }
  Value* wide_number_or_bits(uint32_t at, uint16_t slot) {
    return registers_.forms(at)[slot] == Form::f64 ? f64(slot) : maybe_hidden(i64(slot));
  }
  Value* bit(Value* condition) { return b_.CreateZExt(condition, b_.getInt32Ty()); }
  Value* unary(llvm::Intrinsic::ID id, Value* x) { return b_.CreateUnaryIntrinsic(id, x); }

  const halyard_jit_function_t& source_;
  const llvm::StringRef features_;
  std::span<const Word> words_;
  OwnCalls own_calls_;
  Registers registers_;
  OwnBuffers own_buffers_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  std::vector<BasicBlock*> blocks_;  // by their first word
  std::vector<BasicBlock*> block_order_;
  std::map<uint32_t, BasicBlock*> exits_;
  llvm::PHINode* noted_place_ = nullptr;  // where the interpreter continues after the block of leave_noted()
  std::map<std::pair<llvm::Type*, uint64_t>, llvm::GlobalVariable*> opaque_;  // by type and contents
  bool loads_floats_ = false;  // from buffers, globals or lists
  std::vector<Value*> i32_;    // variables by slot, of pairs by the even slot; null if the form is not used
  std::vector<Value*> f32_;
  std::vector<Value*> i64_;
  std::vector<Value*> f64_;
  std::vector<BufferParts> buffers_;
  std::vector<ListParts> lists_;
  Value* is_called_ = nullptr;  // recursively; set if the function has own calls
};

}  // namespace halyard::jit
