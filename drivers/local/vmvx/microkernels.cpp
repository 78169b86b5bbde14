// The functions of the module: the checks in their order, then the call of the kernel. Null refs and refs of
// other types have already been rejected (vm/native/bind.h).
#include "microkernels.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "flags.h"
#include "flush_denormals.h"
#include "pieces.h"
#include "vm/native/bind.h"
#include "vm/object/buffer.h"

namespace halyard::local::vmvx {

namespace {

using vm::Buffer;

// ---- Operands

constexpr uint64_t kMaxSize = UINT32_MAX;
constexpr uint64_t kMaxStride = UINT32_MAX - 1;

// An unchecked operand. Offset and strides are in elements.
struct Place {
  const char* name;
  Buffer& buffer;
  uint64_t offset;
  uint64_t element_size;  // bytes
};

Result<> check_sizes(const char* name, uint64_t size0, uint64_t size1) {
  if (size0 <= kMaxSize && size1 <= kMaxSize) return {};
  return fail(Code::INVALID_ARGUMENT, "sizes of '{}' are {} and {}; expected 0 to {} elements", name,
              static_cast<int64_t>(size0), static_cast<int64_t>(size1), kMaxSize);
}

// A stride of -1 is refused too, because it would lead to addresses before the buffer.
Result<> check_stride(const char* name, uint64_t stride) {
  if (stride <= kMaxStride) return {};
  return fail(Code::INVALID_ARGUMENT, "a stride of '{}' is {}; expected 0 to {} elements", name,
              static_cast<int64_t>(stride), kMaxStride);
}

// The bytes from `place` to its last element, which is `last` elements after the first.
Result<uint8_t*> bytes_at(const Place& place, unsigned __int128 last) {
  const auto [name, buffer, offset, element_size] = place;
  if ((offset + last + 1) * element_size > buffer.length())
    return fail(Code::OUT_OF_RANGE,
                "'{}' ends {} bytes after its offset of {} elements, of {} bytes each; its buffer has {} "
                "bytes in all",
                name,
                static_cast<uint64_t>(std::min<unsigned __int128>((last + 1) * element_size, UINT64_MAX)),
                offset, element_size, buffer.length());
  return buffer.data() + offset * element_size;
}

unsigned __int128 product(uint64_t a, uint64_t b) { return static_cast<unsigned __int128>(a) * b; }

// `rows` rows of `row_elements` contiguous elements. Null if there are none.
Result<uint8_t*> rows_at(const Place& place, uint64_t rows, unsigned __int128 row_elements, uint64_t stride) {
  HALYARD_TRY(check_stride(place.name, stride));
  if (rows == 0 || row_elements == 0) return nullptr;
  // Saturates, because no buffer is that long.
  const auto row = std::min<unsigned __int128>(row_elements, UINT64_MAX);
  return bytes_at(place, product(rows - 1, stride) + row - 1);
}

// Null if the shape is empty.
Result<uint8_t*> matrix_at(const Place& place, uint64_t size0, uint64_t size1, uint64_t stride0,
                           uint64_t stride1) {
  HALYARD_TRY(check_sizes(place.name, size0, size1));
  HALYARD_TRY(check_stride(place.name, stride0));
  HALYARD_TRY(check_stride(place.name, stride1));
  if (size0 == 0 || size1 == 0) return nullptr;
  return bytes_at(place, product(size0 - 1, stride0) + product(size1 - 1, stride1));
}

Result<> check_writable(const Buffer& buffer) {
  if (buffer.is_mutable()) return {};
  return fail(Code::PERMISSION_DENIED, "'out' is a read-only buffer; expected a writable one");
}

// An operand that starts at a later element.
template <typename Operand>
Operand from(Operand operand, uint64_t row, uint64_t column, uint64_t element_size) {
  operand.data += (row * operand.stride0 + column * operand.stride1) * element_size;
  return operand;
}

// ---- Element-wise

template <Binary kOperation>
Result<> binary(const State& state, Buffer& lhs, uint64_t lhs_offset, uint64_t lhs_stride0,
                uint64_t lhs_stride1, Buffer& rhs, uint64_t rhs_offset, uint64_t rhs_stride0,
                uint64_t rhs_stride1, Buffer& out, uint64_t out_offset, uint64_t out_stride0,
                uint64_t out_stride1, uint64_t size0, uint64_t size1) {
  HALYARD_TRY(check_writable(out));
  const Input a = {
      HALYARD_TRY(matrix_at({"lhs", lhs, lhs_offset, 4}, size0, size1, lhs_stride0, lhs_stride1)),
      lhs_stride0, lhs_stride1};
  const Input b = {
      HALYARD_TRY(matrix_at({"rhs", rhs, rhs_offset, 4}, size0, size1, rhs_stride0, rhs_stride1)),
      rhs_stride0, rhs_stride1};
  const Output c = {
      HALYARD_TRY(matrix_at({"out", out, out_offset, 4}, size0, size1, out_stride0, out_stride1)),
      out_stride0, out_stride1};
  if (!c.data) return {};
  const BinaryKernel kernel = state.kernels.binary[static_cast<size_t>(kOperation)];
  return in_pieces(state.stop, size0, size1, 1,
                   [&](uint64_t row, uint64_t rows, uint64_t column, uint64_t columns) -> Result<> {
                     const Input lhs_piece = from(a, row, column, 4);
                     const Input rhs_piece = from(b, row, column, 4);
                     const Output out_piece = from(c, row, column, 4);
                     if constexpr (kOperation <= Binary::div_f32) {
                       const FlushDenormals flush;
                       kernel(lhs_piece, rhs_piece, out_piece, {rows, columns});
                     } else if (!kernel(lhs_piece, rhs_piece, out_piece, {rows, columns})) {
                       return fail(Code::INVALID_ARGUMENT, "'rhs' has a divisor of 0; expected none");
                     }
                     return {};
                   });
}

Result<> map(const State& state, UnaryKernel kernel, uint64_t element_size, Buffer& in, uint64_t in_offset,
             uint64_t in_stride0, uint64_t in_stride1, Buffer& out, uint64_t out_offset, uint64_t out_stride0,
             uint64_t out_stride1, uint64_t size0, uint64_t size1) {
  HALYARD_TRY(check_writable(out));
  const Input a = {
      HALYARD_TRY(matrix_at({"in", in, in_offset, element_size}, size0, size1, in_stride0, in_stride1)),
      in_stride0, in_stride1};
  const Output c = {
      HALYARD_TRY(matrix_at({"out", out, out_offset, element_size}, size0, size1, out_stride0, out_stride1)),
      out_stride0, out_stride1};
  if (!c.data) return {};
  return in_pieces(state.stop, size0, size1, 1,
                   [&](uint64_t row, uint64_t rows, uint64_t column, uint64_t columns) -> Result<> {
                     kernel(from(a, row, column, element_size), from(c, row, column, element_size),
                            {rows, columns});
                     return {};
                   });
}

template <Unary kOperation>
Result<> unary(const State& state, Buffer& in, uint64_t in_offset, uint64_t in_stride0, uint64_t in_stride1,
               Buffer& out, uint64_t out_offset, uint64_t out_stride0, uint64_t out_stride1, uint64_t size0,
               uint64_t size1) {
  const FlushDenormals flush;
  return map(state, state.kernels.unary[static_cast<size_t>(kOperation)], 4, in, in_offset, in_stride0,
             in_stride1, out, out_offset, out_stride0, out_stride1, size0, size1);
}

template <size_t kLog2Bytes>
Result<> copy(const State& state, Buffer& in, uint64_t in_offset, uint64_t in_stride0, uint64_t in_stride1,
              Buffer& out, uint64_t out_offset, uint64_t out_stride0, uint64_t out_stride1, uint64_t size0,
              uint64_t size1) {
  return map(state, state.kernels.copy[kLog2Bytes], 1u << kLog2Bytes, in, in_offset, in_stride0, in_stride1,
             out, out_offset, out_stride0, out_stride1, size0, size1);
}

Result<> fill(const State& state, uint32_t value, Buffer& out, uint64_t out_offset, uint64_t out_stride,
              uint64_t size0, uint64_t size1) {
  HALYARD_TRY(check_writable(out));
  const Output c = {HALYARD_TRY(matrix_at({"out", out, out_offset, 4}, size0, size1, out_stride, 1)),
                    out_stride, 1};
  if (!c.data) return {};
  return in_pieces(state.stop, size0, size1, 1,
                   [&](uint64_t row, uint64_t rows, uint64_t column, uint64_t columns) -> Result<> {
                     state.kernels.fill(value, from(c, row, column, 4), {rows, columns});
                     return {};
                   });
}

// ---- Matrix products

constexpr uint64_t kMaxTiles = INT32_MAX;
constexpr uint32_t kMaxTileSize = UINT16_MAX;

// One tile, which takes longer than a piece may. Each piece has some steps of k; or, if one step takes too
// long, some rows of the tile; or, if one row does, some columns. The terms of a result are added in the same
// order.
Result<> multiply_tile(const State& state, Mmt4dKernel kernel, const Mmt4d& tile, const ProductType& type) {
  const uint64_t terms = std::max<uint32_t>(tile.k0, 1);
  const uint64_t steps_at_once = std::max<uint64_t>(kMaxInPiece / (uint64_t{tile.m0} * tile.n0 * terms), 1);
  const uint64_t columns_at_once = std::clamp<uint64_t>(kMaxInPiece / terms, 1, tile.n0);
  const uint64_t rows_at_once =
      columns_at_once == tile.n0 ? std::clamp<uint64_t>(kMaxInPiece / (tile.n0 * terms), 1, tile.m0) : 1;
  const auto part = [](uint64_t first, uint64_t all, uint64_t most) { return std::min(all - first, most); };
  uint64_t k = 0;
  do {
    for (uint64_t row = 0; row < tile.m0; row += rows_at_once) {
      for (uint64_t column = 0; column < tile.n0; column += columns_at_once) {
        HALYARD_TRY(go_on_unless_stopped(state.stop));
        Mmt4d piece = tile;
        if (piece.lhs) piece.lhs += (k * tile.m0 + row) * tile.k0 * type.operand_size;
        if (piece.rhs) piece.rhs += (k * tile.n0 + column) * tile.k0 * type.operand_size;
        piece.out += (row * tile.n0 + column) * type.result_size;
        piece.k = part(k, tile.k, steps_at_once);
        piece.m0 = static_cast<uint32_t>(part(row, tile.m0, rows_at_once));
        piece.n0 = static_cast<uint32_t>(part(column, tile.n0, columns_at_once));
        piece.accumulate |= k != 0;
        const FlushDenormals flush;
        kernel(piece);
      }
    }
    k += steps_at_once;
  } while (k < tile.k);
  return {};
}

Result<> mmt4d(const State& state, Buffer& lhs, uint64_t lhs_offset, uint64_t lhs_stride, Buffer& rhs,
               uint64_t rhs_offset, uint64_t rhs_stride, Buffer& out, uint64_t out_offset,
               uint64_t out_stride, uint64_t m, uint64_t n, uint64_t k, uint32_t m0, uint32_t n0, uint32_t k0,
               uint32_t flags) {
  HALYARD_TRY(check_writable(out));
  const auto* type = std::ranges::find(kProductTypes, flags & kTypeMask, &ProductType::flag);
  if (type == std::end(kProductTypes))
    return fail(
        Code::INVALID_ARGUMENT,
        "a matrix product of type {:#x}; expected 0x1 (f32 x f32 to f32) or 0x2 (s8 x s8 to s32) in the "
        "low bits of flags {:#x}",
        flags & kTypeMask, flags);
  if (m > kMaxTiles || n > kMaxTiles || k > kMaxTiles)
    return fail(Code::INVALID_ARGUMENT, "M, N, K are {}, {}, {}; expected 0 to {}", static_cast<int64_t>(m),
                static_cast<int64_t>(n), static_cast<int64_t>(k), kMaxTiles);
  if (m0 > kMaxTileSize || n0 > kMaxTileSize || k0 > kMaxTileSize)
    return fail(Code::INVALID_ARGUMENT, "m0, n0, k0 are {}, {}, {}; expected 0 to {}",
                static_cast<int32_t>(m0), static_cast<int32_t>(n0), static_cast<int32_t>(k0), kMaxTileSize);
  const uint64_t lhs_row = k * m0 * k0;  // at most 2^63
  const uint64_t rhs_row = k * n0 * k0;
  Mmt4d operands = {.lhs_stride = lhs_stride,
                    .rhs_stride = rhs_stride,
                    .out_stride = out_stride,
                    .m = m,
                    .n = n,
                    .k = k0 == 0 ? 0 : k,
                    .m0 = m0,
                    .n0 = n0,
                    .k0 = k0,
                    .accumulate = (flags & kAccumulate) != 0,
                    .skip_rounding = (flags & kSkipRounding) != 0};
  operands.lhs = HALYARD_TRY(rows_at({"lhs", lhs, lhs_offset, type->operand_size}, m, lhs_row, lhs_stride));
  operands.rhs = HALYARD_TRY(rows_at({"rhs", rhs, rhs_offset, type->operand_size}, n, rhs_row, rhs_stride));
  operands.out =
      HALYARD_TRY(rows_at({"out", out, out_offset, type->result_size}, m, product(n, m0) * n0, out_stride));
  if (!operands.out) return {};
  const Mmt4dKernel kernel = state.kernels.mmt4d_for(type->type, n0, k0);
  const uint64_t tile = uint64_t{m0} * n0;
  // Without terms, each result is written nevertheless.
  const unsigned __int128 each = product(tile, std::max<uint64_t>(k, 1)) * std::max<uint32_t>(k0, 1);
  // Pieces have all rows if possible, because kernels prepare columns once for all rows.
  return in_pieces(state.stop, n, m, static_cast<uint64_t>(std::min<unsigned __int128>(each, UINT64_MAX)),
                   [&](uint64_t column, uint64_t columns, uint64_t row, uint64_t rows) -> Result<> {
                     Mmt4d piece = operands;
                     if (piece.lhs) piece.lhs += row * lhs_stride * type->operand_size;
                     if (piece.rhs) piece.rhs += column * rhs_stride * type->operand_size;
                     piece.out += (row * out_stride + column * tile) * type->result_size;
                     piece.m = rows;
                     piece.n = columns;
                     if (each > kMaxInPiece) return multiply_tile(state, kernel, piece, *type);
                     const FlushDenormals flush;
                     kernel(piece);
                     return {};
                   });
}

struct TileOperation {
  uint32_t number;
  Mmt4dType type;
};
constexpr TileOperation kTileOperations[] = {{1, Mmt4dType::f32f32f32},   {2, Mmt4dType::s8s8s32},
                                             {3, Mmt4dType::f16f16f32},   {4, Mmt4dType::f16f16f16},
                                             {5, Mmt4dType::bf16bf16f32}, {6, Mmt4dType::bf16bf16bf16}};

// The matrix sizes are ignored, because all operands of a program must get the same answer.
Result<std::tuple<int64_t, int64_t>> query_tile_sizes(const State& state, int64_t, int64_t, uint32_t flags) {
  using Pair = std::tuple<int64_t, int64_t>;
  const auto* operation = std::ranges::find(kTileOperations, flags >> 8 & 0xFF, &TileOperation::number);
  if (operation != std::end(kTileOperations)) {
    const TileSizes& sizes = state.kernels.tiles[static_cast<size_t>(operation->type)];
    switch (flags & 0xFF) {
      case 1:
        return Pair(sizes.m0, sizes.k0);
      case 2:
        return Pair(sizes.n0, sizes.k0);
      case 3:
        return Pair(sizes.m0, sizes.n0);
      default:
        break;
    }
  }
  return fail(
      Code::INVALID_ARGUMENT,
      "tile sizes for flags {:#x}; expected 1 to 3 (lhs, rhs, result) in bits 0 to 7 and 1 to 6 (a matrix "
      "product) in bits 8 to 15",
      flags);
}

// ---- Tiles

// By the type in the flags.
Result<size_t> element_size_log2(const char* name, uint32_t flags, bool also_i8) {
  const std::optional<size_t> log2 = vmvx::element_size_log2(flags);
  if (log2 && (also_i8 || *log2 != 0)) return *log2;
  return fail(Code::INVALID_ARGUMENT,
              "elements to {} are of type {:#x}; expected {} in the low bits of flags {:#x}", name,
              flags & kTypeMask, also_i8 ? "1 (f32), 2 (i8) or 3 (i32)" : "1 (f32) or 3 (i32)", flags);
}

// Checks that the tiles hold the whole matrix. Tiles are dense, whatever their stride is. Null if there are
// no tiles.
Result<uint8_t*> tiles_at(const Place& place, const Tiling& tiling, uint64_t stride1) {
  HALYARD_TRY(check_sizes(place.name, tiling.o0, tiling.o1));
  HALYARD_TRY(check_sizes(place.name, tiling.t0, tiling.t1));
  HALYARD_TRY(check_stride(place.name, stride1));
  if (product(tiling.grid0(), tiling.extent0()) < tiling.size0 ||
      product(tiling.grid1(), tiling.extent1()) < tiling.size1)
    return fail(Code::INVALID_ARGUMENT,
                "{} x {} tiles of {} x {} elements do not hold a matrix of {} x {}; expected enough tiles",
                tiling.grid0(), tiling.grid1(), tiling.extent0(), tiling.extent1(), tiling.size0,
                tiling.size1);
  return rows_at(place, tiling.o0, product(tiling.o1, tiling.t0 * tiling.t1), tiling.tile_stride0);
}

// A range of tile rows and columns, with the matrix clipped to it.
Tiling part_of(Tiling tiling, uint64_t row, uint64_t rows, uint64_t column, uint64_t columns) {
  const auto rest = [](uint64_t size, uint64_t first, uint64_t count) {
    return size > first ? std::min(size - first, count) : 0;
  };
  tiling.size0 = rest(tiling.size0, row * tiling.extent0(), rows * tiling.extent0());
  tiling.size1 = rest(tiling.size1, column * tiling.extent1(), columns * tiling.extent1());
  (tiling.outer_transposed ? tiling.o1 : tiling.o0) = rows;
  (tiling.outer_transposed ? tiling.o0 : tiling.o1) = columns;
  return tiling;
}

// The offset, in elements, of a tile row and column in the matrix.
uint64_t matrix_offset(const Tiling& tiling, uint64_t row, uint64_t column) {
  return row * tiling.extent0() * tiling.stride0 + column * tiling.extent1() * tiling.stride1;
}

Result<> pack(const State& state, Buffer& in, uint64_t in_offset, uint64_t in_stride0, uint64_t in_stride1,
              Buffer& out, uint64_t out_offset, uint64_t out_stride0, uint64_t out_stride1, uint64_t in_size0,
              uint64_t in_size1, uint64_t out_size0, uint64_t out_size1, uint64_t out_size2,
              uint64_t out_size3, uint64_t padding, uint32_t flags) {
  HALYARD_TRY(check_writable(out));
  const size_t log2 = HALYARD_TRY(element_size_log2("pack", flags, true));
  const Tiling tiling = {.o0 = out_size0,
                         .o1 = out_size1,
                         .t0 = out_size2,
                         .t1 = out_size3,
                         .tile_stride0 = out_stride0,
                         .stride0 = in_stride0,
                         .stride1 = in_stride1,
                         .size0 = in_size0,
                         .size1 = in_size1,
                         .outer_transposed = (flags & kOuterTransposed) != 0,
                         .inner_transposed = (flags & kInnerTransposed) != 0};
  const uint8_t* const matrix = HALYARD_TRY(
      matrix_at({"in", in, in_offset, uint64_t{1} << log2}, in_size0, in_size1, in_stride0, in_stride1));
  uint8_t* const tiles =
      HALYARD_TRY(tiles_at({"out", out, out_offset, uint64_t{1} << log2}, tiling, out_stride1));
  if (!tiles) return {};
  return in_pieces(state.stop, tiling.grid0(), tiling.grid1(), tiling.t0 * tiling.t1,
                   [&](uint64_t row, uint64_t rows, uint64_t column, uint64_t columns) -> Result<> {
                     const Tiling piece = part_of(tiling, row, rows, column, columns);
                     const uint64_t from =
                         piece.size0 && piece.size1 ? matrix_offset(tiling, row, column) : 0;
                     state.kernels.pack[log2](matrix ? matrix + (from << log2) : nullptr,
                                              tiles + (tiling.tile_at(row, column) << log2), piece, padding);
                     return {};
                   });
}

Result<> unpack(const State& state, Buffer& in, uint64_t in_offset, uint64_t in_stride0, uint64_t in_stride1,
                Buffer& out, uint64_t out_offset, uint64_t out_stride0, uint64_t out_stride1,
                uint64_t in_size0, uint64_t in_size1, uint64_t in_size2, uint64_t in_size3,
                uint64_t out_size0, uint64_t out_size1, uint32_t flags) {
  HALYARD_TRY(check_writable(out));
  const size_t log2 = HALYARD_TRY(element_size_log2("unpack", flags, false));
  const Tiling tiling = {.o0 = in_size0,
                         .o1 = in_size1,
                         .t0 = in_size2,
                         .t1 = in_size3,
                         .tile_stride0 = in_stride0,
                         .stride0 = out_stride0,
                         .stride1 = out_stride1,
                         .size0 = out_size0,
                         .size1 = out_size1,
                         .outer_transposed = (flags & kOuterTransposed) != 0,
                         .inner_transposed = (flags & kInnerTransposed) != 0};
  const uint8_t* const tiles =
      HALYARD_TRY(tiles_at({"in", in, in_offset, uint64_t{1} << log2}, tiling, in_stride1));
  uint8_t* const matrix = HALYARD_TRY(matrix_at({"out", out, out_offset, uint64_t{1} << log2}, out_size0,
                                                out_size1, out_stride0, out_stride1));
  if (!matrix) return {};
  const auto count = [](uint64_t size, uint64_t extent) { return size / extent + (size % extent != 0); };
  return in_pieces(state.stop, count(tiling.size0, tiling.extent0()), count(tiling.size1, tiling.extent1()),
                   tiling.t0 * tiling.t1,
                   [&](uint64_t row, uint64_t rows, uint64_t column, uint64_t columns) -> Result<> {
                     state.kernels.unpack[log2](tiles + (tiling.tile_at(row, column) << log2),
                                                matrix + (matrix_offset(tiling, row, column) << log2),
                                                part_of(tiling, row, rows, column, columns));
                     return {};
                   });
}

// ---- The table

constexpr char kBinary[] = "0rIIIrIIIrIIIII_v";
constexpr char kUnary[] = "0rIIIrIIIII_v";

template <auto kFunction>
consteval vm::NativeExport function(const char* name, std::string_view convention) {
  if (convention != vm::convention_of<kFunction>) throw "the parameters are not those of the convention";
  return {name, vm::convention_of<kFunction>, vm::bind<kFunction>};
}

constexpr vm::NativeExport kFunctions[] = {
    function<&binary<Binary::add_f32>>("add.2d.f32", kBinary),
    function<&binary<Binary::sub_f32>>("sub.2d.f32", kBinary),
    function<&binary<Binary::mul_f32>>("mul.2d.f32", kBinary),
    function<&binary<Binary::div_f32>>("div.2d.f32", kBinary),
    function<&binary<Binary::add_i32>>("add.2d.i32", kBinary),
    function<&binary<Binary::sub_i32>>("sub.2d.i32", kBinary),
    function<&binary<Binary::mul_i32>>("mul.2d.i32", kBinary),
    function<&binary<Binary::divs_i32>>("divs.2d.i32", kBinary),
    function<&binary<Binary::divu_i32>>("divu.2d.i32", kBinary),
    function<&binary<Binary::and_i32>>("and.2d.i32", kBinary),
    function<&binary<Binary::or_i32>>("or.2d.i32", kBinary),
    function<&binary<Binary::xor_i32>>("xor.2d.i32", kBinary),
    function<&binary<Binary::shl_i32>>("shl.2d.i32", kBinary),
    function<&binary<Binary::shrs_i32>>("shrs.2d.i32", kBinary),
    function<&binary<Binary::shru_i32>>("shru.2d.i32", kBinary),
    function<&unary<Unary::abs_f32>>("abs.2d.f32", kUnary),
    function<&unary<Unary::ceil_f32>>("ceil.2d.f32", kUnary),
    function<&unary<Unary::exp_f32>>("exp.2d.f32", kUnary),
    function<&unary<Unary::floor_f32>>("floor.2d.f32", kUnary),
    function<&unary<Unary::log_f32>>("log.2d.f32", kUnary),
    function<&unary<Unary::neg_f32>>("neg.2d.f32", kUnary),
    function<&unary<Unary::rsqrt_f32>>("rsqrt.2d.f32", kUnary),
    function<&unary<Unary::ctlz_i32>>("ctlz.2d.i32", kUnary),
    function<&copy<0>>("copy.2d.x8", kUnary),
    function<&copy<1>>("copy.2d.x16", kUnary),
    function<&copy<2>>("copy.2d.x32", kUnary),
    function<&copy<3>>("copy.2d.x64", kUnary),
    function<&fill>("fill.2d.x32", "0irIIII_v"),
    function<&mmt4d>("mmt4d", "0rIIrIIrIIIIIiiii_v"),
    function<&pack>("pack", "0rIIIrIIIIIIIIIIi_v"),
    function<&unpack>("unpack", "0rIIIrIIIIIIIIIi_v"),
    function<&query_tile_sizes>("query_tile_sizes.2d", "0IIi_II"),
};

constexpr std::string_view kName = "vmvx";

}  // namespace

Ref<vm::NativeModule> create_module(const Kernels& kernels) {
  return vm::NativeModule::create({.name = std::string(kName),
                                   .version = 0,
                                   .exports = {std::begin(kFunctions), std::end(kFunctions)},
                                   .create_state = [&kernels]() -> Result<vm::NativeState> {
                                     return vm::NativeState{new State{kernels, nullptr}, [](void* state) {
                                                              delete static_cast<State*>(state);
                                                            }};
                                   }});
}

bool has_function(std::string_view name, std::string_view convention) {
  const std::optional<std::string_view> own = convention_of(name);
  return own && (convention.empty() || convention == *own);
}

std::optional<std::string_view> convention_of(std::string_view name) {
  if (!name.starts_with(kName) || !name.substr(kName.size()).starts_with('.')) return std::nullopt;
  name.remove_prefix(kName.size() + 1);
  const auto* const function = std::ranges::find(kFunctions, name, &vm::NativeExport::name);
  return function == std::end(kFunctions) ? std::nullopt : std::optional(function->convention);
}

}  // namespace halyard::local::vmvx
