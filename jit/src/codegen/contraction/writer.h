// Writes the new nest of a contraction: the loops (write.cpp), the tiles in them (write_tile.cpp), their
// values (values.cpp), prefetches (prefetch.cpp), pairs of terms (write_pairs.cpp), the groups that threads
// share (share.cpp), and the way back to the old nest (old_nest.cpp).
#pragma once

#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/contraction/dependence.h"
#include "codegen/contraction/nest.h"
#include "codegen/contraction/pairs.h"
#include "codegen/contraction/tile.h"

namespace halyard::jit::contraction {

class Writer {
 public:
  Writer(const Nest& nest, llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : nest_(nest),
        function_(function),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
        target_(analyses.getResult<llvm::TargetIRAnalysis>(function)),
        before_(nest.before()),
        after_(nest.after()),
        b_(before_->getTerminator()),
        expander_(evolution_, function.getDataLayout(), "contraction"),
        dependence_(nest) {}

  bool write();
  // What was decided, for a reader.
  std::string summary() const;

 private:
  // The sums of one output in each tile. Several stores may be to the same output.
  struct Output {
    llvm::StoreInst* store = nullptr;
    const llvm::SCEV* address = nullptr;
    std::vector<llvm::Value*> sums;  // of the current tile, row by row
  };
  using Key =
      std::pair<llvm::Value*, std::pair<uint64_t, uint64_t>>;  // a value, its row and vector in the tile

  void expand_steps();
  void find_outputs();
  Tiling tiling(uint64_t widest);
  llvm::Value* are_rows_apart(const Nest& nest);
  llvm::Value* may_be_together();
  llvm::Value* at_most(uint64_t most, llvm::Value* value);
  llvm::Value* terms_of_row();
  llvm::Value* rows_between_stops();
  llvm::Value* rows_of_group();
  // The outermost loop's part of a tile of rows.
  uint64_t tile_of_outermost() const { return nest_.row_loops == 1 ? tiling_.rows.front() : 1; }
  void write_rows(llvm::Value* begin, llvm::Value* end);
  void write_groups();
  llvm::Value* first_row(llvm::Value* group);
  void share_groups();
  void outline_pieces();
  void write_blocks(size_t level, llvm::Value* begin, llvm::Value* end);
  void write_tiles(llvm::Value* begin, llvm::Value* end);
  template <typename Body>
  void for_rows(llvm::Value* begin, llvm::Value* end, Body body);
  template <typename Body>
  void for_outputs(Body body);
  bool is_packable(llvm::LoadInst* load);
  llvm::AllocaInst* panel_memory(uint64_t bytes);
  llvm::AllocaInst* shared_panel_memory(uint64_t bytes);
  void add_panels();
  void pack(llvm::Value* output);
  void pack_for_few_rows(llvm::Value* begin, llvm::Value* end, llvm::Value* output);
  llvm::Value* packed_address(llvm::LoadInst* load, uint64_t vector);
  void write_tile(llvm::Value* row, llvm::Value* output);
  void write_tile_that_may_pack(llvm::Value* begin, llvm::Value* row, llvm::Value* output);
  llvm::Value* is_block_at_the(bool end);
  void use_first_term();
  void load_sums();
  void store_sums();
  void begin_tile();
  void end_tile();
  void write_elements(llvm::BasicBlock& body);
  std::pair<llvm::Value*, llvm::Value*> range_of(size_t level);
  void add_terms(size_t level);
  void add_squares(size_t level);
  void add_term();
  // prefetch.cpp
  llvm::Value* number_in_block();
  llvm::Value* address_in_next_panel(llvm::LoadInst* load);
  uint64_t tiles_of_panel() const;
  void prefetch(llvm::LoadInst* load);
  void prefetch_next_panel();
  llvm::Value* address_at_the(bool end, llvm::LoadInst* load);
  void prefetch_pages(llvm::Value* sharing);
  // write_pairs.cpp
  bool adds_pairs() const;
  llvm::Value* are_offsets_small();
  llvm::Value* factors(const Factor& of, llvm::Value* loaded);
  llvm::Value* pairs_of_innermost();
  llvm::Value* number_of_pair();
  llvm::Value* address_of_pairs(uint64_t vector);
  llvm::Value* address_of_row_pair(uint64_t row);
  void choose_pairs();
  void add_panels_of_pairs();
  llvm::Value* outputs_pair(llvm::Value* term, bool has_second, uint64_t vector);
  llvm::Value* row_pair(llvm::Value* term, bool has_second, uint64_t row);
  void add_pair(llvm::Value* term, bool has_second);
  void add_pairs();
  void pack_rows(size_t level);

  llvm::Value* load_strided(llvm::LoadInst* load, uint64_t row, uint64_t vector);
  std::vector<llvm::Value*> sums() const;
  std::vector<llvm::PHINode*> begin_sums(const std::vector<llvm::Value*>& values, llvm::BasicBlock* from);
  static void end_sums(const std::vector<llvm::PHINode*>& phis, const std::vector<llvm::Value*>& values,
                       llvm::BasicBlock* from);
  void check_stop_word(llvm::Value* next);
  void keep_old_nest(llvm::Value* is_new, llvm::BasicBlock* start, llvm::BasicBlock* end);
  void keep_old_nests(llvm::Value* is_new, llvm::BasicBlock* start, llvm::BasicBlock* end);
  void delete_old_nest(llvm::Value* entered, llvm::BasicBlock* start);

  llvm::Value* count_between(llvm::Value* begin, llvm::Value* end);
  template <typename Body>
  llvm::Value* for_tiles(llvm::Value* begin, llvm::Value* end, uint64_t size, bool adds, Body body);
  template <typename Body>
  void for_blocks(llvm::Value* count, llvm::Value* length, Body body);
  llvm::Value* scalar(llvm::Value* value, uint64_t row, uint64_t vector);
  llvm::Value* step_of(const llvm::PHINode& phi);
  llvm::Value* advanced(const llvm::PHINode& phi, llvm::Value* start, llvm::Value* counter);
  llvm::Value* counter_value(llvm::PHINode* phi, uint64_t row, uint64_t vector);
  template <typename CopyOf>
  llvm::Value* copy_with(llvm::Instruction* instruction, CopyOf copy_of);
  llvm::Value* value(llvm::Value* value, uint64_t row, uint64_t vector);
  std::optional<int64_t> distance(llvm::Value* pointer, uint64_t row, uint64_t vector);
  llvm::Value* address(llvm::Value* pointer, uint64_t row, uint64_t vector);
  llvm::Value* load(llvm::LoadInst* load, uint64_t row, uint64_t vector);
  llvm::Value* widened(llvm::Instruction* instruction, uint64_t row, uint64_t vector);
  llvm::Value* splat(llvm::Value* value) {
    return lanes_ == 1 || value->getType()->isVectorTy()
               ? value
               : b_.CreateVectorSplat(static_cast<unsigned>(lanes_), value);
  }
  llvm::Type* type_of(llvm::Type* scalar) const {
    return lanes_ == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes_));
  }
  Key key(llvm::Value* value, uint64_t row, uint64_t vector) {
    const unsigned on = dependence_.of(value);
    return {value, {on & Dependence::kRows ? row : 0, on & Dependence::kOutputs ? vector : 0}};
  }
  llvm::Value* counter_of(const llvm::Loop* loop, uint64_t row, uint64_t vector);
  size_t first_term_loop() const { return nest_.output_level() + 1; }
  // The output at this address; null if there is none.
  Output* output_at(llvm::Value* pointer) {
    const llvm::SCEV* const address = evolution_.getSCEV(pointer);
    const auto found = std::find_if(outputs_.begin(), outputs_.end(),
                                    [&](const Output& output) { return output.address == address; });
    return found == outputs_.end() ? nullptr : &*found;
  }
  // The output whose sum the load reads; null if there is none.
  Output* output_read_by(llvm::LoadInst* load) {
    return llvm::is_contained(nest_.sum_loads, load) ? &outputs_.front()
                                                     : output_at(load->getPointerOperand());
  }
  llvm::BasicBlock* new_block(const char* name) {
    return llvm::BasicBlock::Create(b_.getContext(), name, &function_, nest_.outermost()->getHeader());
  }
  llvm::Value* expand(const llvm::SCEV* value) {
    return expander_.expandCodeFor(value, value->getType(), before_->getTerminator());
  }
  template <typename Visit>
  void for_each_sum(Visit visit) {
    for (uint64_t row = 0; row < tile_rows_; ++row)
      for (uint64_t vector = 0; vector < tile_vectors_; ++vector)
        visit(row, vector, row * tile_vectors_ + vector);
  }
  void forget_values() {
    scalars_.clear();
    values_.clear();
  }

  const Nest& nest_;
  llvm::Function& function_;
  llvm::ScalarEvolution& evolution_;
  const llvm::TargetTransformInfo& target_;
  llvm::BasicBlock* before_;
  llvm::BasicBlock* after_;
  llvm::IRBuilder<> b_;
  llvm::SCEVExpander expander_;
  Dependence dependence_;
  Tiling tiling_;
  std::vector<Output> outputs_;
  llvm::DenseMap<const llvm::SCEV*, llvm::Value*> steps_;  // of counters, computed before the nest
  std::vector<llvm::Value*> counts_;                       // of the iterations of each loop
  llvm::Value* row_end_ = nullptr;  // the number of iterations of the outermost loop over rows
  llvm::Value* terms_of_row_ = nullptr;
  llvm::Value* group_ = nullptr;  // the number of rows of a group
  // The block of terms: its part of the loop that is divided.
  std::pair<llvm::Value*, llvm::Value*> block_;
  // The current tile: its first row and output, its size, and the counters of the terms.
  llvm::Value* outer_row_ = nullptr;  // with two loops over rows
  llvm::Value* row_ = nullptr;
  llvm::Value* output_ = nullptr;
  uint64_t tile_rows_ = 1;
  Tiling::Outputs tile_outputs_ = {1, 1};
  uint64_t tile_vectors_ = 1;
  uint64_t lanes_ = 1;
  std::vector<llvm::Value*> terms_;
  // Copies of the nest's values in the current block: for addresses, and as vectors.
  std::map<Key, llvm::Value*> scalars_;
  std::map<Key, llvm::Value*> values_;
  // For loads that are not contiguous: the bytes between elements for consecutive outputs.
  std::map<llvm::LoadInst*, llvm::Value*> row_steps_;
  bool has_squares_ = false;  // they are loaded along the terms, and transposed
  // Of such loads, the vectors for consecutive terms; and the term in the square that is added.
  std::map<Key, std::vector<llvm::Value*>> squares_;
  std::optional<uint64_t> square_term_;
  // For loads that are packed: the copies of their elements.
  std::map<llvm::LoadInst*, llvm::Value*> panels_;
  bool is_packing_ = false;
  bool adds_and_packs_ = false;
  bool has_prefetches_ = false;
  llvm::Value* tile_of_panel_ = nullptr;  // the number of the tile of rows, or of the outermost row
  // For products of small integers: the copies of both factors, in pairs, if they are packed.
  std::optional<Pairs> pairs_;
  llvm::Value* pairs_panel_ = nullptr;
  llvm::Value* rows_panel_ = nullptr;
  uint64_t pairs_of_block_ = 0;
  bool are_rows_contiguous_ = false;  // A's elements for consecutive terms
  // If threads share the groups: the part of the new nest that runs some of them, and the call of the host
  // that calls it on several threads.
  struct Pieces {
    llvm::Value *first, *last;  // the numbers of the first group, and of that after the last one
    llvm::BasicBlock *begin, *end;
    llvm::BasicBlock* before;  // of all groups
    llvm::CallInst* share;
  };
  std::optional<Pieces> pieces_;
  // Where the old nest goes on at the given row.
  std::vector<std::pair<llvm::Value*, llvm::BasicBlock*>> stops_;
};

}  // namespace halyard::jit::contraction
