// The table of plain loops.
#include "scalar.h"

#include <utility>

namespace halyard::local::vmvx {

namespace {

void fill(uint32_t value, const Output& out, const Shape& shape) {
  for (uint64_t i = 0; i < shape.size0; ++i)
    for (uint64_t j = 0; j < shape.size1; ++j) store(out.data + (i * out.stride0 + j) * 4, value);
}

template <size_t... kIndex>
constexpr std::array<BinaryKernel, kBinaryCount> binaries(std::index_sequence<kIndex...>) {
  return {scalar::binary<static_cast<Binary>(kIndex)>...};
}
template <size_t... kIndex>
constexpr std::array<UnaryKernel, kUnaryCount> unaries(std::index_sequence<kIndex...>) {
  return {scalar::unary<static_cast<Unary>(kIndex)>...};
}

}  // namespace

Kernels scalar_kernels() {
  Kernels kernels = {
      .instructions = "scalar",
      .binary = binaries(std::make_index_sequence<kBinaryCount>()),
      .unary = unaries(std::make_index_sequence<kUnaryCount>()),
      .copy = {scalar::copy<uint8_t>, scalar::copy<uint16_t>, scalar::copy<uint32_t>, scalar::copy<uint64_t>},
      .fill = fill,
      .pack = {scalar::pack<uint8_t>, scalar::pack<uint16_t>, scalar::pack<uint32_t>},
      .unpack = {scalar::unpack<uint8_t>, scalar::unpack<uint16_t>, scalar::unpack<uint32_t>},
      .mmt4d = scalar::kMmt4d,
      .tiles = {},
      .mmt4d_8x4 = scalar::kMmt4d};
  kernels.tiles.fill({8, 8, 2});
  kernels.tiles[static_cast<size_t>(Mmt4dType::f32f32f32)] = {8, 8, 1};
  return kernels;
}

}  // namespace halyard::local::vmvx
