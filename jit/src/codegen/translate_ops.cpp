// The translation of each instruction. Float operations keep the program's order and round separately, as in
// the interpreter.
#include <bit>

#include "codegen/elementary.h"
#include "codegen/fast_elementary.h"
#include "codegen/translator.h"
#include "codegen/vector_math.h"
#include "vm/compile/helpers.h"

namespace halyard::jit {

void translate(const halyard_jit_function_t& function, llvm::Module& module, llvm::StringRef features) {
  Translator(function, module, features).run();
}

void Translator::emit_op(Op op, const Word* word, uint32_t at) {
  switch (op) {
    case Op::br:
      b_.CreateBr(edge(at, static_cast<uint32_t>(static_cast<int64_t>(at) + word->distance())));
      return;
    case Op::cond_br: {
      const auto target = [&](int32_t distance) {
        return edge(at, static_cast<uint32_t>(static_cast<int64_t>(at) + distance));
      };
      Value* const condition = b_.CreateIsNotNull(i32(word->a));
      BasicBlock* const taken = target(word[1].distance_if());
      b_.CreateCondBr(condition, taken, target(word[1].distance_else()));
      return;
    }
    case Op::br_table: {
      const auto target = [&](uint32_t edge_word) {
        return edge(at, static_cast<uint32_t>(static_cast<int64_t>(at) + word[edge_word].distance()));
      };
      llvm::SwitchInst* const cases = b_.CreateSwitch(i32(word->a), target(1), word->wide());
      for (uint32_t i = 0; i < word->wide(); ++i) cases->addCase(b_.getInt32(i), target(2 + i));
      return;
    }
    case Op::discard_refs:
      for (uint32_t i = 0; i < word->a; ++i) {
        const uint16_t ref = source_.lists[word->wide() + i];
        put_ref(ref, llvm::ConstantPointerNull::get(b_.getPtrTy()));
        clear_parts(ref);
      }
      return;
    case Op::const_ref_zero:
      put_ref(word->a, llvm::ConstantPointerNull::get(b_.getPtrTy()));
      return clear_parts(word->a);
    default:
      break;
  }
  if (emit_integer(op, word) || emit_division(op, word, at) || emit_float(op, word) ||
      emit_conversion(op, word) || emit_buffer(op, word, at) || emit_list(op, word, at) ||
      emit_global(op, word, at))
    return;
  // Markers, prefixes, and opcodes that decoding replaces do not occur in decoded code.
  b_.CreateBr(exit_at(at));
  b_.SetInsertPoint(BasicBlock::Create(context_, "", function_));
}

bool Translator::emit_integer(Op op, const Word* word) {
  const uint16_t a = word->a;
  const uint16_t b = word->b;
  const uint16_t c = word->c;
  const auto masked = [&](Value* amount, uint32_t mask) { return b_.CreateAnd(amount, mask); };
  const auto smaller = [&](llvm::CmpInst::Predicate less, Value* x, Value* y) {
    set(c, b_.CreateSelect(b_.CreateICmp(less, y, x), y, x));
  };
  const auto larger = [&](llvm::CmpInst::Predicate less, Value* x, Value* y) {
    set(c, b_.CreateSelect(b_.CreateICmp(less, x, y), y, x));
  };
  const auto absolute = [&](Value* x) {
    Value* const zero = llvm::ConstantInt::get(x->getType(), 0);
    set(b, b_.CreateSelect(b_.CreateICmpSLT(x, zero), b_.CreateSub(zero, x), x));
  };
  const auto refs_equal = [&] {
    return b_.CreateICmpEQ(b_.CreateLoad(b_.getPtrTy(), ref_address(a)),
                           b_.CreateLoad(b_.getPtrTy(), ref_address(b)));
  };
  using enum llvm::CmpInst::Predicate;
  switch (op) {
      // clang-format off
    case Op::const_i32_zero: set(a, b_.getInt32(0)); return true;
    case Op::const_i64_zero: set(a, b_.getInt64(0)); return true;
    case Op::const_i32: set(a, b_.getInt32(word->wide())); return true;
    case Op::const_i64: set(a, b_.getInt64(word[1].bits())); return true;
    case Op::add_i32: set(c, b_.CreateAdd(i32(a), i32(b))); return true;
    case Op::sub_i32: set(c, b_.CreateSub(i32(a), i32(b))); return true;
    case Op::mul_i32: set(c, b_.CreateMul(i32(a), i32(b))); return true;
    case Op::fma_i32: set(word[1].op, b_.CreateAdd(b_.CreateMul(i32(a), i32(b)), i32(c))); return true;
    case Op::add_i64: set(c, b_.CreateAdd(i64(a), i64(b))); return true;
    case Op::sub_i64: set(c, b_.CreateSub(i64(a), i64(b))); return true;
    case Op::mul_i64: set(c, b_.CreateMul(i64(a), i64(b))); return true;
    case Op::fma_i64: set(word[1].op, b_.CreateAdd(b_.CreateMul(i64(a), i64(b)), i64(c))); return true;
    case Op::not_i32: set(b, b_.CreateNot(i32(a))); return true;
    case Op::not_i64: set(b, b_.CreateNot(i64(a))); return true;
    case Op::and_i32: set(c, b_.CreateAnd(i32(a), i32(b))); return true;
    case Op::and_i64: set(c, b_.CreateAnd(i64(a), i64(b))); return true;
    case Op::or_i32: set(c, b_.CreateOr(i32(a), i32(b))); return true;
    case Op::or_i64: set(c, b_.CreateOr(i64(a), i64(b))); return true;
    case Op::xor_i32: set(c, b_.CreateXor(i32(a), i32(b))); return true;
    case Op::xor_i64: set(c, b_.CreateXor(i64(a), i64(b))); return true;
    case Op::shl_i32: set(c, b_.CreateShl(i32(a), masked(i32(b), 31))); return true;
    case Op::shr_i32_s: set(c, b_.CreateAShr(i32(a), masked(i32(b), 31))); return true;
    case Op::shr_i32_u: set(c, b_.CreateLShr(i32(a), masked(i32(b), 31))); return true;
    case Op::shl_i64: set(c, b_.CreateShl(i64(a), b_.CreateZExt(masked(i32(b), 63), b_.getInt64Ty()))); return true;
    case Op::shr_i64_s: set(c, b_.CreateAShr(i64(a), b_.CreateZExt(masked(i32(b), 63), b_.getInt64Ty()))); return true;
    case Op::shr_i64_u: set(c, b_.CreateLShr(i64(a), b_.CreateZExt(masked(i32(b), 63), b_.getInt64Ty()))); return true;
    case Op::ctlz_i32: set(b, b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, i32(a), b_.getFalse())); return true;
    case Op::ctlz_i64: set(b, b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, i64(a), b_.getFalse())); return true;
    case Op::abs_i32: absolute(i32(a)); return true;
    case Op::abs_i64: absolute(i64(a)); return true;
    case Op::min_i32_s: smaller(ICMP_SLT, i32(a), i32(b)); return true;
    case Op::min_i32_u: smaller(ICMP_ULT, i32(a), i32(b)); return true;
    case Op::max_i32_s: larger(ICMP_SLT, i32(a), i32(b)); return true;
    case Op::max_i32_u: larger(ICMP_ULT, i32(a), i32(b)); return true;
    case Op::min_i64_s: smaller(ICMP_SLT, i64(a), i64(b)); return true;
    case Op::min_i64_u: smaller(ICMP_ULT, i64(a), i64(b)); return true;
    case Op::max_i64_s: larger(ICMP_SLT, i64(a), i64(b)); return true;
    case Op::max_i64_u: larger(ICMP_ULT, i64(a), i64(b)); return true;
    case Op::trunc_i32_i8: case Op::ext_i8_i32_u: set(b, b_.CreateAnd(i32(a), 0xFF)); return true;
    case Op::trunc_i32_i16: case Op::ext_i16_i32_u: set(b, b_.CreateAnd(i32(a), 0xFFFF)); return true;
    case Op::trunc_i64_i32: set(b, b_.CreateTrunc(i64(a), b_.getInt32Ty())); return true;
    case Op::ext_i8_i32_s: set(b, b_.CreateSExt(b_.CreateTrunc(i32(a), b_.getInt8Ty()), b_.getInt32Ty())); return true;
    case Op::ext_i16_i32_s: set(b, b_.CreateSExt(b_.CreateTrunc(i32(a), b_.getInt16Ty()), b_.getInt32Ty())); return true;
    case Op::ext_i32_i64_s: set(b, b_.CreateSExt(i32(a), b_.getInt64Ty())); return true;
    case Op::ext_i32_i64_u: set(b, b_.CreateZExt(i32(a), b_.getInt64Ty())); return true;
    case Op::cmp_eq_i32: set(c, bit(b_.CreateICmpEQ(i32(a), i32(b)))); return true;
    case Op::cmp_ne_i32: set(c, bit(b_.CreateICmpNE(i32(a), i32(b)))); return true;
    case Op::cmp_lt_i32_s: set(c, bit(b_.CreateICmpSLT(i32(a), i32(b)))); return true;
    case Op::cmp_lt_i32_u: set(c, bit(b_.CreateICmpULT(i32(a), i32(b)))); return true;
    case Op::cmp_nz_i32: set(b, bit(b_.CreateIsNotNull(i32(a)))); return true;
    case Op::cmp_eq_i64: set(c, bit(b_.CreateICmpEQ(i64(a), i64(b)))); return true;
    case Op::cmp_ne_i64: set(c, bit(b_.CreateICmpNE(i64(a), i64(b)))); return true;
    case Op::cmp_lt_i64_s: set(c, bit(b_.CreateICmpSLT(i64(a), i64(b)))); return true;
    case Op::cmp_lt_i64_u: set(c, bit(b_.CreateICmpULT(i64(a), i64(b)))); return true;
    case Op::cmp_nz_i64: set(b, bit(b_.CreateIsNotNull(i64(a)))); return true;
    case Op::cmp_eq_ref: set(c, bit(refs_equal())); return true;
    case Op::cmp_ne_ref: set(c, bit(b_.CreateNot(refs_equal()))); return true;
    case Op::cmp_nz_ref: set(b, bit(b_.CreateIsNotNull(b_.CreateLoad(b_.getPtrTy(), ref_address(a))))); return true;
    case Op::select_i32: set(word[1].op, b_.CreateSelect(b_.CreateIsNotNull(i32(a)), i32(b), i32(c))); return true;
    case Op::select_f32: set(word[1].op, b_.CreateSelect(b_.CreateIsNotNull(i32(a)), f32(b), f32(c))); return true;
    case Op::select_i64: set(word[1].op, b_.CreateSelect(b_.CreateIsNotNull(i32(a)), i64(b), i64(c))); return true;
    case Op::select_f64: set(word[1].op, b_.CreateSelect(b_.CreateIsNotNull(i32(a)), f64(b), f64(c))); return true;
    // clang-format on
    default:
      return false;
  }
}

bool Translator::emit_division(Op op, const Word* word, uint32_t at) {
  const auto divide_32 = [&](bool is_signed, bool remainder) {
    emit_division(i32(word->a), i32(word->b), is_signed, remainder, word->c, at);
    return true;
  };
  const auto divide_64 = [&](bool is_signed, bool remainder) {
    emit_division(i64(word->a), i64(word->b), is_signed, remainder, word->c, at);
    return true;
  };
  switch (op) {
    case Op::div_i32_s:
      return divide_32(true, false);
    case Op::div_i32_u:
      return divide_32(false, false);
    case Op::rem_i32_s:
      return divide_32(true, true);
    case Op::rem_i32_u:
      return divide_32(false, true);
    case Op::div_i64_s:
      return divide_64(true, false);
    case Op::div_i64_u:
      return divide_64(false, false);
    case Op::rem_i64_s:
      return divide_64(true, true);
    case Op::rem_i64_u:
      return divide_64(false, true);
    default:
      return false;
  }
}

void Translator::emit_division(Value* x, Value* y, bool is_signed, bool remainder, uint16_t result,
                               uint32_t at) {
  require(b_.CreateIsNotNull(y), at, nullptr);
  if (!is_signed) return set(result, remainder ? b_.CreateURem(x, y) : b_.CreateUDiv(x, y));
  // The minimum divided by -1 wraps; the processor would trap.
  Value* const negates = b_.CreateICmpEQ(y, llvm::ConstantInt::getAllOnesValue(y->getType()));
  Value* const divisor = b_.CreateSelect(negates, llvm::ConstantInt::get(y->getType(), 1), y);
  Value* const zero = llvm::ConstantInt::get(x->getType(), 0);
  if (remainder) return set(result, b_.CreateSelect(negates, zero, b_.CreateSRem(x, divisor)));
  set(result, b_.CreateSelect(negates, b_.CreateSub(zero, x), b_.CreateSDiv(x, divisor)));
}

// A constant that is opaque to LLVM. LLVM folds known floats differently from the processor if a NaN is
// involved: it replaces x * 1 by x and x - -y by x + y, and folds 0 / 0 to another NaN.
Value* Translator::opaque(llvm::Type* type, uint64_t bits) {
  llvm::GlobalVariable*& variable = opaque_[{type, bits}];
  if (!variable) {
    llvm::Constant* const value = llvm::ConstantExpr::getBitCast(
        llvm::ConstantInt::get(b_.getIntNTy(type->getPrimitiveSizeInBits()), bits), type);
    variable = new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::ExternalLinkage, value,
                                        "constant" + std::to_string(opaque_.size()));
    variable->setVisibility(llvm::GlobalValue::HiddenVisibility);
  }
  llvm::LoadInst* const load = b_.CreateLoad(type, variable);
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  return load;
}

Value* Translator::arithmetic(Value* value) {
  auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (!source_.fast_math || !instruction) return value;
  instruction->setHasAllowReassoc(true);
  instruction->setHasAllowContract(true);
  return value;
}

// Tells LLVM's vectorizer which vector functions replace several such calls.
void Translator::add_vector_forms(Op op, llvm::CallInst* call) {
  std::string forms;
  for (const VectorFunction& function : vector_functions()) {
    if (function.op != op || !runs_on(function, features_)) continue;
    llvm::Type* const type = llvm::FixedVectorType::get(call->getType(), function.lanes);
    const std::vector<llvm::Type*> arguments(function.arguments, type);
    auto* const declared = llvm::cast<llvm::Function>(
        module_
            .getOrInsertFunction(function.name, llvm::FunctionType::get(type, arguments, /*isVarArg=*/false))
            .getCallee());
    declared->setDoesNotThrow();
    declared->setDoesNotAccessMemory();
    forms += std::string(forms.empty() ? "" : ",") + "_ZGV_LLVM_N" + std::to_string(function.lanes) +
             std::string(function.arguments, 'v') + "_" + helper_name(static_cast<size_t>(op)) + "(" +
             function.name + ")";
  }
  if (!forms.empty()) call->addFnAttr(llvm::Attribute::get(context_, "vector-function-abi-variant", forms));
}

Value* Translator::helper(Op op, llvm::Type* result, llvm::ArrayRef<Value*> arguments) {
  std::vector<llvm::Type*> types;
  for (const Value* argument : arguments) types.push_back(argument->getType());
  llvm::CallInst* const call =
      b_.CreateCall(module_.getOrInsertFunction(helper_name(static_cast<size_t>(op)),
                                                llvm::FunctionType::get(result, types, false)),
                    arguments);
  call->setDoesNotThrow();
  call->setDoesNotAccessMemory();
  call->addFnAttr(llvm::Attribute::WillReturn);
  if (source_.fast_math) add_vector_forms(op, call);
  return call;
}

// With fast math, LLVM's vectorizer may replace a call by one of a vector function.
Value* Translator::function_of(Op op, llvm::ArrayRef<Value*> arguments) {
  const auto call = [&] { return helper(op, arguments[0]->getType(), arguments); };
  if (source_.fast_math) {
    if (Value* const code = emit_fast_elementary(b_, op, arguments[0])) return code;
    const auto is_vector_form = [&](const VectorFunction& function) {
      return function.op == op && runs_on(function, features_);
    };
    if (llvm::any_of(vector_functions(), is_vector_form)) return call();
  }
  Value* const code = emit_elementary(b_, op, arguments);
  return code ? code : call();
}

// Rounds up or down to an integer. Whether a signaling NaN becomes quiet depends on the host's build.
Value* Translator::rounded(Op op, llvm::Intrinsic::ID id, Value* x) {
  Value* const integer = unary(id, x);
  if (!vm::keeps_nan(source_.kept_nans, op)) return integer;
  return b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, integer);
}

// The nearest integer, halves away from zero; the minimum if it does not fit. For f32 and f64.
Value* Translator::to_i64(Value* number) {
  Value* const away = unary(llvm::Intrinsic::round, number);
  llvm::Type* const type = number->getType();
  Value* const limit = llvm::ConstantFP::get(type, 9223372036854775808.0);
  Value* const fits =
      b_.CreateAnd(b_.CreateFCmpOGE(away, llvm::ConstantFP::get(type, -9223372036854775808.0)),
                   b_.CreateFCmpOLT(away, limit));
  Value* const converted =
      b_.CreateFPToSI(b_.CreateSelect(fits, away, llvm::ConstantFP::get(type, 0.0)), b_.getInt64Ty());
  return b_.CreateSelect(fits, converted, b_.getInt64(uint64_t{1} << 63));
}

bool Translator::emit_float(Op op, const Word* word) {
  const uint16_t a = word->a;
  const uint16_t b = word->b;
  const uint16_t c = word->c;
  constexpr uint32_t kSign32 = 1u << 31;
  constexpr uint64_t kSign64 = uint64_t{1} << 63;
  const auto even = [&](Value* x) {
    // Half to even, and -0.5 becomes +0.
    Value* const half = b_.CreateFCmpOEQ(x, llvm::ConstantFP::get(x->getType(), -0.5));
    return b_.CreateSelect(half, opaque(x->getType(), 0), unary(llvm::Intrinsic::roundeven, x));
  };
  const auto least = [&](Value* x, Value* y) { return b_.CreateSelect(b_.CreateFCmpOLT(y, x), y, x); };
  const auto most = [&](Value* x, Value* y) { return b_.CreateSelect(b_.CreateFCmpOLT(x, y), y, x); };
  const auto rsqrt = [&](Value* x) {
    return b_.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1.0), unary(llvm::Intrinsic::sqrt, x));
  };
  const auto fma = [&](Value* x, Value* y, Value* z) {
    return arithmetic(b_.CreateFAdd(arithmetic(b_.CreateFMul(x, y)), z));
  };
  const auto one = [&](Value* value) { set(b, value); };
  const auto two = [&](Value* value) { set(c, value); };
  switch (op) {
    case Op::const_f32_zero:
    case Op::const_f32: {
      const uint32_t bits = op == Op::const_f32 ? word->wide() : 0;
      set_single(a, b_.getInt32(bits), opaque(b_.getFloatTy(), bits));
      return true;
    }
    case Op::const_f64_zero:
    case Op::const_f64: {
      const uint64_t bits = op == Op::const_f64 ? word[1].bits() : 0;
      set_pair(a, b_.getInt64(bits), opaque(b_.getDoubleTy(), bits));
      return true;
    }
    case Op::fma_f32:
      set(word[1].op, fma(f32(a), f32(b), f32(c)));
      return true;
    case Op::fma_f64:
      set(word[1].op, fma(f64(a), f64(b), f64(c)));
      return true;
    case Op::abs_f32:
      set_bits_of_float(b, b_.CreateAnd(i32(a), opaque(b_.getInt32Ty(), ~kSign32)));
      return true;
    case Op::neg_f32:
      set_bits_of_float(b, b_.CreateXor(i32(a), opaque(b_.getInt32Ty(), kSign32)));
      return true;
    case Op::abs_f64:
      set_bits_of_float(b, b_.CreateAnd(i64(a), opaque(b_.getInt64Ty(), ~kSign64)));
      return true;
    case Op::neg_f64:
      set_bits_of_float(b, b_.CreateXor(i64(a), opaque(b_.getInt64Ty(), kSign64)));
      return true;
#define FLOATS(f)                                   \
  case Op::add_##f:                                 \
    two(arithmetic(b_.CreateFAdd(f(a), f(b))));     \
    return true;                                    \
  case Op::sub_##f:                                 \
    two(arithmetic(b_.CreateFSub(f(a), f(b))));     \
    return true;                                    \
  case Op::mul_##f:                                 \
    two(arithmetic(b_.CreateFMul(f(a), f(b))));     \
    return true;                                    \
  case Op::div_##f:                                 \
    two(b_.CreateFDiv(f(a), f(b)));                 \
    return true;                                    \
  case Op::min_##f:                                 \
    two(least(f(a), f(b)));                         \
    return true;                                    \
  case Op::max_##f:                                 \
    two(most(f(a), f(b)));                          \
    return true;                                    \
  case Op::cmp_eq_##f##_o:                          \
    two(bit(b_.CreateFCmpOEQ(f(a), f(b))));         \
    return true;                                    \
  case Op::cmp_eq_##f##_u:                          \
    two(bit(b_.CreateFCmpUEQ(f(a), f(b))));         \
    return true;                                    \
  case Op::cmp_ne_##f##_o:                          \
  case Op::cmp_ne_##f##_u:                          \
    two(bit(b_.CreateFCmpUNE(f(a), f(b))));         \
    return true;                                    \
  case Op::cmp_lt_##f##_o:                          \
    two(bit(b_.CreateFCmpOLT(f(a), f(b))));         \
    return true;                                    \
  case Op::cmp_lt_##f##_u:                          \
    two(bit(b_.CreateFCmpULT(f(a), f(b))));         \
    return true;                                    \
  case Op::cmp_lte_##f##_o:                         \
    two(bit(b_.CreateFCmpOLE(f(a), f(b))));         \
    return true;                                    \
  case Op::cmp_lte_##f##_u:                         \
    two(bit(b_.CreateFCmpULE(f(a), f(b))));         \
    return true;                                    \
  case Op::cmp_nan_##f:                             \
    one(bit(b_.CreateFCmpUNO(f(a), f(a))));         \
    return true;                                    \
  case Op::ceil_##f:                                \
    one(rounded(op, llvm::Intrinsic::ceil, f(a)));  \
    return true;                                    \
  case Op::floor_##f:                               \
    one(rounded(op, llvm::Intrinsic::floor, f(a))); \
    return true;                                    \
  case Op::round_##f:                               \
    one(unary(llvm::Intrinsic::round, f(a)));       \
    return true;                                    \
  case Op::round_##f##_even:                        \
    one(even(f(a)));                                \
    return true;                                    \
  case Op::sqrt_##f:                                \
    one(unary(llvm::Intrinsic::sqrt, f(a)));        \
    return true;                                    \
  case Op::rsqrt_##f:                               \
    one(rsqrt(f(a)));                               \
    return true;                                    \
  case Op::rem_##f:                                 \
  case Op::atan2_##f:                               \
  case Op::pow_##f: {                               \
    Value* const x = f(a);                          \
    two(function_of(op, {x, f(b)}));                \
    return true;                                    \
  }                                                 \
  case Op::atan_##f:                                \
  case Op::cos_##f:                                 \
  case Op::sin_##f:                                 \
  case Op::exp_##f:                                 \
  case Op::exp2_##f:                                \
  case Op::expm1_##f:                               \
  case Op::log_##f:                                 \
  case Op::log10_##f:                               \
  case Op::log1p_##f:                               \
  case Op::log2_##f:                                \
  case Op::tanh_##f:                                \
  case Op::erf_##f: {                               \
    one(function_of(op, {f(a)}));                   \
    return true;                                    \
  }
      // clang-format off
      FLOATS(f32)
      FLOATS(f64)
      // clang-format on
#undef FLOATS
    default:
      return false;
  }
}

bool Translator::emit_conversion(Op op, const Word* word) {
  const uint16_t a = word->a;
  const uint16_t b = word->b;
  llvm::Type* const f32_type = b_.getFloatTy();
  llvm::Type* const f64_type = b_.getDoubleTy();
  const auto low = [&](Value* wide) { return b_.CreateTrunc(wide, b_.getInt32Ty()); };
  // Hidden, because LLVM may know the value of a counter.
  const auto number = [&](Value* value) {
    llvm::Type* const bits = b_.getIntNTy(value->getType()->getPrimitiveSizeInBits());
    set_bits_of_float(b, hidden(b_.CreateBitCast(value, bits)));
  };
  switch (op) {
      // clang-format off
    case Op::bitcast_i32_f32: case Op::bitcast_f32_i32: set(b, i32(a)); return true;
    case Op::bitcast_i64_f64: case Op::bitcast_f64_i64: set(b, i64(a)); return true;
    case Op::cast_si32_f32: number(b_.CreateSIToFP(i32(a), f32_type)); return true;
    case Op::cast_ui32_f32: number(b_.CreateUIToFP(i32(a), f32_type)); return true;
    case Op::cast_si64_f32: number(b_.CreateSIToFP(i64(a), f32_type)); return true;
    case Op::cast_ui64_f32: number(b_.CreateUIToFP(i64(a), f32_type)); return true;
    case Op::cast_si32_f64: number(b_.CreateSIToFP(i32(a), f64_type)); return true;
    case Op::cast_ui32_f64: number(b_.CreateUIToFP(i32(a), f64_type)); return true;
    case Op::cast_si64_f64: number(b_.CreateSIToFP(i64(a), f64_type)); return true;
    case Op::cast_ui64_f64: number(b_.CreateUIToFP(i64(a), f64_type)); return true;
    case Op::cast_f32_si32: case Op::cast_f32_ui32: set(b, low(to_i64(f32(a)))); return true;
    case Op::cast_f32_si64: set(b, to_i64(f32(a))); return true;
    case Op::cast_f32_ui64: set(b, helper(op, b_.getInt64Ty(), {f32(a)})); return true;
    // The operand is narrowed to f32 first.
    case Op::cast_f64_si32: case Op::cast_f64_ui32: set(b, low(to_i64(b_.CreateFPTrunc(f64(a), f32_type)))); return true;
    case Op::cast_f64_si64: case Op::cast_f64_ui64: set(b, to_i64(f64(a))); return true;
    // Hidden, because LLVM would fold this truncation of an extended f32 to the f32 itself, but a signaling
    // NaN must become quiet.
    case Op::trunc_f64_f32: set(b, b_.CreateFPTrunc(as_float(i64(a)), f32_type)); return true;
    case Op::ext_f32_f64: set(b, b_.CreateFPExt(f32(a), f64_type)); return true;
    // clang-format on
    default:
      return false;
  }
}

// The address of the instruction's element, after a bounds check.
Value* Translator::element(const Word* word, uint32_t at, Value* length, uint32_t size) {
  Value* const index = i64(word->b);
  Value* const bytes = b_.CreateLoad(b_.getInt64Ty(), length);
  Value* const count = size == 1 ? bytes : b_.CreateLShr(bytes, size == 2 ? 1 : size == 4 ? 2 : 3);
  require(b_.CreateICmpULT(index, count), at, kCheck);
  Value* const data = b_.CreateLoad(b_.getPtrTy(), buffers_[word->a].data);
  return b_.CreateInBoundsGEP(b_.getIntNTy(8 * size), data, index);
}

// `extend`: 0: the value has the width of the register; 1: zero-extend; 2: sign-extend.
void Translator::emit_load(const Word* word, uint32_t at, llvm::Type* type, int extend) {
  const auto size = static_cast<uint32_t>(type->getPrimitiveSizeInBits() / 8);
  Value* const address = element(word, at, buffers_[word->a].length, size);
  llvm::LoadInst* const load = b_.CreateAlignedLoad(type, address, llvm::Align(1));
  if (own_buffers_.is_last_read(at)) load->setMetadata(kLastRead, llvm::MDNode::get(context_, {}));
  Value* value = load;
  if (extend)
    value = extend == 1 ? b_.CreateZExt(value, b_.getInt32Ty()) : b_.CreateSExt(value, b_.getInt32Ty());
  set(word->c, value);
}

void Translator::emit_store(const Word* word, uint32_t at, llvm::Type* type, Value* value) {
  const auto size = static_cast<uint32_t>(type->getPrimitiveSizeInBits() / 8);
  Value* const address = element(word, at, buffers_[word->a].mutable_length, size);
  llvm::StoreInst* const store = b_.CreateAlignedStore(
      value->getType() == type ? value : b_.CreateTrunc(value, type), address, llvm::Align(1));
  llvm::SmallVector<llvm::Metadata*, 1> tracked;
  if (own_buffers_.is_tracked(word->a))
    tracked.push_back(llvm::ConstantAsMetadata::get(b_.getInt32(word->a)));
  store->setMetadata(kStoredRegister, llvm::MDNode::get(context_, tracked));
}

bool Translator::emit_buffer(Op op, const Word* word, uint32_t at) {
  const auto store = [&](Value* value) { emit_store(word, at, value->getType(), value); };
  switch (op) {
      // clang-format off
    case Op::buffer_load_i8_u: emit_load(word, at, b_.getInt8Ty(), 1); return true;
    case Op::buffer_load_i8_s: emit_load(word, at, b_.getInt8Ty(), 2); return true;
    case Op::buffer_load_i16_u: emit_load(word, at, b_.getInt16Ty(), 1); return true;
    case Op::buffer_load_i16_s: emit_load(word, at, b_.getInt16Ty(), 2); return true;
    case Op::buffer_load_i32: emit_load(word, at, b_.getInt32Ty(), 0); return true;
    case Op::buffer_load_i64: emit_load(word, at, b_.getInt64Ty(), 0); return true;
    case Op::buffer_load_f32: emit_load(word, at, b_.getFloatTy(), 0); return true;
    case Op::buffer_load_f64: emit_load(word, at, b_.getDoubleTy(), 0); return true;
    case Op::buffer_store_i8: emit_store(word, at, b_.getInt8Ty(), i32(word->c)); return true;
    case Op::buffer_store_i16: emit_store(word, at, b_.getInt16Ty(), i32(word->c)); return true;
    case Op::buffer_store_i32: store(maybe_hidden(i32(word->c))); return true;
    case Op::buffer_store_i64: store(maybe_hidden(i64(word->c))); return true;
    case Op::buffer_store_f32: store(number_or_bits(at, word->c)); return true;
    case Op::buffer_store_f64: store(wide_number_or_bits(at, word->c)); return true;
    // clang-format on
    case Op::buffer_length:
      require(b_.CreateLoad(b_.getInt1Ty(), buffers_[word->a].is_buffer), at, nullptr);
      set(word->b, b_.CreateLoad(b_.getInt64Ty(), buffers_[word->a].length));
      return true;
    default:
      return false;
  }
}

bool Translator::emit_global(Op op, const Word* word, uint32_t at) {
  Value* const globals = function_->getArg(3);
  const auto direct = [&] { return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), globals, word->wide()); };
  const auto indirect = [&](uint32_t size) {
    Value* const offset = b_.CreateZExt(i32(word->a), b_.getInt64Ty());
    Value* const end = b_.CreateAdd(offset, b_.getInt64(size));
    require(b_.CreateICmpULE(end, b_.getInt64(source_.global_bytes)), at, nullptr);
    return b_.CreateInBoundsGEP(b_.getInt8Ty(), globals, offset);
  };
  const auto load = [&](uint16_t slot, llvm::Type* type, Value* address) {
    set(slot, b_.CreateAlignedLoad(type, address, llvm::Align(1)));
    return true;
  };
  const auto store = [&](Value* value, Value* address) {
    b_.CreateAlignedStore(maybe_hidden(value), address, llvm::Align(1));
    return true;
  };
  switch (op) {
      // clang-format off
    case Op::global_load_i32: return load(word->a, b_.getInt32Ty(), direct());
    case Op::global_load_f32: return load(word->a, b_.getFloatTy(), direct());
    case Op::global_load_i64: return load(word->a, b_.getInt64Ty(), direct());
    case Op::global_load_f64: return load(word->a, b_.getDoubleTy(), direct());
    case Op::global_store_i32: case Op::global_store_f32: return store(i32(word->a), direct());
    case Op::global_store_i64: case Op::global_store_f64: return store(i64(word->a), direct());
    case Op::global_load_indirect_i32: return load(word->b, b_.getInt32Ty(), indirect(4));
    case Op::global_load_indirect_f32: return load(word->b, b_.getFloatTy(), indirect(4));
    case Op::global_load_indirect_i64: return load(word->b, b_.getInt64Ty(), indirect(8));
    case Op::global_load_indirect_f64: return load(word->b, b_.getDoubleTy(), indirect(8));
    case Op::global_store_indirect_i32: case Op::global_store_indirect_f32: {
      Value* const address = indirect(4);
      return store(i32(word->b), address);
    }
    case Op::global_store_indirect_i64: case Op::global_store_indirect_f64: {
      Value* const address = indirect(8);
      return store(i64(word->b), address);
    }
    // clang-format on
    default:
      return false;
  }
}

}  // namespace halyard::jit
