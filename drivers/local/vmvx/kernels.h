// The table of kernels: one function for each operation, all for one instruction set. Callers check the
// operands. docs/microkernels.md lists the instruction sets and explains the choice.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "operands.h"

namespace halyard::local::vmvx {

enum class Binary : uint8_t {
  add_f32,
  sub_f32,
  mul_f32,
  div_f32,
  add_i32,
  sub_i32,
  mul_i32,
  divs_i32,
  divu_i32,
  and_i32,
  or_i32,
  xor_i32,
  shl_i32,
  shrs_i32,
  shru_i32,
  count,
};
enum class Unary : uint8_t {
  abs_f32,
  ceil_f32,
  exp_f32,
  floor_f32,
  log_f32,
  neg_f32,
  rsqrt_f32,
  ctlz_i32,
  count,
};
// Types of lhs, rhs and out, in the order of the type numbers of exec-vmvx.md, 5.5, which start at 1.
enum class Mmt4dType : uint8_t {
  f32f32f32,
  s8s8s32,
  f16f16f32,
  f16f16f16,
  bf16bf16f32,
  bf16bf16bf16,
  s16s16s32,
  s16u4s32,
  s16s8s32,
  s8s4s32,
  count,
};
inline constexpr size_t kBinaryCount = static_cast<size_t>(Binary::count);
inline constexpr size_t kUnaryCount = static_cast<size_t>(Unary::count);
inline constexpr size_t kMmt4dTypeCount = static_cast<size_t>(Mmt4dType::count);

// False: a divisor is 0; the output may be partially written.
using BinaryKernel = bool (*)(const Input& lhs, const Input& rhs, const Output& out, const Shape& shape);
using UnaryKernel = void (*)(const Input& in, const Output& out, const Shape& shape);
// The output's stride1 is 1.
using FillKernel = void (*)(uint32_t value, const Output& out, const Shape& shape);
// Positions outside of the matrix are filled with the low bytes of `padding`.
using PackKernel = void (*)(const uint8_t* matrix, uint8_t* tiles, const Tiling& tiling, uint64_t padding);
using UnpackKernel = void (*)(const uint8_t* tiles, uint8_t* matrix, const Tiling& tiling);
using Mmt4dKernel = void (*)(const Mmt4d& operands);

// The fastest tile sizes of a kernel; all divide 16. Other sizes give correct results but are slower.
struct TileSizes {
  uint32_t m0, n0, k0;
};

struct Kernels {
  std::string_view instructions;  // name of the instruction set, static
  std::array<BinaryKernel, kBinaryCount> binary;
  std::array<UnaryKernel, kUnaryCount> unary;
  std::array<UnaryKernel, 4> copy;     // of elements of 1, 2, 4, 8 bytes
  FillKernel fill;                     // of elements of 4 bytes
  std::array<PackKernel, 3> pack;      // of elements of 1, 2, 4 bytes
  std::array<UnpackKernel, 3> unpack;  // likewise
  std::array<Mmt4dKernel, kMmt4dTypeCount> mmt4d;
  std::array<TileSizes, kMmt4dTypeCount> tiles;
  // Only for n0 = 8 and k0 = 4, with any m0.
  std::array<Mmt4dKernel, kMmt4dTypeCount> mmt4d_8x4;

  Mmt4dKernel mmt4d_for(Mmt4dType type, uint32_t n0, uint32_t k0) const {
    return (n0 == 8 && k0 == 4 ? mmt4d_8x4 : mmt4d)[static_cast<size_t>(type)];
  }
};

// Plain loops, the reference for all other kernels.
Kernels scalar_kernels();

// The instruction sets that this processor has, best first; the last one is "scalar".
std::vector<std::string_view> instruction_sets();
// Finds the kernels for one of these names, for "best" or for "baseline". "baseline" is the lowest set other
// than "scalar", which nearly every processor of the architecture has. Null if the name is unknown or the
// processor lacks the set. The result is static.
const Kernels* find_kernels(std::string_view instructions);

}  // namespace halyard::local::vmvx
