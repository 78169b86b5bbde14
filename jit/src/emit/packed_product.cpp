#include "emit/packed_product.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "emit/microkernel_operands.h"
#include "emit/tiled_product.h"

namespace halyard::jit {

namespace {

using llvm::Value;
using Values = LoopWriter::Values;

constexpr uint64_t kF32Type = 1;
constexpr uint64_t kS8Type = 2;
constexpr uint64_t kAccumulate = 0x100;
constexpr uint64_t kManyRows = 16;  // enough for panels to pay off
constexpr uint64_t kManyRowsOfBytes = 8;

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
            return w.for_each(of.k0, std::move(sums), [&](Value* unit, Values now) -> Values {
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
    tiles.function = write_tiled_product(w, vectors, terms, tiles.n0, tiles.k0, packs, name);
    known.push_back(tiles);
  };
  add("floats16x1", kF32Type, Terms::floats, {.n0 = 16, .k0 = 1, .m0 = 16}, false);
  add("few_floats8x4", kF32Type, Terms::floats, {.n0 = 8, .k0 = 4, .few_rows = kManyRows}, false);
  add("floats8x4", kF32Type, Terms::floats, {.n0 = 8, .k0 = 4}, true);
  if (bytes == Terms::pairs)
    add("few_bytes8x4", kS8Type, bytes, {.n0 = 8, .k0 = 4, .few_rows = kManyRowsOfBytes}, false);
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
