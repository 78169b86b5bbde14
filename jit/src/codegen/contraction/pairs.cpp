// Recognizes the factors of products, and the instruction for two of them.
#include "codegen/contraction/pairs.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

namespace halyard::jit::contraction {

using llvm::Instruction;
using llvm::Value;

namespace {

using namespace llvm::PatternMatch;

// A number that the translator hides from LLVM (Translator::opaque), and that is 0.
bool is_hidden_zero(const Value* value) {
  const auto* const load = llvm::dyn_cast<llvm::LoadInst>(value);
  const auto* const variable = load && load->hasMetadata(llvm::LLVMContext::MD_invariant_load)
                                   ? llvm::dyn_cast<llvm::GlobalVariable>(load->getPointerOperand())
                                   : nullptr;
  return variable && variable->hasInitializer() && variable->getInitializer()->isNullValue() &&
         variable->getValueType() == load->getType();
}

Value* without_hiding(Value* value) {
  Value *x = nullptr, *y = nullptr;
  if (!match(value, m_Xor(m_Value(x), m_Value(y)))) return value;
  if (is_hidden_zero(y)) return x;
  return is_hidden_zero(x) ? y : value;
}

std::optional<Factor> extended_load(Value* value) {
  Value* source = nullptr;
  Factor factor;
  if (match(value, m_SExt(m_Value(source)))) {
    factor.is_signed = true;
  } else if (!match(value, m_ZExt(m_Value(source)))) {
    return {};
  }
  factor.load = llvm::dyn_cast<llvm::LoadInst>(source);
  const unsigned bits = source->getType()->getScalarSizeInBits();
  if (!factor.load || !(bits == 8 || (bits == 16 && factor.is_signed))) return {};
  return factor;
}

// With an offset, the element has 8 bits and the offset is in a range that leaves 16 bits.
std::optional<Factor> factor(Value* value, Dependence& dependence) {
  if (const std::optional<Factor> plain = extended_load(value)) return plain;
  Value *x = nullptr, *y = nullptr;
  const bool is_subtracted = match(value, m_Sub(m_Value(x), m_Value(y)));
  if (!is_subtracted && !match(value, m_Add(m_Value(x), m_Value(y)))) return {};
  if (!is_subtracted && !extended_load(x)) std::swap(x, y);
  std::optional<Factor> found = extended_load(x);
  if (!found || !found->load->getType()->isIntegerTy(8) || !dependence.is_the_same(y)) return {};
  if (const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(y);
      known && (known->getSExtValue() < kLeastOffset || known->getSExtValue() > kMostOffset))
    return {};
  found->offset = y;
  found->is_subtracted = is_subtracted;
  return found;
}

}  // namespace

std::optional<Pairs> find_pairs(const Nest& nest, Dependence& dependence, llvm::ScalarEvolution& evolution) {
  if (nest.stores.size() != 1) return {};
  llvm::StoreInst* const store = nest.stores.front();
  Value* const sum = without_hiding(store->getValueOperand());
  Value *before = nullptr, *x = nullptr, *y = nullptr;
  if (!sum->getType()->isIntegerTy(32) ||
      !match(sum, m_c_Add(m_c_Mul(m_Value(x), m_Value(y)), m_Value(before))))
    return {};
  const auto* const load = llvm::dyn_cast<llvm::LoadInst>(without_hiding(before));
  if (!load || load->getParent() != nest.body ||
      evolution.getSCEV(const_cast<Value*>(load->getPointerOperand())) !=
          evolution.getSCEV(store->getPointerOperand()))
    return {};
  if (dependence.of(x) & Dependence::kOutputs) std::swap(x, y);
  const std::optional<Factor> of_rows = factor(x, dependence), of_outputs = factor(y, dependence);
  if (!of_rows || !of_outputs || of_rows->load->getParent() != nest.body ||
      of_outputs->load->getParent() != nest.body || dependence.of(of_rows->load) & Dependence::kOutputs ||
      (dependence.of(of_outputs->load) ^ Dependence::kOutputs) != 0)
    return {};
  return Pairs{*of_rows, *of_outputs};
}

llvm::Intrinsic::ID product_of_pairs(const llvm::Function& function, uint64_t lanes) {
  const llvm::StringRef features = function.getFnAttribute("target-features").getValueAsString();
  const auto has = [&](llvm::StringRef feature) { return features.contains(feature); };
  if (!function.getParent()->getTargetTriple().starts_with("x86_64")) return llvm::Intrinsic::not_intrinsic;
  if (lanes == 16 && has("+avx512bw")) return llvm::Intrinsic::x86_avx512_pmaddw_d_512;
  if (lanes == 8 && has("+avx2")) return llvm::Intrinsic::x86_avx2_pmadd_wd;
  if (lanes == 4) return llvm::Intrinsic::x86_sse2_pmadd_wd;
  return llvm::Intrinsic::not_intrinsic;
}

}  // namespace halyard::jit::contraction
