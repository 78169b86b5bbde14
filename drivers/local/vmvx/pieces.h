// Splits large kernel calls into pieces, so that the work can be stopped between pieces. Calls are large
// because of operands with stride 0, of which 2^64 elements may share one element of memory, and products,
// which have more terms than elements.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel_runner.h"

namespace halyard::local::vmvx {

// The approximate number of steps in one piece: well below a second, even in plain loops.
inline constexpr uint64_t kMaxInPiece = uint64_t{1} << 24;

// Calls `piece(row, rows, column, columns)`, which returns a Result<>, for all positions, row by row. `each`:
// steps for one position.
template <typename Piece>
Result<> in_pieces(const uint32_t* stop, uint64_t rows, uint64_t columns, uint64_t each, Piece&& piece) {
  uint64_t steps = 0;
  if (!__builtin_mul_overflow(rows, columns, &steps) && !__builtin_mul_overflow(steps, each, &steps) &&
      steps <= kMaxInPiece) [[likely]] {
    HALYARD_TRY(go_on_unless_stopped(stop));
    return piece(0, rows, 0, columns);
  }
  const uint64_t most = std::max<uint64_t>(kMaxInPiece / std::max<uint64_t>(each, 1), 1);
  const uint64_t columns_at_once = std::min(columns, most);
  const uint64_t rows_at_once = columns_at_once == columns ? std::max<uint64_t>(most / columns, 1) : 1;
  for (uint64_t row = 0; row < rows; row += rows_at_once) {
    for (uint64_t column = 0; column < columns; column += columns_at_once) {
      HALYARD_TRY(go_on_unless_stopped(stop));
      HALYARD_TRY(piece(row, std::min(rows_at_once, rows - row), column,
                        std::min(columns_at_once, columns - column)));
    }
  }
  return {};
}

}  // namespace halyard::local::vmvx
