// Which instruction sets the files *_simd.cpp are compiled for, once each. Comes before hwy/highway.h. Left
// out: SSSE3, since what lacks SSE4 is rare and served by plain vectors; vectors of unknown length (SVE), of
// which C++ can make no arrays.
#pragma once

#define HWY_WANT_AVX3_DL 1
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

// Before a loop over the rows and vectors of a tile, whose accumulators must become registers. Not under a
// sanitizer: nothing becomes a register there, and compilers take minutes.
#if defined(HALYARD_SANITIZED)
#define VMVX_UNROLL
#elif defined(__clang__)
#define VMVX_UNROLL _Pragma("clang loop unroll(full)")
#else
#define VMVX_UNROLL _Pragma("GCC unroll 16")
#endif

// In place of a function that adds kernels to a table, where there are none.
#define VMVX_NO_KERNELS(function, parameters)     \
  namespace halyard::local::vmvx::HWY_NAMESPACE { \
  void function parameters {}                     \
  }
