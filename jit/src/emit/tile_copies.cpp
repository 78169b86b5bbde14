#include "emit/tile_copies.h"

#include <cstdint>
#include <functional>
#include <numeric>

#include "emit/microkernel_operands.h"

namespace halyard::jit {

namespace {

using llvm::Value;

constexpr uint32_t kTypeMask = 0xFF;
constexpr uint32_t kInnerTransposed = 0x100;
constexpr uint32_t kOuterTransposed = 0x200;

// Tiles, and the matrix that they hold, as values of the function. Strides are in elements.
struct Tiling {
  Value *tiles, *matrix;
  Value *o0, *o1, *t0, *t1, *tile_stride0;
  Value *stride0, *stride1, *size0, *size1;  // of the matrix
  Value *extent0, *extent1;                  // rows and columns of the matrix in a tile
  Value *grid0, *grid1;                      // rows and columns of tiles
  Value *outer_transposed, *inner_transposed;
};

class TileCopies {
 public:
  explicit TileCopies(LoopWriter& w) : w_(w), check_(w) {}

  void set_tiling(unsigned first_size_of_tiles, Value* flags) {
    of_.o0 = w_.argument(first_size_of_tiles);
    of_.o1 = w_.argument(first_size_of_tiles + 1);
    of_.t0 = w_.argument(first_size_of_tiles + 2);
    of_.t1 = w_.argument(first_size_of_tiles + 3);
    const auto has = [&](uint32_t flag) {
      return w_.b.CreateIsNotNull(w_.b.CreateAnd(flags, w_.b.getInt32(flag)));
    };
    of_.outer_transposed = has(kOuterTransposed);
    of_.inner_transposed = has(kInnerTransposed);
    of_.extent0 = w_.b.CreateSelect(of_.inner_transposed, of_.t1, of_.t0);
    of_.extent1 = w_.b.CreateSelect(of_.inner_transposed, of_.t0, of_.t1);
    of_.grid0 = w_.b.CreateSelect(of_.outer_transposed, of_.o1, of_.o0);
    of_.grid1 = w_.b.CreateSelect(of_.outer_transposed, of_.o0, of_.o1);
  }
  Tiling& tiling() { return of_; }
  OperandChecks& check() { return check_; }

  void set_matrix(unsigned buffer, unsigned first_size, uint64_t width) {
    of_.stride0 = w_.argument(buffer + 2);
    of_.stride1 = w_.argument(buffer + 3);
    of_.size0 = w_.argument(first_size);
    of_.size1 = w_.argument(first_size + 1);
    of_.matrix = check_.matrix(w_.argument(buffer), w_.argument(buffer + 1), of_.stride0, of_.stride1,
                               of_.size0, of_.size1, width);
  }
  // After the sizes of the matrix are known: the tiles must hold it.
  void set_tiles(unsigned buffer, Value* size0, Value* size1, uint64_t width) {
    of_.tile_stride0 = w_.argument(buffer + 2);
    check_.sizes(of_.o0, of_.o1);
    check_.sizes(of_.t0, of_.t1);
    check_.stride(w_.argument(buffer + 3));
    w_.return_unless(w_.b.CreateICmpUGE(w_.product(of_.grid0, of_.extent0), size0), kInvalidArgument);
    w_.return_unless(w_.b.CreateICmpUGE(w_.product(of_.grid1, of_.extent1), size1), kInvalidArgument);
    Value* const row = check_.saturated_product(of_.o1, w_.product(of_.t0, of_.t1));
    of_.tiles =
        check_.rows(w_.argument(buffer), w_.argument(buffer + 1), of_.o0, row, of_.tile_stride0, width);
  }

  // Copies between matrix and tiles. `packs`: to the tiles, of which all rows and columns are written:
  // positions outside of the matrix become `filler`. Else to the matrix.
  void copy(llvm::Type* type, Value* filler) {
    const bool packs = filler != nullptr;
    const uint64_t width = type->getPrimitiveSizeInBits() / 8;
    const auto count = [&](Value* size, Value* extent, Value* grid) {
      if (packs) return grid;
      return w_.b.CreateUDiv(w_.b.CreateSub(w_.sum(size, extent), w_.i64(1)), extent);
    };
    Value* const row_stride = w_.b.CreateSelect(of_.inner_transposed, w_.i64(1), of_.t1);
    Value* const column_stride = w_.b.CreateSelect(of_.inner_transposed, of_.t1, w_.i64(1));
    // Tiles of usual shapes, whose bytes are not those of the matrix, are copied in vectors.
    Value* const are_vectors = w_.b.CreateAnd(w_.b.CreateICmpEQ(of_.stride1, w_.i64(1)), are_apart_);
    Value* const are_rows = w_.b.CreateAnd(are_vectors, w_.b.CreateNot(of_.inner_transposed));
    Value* const are_columns = w_.b.CreateAnd(are_vectors, of_.inner_transposed);
    w_.for_each(count(of_.size0, of_.extent0, of_.grid0), [&](Value* x) {
      w_.for_each(count(of_.size1, of_.extent1, of_.grid1), [&](Value* y) {
        Value* const outer = w_.b.CreateSelect(of_.outer_transposed, y, x);
        Value* const inner = w_.b.CreateSelect(of_.outer_transposed, x, y);
        Value* const tile =
            w_.sum(w_.product(outer, of_.tile_stride0), w_.product(inner, w_.product(of_.t0, of_.t1)));
        Value* const row = w_.product(x, of_.extent0);
        Value* const column = w_.product(y, of_.extent1);
        const Place place = {.matrix = w_.at(of_.matrix, w_.product(w_.sum(w_.product(row, of_.stride0),
                                                                           w_.product(column, of_.stride1)),
                                                                    w_.i64(width))),
                             .tile = w_.at(of_.tiles, w_.product(tile, w_.i64(width))),
                             .rows = w_.min(w_.rest(of_.size0, row), of_.extent0),
                             .columns = w_.min(w_.rest(of_.size1, column), of_.extent1)};
        Value* const is_whole = w_.b.CreateAnd(w_.b.CreateICmpEQ(place.rows, of_.extent0),
                                               w_.b.CreateICmpEQ(place.columns, of_.extent1));
        llvm::BasicBlock* const done = w_.block();
        const auto if_shape = [&](Value* condition, const std::function<void()>& then) {
          w_.if_(w_.b.CreateAnd(is_whole, condition), [&] {
            then();
            w_.b.CreateBr(done);
            w_.b.SetInsertPoint(w_.block());  // unreachable
          });
        };
        for (const uint32_t columns : {4u, 8u, 16u})
          if_shape(w_.b.CreateAnd(are_rows, w_.b.CreateICmpEQ(of_.t1, w_.i64(columns))),
                   [&] { copy_rows(type, place, columns, packs); });
        if (packs)
          if_shape(w_.b.CreateAnd(are_columns, w_.b.CreateAnd(w_.b.CreateICmpEQ(of_.t0, w_.i64(8)),
                                                              w_.b.CreateICmpEQ(of_.t1, w_.i64(4)))),
                   [&] { transpose(type, place, 4, 8); });
        w_.for_each(packs ? of_.extent0 : place.rows, [&](Value* p) {
          Value* const in_matrix = w_.at(place.matrix, w_.product(w_.product(p, of_.stride0), w_.i64(width)));
          Value* const in_tile = w_.at(place.tile, w_.product(w_.product(p, row_stride), w_.i64(width)));
          Value* const inside =
              w_.b.CreateSelect(w_.b.CreateICmpULT(p, place.rows), place.columns, w_.i64(0));
          if (!packs) return copy_elements(type, in_tile, column_stride, in_matrix, of_.stride1, inside);
          copy_elements(type, in_matrix, of_.stride1, in_tile, column_stride, inside);
          w_.for_each(w_.b.CreateSub(of_.extent1, inside), [&](Value* i) {
            Value* const offset = w_.product(w_.sum(inside, i), column_stride);
            w_.store(filler, w_.at(in_tile, w_.product(offset, w_.i64(width))));
          });
        });
        w_.b.CreateBr(done);
        w_.b.SetInsertPoint(done);
      });
    });
  }

  // After both places are known and checked.
  void set_apart(uint64_t width) {
    const auto last = [&](Value* count, Value* stride) {
      return w_.product(w_.b.CreateSub(count, w_.i64(1)), stride);
    };
    const auto end = [&](Value* begin, Value* elements) {
      return w_.sum(w_.b.CreatePtrToInt(begin, w_.b.getInt64Ty()), w_.product(elements, w_.i64(width)));
    };
    Value* const in_matrix =
        w_.sum(w_.sum(last(of_.size0, of_.stride0), last(of_.size1, of_.stride1)), w_.i64(1));
    Value* const in_tiles =
        w_.sum(last(of_.o0, of_.tile_stride0), w_.product(of_.o1, w_.product(of_.t0, of_.t1)));
    are_apart_ = w_.b.CreateOr(w_.b.CreateICmpULE(end(of_.matrix, in_matrix), end(of_.tiles, w_.i64(0))),
                               w_.b.CreateICmpULE(end(of_.tiles, in_tiles), end(of_.matrix, w_.i64(0))));
  }

 private:
  // A tile, and its part of the matrix.
  struct Place {
    Value *matrix, *tile;
    Value *rows, *columns;  // that are in the matrix
  };

  // A whole tile with so many columns, whose rows are contiguous.
  void copy_rows(llvm::Type* type, const Place& place, uint32_t columns, bool packs) {
    llvm::Type* const row = llvm::FixedVectorType::get(type, columns);
    const uint64_t width = type->getPrimitiveSizeInBits() / 8;
    w_.for_each(of_.extent0, [&](Value* p) {
      Value* const in_matrix = w_.at(place.matrix, w_.product(w_.product(p, of_.stride0), w_.i64(width)));
      Value* const in_tile = w_.at(place.tile, w_.product(p, w_.i64(columns * width)));
      w_.store(w_.load(row, packs ? in_matrix : in_tile), packs ? in_tile : in_matrix);
    });
  }

  // Writes a whole tile whose columns are contiguous: rows and columns of the matrix.
  void transpose(llvm::Type* type, const Place& place, uint32_t rows, uint32_t columns) {
    const uint64_t width = type->getPrimitiveSizeInBits() / 8;
    llvm::SmallVector<Value*, 4> loaded;
    for (uint32_t p = 0; p < rows; ++p)
      loaded.push_back(w_.load(llvm::FixedVectorType::get(type, columns),
                               w_.at(place.matrix, w_.product(of_.stride0, w_.i64(p * width)))));
    while (loaded.size() > 1) {
      llvm::SmallVector<Value*, 4> joined;
      for (size_t i = 0; i + 1 < loaded.size(); i += 2) joined.push_back(join(loaded[i], loaded[i + 1]));
      loaded = joined;
    }
    llvm::SmallVector<int, 32> order;
    for (uint32_t q = 0; q < columns; ++q)
      for (uint32_t p = 0; p < rows; ++p) order.push_back(static_cast<int>(p * columns + q));
    w_.store(w_.b.CreateShuffleVector(loaded[0], order), place.tile);
  }
  Value* join(Value* first, Value* second) {
    llvm::SmallVector<int, 32> all(2 * llvm::cast<llvm::FixedVectorType>(first->getType())->getNumElements());
    std::iota(all.begin(), all.end(), 0);
    return w_.b.CreateShuffleVector(first, second, all);
  }

  // Contiguous elements become vectors.
  void copy_elements(llvm::Type* type, Value* from, Value* from_stride, Value* to, Value* to_stride,
                     Value* count) {
    const uint64_t width = type->getPrimitiveSizeInBits() / 8;
    const auto copy = [&](Value* stride_from, Value* stride_to) {
      w_.for_each(count, [&](Value* i) {
        Value* const value =
            w_.load(type, w_.at(from, w_.product(w_.product(i, stride_from), w_.i64(width))));
        w_.store(value, w_.at(to, w_.product(w_.product(i, stride_to), w_.i64(width))));
      });
    };
    Value* const is_dense =
        w_.b.CreateAnd(w_.b.CreateICmpEQ(from_stride, w_.i64(1)), w_.b.CreateICmpEQ(to_stride, w_.i64(1)));
    w_.if_(is_dense, [&] { copy(w_.i64(1), w_.i64(1)); }, [&] { copy(from_stride, to_stride); });
  }

  LoopWriter& w_;
  OperandChecks check_;
  Tiling of_ = {};
  Value* are_apart_ = nullptr;
};

Value* type_is(LoopWriter& w, Value* flags, uint32_t type) {
  return w.b.CreateICmpEQ(w.b.CreateAnd(flags, w.b.getInt32(kTypeMask)), w.b.getInt32(type));
}

}  // namespace

void write_pack(LoopWriter& w) {
  Value* const padding = w.argument(14);
  Value* const flags = w.argument(15);
  TileCopies copies(w);
  copies.check().writable(w.argument(4));
  const auto write = [&](uint32_t width) {
    llvm::Type* const type = w.b.getIntNTy(8 * width);
    copies.set_tiling(10, flags);
    copies.set_matrix(0, 8, width);
    const Tiling& of = copies.tiling();
    copies.set_tiles(4, of.size0, of.size1, width);
    copies.set_apart(width);
    copies.copy(type, w.b.CreateTrunc(padding, type));
    w.b.CreateRet(w.b.getInt32(0));
    w.b.SetInsertPoint(w.block());  // unreachable
  };
  w.if_(w.b.CreateOr(type_is(w, flags, 1), type_is(w, flags, 3)), [&] { write(4); });
  w.if_(type_is(w, flags, 2), [&] { write(1); });
  w.b.CreateRet(w.b.getInt32(static_cast<uint32_t>(kInvalidArgument)));
}

void write_unpack(LoopWriter& w) {
  constexpr uint32_t kWidth = 4;
  Value* const flags = w.argument(14);
  TileCopies copies(w);
  copies.check().writable(w.argument(4));
  w.return_unless(w.b.CreateOr(type_is(w, flags, 1), type_is(w, flags, 3)), kInvalidArgument);
  copies.set_tiling(8, flags);
  copies.set_tiles(0, w.argument(12), w.argument(13), kWidth);
  copies.set_matrix(4, 12, kWidth);
  copies.set_apart(kWidth);
  const Tiling& of = copies.tiling();
  w.if_(w.b.CreateAnd(w.b.CreateIsNotNull(of.size0), w.b.CreateIsNotNull(of.size1)),
        [&] { copies.copy(w.b.getInt32Ty(), nullptr); });
  w.b.CreateRet(w.b.getInt32(0));
}

}  // namespace halyard::jit
