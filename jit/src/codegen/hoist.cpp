// Transforms each loop nest. A nest extends from its innermost loop outwards as far as the ranges of its
// indices are known before it.
#include "codegen/hoist.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "codegen/loops.h"
#include "codegen/translate.h"
#include "vm/decode/jit_abi.h"

namespace halyard::jit {

namespace {

using llvm::BasicBlock;
using llvm::BranchInst;
using llvm::Loop;
using llvm::SCEV;
using llvm::Value;

// The maximum number of iterations between two checks of the stop word: of one loop, or of several whose
// numbers are compile-time constants. kMaxCountedTurns is that of other nests. Both are divided by the weight
// of the loop.
constexpr uint64_t kMaxTurns = uint64_t{1} << 22;
// A loop keeps its check of the stop word if each of its iterations has this many in it.
constexpr uint64_t kManyTurns = uint64_t{1} << 13;
constexpr size_t kMaxChecks = 64;
constexpr size_t kMaxBuffers = 6;

// Marks the copy of a nest that keeps all checks.
constexpr char kChecked[] = "halyard.checked";

// start + the sum of stride * counter over the loops of a nest. Counters begin at 0.
struct Affine {
  const SCEV* start = nullptr;
  std::vector<std::pair<const Loop*, const SCEV*>> strides;
};

struct Check {
  BranchInst* branch = nullptr;
  const SCEV* index = nullptr;
  Affine affine;
  const SCEV* count = nullptr;  // number of elements
};

struct Plan {
  Loop* root = nullptr;
  std::vector<Check> checks;
  size_t kept = 0;  // checks that remain in the nest
};

// An access to a buffer, with its index from the start of the buffer.
struct Access {
  llvm::Instruction* instruction = nullptr;
  Affine index;  // in elements of `size` bytes
  uint64_t size = 0;
};
struct Buffer {
  const SCEV* base = nullptr;
  std::vector<Access> accesses;
  bool written = false;
  Value* first = nullptr;  // the accessed address range, after it is computed
  Value* end = nullptr;
};

class Nest {
 public:
  Nest(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : function_(function),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
        expander_(evolution_, function.getDataLayout(), "guard") {}

  // The widest nest around this innermost loop that keeps no more checks than a narrower nest would.
  std::optional<Plan> widest(Loop* innermost) {
    std::optional<Plan> best = plan(innermost);
    if (!best) return {};
    for (Loop* wider = innermost->getParentLoop(); wider; wider = wider->getParentLoop()) {
      std::optional<Plan> next = plan(wider);
      if (!next || next->kept > best->kept) break;
      best = std::move(next);
    }
    if (best->checks.empty()) return {};
    return best;
  }

  void transform(const Plan& plan);

 private:
  std::optional<Plan> plan(Loop* root);
  std::optional<Affine> affine(const SCEV* value, const Loop* root);
  std::optional<Check> check_of(BranchInst* branch, Loop* root);
  // The block with the loop's exit test; null if there is none. The block is the latch. If the loop is tested
  // at its end, it is a block before the latch, and the check of the stop word is between the two.
  const BasicBlock* test_of(const Loop* loop) {
    llvm::SmallVector<BasicBlock*, 8> exiting;
    loop->getExitingBlocks(exiting);
    for (BasicBlock* const block : exiting) {
      const auto* const branch = llvm::dyn_cast<BranchInst>(block->getTerminator());
      if (!branch || branch->hasMetadata(kCheck) || branch->hasMetadata(kStop) ||
          !dominators_.dominates(block, loop->getLoopLatch()))
        continue;
      if (!llvm::isa<llvm::SCEVCouldNotCompute>(evolution_.getExitCount(loop, block))) return block;
    }
    return nullptr;
  }
  const SCEV* turns(const Loop* loop) {
    const BasicBlock* const test = test_of(loop);
    if (!test) return evolution_.getCouldNotCompute();
    const SCEV* const count = evolution_.getExitCount(loop, test);
    return llvm::isa<llvm::SCEVCouldNotCompute>(count)
               ? count
               : evolution_.getNoopOrZeroExtend(count, llvm::Type::getInt64Ty(function_.getContext()));
  }
  // The iterations of this loop and all loops in it, if they are compile-time constants and few; else 0.
  uint64_t known_turns(const Loop* loop) {
    const std::optional<uint64_t> last = constant_of(turns(loop));
    if (!last || *last >= kMaxTurns) return 0;
    const uint64_t all = (*last + 1) * known_turns_inside(loop);
    return all <= kMaxTurns / weight_of(*loop) ? all : 0;
  }
  // The iterations of the loops in it, in one iteration of this loop. 1 if there are none.
  uint64_t known_turns_inside(const Loop* loop) {
    uint64_t all = loop->isInnermost() ? 1 : 0;
    for (const Loop* inner : *loop) {
      const uint64_t known = known_turns(inner);
      if (known == 0) return 0;
      all += known;
    }
    return all;
  }
  bool is_known_before(const SCEV* value, const Loop* root) {
    return jit::is_known_before(value, root, evolution_, expander_);
  }
  std::vector<Buffer> find_buffers(const Plan& plan);
  void mark_disjoint(std::vector<Buffer>& buffers);

  llvm::Function& function_;
  llvm::LoopInfo& loops_;
  llvm::ScalarEvolution& evolution_;
  llvm::DominatorTree& dominators_;
  llvm::SCEVExpander expander_;
};

std::optional<Affine> Nest::affine(const SCEV* value, const Loop* root) {
  Affine found;
  while (const auto* recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(value)) {
    if (!root->contains(recurrence->getLoop())) break;
    const SCEV* const stride = recurrence->getStepRecurrence(evolution_);
    if (!recurrence->isAffine() || !is_known_before(stride, root) || evolution_.isKnownNegative(stride))
      return {};
    found.strides.emplace_back(recurrence->getLoop(), stride);
    value = recurrence->getStart();
  }
  if (!is_known_before(value, root)) return {};
  found.start = value;
  return found;
}

std::optional<Check> Nest::check_of(BranchInst* branch, Loop* root) {
  const auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
  const Loop* const loop = loops_.getLoopFor(branch->getParent());
  if (!compare || compare->getPredicate() != llvm::CmpInst::ICMP_ULT ||
      !dominators_.dominates(branch->getParent(), loop->getLoopLatch()) ||
      !loop->contains(branch->getSuccessor(0)) || loop->contains(branch->getSuccessor(1)))
    return {};
  Check check;
  check.branch = branch;
  check.index = evolution_.getSCEV(compare->getOperand(0));
  check.count = evolution_.getSCEV(compare->getOperand(1));
  if (!is_known_before(check.count, root)) return {};
  std::optional<Affine> index = affine(check.index, root);
  if (!index) return {};
  check.affine = *std::move(index);
  return check;
}

std::optional<Plan> Nest::plan(Loop* root) {
  if (!root->isLoopSimplifyForm() || !root->getLoopPreheader()) return {};
  for (const Loop* loop : root->getLoopsInPreorder()) {
    if (!loop->isLoopSimplifyForm() || !loop->getLoopLatch()) return {};
    const SCEV* const count = turns(loop);
    if (llvm::isa<llvm::SCEVCouldNotCompute>(count) || !is_known_before(count, root)) return {};
  }
  Plan plan;
  plan.root = root;
  for (BasicBlock* block : root->blocks()) {
    auto* const branch = llvm::dyn_cast<BranchInst>(block->getTerminator());
    if (!branch || !branch->hasMetadata(kCheck)) continue;
    std::optional<Check> check = branch->isConditional() ? check_of(branch, root) : std::nullopt;
    if (check && plan.checks.size() < kMaxChecks) {
      plan.checks.push_back(*std::move(check));
    } else {
      ++plan.kept;
    }
  }
  return plan;
}

// The buffers whose accesses in the nest are all within the ranges that the hoisted checks establish. Empty
// if there are too many buffers.
std::vector<Buffer> Nest::find_buffers(const Plan& plan) {
  std::vector<Buffer> buffers;
  for (BasicBlock* block : plan.root->blocks()) {
    for (llvm::Instruction& instruction : *block) {
      if (instruction.isAtomic()) continue;
      const auto* const pointer =
          llvm::dyn_cast_or_null<llvm::GEPOperator>(llvm::getLoadStorePointerOperand(&instruction));
      if (!pointer || pointer->getNumIndices() != 1) continue;
      const SCEV* const base = evolution_.getSCEV(const_cast<Value*>(pointer->getPointerOperand()));
      if (!is_known_before(base, plan.root)) continue;
      const llvm::DataLayout& layout = function_.getDataLayout();
      const uint64_t size = layout.getTypeStoreSize(llvm::getLoadStoreType(&instruction));
      if (layout.getTypeAllocSize(pointer->getSourceElementType()) != size) continue;
      const SCEV* const index = evolution_.getSCEV(pointer->getOperand(1));
      const auto check = std::find_if(plan.checks.begin(), plan.checks.end(),
                                      [&](const Check& c) { return c.index == index; });
      if (check == plan.checks.end()) continue;
      auto buffer =
          std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.base == base; });
      if (buffer == buffers.end()) {
        buffers.push_back({base, {}, false, nullptr, nullptr});
        buffer = std::prev(buffers.end());
      }
      buffer->accesses.push_back({&instruction, check->affine, size});
      buffer->written |= llvm::isa<llvm::StoreInst>(instruction);
    }
  }
  if (buffers.size() > kMaxBuffers) buffers.clear();
  return buffers;
}

// Tells LLVM that accesses to different buffers do not alias.
void Nest::mark_disjoint(std::vector<Buffer>& buffers) {
  llvm::MDBuilder metadata(function_.getContext());
  llvm::MDNode* const domain = metadata.createAnonymousAliasScopeDomain();
  std::vector<llvm::Metadata*> scopes;
  for (size_t i = 0; i < buffers.size(); ++i) scopes.push_back(metadata.createAnonymousAliasScope(domain));
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::vector<llvm::Metadata*> others = scopes;
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
    for (const Access& access : buffers[i].accesses) {
      access.instruction->setMetadata(llvm::LLVMContext::MD_alias_scope,
                                      llvm::MDNode::get(function_.getContext(), {scopes[i]}));
      access.instruction->setMetadata(llvm::LLVMContext::MD_noalias,
                                      llvm::MDNode::get(function_.getContext(), others));
    }
  }
}

// Builds the condition before a nest, at the end of its preheader.
class Guard {
 public:
  Guard(llvm::Instruction* before, llvm::ScalarEvolution& evolution)
      : b_(before), before_(before), expander_(evolution, before->getModule()->getDataLayout(), "guard") {
    condition_ = b_.getTrue();
  }

  // Freezes the value, so that it is the same in all uses: the control flow depends on it.
  Value* expand(const SCEV* value) {
    Value* const expanded = expander_.expandCodeFor(value, value->getType(), before_);
    return llvm::isa<llvm::Constant>(expanded) ? expanded : b_.CreateFreeze(expanded);
  }
  void require(Value* condition) { condition_ = b_.CreateAnd(condition_, condition); }
  Value* condition() { return condition_; }
  llvm::IRBuilder<>& builder() { return b_; }

  // The largest value of the sum. Also requires that no part of it wraps, so that every other value lies
  // between `start` and this one.
  Value* greatest(const Affine& affine, auto&& turns) {
    Value* sum = expand(affine.start);
    for (const auto& [loop, stride] : affine.strides) {
      Value* const step = expand(stride);
      require(b_.CreateICmpSGE(step, b_.getInt64(0)));
      sum = checked(llvm::Intrinsic::uadd_with_overflow, sum,
                    checked(llvm::Intrinsic::umul_with_overflow, step, expand(turns(loop))));
    }
    return sum;
  }
  Value* checked(llvm::Intrinsic::ID id, Value* x, Value* y) {
    Value* const both = b_.CreateBinaryIntrinsic(id, x, y);
    require(b_.CreateNot(b_.CreateExtractValue(both, 1)));
    return b_.CreateExtractValue(both, 0);
  }

 private:
  llvm::IRBuilder<> b_;
  llvm::Instruction* before_;
  llvm::SCEVExpander expander_;
  Value* condition_ = nullptr;
};

// Makes the branch unconditional. Also removes the check of the stop word, because LLVM does not remove an
// atomic load.
void keep_first(BranchInst* branch) {
  auto* const compare = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
  branch->setCondition(llvm::ConstantInt::getTrue(branch->getContext()));
  if (!compare || !compare->use_empty()) return;
  auto* const load = llvm::dyn_cast<llvm::LoadInst>(compare->getOperand(0));
  compare->eraseFromParent();
  if (load && load->use_empty()) load->eraseFromParent();
}

void Nest::transform(const Plan& plan) {
  BasicBlock* const before = plan.root->getLoopPreheader();
  const auto count = [&](const Loop* loop) { return turns(loop); };
  Guard guard(before->getTerminator(), evolution_);
  llvm::IRBuilder<>& b = guard.builder();
  for (const Check& check : plan.checks) {
    Value* const elements = guard.expand(check.count);
    guard.require(b.CreateICmpULT(guard.expand(check.affine.start), elements));
    guard.require(b.CreateICmpULT(guard.greatest(check.affine, count), elements));
  }
  // Address ranges lie within buffers, so their ends do not wrap.
  std::vector<Buffer> buffers = find_buffers(plan);
  for (Buffer& buffer : buffers) {
    Value* const base = b.CreatePtrToInt(guard.expand(buffer.base), b.getInt64Ty());
    for (const Access& access : buffer.accesses) {
      Value* const size = b.getInt64(access.size);
      Value* const start = guard.expand(access.index.start);
      Value* last_index = start;
      for (const auto& [loop, stride] : access.index.strides)
        last_index = b.CreateAdd(last_index, b.CreateMul(guard.expand(stride), guard.expand(count(loop))));
      Value* const first = b.CreateAdd(base, b.CreateMul(start, size));
      Value* const end = b.CreateAdd(base, b.CreateMul(b.CreateAdd(last_index, b.getInt64(1)), size));
      buffer.first =
          buffer.first ? b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, buffer.first, first) : first;
      buffer.end = buffer.end ? b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, buffer.end, end) : end;
    }
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (size_t k = i + 1; k < buffers.size(); ++k) {
      if (!buffers[i].written && !buffers[k].written) continue;
      guard.require(b.CreateOr(b.CreateICmpULE(buffers[i].end, buffers[k].first),
                               b.CreateICmpULE(buffers[k].end, buffers[i].first)));
    }
  }
  // Stop checks of loops that run too briefly to need one.
  std::vector<BranchInst*> stops;
  for (const Loop* loop : plan.root->getLoopsInPreorder()) {
    const uint64_t inside = known_turns_inside(loop);
    const uint64_t weight = weight_of(*loop);
    const bool around = !loop->isInnermost() && llvm::all_of(loop->getSubLoops(), [](const Loop* inner) {
      return inner->isInnermost();
    });
    if (known_turns(loop) == 0) {
      const bool is_long = inside >= kManyTurns || (inside != 0 && constant_of(count(loop)));
      if (is_long || (inside == 0 && !around)) continue;
      // Each count is limited too, because count + 1 is 0 for 2^64 iterations.
      const uint64_t most = (inside > 1 ? kMaxCountedTurns / inside : kMaxTurns) / weight;
      guard.require(b.CreateICmpULT(guard.expand(count(loop)), b.getInt64(most)));
    }
    if (inside == 0) {
      Value* const outer = b.CreateAdd(guard.expand(count(loop)), b.getInt64(1));
      for (const Loop* inner : loop->getSubLoops()) {
        Value* const turns_inside = b.CreateAdd(guard.expand(count(inner)), b.getInt64(1));
        Value* const both = guard.checked(llvm::Intrinsic::umul_with_overflow, outer, turns_inside);
        guard.require(b.CreateICmpULE(both, b.getInt64(kMaxCountedTurns / weight)));
      }
    }
    for (BasicBlock* block : loop->blocks()) {
      auto* const branch = llvm::dyn_cast<BranchInst>(block->getTerminator());
      if (branch && branch->isConditional() && branch->hasMetadata(kStop) && loops_.getLoopFor(block) == loop)
        stops.push_back(branch);
    }
  }

  // The copy keeps all checks, and counts that it runs.
  const Fork fork = fork_loop(*plan.root, guard.condition(), kChecked, loops_, dominators_);
  llvm::IRBuilder<> counter(fork.copy->getLoopPreheader()->getTerminator());
  Value* const checked = counter.CreateConstInBoundsGEP1_64(counter.getInt8Ty(), function_.getArg(4),
                                                            offsetof(halyard_jit_stack_t, checked));
  counter.CreateStore(
      counter.CreateAdd(counter.CreateLoad(counter.getInt64Ty(), checked), counter.getInt64(1)), checked);
  if (buffers.size() > 1) mark_disjoint(buffers);
  for (const Check& check : plan.checks) keep_first(check.branch);
  for (BranchInst* stop : stops) keep_first(stop);
}

}  // namespace

llvm::PreservedAnalyses HoistChecks::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  llvm::SmallPtrSet<BasicBlock*, 16> seen;
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    llvm::LoopInfo& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    for (Loop* loop : loops.getLoopsInPreorder()) {
      if (!loop->isInnermost() || llvm::getBooleanLoopAttribute(loop, kChecked) ||
          !seen.insert(loop->getHeader()).second)
        continue;
      Nest nest(function, analyses);
      const std::optional<Plan> plan = nest.widest(loop);
      if (!plan) continue;
      for (const Loop* inner : plan->root->getLoopsInPreorder()) seen.insert(inner->getHeader());
      nest.transform(*plan);
      analyses.invalidate(function, llvm::PreservedAnalyses::none());
      again = changed = true;
      break;
    }
  }
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace halyard::jit
