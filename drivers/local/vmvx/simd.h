// The functions of the *_simd.cpp files. Each adds kernels for one instruction set to a table. `target` is
// Highway's number of the set.
#pragma once

// Include hwy/highway.h first, because its contents depend on the including file.
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "kernels.h"

namespace halyard::local::vmvx {

// `has_bf16`: the processor has AVX512_BF16, which no Highway target includes.
void add_mmt4d_simd(int64_t target, bool has_bf16, Kernels& kernels);
void add_mmt4d_8x4_simd(int64_t target, Kernels& kernels);
void add_elementwise_simd(int64_t target, Kernels& kernels);
void add_copy_simd(int64_t target, Kernels& kernels);  // also adds fill
void add_tiles_simd(int64_t target, Kernels& kernels);

// The function with this name compiled for `target`; null if there is none. Replaces HWY_EXPORT, which needs
// Highway's library.
template <typename Function>
struct FunctionOfTarget {
  int64_t target;
  Function function;
};
template <typename Function>
Function function_for(int64_t target, std::initializer_list<FunctionOfTarget<Function>> compiled) {
  for (const FunctionOfTarget<Function>& one : compiled)
    if (one.target == target) return one.function;
  return nullptr;
}
#define VMVX_FUNCTION_FOR(target, function)                                                            \
  function_for<decltype(&HWY_STATIC_DISPATCH(function))>(target,                                       \
                                                         {{HWY_AVX3_DL, HWY_CHOOSE_AVX3_DL(function)}, \
                                                          {HWY_AVX3, HWY_CHOOSE_AVX3(function)},       \
                                                          {HWY_AVX2, HWY_CHOOSE_AVX2(function)},       \
                                                          {HWY_SSE4, HWY_CHOOSE_SSE4(function)},       \
                                                          {HWY_NEON, HWY_CHOOSE_NEON(function)}})

}  // namespace halyard::local::vmvx
