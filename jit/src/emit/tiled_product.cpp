// A panel is a part of the right side with one vector of columns for each step, as the sums need it. The
// tiles whose steps are one element are panels already; others are transposed to memory of the stack.
#include "emit/tiled_product.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

namespace halyard::jit {

namespace {

using llvm::Value;
using Values = LoopWriter::Values;

// Steps of k and tiles of the right side that are multiplied at a time, so that both sides stay near.
struct BlockSize {
  uint64_t steps = 0, tiles = 0;
};
constexpr uint64_t kPanelSteps = 64;
constexpr BlockSize kBlockOf16Columns = {.steps = 256, .tiles = 16};
constexpr BlockSize kBlockOfBytes = {.steps = 512, .tiles = 32};
constexpr BlockSize kWholeProduct = {.steps = INT32_MAX, .tiles = INT32_MAX};
constexpr uint32_t kMostRows = 8, kMostGroups = 4;  // of tiles that are read where they are
constexpr uint64_t kLine = 64;                      // bytes of a line of the cache
constexpr uint64_t kAhead = 2048;                   // bytes to prefetch
constexpr uint32_t kLeastExcesses = 4;              // that an instruction computes

class TiledProduct {
 public:
  TiledProduct(LoopWriter& w, const VectorSet& vectors, Terms terms, uint32_t columns, uint32_t units,
               bool packs)
      : w_(w),
        terms_(terms),
        columns_(columns),
        k0_(units),
        fuses_(vectors.fuses),
        vectors_(vectors),
        packs_(packs) {
    units_ = terms == Terms::quads ? units / 4 : terms == Terms::pairs ? units / 2 : units;
    sums_pairs_ = terms == Terms::pairs && !packs;
    lanes_ = sums_pairs_ ? columns : std::max(columns, vectors.lanes);
    registers_ = (sums_pairs_ ? 2 : 1) * lanes_ / vectors.register_lanes;
    most_rows_ = packs ? vectors.panel_rows : std::clamp(vectors.sums / registers_, 1u, kMostRows);
    is_in_blocks_ = terms == Terms::floats && !packs && units == 4 && columns == 8 && vectors.is_x86;
    // A vector of sums is either one register or has registers of one block each.
    blocks_ = is_in_blocks_ && vectors.register_lanes == lanes_ ? lanes_ / 4 : 1;
    element_ = terms == Terms::floats ? 4 : 1;
    llvm::LLVMContext& context = w.b.getContext();
    panel_type_ = terms == Terms::floats     ? llvm::Type::getFloatTy(context)
                  : terms == Terms::integers ? static_cast<llvm::Type*>(llvm::Type::getInt16Ty(context))
                                             : llvm::Type::getInt32Ty(context);
    sum_type_ = terms == Terms::floats ? llvm::Type::getFloatTy(context)
                                       : static_cast<llvm::Type*>(llvm::Type::getInt32Ty(context));
    panel_element_ = terms == Terms::integers ? 2 : 4;
  }

  llvm::Function* write(const std::string& name) {
    for (uint32_t rows = most_rows_; rows > 0; rows /= 2) write_multiply(name, rows);
    llvm::Type* const pointer = w_.b.getPtrTy();
    llvm::Type* const i64 = w_.b.getInt64Ty();
    llvm::Function* const made =
        w_.begin(name, w_.b.getVoidTy(),
                 {pointer, i64, pointer, i64, pointer, i64, i64, i64, i64, i64, w_.b.getInt1Ty()}, false);
    made->addFnAttr(llvm::Attribute::NoInline);
    const auto value = [&](unsigned index) { return w_.argument(index); };
    const Product of = {.lhs = value(0),
                        .lhs_stride = value(1),
                        .rhs = value(2),
                        .rhs_stride = value(3),
                        .out = value(4),
                        .out_stride = value(5),
                        .m = value(6),
                        .n = value(7),
                        .k = value(8),
                        .m0 = value(9),
                        .n0 = w_.i64(columns_),
                        .k0 = w_.i64(k0_),
                        .accumulates = value(10)};
    write_blocks(of);
    w_.b.CreateRetVoid();
    return made;
  }

 private:
  llvm::Type* vector(llvm::Type* of, uint32_t lanes) { return llvm::FixedVectorType::get(of, lanes); }
  Value* bytes(Value* elements) { return w_.product(elements, w_.i64(element_)); }
  BlockSize block_size() const {
    if (packs_) return {.steps = kPanelSteps, .tiles = tiles(most_rows_)};
    if (columns_ == 16) return kBlockOf16Columns;
    return terms_ == Terms::floats ? kWholeProduct : kBlockOfBytes;
  }
  // Vectors of sums of each row, if so many rows are multiplied at a time.
  uint32_t groups(uint32_t rows) const {
    if (!packs_) return std::clamp(vectors_.sums / (rows * registers_), 1u, kMostGroups);
    const bool needs_register_of_products = terms_ == Terms::pairs;
    return needs_register_of_products ? std::min(vectors_.panel_vectors, 2u) : vectors_.panel_vectors;
  }
  uint32_t tiles_of_group() const { return lanes_ / columns_; }
  uint32_t tiles(uint32_t rows) const { return groups(rows) * tiles_of_group(); }
  uint32_t sources(uint32_t rows) const { return packs_ ? groups(rows) : tiles(rows); }  // panels or tiles
  uint64_t panel_step() const { return uint64_t{units_} * lanes_ * panel_element_; }

  static constexpr unsigned kFirstSource = 5;  // of the parameters of write_multiply

  // ---- One panel: sums of `rows` rows and all groups of columns

  // lhs, bytes from one of its steps to the next, steps, whether results are added to, the excess of each
  // row; panels; outputs of tiles.
  void write_multiply(const std::string& name, uint32_t rows) {
    std::vector<llvm::Type*> parameters = {w_.b.getPtrTy(), w_.b.getInt64Ty(), w_.b.getInt64Ty(),
                                           w_.b.getInt1Ty(), w_.b.getPtrTy()};
    parameters.insert(parameters.end(), sources(rows) + tiles(rows), w_.b.getPtrTy());
    llvm::Function* const made =
        w_.begin(name + "_" + std::to_string(rows), w_.b.getVoidTy(), parameters, false);
    made->addFnAttr(llvm::Attribute::NoInline);
    multiply_[rows] = made;
    llvm::Type* const type = vector(sum_type_, sums_pairs_ ? 2 * lanes_ : lanes_);
    Value* const adds = w_.argument(3);
    const uint32_t first_out = kFirstSource + sources(rows);
    Values sums;
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t group = 0; group < groups(rows); ++group) {
        llvm::Constant* const zero = llvm::Constant::getNullValue(type);
        Value* first = sums_pairs_ ? static_cast<Value*>(zero)
                                   : w_.b.CreateSelect(adds, load_sums(first_out, row, group), zero);
        if (terms_ == Terms::quads) {
          Value* const excess = w_.load(sum_type_, w_.at(w_.argument(4), w_.i64(uint64_t{row} * 4)));
          first = w_.b.CreateSub(first, w_.b.CreateVectorSplat(lanes_, excess));
        }
        sums.push_back(first);
      }
    const auto add_step = [&](Values& now, Value* step) {
      Value* const lhs = w_.at(w_.argument(0), w_.product(step, w_.argument(1)));
      if (goes_by_group())
        add_by_group(now, lhs, step, rows);
      else
        add_by_unit(now, lhs, step, rows);
    };
    // As many steps at a time as have a line to prefetch.
    const uint64_t some = prefetches(rows) ? std::max<uint64_t>(kLine / step_bytes(), 1) : 1;
    Value* const rounds = w_.b.CreateUDiv(w_.argument(2), w_.i64(some));
    Value* const done = w_.product(rounds, w_.i64(some));
    sums = w_.for_each(rounds, sums, [&](Value* round, Values now) {
      Value* const first = w_.product(round, w_.i64(some));
      if (prefetches(rows)) prefetch(first, tiles(rows));
      for (uint64_t i = 0; i < some; ++i) add_step(now, w_.sum(first, w_.i64(i)));
      return now;
    });
    if (some > 1)
      sums = w_.for_each(w_.b.CreateSub(w_.argument(2), done), sums, [&](Value* step, Values now) {
        add_step(now, w_.sum(done, step));
        return now;
      });
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t group = 0; group < groups(rows); ++group) {
        Value* sum = sums[row * groups(rows) + group];
        if (sums_pairs_) {
          Value* const before = w_.b.CreateSelect(adds, load_sums(first_out, row, group),
                                                  llvm::Constant::getNullValue(vector(sum_type_, lanes_)));
          sum = w_.sum(before, w_.sum(every_second(sum, 0), every_second(sum, 1)));
        }
        store_sums(sum, first_out, row, group);
      }
    w_.b.CreateRetVoid();
  }

  // One group after the other, where the columns of a step need many registers.
  bool goes_by_group() const { return !packs_ && units_ > 1; }
  void add_by_group(Values& sums, Value* lhs, Value* step, uint32_t rows) {
    for (uint32_t group = 0; group < groups(rows); ++group) {
      if (group > 0 && rows > 1) keep_order();
      if (sums_pairs_) {
        Value* const pairs = load_pairs(group, step);
        for (uint32_t row = 0; row < rows; ++row) {
          Value*& sum = sums[row * groups(rows) + group];
          sum = w_.sum(sum, sum_of_pairs(lhs_pairs(lhs, row), pairs));
        }
        continue;
      }
      const Values columns = columns_of(group, step);
      for (uint32_t unit = 0; unit < units_; ++unit)
        for (uint32_t row = 0; row < rows; ++row) {
          Value*& sum = sums[row * groups(rows) + group];
          sum = with_term(sum, lhs_vector(lhs, row, unit), columns[unit]);
        }
    }
  }
  void add_by_unit(Values& sums, Value* lhs, Value* step, uint32_t rows) {
    for (uint32_t unit = 0; unit < units_; ++unit) {
      Values columns;
      for (uint32_t group = 0; group < groups(rows); ++group)
        columns.push_back(packs_ ? load_panel(group, step, unit) : columns_of(group, step)[unit]);
      for (uint32_t row = 0; row < rows; ++row) {
        Value* const element = lhs_vector(lhs, row, unit);
        for (uint32_t group = 0; group < groups(rows); ++group) {
          Value*& sum = sums[row * groups(rows) + group];
          sum = with_term(sum, element, columns[group]);
        }
      }
    }
  }
  Value* load_panel(uint32_t group, Value* step, uint32_t unit) {
    Value* const at =
        w_.sum(w_.product(step, w_.i64(panel_step())), w_.i64(uint64_t{unit} * lanes_ * panel_element_));
    return w_.load(vector(panel_type_, lanes_), w_.at(w_.argument(kFirstSource + group), at));
  }
  Value* lhs_vector(Value* lhs, uint32_t row, uint32_t unit) {
    return w_.b.CreateVectorSplat(lanes_, lhs_element(lhs, row, unit));
  }

  // ---- Tiles that are read where they are

  // With wide vectors, one or two rows of floats take so little time that prefetching takes more than it
  // saves.
  bool prefetches(uint32_t rows) const {
    return !packs_ && vectors_.is_x86 && columns_ == 8 &&
           (terms_ != Terms::floats || vectors_.register_lanes < 16 || rows > 2);
  }
  uint64_t step_bytes() const { return uint64_t{columns_} * k0_ * element_; }  // of a tile
  // One line of each tile, or all lines of a step.
  void prefetch(Value* step, uint32_t tiles) {
    for (uint32_t tile = 0; tile < tiles; ++tile)
      for (uint64_t line = 0; line < step_bytes(); line += kLine) {
        Value* const offset = w_.sum(w_.product(step, w_.i64(step_bytes())), w_.i64(kAhead + line));
        w_.b.CreateIntrinsic(llvm::Intrinsic::prefetch, {w_.b.getPtrTy()},
                             {w_.at(w_.argument(kFirstSource + tile), offset), w_.b.getInt32(0),
                              w_.b.getInt32(3), w_.b.getInt32(1)});
      }
  }

  // The numbers of one step; quads as one number of 32 bits each.
  Value* load_tile(uint32_t tile, Value* step) {
    const uint64_t count = uint64_t{columns_} * units_;
    Value* const address = w_.at(w_.argument(kFirstSource + tile),
                                 w_.product(step, w_.i64(uint64_t{columns_} * k0_ * element_)));
    Value* const all = w_.load(vector(panel_type_, static_cast<uint32_t>(count)), address);
    return terms_ == Terms::quads
               ? w_.b.CreateXor(all, w_.b.CreateVectorSplat(columns_, w_.b.getInt32(0x80808080)))
               : all;
  }
  // Compilers would keep the broadcast elements of all rows and units for the next group, and run out of
  // registers.
  void keep_order() {
    w_.b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(w_.b.getVoidTy(), false), "", "~{memory}",
                                         /*hasSideEffects=*/true));
  }

  // The 16-bit numbers of one step of a tile: two pairs for each column.
  Value* load_pairs(uint32_t tile, Value* step) {
    const uint32_t count = columns_ * k0_;
    Value* const address = w_.at(w_.argument(kFirstSource + tile), w_.product(step, w_.i64(count)));
    Value* const numbers =
        w_.b.CreateSExt(w_.load(vector(w_.b.getInt8Ty(), count), address), vector(w_.b.getInt16Ty(), count));
    return w_.b.CreateBitCast(numbers, vector(w_.b.getInt32Ty(), count / 2));
  }
  // The two pairs of a row of the widened left side, for each column.
  Value* lhs_pairs(Value* lhs, uint32_t row) {
    Value* const both = w_.load(w_.b.getInt64Ty(), w_.at(lhs, w_.i64(uint64_t{row} * k0_ * 2)));
    return w_.b.CreateBitCast(w_.b.CreateVectorSplat(columns_, both),
                              vector(w_.b.getInt32Ty(), 2 * columns_));
  }
  Value* every_second(Value* numbers, int first) {
    llvm::SmallVector<int, 16> lanes;
    for (uint32_t i = 0; i < lanes_; ++i) lanes.push_back(static_cast<int>(2 * i) + first);
    return w_.b.CreateShuffleVector(numbers, lanes);
  }

  // Element j of vector i goes to element i of vector j, within each block of four lanes.
  Values transposed_in_blocks(const Values& rows, uint32_t lanes) {
    // The lower or upper halves of the blocks of two vectors, in turns of `count` lanes.
    const auto interleaved = [&](Value* a, Value* b, uint32_t first, uint32_t count) {
      llvm::SmallVector<int, 8> which;
      for (uint32_t block = 0; block < lanes; block += 4)
        for (uint32_t i = 0; i < 4; ++i)
          which.push_back(static_cast<int>(block + first + i / (2 * count) * count + i % count +
                                           (i / count % 2 == 0 ? 0 : lanes)));
      return w_.b.CreateShuffleVector(a, b, which);
    };
    Values columns;
    for (const uint32_t half : {0u, 2u}) {
      Value* const first = interleaved(rows[0], rows[1], half, 1);
      Value* const second = interleaved(rows[2], rows[3], half, 1);
      for (const uint32_t pair : {0u, 2u}) columns.push_back(interleaved(first, second, pair, 2));
    }
    return columns;
  }

  // Transposing within blocks takes fewer instructions than transposing fully. With several blocks in a
  // register the columns are in another order, and the sums as well: in_blocks.
  Values columns_in_blocks(uint32_t group, Value* step) {
    const uint32_t lanes = vectors_.register_lanes;
    const uint64_t tile_bytes = uint64_t{columns_} * k0_ * 4;
    const auto load_register = [&](uint64_t index) {
      const uint64_t byte = index * lanes * 4;
      const auto tile = group * tiles_of_group() + static_cast<uint32_t>(byte / tile_bytes);
      Value* const at = w_.sum(w_.product(step, w_.i64(tile_bytes)), w_.i64(byte % tile_bytes));
      return w_.load(vector(panel_type_, lanes), w_.at(w_.argument(kFirstSource + tile), at));
    };
    Values columns;
    for (uint32_t part = 0; part < lanes_ / lanes; ++part) {
      Values rows;
      for (uint64_t i = 0; i < 4; ++i) rows.push_back(load_register(4 * part + i));
      const Values some = transposed_in_blocks(rows, lanes);
      for (uint32_t unit = 0; unit < 4; ++unit) {
        if (part == 0)
          columns.push_back(some[unit]);
        else
          columns[unit] = w_.b.CreateShuffleVector(columns[unit], some[unit], {0, 1, 2, 3, 4, 5, 6, 7});
      }
    }
    return columns;
  }
  // Column p is in lane p % blocks_ * 4 + p / blocks_.
  Value* in_blocks(Value* columns) {
    llvm::SmallVector<int, 16> order;
    for (uint32_t lane = 0; lane < lanes_; ++lane)
      order.push_back(static_cast<int>(lane % 4 * blocks_ + lane / 4));
    return blocks_ == 1 ? columns : w_.b.CreateShuffleVector(columns, order);
  }
  Value* in_order(Value* lanes) {
    llvm::SmallVector<int, 16> order;
    for (uint32_t column = 0; column < lanes_; ++column)
      order.push_back(static_cast<int>(column % blocks_ * 4 + column / blocks_));
    return blocks_ == 1 ? lanes : w_.b.CreateShuffleVector(lanes, order);
  }

  // By unit: the numbers of all columns of a group.
  Values columns_of(uint32_t group, Value* step) {
    if (is_in_blocks_) return columns_in_blocks(group, step);
    const uint32_t count = tiles_of_group();
    Value* const first = load_tile(group * count, step);
    Value* const second = count == 1 ? first : load_tile(group * count + 1, step);
    Values columns;
    for (uint32_t unit = 0; unit < units_; ++unit) {
      llvm::SmallVector<int, 16> lanes;
      for (uint32_t i = 0; i < lanes_; ++i) lanes.push_back(static_cast<int>(i * units_ + unit));
      columns.push_back(w_.b.CreateShuffleVector(first, second, lanes));
    }
    return columns;
  }

  // `first_out`: the parameter of write_multiply that is the output of the first tile.
  Value* out_row(uint32_t first_out, uint32_t tile, uint32_t row) {
    return w_.at(w_.argument(first_out + tile), w_.i64(uint64_t{row} * columns_ * 4));
  }
  Value* load_sums(uint32_t first_out, uint32_t row, uint32_t group) {
    llvm::Type* const type = vector(sum_type_, columns_);
    Value* const first = w_.load(type, out_row(first_out, group * tiles_of_group(), row));
    if (tiles_of_group() == 1) return in_blocks(first);
    llvm::SmallVector<int, 16> both;
    for (uint32_t i = 0; i < lanes_; ++i) both.push_back(static_cast<int>(i));
    return in_blocks(
        w_.b.CreateShuffleVector(first, w_.load(type, out_row(first_out, group * 2 + 1, row)), both));
  }
  void store_sums(Value* sums, uint32_t first_out, uint32_t row, uint32_t group) {
    sums = in_order(sums);
    if (tiles_of_group() == 1) return w_.store(sums, out_row(first_out, group, row));
    for (uint32_t half = 0; half < 2; ++half) {
      llvm::SmallVector<int, 16> lanes;
      for (uint32_t i = 0; i < columns_; ++i) lanes.push_back(static_cast<int>(half * columns_ + i));
      w_.store(w_.b.CreateShuffleVector(sums, lanes), out_row(first_out, group * 2 + half, row));
    }
  }

  Value* lhs_element(Value* lhs, uint32_t row, uint32_t unit) {
    if (terms_ == Terms::pairs)  // of the widened left side
      return w_.load(w_.b.getInt32Ty(), w_.at(lhs, w_.i64(uint64_t{row} * k0_ * 2 + unit * 4)));
    if (terms_ == Terms::quads) return w_.load(w_.b.getInt32Ty(), w_.at(lhs, w_.i64(uint64_t{row} * k0_)));
    Value* const at = w_.at(lhs, w_.i64((uint64_t{row} * k0_ + unit) * element_));
    if (terms_ == Terms::floats) return w_.load(w_.b.getFloatTy(), at);
    return w_.b.CreateSExt(w_.load(w_.b.getInt8Ty(), at), w_.b.getInt16Ty());
  }

  Value* with_term(Value* sum, Value* x, Value* y) {
    switch (terms_) {
      case Terms::floats:
        if (fuses_) return w_.b.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {x, y, sum});
        return w_.b.CreateFAdd(sum, w_.b.CreateFMul(x, y));
      case Terms::pairs:
        return w_.sum(sum, sum_of_pairs(x, y));
      case Terms::quads:
        return w_.b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpbusd_512, {}, {sum, y, x});
      default:
        return w_.sum(sum,
                      w_.product(w_.b.CreateSExt(x, sum->getType()), w_.b.CreateSExt(y, sum->getType())));
    }
  }
  // In pieces of a register, because the instruction has the width of one.
  Value* sum_of_pairs(Value* x, Value* y) {
    const uint32_t lanes = llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements();
    llvm::SmallVector<int, 16> all;
    for (uint32_t i = 0; i < lanes; ++i) all.push_back(static_cast<int>(i));
    if (lanes > vectors_.register_lanes) {
      const llvm::ArrayRef<int> low = llvm::ArrayRef(all).take_front(lanes / 2);
      const llvm::ArrayRef<int> high = llvm::ArrayRef(all).drop_front(lanes / 2);
      const auto half = [&](llvm::ArrayRef<int> which) {
        return sum_of_pairs(w_.b.CreateShuffleVector(x, which), w_.b.CreateShuffleVector(y, which));
      };
      return w_.b.CreateShuffleVector(half(low), half(high), all);
    }
    const auto numbers = [&](Value* pairs) {
      return w_.b.CreateBitCast(pairs, vector(w_.b.getInt16Ty(), 2 * lanes));
    };
    return w_.b.CreateIntrinsic(lanes == 16  ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                                : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                             : llvm::Intrinsic::x86_sse2_pmadd_wd,
                                {}, {numbers(x), numbers(y)});
  }

  // ---- The loops over blocks

  void write_blocks(const Product& of) {
    const BlockSize size = block_size();
    Value* const panel = packs_ ? w_.room(groups(most_rows_) * kPanelSteps * panel_step()) : nullptr;
    widened_ = terms_ == Terms::pairs ? w_.room(size.steps * most_rows_ * k0_ * 2) : nullptr;
    excesses_ =
        terms_ == Terms::quads ? w_.room(std::max(most_rows_, kLeastExcesses) * uint64_t{4}) : nullptr;
    unused_ = w_.room(uint64_t{most_rows_} * columns_ * 4);
    for_blocks(of.k, size.steps, [&](Value* step, Value* steps) {
      Value* const adds = w_.b.CreateOr(of.accumulates, w_.b.CreateIsNotNull(step));
      for_blocks(of.n, size.tiles, [&](Value* column, Value* columns) {
        const Columns block = {.first = column, .count = columns, .step = step, .panel = panel};
        if (packs_) pack(sources_of(of, block, column, tiles(most_rows_)).sources, panel, steps);
        w_.for_each(of.m, [&](Value* i) {
          Value* const inner = w_.product(step, w_.product(of.m0, of.k0));
          Value* const lhs = w_.at(of.lhs, bytes(w_.sum(w_.product(i, of.lhs_stride), inner)));
          write_rows(of, i, block, lhs, steps, adds);
        });
      });
    });
  }
  // Calls `body` with the first of at most `size` numbers below `count`, and with how many they are.
  void for_blocks(Value* count, uint64_t size, const std::function<void(Value*, Value*)>& body) {
    Value* const blocks = w_.b.CreateUDiv(w_.sum(count, w_.i64(size - 1)), w_.i64(size));
    w_.for_each(blocks, [&](Value* block) {
      Value* const first = w_.product(block, w_.i64(size));
      body(first, w_.min(w_.b.CreateSub(count, first), w_.i64(size)));
    });
  }

  // Tiles of the right side, from one of its steps on.
  struct Columns {
    Value *first, *count, *step;
    Value* panel;  // null: they are read where they are
  };
  // The tiles of one call of write_multiply.
  struct Sources {
    Values sources;
    Values is_used;
  };
  // A tile that does not exist repeats the first one, and its results are not used.
  Sources sources_of(const Product& of, const Columns& block, Value* column, uint32_t count) {
    Sources made;
    Value* const end = w_.sum(block.first, block.count);
    for (uint32_t tile = 0; tile < count; ++tile) {
      Value* const number = w_.sum(column, w_.i64(tile));
      made.is_used.push_back(w_.b.CreateICmpULT(number, end));
      Value* const source = w_.b.CreateSelect(made.is_used.back(), number, column);
      Value* const inner = w_.product(block.step, w_.product(of.n0, of.k0));
      made.sources.push_back(w_.at(of.rhs, bytes(w_.sum(w_.product(source, of.rhs_stride), inner))));
    }
    return made;
  }

  // All rows of a tile: as many as possible at a time, then half as many, and so on.
  void write_rows(const Product& of, Value* i, const Columns& block, Value* lhs, Value* steps, Value* adds) {
    Value* done = w_.i64(0);
    for (uint32_t rows = most_rows_; rows > 0; rows /= 2) {
      Value* const count = w_.b.CreateUDiv(w_.b.CreateSub(of.m0, done), w_.i64(rows));
      Value* const before = done;
      w_.for_each(count, [&](Value* some) {
        Value* const row = w_.sum(before, w_.product(some, w_.i64(rows)));
        Value* from = w_.at(lhs, bytes(w_.product(row, of.k0)));
        Value* step = bytes(w_.product(of.m0, of.k0));
        if (excesses_) write_excesses(from, step, steps, rows);
        if (widened_) {
          widen(from, step, steps, rows);
          from = widened_;
          step = w_.i64(uint64_t{rows} * k0_ * 2);
        }
        for_blocks(block.count, tiles(rows), [&](Value* first, Value*) {
          Value* const column = w_.sum(block.first, first);
          const Sources used = sources_of(of, block, column, tiles(rows));
          Values arguments = {from, step, steps, adds,
                              excesses_ ? excesses_ : llvm::Constant::getNullValue(w_.b.getPtrTy())};
          if (block.panel)
            for (uint32_t group = 0; group < groups(rows); ++group)
              arguments.push_back(w_.at(block.panel, w_.i64(group * kPanelSteps * panel_step())));
          else
            arguments.append(used.sources.begin(), used.sources.end());
          for (uint32_t tile = 0; tile < tiles(rows); ++tile) {
            Value* const rows_before = w_.sum(w_.product(w_.sum(column, w_.i64(tile)), of.m0), row);
            Value* const index = w_.sum(w_.product(i, of.out_stride), w_.product(rows_before, of.n0));
            Value* const out = w_.at(of.out, w_.product(index, w_.i64(4)));
            arguments.push_back(w_.b.CreateSelect(used.is_used[tile], out, unused_));
          }
          w_.b.CreateCall(multiply_.at(rows), arguments);
        });
      });
      done = w_.sum(done, w_.product(count, w_.i64(rows)));
    }
  }

  // Adds 128 times the sum of each row's numbers of a step.
  Value* with_excess(Value* excess, Value* lhs, uint32_t rows) {
    Value* numbers = w_.load(vector(w_.b.getInt32Ty(), rows), lhs);
    if (rows < kLeastExcesses) {
      llvm::SmallVector<int, kLeastExcesses> lanes;
      for (uint32_t i = 0; i < kLeastExcesses; ++i) lanes.push_back(static_cast<int>(std::min(i, rows)));
      numbers = w_.b.CreateShuffleVector(numbers, llvm::Constant::getNullValue(numbers->getType()), lanes);
    }
    const uint32_t lanes = std::max(rows, kLeastExcesses);
    const llvm::Intrinsic::ID operation = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                                          : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                                       : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
    return w_.b.CreateIntrinsic(operation, {},
                                {excess, w_.b.CreateVectorSplat(lanes, w_.b.getInt32(0x80808080)), numbers});
  }
  // Several sums, so that additions do not wait for each other.
  void write_excesses(Value* lhs, Value* lhs_step, Value* steps, uint32_t rows) {
    constexpr uint64_t kSums = 4;
    llvm::Type* const type = vector(w_.b.getInt32Ty(), std::max(rows, kLeastExcesses));
    const auto add = [&](Value*& sum, Value* step) {
      sum = with_excess(sum, w_.at(lhs, w_.product(step, lhs_step)), rows);
    };
    const Values zeros(kSums, llvm::Constant::getNullValue(type));
    Value* const rounds = w_.b.CreateUDiv(steps, w_.i64(kSums));
    Values sums = w_.for_each(rounds, zeros, [&](Value* round, Values now) {
      for (uint64_t i = 0; i < kSums; ++i) add(now[i], w_.sum(w_.product(round, w_.i64(kSums)), w_.i64(i)));
      return now;
    });
    Value* const done = w_.product(rounds, w_.i64(kSums));
    Value* all = sums[0];
    for (uint64_t i = 1; i < kSums; ++i) all = w_.sum(all, sums[i]);
    all = w_.for_each(w_.b.CreateSub(steps, done), {all}, [&](Value* step, Values now) {
      add(now[0], w_.sum(done, step));
      return now;
    })[0];
    w_.store(all, excesses_);
  }

  // Writes each unit of the tiles' columns as a part of a vector.
  void pack(const Values& sources, Value* panel, Value* steps) {
    w_.for_each(steps, [&](Value* step) {
      for (uint32_t tile = 0; tile < sources.size(); ++tile) {
        const uint32_t count = columns_ * k0_;
        llvm::Type* const element =
            terms_ == Terms::floats ? w_.b.getFloatTy() : static_cast<llvm::Type*>(w_.b.getInt8Ty());
        Value* all =
            w_.load(vector(element, count), w_.at(sources[tile], bytes(w_.product(step, w_.i64(count)))));
        if (terms_ != Terms::floats) all = w_.b.CreateSExt(all, vector(w_.b.getInt16Ty(), count));
        if (terms_ == Terms::pairs) all = w_.b.CreateBitCast(all, vector(w_.b.getInt32Ty(), count / 2));
        const uint32_t group = tile / tiles_of_group();
        const uint32_t lane = tile % tiles_of_group() * columns_;
        for (uint32_t unit = 0; unit < units_; ++unit) {
          llvm::SmallVector<int, 16> lanes;
          for (uint32_t i = 0; i < columns_; ++i) lanes.push_back(static_cast<int>(i * units_ + unit));
          Value* const at = w_.sum(
              w_.product(step, w_.i64(panel_step())),
              w_.i64(group * kPanelSteps * panel_step() + (uint64_t{unit} * lanes_ + lane) * panel_element_));
          w_.store(w_.b.CreateShuffleVector(all, lanes), w_.at(panel, at));
        }
      }
    });
  }

  void widen(Value* lhs, Value* lhs_step, Value* steps, uint32_t rows) {
    const uint32_t count = rows * k0_;
    w_.for_each(steps, [&](Value* step) {
      Value* const narrow = w_.load(vector(w_.b.getInt8Ty(), count), w_.at(lhs, w_.product(step, lhs_step)));
      w_.store(w_.b.CreateSExt(narrow, vector(w_.b.getInt16Ty(), count)),
               w_.at(widened_, w_.product(step, w_.i64(uint64_t{count} * 2))));
    });
  }

  LoopWriter& w_;
  const Terms terms_;
  const uint32_t columns_;
  const uint32_t k0_;
  const bool fuses_;
  const VectorSet vectors_;
  const bool packs_;
  bool sums_pairs_ = false;    // a column has two sums, of the first pairs and of the second ones
  bool is_in_blocks_ = false;  // columns_in_blocks
  uint32_t blocks_ = 1;        // of four lanes, whose columns are in another order
  uint32_t units_ = 0;         // of a step: columns of a panel
  uint32_t lanes_ = 0;         // of a vector of sums
  uint32_t most_rows_ = 0;
  uint32_t registers_ = 0;  // of such a vector
  uint32_t element_ = 0;    // bytes
  uint32_t panel_element_ = 0;
  llvm::Type* panel_type_ = nullptr;
  llvm::Type* sum_type_ = nullptr;
  std::map<uint32_t, llvm::Function*> multiply_;
  Value* widened_ = nullptr;   // rows of the left side, of 16-bit numbers
  Value* excesses_ = nullptr;  // of rows of quads: 128 times the sums of their numbers
  Value* unused_ = nullptr;
};

}  // namespace

llvm::Function* write_tiled_product(LoopWriter& w, const VectorSet& vectors, Terms terms, uint32_t columns,
                                    uint32_t units, bool packs, const std::string& name) {
  return TiledProduct(w, vectors, terms, columns, units, packs).write(name);
}

}  // namespace halyard::jit
