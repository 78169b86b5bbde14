// What the files *_simd.cpp add to a table of kernels for one instruction set, `target`: Highway's number.
#pragma once

// hwy/highway.h comes before it, since what that is depends on who includes it.
#include <cstddef>
#include <cstdint>

#include "kernels.h"

namespace halyard::local::vmvx {

// `has_bf16`: the processor has AVX512_BF16, which is in no set of Highway's.
void add_mmt4d_simd(int64_t target, bool has_bf16, Kernels& kernels);
void add_elementwise_simd(int64_t target, Kernels& kernels);
void add_copy_simd(int64_t target, Kernels& kernels);  // and fill
void add_tiles_simd(int64_t target, Kernels& kernels);

// Where a table made by HWY_EXPORT has the function for `target`.
inline size_t index_of(int64_t target) {
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return chosen.GetIndex();
}
#define VMVX_FUNCTION_FOR(target, function) (*HWY_DISPATCH_TABLE(function)[index_of(target)])

}  // namespace halyard::local::vmvx
