#include "emit/kernel_entry.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "emit/kernel_objects.h"
#include "emit/microkernels.h"
#include "emit/status_codes.h"
#include "shared/symbols.h"
#include "vm/decode/filled_buffers.h"
#include "vm/object/variant.h"

namespace halyard::jit {

namespace {

using llvm::BasicBlock;
using llvm::Value;
using vm::DecodedOp;
using vm::Op;

// Of exec-cpu-library.md, section 4.
constexpr uint64_t kDispatchSizeX = 0;
constexpr uint64_t kDispatchSizeZ = 8;
constexpr uint64_t kDispatchConstantCount = 10;
constexpr uint64_t kDispatchCountX = 12;
constexpr uint64_t kDispatchCountZ = 20;
constexpr uint64_t kDispatchConstants = 24;
constexpr uint64_t kDispatchBindings = 32;
constexpr uint64_t kDispatchLengths = 40;
constexpr uint64_t kWorkgroupX = 0;
constexpr uint64_t kWorkgroupZ = 8;
constexpr uint64_t kWorkgroupMemory = 16;
constexpr uint64_t kWorkgroupMemoryBytes = 24;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kMaxPages = UINT16_MAX;

// Of a kernel in bytecode (exec-vmvx.md, section 2).
constexpr uint32_t kLocalMemoryArgument = 0;
constexpr uint32_t kConstantsArgument = 1;
constexpr uint32_t kBindingsArgument = 2;
constexpr uint32_t kFirstNumber = 3;
constexpr uint32_t kArguments = 12;

constexpr uint64_t kBufferAlignment = 64;

bool is_op(const vm::Word& word, Op op) { return word.op == static_cast<uint16_t>(op); }
bool is_op(const vm::Word& word, DecodedOp op) { return word.op == static_cast<uint16_t>(op); }

}  // namespace

KernelEntry::KernelEntry(const halyard_emit_request_t& request, const halyard_emit_kernel_t& kernel,
                         const halyard_jit_function_t& plain, llvm::Function& run)
    : request_(request),
      kernel_(kernel),
      words_(static_cast<const Word*>(kernel.function.words), kernel.function.word_count),
      own_calls_(plain),
      registers_({static_cast<const Word*>(plain.words), plain.word_count}, {plain.lists, plain.list_count},
                 plain.value_slots, own_calls_),
      run_(run),
      module_(*run.getParent()),
      b_(module_.getContext()) {}

uint32_t KernelEntry::local_memory_pages() const {
  return static_cast<uint32_t>((own_bytes_ + dynamic_bytes_ + kernel_.local_memory + kPage - 1) / kPage);
}

// ---- small parts

BasicBlock* KernelEntry::new_block(const llvm::Twine& name) {
  return BasicBlock::Create(module_.getContext(), name, entry_);
}

Value* KernelEntry::field(Value* record, uint64_t offset, llvm::Type* type) {
  return b_.CreateLoad(type, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), record, offset));
}
void KernelEntry::set_field(Value* record, uint64_t offset, Value* value) {
  b_.CreateStore(value, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), record, offset));
}

Value* KernelEntry::slot(uint32_t reg) {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt32Ty(), values_, reg);
}
Value* KernelEntry::ref(uint32_t reg) { return b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), refs_, reg); }

// Memory of the stack, in the first block.
llvm::AllocaInst* KernelEntry::room(uint64_t bytes) {
  const llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(&entry_->getEntryBlock(), entry_->getEntryBlock().getFirstInsertionPt());
  llvm::AllocaInst* const made =
      b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), bytes == 0 ? 1 : bytes));
  made->setAlignment(llvm::Align(16));
  return made;
}

llvm::Constant* KernelEntry::host_type(const char* name) {
  return module_.getOrInsertGlobal(name, b_.getInt8Ty());
}

void KernelEntry::fill_buffer(Value* buffer, Value* data, Value* length, bool writable) {
  set_field(buffer, offsetof(KernelBuffer, type), host_type(kBufferType));
  set_field(buffer, offsetof(KernelBuffer, data), data);
  set_field(buffer, offsetof(KernelBuffer, length), length);
  set_field(buffer, offsetof(KernelBuffer, mutable_length), writable ? length : b_.getInt64(0));
}

// Clears memory whose size is a multiple of 16 bytes.
void KernelEntry::clear(Value* memory, uint64_t bytes) {
  constexpr uint64_t kStep = 64;
  auto* const zeros = llvm::ConstantAggregateZero::get(llvm::FixedVectorType::get(b_.getInt32Ty(), 4));
  const auto store = [&](Value* at, uint64_t count) {
    for (uint64_t i = 0; i < count; i += 16)
      b_.CreateAlignedStore(zeros, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), at, i), llvm::Align(16));
  };
  const uint64_t whole = bytes / kStep * kStep;
  if (whole <= 4 * kStep) return store(memory, bytes);
  BasicBlock* const before = b_.GetInsertBlock();
  BasicBlock* const loop = new_block();
  BasicBlock* const done = new_block();
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* const at = b_.CreatePHI(b_.getInt64Ty(), 2);
  store(b_.CreateGEP(b_.getInt8Ty(), memory, at), kStep);
  Value* const next = b_.CreateAdd(at, b_.getInt64(kStep));
  at->addIncoming(b_.getInt64(0), before);
  at->addIncoming(next, loop);
  b_.CreateCondBr(b_.CreateICmpULT(next, b_.getInt64(whole)), loop, done);
  b_.SetInsertPoint(done);
  store(b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), memory, whole), bytes - whole);
}

// Clears memory whose size is a multiple of 64 bytes and known at run time.
void KernelEntry::clear_cache_lines(Value* memory, Value* bytes) {
  BasicBlock* const before = b_.GetInsertBlock();
  BasicBlock* const loop = new_block();
  BasicBlock* const done = new_block();
  b_.CreateCondBr(b_.CreateIsNull(bytes), done, loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* const at = b_.CreatePHI(b_.getInt64Ty(), 2);
  clear(b_.CreateGEP(b_.getInt8Ty(), memory, at), kBufferAlignment);
  Value* const next = b_.CreateAdd(at, b_.getInt64(kBufferAlignment));
  at->addIncoming(b_.getInt64(0), before);
  at->addIncoming(next, loop);
  b_.CreateCondBr(b_.CreateICmpULT(next, bytes), loop, done);
  b_.SetInsertPoint(done);
}

void KernelEntry::return_code(Value* code) {
  if (mode_) mode_->restore(b_);
  b_.CreateRet(code);
}

void KernelEntry::fail_unless(Value* condition, int32_t code) {
  BasicBlock* const failed = new_block();
  BasicBlock* const next = new_block();
  b_.CreateCondBr(condition, next, failed);
  b_.SetInsertPoint(failed);
  return_code(b_.getInt32(static_cast<uint32_t>(code)));
  b_.SetInsertPoint(next);
}

llvm::Error KernelEntry::refused(uint32_t at, const char* why) const {
  const Word& word = words_[at];
  const std::string name = word.op < vm::kOpCount ? std::string(vm::info(static_cast<Op>(word.op)).mnemonic())
                           : is_op(word, DecodedOp::call_import) ? "a call of an import"
                                                                 : "a copy of a ref";
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s: %s", name.c_str(), why);
}

// ---- the function

llvm::Error KernelEntry::write(const std::string& symbol) {
  if (kernel_.function.argument_count != kArguments)
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "it has %zu arguments; a kernel has %u",
                                   kernel_.function.argument_count, kArguments);
  if (llvm::Error error = place_own_buffers()) return error;
  begin(symbol);
  make_arguments();
  for (uint32_t at = 0; at < words_.size(); at += vm::word_count(words_[at]))
    if (leaves(at)) blocks_[at] = new_block("word" + llvm::Twine(at));
  dispatch_ = new_block("dispatch");
  BasicBlock* const failed = new_block("failed");
  {
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(failed);  // a check in compiled code has failed
    return_code(b_.getInt32(kOutOfRange));
    b_.SetInsertPoint(dispatch_);
    returned_ = b_.CreatePHI(b_.getInt32Ty(), 2);
    llvm::SwitchInst* const cases = b_.CreateSwitch(returned_, failed);
    for (const auto& [at, block] : blocks_) cases->addCase(b_.getInt32(at), block);
  }
  go_on(0);
  for (const auto& [at, block] : std::map(blocks_)) {
    b_.SetInsertPoint(block);
    if (llvm::Error error = write_word(at)) return error;
  }
  if (returned_->getNumIncomingValues() == 0) returned_->addIncoming(b_.getInt32(0), dispatch_);
  return llvm::Error::success();
}

bool KernelEntry::leaves(uint32_t at) const {
  const Word& word = words_[at];
  if (word.op < vm::kOpCount) return !vm::is_compiled(static_cast<Op>(word.op));
  return !is_op(word, DecodedOp::move_32) && !is_op(word, DecodedOp::move_64) &&
         !is_op(word, DecodedOp::move_ref) && !is_op(word, DecodedOp::enter_compiled);
}

void KernelEntry::begin(const std::string& symbol) {
  llvm::Type* const pointer = b_.getPtrTy();
  entry_ =
      llvm::Function::Create(llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, pointer}, false),
                             llvm::GlobalValue::ExternalLinkage, symbol, module_);
  entry_->setVisibility(llvm::GlobalValue::HiddenVisibility);
  entry_->setDSOLocal(true);
  entry_->addFnAttr(llvm::Attribute::NoUnwind);
  b_.SetInsertPoint(new_block("begin"));
  const uint64_t value_bytes = (kernel_.function.value_slots * uint64_t{4} + 15) / 16 * 16;
  const uint64_t ref_bytes = (kernel_.function.ref_slots * uint64_t{8} + 15) / 16 * 16;
  values_ = room(value_bytes);
  refs_ = room(ref_bytes);
  stack_ = room(sizeof(halyard_jit_stack_t));
  stop_ = new llvm::GlobalVariable(module_, b_.getInt32Ty(), true, llvm::GlobalValue::InternalLinkage,
                                   b_.getInt32(0), "never_stop");
  clear(values_, value_bytes);
  clear(refs_, ref_bytes);
  clear(stack_, sizeof(halyard_jit_stack_t));
  if (!dynamic_buffers_.empty()) {
    dynamic_used_ = room(sizeof(uint64_t));
    b_.CreateStore(b_.getInt64(0), dynamic_used_);
  }
  static_assert(sizeof(halyard_jit_stack_t) % 16 == 0);
  // Runtimes flush denormal numbers while native kernels run; instructions of bytecode keep them (rulings.md,
  // 16).
  if (has_floats(run_)) mode_.emplace(b_, Denormals::kept);
}

void KernelEntry::set_number(uint32_t argument, Value* number) {
  b_.CreateStore(b_.CreateZExtOrTrunc(number, b_.getInt32Ty()),
                 slot(kernel_.function.arguments[argument] & vm::kRegisterMask));
}
void KernelEntry::set_object(uint32_t argument, Value* object) {
  b_.CreateStore(object, ref(kernel_.function.arguments[argument] & vm::kRegisterMask));
}

void KernelEntry::make_arguments() {
  Value* const dispatch = entry_->getArg(1);
  Value* const workgroup = entry_->getArg(2);
  llvm::Type* const i16 = b_.getInt16Ty();
  llvm::Type* const i32 = b_.getInt32Ty();
  llvm::Type* const i64 = b_.getInt64Ty();
  llvm::Type* const pointer = b_.getPtrTy();

  // The buffers that the kernel allocates are before the memory that it was given.
  const uint64_t own_bytes = own_bytes_ + dynamic_bytes_;
  Value* const bytes = b_.CreateZExt(field(workgroup, kWorkgroupMemoryBytes, i32), i64);
  // The memory is whole pages; the rest of the last one is not used.
  const uint64_t pages = local_memory_pages() * kPage;
  if (pages > 0) fail_unless(b_.CreateICmpUGE(bytes, b_.getInt64(pages)), kResourceExhausted);
  Value* const memory = room(sizeof(KernelBuffer));
  Value* const given =
      kernel_.local_memory ? b_.CreateSub(bytes, b_.getInt64(pages - kernel_.local_memory)) : b_.getInt64(0);
  fill_buffer(
      memory,
      b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), field(workgroup, kWorkgroupMemory, pointer), own_bytes),
      given, true);
  set_object(kLocalMemoryArgument, memory);

  Value* const constants = room(sizeof(KernelBuffer));
  Value* const count = b_.CreateZExt(field(dispatch, kDispatchConstantCount, i16), i64);
  fill_buffer(constants, field(dispatch, kDispatchConstants, pointer), b_.CreateShl(count, 2), false);
  set_object(kConstantsArgument, constants);

  Value* const buffers = room(sizeof(KernelBuffer) * kernel_.binding_count);
  if (kernel_.binding_count > 0) {
    Value* const addresses = field(dispatch, kDispatchBindings, pointer);
    Value* const lengths = field(dispatch, kDispatchLengths, pointer);
    for (uint32_t i = 0; i < kernel_.binding_count; ++i)
      fill_buffer(b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), buffers, i * sizeof(KernelBuffer)),
                  field(addresses, 8 * i, pointer), field(lengths, 8 * i, i64), true);
  }
  Value* const list = room(sizeof(KernelList));
  set_field(list, offsetof(KernelList, type), host_type(kListType));
  set_field(list, offsetof(KernelList, buffers), buffers);
  set_field(list, offsetof(KernelList, size), b_.getInt32(kernel_.binding_count));
  set_field(list, offsetof(KernelList, element), b_.getInt32(static_cast<uint32_t>(vm::ValueType::none)));
  set_object(kBindingsArgument, list);

  for (uint32_t i = 0; i < 2; ++i) {
    set_number(kFirstNumber + i, field(workgroup, kWorkgroupX + 4 * i, i32));
    set_number(kFirstNumber + 3 + i, field(dispatch, kDispatchSizeX + 4 * i, i32));
    set_number(kFirstNumber + 6 + i, field(dispatch, kDispatchCountX + 4 * i, i32));
  }
  set_number(kFirstNumber + 2, field(workgroup, kWorkgroupZ, i16));
  set_number(kFirstNumber + 5, field(dispatch, kDispatchSizeZ, i16));
  set_number(kFirstNumber + 8, field(dispatch, kDispatchCountZ, i16));
}

// Continues with the instruction at `at`.
void KernelEntry::go_on(uint32_t at) {
  if (const auto block = blocks_.find(at); block != blocks_.end()) {
    b_.CreateBr(block->second);
    return;
  }
  llvm::Constant* const null = llvm::ConstantPointerNull::get(b_.getPtrTy());
  llvm::CallInst* const left =
      b_.CreateCall(&run_, {values_, refs_, stop_, null, stack_, b_.getInt32(words_[at].a)});
  returned_->addIncoming(left, b_.GetInsertBlock());
  b_.CreateBr(dispatch_);
}

llvm::Error KernelEntry::write_word(uint32_t at) {
  const Word& word = words_[at];
  const uint32_t next = at + vm::word_count(word);
  const bool returns =
      is_op(word, Op::return_) || is_op(word, DecodedOp::return_none) || is_op(word, DecodedOp::end);
  if (!returns &&
      (next >= words_.size() || !(leaves(next) || is_op(words_[next], DecodedOp::enter_compiled))))
    return refused(at, "it is in a place where kernels ahead of time do not have it");
  if (returns) {
    return_code(b_.getInt32(is_op(word, DecodedOp::end) ? static_cast<uint32_t>(kInternal) : 0));
    return llvm::Error::success();
  }
  if (word.op >= vm::kOpCount) {
    if (is_op(word, DecodedOp::copy_ref)) {
      b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), ref(word.a)), ref(word.b));
      go_on(next);
      return llvm::Error::success();
    }
    if (!is_op(word, DecodedOp::call_import)) return refused(at, "kernels ahead of time do not have it");
    if (llvm::Error error = write_import_call(at)) return error;
    go_on(next);
    return llvm::Error::success();
  }
  switch (static_cast<Op>(word.op)) {
    case Op::const_ref_rodata:
      if (llvm::Error error = write_constant(at)) return error;
      break;
    case Op::list_get_ref:
      if (llvm::Error error = write_list_get(at)) return error;
      break;
    case Op::buffer_alloc:
      if (llvm::Error error = write_alloc(at)) return error;
      break;
    case Op::fail: {
      Value* const code = b_.CreateLoad(b_.getInt32Ty(), slot(word.a));
      BasicBlock* const fails = new_block();
      BasicBlock* const goes_on = new_block();
      b_.CreateCondBr(b_.CreateIsNull(code), goes_on, fails);
      b_.SetInsertPoint(fails);
      return_code(code);
      b_.SetInsertPoint(goes_on);
      break;
    }
    default:
      return refused(at, "kernels ahead of time do not have it");
  }
  go_on(next);
  return llvm::Error::success();
}

// ---- instructions

llvm::Error KernelEntry::write_constant(uint32_t at) {
  const void* const object = words_[at + 1].pointer<const void>();
  for (size_t i = 0; i < request_.constant_count; ++i) {
    const halyard_emit_constant_t& constant = request_.constants[i];
    if (constant.object != object) continue;
    const std::string name = "data" + std::to_string(i);
    llvm::GlobalVariable* data = module_.getNamedGlobal(name);
    if (!data) {
      const llvm::StringRef bytes(static_cast<const char*>(constant.data), constant.size);
      llvm::Constant* const value =
          llvm::ConstantDataArray::getString(module_.getContext(), bytes, /*AddNull=*/false);
      data = new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::InternalLinkage,
                                      value, name);
      data->setAlignment(llvm::Align(kBufferAlignment));
    }
    Value* const buffer = room(sizeof(KernelBuffer));
    fill_buffer(buffer, data, b_.getInt64(constant.size), false);
    b_.CreateStore(buffer, ref(words_[at].a));
    return llvm::Error::success();
  }
  return refused(at, "the constant is not known");
}

Value* KernelEntry::checked_buffer(uint32_t reg) {
  Value* const buffer = b_.CreateLoad(b_.getPtrTy(), ref(reg));
  fail_unless(b_.CreateIsNotNull(buffer), kInvalidArgument);
  Value* const type = field(buffer, offsetof(KernelBuffer, type), b_.getPtrTy());
  fail_unless(b_.CreateICmpEQ(type, host_type(kBufferType)), kInvalidArgument);
  return buffer;
}

llvm::Error KernelEntry::write_import_call(uint32_t at) {
  const vm::CallSite& site = vm::call_site(&words_[at]);
  const halyard_emit_import_t& import = request_.imports[site.function];
  if (!is_microkernel(import.name, import.convention) || site.variadic)
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "it calls '%s', which is no function of the module vmvx that is known",
                                   import.name);
  microkernels_.insert(import.name);
  const uint16_t* const lists = kernel_.function.lists;
  llvm::SmallVector<Value*, 20> arguments;
  for (uint32_t i = 0; i < site.argument_count; ++i) {
    const uint16_t entry = lists[site.arguments + i];
    if ((entry & vm::kRefBit) != 0)
      arguments.push_back(checked_buffer(entry & vm::kRegisterMask));
    else
      arguments.push_back(nullptr);
  }
  llvm::FunctionType* const type = microkernel_type(import.convention, module_.getContext());
  for (uint32_t i = 0; i < site.argument_count; ++i)
    if (!arguments[i]) {
      const uint32_t reg = lists[site.arguments + i] & vm::kRegisterMask;
      arguments[i] = b_.CreateAlignedLoad(type->getParamType(i), slot(reg), llvm::Align(4));
    }
  llvm::SmallVector<Value*, 2> results;
  for (uint32_t i = 0; i < site.result_count; ++i) {
    results.push_back(room(sizeof(uint64_t)));
    arguments.push_back(results.back());
  }
  llvm::FunctionCallee callee = module_.getOrInsertFunction(microkernel_symbol(import.name), type);
  auto* const function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function->setDSOLocal(true);
  Value* const status = b_.CreateCall(callee, arguments);
  BasicBlock* const failed = new_block();
  BasicBlock* const goes_on = new_block();
  b_.CreateCondBr(b_.CreateIsNull(status), goes_on, failed);
  b_.SetInsertPoint(failed);
  return_code(status);
  b_.SetInsertPoint(goes_on);
  for (uint32_t i = 0; i < site.argument_count; ++i) {
    const uint16_t entry = lists[site.arguments + i];
    if ((entry & vm::kRefBit) != 0 && (entry & vm::kMoveBit) != 0)
      b_.CreateStore(llvm::ConstantPointerNull::get(b_.getPtrTy()), ref(entry & vm::kRegisterMask));
  }
  for (uint32_t i = 0; i < site.result_count; ++i)
    b_.CreateAlignedStore(b_.CreateLoad(b_.getInt64Ty(), results[i]),
                          slot(lists[site.results + i] & vm::kRegisterMask), llvm::Align(4));
  return llvm::Error::success();
}

llvm::Error KernelEntry::write_list_get(uint32_t at) {
  const Word& word = words_[at];
  if (words_[at + 1].pointer<const void>() != request_.buffer_type || (word.c & vm::kMoveBit) != 0)
    return refused(at, "only buffers are taken from the list of bindings");
  Value* const list = b_.CreateLoad(b_.getPtrTy(), ref(word.a));
  fail_unless(b_.CreateIsNotNull(list), kInvalidArgument);
  Value* const type = field(list, offsetof(KernelList, type), b_.getPtrTy());
  fail_unless(b_.CreateICmpEQ(type, host_type(kListType)), kInvalidArgument);
  Value* const index = b_.CreateLoad(b_.getInt32Ty(), slot(word.b));
  fail_unless(b_.CreateICmpULT(index, field(list, offsetof(KernelList, size), b_.getInt32Ty())), kOutOfRange);
  Value* const offset =
      b_.CreateNUWMul(b_.CreateZExt(index, b_.getInt64Ty()), b_.getInt64(sizeof(KernelBuffer)));
  Value* const buffers = field(list, offsetof(KernelList, buffers), b_.getPtrTy());
  b_.CreateStore(b_.CreateInBoundsGEP(b_.getInt8Ty(), buffers, offset), ref(word.c));
  return llvm::Error::success();
}

// Whether the instruction may run again after it has run.
bool KernelEntry::is_in_circle(uint32_t at) const {
  std::vector<bool> seen(words_.size());
  std::vector<uint32_t> waiting;
  const auto visit = [&](uint32_t from) {
    vm::for_each_successor(words_, from, [&](uint32_t to) {
      if (to >= words_.size() || seen[to]) return;
      seen[to] = true;
      waiting.push_back(to);
    });
  };
  visit(at);
  while (!waiting.empty()) {
    const uint32_t from = waiting.back();
    waiting.pop_back();
    if (from == at) return true;
    visit(from);
  }
  return false;
}

// Whether only the register refers to the buffers that the instruction allocates: when the instruction runs
// again, nothing needs the buffer before. Microkernels keep no references.
bool KernelEntry::is_reused(uint32_t at) const {
  const uint32_t reg = words_[at].c & vm::kRegisterMask;
  for (uint32_t other = 0; other < words_.size(); other += vm::word_count(words_[other])) {
    const Word& word = words_[other];
    if (is_op(word, DecodedOp::copy_ref) || is_op(word, DecodedOp::move_ref)) {
      if ((word.a & vm::kRegisterMask) == reg) return false;
    } else if (word.op < vm::kOpCount) {
      const vm::OpInfo& op = vm::info(static_cast<Op>(word.op));
      if (is_op(word, Op::call) || is_op(word, Op::switch_ref)) return false;
      if (op.mnemonic().starts_with("buffer.") || op.mnemonic().starts_with("cmp.")) continue;
      size_t index = 0;
      for (size_t i = 0; i < op.operand_count; ++i) {
        if (op.operands[i].kind != vm::OperandKind::reg) continue;
        const uint16_t used = vm::field(&word, index++);
        if (op.operands[i].bank == vm::Bank::ref && !op.operands[i].writes &&
            (used & vm::kRegisterMask) == reg)
          return false;
      }
    }
  }
  return true;
}

// Gives each buffer that the kernel allocates its place in local memory, if one is enough for all times that
// the instruction runs.
llvm::Error KernelEntry::place_own_buffers() {
  const std::string hint = "; --kernel_memory=SIZE of vm-cc gives kernels memory for such buffers";
  for (uint32_t at = 0; at < words_.size(); at += vm::word_count(words_[at])) {
    const Word& word = words_[at];
    if (!is_op(word, Op::buffer_alloc)) continue;
    const auto alignment = registers_.constant(at, word.b);
    if (!alignment || *alignment > kBufferAlignment)
      return refused(at, "the alignment of the buffer is more than 64, or not known ahead of time");
    const auto low = registers_.constant(at, word.a);
    const auto high = registers_.constant(at, word.a + 1u);
    const bool is_known = low && high;
    if (!is_known || (is_in_circle(at) && !is_reused(at))) {
      const char* const why =
          is_known ? "the buffer is allocated in a loop, and may be needed after the next one is"
                   : "the size of the buffer is not known ahead of time";
      if (request_.dynamic_memory == 0) return refused(at, (why + hint).c_str());
      dynamic_buffers_.insert(at);
      continue;
    }
    const uint64_t bytes = *low | uint64_t{*high} << 32;
    if (bytes > kMaxPages * kPage - own_bytes_ - kBufferAlignment)
      return refused(at, "the buffer is larger than the local memory of a workgroup can be");
    own_buffers_[at] = own_bytes_;
    own_bytes_ += (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  }
  if (!dynamic_buffers_.empty())
    dynamic_bytes_ = (std::min(request_.dynamic_memory, kMaxPages * kPage) + kBufferAlignment - 1) /
                     kBufferAlignment * kBufferAlignment;
  if ((own_bytes_ + dynamic_bytes_ + kernel_.local_memory + kPage - 1) / kPage > kMaxPages)
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "its local memory is larger than that of a workgroup can be");
  return llvm::Error::success();
}

// The place of a buffer, with the bytes of its KernelBuffer before it. If nothing needs the buffer that the
// instruction allocated before, its place is used again if it is large enough.
Value* KernelEntry::dynamic_place(uint32_t at, Value* bytes) {
  llvm::Type* const i64 = b_.getInt64Ty();
  fail_unless(b_.CreateICmpULE(bytes, b_.getInt64(dynamic_bytes_)), kResourceExhausted);
  Value* const needed = b_.CreateAdd(
      b_.CreateAnd(b_.CreateAdd(bytes, b_.getInt64(kBufferAlignment - 1)), ~(kBufferAlignment - 1)),
      b_.getInt64(kBufferAlignment));
  Value* const memory = b_.CreateConstInBoundsGEP1_64(
      b_.getInt8Ty(), field(entry_->getArg(2), kWorkgroupMemory, b_.getPtrTy()), own_bytes_);
  const auto take = [&]() -> Value* {
    Value* const used = b_.CreateLoad(i64, dynamic_used_);
    Value* const end = b_.CreateAdd(used, needed);
    fail_unless(b_.CreateICmpULE(end, b_.getInt64(dynamic_bytes_)), kResourceExhausted);
    b_.CreateStore(end, dynamic_used_);
    return used;
  };
  if (!is_in_circle(at) || !is_reused(at)) return b_.CreateGEP(b_.getInt8Ty(), memory, take());
  Value* const last = room(sizeof(uint64_t));
  Value* const room_of_last = room(sizeof(uint64_t));
  {
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(entry_->getEntryBlock().getTerminator());
    b_.CreateStore(b_.getInt64(0), room_of_last);
  }
  BasicBlock* const takes = new_block();
  BasicBlock* const has = new_block();
  b_.CreateCondBr(b_.CreateICmpULE(needed, b_.CreateLoad(i64, room_of_last)), has, takes);
  b_.SetInsertPoint(takes);
  b_.CreateStore(take(), last);
  b_.CreateStore(needed, room_of_last);
  b_.CreateBr(has);
  b_.SetInsertPoint(has);
  return b_.CreateGEP(b_.getInt8Ty(), memory, b_.CreateLoad(i64, last));
}

llvm::Error KernelEntry::write_alloc(uint32_t at) {
  const Word& word = words_[at];
  if (dynamic_buffers_.contains(at)) {
    static_assert(sizeof(KernelBuffer) <= kBufferAlignment);
    Value* const bytes = b_.CreateAlignedLoad(b_.getInt64Ty(), slot(word.a), llvm::Align(4));
    Value* const buffer = dynamic_place(at, bytes);
    Value* const memory = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), buffer, kBufferAlignment);
    if (!(word.c & vm::kFilledBit))
      clear_cache_lines(memory, b_.CreateAnd(b_.CreateAdd(bytes, b_.getInt64(kBufferAlignment - 1)),
                                             ~(kBufferAlignment - 1)));
    fill_buffer(buffer, memory, bytes, true);
    b_.CreateStore(buffer, ref(word.c & vm::kRegisterMask));
    return llvm::Error::success();
  }
  const uint64_t bytes = *registers_.constant(at, word.a) | uint64_t{*registers_.constant(at, word.a + 1u)}
                                                                << 32;
  Value* const memory = b_.CreateConstInBoundsGEP1_64(
      b_.getInt8Ty(), field(entry_->getArg(2), kWorkgroupMemory, b_.getPtrTy()), own_buffers_.at(at));
  if (!(word.c & vm::kFilledBit)) clear(memory, (bytes + 15) / 16 * 16);
  Value* const buffer = room(sizeof(KernelBuffer));
  fill_buffer(buffer, memory, b_.getInt64(bytes), true);
  b_.CreateStore(buffer, ref(word.c & vm::kRegisterMask));
  return llvm::Error::success();
}

}  // namespace halyard::jit
