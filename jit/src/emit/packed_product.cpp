// A panel is a part of the right side with one vector of columns for each step, as the sums need it. The
// tiles whose steps are one element are panels already; others are transposed to memory of the stack.
#include "emit/packed_product.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emit/microkernel_operands.h"

namespace halyard::jit {

namespace {

using llvm::Value;
using Values = LoopWriter::Values;

constexpr uint64_t kF32Type = 1;
constexpr uint64_t kS8Type = 2;
constexpr uint64_t kAccumulate = 0x100;
constexpr uint64_t kBlockSteps = 64;  // of k, that are packed at a time
constexpr uint64_t kManyRows = 16;    // enough for panels to pay off
constexpr uint64_t kManyRowsOfBytes = 8;
constexpr uint64_t kDirectBlockSteps =
    256;  // that are multiplied at a time, so that the left side stays near

// The operands of a product, as values of the function.
struct Product {
  Value *lhs, *lhs_stride, *rhs, *rhs_stride, *out, *out_stride;  // strides in elements
  Value *m, *n, *k, *m0, *n0, *k0;
  Value* accumulates;
};

// ---- Plain loops, for tiles of any size

void write_plain_loops(LoopWriter& w, const Product& of, bool is_float) {
  llvm::Type* const element = is_float ? w.b.getFloatTy() : static_cast<llvm::Type*>(w.b.getInt8Ty());
  llvm::Type* const result = is_float ? w.b.getFloatTy() : static_cast<llvm::Type*>(w.b.getInt32Ty());
  Value* const width = w.i64(is_float ? 4 : 1);
  const auto number = [&](Value* address) {
    Value* const loaded = w.load(element, address);
    return is_float ? loaded : w.b.CreateSExt(loaded, result);
  };
  w.for_each(of.m, [&](Value* i) {
    w.for_each(of.n, [&](Value* j) {
      w.for_each(of.m0, [&](Value* row) {
        w.for_each(of.n0, [&](Value* column) {
          Value* const tile = w.sum(w.product(w.sum(w.product(j, of.m0), row), of.n0), column);
          Value* const out = w.at(of.out, w.product(w.sum(w.product(i, of.out_stride), tile), w.i64(4)));
          Value* const start =
              w.b.CreateSelect(of.accumulates, w.load(result, out), llvm::Constant::getNullValue(result));
          const Values sum = w.for_each(of.k, {start}, [&](Value* step, Values sums) {
            return w.for_each(of.k0, sums, [&](Value* unit, Values now) -> Values {
              const auto element_of = [&](Value* base, Value* stride, Value* tile_row, Value* index,
                                          Value* rows) {
                Value* const inner = w.sum(w.product(w.sum(w.product(step, rows), index), of.k0), unit);
                return number(w.at(base, w.product(w.sum(w.product(tile_row, stride), inner), width)));
              };
              Value* const x = element_of(of.lhs, of.lhs_stride, i, row, of.m0);
              Value* const y = element_of(of.rhs, of.rhs_stride, j, column, of.n0);
              if (is_float) return {w.b.CreateFAdd(now[0], w.b.CreateFMul(x, y))};
              return {w.sum(now[0], w.product(x, y))};
            });
          });
          w.store(sum[0], out);
        });
      });
    });
  });
}

// ---- Tiles of a known width

// How the terms of one step are written.
enum class Terms : uint8_t {
  floats,
  pairs,    // of 16-bit numbers, which one instruction multiplies and adds
  quads,    // of 8-bit numbers, likewise: those of the right side unsigned, so 128 is added to them, and 128
            // times the sum of the left side is subtracted from the result
  integers  // of 16 bits, one by one
};

class TiledProduct {
 public:
  // `columns` and `units`: n0 and k0. `packs`: makes panels; else the tiles are read where they are, which
  // pays off if they need no change, or if few rows need them.
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
    lanes_ = std::max(columns, vectors.lanes);
    const bool is_wide = lanes_ > vectors.lanes;
    most_rows_ = is_wide ? vectors.rows_of_16 : vectors.rows;
    groups_ = is_wide ? 1 : vectors.vectors;
    if (terms == Terms::pairs) groups_ = std::min(groups_, 2u);  // products need a register, too
    if (!packs && units_ > 1) {                                  // for few rows
      most_rows_ = vectors.few_rows;
      groups_ = vectors.vectors_of_few;
    }
    sums_pairs_ = terms == Terms::pairs && !packs;
    is_in_blocks_ = terms == Terms::floats && !packs && units == 4 && columns == 8 && lanes_ == 8 &&
                    vectors.is_x86 && vectors.register_lanes <= 8;
    swaps_columns_ = is_in_blocks_ && vectors.register_lanes == 8;
    tiles_ = groups_ * lanes_ / columns_;
    element_ = terms == Terms::floats ? 4 : 1;
    llvm::LLVMContext& context = w.b.getContext();
    panel_type_ = terms == Terms::floats     ? llvm::Type::getFloatTy(context)
                  : terms == Terms::integers ? static_cast<llvm::Type*>(llvm::Type::getInt16Ty(context))
                                             : llvm::Type::getInt32Ty(context);
    sum_type_ = terms == Terms::floats ? llvm::Type::getFloatTy(context)
                                       : static_cast<llvm::Type*>(llvm::Type::getInt32Ty(context));
    panel_element_ = terms == Terms::integers ? 2 : 4;
  }

  // The function with the loops, whose parameters are the values of `Product` but n0 and k0.
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
  uint64_t block_steps() const { return packs_ ? kBlockSteps : kDirectBlockSteps; }
  uint64_t panel_step() const { return uint64_t{units_} * lanes_ * panel_element_; }

  // ---- One panel: sums of `rows` rows and all groups of columns

  // lhs, bytes from one of its steps to the next, steps, whether results are added to; panels; outputs of
  // tiles.
  void write_multiply(const std::string& name, uint32_t rows) {
    std::vector<llvm::Type*> parameters = {w_.b.getPtrTy(), w_.b.getInt64Ty(), w_.b.getInt64Ty(),
                                           w_.b.getInt1Ty()};
    parameters.insert(parameters.end(), sources() + tiles_, w_.b.getPtrTy());
    llvm::Function* const made =
        w_.begin(name + "_" + std::to_string(rows), w_.b.getVoidTy(), parameters, false);
    made->addFnAttr(llvm::Attribute::NoInline);
    multiply_[rows] = made;
    llvm::Type* const type = vector(sum_type_, sums_pairs_ ? 2 * lanes_ : lanes_);
    Value* const adds = w_.argument(3);
    Values sums;
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t group = 0; group < groups_; ++group) {
        llvm::Constant* const zero = llvm::Constant::getNullValue(type);
        sums.push_back(sums_pairs_ ? static_cast<Value*>(zero)
                                   : w_.b.CreateSelect(adds, load_sums(row, group), zero));
      }
    const bool has_excess = terms_ == Terms::quads;
    if (has_excess) sums.push_back(llvm::Constant::getNullValue(vector(sum_type_, std::max(rows, 4u))));
    sums = w_.for_each(w_.argument(2), sums, [&](Value* step, Values now) {
      Value* const lhs = w_.at(w_.argument(0), w_.product(step, w_.argument(1)));
      if (has_excess) now.back() = with_excess(now.back(), lhs, rows);
      if (!packs_) {
        // One group after the other, because registers are few.
        for (uint32_t group = 0; group < groups_; ++group) {
          if (group > 0 && rows > 1) keep_order();
          if (sums_pairs_) {
            Value* const pairs = load_pairs(group, step);
            for (uint32_t row = 0; row < rows; ++row) {
              Value*& sum = now[row * groups_ + group];
              sum = w_.sum(sum, sum_of_pairs(lhs_pairs(lhs, row), pairs));
            }
            continue;
          }
          const Values columns = columns_of(group, step);
          for (uint32_t unit = 0; unit < units_; ++unit)
            for (uint32_t row = 0; row < rows; ++row) {
              Value*& sum = now[row * groups_ + group];
              sum =
                  with_term(sum, w_.b.CreateVectorSplat(lanes_, lhs_element(lhs, row, unit)), columns[unit]);
            }
        }
        return now;
      }
      for (uint32_t unit = 0; unit < units_; ++unit) {
        Values columns;
        for (uint32_t group = 0; group < groups_; ++group) {
          Value* const at = w_.sum(w_.product(step, w_.i64(panel_step())),
                                   w_.i64(uint64_t{unit} * lanes_ * panel_element_));
          columns.push_back(w_.load(vector(panel_type_, lanes_), w_.at(w_.argument(4 + group), at)));
        }
        for (uint32_t row = 0; row < rows; ++row) {
          Value* const element = w_.b.CreateVectorSplat(lanes_, lhs_element(lhs, row, unit));
          for (uint32_t group = 0; group < groups_; ++group) {
            Value*& sum = now[row * groups_ + group];
            sum = with_term(sum, element, columns[group]);
          }
        }
      }
      return now;
    });
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t group = 0; group < groups_; ++group) {
        Value* sum = sums[row * groups_ + group];
        if (has_excess)
          sum = w_.b.CreateSub(
              sum, w_.b.CreateVectorSplat(lanes_, w_.b.CreateExtractElement(sums.back(), uint64_t{row})));
        if (sums_pairs_) {
          Value* const before = w_.b.CreateSelect(adds, load_sums(row, group),
                                                  llvm::Constant::getNullValue(vector(sum_type_, lanes_)));
          sum = w_.sum(before, w_.sum(every_second(sum, 0), every_second(sum, 1)));
        }
        store_sums(sum, row, group);
      }
    w_.b.CreateRetVoid();
  }

  // ---- Tiles that are read where they are

  uint32_t sources() const { return packs_ ? groups_ : tiles_; }  // panels or tiles
  // The numbers of one step; quads as one number of 32 bits each.
  Value* load_tile(uint32_t tile, Value* step) {
    const uint64_t count = uint64_t{columns_} * units_;
    Value* const address =
        w_.at(w_.argument(4 + tile), w_.product(step, w_.i64(uint64_t{columns_} * k0_ * element_)));
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
    Value* const address = w_.at(w_.argument(4 + tile), w_.product(step, w_.i64(count)));
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

  // Transposing within blocks takes fewer instructions than transposing fully. With two blocks in a register
  // the columns are in another order, and the sums as well: the even ones, and the odd ones.
  Values columns_in_blocks(uint32_t tile, Value* step) {
    const uint32_t lanes = vectors_.register_lanes;
    Value* const address =
        w_.at(w_.argument(4 + tile), w_.product(step, w_.i64(uint64_t{columns_} * k0_ * 4)));
    Values columns;
    for (uint32_t part = 0; part < columns_ / lanes; ++part) {
      Values rows;
      for (uint64_t i = 0; i < 4; ++i)
        rows.push_back(
            w_.load(vector(panel_type_, lanes), w_.at(address, w_.i64((4 * part + i) * lanes * 4))));
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
  // 128 times the sum of each row's numbers.
  Value* with_excess(Value* excess, Value* lhs, uint32_t rows) {
    if (rows >= 4) {
      const llvm::Intrinsic::ID operation = rows == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                                            : rows == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                                        : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
      return w_.b.CreateIntrinsic(operation, {},
                                  {excess, w_.b.CreateVectorSplat(rows, w_.b.getInt32(0x80808080)),
                                   w_.load(vector(w_.b.getInt32Ty(), rows), lhs)});
    }
    // The instruction has four numbers at least.
    Value* const some = w_.load(vector(w_.b.getInt32Ty(), rows), lhs);
    llvm::SmallVector<int, 4> lanes;
    for (uint32_t i = 0; i < 4; ++i) lanes.push_back(static_cast<int>(std::min(i, rows)));
    Value* const all = w_.b.CreateShuffleVector(some, llvm::Constant::getNullValue(some->getType()), lanes);
    return w_.b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpbusd_128, {},
                                {excess, w_.b.CreateVectorSplat(4, w_.b.getInt32(0x80808080)), all});
  }

  Value* out_row(uint32_t tile, uint32_t row) {
    return w_.at(w_.argument(4 + sources() + tile), w_.i64(uint64_t{row} * columns_ * 4));
  }
  uint32_t tiles_of_group() const { return lanes_ / columns_; }
  Value* load_sums(uint32_t row, uint32_t group) {
    llvm::Type* const type = vector(sum_type_, columns_);
    Value* const first = w_.load(type, out_row(group * tiles_of_group(), row));
    if (swaps_columns_) return w_.b.CreateShuffleVector(first, {0, 2, 4, 6, 1, 3, 5, 7});
    if (tiles_of_group() == 1) return first;
    llvm::SmallVector<int, 16> both;
    for (uint32_t i = 0; i < lanes_; ++i) both.push_back(static_cast<int>(i));
    return w_.b.CreateShuffleVector(first, w_.load(type, out_row(group * 2 + 1, row)), both);
  }
  void store_sums(Value* sums, uint32_t row, uint32_t group) {
    if (swaps_columns_) sums = w_.b.CreateShuffleVector(sums, {0, 4, 1, 5, 2, 6, 3, 7});
    if (tiles_of_group() == 1) return w_.store(sums, out_row(group, row));
    for (uint32_t half = 0; half < 2; ++half) {
      llvm::SmallVector<int, 16> lanes;
      for (uint32_t i = 0; i < columns_; ++i) lanes.push_back(static_cast<int>(half * columns_ + i));
      w_.store(w_.b.CreateShuffleVector(sums, lanes), out_row(group * 2 + half, row));
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
    Value* const panel = packs_ ? w_.room(groups_ * kBlockSteps * panel_step()) : nullptr;
    widened_ = terms_ == Terms::pairs ? w_.room(block_steps() * most_rows_ * k0_ * 2) : nullptr;
    unused_ = w_.room(uint64_t{most_rows_} * columns_ * 4);
    Value* const blocks = w_.b.CreateUDiv(w_.sum(of.k, w_.i64(block_steps() - 1)), w_.i64(block_steps()));
    Value* const tiles = w_.i64(tiles_);
    w_.for_each(blocks, [&](Value* block) {
      Value* const first = w_.product(block, w_.i64(block_steps()));
      Value* const steps = w_.min(w_.b.CreateSub(of.k, first), w_.i64(block_steps()));
      Value* const adds = w_.b.CreateOr(of.accumulates, w_.b.CreateIsNotNull(block));
      w_.for_each(w_.b.CreateUDiv(w_.sum(of.n, w_.i64(tiles_ - 1)), tiles), [&](Value* some) {
        Value* const column = w_.product(some, tiles);
        Values sources;
        Values is_used;
        for (uint32_t tile = 0; tile < tiles_; ++tile) {
          Value* const number = w_.sum(column, w_.i64(tile));
          is_used.push_back(w_.b.CreateICmpULT(number, of.n));
          // A tile that does not exist repeats the first one, and its results are not used.
          Value* const source = w_.b.CreateSelect(is_used.back(), number, column);
          Value* const inner = w_.product(first, w_.product(of.n0, of.k0));
          sources.push_back(w_.at(of.rhs, bytes(w_.sum(w_.product(source, of.rhs_stride), inner))));
        }
        Values panels = sources;
        if (packs_) {
          pack(sources, panel, steps);
          panels.clear();
          for (uint32_t group = 0; group < groups_; ++group)
            panels.push_back(w_.at(panel, w_.i64(group * kBlockSteps * panel_step())));
        }
        w_.for_each(of.m, [&](Value* i) {
          Value* const inner = w_.product(first, w_.product(of.m0, of.k0));
          Value* const lhs = w_.at(of.lhs, bytes(w_.sum(w_.product(i, of.lhs_stride), inner)));
          write_rows(of, i, column, lhs, panels, is_used, steps, adds);
        });
      });
    });
  }

  // All rows of a tile: as many as possible at a time, then half as many, and so on.
  void write_rows(const Product& of, Value* i, Value* column, Value* lhs, const Values& panels,
                  const Values& is_used, Value* steps, Value* adds) {
    Value* done = w_.i64(0);
    for (uint32_t rows = most_rows_; rows > 0; rows /= 2) {
      Value* const count = w_.b.CreateUDiv(w_.b.CreateSub(of.m0, done), w_.i64(rows));
      Value* const before = done;
      w_.for_each(count, [&](Value* some) {
        Value* const row = w_.sum(before, w_.product(some, w_.i64(rows)));
        Value* from = w_.at(lhs, bytes(w_.product(row, of.k0)));
        Value* step = bytes(w_.product(of.m0, of.k0));
        if (widened_) {
          widen(from, step, steps, rows);
          from = widened_;
          step = w_.i64(uint64_t{rows} * k0_ * 2);
        }
        Values arguments = {from, step, steps, adds};
        arguments.append(panels.begin(), panels.end());
        for (uint32_t tile = 0; tile < tiles_; ++tile) {
          Value* const rows_before = w_.sum(w_.product(w_.sum(column, w_.i64(tile)), of.m0), row);
          Value* const index = w_.sum(w_.product(i, of.out_stride), w_.product(rows_before, of.n0));
          Value* const out = w_.at(of.out, w_.product(index, w_.i64(4)));
          arguments.push_back(w_.b.CreateSelect(is_used[tile], out, unused_));
        }
        w_.b.CreateCall(multiply_.at(rows), arguments);
      });
      done = w_.sum(done, w_.product(count, w_.i64(rows)));
    }
  }

  // Writes each unit of the tiles' columns as a part of a vector.
  void pack(const Values& sources, Value* panel, Value* steps) {
    w_.for_each(steps, [&](Value* step) {
      for (uint32_t tile = 0; tile < tiles_; ++tile) {
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
              w_.i64(group * kBlockSteps * panel_step() + (uint64_t{unit} * lanes_ + lane) * panel_element_));
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
  bool swaps_columns_ = false;
  uint32_t units_ = 0;  // of a step: columns of a panel
  uint32_t lanes_ = 0;  // of a vector of sums
  uint32_t most_rows_ = 0;
  uint32_t groups_ = 0;   // vectors of sums of a row
  uint32_t tiles_ = 0;    // of these vectors
  uint32_t element_ = 0;  // bytes
  uint32_t panel_element_ = 0;
  llvm::Type* panel_type_ = nullptr;
  llvm::Type* sum_type_ = nullptr;
  std::map<uint32_t, llvm::Function*> multiply_;
  Value* widened_ = nullptr;
  Value* unused_ = nullptr;
};

struct KnownTiles {
  uint64_t type = 0;
  uint32_t n0 = 0, k0 = 0;
  uint32_t m0 = 0;        // 0: any number of rows
  uint64_t few_rows = 0;  // less than this in all; 0: any number
  llvm::Function* function = nullptr;
};

}  // namespace

void write_packed_product(LoopWriter& w, const VectorSet& vectors, const std::function<void()>& begin) {
  const Terms bytes = vectors.has_vnni ? Terms::quads : vectors.has_pairs ? Terms::pairs : Terms::integers;
  const bool packs_bytes = bytes != Terms::quads;
  std::vector<KnownTiles> known;
  const auto add = [&](const char* name, uint64_t type, Terms terms, KnownTiles tiles, bool packs) {
    tiles.type = type;
    tiles.function = TiledProduct(w, vectors, terms, tiles.n0, tiles.k0, packs).write(name);
    known.push_back(tiles);
  };
  add("floats16x1", kF32Type, Terms::floats, {.n0 = 16, .k0 = 1, .m0 = 16}, false);
  if (vectors.register_lanes == 8) {
    // Four rows of two vectors leave the registers that the columns need.
    VectorSet four_rows = vectors;
    four_rows.few_rows = 4;
    four_rows.vectors_of_few = 2;
    for (const uint32_t m0 : {4u, 8u}) {
      KnownTiles tiles = {.type = kF32Type, .n0 = 8, .k0 = 4, .m0 = m0, .few_rows = kManyRows};
      tiles.function = m0 == 4
                           ? TiledProduct(w, four_rows, Terms::floats, 8, 4, false).write("four_floats8x4")
                           : known.back().function;
      known.push_back(tiles);
    }
  }
  if (vectors.is_x86 && vectors.register_lanes == 4) {
    VectorSet one_row = vectors;
    one_row.few_rows = 1;
    one_row.vectors_of_few = 4;
    KnownTiles tiles = {.type = kF32Type, .n0 = 8, .k0 = 4, .few_rows = 2};
    tiles.function = TiledProduct(w, one_row, Terms::floats, 8, 4, false).write("one_floats8x4");
    known.push_back(tiles);
  }
  add("few_floats8x4", kF32Type, Terms::floats, {.n0 = 8, .k0 = 4, .few_rows = kManyRows}, false);
  add("floats8x4", kF32Type, Terms::floats, {.n0 = 8, .k0 = 4}, true);
  if (bytes == Terms::pairs) {
    // A row of a tile has 16 sums: a vector of AVX-512, two of AVX2, four of SSE.
    VectorSet pairs = vectors;
    pairs.lanes = 8;
    pairs.few_rows = vectors.register_lanes == 16 ? 4 : vectors.register_lanes == 8 ? 2 : 1;
    pairs.vectors_of_few = vectors.register_lanes == 16 ? 4 : 2;
    KnownTiles tiles = {.type = kS8Type, .n0 = 8, .k0 = 4, .few_rows = kManyRowsOfBytes};
    tiles.function = TiledProduct(w, pairs, bytes, 8, 4, false).write("few_bytes8x4");
    known.push_back(tiles);
  }
  add("bytes8x4", kS8Type, bytes, {.n0 = 8, .k0 = 4}, packs_bytes);
  if (vectors.has_vnni) add("bytes16x4", kS8Type, bytes, {.n0 = 16, .k0 = 4, .m0 = 16}, packs_bytes);

  begin();
  OperandChecks check(w);
  const auto size_of = [&](unsigned index) { return w.b.CreateZExt(w.argument(index), w.b.getInt64Ty()); };
  Value* const flags = size_of(15);
  Value* const type = w.b.CreateAnd(flags, w.i64(0xFF));
  Product of = {.lhs = nullptr,
                .lhs_stride = w.argument(2),
                .rhs = nullptr,
                .rhs_stride = w.argument(5),
                .out = nullptr,
                .out_stride = w.argument(8),
                .m = w.argument(9),
                .n = w.argument(10),
                .k = w.argument(11),
                .m0 = size_of(12),
                .n0 = size_of(13),
                .k0 = size_of(14),
                .accumulates = w.b.CreateIsNotNull(w.b.CreateAnd(flags, w.i64(kAccumulate)))};
  check.writable(w.argument(6));
  Value* const is_float = w.b.CreateICmpEQ(type, w.i64(kF32Type));
  w.return_unless(w.b.CreateOr(is_float, w.b.CreateICmpEQ(type, w.i64(kS8Type))), kInvalidArgument);
  for (Value* const tiles : {of.m, of.n, of.k})
    w.return_unless(w.b.CreateICmpULE(tiles, w.i64(INT32_MAX)), kInvalidArgument);
  for (Value* const size : {of.m0, of.n0, of.k0})
    w.return_unless(w.b.CreateICmpULE(size, w.i64(UINT16_MAX)), kInvalidArgument);
  // At most 2^63.
  Value* const lhs_row = w.product(w.product(of.k, of.m0), of.k0);
  Value* const rhs_row = w.product(w.product(of.k, of.n0), of.k0);
  Value* const out_row = w.product(w.product(of.n, of.m0), of.n0);
  const auto operand = [&](unsigned first, Value* rows, Value* row, Value* stride) {
    // Both widths of elements, because the type is known late.
    Value* const is_wide = is_float;
    Value* const offset = w.argument(first + 1);
    const auto checked = [&](uint64_t width) {
      return check.rows(w.argument(first), offset, rows, row, stride, width);
    };
    llvm::BasicBlock* const wide = w.block();
    llvm::BasicBlock* const narrow = w.block();
    llvm::BasicBlock* const after = w.block();
    w.b.CreateCondBr(is_wide, wide, narrow);
    w.b.SetInsertPoint(wide);
    Value* const of_floats = checked(4);
    llvm::BasicBlock* const wide_end = w.b.GetInsertBlock();
    w.b.CreateBr(after);
    w.b.SetInsertPoint(narrow);
    Value* const of_bytes = checked(1);
    llvm::BasicBlock* const narrow_end = w.b.GetInsertBlock();
    w.b.CreateBr(after);
    w.b.SetInsertPoint(after);
    llvm::PHINode* const address = w.b.CreatePHI(w.b.getPtrTy(), 2);
    address->addIncoming(of_floats, wide_end);
    address->addIncoming(of_bytes, narrow_end);
    return address;
  };
  of.lhs = operand(0, of.m, lhs_row, of.lhs_stride);
  of.rhs = operand(3, of.n, rhs_row, of.rhs_stride);
  of.out = check.rows(w.argument(6), w.argument(7), of.m, out_row, of.out_stride, 4);
  Value* const is_empty = w.b.CreateOr(w.b.CreateIsNull(of.m), w.b.CreateIsNull(out_row));
  of.k = w.b.CreateSelect(w.b.CreateIsNull(of.k0), of.k0, of.k);
  Value* const changes = w.b.CreateOr(w.b.CreateNot(of.accumulates), w.b.CreateIsNotNull(of.k));
  w.if_(w.b.CreateAnd(w.b.CreateNot(is_empty), changes), [&] {
    for (const KnownTiles& tiles : known) {
      Value* is_known = w.b.CreateAnd(w.b.CreateICmpEQ(type, w.i64(tiles.type)), w.b.CreateIsNotNull(of.k));
      is_known = w.b.CreateAnd(is_known, w.b.CreateICmpEQ(of.n0, w.i64(tiles.n0)));
      is_known = w.b.CreateAnd(is_known, w.b.CreateICmpEQ(of.k0, w.i64(tiles.k0)));
      if (tiles.m0 != 0) is_known = w.b.CreateAnd(is_known, w.b.CreateICmpEQ(of.m0, w.i64(tiles.m0)));
      if (tiles.few_rows != 0)
        is_known = w.b.CreateAnd(is_known, w.b.CreateICmpULT(w.product(of.m, of.m0), w.i64(tiles.few_rows)));
      w.if_(is_known, [&] {
        w.b.CreateCall(tiles.function, {of.lhs, of.lhs_stride, of.rhs, of.rhs_stride, of.out, of.out_stride,
                                        of.m, of.n, of.k, of.m0, of.accumulates});
        w.b.CreateRet(w.b.getInt32(0));
        w.b.SetInsertPoint(w.block());  // unreachable
      });
    }
    w.if_(is_float, [&] { write_plain_loops(w, of, true); }, [&] { write_plain_loops(w, of, false); });
  });
  w.b.CreateRet(w.b.getInt32(0));
}

void write_tile_sizes(LoopWriter& w, const VectorSet& vectors) {
  struct Sizes {
    uint64_t m0, n0, k0;
  };
  const bool has_vectors = vectors.is_x86 || vectors.is_arm;
  const auto tiles = [&](uint64_t k0) { return has_vectors ? Sizes{16, 16, k0} : Sizes{8, 8, 2}; };
  // By the numbers of operations, from 1 on.
  const Sizes sizes[] = {has_vectors ? Sizes{16, 16, 1} : Sizes{8, 8, 1},
                         vectors.has_vnni ? Sizes{16, 16, 4}
                         : has_vectors    ? Sizes{8, 8, 4}
                                          : Sizes{8, 8, 2},
                         tiles(1),
                         tiles(1),
                         tiles(2),
                         tiles(2)};
  Value* const flags = w.argument(2);
  Value* const role = w.b.CreateAnd(flags, w.b.getInt32(0xFF));
  Value* const operation = w.b.CreateAnd(w.b.CreateLShr(flags, 8), w.b.getInt32(0xFF));
  for (uint32_t number = 1; number <= std::size(sizes); ++number)
    for (uint32_t operand = 1; operand <= 3; ++operand) {
      const Sizes& of = sizes[number - 1];
      Value* const is_this = w.b.CreateAnd(w.b.CreateICmpEQ(role, w.b.getInt32(operand)),
                                           w.b.CreateICmpEQ(operation, w.b.getInt32(number)));
      w.if_(is_this, [&] {
        w.b.CreateStore(w.i64(operand == 2 ? of.n0 : of.m0), w.argument(3));
        w.b.CreateStore(w.i64(operand == 3 ? of.n0 : of.k0), w.argument(4));
        w.b.CreateRet(w.b.getInt32(0));
        w.b.SetInsertPoint(w.block());  // unreachable
      });
    }
  w.b.CreateRet(w.b.getInt32(static_cast<uint32_t>(kInvalidArgument)));
}

}  // namespace halyard::jit
