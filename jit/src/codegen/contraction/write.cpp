// The new order of a contraction:
//
//   for rows, in groups:
//     for terms, in blocks:
//       for rows of the group, in tiles:
//         for outputs, in tiles: load the tile; for term of the block: add; store the tile
//     check the stop word
//
// The terms of a tile are added in registers: a vector for each row and each `lanes` outputs. What is read
// for a block of terms stays in the cache for all rows of the group. If B is packed, the loop over outputs is
// around the one over rows, and begins with a copy of B's elements for the block and the tile of outputs, in
// the order in which each tile of rows reads them.
#include "codegen/contraction/write.h"

#include <fmt/format.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>

#include "codegen/contraction/ranges.h"
#include "codegen/contraction/recognize.h"
#include "codegen/contraction/tile_loops.h"
#include "codegen/contraction/transpose.h"
#include "codegen/contraction/writer.h"
#include "codegen/loops.h"

namespace halyard::jit::contraction {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Loop;
using llvm::PHINode;
using llvm::SCEV;
using llvm::Value;

namespace {

constexpr char kPanels[] = "halyard.panels";  // metadata of the memory for packed elements
// A panel takes up to 32 KiB of the thread's stack: two vectors of 64 bytes for each of 256 terms.
constexpr uint64_t kMaxPanels = 2;

}  // namespace

Value* Writer::count_between(Value* begin, Value* end) {
  using llvm::PatternMatch::m_Add, llvm::PatternMatch::m_ConstantInt, llvm::PatternMatch::m_Specific;
  llvm::ConstantInt* count = nullptr;
  return match(end, m_Add(m_Specific(begin), m_ConstantInt(count))) ? count : b_.CreateSub(end, begin);
}

// Writes `body` for each tile of rows, from `begin` up to `end` of the outermost loop over rows.
template <typename Body>
void Writer::for_rows(Value* begin, Value* end, Body body) {
  const auto for_innermost = [&](Value* at, Value* to) {
    for (const uint64_t rows : tiling_.rows) {
      at = for_tiles(at, to, rows, false, [&](Value* row) {
        tile_rows_ = rows;
        if (nest_.row_loops < 2)
          tile_of_panel_ = b_.CreateUDiv(b_.CreateSub(row, begin), b_.getInt64(tiling_.rows.front()));
        body(row);
      });
    }
  };
  if (nest_.row_loops < 2) {
    for_innermost(begin, end);
    return;
  }
  for_tiles(begin, end, 1, false, [&](Value* row) {
    outer_row_ = row;
    tile_of_panel_ = b_.CreateSub(row, begin);
    for_innermost(b_.getInt64(0), counts_[1]);
  });
}

// Writes `body` for each tile of outputs.
template <typename Body>
void Writer::for_outputs(Body body) {
  Value* output = b_.getInt64(0);
  for (const Tiling::Outputs& tile : tiling_.outputs) {
    output = for_tiles(output, counts_[nest_.output_level()], tile.count(), false, [&](Value* at) {
      tile_outputs_ = tile;
      tile_vectors_ = tile.vectors;
      lanes_ = tile.lanes;
      body(at);
    });
  }
}

// Writes the tiles of these rows, for the current block of terms.
void Writer::write_tiles(Value* begin, Value* end) {
  if (tiling_.is_packed) {
    const bool packs_first_tile = tiling_.packs_first_tile && !pairs_;
    for_outputs([&](Value* output) {
      if (packs_first_tile)
        pack_for_few_rows(begin, end, output);
      else if (!pairs_ || adds_pairs())
        pack(output);
      for_rows(begin, end, [&](Value* row) {
        if (packs_first_tile && tile_rows_ == tiling_.rows.front())
          write_tile_that_may_pack(begin, row, output);
        else
          write_tile(row, output);
      });
    });
  } else {
    for_rows(begin, end, [&](Value* row) { for_outputs([&](Value* output) { write_tile(row, output); }); });
  }
}

// Whether the load is of B: of elements that are the same for all rows.
bool Writer::is_packable(llvm::LoadInst* load) {
  const unsigned on = dependence_.of(load);
  return !output_at(load->getPointerOperand()) && on & Dependence::kOutputs &&
         !(on & (Dependence::kRows | Dependence::kOuterRows));
}

// Memory on the thread's stack for packed elements, of at least so many bytes. All nests of the function
// share it.
llvm::AllocaInst* Writer::panel_memory(uint64_t bytes) {
  BasicBlock& entry = function_.getEntryBlock();
  for (Instruction& instruction : entry) {
    auto* const known = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
    if (!known || !known->hasMetadata(kPanels)) continue;
    const uint64_t size = llvm::cast<llvm::ConstantInt>(known->getArraySize())->getZExtValue();
    known->setOperand(0, b_.getInt64(std::max(size, bytes)));
    return known;
  }
  llvm::IRBuilder<> b(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
  llvm::AllocaInst* const memory = b.CreateAlloca(b.getInt8Ty(), b.getInt64(bytes));
  memory->setAlignment(llvm::Align(64));
  memory->setMetadata(kPanels, llvm::MDNode::get(b.getContext(), {}));
  function_.addFnAttr("probe-stack", "inline-asm");  // it is larger than a guard page
  return memory;
}

void Writer::add_panels() {
  if (pairs_) return add_panels_of_pairs();
  std::vector<std::pair<llvm::LoadInst*, uint64_t>> offsets;
  uint64_t bytes = 0;
  for (llvm::LoadInst* const load : nest_.loads) {
    if (!is_packable(load)) continue;
    offsets.emplace_back(load, bytes);
    const uint64_t count = tiling_.terms_of_block * tiling_.outputs.front().in_vectors();
    bytes = llvm::alignTo(bytes + count * ((load->getType()->getScalarSizeInBits() + 7) / 8), 64);
  }
  llvm::AllocaInst* const memory = tiling_.is_shared ? shared_panel_memory(bytes) : panel_memory(bytes);
  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  if (!tiling_.is_shared) b_.SetInsertPoint(memory->getNextNode());
  for (const auto& [load, offset] : offsets) panels_[load] = b_.CreatePtrAdd(memory, b_.getInt64(offset));
}

// The first tile of rows does not pack, if there are fewer rows than a tile has.
void Writer::pack_for_few_rows(Value* begin, Value* end, Value* output) {
  Value* const rows = nest_.row_loops < 2 ? count_between(begin, end) : counts_[1];
  Value* const are_few = b_.CreateICmpULT(rows, b_.getInt64(tiling_.rows.front()));
  if (const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(are_few); known && known->isZero()) return;
  BasicBlock* const few = new_block("contraction.few_rows");
  BasicBlock* const go_on = new_block("contraction.rows");
  b_.CreateCondBr(are_few, few, go_on);
  b_.SetInsertPoint(few);
  pack(output);
  b_.CreateBr(go_on);
  b_.SetInsertPoint(go_on);
}

// Copies the elements of B for the block of terms and the tile of outputs.
void Writer::pack(Value* output) {
  is_packing_ = true;
  output_ = output;
  forget_values();
  add_terms(tiling_.outer_terms);
  is_packing_ = false;
}

// Writes the loops over blocks of terms from this level inwards, for the rows from `begin` up to `end`.
void Writer::write_blocks(size_t level, Value* begin, Value* end) {
  Value* const zero = b_.getInt64(0);
  if (level < tiling_.outer_terms) {
    for_tiles(zero, counts_[first_term_loop() + level], 1, false, [&](Value* term) {
      terms_[level] = term;
      write_blocks(level + 1, begin, end);
    });
  } else if (level == tiling_.outer_terms && tiling_.block != 0) {
    for_blocks(counts_[first_term_loop() + level], b_.getInt64(tiling_.block), [&](Value* from, Value* to) {
      block_ = {from, to};
      write_blocks(level + 1, begin, end);
    });
  } else {
    write_tiles(begin, end);
  }
}

// Writes the rows from `begin` up to `end`, as many of them together as sums stay in the cache.
void Writer::write_rows(Value* begin, Value* end) {
  if (tiling_.together == 0) return write_blocks(0, begin, end);
  for_blocks(count_between(begin, end), b_.getInt64(tiling_.together), [&](Value* from, Value* to) {
    write_blocks(0, b_.CreateNUWAdd(begin, from), b_.CreateNUWAdd(begin, to));
  });
}

// Without checks of the stop word all rows are one group, unless threads share them.
void Writer::write_groups() {
  Value* const zero = b_.getInt64(0);
  if (tiling_.is_shared) {
    share_groups();
    return;
  }
  if (!nest_.may_stop_between_rows()) {
    write_rows(zero, row_end_);
    return;
  }
  for_blocks(row_end_, group_, [&](Value* begin, Value* end) {
    write_rows(begin, end);
    check_stop_word(end);
  });
}

void Writer::expand_steps() {
  const auto expand_in = [&](const std::vector<Loop*>& loops) {
    for (Loop* const loop : loops) {
      for (PHINode& phi : loop->getHeader()->phis()) {
        const auto* const recurrence = evolution_.isSCEVable(phi.getType())
                                           ? llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(&phi))
                                           : nullptr;
        if (!recurrence || !recurrence->isAffine()) continue;  // an unused phi
        const SCEV* const step = recurrence->getStepRecurrence(evolution_);
        if (is_known_before(step, nest_.first(), evolution_, expander_)) steps_[step] = expand(step);
      }
    }
  };
  expand_in(nest_.loops);
  if (nest_.epilogue) expand_in(nest_.epilogue->loops);
}

void Writer::find_outputs() {
  for (llvm::StoreInst* const store : nest_.stores)
    if (!output_at(store->getPointerOperand()))
      outputs_.push_back({store, evolution_.getSCEV(store->getPointerOperand()), {}});
}

Tiling Writer::tiling(uint64_t widest) {
  const auto constant_count = [&](size_t level) -> uint64_t {
    const std::optional<uint64_t> last = constant_of(nest_.last[level]);
    return last ? *last + 1 : 0;
  };
  const SCEV* const last = nest_.last[nest_.output_level()];
  const SCEV* const outputs = evolution_.getAddExpr(last, evolution_.getOne(last->getType()));
  Size size;
  if (nest_.row_loops != 0) size.rows = constant_count(nest_.row_loops - 1);
  if (nest_.row_loops == 2) size.outer_rows = constant_count(0);
  for (size_t level = first_term_loop(); level < nest_.loops.size(); ++level)
    size.terms.push_back(constant_count(level));
  size.outputs = constant_count(nest_.output_level());
  if (const auto most = constant_of(evolution_.getConstantMaxBackedgeTakenCount(nest_.outputs()));
      most && *most < kMaxTermsTogether)
    size.most_outputs = *most + 1;
  size.output_multiple = uint64_t{1} << std::min(evolution_.getMinTrailingZeros(outputs), 8u);
  size.is_elementwise = nest_.is_elementwise();
  size.is_strided = !nest_.strided.empty();
  Registers registers = {.count = target_.getNumberOfRegisters(target_.getRegisterClassForType(true))};
  if (widest != 0) {
    const uint64_t vector_bytes =
        target_.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue() / 8;
    registers.lanes = std::max<uint64_t>(vector_bytes / widest, 1);
    const auto has_known_step = [&](const StridedLoad& strided) {
      return is_known_before(strided.step, nest_.first(), evolution_, expander_);
    };
    size.is_transposed =
        size.is_strided && llvm::all_of(nest_.strided, [&](const StridedLoad& strided) {
          return strided.is_contiguous_in_terms && has_known_step(strided) &&
                 can_transpose(registers.lanes, strided.load->getType()->getScalarSizeInBits() / 8);
        });
    const auto packable =
        llvm::count_if(nest_.loads, [&](llvm::LoadInst* load) { return is_packable(load); });
    size.can_pack = packable != 0 && static_cast<uint64_t>(packable) <= kMaxPanels &&
                    llvm::all_of(nest_.strided, [&](const StridedLoad& strided) {
                      return is_packable(strided.load) && has_known_step(strided);
                    });
  }
  has_squares_ = size.is_transposed;
  const Tiling tiling = choose_tiling(size, registers);
  if (size.is_transposed || tiling.is_packed)
    for (const StridedLoad& strided : nest_.strided) row_steps_[strided.load] = expand(strided.step);
  return tiling;
}

// Whether no two rows share an output.
Value* Writer::are_rows_apart(const Nest& nest) {
  Value* all = b_.getTrue();
  const auto require = [&](Value* condition) { all = b_.CreateAnd(all, condition); };
  for (const Nest::Distance& bytes : nest.row_bytes)
    require(b_.CreateICmpSGT(expand(bytes.least), b_.getInt64(0)));
  // One row ends before the next one begins, and so do all rows of one loop before the next of the other.
  const auto is_within = [&](const SCEV* last, Value* distance, Value* one) {
    return b_.CreateICmpULT(expand(last), b_.CreateUDiv(distance, one));
  };
  const SCEV* const outputs = nest.last[nest.output_level()];
  const auto is_in_order = [&](size_t inner, size_t outer) {
    Value* const in = is_within(outputs, expand(nest.row_bytes[inner].least), b_.getInt64(nest.output_bytes));
    if (inner == outer) return in;
    Value* const row = expand(nest.row_bytes[inner].most);
    return b_.CreateAnd(in, is_within(nest.last[inner], expand(nest.row_bytes[outer].least),
                                      b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, row, b_.getInt64(1))));
  };
  if (nest.row_loops == 1) require(is_in_order(0, 0));
  if (nest.row_loops == 2) require(b_.CreateOr(is_in_order(1, 0), is_in_order(0, 1)));
  return all;
}

// Whether the nest may be written together with those around it.
Value* Writer::may_be_together() {
  Value* all = b_.getTrue();
  const auto require = [&](Value* condition) { all = b_.CreateAnd(all, condition); };
  if (nest_.epilogue && nest_.keeps_sums) require(are_rows_apart(*nest_.epilogue));
  for (const auto& [x, y] : nest_.apart)
    require(are_apart(b_, x, y, [&](const SCEV* address) { return expand(address); }));
  for (const auto& [x, y] : nest_.equal) require(b_.CreateICmpEQ(expand(x), expand(y)));
  // Of the rows between two checks of the stop word; more than so many rows are never one group.
  Value* const rows = nest_.is_repeatable ? b_.getInt64(tile_of_outermost()) : row_end_;
  const uint64_t most = kMaxTermsTogether;
  Value* const terms = b_.CreateMul(at_most(most + 1, rows), terms_of_row_);
  require(b_.CreateICmpULE(terms, b_.getInt64(most)));
  return all;
}

Value* Writer::at_most(uint64_t most, Value* value) {
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, value, b_.getInt64(most));
}

// The terms of one iteration of the outermost loop over rows, or of the nest; kMaxTermsTogether + 1 if there
// are more.
Value* Writer::terms_of_row() {
  Value* terms = b_.getInt64(1);
  for (size_t level = nest_.row_loops == 0 ? 0 : 1; level < counts_.size(); ++level)
    terms =
        at_most(kMaxTermsTogether + 1, b_.CreateMul(terms, at_most(kMaxTermsTogether + 1, counts_[level])));
  return terms;
}

// As many whole tiles of rows of the outermost loop as have at most kMaxGroup terms, but at least one.
Value* Writer::rows_between_stops() {
  const uint64_t tile = tile_of_outermost();
  Value* const tiles =
      b_.CreateUDiv(b_.getInt64(kMaxGroup / tile),
                    b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, terms_of_row_, b_.getInt64(1)));
  return b_.CreateMul(b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, tiles, b_.getInt64(1)),
                      b_.getInt64(tile));
}

// The rows of a group, if their terms are not too many: fewer are chosen for more terms than were expected.
Value* Writer::rows_of_group() { return at_most(tiling_.group, rows_between_stops()); }

bool Writer::write() {
  // A strided nest has scalars instead, if it must.
  const uint64_t widest = widest_value(nest_);
  if (widest == 0 && nest_.strided.empty()) return false;
  if (nest_.epilogue && widest_value(*nest_.epilogue) == 0) return false;
  if (!nest_.is_elementwise()) find_outputs();
  terms_.resize(nest_.loops.size() - first_term_loop());
  tiling_ = tiling(widest);
  if (!nest_.is_elementwise())
    choose_pairs();
  else if (!tiling_.is_shared)
    return false;  // LLVM writes it as well
  if (!nest_.strided.empty() && !tiling_.is_packed && !nest_.stores_floats()) return false;
  if (tiling_.is_packed && !tiling_.is_shared) add_panels();
  // Computed before the nest: steps, iteration counts, and whether the body is entered.
  Value* entered = b_.getTrue();
  for (const auto& [handle, wanted] : nest_.entered) {
    Value* const condition = handle;
    // Frozen, because the original program may not evaluate this condition.
    entered = b_.CreateAnd(entered, b_.CreateFreeze(wanted ? condition : b_.CreateNot(condition)));
  }
  expand_steps();
  for (const SCEV* last : nest_.last) counts_.push_back(b_.CreateAdd(expand(last), b_.getInt64(1)));
  row_end_ = nest_.row_loops != 0 ? counts_.front() : b_.getInt64(1);
  terms_of_row_ = terms_of_row();
  group_ = rows_of_group();
  Value* is_apart = are_rows_apart(nest_);
  if (pairs_) is_apart = b_.CreateAnd(is_apart, b_.CreateFreeze(are_offsets_small()));
  // Frozen, as the conditions.
  if (nest_.is_together()) is_apart = b_.CreateFreeze(b_.CreateAnd(is_apart, may_be_together()));

  BasicBlock* const start = new_block("contraction");
  b_.SetInsertPoint(start);
  write_groups();
  BasicBlock* const end = new_block("contraction.after");
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
  b_.CreateBr(after_);
  const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(is_apart);
  if (nest_.is_together()) {
    b_.SetInsertPoint(before_->getTerminator());
    keep_old_nests(b_.CreateAnd(entered, is_apart), start, end);
  } else if (!nest_.stop && known && known->isOne()) {
    delete_old_nest(entered, start);
  } else {
    b_.SetInsertPoint(before_->getTerminator());
    keep_old_nest(b_.CreateAnd(entered, is_apart), start, end);
  }
  if (pieces_) outline_pieces();
  return true;
}

// Such as "rows 7 x 7, outputs 64, terms 3 x 3 x 512: tiles of 7 rows by 32 outputs, blocks of 256 terms,
// packed".
std::string Writer::summary() const {
  std::string text;
  const auto add_count = [&](const char* separator, size_t level) {
    const std::optional<uint64_t> last = constant_of(nest_.last[level]);
    text += separator + (last ? std::to_string(*last + 1) : "?");
  };
  for (size_t level = 0; level < nest_.loops.size(); ++level) {
    const bool begins = level == 0 || level == nest_.row_loops || level == first_term_loop();
    const char* const names = level < nest_.row_loops    ? "rows "
                              : level == nest_.row_loops ? "outputs "
                                                         : "terms ";
    if (begins && level != 0) text += ", ";
    add_count(begins ? names : " x ", level);
  }
  text +=
      fmt::format(": tiles of {} rows by {} outputs", tiling_.rows.front(), tiling_.outputs.front().count());
  if (tiling_.outer_terms != 0 || tiling_.block != 0)
    text += fmt::format(", blocks of {} terms", tiling_.terms_of_block);
  if (tiling_.is_packed) text += ", packed";
  if (tiling_.packs_first_tile && !pairs_) text += " by the first tile";
  if (has_prefetches_) text += " with prefetches";
  if (has_squares_) text += ", transposed in registers";
  if (llvm::any_of(tiling_.outputs, [](const Tiling::Outputs& tile) { return tile.overlap != 0; }))
    text += ", the last vectors overlapping";
  if (pairs_) text += ", two terms at a time";
  if (nest_.fill) text += ", with the fill before it";
  if (nest_.epilogue) text += ", with the epilogue after it";
  if (nest_.are_sums_dead) text += ", whose sums are not stored";
  if (tiling_.is_shared) text += fmt::format(", shared by threads {} rows at a time", tiling_.group);
  if (tiling_.outputs.front().lanes == 1) text += ", without vectors";
  if (nest_.not_rows) text += fmt::format("; the loop around it is not over rows: {}", nest_.not_rows);
  return text;
}

std::optional<std::string> write(const Nest& nest, llvm::Function& function,
                                 llvm::FunctionAnalysisManager& analyses) {
  Writer writer(nest, function, analyses);
  if (!writer.write()) return {};
  return writer.summary();
}

}  // namespace halyard::jit::contraction
