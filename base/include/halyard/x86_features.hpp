// Features of an x86 processor that the operating system enables; header only, so that tools and libraries
// share one implementation. The C library has asked the processor when the process started. The compiler's
// __builtin_cpu_supports would ask it again in each library and program, in a constructor; in a virtual
// machine, where cpuid leaves the guest, that takes 70 us.
#ifndef HALYARD_X86_FEATURES_HPP_
#define HALYARD_X86_FEATURES_HPP_

#ifdef __x86_64__

#if __has_include(<sys/platform/x86.h>) && !defined(__clang__)  // the header is not C++ for clang
#include <sys/platform/x86.h>
#define HALYARD_X86_FEATURE(name, in_glibc, in_compiler) \
  inline bool name() { return CPU_FEATURE_ACTIVE(in_glibc); }
#else  // also glibc before 2.33
#define HALYARD_X86_FEATURE(name, in_glibc, in_compiler) \
  inline bool name() { return __builtin_cpu_supports(in_compiler) != 0; }
#endif

namespace halyard::x86 {

HALYARD_X86_FEATURE(sse3, SSE3, "sse3")
HALYARD_X86_FEATURE(ssse3, SSSE3, "ssse3")
HALYARD_X86_FEATURE(sse4_1, SSE4_1, "sse4.1")
HALYARD_X86_FEATURE(sse4_2, SSE4_2, "sse4.2")
HALYARD_X86_FEATURE(sse4a, SSE4A, "sse4a")
HALYARD_X86_FEATURE(pclmul, PCLMULQDQ, "pclmul")
HALYARD_X86_FEATURE(aes, AES, "aes")
HALYARD_X86_FEATURE(popcnt, POPCNT, "popcnt")
HALYARD_X86_FEATURE(avx, AVX, "avx")
HALYARD_X86_FEATURE(fma, FMA, "fma")
HALYARD_X86_FEATURE(fma4, FMA4, "fma4")
HALYARD_X86_FEATURE(xop, XOP, "xop")
HALYARD_X86_FEATURE(f16c, F16C, "f16c")
HALYARD_X86_FEATURE(bmi, BMI1, "bmi")
HALYARD_X86_FEATURE(bmi2, BMI2, "bmi2")
HALYARD_X86_FEATURE(lzcnt, LZCNT, "lzcnt")
HALYARD_X86_FEATURE(movbe, MOVBE, "movbe")
#ifdef __clang__  // has no names for these; every processor with SSE 4.2 has both
inline bool cmpxchg16b() { return sse4_2(); }
inline bool lahf() { return sse4_2(); }
#else
HALYARD_X86_FEATURE(cmpxchg16b, CMPXCHG16B, "cmpxchg16b")
HALYARD_X86_FEATURE(lahf, LAHF64_SAHF64, "lahf_lm")
#endif
HALYARD_X86_FEATURE(avx2, AVX2, "avx2")
HALYARD_X86_FEATURE(vaes, VAES, "vaes")
HALYARD_X86_FEATURE(vpclmulqdq, VPCLMULQDQ, "vpclmulqdq")
HALYARD_X86_FEATURE(avx512f, AVX512F, "avx512f")
HALYARD_X86_FEATURE(avx512cd, AVX512CD, "avx512cd")
HALYARD_X86_FEATURE(avx512vl, AVX512VL, "avx512vl")
HALYARD_X86_FEATURE(avx512dq, AVX512DQ, "avx512dq")
HALYARD_X86_FEATURE(avx512bw, AVX512BW, "avx512bw")
HALYARD_X86_FEATURE(avx512ifma, AVX512_IFMA, "avx512ifma")
HALYARD_X86_FEATURE(avx512vbmi, AVX512_VBMI, "avx512vbmi")
HALYARD_X86_FEATURE(avx512vpopcntdq, AVX512_VPOPCNTDQ, "avx512vpopcntdq")
HALYARD_X86_FEATURE(avx512vnni, AVX512_VNNI, "avx512vnni")
HALYARD_X86_FEATURE(avx512vbmi2, AVX512_VBMI2, "avx512vbmi2")
HALYARD_X86_FEATURE(avx512bitalg, AVX512_BITALG, "avx512bitalg")
HALYARD_X86_FEATURE(avx512bf16, AVX512_BF16, "avx512bf16")
HALYARD_X86_FEATURE(avx512fp16, AVX512_FP16, "avx512fp16")
HALYARD_X86_FEATURE(amx_tile, AMX_TILE, "amx-tile")
HALYARD_X86_FEATURE(amx_int8, AMX_INT8, "amx-int8")
HALYARD_X86_FEATURE(amx_bf16, AMX_BF16, "amx-bf16")

// The levels of the x86-64 ABI, which compilers call x86-64-v2 to v4.
inline bool level2() {
  return sse3() && ssse3() && sse4_1() && sse4_2() && popcnt() && cmpxchg16b() && lahf();
}
inline bool level3() {
  return level2() && avx() && avx2() && bmi() && bmi2() && f16c() && fma() && lzcnt() && movbe();
}
inline bool level4() { return level3() && avx512f() && avx512bw() && avx512cd() && avx512dq() && avx512vl(); }

}  // namespace halyard::x86

#undef HALYARD_X86_FEATURE

#endif

#endif  // HALYARD_X86_FEATURES_HPP_
