#include "emit/tile_copies.h"

#include <cstdint>
#include <functional>

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

  // Calls `copy_row` for each row of each tile of the grid: the addresses of the row in the matrix and in the
  // tile, the number of columns that are in the matrix, and the stride of columns in the tile.
  // `all`: also for rows and columns of tiles outside of the matrix.
  using CopyRow = std::function<void(Value* in_matrix, Value* in_tile, Value* columns, Value* tile_stride)>;
  void for_each_row(bool all, uint64_t width, const CopyRow& copy_row) {
    const auto count = [&](Value* size, Value* extent, Value* grid) {
      if (all) return grid;
      return w_.b.CreateUDiv(w_.b.CreateSub(w_.sum(size, extent), w_.i64(1)), extent);
    };
    Value* const row_stride = w_.b.CreateSelect(of_.inner_transposed, w_.i64(1), of_.t1);
    Value* const column_stride = w_.b.CreateSelect(of_.inner_transposed, of_.t1, w_.i64(1));
    w_.for_each(count(of_.size0, of_.extent0, of_.grid0), [&](Value* x) {
      w_.for_each(count(of_.size1, of_.extent1, of_.grid1), [&](Value* y) {
        Value* const outer = w_.b.CreateSelect(of_.outer_transposed, y, x);
        Value* const inner = w_.b.CreateSelect(of_.outer_transposed, x, y);
        Value* const tile =
            w_.sum(w_.product(outer, of_.tile_stride0), w_.product(inner, w_.product(of_.t0, of_.t1)));
        Value* const row = w_.product(x, of_.extent0);
        Value* const column = w_.product(y, of_.extent1);
        Value* const rows = w_.min(w_.rest(of_.size0, row), of_.extent0);
        Value* const columns = w_.min(w_.rest(of_.size1, column), of_.extent1);
        w_.for_each(all ? of_.extent0 : rows, [&](Value* p) {
          Value* const from =
              w_.sum(w_.product(w_.sum(row, p), of_.stride0), w_.product(column, of_.stride1));
          Value* const to = w_.sum(tile, w_.product(p, row_stride));
          copy_row(w_.at(of_.matrix, w_.product(from, w_.i64(width))),
                   w_.at(of_.tiles, w_.product(to, w_.i64(width))),
                   w_.b.CreateSelect(w_.b.CreateICmpULT(p, rows), columns, w_.i64(0)), column_stride);
        });
      });
    });
  }

 private:
  LoopWriter& w_;
  OperandChecks check_;
  Tiling of_ = {};
};

// Copies `count` elements; contiguous ones as vectors.
void copy_elements(LoopWriter& w, llvm::Type* type, Value* from, Value* from_stride, Value* to,
                   Value* to_stride, Value* count) {
  const uint64_t width = type->getPrimitiveSizeInBits() / 8;
  const auto copy = [&](Value* stride_from, Value* stride_to) {
    w.for_each(count, [&](Value* i) {
      Value* const value = w.load(type, w.at(from, w.product(w.product(i, stride_from), w.i64(width))));
      w.store(value, w.at(to, w.product(w.product(i, stride_to), w.i64(width))));
    });
  };
  Value* const is_dense =
      w.b.CreateAnd(w.b.CreateICmpEQ(from_stride, w.i64(1)), w.b.CreateICmpEQ(to_stride, w.i64(1)));
  w.if_(is_dense, [&] { copy(w.i64(1), w.i64(1)); }, [&] { copy(from_stride, to_stride); });
}

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
    Value* const filler = w.b.CreateTrunc(padding, type);
    copies.for_each_row(true, width, [&](Value* in_matrix, Value* in_tile, Value* columns, Value* stride) {
      copy_elements(w, type, in_matrix, of.stride1, in_tile, stride, columns);
      w.for_each(w.b.CreateSub(of.extent1, columns), [&](Value* i) {
        w.store(filler, w.at(in_tile, w.product(w.product(w.sum(columns, i), stride), w.i64(width))));
      });
    });
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
  const Tiling& of = copies.tiling();
  w.if_(w.b.CreateAnd(w.b.CreateIsNotNull(of.size0), w.b.CreateIsNotNull(of.size1)), [&] {
    copies.for_each_row(false, kWidth, [&](Value* in_matrix, Value* in_tile, Value* columns, Value* stride) {
      copy_elements(w, w.b.getInt32Ty(), in_tile, stride, in_matrix, of.stride1, columns);
    });
  });
  w.b.CreateRet(w.b.getInt32(0));
}

}  // namespace halyard::jit
