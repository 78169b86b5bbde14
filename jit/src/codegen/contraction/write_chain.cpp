// Writes a chain: one nest with a copy of the body of each, after a comparison of the ranges of its accesses.
#include <fmt/format.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <map>
#include <utility>
#include <vector>

#include "codegen/contraction/chain.h"
#include "codegen/contraction/ranges.h"
#include "codegen/loops.h"

namespace halyard::jit::contraction {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::LoadInst;
using llvm::Loop;
using llvm::PHINode;
using llvm::StoreInst;
using llvm::Value;

namespace {

class ChainWriter {
 public:
  ChainWriter(const Chain& chain, llvm::ScalarEvolution& evolution)
      : chain_(chain),
        evolution_(evolution),
        before_(chain.first()->getLoopPreheader()),
        after_(Nest::after(*chain.nests.back().outermost())),
        b_(before_->getTerminator()),
        expander_(evolution, before_->getDataLayout(), "chain") {}

  void write() {
    expand_steps();
    Value* const may_be_one = this->may_be_one();
    BasicBlock* const start = new_block("chain");
    b_.SetInsertPoint(start);
    write_loop(0);
    for (llvm::CallInst* const release : chain_.together.releases) b_.Insert(release->clone());
    BasicBlock* const end = b_.GetInsertBlock();
    b_.CreateBr(after_);
    for (PHINode& phi : after_->phis())
      phi.addIncoming(phi.getIncomingValueForBlock(chain_.nests.back().outermost()->getLoopLatch()), end);
    keep_nests(may_be_one, start);
  }

 private:
  BasicBlock* new_block(const char* name) {
    return BasicBlock::Create(b_.getContext(), name, before_->getParent(), chain_.first()->getHeader());
  }
  Value* expand(const llvm::SCEV* value) {
    return expander_.expandCodeFor(value, value->getType(), before_->getTerminator());
  }

  // The steps of all counters, which are known before the chain.
  void expand_steps() {
    for (const Nest& nest : chain_.nests)
      for (Loop* const loop : nest.loops)
        for (PHINode& phi : loop->getHeader()->phis())
          steps_[&phi] = expand(
              llvm::cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(&phi))->getStepRecurrence(evolution_));
  }

  // Frozen, because the original program may not evaluate all of it.
  Value* may_be_one() {
    Value* all = b_.getTrue();
    const auto require = [&](Value* condition) { all = b_.CreateAnd(all, b_.CreateFreeze(condition)); };
    for (const auto& [handle, wanted] : chain_.together.entered) {
      Value* const condition = handle;
      require(wanted ? condition : b_.CreateNot(condition));
    }
    for (const auto& [x, y] : chain_.together.apart)
      require(are_apart(b_, x, y, [&](const llvm::SCEV* address) { return expand(address); }));
    return all;
  }

  void write_loop(size_t level) {
    const Nest& first = chain_.nests.front();
    BasicBlock* const from = b_.GetInsertBlock();
    BasicBlock* const loop = new_block("chain.loop");
    BasicBlock* const done = new_block("chain.done");
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    PHINode* const counter = b_.CreatePHI(b_.getInt64Ty(), 2, "chain.counter");
    counters_.push_back(counter);
    if (level + 1 < first.loops.size())
      write_loop(level + 1);
    else
      write_bodies();
    counters_.pop_back();
    Value* const next = b_.CreateNUWAdd(counter, b_.getInt64(1));
    counter->addIncoming(b_.getInt64(0), from);
    counter->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpULE(next, b_.getInt64(*constant_of(first.last[level]))), loop, done);
    b_.SetInsertPoint(done);
  }

  void write_bodies() {
    for (const Nest& nest : chain_.nests) {
      nest_ = &nest;
      for (Instruction& instruction : *nest.body) {
        if (auto* const load = llvm::dyn_cast<LoadInst>(&instruction))
          values_[load] = copy_of(*load);
        else if (auto* const store = llvm::dyn_cast<StoreInst>(&instruction))
          write_store(*store);
      }
    }
    separate_accesses();
  }

  Value* copy_of(LoadInst& load) {
    if (const auto found = chain_.stored.find(&load); found != chain_.stored.end())
      return stored_.lookup(found->second);
    return copy_with_operands(load);
  }
  void write_store(StoreInst& store) {
    stored_[&store] = value(store.getValueOperand());
    if (!chain_.dead.contains(&store)) copy_with_operands(store);
  }
  Instruction* copy_with_operands(Instruction& instruction) {
    llvm::SmallVector<Value*, 4> operands;
    for (Value* const operand : instruction.operands()) operands.push_back(value(operand));
    Instruction* const copy = b_.Insert(instruction.clone(), instruction.getName());
    for (unsigned i = 0; i < operands.size(); ++i) copy->setOperand(i, operands[i]);
    if (instruction.mayReadOrWriteMemory()) accesses_.push_back({copy, place_of(instruction)});
    return copy;
  }

  // The value in the current iteration. Loads of the body are copied before what uses them.
  Value* value(Value* original) {
    auto* const instruction = llvm::dyn_cast<Instruction>(original);
    if (!instruction || !nest_->outermost()->contains(instruction)) return original;
    if (const auto found = values_.find(instruction); found != values_.end()) return found->second;
    auto* const phi = llvm::dyn_cast<PHINode>(instruction);
    Value* const copy = phi ? counted(*phi) : copy_with_operands(*instruction);
    return values_[instruction] = copy;
  }
  Value* counted(PHINode& phi) {
    const Loop* const loop = nest_->loop_of(phi);
    Value* const start = value(phi.getIncomingValueForBlock(loop->getLoopPreheader()));
    Value* const step = steps_.lookup(&phi);
    Value* const counter = b_.CreateZExtOrTrunc(counters_[nest_->level_of(loop)], step->getType());
    Value* const distance = b_.CreateMul(counter, step);
    return phi.getType()->isPointerTy() ? b_.CreatePtrAdd(start, distance) : b_.CreateAdd(start, distance);
  }

  // Tells LLVM that a store and an access to another element do not alias, which holds in each nest, and was
  // compared or is known for those of different nests.
  void separate_accesses() {
    llvm::MDBuilder metadata(b_.getContext());
    llvm::MDNode* const domain = metadata.createAnonymousAliasScopeDomain("chain");
    std::map<Place, llvm::Metadata*> scopes, stored_scopes;
    for (const Access& access : accesses_) {
      llvm::Metadata*& scope = scopes[access.place];
      if (!scope) scope = metadata.createAnonymousAliasScope(domain);
      if (llvm::isa<StoreInst>(access.copy)) stored_scopes[access.place] = scope;
    }
    for (const Access& access : accesses_) {
      llvm::SmallVector<llvm::Metadata*, 8> others;
      for (const auto& [place, scope] : llvm::isa<StoreInst>(access.copy) ? scopes : stored_scopes)
        if (place != access.place) others.push_back(scope);
      access.copy->setMetadata(llvm::LLVMContext::MD_alias_scope,
                               llvm::MDNode::get(b_.getContext(), {scopes[access.place]}));
      access.copy->setMetadata(llvm::LLVMContext::MD_noalias, llvm::MDNode::get(b_.getContext(), others));
    }
  }
  // The address in the first iteration, and the step of each loop.
  using Place = std::vector<const llvm::SCEV*>;
  Place place_of(Instruction& access) {
    Place place(nest_->loops.size() + 1);
    const llvm::SCEV* address = evolution_.getSCEV(llvm::getLoadStorePointerOperand(&access));
    while (const auto* const recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address)) {
      if (!nest_->outermost()->contains(recurrence->getLoop())) break;
      place[nest_->level_of(recurrence->getLoop())] = recurrence->getStepRecurrence(evolution_);
      address = recurrence->getStart();
    }
    place.back() = address;
    return place;
  }

  // The nests run one after the other if they cannot be one.
  void keep_nests(Value* may_be_one, BasicBlock* start) {
    BasicBlock* const header = chain_.first()->getHeader();
    BasicBlock* const apart = new_block("chain.apart");
    header->replacePhiUsesWith(before_, apart);
    b_.SetInsertPoint(apart);
    b_.CreateBr(header);
    before_->getTerminator()->eraseFromParent();
    b_.SetInsertPoint(before_);
    b_.CreateCondBr(may_be_one, start, apart,
                    llvm::MDBuilder(b_.getContext()).createBranchWeights(1u << 20, 1));
    for (const Nest& nest : chain_.nests) leave_as_it_is(*nest.outermost());
  }

  const Chain& chain_;
  llvm::ScalarEvolution& evolution_;
  BasicBlock* before_;
  BasicBlock* after_;
  llvm::IRBuilder<> b_;
  llvm::SCEVExpander expander_;
  const Nest* nest_ = nullptr;  // whose body is copied
  llvm::DenseMap<const PHINode*, Value*> steps_;
  llvm::SmallVector<Value*, 8> counters_;  // of the loops that are written, from the outermost on
  llvm::DenseMap<const Instruction*, Value*> values_;
  llvm::DenseMap<const StoreInst*, Value*> stored_;
  struct Access {
    Instruction* copy;
    Place place;
  };
  std::vector<Access> accesses_;
};

}  // namespace

std::string write(const Chain& chain, llvm::ScalarEvolution& evolution) {
  std::string text = fmt::format("{} nests as one, of", chain.nests.size());
  const char* separator = " ";
  for (const llvm::SCEV* const last : chain.nests.front().last) {
    text += fmt::format("{}{}", separator, *constant_of(last) + 1);
    separator = " x ";
  }
  if (!chain.dead.empty()) text += fmt::format("; {} results in between are not stored", chain.dead.size());
  ChainWriter(chain, evolution).write();
  return text;
}

}  // namespace halyard::jit::contraction
