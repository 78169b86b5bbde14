// The instruction sets for which the *_simd.cpp files are compiled. Include this file before hwy/highway.h.
// Excluded are SSSE3, because processors without SSE4 are rare and the baseline serves them, and vectors of
// unknown length (SVE), because they cannot be elements of C++ arrays.
#pragma once

#define HWY_WANT_AVX3_DL 1
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

// Used before a loop over the rows and vectors of a tile, whose accumulators must be kept in registers.
// Disabled under sanitizers, because they keep nothing in registers and compilation takes minutes.
#if defined(HALYARD_SANITIZED)
#define VMVX_UNROLL
#elif defined(__clang__)
#define VMVX_UNROLL _Pragma("clang loop unroll(full)")
#else
#define VMVX_UNROLL _Pragma("GCC unroll 16")
#endif

// Adds products in each 32-bit lane, with an instruction that all processors of AVX3_DL have, but Highway
// does not enable.
#define VMVX_DOT(name, sum, a, b) asm(name " %2, %1, %0" : "+v"((sum).raw) : "v"((a).raw), "v"((b).raw))

// Whether the target that is compiled has kernels. Those that Highway emulates (g++ 12 takes HWY_SCALAR, clang
// HWY_EMU128) have none: no processor selects them, and the plain loops do the same.
#define VMVX_HAS_KERNELS (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)

// A function that adds no kernels, for targets without any.
#define VMVX_NO_KERNELS(function, parameters)     \
  namespace halyard::local::vmvx::HWY_NAMESPACE { \
  void function parameters {}                     \
  }
